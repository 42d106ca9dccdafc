//! `takt security measure`: execution times of protection on this machine, for `takt analyze`
//! (docs/guide/analysis.md, "Protection").

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use takt::real_time::Histogram;
use takt_bench::{Error, Result};
use takt_config::system::{Cost, Layer, MEASURED_JOBS_MIN, Operation, ProtectionCosts};
use takt_security::keys::{KeyMaterial, TransformKind};
use takt_security::transform::{Form, Opener, Receivers, Sealer, TransformError};

use super::failed;
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security measure
  takt security measure --output controller.json       for protection = \"controller.json\" of an executor
  chrt -f 80 takt security measure --each 1000         with the priority of an executor, one second per line

Keys have 256 bits. The times exclude receiver-specific MACs (origin authentication).";

/// Lengths of the protected plaintext, in octets.
const SIZES: [usize; 9] = [64, 256, 1_024, 1_472, 4_096, 16_384, DATAGRAM_LEN_MAX, 262_144, 1_048_576];
/// Largest of these lengths for submessages and RTPS messages, which have to fit into one datagram.
const DATAGRAM_LEN_MAX: usize = 65_472;
/// Operations before the measurement.
const WARM_UP: u32 = 50;
/// Maximum number of measured operations.
const COUNT_MAX: u64 = 1_000_000;

/// `takt security measure`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Measure {
    /// Write the execution times to this file, in JSON, for `takt analyze`
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Milliseconds per protection and size; measures at least 100 operations
    #[arg(long, value_name = "MS", default_value = "200", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    each: u64,
}

impl Measure {
    /// Measures, prints a line for each protection and size, and writes the file.
    ///
    /// # Errors
    /// The library fails, or the file cannot be written.
    pub fn run(&self) -> Result<()> {
        let each = Duration::from_millis(self.each);
        let mut costs = Vec::new();
        outln!(
            "{:<17}{:>9}{:>9}  seal: median, maximum, us   open: median, maximum, us",
            "protection",
            "octets",
            "runs"
        )?;
        for layer in Layer::ALL {
            for octets in SIZES.into_iter().filter(|octets| is_payload(layer) || *octets <= DATAGRAM_LEN_MAX) {
                let times = Subject::new(layer, octets)?.measure(each)?;
                let found = [Operation::Seal, Operation::Open].map(|operation| cost(layer, operation, octets, &times));
                let [seal, open] = found;
                let us = |ns: u64| format!("{:.3}", ns as f64 / 1_000.0);
                outln!(
                    "{:<17}{octets:>9}{:>9}  {:>12}{:>13}   {:>12}{:>13}",
                    layer.name(),
                    seal.count,
                    us(seal.p50_ns),
                    us(seal.max_ns),
                    us(open.p50_ns),
                    us(open.max_ns)
                )?;
                costs.extend(found);
            }
        }
        let Some(path) = &self.output else { return Ok(()) };
        let json = serde_json::to_string_pretty(&ProtectionCosts::of_this_machine(costs)).map_err(failed)?;
        std::fs::write(path, json + "\n").map_err(|source| Error::Os { op: path.display().to_string(), source })
    }
}

fn is_payload(layer: Layer) -> bool {
    matches!(layer, Layer::DataSign | Layer::DataEncrypt)
}

fn cost(layer: Layer, operation: Operation, octets: usize, times: &Times) -> Cost {
    let times = match operation {
        Operation::Seal => &times.seal,
        Operation::Open => &times.open,
    };
    let (octets, count) = (octets as u64, times.count());
    Cost { layer, operation, octets, count, p50_ns: times.quantile_ns(0.5), max_ns: times.max_ns() }
}

/// Execution times of the operations.
struct Times {
    seal: Histogram,
    open: Histogram,
}

/// Plaintext and the keys that protect it.
struct Subject {
    form: Form,
    sealer: Sealer,
    opener: Opener,
    content: Vec<u8>,
    /// Buffer for the content at `plain` and for what protection adds around it.
    frame: Vec<u8>,
    plain: Range<usize>,
    memory: Vec<u8>,
}

impl Subject {
    fn new(layer: Layer, octets: usize) -> Result<Self> {
        let (form, kind) = match layer {
            Layer::DataSign => (Form::Payload, TransformKind::Aes256Gmac),
            Layer::DataEncrypt => (Form::Payload, TransformKind::Aes256Gcm),
            Layer::MetadataSign => (Form::Submessage, TransformKind::Aes256Gmac),
            Layer::MetadataEncrypt => (Form::Submessage, TransformKind::Aes256Gcm),
            Layer::RtpsSign => (Form::Message, TransformKind::Aes256Gmac),
            Layer::RtpsEncrypt => (Form::Message, TransformKind::Aes256Gcm),
        };
        let material = KeyMaterial::generate(kind).map_err(failed)?;
        let opener = Opener::new(material.clone()).map_err(failed)?;
        let sealer = Sealer::new(material).map_err(failed)?;
        let headroom = form.headroom(kind);
        let frame = vec![0; headroom + octets + sealer.tailroom(form)];
        let (memory, content) = (frame.clone(), content(form, octets));
        Ok(Self { form, sealer, opener, content, frame, plain: headroom..headroom + octets, memory })
    }

    /// Seals and opens until the time has passed and enough operations are measured.
    fn measure(&mut self, time: Duration) -> Result<Times> {
        for _ in 0..WARM_UP {
            self.once().map_err(failed)?;
        }
        let (mut times, end) = (Times { seal: Histogram::new(), open: Histogram::new() }, Instant::now() + time);
        while times.seal.count() < MEASURED_JOBS_MIN || Instant::now() < end && times.seal.count() < COUNT_MAX {
            let [seal, open] = self.once().map_err(failed)?;
            times.seal.record(seal);
            times.open.record(open);
        }
        Ok(times)
    }

    /// Seals and opens once and returns both execution times, in nanoseconds.
    fn once(&mut self) -> std::result::Result<[u64; 2], TransformError> {
        let Self { form, sealer, opener, content, frame, plain, memory } = self;
        frame[plain.clone()].copy_from_slice(content);
        let start = Instant::now();
        let sealed = match form {
            Form::Payload => sealer.seal_payload(frame, plain.clone()),
            Form::Submessage => sealer.seal_submessage(frame, plain.clone(), Receivers::None),
            Form::Message => sealer.seal_message(frame, plain.clone(), Receivers::None),
        }?;
        let seal = nanoseconds(start);
        let sealed = &frame[sealed];
        let start = Instant::now();
        let opened = match form {
            Form::Payload => opener.open_payload(sealed, memory),
            Form::Submessage => opener.open_submessage(sealed, memory),
            Form::Message => opener.open_message(sealed, memory),
        }?;
        let open = nanoseconds(start);
        std::hint::black_box(opened.plain(sealed, memory));
        Ok([seal, open])
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns plaintext in the protected form. A submessage is a DATA; in a message it follows an RTPS
/// header.
fn content(form: Form, octets: usize) -> Vec<u8> {
    const RTPS_HEADER: [u8; 20] = *b"RTPS\x02\x05\x00\x00takt measure";
    let mut content = vec![0x5a; octets];
    let start = match form {
        Form::Payload => return content,
        Form::Submessage => 0,
        Form::Message => RTPS_HEADER.len(),
    };
    content[..start].copy_from_slice(&RTPS_HEADER[..start]);
    let len = u16::try_from(octets - start - 4).expect("the content fits into a datagram");
    let [low, high] = len.to_le_bytes();
    content[start..start + 4].copy_from_slice(&[0x15, 1, low, high]);
    content
}
