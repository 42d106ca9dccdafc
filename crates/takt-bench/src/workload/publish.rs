//! The sending side of a stream: `Data` as fast as it goes, or at a rate.
//!
//! Every sample carries its number, from 1, and the time of its send. At the end three samples with
//! [`END_OF_STREAM`] tell the subscribers, after whatever is reliable has arrived.

use super::{Window, drive_until, nanoseconds, settle};
use crate::error::Result;
use crate::link::Link;
use crate::machine::{Usage, monotonic_ns};
use crate::payload::{Blob, END_OF_STREAM};
use crate::signal::stopped;
use std::time::Duration;

/// Samples between two looks at what came in, when nothing else makes it look.
const SAMPLES_PER_DRIVE: u64 = 8;
/// Rest after a refused sample.
const REFUSED_PAUSE: Duration = Duration::from_micros(10);
/// Longest wait for acknowledgements at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
const END_MARKS: usize = 3;
const END_MARK_PAUSE: Duration = Duration::from_millis(50);

/// One stream.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Payload, bytes.
    pub size: usize,
    /// Samples per second; `None`: as fast as possible.
    pub rate_hz: Option<f64>,
    /// What is measured of it.
    pub window: Window,
    /// How long it goes on after the window, so that subscribers can fill theirs.
    pub tail: Duration,
    /// A refused sample is tried again; if not, it is dropped and the next one sent.
    pub retry_refused: bool,
}

/// What the stream was, within the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Samples written in the window.
    pub written: u64,
    /// Samples written in all.
    pub written_total: u64,
    /// Refusals in all.
    pub refused: u64,
    /// CPU used by this process in the window.
    pub usage: Usage,
    /// Length of the window.
    pub wall_seconds: f64,
}

/// The edges of the window while the stream runs.
#[derive(Default)]
struct Progress {
    started_ns: u64,
    opened: Option<(u64, u64, Usage)>,
    closed_ns: Option<u64>,
    outcome: Outcome,
}

impl Progress {
    /// Looks at the window before sample number `written + 1`.
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
    let mut sample = Blob::filled(plan.size);
    let mut written = 0;
    let mut progress = Progress { started_ns: monotonic_ns(), ..Progress::default() };
    let period_ns = plan.rate_hz.map(|hz| (1e9 / hz) as u64);
    let mut next_ns = progress.started_ns;
    while !stopped() {
        progress.update(&plan.window, written, monotonic_ns());
        if progress.is_over(plan.tail, monotonic_ns()) {
            break;
        }
        if let Some(period_ns) = period_ns {
            next_ns += period_ns;
            drive_until(link, next_ns)?;
        } else if written % SAMPLES_PER_DRIVE == 0 {
            link.drive(Duration::ZERO)?;
        }
        sample.mark(written + 1, monotonic_ns());
        if !link.write(&sample)? {
            progress.outcome.refused += 1;
            if plan.retry_refused {
                link.drive(REFUSED_PAUSE)?;
                continue;
            }
        }
        written += 1;
    }
    progress.close(written, monotonic_ns());
    link.flush(FLUSH_TIMEOUT)?;
    Ok(Outcome { written_total: written, ..progress.outcome })
}

/// Tells the subscribers that the stream is over, then gives repairs another `linger`.
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

    #[test]
    fn a_window_of_samples_is_exact() {
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
    fn a_stream_that_is_stopped_in_the_window_counts_up_to_there() {
        let mut progress = Progress::default();
        progress.update(&Window::default(), 0, 0);
        progress.update(&Window::default(), 5, 100);
        progress.close(8, 2_000_000_000);
        assert_eq!(progress.outcome.written, 8);
        progress.close(9, 3_000_000_000);
        assert_eq!(progress.outcome.written, 8, "closed once");
    }

    #[test]
    fn a_stream_that_is_stopped_before_the_window_counts_nothing() {
        let mut progress = Progress::default();
        progress.close(8, 2_000_000_000);
        assert_eq!(progress.outcome.written, 0);
    }
}
