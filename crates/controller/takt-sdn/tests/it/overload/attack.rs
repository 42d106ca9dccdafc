//! Test of a pair with a contract while another host floods the controller and impersonates the
//! pair's writer.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use takt_sdn::controller::{Config, Event};
use takt_sdn::discovery::Event as DiscoveryEvent;
use takt_testkit::lab_text::CLASSES;
use takt_testkit::{not_run, overload, require};

use super::station::Station;
use super::{FLOODER, LISTENER, Progress, SAMPLES, SEPARATION, TALKER, counters, listen, network, talk, two_switches};
use crate::site::{Running, State, socket, up};

const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 0, 1), 7400);
/// Five times the rate that the meter of discovery passes.
const PER_MILLISECOND: usize = 10;

/// Sends discovery messages at more than the meter's rate until all samples are sent.
fn flood_discovery(socket: &UdpSocket, progress: &Progress, flooded: &AtomicU64) {
    let message = b"RTPS\x02\x05\x01\x7a\0\0\0\0\0\0\0\0\0\0\0\0";
    while !progress.is_sent.load(Ordering::Relaxed) {
        for _ in 0..PER_MILLISECOND {
            socket.send_to(message, GROUP).expect("a route exists");
        }
        flooded.fetch_add(PER_MILLISECOND as u64, Ordering::Relaxed);
        // tidy-allow(sleep): the period of the flood.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Impersonates the talker until all samples are sent.
fn impersonate(impostor: &mut Station, progress: &Progress) {
    impostor.writer("Steering", "rt.minsep=1ms;rt.maxsize=1000", 1000);
    while !progress.is_sent.load(Ordering::Relaxed) {
        impostor.run_until(Instant::now() + Duration::from_millis(50));
    }
}

#[test]
fn admitted_pair_loses_no_sample_while_a_host_floods_discovery_and_impersonates_its_writer() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let _alone = overload::lock();
    let lab = up("attack", &two_switches(CLASSES));
    let running = Running::start(&lab, Config { network: Some(network()), ..Config::default() });
    running.wait("two switches, three hosts", State::settled(1, 1, 3));
    let flooding = socket(&lab, "flooder", (FLOODER, 0).into());
    let mut talker = Station::open(&lab, "talker", TALKER, 1);
    let mut listener = Station::open(&lab, "listener", LISTENER, 2);
    // The impostor has the GUID of the talker, and a writer of the same topic.
    let mut impostor = Station::open(&lab, "flooder", FLOODER, 1);
    let (progress, flooded) = (Progress::default(), AtomicU64::new(0));
    let lost = std::thread::scope(|scope| {
        let _ending = progress.end_with_this();
        let listening = scope.spawn(|| listen(&mut listener, &progress));
        let (impostor, progress, flooding, flooded) = (&mut impostor, &progress, &flooding, &flooded);
        let attack = move || {
            scope.spawn(move || flood_discovery(flooding, progress, flooded));
            scope.spawn(move || impersonate(impostor, progress));
        };
        talk(&mut talker, progress, SEPARATION, attack, || flooded.load(Ordering::Relaxed));
        listening.join().expect("no panic").0
    });
    let counters = counters(&lab);
    let events = running.stop();
    lab.remove().expect("the lab can be removed");
    assert!(lost.is_empty(), "{lost:?} of {SAMPLES}\n{counters}\n{events:?}");
    let forged = events.iter().filter(|event| matches!(event, Event::Discovery(DiscoveryEvent::Forged { .. })));
    assert!(forged.count() > 0, "the impostor was accepted: {events:?}");
}
