//! Test that measures the additional latency of discovery messages through the controller, between
//! two bridges of Open vSwitch.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use takt_sdn::controller::Config;
use takt_testkit::lab_text::LabText;
use takt_testkit::waiting::LIMIT;
use takt_testkit::{not_run, require};

use crate::site::{self, Running, State, up};

fn two_switches() -> LabText {
    let text = LabText::controlled(&["s1", "s2"]).switch_priority(30);
    text.host("left", "10.8.2.1/24", "s1").link("s1", "s2").host("right", "10.8.2.2/24", "s2")
}

const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 8, 2, 2);
/// Port of multicast discovery in domain 0, which unicast discovery may use, too.
const DISCOVERY: u16 = 7400;
const OTHER: u16 = 7000;
const MESSAGES: u64 = 1000;

/// Builds an RTPS message that announces nothing: a PAD with the number.
fn message(number: u64) -> Vec<u8> {
    let mut octets = b"RTPS\x02\x05\x01\x7a\x01\x7a\0\0\0\0\0\0\0\0\x09\x01".to_vec();
    octets.extend([0x01, 0x01, 8, 0]);
    octets.extend(number.to_le_bytes());
    octets
}

/// Returns the one-way times of messages, sent every 2 ms, in ascending order.
fn times(from: &UdpSocket, to: &UdpSocket, port: u16) -> Vec<Duration> {
    let (mut times, mut buffer, begin) = (Vec::new(), [0; 64], Instant::now());
    for number in 0.. {
        if times.len() as u64 == MESSAGES {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{} of {MESSAGES} messages arrived", times.len());
        let (octets, sent) = (message(number), Instant::now());
        from.send_to(&octets, (RIGHT, port)).expect("a route exists");
        match to.recv_from(&mut buffer) {
            Ok((len, _)) if buffer[..len] == octets => times.push(sent.elapsed()),
            // A late message, or none: the first ones arrive before rules are installed.
            Ok(_) => {}
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        }
        // tidy-allow(sleep): the period of the messages, below the rate of the meter.
        std::thread::sleep(Duration::from_millis(2));
    }
    times.sort_unstable();
    times
}

#[test]
fn discovery_passes_the_controller_and_its_added_latency_is_measured() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("detour", &two_switches());
    let running = Running::start(&lab, Config::default());
    running.wait("two switches, two hosts", State::settled(1, 1, 2));
    let socket = |host: &str, port| {
        let socket = site::socket(&lab, host, (Ipv4Addr::UNSPECIFIED, port).into());
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        socket
    };
    let (from, other, discovery) = (socket("left", 0), socket("right", OTHER), socket("right", DISCOVERY));
    let [by_rules, by_controller] = [(&other, OTHER), (&discovery, DISCOVERY)].map(|(to, port)| times(&from, to, port));
    let at = |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    for (route, times) in [("rules", &by_rules), ("controller", &by_controller)] {
        let [median, p99, longest] = [50, 99, 100].map(|percent| at(times, percent));
        println!("by {route:<10} {MESSAGES} messages, median {median} us, p99 {p99} us, longest {longest} us");
    }
    println!("detour: median {} us", at(&by_controller, 50).saturating_sub(at(&by_rules, 50)));
    running.stop();
    lab.remove().expect("the lab can be removed");
}
