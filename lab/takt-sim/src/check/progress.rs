//! Progress checks: delivery and discovery proceed within a stated time while no fault is active.
//!
//! [`Checker::check_progress`] is called once per heartbeat period. It determines which reliable
//! matches lack a sample, and which compatible endpoints are not matched. These states have time
//! limits:
//!
//! - **Delivery**: a missing sample arrives within [`DELIVERY_PERIODS`] heartbeat periods. A writer
//!   with unacknowledged samples sends at least one heartbeat per period. The reader may delay its
//!   answer by 32 ms, the repair is immediate: this is the second period. The third one is for
//!   queues in the network, and for a call of the check just before.
//! - **Discovery**: compatible endpoints match within [`DISCOVERY_PERIODS`] heartbeat periods.
//!   After a fault longer than the lease, a participant is discovered by its next announcement,
//!   after at most five periods. It is answered at once. Messages that a queue drops are repeated
//!   with the following announcement. Five periods are for the exchange of endpoint data by the
//!   reliable protocol.
//!
//! The limits do not apply while a fault is active, a process is stalled, a link is congested, or
//! participants may still wait for acknowledgments of a killed process. Readers that take once per
//! period have that period more, and so have the others of their topic, whose writers wait for
//! them. A reader with limited `max_samples` holds the samples of its writers in turn. It has that
//! period once for each writer of its topic, and once more for a sample that must be requested in
//! its turn. In group order, samples of one writer wait for those of the other writers of its
//! participant. As long as some of these arrive, all of them count as progressing.

use std::collections::BTreeMap;

use super::finish::newest;
use super::{Checker, EndpointId, Rule};
use crate::clock::{MILLISECOND, Nanos};
use crate::model;
use takt_wire::GuidPrefix;

/// Heartbeat period of the core, which simulated processes use.
pub const HEARTBEAT_PERIOD: Nanos = 100 * MILLISECOND;

/// Heartbeat periods within which a missing sample arrives.
pub const DELIVERY_PERIODS: u64 = 3;

/// Heartbeat periods within which compatible endpoints are matched.
pub const DISCOVERY_PERIODS: u64 = 15;

/// Additional heartbeat periods for discovery through a discovery server. A lost introduction is
/// repeated with one of eight announcements, which are five periods apart.
pub const INTRODUCTION_PERIODS: u64 = 8 * 5;

/// Additional heartbeat periods for discovery with authentication. A participant that has forgotten
/// the other one begins another handshake, which is answered 10 s after the last one
/// ([`takt_security::plugin::RENEWAL_PERIOD`]). Each of its messages is resent after one second.
pub const HANDSHAKE_PERIODS: u64 = 120;

/// State of a compatible writer and reader at the last call.
#[derive(Clone, Copy, Debug, Default)]
struct PairState {
    /// Time of the last progress.
    since: Nanos,
    matched: bool,
    /// Newest sample that has arrived. In group order: the sum over all pairs of the two
    /// participants, since samples of one writer wait for those of the others.
    last: u64,
}

/// Sums of the newest samples that have arrived, by the participants of writer and reader.
type Arrived = BTreeMap<(GuidPrefix, GuidPrefix), u64>;

/// State of the progress checks.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pair_states: BTreeMap<(EndpointId, EndpointId), PairState>,
    /// Endpoints by topic, including those that have ended since the last call.
    of_topic: Vec<(Vec<EndpointId>, Vec<EndpointId>)>,
    /// Number of endpoints that are in `of_topic`.
    known: usize,
    /// Take period of each reader.
    take_period: Vec<Nanos>,
}

impl Checker {
    /// Sets the take period of a reader; 0 takes on data available.
    pub fn takes_every(&mut self, reader: EndpointId, period: Nanos) {
        let periods = &mut self.progress.take_period;
        periods.resize(periods.len().max(reader as usize + 1), 0);
        periods[reader as usize] = period;
    }

    /// Checks progress. No fault has been active since `quiet_since`; `None` if one is.
    pub fn check_progress(&mut self, at: Nanos, quiet_since: Option<Nanos>) {
        self.check_due_statuses(at);
        self.check_blocked_writers(at, quiet_since);
        self.index_topics();
        let mut seen = std::mem::take(&mut self.progress.pair_states);
        let arrived = self.is_seen_by_group().then(|| self.arrived_between_participants());
        let mut late = None;
        for (writers, readers) in &self.progress.of_topic {
            let longest =
                |reader: &EndpointId| self.take_period(*reader) * self.takes_until_space(*reader, writers.len());
            let pause = readers.iter().map(longest).max().unwrap_or(0);
            for pair in writers.iter().flat_map(|writer| readers.iter().map(move |reader| (*writer, *reader))) {
                if !self.is_compatible(pair) {
                    seen.remove(&pair);
                    continue;
                }
                let before = seen.entry(pair).or_insert(PairState { since: at, ..PairState::default() });
                let (now, must_change) = self.pair_state(at, pair, arrived.as_ref());
                let quiet = quiet_since.is_some_and(|since| since <= before.since);
                if !quiet || !must_change || (before.matched, before.last) != (now.matched, now.last) {
                    *before = now;
                } else if at - before.since
                    > self.time_limit(now.matched, pause + self.endpoints[pair.0 as usize].qos.budget)
                {
                    late.get_or_insert((pair, *before));
                }
            }
        }
        let alive = |(writer, reader): &(EndpointId, EndpointId)| self.is_alive(*writer) && self.is_alive(*reader);
        seen.retain(|pair, _| alive(pair));
        self.progress.pair_states = seen;
        if let Some(((writer, reader), seen)) = late {
            let what = if seen.matched { "gets nothing more" } else { "is not matched" };
            let since = seen.since as f64 / 1e9;
            let owed = self.newest_owed((writer, reader));
            let owed = owed.map_or_else(String::new, |number| format!(", which owes number {number},"));
            self.report(
                at,
                Rule::Progress,
                format!("reader {reader} {what} of writer {writer}{owed} since {since:.3} s"),
            );
        }
    }

    fn index_topics(&mut self) {
        let mut of_topic = std::mem::take(&mut self.progress.of_topic);
        for (writers, readers) in &mut of_topic {
            writers.retain(|writer| self.is_alive(*writer));
            readers.retain(|reader| self.is_alive(*reader));
        }
        for (id, endpoint) in self.endpoints.iter().enumerate().skip(self.progress.known) {
            of_topic.resize_with(of_topic.len().max(endpoint.topic + 1), Default::default);
            let (writers, readers) = &mut of_topic[endpoint.topic];
            if endpoint.is_writer { writers } else { readers }.push(id as EndpointId);
        }
        self.progress.known = self.endpoints.len();
        self.progress.of_topic = of_topic;
    }

    fn is_alive(&self, id: EndpointId) -> bool {
        self.endpoints[id as usize].alive
    }

    fn is_compatible(&self, (writer, reader): (EndpointId, EndpointId)) -> bool {
        let (from, to) = (&self.endpoints[writer as usize], &self.endpoints[reader as usize]);
        from.alive && to.alive && self.must_match(from, to)
    }

    /// Returns the state of a pair, and whether it must change.
    fn pair_state(&self, at: Nanos, key: (EndpointId, EndpointId), arrived: Option<&Arrived>) -> (PairState, bool) {
        let pair = self.pairs.get(&key).filter(|pair| pair.is_matched());
        let Some(pair) = pair else {
            return (PairState { since: at, matched: false, last: 0 }, true);
        };
        let to = &self.endpoints[key.1 as usize];
        // A KEEP_LAST history may lose samples of one writer to those of another, if they are not
        // taken completely at once, or if samples of several writers appear together after they
        // waited for one another.
        let may_wait = self.is_seen_by_group() || self.takes_parts;
        let taken_one_by_one = self.take_period(key.1) == 0 && !(may_wait && self.shares_instances(key.0, key.1));
        let shown = to.qos.keep_last.is_none() || taken_one_by_one;
        let must_change = shown && self.newest_owed(key).is_some();
        let of_both = arrived.and_then(|arrived| arrived.get(&self.participants_of(key)).copied());
        (PairState { since: at, matched: true, last: of_both.unwrap_or(pair.last.into()) }, must_change)
    }

    fn participants_of(&self, (writer, reader): (EndpointId, EndpointId)) -> (GuidPrefix, GuidPrefix) {
        let prefix = |id: EndpointId| self.endpoints[id as usize].guid.prefix;
        (prefix(writer), prefix(reader))
    }

    fn arrived_between_participants(&self) -> Arrived {
        let mut arrived = Arrived::new();
        for (key, pair) in &self.pairs {
            *arrived.entry(self.participants_of(*key)).or_default() += u64::from(pair.last);
        }
        arrived
    }

    /// Records that the process of these readers is no longer stalled, and has handled all
    /// datagrams that arrived meanwhile.
    pub fn resumed(&mut self, readers: impl Iterator<Item = EndpointId>) {
        for reader in readers {
            for ((writer, _), pair) in self.pairs.iter_mut().filter(|((_, to), _)| *to == reader) {
                pair.written_during_stall = self.endpoints[*writer as usize].written.len() as u32;
            }
        }
    }

    /// Returns the newest sample that the reader has not received and that must arrive.
    pub(super) fn newest_owed(&self, key: (EndpointId, EndpointId)) -> Option<u32> {
        let pair = self.pairs.get(&key).filter(|pair| pair.is_matched())?;
        let (from, to) = (&self.endpoints[key.0 as usize], &self.endpoints[key.1 as usize]);
        if self.drops_sets() || !model::is_reliable(&from.qos, &to.qos) || !self.shows_all(key.0, key.1) {
            return None;
        }
        let missing = newest(from, model::depth(&from.qos, &to.qos)).take_while(|number| *number > pair.last);
        // Of the samples that arrived together after a stall, a KEEP_LAST history may hold only
        // those of other writers.
        let crowded = if self.shares_instances(key.0, key.1) { pair.written_during_stall } else { 0 };
        missing.into_iter().find(|number| *number > crowded && pair.is_promised(from, *number))
    }

    /// Returns the number of takes until the reader has space for a sample of each of `writers`
    /// writers.
    fn takes_until_space(&self, reader: EndpointId, writers: usize) -> u64 {
        let is_limited = self.endpoints[reader as usize].qos.max_samples.is_some();
        if is_limited { writers as u64 + 1 } else { 1 }
    }

    /// Returns the time limit of a state; `pause` is the longest take period of a reader of the
    /// topic.
    fn time_limit(&self, matched: bool, pause: Nanos) -> Nanos {
        if matched {
            return DELIVERY_PERIODS * HEARTBEAT_PERIOD + pause;
        }
        let introduction = if self.introduced { INTRODUCTION_PERIODS } else { 0 };
        let handshake = if self.authenticated { HANDSHAKE_PERIODS } else { 0 };
        (DISCOVERY_PERIODS + introduction + handshake) * HEARTBEAT_PERIOD
    }

    pub(super) fn take_period(&self, reader: EndpointId) -> Nanos {
        self.progress.take_period.get(reader as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Change;
    use crate::scenario::QosPlan;
    use takt_core::{ChangeKind, Config};
    use takt_wire::qos::{AccessScope, Presentation};
    use takt_wire::{EntityId, Guid, GuidPrefix, Timestamp};

    const SAMPLE: Change = Change { instance: 0, kind: ChangeKind::Alive, to: None, len: 24 };

    /// Creates a writer and a reader, which are matched if `matched`.
    fn checker(matched: bool) -> Checker {
        let mut checker = Checker::default();
        let reliable = QosPlan { reliable: true, ..QosPlan::default() };
        let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
        let writer = checker.created(guid(1), 0, reliable, true);
        let reader = checker.created(guid(2), 0, reliable, false);
        if matched {
            checker.matched(0, writer, &[guid(2)], 1);
            checker.matched(0, reader, &[guid(1)], 1);
        }
        checker
    }

    /// Calls the check once per heartbeat period until a violation, and returns the number of the
    /// call.
    fn check_at(checker: &mut Checker, quiet_since: impl Fn(Nanos) -> Option<Nanos>) -> Option<u64> {
        (1..80).find(|period| {
            checker.check_progress(period * HEARTBEAT_PERIOD, quiet_since(period * HEARTBEAT_PERIOD));
            checker.violation().is_some()
        })
    }

    #[test]
    fn heartbeat_period_equals_that_of_the_core() {
        let period = Config::new(0, GuidPrefix([0; 12])).heartbeat_period;
        assert_eq!(period.as_nanos(), u128::from(HEARTBEAT_PERIOD));
    }

    #[test]
    fn missing_sample_is_reported_after_its_time_limit() {
        let mut nothing_owed = checker(true);
        assert_eq!(check_at(&mut nothing_owed, |_| Some(0)), None);
        let mut owed = checker(true);
        owed.wrote(0, Timestamp::ZERO, 0, SAMPLE);
        assert_eq!(check_at(&mut owed, |_| Some(0)), Some(2 + DELIVERY_PERIODS));
    }

    #[test]
    fn reader_with_max_samples_takes_from_each_writer_in_turn() {
        let mut checker = Checker::default();
        let reliable = QosPlan { reliable: true, ..QosPlan::default() };
        let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
        let reader = checker.created(guid(0), 0, QosPlan { max_samples: Some(1), ..reliable }, false);
        checker.takes_every(reader, 4 * HEARTBEAT_PERIOD);
        for id in 1..=2 {
            let writer = checker.created(guid(id), 0, reliable, true);
            checker.matched(0, writer, &[guid(0)], 1);
        }
        checker.matched(0, reader, &[guid(1), guid(2)], 2);
        checker.wrote(0, Timestamp::ZERO, 1, SAMPLE);
        assert_eq!(check_at(&mut checker, |_| Some(0)), Some(2 + DELIVERY_PERIODS + 3 * 4), "seed 60382");
    }

    /// Two writers of a participant: a sample of the first one is missing, while samples of the
    /// second one arrive.
    #[test]
    fn samples_wait_for_another_writer_only_in_group_order() {
        for (access_scope, expected) in [(AccessScope::Group, None), (AccessScope::Topic, Some(2 + DELIVERY_PERIODS))] {
            let mut checker = Checker::default();
            checker.set_presentation(Presentation { access_scope, ordered_access: true, ..Presentation::default() });
            let reliable = QosPlan { reliable: true, ..QosPlan::default() };
            let guid = |id: u8, key| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::user_writer(key, true) };
            let reader = checker.created(guid(0, 1), 0, reliable, false);
            let writers = [1, 2].map(|key| checker.created(guid(1, key), 0, reliable, true));
            for (key, writer) in [1, 2].into_iter().zip(writers) {
                checker.matched(0, writer, &[guid(0, 1)], key);
            }
            checker.matched(0, reader, &[guid(1, 1), guid(1, 2)], 2);
            checker.wrote(0, Timestamp::ZERO, writers[0], SAMPLE);
            let late = (1..20).find(|period| {
                checker.pairs.get_mut(&(writers[1], reader)).expect("they match").last += 1;
                checker.check_progress(period * HEARTBEAT_PERIOD, Some(0));
                checker.violation().is_some()
            });
            assert_eq!(late, expected, "{access_scope:?}, seed 9604666");
        }
    }

    /// Creates a KEEP_LAST 1 reader of topic 0 that is matched with this number of writers.
    fn keep_last_1_reader(checker: &mut Checker, writers: u8) -> EndpointId {
        let qos = QosPlan { reliable: true, keep_last: Some(1), ..QosPlan::default() };
        let guid = |id: u8| Guid { prefix: GuidPrefix([id; 12]), entity_id: EntityId::UNKNOWN };
        let reader = checker.created(guid(0), 0, qos, false);
        let guids: Vec<_> = (1..=writers).map(guid).collect();
        for writer in &guids {
            let id = checker.created(*writer, 0, qos, true);
            checker.matched(0, id, &[guid(0)], 1);
        }
        checker.matched(0, reader, &guids, u32::from(writers));
        reader
    }

    #[test]
    fn stalled_reader_may_lose_samples_of_one_writer_to_those_of_another() {
        let breaks = |writers: u8, is_written_before: bool| {
            let mut checker = Checker::default();
            let reader = keep_last_1_reader(&mut checker, writers);
            if is_written_before {
                checker.wrote(0, Timestamp::ZERO, 1, SAMPLE);
            }
            checker.resumed([reader].into_iter());
            if !is_written_before {
                checker.wrote(0, Timestamp::ZERO, 1, SAMPLE);
            }
            check_at(&mut checker, |_| Some(0)).is_some()
        };
        assert!(!breaks(2, true), "seed 1000821");
        assert!(breaks(1, true), "no other writer replaces its samples");
        assert!(breaks(2, false), "it was written after the process had got processor time");
    }

    #[test]
    fn limits_do_not_apply_during_faults() {
        let mut wrong = checker(true);
        wrong.wrote(0, Timestamp::ZERO, 0, SAMPLE);
        assert_eq!(check_at(&mut wrong, |_| None), None);
        let mut healed = checker(true);
        healed.wrote(0, Timestamp::ZERO, 0, SAMPLE);
        let heals = 10 * HEARTBEAT_PERIOD;
        assert_eq!(check_at(&mut healed, |at| (at >= heals).then_some(heals)), Some(11 + DELIVERY_PERIODS));
    }

    #[test]
    fn samples_shown_together_by_a_group_may_displace_others() {
        let breaks = |ordered_access: bool, writers: u8| {
            let mut checker = Checker::default();
            checker.set_presentation(Presentation {
                access_scope: AccessScope::Group,
                coherent_access: false,
                ordered_access,
            });
            keep_last_1_reader(&mut checker, writers);
            checker.wrote(0, Timestamp::ZERO, 1, SAMPLE);
            check_at(&mut checker, |_| Some(0)).is_some()
        };
        assert!(breaks(false, 2) && breaks(true, 1));
        assert!(!breaks(true, 2), "seed 1020");
    }

    #[test]
    fn missing_match_is_reported_after_its_time_limit() {
        assert_eq!(check_at(&mut checker(false), |_| Some(0)), Some(2 + DISCOVERY_PERIODS));
        let mut introduced = checker(false);
        introduced.introduced = true;
        assert_eq!(check_at(&mut introduced, |_| Some(0)), Some(2 + DISCOVERY_PERIODS + INTRODUCTION_PERIODS));
    }
}
