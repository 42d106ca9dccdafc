//! Flow identity of one writer or reader in the network.

/// Identification of an endpoint's traffic in the network.
///
/// All endpoints of a participant normally share one UDP port, so that a switch cannot distinguish
/// their topics. The traffic of an endpoint with its own port is a flow that switch rules can
/// match. The `TRANSPORT_PRIORITY` of a writer determines DSCP and socket priority in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Whether the endpoint sends from, receives at and announces a port that no other endpoint
    /// uses.
    pub own_port: bool,
}

impl Flow {
    /// Flow with its own port.
    pub const OWN_PORT: Self = Self { own_port: true };
}
