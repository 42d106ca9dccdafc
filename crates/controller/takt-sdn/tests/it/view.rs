//! Tests of the snapshot of a controller: switches, hosts and pairs.

use takt_sdn::view::{Decision, EndpointKind, Pair as PairView, Role, Sender, SwitchState, View};

use crate::admission::{NETWORK, Site};
use crate::fabric::line;

pub fn view(site: &Site) -> View {
    site.fabric.controller.view(site.fabric.now)
}

fn of_topic<'a>(view: &'a View, topic: &str) -> &'a PairView {
    view.pairs.iter().find(|pair| pair.topic == topic).expect("the pair matches")
}

#[test]
fn view_has_switches_ports_links_and_hosts() {
    let site = Site::new(2, &line(2), Some(NETWORK));
    let view = view(&site);
    assert!(view.is_settled);
    assert_eq!(view.switches.len(), 2);
    let switch = &view.switches[0];
    assert_eq!((switch.datapath_id.as_str(), switch.state), ("0000000000000001", SwitchState::Settled));
    assert_eq!(switch.model.as_deref(), Some("ovs-netdev"));
    assert_eq!(switch.flow_entries, site.fabric.switches[&1].rules.len());
    let port = |number| switch.ports.iter().find(|port| port.number == number).expect("the switch has eight ports");
    assert_eq!((port(1).role, port(5).role), (Role::Link, Role::Edge));
    assert_eq!(port(1).peer.as_ref().map(ToString::to_string).as_deref(), Some("0000000000000002:2"));
    assert_eq!((port(1).rate_bps, port(1).admitted_ppm, port(1).queues.len()), (Some(20_000_000), Some(0), 4));
    assert_eq!(view.links.len(), 1);
    assert!(view.links[0].is_in_tree);
    let host = view.hosts.iter().find(|host| host.addresses == ["10.0.0.1"]).expect("the host sent ARP");
    assert_eq!((host.at.to_string().as_str(), host.vlan), ("0000000000000001:5", None));
    assert_eq!(view.participants.len(), 4);
}

#[test]
fn view_has_decision_bound_and_path_of_an_admitted_pair() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let (pair, ..) = site.pair(0, "Camera", 3);
    site.run(1_000);
    let view = view(&site);
    let pair_view = of_topic(&view, "Camera");
    assert_eq!((&pair_view.writer, &pair_view.reader), (&pair.writer.to_string(), &pair.reader.to_string()));
    assert_eq!((pair_view.decision, pair_view.reason.as_deref()), (Decision::Admitted, None));
    let contract = pair_view.contract.as_ref().expect("both ends declare a contract");
    let values = (contract.separation_ns, contract.size, contract.limit_ns, contract.importance);
    assert_eq!(values, (5_000_000, 7000, 100_000_000, 3));
    assert_eq!(contract.sources[2], "key rt.maxsize of the writer");
    assert_eq!((contract.jitter_ns, contract.sources[1].as_str()), (5_000_000, "default"));
    let bound_ns = pair_view.bound_ns.expect("the bound is proven");
    assert!((1..=100_000_000).contains(&bound_ns));
    let path: Vec<String> = pair_view.hops.iter().map(|hop| hop.sender.to_string()).collect();
    let expected = [
        "interface of host 02:00:00:00:00:01",
        "port 1 of switch 0000000000000001",
        "port 5 of switch 0000000000000002",
    ];
    assert_eq!(path, expected);
    let log = view.log.last().expect("the decision is logged");
    assert_eq!((log.number, log.decision, log.topic.as_deref()), (1, Decision::Admitted, Some("Camera")));
    let used = &view.switches[0].ports[0];
    assert!(used.admitted_ppm.is_some_and(|ppm| (500_000..1_000_000).contains(&ppm)), "12 of 20 Mbit/s: {used:?}");
    assert!(used.queues.iter().any(|queue| queue.budget_ns > 0));
    let kinds = |kind| view.endpoints.iter().filter(|endpoint| endpoint.kind == kind).count();
    assert_eq!((kinds(EndpointKind::Writer), kinds(EndpointKind::Reader)), (1, 1));
}

#[test]
fn view_has_the_binding_hop_and_the_remedies_of_a_refused_pair() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.pair(0, "Camera", 0);
    site.run(1_000);
    site.pair(2, "Lidar", 0);
    site.run(1_000);
    let view = view(&site);
    let pair_view = of_topic(&view, "Lidar");
    assert_eq!((pair_view.decision, pair_view.bound_ns), (Decision::Refused, None));
    let binding = pair_view.binding_hop.as_ref().expect("a queue binds");
    assert_eq!(binding.sender.to_string(), "port 1 of switch 0000000000000001");
    assert!(matches!(binding.sender, Sender::Port(_)));
    let longer = pair_view.remedies.separation_ns;
    assert!(longer.is_some_and(|separation_ns| separation_ns > 5_000_000), "{:?}", pair_view.remedies);
    assert!(pair_view.reason.as_ref().is_some_and(|reason| !reason.contains("would fit")), "{:?}", pair_view.reason);
    let log = view.log.last().expect("the decision is logged");
    assert!(log.reason.as_ref().is_some_and(|reason| reason.contains("would fit")), "{log:?}");
}

#[test]
fn pair_whose_entries_wait_for_a_switch_is_being_installed() {
    let mut site = Site::new(3, &line(3), Some(NETWORK));
    site.fabric.stalled.insert(2);
    site.pair(0, "Camera", 0);
    site.run(1_000);
    let view_now = view(&site);
    assert_eq!(of_topic(&view_now, "Camera").decision, Decision::Installing);
    assert_eq!(view_now.switches[1].state, SwitchState::Changing);
    site.fabric.disconnect(2);
    assert_eq!(view(&site).switches[1].state, SwitchState::Disconnected);
}

#[test]
fn contract_without_a_description_of_the_network_is_unproven() {
    let mut site = Site::new(2, &line(2), None);
    site.pair(0, "Camera", 0);
    site.run(1_000);
    let view_now = view(&site);
    assert_eq!(of_topic(&view_now, "Camera").decision, Decision::Unproven);
    assert_eq!((view_now.network_version, view_now.switches[0].model.as_deref()), (None, None));
}

#[test]
fn log_drops_the_oldest_decisions() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let decisions = takt_sdn::view::DECISIONS_MAX as u64;
    for topic in 0..decisions + 10 {
        site.pair(0, &format!("Topic {topic}"), 0);
    }
    site.run(3_000);
    let log = view(&site).log;
    assert_eq!(log.len() as u64, decisions);
    assert!(log[0].number > 1 && log.windows(2).all(|two| two[0].number + 1 == two[1].number));
}
