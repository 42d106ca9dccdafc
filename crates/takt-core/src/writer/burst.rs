//! How much of what a reader misses is sent again at once, and when the same is sent again.
//!
//! Repairs must not drive one another out of the queue of a slow link, so they leave in bursts, oldest first. After each
//! the reader is asked what it misses now, which takes a round trip, and its answer tells how much of the burst was lost. An
//! answer that knows nothing of the burst comes from before it, unless enough time has passed: it asks for what is under way
//! (RTPS 2.5 §8.4.7.1, `nackSuppressionDuration`). Where most of even the smallest bursts is lost, pauses lie between them.

use crate::time::Instant;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// Bytes.
const FIRST: usize = 64 << 10;
const LEAST: usize = 8 << 10;
const LARGEST: usize = 128 << 10;
/// Least and longest time that a burst is given to arrive and be answered.
const LEAST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(64);

/// Between bursts of the least size, most of which is lost.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);
/// So many samples or fragments tell whether a link is congested; fewer are lost by chance.
const TELLING: u32 = 4;

/// So many bursts in a row whose long datagrams do not arrive tell that the path does not take them.
const LONG_IN_VAIN: u32 = 5;
/// Long datagrams of a burst that are watched, the first ones.
const LONG_WATCHED: usize = 4;

/// The longest message that every Ethernet takes in one packet: 1,500 octets less the headers of IPv6 and UDP.
pub(super) const NARROW_LEN: usize = 1_452;

/// A sample, or one of its fragments, from 1.
type Position = (SequenceNumber, u32);

const NOWHERE: Position = (SequenceNumber::ZERO, 0);

/// A long datagram that was sent.
#[derive(Clone, Copy, Debug)]
struct Long {
    first: Position,
    last: Position,
    /// The last answer asks for something in it, so that it did not arrive.
    is_lost: bool,
}

/// The repairs for one request of one reader.
#[derive(Debug)]
pub(super) struct Burst {
    bytes: usize,
    left: usize,
    /// Samples and fragments of it that were sent, and where it got to: they lie below.
    sent: u32,
    end: Position,
    /// When its last datagram left.
    sent_at: Instant,
    /// How long it may take until it is answered.
    wait: Duration,
    /// What is asked for sooner after it is not sent.
    pause: Duration,
    /// It repeats one of which nothing was heard.
    repeats: bool,
    /// When the first answer since has come.
    answered_at: Option<Instant>,
    /// What the last one asks for of what was sent.
    lost: u32,
    /// What is in the datagram that is being built, from its first position to its last.
    datagram: Option<(Position, Position)>,
    /// Its first datagrams beyond the least MTU of Ethernet.
    long: [Option<Long>; LONG_WATCHED],
    /// Bursts in a row that had such datagrams, none of which arrived. Shorter ones may have.
    long_in_vain: u32,
}

impl Burst {
    pub(super) const fn new() -> Self {
        Self {
            bytes: FIRST,
            left: FIRST,
            sent: 0,
            end: NOWHERE,
            sent_at: Instant(0),
            wait: LEAST_WAIT,
            pause: Duration::ZERO,
            repeats: false,
            answered_at: None,
            lost: 0,
            datagram: None,
            long: [None; LONG_WATCHED],
            long_in_vain: 0,
        }
    }

    /// Whether long datagrams do not arrive at all, though the reader answers.
    pub(super) fn loses_long_datagrams(&self) -> bool {
        self.long_in_vain >= LONG_IN_VAIN
    }

    /// A new answer of the reader begins.
    pub(super) fn answer(&mut self, now: Instant) {
        self.answered_at.get_or_insert(now);
        self.lost = 0;
        self.long.iter_mut().flatten().for_each(|long| long.is_lost = false);
    }

    /// The answer asks for what is between these positions.
    fn misses(&mut self, from: Position, to: Position) {
        for long in self.long.iter_mut().flatten() {
            long.is_lost |= from <= long.last && to >= long.first;
        }
    }

    /// The answer asks for these samples, in ascending order, which consist of so many fragments.
    pub(super) fn asks(
        &mut self,
        samples: impl Iterator<Item = SequenceNumber>,
        fragments: impl Fn(SequenceNumber) -> u32,
    ) {
        let (last, until) = self.end;
        for sn in samples.take_while(|sn| *sn <= last) {
            self.lost += if sn < last { fragments(sn) } else { until.saturating_sub(1) };
            self.misses((sn, 0), (sn, u32::MAX));
        }
    }

    /// The answer asks for these fragments of a sample, in ascending order.
    pub(super) fn asks_fragments(&mut self, sn: SequenceNumber, fragments: impl Iterator<Item = u32>) {
        let end = self.end;
        for fragment in fragments.take_while(|fragment| (sn, *fragment) < end) {
            self.lost += 1;
            self.misses((sn, fragment), (sn, fragment));
        }
    }

    /// Something is to be sent: the next burst begins if the last one was answered. False if the answer is too old to know of
    /// that one.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let Some(answered_at) = self.answered_at.take() else { return true };
        let in_vain = self.sent > 0 && self.lost >= self.sent;
        let since = now.since(self.sent_at);
        if since < self.pause || (in_vain && since < self.wait) {
            return false;
        }
        if in_vain {
            self.wait *= 2;
        } else if self.sent > 0 {
            let took = answered_at.since(self.sent_at);
            // Of a repeated burst nobody knows which one was answered.
            let least = if self.repeats { self.wait / 2 } else { Duration::ZERO };
            self.wait = least.max(took + took / 2);
        }
        self.wait = self.wait.clamp(LEAST_WAIT, LONGEST_WAIT);
        self.adapt();
        if self.long.iter().flatten().any(|long| !long.is_lost) {
            self.long_in_vain = 0;
        } else if self.long[0].is_some() {
            self.long_in_vain += 1;
        }
        (self.repeats, self.datagram, self.long) = (in_vain, None, [None; LONG_WATCHED]);
        self.left = self.bytes;
        self.sent = 0;
        self.end = NOWHERE;
        true
    }

    /// Judges the last burst.
    fn adapt(&mut self) {
        if self.lost * 2 > self.sent {
            if self.bytes > LEAST {
                self.bytes = (self.bytes / 2).max(LEAST);
            } else if self.sent >= TELLING {
                self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            }
        } else if self.lost * 4 <= self.sent && self.sent > 0 {
            if !self.pause.is_zero() {
                self.pause = if self.pause > FIRST_PAUSE { self.pause / 2 } else { Duration::ZERO };
            } else if self.left == 0 {
                self.bytes = (self.bytes * 2).min(LARGEST);
            }
        }
    }

    /// A sample, or a fragment of one, is sent.
    pub(super) fn sends(&mut self, now: Instant, position: Position) {
        self.sent += 1;
        self.sent_at = now;
        self.end = self.end.max((position.0, position.1 + 1));
        self.datagram = Some((self.datagram.map_or(position, |(first, _)| first), position));
    }

    /// A datagram of so many bytes leaves; says whether it is the last one of the burst.
    pub(super) fn leaves(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes);
        let place = self.long.iter_mut().find(|long| long.is_none());
        if let (Some((first, last)), Some(place)) = (self.datagram.take().filter(|_| bytes > NARROW_LEN), place) {
            *place = Some(Long { first, last, is_lost: false });
        }
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SequenceNumber = SequenceNumber(5);

    fn at(milliseconds: u64) -> Instant {
        Instant(milliseconds * 1_000_000)
    }

    /// Sends a whole burst of fragments of 1,000 octets and says how many those were.
    fn send(burst: &mut Burst, now: Instant) -> u32 {
        let mut fragment = 0;
        loop {
            fragment += 1;
            burst.sends(now, (SAMPLE, fragment));
            if burst.leaves(1_000) {
                return fragment;
            }
        }
    }

    /// The reader asks for the last `lost` of `sent` fragments.
    fn answer(burst: &mut Burst, now: Instant, sent: u32, lost: u32) -> bool {
        burst.answer(now);
        burst.asks_fragments(SAMPLE, sent - lost + 1..=sent + 100);
        burst.begin(now)
    }

    #[test]
    fn bursts_grow_while_they_arrive_and_shrink_when_most_is_lost() {
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
    fn what_is_under_way_is_not_sent_again() {
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
    fn a_congested_link_gets_pauses() {
        let mut burst = Burst::new();
        let mut now = 0;
        let mut sent = send(&mut burst, at(now));
        for _ in 0..8 {
            now += 10;
            assert!(answer(&mut burst, at(now), sent, sent - 1));
            sent = send(&mut burst, at(now));
        }
        assert_eq!(sent, LEAST.div_ceil(1_000) as u32);
        assert!(!answer(&mut burst, at(now + 1), sent, sent - 1), "not at once");
        assert!(answer(&mut burst, at(now + 64), sent, sent - 1));
    }

    /// Bursts of a long datagram with the fragments 1 to 3 and a short one with the fragment 4; the reader asks for some again.
    fn lose(burst: &mut Burst, asked: impl Fn(u64) -> &'static [u32]) -> bool {
        (1..=u64::from(LONG_IN_VAIN)).for_each(|n| {
            (1..=3).for_each(|fragment| burst.sends(at(100 * n), (SAMPLE, fragment)));
            burst.leaves(3_000);
            burst.sends(at(100 * n), (SAMPLE, 4));
            burst.leaves(1_000);
            burst.answer(at(100 * n + 90));
            burst.asks_fragments(SAMPLE, asked(n).iter().copied());
            assert!(burst.begin(at(100 * n + 90)));
        });
        burst.loses_long_datagrams()
    }

    #[test]
    fn long_datagrams_that_never_arrive_are_noticed_though_short_ones_do() {
        assert!(lose(&mut Burst::new(), |_| &[1, 2, 3]));
        assert!(lose(&mut Burst::new(), |_| &[2]), "a reader does not ask for all at once");
        assert!(lose(&mut Burst::new(), |_| &[1, 2, 3, 4]), "nothing arrives");
        assert!(!lose(&mut Burst::new(), |_| &[4]), "the short one is lost");
        assert!(!lose(&mut Burst::new(), |n| if n == 3 { &[4] } else { &[1, 2, 3] }), "one arrived");
        let whole = &mut Burst::new();
        for n in 1..=u64::from(LONG_IN_VAIN) {
            whole.sends(at(100 * n), (SAMPLE, 1));
            whole.sends(at(100 * n), (SAMPLE.next(), 1));
            whole.leaves(3_000);
            whole.answer(at(100 * n + 90));
            whole.asks([SAMPLE.next()].into_iter(), |_| 1);
            assert!(whole.begin(at(100 * n + 90)));
        }
        assert!(whole.loses_long_datagrams());
    }

    #[test]
    fn a_sample_that_is_asked_for_whole_counts_as_its_fragments() {
        let mut burst = Burst::new();
        burst.sends(at(0), (SAMPLE, 1));
        burst.sends(at(0), (SAMPLE, 2));
        burst.sends(at(0), (SAMPLE.next(), 1));
        burst.answer(at(2));
        burst.asks([SAMPLE, SAMPLE.next(), SequenceNumber(7)].into_iter(), |_| 2);
        assert_eq!(burst.lost, 3, "all that was sent");
    }
}
