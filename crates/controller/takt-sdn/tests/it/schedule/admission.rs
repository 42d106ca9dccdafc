//! Tests of admission by the scheduler: classes and paths of admitted requests, refusals and their
//! remedies.

use takt_calculus::network::{Depth, check};
use takt_sdn::PortRef;
use takt_sdn::model::{Egress, Queue, QueueSelection, SwitchModel};
use takt_sdn::schedule::{Admitted, FormatError, Reason, Request, RequestId, Scheduler, WireFormat};

use super::networks::{MILLISECOND, model, network, next, reliable, request};

/// Returns the classes of samples at switch ports.
fn classes(admitted: &Admitted) -> Vec<usize> {
    let hops = admitted.routes[0].hops.iter();
    hops.filter(|hop| matches!(hop.port, Egress::Switch(_))).map(|hop| hop.class).collect()
}

fn ports(admitted: &Admitted) -> Vec<Egress> {
    admitted.routes[0].hops.iter().map(|hop| hop.port).collect()
}

#[test]
fn flow_gets_the_lowest_class_at_which_it_keeps_its_limit() {
    let snapshot = network(2, model(4, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    let lax = scheduler.admit(&snapshot, request(0, &[2], 100 * MILLISECOND)).expect("the flow is admitted");
    assert_eq!(classes(&lax), [3, 3]);
    // Eight flows of the lowest class do not fit within 1 ms, but a more urgent class does.
    for _ in 0..8 {
        scheduler.admit(&snapshot, request(1, &[2], 100 * MILLISECOND)).expect("the flow is admitted");
    }
    let strict = scheduler.admit(&snapshot, request(0, &[3], MILLISECOND)).expect("the flow is admitted");
    assert!(classes(&strict)[0] < 3, "{strict:?}");
    assert!(strict.bound_ns <= MILLISECOND);
    assert_eq!(
        strict.routes[0].hops[1].selection.and_then(|selection| selection.set_queue),
        Some(7 - classes(&strict)[0] as u32)
    );
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn control_traffic_keeps_its_share_of_a_port_below_admitted_flows() {
    let fill = |control| {
        let snapshot = network(2, SwitchModel { control, ..model(2, 1000) }).snapshot();
        let mut scheduler = Scheduler::default();
        let mut admit = || scheduler.admit(&snapshot, request(0, &[2], 100 * MILLISECOND));
        let count = (0..1000).take_while(|_| admit().is_ok()).count();
        (count, scheduler.certificate())
    };
    let (all, _) = fill(None);
    let selection = QueueSelection { set_queue: Some(1), dscp: None };
    let (fewer, certificate) = fill(Some(Queue { selection, depth: Depth::UNLIMITED }));
    assert!(0 < fewer && fewer < all, "{fewer} of {all}");
    let control = certificate.flows.iter().filter(|flow| flow.name.starts_with("control traffic"));
    assert_eq!(control.count(), 6, "LLDP, learning and discovery at two ports of switches");
    assert_eq!(check(&certificate), Ok(()));
}

#[test]
fn what_if_answers_as_admission_and_changes_nothing() {
    let snapshot = network(3, model(3, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    for n in 0..12 {
        let wanted = reliable(request(n % 6, &[(n + 1) % 6, (n + 3) % 6], (1 + n % 3) * MILLISECOND));
        let before = (scheduler.certificate(), scheduler.requests().count());
        let what_if = scheduler.what_if(&snapshot, &wanted);
        assert_eq!((scheduler.certificate().flows, scheduler.requests().count()), (before.0.flows, before.1));
        assert_eq!(scheduler.admit(&snapshot, wanted), what_if);
    }
    assert!(scheduler.requests().count() > 2, "{}", scheduler.requests().count());
}

#[test]
fn reliable_pair_is_admitted_with_its_heartbeats_and_acknacks() {
    let snapshot = network(2, model(2, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    let admitted = scheduler.admit(&snapshot, reliable(request(0, &[2], 10 * MILLISECOND))).expect("admitted");
    let ends: Vec<_> = admitted.routes.iter().map(|route| (route.source.0, route.destinations[0].0)).collect();
    assert_eq!(ends, [(0, 2), (0, 2), (2, 0)]);
    assert_eq!(scheduler.certificate().flows.len(), 3);
    scheduler.remove(admitted.id).expect("the flow was admitted");
    assert_eq!(scheduler.certificate().flows.len(), 0);
    assert_eq!(scheduler.remove(admitted.id), None);
}

#[test]
fn multicast_loads_a_shared_port_once() {
    let snapshot = network(2, model(2, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    let admitted = scheduler.admit(&snapshot, request(0, &[2, 3], 10 * MILLISECOND)).expect("the flow is admitted");
    let after: Vec<_> = admitted.routes[0].hops.iter().map(|hop| hop.after).collect();
    assert_eq!(after, [None, Some(0), Some(1), Some(1)], "interface, next switch, and both hosts");
    assert_eq!(ports(&admitted)[1], next(0));
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn refusal_names_the_binding_hop_and_its_remedies_fit() {
    let snapshot = network(2, model(2, 1000)).snapshot();
    let mut scheduler = Scheduler::default();
    let mut wanted = request(0, &[2], 5 * MILLISECOND);
    wanted.contract.min_separation_ns = 2 * MILLISECOND;
    let mut admitted = 0;
    let refused = loop {
        wanted.name = format!("request {admitted}");
        wanted.source.0 = admitted % 2;
        match scheduler.admit(&snapshot, wanted.clone()) {
            Ok(_) => admitted += 1,
            Err(refused) => break refused,
        }
    };
    assert!(admitted > 5, "{admitted}");
    let at = match refused.reason {
        Reason::ExceedsLimit { port, .. } | Reason::Queue { port, .. } => port,
        ref other => panic!("{other:?}"),
    };
    assert!([next(0), Egress::Switch(PortRef::new(1, 3))].contains(&at), "{refused}");
    assert!(refused.to_string().contains("of switch 000000000000000"), "{refused}");

    let remedies = scheduler.remedies(&snapshot, None, &wanted);
    let smaller = remedies.sample_len.expect("a smaller sample fits");
    assert!(smaller < wanted.contract.sample_len);
    wanted.contract.sample_len = smaller;
    scheduler.admit(&snapshot, wanted).expect("the remedy is admitted");
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn limit_below_the_bound_of_a_lone_flow_has_a_longer_limit_as_remedy() {
    let snapshot = network(2, model(2, 1000)).snapshot();
    let mut scheduler = Scheduler::default();
    let mut wanted = request(0, &[2], 300_000);
    let refused = scheduler.admit(&snapshot, wanted.clone()).expect_err("three frames take longer");
    assert!(matches!(refused.reason, Reason::ExceedsLimit { limit_ns: 300_000, .. }), "{refused}");
    let remedies = scheduler.remedies(&snapshot, None, &wanted);
    assert_eq!(remedies.min_separation_ns, None, "no other flow exists");
    wanted.contract.limit_ns = remedies.limit_ns.expect("a longer limit fits");
    assert!(wanted.contract.limit_ns < MILLISECOND, "{remedies:?}");
    scheduler.admit(&snapshot, wanted).expect("the remedy is admitted");
}

#[test]
fn full_port_accepts_flows_again_when_one_leaves() {
    let mut model = model(2, 1000);
    model.queues.iter_mut().for_each(|queue| queue.depth.frames = 6);
    let snapshot = network(2, model).snapshot();
    let mut scheduler = Scheduler::default();
    let mut admitted = Vec::new();
    let wanted = || request(0, &[2], 100 * MILLISECOND);
    let refused = loop {
        match scheduler.admit(&snapshot, wanted()) {
            Ok(decision) => admitted.push(decision.id),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused.reason, Reason::Queue { .. }) && !admitted.is_empty(), "{refused}");
    assert_eq!(scheduler.admit(&snapshot, wanted()), Err(refused.clone()), "the refusal is repeated");
    scheduler.remove(admitted[0]).expect("the flow was admitted");
    scheduler.admit(&snapshot, wanted()).expect("the flow is admitted again");
    assert!(scheduler.admit(&snapshot, wanted()).is_err());
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn loaded_path_is_avoided() {
    // In a ring of four, two paths of the same length lead to the opposite switch.
    let snapshot = network(4, model(2, 1000)).snapshot();
    let mut scheduler = Scheduler::default();
    let first = scheduler.admit(&snapshot, request(0, &[4], 10 * MILLISECOND)).expect("the flow is admitted");
    let second = scheduler.admit(&snapshot, request(1, &[5], 10 * MILLISECOND)).expect("the flow is admitted");
    assert_ne!(ports(&first)[1], ports(&second)[1]);
    assert_eq!(first.routes[0].hops.len(), second.routes[0].hops.len());
}

/// A strict flow in a queue of lax ones that were placed before gets a class above them. Then a
/// flow with a limit between both follows.
#[test]
fn admitted_flow_moves_up_a_class_when_a_new_flow_would_make_it_late() {
    let snapshot = network(2, model(3, 1000)).snapshot();
    let mut scheduler = Scheduler::default();
    let (mut moved, mut admitted) = (0, 0);
    for n in 0..40 {
        let limit_ns = 700_000 + (n * 7 % 10) * 400_000;
        let mut wanted = request(n % 2, &[2 + n / 2 % 2], limit_ns);
        wanted.contract.sample_len = 100 + 300 * (n % 4);
        if let Ok(decision) = scheduler.admit(&snapshot, wanted) {
            admitted += 1;
            moved += decision.moved.len();
            for id in &decision.moved {
                let routes = scheduler.routes(&snapshot, *id).expect("the flow is admitted");
                assert!(routes[0].bound_ns <= routes[0].limit_ns);
            }
        }
        assert_eq!(check(&scheduler.certificate()), Ok(()));
    }
    assert!(moved > 0 && admitted > 5, "{moved} of {admitted}");
}

#[test]
fn full_table_refuses_until_a_flow_is_removed() {
    let snapshot = network(2, model(2, 3)).snapshot();
    let mut scheduler = Scheduler::default();
    let ids: Vec<RequestId> = (0..3)
        .map(|_| scheduler.admit(&snapshot, request(0, &[2], 50 * MILLISECOND)).expect("the flow is admitted").id)
        .collect();
    let refused = scheduler.admit(&snapshot, request(0, &[2], 50 * MILLISECOND)).expect_err("the table is full");
    assert!(matches!(refused.reason, Reason::TableFull(room) if room.table == "flow entries" && room.capacity == 3));
    scheduler.remove(ids[1]).expect("the flow was admitted");
    scheduler.admit(&snapshot, request(0, &[2], 50 * MILLISECOND)).expect("the flow is admitted again");
}

#[test]
fn invalid_request_is_refused() {
    let snapshot = network(2, model(2, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    let good = request(0, &[2], MILLISECOND);
    let mut reason = |change: &dyn Fn(&mut takt_sdn::schedule::Request)| {
        let mut bad = good.clone();
        change(&mut bad);
        scheduler.admit(&snapshot, bad).expect_err("the request is invalid").reason
    };
    assert!(matches!(reason(&|bad| bad.destinations.clear()), Reason::Invalid(_)));
    assert!(matches!(reason(&|bad| bad.destinations.push(bad.source)), Reason::Invalid(_)));
    assert!(matches!(reason(&|bad| bad.contract.min_separation_ns = 0), Reason::Invalid(_)));
    assert!(matches!(reason(&|bad| bad.contract.burst = 0), Reason::Invalid(_)));
    assert_eq!(reason(&|bad| bad.destinations[0].0 = 99), Reason::NoRoute);
    let large = WireFormat { fragment_len: 60_000, ..WireFormat::default() };
    let format = |bad: &mut takt_sdn::schedule::Request| {
        bad.format = large;
        bad.contract.sample_len = 60_000;
    };
    assert!(matches!(reason(&format), Reason::Format(FormatError::Datagram { .. })));
    assert_eq!(scheduler.requests().count(), 0);
}

#[test]
fn joined_requests_share_entries_paths_and_classes() {
    let snapshot = network(4, model(3, 1)).snapshot();
    let mut scheduler = Scheduler::default();
    let named = |name: &str, limit_ns| Request { name: name.into(), ..request(0, &[4], limit_ns) };
    let id = scheduler.admit(&snapshot, named("a", 100 * MILLISECOND)).expect("the flow is admitted").id;
    scheduler.admit(&snapshot, request(0, &[4], MILLISECOND)).expect_err("tables hold the entries of one flow");
    for (name, limit_ns) in [("b", 50), ("c", 3), ("d", 80)] {
        let joined = scheduler.join(id, &snapshot, named(name, limit_ns * MILLISECOND)).expect("admitted");
        let hops = joined.routes.iter().map(|route| route.hops.clone());
        assert!(hops.clone().all(|hops| hops == joined.routes[0].hops), "{joined:?}");
        assert!(joined.routes.iter().all(|route| route.bound_ns <= route.limit_ns), "{joined:?}");
        assert_eq!(check(&scheduler.certificate()), Ok(()));
    }
    let before = scheduler.certificate();
    let other = scheduler.join(id, &snapshot, request(0, &[5], MILLISECOND)).expect_err("the destinations differ");
    assert_eq!(other.reason, Reason::OtherEnds);
    let strict = scheduler.join(id, &snapshot, named("e", 100_000)).expect_err("its frames take longer");
    assert!(matches!(&strict.reason, Reason::ExceedsLimit { flow, .. } if flow == "e"), "{strict}");
    assert_eq!(scheduler.certificate(), before, "the others are unchanged");
    let remedies = scheduler.remedies(&snapshot, Some(id), &named("e", 100_000));
    scheduler.join(id, &snapshot, named("e", remedies.limit_ns.expect("a longer one fits"))).expect("admitted");

    for name in ["c", "a", "e", "b"] {
        assert_eq!(scheduler.remove_request(id, &snapshot, name).map(|request| request.name), Some(name.to_owned()));
        assert_eq!(check(&scheduler.certificate()), Ok(()));
    }
    assert_eq!(scheduler.remove_request(id, &snapshot, "a"), None);
    assert_eq!(scheduler.certificate().flows.len(), 1);
    scheduler.remove_request(id, &snapshot, "d").expect("the last request leaves");
    assert_eq!(scheduler.requests_of(id), None);
    scheduler.admit(&snapshot, request(0, &[4], 10 * MILLISECOND)).expect("the tables are free");
}

/// The meter of a shared flow passes more than the sum of its streams, each at its own rate: a
/// stream may use the share that others leave.
#[test]
fn requests_that_share_a_meter_have_its_burst_twice_and_one_event_more() {
    let snapshot = network(2, model(2, 10)).snapshot();
    let mut scheduler = Scheduler::default();
    let id = scheduler.admit(&snapshot, request(0, &[2], 100 * MILLISECOND)).expect("the flow is admitted").id;
    let at_once = |scheduler: &Scheduler| -> Vec<u64> {
        scheduler.certificate().flows.iter().map(|flow| flow.arrivals.at_once()).collect()
    };
    assert_eq!(at_once(&scheduler), [1]);
    let other = Request { name: "other".into(), ..request(0, &[2], 100 * MILLISECOND) };
    scheduler.join(id, &snapshot, other).expect("the request is admitted");
    assert_eq!(at_once(&scheduler), [3, 3], "the burst of a meter that is changed, and one event of the other");
    scheduler.remove_request(id, &snapshot, "other").expect("the request joined");
    assert_eq!(at_once(&scheduler), [1]);
}

/// The work of decisions depends only on requests and network, so it is counted instead of timed.
#[test]
fn work_of_a_decision_does_not_grow_with_flows_elsewhere() {
    let mut model = model(3, 10_000);
    model.queues.iter_mut().for_each(|queue| queue.depth.frames = 40);
    let snapshot = network(6, model).snapshot();
    let mut scheduler = Scheduler::default();
    let work_of = |scheduler: &mut Scheduler, source: u64, destination: u64| {
        let before = scheduler.work();
        let mut wanted = request(source, &[destination], 100 * MILLISECOND);
        wanted.contract.min_separation_ns = 50 * MILLISECOND;
        let admitted = scheduler.admit(&snapshot, wanted).is_ok();
        let after = scheduler.work();
        (admitted, after.trials - before.trials, after.queues - before.queues)
    };
    let alone = work_of(&mut scheduler, 0, 1);
    assert_eq!(alone, (true, 1, 2), "the queue of the interface, and the lowest one of the port to the host");
    let (mut admitted, mut most) = (0, (0, 0));
    for n in 0..400 {
        let (is_admitted, trials, queues) = work_of(&mut scheduler, 4 + n % 4, 8 + n % 3);
        admitted += usize::from(is_admitted);
        most = (trials.max(most.0), queues.max(most.1));
    }
    assert!((20..380).contains(&admitted), "{admitted} of 400: the ports are full");
    assert!(most.0 <= 8 && most.1 <= 40, "trials and queues: {most:?}");
    let (is_admitted, trials, queues) = work_of(&mut scheduler, 0, 1);
    assert!((is_admitted, trials) == (true, 1) && queues <= alone.2, "{queues}");
}
