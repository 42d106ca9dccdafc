//! Checks of DEADLINE, LIVELINESS and OWNERSHIP.

use takt_core::{ChangeKind, DeadlineMissedStatus, InstanceState, LivelinessLostStatus};

use super::exact::DRIFT_PARTS;
use super::{Checker, Endpoint, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::model;
use crate::sample::{self, Identity};

/// Maximum transit time of a sample under low load without faults, including the longest
/// LATENCY_BUDGET.
const TRANSIT_MAX: Nanos = 70 * MILLISECOND;

/// Time for the arrival of the last samples after all writers have stopped.
const LAST_ARRIVALS: Nanos = 3 * SECOND;

impl Checker {
    /// Reports whether no other writer ever outranked this one for the reader, so that every sample
    /// of it counts.
    pub(super) fn owns_for_certain(&self, writer: EndpointId, reader: EndpointId) -> bool {
        let from = &self.endpoints[writer as usize];
        let other_writers = || self.pairs.keys().filter(|(other, to)| *to == reader && *other != writer);
        from.qos.strength.is_none()
            || other_writers().all(|(other, _)| outranks(from, &self.endpoints[*other as usize]))
    }

    /// Reports whether no policy except the history keeps a sample of this writer from the reader.
    pub(super) fn shows_all(&self, writer: EndpointId, reader: EndpointId) -> bool {
        self.endpoints[reader as usize].qos.separation.is_none() && self.shows_last(writer, reader)
    }

    /// Reports whether no policy keeps the last sample of each instance of this writer from the
    /// reader.
    pub(super) fn shows_last(&self, writer: EndpointId, reader: EndpointId) -> bool {
        self.owns_for_certain(writer, reader)
            && self.outlives_takes(writer, reader)
            && self.takes_in_time(reader)
            && !self.may_be_overtaken(writer, reader)
    }

    /// Checks that a taken sample is from the owner of its instance.
    pub(super) fn check_owner(
        &mut self,
        writer: EndpointId,
        reader: EndpointId,
        found: &Identity,
    ) -> Result<(), (Rule, String)> {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        if to.qos.strength.is_none() {
            return Ok(());
        }
        let before = self.owners.insert((reader, found.instance), (writer, found.number));
        let Some((owner, number)) = before.filter(|(owner, _)| *owner != writer) else { return Ok(()) };
        let certain = self.take_period(reader) == 0 && !self.lapsed.contains(&reader) && !self.late.contains(&reader);
        let pair = self.pairs.get(&(owner, reader)).filter(|pair| pair.is_matched() && pair.arrived.contains(number));
        let of_owner = &self.endpoints[owner as usize];
        // The end of an instance may change its owner without a visible sample.
        let ends = |writer: EndpointId| {
            let mut written = self.endpoints[writer as usize].written.iter();
            written.any(|change| change.instance == found.instance && change.kind != ChangeKind::Alive)
        };
        let may_have_ended = self.pairs.keys().any(|(other, to)| *to == reader && ends(*other));
        let is_known = !from.has_other_strengths() && !of_owner.has_other_strengths();
        if certain && pair.is_some() && !may_have_ended && is_known && !outranks(from, of_owner) {
            return Err((Rule::Ownership, format!("{found:?}, but writer {owner} owns the instance")));
        }
        Ok(())
    }

    /// Checks a REQUESTED_DEADLINE_MISSED status of a reader.
    pub fn requested_deadline_missed(&mut self, at: Nanos, reader: EndpointId, status: &DeadlineMissedStatus) {
        self.late.insert(reader);
        self.record_deadline_status(at, reader, status.total_count);
        let to = &self.endpoints[reader as usize];
        let instance = status.last_instance.and_then(|handle| sample::instance_of(&handle.0));
        let (Some(instance), Some(period)) = (instance, shortest(to)) else {
            return self.report(at, Rule::Deadline, format!("reader {reader} was promised nothing: {status:?}"));
        };
        let certain =
            self.is_calm_at(reader) && self.light && to.qos.max_samples.is_none() && to.qos.strength.is_none();
        let window = (at.saturating_sub(period - period / DRIFT_PARTS), at.saturating_sub(TRANSIT_MAX));
        let arrived = |(key, pair): (&(EndpointId, EndpointId), &super::pair::Pair)| {
            let from = &self.endpoints[key.0 as usize];
            let floor = pair.floor.unwrap_or(u32::MAX) as usize;
            key.1 == reader && pair.is_matched() && wrote_within(from, instance, window, floor)
        };
        if certain && self.pairs.iter().any(arrived) {
            self.report(at, Rule::Deadline, format!("reader {reader} got instance {instance} in time"));
        }
    }

    /// Checks an OFFERED_DEADLINE_MISSED status of a writer.
    pub fn offered_deadline_missed(&mut self, at: Nanos, writer: EndpointId, status: &DeadlineMissedStatus) {
        self.record_deadline_status(at, writer, status.total_count);
        let from = &self.endpoints[writer as usize];
        let instance = status.last_instance.and_then(|handle| sample::instance_of(&handle.0));
        let (Some(instance), Some(period)) = (instance, shortest(from)) else {
            return self.report(at, Rule::Deadline, format!("writer {writer} promised nothing: {status:?}"));
        };
        let window = (at.saturating_sub(period - period / DRIFT_PARTS), at);
        if wrote_within(from, instance, window, 0) {
            self.report(at, Rule::Deadline, format!("writer {writer} wrote instance {instance} in time"));
        }
    }

    /// Checks the final count of missed deadlines of a reader, `drain_time` after the last write. A
    /// reader that was created later misses deadlines from its creation on.
    pub fn finish_requested(&mut self, at: Nanos, reader: EndpointId, reported: u64, drain_time: Nanos) {
        let Some(period) = self.endpoints[reader as usize].qos.deadline else { return };
        let drain_time = drain_time.min(at - self.endpoints[reader as usize].created_at);
        let of_reader = self.states.range((reader, 0)..=(reader, u8::MAX));
        let alive = of_reader.filter(|(_, state)| **state == InstanceState::Alive).count() as u64;
        let least = alive * (drain_time.saturating_sub(LAST_ARRIVALS) / period);
        if reported < least && self.takes_in_time(reader) {
            let text = format!("reader {reader} was told of {reported} missed deadlines, there were {least}");
            self.report(at, Rule::Deadline, text);
        }
    }

    /// Checks the final count of missed deadlines of a writer, `drain_time` after its last write.
    pub fn finish_offered(
        &mut self,
        at: Nanos,
        writer: EndpointId,
        drain_time: Nanos,
        reported: u64,
        lost: &LivelinessLostStatus,
    ) {
        let from = &self.endpoints[writer as usize];
        let mut last = [None; 256];
        for change in &from.written {
            last[usize::from(change.instance)] = Some(change.kind);
        }
        let alive = last.iter().filter(|kind| **kind == Some(ChangeKind::Alive)).count() as u64;
        let least = from.qos.deadline.map_or(0, |period| alive * (drain_time / period).saturating_sub(1));
        if reported < least {
            let text = format!("writer {writer} was told of {reported} missed deadlines, there were {least}");
            return self.report(at, Rule::Deadline, text);
        }
        if (lost.total_count > 0) == model::is_alive_at_rest(&from.qos) {
            let text = format!("writer {writer} lost its liveliness {} times: {:?}", lost.total_count, from.qos);
            self.report(at, Rule::Liveliness, text);
        }
    }

    /// Checks a LIVELINESS_LOST status of a writer.
    pub fn liveliness_lost(&mut self, at: Nanos, writer: EndpointId) {
        self.record_liveliness_lost(at, writer);
        let from = &self.endpoints[writer as usize];
        let lease = from.qos.liveliness.map_or(Nanos::MAX, |liveliness| liveliness.lease);
        let silent = at - from.written_at.last().copied().unwrap_or(0);
        if silent < lease - lease / DRIFT_PARTS {
            self.report(at, Rule::Liveliness, format!("writer {writer} was silent for {silent} ns only"));
        }
    }
}

/// Returns the shortest DEADLINE that an endpoint has ever had.
fn shortest(endpoint: &Endpoint) -> Option<Nanos> {
    endpoint.policies().filter_map(|qos| qos.deadline).min()
}

/// Reports whether the first of two writers has always owned the instances that both write.
fn outranks(first: &Endpoint, second: &Endpoint) -> bool {
    first.policies().all(|qos| second.policies().all(|other| model::outranks((qos, first.guid), (other, second.guid))))
}

/// Reports whether a sample of the instance after the first `floor` changes was written in a time
/// span.
fn wrote_within(writer: &Endpoint, instance: u8, (from, until): (Nanos, Nanos), floor: usize) -> bool {
    let recent = writer.written_at.partition_point(|at| *at <= from).max(floor);
    let changes = writer.written_at.iter().zip(&writer.written).skip(recent);
    let mut within = changes.take_while(|(at, _)| **at <= until);
    within.any(|(_, change)| change.instance == instance && change.kind == ChangeKind::Alive)
}
