//! Flow identity: what the network sees of one writer or reader.

/// How one endpoint's traffic looks to the network.
///
/// All endpoints of a participant normally share one UDP port, so that a switch cannot tell their topics apart. With a
/// port of its own an endpoint's traffic is a flow that rules can match. A writer's `TRANSPORT_PRIORITY` decides on
/// DSCP and socket priority either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The endpoint sends from, receives at and announces a port that nothing else uses.
    pub own_port: bool,
}

impl Flow {
    /// A port of its own.
    pub const OWN_PORT: Self = Self { own_port: true };
}
