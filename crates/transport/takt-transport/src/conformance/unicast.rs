//! Conformance of unicast and multicast delivery.

use std::time::Instant;

use takt_wire::Locator;

use super::sending::gathered_datagram_arrives_whole;
use super::{Marked, TIMEOUT, assert_nothing_before, commit, first, receive, send};
use crate::{Commit, Control, FlowId, Receive, Scan, Transport, TransportEvent};

/// The source of a datagram is an address of the sender, at any port. A datagram sent to the
/// sender's announced locator arrives there by the default flow.
pub fn reply_reaches_the_sender_of_a_datagram<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let (at_a, at_b) = (first(&a.status().locators.default_unicast), first(&b.status().locators.default_unicast));
    assert_ne!(at_a, at_b);
    b.control(Control::ReportSources).expect("sources are reported");
    for n in 0..100 {
        send(&mut a, &marked, n, at_b);
        let (number, len, meta) = receive(&mut b, &marked, Scan::All);
        assert_eq!((number, len), (n, 64));
        assert_eq!((meta.source.kind, meta.source.ip()), (at_a.kind, at_a.ip()));
        assert_eq!((meta.local.kind, meta.local.port), (at_b.kind, at_b.port));
        assert_eq!((meta.flow, meta.multicast), (FlowId::DEFAULT, false));
        send(&mut b, &marked, n, at_a);
        assert_eq!(receive(&mut a, &marked, Scan::All).0, n);
    }
    assert_eq!(a.source_of(FlowId::DEFAULT, &at_b), Some(at_a));
}

/// Every announced locator is reachable, at the metatraffic and the user ports.
pub fn every_announced_unicast_locator_is_reached<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let announced = b.status().locators.clone();
    assert!(!announced.metatraffic_unicast.is_empty());
    assert!(!announced.default_unicast.is_empty());
    let all = announced.metatraffic_unicast.iter().chain(&announced.default_unicast);
    for (n, to) in (0..).zip(all) {
        assert!(a.reach(to).is_served() && b.reach(to).is_served(), "{to}");
        for _ in 0..2 {
            a.control(Control::Connect(to)).expect("the locator is served");
        }
        send(&mut a, &marked, n, *to);
        let (number, _, meta) = receive(&mut b, &marked, Scan::All);
        assert_eq!((number, meta.local.port, meta.multicast), (n, to.port, false));
    }
    let unknown = Locator { kind: 0x7fff_0001, port: 1, address: [1; 16] };
    for refused in [unknown, Locator::INVALID] {
        assert!(a.control(Control::Connect(&refused)).is_err(), "{refused}");
    }
    assert!(!matches!(a.poll_event(), Some(TransportEvent::Lost(_))), "no locator is lost");
    let default_unicast = first(&a.status().locators.default_unicast);
    send(&mut b, &marked, 1000, default_unicast);
    assert_eq!(receive(&mut a, &marked, Scan::All).0, 1000);
    assert_nothing_before(&mut a, &mut b, &marked, first(&announced.default_unicast));
}

/// A multicast datagram reaches all members, including the sender, exactly once. Passes for a
/// transport that announces no group.
pub fn multicast_reaches_all_members_and_oneself<T: Transport>(open: impl Fn() -> T) {
    let (mut members, marked) = ([open(), open(), open()], Marked::new());
    let announced = members[0].status().locators.clone();
    let metatraffic = &announced.metatraffic_multicast;
    let groups: Vec<Locator> = metatraffic.iter().chain(&announced.default_multicast).copied().collect();
    for (n, group) in (0..).zip(&groups) {
        assert!(group.is_multicast() && members[0].reach(group).is_served(), "{group}");
        send(&mut members[0], &marked, n, *group);
        for member in &mut members {
            let (number, _, meta) = receive(member, &marked, Scan::All);
            assert_eq!((number, meta.local, meta.multicast), (n, *group, true));
        }
    }
    let [a, b, _] = &mut members;
    let to = first(&b.status().locators.default_unicast);
    assert_nothing_before(a, b, &marked, to);
}

/// Datagrams of one byte up to the maximum length arrive.
pub fn every_size_is_delivered<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    let len_max = a.capabilities().max_message_len;
    assert!(a.loan().expect("a frame is loaned").len() >= len_max);
    let near_powers = (4..17).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let sizes = (12..16).chain(near_powers).chain([len_max - 1, len_max]);
    for (n, size) in (0..).zip(sizes.filter(|s| *s <= len_max)) {
        commit(&mut a, &marked, n, size, FlowId::DEFAULT, &[to]);
        a.flush().expect("flush succeeds");
        let (number, len, _) = receive(&mut b, &marked, Scan::All);
        assert_eq!((number, len), (n, size));
    }
    // Too short for a mark: sent to the port that only this test knows.
    for size in 1..12 {
        let frame = a.loan().expect("a frame is loaned");
        frame[..size].fill(size as u8);
        a.commit(Commit::new(size, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
        assert_nothing_before_but(&mut a, &mut b, &marked, to, size);
    }
    let stats = b.status().stats;
    assert_eq!((stats.truncated, stats.kernel_drops), (0, 0));
    drop((a, b));
    gathered_datagram_arrives_whole(open);
}

/// A datagram of `size` equal bytes arrives, and then the marked one.
fn assert_nothing_before_but<T: Transport>(a: &mut T, b: &mut T, marked: &Marked, to: Locator, size: usize) {
    send(a, marked, 7, to);
    let mut short = 0;
    let since = Instant::now();
    loop {
        assert!(since.elapsed() < TIMEOUT, "the marked datagram does not arrive");
        let Some(frame) = b.recv(Receive::Any(Scan::All)).expect("receive succeeds") else {
            std::thread::yield_now();
            continue;
        };
        if frame.len() == size && frame.iter().all(|byte| *byte == size as u8) {
            short += 1;
        } else if marked.number(&frame).is_some() {
            break;
        }
    }
    assert_eq!(short, 1, "a datagram of {size} bytes");
}
