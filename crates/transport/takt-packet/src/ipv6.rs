//! IPv6 packets (RFC 8200). Extension headers are recognized by their number and not parsed.

use core::net::Ipv6Addr;

use crate::checksum::Sum;
use crate::error::{header, room};
use crate::{Malformed, NoRoom};

/// Packet whose lengths have been validated.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<'a> {
    /// Octets of the packet, without padding.
    bytes: &'a [u8],
}

impl<'a> Ipv6Packet<'a> {
    /// Parses version and length. Octets after the packet's own length are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; Ipv6Header::LEN] = header(bytes, "truncated IPv6 header")?;
        if fixed[0] >> 4 != 6 {
            return Err(Malformed { offset: 0, what: "IP version other than 6" });
        }
        let len = Ipv6Header::LEN + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let cut_off = Malformed { offset: bytes.len(), what: "truncated IPv6 packet" };
        Ok(Self { bytes: bytes.get(..len).ok_or(cut_off)? })
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes[at..at + 16]);
        Ipv6Addr::from(octets)
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }

    /// Returns the protocol number of the payload, or the number of an extension header; see
    /// [`UDP`](crate::UDP).
    pub fn next_header(&self) -> u8 {
        self.bytes[6]
    }

    /// Returns the hop limit: the number of routers that the packet may pass, plus one.
    pub fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }

    /// Returns DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.bytes[0] << 4 | self.bytes[1] >> 4
    }

    /// Returns the octets after the fixed header.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[Ipv6Header::LEN..]
    }

    /// Returns the sum of the pseudo header for the payload, unless that is an extension header.
    pub fn pseudo_sum(&self) -> Sum {
        // The payload's length was read from 16 bits.
        Sum::pseudo_v6(self.source(), self.destination(), self.next_header(), self.payload().len() as u16)
    }
}

/// Fixed header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Protocol number of the payload.
    pub next_header: u8,
    /// Hop limit: the number of routers that the packet may pass, plus one.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Length of the payload in octets.
    pub payload_len: u16,
}

impl Ipv6Header {
    /// Length in octets.
    pub const LEN: usize = 40;

    /// Writes the header, with flow label 0, to the start of `into`, and returns its length.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let into: &mut [u8; Self::LEN] = room(into)?;
        into[..4].copy_from_slice(&[0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
        into[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        into[6] = self.next_header;
        into[7] = self.hop_limit;
        into[8..24].copy_from_slice(&self.source.octets());
        into[24..].copy_from_slice(&self.destination.octets());
        Ok(Self::LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Ipv6Header = Ipv6Header {
        source: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1),
        next_header: 17,
        hop_limit: 255,
        traffic_class: 0xb8,
        payload_len: 3,
    };

    #[test]
    fn packet_round_trips_without_padding() {
        let mut bytes = [0x5a; 46];
        assert_eq!(HEADER.emit(&mut bytes), Ok(40));
        let packet = Ipv6Packet::parse(&bytes).expect("a packet");
        assert_eq!((packet.source(), packet.destination()), (HEADER.source, HEADER.destination));
        assert_eq!((packet.next_header(), packet.hop_limit(), packet.traffic_class()), (17, 255, 0xb8));
        assert_eq!(packet.payload(), [0x5a; 3]);
    }

    #[test]
    fn truncated_packet_is_malformed() {
        let mut bytes = [0; 43];
        HEADER.emit(&mut bytes).expect("the buffer is large enough");
        for cut in 0..43 {
            assert_eq!(Ipv6Packet::parse(&bytes[..cut]).expect_err("the octets are truncated").offset, cut);
        }
        assert!(Ipv6Packet::parse(&bytes).is_ok());
        for cut in 0..40 {
            assert_eq!(HEADER.emit(&mut [0; 40][..cut]), Err(NoRoom));
        }
        bytes[0] = 0x45;
        assert!(Ipv6Packet::parse(&bytes).is_err(), "version 4");
    }
}
