//! Work of one call: units, and steps for each of them, as `docs/reference/limits.md` states.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::discovery::PublicationData;
use takt_wire::message::Payload;

fn listener() -> (Participant, ReaderHandle, Instant) {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let reader = node.create_reader(now, reader_spec("T", true, keep_all_reader())).expect("the reader is valid");
    outgoing(&mut node, now);
    (node, reader, now)
}

/// Returns the work of a call, and the bound on the steps of one unit.
fn measure(node: &mut Participant, call: impl FnOnce(&mut Participant)) -> (Work, u64) {
    let before = node.take_work();
    let bound = node.steps_per_unit_max();
    call(node);
    let bound = bound.max(node.steps_per_unit_max());
    let mut work = node.take_work();
    work.units -= before.units;
    work.steps -= before.steps;
    (work, bound)
}

#[test]
fn departure_visits_each_instance_once_for_any_number_of_writers() {
    let (mut node, reader, now) = listener();
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    for key in 1..=100 {
        let writer = EntityId::user_writer(key, true);
        let publication = PublicationData { guid: puppet.guid(writer), ..puppet.publication(key, true) };
        puppet.publish(&mut node, now, &publication);
        let heartbeat = puppet.heartbeat(writer, 1, 10);
        puppet.say(&mut node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            for sn in 1..=10 {
                let instance = (key as i64 * 10 + sn) % 256;
                let bytes = payload(instance as u32, 20);
                message.data(&data(writer, sn, Payload::Data(&bytes))).expect("it fits");
            }
        });
    }
    let mut cursor = ReadCursor::default();
    let mut taken = 0;
    while node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("the reader exists").is_some() {
        taken += 1;
    }
    assert_eq!(taken, 1_000);
    while node.poll_event().is_some() {}
    outgoing(&mut node, now);
    let (work, bound) = measure(&mut node, |node| puppet.leave(node, now));
    assert_eq!(node.matched_publications(reader).expect("the reader exists"), []);
    assert!(work.steps_of_one_max <= bound, "{work:?}, {bound} steps are allowed");
    assert!(work.steps_of_one_max < 100 * 256, "{work:?} is less than writers times instances");
    assert!(work.steps >= 256, "{work:?}: it did look");
}

#[test]
fn departure_does_not_visit_endpoints_of_other_participants() {
    let steps = [10, 300].map(|endpoints| {
        let (mut node, _, now) = listener();
        let announce = |node: &mut Participant, participant: usize, endpoints: u32| {
            let mut puppet = Puppet::new(participant);
            puppet.join(node, now);
            for key in 1..=endpoints {
                let guid = puppet.guid(EntityId::user_writer(key, true));
                let publication = puppet.publication(key, true);
                puppet.publish(node, now, &PublicationData { guid, topic_name: "Other".into(), ..publication });
            }
            puppet
        };
        announce(&mut node, 8, endpoints);
        let leaving = announce(&mut node, 9, 1);
        while node.poll_event().is_some() {}
        outgoing(&mut node, now);
        let (work, _) = measure(&mut node, |node| leaving.leave(node, now));
        work.steps
    });
    assert_eq!(steps[0], steps[1], "however many endpoints the others have");
}

#[test]
fn each_submessage_of_a_full_datagram_is_a_unit() {
    let (mut node, _, now) = listener();
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    let mut datagram = puppet.datagram(|_| {});
    datagram.extend([0x01, 0x01, 0, 0].repeat(16_000));
    let (work, _) = measure(&mut node, |node| puppet.say_bytes(node, now, &datagram));
    assert_eq!((work.units, work.steps), (16_000, 16_000));
}

#[test]
fn acknowledgments_of_many_readers_in_one_datagram_stay_within_the_bound() {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let writer = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    (1..=200).for_each(|key| puppet.subscribe(&mut node, now, &puppet.subscription(key, true)));
    puppet.acknowledge_writers(&mut node, now, 1);
    assert_eq!(node.matched_subscriptions(writer).expect("the writer exists").len(), 200);
    outgoing(&mut node, now);
    while node.poll_event().is_some() {}
    let datagram = puppet.datagram(|message| {
        for key in 1..=200 {
            let acknack = takt_wire::message::AckNack {
                reader: EntityId::user_reader(key, false),
                writer: EntityId::user_writer(1, false),
                reader_sn_state: takt_wire::SequenceNumberSet::new(takt_wire::SequenceNumber(1)),
                count: 1,
                is_final: false,
            };
            message.acknack(&acknack).expect("it fits");
        }
    });
    let (work, bound) = measure(&mut node, |node| puppet.say_bytes(node, now, &datagram));
    assert_eq!(work.units, 200);
    assert!(work.steps_of_one_max <= bound && work.steps_of_one_max <= 5 * 200, "{work:?}, {bound}");
}

#[test]
fn burst_of_directed_samples_is_spread_over_several_calls() {
    let now = Instant(1_000_000_000);
    let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
    let writer = node.create_writer(now, writer_spec("T", false, keep_all_writer())).expect("the writer is valid");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, now);
    (1..=100).for_each(|key| puppet.subscribe(&mut node, now, &puppet.subscription(key, true)));
    outgoing(&mut node, now);
    while node.poll_event().is_some() {}
    for number in 0..1_000 {
        let bytes = payload(number, 20);
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[puppet.guid(EntityId::user_reader(1 + number % 100, false))],
            payload_len: bytes.len(),
        };
        let written = node.write(now, writer, &change, |slot| {
            slot.copy_from_slice(&bytes);
            Some(bytes.len())
        });
        written.expect("write accepted");
    }
    let mut frame = vec![0; 65_507];
    let (work, bound) = measure(&mut node, |node| assert!(node.poll_transmit(now, &mut frame).is_some()));
    assert!(work.steps_of_one_max <= bound && work.steps_of_one_max < 10 * 100, "{work:?}, {bound}");
    let sent = outgoing(&mut node, now);
    let data =
        |submessage: &takt_wire::message::Submessage<'_>| matches!(submessage, takt_wire::message::Submessage::Data(_));
    assert!(count(&sent, data) >= 400, "a burst is sent, the others when they are requested");
}

#[test]
fn timers_of_one_call_stay_within_the_bound() {
    let (mut node, _, now) = listener();
    for number in 0..100 {
        let mut puppet = Puppet::new(9);
        puppet.prefix.0[4] = number;
        puppet.announce_itself(&mut node, now);
    }
    outgoing(&mut node, now);
    let later = Instant(now.0 + 3_600_000_000_000);
    let (work, _) = measure(&mut node, |node| node.handle_timeout(later));
    assert_eq!(work.units, MAX_TIMERS_PER_CALL as u64);
    assert!(node.poll_timeout().is_some_and(|due| due <= later), "the rest is for the next calls");
}
