//! Tests of rerouting after link failures.

use takt_calculus::network::check;
use takt_sdn::schedule::{Reason, RequestId, Scheduler};

use super::networks::{MILLISECOND, model, network, next, request};

#[test]
fn flows_of_a_failed_link_take_the_other_direction_of_the_ring() {
    let mut network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    let affected = scheduler.admit(&network.snapshot(), request(0, &[2], 10 * MILLISECOND)).expect("admitted");
    let other = scheduler.admit(&network.snapshot(), request(4, &[6], 10 * MILLISECOND)).expect("the flow is admitted");
    assert_eq!(scheduler.reroute(&network.snapshot()), Default::default(), "nothing has changed");

    network.set_up(next(0), false).expect("the port has a link");
    let snapshot = network.snapshot();
    let rerouted = scheduler.reroute(&snapshot);
    assert_eq!(rerouted.dropped, []);
    let ids: Vec<RequestId> = rerouted.admitted.iter().map(|admitted| admitted.id).collect();
    assert_eq!(ids, [affected.id], "the other does not pass the link");
    assert_eq!(rerouted.admitted[0].routes[0].hops.len(), 5, "interface and four switches");
    assert_eq!(rerouted.admitted[0].snapshot, snapshot.version());
    assert_eq!(scheduler.routes(&snapshot, other.id), Some(other.routes));
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn least_important_flows_are_dropped_if_not_all_fit() {
    let mut network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    // Each uses a third of a link: two fit on the remaining path.
    let mut ids = Vec::new();
    for (n, importance) in [(0, 1), (1, 3), (0, 2)].into_iter().enumerate() {
        let (source, importance) = importance;
        let mut wanted = request(source, &[4 + n as u64 % 2], 50 * MILLISECOND);
        wanted.contract.min_separation_ns = 330_000;
        wanted.contract.importance = importance;
        ids.push(scheduler.admit(&network.snapshot(), wanted).expect("two paths exist").id);
    }
    network.set_up(next(0), false).expect("the port has a link");
    let rerouted = scheduler.reroute(&network.snapshot());
    let remaining: Vec<RequestId> = scheduler.requests().map(|(id, _)| id).collect();
    let dropped: Vec<RequestId> = rerouted.dropped.iter().map(|(id, ..)| *id).collect();
    assert_eq!(dropped, [ids[0]], "the least important one");
    assert_eq!(remaining, [ids[1], ids[2]]);
    assert!(matches!(rerouted.dropped[0].2.reason, Reason::Queue { .. } | Reason::ExceedsLimit { .. }));
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

#[test]
fn flow_without_another_path_is_dropped_and_fits_again_when_the_link_returns() {
    let mut network = network(2, model(2, 1000));
    let mut scheduler = Scheduler::default();
    scheduler.admit(&network.snapshot(), request(0, &[2], 10 * MILLISECOND)).expect("the flow is admitted");
    network.set_up(next(0), false).expect("the port has a link");
    let rerouted = scheduler.reroute(&network.snapshot());
    let (_, request, refused) = rerouted.dropped.into_iter().next().expect("no other path exists");
    assert_eq!(refused.reason, Reason::NoRoute);
    network.set_up(next(0), true).expect("the port has a link");
    scheduler.admit(&network.snapshot(), request).expect("the flow is admitted again");
}

#[test]
fn requests_that_share_a_flow_are_rerouted_without_the_least_important_ones() {
    let mut network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    let mut wanted = request(0, &[2], 50 * MILLISECOND);
    let id = scheduler.admit(&network.snapshot(), wanted.clone()).expect("the flow is admitted").id;
    for importance in [1, 3, 2] {
        (wanted.name, wanted.contract.importance) = (format!("importance {importance}"), importance);
        wanted.contract.min_separation_ns = 300_000;
        let fits = scheduler.join(id, &network.snapshot(), wanted.clone()).is_ok();
        assert_eq!(fits, importance != 2, "two take three quarters of a link");
    }
    // The other path has room for one of them.
    let mut other = request(6, &[4], 50 * MILLISECOND);
    other.contract.min_separation_ns = 330_000;
    scheduler.admit(&network.snapshot(), other).expect("the flow is admitted");
    network.set_up(next(0), false).expect("the port has a link");
    let rerouted = scheduler.reroute(&network.snapshot());
    assert_eq!(rerouted.admitted.iter().map(|admitted| admitted.id).collect::<Vec<_>>(), [id]);
    let dropped: Vec<&str> = rerouted.dropped.iter().map(|(_, request, _)| request.name.as_str()).collect();
    assert_eq!(dropped, ["from 0", "importance 1"], "by importance");
    assert_eq!(scheduler.requests_of(id).expect("the flow is admitted").len(), 1);
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}
