//! Decisions of the scheduler, and the reasons of refusals.

use std::collections::BTreeSet;
use std::fmt;

use takt_calculus::network::{self as calculus, QueueFault};

use super::scheduler::REQUESTS_MAX;
use super::streams::Request;
use super::table_use::TableFull;
use super::wire::FormatError;
use crate::model::{Egress, HostId, QueueSelection};

/// Id of an admitted request and of those that joined it, for as long as one of them is admitted;
/// ids are not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A queue on a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The sending port.
    pub port: Egress,
    /// Class at the port; 0 is the most urgent.
    pub class: usize,
    /// Selection of the queue in a switch; `None` for the interface of a host.
    pub selection: Option<QueueSelection>,
    /// Index of the preceding hop; `None` for the source's own.
    pub after: Option<usize>,
}

/// Path and classes of one flow of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name of the flow.
    pub name: String,
    /// Sending host.
    pub source: HostId,
    /// Receiving hosts.
    pub destinations: Vec<HostId>,
    /// Queues, each after its predecessor.
    pub hops: Vec<Hop>,
    /// Bound in ns at the time of the decision, from the source's interface to the last
    /// destination.
    pub bound_ns: u64,
    /// Limit in ns, which the flow keeps for as long as it is admitted.
    pub limit_ns: u64,
}

/// A change of the class of an admitted flow at one switch port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassChange {
    /// Id of the flow's request.
    pub id: RequestId,
    /// Port of the change.
    pub port: Egress,
    /// Queue selection before the change.
    pub before: QueueSelection,
    /// Queue selection after the change.
    pub after: QueueSelection,
    /// Time in ns after the change until earlier frames, and frames delayed by them, have left.
    /// Until then no further change is proved.
    pub drain_ns: u64,
}

/// Result for a request that was admitted or joined admitted ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Id of the request, which it shares with the requests that it joined.
    pub id: RequestId,
    /// Routes of the flows of all requests with this id, samples of the first one first.
    pub routes: Vec<Route>,
    /// Largest bound of samples.
    pub bound_ns: u64,
    /// Version of the network for which the decision is valid.
    pub snapshot: u64,
    /// Requests whose flows changed their classes for this one. Their rules must be in force before
    /// those of this request.
    pub moved: BTreeSet<RequestId>,
    /// Class changes of flows that were admitted before. All flows but the new one keep their
    /// limits during and after each change, if the changes are made one by one in this order, each
    /// after the previous one has [drained](ClassChange::drain_ns).
    pub changes: Vec<ClassChange>,
}

/// Reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The contract is invalid.
    Invalid(&'static str),
    /// Samples have no frames that a rule can match.
    Format(FormatError),
    /// A destination is unreachable.
    NoRoute,
    /// A switch has no table capacity for the rules.
    TableFull(TableFull),
    /// A queue has no bound, or its depth is too small.
    Queue {
        /// The port.
        port: Egress,
        /// The class.
        class: usize,
        /// Fault of the queue.
        fault: QueueFault,
    },
    /// A flow would be late.
    ExceedsLimit {
        /// The late flow: of the request itself, or an admitted one.
        flow: String,
        /// Its bound.
        bound_ns: u64,
        /// Its limit.
        limit_ns: u64,
        /// Port where it spends most of its bound.
        port: Egress,
        /// Class at the port.
        class: usize,
    },
    /// The decision would have to bound too many ports.
    TooManyPorts,
    /// There are already [`REQUESTS_MAX`] requests.
    Full,
    /// No order of the necessary class changes keeps the limits of admitted flows after each of
    /// them.
    NoOrder,
    /// No link of the path has a detour, or the flow has several receivers.
    NoBackupPath,
    /// The named requests do not exist or have other ends, so their flow entries cannot be shared.
    OtherEnds,
}

/// A refusal, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Flow of the request that does not fit.
    pub flow: String,
    /// Reason.
    pub reason: Reason,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = &self.flow;
        match &self.reason {
            Reason::Invalid(what) => write!(f, "{own}: {what}"),
            Reason::Format(error) => write!(f, "{own}: {error}"),
            Reason::NoRoute => write!(f, "{own}: no path leads to all its destinations"),
            Reason::TableFull(TableFull { dpid, table, capacity: most }) => {
                write!(f, "{own}: switch {dpid:016x} has no free entry among its {most} {table}")
            }
            Reason::Queue { port, class, fault } => write!(f, "{own}: class {class} of {port}: {fault}"),
            Reason::ExceedsLimit { flow, bound_ns, limit_ns, port, class } => write!(
                f,
                "{own}: {flow} would take up to {bound_ns} ns of {limit_ns} ns, most of it in class {class} of {port}"
            ),
            Reason::TooManyPorts => write!(f, "{own}: {}", calculus::Refused::TooManyPorts),
            Reason::Full => write!(f, "{own}: {REQUESTS_MAX} requests are admitted"),
            Reason::NoOrder => write!(
                f,
                "{own}: other flows would have to change class, and no order of these changes keeps all limits during the transition"
            ),
            Reason::NoBackupPath => {
                write!(f, "{own}: no link of its path has a detour, or it has several receivers")
            }
            Reason::OtherEnds => write!(f, "{own}: its endpoints differ from those of the requests that it joins"),
        }
    }
}

impl std::error::Error for Refused {}

/// Result of rerouting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerouted {
    /// Requests with new paths, under their former ids.
    pub admitted: Vec<Admitted>,
    /// Requests that do not fit any more, with the reasons.
    pub dropped: Vec<(RequestId, Request, Refused)>,
}
