//! When a writer asks its readers what they have (RTPS 2.5 §8.4.2.2.3, §8.4.9).
//!
//! Heartbeats ride on data where acknowledgements are wanted soon: every [`SAMPLES_PER_HEARTBEAT`] samples, or an eighth of what the
//! writer may hold if that is less and it fills up; a quarter of the send window; or when the window is full. For the rest there is a timer: it asks the readers
//! that lag, each fast at first, and ever slower while it acknowledges nothing more. What another reader acknowledges changes
//! nothing for it: among many readers there is always one that does.
//!
//! A builtin reader that has answered none of [`UNANSWERED_MAX`] questions is asked at most every [`SELDOM`]: its participant may
//! have refused this one. Its first answer, which may be a pre-emptive ACKNACK (RTPS 2.5 §8.4.12.2), brings back the periods of the
//! others. For readers of the application there is [`super::stragglers`].

use crate::context::Timing;
use crate::time::Instant;
use core::time::Duration;

const SAMPLES_PER_HEARTBEAT: u32 = 64;
/// What one more reader adds to the first period.
const TIME_PER_LAGGING_READER: Duration = Duration::from_micros(500);
/// Doublings of the period that are of use.
const DOUBLINGS_MAX: u32 = 16;
/// Questions at the periods of others to a builtin reader that has never answered. At the default period they take 12.4 s.
const UNANSWERED_MAX: u32 = 128;
/// The longest time between two questions to a builtin reader that has never answered, unless the period is longer.
const SELDOM: Duration = Duration::from_millis(3_200);

/// The questions to one reader.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Questions {
    /// When it was asked last.
    last: Instant,
    /// How often it was asked since it last acknowledged further samples.
    count: u32,
    /// It has answered one.
    pub(super) has_answered: bool,
    /// The next heartbeat asks it.
    pub(super) is_due: bool,
}

impl Questions {
    /// The reader has acknowledged further samples, or fewer than before: the next question follows after the first period.
    pub(super) fn answered(&mut self) {
        self.count = 0;
    }

    /// The reader has sent an acknowledgement. What its participant sent before it was asked, to show its address, is no answer.
    pub(super) fn note_answer(&mut self) {
        self.has_answered |= self.count > 0;
    }

    /// The timer fired, and the reader lags.
    pub(super) fn ask(&mut self, now: Instant, periods: Periods, rests: bool) {
        if self.due(periods, rests) <= now {
            *self = Self { last: now, count: self.count.saturating_add(1), is_due: true, ..*self };
        }
    }

    /// Whether the reader was asked at most once since it last acknowledged further samples.
    pub(super) fn is_first(&self) -> bool {
        self.count <= 1
    }

    /// When to ask it next. `rests`: see [`ReaderProxy::rests`](super::ReaderProxy::rests).
    pub(super) fn due(&self, periods: Periods, rests: bool) -> Instant {
        let doubled = |period: Duration, times: u32| period * 2_u32.pow(times.min(DOUBLINGS_MAX));
        let period = doubled(periods.first, self.count).min(periods.longest);
        if !rests || self.count <= UNANSWERED_MAX {
            return self.last.after(period);
        }
        let longest = SELDOM.max(periods.longest);
        self.last.after(doubled(period, self.count - UNANSWERED_MAX).min(longest))
    }
}

/// The first and the longest time between two questions to a reader that does not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    pub(super) first: Duration,
    longest: Duration,
}

impl Periods {
    /// The more readers lag, the more datagrams a heartbeat is and the longer their answers take, so the slower it begins.
    /// Both are `patience` times as long.
    pub(super) fn new(timing: &Timing, lagging: u32, patience: u32) -> Self {
        let longest = timing.heartbeat_period;
        let first = timing.heartbeat_first.max(TIME_PER_LAGGING_READER * lagging).min(longest);
        Self { first: first * patience, longest: longest * patience }
    }
}

#[derive(Debug, Default)]
pub(crate) struct HeartbeatState {
    count: i32,
    samples_since: u32,
    bytes_since: usize,
    /// From when a reader begins to lag until it is asked, as of when the timer was armed.
    pub(super) first_period: Duration,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(lagging: u32, patience: u32) -> Periods {
        let ms = Duration::from_millis;
        let timing = Timing {
            heartbeat_period: ms(100),
            heartbeat_first: ms(5),
            nack_delay: Duration::ZERO,
            nack_suppression: Duration::ZERO,
        };
        Periods::new(&timing, lagging, patience)
    }

    /// Between questions that are not answered, milliseconds.
    fn asked<const N: usize>(questions: &mut Questions, periods: Periods, rests: bool) -> [u64; N] {
        core::array::from_fn(|_| {
            let (last, due) = (questions.last, questions.due(periods, rests));
            questions.ask(due, periods, rests);
            (due.0 - last.0) / 1_000_000
        })
    }

    #[test]
    fn reader_is_asked_ever_slower_until_it_acknowledges_more() {
        let mut questions = Questions::default();
        assert_eq!(asked(&mut questions, periods(1, 1), true), [5, 10, 20, 40, 80, 100, 100]);
        questions.answered();
        assert_eq!(asked(&mut questions, periods(1, 1), false), [5]);
        questions.answered();
        assert_eq!(asked(&mut questions, periods(100, 1), false), [50, 100, 100], "a crowd is asked slower");
        assert_eq!(asked(&mut Questions::default(), periods(1, 6), false), [30, 60, 120, 240, 480, 600, 600]);
    }

    #[test]
    fn builtin_reader_that_never_answers_is_asked_seldom_until_it_does() {
        let mut questions = Questions::default();
        questions.note_answer();
        assert!(!questions.has_answered, "it was not asked yet");
        let first: [u64; UNANSWERED_MAX as usize + 1] = asked(&mut questions, periods(1, 1), true);
        assert_eq!((first[6], first[UNANSWERED_MAX as usize]), (100, 100));
        assert!(first.iter().sum::<u64>() > 12_000);
        assert_eq!(asked(&mut questions, periods(1, 1), true), [200, 400, 800, 1_600, 3_200, 3_200]);
        questions.note_answer();
        assert!(questions.has_answered);
        assert_eq!(asked(&mut questions, periods(1, 1), false), [100, 100]);
    }

    #[test]
    fn reader_is_not_asked_before_its_time() {
        let mut questions = Questions { last: Instant(1_000_000_000), ..Questions::default() };
        questions.ask(Instant(1_004_000_000), periods(1, 1), false);
        assert!(!questions.is_due);
        questions.ask(Instant(1_005_000_000), periods(1, 1), false);
        assert!(questions.is_due && questions.is_first());
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
