//! Tests of the router: receivers of messages, and sharing of datagrams.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::message::Payload;
use takt_wire::{EntityId, GuidPrefix, Locator, SequenceNumber};

use super::frame::Inbound;
use super::message::{Mark, header_of};
use super::router::{Bundling, Deliver, Network, Router};
use crate::Locators;

const DOMAIN: u32 = 0;
const SECOND: Duration = Duration::from_secs(1);

/// Records the outputs of the router.
#[derive(Default)]
struct Recorder {
    prepared: Vec<u8>,
    delivered: Vec<(Locator, Vec<u8>)>,
    sent: Vec<(Locator, Vec<u8>)>,
    full: Option<Locator>,
}

impl Deliver for Recorder {
    fn prepare(&mut self, _: &Inbound, message: &[u8]) {
        self.prepared = message.to_vec();
    }

    fn deliver(&mut self, application: &Locator) -> bool {
        let has_room = self.full != Some(*application);
        if has_room {
            self.delivered.push((*application, self.prepared.clone()));
        }
        has_room
    }
}

impl Network for Recorder {
    fn send(&mut self, _: u32, _: i32, to: &Locator, pieces: &[&[u8]]) {
        self.sent.push((*to, pieces.concat()));
    }
}

impl Recorder {
    fn receivers(&mut self) -> Vec<Locator> {
        self.delivered.drain(..).map(|(to, _)| to).collect()
    }
}

fn udp(host: u8, port: u16) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(192, 0, 2, host), port)
}

fn group() -> Locator {
    Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400)
}

fn application(n: u8) -> Locator {
    Locator { kind: Locator::KIND_TAKT_SHM, port: 2, address: [n; 16] }
}

fn prefix(n: u8) -> GuidPrefix {
    GuidPrefix([n; 12])
}

fn own(host: u8) -> Locators {
    Locators {
        metatraffic_unicast: vec![udp(host, 7410)],
        metatraffic_multicast: vec![group()],
        default_unicast: vec![udp(host, 7411)],
        default_multicast: Vec::new(),
    }
}

fn built(from: u8, build: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
    let mut frame = [0; 2048];
    let mut builder = MessageBuilder::new(&mut frame, &header_of(prefix(from))).expect("room");
    build(&mut builder);
    let len = builder.len();
    frame[..len].to_vec()
}

/// Makes a message that is not about discovery.
fn message(from: u8, to: Option<u8>) -> Vec<u8> {
    built(from, |builder| {
        to.map_or(Ok(()), |to| builder.info_destination(prefix(to))).expect("room");
        builder.pad(8).expect("room");
    })
}

fn announcement(from: u8) -> Vec<u8> {
    built(from, |builder| {
        let (reader, writer) = (EntityId::SPDP_READER, EntityId::SPDP_WRITER);
        let payload = Payload::Data(b"\x00\x03\x00\x00what it says");
        builder.data(&DataEmit { reader, writer, sn: SequenceNumber::FIRST, inline_qos: None, payload }).expect("room");
    })
}

/// Makes a router with applications 1 to `count`, each of which has announced itself.
fn router(bundling: Bundling, count: u8) -> (Router, Recorder) {
    let (mut router, mut out) = (Router::new(bundling), Recorder::default());
    router.set_own(DOMAIN, &own(1), 1500);
    for n in 1..=count {
        router.join(Duration::ZERO, application(n), DOMAIN, None, &mut out);
        router.handle_message(Duration::ZERO, &application(n), 0, &[group()], &announcement(n), &mut out);
    }
    router.flush(&mut out);
    (router, Recorder::default())
}

fn from_network(router: &mut Router, out: &mut Recorder, datagram: &[u8], is_multicast: bool) {
    let local = if is_multicast { group() } else { udp(1, 7411) };
    let header = Inbound { source: udp(2, 7411), local, is_multicast };
    router.handle_datagram(SECOND, DOMAIN, &header, datagram, out);
}

#[test]
fn directed_message_reaches_its_application_and_undirected_one_all() {
    let (mut router, mut out) = router(Bundling::Daemons, 3);
    from_network(&mut router, &mut out, &message(9, Some(2)), false);
    assert_eq!(out.receivers(), [application(2)]);
    from_network(&mut router, &mut out, &message(9, None), true);
    assert_eq!(out.receivers(), [1, 2, 3].map(application));
    from_network(&mut router, &mut out, &message(9, Some(8)), false);
    assert_eq!(out.receivers(), []);
    assert_eq!(router.domain_counters().next().expect("a domain").1.unrouted, 1);
}

#[test]
fn message_between_applications_of_the_host_does_not_leave() {
    let (mut router, mut out) = router(Bundling::Daemons, 3);
    router.handle_message(SECOND, &application(1), 0, &[udp(1, 7411)], &message(1, Some(3)), &mut out);
    router.flush(&mut out);
    assert_eq!((out.receivers(), out.sent.len()), (vec![application(3)], 0));
    router.handle_message(SECOND, &application(1), 0, &[udp(1, 7411), udp(2, 7411)], &message(1, None), &mut out);
    router.flush(&mut out);
    assert_eq!(out.receivers(), [1, 2, 3].map(application));
    assert_eq!(out.sent, [(udp(2, 7411), message(1, None))]);
}

#[test]
fn returning_own_multicast_is_dropped() {
    let (mut router, mut out) = router(Bundling::Daemons, 2);
    from_network(&mut router, &mut out, &message(1, None), true);
    assert_eq!(out.receivers(), []);
}

#[test]
fn full_ring_loses_messages_of_its_application_alone() {
    let (mut router, mut out) = router(Bundling::Daemons, 3);
    out.full = Some(application(2));
    from_network(&mut router, &mut out, &message(9, None), true);
    assert_eq!(out.receivers(), [1, 3].map(application));
    let dropped = |n| router.applications()[&application(n)].counters.dropped;
    assert_eq!([1, 2, 3].map(dropped), [0, 1, 0]);
}

#[test]
fn malformed_and_unknown_messages_are_refused_and_counted() {
    let (mut router, mut out) = router(Bundling::Daemons, 2);
    let mut long = message(1, None);
    long[22] = 0xff;
    for wrong in [&b"GET / HTTP/1.1"[..], &[], &long, &message(2, None), &message(7, None)] {
        router.handle_message(SECOND, &application(1), 0, &[udp(1, 7411), udp(2, 7411)], wrong, &mut out);
    }
    router.refuse(&application(1));
    router.flush(&mut out);
    assert_eq!((out.receivers(), out.sent.len()), (vec![], 0));
    assert_eq!(router.applications()[&application(1)].counters.refused, 6);
    router.handle_message(SECOND, &application(9), 0, &[udp(2, 7411)], &message(9, None), &mut out);
    assert_eq!(router.unknown_senders, 1);
    from_network(&mut router, &mut out, b"RTP", false);
    from_network(&mut router, &mut out, &long, false);
    assert_eq!(router.domain_counters().next().expect("a domain").1.malformed, 2);
}

#[test]
fn messages_to_a_daemon_share_a_datagram_and_others_do_not() {
    let (mut router, mut out) = router(Bundling::Daemons, 3);
    let mark = Mark { is_bundle: false, metatraffic_port: 7410, user_port: 7411 };
    let remote = announcement(9);
    let marked = [&remote[..20], &mark.to_bytes(), &remote[20..]].concat();
    let all = |router: &mut Router, out: &mut Recorder| {
        for n in 1..=3 {
            router.handle_message(SECOND, &application(n), 0, &[udp(2, 7411)], &message(n, Some(9)), out);
        }
        router.flush(out);
        out.sent.drain(..).count()
    };
    assert_eq!(all(&mut router, &mut out), 3);
    from_network(&mut router, &mut out, &marked, true);
    assert_eq!(out.delivered[0].1, remote, "applications do not receive the mark");
    assert_eq!(all(&mut router, &mut out), 1);
}

#[test]
fn bundle_of_a_daemon_is_split_by_the_other_daemon() {
    let (mut here, mut out) = router(Bundling::All, 2);
    for (n, to) in [(1, 3), (2, 4), (1, 4)] {
        here.handle_message(SECOND, &application(n), 0, &[udp(2, 7411)], &message(n, Some(to)), &mut out);
    }
    here.flush(&mut out);
    assert_eq!(out.sent.len(), 1);
    let (mut there, mut received) = (Router::new(Bundling::All), Recorder::default());
    there.set_own(DOMAIN, &own(2), 1500);
    for n in [3, 4] {
        there.join(SECOND, application(n), DOMAIN, Some(prefix(n)), &mut received);
    }
    from_network(&mut there, &mut received, &out.sent[0].1, false);
    let expected = [(1, 3), (2, 4), (1, 4)].map(|(from, to)| (application(to), message(from, Some(to))));
    assert_eq!(received.delivered, expected);
}

#[test]
fn joining_application_receives_earlier_announcements() {
    let (mut router, mut out) = router(Bundling::Daemons, 1);
    from_network(&mut router, &mut out, &announcement(9), true);
    assert_eq!(out.receivers(), [application(1)]);
    router.join(2 * SECOND, application(2), DOMAIN, None, &mut out);
    let expected = [1, 9].map(|n| (application(2), announcement(n)));
    assert_eq!(std::mem::take(&mut out.delivered), expected);
    router.join(60 * SECOND, application(3), DOMAIN, None, &mut out);
    assert_eq!(out.delivered, [(application(3), announcement(1))], "the other end may be gone");
}

#[test]
fn announcements_of_all_applications_share_one_datagram_per_period() {
    let (mut router, mut out) = router(Bundling::Daemons, 3);
    for round in 1..=4 {
        for n in 1..=3 {
            let now = 3 * round * SECOND + u32::from(n) * SECOND / 4;
            router.handle_message(now, &application(n), 0, &[group()], &announcement(n), &mut out);
            router.flush(&mut out);
        }
    }
    // The periods are known after the first round.
    assert_eq!(out.sent.len(), 3 + 3);
    assert_eq!(out.delivered.len(), 4 * 3 * 3, "each participant of the host receives each");
}

#[test]
fn application_that_dies_is_announced_as_left() {
    let (mut router, mut out) = router(Bundling::Daemons, 2);
    assert!(router.leave(&application(1), &mut out).is_some());
    assert_eq!((out.receivers(), out.sent.len()), (vec![application(2)], 1));
    assert_eq!(out.sent[0].0, group());
    assert!(router.leave(&application(1), &mut out).is_none());
    // An application that has announced that it leaves, in its own message.
    let dispose = out.sent.remove(0).1;
    let dispose = [&dispose[..8], &prefix(2).0, &dispose[20..]].concat();
    router.handle_message(SECOND, &application(2), 0, &[group()], &dispose, &mut out);
    router.flush(&mut out);
    out.sent.clear();
    router.leave(&application(2), &mut out);
    assert_eq!(out.sent.len(), 0);
    // Its prefix is free for another application.
    router.join(SECOND, application(5), DOMAIN, Some(prefix(1)), &mut out);
    assert_eq!(router.applications()[&application(5)].prefix, Some(prefix(1)));
}
