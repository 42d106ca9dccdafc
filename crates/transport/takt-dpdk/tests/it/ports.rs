//! Tests of ports: links that come and go, frames of several parts, errors.

use std::time::{Duration, Instant};

use takt_dpdk::{DpdkConfig, DpdkPort};
use takt_packet::MacAddress;
use takt_testkit::memory::allocations;
use takt_transport::Scan;
use takt_transport::ethernet::FramePort;

use super::devices::{config, lock_devices, mac, unique_name};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for a condition, up to the time limit of a test.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < TIMEOUT, "{what}");
        std::thread::yield_now();
    }
}

fn send(port: &mut DpdkPort, to: MacAddress, fill: u8, len: usize) {
    let frame = &mut port.loan()[..len];
    frame.fill(fill);
    frame[..6].copy_from_slice(&to.0);
    assert!(port.send(len));
    port.flush().expect("flush succeeds");
}

fn receive(port: &mut DpdkPort) -> Vec<u8> {
    wait_until("nothing arrives", || port.recv(Scan::All).expect("receive succeeds"));
    port.received().to_vec()
}

/// Makes both ends of shared memory as between processes, here in one.
fn memif(set: impl Fn(DpdkConfig) -> DpdkConfig) -> [DpdkConfig; 2] {
    let socket = format!("takt-{}-{}", std::process::id(), unique_name("socket"));
    let end = |role| set(config(&format!("{},role={role},socket={socket}", unique_name("net_memif"))));
    [end("server"), end("client")]
}

#[test]
fn link_loss_is_counted_and_the_link_returns() {
    let _guard = lock_devices();
    let [server, client] = memif(|config| config).map(|config| DpdkConfig { link_period: Duration::ZERO, ..config });
    let mut here = DpdkPort::open(&server).expect("a virtual device");
    assert!(!here.link_is_up());
    assert!(here.warnings()[0].to_string().contains("is down"), "{:?}", here.warnings());
    for round in 1..=3 {
        let mut there = DpdkPort::open(&client).expect("a virtual device");
        wait_until("no link", || here.check_link() & there.check_link());
        assert_eq!(here.warnings(), []);
        let (at_here, at_there) = (here.mac(), there.mac());
        send(&mut here, at_there, round, 100);
        assert_eq!(receive(&mut there)[6..], [round; 94]);
        send(&mut there, at_here, round, 100);
        assert_eq!(receive(&mut here)[6..], [round; 94]);
        drop(there);
        // Detected while receiving, as a transport does.
        wait_until("still a link", || {
            assert!(!here.recv(Scan::All).expect("receive succeeds"));
            !here.link_is_up()
        });
        assert_eq!(here.counters().link_losses, u64::from(round));
        assert_eq!(here.warnings().len(), 1);
        send(&mut here, at_there, round, 100);
        assert_eq!(here.counters().link_down_out, u64::from(round));
        assert_eq!(here.stats().refused_out, u64::from(round));
    }
}

/// The other end is closed at any moment, also while frames are read and written: DPDK's own thread
/// unmaps the memory.
#[test]
fn port_survives_the_end_of_its_peer_during_traffic() {
    let _guard = lock_devices();
    for round in 0..60_u64 {
        let [server, client] = memif(|config| config);
        let [mut here, mut there] = [&server, &client].map(|end| DpdkPort::open(end).expect("a virtual device"));
        wait_until("no link", || here.check_link() & there.check_link());
        let (at_here, at_there) = (here.mac(), there.mac());
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                wait_until("still a link", || {
                    for _ in 0..32 {
                        here.recv(Scan::Hot).expect("receive succeeds");
                    }
                    send(&mut here, at_there, 1, 1_000);
                    !here.link_is_up()
                });
                here.counters().frames_in
            });
            for _ in 0..100 + 37 * round {
                send(&mut there, at_here, 2, 1_000);
                while there.recv(Scan::Hot).expect("receive succeeds") {}
            }
            drop(there);
            assert!(thread.join().expect("the thread detects the link change") > 0);
        });
    }
}

#[test]
fn frame_of_several_parts_is_received_whole() {
    let _guard = lock_devices();
    let [server, client] = memif(|config| config);
    let mut here = DpdkPort::open(&DpdkConfig { rx_room: Some(512), ..server }).expect("a virtual device");
    let mut there = DpdkPort::open(&client).expect("a virtual device");
    wait_until("no link", || here.check_link() & there.check_link());
    let to = here.mac();
    for (n, len) in [60, 500, 600, 1_514].into_iter().enumerate() {
        let octets: Vec<u8> = (0..len).map(|at: usize| (at * 7 + n) as u8).collect();
        there.loan()[..len].copy_from_slice(&octets);
        there.loan()[..6].copy_from_slice(&to.0);
        assert!(there.send(len));
        there.flush().expect("flush succeeds");
        assert_eq!(receive(&mut here)[6..], octets[6..], "{len} octets");
    }
    assert_eq!((here.counters().frames_in, here.counters().gathered_in), (4, 2));
}

#[test]
fn foreign_frames_are_dropped_and_own_ones_return() {
    let _guard = lock_devices();
    let [one, other] = [1, 2].map(|n| DpdkConfig { mac: Some(mac(n)), ..config(&unique_name("ring")) });
    let [mut here, mut there] = DpdkPort::ring_pair(&one, &other).expect("rings");
    let group = MacAddress([0x01, 0x00, 0x5e, 0x7f, 0, 1]);
    there.join(group).expect("the group can be joined");
    for to in [mac(9), group, mac(2), MacAddress([0x01, 0x00, 0x5e, 0, 0, 9])] {
        send(&mut here, to, 0x33, 60);
    }
    assert_eq!(receive(&mut there)[..6], group.0);
    assert_eq!(receive(&mut there)[..6], mac(2).0);
    assert!(!there.recv(Scan::All).expect("receive succeeds"));
    assert_eq!(there.counters().not_addressed_in, 2);
    // To the own address, and to a joined group.
    send(&mut there, mac(2), 1, 60);
    send(&mut there, group, 2, 60);
    assert_eq!((receive(&mut there)[6], receive(&mut there)[6]), (1, 2));
    assert!(!here.recv(Scan::All).expect("receive succeeds"), "neither is for us");
    assert_eq!((there.counters().loopback, there.counters().frames_out), (2, 1));
    there.leave(group);
    send(&mut there, group, 3, 60);
    assert!(!there.recv(Scan::All).expect("receive succeeds"));
}

#[test]
fn frames_that_are_not_received_run_out_and_come_back() {
    let _guard = lock_devices();
    let [one, other] = [1, 2].map(|n| DpdkConfig { mac: Some(mac(n)), ..config(&unique_name("ring")) });
    let [mut here, mut there] = DpdkPort::ring_pair(&one, &other).expect("rings");
    for _ in 0..5_000 {
        here.loan()[..6].copy_from_slice(&mac(2).0);
        here.send(60);
    }
    here.flush().expect("flush succeeds");
    let counters = here.counters();
    assert!(counters.frames_out > 1_000, "{counters:?}");
    assert_eq!(counters.frames_out + counters.refused_out + counters.no_frame_out, 5_000, "every frame is counted");
    let mut count = 0;
    while there.recv(Scan::All).expect("receive succeeds") {
        count += 1;
    }
    assert_eq!(count, counters.frames_out);
    send(&mut here, mac(2), 7, 60);
    assert_eq!(receive(&mut there)[6], 7, "all frames are free again");
}

#[test]
fn failed_open_is_an_error_with_the_reason() {
    let _guard = lock_devices();
    let why = |config: &DpdkConfig| DpdkPort::open(config).expect_err("the configuration is refused").to_string();
    let error = why(&config("net_nothing0"));
    assert!(error.contains("net_nothing0"), "{error}");
    for mtu in [0, 63, 9_217] {
        let [ring, other] = [unique_name("ring"), unique_name("ring")].map(|name| config(&name));
        let why = DpdkPort::ring_pair(&DpdkConfig { mtu: Some(mtu), ..ring }, &other).expect_err("refused");
        assert!(why.to_string().contains("64 to 9216"), "{why}");
    }
    let ends = DpdkConfig { eal: vec!["--help".into()], ..config("net_nothing1") };
    let [mut here, _there] = [1, 2].map(|_| config(&unique_name("ring"))).map(Some);
    let pair = DpdkPort::ring_pair(here.as_ref().expect("one"), &ends).expect("a pair of ports");
    here.take();
    let null = config(&unique_name("net_null"));
    let first = DpdkPort::open(&null).expect("a virtual device");
    let error = why(&null);
    assert!(error.contains("another transport"), "{error}");
    drop((first, pair));
    drop(DpdkPort::open(&null).expect("the port is free again"));
    let different = DpdkConfig { eal: vec!["--no-pci".into()], ..null };
    let port = DpdkPort::open(&different).expect("the port is already open");
    assert!(port.warnings().iter().any(|warning| warning.what.contains("other arguments")), "{:?}", port.warnings());
}

#[test]
fn frames_are_moved_without_allocating() {
    let _guard = lock_devices();
    let [one, other] = [1, 2].map(|n| DpdkConfig { mac: Some(mac(n)), ..config(&unique_name("ring")) });
    let [mut here, mut there] = DpdkPort::ring_pair(&one, &other).expect("rings");
    let mut count = 0;
    let allocated = allocations(|| {
        for round in 0..200 {
            for _ in 0..round % 70 {
                here.loan()[..6].copy_from_slice(&mac(2).0);
                here.send(100);
                here.send_copy(100);
            }
            here.flush().expect("flush succeeds");
            while there.recv(Scan::All).expect("receive succeeds") {
                count += 1;
            }
        }
    });
    assert_eq!(allocated, 0);
    let sent: u32 = (0..200).map(|round| 2 * (round % 70)).sum();
    // The frame that is loaned after a send has no address, so its copy may have no receiver.
    assert!(count >= sent / 2, "{count} of {sent}");
    assert_eq!(here.stats().in_place_out, u64::from(sent / 2));
}
