//! `takt sdn queues`: the queues of a network file's switch models on the ports of this host.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use takt_bench::report::to_json;
use takt_bench::{Error, Result};
use takt_ovsdb::open_vswitch::Qos;
use takt_ovsdb::{Connection, OpenVSwitch};
use takt_sdn::model::NetworkFile;
use takt_sdn::queues::{self, Agent, Change, Port, QueueError, Target, Wanted};

use crate::output::outln;

/// Time within which OVSDB has to answer.
const LIMIT: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  takt sdn queues plan --network network.toml --ovsdb unix:/run/openvswitch/db.sock
                                             ports of this host with their present and planned queues
  takt sdn queues apply --network network.toml --ovsdb unix:/run/openvswitch/db.sock
                                             HTB with strict priority on each port, by netlink; filters by DSCP
  takt sdn queues apply --network network.toml --ovsdb tcp:192.0.2.9:6640 --by ovsdb
                                             QoS rows of Open vSwitch; the controller chooses a queue by SET_QUEUE
  takt sdn queues apply --network network.toml --port 0000000000000001:2=eth1
                                             port of a switch without OVSDB
  takt sdn queues show --network network.toml --ovsdb unix:/run/openvswitch/db.sock
                                             classes with their counters
  takt sdn queues revert --network network.toml --ovsdb unix:/run/openvswitch/db.sock
Needs root, and with tc the network namespace of the switch. docs/guide/sdn.md says which mode a switch needs.";

/// `takt sdn queues`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Queues {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print the present and the planned queues of each port, without a change
    Plan(Options),
    /// Create and verify the queues of its model on each port; foreign disciplines stay
    Apply {
        #[command(flatten)]
        options: Options,
        /// Replace disciplines that other programs created; revert does not restore them
        #[arg(long)]
        replace: bool,
    },
    /// Remove the queues that apply created; disciplines of other programs stay
    Revert(Options),
    /// Print the classes of each port with their counters
    Show(Options),
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Queueing disciplines of the kernel on this host, by netlink; DSCP selects the queue
    Tc,
    /// QoS rows of Open vSwitch; SET_QUEUE selects the queue
    Ovsdb,
}

#[derive(Args)]
struct Options {
    /// Switch models and rates of the network, in TOML (docs/guide/sdn.md)
    #[arg(long, value_name = "FILE")]
    network: PathBuf,
    /// Database of Open vSwitch with bridges and ports: unix:PATH or tcp:ADDRESS:PORT
    #[arg(long, value_name = "TARGET", value_parser = ovsdb)]
    ovsdb: Option<Ovsdb>,
    /// Port of a switch and its interface on this host; may be repeated
    #[arg(long = "port", value_name = "SWITCH:PORT=INTERFACE", value_parser = port)]
    ports: Vec<Target>,
    /// Mechanism that provides the queues
    #[arg(long, value_enum, default_value = "tc")]
    by: By,
    /// Length in frames of the queue for traffic without a class, with tc
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rest_frames: u32,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
enum Ovsdb {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

fn ovsdb(text: &str) -> std::result::Result<Ovsdb, String> {
    let expected = || "expected unix:PATH or tcp:ADDRESS:PORT".to_owned();
    match text.split_once(':').ok_or_else(expected)? {
        ("unix", path) => Ok(Ovsdb::Unix(Path::new(path).to_owned())),
        ("tcp", address) => address.parse().map(Ovsdb::Tcp).map_err(|_| expected()),
        _ => Err(expected()),
    }
}

fn port(text: &str) -> std::result::Result<Target, String> {
    let expected = || "expected SWITCH:PORT=INTERFACE, such as 0000000000000001:2=eth1".to_owned();
    let (at, interface) = text.split_once('=').ok_or_else(expected)?;
    let (switch, port) = at.split_once(':').ok_or_else(expected)?;
    let dpid = u64::from_str_radix(switch, 16).map_err(|_| expected())?;
    let port = port.parse().map_err(|_| expected())?;
    if switch.len() != 16 || interface.is_empty() {
        return Err(expected());
    }
    Ok(Target { dpid, port, interface: interface.to_owned(), ovs_port: None })
}

fn failure(error: QueueError) -> Error {
    match error {
        QueueError::Os { action, source } => Error::Os { op: action, source },
        QueueError::Model { .. } | QueueError::NoPort => Error::Usage(error.to_string()),
        error => Error::NotKept { what: error.to_string() },
    }
}

impl Options {
    fn agent(&self) -> Result<Agent> {
        if let (By::Tc, Some(Ovsdb::Tcp(address))) = (self.by, &self.ovsdb)
            && !address.ip().is_loopback()
        {
            let what = format!(
                "--ovsdb tcp:{address} is another host; --by tc creates queues on this host: run it there, or use --by ovsdb"
            );
            return Err(Error::Usage(what));
        }
        let network = NetworkFile::load(&self.network).map_err(|error| Error::Usage(error.to_string()))?;
        let connection = match &self.ovsdb {
            None => None,
            Some(Ovsdb::Unix(path)) => Some(Connection::unix(path, LIMIT)),
            Some(Ovsdb::Tcp(address)) => Some(Connection::tcp(*address, LIMIT)),
        };
        let database = connection.transpose().and_then(|connection| connection.map(OpenVSwitch::new).transpose());
        let database = database.map_err(|error| Error::NotKept { what: format!("--ovsdb: {error}") })?;
        let by = match self.by {
            By::Tc => queues::Method::Tc,
            By::Ovsdb if database.is_none() => {
                return Err(Error::Usage("--by ovsdb requires --ovsdb TARGET, the address of the database".to_owned()));
            }
            By::Ovsdb => queues::Method::Ovsdb,
        };
        Agent::new(network, by, self.rest_frames, self.ports.clone(), database).map_err(failure)
    }
}

impl Queues {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        match self.action {
            Action::Plan(options) => {
                let ports = options.agent()?.ports().map_err(failure)?;
                let lines = ports.iter().map(|port| (port, String::new(), Vec::new()));
                report(&options, lines.collect())
            }
            Action::Show(options) => {
                let mut agent = options.agent()?;
                let ports = agent.ports().map_err(failure)?;
                let mut lines = Vec::new();
                for port in &ports {
                    lines.push((port, String::new(), agent.counters(port).map_err(failure)?));
                }
                report(&options, lines)
            }
            Action::Apply { options, replace } => {
                let done = options.agent()?.apply(replace).map_err(failure)?;
                let lines = done.iter().map(|(port, change)| (port, change.to_string(), Vec::new()));
                report(&options, lines.collect())
            }
            Action::Revert(options) => revert(&options),
        }
    }
}

fn revert(options: &Options) -> Result<()> {
    let done = options.agent()?.revert().map_err(failure)?;
    if options.json {
        let port = |(target, change): &(Target, Change)| {
            json!({ "interface": target.interface, "switch": format!("{:016x}", target.dpid), "port": target.port,
                "change": change.to_string() })
        };
        return outln!("{}", to_json(&json!({ "ports": done.iter().map(port).collect::<Vec<_>>() }))?);
    }
    done.iter().try_for_each(|(target, change)| outln!("{target}: {change}"))
}

/// Port, the action taken, and the counters of its classes.
type Line<'a> = (&'a Port, String, Vec<queues::Counters>);

fn report(options: &Options, lines: Vec<Line<'_>>) -> Result<()> {
    if options.json {
        let ports: Vec<_> = lines.iter().map(|(port, change, counters)| object(port, change, counters)).collect();
        return outln!("{}", to_json(&json!({ "ports": ports }))?);
    }
    for (port, change, counters) in &lines {
        let Port { target, model, rate_bps, state, .. } = port;
        let word = if change.is_empty() { state.to_string() } else { change.clone() };
        outln!("{target}: {word}; {} at {rate_bps} bit/s by {}", model.name, by(port))?;
        for (place, class) in classes(port).iter().enumerate() {
            let counted = counters.get(place).map_or_else(String::new, |counters| {
                format!("  {} sent, {} dropped, {} waiting", counters.sent, counters.dropped, counters.waiting)
            });
            outln!("  {place}  {class}{counted}")?;
        }
    }
    Ok(())
}

fn by(port: &Port) -> queues::Method {
    match port.wanted {
        Wanted::Tree(_) => queues::Method::Tc,
        Wanted::Qos(_) => queues::Method::Ovsdb,
    }
}

/// Describes the classes in the order of their service.
fn classes(port: &Port) -> Vec<String> {
    match &port.wanted {
        Wanted::Tree(tree) => {
            let words = |class: &takt_netlink::strict_priority::Class| {
                let dscp = class.dscp.iter().map(|dscp| format!("DSCP {dscp}"));
                let others = class.ether_types.iter().map(|kind| format!("EtherType {kind:#06x}"));
                let marks: Vec<_> = dscp.chain(others).collect();
                let marks = if marks.is_empty() { "everything else".to_owned() } else { marks.join(", ") };
                format!("{marks}: {} frames", class.frames)
            };
            tree.classes.iter().map(words).collect()
        }
        Wanted::Qos(Qos::Noop) => Vec::new(),
        Wanted::Qos(Qos::Htb { queues, .. }) => {
            let mut by_priority: Vec<_> = queues.iter().collect();
            by_priority.sort_by_key(|(_, queue)| queue.priority);
            let words = |number: &u32| match number {
                0 => "queue 0: everything else".to_owned(),
                number => format!("queue {number}"),
            };
            by_priority.into_iter().map(|(number, _)| words(number)).collect()
        }
    }
}

fn object(port: &Port, change: &str, counters: &[queues::Counters]) -> Value {
    let Port { target, model, rate_bps, state, .. } = port;
    let mut classes: Vec<_> = match &port.wanted {
        Wanted::Tree(tree) => {
            let class = |class: &takt_netlink::strict_priority::Class| json!({ "dscp": class.dscp, "ether_types": class.ether_types, "frames": class.frames });
            tree.classes.iter().map(class).collect()
        }
        Wanted::Qos(Qos::Noop) => Vec::new(),
        Wanted::Qos(Qos::Htb { queues, .. }) => {
            queues.iter().map(|(number, queue)| json!({ "set_queue": number, "priority": queue.priority })).collect()
        }
    };
    for (class, counters) in classes.iter_mut().zip(counters) {
        (class["sent"], class["dropped"]) = (json!(counters.sent), json!(counters.dropped));
        class["waiting"] = json!(counters.waiting);
    }
    let mut object = json!({ "switch": format!("{:016x}", target.dpid), "port": target.port, "interface": target.interface,
        "model": model.name, "rate_bps": rate_bps, "by": by(port).to_string(), "state": state.to_string(), "classes": classes });
    if !change.is_empty() {
        object["change"] = json!(change);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::{ovsdb, port};

    #[test]
    fn targets_of_the_command_line_are_parsed_or_refused_with_the_expected_form() {
        let target = port("00000000000000aa:2=eth1").expect("a valid port");
        assert_eq!((target.dpid, target.port, target.interface.as_str()), (0xaa, 2, "eth1"));
        for wrong in ["", "1:2=eth1", "00000000000000aa:2", "00000000000000aa:x=eth1", "00000000000000aa:2=", "eth1"] {
            assert!(port(wrong).is_err_and(|why| why.contains("SWITCH:PORT=INTERFACE")), "{wrong}");
        }
        assert!(ovsdb("unix:/run/db.sock").is_ok() && ovsdb("tcp:127.0.0.1:6640").is_ok());
        for wrong in ["", "/run/db.sock", "tcp:host", "ssl:127.0.0.1:6640"] {
            assert!(ovsdb(wrong).is_err_and(|why| why.contains("unix:PATH")), "{wrong}");
        }
    }
}
