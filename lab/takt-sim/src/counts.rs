//! Counts of submessages, by which receivers detect duplicates (RTPS 2.5 §8.3.8).

use takt_wire::Endianness;
use takt_wire::message::MessageView;

pub(crate) const ACKNACK: u8 = 0x06;
pub(crate) const HEARTBEAT: u8 = 0x07;
pub(crate) const NACK_FRAG: u8 = 0x12;
pub(crate) const HEARTBEAT_FRAG: u8 = 0x13;

/// Returns the offset of the count in the body of a submessage of this kind; `None` for a kind
/// without a count.
pub(crate) fn place(kind: u8, body: &[u8], endianness: Endianness) -> Option<usize> {
    // The count follows the bitmap of a set, whose length in bits precedes it.
    let behind_set = |at: usize| at + 4 + 4 * (word(body, at, endianness) as u32).div_ceil(32) as usize;
    match kind {
        ACKNACK => Some(behind_set(16)),
        HEARTBEAT => Some(24),
        NACK_FRAG => Some(behind_set(20)),
        HEARTBEAT_FRAG => Some(20),
        _ => None,
    }
}

/// Writes a count at its offset.
pub(crate) fn write(body: &mut [u8], at: usize, endianness: Endianness, count: i32) {
    let octets = if endianness == Endianness::Big { count.to_be_bytes() } else { count.to_le_bytes() };
    body[at..at + 4].copy_from_slice(&octets);
}

/// Adds to each count of a datagram, as if its sender had already sent this number of submessages
/// of each kind.
pub fn advance(datagram: &mut [u8], by: i32) {
    let before = datagram.to_vec();
    let Ok(message) = MessageView::parse(&before) else { return };
    let mut submessages = message.submessages();
    while let Some(Ok(envelope)) = submessages.next_envelope() {
        let (endianness, kind) = (envelope.endianness(), envelope.id());
        let body = &mut datagram[envelope.range()][4..];
        if let Some(at) = place(kind, body, endianness) {
            let count = word(body, at, endianness).wrapping_add(by);
            write(body, at, endianness, count);
        }
    }
}

fn word(body: &[u8], at: usize, endianness: Endianness) -> i32 {
    let octets = [body[at], body[at + 1], body[at + 2], body[at + 3]];
    if endianness == Endianness::Big { i32::from_be_bytes(octets) } else { i32::from_le_bytes(octets) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_changes_only_counts_of_heartbeats_and_acknacks() {
        let mut datagram = b"RTPS\x02\x05\x01\x7a".to_vec();
        datagram.extend_from_slice(&[7; 12]);
        let heartbeat = datagram.len() + 4;
        datagram.extend_from_slice(&[HEARTBEAT, 1, 28, 0]);
        datagram.extend_from_slice(&[9; 24]);
        datagram.extend_from_slice(&i32::MAX.to_le_bytes());
        let acknack = datagram.len() + 4;
        datagram.extend_from_slice(&[ACKNACK, 0, 0, 28]);
        datagram.extend_from_slice(&[0; 16]);
        datagram.extend_from_slice(&[0, 0, 0, 32, 1, 2, 3, 4]);
        datagram.extend_from_slice(&5_i32.to_be_bytes());
        let before = datagram.clone();
        advance(&mut datagram, 1);
        assert_eq!(datagram[heartbeat + 24..heartbeat + 28], i32::MIN.to_le_bytes());
        assert_eq!(datagram[acknack + 24..acknack + 28], 6_i32.to_be_bytes());
        advance(&mut datagram, -1);
        assert_eq!(datagram, before);
    }
}
