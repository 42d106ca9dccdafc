//! Heartbeat scheduling of a writer (RTPS 2.5 §8.4.2.2.3, §8.4.9).
//!
//! A heartbeat accompanies data when acknowledgments are needed soon: after
//! [`SAMPLES_PER_HEARTBEAT`] samples, or after an eighth of the writer's sample limit if that is
//! less and the history fills up; after a quarter of the send window; or when the window is full.
//! Otherwise a timer sends heartbeats to the lagging readers. Each reader is first sent heartbeats
//! frequently, then ever less often while it acknowledges nothing more. Acknowledgments of other
//! readers do not reset its period, because among many readers one always acknowledges.
//!
//! A builtin reader that answered none of [`UNANSWERED_MAX`] heartbeats gets one at most every
//! [`RARE_PERIOD`]: its participant may have refused this one. Its first answer, which may be a
//! pre-emptive ACKNACK (RTPS 2.5 §8.4.12.2), restores the normal periods. [`super::slow_readers`]
//! handles readers of the application.

use crate::context::Timing;
use crate::time::Instant;
use crate::timer::TimerId;
use core::time::Duration;
use takt_wire::SequenceNumber;

const SAMPLES_PER_HEARTBEAT: u32 = 64;
/// Time that each further lagging reader adds to the first period.
const TIME_PER_LAGGING_READER: Duration = Duration::from_micros(500);
/// Maximum number of doublings of the period.
const DOUBLINGS_MAX: u32 = 16;
/// Heartbeats at the normal periods to a builtin reader that has never answered. At the default
/// period they take 12.4 s.
const UNANSWERED_MAX: u32 = 128;
/// Longest time between two heartbeats to a builtin reader that has never answered, unless the
/// period is longer.
const RARE_PERIOD: Duration = Duration::from_millis(3_200);

/// Heartbeats to one reader.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeartbeatRetries {
    /// Time of the last heartbeat.
    last: Instant,
    /// Number of heartbeats since the reader last acknowledged further samples.
    count: u32,
    /// The reader has answered a heartbeat.
    pub(super) has_answered: bool,
    /// The next heartbeat is sent to this reader.
    pub(super) is_due: bool,
}

impl HeartbeatRetries {
    /// Restarts with the first period, because the reader has acknowledged further samples, or
    /// fewer than before.
    pub(super) fn acknowledged(&mut self) {
        self.count = 0;
    }

    /// Records an acknowledgment. An ACKNACK from before the first heartbeat, sent to validate an
    /// address, is no answer.
    pub(super) fn record_answer(&mut self) {
        self.has_answered |= self.count > 0;
    }

    /// Handles the timer for a lagging reader.
    pub(super) fn handle_timeout(&mut self, now: Instant, periods: Periods, is_unresponsive: bool) {
        if self.due(periods, is_unresponsive) <= now {
            *self = Self { last: now, count: self.count.saturating_add(1), is_due: true, ..*self };
        }
    }

    /// Reports whether the reader got at most one heartbeat since it last acknowledged further
    /// samples.
    pub(super) fn is_first(&self) -> bool {
        self.count <= 1
    }

    /// Returns the time of the next heartbeat. `is_unresponsive`: see
    /// [`ReaderProxy::is_unresponsive_builtin`](super::ReaderProxy::is_unresponsive_builtin).
    pub(super) fn due(&self, periods: Periods, is_unresponsive: bool) -> Instant {
        let doubled = |period: Duration, times: u32| period * 2_u32.pow(times.min(DOUBLINGS_MAX));
        let period = doubled(periods.first, self.count).min(periods.longest);
        if !is_unresponsive || self.count <= UNANSWERED_MAX {
            return self.last.after(period);
        }
        let longest = RARE_PERIOD.max(periods.longest);
        self.last.after(doubled(period, self.count - UNANSWERED_MAX).min(longest))
    }
}

/// First and longest time between two heartbeats to a reader that does not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    pub(super) first: Duration,
    longest: Duration,
}

impl Periods {
    /// Returns the periods. With more lagging readers, a heartbeat takes more datagrams and the
    /// answers take longer, so the first period is longer. Both are multiplied by `multiplier`.
    pub(super) fn new(timing: &Timing, lagging: u32, multiplier: u32) -> Self {
        let longest = timing.heartbeat_period;
        let first = timing.heartbeat_first.max(TIME_PER_LAGGING_READER * lagging).min(longest);
        Self { first: first * multiplier, longest: longest * multiplier }
    }
}

#[derive(Debug)]
pub(crate) struct HeartbeatState {
    pub(super) timer: TimerId,
    pub(super) is_queued: bool,
    /// A reliable reader may not have received a heartbeat yet.
    pub(super) readers_without: bool,
    /// Change before which such readers were last sent an initial heartbeat.
    pub(super) initial_before: SequenceNumber,
    /// The next heartbeat goes to all readers and asserts the writer's liveliness.
    pub(super) asserts: bool,
    count: i32,
    samples_since: u32,
    bytes_since: usize,
    /// Time from which a reader lags to its first heartbeat, as of when the timer was armed.
    pub(super) first_period: Duration,
}

impl HeartbeatState {
    pub(super) fn new(timer: TimerId) -> Self {
        Self {
            timer,
            is_queued: false,
            readers_without: false,
            initial_before: SequenceNumber::ZERO,
            asserts: false,
            count: 0,
            samples_since: 0,
            bytes_since: 0,
            first_period: Duration::ZERO,
        }
    }

    /// Returns the count of the next heartbeat and restarts the accounting.
    pub(crate) fn next_count(&mut self) -> i32 {
        self.samples_since = 0;
        self.bytes_since = 0;
        self.next_initial_count()
    }

    /// Returns the count of a heartbeat that requests no acknowledgment. The accounting continues.
    pub(crate) fn next_initial_count(&mut self) -> i32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// Records sent samples. A writer without reliable readers never sends a heartbeat, so the sums
    /// saturate.
    pub(crate) fn sent(&mut self, samples: u32, bytes: usize) {
        self.samples_since = self.samples_since.saturating_add(samples);
        self.bytes_since = self.bytes_since.saturating_add(bytes);
    }

    /// Reports whether the datagram being built should carry a heartbeat. `filling`: the writer's
    /// sample limit, if the history is so full that the application will soon block. Even then not
    /// every datagram carries one, because an answer to each costs as much as the data.
    pub(crate) fn wanted(&self, stalled: bool, filling: Option<usize>, window_bytes: usize) -> bool {
        let eighth = filling.and_then(|samples_max| u32::try_from(samples_max / 8).ok()); // tidy-allow(dropped-cause): more than enough.
        let samples = eighth.map_or(SAMPLES_PER_HEARTBEAT, |eighth| eighth.clamp(1, SAMPLES_PER_HEARTBEAT));
        self.samples_since > 0 && (stalled || self.samples_since >= samples || self.bytes_since >= window_bytes / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::timer::TimerKind;

    fn state() -> HeartbeatState {
        HeartbeatState::new(Context::for_tests().timers.register(TimerKind::Heartbeat { writer: 0 }))
    }

    fn periods(lagging: u32, multiplier: u32) -> Periods {
        let ms = Duration::from_millis;
        let timing = Timing {
            heartbeat_period: ms(100),
            heartbeat_first: ms(5),
            nack_delay: Duration::ZERO,
            nack_suppression: Duration::ZERO,
        };
        Periods::new(&timing, lagging, multiplier)
    }

    /// Returns the times between unanswered heartbeats in milliseconds.
    fn asked<const N: usize>(retries: &mut HeartbeatRetries, periods: Periods, is_unresponsive: bool) -> [u64; N] {
        core::array::from_fn(|_| {
            let (last, due) = (retries.last, retries.due(periods, is_unresponsive));
            retries.handle_timeout(due, periods, is_unresponsive);
            (due.0 - last.0) / 1_000_000
        })
    }

    #[test]
    fn heartbeat_period_doubles_until_the_reader_acknowledges_more() {
        let mut retries = HeartbeatRetries::default();
        assert_eq!(asked(&mut retries, periods(1, 1), true), [5, 10, 20, 40, 80, 100, 100]);
        retries.acknowledged();
        assert_eq!(asked(&mut retries, periods(1, 1), false), [5]);
        retries.acknowledged();
        assert_eq!(asked(&mut retries, periods(100, 1), false), [50, 100, 100], "many readers are probed slower");
        assert_eq!(asked(&mut HeartbeatRetries::default(), periods(1, 6), false), [30, 60, 120, 240, 480, 600, 600]);
    }

    #[test]
    fn builtin_reader_gets_rare_heartbeats_when_it_never_answers() {
        let mut retries = HeartbeatRetries::default();
        retries.record_answer();
        assert!(!retries.has_answered, "it was not probed yet");
        let first: [u64; UNANSWERED_MAX as usize + 1] = asked(&mut retries, periods(1, 1), true);
        assert_eq!((first[6], first[UNANSWERED_MAX as usize]), (100, 100));
        assert!(first.iter().sum::<u64>() > 12_000);
        assert_eq!(asked(&mut retries, periods(1, 1), true), [200, 400, 800, 1_600, 3_200, 3_200]);
        retries.record_answer();
        assert!(retries.has_answered);
        assert_eq!(asked(&mut retries, periods(1, 1), false), [100, 100]);
    }

    #[test]
    fn heartbeat_is_not_sent_before_it_is_due() {
        let mut retries = HeartbeatRetries { last: Instant(1_000_000_000), ..HeartbeatRetries::default() };
        retries.handle_timeout(Instant(1_004_000_000), periods(1, 1), false);
        assert!(!retries.is_due);
        retries.handle_timeout(Instant(1_005_000_000), periods(1, 1), false);
        assert!(retries.is_due && retries.is_first());
    }

    #[test]
    fn accounting_saturates_when_no_heartbeat_is_sent() {
        let mut state = HeartbeatState { samples_since: u32::MAX, bytes_since: usize::MAX - 10, ..state() };
        state.sent(1, 100);
        assert_eq!((state.samples_since, state.bytes_since), (u32::MAX, usize::MAX));
    }

    #[test]
    fn heartbeat_is_due_after_enough_samples_or_bytes() {
        let mut state = state();
        assert!(!state.wanted(true, None, 1000));
        state.sent(1, 10);
        assert!(state.wanted(true, None, 1000) && !state.wanted(false, None, 1000));
        state.sent(1, 240);
        assert!(state.wanted(false, None, 1000));
        state.next_count();
        for _ in 0..SAMPLES_PER_HEARTBEAT {
            assert!(!state.wanted(false, None, 1000));
            state.sent(1, 0);
        }
        assert!(state.wanted(false, None, 1000));
    }

    #[test]
    fn heartbeat_is_due_every_eighth_of_the_sample_limit_when_the_history_fills_up() {
        for (samples_max, expected) in [(1, 1), (8, 1), (16, 2), (400, 50), (4096, 64), (usize::MAX, 64)] {
            let mut state = state();
            let sent = (1..).find(|_| {
                state.sent(1, 0);
                state.wanted(false, Some(samples_max), 1000)
            });
            assert_eq!(sent, Some(expected), "{samples_max}");
        }
    }
}
