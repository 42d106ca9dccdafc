//! Tests of traffic measurement: counters of switches in the state of the controller, and the
//! report of a writer that violates its contract.

use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_sdn::store::Records;
use takt_sdn::view::{FlowTraffic, Port};

use crate::admission::{NETWORK, Site};
use crate::fabric::line;
use crate::view::view;

/// Longer than the polling cycle of the switches, in ms.
const CYCLE: u64 = 2_100;

fn port(site: &Site, switch: usize, number: u32) -> Port {
    let ports = view(site).switches[switch].ports.clone();
    ports.into_iter().find(|port| port.number == number).expect("the switch has eight ports")
}

fn reports(site: &Site) -> Vec<&Event> {
    site.fabric.events.iter().filter(|event| matches!(event, Event::ContractBroken { .. })).collect()
}

/// Creates an admitted pair of host 0 and host 1: samples of one datagram, 5 ms apart, of which
/// four may arrive at once.
fn admitted() -> Site {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let writer = site.writer(0, "Joint", "rt.minsep=5ms;rt.maxsize=1000");
    let reader = site.reader(1, "Joint", "rt.e2e=100ms");
    site.run(CYCLE);
    assert!(site.is_matched(0, writer, reader), "{:?}", site.fabric.events);
    site
}

fn traffic(site: &Site) -> FlowTraffic {
    let view = view(site);
    let pair = view.pairs.iter().find(|pair| pair.topic == "Joint").expect("the pair matches");
    pair.traffic.expect("its meter was read")
}

#[test]
fn ports_show_the_switch_counters_and_the_rate_of_the_last_interval() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    let frame = site.fabric.udp(0, 1, 4000, &[0; 958]);
    assert_eq!(frame.len(), 1000);
    site.fabric.send_from(0, frame.clone());
    site.run(2 * CYCLE);
    let before = port(&site, 0, 1).traffic.expect("the counters were read").sent;
    // Half the capacity of the link in an interval.
    (0..2_500).for_each(|_| site.fabric.send_from(0, frame.clone()));
    site.run(CYCLE);
    let (link, edge) = (port(&site, 0, 1).traffic.expect("counters"), port(&site, 1, 5).traffic.expect("too"));
    let sent = link.sent.frames.zip(before.frames).map(|(now, before)| now - before);
    assert!(sent.is_some_and(|frames| (2_500..2_600).contains(&frames)), "{link:?}");
    assert!(edge.sent.octets.is_some_and(|octets| octets >= 2_500_000), "{edge:?}");
    let rate = link.sent.rate_bps.expect("two readings");
    assert!((9_900_000..10_500_000).contains(&rate), "2,500 frames of 1,000 octets in 2 s: {link:?}");
    let share = link.sent_ppm.expect("the rate of the port is known");
    assert!((500_000..540_000).contains(&share), "of 20 Mbit/s: {link:?}");
    let received = port(&site, 1, 2).traffic.expect("the counters were read").received;
    let other = received.frames.zip(link.sent.frames).map(|(received, sent)| received.abs_diff(sent));
    assert!(other.is_some_and(|frames| frames < 10), "the other end of the link, read at another time: {received:?}");
    site.run(2 * CYCLE);
    assert!(port(&site, 0, 1).traffic.expect("counters").sent.rate_bps.is_some_and(|rate| rate < 100_000));
    site.fabric.disconnect(1);
    assert_eq!(port(&site, 0, 1).traffic, None, "nothing is known of a switch without a connection");
}

#[test]
fn unresponsive_switch_gets_no_further_counter_requests_but_still_gets_changes() {
    let mut site = Site::new(2, &line(2), Some(NETWORK));
    site.fabric.switch(1).is_silent = true;
    site.run(CYCLE);
    let polls = site.fabric.switch(1).polls;
    // Requests time out after 5 s.
    site.run(2_000);
    assert!(site.fabric.switch(1).polls <= polls + 1, "no further request while one is outstanding");
    let (pair, ..) = site.pair(0, "Camera", 0);
    site.run(20_000);
    assert!(site.is_admitted(pair), "counters keep no change waiting");
    let counters = view(&site).counters;
    assert!(counters["polls_left_out"] > 0 && counters["polls_failed"] > 0, "{counters:?}");
    assert!(site.fabric.switch(1).polls < site.fabric.switch(2).polls, "the other one is read each 2 s");
    assert!(site.fabric.controller.is_settled());
}

#[test]
fn queues_show_the_switch_counters_and_a_switch_without_them_is_queried_once() {
    let text = NETWORK.replace("ovs-netdev", "generic-hardware");
    let network = NetworkFile::parse("network.toml", &text, SwitchModel::built_in).expect("the network file is valid");
    let mut site = Site::with(Config { network: Some(network), ..Config::default() }, 2, &line(2));
    site.fabric.switch(2).queues = None;
    let queues = site.fabric.switch(1).queues.as_mut().expect("the switch has queues");
    queues.insert((1, 7), [50, 6_000]);
    // The model has no such queue.
    queues.insert((1, 99), [1, 60]);
    let failed = view(&site).counters["polls_failed"];
    site.run(3 * CYCLE);
    let own = port(&site, 0, 1).queues;
    assert_eq!(own[0].set_queue, Some(7));
    assert_eq!(own[0].traffic.map(|traffic| (traffic.frames, traffic.octets)), Some((Some(50), Some(6_000))));
    assert!(port(&site, 1, 2).queues.iter().all(|queue| queue.traffic.is_none()));
    assert!(view(&site).counters["polls_failed"] <= failed + 1, "the request was refused once");
}

#[test]
fn writer_within_its_contract_is_not_reported() {
    let mut site = admitted();
    for _ in 0..400 {
        assert_eq!(site.classes(0, 1, 1).len(), 1, "the frame passes the meter");
        site.run(10);
    }
    site.run(CYCLE);
    assert_eq!(reports(&site), Vec::<&Event>::new());
    let traffic = traffic(&site);
    assert!(traffic.samples.frames.is_some_and(|frames| frames >= 400), "{traffic:?}");
    assert_eq!((traffic.samples.dropped, traffic.breaks_contract, traffic.sharers), (Some(0), false, 1));
    assert!(traffic.answers.is_some(), "the pair is reliable");
}

#[test]
fn writer_that_violates_its_contract_is_reported_once_per_episode() {
    let mut site = admitted();
    for _ in 0..4 {
        let delivered = site.classes(0, 1, 1_000).len();
        assert!(delivered < 100, "the meter drops the rest: {delivered}");
        site.run(1_000);
    }
    site.run(CYCLE);
    let found = reports(&site);
    let [Event::ContractBroken { flow, pairs, dropped, frames }] = found.as_slice() else { panic!("{found:?}") };
    assert!(flow.starts_with("Joint ") && pairs.len() == 1, "{flow}, {pairs:?}");
    assert!(*dropped > 900 && dropped < frames, "{dropped} of {frames}");
    let during = traffic(&site);
    assert!(during.breaks_contract && during.samples.dropped.is_some_and(|dropped| dropped > 3_600), "{during:?}");
    // Three readings without drops end the episode.
    site.run(4 * CYCLE);
    assert!(!traffic(&site).breaks_contract);
    site.classes(0, 1, 1_000);
    site.run(CYCLE);
    assert_eq!(reports(&site).len(), 2, "a new episode");
    assert_eq!(view(&site).counters["contracts_broken"], 2);
}

#[test]
fn standby_and_controller_without_a_cycle_read_no_counters() {
    let mut site = Site::with(Config { poll_cycle: None, ..Config::default() }, 1, &[]);
    site.run(2 * CYCLE);
    assert_eq!((site.fabric.switch(1).polls, port(&site, 0, 1).traffic), (0, None));
    let mut standby = Site::new(1, &[], None);
    standby.fabric.restart_as(None, &Records::new());
    let before = standby.fabric.switch(1).polls;
    standby.run(2 * CYCLE);
    assert_eq!(standby.fabric.switch(1).polls, before);
}
