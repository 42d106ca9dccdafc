//! Checks that measure whether the network is what experiments take it for. Each finds one way in which a network of veth and Open vSwitch
//! loses or reorders frames without any counter of a discipline that says so.
//!
//! | check | measured |
//! |---|---|
//! | [`CHECKSUM`] | datagrams between hosts arrive, and none has a wrong checksum |
//! | [`CLASSES`] | datagrams of each DSCP leave by the queue of its class |
//! | [`SEND_BUFFER`] | the send buffer of Open vSwitch holds more than all queues |
//! | [`RECEIVE_BUFFER`] | the receive buffer of each port holds a burst |
//! | [`HEAD_DROP`] | full queues drop without an error to their sender |
//! | [`BRIDGE`] | ports of bridges of the kernel forward, multicast is flooded |
//! | [`DISCIPLINE`] | queueing disciplines are there, after ovs-vswitchd was restarted |

mod datagrams;
mod state;

use serde::Serialize;

pub use datagrams::datagrams;
pub(crate) use state::port_drops;
pub use state::{bridges, disciplines, sockets};

/// UDP checksums are computed before a frame reaches Open vSwitch.
pub const CHECKSUM: &str = "checksum";
/// Filters send frames to the class of their DSCP.
pub const CLASSES: &str = "classes";
/// Open vSwitch's one socket for sending.
pub const SEND_BUFFER: &str = "send-buffer";
/// Open vSwitch's sockets for receiving.
pub const RECEIVE_BUFFER: &str = "receive-buffer";
/// Bridges of the kernel and their ports.
pub const BRIDGE: &str = "bridge";
/// The kind of the queues.
pub const HEAD_DROP: &str = "head-drop";
/// Queueing disciplines of ports survive a start of ovs-vswitchd.
pub const DISCIPLINE: &str = "discipline";

/// Octets that the socket of a port holds at least: some 3,500 frames.
pub const RECEIVE_OCTETS: u64 = 8 << 20;
/// Octets that the socket for sending holds at least.
pub const SEND_OCTETS: u64 = 64 << 20;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// One of the constants of this module.
    pub name: &'static str,
    /// Passed or not.
    pub outcome: Outcome,
    /// The figures; of a failed check, its cause and its cure.
    pub detail: String,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The network is as it is to be.
    Passed,
    /// It is not.
    Failed,
    /// This network has nothing that could be measured.
    NotMeasured,
}

impl Check {
    fn passed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Passed, detail: detail.into() }
    }

    fn failed(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Failed, detail: detail.into() }
    }

    fn not_measured(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::NotMeasured, detail: why.into() }
    }

    /// A check that fails if there are complaints.
    fn of(name: &'static str, complaints: Vec<String>, cure: &str, passed: impl Into<String>) -> Self {
        if complaints.is_empty() {
            return Self::passed(name, passed);
        }
        Self::failed(name, format!("{}; {cure}", complaints.join("; ")))
    }
}

/// Ports of switches have no classes yet, so that the checks of classes say nothing of them.
pub(crate) fn expect_no_classes(checks: &mut [Check]) {
    for check in checks.iter_mut().filter(|check| [CLASSES, DISCIPLINE, HEAD_DROP].contains(&check.name)) {
        *check = Check::not_measured(check.name, "ports of switches have no classes (switch_classes = false)");
    }
}

#[cfg(test)]
mod tests;
