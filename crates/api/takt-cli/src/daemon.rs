//! `takt daemon`: one process of a host that owns the network and discovery for its applications.
//!
//! `run` prints a line when the daemon is ready, and one for each domain and application that comes
//! or goes. `status` shows the statistics of a running daemon. A line is a word followed by pairs
//! of a key and a value; with `--json` it is an object.

use crate::completion::interfaces;
use crate::output::{EventLog, outln};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use takt::transport::udp::{InterfaceSelection, UdpConfig};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_transport::daemon::{self, Bundling, DaemonConfig, DaemonEvent};

/// Time that a daemon with `--until-idle` waits for its first application.
const FIRST_TIME: Duration = Duration::from_secs(30);
/// Interval at which the daemon checks whether it has to stop.
const STEP: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  takt daemon run                                  for all domains, on all interfaces but loopback
  takt daemon run --domain 0 --interface eth0      for one domain, on one interface
  TAKT_DAEMON=1 my-program                         run an application through the daemon
  takt daemon status                               its applications and counters";

/// `takt daemon`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Daemon {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Serve the applications of this user in this network namespace
    Run(Run),
    /// Print the counters of a daemon, for each domain and application
    Status(Status),
}

#[derive(Args, Clone, Debug)]
struct Run {
    /// Name of the daemon, if several run; applications select it by TAKT_DAEMON=NAME
    #[arg(long)]
    name: Option<String>,
    /// Domain to serve; may be repeated [default: each domain that an application requests]
    #[arg(long)]
    domain: Vec<u32>,
    /// Network interface by name or address; may be repeated [default: all except loopback]
    #[arg(long, value_name = "IFACE", add = ArgValueCompleter::new(interfaces))]
    interface: Vec<String>,
    /// Use UDPv6 in addition to UDPv4
    #[arg(long)]
    ipv6: bool,
    /// Messages of several applications that share a datagram
    #[arg(long, value_enum, default_value_t = Bundle::Daemons)]
    bundle: Bundle,
    /// Time to spin before the daemon sleeps, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0)]
    spin: u64,
    /// Maximum number of applications
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1024))]
    applications: u32,
    /// Interval between status lines, in seconds
    #[arg(long, value_name = "SECONDS")]
    stats: Option<u64>,
    /// Exit when the last application leaves, or if none joins within 30 s
    #[arg(long)]
    until_idle: bool,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Bundle {
    /// None
    Off,
    /// Messages to other daemons, and announcements
    Daemons,
    /// All messages to one address; its participants have to support INFO_SRC
    All,
}

#[derive(Args, Clone, Debug)]
struct Status {
    /// The name of the daemon
    #[arg(long)]
    name: Option<String>,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

impl Daemon {
    /// Runs the daemon, or shows its status.
    ///
    /// # Errors
    /// The name is in use, shared memory or sockets are not available, or no daemon runs.
    pub fn run(&self) -> Result<()> {
        match &self.command {
            Command::Run(run) => run.run(),
            Command::Status(Status { name, json }) => {
                let text = daemon::status(name.as_deref()).map_err(takt::Error::from)?;
                text.lines().try_for_each(|line| outln!("{}", shown(line, *json)))
            }
        }
    }
}

/// Formats a status line as text or as a JSON object.
fn shown(line: &str, json: bool) -> String {
    if !json {
        return line.to_owned();
    }
    let mut words = line.split(' ');
    let mut object = Map::from_iter([("ev".to_owned(), Value::from(words.next().unwrap_or_default()))]);
    while let Some((key, value)) = words.next().zip(words.next()) {
        let value = value.parse::<u64>().map_or_else(|_| Value::from(value), Value::from);
        object.insert(key.to_owned(), value);
    }
    Value::from(object).to_string()
}

/// Formats an event as a JSON object, with the values that a line cannot hold.
fn object_of(event: &DaemonEvent) -> String {
    match event {
        DaemonEvent::Opened { domain, locators } => {
            let locators: Vec<String> = locators.iter().map(ToString::to_string).collect();
            json!({ "ev": "opened", "domain": domain, "at": locators.join(","), "locators": locators }).to_string()
        }
        DaemonEvent::Refused { why } => json!({ "ev": "refused", "why": why }).to_string(),
        event => shown(&line_of(event), true),
    }
}

fn line_of(event: &DaemonEvent) -> String {
    match event {
        DaemonEvent::Opened { domain, locators } => {
            let locators: Vec<String> = locators.iter().map(ToString::to_string).collect();
            format!("opened domain {domain} at {}", locators.join(","))
        }
        DaemonEvent::Joined(application) => format!("joined {application}"),
        DaemonEvent::Left(application) => format!("left {application}"),
        DaemonEvent::Refused { why } => format!("refused why {}", why.replace(' ', "_")),
    }
}

impl Run {
    fn config(&self) -> DaemonConfig {
        let interfaces = match self.interface.is_empty() {
            true => InterfaceSelection::All,
            false => InterfaceSelection::Named(self.interface.clone()),
        };
        DaemonConfig {
            name: self.name.clone(),
            domains: (!self.domain.is_empty()).then(|| self.domain.clone()),
            udp: UdpConfig { interfaces, ipv6: self.ipv6, ..UdpConfig::new(0) },
            bundling: match self.bundle {
                Bundle::Off => Bundling::Off,
                Bundle::Daemons => Bundling::Daemons,
                Bundle::All => Bundling::All,
            },
            spin: Duration::from_micros(self.spin),
            applications_max: self.applications as usize,
        }
    }

    fn run(&self) -> Result<()> {
        let failed = |error| Error::Dds(takt::Error::from(error));
        let mut daemon = daemon::Daemon::open(self.config()).map_err(failed)?;
        let mut output = EventLog::default();
        let show = |line: &str, output: &mut EventLog| output.line(format_args!("{}", shown(line, self.json)));
        let name = self.name.as_deref().unwrap_or("default");
        show(&format!("ready name {name} process {}", std::process::id()), &mut output);
        let (started, mut had_some) = (Instant::now(), false);
        let mut last_delivery = started;
        while !stopped() {
            daemon.run_once(STEP).map_err(failed)?;
            while let Some(event) = daemon.poll_event() {
                match self.json {
                    true => output.line(format_args!("{}", object_of(&event))),
                    false => output.line(format_args!("{}", line_of(&event))),
                }
            }
            if self.stats.is_some_and(|period| last_delivery.elapsed().as_secs() >= period.max(1)) {
                last_delivery = Instant::now();
                daemon.status().lines().for_each(|line| show(line, &mut output));
            }
            had_some |= daemon.applications() > 0;
            let is_over = had_some || started.elapsed() >= FIRST_TIME;
            if self.until_idle && is_over && daemon.applications() == 0 {
                break;
            }
        }
        Ok(())
    }
}
