//! Tests of registered senders of plain UDP, which stand for secured writers with unreadable
//! discovery. A registered sender loses nothing under the overload; one that violates its contract
//! is reported.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt_lab::Lab;
use takt_sdn::api::controller_client::Source;
use takt_sdn::controller::{Config, Event};
use takt_sdn::registration::{Owner, Registration, State as Decided};
use takt_sdn::view::{FlowTraffic, View};
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::CLASSES;
use takt_testkit::waiting::{until, until_some};
use takt_testkit::{not_run, overload, require};

use super::{
    FLOOD_PORT, FLOODED, FLOODER, LISTENER, SAMPLE_LEN, SAMPLES, SEPARATION, SETTLING, TALKER, counters, flood,
    network, two_switches,
};
use crate::site::{Running, State, socket, up};

const PORT: u16 = 7421;
/// Payload of datagrams that let the controller find the hosts.
const GREETING: &[u8] = b"greeting";

/// Returns the contract of the senders: 1,000 octets every 5 ms, which may wait for a processor
/// before the meter.
fn registration() -> Registration {
    Registration {
        topic: "Secured".to_owned(),
        writer: "talker".to_owned(),
        reader: "listener".to_owned(),
        from: TALKER.into(),
        to: LISTENER.into(),
        port: PORT,
        answer_port: None,
        group: None,
        separation_ns: 5_000_000,
        jitter_ns: Some(50_000_000),
        size: SAMPLE_LEN as u32,
        limit_ns: 50_000_000,
        importance: 0,
        protected: false,
        overhead: 0,
        lease_s: 600,
    }
}

/// Registers the pair once the hosts are known, and waits for its admission.
fn register(running: &Running) {
    until_some("the registration is admitted", || {
        let result = running.questions.register(&Owner::Operator, registration()).expect("the controller answers");
        let registered = result.unwrap_or_else(|why| panic!("{why}"));
        let state = registered.pair.registration.expect("the pair is registered").state;
        (state == Decided::Admitted).then_some(())
    });
}

/// Sends numbered samples at least `separation` apart.
fn send(from: &UdpSocket, separation: Duration) {
    let mut sample = [0; SAMPLE_LEN];
    for number in 0..SAMPLES {
        sample[..4].copy_from_slice(&number.to_le_bytes());
        from.send_to(&sample, (LISTENER, PORT)).expect("a route exists");
        // tidy-allow(sleep): the workload sends one sample per separation.
        std::thread::sleep(separation);
    }
}

/// Receives samples until all are sent and no more arrive. Returns the number of distinct ones.
fn take(at: &UdpSocket, is_sent: &AtomicBool) -> usize {
    at.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let (mut numbers, mut sent_at) = (std::collections::BTreeSet::new(), None);
    let mut buffer = [0; SAMPLE_LEN];
    while sent_at.is_none_or(|at: Instant| at.elapsed() < SETTLING) {
        if let Ok(SAMPLE_LEN) = at.recv(&mut buffer) {
            numbers.insert(u32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]));
        }
        if sent_at.is_none() && is_sent.load(Ordering::Relaxed) {
            sent_at = Some(Instant::now());
        }
    }
    numbers.len()
}

/// Result of a run.
struct Outcome {
    arrived: usize,
    /// Number of datagrams of the flood that were sent, and that arrived.
    flood: [u64; 2],
    view: std::sync::Arc<View>,
    events: Vec<Event>,
    /// Counters of all components on the path, for the message of a failure.
    counters: String,
}

impl Outcome {
    fn assert_overload(&self) {
        let [sent, received] = self.flood;
        assert!(received * 4 < sent * 3, "{received} of {sent} arrived\n{}", self.counters);
    }

    fn traffic(&self) -> FlowTraffic {
        let pair = self.view.pairs.iter().find(|pair| pair.topic == "Secured").expect("the pair is registered");
        pair.traffic.expect("its meter was read")
    }

    fn reports(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::ContractBroken { .. })).count()
    }
}

/// Returns the state after the counters of all switches have been read twice more.
fn read_again(running: &Running) -> std::sync::Arc<View> {
    let polls = |view: &View| view.counters["polls"];
    let begin = polls(&running.questions.view().expect("the controller answers"));
    until_some("the counters of both switches are read", || {
        let view = running.questions.view().expect("the controller answers");
        (polls(&view) >= begin + 4).then_some(view)
    })
}

fn greet(lab: &Lab) -> [UdpSocket; 2] {
    let talker = socket(lab, "talker", (TALKER, PORT).into());
    let listener = socket(lab, "listener", (LISTENER, PORT).into());
    // Frames of both hosts let the controller find them.
    talker.send_to(GREETING, (LISTENER, PORT)).expect("a route exists");
    listener.send_to(GREETING, (TALKER, PORT)).expect("a route exists");
    [talker, listener]
}

fn run(test: &str, is_registered: bool, separation: Duration) -> Outcome {
    let _alone = overload::lock();
    let lab = up(test, &two_switches(CLASSES));
    let running = Running::start(&lab, Config { network: Some(network()), ..Config::default() });
    running.wait("two switches, three hosts", State::settled(1, 1, 3));
    let sink = Sink::start(socket(&lab, "listener", (LISTENER, FLOOD_PORT).into()));
    let [talker, listener] = greet(&lab);
    if is_registered {
        register(&running);
    }
    let flooding = flood(socket(&lab, "flooder", (FLOODER, FLOOD_PORT).into()), LISTENER);
    until("the flood arrives", || sink.received() >= FLOODED);
    let is_sent = AtomicBool::new(false);
    let arrived = std::thread::scope(|scope| {
        let taking = scope.spawn(|| take(&listener, &is_sent));
        send(&talker, separation);
        is_sent.store(true, Ordering::Relaxed);
        taking.join().expect("no panic")
    });
    let flood = [Flood::end(flooding), sink.end()];
    let view = read_again(&running);
    let counters = counters(&lab);
    let events = running.stop();
    lab.remove().expect("the lab can be removed");
    let events_text: String = events.iter().map(|event| format!("{event}\n")).collect();
    Outcome { arrived, flood, view, events, counters: counters + &events_text }
}

#[test]
fn registered_sender_loses_nothing_under_a_flood_of_twice_the_link() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("registered", true, SEPARATION);
    outcome.assert_overload();
    assert_eq!(outcome.arrived, SAMPLES as usize, "{}", outcome.counters);
    let FlowTraffic { samples, breaks_contract, .. } = outcome.traffic();
    // The counts include greetings that arrived after the registration.
    assert!(samples.frames.is_some_and(|frames| frames.abs_diff(SAMPLES.into()) <= 2), "{samples:?}");
    assert_eq!((samples.dropped, breaks_contract, outcome.reports()), (Some(0), false, 0), "{}", outcome.counters);
    assert_counted(&outcome);
}

/// Asserts that the port to the listener has sent at least the datagrams that arrived there, and at
/// most those that the hosts sent.
fn assert_counted(outcome: &Outcome) {
    let edge = outcome.view.hosts.iter().find(|host| host.addresses.contains(&LISTENER.to_string()));
    let at = &edge.expect("the port sent frames").at;
    let switch = outcome.view.switches.iter().find(|switch| switch.datapath_id == at.datapath_id).expect("the switch");
    let port = switch.ports.iter().find(|port| port.number == at.port).expect("the view contains the port");
    let sent = port.traffic.expect("the counters were read").sent.frames.expect("Open vSwitch counts");
    let [of_flood, arrived] = outcome.flood;
    let most = of_flood + u64::from(SAMPLES);
    let least = arrived + outcome.arrived as u64;
    // LLDP, ARP and neighbor discovery are counted as well.
    assert!((least..most + 2_000).contains(&sent), "{sent}, from {least} to {most}\n{}", outcome.counters);
}

#[test]
fn sender_that_is_not_registered_loses_samples_under_the_same_flood() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("unregistered", false, SEPARATION);
    outcome.assert_overload();
    assert!(outcome.arrived < SAMPLES as usize, "{}", outcome.counters);
    assert_counted(&outcome);
}

#[test]
fn registered_sender_that_violates_its_contract_is_reported_once() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("babbling", true, SEPARATION / 5);
    let FlowTraffic { samples, .. } = outcome.traffic();
    let dropped = samples.dropped.expect("Open vSwitch counts");
    assert!(dropped > 0 && outcome.arrived < SAMPLES as usize, "{samples:?}\n{}", outcome.counters);
    assert!(samples.frames.is_some_and(|frames| frames.abs_diff(SAMPLES.into()) <= 2), "{samples:?}");
    assert_eq!(
        outcome.arrived as u64 + dropped,
        u64::from(SAMPLES),
        "its own meter takes the rest\n{}",
        outcome.counters
    );
    assert_eq!(outcome.reports(), 1, "{}", outcome.counters);
}
