//! Tests of controller clusters: election, lease and records with an in-memory etcd, and roles with
//! simulated switches.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_openflow::channel::Instant;
use takt_sdn::cluster::etcd::{PAGE, Request, Response};
use takt_sdn::cluster::{Cluster, Event, Member};
use takt_sdn::controller::{ClusterRole, Event as ControllerEvent};
use takt_sdn::store::{Changes, Records};

use crate::fabric::{Fabric, line, port};

const STEP: Duration = Duration::from_millis(50);

/// Simulated etcd, which responds without delay.
#[derive(Default)]
struct Etcd {
    revision: u64,
    /// Name, lease and generation of the leader.
    leader: Option<(String, u64, u64)>,
    /// End and duration in seconds of each lease.
    leases: BTreeMap<u64, (Instant, u64)>,
    records: Records,
}

impl Etcd {
    fn answer(&mut self, now: Instant, request: &Request) -> Response {
        self.leases.retain(|_, (until, _)| now < *until);
        self.leader.take_if(|(_, lease, _)| !self.leases.contains_key(lease));
        self.revision += 1;
        match request {
            Request::Grant { seconds } => {
                self.leases.insert(self.revision, (now.after(Duration::from_secs(*seconds)), *seconds));
                Response::Granted { lease: self.revision }
            }
            Request::KeepAlive { lease } => {
                let known = self.leases.get_mut(lease);
                Response::Alive(
                    known.map(|(until, seconds)| *until = now.after(Duration::from_secs(*seconds))).is_some(),
                )
            }
            Request::Revoke { lease } => {
                self.leases.remove(lease);
                Response::Revoked
            }
            Request::Campaign { lease, name } => {
                let (leader, _, generation) =
                    self.leader.get_or_insert_with(|| (name.clone(), *lease, self.revision)).clone();
                if leader == *name {
                    Response::Elected { generation }
                } else {
                    Response::Follows { leader, generation }
                }
            }
            Request::Load { from, .. } => {
                let mut rest = self.records.range(from.clone()..).map(|(key, value)| (key.clone(), value.clone()));
                let page: Vec<_> = rest.by_ref().take(PAGE).collect();
                Response::Records(page, rest.next().is_some())
            }
            Request::Save { generation, changes } => {
                let is_leader = self.leader.as_ref().is_some_and(|(_, _, own)| own == generation);
                if is_leader {
                    changes.removed.iter().for_each(|key| drop(self.records.remove(key)));
                    self.records.extend(changes.put.iter().cloned());
                }
                Response::Saved(is_leader)
            }
        }
    }
}

fn member(name: &str) -> Member {
    let cluster: Cluster = "etcd:http://127.0.0.1:2379".parse().expect("the cluster address is valid");
    Member::new(Instant(0), cluster, name.to_owned())
}

/// Performs the due actions of a member, and returns its events.
fn serve(etcd: &mut Etcd, now: Instant, member: &mut Member) -> Vec<Event> {
    while let Some(request) = member.poll_request(now) {
        let response = etcd.answer(now, &request);
        member.handle_response(now, Ok(response));
    }
    std::iter::from_fn(|| member.poll_event()).collect()
}

fn put(key: &str) -> Changes {
    Changes { put: vec![(key.to_owned(), b"value".to_vec())], removed: Vec::new() }
}

#[test]
fn one_member_leads_and_the_other_takes_over_when_it_falls_silent() {
    let (mut etcd, [mut one, mut other]) = (Etcd::default(), ["one", "other"].map(member));
    let mut now = Instant(0);
    let elected = serve(&mut etcd, now, &mut one);
    assert!(matches!(elected[..], [Event::Elected { generation: 2, .. }]), "{elected:?}");
    let follows = serve(&mut etcd, now, &mut other);
    assert_eq!(follows, [Event::Follows { leader: "one".to_owned(), generation: 2 }]);
    for _ in 0..200 {
        now = now.after(STEP);
        assert_eq!([serve(&mut etcd, now, &mut one), serve(&mut etcd, now, &mut other)], [vec![], vec![]]);
    }
    one.save(put("host/1"));
    serve(&mut etcd, now, &mut one);
    assert!(one.is_saved());
    // From now on the first member gets no responses: it steps down before etcd lets another one
    // lead.
    let until = one.leads_until().expect("the member leads");
    let event = loop {
        now = now.after(STEP);
        if let Some(event) = serve(&mut etcd, now, &mut other).pop() {
            break event;
        }
    };
    assert!(now > until, "{now:?}");
    let Event::Elected { generation, records } = event else { panic!("{event:?}") };
    assert!(generation > 2);
    assert_eq!(records.keys().collect::<Vec<_>>(), ["host/1"]);
    one.save(put("host/stale"));
    let deposed = serve(&mut etcd, now, &mut one);
    assert!(matches!(deposed[..], [Event::Deposed(_), Event::Follows { .. }]), "{deposed:?}");
    assert_eq!(etcd.records.len(), 1, "a former leader stores nothing");
}

#[test]
fn save_of_a_replaced_leader_changes_nothing_even_within_its_own_lease() {
    let (mut etcd, mut member) = (Etcd::default(), member("one"));
    serve(&mut etcd, Instant(0), &mut member);
    // The clocks seem to differ by more than is allowed for.
    etcd.leader = Some(("other".to_owned(), 0, 99));
    etcd.leases.insert(0, (Instant(u64::MAX), 1));
    member.save(put("host/stale"));
    let events = serve(&mut etcd, Instant(1), &mut member);
    assert!(matches!(&events[..], [Event::Deposed(why), ..] if why.contains("elected")), "{events:?}");
    assert!(etcd.records.is_empty());
}

#[test]
fn records_are_loaded_by_pages_and_saved_in_bounded_transactions() {
    let (mut etcd, mut one) = (Etcd::default(), member("one"));
    serve(&mut etcd, Instant(0), &mut one);
    let keys = 0..2 * PAGE + 50;
    let put: Vec<_> = keys.clone().map(|n| (format!("host/{n:05}"), Vec::new())).collect();
    one.save(Changes { put, removed: Vec::new() });
    serve(&mut etcd, Instant(0), &mut one);
    one.leave();
    serve(&mut etcd, Instant(0), &mut one);
    assert!(one.has_left());
    let mut other = member("other");
    let events = serve(&mut etcd, Instant(0), &mut other);
    let [Event::Elected { records, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(records.len(), keys.len(), "immediately, since the leader resigned");
}

#[test]
fn leader_that_reaches_no_etcd_steps_down_when_its_lease_ends_and_is_elected_again() {
    let (mut etcd, mut member) = (Etcd::default(), member("one"));
    serve(&mut etcd, Instant(0), &mut member);
    let (mut now, mut events) = (Instant(0), Vec::new());
    while events.len() < 2 {
        now = now.after(STEP);
        while member.poll_request(now).is_some() {
            member.handle_response(now, Err("no route to host".to_owned()));
        }
        events.extend(std::iter::from_fn(|| member.poll_event()));
        assert!(now.0 < 10_000_000_000, "{events:?}");
    }
    assert!(matches!(events[..], [Event::Unreachable(_), Event::Deposed(_)]), "{events:?}");
    assert_eq!(member.leads_until(), None);
    let again = serve(&mut etcd, now.after(Duration::from_secs(1)), &mut member);
    assert!(matches!(again[..], [Event::Elected { .. }]), "{again:?}");
}

#[test]
fn standby_changes_no_switch_until_it_leads() {
    let mut fabric = Fabric::new(2, &line(2));
    fabric.host(port(1, 5));
    fabric.settle();
    let before = fabric.switch(1).rules.len();
    fabric.restart_as(None, &Records::new());
    fabric.switch(1).rules.clear();
    fabric.pass(Duration::from_secs(5));
    assert_eq!(fabric.switch(1).rules.len(), 0, "{:?}", fabric.events);
    assert!(fabric.links().is_empty());
    let now = fabric.now;
    fabric.controller.become_leader(now, 7, &Records::new());
    fabric.run();
    fabric.pass(Duration::from_secs(10));
    assert_eq!(fabric.controller.cluster_role(), ClusterRole::Leader { generation: 7 });
    assert!(fabric.controller.is_settled());
    assert_eq!((fabric.links().len(), fabric.switch(1).rules.len()), (1, before));
}

#[test]
fn switch_refuses_an_earlier_leader_and_keeps_its_rules() {
    let mut fabric = Fabric::new(2, &line(2));
    fabric.restart_as(Some(7), &Records::new());
    fabric.pass(Duration::from_secs(10));
    assert!(fabric.controller.is_settled());
    let rules = |fabric: &mut Fabric| fabric.switch(1).rules.iter().map(|rule| rule.flow.clone()).collect::<Vec<_>>();
    let before = rules(&mut fabric);
    fabric.restart_as(Some(6), &Records::new());
    fabric.pass(Duration::from_secs(10));
    let refusals = fabric.events.iter().filter(
        |event| matches!(event, ControllerEvent::SwitchDown { why, .. } if why.contains("generation id is stale")),
    );
    assert_eq!(refusals.count(), 2, "{:?}", fabric.events);
    assert_eq!(rules(&mut fabric), before);
}
