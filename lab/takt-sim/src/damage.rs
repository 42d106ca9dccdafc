//! Damage that no checksum detects: datagrams that are truncated, repeated, joined or falsified in
//! transit.
//!
//! There are two kinds. [`damage_structure`] changes only the structure of a message: its header,
//! and identifiers, endianness and lengths of submessages. RTPS 2.5 §8.3.4.1 requires a receiver to
//! drop the broken part, so that the effect is loss and repetition, and all rules hold. [`flip`]
//! changes any bit. The result may be a valid message with another meaning, which RTPS cannot
//! detect. Only the safety rules hold then ([`crate::check::Rule::is_safety`]).
//!
//! [`damage_structure`] omits damage that a receiver cannot detect: other octets in bodies and
//! flags of submessages, lengths that shorten DATA or extend it over the following submessage, and
//! the loss of INFO_DST or INFO_TS alone.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::rng::Rng;

/// Length of a message header in octets.
const HEADER_LEN: usize = 20;

/// Number of datagrams that a link remembers in order to join them with later ones.
const RECENT_MAX: usize = 16;

/// Largest UDP payload.
const DATAGRAM_MAX: usize = 65_507;

const INFO_TS: u8 = 0x09;
const INFO_DST: u8 = 0x0e;
/// Submessage kinds that no specification defines (RTPS 2.5 §8.3.3.2: vendors use 0x80 to 0xff).
const UNKNOWN_KINDS: [u8; 4] = [0x03, 0x7f, 0x80, 0xfe];

/// Datagrams that have passed a link, newest last.
#[derive(Debug, Default)]
pub struct RecentDatagrams(VecDeque<Rc<[u8]>>);

impl RecentDatagrams {
    /// Records a datagram that passes.
    pub fn push(&mut self, datagram: &Rc<[u8]>) {
        if self.0.len() == RECENT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Rc::clone(datagram));
    }

    /// Returns an earlier datagram of the same participant.
    fn of_sender(&self, datagram: &[u8], rng: &mut Rng) -> Option<Rc<[u8]>> {
        let is_same = |other: &&Rc<[u8]>| other.len() > HEADER_LEN && other[..HEADER_LEN] == datagram[..HEADER_LEN];
        let same: Vec<_> = self.0.iter().filter(is_same).collect();
        (!same.is_empty()).then(|| Rc::clone(same[rng.below(same.len() as u64) as usize]))
    }
}

/// Returns the datagram with a damaged structure.
#[must_use]
pub fn damage_structure(datagram: &[u8], memory: &RecentDatagrams, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    let parts = submessages(datagram);
    if parts.is_empty() {
        return bytes;
    }
    let (start, end) = parts[rng.below(parts.len() as u64) as usize];
    // Without their destination or timestamp, the following submessages would have another meaning.
    let is_context = matches!(bytes[start], INFO_TS | INFO_DST);
    match rng.below(8) {
        0 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        // With another magic or major version the datagram is not an RTPS message.
        1 => bytes[rng.below(5) as usize] ^= 1 << rng.below(8),
        // With another vendor part of the GUID prefix the participant is unknown.
        2 => bytes[8 + rng.below(4) as usize] ^= 1 << rng.below(8),
        3 if !is_context => bytes[start] = *rng.pick(&UNKNOWN_KINDS),
        // The length has this endianness too, so that it then reaches beyond the end.
        4 if !is_context && beyond(&bytes, start) => bytes[start + 1] ^= 1,
        5 if !is_context => bytes[start + 2..start + 4].fill(0xff),
        6 => {
            // Twice, with an unknown submessage in between.
            let mut again = unknown(rng);
            again.extend_from_slice(&datagram[start..end]);
            bytes.splice(end..end, again);
        }
        _ => {
            let Some(earlier) = memory.of_sender(datagram, rng) else { return bytes };
            // Resets the destination to all participants, as at the beginning of a message.
            bytes.extend_from_slice(&[INFO_DST, 1, 12, 0]);
            bytes.extend_from_slice(&[0; 12]);
            bytes.extend_from_slice(&earlier[HEADER_LEN..]);
        }
    }
    bytes.truncate(DATAGRAM_MAX);
    bytes
}

/// Returns the datagram with some bits changed at any position.
#[must_use]
pub fn flip(datagram: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    for _ in 0..rng.between(1, 4) {
        let at = rng.below(bytes.len().max(1) as u64) as usize;
        if let Some(octet) = bytes.get_mut(at) {
            *octet ^= 1 << rng.below(8);
        }
    }
    bytes
}

/// Returns the start and end offsets of the submessages.
fn submessages(datagram: &[u8]) -> Vec<(usize, usize)> {
    let (mut all, mut start) = (Vec::new(), HEADER_LEN);
    while start + 4 <= datagram.len() {
        let end = start + 4 + length(datagram, start, datagram[start + 1] & 1 == 1);
        // A length of zero extends to the end of the message.
        let end = if end == start + 4 { datagram.len() } else { end.min(datagram.len()) };
        all.push((start, end));
        start = end;
    }
    all
}

fn length(datagram: &[u8], start: usize, is_little: bool) -> usize {
    let octets = [datagram[start + 2], datagram[start + 3]];
    usize::from(if is_little { u16::from_le_bytes(octets) } else { u16::from_be_bytes(octets) })
}

/// Reports whether a submessage with the other endianness would reach beyond the end of the
/// message.
fn beyond(datagram: &[u8], start: usize) -> bool {
    start + 4 + length(datagram, start, datagram[start + 1] & 1 == 0) > datagram.len()
}

/// Returns a submessage that receivers skip.
fn unknown(rng: &mut Rng) -> Vec<u8> {
    let len = 4 * rng.below(8) as u8;
    let mut bytes = vec![*rng.pick(&UNKNOWN_KINDS), rng.below(256) as u8 | 1, len, 0];
    bytes.extend((0..len).map(|_| rng.below(256) as u8));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header, INFO_TS and a HEARTBEAT.
    fn message() -> Vec<u8> {
        let mut bytes = b"RTPS\x02\x05\x01\x7a\x01\x7a\x5e\xed\x00\x00\x00\x00\x00\x01\x00\x01".to_vec();
        bytes.extend_from_slice(&[INFO_TS, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend_from_slice(&[0x07, 1, 28, 0]);
        bytes.extend_from_slice(&[9; 28]);
        bytes
    }

    #[test]
    fn submessages_are_found_by_their_lengths() {
        assert_eq!(submessages(&message()), [(20, 32), (32, 64)]);
        assert_eq!(submessages(&message()[..10]), []);
    }

    #[test]
    fn damaged_structure_keeps_the_bodies_of_submessages() {
        let (message, mut rng, mut memory) = (message(), Rng::new(1), RecentDatagrams::default());
        memory.push(&message.clone().into());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let damaged = damage_structure(&message, &memory, &mut rng);
            let body = &message[36..];
            let is_whole = damaged.windows(body.len()).any(|window| window == body);
            assert!(is_whole || damaged.len() < message.len(), "{damaged:?}");
            seen.insert(damaged);
        }
        assert!(seen.len() > 100);
    }
}
