//! Tests of registered pairs with simulated switches: every decision, leases, restarts, and
//! forbidden addresses and ports.

use takt_core::{Config as ParticipantConfig, Instant, Interface, Participant};
use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::{self, Event as DiscoveryEvent, Forgery};
use takt_sdn::frame::Frame;
use takt_sdn::isolation::Isolation;
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::registration::{
    CHANGES_AT_ONCE, Owner, REGISTRATIONS_MAX, Registration, RegistrationError, RegistrationId, State,
};
use takt_sdn::store::Records;
use takt_sdn::view::{Decision, Pair};
use takt_wire::{GuidPrefix, Locator};

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::{line, port, ring};
use crate::view::view;

/// Port at which registered readers receive.
const PORT: u16 = 7421;
/// Ports at which participants of [`Site`] receive discovery and samples.
const METATRAFFIC: u16 = 7410;
const USER: u16 = 7411;

/// Returns a registration that uses 12 of 20 Mbit/s from one host to another, each by its index.
pub fn registration(topic: &str, from: u8, to: u8) -> Registration {
    Registration {
        topic: topic.to_owned(),
        writer: format!("writer of {topic}"),
        reader: format!("reader of {topic}"),
        from: [10, 0, 0, from].into(),
        to: [10, 0, 0, to].into(),
        port: PORT,
        answer_port: None,
        group: None,
        separation_ns: 5_000_000,
        jitter_ns: None,
        size: 7_000,
        limit_ns: 100_000_000,
        importance: 0,
        protected: false,
        overhead: 0,
        lease_s: 60,
    }
}

fn owner(name: &str) -> Owner {
    Owner::Token(name.to_owned())
}

impl Site {
    pub fn register(&mut self, by: &Owner, wanted: Registration) -> Result<RegistrationId, RegistrationError> {
        let now = self.fabric.now;
        let result = self.fabric.controller.register(now, by, wanted);
        self.fabric.run();
        result.map(|(id, _)| id)
    }

    fn unregister(&mut self, by: &Owner, id: RegistrationId) -> Result<(), RegistrationError> {
        let now = self.fabric.now;
        let ended = self.fabric.controller.unregister(now, by, id);
        self.fabric.run();
        ended
    }

    fn state(&self, id: RegistrationId) -> Option<State> {
        self.fabric.controller.registration(id)
    }

    fn shown(&self, id: RegistrationId) -> Pair {
        self.fabric.controller.registration_view(id).expect("the pair is registered")
    }

    /// Returns the DSCPs of datagrams that arrive at a port.
    fn classes_at(&mut self, from: usize, to: usize, port: u16, count: usize) -> Vec<u8> {
        let frame = self.datagram(from, (self.fabric.hosts[to].address, port).into(), &[0; 1000]);
        self.fabric.hosts[to].inbox.clear();
        (0..count).for_each(|_| self.fabric.send_from(from, frame.clone()));
        let got = std::mem::take(&mut self.fabric.hosts[to].inbox);
        let parsed = got.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
        let own = parsed.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == port));
        own.map(|frame| frame.payload()[1] >> 2).collect()
    }
}

fn site() -> Site {
    Site::new(2, &line(2), Some(NETWORK))
}

fn config() -> Config {
    let network = NetworkFile::parse("network.toml", NETWORK, SwitchModel::built_in).expect("a valid file");
    Config { network: Some(network), ..Config::default() }
}

#[test]
fn registered_pair_is_admitted_with_class_meter_and_bound() {
    let mut site = site();
    assert_eq!(site.classes_at(0, 1, PORT, 1), [0], "without a registration it has no class");
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    assert_eq!(site.state(id), Some(State::Admitted), "{:?}", site.fabric.events);
    let classes = site.classes_at(0, 1, PORT, 1000);
    assert!(classes.iter().all(|class| CLASSES.contains(class)), "{classes:?}");
    assert!((6..100).contains(&classes.len()), "a sample of six datagrams passes, a flood does not: {}", classes.len());
    assert_eq!(site.classes_at(2, 1, PORT, 1), [0], "another host");
    assert_eq!(site.classes_at(0, 1, PORT + 1, 1), [0], "another port");
    let shown = site.shown(id);
    assert_eq!((shown.decision, shown.topic.as_str()), (Decision::Admitted, "Camera"));
    assert!(shown.bound_ns.is_some_and(|bound_ns| (1..=100_000_000).contains(&bound_ns)), "{shown:?}");
    assert_eq!(shown.hops.len(), 3);
    assert_eq!(shown.contract.as_ref().map(|contract| contract.sources[0].as_str()), Some("registration"));
    assert!(view(&site).pairs.contains(&shown), "the state shows it among the flows");
    let is_admitted =
        |event: &Event| matches!(event, Event::Registration { state: State::Admitted, id: own, .. } if *own == id);
    assert_eq!(site.fabric.events.iter().filter(|event| is_admitted(event)).count(), 1);
    let log = view(&site).log;
    assert_eq!(
        log.last().map(|entry| (entry.decision, entry.writer.as_str())),
        Some((Decision::Admitted, "writer of Camera"))
    );
}

#[test]
fn reliable_registration_has_a_class_for_its_answers() {
    let mut site = site();
    let wanted = Registration { answer_port: Some(7431), ..registration("Camera", 1, 2) };
    let id = site.register(&owner("gateway"), wanted).expect("the registration is accepted");
    assert_eq!(site.state(id), Some(State::Admitted));
    assert!(CLASSES.contains(&site.classes_at(1, 0, 7431, 1)[0]));
}

#[test]
fn refused_registration_names_hop_and_remedies_and_is_admitted_when_capacity_is_free() {
    let mut site = site();
    let first = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    let second = site.register(&owner("gateway"), registration("Lidar", 3, 4)).expect("the registration is accepted");
    assert_eq!((site.state(first), site.state(second)), (Some(State::Admitted), Some(State::Refused)));
    let shown = site.shown(second);
    let binding = shown.binding_hop.as_ref().expect("a queue binds");
    assert_eq!(binding.sender.to_string(), "port 1 of switch 0000000000000001");
    assert!(shown.remedies.separation_ns.is_some_and(|ns| ns > 5_000_000), "{shown:?}");
    assert!(shown.reason.is_some());
    site.unregister(&owner("gateway"), first).expect("the owner may remove it");
    // The share is freed when its last frames have left the queues.
    site.run(1_000);
    assert_eq!((site.state(first), site.state(second)), (None, Some(State::Admitted)));
    assert_eq!(site.classes_at(0, 1, PORT, 1), [0], "the entries of the first have left");
}

#[test]
fn registration_waits_for_the_entries_of_every_switch() {
    let mut site = site();
    site.fabric.stalled.insert(2);
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    assert_eq!(site.state(id), Some(State::Installing));
    site.fabric.stalled.clear();
    site.run(100);
    assert_eq!(site.state(id), Some(State::Admitted));
}

#[test]
fn failed_link_withdraws_a_registration_and_its_repair_admits_it_again() {
    let mut site = site();
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    site.fabric.set_cable(port(1, 1), port(2, 2), false);
    site.run(100);
    assert_eq!(site.state(id), Some(State::Withdrawn), "{:?}", site.fabric.events);
    let shown = site.shown(id);
    assert!(shown.decision == Decision::Refused && shown.reason.is_some(), "{shown:?}");
    let is_admitted =
        |event: &Event| matches!(event, Event::Registration { state: State::Withdrawn, outcome: Err(_), .. });
    assert!(site.fabric.events.iter().any(is_admitted));
    site.fabric.set_cable(port(1, 1), port(2, 2), true);
    site.run(3_000);
    assert_eq!(site.state(id), Some(State::Admitted), "{:?}", site.shown(id).reason);
}

#[test]
fn registration_is_rerouted_when_a_link_fails() {
    let mut site = Site::new(3, &ring(), Some(NETWORK));
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    let direct = site.shown(id).hops;
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    site.run(1_000);
    assert_eq!(site.state(id), Some(State::Admitted));
    assert!(site.shown(id).hops.len() > direct.len(), "{:?}", site.shown(id).hops);
}

#[test]
fn lease_that_is_not_renewed_ends_the_registration_and_frees_its_share() {
    let mut site = site();
    let gateway = owner("gateway");
    let short = Registration { lease_s: 5, ..registration("Camera", 1, 2) };
    let first = site.register(&gateway, short.clone()).expect("the registration is accepted");
    let second = site.register(&gateway, registration("Lidar", 3, 4)).expect("the registration is accepted");
    for _ in 0..3 {
        site.run(4_000);
        assert_eq!(site.register(&gateway, short.clone()), Ok(first), "the same registration again renews it");
    }
    assert_eq!(site.state(second), Some(State::Refused));
    site.run(6_000);
    assert_eq!((site.state(first), site.state(second)), (None, Some(State::Admitted)));
    assert_eq!(view(&site).counters["registrations_expired"], 1);
    assert!(site.fabric.events.iter().any(|event| matches!(event, Event::RegistrationGone { id, .. } if *id == first)));
}

#[test]
fn registrations_of_one_owner_share_a_socket_and_those_of_others_do_not() {
    let mut site = site();
    let small = |topic| Registration { size: 1_000, ..registration(topic, 1, 2) };
    let first = site.register(&owner("gateway"), small("Camera")).expect("the registration is accepted");
    let second = site.register(&owner("gateway"), small("Joint")).expect("the registration is accepted");
    assert_eq!((site.state(first), site.state(second)), (Some(State::Admitted), Some(State::Admitted)));
    assert_eq!(site.entries(1).len(), 1, "one entry, for both");
    let foreign = site.register(&owner("other"), small("Radar"));
    assert!(
        matches!(&foreign, Err(RegistrationError::Conflict(what)) if what.contains("token gateway")),
        "{foreign:?}"
    );
    let elsewhere = Registration { port: PORT + 1, ..small("Radar") };
    assert!(site.register(&owner("other"), elsewhere).is_ok());
    let changed = site.register(&owner("gateway"), Registration { size: 999, ..small("Joint") });
    assert!(matches!(&changed, Err(RegistrationError::Conflict(what)) if what.contains("other values")), "{changed:?}");
    assert_eq!(site.unregister(&owner("other"), first), Err(RegistrationError::NotOwner(first)));
    assert_eq!(site.unregister(&Owner::Operator, first), Ok(()), "the operator may");
    assert_eq!(site.unregister(&Owner::Operator, first), Err(RegistrationError::Unknown));
    site.run(100);
    assert_eq!(site.state(second), Some(State::Admitted));
}

#[test]
fn registration_may_not_use_sockets_of_a_discovered_pair() {
    let mut site = site();
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    let entries = site.entries(1);
    let small = |from, to| Registration { size: 100, port: USER, ..registration("Mine", from, to) };
    for wanted in [small(1, 2), small(2, 1), Registration { port: PORT, answer_port: Some(USER), ..small(2, 1) }] {
        let result = site.register(&Owner::Operator, wanted);
        assert!(
            matches!(&result, Err(RegistrationError::Conflict(what)) if what.contains("belong to pair")),
            "{result:?}"
        );
    }
    assert!(site.is_matched(0, writer, reader));
    assert_eq!(site.entries(1), entries);
}

#[test]
fn registration_may_not_use_a_discovery_port() {
    let mut site = site();
    for port in [7400, METATRAFFIC] {
        let result = site.register(&Owner::Operator, Registration { port, ..registration("Camera", 1, 2) });
        assert!(
            matches!(&result, Err(RegistrationError::Conflict(what)) if what.contains("discovery uses")),
            "{result:?}"
        );
    }
    let group = Some(([239, 255, 0, 1], 7400).into());
    let result = site.register(&Owner::Operator, Registration { group, ..registration("Camera", 1, 2) });
    assert!(matches!(result, Err(RegistrationError::Conflict(_))), "{result:?}");
    assert!(site.entries(1).is_empty());
}

/// Creates a participant with another prefix, or with discovery at another port.
fn participant(site: &Site, node: usize, prefix: [u8; 12], metatraffic: u16) -> Participant {
    let address = site.fabric.hosts[node].address;
    let mut config = ParticipantConfig::new(0, GuidPrefix(prefix));
    let locator = |port| vec![Locator::from(std::net::SocketAddr::from((address, port)))];
    let addresses = vec![(address.into(), 24)];
    config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: 1500, loopback: false }];
    config.locators.metatraffic_unicast = locator(metatraffic);
    config.locators.default_unicast = locator(metatraffic + 1);
    config.initial_peers = vec![Locator::udp_v4([239, 255, 0, 1].into(), 7400)];
    Participant::new(config, Instant(site.fabric.now.0)).expect("the configuration is valid")
}

#[test]
fn registration_is_withdrawn_when_a_participant_receives_discovery_at_its_port() {
    let mut site = site();
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    assert_eq!(site.state(id), Some(State::Admitted));
    let new = participant(&site, 1, [1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2], PORT);
    site.nodes[1] = new;
    site.run(1_000);
    assert_eq!(site.state(id), Some(State::Withdrawn), "{:?}", site.fabric.events);
    assert!(site.shown(id).reason.is_some_and(|reason| reason.contains("discovery uses")));
    assert!(site.entries(1).is_empty());
}

#[test]
fn participant_with_a_reserved_prefix_is_rejected() {
    let mut site = site();
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    let entries = site.entries(1);
    let number = u8::try_from(id.0).expect("this is the first registration");
    let forged = participant(&site, 2, [0xff, 0xff, b'T', b'R', 0, 0, 0, 0, 0, 0, 0, number], 7440);
    let before = site.fabric.controller.discovery().participants().count();
    site.nodes[2] = forged;
    site.run(1_000);
    assert_eq!(site.fabric.controller.discovery().participants().count(), before);
    let is_admitted =
        |event: &Event| matches!(event, Event::Discovery(DiscoveryEvent::Forged { what: Forgery::ReservedPrefix, .. }));
    assert!(site.fabric.events.iter().any(is_admitted));
    assert_eq!((site.state(id), site.entries(1)), (Some(State::Admitted), entries));
}

const RED_AND_BLACK: &str = r#"
[[label]]
name = "red"
addresses = ["10.0.0.1/32"]
[[label]]
name = "black"
addresses = ["10.0.0.2/32"]
[[rule]]
between = ["red", "black"]
decision = "deny"
"#;

#[test]
fn registration_does_not_override_isolation() {
    let isolation = Isolation::parse(RED_AND_BLACK).unwrap_or_else(|error| panic!("{error}"));
    let discovery = discovery::Config { isolation, ..discovery::Config::default() };
    let mut site = Site::with(Config { discovery, ..config() }, 2, &line(2));
    for (from, to) in [(1, 2), (2, 1)] {
        let result = site.register(&Owner::Operator, registration("Camera", from, to));
        assert!(matches!(&result, Err(RegistrationError::Denied(what)) if what.contains("isolation")), "{result:?}");
    }
    let group = Some(([239, 255, 0, 9], 7401).into());
    let result = site.register(&Owner::Operator, Registration { group, ..registration("Camera", 1, 4) });
    assert!(matches!(result, Err(RegistrationError::Denied(_))), "its group reaches every member: {result:?}");
    let id = site.register(&Owner::Operator, registration("Camera", 3, 4)).expect("nothing denies it");
    assert_eq!(site.state(id), Some(State::Admitted));
}

#[test]
fn registration_of_an_unknown_host_is_refused_until_the_host_is_found() {
    let mut site = site();
    let id = site.register(&owner("gateway"), registration("Camera", 5, 2)).expect("the registration is accepted");
    assert_eq!(site.state(id), Some(State::Refused));
    assert_eq!(site.shown(id).reason.as_deref(), Some("the host of the writer, 10.0.0.5, is not known"));
    let host = site.fabric.host(port(1, 7));
    let arp = site.fabric.arp(takt_sdn::frame::ArpOperation::Request, host, 1);
    site.fabric.send_from(host, arp);
    site.run(100);
    assert_eq!(site.state(id), Some(State::Admitted), "{:?}", site.shown(id));
}

#[test]
fn writer_with_a_group_sends_each_sample_once_to_all_registered_readers() {
    let mut site = site();
    let group = Some(([239, 255, 0, 7], 7441).into());
    let to = |reader: &str, to| Registration {
        size: 1_000,
        separation_ns: 20_000_000,
        reader: reader.to_owned(),
        group,
        ..registration("Camera", 1, to)
    };
    let ids = [("first", 2), ("second", 4)].map(|(name, at)| site.register(&owner("gateway"), to(name, at)));
    for id in ids {
        let id = id.expect("the registration is accepted");
        assert_eq!(site.state(id), Some(State::Admitted), "{:?}", site.shown(id));
    }
    assert_eq!(site.entries(1).len(), 3, "one by unicast for each reader, one for the group");
}

#[test]
fn registration_keeps_its_entries_through_a_restart_and_its_lease_begins_again() {
    let mut site = site();
    let wanted = Registration { lease_s: 20, ..registration("Camera", 1, 2) };
    let id = site.register(&owner("gateway"), wanted.clone()).expect("the registration is accepted");
    let refused = site.register(&owner("gateway"), registration("Lidar", 3, 4)).expect("the registration is accepted");
    let before = [1, 2].map(|dpid| site.entries(dpid));
    let records = site.fabric.controller.records();
    site.fabric.restart_with(config(), &records);
    for _ in 0..600 {
        site.run(10);
        assert_eq!([1, 2].map(|dpid| site.entries(dpid)), before, "at {:?}", site.fabric.now);
    }
    assert_eq!((site.state(id), site.state(refused)), (Some(State::Admitted), Some(State::Refused)));
    assert_eq!(site.register(&owner("gateway"), wanted), Ok(id), "an equal registration renews it");
    let next = site.register(&owner("gateway"), Registration { size: 100, ..registration("New", 2, 1) });
    assert!(next.is_ok_and(|next| next > refused), "numbers are not given twice");
    site.run(21_000);
    assert_eq!((site.state(id), site.state(refused)), (None, Some(State::Admitted)));
}

#[test]
fn damaged_registration_record_is_counted_and_skipped() {
    let mut site = site();
    let id = site.register(&owner("gateway"), registration("Camera", 1, 2)).expect("the registration is accepted");
    let mut records: Records = site.fabric.controller.records();
    let key = records.keys().find(|key| key.starts_with("registration/")).expect("the registration is stored").clone();
    records.insert(key, b"{}".to_vec());
    site.fabric.restart_with(config(), &records);
    assert!(site.fabric.events.iter().any(|event| matches!(event, Event::Restored { unreadable: 1, .. })));
    site.run(40_000);
    assert_eq!(site.state(id), None);
    assert!(site.entries(1).is_empty(), "entries without a registration leave");
}

#[test]
fn flood_of_one_owner_is_limited_and_does_not_affect_other_owners() {
    let mut site = site();
    let registered =
        site.register(&owner("plant"), registration("Camera", 1, 2)).expect("the registration is accepted");
    let mut limited = 0;
    for _ in 0..CHANGES_AT_ONCE {
        match site.register(&owner("flooder"), Registration { size: 100, ..registration("Flood", 3, 4) }) {
            Ok(id) => limited += u64::from(site.unregister(&owner("flooder"), id).is_err()),
            Err(RegistrationError::Limit(_)) => limited += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(limited >= CHANGES_AT_ONCE / 2 - 1, "two changes a round: {limited}");
    let other = Registration { size: 100, ..registration("Joint", 2, 1) };
    assert!(site.register(&owner("plant"), other).is_ok(), "another owner has a budget of its own");
    assert_eq!(site.state(registered), Some(State::Admitted));
}

#[test]
fn registrations_beyond_the_limit_are_refused() {
    let mut site = site();
    for number in 0..REGISTRATIONS_MAX as u64 {
        let by = owner(&format!("owner {}", number / CHANGES_AT_ONCE));
        // The hosts do not exist, so nothing is scheduled.
        site.register(&by, registration(&format!("Topic {number}"), 101, 102)).expect("the registration is accepted");
    }
    let one_more = site.register(&Owner::Operator, registration("Camera", 1, 2));
    assert!(matches!(&one_more, Err(RegistrationError::Limit(what)) if what.contains("1024")), "{one_more:?}");
}

#[test]
fn controller_without_a_network_and_standby_refuse_registrations() {
    let mut without = Site::new(1, &[], None);
    let result = without.register(&Owner::Operator, registration("Camera", 1, 2));
    assert_eq!(result, Err(RegistrationError::NoNetwork));
    let mut standby = site();
    standby.fabric.restart_as(None, &Records::new());
    let result = standby.register(&Owner::Operator, registration("Camera", 1, 2));
    assert_eq!(result, Err(RegistrationError::Standby));
}
