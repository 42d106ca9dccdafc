//! `takt bench sdn-overload`: a writer and readers under an overload of their link, with and
//! without the OpenFlow controller.

use super::command_line;
use crate::output::{note, out, outln};
use clap::Args;
use std::path::{Path, PathBuf};
use takt_bench::sdn_overload::category::Category;
use takt_bench::sdn_overload::outcome::Outcome;
use takt_bench::sdn_overload::site::{SUBSCRIBERS, SWITCHES_MAX, Topology};
use takt_bench::sdn_overload::{Plan, html, run};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Creates a lab of hosts and Open vSwitch switches, and removes it at its end; needs root and Open vSwitch (apt install
openvswitch-switch). Each pair runs idle, with an overload of twice the link rate, and with overload and controller.

Examples:
  takt bench sdn-overload --quick                       one minute
  takt bench sdn-overload --out overload                all categories and sizes, frames of 100 and 1,400 B: 20 minutes
  takt bench sdn-overload --backgrounds all             frames of 100 to 1,500 B: two hours
  takt bench sdn-overload --quick --switches 3          three switches in a row, each link overloaded
  takt bench sdn-overload --quick --ring                a ring of three switches, one link of which fails
  takt bench sdn-overload --peer cyclonedds=PROGRAM     also CycloneDDS: PROGRAM from make -C lab/interop/peers cyclone11
  takt bench sdn-overload --from overload/overload.json --out overload
docs/guide/sdn.md explains the figures.";

/// Frame lengths of the paper, in octets.
const ALL_BACKGROUNDS: [usize; 15] = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500];

/// `takt bench sdn-overload`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SdnOverload {
    /// Short measurement: best effort and reliable-1, one size, runs of 5 s
    #[arg(long)]
    quick: bool,
    /// best-effort, reliable-DEPTH, reliable-all [default: best-effort and reliable with 1, 50, 100 and all]
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',')]
    categories: Vec<Category>,
    /// Payload sizes in octets; reliable pairs use the largest [default: 100,500,1000,1400, or 1400 with --quick]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(16..=1400))]
    sizes: Vec<u64>,
    /// Frame sizes of the overload in octets, 60 to 1514, or all: 100 to 1500 [default: 100,1400, or 1400 with --quick]
    #[arg(long, value_name = "BYTES", value_parser = backgrounds)]
    backgrounds: Option<Backgrounds>,
    /// Length of each run [default: 25, or 5 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Period of the samples, us
    #[arg(long, default_value = "5000", value_name = "US", value_parser = clap::value_parser!(u64).range(500..=1_000_000))]
    period: u64,
    /// Rate of the links in Mbit/s, in each direction
    #[arg(long, default_value = "100", value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    line_rate: u32,
    /// Maximum frames per second of the overload; small frames reduce the rate of the links
    #[arg(long, default_value = "40000", value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    frame_rate: u32,
    /// Queue length of a link in frames of other traffic
    #[arg(long, default_value = "256", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    queue: u32,
    /// Number of switches in a row
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(SWITCHES_MAX)))]
    switches: u8,
    /// Ring of three switches: idle, with the overload, and with a link that fails in the middle of the run
    #[arg(long, conflicts_with = "switches")]
    ring: bool,
    /// Number of readers, each on its own host
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SUBSCRIBERS.len() as u64))]
    readers: u64,
    /// Also measure this program of lab/interop/peers, under the name of its product; may be repeated
    #[arg(long = "peer", value_name = "NAME=PROGRAM", value_parser = peer)]
    peers: Vec<(String, PathBuf)>,
    /// Measure only the products of --peer
    #[arg(long, requires = "peers")]
    without_takt: bool,
    /// Write overload.json (figures and arrivals), overload.csv (arrivals) and report.html (plots) to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Read the figures from an overload.json instead of measuring
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print one JSON object with all arrivals instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
struct Backgrounds(Vec<usize>);

fn backgrounds(text: &str) -> std::result::Result<Backgrounds, String> {
    if text == "all" {
        return Ok(Backgrounds(ALL_BACKGROUNDS.to_vec()));
    }
    let len = |text: &str| text.parse().ok().filter(|len| (60..=1514).contains(len)); // tidy-allow(dropped-cause): the text is named
    let lens: Option<Vec<_>> = text.split(',').map(len).collect();
    lens.map(Backgrounds)
        .ok_or_else(|| format!("{text:?}: expected all, or frame sizes from 60 to 1514 separated by commas"))
}

fn peer(text: &str) -> std::result::Result<(String, PathBuf), String> {
    let is_fit = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    match text.split_once('=') {
        Some((name, program)) if is_fit(name) && !program.is_empty() => Ok((name.to_owned(), program.into())),
        _ => Err(format!("{text:?}: expected NAME=PROGRAM, with letters, digits, -, . and _ in the name")),
    }
}

impl SdnOverload {
    /// Measures the overload and prints the result.
    ///
    /// # Errors
    /// The process lacks permissions, Open vSwitch is missing, a pair was not admitted, a process
    /// failed, or a file cannot be written.
    pub fn run(&self) -> Result<()> {
        let outcome = match &self.from {
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).map_err(|e| Error::os(format!("read {}", path.display()), e))?;
                Outcome::from_json(&text)?
            }
            None => self.measure()?,
        };
        if let Some(directory) = &self.out {
            write_files(&outcome, directory)?;
        }
        if self.json { outln!("{}", outcome.to_json()?) } else { out!("{}", outcome.to_text()) }
    }

    fn measure(&self) -> Result<Outcome> {
        let program = std::env::current_exe().map_err(|e| Error::os("get the path of this executable", e))?;
        run(&self.plan(), program, &["bench", "side"], command_line(), &mut |what| note!("{what}"))
    }

    fn plan(&self) -> Plan {
        let either = |given: &[usize], whole: &[usize], quick: &[usize]| match (given, self.quick) {
            ([], true) => quick.to_vec(),
            ([], false) => whole.to_vec(),
            (given, _) => given.to_vec(),
        };
        let categories = match (self.categories.as_slice(), self.quick) {
            ([], true) => vec![Category::BestEffort, Category::Reliable(1)],
            ([], false) => Category::ALL.to_vec(),
            (given, _) => given.to_vec(),
        };
        let sizes: Vec<usize> = self.sizes.iter().map(|size| *size as usize).collect();
        let backgrounds = self.backgrounds.as_ref().map(|backgrounds| backgrounds.0.as_slice()).unwrap_or_default();
        Plan {
            peers: self.peers.clone(),
            without_takt: self.without_takt,
            topology: if self.ring { Topology::Ring } else { Topology::Row(self.switches) },
            readers: self.readers as usize,
            categories,
            sizes: either(&sizes, &[100, 500, 1000, 1400], &[1400]),
            backgrounds: either(backgrounds, &[100, 1400], &[1400]),
            seconds: self.seconds.unwrap_or(if self.quick { 5 } else { 25 }),
            period_ns: self.period * 1000,
            megabits: self.line_rate,
            frames_per_second: self.frame_rate,
            frames: self.queue,
        }
    }
}

/// Writes the result files to the directory.
fn write_files(outcome: &Outcome, directory: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let op = format!("write {}", path.display());
        |source| Error::Os { op, source }
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let files = [
        ("overload.json", outcome.to_json()?),
        ("overload.csv", outcome.to_csv()),
        ("report.html", html::report(outcome)?),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(failed(&path))?;
        note!("{}", path.display());
    }
    Ok(())
}
