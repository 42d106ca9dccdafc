//! Damage that no checksum finds: datagrams that are cut, repeated, joined or falsified on their way.
//!
//! Two kinds. [`disfigure`] changes the structure of a message only: its header, and identifiers, endianness and lengths of
//! submessages. RTPS 2.5 §8.3.4.1 makes a receiver drop what it breaks, so it amounts to loss and repetition, and all promises
//! hold. [`flip`] changes any bit. What that yields may be a valid message that says something else, which nothing in RTPS
//! detects; so only the rules of safety hold there ([`crate::check::Rule::is_safety`]).
//!
//! Left out of [`disfigure`], since the receiver cannot notice: other octets in submessages' bodies and flags, lengths that
//! shorten DATA or let it swallow what follows, and the loss of INFO_DST or INFO_TS alone.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::rng::Rng;

/// Octets of a message's header.
const HEADER_LEN: usize = 20;

/// Datagrams that a link remembers, to join them with later ones.
const REMEMBERED: usize = 16;

/// Largest UDP payload.
const DATAGRAM_MAX: usize = 65_507;

const INFO_TS: u8 = 0x09;
const INFO_DST: u8 = 0x0e;
/// A kind of submessage that no specification knows (RTPS 2.5 §8.3.3.2: vendors use 0x80 to 0xff).
const UNKNOWN_KINDS: [u8; 4] = [0x03, 0x7f, 0x80, 0xfe];

/// Datagrams that went over a link, newest last.
#[derive(Debug, Default)]
pub struct Memory(VecDeque<Rc<[u8]>>);

impl Memory {
    /// A datagram passes.
    pub fn remember(&mut self, datagram: &Rc<[u8]>) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Rc::clone(datagram));
    }

    /// An earlier datagram of the same participant.
    fn of_sender(&self, datagram: &[u8], dice: &mut Rng) -> Option<Rc<[u8]>> {
        let is_same = |other: &&Rc<[u8]>| other.len() > HEADER_LEN && other[..HEADER_LEN] == datagram[..HEADER_LEN];
        let same: Vec<_> = self.0.iter().filter(is_same).collect();
        (!same.is_empty()).then(|| Rc::clone(same[dice.below(same.len() as u64) as usize]))
    }
}

/// The datagram with its structure damaged.
#[must_use]
pub fn disfigure(datagram: &[u8], memory: &Memory, dice: &mut Rng) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    let parts = submessages(datagram);
    if parts.is_empty() {
        return bytes;
    }
    let (start, end) = parts[dice.below(parts.len() as u64) as usize];
    // Without its destination or its time, what follows would mean something else.
    let is_context = matches!(bytes[start], INFO_TS | INFO_DST);
    match dice.below(8) {
        0 => bytes.truncate(dice.below(bytes.len() as u64) as usize),
        // Magic, or major version: no RTPS message.
        1 => bytes[dice.below(5) as usize] ^= 1 << dice.below(8),
        // The vendor's part of the GUID prefix: the participant is unknown.
        2 => bytes[8 + dice.below(4) as usize] ^= 1 << dice.below(8),
        3 if !is_context => bytes[start] = *dice.pick(&UNKNOWN_KINDS),
        // The length is of this endianness too, so that it reaches beyond the end.
        4 if !is_context && beyond(&bytes, start) => bytes[start + 1] ^= 1,
        5 if !is_context => bytes[start + 2..start + 4].fill(0xff),
        6 => {
            // Twice, and something unknown in between.
            let mut again = unknown(dice);
            again.extend_from_slice(&datagram[start..end]);
            bytes.splice(end..end, again);
        }
        _ => {
            let Some(earlier) = memory.of_sender(datagram, dice) else { return bytes };
            // To all again, as at the beginning of a message.
            bytes.extend_from_slice(&[INFO_DST, 1, 12, 0]);
            bytes.extend_from_slice(&[0; 12]);
            bytes.extend_from_slice(&earlier[HEADER_LEN..]);
        }
    }
    bytes.truncate(DATAGRAM_MAX);
    bytes
}

/// The datagram with some bits changed, wherever they are.
#[must_use]
pub fn flip(datagram: &[u8], dice: &mut Rng) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    for _ in 0..dice.between(1, 4) {
        let at = dice.below(bytes.len().max(1) as u64) as usize;
        if let Some(octet) = bytes.get_mut(at) {
            *octet ^= 1 << dice.below(8);
        }
    }
    bytes
}

/// Where submessages begin and end.
fn submessages(datagram: &[u8]) -> Vec<(usize, usize)> {
    let (mut all, mut start) = (Vec::new(), HEADER_LEN);
    while start + 4 <= datagram.len() {
        let end = start + 4 + length(datagram, start, datagram[start + 1] & 1 == 1);
        // Zero: to the end of the message.
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

/// Whether a submessage reaches beyond the end of the message when its length is read the other way.
fn beyond(datagram: &[u8], start: usize) -> bool {
    start + 4 + length(datagram, start, datagram[start + 1] & 1 == 0) > datagram.len()
}

/// A submessage that receivers pass over.
fn unknown(dice: &mut Rng) -> Vec<u8> {
    let len = 4 * dice.below(8) as u8;
    let mut bytes = vec![*dice.pick(&UNKNOWN_KINDS), dice.below(256) as u8 | 1, len, 0];
    bytes.extend((0..len).map(|_| dice.below(256) as u8));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, INFO_TS and a HEARTBEAT.
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
        let (message, mut dice, mut memory) = (message(), Rng::new(1), Memory::default());
        memory.remember(&message.clone().into());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let damaged = disfigure(&message, &memory, &mut dice);
            let body = &message[36..];
            let is_whole = damaged.windows(body.len()).any(|window| window == body);
            assert!(is_whole || damaged.len() < message.len(), "{damaged:?}");
            seen.insert(damaged);
        }
        assert!(seen.len() > 100);
    }
}
