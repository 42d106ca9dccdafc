//! Frames of a sample on the wire, with every octet of the protocols.
//!
//! DDSI-RTPS 2.5, 9.4: each datagram has the RTPS header, INFO_DST, INFO_TS and DATA or DATA_FRAG. A reliable writer may add a HEARTBEAT to
//! each. Lengths are without FCS, as [`takt_calculus::link::frame_time_ns`] expects them; it adds FCS, padding, preamble and gap.

use takt_calculus::network::Frames;
use takt_wire::builder::{
    ACKNACK_LEN_MAX, HEARTBEAT_LEN, INFO_DESTINATION_LEN, INFO_TIMESTAMP_LEN, data_frag_overhead, data_overhead,
};
use takt_wire::message::HEADER_LEN;

/// Destination, source and type of an Ethernet frame.
const ETHERNET_LEN: u64 = 14;
const VLAN_LEN: u64 = 4;
const IPV4_LEN: u64 = 20;
const IPV6_LEN: u64 = 40;
const UDP_LEN: u64 = 8;

/// The longest IP packet.
const PACKET_MAX: u64 = 65_535;

/// Fragments of one sample at most.
pub const FRAGMENTS_MAX: u64 = 1 << 18;

/// How a writer puts samples into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireFormat {
    /// Frames have a VLAN tag.
    pub vlan: bool,
    /// Datagrams go by IPv6.
    pub ipv6: bool,
    /// The longest IP packet. Longer datagrams would become IP fragments, which no rule by ports matches.
    pub mtu: u64,
    /// Octets of inline QoS in each DATA and DATA_FRAG.
    pub inline_qos_len: u64,
    /// Octets of a sample in one DATA, or in each DATA_FRAG.
    pub fragment_len: u64,
}

impl Default for WireFormat {
    fn default() -> Self {
        Self { vlan: false, ipv6: false, mtu: 1500, inline_qos_len: 0, fragment_len: 1344 }
    }
}

/// Why samples have no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatError {
    /// Nothing fits a fragment.
    NoFragment,
    /// A datagram does not fit a packet.
    Datagram {
        /// Octets of the IP packet.
        len: u64,
        /// Octets of the longest packet.
        mtu: u64,
    },
    /// There are more than [`FRAGMENTS_MAX`] fragments.
    Fragments(u64),
    /// Readers would answer more than once a nanosecond.
    Answers,
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoFragment => write!(f, "the fragment size is 0"),
            Self::Datagram { len, mtu } => write!(
                f,
                "a datagram makes an IP packet of {len} octets, above the MTU of {mtu}; configure fragments that fit"
            ),
            Self::Answers => write!(f, "readers would answer its HEARTBEATs more than once a nanosecond"),
            Self::Fragments(count) => write!(f, "a sample has {count} fragments, above the limit of {FRAGMENTS_MAX}"),
        }
    }
}

const fn octets(len: usize) -> u64 {
    len as u64
}

impl WireFormat {
    /// The frame of a datagram with so many octets of submessages behind RTPS header and INFO_DST.
    fn frame_len(&self, submessages_len: u64) -> Result<u64, FormatError> {
        let ip_len = if self.ipv6 { IPV6_LEN } else { IPV4_LEN };
        let rtps_len = octets(HEADER_LEN + INFO_DESTINATION_LEN).saturating_add(submessages_len);
        let packet_len = rtps_len.saturating_add(ip_len + UDP_LEN);
        let mtu = self.mtu.min(PACKET_MAX);
        if packet_len > mtu {
            return Err(FormatError::Datagram { len: packet_len, mtu });
        }
        Ok(packet_len + ETHERNET_LEN + if self.vlan { VLAN_LEN } else { 0 })
    }

    /// The frames of a sample of so many octets, its encapsulation header included.
    ///
    /// # Errors
    /// A fragment does not fit a packet, or there are too many.
    pub fn sample(&self, sample_len: u64, is_reliable: bool) -> Result<Vec<Frames>, FormatError> {
        if self.fragment_len == 0 {
            return Err(FormatError::NoFragment);
        }
        // Longer ones do not fit a packet, as this does not.
        let inline_qos_len = self.inline_qos_len.min(PACKET_MAX) as usize;
        let heartbeat_len = if is_reliable { octets(HEARTBEAT_LEN) } else { 0 };
        let datagram = |overhead: usize, payload_len: u64| {
            // Submessages end at a multiple of four.
            let padded_len = payload_len.checked_next_multiple_of(4).unwrap_or(u64::MAX);
            let around = octets(INFO_TIMESTAMP_LEN).saturating_add(octets(overhead)).saturating_add(heartbeat_len);
            self.frame_len(padded_len.saturating_add(around))
        };
        if sample_len <= self.fragment_len {
            let len = datagram(data_overhead(inline_qos_len), sample_len)?;
            return Ok(vec![Frames { len, count: 1 }]);
        }
        let count = sample_len.div_ceil(self.fragment_len);
        if count > FRAGMENTS_MAX {
            return Err(FormatError::Fragments(count));
        }
        let last_len = sample_len - (count - 1) * self.fragment_len;
        let overhead = data_frag_overhead(inline_qos_len);
        Ok(vec![
            Frames { len: datagram(overhead, self.fragment_len)?, count: count - 1 },
            Frames { len: datagram(overhead, last_len)?, count: 1 },
        ])
    }

    /// The frame of a HEARTBEAT alone.
    ///
    /// # Errors
    /// It does not fit a packet.
    pub fn heartbeat(&self) -> Result<Vec<Frames>, FormatError> {
        Ok(vec![Frames { len: self.frame_len(octets(HEARTBEAT_LEN))?, count: 1 }])
    }

    /// The frame of the longest ACKNACK.
    ///
    /// # Errors
    /// It does not fit a packet.
    pub fn acknack(&self) -> Result<Vec<Frames>, FormatError> {
        Ok(vec![Frames { len: self.frame_len(octets(ACKNACK_LEN_MAX))?, count: 1 }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: WireFormat =
        WireFormat { vlan: false, ipv6: false, mtu: 1500, inline_qos_len: 0, fragment_len: 1344 };

    #[test]
    fn sample_has_every_octet_of_its_protocols() {
        // Ethernet 14, IPv4 20, UDP 8, RTPS 20, INFO_DST 16, INFO_TS 12, DATA 24, payload 204.
        assert_eq!(FORMAT.sample(204, false), Ok(vec![Frames { len: 318, count: 1 }]));
        // HEARTBEAT 32.
        assert_eq!(FORMAT.sample(204, true), Ok(vec![Frames { len: 350, count: 1 }]));
        // Measured of CycloneDDS 11.0.1 without INFO_DST: 334 octets of a reliable sample of 204.
        assert_eq!(350 - octets(INFO_DESTINATION_LEN), 334);
        let tagged = WireFormat { vlan: true, ipv6: true, ..FORMAT };
        assert_eq!(tagged.sample(201, false), Ok(vec![Frames { len: 318 + 4 + 20, count: 1 }]), "padded to 204");
    }

    #[test]
    fn large_sample_comes_in_fragments() {
        let frames = FORMAT.sample(10_000, false).expect("each fits");
        // DATA_FRAG 36; 7 fragments of 1344 octets, and one of 592.
        assert_eq!(frames, [Frames { len: 90 + 36 + 1344, count: 7 }, Frames { len: 90 + 36 + 592, count: 1 }]);
        let exact = FORMAT.sample(2 * 1344, false).expect("each fits");
        assert_eq!(exact.iter().map(|frames| frames.count).sum::<u64>(), 2);
    }

    #[test]
    fn what_would_become_ip_fragments_is_refused() {
        let large = WireFormat { fragment_len: 14_720, ..FORMAT };
        assert!(matches!(large.sample(20_000, false), Err(FormatError::Datagram { mtu: 1500, .. })));
        assert_eq!(WireFormat { fragment_len: 0, ..FORMAT }.sample(1, false), Err(FormatError::NoFragment));
        assert!(matches!(FORMAT.sample(u64::MAX, true), Err(FormatError::Fragments(_))));
        assert!(WireFormat { fragment_len: u64::MAX, ..FORMAT }.sample(u64::MAX, true).is_err());
        assert!(WireFormat { inline_qos_len: u64::MAX, ..FORMAT }.sample(4, true).is_err());
    }
}
