//! Preflight checks that measure whether the network behaves as its file says. Each detects one way
//! in which a network of veth and Open vSwitch loses or reorders frames without a discipline
//! counter that shows it.
//!
//! | check | measured |
//! |---|---|
//! | [`CHECKSUM`] | datagrams between hosts arrive with correct checksums |
//! | [`CLASSES`] | datagrams of each DSCP leave by the queue of its class |
//! | [`SEND_BUFFER`] | the send buffer of Open vSwitch holds more than all queues |
//! | [`RECEIVE_BUFFER`] | the receive buffer of each port holds a burst |
//! | [`HEAD_DROP`] | full queues drop without an error to their sender |
//! | [`BRIDGE`] | ports of bridges of the kernel forward, multicast is flooded |
//! | [`DISCIPLINE`] | queueing disciplines exist after a restart of ovs-vswitchd |

mod datagrams;
mod state;

use serde::Serialize;

pub use datagrams::datagrams;
pub(crate) use state::port_drops;
pub use state::{bridges, disciplines, sockets};

/// Check that UDP checksums are computed before a frame reaches Open vSwitch.
pub const CHECKSUM: &str = "checksum";
/// Check that filters sort frames into the class of their DSCP.
pub const CLASSES: &str = "classes";
/// Check of Open vSwitch's only send socket.
pub const SEND_BUFFER: &str = "send-buffer";
/// Check of Open vSwitch's receive sockets.
pub const RECEIVE_BUFFER: &str = "receive-buffer";
/// Check of kernel bridges and their ports.
pub const BRIDGE: &str = "bridge";
/// Check of the kind of the queues.
pub const HEAD_DROP: &str = "head-drop";
/// Check that queueing disciplines of ports survive a restart of ovs-vswitchd.
pub const DISCIPLINE: &str = "discipline";

/// Minimum receive buffer of a port's socket, octets: some 3,500 frames.
pub const RECEIVE_OCTETS: u64 = 8 << 20;
/// Minimum send buffer of the send socket, octets.
pub const SEND_OCTETS: u64 = 64 << 20;

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name: one of the constants of this module.
    pub name: &'static str,
    /// Outcome.
    pub outcome: Outcome,
    /// Measured figures; for a failed check, cause and remedy.
    pub detail: String,
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The network has the checked property.
    Passed,
    /// The network does not have the checked property.
    Failed,
    /// This network has nothing to measure.
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

    /// Creates a check that fails if there are failures.
    fn of(name: &'static str, failures: Vec<String>, remedy: &str, passed: impl Into<String>) -> Self {
        if failures.is_empty() {
            return Self::passed(name, passed);
        }
        Self::failed(name, format!("{}; {remedy}", failures.join("; ")))
    }
}

/// Marks the checks of classes as not measured, since ports of switches have no classes yet.
pub(crate) fn expect_no_classes(checks: &mut [Check]) {
    for check in checks.iter_mut().filter(|check| [CLASSES, DISCIPLINE, HEAD_DROP].contains(&check.name)) {
        *check = Check::not_measured(check.name, "ports of switches have no classes (switch_classes = false)");
    }
}

#[cfg(test)]
mod tests;
