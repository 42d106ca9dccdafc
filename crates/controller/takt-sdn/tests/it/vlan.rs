//! Tests of pairs with contracts in VLANs: admitted with a class after the tag, separate from
//! untagged frames and frames of other VLANs.

use std::net::Ipv4Addr;

use takt_openflow::meter::Band;
use takt_sdn::frame::{ArpOperation, ArpPacket, Frame, MacAddress, VlanTag, arp_frame};

use crate::admission::{CLASSES, NETWORK, Site};
use crate::fabric::{line, port};
use crate::multicast::{copies, described, is_classed};
use crate::plain_ethernet::igmp;

const TAG: VlanTag = VlanTag { pcp: 3, dei: false, vid: 5 };
const OTHER: VlanTag = VlanTag { pcp: 3, dei: false, vid: 6 };
const USER: u16 = 7411;
const SAMPLES: u16 = 7401;

/// Makes a host announce its address in a VLAN.
fn say_where(site: &mut Site, host: usize, tags: &[VlanTag]) {
    let (from, to) = (&site.fabric.hosts[host], &site.fabric.hosts[(host + 1) % 4]);
    let target = (MacAddress::default(), to.address);
    let packet = ArpPacket { operation: ArpOperation::Request, sender: (from.mac, from.address), target };
    let frame = arp_frame(MacAddress::BROADCAST, from.mac, tags, &packet);
    site.fabric.send_from(host, frame);
}

/// Starts new participants on the nodes, all with the same tags.
fn begin(site: &mut Site, tags: &[VlanTag]) {
    let count = site.nodes.len();
    // The earlier participants end without a disposal.
    site.nodes.clear();
    site.tags = tags.to_vec();
    for node in 0..count {
        say_where(site, node, tags);
        let participant = site.participant_of_run(4, node);
        site.nodes.push(participant);
    }
    site.run(2_000);
}

fn site_in(tags: &[VlanTag]) -> Site {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    begin(&mut site, tags);
    site
}

/// Returns the tags and the DSCP of a datagram to the user port of node 1 that node 0 sends with
/// these tags.
fn class_of(site: &mut Site, tags: &[VlanTag]) -> Option<(Vec<VlanTag>, u8)> {
    site.tags = tags.to_vec();
    let frame = site.datagram(0, (site.fabric.hosts[1].address, USER).into(), &[0; 1000]);
    site.fabric.hosts[1].inbox.clear();
    site.fabric.send_from(0, frame);
    let got = std::mem::take(&mut site.fabric.hosts[1].inbox);
    let parsed = got.iter().map(|bytes| Frame::parse(bytes).expect("a frame"));
    let mut datagrams = parsed.filter(|frame| frame.udp().is_some_and(|(_, udp)| udp.destination_port() == USER));
    datagrams.next().map(|frame| (frame.tags().to_vec(), frame.payload()[1] >> 2))
}

/// Returns the rate in kbit/s of the meter of the only flow of samples.
fn rate_kbps(site: &Site) -> u32 {
    match site.fabric.switches[&1].meters[&0x1000].bands.as_slice() {
        [Band::Drop { rate, .. }] => *rate,
        other => panic!("a meter of one band: {other:?}"),
    }
}

#[test]
fn pair_in_a_vlan_has_a_class_and_untagged_frames_have_none() {
    let mut site = site_in(&[TAG]);
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair), "{:?}", site.fabric.events);
    assert!(site.is_matched(0, writer, reader));
    let (tags, class) = class_of(&mut site, &[TAG]).expect("the frame arrives");
    assert_eq!(tags, [TAG], "the tag is unchanged");
    assert!(CLASSES.contains(&class), "{class}");
    for tags in [&[][..], &[OTHER]] {
        let other = class_of(&mut site, tags);
        assert_eq!(other, Some((tags.to_vec(), 0)), "same addresses and port, other VLAN");
    }
    let mut untagged = site_in(&[]);
    let (pair, ..) = untagged.pair(0, "Camera", 0);
    untagged.run(1_000);
    assert!(untagged.is_admitted(pair));
    // 4 more octets in each of 6 datagrams per 5 ms, of samples and of HEARTBEATs.
    let more = rate_kbps(&site) - rate_kbps(&untagged);
    assert!((38..=43).contains(&more), "{more} kbit/s");
}

#[test]
fn pair_without_a_contract_matches_in_a_vlan_and_a_topic_that_shares_its_sockets_is_refused() {
    let mut site = site_in(&[TAG]);
    let (writer, reader) = (site.writer(0, "Log", ""), site.reader(1, "Log", ""));
    site.run(1_000);
    assert!(site.is_matched(0, writer, reader));
    let (second, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    let reason = site.refusal(second).unwrap_or_else(|| panic!("{:?}", site.fabric.events));
    assert!(reason.contains("Log"), "both are in the VLAN: {reason}");
}

#[test]
fn writer_and_reader_in_different_vlans_are_refused_with_both_named() {
    let mut site = site_in(&[TAG]);
    // The reader's participant restarts with untagged frames. No switch changes tags, as a router
    // would.
    let participant = site.participant_of_run(5, 1);
    site.nodes[1] = participant;
    site.untagged = Some(1);
    site.run(1_000);
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    let reason = site.refusal(pair).unwrap_or_else(|| panic!("{:?}", site.fabric.events));
    assert!(
        reason.contains("the writer sends in VLAN 5") && reason.contains("the reader sends without a VLAN tag"),
        "{reason}"
    );
    assert_eq!(site.entries(1), []);
}

#[test]
fn frames_with_two_tags_are_refused_a_class() {
    let mut site = site_in(&[TAG, OTHER]);
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    let reason = site.refusal(pair).unwrap_or_else(|| panic!("{:?}", site.fabric.events));
    assert!(reason.contains("several VLAN tags"), "{reason}");
}

#[test]
fn claim_of_an_address_in_another_vlan_moves_no_admitted_flow() {
    let mut site = site_in(&[TAG]);
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair));
    let before = [1, 2].map(|dpid| site.entries(dpid));
    // The writer's Ethernet address, at another port, in another VLAN.
    let mut claim = site.fabric.udp(0, 1, 9, b"mine");
    claim.splice(12..12, [0x81, 0, 0, 6]);
    site.fabric.send(port(1, 6), claim);
    site.run(1_000);
    assert_eq!([1, 2].map(|dpid| site.entries(dpid)), before);
    let classes = site.classes(0, 1, 1);
    assert!(CLASSES.contains(&classes[0]), "{classes:?}");
    assert_eq!(site.refusal(pair), None);
}

#[test]
fn claim_of_an_ip_address_in_another_vlan_moves_no_participant() {
    let mut site = site_in(&[TAG]);
    // The attacker, host 2, has the address of the writer's host in a VLAN of its own.
    let address = site.fabric.hosts[2].address;
    site.fabric.hosts[2].address = site.fabric.hosts[0].address;
    say_where(&mut site, 2, &[OTHER]);
    site.fabric.hosts[2].address = address;
    let (pair, writer, reader) = site.pair(0, "Camera", 0);
    site.run(1_000);
    assert!(site.is_admitted(pair), "announcements of the writer are believed as before: {:?}", site.fabric.events);
    assert!(site.is_matched(0, writer, reader));
}

/// Hosts in VLANs get no membership queries: every edge gets a copy, as without admission.
#[test]
fn multicast_samples_in_a_vlan_have_their_class_only_at_admitted_readers() {
    let mut site = described(NETWORK, 2, &line(2), SAMPLES);
    begin(&mut site, &[TAG]);
    // An untagged report of a host does not apply to the VLAN.
    site.fabric.send_from(0, igmp(&site.fabric, 0, 0x16, Ipv4Addr::new(239, 255, 0, 1)));
    let writer = site.writer(0, "Camera", "rt.minsep=5ms;rt.maxsize=1000");
    for node in [1, 3] {
        site.reader(node, "Camera", "rt.e2e=100ms");
    }
    site.run(2_000);
    assert_eq!(site.nodes[0].matched_subscriptions(writer).expect("exists").len(), 2, "{:?}", site.fabric.events);
    let copies = copies(&mut site);
    assert!(is_classed(&copies[1]) && is_classed(&copies[3]), "{copies:?}");
    assert_eq!((&copies[0], &copies[2]), (&vec![], &vec![0]), "the others");
}
