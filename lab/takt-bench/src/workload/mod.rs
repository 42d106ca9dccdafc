//! Workload loops. Each runs on any [`Link`], so that all compared links execute the same code.
//!
//! Topics: `Ping` and `Pong` for round trips, `Data` for one-way streams. Times are nanoseconds of
//! `CLOCK_MONOTONIC`. A workload ends early when a signal requests a stop.

pub mod crowd;
pub mod ping;
pub mod pong;
pub mod publish;
pub mod subscribe;

use crate::error::{Error, Result};
use crate::link::{Link, Matched};
use crate::machine::monotonic_ns;
use crate::signal::stopped;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Topic of the pings.
pub const TOPIC_PING: &str = "Ping";
/// Topic of the answers.
pub const TOPIC_PONG: &str = "Pong";
/// Topic of one-way streams.
pub const TOPIC_DATA: &str = "Data";

/// Length of one step of waiting: the maximum delay until a stop is noticed.
const STEP: Duration = Duration::from_millis(100);

/// Measurement window of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Number of samples before the window.
    pub skip_samples: u64,
    /// Time before the window, from the first sample on.
    pub skip: Duration,
    /// Maximum number of samples in the window.
    pub samples_max: Option<u64>,
    /// Maximum length of the window.
    pub time_max: Option<Duration>,
}

impl Window {
    /// Reports whether the window opens after this number of samples and this time.
    fn opens(&self, samples: u64, elapsed_ns: u64) -> bool {
        samples >= self.skip_samples && elapsed_ns >= nanoseconds(self.skip)
    }

    /// Reports whether the window closes after it has lasted this number of samples and this time.
    fn closes(&self, samples: u64, elapsed_ns: u64) -> bool {
        self.samples_max.is_some_and(|max| samples >= max)
            || self.time_max.is_some_and(|max| elapsed_ns >= nanoseconds(max))
    }
}

/// Waits until the link has matched the wanted endpoints, checking every `step`.
///
/// # Errors
/// The endpoints are not matched within `limit`, or the middleware failed.
pub fn wait_matched(link: &mut dyn Link, wanted: Matched, limit: Duration, step: Duration) -> Result<()> {
    let deadline = monotonic_ns() + nanoseconds(limit);
    loop {
        let found = link.matched()?;
        if found.covers(&wanted) {
            return Ok(());
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        if monotonic_ns() >= deadline {
            return Err(Error::NotMatched { wanted, found, seconds: limit.as_secs() });
        }
        link.drive(step)?;
    }
}

/// Drives the link for `time`, or until a stop.
///
/// # Errors
/// The middleware failed.
pub fn settle(link: &mut dyn Link, time: Duration) -> Result<()> {
    drive_until(link, monotonic_ns() + nanoseconds(time))
}

/// Drives the link until the given time, or until a stop.
fn drive_until(link: &mut dyn Link, deadline_ns: u64) -> Result<()> {
    while let Some(left) = time_left(deadline_ns) {
        if stopped() {
            break;
        }
        link.drive(left.min(STEP))?;
    }
    Ok(())
}

/// Returns the time from now to `deadline_ns`; `None` if it has passed.
fn time_left(deadline_ns: u64) -> Option<Duration> {
    match deadline_ns.checked_sub(monotonic_ns()) {
        None | Some(0) => None,
        Some(left) => Some(Duration::from_nanos(left)),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Locks state that a handler shares with its loop, also after a panic of the other side.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_opens_when_both_conditions_hold() {
        let window = Window { skip_samples: 10, skip: Duration::from_nanos(500), ..Window::default() };
        assert!(!window.opens(9, 500));
        assert!(!window.opens(10, 499));
        assert!(window.opens(10, 500));
    }

    #[test]
    fn window_closes_when_either_limit_is_reached() {
        let window = Window { samples_max: Some(100), time_max: Some(Duration::from_nanos(1000)), ..Window::default() };
        assert!(!window.closes(99, 999));
        assert!(window.closes(100, 0));
        assert!(window.closes(0, 1000));
        assert!(!Window::default().closes(u64::MAX, u64::MAX));
    }
}
