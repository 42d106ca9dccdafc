//! Round-trip workload, pinging side: writes `Ping` and times the `Pong` that returns with the same
//! payload.
//!
//! Closed loop: the next ping is sent when the pong has arrived, from the receive callback if there
//! is a listener. A pong that does not arrive within a second counts as lost, and the next ping is
//! sent. After 20 lost pongs the run ends.
//!
//! Open loop: one ping is sent per period, independent of the pongs. The latency counts from the
//! planned time in the payload, so that the delay of a late ping is included.

use super::{STEP, lock, nanoseconds, time_left};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::machine::{Usage, monotonic_ns};
use crate::pauses;
use crate::payload::{Blob, SEQUENCE_LEN};
use crate::sequence::{Counts, SequenceTracker};
use crate::signal::stopped;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time after which a pong counts as lost.
const PONG_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of lost pongs after which a run ends.
const TIMEOUTS_MAX: u64 = 20;

/// Settings of one run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Payload size in bytes.
    pub size: usize,
    /// Number of round trips before the measurement.
    pub warmup: u64,
    /// Number of round trips measured.
    pub count: u64,
    /// Interval between two pings of an open loop; `None`: closed loop.
    pub period: Option<Duration>,
    /// Whether an open loop sends no ping in a pause ([`pauses`](crate::pauses)).
    pub pauses: bool,
    /// Whether the pong carries only a sequence number of [`SEQUENCE_LEN`] octets.
    pub short_reply: bool,
}

/// Results of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Round-trip times in ns, in the order of arrival.
    pub latencies_ns: Vec<u64>,
    /// Numbers of measured samples by outcome.
    pub counts: Counts,
    /// Number of pings without a pong, including those of the warm-up.
    pub timeouts: u64,
    /// CPU time used by this process since the first measured ping.
    pub usage: Usage,
    /// Duration since the planned time of the first measured ping. A closed loop plans a ping when
    /// it sends it.
    pub wall_seconds: f64,
}

/// State of a run: independent of the link, so that it can be tested without one.
struct Pinger {
    plan: Plan,
    /// Octets of the pongs of this run.
    pong_len: usize,
    sample: Blob,
    sequence: u64,
    sent_at_ns: u64,
    answered: u64,
    timeouts: u64,
    latencies_ns: Vec<u64>,
    tracker: SequenceTracker,
    /// CPU time used when the first measured ping was sent, and its planned time.
    measured_from: Option<(Usage, u64)>,
    done: bool,
    failure: Option<Error>,
}

impl Pinger {
    fn new(plan: Plan, pong_len: usize) -> Self {
        Self {
            plan,
            pong_len,
            sample: Blob::filled(plan.size),
            sequence: 0,
            sent_at_ns: 0,
            answered: 0,
            timeouts: 0,
            latencies_ns: Vec::with_capacity(plan.count as usize),
            tracker: SequenceTracker::new(),
            measured_from: None,
            done: false,
            failure: None,
        }
    }

    /// Creates a finished run, for a listener between two runs.
    fn finished() -> Self {
        let plan = Plan { size: 0, warmup: 0, count: 0, period: None, pauses: false, short_reply: false };
        Self { done: true, ..Self::new(plan, 0) }
    }

    fn last(&self) -> u64 {
        self.plan.warmup + self.plan.count
    }

    /// Turns `sample` into the next ping, planned for this time.
    fn next_ping(&mut self, planned_ns: u64) {
        self.sequence += 1;
        if self.sequence == self.plan.warmup + 1 {
            self.measured_from = Some((Usage::now(), planned_ns));
        }
        self.sent_at_ns = planned_ns;
        self.sample.mark(self.sequence, planned_ns);
    }

    /// Records a pong. Returns true if it is the first answer to the outstanding ping.
    fn on_pong(&mut self, now_ns: u64, pong: &Blob) -> bool {
        let Some((sequence, marked_ns)) = pong.marks() else {
            return false;
        };
        // A closed loop accepts only the answer to the outstanding ping.
        let sent_at_ns = if self.plan.period.is_some() { marked_ns } else { self.sent_at_ns };
        let is_ours = pong.data.len() == self.pong_len && sequence <= self.sequence;
        if self.done || !is_ours || sequence == 0 {
            return false;
        }
        let is_measured = sequence > self.plan.warmup;
        let is_new = !is_measured || self.tracker.record(sequence);
        let is_answer = match self.plan.period {
            Some(_) => is_new,
            None => sequence == self.sequence && sequence != self.answered,
        };
        if !is_answer {
            return false;
        }
        self.answered = self.answered.max(sequence);
        if is_measured && self.latencies_ns.len() < self.latencies_ns.capacity() {
            self.latencies_ns.push(now_ns.saturating_sub(sent_at_ns));
        }
        self.done = sequence >= self.last();
        true
    }

    /// Counts the outstanding ping as lost. Returns true if another one is to be sent.
    fn record_timeout(&mut self) -> bool {
        self.timeouts += 1;
        self.done = self.timeouts > TIMEOUTS_MAX || self.sequence >= self.last();
        !self.done
    }

    fn counts(&self) -> Counts {
        let sent = self.sequence.saturating_sub(self.plan.warmup);
        let seen = self.tracker.counts();
        Counts { sent, lost: sent.saturating_sub(seen.received), ..seen }
    }
}

/// Pinging side of a pair, for any number of runs.
pub struct Ping<'a> {
    link: &'a mut dyn Link,
    state: Arc<Mutex<Pinger>>,
    listening: bool,
}

impl<'a> Ping<'a> {
    /// Creates the pinging side. A listener receives the pongs if `listen` is set and the link
    /// supports it.
    ///
    /// # Errors
    /// The middleware failed.
    pub fn new(link: &'a mut dyn Link, listen: bool) -> Result<Self> {
        let state = Arc::new(Mutex::new(Pinger::finished()));
        let listening = listen && {
            let state = Arc::clone(&state);
            let waiter = std::thread::current();
            link.listen(Box::new(move |pong, write| {
                let mut pinger = lock(&state);
                let answered = pinger.on_pong(monotonic_ns(), pong);
                if answered && !pinger.done && pinger.plan.period.is_none() {
                    pinger.next_ping(monotonic_ns());
                    if let Err(error) = write(&pinger.sample) {
                        pinger.failure = Some(error);
                    }
                }
                if pinger.done || pinger.failure.is_some() {
                    waiter.unpark();
                }
            }))?
        };
        Ok(Self { link, state, listening })
    }

    /// Reports whether a listener receives the pongs.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listening
    }

    /// Returns the underlying link, to wait for matches.
    pub fn link(&mut self) -> &mut dyn Link {
        self.link
    }

    /// Makes one run. It ends early after too many lost pongs or at a stop.
    ///
    /// # Errors
    /// The middleware failed.
    pub fn run(&mut self, plan: Plan) -> Result<Outcome> {
        let reply_len = if plan.short_reply { SEQUENCE_LEN } else { plan.size.max(SEQUENCE_LEN) };
        *lock(&self.state) = Pinger::new(plan, self.link.carried_len(reply_len));
        match plan.period {
            Some(period) => self.open_loop(period, plan.pauses)?,
            None if self.listening => self.closed_loop_listening()?,
            None => self.closed_loop()?,
        }
        let (ended, ended_ns) = (Usage::now(), monotonic_ns());
        let mut pinger = lock(&self.state);
        pinger.done = true;
        let (started, started_ns) = pinger.measured_from.unwrap_or((ended, ended_ns));
        if let Some(error) = pinger.failure.take() {
            return Err(error);
        }
        Ok(Outcome {
            latencies_ns: std::mem::take(&mut pinger.latencies_ns),
            counts: pinger.counts(),
            timeouts: pinger.timeouts,
            usage: ended.since(&started),
            wall_seconds: (ended_ns - started_ns) as f64 * 1e-9,
        })
    }

    fn closed_loop(&mut self) -> Result<()> {
        let mut pinger = lock(&self.state);
        let mut pong = Blob::default();
        while !pinger.done && !stopped() {
            pinger.next_ping(monotonic_ns());
            self.link.write(&pinger.sample)?;
            let deadline = pinger.sent_at_ns + nanoseconds(PONG_TIMEOUT);
            loop {
                let received = self.link.receive(&mut pong, STEP)?;
                let now = monotonic_ns();
                if received && pinger.on_pong(now, &pong) {
                    break;
                }
                if now >= deadline || stopped() {
                    pinger.record_timeout();
                    break;
                }
            }
        }
        Ok(())
    }

    fn closed_loop_listening(&mut self) -> Result<()> {
        self.send_next(monotonic_ns())?;
        loop {
            self.link.drive(STEP)?;
            let mut pinger = lock(&self.state);
            if pinger.done || pinger.failure.is_some() || stopped() {
                return Ok(());
            }
            let is_overdue = monotonic_ns() >= pinger.sent_at_ns + nanoseconds(PONG_TIMEOUT);
            if is_overdue && pinger.record_timeout() {
                drop(pinger);
                self.send_next(monotonic_ns())?;
            }
        }
    }

    fn open_loop(&mut self, period: Duration, pauses: bool) -> Result<()> {
        let last = lock(&self.state).last();
        let mut next_ns = monotonic_ns();
        for _ in 0..last {
            next_ns += nanoseconds(period);
            if pauses {
                next_ns = pauses::next_start(next_ns);
            }
            self.receive_until(next_ns)?;
            if stopped() || lock(&self.state).failure.is_some() {
                return Ok(());
            }
            self.send_next(next_ns)?;
        }
        let deadline = monotonic_ns() + nanoseconds(PONG_TIMEOUT);
        while !lock(&self.state).done && time_left(deadline).is_some() && !stopped() {
            self.receive_until(deadline.min(monotonic_ns() + nanoseconds(STEP)))?;
        }
        Ok(())
    }

    /// Receives pongs until the given time, or until all have arrived.
    fn receive_until(&mut self, deadline_ns: u64) -> Result<()> {
        let mut pong = Blob::default();
        while let Some(left) = time_left(deadline_ns) {
            if stopped() || lock(&self.state).done {
                break;
            }
            let wait = left.min(STEP);
            if self.listening {
                self.link.drive(wait)?;
            } else if self.link.receive(&mut pong, wait)? {
                lock(&self.state).on_pong(monotonic_ns(), &pong);
            }
        }
        Ok(())
    }

    /// Sends one ping from this thread, planned for `planned_ns`. The lock is not held during the
    /// write: a link that delivers during the write calls the handler, which takes the lock.
    fn send_next(&mut self, planned_ns: u64) -> Result<()> {
        let ping = {
            let mut pinger = lock(&self.state);
            pinger.next_ping(planned_ns);
            pinger.sample.clone()
        };
        self.link.write(&ping).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinger(warmup: u64, count: u64, period: Option<Duration>) -> Pinger {
        Pinger::new(Plan { size: 32, warmup, count, period, pauses: false, short_reply: false }, 32)
    }

    #[test]
    fn warm_up_is_not_measured() {
        let mut pinger = pinger(2, 3, None);
        for i in 1..=5 {
            pinger.next_ping(i * 100);
            let pong = pinger.sample.clone();
            let from = pinger.measured_from.map(|(_, from_ns)| from_ns);
            assert_eq!(from, (i > 2).then_some(300), "time is measured from the due time of the first measured ping");
            assert!(pinger.on_pong(i * 100 + i, &pong));
        }
        assert!(pinger.done);
        assert_eq!(pinger.latencies_ns, [3, 4, 5]);
        let counts = pinger.counts();
        assert_eq!((counts.sent, counts.received, counts.lost), (3, 3, 0));
    }

    #[test]
    fn duplicate_and_late_pongs_are_counted_and_not_timed() {
        let mut pinger = pinger(0, 3, None);
        pinger.next_ping(10);
        let first = pinger.sample.clone();
        assert!(pinger.record_timeout());
        pinger.next_ping(20);
        let second = pinger.sample.clone();
        assert!(pinger.on_pong(25, &second));
        assert!(!pinger.on_pong(26, &second), "twice");
        assert!(!pinger.on_pong(27, &first), "late");
        let counts = pinger.counts();
        assert_eq!((counts.sent, counts.received, counts.lost), (2, 2, 0));
        assert_eq!((counts.duplicated, counts.out_of_order), (1, 1));
        assert_eq!(pinger.latencies_ns, [5]);
    }

    #[test]
    fn foreign_payloads_are_ignored() {
        let mut pinger = pinger(0, 3, None);
        pinger.next_ping(10);
        let mut other = Blob::filled(33);
        other.mark(1, 10);
        assert!(!pinger.on_pong(11, &other), "another size");
        other = Blob::filled(32);
        other.mark(2, 10);
        assert!(!pinger.on_pong(11, &other), "never sent");
        assert!(!pinger.on_pong(11, &Blob { data: vec![0; 3] }), "no marks");
    }

    #[test]
    fn run_ends_after_many_timeouts_or_at_the_last_ping() {
        let mut endless = pinger(0, 1000, None);
        let tries = (0..).take_while(|_| endless.record_timeout()).count() as u64;
        assert_eq!(tries, TIMEOUTS_MAX);
        let mut short = pinger(0, 1, None);
        short.next_ping(1);
        assert!(!short.record_timeout());
        assert_eq!(short.counts().lost, 1);
    }

    #[test]
    fn open_loop_latency_counts_from_the_time_in_the_payload() {
        let mut pinger = pinger(0, 3, Some(Duration::from_micros(1)));
        pinger.next_ping(100);
        let first = pinger.sample.clone();
        pinger.next_ping(200);
        pinger.next_ping(300);
        let third = pinger.sample.clone();
        assert!(pinger.on_pong(350, &first));
        assert!(pinger.on_pong(360, &third));
        assert_eq!(pinger.latencies_ns, [250, 60]);
        assert!(pinger.done);
        assert_eq!(pinger.counts().lost, 1);
    }
}
