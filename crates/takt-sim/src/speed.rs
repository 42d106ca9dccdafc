//! How fast the simulator is, in simulated participant-seconds per second of processor time on one core.
//!
//! Three worlds tell what the time goes into: one in which nobody writes and that ends early, one in which nobody writes and
//! that goes on, and one with samples. What the second costs more than the first is announcements, of which everybody hears
//! everybody's; what the third costs more is samples; what remains of the first is that all find each other.

use std::time::Instant;

use crate::check::Violation;
use crate::clock::{Nanos, SECOND};
use crate::scenario::{Role, Scenario};
use crate::swarm;
use crate::timeline::Quiet;

/// Until all have found each other.
const START: Nanos = 3 * SECOND;

/// Participant-seconds to measure, as far as a world of 5 to 50 s has them.
const MEASURED: u64 = 6_000;

/// What one measurement says, in seconds of processor time.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Participant-seconds per second, of the whole world with samples: its start and its end, which is quiet, included.
    pub whole: f64,
    /// Participant-seconds per second while samples are written, when all have found each other.
    pub steady: f64,
    /// The share of that which is announcements.
    pub announcements: f64,
    /// Seconds for all to find each other.
    pub discovery: f64,
}

/// Measures a world of so many participants once.
pub fn measure(participants: usize) -> Result<Measurement, Violation> {
    let time = (MEASURED / participants as u64).clamp(5, 50) * SECOND;
    let (early, ..) = run(participants, START, false)?;
    let (silent, end, _) = run(participants, START + time, false)?;
    let (samples, _, lived) = run(participants, START + time, true)?;
    let seconds = |nanos: Nanos| nanos as f64 / SECOND as f64;
    let announcing = (silent - early) / seconds(time);
    let writing = (samples - silent) / seconds(START + time);
    Ok(Measurement {
        whole: seconds(lived) / samples,
        steady: participants as f64 / (announcing + writing),
        announcements: announcing / (announcing + writing),
        discovery: (early - announcing * seconds(end - time)).max(0.0),
    })
}

/// Runs a world. The processor time that it took, how long it lasted, and how long all participants together lived.
fn run(participants: usize, active: Nanos, with_samples: bool) -> Result<(f64, Nanos, Nanos), Violation> {
    let mut scenario = Scenario::steady(participants, active);
    if !with_samples {
        for endpoint in scenario.processes.iter_mut().flat_map(|process| &mut process.endpoints) {
            if let Role::Writer { samples, .. } = &mut endpoint.role {
                *samples = 0;
            }
        }
    }
    let watch = Watch::start();
    let report = swarm::run(&scenario, &mut Quiet);
    let time = watch.seconds();
    report.violation.map_or(Ok((time, report.simulated, report.participant_time)), Err)
}

/// A stopwatch of processor time; of the wall clock where the kernel does not tell.
struct Watch {
    started: Instant,
    ran: Option<u64>,
}

impl Watch {
    fn start() -> Self {
        Self { started: Instant::now(), ran: ran() }
    }

    fn seconds(&self) -> f64 {
        match (self.ran, ran()) {
            (Some(before), Some(after)) => (after - before) as f64 / 1e9,
            _ => self.started.elapsed().as_secs_f64(),
        }
    }
}

/// Nanoseconds that this process's first thread has had a processor.
fn ran() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let Ok(nanos) = text.split_whitespace().next()?.parse() else { return None };
    Some(nanos)
}
