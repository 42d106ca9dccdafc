//! Histogram of durations in logarithmic bins from one nanosecond to 18 minutes. The width of a bin
//! is at most an eighth of its values.

use alloc::boxed::Box;
use alloc::vec;

/// Number of bins per doubling. Values below it have a bin each.
const PARTS: u64 = 8;

/// Doublings above [`PARTS`]: up to 2^40 ns.
const OCTAVES: usize = 37;

const BINS: usize = (OCTAVES + 1) * PARTS as usize;

/// Counts of durations in nanoseconds. Durations above 2^40 ns count in the last bin;
/// [`max_ns`](Self::max_ns) is exact. Recording takes about two nanoseconds and does not allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bins: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Returns an empty histogram of 2.4 kB.
    #[must_use]
    pub fn new() -> Self {
        Self { bins: vec![0; BINS].into_boxed_slice(), count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records a duration.
    #[inline]
    pub fn record(&mut self, duration_ns: u64) {
        self.bins[bin_of(duration_ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.wrapping_add(duration_ns);
        self.min_ns = self.min_ns.min(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the maximum; 0 if the histogram is empty.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the minimum; 0 if the histogram is empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Returns the sum modulo 2^64.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the mean; 0 if the histogram is empty.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }

    /// Returns the quantile for a share from 0 to 1: the upper end of its bin, at most the maximum.
    /// 0 if the histogram is empty.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count as f64).max(1.0);
        let mut cumulative = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            cumulative += count;
            if cumulative as f64 >= wanted {
                return last_of(bin).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns the nonempty bins: first value, last value and count of each.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bin, count)| (first_of(bin), last_of(bin), *count))
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in self.bins.iter_mut().zip(&other.bins) {
            *bin += count;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.bins.fill(0);
        (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
    }
}

/// Returns the bin of a duration.
#[inline]
fn bin_of(duration_ns: u64) -> usize {
    if duration_ns < PARTS {
        return duration_ns as usize;
    }
    let octave = duration_ns.ilog2() as usize - PARTS.ilog2() as usize;
    let part = (duration_ns >> octave) as usize - PARTS as usize;
    ((octave + 1) * PARTS as usize + part).min(BINS - 1)
}

/// Returns the first duration of a bin.
fn first_of(bin: usize) -> u64 {
    let (octave, part) = (bin / PARTS as usize, (bin % PARTS as usize) as u64);
    match octave {
        0 => part,
        _ => (PARTS + part) << (octave - 1),
    }
}

/// Returns the last duration of a bin. The last bin holds all longer durations.
fn last_of(bin: usize) -> u64 {
    if bin + 1 == BINS { u64::MAX } else { first_of(bin + 1) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn duration_is_in_the_bin_of_its_range() {
        let around =
            |shift: u32| [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1, (1 << shift) + (1 << shift >> 1)];
        for duration_ns in (0..40).flat_map(around).filter(|duration_ns| *duration_ns < 1 << 40) {
            let bin = bin_of(duration_ns);
            assert!(first_of(bin) <= duration_ns && duration_ns < first_of(bin + 1), "{duration_ns}");
            assert!(first_of(bin + 1) - first_of(bin) <= (duration_ns / PARTS).max(1), "{duration_ns}");
        }
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }

    #[test]
    fn quantiles_overestimate_by_at_most_an_eighth() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile_ns(0.5), histogram.min_ns(), histogram.mean_ns()), (0, 0, 0));
        (1..=10_000).for_each(|duration_ns| histogram.record(duration_ns));
        for (share, truth) in [(0.5, 5_000), (0.99, 9_900), (0.001, 10)] {
            let quantile = histogram.quantile_ns(share);
            assert!(quantile >= truth && quantile <= truth + truth / 8, "{share}: {quantile}");
        }
        assert_eq!((histogram.quantile_ns(1.0), histogram.quantile_ns(0.0)), (10_000, 1));
        assert_eq!((histogram.min_ns(), histogram.max_ns(), histogram.count()), (1, 10_000, 10_000));
        assert_eq!(histogram.mean_ns(), 5_000);
        assert_eq!(histogram.bins().map(|(_, _, count)| count).sum::<u64>(), 10_000);
    }

    #[test]
    fn durations_beyond_the_bins_are_not_underestimated() {
        let mut histogram = Histogram::new();
        [0, u64::MAX, 1 << 40].into_iter().for_each(|duration_ns| histogram.record(duration_ns));
        assert_eq!((histogram.quantile_ns(0.0), histogram.quantile_ns(0.99)), (0, u64::MAX));
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (0, u64::MAX));
        let bins: Vec<_> = histogram.bins().collect();
        assert_eq!(bins, [(0, 0, 1), (first_of(BINS - 1), u64::MAX, 2)]);
    }

    #[test]
    fn merged_histogram_equals_a_common_one() {
        let (mut both, mut one, mut other) = (Histogram::new(), Histogram::new(), Histogram::new());
        for duration_ns in [5, 70, 3_000_000_000_000, 1] {
            both.record(duration_ns);
            if duration_ns < 60 { &mut one } else { &mut other }.record(duration_ns);
        }
        one.merge(&other);
        assert_eq!(one, both);
        one.clear();
        assert_eq!(one, Histogram::new());
    }
}
