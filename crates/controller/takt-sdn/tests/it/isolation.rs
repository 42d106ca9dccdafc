//! Tests of an isolation policy with simulated switches: denied pairs do not match, and switches
//! drop traffic between their hosts.

use std::net::Ipv4Addr;

use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::{self, Event as DiscoveryEvent};
use takt_sdn::forwarding::rules::Kind;
use takt_sdn::frame::MacAddress;
use takt_sdn::isolation::Isolation;
use takt_sdn::model::{NetworkFile, SwitchModel};

use crate::admission::{NETWORK, Site};
use crate::fabric::line;

/// Hosts have the addresses 10.0.0.1 to 10.0.0.4.
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

const DOMAIN_ALONE: &str = r#"
default = "deny"
[[label]]
name = "robots"
domains = [0]
[[rule]]
between = ["robots", "robots"]
decision = "allow"
"#;

fn site(policy: &str) -> Site {
    let network = NetworkFile::parse("network.toml", NETWORK, SwitchModel::built_in).expect("a valid file");
    let isolation = Isolation::parse(policy).unwrap_or_else(|error| panic!("{error}"));
    let discovery = discovery::Config { isolation, ..discovery::Config::default() };
    Site::with(Config { network: Some(network), discovery, ..Config::default() }, 2, &line(2))
}

/// Reports whether a datagram to a port arrives, both by rules of switches and through the
/// controller.
fn reaches(site: &mut Site, from: usize, to: usize, port: u16) -> bool {
    let arrived = (0..3).map(|n: u8| {
        let frame = site.fabric.udp(from, to, port, &[b'x', n]);
        site.fabric.send_from(from, frame.clone());
        site.fabric.received(&frame)[to]
    });
    arrived.sum::<usize>() > 0
}

fn denials(site: &Site) -> usize {
    let is_denied = |event: &&Event| matches!(event, Event::Discovery(DiscoveryEvent::PairDenied { .. }));
    site.fabric.events.iter().filter(is_denied).count()
}

#[test]
fn denied_pair_does_not_match_and_its_hosts_cannot_reach_each_other() {
    let mut site = site(RED_AND_BLACK);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    let (other, other_writer, other_reader) = site.pair(2, "Lidar", 0);
    site.run(1_000);
    assert!(!site.is_admitted(pair) && !site.is_matched(0, writer, reader), "{:?}", site.fabric.events);
    assert!(site.is_admitted(other) && site.is_matched(2, other_writer, other_reader));
    assert_eq!(denials(&site), 1, "{:?}", site.fabric.events);
    assert_eq!(
        [(0, 1), (1, 0), (0, 3), (3, 1)].map(|(a, b)| reaches(&mut site, a, b, 4000)),
        [false, false, true, true]
    );
    let drops = site.fabric.switch(1).rules.iter().filter(|rule| rule.flow.cookie == Kind::Isolation.cookie()).count();
    assert_eq!(drops, 4, "both directions, and the groups of both");
}

#[test]
fn group_is_not_reached_by_a_host_that_may_not_reach_every_other() {
    let mut site = site(RED_AND_BLACK);
    let group = (MacAddress([1, 0, 0x5e, 0x7f, 0, 9]), Ipv4Addr::new(239, 255, 0, 9));
    for (from, expected) in [(0, 0), (3, 3)] {
        let fabric = &site.fabric;
        let frame = fabric.udp_to(&fabric.hosts[from], group.0, group.1, 7401, &[], b"sample");
        site.fabric.send_from(from, frame.clone());
        assert_eq!(site.fabric.received(&frame).iter().sum::<usize>(), expected, "from {from}");
    }
}

#[test]
fn pair_without_a_contract_is_denied_as_well() {
    let mut site = site(RED_AND_BLACK);
    let (writer, reader) = (site.writer(0, "Chat", ""), site.reader(1, "Chat", ""));
    let (other, its) = (site.writer(2, "Chat", ""), site.reader(3, "Talk", ""));
    let talk = site.writer(2, "Talk", "");
    site.run(2_000);
    assert!(!site.is_matched(0, writer, reader), "{:?}", site.fabric.events);
    assert!(site.is_matched(2, talk, its));
    let readers = site.nodes[2].matched_subscriptions(other).expect("the writer exists");
    assert_eq!(readers.len(), 1, "the reader of black, from a host without a label");
}

#[test]
fn default_deny_passes_only_samples_of_participants_that_a_rule_allows() {
    let mut site = site(DOMAIN_ALONE);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair) && site.is_matched(0, writer, reader), "{:?}", site.fabric.events);
    // The user port of every participant is 7411. Samples of the pair itself have a class and use
    // entries of their own.
    assert_eq!(
        [(0, 3, 7411), (2, 3, 7411), (0, 1, 4000), (3, 0, 22)].map(|(a, b, port)| reaches(&mut site, a, b, port)),
        [true, true, false, false]
    );
    let view = site.fabric.controller.view(site.fabric.now);
    assert!(view.participants.iter().all(|participant| participant.labels == ["robots"]));
    let isolation = view.isolation.expect("something is denied");
    assert_eq!((isolation.default.as_str(), isolation.rules, isolation.denied_pairs), ("deny", 1, 0));
    assert!(isolation.filters > 2, "{isolation:?}");
}
