//! Repair bursts: flow control of repairs to one reader.
//!
//! Repairs must not displace one another from the queue of a slow link, so they are sent in bursts,
//! oldest first. After each burst a heartbeat requests what the reader still misses. The answer
//! takes a round trip and shows how much of the burst was lost. An answer without any trace of the
//! burst was sent before it arrived, unless enough time has passed: it requests samples that are in
//! transit (RTPS 2.5 §8.4.7.1, `nackSuppressionDuration`). If most of even the smallest bursts is
//! lost, pauses separate them.

use crate::path::NARROW_LEN;
use crate::time::Instant;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// Sizes of a burst in bytes.
const BURST_INITIAL: usize = 64 << 10;
const BURST_MIN: usize = 8 << 10;
const BURST_MAX: usize = 128 << 10;
/// Minimum and maximum time that a burst is given to arrive and be answered.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(64);

/// Pause between bursts of the least size, if most of them is lost.
const PAUSE_INITIAL: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(64);
/// Number of samples or fragments from which losses indicate congestion. The loss of fewer may be
/// random.
const CONGESTION_SAMPLES_MIN: u32 = 4;

/// Number of consecutive bursts without any long datagram arriving that proves a smaller path MTU.
const LONG_LOST_BURSTS: u32 = 5;
/// Number of long datagrams that are tracked in a burst, from its start.
const LONG_WATCHED: usize = 4;

/// Sample and fragment number; fragments count from 1.
type Position = (SequenceNumber, u32);

const NO_POSITION: Position = (SequenceNumber::ZERO, 0);

/// Long datagram that was sent.
#[derive(Clone, Copy, Debug)]
struct LongDatagram {
    first: Position,
    last: Position,
    /// The last answer requests a part of it, so it did not arrive.
    is_lost: bool,
}

/// Repairs for one request of one reader.
#[derive(Debug)]
pub(super) struct Burst {
    bytes: usize,
    bytes_left: usize,
    /// Number of samples and fragments that were sent; `end` lies above all of them.
    sent: u32,
    end: Position,
    /// Time at which the last datagram was sent.
    sent_at: Instant,
    /// Time within which an answer is expected.
    wait: Duration,
    /// Minimum time between bursts; earlier requests are ignored.
    pause: Duration,
    /// The burst repeats one that was not answered.
    repeats: bool,
    /// Time of the first answer to the burst.
    answered_at: Option<Instant>,
    /// Number of sent samples and fragments that the last answer requests again.
    lost: u32,
    /// First and last position in the datagram being built.
    datagram: Option<(Position, Position)>,
    /// First datagrams that exceed the minimum MTU of Ethernet.
    long: [Option<LongDatagram>; LONG_WATCHED],
    /// Number of consecutive bursts of which no such datagram arrived. Shorter ones may have.
    long_lost_bursts: u32,
}

impl Burst {
    pub(super) const fn new() -> Self {
        Self {
            bytes: BURST_INITIAL,
            bytes_left: BURST_INITIAL,
            sent: 0,
            end: NO_POSITION,
            sent_at: Instant(0),
            wait: WAIT_MIN,
            pause: Duration::ZERO,
            repeats: false,
            answered_at: None,
            lost: 0,
            datagram: None,
            long: [None; LONG_WATCHED],
            long_lost_bursts: 0,
        }
    }

    /// Reports whether long datagrams never arrive, although the reader answers.
    pub(super) fn path_is_narrow(&self) -> bool {
        self.long_lost_bursts >= LONG_LOST_BURSTS
    }

    /// Begins the evaluation of a new answer.
    pub(super) fn answer(&mut self, now: Instant) {
        self.answered_at.get_or_insert(now);
        self.lost = 0;
        self.long.iter_mut().flatten().for_each(|long| long.is_lost = false);
    }

    /// Marks the long datagrams between these positions as lost.
    fn mark_lost(&mut self, from: Position, to: Position) {
        for long in self.long.iter_mut().flatten() {
            long.is_lost |= from <= long.last && to >= long.first;
        }
    }

    /// Evaluates the requested samples, in ascending order. `fragments` returns the number of
    /// fragments of a sample.
    pub(super) fn evaluate_request(
        &mut self,
        samples: impl Iterator<Item = SequenceNumber>,
        fragments: impl Fn(SequenceNumber) -> u32,
    ) {
        let (last, until) = self.end;
        for sn in samples.take_while(|sn| *sn <= last) {
            self.lost += if sn < last { fragments(sn) } else { until.saturating_sub(1) };
            self.mark_lost((sn, 0), (sn, u32::MAX));
        }
    }

    /// Evaluates the requested fragments of a sample, in ascending order.
    pub(super) fn evaluate_fragment_request(&mut self, sn: SequenceNumber, fragments: impl Iterator<Item = u32>) {
        let end = self.end;
        for fragment in fragments.take_while(|fragment| (sn, *fragment) < end) {
            self.lost += 1;
            self.mark_lost((sn, fragment), (sn, fragment));
        }
    }

    /// Begins the next burst if the last one was answered. Returns false if the answer is too old
    /// to reflect the last burst.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let Some(answered_at) = self.answered_at.take() else { return true };
        let all_lost = self.sent > 0 && self.lost >= self.sent;
        let since = now.since(self.sent_at);
        if since < self.pause || (all_lost && since < self.wait) {
            return false;
        }
        if all_lost {
            self.wait *= 2;
        } else if self.sent > 0 {
            let answer_time = answered_at.since(self.sent_at);
            // For a repeated burst it is unknown which one was answered.
            let wait_min = if self.repeats { self.wait / 2 } else { Duration::ZERO };
            self.wait = wait_min.max(answer_time + answer_time / 2);
        }
        self.wait = self.wait.clamp(WAIT_MIN, WAIT_MAX);
        self.adapt();
        if self.long.iter().flatten().any(|long| !long.is_lost) {
            self.long_lost_bursts = 0;
        } else if self.long[0].is_some() {
            self.long_lost_bursts += 1;
        }
        (self.repeats, self.datagram, self.long) = (all_lost, None, [None; LONG_WATCHED]);
        self.bytes_left = self.bytes;
        self.sent = 0;
        self.end = NO_POSITION;
        true
    }

    /// Adapts the size and the pause to the losses of the last burst.
    fn adapt(&mut self) {
        if self.lost * 2 > self.sent {
            if self.bytes > BURST_MIN {
                self.bytes = (self.bytes / 2).max(BURST_MIN);
            } else if self.sent >= CONGESTION_SAMPLES_MIN {
                self.pause = (self.pause * 2).clamp(PAUSE_INITIAL, PAUSE_MAX);
            }
        } else if self.lost * 4 <= self.sent && self.sent > 0 {
            if !self.pause.is_zero() {
                self.pause = if self.pause > PAUSE_INITIAL { self.pause / 2 } else { Duration::ZERO };
            } else if self.bytes_left == 0 {
                self.bytes = (self.bytes * 2).min(BURST_MAX);
            }
        }
    }

    /// Records a sample or fragment that is sent.
    pub(super) fn record_sent(&mut self, now: Instant, position: Position) {
        self.sent += 1;
        self.sent_at = now;
        self.end = self.end.max((position.0, position.1 + 1));
        self.datagram = Some((self.datagram.map_or(position, |(first, _)| first), position));
    }

    /// Records a sent datagram; returns whether it is the last one of the burst.
    pub(super) fn record_datagram(&mut self, bytes: usize) -> bool {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        let slot = self.long.iter_mut().find(|long| long.is_none());
        if let (Some((first, last)), Some(slot)) = (self.datagram.take().filter(|_| bytes > NARROW_LEN), slot) {
            *slot = Some(LongDatagram { first, last, is_lost: false });
        }
        self.bytes_left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SequenceNumber = SequenceNumber(5);

    fn at(milliseconds: u64) -> Instant {
        Instant(milliseconds * 1_000_000)
    }

    /// Sends a whole burst of fragments of 1,000 octets. Returns their number.
    fn send(burst: &mut Burst, now: Instant) -> u32 {
        let mut fragment = 0;
        loop {
            fragment += 1;
            burst.record_sent(now, (SAMPLE, fragment));
            if burst.record_datagram(1_000) {
                return fragment;
            }
        }
    }

    /// Answers with a request for the last `lost` of `sent` fragments.
    fn answer(burst: &mut Burst, now: Instant, sent: u32, lost: u32) -> bool {
        burst.answer(now);
        burst.evaluate_fragment_request(SAMPLE, sent - lost + 1..=sent + 100);
        burst.begin(now)
    }

    #[test]
    fn bursts_grow_when_they_arrive_and_shrink_when_most_is_lost() {
        let mut burst = Burst::new();
        assert!(burst.begin(at(0)));
        let first = send(&mut burst, at(0));
        assert!(answer(&mut burst, at(2), first, 0));
        let second = send(&mut burst, at(2));
        assert!(second >= 2 * first - 1, "{first}, {second}");
        assert!(answer(&mut burst, at(4), second, second * 2 / 5));
        let third = send(&mut burst, at(4));
        assert_eq!(third, second, "a link may lose a third by chance");
        assert!(answer(&mut burst, at(6), third, third * 3 / 5));
        assert_eq!(send(&mut burst, at(6)), first);
    }

    #[test]
    fn burst_does_not_repeat_samples_in_transit() {
        let mut burst = Burst::new();
        assert!(burst.begin(at(0)));
        let sent = send(&mut burst, at(0));
        assert!(answer(&mut burst, at(10), sent, 1), "a round trip takes 10 ms");
        let sent = send(&mut burst, at(10));
        assert!(!answer(&mut burst, at(12), sent, sent), "it knows nothing of the burst");
        assert!(answer(&mut burst, at(20), sent, 2));
        let sent = send(&mut burst, at(20));
        assert!(answer(&mut burst, at(60), sent, sent), "there was time enough");
    }

    #[test]
    fn bursts_are_separated_by_pauses_when_the_link_is_congested() {
        let mut burst = Burst::new();
        let mut now = 0;
        let mut sent = send(&mut burst, at(now));
        for _ in 0..8 {
            now += 10;
            assert!(answer(&mut burst, at(now), sent, sent - 1));
            sent = send(&mut burst, at(now));
        }
        assert_eq!(sent, BURST_MIN.div_ceil(1_000) as u32);
        assert!(!answer(&mut burst, at(now + 1), sent, sent - 1), "not at once");
        assert!(answer(&mut burst, at(now + 64), sent, sent - 1));
    }

    /// Sends bursts of a long datagram with the fragments 1 to 3 and a short one with the fragment
    /// 4, and answers each with a request for some of them.
    fn lose(burst: &mut Burst, requested: impl Fn(u64) -> &'static [u32]) -> bool {
        (1..=u64::from(LONG_LOST_BURSTS)).for_each(|n| {
            (1..=3).for_each(|fragment| burst.record_sent(at(100 * n), (SAMPLE, fragment)));
            burst.record_datagram(3_000);
            burst.record_sent(at(100 * n), (SAMPLE, 4));
            burst.record_datagram(1_000);
            burst.answer(at(100 * n + 90));
            burst.evaluate_fragment_request(SAMPLE, requested(n).iter().copied());
            assert!(burst.begin(at(100 * n + 90)));
        });
        burst.path_is_narrow()
    }

    #[test]
    fn lost_long_datagrams_are_detected_when_short_ones_arrive() {
        assert!(lose(&mut Burst::new(), |_| &[1, 2, 3]));
        assert!(lose(&mut Burst::new(), |_| &[2]), "a reader does not request all at once");
        assert!(lose(&mut Burst::new(), |_| &[1, 2, 3, 4]), "nothing arrives");
        assert!(!lose(&mut Burst::new(), |_| &[4]), "the short one is lost");
        assert!(!lose(&mut Burst::new(), |n| if n == 3 { &[4] } else { &[1, 2, 3] }), "one arrived");
        let whole = &mut Burst::new();
        for n in 1..=u64::from(LONG_LOST_BURSTS) {
            whole.record_sent(at(100 * n), (SAMPLE, 1));
            whole.record_sent(at(100 * n), (SAMPLE.next(), 1));
            whole.record_datagram(3_000);
            whole.answer(at(100 * n + 90));
            whole.evaluate_request([SAMPLE.next()].into_iter(), |_| 1);
            assert!(whole.begin(at(100 * n + 90)));
        }
        assert!(whole.path_is_narrow());
    }

    #[test]
    fn sample_requested_as_a_whole_counts_as_its_fragments() {
        let mut burst = Burst::new();
        burst.record_sent(at(0), (SAMPLE, 1));
        burst.record_sent(at(0), (SAMPLE, 2));
        burst.record_sent(at(0), (SAMPLE.next(), 1));
        burst.answer(at(2));
        burst.evaluate_request([SAMPLE, SAMPLE.next(), SequenceNumber(7)].into_iter(), |_| 2);
        assert_eq!(burst.lost, 3, "all that was sent");
    }
}
