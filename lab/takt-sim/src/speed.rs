//! Speed of the simulator, in simulated participant-seconds per second of processor time on one
//! core.
//!
//! Three worlds separate the costs: one without writes that ends early, one without writes that
//! continues, and one with samples. The difference between the second and the first is the cost of
//! announcements, which every participant receives from every other. The difference between the
//! third and the second is the cost of samples. The rest is discovery.

use std::time::Instant;

use crate::check::Violation;
use crate::clock::{Nanos, SECOND};
use crate::scenario::{Role, Scenario};
use crate::swarm;
use crate::timeline::Quiet;

/// Time until all participants have discovered one another.
const START: Nanos = 3 * SECOND;

/// Participant-seconds to measure, within worlds of 5 to 50 s.
const MEASURED: u64 = 6_000;

/// Result of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Participant-seconds per second for the whole world with samples, including its start and its
    /// quiet end.
    pub whole: f64,
    /// Participant-seconds per second while samples are written, after discovery.
    pub steady: f64,
    /// Share of announcements in the steady state.
    pub announcements: f64,
    /// Processor time of discovery in seconds.
    pub discovery: f64,
}

/// Measures a world of this number of participants once.
pub fn measure(participants: usize) -> Result<Measurement, Violation> {
    let time = (MEASURED / participants as u64).clamp(5, 50) * SECOND;
    let (early, ..) = run(participants, START, false)?;
    let (idle, end, _) = run(participants, START + time, false)?;
    let (samples, _, lived) = run(participants, START + time, true)?;
    let seconds = |nanos: Nanos| nanos as f64 / SECOND as f64;
    let announcing = (idle - early) / seconds(time);
    let writing = (samples - idle) / seconds(START + time);
    Ok(Measurement {
        whole: seconds(lived) / samples,
        steady: participants as f64 / (announcing + writing),
        announcements: announcing / (announcing + writing),
        discovery: (early - announcing * seconds(end - time)).max(0.0),
    })
}

/// Runs a world. Returns its processor time, its duration, and the total lifetime of its
/// participants.
fn run(participants: usize, active: Nanos, with_samples: bool) -> Result<(f64, Nanos, Nanos), Violation> {
    let mut scenario = Scenario::steady(participants, active);
    if !with_samples {
        for endpoint in scenario.processes.iter_mut().flat_map(|process| &mut process.endpoints) {
            if let Role::Writer { samples, .. } = &mut endpoint.role {
                *samples = 0;
            }
        }
    }
    let stopwatch = Stopwatch::start();
    let report = swarm::run(&scenario, &mut Quiet);
    let time = stopwatch.seconds();
    report.violation.map_or(Ok((time, report.simulated, report.participant_time)), Err)
}

/// A stopwatch of processor time, or of wall-clock time if the kernel does not report processor
/// time.
struct Stopwatch {
    started: Instant,
    ran: Option<u64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { started: Instant::now(), ran: cpu_time() }
    }

    fn seconds(&self) -> f64 {
        match (self.ran, cpu_time()) {
            (Some(before), Some(after)) => (after - before) as f64 / 1e9,
            _ => self.started.elapsed().as_secs_f64(),
        }
    }
}

/// Returns the processor time of the first thread of this process in nanoseconds.
fn cpu_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let Ok(nanos) = text.split_whitespace().next()?.parse() else { return None };
    Some(nanos)
}
