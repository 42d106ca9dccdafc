//! Tests of the class of control traffic, which keeps links, leases and discovery alive during an
//! overload of every link.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Event as DiscoveryEvent;
use takt_sdn::topology;
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::{CLASSES, LabText};
use takt_testkit::waiting::LIMIT;
use takt_testkit::{not_run, overload, require};

use super::station::Station;
use super::{
    FLOOD_PORT, FLOODED, FLOODER, LISTENER, OFFER, RATE, REQUEST, SAMPLE_LEN, TALKER, counters, flood, network,
};
use crate::site::{Running, State, socket, up};

const CONTROL: &str = r#"
[[classes]]
name = "control"
dscp = [48]
ether_types = [0x0806, 0x88cc]
frames = 100
"#;
const OVERLOAD: Duration = Duration::from_secs(20);

const BACK_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 4);

/// Returns a network in which both directions of the link between the switches are overloaded by
/// hosts whose own links are not the bottleneck. A frame that is not dropped waits in the full
/// queue for other traffic for longer than the maximum transit time of a probe.
fn two_ways(control: &str) -> LabText {
    let (marked, others) = CLASSES.split_at(CLASSES.rfind("[[classes]]").expect("the text has classes"));
    let classes = format!("{marked}{control}{}", others.replace("frames = 256", "frames = 3000"));
    let text = LabText::controlled(&["west", "east"]).switch_priority(30).classes(&classes);
    let text = text.host("talker", "10.8.1.1/24", "west").host("flooder", "10.8.1.3/24", "west");
    let text = text.link_of_rate("west", "east", RATE).host_of_rate("listener", "10.8.1.2/24", "east", RATE);
    text.host("back", "10.8.1.4/24", "east")
}

/// Two participants, each with an endpoint of both pairs.
struct Pairs {
    talker: Station,
    listener: Station,
}

impl Pairs {
    fn run(&mut self, until: Instant) {
        while Instant::now() < until {
            self.talker.run_until(Instant::now() + Duration::from_millis(5));
            self.listener.run_until(Instant::now() + Duration::from_millis(5));
        }
    }

    fn run_while(&mut self, what: &str, mut is_waiting: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while is_waiting(self) {
            assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
            self.run(Instant::now() + Duration::from_millis(10));
        }
    }
}

/// Runs two pairs, of which one matches before the overload and the other during it. Returns the
/// events of the controller.
fn run(test: &str, control: &str) -> (Vec<Event>, String) {
    let _alone = overload::lock();
    let lab = up(test, &two_ways(control));
    let running = Running::start(&lab, Config { network: Some(network()), ..Config::default() });
    running.wait("two switches, four hosts", State::settled(1, 1, 4));
    let [flooding, sinking, back] = [("flooder", FLOODER), ("listener", LISTENER), ("back", BACK_ADDRESS)]
        .map(|(host, address)| socket(&lab, host, (address, FLOOD_PORT).into()));
    let sink = Sink::start(sinking);
    let talker = Station::open(&lab, "talker", TALKER, 1);
    let mut pairs = Pairs { talker, listener: Station::open(&lab, "listener", LISTENER, 2) };
    let writer = pairs.talker.writer("Steering", OFFER, SAMPLE_LEN);
    let reader = pairs.listener.reader("Steering", REQUEST);
    pairs.run_while("the first pair matches", |pairs| {
        !pairs.talker.is_matched_writer(writer) || !pairs.listener.is_matched_reader(reader)
    });
    // A link is lost when probes of either direction do not arrive.
    let floods = [flood(flooding, LISTENER), flood(back, FLOODER)];
    pairs.run_while("the flood arrives", |_| sink.received() < FLOODED);
    pairs.run(Instant::now() + OVERLOAD);
    if !control.is_empty() {
        assert!(pairs.talker.is_matched_writer(writer) && pairs.listener.is_matched_reader(reader));
        let writer = pairs.listener.writer("Throttle", OFFER, SAMPLE_LEN);
        let reader = pairs.talker.reader("Throttle", REQUEST);
        pairs.run_while("the second pair matches", |pairs| {
            !pairs.listener.is_matched_writer(writer) || !pairs.talker.is_matched_reader(reader)
        });
    }
    let sent: u64 = floods.into_iter().map(Flood::end).sum();
    let counters = format!("floods: {sent} sent, {} arrived at one end\n{}", sink.end(), counters(&lab));
    let events = running.stop();
    lab.remove().expect("the lab can be removed");
    (events, counters)
}

fn lost_links(events: &[Event]) -> usize {
    let is_lost = |event: &&Event| matches!(event, Event::Topology(topology::Event::LinkLost(..)));
    events.iter().filter(is_lost).count()
}

#[test]
fn links_and_leases_survive_an_overload_during_which_a_new_pair_is_admitted() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let (events, counters) = run("control", CONTROL);
    let is_gone = |event: &&Event| matches!(event, Event::Discovery(DiscoveryEvent::ParticipantGone { .. }));
    assert_eq!(events.iter().filter(is_gone).count(), 0, "{events:?}\n{counters}");
    assert_eq!(lost_links(&events), 0, "{events:?}\n{counters}");
    let admitted = events.iter().filter(|event| matches!(event, Event::Admitted { .. }));
    assert_eq!(admitted.count(), 2, "{events:?}\n{counters}");
}

/// Verifies that the test above depends on the class: where the switches have none, LLDP waits in
/// the queue of the flood, and the link is lost.
#[test]
fn link_is_lost_in_an_overload_where_a_switch_lacks_the_class_of_control_traffic() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let (events, counters) = run("uncontrolled", "");
    assert!(lost_links(&events) > 0, "{counters}");
}
