//! Stream of announcements of one SEDP writer to one participant: the changes of the writer, and
//! changes that the interceptor inserted.
//!
//! A sequence number that a receiver has acknowledged cannot carry another change later. A
//! withdrawal or a late announcement is therefore a change of its own, with the number after the
//! last one that the writer has used. All later numbers of the writer are increased by one toward
//! this receiver: in DATA, DATA_FRAG, HEARTBEAT, HEARTBEAT_FRAG and GAP. ACKNACK and NACK_FRAG of
//! the receiver are decreased. *Own* numbers are those of the writer, *shown* numbers those that
//! the receiver sees.
//!
//! Invariants: `shown` is strictly increasing and never yields the number of an insertion;
//! `own_base` is its inverse, rounded down. A stream without insertions changes nothing.

use serde::{Deserialize, Serialize};
use takt_wire::{SequenceNumber, SequenceNumberSet};

use super::sent_numbers::SentNumbers;

/// A change that the interceptor inserted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Insertion {
    /// Own number after which it is inserted.
    after: i64,
    /// Content; `None` once the receiver has acknowledged it.
    change: Option<Change>,
}

/// Content of an insertion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Change {
    /// Disposal of an endpoint.
    Disposal(#[serde(with = "octets")] takt_wire::Guid),
    /// An announcement, with its encapsulation header.
    Announcement(Vec<u8>),
}

/// State of a stream from a writer to a receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    /// Own numbers whose changes were sent to the receiver.
    #[serde(rename = "passed")]
    pub(super) sent: SentNumbers,
    /// First own number that the writer has, by its HEARTBEAT.
    pub(super) first: i64,
    /// Count of the writer's last HEARTBEAT.
    pub(super) count: i32,
    /// Number of HEARTBEATs that the interceptor has added.
    heartbeats: i32,
    insertions: Vec<Insertion>,
}

/// Serialization of a GUID as its octets.
mod octets {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use takt_wire::Guid;

    pub(super) fn serialize<S: Serializer>(guid: &Guid, to: S) -> Result<S::Ok, S::Error> {
        guid.to_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Guid, D::Error> {
        Deserialize::deserialize(from).map(Guid::from_bytes)
    }
}

impl Stream {
    /// Reports whether the stream changes nothing.
    pub(super) fn is_identity(&self) -> bool {
        self.insertions.is_empty() && self.heartbeats == 0
    }

    /// Returns the number of insertions.
    pub(super) fn len(&self) -> usize {
        self.insertions.len()
    }

    /// Returns the shown number of the insertion `index`.
    fn number(&self, index: usize) -> i64 {
        self.insertions[index].after.saturating_add(1).saturating_add_unsigned(index as u64)
    }

    fn before(&self, own: i64) -> usize {
        self.insertions.partition_point(|insertion| insertion.after < own)
    }

    /// Returns the shown number of an own number.
    pub(super) fn shown(&self, own: i64) -> i64 {
        own.saturating_add_unsigned(self.before(own) as u64)
    }

    /// Returns the last shown number if `last` is the last own number.
    pub(super) fn shown_last(&self, last: i64) -> i64 {
        last.saturating_add_unsigned(self.insertions.partition_point(|insertion| insertion.after <= last) as u64)
    }

    /// Reports whether there is an insertion after `from` and before `to`, both own numbers.
    pub(super) fn parts(&self, from: i64, to: i64) -> bool {
        self.before(from) != self.before(to)
    }

    /// Returns the lowest own number whose shown number is at least `shown`.
    pub(super) fn own_base(&self, shown: i64) -> i64 {
        let before = (0..self.insertions.len()).take_while(|index| self.number(*index) < shown).count();
        shown.saturating_sub_unsigned(before as u64)
    }

    /// Returns the own number of a shown number, or the index of the insertion that has it.
    pub(super) fn own(&self, shown: i64) -> Result<i64, usize> {
        match (0..self.insertions.len()).find(|index| self.number(*index) == shown) {
            Some(index) => Err(index),
            None => Ok(self.own_base(shown)),
        }
    }

    /// Inserts a change after the last own number and returns its shown number.
    pub(super) fn insert(&mut self, last: i64, change: Change) -> i64 {
        let after = self.insertions.last().map_or(last, |insertion| last.max(insertion.after));
        self.insertions.push(Insertion { after, change: Some(change) });
        self.number(self.insertions.len() - 1)
    }

    /// Records that the receiver has all changes before the shown number `base`.
    pub(super) fn acknowledge(&mut self, base: i64) {
        for index in 0..self.insertions.len() {
            if self.number(index) < base {
                self.insertions[index].change = None;
            }
        }
    }

    /// Returns the shown number and the content of an insertion; `None` for acknowledged content.
    pub(super) fn insertion(&self, index: usize) -> (i64, Option<&Change>) {
        (self.number(index), self.insertions[index].change.as_ref())
    }

    /// Returns the indices of insertions that are not acknowledged.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.insertions.len()).filter(|index| self.insertions[*index].change.is_some()).collect()
    }

    /// Returns the total length in octets of insertions that are not acknowledged.
    pub(super) fn open_len(&self) -> usize {
        self.insertions
            .iter()
            .map(|insertion| match &insertion.change {
                Some(Change::Announcement(payload)) => payload.len(),
                _ => 0,
            })
            .sum()
    }

    /// Returns the count of the interceptor's next HEARTBEAT.
    pub(super) fn next_count(&mut self) -> i32 {
        self.heartbeats = self.heartbeats.wrapping_add(1);
        self.count.wrapping_add(self.heartbeats)
    }

    /// Returns the shown count of a HEARTBEAT of the writer.
    pub(super) fn shown_count(&mut self, count: i32) -> i32 {
        self.count = count;
        count.wrapping_add(self.heartbeats)
    }

    /// Translates an ACKNACK for the writer. Returns its base, the bits of the own numbers in as
    /// many words as before, and the indices of the insertions that the receiver requests.
    pub(super) fn own_set(&self, shown: &SequenceNumberSet) -> (i64, [u32; 8], Vec<usize>) {
        let base = self.own_base(shown.base().0);
        let (mut words, mut insertions) = ([0; 8], Vec::new());
        for number in shown.iter() {
            match self.own(number.0) {
                Err(index) => insertions.push(index),
                // Own numbers are closer together than shown ones, so they fit into the window.
                Ok(own) => {
                    let bit = (own - base).clamp(0, 255) as usize;
                    words[bit / 32] |= 0x8000_0000 >> (bit % 32);
                }
            }
        }
        (base, words, insertions)
    }

    /// Translates a GAP of the writer to shown numbers: intervals and sets without the numbers of
    /// insertions.
    pub(super) fn shown_gaps(&self, start: i64, list: &SequenceNumberSet) -> Vec<(i64, SequenceNumberSet)> {
        let base = list.base().0;
        let mut gaps = Vec::new();
        // The interval is split at each insertion.
        let mut from = start;
        while from < base {
            let index = self.before(from);
            // The insertion after `from`, if it lies in the interval.
            let next = self.insertions.get(index).map_or(base, |insertion| insertion.after.saturating_add(1).min(base));
            gaps.push((
                self.shown(from),
                SequenceNumberSet::new(SequenceNumber(self.shown(next - 1).saturating_add(1))),
            ));
            from = next;
        }
        // The list becomes one set for each range without an insertion.
        let mut open: Option<(usize, SequenceNumberSet)> = None;
        for number in list.iter() {
            let shown = SequenceNumber(self.shown(number.0));
            match &mut open {
                Some((before, set)) if *before == self.before(number.0) => _ = set.insert(shown),
                _ => {
                    gaps.extend(open.take().map(|(_, set)| (set.base().0, set)));
                    let mut set = SequenceNumberSet::new(shown);
                    set.insert(shown);
                    open = Some((self.before(number.0), set));
                }
            }
        }
        gaps.extend(open.map(|(_, set)| (set.base().0, set)));
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> Change {
        Change::Announcement(vec![0; 8])
    }

    /// Returns every placement of up to three insertions among eight numbers.
    fn streams() -> Vec<Stream> {
        let mut all = vec![Stream::default()];
        for a in 0..8 {
            for b in a..8 {
                for c in b..8 {
                    let mut stream = Stream::default();
                    for after in [a, b, c] {
                        stream.insert(after, change());
                        all.push(stream.clone());
                    }
                }
            }
        }
        all
    }

    #[test]
    fn own_and_shown_numbers_are_inverse_and_skip_insertions() {
        for stream in streams() {
            let inserted: Vec<i64> = (0..stream.len()).map(|index| stream.number(index)).collect();
            assert!(inserted.is_sorted_by(|a, b| a < b), "{stream:?}");
            for own in 1..20 {
                let shown = stream.shown(own);
                assert!(!inserted.contains(&shown) && shown < stream.shown(own + 1), "{stream:?} {own}");
                assert_eq!((stream.own(shown), stream.own_base(shown)), (Ok(own), own), "{stream:?}");
            }
            for (index, number) in inserted.iter().enumerate() {
                assert_eq!(stream.own(*number), Err(index));
                assert!(stream.shown(stream.own_base(*number)) > *number, "{stream:?}");
            }
        }
    }

    #[test]
    fn acknack_requests_own_numbers_and_insertions() {
        for stream in streams() {
            for base in 1..12 {
                let mut set = SequenceNumberSet::new(SequenceNumber(base));
                for number in base..base + 9 {
                    set.insert(SequenceNumber(number));
                }
                let (own_base, words, insertions) = stream.own_set(&set);
                let requested: Vec<i64> = (0..256)
                    .filter(|bit| words[bit / 32] & (0x8000_0000 >> (bit % 32)) != 0)
                    .map(|bit| own_base + bit as i64)
                    .collect();
                let expected: Vec<i64> = (base..base + 9).filter_map(|shown| stream.own(shown).ok()).collect();
                assert_eq!(requested, expected, "{stream:?} {base}");
                assert_eq!(requested.len() + insertions.len(), 9);
            }
        }
    }

    #[test]
    fn gaps_cover_the_own_numbers_and_no_insertion() {
        for stream in streams() {
            for (start, base, listed) in
                [(1, 1, [1, 3, 5]), (1, 6, [6, 7, 9]), (3, 5, [6, 8, 10]), (2, 9, [10, 11, 12])]
            {
                let mut list = SequenceNumberSet::new(SequenceNumber(base));
                for number in listed {
                    assert!(list.insert(SequenceNumber(number)));
                }
                let mut gapped = Vec::new();
                for (from, set) in stream.shown_gaps(start, &list) {
                    gapped.extend(from..set.base().0);
                    gapped.extend(set.iter().map(|number| number.0));
                }
                let own: Vec<i64> = (start..base).chain(listed).map(|own| stream.shown(own)).collect();
                assert_eq!(gapped, own, "{stream:?} {start} {base}");
            }
        }
    }

    #[test]
    fn acknowledged_insertions_lose_their_content_and_keep_their_number() {
        let mut stream = Stream::default();
        assert!(stream.is_identity());
        assert_eq!((stream.insert(4, change()), stream.insert(4, change()), stream.insert(6, change())), (5, 6, 9));
        assert_eq!((stream.open(), stream.open_len()), (vec![0, 1, 2], 24));
        stream.acknowledge(6);
        assert_eq!((stream.open(), stream.insertion(0), stream.shown(5)), (vec![1, 2], (5, None), 7));
        assert_eq!((stream.shown_last(4), stream.shown_last(5), stream.shown_last(6)), (6, 7, 9));
        assert_eq!((stream.parts(4, 5), stream.parts(5, 6), stream.parts(5, 7)), (true, false, true));
    }

    #[test]
    fn counts_of_heartbeats_increase_over_both_senders() {
        let mut stream = Stream::default();
        assert_eq!((stream.shown_count(7), stream.next_count(), stream.next_count()), (7, 8, 9));
        assert_eq!((stream.shown_count(8), stream.next_count()), (10, 11));
    }
}
