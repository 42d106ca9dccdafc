//! Conformance of sending: loan, commit, flush.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use takt_wire::Locator;

use super::{Marked, assert_nothing_before, commit, first, receive, send};
use crate::{Commit, FlowId, Payload, Scan, Transport};

/// One flush sends more datagrams than any batch holds, and all arrive.
pub fn more_datagrams_than_a_batch_are_delivered<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    for count in [2, 31, 32, 33, 64, 65, 200] {
        for n in 0..count {
            commit(&mut a, &marked, n, 100, FlowId::DEFAULT, &[to]);
        }
        a.flush().expect("flush succeeds");
        let received: BTreeSet<u32> = (0..count).map(|_| receive(&mut b, &marked, Scan::All).0).collect();
        assert!(received.into_iter().eq(0..count), "{count} datagrams");
    }
    assert_nothing_before(&mut a, &mut b, &marked, to);
}

/// A datagram with a part in separate memory arrives whole and in order at every destination.
pub(super) fn gathered_datagram_arrives_whole<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, mut c, marked) = (open(), open(), open(), Marked::new());
    let (to_b, to_c) = (first(&b.status().locators.default_unicast), first(&c.status().locators.default_unicast));
    let longest = a.capabilities().max_message_len.min(60_000);
    let mut whole = vec![0; longest];
    for (n, len, head) in [(1, longest, 64), (3, 1_000, 999), (5, 1_000, 1)] {
        commit(&mut a, &marked, n - 1, 100, FlowId::DEFAULT, &[to_b]);
        marked.write(n, &mut whole[..len]);
        a.loan().expect("a frame is loaned")[..head].copy_from_slice(&whole[..head]);
        a.commit(Commit::new(head, FlowId::DEFAULT, &[to_b]).with(Payload::Gathered(&whole[head..len])))
            .expect("the frame is accepted");
        a.flush().expect("flush succeeds");
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n - 1);
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n);
    }
    marked.write(6, &mut whole);
    a.loan().expect("a frame is loaned")[..100].copy_from_slice(&whole[..100]);
    a.commit(Commit::new(100, FlowId::DEFAULT, &[to_b, to_c]).with(Payload::Gathered(&whole[100..])))
        .expect("the frame is accepted");
    a.flush().expect("flush succeeds");
    assert_eq!((receive(&mut b, &marked, Scan::All).0, receive(&mut c, &marked, Scan::All).0), (6, 6));
    let beyond = vec![0; a.capabilities().max_message_len];
    a.loan().expect("a frame is loaned");
    assert!(
        a.commit(Commit::new(1, FlowId::DEFAULT, &[to_b]).with(Payload::Gathered(&beyond))).is_err(),
        "longer than the frame"
    );
    assert_nothing_before(&mut a, &mut b, &marked, to_b);
}

/// One frame with several destinations reaches each of them once.
pub fn one_frame_reaches_all_its_destinations<T: Transport>(open: impl Fn() -> T) {
    let (mut a, marked) = (open(), Marked::new());
    let mut others: Vec<T> = (0..5).map(|_| open()).collect();
    let to: Vec<Locator> = others.iter().map(|t| first(&t.status().locators.default_unicast)).collect();
    for n in 0..40 {
        commit(&mut a, &marked, n, 200, FlowId::DEFAULT, &to);
    }
    a.flush().expect("flush succeeds");
    for (other, to) in others.iter_mut().zip(to) {
        let received: BTreeSet<u32> = (0..40).map(|_| receive(other, &marked, Scan::All).0).collect();
        assert!(received.into_iter().eq(0..40));
        assert_nothing_before(&mut a, other, &marked, to);
    }
    assert_eq!(a.status().stats.datagrams_out, 5 * 41);
}

/// Destinations that the transport does not serve, or that the machine refuses, are counted. The
/// other destinations are reached.
pub fn unreachable_destination_does_not_affect_the_others<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    let unknown = Locator { kind: 0x7fff_0001, port: 1, address: [1; 16] };
    let portless = Locator { port: 0, ..to };
    let unspecified = Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 7411);
    let bad = [Locator::INVALID, unknown, portless, unspecified];
    for locator in &bad {
        assert!(!a.reach(locator).is_served(), "{locator}");
    }
    let [b0, b1, b2, b3] = bad;
    for n in 0..10 {
        commit(&mut a, &marked, n, 64, FlowId::DEFAULT, &[b0, b1, to, b2, b3]);
        commit(&mut a, &marked, 999, 64, FlowId::DEFAULT, &[b1]);
    }
    commit(&mut a, &marked, 10, 64, FlowId::DEFAULT, &[to]);
    a.flush().expect("flush succeeds");
    for n in 0..=10 {
        assert_eq!(receive(&mut b, &marked, Scan::All).0, n);
    }
    assert_eq!(a.status().stats.send_errors.unserved, 50);
    assert_eq!(a.status().stats.datagrams_out, 11);
}

/// A loaned frame keeps its content through a second loan and a flush.
pub fn frame_is_kept_until_it_is_committed<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    for before in 0..3 {
        for n in 0..before {
            commit(&mut a, &marked, 100 + n, 64, FlowId::DEFAULT, &[to]);
        }
        marked.write(before, &mut a.loan().expect("a frame is loaned")[..64]);
        a.flush().expect("flush succeeds");
        assert_eq!(marked.number(&a.loan().expect("a frame is loaned")[..64]), Some(before));
        a.commit(Commit::new(64, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
        a.flush().expect("flush succeeds");
        for n in 0..before {
            assert_eq!(receive(&mut b, &marked, Scan::All).0, 100 + n);
        }
        assert_eq!(receive(&mut b, &marked, Scan::All).0, before);
    }
    // Committing without destinations drops the frame.
    marked.write(50, &mut a.loan().expect("a frame is loaned")[..64]);
    a.commit(Commit::new(64, FlowId::DEFAULT, &[])).expect("the frame is accepted");
    assert_nothing_before(&mut a, &mut b, &marked, to);
}

/// Misuse by the caller is an error and changes nothing.
pub fn misuse_of_frames_is_an_error<T: Transport>(open: impl Fn() -> T) {
    let (mut a, mut b, marked) = (open(), open(), Marked::new());
    let to = first(&b.status().locators.default_unicast);
    assert!(a.commit(Commit::new(1, FlowId::DEFAULT, &[to])).is_err(), "commit without a loaned frame fails");
    let room = a.loan().expect("a frame is loaned").len();
    assert!(a.commit(Commit::new(room + 1, FlowId::DEFAULT, &[to])).is_err(), "too long");
    assert!(a.commit(Commit::new(64, FlowId(777), &[to])).is_err(), "an unknown flow is refused");
    // The loaned frame is still available.
    marked.write(1, &mut a.loan().expect("a frame is loaned")[..64]);
    a.commit(Commit::new(64, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
    a.flush().expect("flush succeeds");
    a.flush().expect("flush without data succeeds");
    assert_eq!(receive(&mut b, &marked, Scan::All).0, 1);
    assert!(a.commit(Commit::new(64, FlowId::DEFAULT, &[to])).is_err(), "a second commit fails");
    send(&mut a, &marked, 2, to);
    assert_eq!(receive(&mut b, &marked, Scan::All).0, 2);
}
