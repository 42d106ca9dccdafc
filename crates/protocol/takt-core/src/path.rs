//! Path to an endpoint: its address, and the longest message that travels in one packet.

use takt_wire::Locator;

/// Longest message in octets that every Ethernet carries in one packet: 1,500 less the headers of
/// IPv6 and UDP.
pub(crate) const NARROW_LEN: usize = 1_452;

/// Longest packet of any Ethernet in use. Only loopback carries longer ones.
const JUMBO_LEN_MAX: usize = 16_384;

/// Path to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) locator: Locator,
    /// Largest RTPS message in bytes that travels in one packet.
    pub(crate) max_message: usize,
}

impl Path {
    /// Reports whether payloads can be loaned along the path: it leads into shared memory of this
    /// host.
    pub(crate) fn supports_loans(&self) -> bool {
        supports_loans_to(&self.locator)
    }

    /// Reports whether a network on the path may have a smaller MTU than this host's interface:
    /// true for jumbo frames, false for shared memory and streams.
    pub(crate) fn may_be_narrower(&self) -> bool {
        let is_datagram = matches!(self.locator.kind, Locator::KIND_UDP_V4 | Locator::KIND_UDP_V6);
        is_datagram && (NARROW_LEN + 1..=JUMBO_LEN_MAX).contains(&self.max_message)
    }
}

/// Reports whether payloads can be loaned to a reader at this locator.
pub(crate) fn supports_loans_to(locator: &Locator) -> bool {
    locator.kind == Locator::KIND_TAKT_SHM
}
