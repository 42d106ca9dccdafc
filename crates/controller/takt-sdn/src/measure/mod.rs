//! Measurement of a switch model at a real switch.
//!
//! [`measure`] acts as the controller of a switch during the measurement. Two probes are interfaces
//! of this machine at two ports of the switch. Frames enter at the first port and leave at the
//! second, which must be slower than the first probe can send.
//!
//! | module | measurement |
//! |---|---|
//! | [`forwarding`] | forwarding time, idle and under load |
//! | [`classes`] | marks that select a queue, order of service, depths |
//! | [`meter`] | rate and steps of a rate limiter |
//! | [`tables`] | capacity for flow entries, groups and meters |
//! | [`report`] | the model file |
//!
//! Flow entries have the cookie [`COOKIE`] and priority 65,000, and expire after [`LIFETIME`] s.
//! All additions are removed at the end, after an error, and when `stop` returns true. If the
//! connection is lost meanwhile, a meter and the groups that were added to count them stay in the
//! switch.
//!
//! Not measured: several priorities at once, scheduling other than strict priority, IPv6, frames of
//! more than two lengths.

pub mod classes;
pub mod forwarding;
pub mod meter;
pub mod probes;
pub mod report;
pub mod session;
pub mod tables;

use std::fmt;
use std::io;
use std::time::{Duration, Instant as Clock};

use takt_openflow::Message;
use takt_openflow::action::Action;
use takt_openflow::flow::{FlowCommand, FlowMod};
use takt_openflow::flow_match::Match;
use takt_openflow::instruction::Instruction;
use takt_openflow::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use takt_openflow::oxm::Oxm;
use takt_openflow::value::{PortNo, TABLE_ALL};

use self::probes::{Probes, Record, Stream};
use self::session::Session;
use crate::model::{QueueSelection, SwitchModel};

/// Cookie of all entries; the lowest octet is free.
pub const COOKIE: u64 = 0x544d_0000_0000_0000;
const COOKIE_MASK: u64 = 0xffff_ffff_ffff_ff00;
/// Time in seconds after which entries expire that could not be removed.
pub const LIFETIME: u16 = 600;
const PRIORITY: u16 = 65_000;
const IPV4: u16 = 0x0800;
/// Length in octets of a long frame, without FCS.
pub const LONG: usize = 1514;
/// Length in octets of a short frame that a sender can send at a sufficient rate.
pub const SHORT: usize = 500;
/// Length in octets of metered frames: short, so that a step passes several.
pub const METERED: usize = 250;
/// Interval at which counters of entries are read.
const PAUSE: Duration = Duration::from_millis(50);
/// Time within which a switch must update the counters of entries.
const COUNTING: Duration = Duration::from_secs(10);

/// Numbers of flow entries.
pub(crate) mod entry {
    /// To the egress, unmarked.
    pub const PLAIN: u8 = 1;
    /// To the egress, with one mark.
    pub const MARKED: u8 = 2;
    /// To the egress, with another mark.
    pub const OTHER: u8 = 3;
    /// Back to the ingress.
    pub const BACK: u8 = 4;
    /// To the egress through a meter.
    pub const METERED: u8 = 5;
    /// Counts frames from any port.
    pub const COUNTED: u8 = 6;
}

/// Settings of a measurement.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the model.
    pub name: String,
    /// Candidate queues, and the values of properties that cannot be measured.
    pub candidates: SwitchModel,
    /// Number of frames per measurement of the forwarding time.
    pub samples: u32,
    /// Load in frames per second.
    pub load_fps: u32,
    /// Rate of the egress port in bit/s; measured by default.
    pub rate_bps: Option<u64>,
    /// Link rate of both probes in bit/s: two transmission times are subtracted.
    pub cable_bps: Option<u64>,
    /// Whether the model gets the 99.9th percentile of the forwarding time instead of the maximum.
    pub is_percentile: bool,
    /// Rate of the meter in kbit/s; by default half the egress rate, at most 10 Mbit/s.
    pub meter_kbps: Option<u32>,
    /// Maximum number of flow entries, groups and meters that are added to count them.
    pub table_cap: u32,
}

/// Error of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum MeasureError {
    /// The operating system refused an operation.
    Os {
        /// Operation that failed.
        action: String,
        /// Cause.
        source: io::Error,
    },
    /// The switch refused a request, did not answer, or cannot be measured.
    Switch(String),
    /// A signal requested to stop.
    Stopped,
    /// Additions remained in the switch, possibly after an error of the measurement.
    NotRemoved {
        /// Error of the measurement.
        after: Option<Box<MeasureError>>,
        /// Error of the removal.
        why: Box<MeasureError>,
        /// Additions that remained.
        left: String,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { action, source } => write!(f, "{action}: {source}"),
            Self::Switch(what) => write!(f, "the switch: {what}"),
            Self::Stopped => f.write_str("stopped"),
            Self::NotRemoved { after, why, left } => {
                if let Some(after) = after {
                    write!(f, "{after}; then ")?;
                }
                write!(f, "{left} could not be removed: {why}")
            }
        }
    }
}

impl std::error::Error for MeasureError {}

/// Results of a measurement.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Datapath id of the switch.
    pub datapath_id: u64,
    /// OpenFlow ports of the probes.
    pub ports: [u32; 2],
    /// Rate of the egress in bit/s, including preamble, FCS and interframe gap.
    pub rate_bps: u64,
    /// Forwarding times.
    pub forwarding: Vec<forwarding::Cell>,
    /// Queues that marks reach.
    pub classes: Vec<classes::Class>,
    /// Order of service of adjacent queues.
    pub order: Vec<classes::Order>,
    /// Rate limiter; `None`: the switch has no meters.
    pub meter: Option<meter::Limiter>,
    /// Table capacities.
    pub tables: tables::Capacities,
}

/// Switch and probes during a measurement.
pub(crate) struct Bench<'a> {
    pub(crate) session: Session,
    probes: Probes,
    pub(crate) settings: &'a Settings,
    stop: &'a dyn Fn() -> bool,
    report: &'a mut dyn FnMut(&str),
    ingress: u32,
    egress: u32,
    /// Meters that [`Bench::remove`] removes in addition to the entries.
    pub(crate) meters: Vec<u32>,
    pub(crate) groups: Vec<u32>,
}

/// Output of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EntryOutput {
    /// Out of the egress, with a mark.
    Out(QueueSelection),
    /// Out of the ingress.
    Back,
    /// Out of the egress through a meter.
    Metered(u32),
}

/// Unmarked.
pub(crate) const PLAIN: QueueSelection = QueueSelection { set_queue: None, dscp: None };

/// Measures a switch. `report` gets a line for each step; `stop` is called frequently. On return,
/// the switch is in its previous state.
///
/// # Errors
/// The switch, the probes or the egress are unsuitable; [`MeasureError::Stopped`];
/// [`MeasureError::NotRemoved`].
pub fn measure(
    session: Session,
    probes: Probes,
    settings: &Settings,
    stop: &dyn Fn() -> bool,
    report: &mut dyn FnMut(&str),
) -> Result<Measured, MeasureError> {
    let (ingress, egress, meters, groups) = (0, 0, Vec::new(), Vec::new());
    let mut bench = Bench { session, probes, settings, stop, report, ingress, egress, meters, groups };
    let measured = bench.measure();
    match (measured, bench.remove()) {
        (measured, Ok(())) => measured,
        (measured, Err(why)) => {
            let mut left = format!("flow entries with cookie {COOKIE:#x}, which expire after {LIFETIME} s");
            if !bench.meters.is_empty() || !bench.groups.is_empty() {
                left.push_str(&format!(", meters {:?} and {} groups", bench.meters, bench.groups.len()));
            }
            Err(MeasureError::NotRemoved { after: measured.err().map(Box::new), why: Box::new(why), left })
        }
    }
}

/// Returns the ingress port that an entry matches.
fn in_port(flow: &FlowStats) -> Option<u32> {
    let Match::Oxm(fields) = &flow.matching else { return None };
    fields.iter().find_map(|field| match field {
        Oxm::InPort(port) => Some(port.0),
        _ => None,
    })
}

impl Bench<'_> {
    fn measure(&mut self) -> Result<Measured, MeasureError> {
        self.remove()?;
        self.find_ports()?;
        let rate_bps = match self.settings.rate_bps {
            Some(rate_bps) => rate_bps,
            None => classes::egress_rate(self)?,
        };
        let mut classes = classes::reached(self, rate_bps)?;
        let forwarding = forwarding::cells(self)?;
        let order = classes::order(self, rate_bps, &classes)?;
        classes::depths(self, rate_bps, &mut classes)?;
        let meter = meter::limiter(self, rate_bps)?;
        let tables = tables::capacities(self)?;
        let (datapath_id, ports) = (self.session.datapath_id(), [self.ingress, self.egress]);
        Ok(Measured { datapath_id, ports, rate_bps, forwarding, classes, order, meter, tables })
    }

    pub(crate) fn report(&mut self, line: &str) {
        (self.report)(line);
    }

    pub(crate) fn check_stop(&self) -> Result<(), MeasureError> {
        if (self.stop)() { Err(MeasureError::Stopped) } else { Ok(()) }
    }

    pub(crate) fn run(&mut self, streams: &[Stream]) -> Result<Vec<Record>, MeasureError> {
        let Self { session, probes, stop, .. } = self;
        probes.run(streams, &mut || if stop() { Err(MeasureError::Stopped) } else { session.idle() })
    }

    /// Runs one stream.
    pub(crate) fn run_one(&mut self, stream: Stream) -> Result<Record, MeasureError> {
        Ok(self.run(&[stream])?.pop().unwrap_or_default())
    }

    fn flow(&self, entry: u8, in_port: Option<u32>, instructions: Vec<Instruction>) -> Message {
        let mut fields: Vec<Oxm> = in_port.map(|port| Oxm::InPort(PortNo(port))).into_iter().collect();
        fields.extend([Oxm::EthDst(probes::address(entry).into()), Oxm::EthType(IPV4)]);
        Message::FlowMod(FlowMod {
            cookie: COOKIE | u64::from(entry),
            priority: PRIORITY,
            hard_timeout: LIFETIME,
            matching: fields.into(),
            instructions,
            ..FlowMod::default()
        })
    }

    /// Sets the output of an entry; returns false if the switch refuses it.
    pub(crate) fn set(&mut self, entry: u8, output: EntryOutput) -> Result<bool, MeasureError> {
        let mut instructions = Vec::new();
        let mut actions = Vec::new();
        match output {
            EntryOutput::Out(reach) => {
                actions.extend(reach.dscp.map(|dscp| Action::SetField(Oxm::IpDscp(dscp))));
                actions.extend(reach.set_queue.map(Action::SetQueue));
                actions.push(Action::output(PortNo(self.egress)));
            }
            EntryOutput::Back => actions.push(Action::output(PortNo::IN_PORT)),
            EntryOutput::Metered(meter) => {
                instructions.push(Instruction::Meter(meter));
                actions.push(Action::output(PortNo(self.egress)));
            }
        }
        instructions.push(Instruction::ApplyActions(actions));
        let message = self.flow(entry, Some(self.ingress), instructions);
        Ok(self.session.execute(&[message])?.is_empty())
    }

    /// Sets the output of an entry.
    pub(crate) fn require(&mut self, entry: u8, output: EntryOutput) -> Result<(), MeasureError> {
        if self.set(entry, output)? {
            Ok(())
        } else {
            Err(MeasureError::Switch(format!("it refuses an entry for {output:?}")))
        }
    }

    /// Finds the ports of both probes by counting entries.
    fn find_ports(&mut self) -> Result<(), MeasureError> {
        let Some(ReplyBody::PortDesc(ports)) = self.session.request(RequestBody::PortDesc(PortNo::ANY))? else {
            return Err(MeasureError::Switch("it does not describe its ports".to_owned()));
        };
        let ports: Vec<u32> = ports.iter().map(|port| port.number.0).filter(|port| *port < 0xffff_ff00).collect();
        let entries: Vec<Message> =
            ports.iter().map(|port| self.flow(entry::COUNTED, Some(*port), Vec::new())).collect();
        if !self.session.execute(&entries)?.is_empty() {
            return Err(MeasureError::Switch("it refuses entries by port and destination address".to_owned()));
        }
        let stream = Stream { entry: entry::COUNTED, len: probes::LEN_MIN, period_ns: 1_000_000, count: 20 };
        self.run_one(stream)?;
        self.ingress = self.counted("the first probe", None)?;
        self.probes.swap();
        let sent = self.run_one(stream);
        self.probes.swap();
        sent?;
        self.egress = self.counted("the second probe", Some(self.ingress))?;
        let (ingress, egress) = (self.ingress, self.egress);
        self.report(&format!(
            "probes are at ports {ingress} and {egress} of switch {:016x}",
            self.session.datapath_id()
        ));
        Ok(())
    }

    /// Returns the port whose entry has counted frames.
    fn counted(&mut self, probe: &str, but: Option<u32>) -> Result<u32, MeasureError> {
        let request =
            FlowRequest { cookie: COOKIE | u64::from(entry::COUNTED), cookie_mask: u64::MAX, ..FlowRequest::default() };
        let begin = Clock::now();
        while begin.elapsed() < COUNTING {
            self.check_stop()?;
            let Some(ReplyBody::Flow(flows)) = self.session.request(RequestBody::Flow(request.clone()))? else { break };
            let ports = flows
                .iter()
                .filter(|flow| flow.counters.packet_count().is_some_and(|count| count > 0))
                .filter_map(in_port);
            if let Some(port) = ports.into_iter().find(|port| Some(*port) != but) {
                return Ok(port);
            }
            std::thread::sleep(PAUSE);
        }
        Err(MeasureError::Switch(format!("no frame of {probe} arrives: it is not at a port of this switch")))
    }

    /// Removes all additions.
    fn remove(&mut self) -> Result<(), MeasureError> {
        let entries = Message::FlowMod(FlowMod {
            cookie: COOKIE,
            cookie_mask: COOKIE_MASK,
            table: TABLE_ALL,
            command: FlowCommand::Delete,
            ..FlowMod::default()
        });
        self.session.execute(&[entries])?;
        let mut rest: Vec<Message> = self.meters.iter().map(|meter| tables::delete_meter(*meter)).collect();
        rest.extend(self.groups.iter().map(|group| tables::delete_group(*group)));
        self.session.execute(&rest)?;
        self.meters.clear();
        self.groups.clear();
        Ok(())
    }
}
