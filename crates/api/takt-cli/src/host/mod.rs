//! `takt host`: configures the machine for real-time traffic and reverts that. `takt doctor`: finds
//! obstacles.

mod doctor;
mod remedy;

pub use doctor::Doctor;

use crate::completion::interfaces;
use crate::output::outln;
use crate::progress::during;
use clap_complete::engine::ArgValueCompleter;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use takt_bench::{Error, Result};
use takt_host::apply::{ApplyError, Failure};
use takt_host::measure::{FRAMES, SteeringCounters};
use takt_host::plan::schedule::nanoseconds;
use takt_host::{
    ClockQuality, Facts, Gate, Groups, Journal, LaunchTime, Machine, Plan, Request, apply, revert, verify,
};

const EXAMPLES: &str = "\
Examples:
  takt host inspect
  takt host plan --cpus 3 --interface eth0 > host.json     makes no change
  takt host plan --interface eth0 --queue 3 --dscp 46      queue 3 for marked frames
  takt host plan --interface eth0 --queue 3 --dscp 46 --gates marked:300us,others:700us     gate schedule
  takt host plan --interface eth0 --dscp 46 --line-rate 100Mbit     priority for marked frames
  takt host apply host.json
  takt host verify host.json
  takt host revert                                         state before the first apply
docs/guide/host.md explains the changes and their reasons.";

/// `takt host`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Host {
    #[command(subcommand)]
    command: Command,
    /// Root directory of /proc, /sys and other files, instead of /
    #[arg(long, global = true, hide = true, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
    /// Journal of the previous values
    #[arg(long, global = true, value_name = "FILE", default_value = Journal::PATH)]
    journal: PathBuf,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Print the present settings of this machine, as JSON
    Inspect,
    /// Print the necessary changes and what is not available here, as JSON
    Plan(RequestArgs),
    /// Apply all changes of a plan, or none
    Apply {
        /// Plan file; - for standard input
        plan: PathBuf,
    },
    /// Check that all settings are those of the plan
    Verify {
        /// Plan file; - for standard input
        plan: PathBuf,
        /// Also send frames to a multicast group on the link, and count those in each queue or class
        #[arg(long)]
        measure: bool,
    },
    /// Restore the values before the first apply
    Revert,
}

/// Settings that real-time traffic requires.
#[derive(Args, Clone, Debug)]
pub struct RequestArgs {
    /// Processors reserved for real-time threads
    #[arg(long, value_name = "N,N...", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Move these processors to the control group /sys/fs/cgroup/takt, in which programs have to be started
    #[arg(long, requires = "cpus")]
    control_group: bool,
    /// Network interface of the real-time traffic
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(interfaces))]
    interface: Option<String>,
    /// Queue of the interface reserved for marked frames, or without marks for frames that the processors send
    #[arg(long, value_name = "N", requires = "interface")]
    queue: Option<u32>,
    /// DSCPs that mark the traffic; the DSCP of a topic is its TRANSPORT_PRIORITY
    #[arg(long, value_name = "N,N...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Vec<u8>,
    /// PCPs of 802.1Q tags that mark the traffic
    #[arg(long, value_name = "N,N...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=7))]
    pcp: Vec<u8>,
    /// Rate of the link, such as 100Mbit: marked frames have priority when the link is congested
    #[arg(long, value_name = "RATE", value_parser = rate)]
    line_rate: Option<u64>,
    /// Offload scheduling to the network card: mqprio with hw 1, taprio with flags 2, etf with offload
    #[arg(long, requires = "queue")]
    offload: bool,
    /// Cyclic gate schedule of marked frames, others, all or none, such as marked:300us,others:700us
    #[arg(long, value_name = "WHO:TIME,...", value_delimiter = ',', requires = "queue")]
    gates: Vec<Gate>,
    /// Base time of the gate schedule, TAI in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 0, requires = "gates", allow_negative_numbers = true)]
    base_time: i64,
    /// Lead with which marked frames reach the card before their launch time (SO_TXTIME); others are dropped
    #[arg(long, value_name = "TIME", value_parser = time, requires = "queue")]
    launch_time: Option<u32>,
    /// The gate schedule determines the launch time of frames that have none
    #[arg(long, requires = "gates", requires = "launch_time")]
    txtime_assist: bool,
    /// Multicast groups to route through the interface, such as 239.255.0.0/16
    #[arg(long, value_name = "ADDRESS/LENGTH,...", value_delimiter = ',')]
    groups: Vec<Groups>,
    /// Time that sockets poll the driver before they sleep, in microseconds
    #[arg(long, value_name = "US")]
    busy_poll: Option<u32>,
}

/// Parses a bit rate: a number followed by kbit, Mbit or Gbit.
fn rate(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "kbit" => Some(1_000),
        "Mbit" | "mbit" => Some(1_000_000),
        "Gbit" | "gbit" => Some(1_000_000_000_u64),
        _ => None,
    };
    let rate = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit)); // tidy-allow(dropped-cause): the message says what is wanted
    rate.ok_or_else(|| "expected a rate such as 100Mbit, with the unit kbit, Mbit or Gbit".to_owned())
}

fn time(text: &str) -> std::result::Result<u32, String> {
    nanoseconds(text).ok_or_else(|| "expected a time such as 300us, with the unit ns, us, ms or s".to_owned())
}

impl RequestArgs {
    fn plan(&self, machine: &Machine, facts: &Facts) -> Result<Plan> {
        let request = Request {
            cpus: self.cpus.clone(),
            has_control_group: self.control_group,
            interface: self.interface.clone(),
            queue: self.queue,
            dscp: self.dscp.clone(),
            pcp: self.pcp.clone(),
            line_rate_bits: self.line_rate,
            has_offload: self.offload,
            gates: self.gates.clone(),
            base_time_ns: self.base_time,
            launch_time: self
                .launch_time
                .map(|delta_ns| LaunchTime { delta_ns, is_assigned_by_schedule: self.txtime_assist }),
            groups: self.groups.clone(),
            busy_poll_us: self.busy_poll,
        };
        Plan::new(machine, facts, &request).map_err(|why| Error::Usage(why.to_string()))
    }
}

/// Present state of the machine.
#[derive(serde::Serialize)]
struct Inspection {
    #[serde(flatten)]
    facts: Facts,
    clock: ClockQuality,
}

impl Host {
    pub fn run(&self) -> Result<()> {
        let machine = self.root.as_ref().map_or_else(Machine::default, Machine::below);
        match &self.command {
            Command::Inspect => print_json(&Inspection { facts: Facts::of(&machine), clock: ClockQuality::now() }),
            Command::Plan(request) => print_json(&request.plan(&machine, &Facts::of(&machine))?),
            Command::Apply { plan } => {
                let plan = read_plan(plan)?;
                let mut journal = self.open_journal()?;
                during("applying settings", || apply(&machine, &plan, &mut journal))
                    .map_err(|why| not_applied(&why))?;
                outln!("{} changes applied; takt host revert undoes them", plan.changes.len())?;
                Ok(())
            }
            Command::Verify { plan, measure } => {
                let plan = read_plan(plan)?;
                all_well(&during("reading settings", || verify(&machine, &plan)))?;
                outln!("all {} settings are as planned", plan.changes.len())?;
                if *measure { measure_steering(&machine, &plan) } else { Ok(()) }
            }
            Command::Revert => {
                let journal = self.open_journal()?;
                let count = journal.former_values().len();
                let left = during("restoring settings", || revert(&machine, journal))
                    .map_err(|source| self.journal_error(source))?;
                all_well(&left)?;
                outln!("{count} settings restored")?;
                Ok(())
            }
        }
    }

    fn open_journal(&self) -> Result<Journal> {
        Journal::open(&self.journal).map_err(|source| self.journal_error(source))
    }

    fn journal_error(&self, source: io::Error) -> Error {
        let advice = if source.kind() == io::ErrorKind::PermissionDenied { PRIVILEGE } else { "" };
        Error::Os { op: format!("the journal {}{advice}", self.journal.display()), source }
    }
}

/// Suffix of the error text when the kernel refuses for lack of privileges.
const PRIVILEGE: &str = " (takt host apply and revert need root)";

fn not_applied(why: &ApplyError) -> Error {
    let (ApplyError::Journal(cause, _) | ApplyError::Change(Failure { why: cause, .. }, _)) = why;
    let advice = if cause.kind() == io::ErrorKind::PermissionDenied { PRIVILEGE } else { "" };
    Error::NotKept { what: format!("{why}{advice}") }
}

fn measure_steering(machine: &Machine, plan: &Plan) -> Result<()> {
    let op = "send frames to measure the queues".to_owned();
    let counted = during("sending frames", || takt_host::measure::steering(machine, plan))
        .map_err(|source| Error::Os { op, source })?;
    for SteeringCounters { interface, steering, marked, sent, unmarked } in &counted {
        outln!("{interface}: {steering}: {marked} of {sent} marked frames and {unmarked} of {FRAMES} others")?;
    }
    match counted.iter().find(|counted| !counted.all_steered()) {
        None => Ok(()),
        Some(counted) => Err(Error::NotKept {
            what: format!(
                "marked frames of {} leave through a different queue or class than planned",
                counted.interface
            ),
        }),
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    outln!("{}", serde_json::to_string_pretty(value).expect("a plan is valid JSON"))?;
    Ok(())
}

fn read_plan(path: &Path) -> Result<Plan> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|source| Error::Os { op: path.display().to_string(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))
}

fn all_well(failures: &[Failure]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = failures.iter().map(ToString::to_string).collect();
    Err(Error::NotKept { what: lines.join("\n") })
}
