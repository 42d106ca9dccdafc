//! Reflection attacks: no forged datagram directs traffic at a victim.
//!
//! Traffic to an address that was not validated is at most [`AMPLIFICATION_MAX`] times the traffic
//! received for it. The headers of UDP and IPv4 are excluded from the received octets and included
//! in the sent ones. Each test is one kind of attack.

use crate::network::*;
use crate::puppet::*;
use std::net::Ipv4Addr;
use takt_core::*;
use takt_wire::discovery::SubscriptionData;
use takt_wire::message::{AckNack, Heartbeat, NackFrag, Payload};
use takt_wire::qos::*;
use takt_wire::type_lookup::{Addressee, EquivalenceId, Operation, RequestId, TypeRequest, UnionForm};
use takt_wire::{EntityId, FragmentNumberSet, GuidPrefix, Locator, SequenceNumber, SequenceNumberSet};

const HEADERS_LEN: usize = 28;
/// Time in which every timer fires, and some announcements are sent.
const LONG_MS: u64 = 15_000;

fn victim() -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 77), 7411)
}

/// Participant with much to send: a megabyte of history of the topic `T`, a reader, and a type.
struct Stage {
    node: Participant,
    now: Instant,
    writer: WriterHandle,
    received: usize,
    /// Octets sent to the victim, with headers.
    to_victim: usize,
    /// Times of the datagrams to all participants.
    to_all: Vec<Instant>,
    frame: Vec<u8>,
}

impl Stage {
    fn new() -> Self {
        let now = Instant(1_000_000_000);
        let mut config = config(0, 1500);
        config.secret = [3, 4];
        let mut node = Participant::new(config, now).expect("the configuration is valid");
        let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
        let writer = node.create_writer(now, writer_spec("T", false, qos)).expect("the writer is valid");
        node.create_reader(now, reader_spec("T", false, keep_all_reader())).expect("the reader is valid");
        let object = vec![7; 100_000].into();
        node.offer_type(OfferedType { id: type_id(), object, dependencies: Box::new([]), minimal: None })
            .expect("write accepted");
        let frame = vec![0; 65_507];
        let mut stage = Self { node, now, writer, received: 0, to_victim: 0, to_all: Vec::new(), frame };
        (0..20).for_each(|number| stage.write(number));
        stage
    }

    fn write(&mut self, number: u32) {
        let bytes = payload(number, 50_000);
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: bytes.len(),
        };
        let fill = |slot: &mut [u8]| {
            slot.copy_from_slice(&bytes);
            Some(bytes.len())
        };
        self.node.write(self.now, self.writer, &change, fill).expect("write accepted");
    }

    /// Handles a datagram with the given source.
    fn receive(&mut self, source: Locator, datagram: &[u8]) {
        self.received += datagram.len();
        self.node.handle_datagram(self.now, Received { source, multicast: false }, datagram);
        self.send();
    }

    fn send(&mut self) {
        while let Some(transmit) = self.node.poll_transmit(self.now, &mut self.frame) {
            for to in transmit.destinations {
                self.to_victim += if to.ip() == victim().ip() { transmit.len + HEADERS_LEN } else { 0 };
                self.to_all.extend(to.is_multicast().then_some(self.now));
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = Instant(self.now.0 + ms * 1_000_000);
        while let Some(due) = self.node.poll_timeout().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.node.handle_timeout(self.now);
            self.send();
        }
        self.now = end;
    }

    /// Advances the time, and checks the traffic to the victim. The least number of octets shows
    /// that the attack took effect.
    fn assert_bounded(&mut self, least: usize) {
        self.run(LONG_MS);
        let (sent, received) = (self.to_victim, self.received);
        assert!(sent <= AMPLIFICATION_MAX * received, "{sent} octets for {received}");
        assert!(sent >= least, "{sent} octets for {received}");
    }

    /// Adds a participant that validates its own address, and may then send anything.
    fn admit(&mut self, puppet: &mut Puppet) {
        puppet.join(&mut self.node, self.now);
        assert_eq!(self.node.counters().participants_validated, 1);
        self.send();
        self.to_victim = 0;
        self.received = 0;
    }
}

fn type_id() -> EquivalenceId {
    EquivalenceId::new(EquivalenceId::COMPLETE, [1; 14])
}

/// Returns a participant that claims to be at the victim's address.
fn impostor(number: usize) -> Puppet {
    let mut puppet = Puppet::new(3);
    puppet.prefix.0[4..8].copy_from_slice(&(number as u32).to_be_bytes());
    puppet.address = victim();
    puppet
}

fn spdp(puppet: &Puppet) -> Vec<u8> {
    let payload = puppet.announcement().to_bytes();
    puppet.datagram(|message| {
        message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&payload))).expect("it fits");
    })
}

/// Returns a request for everything from the first number on.
fn greedy(reader: EntityId, writer: EntityId, first: i64, count: i32) -> AckNack {
    let mut reader_sn_state = SequenceNumberSet::new(SequenceNumber(first));
    (first..first + 256).for_each(|sn| {
        reader_sn_state.insert(SequenceNumber(sn));
    });
    AckNack { reader, writer, reader_sn_state, count, is_final: false }
}

#[test]
fn traffic_is_bounded_after_an_announcement_with_the_locators_of_a_victim() {
    let mut stage = Stage::new();
    stage.receive(address(5), &spdp(&impostor(1)));
    stage.assert_bounded(200);
}

/// Regression: octets that a participant with an unvalidated address had sent were credited to the
/// victim's address once an announcement in its name directed traffic there.
#[test]
fn messages_from_another_address_permit_no_traffic_to_a_victim() {
    let mut stage = Stage::new();
    let mut puppet = impostor(1);
    puppet.address = address(5);
    stage.receive(address(5), &spdp(&puppet));
    let mut speak = |stage: &mut Stage| {
        for number in 1..50 {
            let heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, 1, 1_000 * number);
            let datagram = puppet.datagram(|message| message.heartbeat(&heartbeat).expect("it fits"));
            stage.receive(address(5), &datagram);
            stage.run(50);
        }
    };
    speak(&mut stage);
    assert_eq!(stage.to_victim, 0);
    stage.received = 0;
    stage.receive(address(5), &spdp(&impostor(1)));
    let received = stage.received;
    speak(&mut stage);
    stage.received = received;
    stage.assert_bounded(1);
}

#[test]
fn traffic_is_bounded_after_an_announcement_with_source_and_locators_of_a_victim() {
    let mut stage = Stage::new();
    let datagram = spdp(&impostor(1));
    for _ in 0..20 {
        stage.receive(victim(), &datagram);
        stage.run(50);
    }
    stage.assert_bounded(3_000);
}

#[test]
fn traffic_is_bounded_after_an_announcement_of_the_least_length() {
    let mut stage = Stage::new();
    let puppet = impostor(1);
    let mut announcement = puppet.announcement();
    announcement.default_unicast.clear();
    let payload = announcement.to_bytes();
    stage.receive(
        victim(),
        &puppet.datagram(|message| {
            message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&payload))).expect("it fits");
        }),
    );
    stage.assert_bounded(1);
}

#[test]
fn traffic_is_bounded_after_thousands_of_announcements_with_one_victim() {
    let mut stage = Stage::new();
    for number in 0..2_000 {
        stage.receive(address(5), &spdp(&impostor(number)));
        if number % 100 == 0 {
            stage.run(1);
        }
    }
    stage.assert_bounded(100_000);
}

#[test]
fn traffic_is_bounded_after_many_announcements_in_one_datagram() {
    let mut stage = Stage::new();
    let mut datagram = spdp(&impostor(0))[..20].to_vec();
    for number in 0..100 {
        let puppet = impostor(number);
        // An INFO_SRC precedes each announcement.
        datagram.extend_from_slice(&[0x0c, 0x01, 20, 0, 0, 0, 0, 0, 2, 5, 1, 0x7a]);
        datagram.extend_from_slice(&puppet.prefix.0);
        datagram.extend_from_slice(&spdp(&puppet)[20..]);
    }
    stage.receive(victim(), &datagram);
    assert_eq!(stage.node.counters().participants_discovered, 100);
    stage.assert_bounded(200);
}

#[test]
fn traffic_is_bounded_after_announcement_endpoints_and_requests_at_once() {
    let mut stage = Stage::new();
    let puppet = impostor(1);
    let to = stage.node.guid().prefix;
    stage.receive(victim(), &spdp(&puppet));
    let subscription = puppet.subscription(1, true).to_bytes();
    for count in 1..50 {
        let sedp = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_SUB_WRITER,
            first_sn: SequenceNumber(1),
            last_sn: SequenceNumber(1),
            count,
            is_final: false,
            liveliness: false,
            group: None,
        };
        let datagram = puppet.datagram(|message| {
            message.info_destination(to).expect("it fits");
            message.heartbeat(&sedp).expect("it fits");
            message.data(&data(EntityId::SEDP_SUB_WRITER, 1, Payload::Data(&subscription))).expect("it fits");
            for (reader, writer) in [
                (EntityId::SEDP_PUB_READER, EntityId::SEDP_PUB_WRITER),
                (EntityId::SEDP_SUB_READER, EntityId::SEDP_SUB_WRITER),
                (EntityId::user_reader(1, false), EntityId::user_writer(1, false)),
            ] {
                message.acknack(&greedy(reader, writer, 1, count)).expect("it fits");
            }
        });
        stage.receive(victim(), &datagram);
        stage.run(10);
    }
    assert_eq!(stage.node.matched_subscriptions(stage.writer).expect("the writer exists").len(), 1, "our own reader");
    stage.assert_bounded(1_000);
}

#[test]
fn traffic_is_bounded_after_forged_heartbeats() {
    let mut stage = Stage::new();
    let mut puppet = impostor(1);
    stage.receive(victim(), &spdp(&puppet));
    let to = stage.node.guid().prefix;
    for number in 1..200 {
        let mut heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, 1, 1_000 * number);
        heartbeat.reader = EntityId::SEDP_PUB_READER;
        let datagram = puppet.datagram(|message| {
            message.info_destination(to).expect("it fits");
            message.heartbeat(&heartbeat).expect("it fits");
        });
        stage.receive(victim(), &datagram);
        stage.run(1);
    }
    stage.assert_bounded(1_000);
}

#[test]
fn traffic_is_bounded_after_forged_challenges() {
    let mut stage = Stage::new();
    let mut puppet = impostor(1);
    stage.receive(victim(), &spdp(&puppet));
    let to = stage.node.guid().prefix;
    for number in 1..200 {
        let heartbeats = [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_SUB_WRITER]
            .map(|writer| puppet.heartbeat(writer, 40_000 + number, 39_999 + number));
        let datagram = puppet.datagram(|message| {
            message.info_destination(to).expect("it fits");
            heartbeats.iter().for_each(|heartbeat| message.heartbeat(heartbeat).expect("it fits"));
        });
        stage.receive(victim(), &datagram);
        stage.run(10);
    }
    stage.assert_bounded(10_000);
}

#[test]
fn traffic_is_bounded_after_guessed_answers_to_the_challenge() {
    let mut stage = Stage::new();
    let puppet = impostor(1);
    stage.receive(victim(), &spdp(&puppet));
    for number in 0..(1 << 15) / 256 {
        let datagram = puppet.datagram(|message| {
            for guess in 0..256 {
                for (reader, writer) in [
                    (EntityId::SEDP_PUB_READER, EntityId::SEDP_PUB_WRITER),
                    (EntityId::SEDP_SUB_READER, EntityId::SEDP_SUB_WRITER),
                ] {
                    let reader_sn_state = SequenceNumberSet::new(SequenceNumber((1 << 15) + number * 256 + guess));
                    let acknack = AckNack { reader, writer, reader_sn_state, count: 1, is_final: true };
                    message.acknack(&acknack).expect("it fits");
                }
            }
        });
        stage.receive(victim(), &datagram);
    }
    let counters = stage.node.counters();
    assert_eq!((counters.participants_validated, counters.wrong_answers), (0, 2 * (1 << 15) - 2));
    stage.assert_bounded(1);
}

#[test]
fn traffic_is_bounded_after_forged_requests_for_types() {
    let mut stage = Stage::new();
    let mut puppet = impostor(1);
    let announcement =
        takt_wire::discovery::ParticipantData { available_builtin_endpoints: 0xfc3f, ..puppet.announcement() };
    let payload = announcement.to_bytes();
    let datagram = puppet.datagram(|message| {
        message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&payload))).expect("it fits");
    });
    stage.receive(victim(), &datagram);
    let writer = EntityId::TYPE_LOOKUP_REQUEST_WRITER;
    let request = TypeRequest {
        id: RequestId { writer: puppet.guid(writer), number: 1 },
        addressee: Addressee::Participant(stage.node.guid()),
        operation: Operation::Types(vec![type_id()]),
        form: UnionForm::Final,
    };
    let request = request.to_bytes();
    for sn in 1..20 {
        let heartbeat = puppet.heartbeat(writer, 1, sn);
        let datagram = puppet.datagram(|message| {
            message.heartbeat(&heartbeat).expect("it fits");
            message.data(&data(writer, sn, Payload::Data(&request))).expect("it fits");
        });
        stage.receive(victim(), &datagram);
    }
    assert_eq!(stage.node.counters().type_requests_served, 0);
    stage.assert_bounded(200);
}

#[test]
fn traffic_is_bounded_when_farewells_go_to_unvalidated_participants() {
    let mut stage = Stage::new();
    for number in 0..50 {
        stage.receive(victim(), &spdp(&impostor(number)));
    }
    stage.node.shutdown();
    stage.send();
    stage.assert_bounded(1_000);
}

/// A participant with a validated address directs its data to another address: by its default
/// locators, or those of an endpoint.
#[test]
fn data_are_not_sent_to_an_endpoint_at_an_unvalidated_address() {
    for by_default in [true, false] {
        let mut stage = Stage::new();
        let mut puppet = Puppet::new(5);
        if by_default {
            puppet.default_address = victim();
        }
        stage.admit(&mut puppet);
        let unicast = if by_default { vec![] } else { vec![victim()] };
        let subscription = SubscriptionData { unicast: unicast.clone(), ..puppet.subscription(1, true) };
        puppet.subscribe(&mut stage.node, stage.now, &subscription);
        let subscription = SubscriptionData { unicast: unicast.clone(), ..puppet.subscription(2, false) };
        puppet.subscribe(&mut stage.node, stage.now, &subscription);
        let mut publication = puppet.publication(1, true);
        publication.unicast = unicast;
        puppet.publish(&mut stage.node, stage.now, &publication);
        (0..20).for_each(|number| stage.write(number));
        stage.send();
        stage.run(LONG_MS);
        assert_eq!(stage.to_victim, 0);
        let refusals: Vec<_> = stage.node.refusals().map(|refusal| &refusal.reason).collect();
        assert_eq!(refusals, [&RefusalReason::Unreachable; 3]);
        assert!(stage.node.counters().refused_locators >= 3);
    }
}

/// The other address is configured, so it may be used.
#[test]
fn data_are_sent_to_an_endpoint_at_the_address_of_a_configured_peer() {
    let mut config = config(0, 1500);
    config.initial_peers.push(victim());
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config, now).expect("the configuration is valid");
    let writer = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
    let mut puppet = Puppet::new(5);
    puppet.default_address = victim();
    puppet.join(&mut node, now);
    puppet.subscribe(&mut node, now, &puppet.subscription(1, true));
    puppet.acknowledge_writers(&mut node, now, 1);
    assert_eq!(node.matched_subscriptions(writer).expect("the writer exists").len(), 1);
}

#[test]
fn traffic_is_bounded_after_a_move_to_the_address_of_a_victim() {
    let mut stage = Stage::new();
    let mut puppet = Puppet::of_ours(5);
    stage.admit(&mut puppet);
    puppet.subscribe(&mut stage.node, stage.now, &puppet.subscription(1, true));
    puppet.acknowledge_writers(&mut stage.node, stage.now, 1);
    stage.send();
    assert_eq!(stage.node.matched_subscriptions(stage.writer).expect("the writer exists").len(), 2);
    stage.received = 0;
    puppet.address = victim();
    stage.receive(victim(), &spdp(&puppet));
    let matched = stage.node.matched_subscriptions(stage.writer).expect("the writer exists");
    assert_eq!(matched.len(), 2, "a forged move does not end the match");
    // The forger knows everything except what was sent to the victim.
    let to = stage.node.guid().prefix;
    for count in 1..20 {
        let datagram = puppet.datagram(|message| {
            message.info_destination(to).expect("it fits");
            let writer = EntityId::SEDP_PUB_WRITER;
            message.acknack(&greedy(EntityId::SEDP_PUB_READER, writer, (1 << 16) + 1, count)).expect("it fits");
        });
        stage.receive(victim(), &datagram);
        stage.run(10);
    }
    stage.assert_bounded(300);
}

/// Requests of a reader are answered at that reader's address, regardless of INFO_REPLY, and not at
/// all if they come from another address.
#[test]
fn repairs_ignore_a_forged_source_and_reply_locators() {
    let mut stage = Stage::new();
    let mut puppet = Puppet::new(5);
    stage.admit(&mut puppet);
    let mut subscription = puppet.subscription(1, true);
    subscription.qos.durability = Durability::TransientLocal;
    puppet.subscribe(&mut stage.node, stage.now, &subscription);
    stage.send();
    let (reader, writer) = (EntityId::user_reader(1, false), EntityId::user_writer(1, false));
    let before = stage.node.counters().repairs_sent;
    let mut fragments = FragmentNumberSet::new(1);
    (1..30).for_each(|number| {
        fragments.insert(number);
    });
    for (first, source) in [(1, victim()), (10, puppet.address)] {
        for count in first..first + 9 {
            let mut datagram = puppet.datagram(|message| {
                message.acknack(&greedy(reader, writer, 1, count)).expect("it fits");
                message
                    .nack_frag(&NackFrag { reader, writer, sn: SequenceNumber(1), fragments, count })
                    .expect("it fits");
            });
            // An INFO_REPLY with one locator precedes everything else.
            let mut info_reply = vec![0x0f, 0x01, 28, 0, 1, 0, 0, 0];
            info_reply.extend_from_slice(&victim().kind.to_le_bytes());
            info_reply.extend_from_slice(&victim().port.to_le_bytes());
            info_reply.extend_from_slice(&victim().address);
            datagram.splice(20..20, info_reply);
            stage.receive(source, &datagram);
            stage.run(10);
        }
        let repairs = stage.node.counters().repairs_sent - before;
        assert_eq!(repairs > 20, source == puppet.address, "{repairs} repairs for requests from {source}");
    }
    assert_eq!(stage.to_victim, 0);
    assert_eq!(stage.node.counters().malformed_submessages, 0);
}

#[test]
fn announcements_do_not_become_more_frequent_with_new_participants() {
    let mut stage = Stage::new();
    stage.run(60_000);
    stage.to_all.clear();
    let start = stage.now;
    for number in 0..5_000 {
        stage.receive(address(5), &spdp(&impostor(number)));
        stage.run(1);
    }
    let elapsed_ms = (stage.now.0 - start.0) / 1_000_000;
    assert!(stage.to_all.len() as u64 <= elapsed_ms / 100 + 1, "{} in {elapsed_ms} ms", stage.to_all.len());
    assert!(stage.to_all.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 100_000_000));
    stage.assert_bounded(1);
}

/// All attacks in random order, by several forgers at once.
#[test]
fn traffic_is_bounded_under_random_attacks() {
    for seed in 1..30 {
        let mut dice = Dice(seed);
        let mut stage = Stage::new();
        let mut impostors: Vec<_> = (0..4).map(impostor).collect();
        for step in 0..300 {
            let to = stage.node.guid().prefix;
            let which = dice.roll(4) as usize;
            let puppet = &mut impostors[which];
            let heartbeat = puppet.heartbeat(EntityId::SEDP_PUB_WRITER, 1 + dice.roll(70_000) as i64, 40_000);
            let (names_us, what) = (dice.percent(50), dice.roll(4));
            let announcement = puppet.announcement().to_bytes();
            let first = if dice.percent(50) { 1 } else { (1 << 16) + 1 };
            let datagram = puppet.datagram(|message| {
                message.info_destination(if names_us { to } else { GuidPrefix::default() }).expect("it fits");
                if what == 0 {
                    let data = data(EntityId::SPDP_WRITER, 1, Payload::Data(&announcement));
                    message.data(&data).expect("it fits");
                } else if what == 1 {
                    message.heartbeat(&heartbeat).expect("it fits");
                } else if what == 2 {
                    let acknack = greedy(EntityId::SEDP_PUB_READER, EntityId::SEDP_PUB_WRITER, first, step);
                    message.acknack(&acknack).expect("it fits");
                }
            });
            stage.receive(if dice.percent(50) { victim() } else { address(5) }, &datagram);
            stage.run(dice.roll(40));
        }
        assert_eq!(stage.node.counters().participants_validated, 0);
        stage.assert_bounded(1_000);
    }
}
