//! Job of kind `loss`: an open loop over links that lose frames.

use super::{Measurement, Report};
use crate::error::Result;
use crate::study::lossy_links::LossyLinks;
use takt_netlink::loss::LossCounters;

/// Multiple of the median above which a sample counts as late.
const LATE_FACTOR: u64 = 10;

impl Measurement<'_> {
    pub(super) fn loss(&self) -> Result<Report> {
        if self.number("rate", 0) == 0 {
            return Err(self.failure("a loss needs a rate"));
        }
        let percent = self.job.cells[0].values.get("loss-percent").and_then(|value| value.to_string().parse().ok());
        let probability = percent.unwrap_or(0.0) / 100.0;
        let mut losing = None;
        // Discovery is complete: the link loses samples, heartbeats and acknowledgments.
        let mut begin = || {
            losing = Some(LossyLinks::new(self.launcher.place, probability)?);
            Ok(())
        };
        let mut report = self.one_way("load", &mut begin)?;
        let lost = losing.map_or_else(|| Ok(LossCounters::default()), |losing| losing.lost(1))?;
        let dropped = lost.dropped as f64 / lost.frames.max(1) as f64;
        for found in &mut report.results {
            let figures = &mut found.measured.figures;
            figures.insert("dropped_percent".into(), 100.0 * dropped);
            if let (true, Some(delivered)) = (lost.dropped > 0, figures.get("delivered_percent").copied()) {
                let unrepaired = (1.0 - delivered / 100.0) / dropped;
                figures.insert("repaired_percent".into(), 100.0 * (1.0 - unrepaired).clamp(0.0, 1.0));
            }
            if let Some(percent) = late_percent(&found.times_ns) {
                figures.insert("late_percent".into(), percent);
            }
        }
        Ok(report)
    }
}

fn late_percent(times_ns: &[u64]) -> Option<f64> {
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    let late_ns = LATE_FACTOR * sorted.get(sorted.len() / 2)?;
    let late = sorted.len() - sorted.partition_point(|ns| *ns <= late_ns);
    Some(100.0 * late as f64 / sorted.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::late_percent;

    #[test]
    fn samples_are_late_above_ten_times_the_median() {
        let mut times = vec![100; 98];
        times.extend([1000, 1001]);
        assert_eq!(late_percent(&times), Some(1.0));
        assert_eq!(late_percent(&[]), None);
    }
}
