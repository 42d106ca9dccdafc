//! Tests of a pair with a contract and a flood of twice the link's rate, through two bridges of
//! Open vSwitch.

mod attack;
mod control;
mod registered;
mod small_packets;
mod station;
mod tagged;
mod vlan;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt_lab::Lab;
use takt_sdn::controller::Config;
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::{CLASSES, LabText, network_text};
use takt_testkit::waiting::{self, LIMIT, OnDrop};
use takt_testkit::{not_run, overload, require};

use self::station::Station;
use crate::site::{Running, State, socket, up};

/// Returns two switches whose link is the bottleneck.
fn two_switches(classes: &str) -> LabText {
    let text = LabText::controlled(&["west", "east"]).switch_priority(30).classes(classes);
    let text = text.host("talker", "10.8.1.1/24", "west").host("flooder", "10.8.1.3/24", "west");
    text.link_of_rate("west", "east", RATE).host("listener", "10.8.1.2/24", "east")
}

const RATE: &str = "20 Mbit/s";
const RATE_BPS: u64 = 20_000_000;
const SEPARATION: Duration = Duration::from_millis(5);
const SAMPLES: u32 = 1000;
const SAMPLE_LEN: usize = 1000;
/// Contract of the writer, which keeps the separation; its frames may wait for a processor before
/// the meter.
const OFFER: &str = "rt.minsep=5ms;rt.jitter=50ms;rt.maxsize=1000";
const REQUEST: &str = "rt.e2e=50ms";
const TALKER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 1);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 2);
const FLOODER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 3);
const FLOOD_PORT: u16 = 9;
/// Number of flood frames that exceeds the capacity of the link's queues.
const FLOODED: u64 = 600;
/// Time after the last transmission within which samples must arrive.
const SETTLING: Duration = Duration::from_secs(2);

/// Progress of the threads of a run.
#[derive(Default)]
struct Progress {
    /// Whether the reader is matched.
    is_reader_matched: AtomicBool,
    /// Whether all samples are sent.
    is_sent: AtomicBool,
    /// Time of the first sample.
    began: OnceLock<Instant>,
}

impl Progress {
    /// Ends the threads that wait for the last sample when the result is dropped, even after a
    /// panic.
    fn end_with_this(&self) -> OnDrop<impl FnMut()> {
        OnDrop(|| self.is_sent.store(true, Ordering::Relaxed))
    }
}

/// Result of a run.
struct Outcome {
    /// Samples that did not arrive, of [`SAMPLES`].
    lost: Vec<u32>,
    /// Time from sending the first sample to the last arrival.
    span: Duration,
    flood_sent: u64,
    flood_received: u64,
    /// Counters of all components on the path, for the message of a failure.
    counters: String,
}

/// Returns the description of the network for the controller.
fn network() -> NetworkFile {
    NetworkFile::parse("network.toml", &network_text(RATE_BPS), SwitchModel::built_in)
        .unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the counters of meters, entries of admitted flows, queues and sockets.
fn counters(lab: &Lab) -> String {
    let mut text = String::new();
    for switch in ["west", "east"] {
        let target = format!("unix:{}", lab.directory().join(format!("{switch}.mgmt")).display());
        for (what, own) in [("meter-stats", "meter:4096 "), ("dump-flows", "priority=55000,")] {
            let output = waiting::output(Command::new("ovs-ofctl").args(["-O", "OpenFlow13", what, &target]));
            let output = String::from_utf8_lossy(&output.stdout);
            let lines: Vec<&str> = output.lines().collect();
            // The line after that of a meter has its drop count.
            let is_own = |at: &usize| lines[*at].contains(own) || *at > 0 && lines[*at - 1].contains("meter:4096 ");
            let found = (0..lines.len()).filter(is_own).map(|at| lines[at].trim());
            text.push_str(&format!("{switch} {what}: {}\n", found.collect::<Vec<_>>().join("; ")));
        }
    }
    let queues = lab.queues().expect("root").into_iter().filter(|queue| queue.frames + queue.drops > 0);
    queues.for_each(|queue| text.push_str(&format!("{queue}\n")));
    let sockets = lab.port_sockets().expect("root");
    sockets.iter().for_each(|socket| text.push_str(&format!("{}: {} lost\n", socket.interface, socket.drops)));
    text
}

/// Starts a flood of twice the link's rate.
fn flood(from: UdpSocket, to: Ipv4Addr) -> Flood {
    Flood::start(from, (to, FLOOD_PORT).into(), 2 * RATE_BPS)
}

/// Waits for the match and, after the start of `flood`, for full queues. Then sends samples at
/// least `separation` apart.
fn talk(
    station: &mut Station,
    progress: &Progress,
    separation: Duration,
    flood: impl FnOnce(),
    flooded: impl Fn() -> u64,
) {
    let writer = station.writer("Steering", OFFER, SAMPLE_LEN);
    station.run_while("the pair matches", |station| {
        !progress.is_reader_matched.load(Ordering::Relaxed) || !station.is_matched_writer(writer)
    });
    flood();
    station.run_while("the flood arrives", |_| flooded() < FLOODED);
    progress.began.get_or_init(Instant::now);
    for number in 0..SAMPLES {
        station.write(writer, number, SAMPLE_LEN);
        station.run_until(Instant::now() + separation);
    }
    progress.is_sent.store(true, Ordering::Relaxed);
}

/// Receives samples until all have arrived or no more arrive. Returns the missing ones and the time
/// of the last arrival.
fn listen(station: &mut Station, progress: &Progress) -> (Vec<u32>, Instant) {
    let reader = station.reader("Steering", REQUEST);
    let (begin, mut sent_at, mut missing) = (Instant::now(), None, (0..SAMPLES).collect::<Vec<u32>>());
    let mut last = begin;
    while !missing.is_empty() && sent_at.is_none_or(|at: Instant| at.elapsed() < SETTLING) {
        assert!(begin.elapsed() < 2 * LIMIT, "no match, or the talker does not stop");
        station.run_until(Instant::now() + Duration::from_millis(10));
        if station.is_matched_reader(reader) {
            progress.is_reader_matched.store(true, Ordering::Relaxed);
        }
        let received = station.take(reader);
        missing.retain(|number| !received.contains(number));
        if !received.is_empty() {
            last = Instant::now();
        }
        if sent_at.is_none() && progress.is_sent.load(Ordering::Relaxed) {
            sent_at = Some(Instant::now());
        }
    }
    (missing, last)
}

/// Function that joins domain 0 on a host with an address, as the participant of a number.
type Open = fn(&Lab, &str, Ipv4Addr, u8) -> Station;

/// Sends samples during a flood in a network, with or without a description of it.
fn run(test: &str, text: &LabText, network: Option<NetworkFile>, separation: Duration) -> Outcome {
    run_with(test, text, network, separation, Station::open)
}

/// Sends samples like [`run`], with participants that `open` creates.
fn run_with(test: &str, text: &LabText, network: Option<NetworkFile>, separation: Duration, open: Open) -> Outcome {
    let _alone = overload::lock();
    let lab = up(test, text);
    let running = Running::start(&lab, Config { network, ..Config::default() });
    running.wait("two switches, three hosts", State::settled(1, 1, 3));
    let from = socket(&lab, "flooder", (FLOODER, FLOOD_PORT).into());
    let sink = Sink::start(socket(&lab, "listener", (LISTENER, FLOOD_PORT).into()));
    let mut talker = open(&lab, "talker", TALKER, 1);
    let mut listener = open(&lab, "listener", LISTENER, 2);
    let progress = Progress::default();
    let mut flooding = None;
    let (lost, last) = std::thread::scope(|scope| {
        let _ending = progress.end_with_this();
        let listening = scope.spawn(|| listen(&mut listener, &progress));
        let begin = || flooding = Some(flood(from, LISTENER));
        talk(&mut talker, &progress, separation, begin, || sink.received());
        listening.join().expect("no panic")
    });
    let flood_sent = flooding.map_or(0, Flood::end);
    let flood_received = sink.end();
    let mut counters = counters(&lab);
    running.stop().iter().for_each(|event| counters.push_str(&format!("{event}\n")));
    lab.remove().expect("the lab can be removed");
    let span = progress.began.get().map_or(Duration::ZERO, |began| last.duration_since(*began));
    Outcome { lost, span, flood_sent, flood_received, counters }
}

impl Outcome {
    /// Asserts that there was an overload; otherwise the run is meaningless.
    fn assert_overload(&self) {
        let Self { flood_sent, flood_received, counters, .. } = self;
        assert!(flood_received * 4 < flood_sent * 3, "{flood_received} of {flood_sent} arrived\n{counters}");
    }
}

#[test]
fn admitted_pair_loses_no_sample_under_a_flood_of_twice_the_link() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("admitted", &two_switches(CLASSES), Some(network()), SEPARATION);
    outcome.assert_overload();
    assert!(outcome.lost.is_empty(), "{:?} of {SAMPLES}\n{}", outcome.lost, outcome.counters);
}

#[test]
fn pair_without_admission_loses_samples_under_the_same_flood() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("mixed", &two_switches(CLASSES), None, SEPARATION);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
}

/// Verifies that the test above depends on classes: without those of the model, the pair shares the
/// queue of the flood.
#[test]
fn admitted_pair_loses_samples_where_a_switch_lacks_the_classes_of_its_model() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let others = CLASSES.replace("dscp = [46]", "dscp = [1]").replace("dscp = [34]", "dscp = [2]");
    let others = others.replace("dscp = [26]", "dscp = [3]").replace("dscp = [18]", "dscp = [4]");
    let outcome = run("classless", &two_switches(&others), Some(network()), SEPARATION);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
}

/// Verifies that the test above depends on meters: of four times the contract's samples, no more
/// arrive than the rate and burst of the meter allow.
#[test]
fn writer_that_violates_its_contract_loses_samples_at_its_meter() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("broken", &two_switches(CLASSES), Some(network()), SEPARATION / 4);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
    // The rate includes a twentieth more for its rounding to whole kilobits and steps; the burst
    // includes the jitter of the contract.
    let allowed = outcome.span.as_nanos() as usize * 21 / (SEPARATION.as_nanos() as usize * 20) + 20;
    let arrived = SAMPLES as usize - outcome.lost.len();
    assert!(arrived <= allowed, "{arrived} in {:?}\n{}", outcome.span, outcome.counters);
}
