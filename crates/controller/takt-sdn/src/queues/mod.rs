//! Queues of switch models, created on the ports of real switches.
//!
//! OpenFlow creates no queues. An [`Agent`] creates the queues of the models in a network file by
//! one of two methods ([`Method`]):
//!
//! | method | created objects | selection of a queue |
//! |---|---|---|
//! | [`Method::Tc`] | HTB, FIFOs and u32 filters of the kernel, by netlink on the switch's own host | DSCP; ARP and LLDP by EtherType |
//! | [`Method::Ovsdb`] | a QoS row `linux-htb` with queues, by OVSDB | SET_QUEUE |
//!
//! Invariants:
//! - Nothing changes if a port has a discipline that the agent did not create, unless replacement
//!   is permitted.
//! - All created objects are read back and compared. Existing identical objects stay untouched.
//! - Own objects are identified by the handle of the HTB
//!   ([`takt_netlink::strict_priority::HANDLE`]) and by the owner of QoS rows ([`OWNER`]).
//!
//! Not supported: the depth of queues by OVSDB, which has no setting for it; restoration of a
//! replaced discipline.

mod agent;
mod database;
mod kernel;

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use takt_netlink::strict_priority::{CLASSES_MAX, Class, StrictPriority};
use takt_ovsdb::open_vswitch::{Qos, Queue as HtbQueue};

pub use self::agent::{Agent, Change, Port, State};
pub use self::kernel::Counters;
use crate::model::{Queue, SwitchModel};

/// Owner of QoS rows that the agent creates.
pub const OWNER: &str = "takt sdn queues";
/// Maximum number of frames in a queue.
pub const FRAMES_MAX: u64 = 1_000_000;
/// Length in octets of the shortest frame, without FCS: the divisor of a depth in octets.
const FRAME_LEN_MIN: u64 = 60;
/// EtherTypes of ARP and LLDP, which have no DSCP.
const CONTROL_ETHER_TYPES: [u16; 2] = [0x0806, 0x88cc];
/// Guaranteed rate of a queue in bit/s, the minimum of Open vSwitch. The queue borrows the rest, by
/// priority.
const MIN_RATE: u64 = 12_000;
/// Queue of frames without SET_QUEUE.
const DEFAULT_QUEUE: u32 = 0;

/// Method of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By this program, in the kernel of the switch's host.
    Tc,
    /// By Open vSwitch, from its database.
    Ovsdb,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tc => "tc",
            Self::Ovsdb => "ovsdb",
        })
    }
}

/// A port with its interface on this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// OpenFlow port number.
    pub port: u32,
    /// Kernel interface.
    pub interface: String,
    /// Open vSwitch port of the interface.
    pub ovs_port: Option<String>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (port {} of switch {:016x})", self.interface, self.port, self.dpid)
    }
}

/// Error of planning, creating or removing queues.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueError {
    /// The model has a queue that this method cannot create.
    Model {
        /// Name of the model.
        model: String,
        /// The queue, the reason, and the suitable method.
        what: String,
    },
    /// Ports have disciplines of other programs.
    Foreign(Vec<(Target, String)>),
    /// The kernel refused.
    Os {
        /// Operation that failed.
        action: String,
        /// Cause.
        source: io::Error,
    },
    /// OVSDB refused, or does not answer.
    Ovsdb(takt_ovsdb::Error),
    /// A port does not have the created queues.
    NotAsMade(Target),
    /// There is no port to configure.
    NoPort,
}

impl QueueError {
    pub(crate) fn os(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Os { action, source }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { model, what } => write!(f, "model {model}: {what}"),
            Self::Foreign(ports) => {
                write!(f, "{} ports have a discipline that takt did not create; nothing was changed", ports.len())?;
                ports.iter().try_for_each(|(target, kind)| write!(f, "\n{target}: {kind}"))?;
                f.write_str("\n--replace removes it and cannot restore it")
            }
            Self::Os { action, source } => write!(f, "{action}: {source}"),
            Self::Ovsdb(error) => write!(f, "{error}"),
            Self::NotAsMade(target) => {
                write!(f, "{target} does not have the queues that takt created: another program changes its discipline")
            }
            Self::NoPort => f.write_str(
                "no port of this host belongs to a switch of the network file; give --ovsdb, or --port SWITCH:PORT=INTERFACE",
            ),
        }
    }
}

impl std::error::Error for QueueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            Self::Ovsdb(error) => Some(error),
            _ => None,
        }
    }
}

impl From<takt_ovsdb::Error> for QueueError {
    fn from(error: takt_ovsdb::Error) -> Self {
        Self::Ovsdb(error)
    }
}

/// Wanted queues of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Tree of the kernel.
    Tree(StrictPriority),
    /// QoS row of Open vSwitch.
    Qos(Qos),
}

/// Iterates over the queues of a model, those with contracts first, then that of control traffic.
fn queues(model: &SwitchModel) -> impl Iterator<Item = &Queue> {
    model.queues.iter().chain(&model.control)
}

/// Returns the number of frames that a queue must hold to have the depth of the model.
fn frames(queue: &Queue) -> u64 {
    match (queue.depth.frames, queue.depth.octets) {
        (u64::MAX, octets) => octets.div_ceil(FRAME_LEN_MIN),
        (frames, _) => frames,
    }
}

/// Returns the queues of a model at a port of this rate in bit/s. `rest_frames` is the depth of the
/// queue for all other traffic.
///
/// # Errors
/// [`QueueError::Model`]: a queue cannot be selected by this method, there are too many, or the
/// rate is out of range.
pub fn wanted(by: Method, model: &SwitchModel, rate_bps: u64, rest_frames: u32) -> Result<Wanted, QueueError> {
    let fail = |what: String| Err(QueueError::Model { model: model.name.clone(), what });
    let most = CLASSES_MAX - 1;
    if queues(model).count() > most {
        return fail(format!(
            "{} queues; HTB has priorities for {most} and for the default queue",
            queues(model).count()
        ));
    }
    match by {
        Method::Tc => {
            let rate = u32::try_from(rate_bps / 8).ok().filter(|rate| *rate >= 1000); // tidy-allow(dropped-cause): the error below names it.
            let Some(rate) = rate else {
                return fail(format!("rate_bps is {rate_bps}; HTB supports 8000 bit/s to 34 Gbit/s"));
            };
            let mut classes = Vec::new();
            for (index, queue) in queues(model).enumerate() {
                let Some(dscp) = queue.selection.dscp else {
                    return fail(format!("queue {index} has no dscp, which the kernel's filters need: use ovsdb"));
                };
                let Some(frames) = u32::try_from(frames(queue)).ok().filter(|n| u64::from(*n) <= FRAMES_MAX) else {
                    // tidy-allow(dropped-cause): the error below names it.
                    return fail(format!("queue {index} holds {} frames; the maximum is {FRAMES_MAX}", frames(queue)));
                };
                let is_control = index >= model.queues.len();
                let ether_types = if is_control { CONTROL_ETHER_TYPES.to_vec() } else { Vec::new() };
                classes.push(Class { dscp: vec![dscp], ether_types, frames, ..Class::default() });
            }
            classes.push(Class { frames: rest_frames, ..Class::default() });
            Ok(Wanted::Tree(StrictPriority { rate, classes }))
        }
        Method::Ovsdb => {
            let class = |priority: u32| HtbQueue {
                min_rate: Some(MIN_RATE),
                max_rate: Some(rate_bps),
                priority: Some(priority),
            };
            let mut rows = BTreeMap::new();
            for (index, queue) in (0..).zip(queues(model)) {
                let Some(number) = queue.selection.set_queue else {
                    return fail(format!("queue {index} has no set_queue, which Open vSwitch needs: use tc"));
                };
                if number == DEFAULT_QUEUE || rows.insert(number, class(index)).is_some() {
                    let what = "0 is the default queue, and each number may occur once";
                    return fail(format!("queue {index} has set_queue = {number}: {what}"));
                }
            }
            rows.insert(DEFAULT_QUEUE, class(rows.len() as u32));
            Ok(Wanted::Qos(Qos::Htb { max_rate: rate_bps, queues: rows }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> SwitchModel {
        SwitchModel::built_in(name).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn tree_has_the_classes_of_the_model_in_order_and_the_rest_last() {
        let Ok(Wanted::Tree(tree)) = wanted(Method::Tc, &model("ovs-netdev"), 20_000_000, 256) else {
            panic!("a tree")
        };
        let marks: Vec<_> = tree.classes.iter().map(|class| class.dscp.as_slice()).collect();
        assert_eq!(marks, [&[46][..], &[34], &[26], &[18], &[48], &[]]);
        assert_eq!(tree.classes.iter().map(|class| class.frames).collect::<Vec<_>>(), [100, 100, 100, 100, 100, 256]);
        assert_eq!((tree.rate, tree.classes[4].ether_types.as_slice()), (2_500_000, &[0x0806, 0x88cc][..]));
        // 65,536 octets of the shortest frames.
        let Ok(Wanted::Tree(tree)) = wanted(Method::Tc, &model("generic-hardware"), 20_000_000, 9) else {
            panic!("a tree")
        };
        assert_eq!((tree.classes[0].frames, tree.classes[5].frames), (1093, 9));
    }

    #[test]
    fn rows_have_a_priority_for_each_queue_number_and_the_default_queue_the_last() {
        let Ok(Wanted::Qos(Qos::Htb { max_rate, queues })) =
            wanted(Method::Ovsdb, &model("generic-hardware"), 20_000_000, 9)
        else {
            panic!("rows")
        };
        let found: Vec<_> = queues.iter().map(|(number, queue)| (*number, queue.priority)).collect();
        assert_eq!(found, [(0, Some(5)), (3, Some(4)), (4, Some(3)), (5, Some(2)), (6, Some(1)), (7, Some(0))]);
        assert_eq!((max_rate, queues[&0].min_rate, queues[&0].max_rate), (20_000_000, Some(12_000), Some(20_000_000)));
    }

    #[test]
    fn queues_that_the_method_cannot_select_are_refused_with_the_other_method() {
        let error = wanted(Method::Ovsdb, &model("ovs-netdev"), 20_000_000, 9).expect_err("queue 0 has no set_queue");
        assert!(
            error.to_string().contains("model ovs-netdev: queue 0 has no set_queue")
                && error.to_string().ends_with("use tc")
        );
        let mut other = model("generic-hardware");
        other.queues[2].selection.dscp = None;
        let error = wanted(Method::Tc, &other, 20_000_000, 9).expect_err("the queue has no DSCP");
        assert!(error.to_string().contains("queue 2 has no dscp"), "{error}");
        other.queues[2].selection.set_queue = Some(0);
        let error = wanted(Method::Ovsdb, &other, 20_000_000, 9).expect_err("the number is taken");
        assert!(error.to_string().contains("set_queue = 0"), "{error}");
        for rate_bps in [0, 40_000_000_000] {
            let error = wanted(Method::Tc, &model("ovs-netdev"), rate_bps, 9).expect_err("out of range");
            assert!(error.to_string().contains(&format!("rate_bps is {rate_bps}")), "{error}");
        }
    }
}
