//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), appended to a buffer.
//!
//! A file is a section header, then interface descriptions, packets and statistics of interfaces in
//! any order. Interfaces are numbered from 0 in the order of their descriptions. Numbers are
//! little-endian, time stamps are nanoseconds since 1970. Deliberately not here: reading, name
//! resolution, decryption secrets.

use std::time::Duration;

use crate::packet::LinkType;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Magic number by which a reader detects the byte order.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Option that ends the options of a block.
const END: u16 = 0;
/// Options of a section header.
const USER_APPLICATION: u16 = 4;
/// Options of an interface description.
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const TIME_RESOLUTION: u16 = 9;
/// Options of interface statistics.
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
/// Options of a packet.
const FLAGS: u16 = 2;
/// Octets of a packet block besides those of the packet.
const PACKET_OVERHEAD: usize = 32 + 12;

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by this machine or participant.
    Inbound,
    /// Sent by this machine or participant.
    Outbound,
}

/// Properties of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Number of the interface.
    pub interface: u32,
    /// Time since 1970.
    pub time: Duration,
    /// Length of the packet in octets; more than the octets in the file if these are truncated.
    pub original_len: usize,
    /// Direction of the packet.
    pub direction: Direction,
}

/// Counters of an interface at the end of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Packets that the interface received or sent during the capture.
    pub received: u64,
    /// Packets of these that are not in the file.
    pub dropped: u64,
}

/// Appends a section header, which names the program that writes the file.
pub fn section_header(out: &mut Vec<u8>, application: &str) {
    let block = begin(out, SECTION_HEADER);
    out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    // The length of the section is unknown.
    out.extend((-1i64).to_le_bytes());
    option(out, USER_APPLICATION, application.as_bytes());
    option(out, END, &[]);
    end(out, block);
}

/// Appends the description of an interface.
pub fn interface(out: &mut Vec<u8>, link: LinkType, name: &str, description: &str) {
    let block = begin(out, INTERFACE_DESCRIPTION);
    out.extend((link.number() as u16).to_le_bytes());
    out.extend(0u16.to_le_bytes());
    // No limit of the length of packets.
    out.extend(0u32.to_le_bytes());
    option(out, NAME, name.as_bytes());
    if !description.is_empty() {
        option(out, DESCRIPTION, description.as_bytes());
    }
    // 10^-9 s.
    option(out, TIME_RESOLUTION, &[9]);
    option(out, END, &[]);
    end(out, block);
}

/// Returns the length of the block of a packet of which `len` octets are in the file.
pub fn packet_block_len(len: usize) -> usize {
    PACKET_OVERHEAD + len.next_multiple_of(4)
}

/// Appends a packet, whose octets are given in parts. Appends
/// [`packet_block_len`] octets.
pub fn packet(out: &mut Vec<u8>, info: &PacketInfo, parts: &[&[u8]]) {
    let block = begin(out, ENHANCED_PACKET);
    let len: usize = parts.iter().map(|part| part.len()).sum();
    out.extend(info.interface.to_le_bytes());
    time(out, info.time);
    out.extend((len as u32).to_le_bytes());
    out.extend((info.original_len as u32).to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0; 3][..len.next_multiple_of(4) - len]);
    let flags: u32 = match info.direction {
        Direction::Inbound => 1,
        Direction::Outbound => 2,
    };
    option(out, FLAGS, &flags.to_le_bytes());
    option(out, END, &[]);
    end(out, block);
}

/// Appends the counters of an interface.
pub fn interface_statistics(out: &mut Vec<u8>, interface: u32, at: Duration, counts: &InterfaceCounts) {
    let block = begin(out, INTERFACE_STATISTICS);
    out.extend(interface.to_le_bytes());
    time(out, at);
    option(out, RECEIVED, &counts.received.to_le_bytes());
    option(out, DROPPED, &counts.dropped.to_le_bytes());
    option(out, END, &[]);
    end(out, block);
}

/// Appends a time stamp: first the upper half.
fn time(out: &mut Vec<u8>, time: Duration) {
    let ns = time.as_nanos() as u64;
    out.extend(((ns >> 32) as u32).to_le_bytes());
    out.extend((ns as u32).to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(&[0; 3][..value.len().next_multiple_of(4) - value.len()]);
}

/// Begins a block; returns its position.
fn begin(out: &mut Vec<u8>, kind: u32) -> usize {
    let at = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    at
}

/// Ends a block: its length is before and after its content.
fn end(out: &mut Vec<u8>, block: usize) {
    let len = ((out.len() + 4 - block) as u32).to_le_bytes();
    out.extend(len);
    out[block + 4..block + 8].copy_from_slice(&len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_layout_of_the_draft() {
        let mut out = Vec::new();
        section_header(&mut out, "abc");
        let header = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8],
            &[4, 0, 3, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0, 40, 0, 0, 0],
        ];
        assert_eq!(out, header.concat());
        out.clear();
        interface(&mut out, LinkType::Raw, "shm", "");
        let description = [
            &[1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, b's', b'h', b'm', 0][..],
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0],
        ];
        assert_eq!(out, description.concat());
    }

    #[test]
    fn packet_block_has_its_announced_length_for_every_padding() {
        for len in 0..9 {
            let (mut out, octets) = (Vec::new(), vec![7; len]);
            let (first, second) = octets.split_at(len / 2);
            let time = Duration::new(5, 3);
            let info = PacketInfo { interface: 2, time, original_len: 99, direction: Direction::Outbound };
            packet(&mut out, &info, &[first, second]);
            assert_eq!(out.len(), packet_block_len(len));
            let number = |at: usize| u32::from_le_bytes(out[at..at + 4].try_into().expect("4"));
            let ns = (u64::from(number(12)) << 32) + u64::from(number(16));
            assert_eq!((number(0), number(4), number(8), ns), (6, out.len() as u32, 2, 5_000_000_003));
            assert_eq!((number(20), number(24)), (len as u32, 99));
            assert_eq!(out[28..28 + len], octets);
            assert_eq!(number(out.len() - 12), 2, "direction");
            assert_eq!(number(out.len() - 4), out.len() as u32);
        }
    }

    #[test]
    fn statistics_have_both_counters() {
        let mut out = Vec::new();
        interface_statistics(&mut out, 1, Duration::ZERO, &InterfaceCounts { received: 10, dropped: 3 });
        let counters = [4, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(out[20..44], counters);
        assert_eq!(out.len(), 52);
    }
}
