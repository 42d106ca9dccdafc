//! Tests of a pair with a contract while another host floods the reader's host with small packets.

use std::time::{Duration, Instant};

use takt_lab::Lab;
use takt_sdn::controller::{Config, Event};
use takt_sdn::model::{NetworkFile, SwitchModel};
use takt_testkit::flood::{Flood, Sink};
use takt_testkit::lab_text::{CLASSES, network_text};
use takt_testkit::{not_run, overload, require, waiting};

use super::station::Station;
use super::{
    FLOOD_PORT, FLOODER, LISTENER, Progress, RATE_BPS, SAMPLES, SEPARATION, TALKER, counters, listen, talk,
    two_switches,
};
use crate::site::{Running, State, socket, up};

/// Length in octets of a datagram of the flood, as in the experiment of Choi, King and Lee.
const LEN: usize = 100;
/// Rate of the flood, about 8 of the 20 Mbit/s of the link: no queue is full.
const FLOOD_PER_S: u64 = 6_000;
/// Limit of the reader's host.
const LIMIT_PER_S: u64 = 2_000;

struct Outcome {
    lost: Vec<u32>,
    sent: u64,
    received: u64,
    /// Time from before the first packet of the flood to after the last.
    span: Duration,
    events: Vec<Event>,
    counters: String,
}

impl Outcome {
    /// Returns the number of packets that the limit allows in the time of the run.
    fn allowed(&self) -> u64 {
        LIMIT_PER_S / 10 + LIMIT_PER_S * u64::try_from(self.span.as_millis()).expect("short") / 1000
    }

    /// Reports whether the overload was reported. East is switch 1, and the host is at its second
    /// port.
    fn is_reported(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::HostOverload { dpid: 1, port: Some(2), .. }))
    }
}

fn meter_statistics(lab: &Lab) -> String {
    let target = format!("unix:{}", lab.directory().join("east.mgmt").display());
    let mut command = std::process::Command::new("ovs-ofctl");
    let output = waiting::output(command.args(["-O", "OpenFlow13", "meter-stats", &target]));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(test: &str, limit: &str) -> Outcome {
    let _alone = overload::lock();
    let lab = up(test, &two_switches(CLASSES));
    let text = format!("{}{limit}", network_text(RATE_BPS));
    let network = NetworkFile::parse("network.toml", &text, SwitchModel::built_in);
    let network = Some(network.unwrap_or_else(|why| panic!("{why}")));
    let running = Running::start(&lab, Config { network, ..Config::default() });
    running.wait("two switches, three hosts", State::settled(1, 1, 3));
    let from = socket(&lab, "flooder", (FLOODER, FLOOD_PORT).into());
    let sink = Sink::start(socket(&lab, "listener", (LISTENER, FLOOD_PORT).into()));
    let mut talker = Station::open(&lab, "talker", TALKER, 1);
    let mut listener = Station::open(&lab, "listener", LISTENER, 2);
    let (progress, mut flooding) = (Progress::default(), None);
    let lost = std::thread::scope(|scope| {
        let _ending = progress.end_with_this();
        let listening = scope.spawn(|| listen(&mut listener, &progress));
        let begin = || {
            let flood = Flood::start_packets(from, (LISTENER, FLOOD_PORT).into(), FLOOD_PER_S, LEN);
            flooding = Some((Instant::now(), flood));
        };
        talk(&mut talker, &progress, SEPARATION, begin, || sink.received());
        listening.join().expect("no panic").0
    });
    let (began, flood) = flooding.expect("the flood began");
    let sent = flood.end();
    let received = sink.end();
    let span = began.elapsed();
    if !limit.is_empty() {
        running.wait_for_excess();
    }
    let counters = format!("{}{}", counters(&lab), meter_statistics(&lab));
    let events = running.stop();
    lab.remove().expect("the lab can be removed");
    Outcome { lost, sent, received, span, events, counters }
}

#[test]
fn flood_of_small_packets_to_a_readers_host_is_limited_and_loses_no_sample() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("small", &format!("[host]\npackets_per_s = {LIMIT_PER_S}\n"));
    let Outcome { lost, sent, received, span, counters, events } = &outcome;
    println!("limited: {received} of {sent} packets in {span:?}, {} allowed", outcome.allowed());
    assert!(lost.is_empty(), "{lost:?} of {SAMPLES}\n{counters}\n{events:?}");
    assert!(*received <= outcome.allowed(), "{received} of {sent} in {span:?}\n{counters}");
    assert!(outcome.is_reported(), "{events:?}\n{counters}");
}

/// Without a limit, the host gets more than the limit of the run above.
#[test]
fn flood_of_small_packets_reaches_a_host_without_a_limit() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let outcome = run("small-free", "");
    let Outcome { sent, received, span, counters, .. } = &outcome;
    println!("without a limit: {received} of {sent} packets in {span:?}, {} would be allowed", outcome.allowed());
    assert!(*received > outcome.allowed(), "{received} of {sent} in {span:?}\n{counters}");
    assert!(!outcome.is_reported());
}
