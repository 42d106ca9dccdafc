//! Exact checks of time: latency of statuses, samples and ownership changes, and absence of samples
//! that are not guaranteed.
//!
//! Apply only in exact worlds ([`crate::scenario::Scenario::is_exact`]). Time there is virtual, so
//! that the bounds are those of the protocol.

use std::collections::BTreeMap;

use takt_core::ChangeKind;
use takt_wire::qos::LivelinessKind;

use super::pair::Pair;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::model;
use crate::process::LEASE;

/// Maximum transit time of a sample, apart from its writer's LATENCY_BUDGET.
const SAMPLE_TRANSIT_MAX: Nanos = 5 * MILLISECOND;

/// Time after a match until new samples are sent to the reader immediately, and its history has
/// arrived.
const SETTLED: Nanos = 500 * MILLISECOND;

/// Minimum age at the match of a sample that was certainly sent before the match.
const SENT_BEFORE: Nanos = 200 * MILLISECOND;

/// Inverse of the maximum clock drift of a host.
pub(super) const DRIFT_PARTS: Nanos = 1_000;

/// Time from the death of a process until the lease of its participant has ended for all others.
pub const LEASE_END_MAX: Nanos = LEASE + LEASE / DRIFT_PARTS + 300 * MILLISECOND;

/// Time from the disposal of a participant, or the deletion of an endpoint, until all other
/// participants know of it.
pub const DISPOSAL_MAX: Nanos = SECOND;

/// Missed deadlines of an endpoint.
#[derive(Debug, Default)]
struct Misses {
    /// Time of the last update of each monitored instance.
    open: BTreeMap<u8, Nanos>,
    /// Minimum and maximum number of missed deadlines in past periods without updates.
    past: (u64, u64),
    /// Count in the status.
    reported: u64,
}

impl Misses {
    fn update(&mut self, at: Nanos, period: Nanos, instance: u8, is_alive: bool) {
        if let Some(since) = self.open.remove(&instance) {
            let (least, most) = missed(at - since, period);
            self.past = (self.past.0 + least, self.past.1 + most);
        }
        if is_alive {
            self.open.insert(instance, at);
        }
    }

    fn bounds(&self, at: Nanos, period: Nanos) -> (u64, u64) {
        let open = self.open.values().map(|since| missed(at - since, period));
        open.fold(self.past, |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// Returns the minimum and maximum number of deadlines missed in a period without updates,
/// considering clock drift.
fn missed(silence: Nanos, period: Nanos) -> (u64, u64) {
    let slack = silence / DRIFT_PARTS + MILLISECOND;
    (silence.saturating_sub(slack) / period, (silence + slack) / period)
}

/// State of the time checks of an exact world.
#[derive(Debug, Default)]
pub(super) struct Exact {
    misses: BTreeMap<EndpointId, Misses>,
    /// By reader: the number of alive and of not alive writers.
    liveliness: BTreeMap<EndpointId, (u32, u32)>,
    /// By writer: the time of the last LIVELINESS_LOST.
    lapsed_at: BTreeMap<EndpointId, Nanos>,
}

impl Checker {
    /// Records that an instance was written, taken, or ended.
    pub(super) fn record_time(&mut self, at: Nanos, id: EndpointId, instance: u8, is_alive: bool) {
        let Some(period) = self.endpoints[id as usize].qos.deadline.filter(|_| self.exact) else { return };
        self.exactly.misses.entry(id).or_default().update(at, period, instance, is_alive);
    }

    /// Records the count of missed deadlines in a status.
    pub(super) fn record_deadline_status(&mut self, at: Nanos, id: EndpointId, reported: u64) {
        self.exactly.misses.entry(id).or_default().reported = reported;
        self.count_misses(at, id);
    }

    fn count_misses(&mut self, at: Nanos, id: EndpointId) {
        let endpoint = &self.endpoints[id as usize];
        let (Some(period), Some(misses)) = (endpoint.qos.deadline, self.exactly.misses.get(&id)) else { return };
        if !self.exact || !endpoint.alive || !self.is_watched(id) {
            return;
        }
        let (least, most) = misses.bounds(at, period);
        if misses.reported < least || misses.reported > most {
            let reported = misses.reported;
            let text = format!("endpoint {id} was told of {reported} missed deadlines, there were {least} to {most}");
            self.report(at, Rule::Deadline, text);
        }
    }

    /// Reports whether every update of the reader's instances is visible at its arrival.
    fn is_watched(&self, id: EndpointId) -> bool {
        let endpoint = &self.endpoints[id as usize];
        let qos = &endpoint.qos;
        let hides = qos.separation.is_some() || qos.filter.is_some() || qos.strength.is_some() || qos.by_source;
        endpoint.is_writer || !(hides || self.take_period(id) > 0 || self.expires_at(id))
    }

    /// Records the number of alive writers in a status of a reader.
    pub(super) fn record_liveliness_status(&mut self, reader: EndpointId, alive: u32, not_alive: u32) {
        self.exactly.liveliness.insert(reader, (alive, not_alive));
    }

    /// Records LIVELINESS_LOST of a writer.
    pub(super) fn record_liveliness_lost(&mut self, at: Nanos, writer: EndpointId) {
        self.exactly.lapsed_at.insert(writer, at);
    }

    /// Checks that all statuses that are due have been notified.
    pub(super) fn check_due_statuses(&mut self, at: Nanos) {
        if !(self.exact && self.calm) {
            return;
        }
        for id in 0..self.endpoints.len() as EndpointId {
            self.count_misses(at, id);
            if self.endpoints[id as usize].is_writer {
                self.check_liveliness_lost(at, id);
            } else {
                self.check_alive_writers(at, id);
            }
        }
    }

    /// Returns the last assertion of a writer with a manual lease: by its own write or by that of
    /// another writer.
    fn last_sign(&self, writer: EndpointId) -> Nanos {
        let of = &self.endpoints[writer as usize];
        let kind = |id: &super::Endpoint| id.qos.liveliness.map(|it| it.kind);
        let is_shared = kind(of) == Some(LivelinessKind::ManualByParticipant);
        let signs = self.endpoints.iter().filter(|other| {
            other.guid == of.guid || (is_shared && other.guid.prefix == of.guid.prefix && kind(other) == kind(of))
        });
        signs.filter_map(|other| other.written_at.last()).max().copied().unwrap_or(0)
    }

    /// Returns when a writer with a lease asserted its liveliness to a reader for the last time
    /// with certainty, by a change that is no longer in transit.
    ///
    /// A change that is not sent to the reader asserts a `MANUAL_BY_PARTICIPANT` writer by an
    /// assertion message, and these are up to a third of the lease apart. If the participant ended
    /// in that time, its last assertion message is older than the change by that time.
    pub(super) fn arrived_last(&self, writer: EndpointId, reader: EndpointId, at: Nanos) -> Nanos {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let budget = from.policies().map(|qos| qos.budget).max().unwrap_or(0);
        let transit_max = SAMPLE_TRANSIT_MAX + budget + budget / DRIFT_PARTS;
        let by_participant = from.qos.liveliness.filter(|it| it.kind == LivelinessKind::ManualByParticipant);
        let pause = by_participant.map_or(0, |it| it.lease / 3);
        let ended_at = from.ended_at.unwrap_or(Nanos::MAX);
        let sign = |(index, written): (usize, &Nanos)| {
            let change = from.written[index];
            let is_wanted =
                change.kind != ChangeKind::Alive || model::wants(&to.qos, index as u32 + 1, change.instance);
            let is_sent = is_wanted && change.to.is_none_or(|only| only == reader);
            let is_asserted = written + pause + pause / DRIFT_PARTS <= ended_at;
            if is_sent || is_asserted { *written } else { written.saturating_sub(pause) }
        };
        let arrived = from.written_at.iter().enumerate().filter(|(_, written)| **written + transit_max <= at);
        arrived.map(sign).max().unwrap_or(0)
    }

    fn check_liveliness_lost(&mut self, at: Nanos, writer: EndpointId) {
        let of = &self.endpoints[writer as usize];
        let manual = of.qos.liveliness.filter(|it| it.kind != LivelinessKind::Automatic && of.alive);
        let Some(liveliness) = manual else { return };
        let sign = self.last_sign(writer).max(of.created_at);
        // A write of another writer of the participant asserts this one within a third of the
        // lease.
        let is_shared = liveliness.kind == LivelinessKind::ManualByParticipant;
        let lease = liveliness.lease + if is_shared { liveliness.lease / 3 } else { 0 };
        let late = at > sign + lease + lease / DRIFT_PARTS + MILLISECOND;
        if late && self.exactly.lapsed_at.get(&writer).is_none_or(|lapsed| *lapsed < sign) {
            self.report(at, Rule::Liveliness, format!("writer {writer} has lapsed since {sign} ns and does not know"));
        }
    }

    fn check_alive_writers(&mut self, at: Nanos, reader: EndpointId) {
        let Some(&(alive, not_alive)) = self.exactly.liveliness.get(&reader) else { return };
        if !self.endpoints[reader as usize].alive {
            return;
        }
        let (mut living, mut dead) = (0, 0);
        for ((writer, _), pair) in self.pairs.iter().filter(|((_, to), pair)| *to == reader && pair.is_matched()) {
            let from = &self.endpoints[*writer as usize];
            let manual = from.qos.liveliness.filter(|it| it.kind != LivelinessKind::Automatic);
            let Some(liveliness) = manual else {
                living += u32::from(from.alive);
                continue;
            };
            let lease = liveliness.lease;
            let own = self.arrived_last(*writer, reader, at).max(pair.since);
            // Other writers of the participant assert this one within a third of the lease.
            let is_shared = liveliness.kind == LivelinessKind::ManualByParticipant;
            let late = if is_shared { lease / 3 } else { 0 }
                + from.qos.budget
                + from.qos.budget / DRIFT_PARTS
                + SAMPLE_TRANSIT_MAX;
            let sign = (self.last_sign(*writer) + late).max(pair.since);
            living += u32::from(from.alive && at < own + lease - lease / DRIFT_PARTS);
            dead += u32::from(at > sign + lease + lease / DRIFT_PARTS + MILLISECOND);
        }
        if alive < living || not_alive < dead {
            let text = format!(
                "reader {reader} takes {alive} writers for alive and {not_alive} not, at least {living} and {dead} are"
            );
            self.report(at, Rule::Liveliness, text);
        }
    }

    /// Checks that a taken sample arrived in time and was guaranteed.
    pub(super) fn check_time(
        &self,
        at: Nanos,
        writer: EndpointId,
        reader: EndpointId,
        number: u32,
    ) -> Result<(), (Rule, String)> {
        let Some(pair) = self.pairs.get(&(writer, reader)).filter(|pair| self.exact && pair.is_matched()) else {
            return Ok(());
        };
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let (written, free) = (from.written_at[number as usize - 1], from.free_at(number));
        let due = free.saturating_add(from.qos.budget + from.qos.budget / DRIFT_PARTS + SAMPLE_TRANSIT_MAX);
        let is_at_once = self.take_period(reader) == 0 && to.qos.separation.is_none();
        if is_at_once && is_wanted_around(from, to, number) && written > pair.since + SETTLED && at > due {
            let text = format!("number {number} of writer {writer} took {} ns: {:?}", at - written, from.qos);
            return Err((Rule::Latency, text));
        }
        if free.saturating_add(SENT_BEFORE) >= pair.writer_since {
            return Ok(());
        }
        let instance = from.written[number as usize - 1].instance;
        let later = from.written.iter().zip(&from.written_at).skip(number as usize);
        let later = later.take_while(|(_, at)| **at + SENT_BEFORE < pair.writer_since);
        let displaced = later.filter(|(change, _)| change.instance == instance).count();
        let is_kept = from.qos.keep_last.is_none_or(|depth| displaced < depth as usize);
        if !(from.qos.transient_local && to.qos.transient_local && is_kept) {
            let text = format!("number {number} of writer {writer} is older than the match, {displaced} followed it");
            return Err((Rule::UnexpectedSample, text));
        }
        Ok(())
    }

    /// Checks in the end that every sample sent after a match has arrived, since no loss occurs.
    pub(super) fn finish_exactly(&mut self, at: Nanos) {
        if !(self.exact && self.calm) {
            return;
        }
        let missing = self.pairs.iter().find_map(|(&(writer, reader), pair)| {
            let from = &self.endpoints[writer as usize];
            let mut numbers = 1..=from.written.len() as u32;
            numbers.find(|number| self.must_have_arrived(writer, reader, pair, *number)).map(|it| (writer, reader, it))
        });
        if let Some((writer, reader, number)) = missing {
            let text = format!("reader {reader} never got number {number} of writer {writer}, though nothing was lost");
            self.report(at, Rule::Missing, text);
        }
    }

    fn must_have_arrived(&self, writer: EndpointId, reader: EndpointId, pair: &Pair, number: u32) -> bool {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let change = from.written[number as usize - 1];
        let written = from.written_at[number as usize - 1];
        if !(from.alive && to.alive && pair.is_matched() && written > pair.since + SETTLED) {
            return false;
        }
        let is_wanted = change.kind == ChangeKind::Alive && is_wanted_around(from, to, number);
        let is_for_it = change.to.is_none_or(|only| only == reader);
        if !(is_wanted && is_for_it) || pair.arrived.contains(number) {
            return false;
        }
        let is_plain = to.qos.separation.is_none() && from.qos.lifespan.is_none() && !to.qos.by_source;
        let waits = from.qos.budget > 0 || from.free_at(number) > written;
        let is_kept = from.qos.keep_last.is_none() || !waits;
        is_plain && is_kept && self.is_read(writer, reader, number) && self.owns_at(writer, reader, number)
    }

    /// Reports whether the sample stays in the reader's cache until it is taken.
    fn is_read(&self, writer: EndpointId, reader: EndpointId, number: u32) -> bool {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        if self.take_period(reader) == 0 {
            return true;
        }
        // The sample is purged if its instance ends meanwhile, which cannot happen without a
        // further change.
        let change = from.written[number as usize - 1];
        let is_last = || from.written[number as usize..].iter().all(|later| later.instance != change.instance);
        let is_only = || !self.pairs.keys().any(|(other, to)| *to == reader && *other != writer);
        let stays = to.qos.purge.is_none() || (is_last() && is_only() && from.qos.liveliness.is_none());
        to.qos.keep_last.is_none() && stays
    }

    /// Reports whether no other writer owned the instance when the sample was written.
    fn owns_at(&self, writer: EndpointId, reader: EndpointId, number: u32) -> bool {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        let (instance, at) = (from.written[number as usize - 1].instance, from.written_at[number as usize - 1]);
        let other_writers = self.endpoints.iter().filter(|other| {
            other.is_writer && other.topic == to.topic && other.guid != from.guid && model::matches(&other.qos, &to.qos)
        });
        from.qos.strength.is_none()
            || other_writers.into_iter().all(|other| {
                let has_ended = other.unmatched_by.is_some_and(|unmatched| unmatched < at);
                let mut changes = other.written.iter().zip(&other.written_at);
                let last = changes.rfind(|(change, _)| change.instance == instance).map(|(_, written)| *written);
                let is_late = to.qos.deadline.zip(last).is_some_and(|(period, last)| last + period + SETTLED < at);
                has_ended
                    || is_late
                    || last.is_none()
                    || model::outranks((&from.qos, from.guid), (&other.qos, other.guid))
            })
    }
}

/// Reports whether a sample passes each filter that the reader had around the time of the write.
/// The writer uses a former filter until it receives the next one.
fn is_wanted_around(from: &Endpoint, to: &Endpoint, number: u32) -> bool {
    let (change, written) = (from.written[number as usize - 1], from.written_at[number as usize - 1]);
    to.policies_around(written, SETTLED).all(|qos| model::wants(qos, number, change.instance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Change;
    use crate::scenario::{FilterPlan, LivelinessPlan, QosPlan};
    use takt_wire::{EntityId, Guid, GuidPrefix, Timestamp};

    const WRITTEN: Nanos = 1_000 * MILLISECOND;
    const LEASE: Nanos = 300 * MILLISECOND;

    /// Returns the last assertion of a writer that wrote one sample, which passes the reader's
    /// filter or not, and was then killed.
    fn last_sign(kind: LivelinessKind, filter: Option<u32>, ended_at: Option<Nanos>) -> Nanos {
        let mut checker = Checker::default();
        let liveliness = Some(LivelinessPlan { kind, lease: LEASE });
        let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
        let writer = checker.created(guid(1), 0, QosPlan { liveliness, ..QosPlan::default() }, true);
        let reader = checker.created(
            guid(2),
            0,
            QosPlan { filter: filter.map(FilterPlan::Multiples), ..QosPlan::default() },
            false,
        );
        let sample = Change { instance: 0, kind: ChangeKind::Alive, to: None, len: 24 };
        checker.wrote(WRITTEN, Timestamp::ZERO, writer, sample);
        if let Some(at) = ended_at {
            checker.now = at;
            checker.endpoint_ended(writer, LEASE_END_MAX);
        }
        checker.arrived_last(writer, reader, WRITTEN + LEASE)
    }

    #[test]
    fn last_assertion_of_a_killed_writer_precedes_filtered_sample_by_a_third_of_the_lease() {
        let (by_participant, by_topic) = (LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic);
        let (withheld, soon, later) = (Some(2), Some(WRITTEN + 50 * MILLISECOND), Some(WRITTEN + 150 * MILLISECOND));
        assert_eq!(last_sign(by_participant, withheld, soon), WRITTEN - LEASE / 3, "seed 1100107");
        assert_eq!(last_sign(by_participant, withheld, later), WRITTEN, "it was asserted before it ended");
        assert_eq!(last_sign(by_participant, withheld, None), WRITTEN);
        assert_eq!(last_sign(by_participant, None, soon), WRITTEN, "the sample itself shows the writer");
        assert_eq!(last_sign(by_topic, withheld, soon), WRITTEN, "a heartbeat shows the writer at once");
    }
}
