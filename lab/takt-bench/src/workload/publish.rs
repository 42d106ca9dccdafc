//! Stream workload, sending side: `Data` as fast as possible, or at a rate.
//!
//! Every sample carries its number, from 1, and its send time. At the end, three samples with
//! [`END_OF_STREAM`] notify the subscribers, after all reliable samples have been acknowledged.

use super::{Window, drive_until, nanoseconds, settle};
use crate::error::Result;
use crate::link::Link;
use crate::machine::{Usage, monotonic_ns};
use crate::payload::{Blob, END_OF_STREAM};
use crate::signal::stopped;
use std::time::Duration;

/// Number of samples between two calls of `drive`, if no waiting drives the link.
const SAMPLES_PER_DRIVE: u64 = 64;
/// Number of samples between two reads of the clock, which cost some 20 ns each, while a stream of
/// single samples has no rate limit.
const DRIVES_PER_CHECK: u64 = 8;
/// Sample size in bytes above which the clock is read for each sample.
const LARGE: usize = 8 << 10;
/// Pause after a refused sample.
const REFUSED_PAUSE: Duration = Duration::from_micros(10);
/// Maximum wait for acknowledgments at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
const END_MARKS: usize = 3;
const END_MARK_PAUSE: Duration = Duration::from_millis(50);

/// Settings of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Payload size in bytes.
    pub size: usize,
    /// Number of samples written in one batch, at least one.
    pub batch: usize,
    /// Samples per second; `None`: as many as possible.
    pub rate_hz: Option<f64>,
    /// Measurement window.
    pub window: Window,
    /// Length of the stream after the window, so that subscribers can complete theirs.
    pub tail: Duration,
    /// Whether a refused sample is tried again; otherwise it is dropped and the next one sent.
    pub retry_refused: bool,
    /// Whether samples carry their planned time, given by the rate since the beginning; otherwise
    /// the time of the call.
    pub is_planned: bool,
}

/// Results of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Number of samples written in the window.
    pub written: u64,
    /// Number of samples written in all.
    pub written_total: u64,
    /// Number of refusals in all.
    pub refused: u64,
    /// CPU time used by this process in the window.
    pub usage: Usage,
    /// Length of the window.
    pub wall_seconds: f64,
}

/// State of the window while the stream runs.
#[derive(Default)]
struct Progress {
    started_ns: u64,
    opened: Option<(u64, u64, Usage)>,
    closed_ns: Option<u64>,
    outcome: Outcome,
}

impl Progress {
    /// Opens or closes the window before sample number `written + 1`.
    fn update(&mut self, window: &Window, written: u64, now_ns: u64) {
        match self.opened {
            None if window.opens(written, now_ns - self.started_ns) => {
                self.opened = Some((now_ns, written, Usage::now()));
            }
            Some((opened_ns, before, _)) if window.closes(written - before, now_ns - opened_ns) => {
                self.close(written, now_ns);
            }
            _ => {}
        }
    }

    /// Closes the window, once.
    fn close(&mut self, written: u64, now_ns: u64) {
        if let (Some((opened_ns, before, usage)), None) = (self.opened, self.closed_ns) {
            self.closed_ns = Some(now_ns);
            self.outcome.written = written - before;
            self.outcome.usage = Usage::now().since(&usage);
            self.outcome.wall_seconds = (now_ns - opened_ns) as f64 * 1e-9;
        }
    }

    fn is_over(&self, tail: Duration, now_ns: u64) -> bool {
        self.closed_ns.is_some_and(|closed_ns| now_ns - closed_ns >= nanoseconds(tail))
    }
}

/// Writes the stream, without its end: see [`finish`].
///
/// # Errors
/// The middleware failed.
pub fn run(link: &mut dyn Link, plan: &Plan) -> Result<Outcome> {
    let mut samples = vec![Blob::filled(plan.size); plan.batch.max(1)];
    let (mut written, mut undriven) = (0, SAMPLES_PER_DRIVE);
    let mut progress = Progress { started_ns: monotonic_ns(), ..Progress::default() };
    let period_ns = plan.rate_hz.map(|hz| (1e9 / hz) as u64);
    let mut next_ns = progress.started_ns;
    let (mut now_ns, mut iterations, mut refused_before) = (next_ns, 0_u64, 0);
    while !stopped() {
        if iterations % DRIVES_PER_CHECK == 0 || plan.size >= LARGE || period_ns.is_some() || samples.len() > 1 {
            now_ns = monotonic_ns();
        }
        iterations += 1;
        progress.update(&plan.window, written, now_ns);
        if progress.is_over(plan.tail, now_ns) {
            break;
        }
        let mut stamp_ns = now_ns;
        if let Some(period_ns) = period_ns {
            // A refused sample keeps its planned time.
            if refused_before == progress.outcome.refused || !plan.retry_refused {
                next_ns += period_ns * samples.len() as u64;
            }
            refused_before = progress.outcome.refused;
            drive_until(link, next_ns)?;
            if now_ns > next_ns && undriven >= SAMPLES_PER_DRIVE {
                undriven = 0;
                link.drive(Duration::ZERO)?;
            }
            now_ns = monotonic_ns();
            stamp_ns = if plan.is_planned { next_ns } else { now_ns };
        } else if undriven >= SAMPLES_PER_DRIVE {
            undriven = 0;
            link.drive(Duration::ZERO)?;
        }
        let accepted = write(link, &mut samples, written, stamp_ns)?;
        (written, undriven) = (written + accepted, undriven + accepted);
        if accepted < samples.len() as u64 {
            progress.outcome.refused += 1;
            if plan.retry_refused {
                link.drive(REFUSED_PAUSE)?;
            } else {
                written += 1;
            }
        }
    }
    progress.close(written, monotonic_ns());
    link.flush(FLUSH_TIMEOUT)?;
    Ok(Outcome { written_total: written, ..progress.outcome })
}

/// Writes the samples after number `written`. Returns the number that there was room for.
fn write(link: &mut dyn Link, samples: &mut [Blob], written: u64, now_ns: u64) -> Result<u64> {
    for (number, sample) in (written + 1..).zip(&mut *samples) {
        sample.mark(number, now_ns);
    }
    match samples {
        [sample] => link.write(sample).map(u64::from),
        samples => link.write_batch(samples).map(|accepted| accepted as u64),
    }
}

/// Writes the end of the stream for the subscribers, then leaves another `linger` for repairs.
///
/// # Errors
/// The middleware failed.
pub fn finish(link: &mut dyn Link, size: usize, linger: Duration) -> Result<()> {
    let mut sample = Blob::filled(size);
    sample.mark(END_OF_STREAM, monotonic_ns());
    for _ in 0..END_MARKS {
        link.write(&sample)?;
        link.flush(FLUSH_TIMEOUT)?;
        settle(link, END_MARK_PAUSE)?;
    }
    settle(link, linger)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Matched;

    /// Link with room for three samples at a time.
    #[derive(Default)]
    struct Narrow {
        numbers: Vec<u64>,
    }

    impl Link for Narrow {
        fn write(&mut self, sample: &Blob) -> Result<bool> {
            self.numbers.extend(sample.marks().map(|(number, _)| number));
            Ok(true)
        }

        fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
            for sample in samples.iter().take(3) {
                self.write(sample)?;
            }
            Ok(samples.len().min(3))
        }

        fn receive(&mut self, _: &mut Blob, _: Duration) -> Result<bool> {
            Ok(false)
        }

        fn drive(&mut self, _: Duration) -> Result<()> {
            Ok(())
        }

        fn matched(&mut self) -> Result<Matched> {
            Ok(Matched::default())
        }
    }

    #[test]
    fn partly_accepted_batch_continues_after_the_last_accepted_sample() {
        let mut link = Narrow::default();
        let window = Window { samples_max: Some(10), ..Window::default() };
        let plan = Plan {
            size: 16,
            batch: 5,
            rate_hz: None,
            window,
            tail: Duration::ZERO,
            retry_refused: true,
            is_planned: false,
        };
        let outcome = run(&mut link, &plan).unwrap();
        assert_eq!(link.numbers, (1..=outcome.written_total).collect::<Vec<_>>());
        assert!(outcome.written >= 10 && outcome.refused * 3 == outcome.written_total, "{outcome:?}");
    }

    /// Link that is slow with each sample, and refuses the second one once.
    #[derive(Default)]
    struct Slow {
        marks: Vec<(u64, u64)>,
        has_refused: bool,
    }

    impl Link for Slow {
        fn write(&mut self, sample: &Blob) -> Result<bool> {
            if self.marks.len() == 1 && !std::mem::replace(&mut self.has_refused, true) {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(2)); // tidy-allow(sleep): the link is slow
            self.marks.extend(sample.marks());
            Ok(true)
        }

        fn write_batch(&mut self, _: &[Blob]) -> Result<usize> {
            Ok(0)
        }

        fn receive(&mut self, _: &mut Blob, _: Duration) -> Result<bool> {
            Ok(false)
        }

        fn drive(&mut self, _: Duration) -> Result<()> {
            Ok(())
        }

        fn matched(&mut self) -> Result<Matched> {
            Ok(Matched::default())
        }
    }

    #[test]
    fn planned_samples_carry_their_planned_times_when_written_late() {
        let mut link = Slow::default();
        let window = Window { samples_max: Some(5), ..Window::default() };
        let tail = Duration::ZERO;
        let plan = Plan { size: 16, batch: 1, rate_hz: Some(1e4), window, tail, retry_refused: true, is_planned: true };
        run(&mut link, &plan).unwrap();
        let steps: Vec<(u64, u64)> =
            link.marks.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
        assert!(steps.len() >= 4 && steps.iter().all(|step| *step == (1, 100_000)), "{:?}", link.marks);
    }

    #[test]
    fn window_by_samples_contains_exactly_that_number() {
        let window = Window { skip_samples: 3, samples_max: Some(4), ..Window::default() };
        let mut progress = Progress::default();
        for written in 0..20 {
            progress.update(&window, written, written * 1_000_000_000);
        }
        assert_eq!(progress.outcome.written, 4);
        assert_eq!(progress.outcome.wall_seconds, 4.0);
        assert_eq!(progress.closed_ns, Some(7_000_000_000));
        assert!(!progress.is_over(Duration::from_secs(1), 7_500_000_000));
        assert!(progress.is_over(Duration::from_secs(1), 8_000_000_000));
    }

    #[test]
    fn stream_stopped_within_the_window_counts_until_the_stop() {
        let mut progress = Progress::default();
        progress.update(&Window::default(), 0, 0);
        progress.update(&Window::default(), 5, 100);
        progress.close(8, 2_000_000_000);
        assert_eq!(progress.outcome.written, 8);
        progress.close(9, 3_000_000_000);
        assert_eq!(progress.outcome.written, 8, "closed once");
    }

    #[test]
    fn stream_stopped_before_the_window_counts_nothing() {
        let mut progress = Progress::default();
        progress.close(8, 2_000_000_000);
        assert_eq!(progress.outcome.written, 0);
    }
}
