//! Checks of instance states and writer liveliness.

use takt_core::{ChangeKind, InstanceState, LivelinessChangedStatus, SampleRef};
use takt_wire::qos::LivelinessKind;
use takt_wire::{Guid, Timestamp};

use super::exact::DRIFT_PARTS;
use super::pair::Pair;
use super::{Checker, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;
use crate::sample;

/// Tolerance below the lease of a writer without assertions, for clock drift and transit times. In
/// exact worlds the transit times are known.
const LEASE_SLACK: Nanos = 70 * MILLISECOND;

impl Checker {
    pub(super) fn record_state(&mut self, at: Nanos, reader: EndpointId, found: &SampleRef<'_>) {
        if let Some(instance) = sample::instance_of(&found.info.instance_handle.0) {
            let is_alive = found.info.instance_state == InstanceState::Alive;
            self.record_time(at, reader, instance, is_alive);
            self.states.insert((reader, instance), found.info.instance_state);
        }
    }

    /// Checks an instance state change without data.
    pub(super) fn check_state_change(
        &mut self,
        wall: Timestamp,
        reader: EndpointId,
        found: &SampleRef<'_>,
    ) -> Result<(), (Rule, String)> {
        let info = &found.info;
        let Some(&writer) = self.by_guid.get(&info.publication) else {
            return Err((Rule::UnknownSample, format!("{info:?}")));
        };
        self.check_purge(wall, reader, info)?;
        if info.sequence_number.0 == 0 {
            // The writer has ended, or is not alive.
            return Ok(());
        }
        let Some(number) = self.number_of(writer, info.sequence_number.0) else {
            return Err((Rule::UnknownSample, format!("{info:?}")));
        };
        let change = self.endpoints[writer as usize].written.get(number as usize - 1);
        let instance = change.map_or(0, |change| change.instance);
        let is_true = change.is_some_and(|change| {
            change.kind != ChangeKind::Alive && sample::key_hash(change.instance) == info.instance_handle.0
        });
        if !is_true {
            return Err((Rule::UnknownSample, format!("{info:?} tells of {change:?}")));
        }
        let by_instance = self.is_taken_by_instance();
        let pair = self.pairs.entry((writer, reader)).or_default();
        if !pair.arrived.insert(number) {
            return Err((Rule::Duplicate, format!("{info:?}")));
        }
        let filtered = by_instance || self.endpoints[reader as usize].qos.separation.is_some();
        match pair.advance(number, instance, filtered) {
            Ok(_) => Ok(()),
            Err(last) => Err((Rule::Order, format!("{info:?} behind number {last}"))),
        }
    }

    /// Checks a LIVELINESS_CHANGED status of a reader.
    pub fn liveliness_changed(&mut self, at: Nanos, reader: EndpointId, status: &LivelinessChangedStatus) {
        self.record_liveliness_status(reader, status.alive_count, status.not_alive_count);
        if status.not_alive_count == 0 && status.not_alive_count_change == 0 {
            return;
        }
        self.lapsed.insert(reader);
        let last = status.last_publication.and_then(|guid| self.by_guid.get(&guid));
        let died = status.not_alive_count_change > 0 && status.alive_count_change < 0;
        let Some(&writer) = last.filter(|_| died && self.is_calm_at(reader) && self.light) else { return };
        let endpoint = &self.endpoints[writer as usize];
        let silent = at - self.arrived_last(writer, reader, at);
        let slack = |lease: Nanos| if self.exact { lease / DRIFT_PARTS + MILLISECOND } else { LEASE_SLACK };
        let too_early = match endpoint.qos.liveliness {
            None => true,
            Some(liveliness) if liveliness.kind == LivelinessKind::Automatic => endpoint.alive,
            Some(liveliness) => silent + slack(liveliness.lease) < liveliness.lease,
        };
        if too_early {
            let text = format!("reader {reader} takes writer {writer} for dead, {:?}", endpoint.qos.liveliness);
            self.report(at, Rule::Liveliness, text);
        }
    }

    /// Returns the longest finite lease of a writer.
    #[must_use]
    pub fn longest_lease(&self) -> Nanos {
        let leases = self.endpoints.iter().filter_map(|endpoint| endpoint.qos.liveliness);
        leases.map(|liveliness| liveliness.lease).max().unwrap_or(0)
    }

    /// Checks the final numbers of alive and not alive writers of a reader.
    pub fn finish_liveliness(&mut self, at: Nanos, reader: EndpointId, alive: u32, not_alive: u32) {
        let of_reader = self.pairs.iter().filter(|((_, to), pair)| *to == reader && pair.is_matched());
        let (living, dead): (Vec<_>, Vec<_>) =
            of_reader.partition(|((writer, _), _)| model::is_alive_at_rest(&self.endpoints[*writer as usize].qos));
        let expected = (living.len() as u32, dead.len() as u32);
        // An ignored reader does not know that it is ignored, and keeps its match with the writer.
        let is_checked = self.endpoints[reader as usize].is_entitled && !self.is_ignored(reader);
        if (alive, not_alive) != expected && is_checked {
            let text =
                format!("reader {reader}: {:?} are alive and not, it should be {expected:?}", (alive, not_alive));
            self.report(at, Rule::Liveliness, text);
        }
    }

    /// Checks the final states of instances.
    pub(super) fn finish_instances(&mut self, at: Nanos) {
        let mut wrong = None;
        for (&(reader, instance), &state) in &self.states {
            // A reader has not seen the changes that it has not taken in time.
            let of_reader = &self.endpoints[reader as usize];
            // A reader that is no longer allowed does not learn that its matches have ended.
            let is_revoked = of_reader.was_entitled_until.is_some();
            let known = of_reader.alive && !is_revoked && self.takes_in_time(reader);
            if known && !self.may_be(reader, instance, state) {
                wrong.get_or_insert((reader, instance, state));
            }
        }
        if let Some((reader, instance, state)) = wrong {
            self.report(at, Rule::Instance, format!("reader {reader}: instance {instance} is {state:?}"));
        }
    }

    fn may_be(&self, reader: EndpointId, instance: u8, state: InstanceState) -> bool {
        let of_reader = || self.pairs.iter().filter(|((_, to), _)| *to == reader);
        // An ignored reader does not learn that it is ignored, nor that a writer of the ignoring
        // participant is deleted.
        let is_ignored = self.is_ignored(reader);
        let ends_unheard =
            |writer: EndpointId| self.receives_nothing_from(reader, self.endpoints[writer as usize].guid);
        let lives = |((writer, _), pair): (&(EndpointId, EndpointId), &Pair)| {
            pair.is_matched() || (is_ignored && (pair.is_known_to_reader() || ends_unheard(*writer)))
        };
        if state == InstanceState::Alive && !of_reader().any(lives) {
            return false;
        }
        let mut writers = of_reader();
        let (Some(((writer, _), pair)), None) = (writers.next(), writers.next()) else {
            // With several writers, the last change is not known.
            return true;
        };
        if is_ignored || !pair.is_matched() {
            return true;
        }
        let (from, to) = (&self.endpoints[*writer as usize], &self.endpoints[reader as usize]);
        if from.has_moved() || to.has_moved() || to.has_other_filters() {
            // Its last change may have been made in another partition.
            return true;
        }
        let counts = |(index, change): &(usize, &super::Change)| {
            change.instance == instance
                && (change.kind != ChangeKind::Alive || model::wants(&to.qos, *index as u32 + 1, instance))
        };
        let of_instance = || from.written.iter().enumerate().filter(counts);
        let last = of_instance().next_back().map_or(0, |(index, _)| index as u32 + 1);
        if last == 0 || from.qos.directed || (to.qos.filter.is_some() && from.qos.keep_last.is_some()) {
            // Changes that are not for the reader may have displaced others.
            return true;
        }
        let arrives = model::is_reliable(&from.qos, &to.qos) && pair.floor.is_some_and(|floor| last > floor);
        let is_alive = model::is_alive_at_rest(&from.qos);
        if !arrives || !self.shows_last(*writer, reader) || (is_alive && self.lapsed.contains(&reader)) {
            return true;
        }
        // The history does not contain the instances that had ended before.
        let is_history = last <= pair.joined;
        if is_history && from.written[last as usize - 1].kind == ChangeKind::DisposedUnregistered {
            return true;
        }
        let changes: Vec<_> = of_instance().map(|(_, change)| change.kind).collect();
        model::may_be(state, &changes, is_alive, model::is_complete(&from.qos, &to.qos) && !is_history)
    }

    /// Checks that an endpoint is no longer matched with endpoints that have ended, after a time
    /// without faults; `peers` are the matched endpoints of `id`.
    pub fn check_unmatched(&mut self, at: Nanos, id: EndpointId, peers: &[Guid], gone: &[Guid]) {
        let mut notified = peers.iter().filter(|guid| !self.receives_nothing_from(id, **guid));
        if let Some(guid) =
            notified.find(|guid| gone.contains(guid)).copied().filter(|_| self.sound && !self.forges_addresses)
        {
            self.report(at, Rule::ParticipantEnd, format!("endpoint {id} believes in {guid:?}"));
        }
    }
}
