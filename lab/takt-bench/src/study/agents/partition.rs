//! Job of kind `partition`: an open loop over a link that is down for a while.

use super::{Measurement, Report, wait};
use crate::error::Result;
use std::time::Duration;

/// Time from the match to the beginning of an open loop, as in the contract, plus half a second of
/// the window.
const BEFORE: Duration = Duration::from_millis(1000);
/// Length of the window in addition to the outage: time before it, and time to catch up.
const WINDOW_MORE: Duration = Duration::from_secs(2);
/// Maximum outage: readers end their count after 3 s without a sample.
const OUTAGE_MAX_MS: u64 = 2500;
/// Multiple of the median before the outage above which a sample counts as late.
const LATE_FACTOR: u64 = 10;

impl Measurement<'_> {
    pub(super) fn partition(&self) -> Result<Report> {
        let outage_ms = self.number("outage-ms", 500);
        let outage = Duration::from_millis(outage_ms);
        let rate = self.number("rate", 0);
        if outage_ms > OUTAGE_MAX_MS || self.seconds("secs", 2.0) < outage + WINDOW_MORE || rate == 0 {
            let text = format!(
                "a partition needs a rate, outage-ms of at most {OUTAGE_MAX_MS}, and secs at least {} s longer than the outage",
                WINDOW_MORE.as_secs()
            );
            return Err(self.failure(text));
        }
        let place = self.launcher.place;
        let before = BEFORE + self.seconds("warm_s", 0.5);
        let mut cut = || {
            wait(before)?;
            place.set_link(false)?;
            let waited = wait(outage);
            place.set_link(true)?;
            waited
        };
        let mut report = self.one_way("load", &mut cut)?;
        for found in &mut report.results {
            let figures = &mut found.measured.figures;
            let times = &found.times_ns;
            let longest = times.iter().max().copied().unwrap_or(0) as f64 * 1e-6;
            figures.insert("recovery_ms".into(), (longest - outage_ms as f64).max(0.0));
            if figures.get("lost") == Some(&0.0)
                && let Some(ms) = caught_up_ms(times, 1e3 / rate as f64, outage_ms as f64)
            {
                figures.insert("caught_up_ms".into(), ms);
            }
        }
        Ok(report)
    }
}

/// Returns the time from the end of the outage until latencies are as low as before, ms. Assumes
/// that no sample is lost, and that each is planned one period after the previous one.
fn caught_up_ms(times_ns: &[u64], period_ms: f64, outage_ms: f64) -> Option<f64> {
    let first = times_ns.iter().position(|ns| *ns as f64 * 1e-6 > outage_ms / 2.0)?;
    let mut usual: Vec<u64> = times_ns[..first].to_vec();
    usual.sort_unstable();
    let late_ns = LATE_FACTOR * usual.get(usual.len() / 2)?;
    // Later samples are late for other reasons.
    let late = times_ns[first..].iter().take_while(|ns| **ns > late_ns).count();
    let last = (first + late).saturating_sub(1);
    let arrived = |at: usize| at as f64 * period_ms + times_ns[at] as f64 * 1e-6;
    // The first late sample was planned at the beginning of the outage.
    Some((arrived(last.max(first)) - (first as f64 * period_ms + outage_ms)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::caught_up_ms;

    #[test]
    fn samples_are_caught_up_when_the_last_late_one_has_arrived() {
        let ms = |ms: u64| ms * 1_000_000;
        // A sample each 10 ms takes 1 ms; an outage of 100 ms delays ten of them, repaired 40 ms
        // after its end.
        let mut times = vec![ms(1); 20];
        times.extend((0..14).map(|number| ms(140 - 10 * number)));
        times.extend([ms(1); 10]);
        times.push(ms(30));
        times.extend([ms(1); 9]);
        let found = caught_up_ms(&times, 10.0, 100.0).expect("some samples are late");
        assert!((found - 40.0).abs() < 1e-6, "{found}");
        assert_eq!(caught_up_ms(&[ms(1); 20], 10.0, 100.0), None);
    }
}
