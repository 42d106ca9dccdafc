//! Deferred departures of participants and writers, which wait until earlier datagrams are
//! received.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::message::Payload;
use takt_wire::qos::DataReaderQos;

const NOW: Instant = Instant(1_000_000_000);
const WRITER: EntityId = EntityId::user_writer(1, false);

/// Returns a participant with deferred departures and a best-effort reader, and a matched writer of
/// another participant.
fn world() -> (Participant, ReaderHandle, Puppet) {
    let mut node = Participant::new(config(0, 1500), NOW).expect("the configuration is valid");
    node.defer_departures();
    let qos = DataReaderQos { reliability: best_effort(), ..keep_all_reader() };
    let reader = node.create_reader(NOW, reader_spec("T", false, qos)).expect("the reader is valid");
    let mut puppet = Puppet::new(9);
    puppet.join(&mut node, NOW);
    puppet.publish(&mut node, NOW, &puppet.publication(1, false));
    (node, reader, puppet)
}

fn writers(node: &mut Participant, reader: ReaderHandle) -> usize {
    node.matched_publications(reader).expect("the reader exists").len()
}

fn takes_one(node: &mut Participant, reader: ReaderHandle) -> bool {
    node.read_next(NOW, reader, Selector::TAKE, &mut ReadCursor::default()).expect("the reader exists").is_some()
}

#[test]
fn samples_after_a_farewell_are_delivered_until_it_is_concluded() {
    let (mut node, reader, puppet) = world();
    puppet.leave(&mut node, NOW);
    assert!(node.has_departures());
    let bytes = payload(1, 12);
    puppet.say(&mut node, NOW, |message| message.data(&data(WRITER, 1, Payload::Data(&bytes))).expect("it fits"));
    assert!(takes_one(&mut node, reader));
    node.conclude_departure(NOW);
    assert_eq!((writers(&mut node, reader), node.has_departures()), (0, false));
}

#[test]
fn participant_that_returns_before_its_farewell_is_concluded_is_rediscovered() {
    let (mut node, reader, mut puppet) = world();
    puppet.leave(&mut node, NOW);
    puppet.join(&mut node, NOW);
    assert_eq!((writers(&mut node, reader), node.has_departures()), (0, false), "what it announced before is gone");
    assert_eq!(node.discovered_participants().len(), 1);
}

#[test]
fn oldest_departure_is_concluded_when_too_many_wait() {
    let (mut node, reader, puppet) = world();
    puppet.leave(&mut node, NOW);
    for number in 10..74 {
        assert_eq!(writers(&mut node, reader), 1, "{number}");
        let mut other = Puppet::new(number);
        other.join(&mut node, NOW);
        other.leave(&mut node, NOW);
    }
    assert_eq!(writers(&mut node, reader), 0);
    for _ in 0..64 {
        assert!(node.has_departures());
        node.conclude_departure(NOW);
    }
    assert_eq!((node.has_departures(), node.discovered_participants().len()), (false, 0));
}
