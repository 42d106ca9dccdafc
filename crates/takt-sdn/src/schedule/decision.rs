//! What the scheduler decides, and why it refuses.

use std::collections::BTreeSet;
use std::fmt;

use takt_calculus::network::{self as calculus, QueueFault};

use super::rooms::NoRoom;
use super::scheduler::REQUESTS_MAX;
use super::streams::Request;
use super::wire::FormatError;
use crate::model::{Egress, HostId, Reach};

/// Names an admitted request, with those that joined it, for as long as one of them is admitted; numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A queue on a flow's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The port.
    pub port: Egress,
    /// The class there, 0 the most urgent.
    pub class: usize,
    /// How a switch puts frames into the queue; `None` for the interface of a host.
    pub reach: Option<Reach>,
    /// Index of the hop that it follows; `None` for the source's own.
    pub after: Option<usize>,
}

/// One flow of a request: its way and classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// What flows.
    pub name: String,
    /// From where.
    pub source: HostId,
    /// To where.
    pub destinations: Vec<HostId>,
    /// The queues, each behind the one that it follows.
    pub hops: Vec<Hop>,
    /// Its bound when it was asked for, from the source's interface to the last destination.
    pub bound_ns: u64,
    /// What it may take. It does not exceed that for as long as it is admitted.
    pub limit_ns: u64,
}

/// A change of the class of an admitted flow at one port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassChange {
    /// Whose flow it is.
    pub id: RequestId,
    /// Where.
    pub port: Egress,
    /// How the switch put its frames into their queue so far.
    pub before: Reach,
    /// How it does that then.
    pub after: Reach,
    /// How long after it, at most, frames of before are under way, and others that waited for them. Until then no other change is proved.
    pub drain_ns: u64,
}

/// A request that was admitted, or one that joined admitted ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Its name, which is that of the requests that it joined.
    pub id: RequestId,
    /// The flows of all requests of this name: samples of the first one first.
    pub routes: Vec<Route>,
    /// The longest bound of samples.
    pub bound_ns: u64,
    /// The version of the network that it holds for.
    pub snapshot: u64,
    /// Requests of which flows changed their classes for it. Their rules must follow before its own are in force.
    pub moved: BTreeSet<RequestId>,
    /// The changes of classes of flows that were admitted before. All flows but the new one keep their limits during and after each, if they are made one
    /// by one in this order, each when the one before has [drained](ClassChange::drain_ns).
    pub changes: Vec<ClassChange>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The contract makes no sense.
    Nonsense(&'static str),
    /// Samples have no frames that a rule matches.
    Format(FormatError),
    /// A destination is not reached.
    NoRoute,
    /// A switch has no room for its rules.
    Room(NoRoom),
    /// A queue has no bound, or too small a depth.
    Queue {
        /// The port.
        port: Egress,
        /// The class.
        class: usize,
        /// Why.
        fault: QueueFault,
    },
    /// A flow would be late.
    Late {
        /// The flow: of the request itself, or an admitted one.
        flow: String,
        /// Its bound.
        bound_ns: u64,
        /// Its limit.
        limit_ns: u64,
        /// The port where it spends most of its bound.
        port: Egress,
        /// The class there.
        class: usize,
    },
    /// The decision would bound too many ports.
    TooFar,
    /// There are [`REQUESTS_MAX`] requests.
    Full,
    /// No order of the changes of classes that it needs keeps the limits of admitted flows after each of them.
    NoOrder,
    /// No link of its way has a detour, or it has several receivers.
    NoSecondWay,
    /// There are no such requests, or they have other ends: it cannot share their flow entries.
    OtherEnds,
}

/// A refusal. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The flow of the request that does not fit.
    pub flow: String,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = &self.flow;
        match &self.reason {
            Reason::Nonsense(what) => write!(f, "{own}: {what}"),
            Reason::Format(error) => write!(f, "{own}: {error}"),
            Reason::NoRoute => write!(f, "{own}: no way leads to all its destinations"),
            Reason::Room(NoRoom { dpid, table, most }) => {
                write!(f, "{own}: switch {dpid:016x} has no room among its {most} {table}")
            }
            Reason::Queue { port, class, fault } => write!(f, "{own}: class {class} of {port}: {fault}"),
            Reason::Late { flow, bound_ns, limit_ns, port, class } => write!(
                f,
                "{own}: {flow} would take up to {bound_ns} ns of {limit_ns} ns, most of it in class {class} of {port}"
            ),
            Reason::TooFar => write!(f, "{own}: {}", calculus::Refused::TooFar),
            Reason::Full => write!(f, "{own}: {REQUESTS_MAX} requests are admitted"),
            Reason::NoOrder => write!(
                f,
                "{own}: other flows would change their classes for it, and no order of these changes keeps all limits meanwhile"
            ),
            Reason::NoSecondWay => {
                write!(f, "{own}: no link of its way has a detour, or it has several receivers")
            }
            Reason::OtherEnds => write!(f, "{own}: it has not the ends of the requests that it is to join"),
        }
    }
}

impl std::error::Error for Refused {}

/// What became of requests whose ways changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerouted {
    /// Those that have other ways now, under their names of before.
    pub admitted: Vec<Admitted>,
    /// Those that do not fit any more, and why.
    pub dropped: Vec<(RequestId, Request, Refused)>,
}
