//! Checks of PRESENTATION: coherent sets, and the order of the changes of a publisher.
//!
//! An access is what an application reads between `begin_access` and `end_access`, or by one
//! `take`. Its samples are checked together. The number of a change counts the changes of its
//! writer from 1; ends of sets have sequence numbers, but no number.

use std::collections::{BTreeMap, BTreeSet};

use takt_wire::GuidPrefix;
use takt_wire::qos::{AccessScope, Presentation};

use super::pair::Pair;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;
use crate::scenario::QosPlan;

/// Time after a match from which a new sample is certainly sent to the reader when it is written.
const SETTLED: Nanos = 500 * MILLISECOND;

/// Index of a coherent set, in the order in which the sets begin.
pub type SetId = u32;

/// A taken sample: its reader, its writer and its number.
type TakenSample = (EndpointId, EndpointId, u32);

/// All coherent sets so far, and the samples of the current access.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// For each set: whether it has ended, and its changes by writer and number.
    all: Vec<(bool, Vec<(EndpointId, u32)>)>,
    /// By writer, for each change: its sequence number, its set, and its position in the order in
    /// which all writers of the world wrote.
    of_writer: BTreeMap<EndpointId, Vec<(i64, Option<SetId>, u64)>>,
    /// Number of changes of all writers.
    changes: u64,
    /// Samples taken in this access.
    seen: Vec<TakenSample>,
    /// By participant of the readers and participant of the writers: the taken sample that was
    /// written last, after its position.
    newest: BTreeMap<(GuidPrefix, GuidPrefix), (u64, TakenSample)>,
    /// PRESENTATION that all publishers offer and all subscribers request.
    pub(super) presentation: Presentation,
}

impl Checker {
    /// Sets the PRESENTATION of all publishers and subscribers.
    pub fn set_presentation(&mut self, presentation: Presentation) {
        self.sets.presentation = presentation;
    }

    /// Reports whether publishers offer, and subscribers request, coherent or ordered access.
    pub(super) fn uses_presentation(&self) -> bool {
        model::is_coherent_or_ordered(&self.sets.presentation)
    }

    /// Reports whether a reader may drop an incomplete set with all its changes.
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

    /// Reports whether a sample is shown only after earlier samples of the publisher's other
    /// writers.
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

    /// Returns the number of the writer's change with this sequence number; `None` if that is the
    /// end of a set.
    pub(super) fn number_of(&self, writer: EndpointId, sn: i64) -> Option<u32> {
        let changes = self.sets.of_writer.get(&writer)?;
        changes.binary_search_by_key(&sn, |(sn, ..)| *sn).ok().map(|index| index as u32 + 1)
    }

    /// Returns the set of a change, and its position in the order of writing.
    fn set_and_position(&self, writer: EndpointId, number: u32) -> (Option<SetId>, u64) {
        let changes = self.sets.of_writer.get(&writer).map_or(&[][..], Vec::as_slice);
        changes.get(number as usize - 1).map_or((None, 0), |(_, set, position)| (*set, *position))
    }

    /// Records a sample taken in this access.
    pub(super) fn record_taken(&mut self, reader: EndpointId, writer: EndpointId, number: u32) {
        if self.uses_presentation() {
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

    /// Checks that each set of which a sample was taken has ended and was taken completely.
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
            if let Some(missing) = self.missing(reader, members, pair).next() {
                let text = format!(
                    "reader {reader} sees number {number} of writer {writer}, but of the same set it lacks {missing:?} (reader, writer, number)"
                );
                return Err((Rule::Coherence, text));
            }
        }
        Ok(())
    }

    /// Returns the changes of a set that have not arrived although they had to: at the pair `only`,
    /// or else at all readers in the participant of `reader`. A change from before the match of a
    /// pair is history of that pair and need not arrive.
    fn missing<'a>(
        &'a self,
        reader: EndpointId,
        members: &'a [(EndpointId, u32)],
        only: Option<(EndpointId, EndpointId)>,
    ) -> impl Iterator<Item = TakenSample> + 'a {
        let prefix = self.endpoints[reader as usize].guid.prefix;
        members.iter().flat_map(move |&(writer, number)| {
            let pairs = self.pairs.iter().filter(move |((from, _), pair)| *from == writer && pair.is_matched());
            pairs.filter_map(move |((_, id), pair)| {
                let (to, from) = (&self.endpoints[*id as usize], &self.endpoints[writer as usize]);
                let is_meant = only.map_or(to.guid.prefix == prefix, |only| only == (*id, writer));
                let is_data = from.written[number as usize - 1].kind == takt_core::ChangeKind::Alive;
                let must_arrive = to.qos.keep_last.is_none() && number > pair.joined && to.alive;
                let has_arrived = pair.arrived.contains(number);
                (is_meant && is_data && must_arrive && !has_arrived).then_some((*id, writer, number))
            })
        })
    }

    /// Checks that the readers of a participant take the changes of each publisher in the order of
    /// writing, over all writers. Here a participant has one publisher.
    fn check_group_order(&mut self, seen: &[TakenSample]) -> Result<(), (Rule, String)> {
        for &(reader, writer, number) in seen {
            let (to, from) = (&self.endpoints[reader as usize], &self.endpoints[writer as usize]);
            let (_, position) = self.set_and_position(writer, number);
            let newest = self.sets.newest.entry((to.guid.prefix, from.guid.prefix)).or_default();
            let pair = self.pairs.get(&(writer, reader)).filter(|pair| pair.is_matched() && number > pair.joined);
            let is_late = pair.is_some() && position < newest.0 && !self.lapsed.contains(&reader);
            // If one reader is full, all samples that wait with its samples are shown at once, at
            // the other readers too, in any order.
            let may_fill = |((writer, reader), _): (&(EndpointId, EndpointId), &Pair)| {
                let (writer, reader) = (&self.endpoints[*writer as usize], &self.endpoints[*reader as usize]);
                reader.qos.max_samples.is_some()
                    && reader.guid.prefix == to.guid.prefix
                    && writer.guid.prefix == from.guid.prefix
            };
            if is_late && model::is_complete(&from.qos, &to.qos) && !self.pairs.iter().any(may_fill) {
                let text = format!(
                    "reader {reader} sees number {number} of writer {writer} after the later {:?} (reader, writer, number)",
                    newest.1
                );
                return Err((Rule::Order, text));
            }
            *newest = (position, (reader, writer, number)).max(*newest);
        }
        Ok(())
    }

    /// Checks at the end of a world that every set that had to be delivered has arrived. Returns
    /// the violation.
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

/// Reports whether all changes of a set were written after the match had settled, and the writer
/// keeps all of them: the set has at most its depth of each instance.
fn is_seen_live(from: &Endpoint, pair: &Pair, mut numbers: impl Iterator<Item = u32>) -> bool {
    let mut counts = [0_u32; 256];
    numbers.all(|number| {
        let count = &mut counts[usize::from(from.written[number as usize - 1].instance)];
        *count += 1;
        let is_kept = from.qos.keep_last.is_none_or(|depth| *count <= depth);
        is_kept && from.written_at[number as usize - 1] > pair.since + SETTLED
    })
}

/// Reports whether a set was in the writer's history as a whole when the writer matched the reader,
/// and no later change has displaced a part of it.
fn is_history(from: &Endpoint, to: &QosPlan, pair: &Pair, mut numbers: impl Iterator<Item = u32>) -> bool {
    let stays = |number: u32| {
        let instance = from.written[number as usize - 1].instance;
        let later = from.written.iter().skip(number as usize).filter(|change| change.instance == instance);
        from.qos.keep_last.is_none_or(|depth| later.count() < depth as usize)
    };
    let is_older = |number: u32| from.written_at[number as usize - 1] + SETTLED < pair.writer_since;
    from.qos.transient_local && to.transient_local && numbers.all(|number| is_older(number) && stays(number))
}
