//! Frames of a sample on the wire, with all protocol overhead.
//!
//! DDSI-RTPS 2.5, 9.4: each datagram has the RTPS header, INFO_DST, INFO_TS and DATA or DATA_FRAG.
//! A reliable writer may add a HEARTBEAT to each. Lengths exclude the FCS, as
//! [`takt_calculus::link::frame_time_ns`] expects; that function adds FCS, padding, preamble and
//! interframe gap.

use takt_calculus::network::Frames;
use takt_wire::VendorId;
use takt_wire::builder::{
    ACKNACK_LEN_MAX, HEARTBEAT_LEN, INFO_DESTINATION_LEN, INFO_TIMESTAMP_LEN, data_frag_overhead, data_overhead,
};
use takt_wire::message::HEADER_LEN;

/// Length in octets of destination, source and type of an Ethernet frame.
const ETHERNET_LEN: u64 = 14;
const VLAN_LEN: u64 = 4;
const IPV4_LEN: u64 = 20;
const IPV6_LEN: u64 = 40;
const UDP_LEN: u64 = 8;

/// Maximum length of an IP packet in octets.
const PACKET_MAX: u64 = 65_535;

/// Maximum number of fragments of one sample.
pub const FRAGMENTS_MAX: u64 = 1 << 18;

/// Wire format of a writer's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireFormat {
    /// Whether frames have a VLAN tag.
    pub vlan: bool,
    /// Whether datagrams use IPv6.
    pub ipv6: bool,
    /// Maximum length of an IP packet. Longer datagrams would become IP fragments, which no rule on
    /// ports matches.
    pub mtu: u64,
    /// Length in octets of the inline QoS in each DATA and DATA_FRAG.
    pub inline_qos_len: u64,
    /// Octets that the participant appends to each datagram, as far as the MTU leaves room:
    /// [`trailer_len`].
    pub trailer_len: u64,
    /// Maximum length in octets of a sample in one DATA, or of the part in each DATA_FRAG.
    pub fragment_len: u64,
}

impl Default for WireFormat {
    fn default() -> Self {
        Self { vlan: false, ipv6: false, mtu: 1500, inline_qos_len: 0, trailer_len: 0, fragment_len: 1344 }
    }
}

/// Length in octets of the vendor-specific statistics submessage (0x80) that Fast DDS 3 appends to
/// each datagram, including its header.
const FASTDDS_STATISTICS_LEN: u64 = 60;

/// Returns the number of octets that participants of a vendor append to each datagram.
pub fn trailer_len(vendor: VendorId) -> u64 {
    if vendor == VendorId::EPROSIMA { FASTDDS_STATISTICS_LEN } else { 0 }
}

/// Reason why samples have no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatError {
    /// Fragments are empty.
    NoFragment,
    /// A datagram does not fit into a packet.
    Datagram {
        /// Length of the IP packet in octets.
        len: u64,
        /// Maximum packet length in octets.
        mtu: u64,
    },
    /// There are more than [`FRAGMENTS_MAX`] fragments.
    Fragments(u64),
    /// Readers would answer more than once per nanosecond.
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
    /// Returns the length of the frame of a datagram with this length of submessages after RTPS
    /// header and INFO_DST.
    fn frame_len(&self, submessages_len: u64) -> Result<u64, FormatError> {
        let ip_len = if self.ipv6 { IPV6_LEN } else { IPV4_LEN };
        let rtps_len = octets(HEADER_LEN + INFO_DESTINATION_LEN).saturating_add(submessages_len);
        let packet_len = rtps_len.saturating_add(ip_len + UDP_LEN);
        let mtu = self.mtu.min(PACKET_MAX);
        if packet_len > mtu {
            return Err(FormatError::Datagram { len: packet_len, mtu });
        }
        // A trailer that does not fit is not appended, or causes IP fragments, which the first
        // switch drops.
        let packet_len = packet_len.saturating_add(self.trailer_len).min(mtu);
        Ok(packet_len + ETHERNET_LEN + if self.vlan { VLAN_LEN } else { 0 })
    }

    /// Returns the frames of a sample of this length in octets, including its encapsulation header.
    ///
    /// # Errors
    /// A fragment does not fit into a packet, or there are too many.
    pub fn sample(&self, sample_len: u64, is_reliable: bool) -> Result<Vec<Frames>, FormatError> {
        if self.fragment_len == 0 {
            return Err(FormatError::NoFragment);
        }
        // A longer inline QoS does not fit into a packet either.
        let inline_qos_len = self.inline_qos_len.min(PACKET_MAX) as usize;
        let heartbeat_len = if is_reliable { octets(HEARTBEAT_LEN) } else { 0 };
        let datagram = |overhead: usize, payload_len: u64| {
            // Submessages are padded to a multiple of four octets.
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

    /// Returns the frame of a separate HEARTBEAT.
    ///
    /// # Errors
    /// The HEARTBEAT does not fit into a packet.
    pub fn heartbeat(&self) -> Result<Vec<Frames>, FormatError> {
        Ok(vec![Frames { len: self.frame_len(octets(HEARTBEAT_LEN))?, count: 1 }])
    }

    /// Returns the frame of the longest ACKNACK.
    ///
    /// # Errors
    /// The ACKNACK does not fit into a packet.
    pub fn acknack(&self) -> Result<Vec<Frames>, FormatError> {
        Ok(vec![Frames { len: self.frame_len(octets(ACKNACK_LEN_MAX))?, count: 1 }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: WireFormat =
        WireFormat { vlan: false, ipv6: false, mtu: 1500, inline_qos_len: 0, trailer_len: 0, fragment_len: 1344 };

    /// A sample of Fast DDS 3.2.3 with 224 octets, best effort, captured at the interface of its
    /// host.
    const FASTDDS_SAMPLE: &str = "\
        0000000000000000000000000800450001800a714000401130fa7f0000017f00000181181cf5016cff7f525450530202010f010f7f01a2337ea800000000\
        0e010c00010f7f01a133273e00000000090108001655046b78e112b11505f400000010000000010400000103000000000200000000010000010000000000\
        000081fc96d5a8b4ea18c80000009f6f5543d6362bc9c6070f5235609cb7bf5a5b3ba73aed18f9783ec87d85d51c19ca1ddc6cd0ce52b7f265583ef72ab5\
        0fccce5fea1bdadb1c0a299a6c9539de4127bf6eada750dfcf9ac2087d89db82285db26af8d1b489580cfce07ed9f9d88cfcc75771b0f295dfec92fea086\
        0e5182e571e6fa775144659cba56ac54f1ed5b60ce902caf995a5ab2985df97f08e3b45d60334f1d684b196c8338c154827509a59f61852271b73642c320\
        bf34c685e8f24214f4f5e7398d2a67a62ff89fccdb6f32693e01ccde8001380001000000f51c00000000000000000000000000007f0000011655046bc76e\
        e2b1010000000000000064010000000000000000000000000000";

    #[test]
    fn sample_has_every_octet_of_its_protocols() {
        // Ethernet 14, IPv4 20, UDP 8, RTPS 20, INFO_DST 16, INFO_TS 12, DATA 24, payload 204.
        assert_eq!(FORMAT.sample(204, false), Ok(vec![Frames { len: 318, count: 1 }]));
        // HEARTBEAT 32.
        assert_eq!(FORMAT.sample(204, true), Ok(vec![Frames { len: 350, count: 1 }]));
        // Measured with CycloneDDS 11.0.1, without INFO_DST: 334 octets for a reliable sample of
        // 204.
        assert_eq!(350 - octets(INFO_DESTINATION_LEN), 334);
        let tagged = WireFormat { vlan: true, ipv6: true, ..FORMAT };
        assert_eq!(tagged.sample(201, false), Ok(vec![Frames { len: 318 + 4 + 20, count: 1 }]), "padded to 204");
    }

    #[test]
    fn sample_of_fast_dds_is_as_long_as_recorded() {
        let recorded: Vec<u8> = (0..FASTDDS_SAMPLE.len() / 2)
            .map(|n| u8::from_str_radix(&FASTDDS_SAMPLE[2 * n..2 * n + 2], 16).expect("hexadecimal"))
            .collect();
        let trailer_len = trailer_len(VendorId::EPROSIMA);
        let trailer = &recorded[recorded.len() - trailer_len as usize..];
        assert_eq!((trailer[0], u64::from(trailer[2])), (0x80, trailer_len - 4), "a submessage of statistics");
        let format = WireFormat { trailer_len, ..FORMAT };
        assert_eq!(format.sample(224, false), Ok(vec![Frames { len: recorded.len() as u64, count: 1 }]));
        // The trailer does not extend a datagram beyond the maximum packet length.
        let longest = FORMAT.sample(1344, true).expect("the sample can be sent")[0].len;
        assert_eq!(format.sample(1344, true), Ok(vec![Frames { len: (longest + 60).min(1514), count: 1 }]));
        assert_eq!(super::trailer_len(VendorId::CYCLONE), 0);
    }

    #[test]
    fn large_sample_comes_in_fragments() {
        let frames = FORMAT.sample(10_000, false).expect("each fragment can be sent");
        // DATA_FRAG 36; 7 fragments of 1344 octets, and one of 592.
        assert_eq!(frames, [Frames { len: 90 + 36 + 1344, count: 7 }, Frames { len: 90 + 36 + 592, count: 1 }]);
        let exact = FORMAT.sample(2 * 1344, false).expect("each fragment can be sent");
        assert_eq!(exact.iter().map(|frames| frames.count).sum::<u64>(), 2);
    }

    #[test]
    fn datagram_that_would_be_fragmented_is_refused() {
        let large = WireFormat { fragment_len: 14_720, ..FORMAT };
        assert!(matches!(large.sample(20_000, false), Err(FormatError::Datagram { mtu: 1500, .. })));
        assert_eq!(WireFormat { fragment_len: 0, ..FORMAT }.sample(1, false), Err(FormatError::NoFragment));
        assert!(matches!(FORMAT.sample(u64::MAX, true), Err(FormatError::Fragments(_))));
        assert!(WireFormat { fragment_len: u64::MAX, ..FORMAT }.sample(u64::MAX, true).is_err());
        assert!(WireFormat { inline_qos_len: u64::MAX, ..FORMAT }.sample(4, true).is_err());
    }
}
