//! A switch model, measured from a real switch.
//!
//! [`measure`] is the controller of a switch for as long as it takes. Two probes are interfaces of this machine at two of its ports. Frames go
//! in by the first and come out by the second, which has to be slower than what the first can send.
//!
//! | module | what it measures |
//! |---|---|
//! | [`forwarding`] | time on the way, at rest and under load |
//! | [`classes`] | what reaches a queue, the order of service, depths |
//! | [`meter`] | rate and steps of a rate limiter |
//! | [`tables`] | room for flow entries, groups and meters |
//! | [`report`] | the model file |
//!
//! Flow entries have the cookie [`COOKIE`], priority 65,000, and expire after [`LIFETIME`] s. Everything that was added is removed at the end, after
//! an error and when `stop` says so. If the connection is lost meanwhile, a meter, and groups that were counted, stay in the switch.
//!
//! Left out: several priorities at once, other disciplines than strict priority, IPv6, frames of other lengths than two.

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
use crate::model::{Reach, SwitchModel};

/// The cookie of all entries; the lowest octet is free.
pub const COOKIE: u64 = 0x544d_0000_0000_0000;
const COOKIE_MASK: u64 = 0xffff_ffff_ffff_ff00;
/// Seconds after which entries expire that could not be removed.
pub const LIFETIME: u16 = 600;
const PRIORITY: u16 = 65_000;
const IPV4: u16 = 0x0800;
/// A long frame without FCS, and a short one that a sender makes often enough.
pub const LONG: usize = 1514;
/// See [`LONG`].
pub const SHORT: usize = 500;
/// Frames that a meter limits: short, so that a step lets several pass.
pub const METERED: usize = 250;
/// Between two looks at them.
const PAUSE: Duration = Duration::from_millis(50);
/// How long counters of entries may take to be brought up to date.
const COUNTING: Duration = Duration::from_secs(10);

/// Flow entries.
pub(crate) mod entry {
    /// To the egress without a mark.
    pub const PLAIN: u8 = 1;
    /// To the egress with one mark.
    pub const MARKED: u8 = 2;
    /// To the egress with another mark.
    pub const OTHER: u8 = 3;
    /// Back to the ingress.
    pub const BACK: u8 = 4;
    /// To the egress through a meter.
    pub const METERED: u8 = 5;
    /// Counts what comes in, at any port.
    pub const COUNTED: u8 = 6;
}

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the model.
    pub name: String,
    /// Queues that are looked for, and the figures of what cannot be measured.
    pub candidates: SwitchModel,
    /// Frames of each measurement of time on the way.
    pub samples: u32,
    /// Frames per second of the load.
    pub load_fps: u32,
    /// The rate of the egress port, bit/s; measured by default.
    pub rate_bps: Option<u64>,
    /// The rate of the cables of both probes, bit/s: two transmission times are subtracted.
    pub cable_bps: Option<u64>,
    /// Write the 99.9th percentile of the time on the way, and not the maximum.
    pub is_percentile: bool,
    /// The rate of the meter, kbit/s; half the egress by default, 10 Mbit/s at most.
    pub meter_kbps: Option<u32>,
    /// Flow entries, groups and meters that are added at most to count them.
    pub table_cap: u32,
}

/// A measurement failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum MeasureError {
    /// The operating system refused.
    Os {
        /// What was to be done.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// The switch refuses or does not answer, or nothing can be measured at it.
    Switch(String),
    /// A signal asked to stop.
    Stopped,
    /// Something was left in the switch, after this error if there was one.
    NotRemoved {
        /// The error of the measurement.
        after: Option<Box<MeasureError>>,
        /// The error of the removal.
        why: Box<MeasureError>,
        /// What was left.
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

/// All that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The switch.
    pub datapath_id: u64,
    /// OpenFlow ports of the probes.
    pub ports: [u32; 2],
    /// The egress, bit/s with preamble, FCS and gap.
    pub rate_bps: u64,
    /// Times on the way.
    pub forwarding: Vec<forwarding::Cell>,
    /// Queues that are reached.
    pub classes: Vec<classes::Class>,
    /// Order of service of neighbouring queues.
    pub order: Vec<classes::Order>,
    /// The rate limiter; `None`: the switch has no meters.
    pub meter: Option<meter::Limiter>,
    /// Room for rules.
    pub tables: tables::Room,
}

/// The switch and the probes during a measurement.
pub(crate) struct Bench<'a> {
    pub(crate) session: Session,
    probes: Probes,
    pub(crate) settings: &'a Settings,
    stop: &'a dyn Fn() -> bool,
    say: &'a mut dyn FnMut(&str),
    ingress: u32,
    egress: u32,
    /// What [`Bench::remove`] removes besides the entries.
    pub(crate) meters: Vec<u32>,
    pub(crate) groups: Vec<u32>,
}

/// Where frames of an entry go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Out of the egress, marked.
    Out(Reach),
    /// Out of the ingress.
    Back,
    /// Out of the egress through a meter.
    Metered(u32),
}

/// No mark.
pub(crate) const PLAIN: Reach = Reach { set_queue: None, dscp: None };

/// Measures a switch. `say` gets a line for each step; `stop` is asked often. The switch has what it had before when this returns.
///
/// # Errors
/// The switch, the probes or the egress do not permit it; [`MeasureError::Stopped`]; [`MeasureError::NotRemoved`].
pub fn measure(
    session: Session,
    probes: Probes,
    settings: &Settings,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<Measured, MeasureError> {
    let (ingress, egress, meters, groups) = (0, 0, Vec::new(), Vec::new());
    let mut bench = Bench { session, probes, settings, stop, say, ingress, egress, meters, groups };
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

/// The port that an entry matches.
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
        let tables = tables::room(self)?;
        let (datapath_id, ports) = (self.session.datapath_id(), [self.ingress, self.egress]);
        Ok(Measured { datapath_id, ports, rate_bps, forwarding, classes, order, meter, tables })
    }

    pub(crate) fn say(&mut self, line: &str) {
        (self.say)(line);
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

    /// Sets what an entry does; false: the switch refuses it.
    pub(crate) fn set(&mut self, entry: u8, way: Way) -> Result<bool, MeasureError> {
        let mut instructions = Vec::new();
        let mut actions = Vec::new();
        match way {
            Way::Out(reach) => {
                actions.extend(reach.dscp.map(|dscp| Action::SetField(Oxm::IpDscp(dscp))));
                actions.extend(reach.set_queue.map(Action::SetQueue));
                actions.push(Action::output(PortNo(self.egress)));
            }
            Way::Back => actions.push(Action::output(PortNo::IN_PORT)),
            Way::Metered(meter) => {
                instructions.push(Instruction::Meter(meter));
                actions.push(Action::output(PortNo(self.egress)));
            }
        }
        instructions.push(Instruction::ApplyActions(actions));
        let message = self.flow(entry, Some(self.ingress), instructions);
        Ok(self.session.execute(&[message])?.is_empty())
    }

    /// Sets what an entry does.
    pub(crate) fn require(&mut self, entry: u8, way: Way) -> Result<(), MeasureError> {
        if self.set(entry, way)? {
            Ok(())
        } else {
            Err(MeasureError::Switch(format!("it refuses an entry for {way:?}")))
        }
    }

    /// Finds the ports of both probes by entries that count.
    fn find_ports(&mut self) -> Result<(), MeasureError> {
        let Some(ReplyBody::PortDesc(ports)) = self.session.ask(RequestBody::PortDesc(PortNo::ANY))? else {
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
        self.probes.turn();
        let sent = self.run_one(stream);
        self.probes.turn();
        sent?;
        self.egress = self.counted("the second probe", Some(self.ingress))?;
        let (ingress, egress) = (self.ingress, self.egress);
        self.say(&format!("probes are at ports {ingress} and {egress} of switch {:016x}", self.session.datapath_id()));
        Ok(())
    }

    /// The port whose entry has counted frames.
    fn counted(&mut self, probe: &str, but: Option<u32>) -> Result<u32, MeasureError> {
        let request =
            FlowRequest { cookie: COOKIE | u64::from(entry::COUNTED), cookie_mask: u64::MAX, ..FlowRequest::default() };
        let begin = Clock::now();
        while begin.elapsed() < COUNTING {
            self.check_stop()?;
            let Some(ReplyBody::Flow(flows)) = self.session.ask(RequestBody::Flow(request.clone()))? else { break };
            let ports = flows
                .iter()
                .filter(|flow| flow.counters.packet_count().is_some_and(|count| count > 0))
                .filter_map(in_port);
            if let Some(port) = ports.into_iter().find(|port| Some(*port) != but) {
                return Ok(port);
            }
            std::thread::sleep(PAUSE);
        }
        Err(MeasureError::Switch(format!("no frame of {probe} comes in: it is not at a port of this switch")))
    }

    /// Removes everything that was added.
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
