//! Delay and backlog of one queue.
//!
//! Total-flow analysis: a queue is one FIFO server for all flows of its class. A frame that arrives `t` after the begin of a busy period
//! waits for one frame of lower priority, for all frames of its class that arrived within `t`, and for those of higher classes that arrive
//! before it is sent.

use alloc::vec::Vec;

use super::load::{Load, Loads};
use super::{Depth, Interval, Port, QueueClaim, QueueFault};
use crate::link::frame_time_ns;
use crate::server::{POINTS_MAX, Unbounded, fixed_point};

/// All that one port sends.
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

    fn demand(&self, which: impl Fn(usize) -> bool, steps_ns: u64, line_ns: u64) -> Result<u64, QueueFault> {
        self.loads.demand((self.ports, self.at), which, steps_ns, line_ns).ok_or(OVERLOAD)
    }

    /// The longest frame that is sent though it is less urgent than `class`, or has no contract.
    pub(super) fn blocking_ns(&self, class: usize) -> Result<u64, QueueFault> {
        let port = self.port();
        let foreign_ns = frame_time_ns(port.foreign_frame_len, port.rate_bps).ok_or(OVERLOAD)?;
        let lower = self.loads.iter().filter(|load| load.class > class).map(|load| load.longest_ns);
        Ok(lower.fold(foreign_ns, u64::max))
    }

    /// Bounds the queue of `class`, whose claim is empty if no flow uses it. The work grows with the number of events of the class in a
    /// busy period, [`POINTS_MAX`] at most, times the flows at the port.
    pub(super) fn bound(&self, class: usize) -> Result<QueueClaim, QueueFault> {
        self.bound_in(class, &[])
    }

    /// The same, with the busy period divided at the begins of `intervals` too. With the intervals of a claim that was made of more work the
    /// delay is not longer than in that claim.
    pub(super) fn bound_in(&self, class: usize, intervals: &[Interval]) -> Result<QueueClaim, QueueFault> {
        let own: Vec<&Load> = self.loads.iter().filter(|load| load.class == class).collect();
        let Some(shortest_ns) = own.iter().map(|load| load.shortest_ns).min() else { return Ok(QueueClaim::default()) };
        let is_bounded = self.utilisation_ppm(class) <= 1_000_000 + self.loads.iter().count() as u64;
        let blocking_ns = self.blocking_ns(class)?;
        let first = self.demand(|other| other <= class, 0, 0)?.checked_add(blocking_ns).ok_or(OVERLOAD)?;
        if !is_bounded {
            return Err(OVERLOAD);
        }
        let busy = fixed_point(first, |busy_ns| {
            // Frames that arrive at its very end begin the next one.
            let work = self.demand(|other| other <= class, busy_ns.saturating_sub(1), busy_ns).ok()?;
            work.checked_add(blocking_ns)
        });
        let busy_ns = busy.map_err(QueueFault::Unbounded)?;
        let corners = self.loads.corners((self.ports, self.at), class, busy_ns, POINTS_MAX).ok_or(TOO_COMPLEX)?;
        let corners = united(corners, intervals, busy_ns);

        let mut claim = QueueClaim { delay_ns: 0, busy_ns, intervals: Vec::with_capacity(corners.len()) };
        let mut begun_ns = 0;
        for (n, from_ns) in corners.iter().copied().enumerate() {
            let to_ns = corners.get(n + 1).copied().unwrap_or(busy_ns);
            let before_ns = self.before(class, from_ns, to_ns)?;
            let waits_ns = before_ns.saturating_sub(shortest_ns).checked_add(blocking_ns).ok_or(OVERLOAD)?;
            let higher = |start_ns: u64| self.demand(|other| other < class, start_ns, start_ns);
            let start = fixed_point(waits_ns.max(begun_ns), |start_ns| {
                // tidy-allow(dropped-cause): an overload, as every failure of it.
                higher(start_ns).ok()?.checked_add(waits_ns)
            });
            let start_ns = start.map_err(QueueFault::Unbounded)?;
            begun_ns = start_ns;
            // What is before a frame, less the time that has passed, is linear within the interval: most at one of its ends.
            let first_ns = self.before_at_begin(class, from_ns, to_ns)?.saturating_sub(from_ns);
            let own_ns = first_ns.max(before_ns.saturating_sub(to_ns));
            let delay_ns = own_ns.saturating_add(blocking_ns).saturating_add(higher(start_ns)?);
            claim.delay_ns = claim.delay_ns.max(delay_ns);
            claim.intervals.push(Interval { from_ns, start_ns });
        }
        self.check_depth(class, &claim, blocking_ns)?;
        Ok(claim)
    }

    /// Work of the class that arrives before or with a frame that arrives in this part of a busy period.
    fn before(&self, class: usize, from_ns: u64, to_ns: u64) -> Result<u64, QueueFault> {
        self.demand(|other| other == class, from_ns.max(to_ns.saturating_sub(1)), to_ns)
    }

    /// The same for a frame that arrives at its begin, by a bound that is linear within it.
    fn before_at_begin(&self, class: usize, from_ns: u64, to_ns: u64) -> Result<u64, QueueFault> {
        let steps_ns = from_ns.max(to_ns.saturating_sub(1));
        let demand = self.loads.demand_from((self.ports, self.at), class, steps_ns, (from_ns, to_ns));
        demand.ok_or(OVERLOAD)
    }

    /// How much of the port this class and those above it use, in parts of a million, rounded up.
    pub(super) fn utilisation_ppm(&self, class: usize) -> u64 {
        let above = self.loads.iter().filter(|load| load.class <= class);
        above.fold(0_u64, |sum, load| {
            let share = (u128::from(load.event_ns) * 1_000_000).div_ceil(load.arrivals.period_ns.into());
            sum.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        })
    }

    /// What waits at the end of each interval fits: frames whose link time is what has arrived less what has been served.
    fn check_depth(&self, class: usize, claim: &QueueClaim, blocking_ns: u64) -> Result<(), QueueFault> {
        let depth = self.port().classes[class];
        if depth == Depth::UNLIMITED {
            return Ok(());
        }
        let mut most = Depth { octets: 0, frames: 0 };
        for (n, interval) in claim.intervals.iter().enumerate() {
            let to_ns = claim.intervals.get(n + 1).map_or(claim.busy_ns, |next| next.from_ns);
            let held = self.held(class, interval.from_ns, to_ns, blocking_ns)?;
            most = Depth { octets: most.octets.max(held.octets), frames: most.frames.max(held.frames) };
        }
        if most.octets > depth.octets || most.frames > depth.frames {
            return Err(QueueFault::Overflow { octets: most.octets, frames: most.frames });
        }
        Ok(())
    }

    /// What the queue may hold in an interval: its arrivals until the end, less what was served until the begin.
    fn held(&self, class: usize, from_ns: u64, to_ns: u64, blocking_ns: u64) -> Result<Depth, QueueFault> {
        let own = || self.loads.iter().filter(|load| load.class == class);
        let arrived_ns = self.before(class, from_ns, to_ns)?;
        let away_ns = self.demand(|other| other < class, from_ns, from_ns)?.saturating_add(blocking_ns);
        let served_ns = from_ns.saturating_sub(away_ns);
        let waiting_ns = arrived_ns.saturating_sub(served_ns);
        let longest_len = own().map(|load| load.longest_len).max().unwrap_or_default();
        let longest_ns = own().map(|load| load.longest_ns).max().unwrap_or(1);
        let shortest_ns = own().map(|load| load.shortest_ns).min().unwrap_or(1);
        // The frame on the link is held until its end.
        let by_time = (u128::from(waiting_ns) * u128::from(self.port().rate_bps)).div_ceil(8_000_000_000);
        let octets = u64::try_from(by_time).unwrap_or(u64::MAX).saturating_add(longest_len);
        let events_ns = from_ns.max(to_ns.saturating_sub(1));
        let arrived = own()
            .fold(0_u64, |sum, load| sum.saturating_add(load.arrivals.count(events_ns).saturating_mul(load.frames)));
        let frames = arrived.saturating_sub(served_ns / longest_ns).min(waiting_ns / shortest_ns + 1);
        Ok(Depth { octets, frames })
    }
}

/// Corners and the begins of intervals within a busy period, ascending.
fn united(mut corners: Vec<u64>, intervals: &[Interval], busy_ns: u64) -> Vec<u64> {
    corners.extend(intervals.iter().map(|interval| interval.from_ns).filter(|from_ns| *from_ns < busy_ns));
    corners.sort_unstable();
    corners.dedup();
    corners
}
