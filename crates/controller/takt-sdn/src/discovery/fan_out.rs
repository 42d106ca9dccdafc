//! Multicast groups by which a writer may send its samples.
//!
//! A reader announces groups of its own, or its participant does (RTPS 2.5 §8.5.3.2,
//! `defaultMulticastLocatorList`). The writer alone decides which of its readers it serves by a
//! group; the decision may change with each reader that it matches.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use takt_wire::{Guid, Locator};

use super::Pair;
use super::directory::Data;
use super::interceptor::{Interceptor, PairDecision};
use super::rewriting::Wanted;

impl Interceptor {
    /// Returns the groups of a reader, or else those of its participant.
    pub(super) fn groups_of(&self, reader: Guid) -> &[Locator] {
        let own = match self.directory.endpoints.get(&reader).map(|endpoint| &endpoint.data) {
            Some(Data::Reader(data)) => data.multicast.as_slice(),
            _ => &[],
        };
        let participant = self.directory.participants.get(&reader.prefix);
        let default = participant.map_or(&[][..], |participant| participant.data.default_multicast.as_slice());
        if own.is_empty() { default } else { own }
    }

    /// Counts the readers of a writer that announce each group: those that are announced to it as
    /// compatible, and those of pairs that are about to match.
    pub fn fan_out(&self, writer: Guid, will_match: impl Fn(Pair) -> bool) -> BTreeMap<SocketAddr, usize> {
        let readers = self.directory.endpoints.get(&writer).into_iter().flat_map(|writer| &writer.peers);
        let is_shown = |reader: &&Guid| {
            will_match(Pair { writer, reader: **reader })
                || !matches!(self.wanted(**reader, writer.prefix), Wanted::Refused(_))
        };
        let mut counts = BTreeMap::new();
        for group in readers.filter(is_shown).flat_map(|reader| self.groups_of(*reader)) {
            if let Some(group) = group.socket_addr() {
                *counts.entry(group).or_default() += 1;
            }
        }
        counts
    }

    /// Reports whether a pair that needs no admission has to wait because its reader could make the
    /// writer send samples of admitted pairs by multicast.
    pub(super) fn is_companion(&self, pair: Pair) -> bool {
        // A refused pair may be about to be admitted.
        let is_decided = |other: Pair| {
            let state = self.pairs.get(&other).filter(|_| other.reader != pair.reader);
            state.is_some_and(|state| state.contract.is_ok() && !matches!(state.decision, PairDecision::Denied(_)))
        };
        let has_decided = |writer: Guid| {
            let writer = self.directory.endpoints.get(&writer);
            writer.is_some_and(|writer| writer.peers.iter().any(|reader| is_decided(writer.pair(*reader))))
        };
        let mut writers = self.shown_with(pair).into_iter().map(|other| other.writer).chain([pair.writer]);
        !self.groups_of(pair.reader).is_empty() && writers.any(has_decided)
    }

    /// Returns other pairs of the reader whose writers discover it when this pair matches, because
    /// they belong to the same participant. These pairs match independently of their decision,
    /// except for what is announced to the reader's participant.
    pub fn shown_with(&self, pair: Pair) -> Vec<Pair> {
        let pairs = self.pairs_of(pair.reader).into_iter();
        let is_other = |other: &Pair| other.writer.prefix == pair.writer.prefix && other.writer != pair.writer;
        pairs.filter(is_other).collect()
    }
}
