//! Conformance of receiving: readiness, scans, frame lifetime, counters.

use std::time::{Duration, Instant};

use super::{Marked, TIMEOUT, commit, first, receive, send};
use crate::{FlowId, FlowSpec, Receive, Scan, Transport, readiness};

/// The sender and the receiver count datagrams and bytes.
pub fn sent_and_received_datagrams_are_counted<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    for n in 0..50 {
        commit(&mut a, &marked, n, 100 + n as usize, FlowId::DEFAULT, &[to, to]);
    }
    a.flush().expect("flush succeeds");
    for _ in 0..100 {
        receive(&mut b, &marked, Scan::All);
    }
    let bytes: u64 = (100..150).sum::<u64>() * 2;
    let (a, b) = (a.status().stats, b.status().stats);
    assert_eq!((a.datagrams_out, a.bytes_out), (100, bytes));
    assert_eq!(a.send_errors.total(), 0);
    assert_eq!((b.datagrams_in, b.bytes_in), (100, bytes));
    assert_eq!((b.kernel_drops, b.truncated), (0, 0));
}

/// The descriptors, if there are any, are readable while a datagram is queued at any port, and no
/// longer after a full scan found nothing.
pub fn descriptors_are_readable_when_datagrams_arrive<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let spec = FlowSpec { own_port: true, transport_priority: 0 };
    let (_, own) = b.open_flow(&spec).expect("a port is free");
    let announced = b.status().locators.clone();
    let destinations = [&announced.default_unicast, &announced.metatraffic_unicast, &own];
    for (n, destination) in (0..).zip(destinations.into_iter().cycle().take(9)) {
        send(&mut a, &marked, n, first(destination));
        if !b.status().descriptors.is_empty() {
            assert!(readiness::wait(b.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"));
        }
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n);
        while b.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        let ready = readiness::wait(b.status().descriptors, Some(Duration::ZERO));
        assert!(!ready.expect("wait succeeds"), "no datagram is left");
    }
}

/// A scan of datagrams already received makes no system call; datagrams that it leaves make a
/// descriptor readable.
pub fn queued_datagram_makes_a_descriptor_readable<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    let mut expected = 0;
    for burst in [1, 1, 2, 7, 100, 1, 1] {
        let end = expected + burst;
        for n in expected..end {
            send(&mut a, &marked, n, to);
        }
        while expected < end {
            while let Some(frame) = b.recv(Receive::Any(Scan::Taken)).expect("receive succeeds") {
                if let Some(number) = marked.number(&frame) {
                    assert_eq!(number, expected);
                    expected += 1;
                }
            }
            if expected < end {
                if !b.status().descriptors.is_empty() {
                    assert!(readiness::wait(b.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"));
                }
                assert_eq!(receive(&mut b, &marked, Scan::All).0, expected);
                expected += 1;
            }
        }
    }
    assert!(b.recv(Receive::Any(Scan::Taken)).expect("receive succeeds").is_none());
}

/// Two threads that sleep whenever no datagram is pending keep answering each other.
pub fn sleeping_receiver_is_woken_by_every_datagram<T: Transport>(open: impl Fn() -> T) {
    const ROUNDS: u32 = 2_000;
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let (at_a, at_b) = (first(&a.status().locators.default_unicast), first(&b.status().locators.default_unicast));
    let next = |transport: &mut T| {
        loop {
            let frame = transport.recv(Receive::Any(Scan::Taken)).expect("receive succeeds");
            if let Some(number) = frame.and_then(|frame| marked.number(&frame)) {
                return number;
            }
            if transport.status().descriptors.is_empty() {
                return receive(transport, &marked, Scan::All).0;
            }
            assert!(readiness::wait(transport.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"), "woken");
            let frame = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds");
            if let Some(number) = frame.and_then(|frame| marked.number(&frame)) {
                return number;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                assert_eq!(next(&mut b), n);
                send(&mut b, &marked, n, at_a);
            }
        });
        for n in 0..ROUNDS {
            send(&mut a, &marked, n, at_b);
            assert_eq!(next(&mut a), n);
        }
    });
}

/// Hot scans alone find datagrams at every port.
pub fn hot_scan_finds_every_datagram_eventually<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let announced = b.status().locators.clone();
    let kinds = [
        announced.metatraffic_unicast,
        announced.default_unicast,
        announced.metatraffic_multicast,
        announced.default_multicast,
    ];
    for (n, to) in (0..).zip(kinds.concat()) {
        send(&mut a, &marked, n, to);
        assert_eq!(receive(&mut b, &marked, Scan::Hot).0, n, "{to}");
    }
    // A busy user port does not starve the others.
    let (user, metatraffic) = (kinds[1][0], kinds[0][0]);
    send(&mut a, &marked, 1000, metatraffic);
    let is_received = (0..10_000).any(|n| {
        send(&mut a, &marked, n % 1000, user);
        receive(&mut b, &marked, Scan::Hot).0 == 1000
    });
    assert!(is_received, "the metatraffic port is never polled");
}

/// A received frame stays unchanged until the next call.
pub fn received_frame_is_valid_until_the_next_receive<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    send(&mut a, &marked, 0, to);
    for n in 1..=20 {
        let since = Instant::now();
        let frame = loop {
            assert!(since.elapsed() < TIMEOUT, "datagram {} does not arrive", n - 1);
            if let Some(frame) = b.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
                break frame;
            }
        };
        let before = frame.to_vec();
        send(&mut a, &marked, n, to);
        assert_eq!(frame[..], before);
        assert_eq!(marked.number(&frame), Some(n - 1));
    }
}
