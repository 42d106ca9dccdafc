//! Tests of protected pairs with simulated switches: groups and entries, links that fail with and
//! without a controller, links that return.

use takt_openflow::action::Action;
use takt_openflow::group::{BucketProperty, GroupMod, GroupType};
use takt_openflow::instruction::Instruction;
use takt_sdn::admission::Protection;
use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Pair;
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::rules::GROUPS;
use takt_sdn::schedule::Coverage;
use takt_sdn::view::ProtectionState;

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::{line, port, ring};

/// Contract that uses 2 of 20 Mbit/s.
const OFFER: &str = "rt.minsep=5ms;rt.maxsize=1000;rt.protected=true";
const REQUEST: &str = "rt.e2e=100ms";

/// Creates a protected pair from the first switch of a ring of three to the last, which are
/// adjacent.
fn protected(site: &mut Site) -> Pair {
    let (writer, reader) = (site.writer(0, "Brake", OFFER), site.reader(1, "Brake", REQUEST));
    let pair = Pair {
        writer: site.nodes[0].writer_guid(writer).expect("the endpoint exists"),
        reader: site.nodes[1].reader_guid(reader).expect("the endpoint exists"),
    };
    site.run(1_000);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    pair
}

/// Returns the reported protection of a pair, in order.
fn reported(site: &Site, pair: Pair) -> Vec<&Protection> {
    let of_pair = |event| match event {
        &Event::Protection { pair: own, ref protection } if own == pair => Some(protection),
        _ => None,
    };
    site.fabric.events.iter().filter_map(of_pair).collect()
}

const fn covered(links: usize) -> Protection {
    Protection::Covered(Coverage { links, total: links })
}

/// Returns the groups of flows in a switch, with the ports that they watch.
fn groups(site: &Site, dpid: u64) -> Vec<(GroupType, Vec<u32>)> {
    let groups = site.fabric.switches[&dpid].groups.range(GROUPS);
    let watched = |group: &GroupMod| {
        let properties = group.buckets.iter().flat_map(|bucket| &bucket.properties);
        let ports = properties.filter_map(|property| match property {
            BucketProperty::WatchPort(port) => Some(port.0),
            _ => None,
        });
        ports.collect()
    };
    groups.map(|(_, group)| (group.kind, watched(group))).collect()
}

/// Sends a sample every 10 ms, and a frame in the opposite direction every 100 ms, and checks that
/// each arrives once, in a class.
fn exchange(site: &mut Site, count: usize, context: &str) {
    for number in 0..count {
        site.run(10);
        let is_answered = number % 10 == 9;
        for (from, to, len) in [(0, 1, 1000), (1, 0, 60)].into_iter().take(1 + usize::from(is_answered)) {
            let got = site.classes_of(from, to, 1, len);
            assert!(matches!(got.as_slice(), [dscp] if CLASSES.contains(dscp)), "{context}, {from} to {to}: {got:?}");
        }
    }
}

/// Creates a site with a protected pair on a ring.
fn site() -> (Site, Pair) {
    let mut site = Site::new(3, &ring(), Some(NETWORK));
    let pair = protected(&mut site);
    (site, pair)
}

#[test]
fn switches_of_a_protected_pair_have_failover_groups_and_backup_entries() {
    let (site, pair) = site();
    assert_eq!(reported(&site, pair), [&covered(1)]);
    // Samples leave the first switch, ACKNACKs the last one. The first port of each group leads to
    // the other.
    assert_eq!(groups(&site, 1), [(GroupType::FastFailover, vec![2, 1])]);
    assert_eq!(groups(&site, 2), []);
    assert_eq!(groups(&site, 3), [(GroupType::FastFailover, vec![1, 2])]);
    assert_eq!([1, 2, 3].map(|dpid| site.entries(dpid).len()), [3, 2, 3], "of the second ways one more at each end");
    let to_groups = site.entries(1).into_iter().flat_map(|flow| flow.instructions).filter(|instruction| {
        matches!(instruction, Instruction::ApplyActions(actions) if matches!(actions.as_slice(), [Action::Group(_)]))
    });
    assert_eq!(to_groups.count(), 1);
    let view = site.fabric.controller.view(site.fabric.now);
    let of_pair = view.pairs.iter().find_map(|pair| pair.protection.as_ref()).expect("the pair requests protection");
    assert_eq!((of_pair.state, of_pair.links, of_pair.of), (ProtectionState::Protected, 1, 1));
    assert_eq!(of_pair.backup_paths.len(), 2, "of samples and of ACKNACKs");
}

#[test]
fn samples_continue_after_a_link_failure_without_a_controller() {
    let (mut site, _) = site();
    site.fabric.stalled.extend([1, 2, 3]);
    let before = [1, 2, 3].map(|dpid| site.entries(dpid));
    exchange(&mut site, 5, "before");
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    exchange(&mut site, 50, "the link failed");
    site.fabric.set_cable(port(1, 2), port(3, 1), true);
    exchange(&mut site, 50, "the link is back");
    assert_eq!([1, 2, 3].map(|dpid| site.entries(dpid)), before, "no switch received a change");
}

#[test]
fn controller_keeps_the_backup_path_without_a_gap_and_protects_again_when_the_link_returns() {
    let (mut site, pair) = site();
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    exchange(&mut site, 100, "the link failed");
    let [_, fallen_back, unprotected] = reported(&site, pair)[..] else { panic!("{:?}", reported(&site, pair)) };
    assert_eq!(*fallen_back, Protection::FallenBack);
    assert!(matches!(unprotected, Protection::Unprotected(why) if why.contains("detour")), "{unprotected:?}");
    assert_eq!([1, 2, 3].map(|dpid| groups(&site, dpid).len()), [0; 3], "their flows need none");
    assert_eq!([1, 2, 3].map(|dpid| site.entries(dpid).len()), [2; 3], "entries of the first way have gone");
    site.fabric.set_cable(port(1, 2), port(3, 1), true);
    exchange(&mut site, 500, "the link is back");
    assert_eq!(reported(&site, pair).last(), Some(&&covered(2)), "its way has two links now");
    assert_eq!(groups(&site, 1), [(GroupType::FastFailover, vec![1, 2])], "the way is that since the failure");
    for (a, b) in ring() {
        site.fabric.set_cable(a, b, false);
        exchange(&mut site, 100, &format!("{a} to {b} failed"));
        site.fabric.set_cable(a, b, true);
        exchange(&mut site, 500, &format!("{a} to {b} is back"));
    }
}

#[test]
fn silent_link_is_replaced_by_the_backup_path_once_the_controller_detects_it() {
    let (mut site, pair) = site();
    site.fabric.break_silently(port(1, 2), port(3, 1));
    site.run(100);
    assert!(site.classes(0, 1, 1).is_empty(), "the port reports no failure");
    site.run(4_000);
    exchange(&mut site, 10, "the link is lost");
    assert!(reported(&site, pair).contains(&&Protection::FallenBack), "{:?}", reported(&site, pair));
}

#[test]
fn pair_without_a_backup_path_is_admitted_and_reported_as_unprotected() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let pair = protected(&mut site);
    assert!(matches!(reported(&site, pair)[..], [Protection::Unprotected(_)]), "{:?}", reported(&site, pair));
    let view = site.fabric.controller.view(site.fabric.now);
    let of_pair = view.pairs.iter().find_map(|pair| pair.protection.as_ref()).expect("the pair requests protection");
    assert_eq!(of_pair.state, ProtectionState::Unprotected);
    assert!(of_pair.reason.is_some());
}

#[test]
fn pair_stays_admitted_without_protection_when_a_switch_refuses_its_group() {
    let mut site = Site::new(3, &ring(), Some(NETWORK));
    site.fabric.switch(1).has_failover = false;
    let pair = protected(&mut site);
    exchange(&mut site, 50, "refused");
    let last = reported(&site, pair).last().copied();
    assert!(matches!(last, Some(Protection::Unprotected(why)) if why.contains("refuses")), "{last:?}");
    assert_eq!(groups(&site, 1), []);
    assert_eq!(site.entries(1).len(), 3, "samples, ACKNACKs, and the second way of ACKNACKs");
}

#[test]
fn protected_pair_keeps_its_entries_and_groups_through_a_restart() {
    let (mut site, pair) = site();
    let tables = |site: &Site| [1, 2, 3].map(|dpid| (site.entries(dpid), groups(site, dpid)));
    let (before, records) = (tables(&site), site.fabric.controller.records());
    let network = NetworkFile::parse("network.toml", NETWORK, SwitchModel::built_in).expect("a valid file");
    site.fabric.restart_with(Config { network: Some(network), ..Config::default() }, &records);
    for _ in 0..600 {
        site.run(10);
        assert_eq!(tables(&site), before, "at {:?}", site.fabric.now);
    }
    assert_eq!(reported(&site, pair), [&covered(1)]);
    site.fabric.set_cable(port(1, 2), port(3, 1), false);
    exchange(&mut site, 50, "the link failed");
}

#[test]
fn groups_are_deleted_with_their_pair() {
    let (mut site, _) = site();
    site.nodes.remove(0);
    site.fabric.hosts[0].inbox.clear();
    let lease = 120_000;
    for _ in 0..lease / 1_000 {
        site.fabric.pass(std::time::Duration::from_secs(1));
    }
    assert_eq!([1, 2, 3].map(|dpid| (site.entries(dpid).len(), groups(&site, dpid).len())), [(0, 0); 3]);
}
