//! Statistics of repeated measurements: t-tests, effect sizes, bootstrap intervals, distributions
//! over rounds.
//!
//! | module | content |
//! |---|---|
//! | [`moments`] | count, mean and variance, and their merging |
//! | [`welch`] | Welch's t-test with the interval of the difference, and Hedges' g |
//! | [`distribution`] | histograms of rounds, merged: percentiles, tails, bins |
//! | [`bootstrap`] | intervals by resampling of rounds |
//!
//! **Units of observation.** Samples of one round share a process, a memory layout, a processor
//! temperature and the other load of the machine. They are not independent, and a test over all of
//! them overstates the evidence. Rounds are restarts in a random order, so they are the independent
//! units. Reports have the test over samples, as publications have it, and the test over means of
//! rounds.

pub mod bootstrap;
pub mod distribution;
pub mod moments;
pub mod welch;

use serde::Serialize;

/// Confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns the interval multiplied by `factor`, which is not negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { low: self.low * factor, high: self.high * factor }
    }
}
