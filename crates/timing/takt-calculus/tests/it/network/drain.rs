//! Tests of drain times: the wait between the removal of a flow and its replacement.

use takt_calculus::Arrivals;
use takt_calculus::network::{Admission, Depth, Flow, Frames, Hop, Port, check};

const MS: u64 = 1_000_000;
/// Link time of a frame of 1,000 octets at 100 Mbit/s, in nanoseconds.
const FRAME_NS: u64 = 81_920;

fn network(ports: usize) -> Admission {
    let port = Port {
        name: "port".into(),
        rate_bps: 100_000_000,
        foreign_frame_len: 1_000,
        classes: vec![Depth::UNLIMITED; 2],
        delay_ns: 7_000,
        delay_ns_min: 7_000,
    };
    Admission::new(vec![port; ports]).expect("the ports are valid")
}

/// Returns a flow with events of `count` frames.
fn flow(period_ns: u64, count: u64, ports: &[usize], limit_ns: u64) -> Flow {
    Flow {
        name: "flow".into(),
        arrivals: Arrivals::sporadic(period_ns),
        frames: vec![Frames { len: 1_000, count }],
        hops: ports.iter().map(|port| Hop { port: *port, class: 1 }).collect(),
        branches: vec![],
        limit_ns,
    }
}

/// Simulates a queue with these arrival times in ascending order, after a frame without contract.
/// Returns the maximum time of a frame in the queue, and the departure time of the last of the
/// first `n` frames.
fn queue(arrivals: &[u64], n: usize) -> (u64, u64) {
    let (mut free_ns, mut longest_ns, mut left_ns) = (FRAME_NS, 0, 0);
    for (at, arrival_ns) in arrivals.iter().enumerate() {
        free_ns = free_ns.max(*arrival_ns) + FRAME_NS;
        longest_ns = longest_ns.max(free_ns - arrival_ns);
        if at < n {
            left_ns = free_ns;
        }
    }
    (longest_ns, left_ns)
}

/// A burst leaves frames queued behind it. They delay the next burst if that arrives when the last
/// frame of the first one has left.
#[test]
fn replacement_burst_waits_until_the_queue_behind_the_old_one_is_empty() {
    const BURST: u64 = 50;
    let mut network = network(1);
    let steady_ns = 2 * FRAME_NS;
    network.admit(flow(steady_ns, 1, &[0], 1_000 * MS)).expect("the flow is admitted");
    let (burst, _) = network.admit(flow(1_000 * MS, BURST, &[0], 1_000 * MS)).expect("the flow is admitted");
    let drain_ns = network.drain_ns(burst, 0).expect("the flow is admitted");
    // The next flow equals the previous one, so that the proof is unchanged.
    let budget_ns = network.queue(Hop { port: 0, class: 1 }).expect("the queue exists").delay_ns;
    let longest_ns = |wait_ns: Option<u64>| {
        let first: Vec<u64> = vec![0; BURST as usize];
        let (_, left_ns) = queue(&first, BURST as usize);
        let next_ns = wait_ns.unwrap_or(left_ns);
        let mut all: Vec<u64> = first;
        all.extend((0..BURST).map(|_| next_ns));
        all.extend((0..10 * BURST).map(|n| n * steady_ns + 1));
        all.sort_unstable();
        queue(&all, 0).0
    };
    assert!(longest_ns(None) > budget_ns, "{} of {budget_ns} ns", longest_ns(None));
    assert!(longest_ns(Some(drain_ns)) <= budget_ns, "{} of {budget_ns} ns", longest_ns(Some(drain_ns)));
}

#[test]
fn drain_time_ends_with_the_busy_period_of_each_port() {
    let mut network = network(3);
    let (id, _) = network.admit(flow(100 * MS, 2, &[0, 1, 2], 100 * MS)).expect("the flow is admitted");
    let claim = |port| network.queue(Hop { port, class: 1 }).expect("the queue exists");
    let [first, second, third] = [0, 1, 2].map(claim);
    let whole_ns = first.delay_ns + 7_000 + second.delay_ns + 7_000 + third.busy_ns;
    assert_eq!(network.drain_ns(id, 0), Some(whole_ns));
    // A frame that was sent to the second port may still be in forwarding.
    assert_eq!(network.drain_ns(id, 1), Some(7_000 + second.delay_ns + 7_000 + third.busy_ns));
    network.remove(id);
    assert_eq!(network.drain_ns(id, 0), None);
}

#[test]
fn memory_is_the_longest_path_and_unbounded_in_a_cycle() {
    let mut network = network(4);
    network.admit(flow(100 * MS, 2, &[0, 1], 100 * MS)).expect("the flow is admitted");
    network.admit(flow(100 * MS, 1, &[1, 2], 100 * MS)).expect("the flow is admitted");
    let busy = |network: &Admission, port| network.queue(Hop { port, class: 1 }).expect("the queue exists").busy_ns;
    let path_ns = [0, 1, 2].map(|port| busy(&network, port)).iter().sum::<u64>() + 2 * 7_000;
    assert_eq!(network.memory_ns(), Some(path_ns));
    let (id, _) = network.admit(flow(100 * MS, 1, &[2, 0], 100 * MS)).expect("the flow is admitted");
    assert_eq!(network.memory_ns(), None, "frames of each flow delay those of the next");
    network.remove(id);
    assert!(network.memory_ns().is_some());
}

#[test]
fn budgets_are_lowered_for_a_strict_flow_unless_held() {
    let mut network = network(2);
    network.admit(flow(100 * MS, 1, &[0, 1], 100 * MS)).expect("the flow is admitted");
    let (large, _) = network.admit(flow(100 * MS, 20, &[0, 1], 100 * MS)).expect("the flow is admitted");
    network.remove(large);
    // Frames that the large flow delayed may be between both ports. The separated-flow bound
    // exceeds the sum of the smallest budgets.
    let strict = flow(100 * MS, 1, &[0, 1], 6 * FRAME_NS + 2 * 7_000 + 400);
    network.hold_budgets(true);
    network.admit(strict.clone()).expect_err("budgets are held");
    network.hold_budgets(false);
    network.admit(strict).expect("budgets fall");
    assert_eq!(check(&network.certificate()), Ok(()));
}

#[test]
fn budgets_are_raised_as_requested_if_limits_permit() {
    let mut network = network(2);
    let (id, bound) = network.admit(flow(100 * MS, 1, &[0, 1], 2 * MS)).expect("the flow is admitted");
    let hop = Hop { port: 0, class: 1 };
    let before = network.clone();
    let budget_ns = network.queue(hop).expect("the queue exists").delay_ns;
    network.raise_budgets(&[(hop, budget_ns), (Hop { class: 0, ..hop }, MS)]).expect("no budget rises");
    assert_eq!(network, before, "a queue without flows has no budget");
    network.raise_budgets(&[(hop, budget_ns + MS / 2)]).expect("the limit allows it");
    assert_eq!(network.bound(id).map(|bound| bound.total_ns), Some(bound.total_ns + MS / 2));
    let behind = network.arrivals(id, 1).expect("the flow passes the port");
    assert_eq!(behind.jitter_ns, budget_ns + MS / 2 - FRAME_NS, "frames reach the next port later");
    assert_eq!(check(&network.certificate()), Ok(()));
}
