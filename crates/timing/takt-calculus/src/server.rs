//! Response times at one resource with fixed priorities without preemption: an executor's thread,
//! or a link with strict-priority queues.
//!
//! The waiting piece with the highest priority is served to completion. The order within a priority
//! is arbitrary: a job's own events keep their order, and each event of a job of equal priority may
//! precede. Lower-priority work blocks for at most one piece, started before more urgent work
//! arrived. An event may consist of several pieces ([`Job::pieces`], the frames of a large sample),
//! between which other jobs are served.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Arrivals;
use crate::system::Server;

/// Maximum number of arrival times examined for a job within one busy period.
pub const POINTS_MAX: usize = 10_000;

/// Maximum number of iterations towards a fixed point.
const STEPS_MAX: usize = 1_000_000;

/// Limit on busy periods, in nanoseconds: one hour. Longer ones count as unbounded.
pub const HORIZON_NS: u64 = 3_600_000_000_000;

/// Load of one flow on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Priority; a larger number is more urgent.
    pub priority: i32,
    /// Arrival bound. `None` means that events arrive as fast as they are served. Such a job has no
    /// bound, and neither have jobs of the same or lower priority.
    pub arrivals: Option<Arrivals>,
    /// Maximum execution time of one piece, in nanoseconds.
    pub piece_ns: u64,
    /// Number of pieces of an event, at least 1. All arrive at once, or within the jitter of the
    /// arrivals.
    pub pieces: u64,
}

impl Job {
    /// Returns the maximum execution time of all events that arrive in a closed interval of
    /// `window_ns`.
    fn demand(&self, window_ns: u64) -> Option<u64> {
        self.arrivals?.count(window_ns).checked_mul(self.pieces)?.checked_mul(self.piece_ns)
    }
}

/// Event of a job, identified by its arrival within a busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Arrival time from the start of the busy period, in nanoseconds.
    pub arrival_ns: u64,
    /// Latest start of service of the last piece, in nanoseconds.
    pub start_ns: u64,
}

/// Bounds of a job at a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Maximum time from the arrival of an event to its completion, in nanoseconds.
    pub response_ns: u64,
    /// Maximum busy period of this priority and above, in nanoseconds.
    pub busy_ns: u64,
    /// All events that could have the maximum response time.
    pub points: Vec<Point>,
}

/// Reason why there is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbounded {
    /// Work of this priority and above keeps the resource busy forever, or for more than an hour.
    Overload,
    /// A busy period has more than [`POINTS_MAX`] events, or a search takes more than a million
    /// steps.
    TooComplex,
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overload => "work of this and higher priorities uses all the time",
            Self::TooComplex => "too many events in one busy period",
        })
    }
}

/// Returns the utilization of a resource by `jobs` in parts of a million, rounded up; `None` if one
/// of them has no arrival bound.
pub fn utilization_ppm<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Option<u64> {
    jobs.into_iter().try_fold(0_u64, |sum, job| {
        let work = (u128::from(job.pieces) * u128::from(job.piece_ns)).saturating_mul(1_000_000);
        let share = work.div_ceil(u128::from(job.arrivals?.period_ns));
        Some(sum.saturating_add(u64::try_from(share).unwrap_or(u64::MAX)))
    })
}

/// Computes the maximum response time of `jobs[at]`.
///
/// The work grows with the number of events in a busy period, times the number of jobs; the limits
/// are the constants above. `server` delays jobs above its priority; its pieces are not part of
/// `jobs`.
///
/// # Panics
/// Panics if the job does not exist, or if a job has a period of 0 or no pieces.
pub fn respond(jobs: &[Job], at: usize, server: Option<Server>) -> Result<Response, Unbounded> {
    let own = jobs[at];
    let server = server.filter(|server| server.priority < own.priority);
    let blocking_ns = blocking(jobs, own.priority, server).ok_or(Unbounded::Overload)?;
    // Any job of equal priority may be served first.
    let interfering = jobs.iter().enumerate().filter(|(n, job)| *n != at && job.priority >= own.priority);
    let interfering: Vec<Job> = interfering.map(|(_, job)| *job).collect();
    let level = || interfering.iter().chain([&own]);
    let server_jobs = server.map(|server| Job {
        priority: i32::MAX,
        arrivals: Some(Arrivals::sporadic(server.period_ns)),
        piece_ns: server.piece_ns,
        pieces: 1,
    });
    if utilization_ppm(level().chain(&server_jobs)).is_none_or(|ppm| ppm > 1_000_000 + level().count() as u64 + 1) {
        return Err(Unbounded::Overload);
    }
    let served =
        |window_ns: u64| server.map_or(Some(0), |server| server.piece_ns.checked_mul(window_ns / server.period_ns));
    // Work that arrives exactly at the end of the busy period begins another one.
    let first = total(level(), 0).and_then(|work| work.checked_add(blocking_ns)).ok_or(Unbounded::Overload)?;
    let busy_ns = fixed_point(first, |busy_ns| {
        let window_ns = busy_ns.saturating_sub(1);
        total(level(), window_ns)?.checked_add(served(window_ns)?)?.checked_add(blocking_ns)
    })?;

    let (mut response_ns, mut begun_ns) = (0, 0);
    let mut points = Vec::new();
    for arrival_ns in arrivals_of(&own, busy_ns)? {
        // Its own events up to that arrival without the very last piece, and the work of
        // interfering jobs up to the start of that piece.
        let before = own.demand(arrival_ns).map(|work| work - own.piece_ns);
        let before = before.and_then(|work| work.checked_add(blocking_ns)).ok_or(Unbounded::Overload)?;
        // A later event does not start earlier.
        let from = before.max(begun_ns);
        let start_ns = fixed_point(from, |start_ns| {
            total(interfering.iter(), start_ns)?.checked_add(served(start_ns)?)?.checked_add(before)
        })?;
        begun_ns = start_ns;
        let done_ns = start_ns.checked_add(own.piece_ns).ok_or(Unbounded::Overload)?;
        response_ns = response_ns.max(done_ns.saturating_sub(arrival_ns));
        points.push(Point { arrival_ns, start_ns });
    }
    Ok(Response { response_ns, busy_ns, points })
}

/// Returns the maximum blocking time of a job with this priority: lower-priority work served at the
/// start of its busy period. Later pieces of the server are not included.
///
/// After a job at or below the server's priority, or after idle time, the server's next piece is
/// one period later. After a job between the server's priority and this one, or directly after the
/// previous busy period, the server may run a piece immediately.
fn blocking(jobs: &[Job], priority: i32, server: Option<Server>) -> Option<u64> {
    let served_from = server.map_or(i32::MAX, |server| server.priority);
    let at_once_ns = server.map_or(0, |server| server.piece_ns);
    let lower = jobs.iter().filter(|job| job.priority < priority);
    lower
        .map(|job| if job.priority > served_from { job.piece_ns.checked_add(at_once_ns) } else { Some(job.piece_ns) })
        .try_fold(at_once_ns, |longest, ns| Some(longest.max(ns?)))
}

/// Returns the work of the jobs that arrives in a closed interval.
fn total<'a>(mut jobs: impl Iterator<Item = &'a Job>, window_ns: u64) -> Option<u64> {
    jobs.try_fold(0_u64, |sum, job| sum.checked_add(job.demand(window_ns)?))
}

/// Returns the smallest fixed point of `next` that is at least `from`. `next` must be monotone.
pub(crate) fn fixed_point(from: u64, mut next: impl FnMut(u64) -> Option<u64>) -> Result<u64, Unbounded> {
    let mut value = from;
    for _ in 0..STEPS_MAX {
        let then = next(value).filter(|then| *then <= HORIZON_NS).ok_or(Unbounded::Overload)?;
        if then <= value {
            return Ok(value);
        }
        value = then;
    }
    Err(Unbounded::TooComplex)
}

/// Returns the earliest arrival times of a job's events within a busy period, in ascending order.
/// Simultaneous events are one point, the last of them.
fn arrivals_of(job: &Job, busy_ns: u64) -> Result<Vec<u64>, Unbounded> {
    let Some(arrivals) = job.arrivals else { return Err(Unbounded::Overload) };
    let later = (arrivals.at_once()..).map(|n| arrivals.span(n)).take_while(|span| *span < busy_ns);
    let mut points: Vec<u64> = core::iter::once(0).chain(later).take(POINTS_MAX + 1).collect();
    points.dedup();
    if points.len() > POINTS_MAX { Err(Unbounded::TooComplex) } else { Ok(points) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(priority: i32, period_ns: u64, piece_ns: u64) -> Job {
        Job { priority, arrivals: Some(Arrivals::sporadic(period_ns)), piece_ns, pieces: 1 }
    }

    fn response(jobs: &[Job], at: usize) -> u64 {
        respond(jobs, at, None).expect("bounded").response_ns
    }

    #[test]
    fn response_time_of_a_single_job_is_its_execution_time() {
        assert_eq!(response(&[job(1, 100, 30)], 0), 30);
        // Unless the resource is overloaded.
        assert_eq!(response(&[job(1, 30, 30)], 0), 30);
        assert_eq!(respond(&[job(1, 29, 30)], 0, None), Err(Unbounded::Overload));
    }

    /// Example of Davis et al. (2007), which the older analysis got wrong: the second event of the
    /// lowest-priority job has the maximum response time.
    #[test]
    fn second_event_can_be_the_latest_as_in_the_refuted_can_analysis() {
        let jobs = [job(3, 250, 100), job(2, 350, 100), job(1, 350, 100)];
        assert_eq!([0, 1, 2].map(|at| response(&jobs, at)), [200, 300, 350]);
    }

    #[test]
    fn jobs_of_equal_priority_may_precede_regardless_of_arrival() {
        let jobs = [job(1, 100, 10), job(1, 100, 20), job(1, 100, 30)];
        assert_eq!([0, 1, 2].map(|at| response(&jobs, at)), [60, 60, 60]);
        // A frequent job of equal priority delays like one of higher priority.
        for priority in [1, 2] {
            let jobs = [job(priority, 20, 5), job(1, 1000, 18), job(1, 1000, 18)];
            assert_eq!(response(&jobs, 1), 5 + 18 + 5 + 18, "{priority}");
        }
        // Two jobs of equal priority that alternate delay a third one for as long as one of them
        // waits.
        let (a, b) = (job(40, 5_000_000, 2_500_000), job(40, 6_000_000, 2_500_000));
        assert_eq!(response(&[a, b, job(40, 100_000_000, 250_000)], 2), 17_750_000);
    }

    /// An event of a burst waits for the previous ones, and jobs of equal priority may overtake it
    /// meanwhile.
    #[test]
    fn event_waits_for_earlier_events_of_its_flow() {
        let burst = Job { arrivals: Some(Arrivals::bursts(1000, 3)), ..job(1, 1, 10) };
        // Two of its own pieces and the interfering events of 0 and 12 precede its last piece,
        // which starts at 22.
        assert_eq!(response(&[burst, job(1, 12, 1)], 0), 32);
        assert_eq!(response(&[burst, job(2, 12, 1)], 0), 32);
    }

    #[test]
    fn job_without_arrival_bound_blocks_higher_priorities_for_one_piece() {
        let flood = Job { priority: 0, arrivals: None, piece_ns: 12, pieces: 1 };
        let jobs = [flood, job(1, 100, 10), job(2, 100, 10)];
        assert_eq!([1, 2].map(|at| response(&jobs, at)), [32, 22]);
        assert_eq!(respond(&jobs, 0, None), Err(Unbounded::Overload));
        assert_eq!(respond(&[Job { priority: 2, ..flood }, job(2, 100, 10)], 1, None), Err(Unbounded::Overload));
    }

    #[test]
    fn other_jobs_are_served_between_the_pieces_of_an_event() {
        let large = Job { pieces: 5, ..job(1, 1000, 10) };
        assert_eq!(response(&[job(2, 1000, 7), large], 0), 17, "one job is ahead");
        assert_eq!(response(&[job(2, 25, 7), large], 1), 50 + 3 * 7);
    }

    /// The server's piece follows one period after idle time or work of its priority. After work
    /// above its priority it may follow immediately.
    #[test]
    fn server_has_an_immediate_turn_only_after_work_above_its_priority() {
        let server = Some(Server { priority: 0, period_ns: 100, piece_ns: 20 });
        let bound = |jobs: &[Job]| respond(jobs, 0, server).expect("bounded").response_ns;
        let (own, long) = (job(5, 1000, 10), job(5, 1000, 95));
        assert_eq!(bound(&[own]), 20 + 10, "the busy period before may have ended just now");
        assert_eq!(bound(&[own, job(-1, 1000, 30)]), 30 + 10);
        assert_eq!(bound(&[own, job(0, 1000, 30)]), 30 + 10);
        assert_eq!(bound(&[own, job(1, 1000, 30)]), 30 + 20 + 10);
        assert_eq!(bound(&[own, job(-1, 1000, 40), job(1, 1000, 30)]), 30 + 20 + 10);
        assert_eq!(bound(&[own, long, job(-1, 1000, 30)]), 30 + 95 + 20 + 10, "once more after a period");
        assert_eq!(bound(&[job(0, 1000, 10), job(-1, 1000, 30)]), 30 + 10, "lower priorities do not delay");
    }

    #[test]
    fn burst_delays_its_own_events() {
        let burst = Job { arrivals: Some(Arrivals::bursts(100, 4)), ..job(1, 1, 10) };
        assert_eq!(response(&[burst], 0), 40);
    }

    #[test]
    fn too_complex_busy_period_is_reported() {
        let long = Job { arrivals: Some(Arrivals::sporadic(HORIZON_NS)), piece_ns: HORIZON_NS, ..job(1, 1, 1) };
        assert_eq!(respond(&[long, job(1, 100, 1)], 0, None), Err(Unbounded::Overload));
        let busy = Job { arrivals: Some(Arrivals::sporadic(1_000_000_000)), piece_ns: 500_000_000, ..job(1, 1, 1) };
        assert_eq!(respond(&[busy, job(1, 1000, 100)], 1, None), Err(Unbounded::TooComplex));
        let huge = Job { pieces: u64::MAX, ..job(1, u64::MAX, u64::MAX) };
        assert_eq!(respond(&[huge], 0, None), Err(Unbounded::Overload));
    }
}
