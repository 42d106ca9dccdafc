//! UDP datagrams (RFC 768).

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::error::{header, room};
use crate::{Malformed, NoRoom};

/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// Result of a checksum verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UdpChecksum {
    /// The sender omitted it, which IPv4 allows (RFC 768) and IPv6 does not (RFC 8200 §8.1).
    Absent,
    /// It matches the bytes.
    Right,
    /// It covers the pseudo header alone: Linux leaves the rest to hardware, which a datagram
    /// within the same machine never passes. One in 65,536 damaged datagrams looks the same.
    Partial,
    /// The datagram was damaged.
    Wrong,
}

impl UdpChecksum {
    /// Reports whether IPv4 accepts a datagram with this result.
    pub const fn is_acceptable(self) -> bool {
        !matches!(self, Self::Wrong)
    }
}

/// Reason why a datagram is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramError {
    /// Its header or a length is wrong.
    Malformed(Malformed),
    /// Its checksum is wrong, or absent where the IP version requires one.
    WrongChecksum,
}

impl From<Malformed> for DatagramError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Datagram whose lengths have been validated.
#[derive(Clone, Copy, Debug)]
pub struct UdpDatagram<'a> {
    /// Octets of the datagram, by its own length.
    bytes: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Parses the header in the payload of an IP packet. Octets beyond the datagram's own length
    /// are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; UdpHeader::LEN] = header(bytes, "truncated UDP header")?;
        let len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        if len < UdpHeader::LEN {
            return Err(Malformed { offset: 4, what: "UDP datagram shorter than its header" });
        }
        let cut_off = Malformed { offset: bytes.len(), what: "truncated UDP datagram" };
        Ok(Self { bytes: bytes.get(..len).ok_or(cut_off)? })
    }

    /// Parses the datagram in the payload of an IPv4 packet, and verifies its checksum.
    pub fn verify_v4(bytes: &'a [u8], source: Ipv4Addr, destination: Ipv4Addr) -> Result<Self, DatagramError> {
        let datagram = Self::parse(bytes)?;
        let pseudo = Sum::pseudo_v4(source, destination, UDP, datagram.bytes.len() as u16);
        if !datagram.checksum(pseudo).is_acceptable() {
            return Err(DatagramError::WrongChecksum);
        }
        Ok(datagram)
    }

    /// Parses the datagram in the payload of an IPv6 packet, and verifies its checksum, which IPv6
    /// requires (RFC 8200 §8.1).
    pub fn verify_v6(bytes: &'a [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Self, DatagramError> {
        let datagram = Self::parse(bytes)?;
        let pseudo = Sum::pseudo_v6(source, destination, UDP, datagram.bytes.len() as u16);
        if matches!(datagram.checksum(pseudo), UdpChecksum::Wrong | UdpChecksum::Absent) {
            return Err(DatagramError::WrongChecksum);
        }
        Ok(datagram)
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Returns the port of the sender.
    pub fn source_port(&self) -> u16 {
        self.word(0)
    }

    /// Returns the port of the receiver.
    pub fn destination_port(&self) -> u16 {
        self.word(2)
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[UdpHeader::LEN..]
    }

    /// Verifies the checksum. `pseudo` is the sum of the IP packet's [pseudo
    /// header](Sum::pseudo_v4).
    pub fn checksum(&self, pseudo: Sum) -> UdpChecksum {
        let stated = self.word(6);
        if stated == 0 {
            return UdpChecksum::Absent;
        }
        let mut whole = pseudo;
        whole.add(self.bytes);
        if whole.checksum() == 0 {
            UdpChecksum::Right
        } else if stated == pseudo.folded() {
            UdpChecksum::Partial
        } else {
            UdpChecksum::Wrong
        }
    }
}

/// Header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

impl UdpHeader {
    /// Length in octets.
    pub const LEN: usize = 8;

    /// Writes the header with its checksum to the start of `into`, for the payload after it, which
    /// is all the rest of `into`. `pseudo` computes the sum of the pseudo header for a length.
    /// Returns the length of the header.
    pub fn emit(&self, into: &mut [u8], pseudo: impl FnOnce(u16) -> Sum) -> Result<usize, NoRoom> {
        let (into, payload) = into.split_at_mut_checked(Self::LEN).ok_or(NoRoom)?;
        self.emit_before(into, payload, pseudo)
    }

    /// Writes the header to the start of `into`, for a payload that is elsewhere.
    pub fn emit_before(
        &self,
        into: &mut [u8],
        payload: &[u8],
        pseudo: impl FnOnce(u16) -> Sum,
    ) -> Result<usize, NoRoom> {
        let len = u16::try_from(Self::LEN + payload.len()).map_err(|_| NoRoom)?;
        let fixed: &mut [u8; Self::LEN] = room(into)?;
        fixed[..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..6].copy_from_slice(&len.to_be_bytes());
        fixed[6..].fill(0);
        let mut sum = pseudo(len);
        sum.add(fixed);
        sum.add(payload);
        // 0 means that there is no checksum; its complement is the same number.
        let checksum = match sum.checksum() {
            0 => 0xffff,
            checksum => checksum,
        };
        fixed[6..].copy_from_slice(&checksum.to_be_bytes());
        Ok(Self::LEN)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const HEADER: UdpHeader = UdpHeader { source_port: 7411, destination_port: 7413 };

    fn v4(len: u16) -> Sum {
        Sum::pseudo_v4(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2), UDP, len)
    }

    fn v6(len: u16) -> Sum {
        Sum::pseudo_v6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, UDP, len)
    }

    #[test]
    fn datagram_round_trips() {
        for pseudo in [v4, v6] {
            for len in 8..64 {
                let mut bytes = [0x5a; 64];
                assert_eq!(HEADER.emit(&mut bytes[..len], pseudo), Ok(8));
                let datagram = UdpDatagram::parse(&bytes).expect("a datagram");
                assert_eq!((datagram.source_port(), datagram.destination_port()), (7411, 7413));
                assert_eq!(datagram.payload(), &bytes[8..len]);
                assert_eq!(datagram.checksum(pseudo(len as u16)), UdpChecksum::Right);
            }
        }
    }

    #[test]
    fn every_damaged_octet_is_detected() {
        let mut bytes = [0x5a; 29];
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        for at in (0..29).filter(|at| !(4..8).contains(at)) {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            let datagram = UdpDatagram::parse(&damaged).expect("its length is right");
            assert_eq!(datagram.checksum(v4(29)), UdpChecksum::Wrong, "octet {at}");
        }
        assert!(!UdpChecksum::Wrong.is_acceptable());
    }

    #[test]
    fn absent_and_partial_checksums_are_accepted() {
        let mut bytes = [0x5a; 29];
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        for (stated, expected) in [(0, UdpChecksum::Absent), (v4(29).folded(), UdpChecksum::Partial)] {
            bytes[6..8].copy_from_slice(&stated.to_be_bytes());
            let datagram = UdpDatagram::parse(&bytes).expect("a datagram");
            assert_eq!(datagram.checksum(v4(29)), expected);
            assert!(expected.is_acceptable());
        }
    }

    #[test]
    fn absent_checksum_is_refused_in_ipv6_alone() {
        let (from, to) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let (from_v6, to_v6) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        let mut bytes = [0x5a; 29];
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        assert!(UdpDatagram::verify_v4(&bytes, from, to).is_ok());
        assert_eq!(UdpDatagram::verify_v4(&bytes, to, to).err(), Some(DatagramError::WrongChecksum));
        HEADER.emit(&mut bytes, v6).expect("the buffer is large enough");
        assert!(UdpDatagram::verify_v6(&bytes, from_v6, to_v6).is_ok());
        assert_eq!(UdpDatagram::verify_v6(&bytes, to_v6, to_v6).err(), Some(DatagramError::WrongChecksum));
        bytes[6..8].fill(0);
        assert!(UdpDatagram::verify_v4(&bytes, from, to).is_ok());
        assert_eq!(UdpDatagram::verify_v6(&bytes, from_v6, to_v6).err(), Some(DatagramError::WrongChecksum));
        let cut = UdpDatagram::verify_v4(&bytes[..28], from, to).err();
        assert!(matches!(cut, Some(DatagramError::Malformed(Malformed { offset: 28, .. }))), "{cut:?}");
    }

    #[test]
    fn a_checksum_of_zero_is_written_as_all_ones() {
        // One payload word makes the sum of the rest all ones.
        let mut bytes = [0; 10];
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        let rest = u16::from_be_bytes([bytes[6], bytes[7]]);
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        let datagram = UdpDatagram::parse(&bytes).expect("a datagram");
        assert_eq!(datagram.checksum(v4(10)), UdpChecksum::Right);
    }

    #[test]
    fn truncated_datagram_is_malformed() {
        let mut bytes = [0; 12];
        HEADER.emit(&mut bytes, v4).expect("the buffer is large enough");
        for cut in 0..12 {
            assert_eq!(UdpDatagram::parse(&bytes[..cut]).expect_err("the octets are truncated").offset, cut);
        }
        for len in 0..8 {
            bytes[5] = len;
            assert_eq!(UdpDatagram::parse(&bytes).expect_err("shorter than its header").offset, 4);
        }
        for cut in 0..8 {
            assert_eq!(HEADER.emit(&mut [0; 8][..cut], v4), Err(NoRoom));
        }
    }
}
