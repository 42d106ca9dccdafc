//! Comparison of single-port bounds with the crate `response-time-analysis`, whose analyses are
//! instances of those that Prosa proves.
//!
//! Its blocking bound assumes discrete time and is one unit shorter than the blocking frame. Here
//! it gets the whole frame, since a frame may start at any real-valued time.

use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::{Aggregate, RBF};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{fifo, fixed_priority, wcet};
use takt_calculus::Arrivals;
use takt_calculus::link::frame_time_ns;
use takt_calculus::network::{Admission, Depth, Flow, Frames, Hop, Port, Refused};

use crate::random::Random;

pub const RATE_BPS: u64 = 100_000_000;
pub const FOREIGN_LEN: u64 = 300;
pub const CASES: u64 = 500;

/// Fixed points beyond this limit count as overload in both analyses, in nanoseconds.
const LIMIT_NS: u64 = 1_000_000_000;

type Demand = RBF<Sporadic, wcet::Scalar>;

pub fn frame_ns(len: u64) -> u64 {
    frame_time_ns(len, RATE_BPS).expect("a rate")
}

pub fn flow(random: &mut Random, class: usize) -> Flow {
    let period_ns = random.between(400_000, 4_000_000);
    let jitter_ns = if random.one_in(3) { random.between(0, 2 * period_ns) } else { 0 };
    Flow {
        name: "flow".into(),
        arrivals: Arrivals { period_ns, jitter_ns, distance_ns: 0 },
        frames: vec![Frames { len: random.between(60, 1514), count: 1 }],
        hops: vec![Hop { port: 0, class }],
        branches: vec![],
        limit_ns: u64::MAX,
    }
}

/// Returns the bound of the last flow's queue if all flows are at one port. It is taken from the
/// refusal of a flow with a limit of 0.
pub fn bound(flows: &[Flow]) -> Option<u64> {
    let port = Port {
        name: "port".into(),
        rate_bps: RATE_BPS,
        foreign_frame_len: FOREIGN_LEN,
        classes: vec![Depth::UNLIMITED; 8],
        delay_ns: 0,
        delay_ns_min: 0,
    };
    let mut network = Admission::new(vec![port]).expect("the port is valid");
    let (last, others) = flows.split_last()?;
    for flow in others {
        network.admit(flow.clone()).ok()?;
    }
    match network.admit(Flow { limit_ns: 0, ..last.clone() }).expect_err("a limit of 0 is refused") {
        Refused::ExceedsLimit { bound_ns, .. } => Some(bound_ns),
        _ => None,
    }
}

fn demand(flow: &Flow) -> Demand {
    let Arrivals { period_ns, jitter_ns, .. } = flow.arrivals;
    let arrivals = Sporadic::new(Duration::from(period_ns), Duration::from(jitter_ns));
    RBF::new(arrivals, wcet::Scalar::new(Service::from(frame_ns(flow.frames[0].len))))
}

/// Returns the response time of a flow under non-preemptive fixed priorities, with `higher` as the
/// flows of higher priority.
fn fixed_priority_bound(flow: &Flow, higher: &[&Flow], blocking_ns: u64) -> Option<u64> {
    let own = demand(flow);
    let task = fixed_priority::fully_nonpreemptive::TaskUnderAnalysis {
        wcet: own.wcet,
        arrivals: &own.arrival_bound,
        blocking_bound: Service::from(blocking_ns),
    };
    let higher: Vec<Demand> = higher.iter().map(|flow| demand(flow)).collect();
    let limit = Duration::from(LIMIT_NS);
    let found = fixed_priority::fully_nonpreemptive::dedicated_uniproc_rta(&task, &higher, limit);
    found.ok().map(u64::from)
}

fn blocking_ns(flows: &[Flow], class: usize) -> u64 {
    let lower = flows.iter().filter(|flow| flow.hops[0].class > class).map(|flow| flow.frames[0].len);
    frame_ns(lower.fold(FOREIGN_LEN, u64::max))
}

#[test]
fn bound_of_one_flow_per_class_equals_non_preemptive_fixed_priorities() {
    let mut bounded = 0;
    for seed in 0..CASES {
        let mut random = Random(seed);
        let classes = random.between(2, 8) as usize;
        let mut flows: Vec<Flow> = (0..classes).map(|class| flow(&mut random, class)).collect();
        let at = random.between(0, classes as u64 - 1) as usize;
        let higher: Vec<&Flow> = flows[..at].iter().collect();
        let exact = fixed_priority_bound(&flows[at], &higher, blocking_ns(&flows, at));
        let last = flows.remove(at);
        flows.push(last);
        // Overload of a lower class may end the analysis before the flow under test is examined.
        let Some(ours) = bound(&flows) else { continue };
        assert_eq!(Some(ours), exact, "seed {seed}");
        bounded += 1;
    }
    assert!(bounded > CASES / 2, "{bounded}");
}

#[test]
fn bound_of_one_class_equals_fifo() {
    let mut bounded = 0;
    for seed in 0..CASES {
        let mut random = Random(seed);
        let flows: Vec<Flow> = (0..random.between(1, 9)).map(|_| flow(&mut random, 0)).collect();
        let mut demands: Vec<Demand> = flows.iter().map(demand).collect();
        // A frame without contract blocks once.
        let once = Sporadic::new_zero_jitter(Duration::from(LIMIT_NS));
        demands.push(RBF::new(once, wcet::Scalar::new(Service::from(frame_ns(FOREIGN_LEN)))));
        let exact = fifo::dedicated_uniproc_rta(&Aggregate::new(demands), Duration::from(LIMIT_NS));
        let Some(ours) = bound(&flows) else { continue };
        assert_eq!(Some(ours), exact.ok().map(u64::from), "seed {seed}");
        bounded += 1;
    }
    assert!(bounded > CASES / 2, "{bounded}");
}

/// Other flows of the class can only delay a flow, so its bound must be at least the one without
/// them.
#[test]
fn bound_of_several_flows_is_at_least_that_of_each_alone() {
    let mut bounded = 0;
    for seed in 0..CASES {
        let mut random = Random(seed);
        let wanted = random.between(2, 9);
        let flows: Vec<Flow> = (0..wanted)
            .map(|_| {
                let class = random.between(0, 3) as usize;
                flow(&mut random, class)
            })
            .collect();
        let Some(ours) = bound(&flows) else { continue };
        let class = flows[flows.len() - 1].hops[0].class;
        let higher: Vec<&Flow> = flows.iter().filter(|flow| flow.hops[0].class < class).collect();
        for flow in flows.iter().filter(|flow| flow.hops[0].class == class) {
            let alone = fixed_priority_bound(flow, &higher, blocking_ns(&flows, class)).expect("less is bounded, too");
            assert!(ours >= alone, "seed {seed}: {ours} < {alone}");
        }
        bounded += 1;
    }
    assert!(bounded > CASES / 2, "{bounded}");
}
