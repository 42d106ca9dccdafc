//! State of a writer and a reader: their match as each side sees it, and the samples that have
//! arrived.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::ChangeKind;
use takt_wire::Guid;

use super::alter::ever_matched;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;
use crate::model;
use crate::partitions;
use crate::scenario::FilterPlan;

/// A writer and a reader of which at least one has known the other.
#[derive(Debug, Default)]
pub(super) struct Pair {
    known_to_writer: bool,
    known_to_reader: bool,
    /// Number up to which samples need not arrive, since they are older than the match. `None`
    /// until both sides know of it.
    pub(super) floor: Option<u32>,
    /// Number of changes written when both sides knew of the match.
    pub(super) joined: u32,
    /// Time at which the writer learned of the match. The next field is the time at which both
    /// sides knew of it.
    pub(super) writer_since: Nanos,
    pub(super) since: Nanos,
    reader: EndpointId,
    /// Filters that the reader has had in this match.
    filters: Vec<FilterPlan>,
    /// Partition of both endpoints.
    partition: u8,
    /// First sample that has arrived in this match and in no earlier one.
    pub(super) first: Option<u32>,
    /// Whether the reader has lost the writer before. Samples up to `former` may then belong to the
    /// former match: they were in the reader's history when it discovered the writer again.
    rejoins: bool,
    former: u32,
    /// Whether the writer has unmatched the reader, which does not know it and still receives the
    /// samples in transit.
    pub(super) unmatched_by_writer: bool,
    /// Newest sample that the reader has received since it knows the writer. A writer that matches
    /// again starts after it.
    received_since_match: u32,
    /// Number of the newest sample that has arrived.
    pub(super) last: u32,
    /// Number of the newest sample that has arrived, by instance.
    last_of: BTreeMap<u8, u32>,
    /// Numbers of all samples that have arrived.
    pub(super) arrived: Numbers,
    /// Number of samples that were written while the reader's process was stalled. The process then
    /// received all of them before its first take.
    pub(super) written_during_stall: u32,
}

/// Set of sample numbers, as a bitmap.
#[derive(Debug, Default)]
pub(super) struct Numbers(Vec<u64>);

impl Numbers {
    /// Inserts a number. Returns false if it is already present.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Pair {
    pub(super) fn is_matched(&self) -> bool {
        self.known_to_writer && self.known_to_reader
    }

    /// Reports whether the reader considers the writer as matched; the writer may not know of it.
    pub(super) fn is_known_to_reader(&self) -> bool {
        self.known_to_reader
    }

    /// Reports whether this sample of the writer arrives in a complete match. Excludes samples
    /// older than the match, unless an older one has arrived, and history of instances that had
    /// ended for good.
    pub(super) fn is_promised(&self, writer: &Endpoint, number: u32) -> bool {
        let change = |number: u32| writer.written[number as usize - 1];
        let ends = |later: u32| {
            change(later).kind == ChangeKind::DisposedUnregistered && change(later).instance == change(number).instance
        };
        let is_wanted = self.filters.iter().all(|filter| filter.passes(number, change(number).instance));
        let is_for_it = change(number).to.is_none_or(|only| only == self.reader);
        let shares_partition = partitions::have_common(writer.written_in[number as usize - 1], self.partition);
        let is_data = change(number).kind == ChangeKind::Alive && is_wanted && is_for_it && shares_partition;
        let is_after = |floor: Option<u32>| floor.is_some_and(|floor| number > floor);
        is_data && (is_after(self.floor) || is_after(self.first)) && !(number + 1..=self.joined).any(ends)
    }

    /// Records the arrival of a change; `by_instance` if it may follow newer ones of other
    /// instances. Returns the newest earlier one (of its instance if so), or the newer one that it
    /// must not follow.
    pub(super) fn advance(&mut self, number: u32, instance: u8, by_instance: bool) -> Result<u32, u32> {
        let of_instance = self.last_of.insert(instance, number).unwrap_or(0);
        let of_all = self.last;
        if !self.unmatched_by_writer && number > self.former {
            self.first.get_or_insert(number);
        }
        self.last = of_all.max(number);
        self.received_since_match = self.received_since_match.max(number);
        let last = if by_instance { of_instance } else { of_all };
        if number < last { Err(last) } else { Ok(last) }
    }

    /// Adds a filter of the reader. Only samples that pass all filters are then guaranteed, since
    /// the writer uses a former one for a while.
    pub(super) fn add_filter(&mut self, filter: FilterPlan) {
        self.filters.push(filter);
    }

    /// Handles a partition change of the reader: earlier samples are no longer guaranteed.
    pub(super) fn change_partition(&mut self, partition: u8, written: u32) {
        self.partition = partition;
        self.first = None;
        self.former = written;
        self.floor = self.floor.map(|_| written);
    }

    /// Handles the end of the match at one side: later samples belong to another match. A reader
    /// that stays matched still receives no duplicates and no reordered samples.
    pub(super) fn unmatch(&mut self, by_writer: bool) {
        if !by_writer {
            self.received_since_match = 0;
        }
        let side = if by_writer { &mut self.known_to_writer } else { &mut self.known_to_reader };
        if std::mem::take(side) {
            self.rejoins |= !by_writer;
            self.unmatched_by_writer = by_writer && self.known_to_reader;
            self.floor = None;
            self.first = None;
            if !self.unmatched_by_writer {
                self.last = 0;
                self.last_of.clear();
                self.arrived.clear();
            }
        }
    }
}

impl Checker {
    /// Checks and records the endpoints that an endpoint is matched with. `changes` is the increase
    /// of its total match count since the last call. The matches of an endpoint that is not
    /// entitled are not checked.
    pub fn matched(&mut self, at: Nanos, id: EndpointId, peers: &[Guid], changes: u32) {
        let Endpoint { is_writer, is_entitled, guid: own, .. } = self.endpoints[id as usize];
        self.must_not_be_ignored(at, id, peers);
        let mut now = BTreeSet::new();
        for guid in peers.iter().filter(|guid| is_entitled || guid.prefix == own.prefix) {
            match self.by_guid.get(guid) {
                Some(&peer) => _ = now.insert(peer),
                None => self.report(at, Rule::Matching, format!("endpoint {id} is matched with nobody's {guid:?}")),
            }
        }
        let key = |peer: EndpointId| if is_writer { (id, peer) } else { (peer, id) };
        let side = |pair: &Pair| if is_writer { pair.known_to_writer } else { pair.known_to_reader };
        let is_own =
            |(writer, reader): &(EndpointId, EndpointId)| if is_writer { *writer == id } else { *reader == id };
        let new_matches = now.iter().filter(|&&peer| !self.pairs.get(&key(peer)).is_some_and(side)).count();
        // An endpoint that disappeared and reappeared between two calls is a new match too, and the
        // status does not identify it.
        let unseen = is_entitled && changes as usize > new_matches;
        for (_, pair) in self.pairs.iter_mut().filter(|(key, _)| is_own(key)) {
            let stays = |pair: &Pair| side(pair) && !unseen;
            if !stays(pair) {
                pair.unmatch(is_writer);
            }
        }
        let gone =
            |key: &(EndpointId, EndpointId)| is_own(key) && !now.contains(if is_writer { &key.1 } else { &key.0 });
        let mut lost = None;
        for (key, pair) in self.pairs.iter_mut().filter(|(key, _)| gone(key)) {
            let peer = if is_writer { key.1 } else { key.0 };
            lost = lost.or((side(pair) && self.endpoints[peer as usize].alive).then_some(peer));
            pair.unmatch(is_writer);
        }
        if let Some(peer) = lost.filter(|peer| self.sound && !self.may_unmatch(id) && !self.may_unmatch(*peer)) {
            self.report(at, Rule::Lost, format!("endpoint {id} takes {peer} for gone"));
        }
        for peer in now {
            self.match_with(at, key(peer), is_writer);
        }
    }

    fn match_with(&mut self, at: Nanos, key: (EndpointId, EndpointId), is_writer: bool) {
        if let Err((rule, text)) = self.check_grants(key.0, key.1) {
            return self.report(at, rule, text);
        }
        let (writer, reader) = (&self.endpoints[key.0 as usize], &self.endpoints[key.1 as usize]);
        let fits = writer.is_writer && !reader.is_writer && writer.topic == reader.topic;
        if !fits || !ever_matched(writer, reader) {
            self.report(at, Rule::Matching, format!("writer {} and reader {} must not match", key.0, key.1));
            return;
        }
        let pair = self.pairs.entry(key).or_default();
        let side = if is_writer { &mut pair.known_to_writer } else { &mut pair.known_to_reader };
        let is_new = !std::mem::replace(side, true);
        if is_new && !is_writer {
            self.partial_samples.reader_matched(at, key);
        }
        if is_new && is_writer {
            pair.writer_since = at;
        }
        if is_new && !is_writer && pair.rejoins {
            (pair.first, pair.former) = (None, writer.written.len() as u32);
        }
        pair.reader = key.1;
        pair.filters.clear();
        pair.filters.extend(reader.policies().filter_map(|qos| qos.filter));
        if pair.is_matched() && pair.floor.is_none() {
            pair.since = at;
            pair.joined = writer.written.len() as u32;
            let reached = if pair.unmatched_by_writer { pair.received_since_match } else { 0 };
            // Samples that were written in another partition are not history here.
            let floor = model::floor(&writer.qos, &reader.qos, pair.joined);
            pair.floor = Some(if writer.has_moved() || reader.has_moved() { pair.joined } else { floor.max(reached) });
            pair.partition = reader.qos.partition;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Change;
    use crate::scenario::QosPlan;
    use takt_wire::{EntityId, GuidPrefix, Timestamp};

    /// Seed 230071: the first sample that was taken after a match had ended was counted as the
    /// first one of the next match.
    #[test]
    fn samples_of_a_former_match_do_not_count_in_the_next() {
        for is_taken_before in [true, false] {
            let mut checker = Checker::default();
            let reliable = QosPlan { reliable: true, ..QosPlan::default() };
            let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
            let writer = checker.created(guid(1), 0, reliable, true);
            let reader = checker.created(guid(2), 0, reliable, false);
            let write = |checker: &mut Checker| {
                let change = Change { instance: 0, kind: ChangeKind::Alive, to: None, len: 8 };
                checker.wrote(0, Timestamp::ZERO, writer, change);
            };
            let take = |checker: &mut Checker, number| {
                let pair = checker.pairs.get_mut(&(writer, reader)).expect("they have met");
                pair.advance(number, 0, false).expect("it is in order");
            };
            checker.matched(0, writer, &[guid(2)], 1);
            checker.matched(0, reader, &[guid(1)], 1);
            (0..3).for_each(|_| write(&mut checker));
            take(&mut checker, 1);
            checker.matched(0, writer, &[], 0);
            checker.matched(0, reader, &[], 0);
            if is_taken_before {
                take(&mut checker, 2);
            }
            write(&mut checker);
            checker.matched(0, reader, &[guid(1)], 1);
            checker.matched(0, writer, &[guid(2)], 1);
            if !is_taken_before {
                take(&mut checker, 2);
            }
            assert_eq!(checker.newest_owed((writer, reader)), None, "taken before the match: {is_taken_before}");
            write(&mut checker);
            assert_eq!(checker.newest_owed((writer, reader)), Some(5));
        }
    }
}
