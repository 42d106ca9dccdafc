//! Checks of coherent sets and of the order of a publisher's changes (PRESENTATION).
//!
//! The samples between `begin_access` and `end_access`, or of one `take`, are checked together.

use std::collections::{BTreeMap, BTreeSet};

use takt_wire::GuidPrefix;
use takt_wire::qos::{AccessScope, Presentation};

use super::pair::Pair;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;
use crate::scenario::QosPlan;

/// Time after a match until new samples are sent to the reader immediately.
const SETTLED: Nanos = 500 * MILLISECOND;

/// A coherent set, by its position in the order of their beginnings.
pub type SetId = u32;

/// A taken sample: reader, writer, number.
type TakenSample = (EndpointId, EndpointId, u32);

/// All sets so far, and the samples of the current access.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// For each set: whether it has ended, and its changes by writer and number.
    all: Vec<(bool, Vec<(EndpointId, u32)>)>,
    /// By writer, for each change: its sequence number, its set, and its position among all changes
    /// of the world.
    of_writer: BTreeMap<EndpointId, Vec<(i64, Option<SetId>, u64)>>,
    changes: u64,
    /// Samples taken in this access.
    seen: Vec<TakenSample>,
    /// By participant of the readers and of the writers: position of the newest taken change, and
    /// that sample.
    newest: BTreeMap<(GuidPrefix, GuidPrefix), (u64, TakenSample)>,
    /// Presentation that all publishers offer and all subscribers request.
    pub(super) presentation: Presentation,
}

impl Checker {
    /// Sets the PRESENTATION of all publishers and subscribers.
    pub fn set_presentation(&mut self, presentation: Presentation) {
        self.sets.presentation = presentation;
    }

    /// Reports whether PRESENTATION has an effect in this world.
    pub(super) fn is_presented(&self) -> bool {
        model::is_presented(&self.sets.presentation)
    }

    /// Reports whether sets may be dropped with their changes.
    pub(super) fn drops_sets(&self) -> bool {
        self.sets.presentation.coherent_access
    }

    /// Reports whether a take returns one instance after another.
    pub(super) fn is_seen_by_instance(&self) -> bool {
        self.sets.presentation.ordered_access && self.sets.presentation.access_scope == AccessScope::Instance
    }

    /// Reports whether a take returns one instance after another, or an application may take one
    /// instance and leave others.
    pub(super) fn is_taken_by_instance(&self) -> bool {
        self.is_seen_by_instance() || self.reads
    }

    /// Reports whether samples wait for those of the publisher's other writers.
    pub(super) fn is_seen_by_group(&self) -> bool {
        self.sets.presentation.ordered_access && self.sets.presentation.access_scope == AccessScope::Group
    }

    /// Records the beginning of a coherent set.
    pub fn begin_set(&mut self) -> SetId {
        self.sets.all.push((false, Vec::new()));
        self.sets.all.len() as SetId - 1
    }

    /// Records the end of a coherent set.
    pub fn end_set(&mut self, set: SetId) {
        self.sets.all[set as usize].0 = true;
        self.sets_ended += 1;
    }

    /// Records the sequence number and the set of the last written change.
    pub fn assign_sequence_number(&mut self, writer: EndpointId, sn: i64, set: Option<SetId>) {
        let number = self.endpoints[writer as usize].written.len() as u32;
        self.sets.changes += 1;
        self.sets.of_writer.entry(writer).or_default().push((sn, set, self.sets.changes));
        if let Some(set) = set {
            self.sets.all[set as usize].1.push((writer, number));
        }
    }

    /// Returns the number of the writer's change with a sequence number. The ends of sets have
    /// sequence numbers too.
    pub(super) fn number_of(&self, writer: EndpointId, sn: i64) -> Option<u32> {
        let changes = self.sets.of_writer.get(&writer)?;
        changes.binary_search_by_key(&sn, |(sn, ..)| *sn).ok().map(|index| index as u32 + 1)
    }

    fn set_and_position(&self, writer: EndpointId, number: u32) -> (Option<SetId>, u64) {
        let changes = self.sets.of_writer.get(&writer).map_or(&[][..], Vec::as_slice);
        changes.get(number as usize - 1).map_or((None, 0), |(_, set, order)| (*set, *order))
    }

    /// Records a sample taken in this access.
    pub(super) fn record_taken(&mut self, reader: EndpointId, writer: EndpointId, number: u32) {
        if model::is_presented(&self.sets.presentation) {
            self.sets.seen.push((reader, writer, number));
        }
    }

    /// Ends the access or the take, and checks its samples.
    pub fn end_access(&mut self, at: Nanos) {
        self.passes += 1;
        let seen = std::mem::take(&mut self.sets.seen);
        let Presentation { access_scope, coherent_access, .. } = self.sets.presentation;
        let mut verdict = Ok(());
        if coherent_access {
            verdict = self.check_sets(access_scope, &seen);
        }
        if self.is_seen_by_group() {
            verdict = verdict.and_then(|()| self.check_group_order(&seen));
        }
        if let Err((rule, text)) = verdict {
            self.report(at, rule, text);
        }
    }

    fn check_sets(&self, scope: AccessScope, seen: &[TakenSample]) -> Result<(), (Rule, String)> {
        let mut checked = BTreeSet::new();
        for &(reader, writer, number) in seen {
            let Some(set) = self.set_and_position(writer, number).0 else { continue };
            let (has_ended, members) = &self.sets.all[set as usize];
            if !has_ended {
                let text = format!("reader {reader} sees number {number} of writer {writer}, whose set has not ended");
                return Err((Rule::Coherence, text));
            }
            let pair = if scope == AccessScope::Group { None } else { Some((reader, writer)) };
            if !checked.insert((set, pair)) {
                continue;
            }
            if let Some(key) = self.missing(reader, members, pair).next() {
                let text = format!("reader {reader} sees number {number} of writer {writer}, and {key:?} is missing");
                return Err((Rule::Coherence, text));
            }
        }
        Ok(())
    }

    /// Returns the missing changes of a set of which a part has been seen: by the one pair, or by
    /// all readers of the participant of `reader`. Changes of earlier accesses were checked then.
    /// Readers that join later see the set as history.
    fn missing<'a>(
        &'a self,
        reader: EndpointId,
        members: &'a [(EndpointId, u32)],
        only: Option<(EndpointId, EndpointId)>,
    ) -> impl Iterator<Item = TakenSample> + 'a {
        let prefix = self.endpoints[reader as usize].guid.prefix;
        members.iter().flat_map(move |&(writer, number)| {
            let pairs = self.pairs.iter().filter(move |((from, _), pair)| *from == writer && pair.is_matched());
            pairs.filter_map(move |((_, to), pair)| {
                let (of, from) = (&self.endpoints[*to as usize], &self.endpoints[writer as usize]);
                let is_meant = only.map_or(of.guid.prefix == prefix, |only| only == (*to, writer));
                let is_data = from.written[number as usize - 1].kind == takt_core::ChangeKind::Alive;
                let holds = of.qos.keep_last.is_none() && number > pair.joined && of.alive;
                let is_new = !pair.arrived.contains(number);
                (is_meant && is_data && holds && is_new).then_some((*to, writer, number))
            })
        })
    }

    fn check_group_order(&mut self, seen: &[TakenSample]) -> Result<(), (Rule, String)> {
        for &(reader, writer, number) in seen {
            let (to, from) = (&self.endpoints[reader as usize], &self.endpoints[writer as usize]);
            let (_, order) = self.set_and_position(writer, number);
            let newest = self.sets.newest.entry((to.guid.prefix, from.guid.prefix)).or_default();
            let pair = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched() && number > pair.joined);
            let is_late = pair.is_some() && order < newest.0 && !self.lapsed.contains(&reader);
            // If one reader is full, all samples that wait with its samples are shown at once, at
            // the other readers too.
            let may_fill = |((of, at), _): (&(EndpointId, EndpointId), &Pair)| {
                let (of, at) = (&self.endpoints[*of as usize], &self.endpoints[*at as usize]);
                at.qos.max_samples.is_some() && at.guid.prefix == to.guid.prefix && of.guid.prefix == from.guid.prefix
            };
            if is_late && model::is_complete(&from.qos, &to.qos) && !self.pairs.iter().any(may_fill) {
                let text = format!("reader {reader} sees number {number} of writer {writer} behind {:?}", newest.1);
                return Err((Rule::Order, text));
            }
            *newest = (order, (reader, writer, number)).max(*newest);
        }
        Ok(())
    }

    /// Checks in the end that every set was seen that had to be delivered completely.
    pub(super) fn finish_sets(&self) -> Option<String> {
        let Presentation { access_scope, coherent_access, .. } = self.sets.presentation;
        if !coherent_access || access_scope == AccessScope::Group {
            return None;
        }
        for ((writer, reader), pair) in self.pairs.iter().filter(|(_, pair)| pair.is_matched()) {
            let (from, to) = (&self.endpoints[*writer as usize], &self.endpoints[*reader as usize]);
            let is_complete = model::is_complete(&from.qos, &to.qos);
            let is_exact = self.exact_sets && self.calm && to.qos.keep_last.is_none();
            let is_certain = (is_complete || is_exact) && to.qos.max_samples.is_none() && from.alive;
            for (has_ended, members) in self.sets.all.iter().filter(|_| is_certain) {
                let mut of_writer = members.iter().filter(|(of, _)| of == writer);
                let numbers = of_writer.clone().map(|(_, number)| *number);
                let is_promised = if is_complete {
                    numbers.clone().all(|number| number > pair.joined)
                } else {
                    is_seen_live(from, pair, numbers.clone()) || is_history(from, &to.qos, pair, numbers)
                };
                let is_whole = *has_ended && is_promised;
                let is_data = |number: u32| from.written[number as usize - 1].kind == takt_core::ChangeKind::Alive;
                let lost = of_writer.find(|(_, number)| is_data(*number) && !pair.arrived.contains(*number));
                if let Some((_, number)) = lost.filter(|_| is_whole) {
                    return Some(format!("reader {reader} never got number {number} of writer {writer}, nor its set"));
                }
            }
        }
        None
    }
}

/// Reports whether a set was written long after the match and has no more changes of one instance
/// than its writer keeps.
fn is_seen_live(from: &Endpoint, pair: &Pair, mut numbers: impl Iterator<Item = u32>) -> bool {
    let mut counts = [0_u32; 256];
    numbers.all(|number| {
        let count = &mut counts[usize::from(from.written[number as usize - 1].instance)];
        *count += 1;
        let is_kept = from.qos.keep_last.is_none_or(|depth| *count <= depth);
        is_kept && from.written_at[number as usize - 1] > pair.since + SETTLED
    })
}

/// Reports whether a set was complete in the history of its writer when the reader joined, and no
/// change has displaced a part of it since.
fn is_history(from: &Endpoint, to: &QosPlan, pair: &Pair, mut numbers: impl Iterator<Item = u32>) -> bool {
    let stays = |number: u32| {
        let instance = from.written[number as usize - 1].instance;
        let later = from.written.iter().skip(number as usize).filter(|change| change.instance == instance);
        from.qos.keep_last.is_none_or(|depth| later.count() < depth as usize)
    };
    let is_older = |number: u32| from.written_at[number as usize - 1] + SETTLED < pair.writer_since;
    from.qos.transient_local && to.transient_local && numbers.all(|number| is_older(number) && stays(number))
}
