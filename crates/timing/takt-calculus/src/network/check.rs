//! Checker of network certificates. It shares the types with the analysis, but no arithmetic.
//!
//! It does not search for fixed points: a claimed busy period or start is late enough if the work
//! that may arrive before it is completed by then. Sums are in `u128`. The work is one evaluation
//! of each claimed interval, times the flows at its port.

use alloc::vec::Vec;
use core::fmt;

use super::{Depth, Flow, Hop, NetworkCertificate, Port, QueueClaim};

/// Claim of a certificate that is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// Claim about the whole certificate.
    Whole(&'static str),
    /// Claim about a queue.
    Queue {
        /// Index of the port.
        port: usize,
        /// Index of the class.
        class: usize,
        /// Description of the claim.
        what: &'static str,
    },
    /// Claim about a flow.
    Flow {
        /// Index of the flow.
        flow: usize,
        /// Description of the claim.
        what: &'static str,
    },
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(what) => f.write_str(what),
            Self::Queue { port, class, what } => write!(f, "port {port}, class {class}: {what}"),
            Self::Flow { flow, what } => write!(f, "flow {flow}: {what}"),
        }
    }
}

const COUNTING: &str = "a sum overflows";

/// Flow at a port, with the arrivals that follow from the budgets.
struct FlowAtPort {
    number: usize,
    class: usize,
    period: u128,
    jitter: u128,
    distance: u128,
    work: u128,
    frames: u128,
    longest: u128,
    shortest: u128,
    longest_len: u128,
    input: Option<usize>,
}

impl FlowAtPort {
    fn events(&self, window: u128) -> u128 {
        let by_period = (window + self.jitter) / self.period + 1;
        match window.checked_div(self.distance) {
            Some(by_distance) => by_period.min(by_distance + 1),
            None => by_period,
        }
    }
}

/// Returns the time of a frame on a link in nanoseconds: FCS, padding, preamble and gap included.
fn frame_ns(len: u64, rate_bps: u64) -> u128 {
    let octets = (u128::from(len) + 4).max(64) + 20;
    (octets * 8_000_000_000).div_ceil(rate_bps.into())
}

/// Checks that every queue satisfies its claim, that no queue overflows, and that every flow's
/// bound follows and is within its limit.
///
/// # Errors
/// Returns the first claim that is not proven.
pub fn check(certificate: &NetworkCertificate) -> Result<(), Unproven> {
    let NetworkCertificate { ports, flows, queues, bounds } = certificate;
    let makes_sense = ports.iter().all(|port| port.check().is_ok())
        && flows.iter().all(|flow| flow.check(ports).is_ok())
        && ports.len() == queues.len()
        && flows.len() == bounds.len()
        && ports.iter().zip(queues).all(|(port, claims)| port.classes.len() == claims.len());
    if !makes_sense {
        return Err(Unproven::Whole("the network is invalid, or the certificate is incomplete"));
    }
    let mut at_ports: Vec<Vec<FlowAtPort>> = ports.iter().map(|_| Vec::new()).collect();
    for (number, flow) in flows.iter().enumerate() {
        place(certificate, number, flow, &mut at_ports).ok_or(Unproven::Flow { flow: number, what: COUNTING })?;
    }
    for (at, claims) in queues.iter().enumerate() {
        for (class, claim) in claims.iter().enumerate() {
            let queue = Queue { ports, at, flows: &at_ports[at], class };
            check_queue(&queue, claim).map_err(|what| Unproven::Queue { port: at, class, what })?;
        }
    }
    for (number, flow) in flows.iter().enumerate() {
        check_flow(certificate, &at_ports, number, flow).map_err(|what| Unproven::Flow { flow: number, what })?;
    }
    Ok(())
}

/// Adds a flow to each port of its route, with the jitter that the budgets permit.
fn place(certificate: &NetworkCertificate, number: usize, flow: &Flow, at_ports: &mut [Vec<FlowAtPort>]) -> Option<()> {
    // For each hop, jitter and distance of the events that leave it.
    let mut left: Vec<(u128, u128)> = Vec::new();
    for (n, hop) in flow.hops.iter().enumerate() {
        let from = flow.before(n);
        let source = (u128::from(flow.arrivals.jitter_ns), u128::from(flow.arrivals.distance_ns));
        let (jitter, distance) = from.map_or(source, |from| left[from]);
        let input = from.map(|from| flow.hops[from].port);
        let port = &certificate.ports[hop.port];
        let times = || flow.frames.iter().map(|frames| frame_ns(frames.len, port.rate_bps));
        let work = flow
            .frames
            .iter()
            .zip(times())
            .try_fold(0_u128, |sum, (frames, time)| sum.checked_add(time.checked_mul(frames.count.into())?))?;
        let shortest = times().min()?;
        at_ports[hop.port].push(FlowAtPort {
            number,
            class: hop.class,
            period: flow.arrivals.period_ns.into(),
            jitter,
            distance,
            work,
            frames: flow.frames.iter().map(|frames| u128::from(frames.count)).sum(),
            longest: times().max()?,
            shortest,
            longest_len: flow.frames.iter().map(|frames| frames.len.into()).max()?,
            input,
        });
        let budget = u128::from(certificate.queues[hop.port][hop.class].delay_ns);
        let spread = budget.saturating_sub(shortest) + u128::from(port.delay_ns - port.delay_ns_min);
        left.push((jitter.checked_add(spread)?, distance.saturating_sub(spread)));
    }
    Some(())
}

/// One queue, and all flows at its port.
struct Queue<'a> {
    ports: &'a [Port],
    at: usize,
    flows: &'a [FlowAtPort],
    class: usize,
}

impl Queue<'_> {
    fn port(&self) -> &Port {
        &self.ports[self.at]
    }

    fn own(&self) -> impl Iterator<Item = &FlowAtPort> {
        self.flows.iter().filter(|flow| flow.class == self.class)
    }

    /// Returns the distinct input ports of the frames.
    fn inputs(&self) -> Vec<Option<usize>> {
        let mut inputs: Vec<Option<usize>> = self.flows.iter().map(|flow| flow.input).collect();
        inputs.sort_unstable();
        inputs.dedup();
        inputs
    }

    /// Returns the work of the events by one input, limited by the rate of its link.
    fn by_input(
        &self,
        input: Option<usize>,
        classes: &dyn Fn(usize) -> bool,
        events_in: u128,
        link_in: u128,
    ) -> Option<(u128, Option<u128>)> {
        let here = || self.flows.iter().filter(|flow| flow.input == input);
        let work = here()
            .filter(|flow| classes(flow.class))
            .try_fold(0_u128, |sum, flow| sum.checked_add(flow.events(events_in).checked_mul(flow.work)?))?;
        let Some(from) = input.map(|input| &self.ports[input]) else { return Some((work, None)) };
        let wobble = u128::from(from.delay_ns - from.delay_ns_min);
        let brought = (link_in + wobble).checked_mul(from.rate_bps.into())?.div_ceil(self.port().rate_bps.into());
        let frame = here().filter(|flow| classes(flow.class)).map(|flow| flow.longest).max().unwrap_or_default();
        Some((work, Some(brought.checked_add(frame)?)))
    }

    fn work(&self, classes: &dyn Fn(usize) -> bool, events_in: u128, link_in: u128) -> Result<u128, &'static str> {
        let each = self.inputs().into_iter().map(|input| self.by_input(input, classes, events_in, link_in));
        each.map(|both| both.map(|(work, line)| line.map_or(work, |line| line.min(work))))
            .try_fold(0_u128, |sum, work| sum.checked_add(work?))
            .ok_or(COUNTING)
    }

    /// Returns the class's own work at the start of an interval: all events of the interval, or the
    /// work that the link has carried by then, if the link limits it up to the end.
    fn own_at_begin(&self, from: u128, to: u128) -> Result<u128, &'static str> {
        let own = |class: usize| class == self.class;
        let each = self.inputs().into_iter().map(|input| {
            let (work, at_end) = self.by_input(input, &own, to - 1, to)?;
            let (_, at_begin) = self.by_input(input, &own, to - 1, from)?;
            Some(at_begin.filter(|_| at_end.is_some_and(|line| line <= work)).unwrap_or(work))
        });
        each.into_iter().try_fold(0_u128, |sum, work| sum.checked_add(work?)).ok_or(COUNTING)
    }

    /// Returns the transmission time of the longest frame that may be on the link when a more
    /// urgent one arrives.
    fn blocking(&self) -> u128 {
        let foreign = frame_ns(self.port().foreign_frame_len, self.port().rate_bps);
        let lower = self.flows.iter().filter(|flow| flow.class > self.class);
        lower.fold(foreign, |longest, flow| longest.max(flow.longest))
    }
}

fn check_queue(queue: &Queue<'_>, claim: &QueueClaim) -> Result<(), &'static str> {
    let Some(shortest) = queue.own().map(|flow| flow.shortest).min() else { return Ok(()) };
    let blocking = queue.blocking();
    let busy = u128::from(claim.busy_ns);
    let level = queue.work(&|class| class <= queue.class, busy.saturating_sub(1), busy)?;
    if busy == 0 || blocking.saturating_add(level) > busy {
        return Err("its busy period may be longer");
    }
    let ascends = claim.intervals.is_sorted_by(|a, b| a.from_ns < b.from_ns);
    let is_within = claim.intervals.last().is_some_and(|last| last.from_ns < claim.busy_ns);
    if !ascends || !is_within || claim.intervals[0].from_ns != 0 {
        return Err("its busy period is not covered");
    }
    for (n, interval) in claim.intervals.iter().enumerate() {
        let (from, start) = (u128::from(interval.from_ns), u128::from(interval.start_ns));
        let to = claim.intervals.get(n + 1).map_or(busy, |next| next.from_ns.into());
        let own = queue.work(&|class| class == queue.class, to - 1, to)?;
        let higher = queue.work(&|class| class < queue.class, start, start)?;
        if blocking.saturating_add(own.saturating_sub(shortest)).saturating_add(higher) > start {
            return Err("a frame may be blocking later");
        }
        // The function is linear between the ends.
        let waits = queue.own_at_begin(from, to)?.saturating_sub(from).max(own.saturating_sub(to));
        if waits.saturating_add(blocking).saturating_add(higher) > claim.delay_ns.into() {
            return Err("a frame may take longer than the budget");
        }
        check_depth(queue, blocking, from, own, to)?;
    }
    Ok(())
}

fn check_depth(queue: &Queue<'_>, blocking: u128, from: u128, arrived: u128, to: u128) -> Result<(), &'static str> {
    let depth = queue.port().classes[queue.class];
    if depth == Depth::UNLIMITED {
        return Ok(());
    }
    let elsewhere = queue.work(&|class| class < queue.class, from, from)?.saturating_add(blocking);
    let served = from.saturating_sub(elsewhere);
    let waits = arrived.saturating_sub(served);
    let largest = |of: fn(&FlowAtPort) -> u128| queue.own().map(of).max().unwrap_or(1);
    let on_line = waits.checked_mul(queue.port().rate_bps.into()).ok_or(COUNTING)?.div_ceil(8_000_000_000);
    let octets = on_line.saturating_add(largest(|flow| flow.longest_len));
    let smallest = queue.own().map(|flow| flow.shortest).min().unwrap_or(1);
    let frames_arrived =
        queue.own().fold(0_u128, |sum, flow| sum.saturating_add(flow.events(to - 1).saturating_mul(flow.frames)));
    let frames = frames_arrived.saturating_sub(served / largest(|flow| flow.longest)).min(waits / smallest + 1);
    if octets > depth.octets.into() || frames > depth.frames.into() {
        return Err("it may exceed its depth");
    }
    Ok(())
}

fn check_flow(
    certificate: &NetworkCertificate,
    at_ports: &[Vec<FlowAtPort>],
    number: usize,
    flow: &Flow,
) -> Result<(), &'static str> {
    let bound_claim = certificate.bounds[number];
    for path in paths(flow) {
        let times = path.iter().map(|hop| {
            let delay_ns = certificate.ports[hop.port].delay_ns;
            u128::from(certificate.queues[hop.port][hop.class].delay_ns) + u128::from(delay_ns)
        });
        if times.fold(0_u128, u128::saturating_add) > bound_claim.total_ns.into() {
            return Err("its budgets are more than its bound");
        }
        let Some(separated_ns) = bound_claim.separated_ns else { continue };
        let bound =
            separated(certificate, at_ports, number, &path).ok_or("it has no bound by separated-flow analysis")?;
        if bound > separated_ns.into() {
            return Err("it may take longer than by separated-flow analysis");
        }
    }
    if bound_claim.bound_ns() > flow.limit_ns { Err("its limit is not kept") } else { Ok(()) }
}

/// Returns the hops to each receiver. A hop leads to a receiver if no other hop follows it.
fn paths(flow: &Flow) -> Vec<Vec<Hop>> {
    let mut paths: Vec<Vec<Hop>> = Vec::new();
    let mut is_followed = alloc::vec![false; flow.hops.len()];
    for (n, hop) in flow.hops.iter().enumerate() {
        let mut path = Vec::new();
        if let Some(from) = flow.before(n) {
            is_followed[from] = true;
            path.clone_from(&paths[from]);
        }
        path.push(*hop);
        paths.push(path);
    }
    paths.into_iter().zip(is_followed).filter(|(_, is_followed)| !is_followed).map(|(path, _)| path).collect()
}

/// Fixed-point unit of a port's time share and of an octet.
const ONE: u128 = 1 << 32;

/// Returns the end-to-end bound from the service that each port leaves to the flow.
fn separated(
    certificate: &NetworkCertificate,
    at_ports: &[Vec<FlowAtPort>],
    number: usize,
    path: &[Hop],
) -> Option<u128> {
    let flow = &certificate.flows[number];
    let line = |len: u64| frame_ns(len, 8_000_000_000);
    let event = flow
        .frames
        .iter()
        .try_fold(0_u128, |sum, frames| sum.checked_add(line(frames.len).checked_mul(frames.count.into())?))?;
    let period = u128::from(flow.arrivals.period_ns);
    let burst = event.checked_add(event.checked_mul(flow.arrivals.jitter_ns.into())?.div_ceil(period))?;
    let frame = line(flow.frames.iter().map(|frames| frames.len).max()?);
    let takes = |octets: u128, rate: u128| Some(octets.checked_mul(ONE * 1_000_000_000)?.div_ceil(rate));
    let (mut latency, mut least) = (0_u128, u128::MAX);
    for (n, hop) in path.iter().enumerate() {
        let queue = Queue { ports: &certificate.ports, at: hop.port, flows: &at_ports[hop.port], class: hop.class };
        let (mut higher, mut same, mut bursts) = (0_u128, 0_u128, queue.blocking());
        for flow in queue.flows.iter().filter(|flow| flow.class <= hop.class && flow.number != number) {
            let rate = flow.work.checked_mul(ONE)?.div_ceil(flow.period);
            let sum = if flow.class == hop.class { &mut same } else { &mut higher };
            *sum = sum.checked_add(rate)?;
            bursts = bursts
                .checked_add(flow.work)?
                .checked_add((flow.work.checked_mul(flow.jitter)?).div_ceil(flow.period))?;
        }
        let class_rate = ONE.checked_sub(higher).filter(|rate| *rate > 0)?;
        let rate = class_rate.checked_sub(same)?.checked_mul((queue.port().rate_bps / 8).into())?;
        least = least.min(rate);
        if least == 0 {
            return None;
        }
        let wait = bursts.checked_mul(ONE)?.div_ceil(class_rate);
        latency = latency.checked_add(wait)?.checked_add(queue.port().delay_ns.into())?;
        if n + 1 < path.len() {
            latency = latency.checked_add(takes(frame, rate)?)?;
        }
    }
    let rate = (event.checked_mul(ONE * 1_000_000_000)?).div_ceil(period);
    if rate > least { None } else { latency.checked_add(takes(burst, least)?) }
}
