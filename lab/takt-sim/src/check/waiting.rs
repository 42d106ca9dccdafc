//! Checks of blocked writers: a writer that waits for space gets it soon after faults end.
//!
//! A reliable reader acknowledges received samples with the answer to the next heartbeat, within
//! the time limit of delivery ([`super::progress`]). A writer without history for late joiners
//! therefore waits at most that long, if its readers keep all and no limit blocks them.

use super::progress::{DELIVERY_PERIODS, HEARTBEAT_PERIOD};
use super::{Checker, EndpointId, Rule};
use crate::clock::Nanos;
use crate::model;

impl Checker {
    /// Records that a writer has found no space.
    pub fn writer_blocked(&mut self, writer: EndpointId) {
        self.waiting.entry(writer).or_insert(self.now);
    }

    /// Records that the writer was notified of space.
    pub fn writer_unblocked(&mut self, writer: EndpointId) {
        self.waiting.remove(&writer);
    }

    /// Checks that no writer has waited too long. No fault has been active since `quiet_since`;
    /// `None` if one is.
    pub(super) fn check_blocked_writers(&mut self, at: Nanos, quiet_since: Option<Nanos>) {
        let Some(quiet_since) = quiet_since else { return };
        let limit = DELIVERY_PERIODS * HEARTBEAT_PERIOD;
        let is_late = |(writer, since): &(&EndpointId, &Nanos)| {
            let budget = self.endpoints[**writer as usize].qos.budget;
            let since = quiet_since.max(**since).max(self.matched_at(**writer));
            at.saturating_sub(since) > limit + budget && self.is_freed_by_acknowledgments(**writer)
        };
        if let Some((writer, since)) = self.waiting.iter().find(is_late) {
            let text = format!("writer {writer} has waited for room since {:.3} s", *since as f64 / 1e9);
            self.report(at, Rule::BlockedWriter, text);
        }
    }

    /// Returns the time at which the last of its readers matched or was created.
    fn matched_at(&self, writer: EndpointId) -> Nanos {
        let matched = self.pairs.iter().filter(|((from, _), _)| *from == writer).map(|(_, pair)| pair.since);
        let topic = self.endpoints[writer as usize].topic;
        let created = self.endpoints.iter().filter(|other| other.topic == topic).map(|other| other.created_at);
        matched.chain(created).max().unwrap_or(0)
    }

    /// Reports whether each compatible reader is matched, and acknowledges every sample that
    /// arrives.
    fn is_freed_by_acknowledgments(&self, writer: EndpointId) -> bool {
        let from = &self.endpoints[writer as usize];
        let is_plain = !from.qos.transient_local && from.past.is_empty() && from.suspended.is_empty();
        let acknowledges = |(index, to): (usize, &super::Endpoint)| {
            let is_matched = self.pairs.get(&(writer, index as EndpointId)).is_some_and(super::pair::Pair::is_matched);
            is_matched && to.past.is_empty() && to.qos.max_samples.is_none() && !self.is_ignored(index as EndpointId)
        };
        let fits = |to: &super::Endpoint| {
            let is_reader = !to.is_writer && to.is_entitled;
            is_reader && to.alive && to.topic == from.topic && model::matches(&from.qos, &to.qos)
        };
        let mut readers = self.endpoints.iter().enumerate().filter(|(_, to)| fits(to));
        is_plain
            && from.is_entitled
            && !self.uses_presentation()
            && !self.is_ignored(writer)
            && readers.all(acknowledges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::QosPlan;
    use takt_wire::{EntityId, Guid, GuidPrefix};

    /// Reports whether a writer that waits from the start causes a violation within one second, of
    /// which the part after `quiet_since` has no fault.
    fn breaks(reader: QosPlan, quiet_since: Nanos) -> bool {
        let reliable = QosPlan { reliable: true, ..QosPlan::default() };
        let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
        let mut checker = Checker::default();
        let writer = checker.created(guid(1), 0, QosPlan { max_samples: Some(4), ..reliable }, true);
        let reader = checker.created(guid(2), 0, QosPlan { reliable: true, ..reader }, false);
        checker.matched(0, writer, &[guid(2)], 1);
        checker.matched(0, reader, &[guid(1)], 1);
        checker.writer_blocked(writer);
        for at in (1..=10).map(|period| period * HEARTBEAT_PERIOD) {
            checker.check_blocked_writers(at, (at >= quiet_since).then_some(quiet_since));
        }
        checker.violation().is_some()
    }

    #[test]
    fn writer_waits_at_most_a_few_heartbeat_periods_for_unlimited_readers() {
        let plain = QosPlan::default();
        assert!(breaks(plain, 0) && breaks(plain, 6 * HEARTBEAT_PERIOD));
        assert!(!breaks(plain, 8 * HEARTBEAT_PERIOD), "something was wrong until then");
        assert!(!breaks(QosPlan { max_samples: Some(9), ..plain }, 0), "the reader may be full");
    }
}
