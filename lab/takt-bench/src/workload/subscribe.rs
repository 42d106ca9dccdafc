//! Stream workload, receiving side.
//!
//! Tracks sequence numbers and one-way latencies: by the clock of the host if both sides share one,
//! otherwise by an estimate of the sender's clock. Memory is constant, independent of the length of
//! the stream.

use super::{STEP, Window, lock};
use crate::error::Result;
use crate::link::Link;
use crate::machine::{Usage, monotonic_ns};
use crate::payload::{Blob, END_OF_STREAM};
use crate::sequence::{Counts, SequenceTracker};
use crate::signal::stopped;
use crate::spec::Touch;
use crate::stats::{Histogram, Summary};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use takt_host::clock::Offset;

/// Maximum silence within the window, after which the stream counts as over.
const SILENCE_MAX: Duration = Duration::from_secs(3);
const CACHE_LINE_BYTES: usize = 64;

/// Settings of a subscription.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Measurement window of the stream.
    pub window: Window,
    /// Part of a sample that is read, as by an application.
    pub touch: Touch,
    /// Maximum number of latencies of single samples that are kept in addition to their statistics.
    pub times_max: usize,
}

/// Results within the window.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Numbers of samples by outcome; `sent` is 0.
    pub counts: Counts,
    /// Number of arrivals after the one that opened the window, including duplicates: rates are
    /// this divided by `wall_seconds`.
    pub arrivals: u64,
    /// Bytes of payload in those arrivals.
    pub bytes: u64,
    /// Highest sequence number minus that of the first sample in the window.
    pub span: u64,
    /// Number of arrivals before, in and after the window.
    pub arrivals_total: u64,
    /// One-way latency.
    pub latency: Option<Summary>,
    /// One-way latencies in the order of arrival, ns, up to the configured number.
    pub times_ns: Vec<u64>,
    /// Maximum error of a latency in either direction, ns; `None` if both sides share one clock.
    pub uncertainty_ns: Option<u64>,
    /// CPU time used by this process in the window.
    pub usage: Usage,
    /// Time from the first to the last arrival in the window.
    pub wall_seconds: f64,
}

/// Returns the sender's clock minus the local clock, at a time of the local clock.
pub type SenderClock = Box<dyn Fn(u64) -> Offset + Send>;

struct Opened {
    at_ns: u64,
    last_ns: u64,
    usage: Usage,
}

/// State of a subscription: independent of the link except for CPU usage, so that it can be tested
/// without one.
struct SubscriptionState {
    plan: Plan,
    clock: Option<SenderClock>,
    uncertainty_ns: Option<u64>,
    first_ns: Option<u64>,
    opened: Option<Opened>,
    closed: Option<Usage>,
    tracker: SequenceTracker,
    latencies: Histogram,
    times_ns: Vec<u64>,
    arrivals: u64,
    bytes: u64,
    arrivals_total: u64,
    has_ended: bool,
}

impl SubscriptionState {
    fn new(plan: Plan, clock: Option<SenderClock>) -> Self {
        Self {
            plan,
            clock,
            uncertainty_ns: None,
            first_ns: None,
            opened: None,
            closed: None,
            tracker: SequenceTracker::new(),
            latencies: Histogram::new(),
            times_ns: Vec::with_capacity(plan.times_max),
            arrivals: 0,
            bytes: 0,
            arrivals_total: 0,
            has_ended: false,
        }
    }

    fn on_sample(&mut self, now_ns: u64, sample: &Blob) {
        let Some((sequence, sent_at_ns)) = sample.marks() else {
            return;
        };
        if sequence == END_OF_STREAM {
            self.has_ended = true;
            return;
        }
        let step = match self.plan.touch {
            Touch::Marks => None,
            Touch::Lines => Some(CACHE_LINE_BYTES),
            Touch::All => Some(1),
        };
        if let Some(step) = step {
            let octets = sample.data.iter().step_by(step);
            std::hint::black_box(octets.fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        }
        let before = self.arrivals_total;
        self.arrivals_total += 1;
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        if self.closed.is_some() {
            return;
        }
        match &mut self.opened {
            None if self.plan.window.opens(before, now_ns - first_ns) => {
                self.opened = Some(Opened { at_ns: now_ns, last_ns: now_ns, usage: Usage::now() });
            }
            None => return,
            Some(opened) => {
                opened.last_ns = now_ns;
                self.arrivals += 1;
                self.bytes += sample.data.len() as u64;
            }
        }
        self.tracker.record(sequence);
        let latency_ns = self.latency_ns(now_ns, sent_at_ns);
        self.latencies.record(latency_ns);
        if self.times_ns.len() < self.plan.times_max {
            self.times_ns.push(latency_ns);
        }
        let elapsed_ns = self.opened.as_ref().map_or(0, |o| now_ns - o.at_ns);
        if self.plan.window.closes(self.arrivals + 1, elapsed_ns) {
            self.closed = Some(Usage::now());
        }
    }

    /// Returns the latency from a time of the sender's clock to one of the local clock. It is 0 if
    /// the sample seems to arrive before it was sent, within the uncertainty.
    fn latency_ns(&mut self, now_ns: u64, sent_at_ns: u64) -> u64 {
        let Some(clock) = &self.clock else { return now_ns.saturating_sub(sent_at_ns) };
        let Offset { offset_ns, uncertainty_ns } = clock(now_ns);
        self.uncertainty_ns = self.uncertainty_ns.max(Some(uncertainty_ns));
        let latency_ns = i128::from(now_ns) - i128::from(sent_at_ns) + i128::from(offset_ns);
        u64::try_from(latency_ns.max(0)).unwrap_or(u64::MAX)
    }

    /// Reports whether the window is complete: closed, or no more samples are expected.
    fn is_complete(&self, now_ns: u64) -> bool {
        let is_silent = |opened: &Opened| now_ns.saturating_sub(opened.last_ns) > super::nanoseconds(SILENCE_MAX);
        self.closed.is_some() || self.has_ended || self.opened.as_ref().is_some_and(is_silent)
    }

    /// Closes the window; later arrivals do not count.
    fn outcome(&mut self) -> Outcome {
        let closed = *self.closed.get_or_insert_with(Usage::now);
        let (usage, wall_ns) = match &self.opened {
            Some(o) => (closed.since(&o.usage), o.last_ns - o.at_ns),
            None => (Usage::default(), 0),
        };
        Outcome {
            counts: self.tracker.counts(),
            arrivals: self.arrivals,
            bytes: self.bytes,
            span: self.tracker.span(),
            arrivals_total: self.arrivals_total,
            latency: self.latencies.summary(),
            times_ns: std::mem::take(&mut self.times_ns),
            uncertainty_ns: self.uncertainty_ns,
            usage,
            wall_seconds: wall_ns as f64 * 1e-9,
        }
    }
}

/// Receiving side of a stream.
pub struct Subscription<'a> {
    link: &'a mut dyn Link,
    state: Arc<Mutex<SubscriptionState>>,
    listening: bool,
    sample: Blob,
}

impl<'a> Subscription<'a> {
    /// Creates the receiving side. A listener receives the samples if `listen` is set and the link
    /// supports it. Without `clock`, the sender is on this host.
    ///
    /// # Errors
    /// The middleware failed.
    pub fn new(link: &'a mut dyn Link, plan: Plan, listen: bool, clock: Option<SenderClock>) -> Result<Self> {
        let state = Arc::new(Mutex::new(SubscriptionState::new(plan, clock)));
        let listening = listen && {
            let state = Arc::clone(&state);
            link.listen(Box::new(move |sample, _| {
                lock(&state).on_sample(monotonic_ns(), sample);
            }))?
        };
        Ok(Self { link, state, listening, sample: Blob::default() })
    }

    /// Reports whether a listener receives the samples.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listening
    }

    /// Receives until the window is complete; at a stop, returns the results so far.
    ///
    /// # Errors
    /// The middleware failed.
    pub fn run(&mut self) -> Result<Outcome> {
        while !stopped() && !lock(&self.state).is_complete(monotonic_ns()) {
            self.step()?;
        }
        Ok(lock(&self.state).outcome())
    }

    /// Continues to receive without counting, until a stop.
    ///
    /// # Errors
    /// The middleware failed.
    pub fn drain(&mut self) -> Result<()> {
        while !stopped() {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        if self.listening {
            return self.link.drive(STEP / 5);
        }
        if self.link.receive(&mut self.sample, STEP)? {
            lock(&self.state).on_sample(monotonic_ns(), &self.sample);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn feed(state: &mut SubscriptionState, arrivals: impl IntoIterator<Item = (u64, u64)>) {
        for (sequence, now_ns) in arrivals {
            let mut sample = Blob::filled(100);
            sample.mark(sequence, now_ns - 5_000);
            state.on_sample(now_ns, &sample);
        }
    }

    #[test]
    fn window_by_samples_counts_exactly_its_samples() {
        let window = Window { skip_samples: 2, samples_max: Some(3), ..Window::default() };
        let mut state = SubscriptionState::new(Plan { window, touch: Touch::Lines, ..Plan::default() }, None);
        feed(&mut state, (1..=9).map(|i| (i, i * SECOND)));
        assert!(state.is_complete(9 * SECOND));
        let outcome = state.outcome();
        assert_eq!((outcome.counts.received, outcome.counts.lost), (3, 0));
        assert_eq!((outcome.arrivals, outcome.bytes), (2, 200));
        assert_eq!((outcome.span, outcome.arrivals_total), (2, 9));
        assert_eq!(outcome.wall_seconds, 2.0);
        let latency = outcome.latency.unwrap();
        assert_eq!((latency.count, latency.min), (3, 5.0));
    }

    #[test]
    fn window_by_time_opens_after_the_warm_up() {
        let window =
            Window { skip: Duration::from_secs(2), time_max: Some(Duration::from_secs(4)), ..Window::default() };
        let mut state = SubscriptionState::new(Plan { window, ..Plan::default() }, None);
        feed(&mut state, (1..=20).map(|i| (i, i * SECOND)));
        let outcome = state.outcome();
        assert_eq!(outcome.wall_seconds, 4.0);
        assert_eq!(outcome.arrivals, 4);
    }

    #[test]
    fn losses_and_end_of_stream_are_detected() {
        let mut state = SubscriptionState::new(Plan::default(), None);
        feed(&mut state, [(1, SECOND), (4, SECOND), (4, SECOND), (3, SECOND)]);
        assert!(!state.is_complete(SECOND));
        feed(&mut state, [(END_OF_STREAM, SECOND)]);
        assert!(state.is_complete(SECOND));
        let counts = state.outcome().counts;
        assert_eq!((counts.received, counts.lost), (3, 1));
        assert_eq!((counts.duplicated, counts.out_of_order), (1, 1));
    }

    #[test]
    fn latencies_by_another_clock_have_an_uncertainty() {
        // The sender's clock is an hour ahead, and its uncertainty grows.
        let hour = 3600 * SECOND;
        let clock = move |now_ns: u64| Offset { offset_ns: hour as i64, uncertainty_ns: now_ns / SECOND };
        let mut state = SubscriptionState::new(Plan::default(), Some(Box::new(clock)));
        for (sequence, took_ns) in [(1, 1_000), (2, 2_000)] {
            let mut sample = Blob::filled(100);
            let now_ns = sequence * SECOND;
            sample.mark(sequence, now_ns + hour - took_ns);
            state.on_sample(now_ns, &sample);
        }
        // By the bounds, the latency of this sample may be slightly negative.
        let mut sample = Blob::filled(100);
        sample.mark(3, 3 * SECOND + hour + 1);
        state.on_sample(3 * SECOND, &sample);
        let outcome = state.outcome();
        let latency = outcome.latency.unwrap();
        assert_eq!((latency.min, latency.p50, latency.max), (0.0, 1.0, 2.0));
        assert_eq!(outcome.uncertainty_ns, Some(3));
    }

    #[test]
    fn long_silence_completes_a_window() {
        let mut state = SubscriptionState::new(Plan::default(), None);
        assert!(!state.is_complete(100 * SECOND), "no sample arrived yet");
        feed(&mut state, [(1, 100 * SECOND)]);
        assert!(!state.is_complete(102 * SECOND));
        assert!(state.is_complete(104 * SECOND));
    }
}
