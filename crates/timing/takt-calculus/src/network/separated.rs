//! Separated-flow analysis: the service that each hop leaves to one flow, with all hops as one
//! server.
//!
//! At each hop, a flow is delayed by bursts and rates of higher classes, by its own class, and by
//! one frame of lower priority. The service that a FIFO server leaves to it is a rate and a latency
//! (Le Boudec, Thiran, chapter 6). Over several hops, the rate is the minimum and the latencies add
//! up, so the flow's own burst counts once. Switches store and forward: each hop adds the flow's
//! longest frame.

use super::Flow;
use super::load::Load;
use super::queue::PortView;
use crate::link::frame_time_ns;

/// Token bucket of a port: a burst of work, and a rate in units of 2^-32 of the port's time.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    burst_ns: u128,
    rate: u128,
}

/// Rate of the whole port.
const WHOLE: u128 = 1 << 32;

impl Bucket {
    /// Returns a token bucket that covers all arrivals of a load: `count(window)` is at most
    /// `1 + (window + jitter) / period`.
    fn of(load: &Load) -> Self {
        let event = u128::from(load.event_ns);
        let period = u128::from(load.arrivals.period_ns);
        let burst_ns = event.saturating_add((event * u128::from(load.arrivals.jitter_ns)).div_ceil(period));
        Self { burst_ns, rate: (event << 32).div_ceil(period) }
    }

    fn add(self, other: Self) -> Self {
        Self { burst_ns: self.burst_ns.saturating_add(other.burst_ns), rate: self.rate.saturating_add(other.rate) }
    }
}

/// Service left to a flow at one hop.
struct ResidualService {
    latency_ns: u128,
    /// Octets per second in units of 2^-32, rounded down; above 0.
    rate: u128,
}

/// Returns the maximum time from the arrival of an event at the first queue to the arrival of its
/// last frame at the last receiver; `None` without a bound. `view` yields ports with their loads.
pub(super) fn bound<'a>(number: usize, flow: &Flow, view: impl Fn(usize) -> PortView<'a>) -> Option<u64> {
    flow.receiver_hops().try_fold(0, |longest, leaf| Some(bound_to(leaf, number, flow, &view)?.max(longest)))
}

/// Returns the bound for one receiver, the one after the hop `leaf`.
fn bound_to<'a>(leaf: usize, number: usize, flow: &Flow, view: &impl Fn(usize) -> PortView<'a>) -> Option<u64> {
    let (mut latency_ns, mut slowest) = (0_u128, u128::MAX);
    let mut next = Some(leaf);
    while let Some(n) = next {
        let before = flow.before(n);
        let view = view(flow.hops[n].port);
        let own = view.loads.get(before.map(|before| flow.hops[before].port), number)?;
        let left = residual_service(&view, own)?;
        latency_ns = latency_ns.checked_add(left.latency_ns)?.checked_add(view.port().delay_ns.into())?;
        // Store and forward: a frame is forwarded after its last octet has arrived.
        if n != leaf {
            latency_ns = latency_ns.checked_add(time_ns(line_octets(own.longest_len)?, left.rate)?)?;
        }
        slowest = slowest.min(left.rate);
        if before.is_none() {
            let (burst, rate) = own_bucket(flow, own)?;
            // The backlog grows without limit if the flow's rate exceeds that of the slowest hop.
            let own_ns = (rate <= slowest).then(|| time_ns(burst, slowest))??;
            return u64::try_from(latency_ns.checked_add(own_ns)?).ok(); // tidy-allow(dropped-cause): beyond u64 there is no bound.
        }
        next = before;
    }
    None
}

/// Returns the time of `octets` at a rate in units of 2^-32.
fn time_ns(octets: u128, rate: u128) -> Option<u128> {
    Some(octets.checked_mul(1_000_000_000 << 32)?.div_ceil(rate))
}

/// Returns the octets of a frame on the line.
fn line_octets(len: u64) -> Option<u128> {
    // At 8 Gbit/s, an octet takes a nanosecond.
    Some(frame_time_ns(len, 8_000_000_000)?.into())
}

/// Returns the flow's own burst in octets, and its rate in octets per second in units of 2^-32, at
/// its first hop.
fn own_bucket(flow: &Flow, first: &Load) -> Option<(u128, u128)> {
    let event = flow
        .frames
        .iter()
        .try_fold(0_u128, |sum, frames| sum.checked_add(line_octets(frames.len)?.checked_mul(frames.count.into())?))?;
    let period_ns = u128::from(first.arrivals.period_ns);
    let more = event.checked_mul(first.arrivals.jitter_ns.into())?.div_ceil(period_ns);
    let rate = event.checked_mul(1_000_000_000 << 32)?.div_ceil(period_ns);
    Some((event.checked_add(more)?, rate))
}

/// Returns the service that a port leaves to one of its flows.
fn residual_service(view: &PortView<'_>, own: &Load) -> Option<ResidualService> {
    let sum = |which: &dyn Fn(&Load) -> bool| {
        view.loads.iter().filter(|load| which(load)).map(Bucket::of).fold(Bucket::default(), Bucket::add)
    };
    let higher = sum(&|load| load.class < own.class);
    let equal = sum(&|load| load.class == own.class && load.flow != own.flow);
    let blocking_ns = u128::from(view.blocking_ns(own.class).ok()?); // tidy-allow(dropped-cause): no bound.
    let to_class = WHOLE.checked_sub(higher.rate).filter(|rate| *rate > 0)?;
    let to_flow = to_class.checked_sub(equal.rate).filter(|rate| *rate > 0)?;
    let work_ns = blocking_ns.checked_add(higher.burst_ns)?.checked_add(equal.burst_ns)?;
    let latency_ns = work_ns.checked_mul(WHOLE)?.div_ceil(to_class);
    let rate = to_flow.checked_mul(u128::from(view.port().rate_bps / 8))?;
    (rate > 0).then_some(ResidualService { latency_ns, rate })
}
