//! RTPS directly on Ethernet, in Takt's format: a header of eight octets and the payload, after the
//! EtherType 0x88b5 ([`EtherType::TAKT`]).
//!
//! | octets | field |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | flags, 0 |
//! | 2, 3 | length of the payload in octets |
//! | 4, 5 | destination port |
//! | 6, 7 | source port |
//!
//! Numbers are big-endian. Ports are those of RTPS 2.5 §9.6.2.3. Octets after the payload are
//! padding. Other versions and flags are refused, since they may change the following fields.
//!
//! Deliberately not here: a checksum (the frame has one), and fragments (RTPS has them).
//!
//! [`EtherType::TAKT`]: crate::EtherType::TAKT

use crate::error::{header, room};
use crate::{Malformed, NoRoom};

/// Datagram whose header and length have been validated.
#[derive(Clone, Copy, Debug)]
pub struct TaktDatagram<'a> {
    header: TaktHeader,
    payload: &'a [u8],
}

impl<'a> TaktDatagram<'a> {
    /// Parses the payload of an Ethernet frame. Octets after the datagram are padding and are
    /// ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [version, flags, l0, l1, d0, d1, s0, s1] = *header(bytes, "truncated Takt header")?;
        if version != TaktHeader::VERSION {
            return Err(Malformed { offset: 0, what: "unknown version of the Takt header" });
        }
        if flags != 0 {
            return Err(Malformed { offset: 1, what: "unknown flag in the Takt header" });
        }
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        let cut_off = Malformed { offset: bytes.len(), what: "truncated Takt datagram" };
        Ok(Self {
            header: TaktHeader {
                destination_port: u16::from_be_bytes([d0, d1]),
                source_port: u16::from_be_bytes([s0, s1]),
            },
            payload: bytes[TaktHeader::LEN..].get(..len).ok_or(cut_off)?,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &TaktHeader {
        &self.header
    }

    /// Returns the payload, without padding.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Ports in the header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaktHeader {
    /// RTPS port of the receiver.
    pub destination_port: u16,
    /// RTPS port of the sender.
    pub source_port: u16,
}

impl TaktHeader {
    /// Length of the header in octets.
    pub const LEN: usize = 8;
    /// Version of the format.
    pub const VERSION: u8 = 1;

    /// Writes the header to the start of `into`. The rest of `into` is the payload, whose length
    /// the header states. Returns the length of the header.
    ///
    /// # Errors
    /// [`NoRoom`] if `into` is shorter than the header, or the payload longer than 65,535 octets.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let len = into.len().checked_sub(Self::LEN).ok_or(NoRoom)?;
        let len = u16::try_from(len).map_err(|_| NoRoom)?;
        let fixed: &mut [u8; Self::LEN] = room(into)?;
        let ([l0, l1], [d0, d1], [s0, s1]) =
            (len.to_be_bytes(), self.destination_port.to_be_bytes(), self.source_port.to_be_bytes());
        *fixed = [Self::VERSION, 0, l0, l1, d0, d1, s0, s1];
        Ok(Self::LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: TaktHeader = TaktHeader { destination_port: 7413, source_port: 7411 };

    #[test]
    fn header_has_the_documented_format() {
        let mut bytes = [0xaa; 8 + 300];
        assert_eq!(HEADER.emit(&mut bytes), Ok(8));
        assert_eq!(bytes[..8], [1, 0, 0x01, 0x2c, 0x1c, 0xf5, 0x1c, 0xf3]);
        assert!(bytes[8..].iter().all(|byte| *byte == 0xaa), "the payload is left alone");
    }

    #[test]
    fn datagram_round_trips_without_its_padding() {
        for len in 0..40 {
            let mut bytes = [0x5a; 60];
            HEADER.emit(&mut bytes[..8 + len]).expect("the buffer is large enough");
            let datagram = TaktDatagram::parse(&bytes).expect("a datagram");
            assert_eq!((datagram.header(), datagram.payload()), (&HEADER, &bytes[8..8 + len]));
        }
    }

    #[test]
    fn truncated_datagram_is_malformed() {
        let mut bytes = [0; 20];
        HEADER.emit(&mut bytes).expect("the buffer is large enough");
        for cut in 0..20 {
            assert_eq!(TaktDatagram::parse(&bytes[..cut]).expect_err("the octets are truncated").offset, cut);
        }
        for cut in 0..8 {
            assert_eq!(HEADER.emit(&mut [0; 8][..cut]), Err(NoRoom));
        }
    }

    #[test]
    fn other_versions_and_flags_are_refused() {
        let mut bytes = [0; 20];
        HEADER.emit(&mut bytes).expect("the buffer is large enough");
        for (at, values) in [(0, [0, 2, 3, 0x81, 255]), (1, [1, 2, 4, 128, 255])] {
            for value in values {
                let mut other = bytes;
                other[at] = value;
                assert_eq!(TaktDatagram::parse(&other).expect_err("the octets are refused").offset, at);
            }
        }
    }

    #[test]
    fn payload_longer_than_65535_octets_has_no_room() {
        extern crate std;
        let mut bytes = std::vec![0; 8 + 65_536];
        assert_eq!(HEADER.emit(&mut bytes), Err(NoRoom));
        assert_eq!(HEADER.emit(&mut bytes[..8 + 65_535]), Ok(8));
    }
}
