//! Delay and backlog bounds of one queue.
//!
//! Total-flow analysis: a queue is one FIFO server for all flows of its class. A frame that arrives
//! `t` after the start of a busy period waits for one frame of lower priority, for all frames of
//! its class that arrive within `t`, and for those of higher classes that arrive before its
//! transmission.

use alloc::vec::Vec;

use super::load::{Load, Loads};
use super::sweep::Sweep;
use super::{Depth, Interval, Port, QueueClaim, QueueFault};
use crate::link::frame_time_ns;
use crate::server::{POINTS_MAX, Unbounded, fixed_point};

/// All loads of one port.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortView<'a> {
    pub(super) ports: &'a [Port],
    /// Index of the port.
    pub(super) at: usize,
    pub(super) loads: &'a Loads,
}

const OVERLOAD: QueueFault = QueueFault::Unbounded(Unbounded::Overload);
const TOO_COMPLEX: QueueFault = QueueFault::Unbounded(Unbounded::TooComplex);

impl PortView<'_> {
    pub(super) fn port(&self) -> &Port {
        &self.ports[self.at]
    }

    fn sweep(&self, which: impl Fn(usize) -> bool) -> Result<Sweep<'_>, QueueFault> {
        Sweep::new((self.ports, self.at), self.loads, which).ok_or(OVERLOAD)
    }

    /// Returns the blocking time of `class`: the longest frame of a lower class or without
    /// contract.
    pub(super) fn blocking_ns(&self, class: usize) -> Result<u64, QueueFault> {
        let port = self.port();
        let foreign_ns = frame_time_ns(port.foreign_frame_len, port.rate_bps).ok_or(OVERLOAD)?;
        let lower = self.loads.iter().filter(|load| load.class > class).map(|load| load.longest_ns);
        Ok(lower.fold(foreign_ns, u64::max))
    }

    /// Bounds the queue of `class`. Its claim is empty if no flow uses it. The work grows with the
    /// number of events at the port in a busy period, times the input links. At most [`POINTS_MAX`]
    /// events of the class are examined.
    pub(super) fn bound(&self, class: usize) -> Result<QueueClaim, QueueFault> {
        self.bound_in(class, &[])
    }

    /// Bounds the queue with the busy period also divided at the starts of `intervals`. If these
    /// are the intervals of a claim that was made for more work, the delay is at most that of the
    /// claim.
    pub(super) fn bound_in(&self, class: usize, intervals: &[Interval]) -> Result<QueueClaim, QueueFault> {
        let own: Vec<&Load> = self.loads.iter().filter(|load| load.class == class).collect();
        let Some(shortest_ns) = own.iter().map(|load| load.shortest_ns).min() else { return Ok(QueueClaim::default()) };
        let is_bounded = self.utilization_ppm(class) <= 1_000_000 + self.loads.iter().count() as u64;
        if !is_bounded {
            return Err(OVERLOAD);
        }
        let blocking_ns = self.blocking_ns(class)?;
        let busy_ns = self.busy(class, blocking_ns)?;
        let mut arrived = self.sweep(|other| other == class)?;
        let corners = arrived.clone().corners(busy_ns, POINTS_MAX).ok_or(TOO_COMPLEX)?;
        let corners = merged_corners(corners, intervals, busy_ns);
        let mut higher = self.sweep(|other| other < class)?;
        let mut backlog = Backlog::new(self, class, &own, higher.clone(), blocking_ns);

        let mut claim = QueueClaim { delay_ns: 0, busy_ns, intervals: Vec::with_capacity(corners.len()) };
        let mut begun_ns = 0;
        for (n, from_ns) in corners.iter().copied().enumerate() {
            let to_ns = corners.get(n + 1).copied().unwrap_or(busy_ns);
            // No event of the class arrives between the ends.
            let before_ns = arrived.grow(from_ns).and_then(|()| arrived.work(to_ns)).ok_or(OVERLOAD)?;
            let waits_ns = before_ns.saturating_sub(shortest_ns).checked_add(blocking_ns).ok_or(OVERLOAD)?;
            let start = fixed_point(waits_ns.max(begun_ns), |start_ns| {
                higher.grow(start_ns)?;
                higher.work(start_ns)?.checked_add(waits_ns)
            });
            let start_ns = start.map_err(QueueFault::Unbounded)?;
            begun_ns = start_ns;
            // The work before a frame, less the elapsed time, is linear within the interval: its
            // maximum is at one of the ends.
            let first_ns = arrived.work_from((from_ns, to_ns)).ok_or(OVERLOAD)?.saturating_sub(from_ns);
            let own_ns = first_ns.max(before_ns.saturating_sub(to_ns));
            let higher_ns = higher.work(start_ns).ok_or(OVERLOAD)?;
            let delay_ns = own_ns.saturating_add(blocking_ns).saturating_add(higher_ns);
            claim.delay_ns = claim.delay_ns.max(delay_ns);
            claim.intervals.push(Interval { from_ns, start_ns });
            backlog.add_interval(from_ns, before_ns, arrived.frames())?;
        }
        backlog.check()?;
        Ok(claim)
    }

    /// Returns the maximum busy period of this class and above.
    fn busy(&self, class: usize, blocking_ns: u64) -> Result<u64, QueueFault> {
        let mut level = self.sweep(|other| other <= class)?;
        let first = level.work(0).and_then(|work| work.checked_add(blocking_ns)).ok_or(OVERLOAD)?;
        let busy = fixed_point(first, |busy_ns| {
            // Frames that arrive exactly at the end begin the next busy period.
            level.grow(busy_ns.saturating_sub(1))?;
            level.work(busy_ns)?.checked_add(blocking_ns)
        });
        busy.map_err(QueueFault::Unbounded)
    }

    /// Returns the utilization of the port by this class and the higher ones, in parts of a
    /// million, rounded up.
    pub(super) fn utilization_ppm(&self, class: usize) -> u64 {
        let above = self.loads.iter().filter(|load| load.class <= class);
        above.fold(0_u64, |sum, load| sum.saturating_add(load.share_ppm))
    }
}

/// Maximum backlog of a queue at the end of each interval: the arrivals up to then, less the work
/// served up to its start.
struct Backlog<'a> {
    port: &'a Port,
    depth: Depth,
    higher: Sweep<'a>,
    blocking_ns: u64,
    longest_len: u64,
    longest_ns: u64,
    shortest_ns: u64,
    most: Depth,
}

impl<'a> Backlog<'a> {
    fn new(view: &'a PortView<'_>, class: usize, own: &[&Load], higher: Sweep<'a>, blocking_ns: u64) -> Self {
        Self {
            port: view.port(),
            depth: view.port().classes[class],
            higher,
            blocking_ns,
            longest_len: own.iter().map(|load| load.longest_len).max().unwrap_or_default(),
            longest_ns: own.iter().map(|load| load.longest_ns).max().unwrap_or(1),
            shortest_ns: own.iter().map(|load| load.shortest_ns).min().unwrap_or(1),
            most: Depth { octets: 0, frames: 0 },
        }
    }

    /// Adds an interval that begins at `from_ns`, with the work and frames that have arrived by its
    /// end.
    fn add_interval(&mut self, from_ns: u64, arrived_ns: u64, arrived: u64) -> Result<(), QueueFault> {
        if self.depth == Depth::UNLIMITED {
            return Ok(());
        }
        let higher_ns = self.higher.grow(from_ns).and_then(|()| self.higher.work(from_ns)).ok_or(OVERLOAD)?;
        let away_ns = higher_ns.saturating_add(self.blocking_ns);
        let served_ns = from_ns.saturating_sub(away_ns);
        let waiting_ns = arrived_ns.saturating_sub(served_ns);
        // The frame on the link occupies the queue until its end.
        let by_time = (u128::from(waiting_ns) * u128::from(self.port.rate_bps)).div_ceil(8_000_000_000);
        let octets = u64::try_from(by_time).unwrap_or(u64::MAX).saturating_add(self.longest_len);
        let left = arrived.saturating_sub(served_ns / self.longest_ns);
        let frames = left.min(waiting_ns / self.shortest_ns + 1);
        self.most = Depth { octets: self.most.octets.max(octets), frames: self.most.frames.max(frames) };
        Ok(())
    }

    fn check(&self) -> Result<(), QueueFault> {
        let Depth { octets, frames } = self.most;
        let fits = octets <= self.depth.octets && frames <= self.depth.frames;
        if fits { Ok(()) } else { Err(QueueFault::Overflow { octets, frames }) }
    }
}

/// Merges corners and the starts of intervals within a busy period, in ascending order.
fn merged_corners(mut corners: Vec<u64>, intervals: &[Interval], busy_ns: u64) -> Vec<u64> {
    corners.extend(intervals.iter().map(|interval| interval.from_ns).filter(|from_ns| *from_ns < busy_ns));
    corners.sort_unstable();
    corners.dedup();
    corners
}
