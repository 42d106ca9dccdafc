//! Measurement of the rate limiter: the output of a meter for a stream of three times its rate.
//!
//! The bucket of an overloaded meter is empty. In any interval the meter passes only the tokens
//! added meanwhile, so each further octet is excess. A meter that is refilled in steps passes
//! frames in runs: the length of a run is the step.

use std::time::Duration;

use takt_openflow::Message;
use takt_openflow::meter::{Band, MeterCommand, MeterMod, meter_flags};

use super::probes::{Record, Stream};
use super::{Bench, EntryOutput, METERED, MeasureError, entry, tables};

/// Duration of the stream.
const TIME: Duration = Duration::from_secs(5);
/// Initial time that is skipped because of the burst, in ns.
const SKIPPED_NS: u64 = 500_000_000;
/// Minimum length in ns of the intervals over which the excess is measured.
const WINDOW_NS: u64 = 1_000_000_000;
const BURST_KBIT: u32 = 100;
const RATE_KBPS_MAX: u32 = 10_000;
/// Highest meter number that is tried, and number of attempts downwards.
const METER: u32 = 57_344;
const ATTEMPTS: u32 = 16;

/// Measured properties of a rate limiter.
#[derive(Debug, Clone, PartialEq)]
pub struct Limiter {
    /// Configured rate.
    pub rate_kbps: u32,
    /// Configured burst.
    pub burst_kbit: u32,
    /// Excess over the rate in the whole time in ppm; negative if less passed.
    pub mean_ppm: f64,
    /// Maximum excess of all intervals of a second in ppm; one step is subtracted.
    pub worst_ppm: f64,
    /// Upper bound of the refill step in ns.
    pub step_ns: u64,
    /// Number of frames that pass consecutively: median and 99th percentile.
    pub runs: [usize; 2],
    /// Amount in kbit that passed before the first frame was dropped.
    pub first_kbit: u64,
}

impl Limiter {
    /// Computes the properties from a stream of frames of `len` octets.
    fn of(record: &Record, len: usize, rate_kbps: u32, burst_kbit: u32) -> Option<Self> {
        let (bits, rate_bps) = (len as f64 * 8.0, f64::from(rate_kbps) * 1000.0);
        let begin = *record.arrived.iter().filter(|time| **time > 0).min()?;
        let arrivals = record.arrived.iter().enumerate().filter(|(_, time)| **time >= begin + SKIPPED_NS);
        let arrivals: Vec<(usize, u64)> = arrivals.map(|(number, time)| (number, *time)).collect();
        let mut runs = Vec::new();
        let mut run = 1;
        for pair in arrivals.windows(2) {
            if pair[1].0 == pair[0].0 + 1 {
                run += 1;
            } else {
                runs.push(std::mem::replace(&mut run, 1));
            }
        }
        runs.sort_unstable();
        let (median, long) = (*runs.get(runs.len() / 2)?, *runs.get(runs.len() * 99 / 100)?);
        let step = median as f64 * bits / rate_bps;
        let mut times: Vec<u64> = arrivals.iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        let excess = |from: usize, to: usize, step: f64| {
            let time = (times[to] - times[from]) as f64 / 1e9;
            ((to - from) as f64 * bits / (rate_bps * (time + step)) - 1.0) * 1e6
        };
        let last = times.len().checked_sub(1).filter(|last| *last > 0)?;
        let mut worst = f64::NEG_INFINITY;
        for from in 0..=last {
            let to = times.partition_point(|time| *time < times[from] + WINDOW_NS);
            if to <= last {
                worst = worst.max(excess(from, to, step));
            }
        }
        let first = record.arrived.iter().take_while(|time| **time > 0).count();
        Some(Self {
            rate_kbps,
            burst_kbit,
            mean_ppm: excess(0, last, 0.0),
            worst_ppm: worst,
            step_ns: (step * 1e9).ceil() as u64,
            runs: [median, long],
            first_kbit: (first as f64 * bits / 1000.0) as u64,
        })
    }
}

/// Measures a meter; `None`: the switch supports none.
pub(super) fn limiter(bench: &mut Bench<'_>, rate_bps: u64) -> Result<Option<Limiter>, MeasureError> {
    let half = u32::try_from(rate_bps / 2000).unwrap_or(u32::MAX);
    let rate_kbps = bench.settings.meter_kbps.unwrap_or(half.min(RATE_KBPS_MAX)).max(1);
    let highest = tables::most_meters(bench)?.unwrap_or(METER).min(METER);
    let mut found = None;
    for meter in (1..=highest).rev().take(ATTEMPTS as usize) {
        let message = Message::MeterMod(MeterMod {
            command: MeterCommand::Add,
            flags: meter_flags::KBPS | meter_flags::BURST,
            meter,
            bands: vec![Band::Drop { rate: rate_kbps, burst: BURST_KBIT }],
        });
        if bench.session.execute(&[message])?.is_empty() {
            bench.meters.push(meter);
            found = Some(meter);
            break;
        }
    }
    let Some(meter) = found else {
        bench.report("the switch accepts no meter");
        return Ok(None);
    };
    bench.require(entry::METERED, EntryOutput::Metered(meter))?;
    let bits = METERED as u64 * 8;
    let period_ns = bits * 1_000_000 / (3 * u64::from(rate_kbps));
    let count = (TIME.as_nanos() as u64 / period_ns.max(1)) as u32;
    let record = bench.run_one(Stream { entry: entry::METERED, len: METERED, period_ns, count })?;
    let limiter = Limiter::of(&record, METERED, rate_kbps, BURST_KBIT);
    let Some(limiter) = limiter.filter(|_| record.lost() > 0.5) else {
        let what =
            format!("a meter of {rate_kbps} kbit/s passes {:.0} % of three times that", 100.0 - 100.0 * record.lost());
        return Err(MeasureError::Switch(what));
    };
    bench.report(&format!(
        "a meter of {rate_kbps} kbit/s passes {:+.0} ppm, at worst {:+.0} ppm in a second; filled each {} ns",
        limiter.mean_ppm, limiter.worst_ppm, limiter.step_ns
    ));
    Ok(Some(limiter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_KBPS: u32 = 10_000;

    /// Simulates a meter of 10 Mbit/s with this excess, refilled every `step_ns`, under a stream of
    /// three times its rate for four seconds.
    fn metered(step_ns: u64, excess: f64) -> Record {
        let (bits, period_ns) = (METERED as f64 * 8.0, 66_667_u64);
        let rate_bps = f64::from(RATE_KBPS) * 1000.0 * (1.0 + excess);
        let (mut bucket, mut filled, mut record) = (100_000.0_f64, 0_u64, Record::default());
        for number in 0..60_000_u64 {
            let now = 1 + number * period_ns;
            let steps = (now - filled) / step_ns;
            filled += steps * step_ns;
            bucket = (bucket + rate_bps * (steps * step_ns) as f64 / 1e9).min(100_000.0);
            let passes = bucket >= bits;
            if passes {
                bucket -= bits;
            }
            record.sent.push(now);
            record.arrived.push(if passes { now } else { 0 });
        }
        record
    }

    #[test]
    fn step_of_a_meter_is_the_length_of_its_runs() {
        let limiter = Limiter::of(&metered(1_000_000, 0.0), METERED, RATE_KBPS, 100).expect("frames pass");
        assert_eq!((limiter.step_ns, limiter.runs), (1_000_000, [5, 5]));
        assert!(limiter.worst_ppm <= 0.0 && limiter.mean_ppm.abs() < 500.0, "{limiter:?}");
        // Without steps, frames pass one at a time.
        let smooth = Limiter::of(&metered(1, 0.0), METERED, RATE_KBPS, 100).expect("frames pass");
        assert_eq!((smooth.step_ns, smooth.runs[0]), (200_000, 1));
        assert!(smooth.first_kbit >= 100, "{smooth:?}");
    }

    #[test]
    fn excess_of_a_meter_is_found_beyond_its_steps() {
        let limiter = Limiter::of(&metered(1_000_000, 0.03), METERED, RATE_KBPS, 100).expect("frames pass");
        assert!((28_000.0..31_000.0).contains(&limiter.mean_ppm), "{limiter:?}");
        assert!((28_000.0..31_000.0).contains(&limiter.worst_ppm), "{limiter:?}");
        assert_eq!(Limiter::of(&Record::default(), METERED, RATE_KBPS, 100), None);
    }
}
