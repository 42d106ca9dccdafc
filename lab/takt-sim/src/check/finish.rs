//! Final checks, after all faults have ended, all writers have stopped and enough time has passed.

use takt_core::ChangeKind;
use takt_wire::Guid;

use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::Nanos;
use crate::model;

impl Checker {
    /// Runs the final checks.
    pub fn finish(&mut self, at: Nanos) {
        if self.drops_sets() {
            // A change that was dropped with its set may have been the last one of an instance.
            if let Some(text) = self.finish_sets() {
                self.report(at, Rule::Missing, text);
            }
        } else {
            self.finish_instances(at);
        }
        self.finish_order(at);
        self.finish_exactly(at);
        for writer in 0..self.endpoints.len() as EndpointId {
            for reader in 0..self.endpoints.len() as EndpointId {
                let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
                if from.is_writer && !to.is_writer && from.alive && to.alive && from.topic == to.topic {
                    self.finish_pair(at, writer, reader);
                }
            }
        }
    }

    /// Returns the total octets of samples that reliable readers must receive, one match after the
    /// other; `sizes` returns the maximum sample size of a topic.
    #[must_use]
    pub fn owed(&self, sizes: impl Fn(usize) -> u64) -> u64 {
        let readers = |from: &Endpoint| {
            let fits = |to: &&Endpoint| !to.is_writer && to.topic == from.topic && model::matches(&from.qos, &to.qos);
            self.endpoints
                .iter()
                .filter(fits)
                .map(|to| {
                    let samples = newest(from, model::depth(&from.qos, &to.qos)).count() as u64;
                    if model::is_reliable(&from.qos, &to.qos) { samples * sizes(from.topic) } else { 0 }
                })
                .sum::<u64>()
        };
        self.endpoints.iter().filter(|from| from.is_writer).map(readers).sum()
    }

    /// Returns how many samples of reliable writers a reader must still receive.
    #[must_use]
    pub fn owed_to(&self, reader: EndpointId) -> u64 {
        let to = &self.endpoints[reader as usize];
        let writers = self.endpoints.iter().enumerate().filter(|(_, from)| {
            from.is_writer
                && from.topic == to.topic
                && model::matches(&from.qos, &to.qos)
                && model::is_reliable(&from.qos, &to.qos)
        });
        let owed = |(id, from): (usize, &Endpoint)| {
            let pair = self.pairs.get(&(id as EndpointId, reader));
            let has = |number: &u32| pair.is_some_and(|pair| pair.arrived.contains(*number));
            newest(from, model::depth(&from.qos, &to.qos)).filter(|number| !has(number)).count() as u64
        };
        writers.map(owed).sum()
    }

    /// Checks in the end that an endpoint is not matched with endpoints that have ended.
    pub fn finish_peers(&mut self, at: Nanos, id: EndpointId, peers: &[Guid]) {
        self.must_not_be_ignored(at, id, peers);
        for guid in peers.iter().filter(|guid| !self.receives_nothing_from(id, **guid)).copied().collect::<Vec<_>>() {
            let alive = self.by_guid.get(&guid).is_some_and(|peer| self.endpoints[*peer as usize].alive);
            if !alive {
                self.report(at, Rule::Matching, format!("endpoint {id} believes in {guid:?}, which has gone"));
            }
        }
    }

    fn finish_pair(&mut self, at: Nanos, writer: EndpointId, reader: EndpointId) {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let pair = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched());
        if pair.is_some() != self.must_match(from, to) {
            let text =
                format!("writer {writer} and reader {reader} are {}matched", if pair.is_some() { "" } else { "not " });
            return self.report(at, Rule::Matching, text);
        }
        let Some(pair) = pair else { return };
        let is_shown = self.shows_last(writer, reader);
        if !is_shown || !model::is_reliable(&from.qos, &to.qos) || self.shares_instances(writer, reader) {
            return;
        }
        let depth = model::depth(&from.qos, &to.qos);
        let lost =
            newest(from, depth).find(|number| pair.is_promised(from, *number) && !pair.arrived.contains(*number));
        let lost = lost.filter(|_| !self.drops_sets());
        if let Some(number) = lost {
            let written = from.written.len();
            let text = format!("reader {reader} never got number {number} of {written} of writer {writer}");
            self.report(at, Rule::Missing, text);
        }
    }

    /// Reports whether other writers also fill the reader's KEEP_LAST history, or the output of its
    /// filter, so that dropped samples cannot be predicted.
    pub(super) fn shares_instances(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let others = || self.pairs.keys().filter(|(other, to)| *to == reader && *other != writer);
        let qos = &self.endpoints[reader as usize].qos;
        (qos.keep_last.is_some() || qos.separation.is_some()) && others().next().is_some()
    }
}

/// Returns the numbers of the samples among the newest `depth` changes of each instance; all
/// samples for `None`.
pub(super) fn newest(writer: &Endpoint, depth: Option<u32>) -> impl Iterator<Item = u32> + '_ {
    let mut seen = [0_u32; 256];
    writer.written.iter().enumerate().rev().filter_map(move |(index, change)| {
        let count = &mut seen[usize::from(change.instance)];
        *count += 1;
        let arrives = change.kind == ChangeKind::Alive && *count <= depth.unwrap_or(u32::MAX);
        arrives.then_some(index as u32 + 1)
    })
}
