//! When a writer asks its readers what they have (RTPS 2.5 §8.4.2.2.3, §8.4.9).
//!
//! Heartbeats ride on data where acknowledgements are wanted soon: every [`SAMPLES_PER_HEARTBEAT`] samples, or an eighth of what the
//! writer may hold if that is less and it fills up; a quarter of the send window; or when the window is full. For the rest there is a timer: it starts fast
//! after the first unacknowledged sample and backs off while nothing is acknowledged.

use crate::time::Instant;
use core::time::Duration;

const SAMPLES_PER_HEARTBEAT: u32 = 64;
/// What one more reader adds to the first period.
const TIME_PER_LAGGING_READER: Duration = Duration::from_micros(500);

#[derive(Debug, Default)]
pub(crate) struct HeartbeatState {
    count: i32,
    samples_since: u32,
    bytes_since: usize,
    /// Current period of the timer; zero before the first one.
    period: Duration,
    /// How often the timer fired since anything was acknowledged.
    repetitions: u32,
}

impl HeartbeatState {
    /// The number of the next heartbeat; the accounts start again.
    pub(crate) fn next_count(&mut self) -> i32 {
        self.samples_since = 0;
        self.bytes_since = 0;
        self.next_greeting_count()
    }

    /// The number of a heartbeat that asks for nothing: the accounts go on.
    pub(crate) fn next_greeting_count(&mut self) -> i32 {
        self.count = self.count.wrapping_add(1);
        self.count
    }

    /// A writer without reliable readers never sends a heartbeat, so the accounts saturate.
    pub(crate) fn sent(&mut self, samples: u32, bytes: usize) {
        self.samples_since = self.samples_since.saturating_add(samples);
        self.bytes_since = self.bytes_since.saturating_add(bytes);
    }

    /// Whether the datagram being built should carry a heartbeat. `filling`: how many samples the writer may hold, if it has so
    /// many that the application will soon have to wait. Even then not every datagram does: an answer to each costs as much as
    /// the data.
    pub(crate) fn wanted(&self, stalled: bool, filling: Option<usize>, window_bytes: usize) -> bool {
        let eighth = filling.and_then(|samples_max| u32::try_from(samples_max / 8).ok()); // tidy-allow(dropped-cause): more than enough.
        let samples = eighth.map_or(SAMPLES_PER_HEARTBEAT, |eighth| eighth.clamp(1, SAMPLES_PER_HEARTBEAT));
        self.samples_since > 0 && (stalled || self.samples_since >= samples || self.bytes_since >= window_bytes / 4)
    }

    /// Readers have acknowledged something: be fast again.
    pub(crate) fn progress(&mut self) {
        self.period = Duration::ZERO;
        self.repetitions = 0;
    }

    /// The timer fired.
    pub(crate) fn repeated(&mut self) {
        self.repetitions = self.repetitions.saturating_add(1);
    }

    /// Whether the timer's heartbeat is the first since anything was acknowledged.
    pub(crate) fn is_first(&self) -> bool {
        self.repetitions <= 1
    }

    /// When the timer should fire next. The more readers lag, the more datagrams a heartbeat is and the longer
    /// their answers take, so the slower it begins.
    pub(crate) fn next_due(&mut self, now: Instant, first: Duration, longest: Duration, lagging: u32) -> Instant {
        let first = first.max(TIME_PER_LAGGING_READER * lagging).min(longest);
        self.period = if self.period.is_zero() { first } else { (self.period * 2).min(longest) };
        now.after(self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_backs_off_until_there_is_progress() {
        let mut state = HeartbeatState::default();
        let ms = Duration::from_millis;
        let due = |state: &mut HeartbeatState| state.next_due(Instant(0), ms(5), ms(100), 1).0 / 1_000_000;
        let periods: [u64; 7] = core::array::from_fn(|_| due(&mut state));
        assert_eq!(periods, [5, 10, 20, 40, 80, 100, 100]);
        state.progress();
        assert_eq!(due(&mut state), 5);
        state.progress();
        assert_eq!(state.next_due(Instant(0), ms(5), ms(100), 100), Instant(50_000_000), "a crowd is asked slower");
    }

    #[test]
    fn a_writer_that_never_sends_a_heartbeat_does_not_overflow() {
        let mut state = HeartbeatState { samples_since: u32::MAX, bytes_since: usize::MAX - 10, ..Default::default() };
        state.sent(1, 100);
        assert_eq!((state.samples_since, state.bytes_since), (u32::MAX, usize::MAX));
    }

    #[test]
    fn a_heartbeat_is_wanted_after_enough_samples_or_bytes() {
        let mut state = HeartbeatState::default();
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
    fn a_writer_that_fills_up_asks_every_eighth_of_what_it_may_hold() {
        for (samples_max, expected) in [(1, 1), (8, 1), (16, 2), (400, 50), (4096, 64), (usize::MAX, 64)] {
            let mut state = HeartbeatState::default();
            let sent = (1..).find(|_| {
                state.sent(1, 0);
                state.wanted(false, Some(samples_max), 1000)
            });
            assert_eq!(sent, Some(expected), "{samples_max}");
        }
    }
}
