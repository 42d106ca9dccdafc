//! Tests of incremental admission: refusals, their reasons, and that a refusal changes nothing.

use takt_calculus::Arrivals;
use takt_calculus::network::{Admission, Branch, Depth, Flow, FlowId, Frames, Hop, Port, QueueFault, Refused, check};
use takt_calculus::server::Unbounded;

const MILLISECOND: u64 = 1_000_000;

/// Returns a port of 100 Mbit/s with two classes.
fn port() -> Port {
    Port {
        name: "port".into(),
        rate_bps: 100_000_000,
        foreign_frame_len: 1514,
        classes: vec![Depth::UNLIMITED; 2],
        delay_ns: 0,
        delay_ns_min: 0,
    }
}

/// Returns a flow with a frame of 1,514 octets every 5 ms through `hops` ports, in a class.
fn flow(hops: usize, class: usize, limit_ns: u64) -> Flow {
    Flow {
        name: "flow".into(),
        arrivals: Arrivals::sporadic(5 * MILLISECOND),
        frames: vec![Frames { len: 1514, count: 1 }],
        hops: (0..hops).map(|port| Hop { port, class }).collect(),
        branches: vec![],
        limit_ns,
    }
}

fn network(ports: usize) -> Admission {
    Admission::new(vec![port(); ports]).expect("the ports are valid")
}

/// Link time of the longest frame at 100 Mbit/s, in nanoseconds.
const FRAME_NS: u64 = 123_040;

#[test]
fn bound_of_a_single_flow_is_its_frame_and_a_blocking_one_per_hop() {
    let mut network = network(3);
    let (_, bound) = network.admit(flow(3, 0, MILLISECOND)).expect("the flow is admitted");
    // A quarter of each budget is reserved for later flows.
    assert_eq!(bound.total_ns, 3 * 2 * FRAME_NS * 5 / 4);
    // Three blocking frames, and the flow's own frame three times, at the rate of the link.
    assert_eq!(bound.separated_ns, Some(3 * FRAME_NS + 3 * FRAME_NS));
}

#[test]
fn flow_that_exceeds_its_limit_is_refused_with_its_bound() {
    let mut network = network(3);
    let refused = network.admit(flow(3, 0, 6 * FRAME_NS - 1)).expect_err("the flow is refused");
    assert!(
        matches!(refused, Refused::ExceedsLimit { flow: FlowId(0), bound_ns, .. } if bound_ns == 6 * FRAME_NS),
        "{refused}"
    );
    assert_eq!(network, self::network(3), "nothing has changed");
    network.admit(flow(3, 0, 6 * FRAME_NS)).expect("the limit is met exactly");
}

#[test]
fn flow_that_makes_another_exceed_its_limit_is_refused() {
    let mut network = network(1);
    network.admit(flow(1, 0, 3 * FRAME_NS)).expect("the flow is admitted");
    network.admit(flow(1, 0, 10 * FRAME_NS)).expect("the flow is admitted");
    let before = network.clone();
    let refused = network.admit(flow(1, 0, 10 * FRAME_NS)).expect_err("the first would be late");
    assert!(matches!(refused, Refused::ExceedsLimit { flow: FlowId(0), .. }), "{refused}");
    assert_eq!(network, before);
    // In the lower class it blocks the two others for at most one frame, which their bounds already
    // include.
    let (id, bound) = network.admit(flow(1, 1, 10 * FRAME_NS)).expect("the flow is admitted");
    assert_eq!((id, bound.bound_ns() >= 4 * FRAME_NS), (FlowId(2), true));
    assert_eq!(check(&network.certificate()), Ok(()));
}

#[test]
fn overload_and_queue_overflow_are_reported() {
    let mut network = network(1);
    let fast = Flow { arrivals: Arrivals::sporadic(FRAME_NS * 5 / 2), ..flow(1, 0, 100 * MILLISECOND) };
    network.admit(fast.clone()).expect("two fifths of the link");
    network.admit(fast.clone()).expect("four fifths of it");
    let hop = Hop { port: 0, class: 0 };
    let fault = QueueFault::Unbounded(Unbounded::Overload);
    assert_eq!(network.admit(fast), Err(Refused::Queue { hop, fault }));

    let short = Port { classes: vec![Depth { frames: 3, octets: u64::MAX }], ..port() };
    let mut network = Admission::new(vec![short]).expect("the port is valid");
    let burst = |count| Flow { frames: vec![Frames { len: 1514, count }], ..flow(1, 0, 100 * MILLISECOND) };
    let refused = network.admit(burst(4)).expect_err("four frames arrive at once");
    assert!(matches!(refused, Refused::Queue { fault: QueueFault::Overflow { frames: 4, .. }, .. }), "{refused}");
    network.admit(burst(3)).expect("three are held");
}

#[test]
fn removed_flow_frees_capacity_for_an_equal_one() {
    let mut network = network(4);
    let mut ids = Vec::new();
    while let Ok((id, _)) = network.admit(flow(4, 0, 4 * MILLISECOND)) {
        ids.push(id);
    }
    assert!(ids.len() > 2, "{}", ids.len());
    for _ in 0..3 {
        let gone = ids.swap_remove(0);
        network.remove(gone).expect("the flow was admitted");
        assert_eq!(check(&network.certificate()), Ok(()));
        let (id, _) = network.admit(flow(4, 0, 4 * MILLISECOND)).expect("the flow is admitted again");
        assert_eq!(id, gone, "the place is used again");
        ids.push(id);
    }
    for id in ids {
        network.remove(id).expect("the flow was admitted");
    }
    assert_eq!(network.admit(flow(4, 0, 8 * FRAME_NS)).map(|(id, _)| id), Ok(FlowId(0)), "as in an empty network");
}

#[test]
fn strict_flow_is_admitted_by_lowering_budgets() {
    let mut network = network(2);
    // The budgets of this flow have a quarter more than needed.
    network.admit(flow(2, 0, 100 * MILLISECOND)).expect("the flow is admitted");
    let needed = 2 * (FRAME_NS + 2 * FRAME_NS);
    let (_, bound) = network.admit(flow(2, 0, needed)).expect("the limit is just met");
    assert!(bound.bound_ns() <= needed, "{bound:?}");
    assert_eq!(check(&network.certificate()), Ok(()));
}

/// Returns a flow whose frames are copied from port 0 to port 1 and port 2; port 3 follows port 2.
fn tree(limit_ns: u64) -> Flow {
    Flow { branches: vec![Branch { at: 2, after: 0 }], ..flow(4, 0, limit_ns) }
}

#[test]
fn multicast_flow_loads_a_shared_port_once() {
    let mut network = network(4);
    let (_, bound) = network.admit(tree(MILLISECOND)).expect("the flow is admitted");
    // Equal to a single flow through three ports: the longest path.
    let mut path = self::network(4);
    let (_, of_path) = path.admit(flow(3, 0, MILLISECOND)).expect("the flow is admitted");
    assert_eq!(bound, of_path);
    assert_eq!(network.queue(Hop { port: 0, class: 0 }), path.queue(Hop { port: 0, class: 0 }));
    assert_eq!(check(&network.certificate()), Ok(()));
}

#[test]
fn multicast_flow_is_refused_if_its_longest_path_exceeds_the_limit() {
    let mut network = network(4);
    let refused = network.admit(tree(6 * FRAME_NS - 1)).expect_err("three hops take more");
    assert!(matches!(refused, Refused::ExceedsLimit { bound_ns, .. } if bound_ns == 6 * FRAME_NS), "{refused}");
    network.admit(tree(6 * FRAME_NS)).expect("the limit is met exactly");
    let forward = Flow { branches: vec![Branch { at: 1, after: 1 }], ..tree(MILLISECOND) };
    assert_eq!(network.admit(forward), Err(Refused::InvalidDescription("a branch follows no hop before it")));
}

#[test]
fn flows_of_one_decision_are_admitted_atomically() {
    let mut one_by_one = network(3);
    for _ in 0..4 {
        one_by_one.admit(flow(3, 0, 100 * MILLISECOND)).expect("the flow is admitted");
    }
    let mut together = network(3);
    let admitted = together.admit_all(vec![flow(3, 0, 100 * MILLISECOND); 4]).expect("all flows are admitted");
    assert_eq!(admitted.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(check(&together.certificate()), Ok(()));
    assert_eq!(together.queues_bounded(), 6, "two queues at each of three ports");
    assert!(one_by_one.queues_bounded() > 3 * together.queues_bounded());

    let before = together.clone();
    let late = vec![flow(3, 0, 100 * MILLISECOND), flow(3, 0, MILLISECOND / 2)];
    assert!(matches!(together.what_if_all(&late), Err(Refused::ExceedsLimit { flow: FlowId(5), .. })));
    assert!(
        matches!(together.admit_all(late), Err(Refused::ExceedsLimit { flow: FlowId(5), .. })),
        "the second is late"
    );
    assert_eq!(together, before, "nothing has changed");

    let ids: Vec<FlowId> = admitted.iter().map(|(id, _)| *id).collect();
    assert_eq!(together.remove_all(&ids[..3]).len(), 3);
    assert_eq!(check(&together.certificate()), Ok(()));
    assert_eq!(together.flows().map(|(id, _)| id).collect::<Vec<_>>(), [FlowId(3)]);
    assert_eq!(together.remove_all(&ids).len(), 1, "the others are gone");
}
