//! A pair with a contract and a flood of twice the link's rate, through two bridges of Open vSwitch.

mod station;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use takt_lab::{Lab, LabFile};
use takt_sdn::controller::Config;
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_testkit::{not_run, require};

use self::station::Station;
use crate::open_vswitch::Running;

/// The classes are those of the model `ovs-netdev`. The switches forward before everything else on the machine does what it does: a switch that
/// waits for a processor hands its meters all at once what came one by one.
const TWO_SWITCHES: &str = r#"
    switch_priority = 30
    [[classes]]
    name = "first"
    dscp = [46]
    frames = 100
    [[classes]]
    name = "second"
    dscp = [34]
    frames = 100
    [[classes]]
    name = "third"
    dscp = [26]
    frames = 100
    [[classes]]
    name = "fourth"
    dscp = [18]
    frames = 100
    [[classes]]
    name = "other"
    frames = 256
    [hosts.talker]
    eth0 = ["10.8.1.1/24"]
    [hosts.listener]
    eth0 = ["10.8.1.2/24"]
    [hosts.flooder]
    eth0 = ["10.8.1.3/24"]
    [switches.west]
    controller = "tcp:127.0.0.1:6653"
    [switches.east]
    controller = "tcp:127.0.0.1:6653"
    [[links]]
    ends = ["talker:eth0", "west"]
    [[links]]
    ends = ["flooder:eth0", "west"]
    [[links]]
    ends = ["west", "east"]
    rate = "20 Mbit/s"
    [[links]]
    ends = ["east", "listener:eth0"]
"#;

const NETWORK: &str = r#"
    [[switch]]
    datapath_id = "*"
    model = "ovs-netdev"
    rate_bps = 20_000_000
"#;

const RATE_BPS: u64 = 20_000_000;
const SEPARATION: Duration = Duration::from_millis(5);
const SAMPLES: u32 = 1000;
const SAMPLE_LEN: usize = 1000;
/// The writer keeps the separation, and its frames may still wait for a processor on their way to the meter.
const OFFER: &str = "rt.minsep=5ms;rt.jitter=50ms;rt.maxsize=1000";
const REQUEST: &str = "rt.e2e=50ms";
const TALKER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 1);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 2);
const FLOODER: Ipv4Addr = Ipv4Addr::new(10, 8, 1, 3);
const FLOOD_PORT: u16 = 9;
const FLOOD_LEN: usize = 1400;
/// More than the queues of the link hold.
const FLOODED: u64 = 600;
const PATIENCE: Duration = Duration::from_secs(60);
/// How long samples may be on their way after the last was sent.
const SETTLING: Duration = Duration::from_secs(2);

/// What the threads of a run have reached.
#[derive(Default)]
struct Progress {
    /// The reader is matched.
    is_reader_matched: AtomicBool,
    /// Both endpoints are matched.
    is_matched: AtomicBool,
    /// All samples are sent.
    is_sent: AtomicBool,
    /// Datagrams of the flood that arrived.
    flooded: AtomicU64,
}

/// What came of a run.
struct Outcome {
    /// Which of [`SAMPLES`] did not arrive.
    lost: Vec<u32>,
    flood_sent: u64,
    flood_received: u64,
    /// Of everything on the way, for the message of a failure.
    counters: String,
}

fn lab(test: &str, text: &str) -> Lab {
    let name = format!("sdn-{test}-{}", std::process::id());
    let file: LabFile = format!("name = \"{name}\"\n{text}").parse().expect("a network");
    Lab::up(&file).unwrap_or_else(|why| panic!("{why}"))
}

fn socket(lab: &Lab, host: &str, address: SocketAddr) -> UdpSocket {
    let namespace = lab.namespace(host).expect("a host of the file");
    namespace.run(|| UdpSocket::bind(address)).expect("root").expect("the port is free")
}

/// Meters and entries of admitted flows, queues and sockets.
fn counters(lab: &Lab) -> String {
    let mut text = String::new();
    for switch in ["west", "east"] {
        let target = format!("unix:{}", lab.directory().join(format!("{switch}.mgmt")).display());
        for (what, own) in [("meter-stats", "meter:4096 "), ("dump-flows", "priority=55000,")] {
            let output = Command::new("ovs-ofctl").args(["-O", "OpenFlow13", what, &target]).output();
            let output: String =
                output.map_or_else(|why| why.to_string(), |done| String::from_utf8_lossy(&done.stdout).into());
            let lines: Vec<&str> = output.lines().collect();
            // Of a meter the line behind has what it dropped.
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

/// Sends datagrams at twice the rate of the link until all samples are sent. Returns how many.
fn flood(socket: &UdpSocket, progress: &Progress) -> u64 {
    while !progress.is_matched.load(Ordering::Relaxed) {
        // tidy-allow(sleep): between two looks at the condition that it waits for.
        std::thread::sleep(Duration::from_millis(1));
    }
    let (begin, mut sent) = (Instant::now(), 0);
    while !progress.is_sent.load(Ordering::Relaxed) {
        let due = begin.elapsed().as_nanos() as u64 * (2 * RATE_BPS / 8) / 1_000_000_000 / FLOOD_LEN as u64;
        if sent >= due {
            // tidy-allow(sleep): the pace of the flood.
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in sent..due {
            socket.send_to(&[0; FLOOD_LEN], (LISTENER, FLOOD_PORT)).expect("there is a route");
        }
        sent = sent.max(due);
    }
    sent
}

/// Counts the datagrams of the flood.
fn sink(socket: &UdpSocket, progress: &Progress) {
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let mut buffer = [0; FLOOD_LEN];
    loop {
        if socket.recv_from(&mut buffer).is_ok() {
            progress.flooded.fetch_add(1, Ordering::Relaxed);
        } else if progress.is_sent.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Waits for the match and for full queues, then sends, never earlier than `separation` after the sample before.
fn talk(station: &mut Station, progress: &Progress, separation: Duration) {
    let writer = station.writer("Steering", OFFER, SAMPLE_LEN);
    let begin = Instant::now();
    while progress.flooded.load(Ordering::Relaxed) < FLOODED {
        assert!(begin.elapsed() < PATIENCE, "no match, or no flood");
        station.run_until(Instant::now() + Duration::from_millis(10));
        if progress.is_reader_matched.load(Ordering::Relaxed) && station.is_matched_writer(writer) {
            progress.is_matched.store(true, Ordering::Relaxed);
        }
    }
    for number in 0..SAMPLES {
        station.write(writer, number, SAMPLE_LEN);
        station.run_until(Instant::now() + separation);
    }
    progress.is_sent.store(true, Ordering::Relaxed);
}

/// Takes samples until all have come, or none comes any more.
fn listen(station: &mut Station, progress: &Progress) -> Vec<u32> {
    let reader = station.reader("Steering", REQUEST);
    let (begin, mut sent_at, mut missing) = (Instant::now(), None, (0..SAMPLES).collect::<Vec<u32>>());
    while !missing.is_empty() && sent_at.is_none_or(|at: Instant| at.elapsed() < SETTLING) {
        assert!(begin.elapsed() < 2 * PATIENCE, "no match, or the talker does not end");
        station.run_until(Instant::now() + Duration::from_millis(10));
        if station.is_matched_reader(reader) {
            progress.is_reader_matched.store(true, Ordering::Relaxed);
        }
        let taken = station.take(reader);
        missing.retain(|number| !taken.contains(number));
        if sent_at.is_none() && progress.is_sent.load(Ordering::Relaxed) {
            sent_at = Some(Instant::now());
        }
    }
    missing
}

/// Sends samples during a flood in a network of this text, with or without a description of the network.
fn run(test: &str, text: &str, network: Option<&str>, separation: Duration) -> Outcome {
    let lab = lab(test, text);
    let parse = |text| NetworkFile::parse("network.toml", text, SwitchModel::built_in);
    let network = network.map(|text| parse(text).unwrap_or_else(|why| panic!("{why}")));
    let running = Running::start(&lab, Config { network, ..Config::default() });
    running.wait("two switches, three hosts", |state| {
        (state.links, state.tree, state.edges, state.is_settled) == (1, 1, 3, true)
    });
    let [flooding, sinking] = [("flooder", FLOODER), ("listener", LISTENER)]
        .map(|(host, address)| socket(&lab, host, (address, FLOOD_PORT).into()));
    let mut talker = Station::open(&lab, "talker", TALKER, 1);
    let mut listener = Station::open(&lab, "listener", LISTENER, 2);
    let progress = Progress::default();
    let (lost, flood_sent) = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(&flooding, &progress));
        scope.spawn(|| sink(&sinking, &progress));
        let listening = scope.spawn(|| listen(&mut listener, &progress));
        talk(&mut talker, &progress, separation);
        let lost = listening.join().expect("no panic");
        (lost, flooding.join().expect("no panic"))
    });
    let mut counters = counters(&lab);
    running.stop().iter().for_each(|event| counters.push_str(&format!("{event}\n")));
    lab.remove().expect("it can be taken down");
    Outcome { lost, flood_sent, flood_received: progress.flooded.into_inner(), counters }
}

impl Outcome {
    /// A run without overload shows nothing.
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
    let outcome = run("admitted", TWO_SWITCHES, Some(NETWORK), SEPARATION);
    outcome.assert_overload();
    assert!(outcome.lost.is_empty(), "{:?} of {SAMPLES}\n{}", outcome.lost, outcome.counters);
}

#[test]
fn pair_without_admission_loses_samples_under_the_same_flood() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("mixed", TWO_SWITCHES, None, SEPARATION);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
}

/// The test above sees classes: without those of the model the pair shares the queue of the flood.
#[test]
fn admitted_pair_loses_samples_where_a_switch_lacks_the_classes_of_its_model() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let text = TWO_SWITCHES.replace("dscp = [46]", "dscp = [1]").replace("dscp = [34]", "dscp = [2]");
    let text = text.replace("dscp = [26]", "dscp = [3]").replace("dscp = [18]", "dscp = [4]");
    let outcome = run("classless", &text, Some(NETWORK), SEPARATION);
    outcome.assert_overload();
    assert!(!outcome.lost.is_empty(), "{}", outcome.counters);
}

/// And it sees meters: four times the samples of the contract lose three of four, once what its jitter allows is used up.
#[test]
fn writer_that_breaks_its_contract_loses_samples_at_its_meter() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("broken", TWO_SWITCHES, Some(NETWORK), SEPARATION / 4);
    outcome.assert_overload();
    assert!(outcome.lost.len() > SAMPLES as usize / 4, "{:?}\n{}", outcome.lost, outcome.counters);
}
