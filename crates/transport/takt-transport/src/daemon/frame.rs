//! Frame header of a message between an application and its daemon.
//!
//! From the application, [`OUT_LEN`] octets, integers little-endian:
//!
//! | octets | |
//! |---|---|
//! | 0 | [`MESSAGE`] |
//! | 1 | number of destinations, 1 to [`DESTINATIONS_MAX`] |
//! | 4 .. 8 | TRANSPORT_PRIORITY |
//! | 8 .. | the destinations, 24 octets each |
//!
//! From the daemon, [`IN_LEN`] octets:
//!
//! | octets | |
//! |---|---|
//! | 0 | [`MESSAGE`], or [`UPDATE`]: a [`super::handshake::Welcome`] follows |
//! | 1 | [`IS_MULTICAST`], [`IS_V6`] |
//! | 2 .. 4, 4 .. 6 | port of the source, port where the message was received |
//! | 8 .. 12 | IPv4 group where it was received, else 0 |
//! | 12 .. 28 | address of the source |

use takt_wire::{Endianness, Locator};

use crate::{FlowId, RxMeta};

/// An RTPS message follows.
pub(super) const MESSAGE: u8 = 1;
/// An updated [`super::handshake::Welcome`] follows.
pub(super) const UPDATE: u8 = 2;

/// Octets of the header from an application.
pub(super) const OUT_LEN: usize = 8 + DESTINATIONS_MAX * LOCATOR_LEN;
/// Octets of the header to an application.
pub(super) const IN_LEN: usize = 28;
/// Maximum number of destinations of one frame; a message to more takes several frames.
pub(super) const DESTINATIONS_MAX: usize = 8;
/// Maximum length of a message from an application, in octets.
pub(super) const MESSAGE_LEN_MAX: usize = 65_000;

const LOCATOR_LEN: usize = 24;
const IS_MULTICAST: u8 = 1;
const IS_V6: u8 = 2;

/// Parses a locator in little-endian encoding.
pub(super) fn locator(bytes: &[u8]) -> Locator {
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    let mut address = [0; 16];
    address.copy_from_slice(&bytes[8..LOCATOR_LEN]);
    Locator { kind: i32::from_le_bytes(word(0)), port: u32::from_le_bytes(word(4)), address }
}

/// Header of a message from an application: its priority and destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outbound {
    pub(super) priority: i32,
    count: usize,
    destinations: [Locator; DESTINATIONS_MAX],
}

impl Outbound {
    /// Writes the header of a message to at most [`DESTINATIONS_MAX`] destinations.
    pub(super) fn write(frame: &mut [u8], priority: i32, destinations: &[Locator]) {
        frame[..4].copy_from_slice(&[MESSAGE, destinations.len() as u8, 0, 0]);
        frame[4..8].copy_from_slice(&priority.to_le_bytes());
        for (room, to) in frame[8..OUT_LEN].chunks_exact_mut(LOCATOR_LEN).zip(destinations) {
            room.copy_from_slice(&to.to_bytes(Endianness::Little));
        }
    }

    /// Parses a frame into header and message. Returns `None` if it is malformed.
    pub(super) fn parse(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (header, message) = frame.split_at_checked(OUT_LEN)?;
        let count = usize::from(header[1]);
        if header[0] != MESSAGE || !(1..=DESTINATIONS_MAX).contains(&count) {
            return None;
        }
        let priority = i32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let mut destinations = [Locator::INVALID; DESTINATIONS_MAX];
        for (to, bytes) in destinations.iter_mut().zip(header[8..].chunks_exact(LOCATOR_LEN)).take(count) {
            *to = locator(bytes);
        }
        Some((Self { priority, count, destinations }, message))
    }

    pub(super) fn destinations(&self) -> &[Locator] {
        &self.destinations[..self.count]
    }
}

/// Header of a message to an application: its source, and where it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inbound {
    pub(super) source: Locator,
    pub(super) local: Locator,
    pub(super) is_multicast: bool,
}

impl Inbound {
    pub(super) fn to_bytes(self) -> [u8; IN_LEN] {
        let mut bytes = [0; IN_LEN];
        let is_v6 = self.source.kind == Locator::KIND_UDP_V6;
        bytes[0] = MESSAGE;
        bytes[1] = if self.is_multicast { IS_MULTICAST } else { 0 } | if is_v6 { IS_V6 } else { 0 };
        bytes[2..4].copy_from_slice(&(self.source.port as u16).to_le_bytes());
        bytes[4..6].copy_from_slice(&(self.local.port as u16).to_le_bytes());
        if self.is_multicast {
            bytes[8..12].copy_from_slice(&self.local.address[12..]);
        }
        bytes[12..].copy_from_slice(&self.source.address);
        bytes
    }

    /// Parses a frame into transport metadata and message.
    pub(super) fn parse(frame: &[u8]) -> Option<(RxMeta, &[u8])> {
        let (header, message) = frame.split_at_checked(IN_LEN)?;
        if header[0] != MESSAGE {
            return None;
        }
        let (multicast, is_v6) = (header[1] & IS_MULTICAST != 0, header[1] & IS_V6 != 0);
        let kind = if is_v6 { Locator::KIND_UDP_V6 } else { Locator::KIND_UDP_V4 };
        let mut address = [0; 16];
        address.copy_from_slice(&header[12..]);
        let port = |at: usize| u32::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let source = match port(2) {
            0 => Locator::INVALID,
            port => Locator { kind, port, address },
        };
        let mut group = [0; 16];
        group[12..].copy_from_slice(&header[8..12]);
        let local = Locator { kind, port: port(4), address: group };
        Some((RxMeta { source, local, flow: FlowId::DEFAULT, multicast }, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn udp(host: u8, port: u16) -> Locator {
        Locator::udp_v4(Ipv4Addr::new(192, 0, 2, host), port)
    }

    #[test]
    fn outbound_header_round_trips_and_malformed_one_is_refused() {
        let to = [udp(1, 7410), Locator::udp_v6("2001:db8::1".parse().expect("a valid address"), 7411)];
        let mut frame = vec![0; OUT_LEN + 3];
        Outbound::write(&mut frame, -5, &to);
        frame[OUT_LEN..].copy_from_slice(b"abc");
        let (header, message) = Outbound::parse(&frame).expect("well-formed");
        assert_eq!((header.priority, header.destinations(), message), (-5, &to[..], &b"abc"[..]));
        for (at, value) in [(0, 0), (0, UPDATE), (1, 0), (1, DESTINATIONS_MAX as u8 + 1), (1, 255)] {
            let mut other = frame.clone();
            other[at] = value;
            assert_eq!(Outbound::parse(&other), None, "octet {at} is {value}");
        }
        for len in 0..OUT_LEN {
            assert_eq!(Outbound::parse(&frame[..len]), None);
        }
    }

    #[test]
    fn inbound_header_round_trips() {
        let group = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
        for (local, is_multicast) in [(group, true), (udp(0, 7411), false)] {
            let frame = Inbound { source: udp(9, 5000), local, is_multicast }.to_bytes();
            let (meta, message) = Inbound::parse(&frame).expect("well-formed");
            assert_eq!((meta.source, meta.local.port, meta.multicast), (udp(9, 5000), local.port, is_multicast));
            assert!(message.is_empty() && (!is_multicast || meta.local == group));
        }
        let inbound = Inbound { source: Locator::INVALID, local: group, is_multicast: true }.to_bytes();
        assert_eq!(Inbound::parse(&inbound).expect("well-formed").0.source, Locator::INVALID);
        assert!(Inbound::parse(&[0; IN_LEN]).is_none() && Inbound::parse(&[MESSAGE; IN_LEN - 1]).is_none());
    }
}
