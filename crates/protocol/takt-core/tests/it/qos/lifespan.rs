//! LIFESPAN (DDS 1.4 §2.2.3.16): expired samples are not delivered.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::builder::DataEmit;
use takt_wire::message::Payload;
use takt_wire::qos::*;
use takt_wire::{Duration, Timestamp};

const SECOND_NS: i64 = 1_000_000_000;

fn lifespan(ms: u64) -> Lifespan {
    Lifespan { duration: Duration::from_millis(ms) }
}

fn pair(network: &mut Network, writer_qos: DataWriterQos, reader_qos: DataReaderQos) -> (WriterHandle, ReaderHandle) {
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(100);
    (writer, reader)
}

fn write(network: &mut Network, writer: WriterHandle, number: u8) {
    network
        .write_key(0, writer, ChangeKind::Alive, hash(number), &payload(u32::from(number), 20))
        .expect("write accepted");
}

/// Returns the numbers of the samples that a reader holds.
fn held(network: &mut Network, node: usize, reader: ReaderHandle) -> Vec<u8> {
    let (mut cursor, mut numbers) = (ReadCursor::default(), Vec::new());
    while let Some(found) =
        network.nodes[node].read_next(network.now, reader, Selector::READ, &mut cursor).expect("the reader exists")
    {
        numbers.push(found.payload[4]);
    }
    numbers
}

#[test]
fn sample_is_removed_untaken_when_it_expires() {
    for reliability in [reliable(), best_effort()] {
        let mut network = Network::new(2, 300);
        let writer_qos = DataWriterQos { lifespan: lifespan(100), reliability, ..keep_all_writer() };
        let (writer, reader) = pair(&mut network, writer_qos, DataReaderQos { reliability, ..keep_all_reader() });
        for number in 1..=3 {
            write(&mut network, writer, number);
            network.run(40);
        }
        assert!(!held(&mut network, 1, reader).contains(&1), "it was written 120 ms ago");
        assert_eq!(held(&mut network, 1, reader), [2, 3]);
        network.run(19);
        assert_eq!(held(&mut network, 1, reader), [2, 3]);
        network.run(1);
        assert_eq!(held(&mut network, 1, reader), [3]);
        network.events(1);
        network.run(1_000);
        assert_eq!(held(&mut network, 1, reader), []);
        assert!(!network.events(0).contains(&Event::WriterSpace(writer)), "no write waits for room");
        assert!(!network.events(1).contains(&Event::DataAvailable(reader)), "there is nothing new");
        let lost = network.nodes[1].sample_lost_status(reader).expect("the reader exists");
        assert_eq!((lost.total_count, network.nodes[1].counters().rejected_samples), (0, 0));
    }
}

#[test]
fn expired_samples_make_room_for_waiting_ones() {
    let mut network = Network::new(2, 301);
    let resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let writer_qos = DataWriterQos { lifespan: lifespan(300), ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, DataReaderQos { resource_limits, ..keep_all_reader() });
    write(&mut network, writer, 1);
    network.run(200);
    write(&mut network, writer, 2);
    network.run(50);
    assert_eq!(held(&mut network, 1, reader), [1]);
    network.events(1);
    network.run(60);
    assert!(network.events(1).contains(&Event::DataAvailable(reader)));
    assert_eq!(held(&mut network, 1, reader), [2]);
}

#[test]
fn expired_samples_are_not_sent_to_late_joiners_or_repaired() {
    let mut network = Network::new(3, 302);
    let durability = Durability::TransientLocal;
    let writer_qos = DataWriterQos { lifespan: lifespan(500), durability, ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, DataReaderQos { durability, ..keep_all_reader() });
    write(&mut network, writer, 1);
    network.run(100);
    network.cut = vec![1];
    write(&mut network, writer, 2);
    network.run(300);
    write(&mut network, writer, 3);
    network.run(250);
    network.cut = vec![];
    let late = network.reader(2, reader_spec("T", true, DataReaderQos { durability, ..keep_all_reader() }));
    network.await_match((0, writer), (2, late));
    network.run(200);
    assert_eq!(held(&mut network, 2, late), [3]);
    assert_eq!(held(&mut network, 1, reader), [3], "number 2 was lost, and is not sent again");
    assert_eq!(network.nodes[0].is_acknowledged(writer, None), Ok(true));
}

#[test]
fn full_history_has_room_when_samples_expire() {
    let mut network = Network::new(2, 303);
    let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    let writer_qos = DataWriterQos { lifespan: lifespan(100), resource_limits, ..keep_all_writer() };
    let (writer, _) = pair(&mut network, writer_qos, keep_all_reader());
    network.cut = vec![1];
    write(&mut network, writer, 1);
    write(&mut network, writer, 2);
    let full = network.write_key(0, writer, ChangeKind::Alive, hash(3), &payload(3, 20));
    assert_eq!(full, Err(WriteError::WouldBlock));
    network.events(0);
    network.run(101);
    assert!(network.events(0).contains(&Event::WriterSpace(writer)));
    write(&mut network, writer, 3);
}

#[test]
fn expiry_follows_the_wall_clock_when_it_is_set() {
    let mut network = Network::new(2, 304);
    let durability = Durability::TransientLocal;
    let writer_qos = DataWriterQos { lifespan: lifespan(1_000), durability, ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, keep_all_reader());
    let set = |network: &mut Network, by: i64| {
        for node in 0..2 {
            let wall = Timestamp::from_nanos(network.wall().to_nanos() + by);
            network.nodes[node].set_wall_clock(network.now, wall);
        }
    };
    write(&mut network, writer, 1);
    network.run(100);
    set(&mut network, -2 * SECOND_NS);
    network.run(2_500);
    assert_eq!(held(&mut network, 1, reader), [1], "by the clock it will be written in the future");
    set(&mut network, 0);
    network.run(1);
    assert_eq!(held(&mut network, 1, reader), []);
    let late = network.reader(1, reader_spec("T", true, DataReaderQos { durability, ..keep_all_reader() }));
    network.run(500);
    assert_eq!(held(&mut network, 1, late), [], "the writer has forgotten it too");
}

#[test]
fn sample_that_expired_in_transit_is_counted_and_dropped() {
    let mut network = Network::new(2, 305);
    let writer_qos = DataWriterQos { lifespan: lifespan(1_000), ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, keep_all_reader());
    let before = Timestamp::from_nanos(network.wall().to_nanos() - 2 * SECOND_NS);
    let alive = ChangeKind::Alive;
    network.write_stamped(0, writer, alive, hash(1), Some(before), &payload(1, 20)).expect("write accepted");
    write(&mut network, writer, 2);
    network.run(10);
    assert_eq!(held(&mut network, 1, reader), [2]);
    assert_eq!(network.nodes[1].counters().expired_samples, 1);
}

#[test]
fn disposal_does_not_expire() {
    let mut network = Network::new(2, 306);
    let writer_qos = DataWriterQos { lifespan: lifespan(100), ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, keep_all_reader());
    write(&mut network, writer, 1);
    network.write_key(0, writer, ChangeKind::Disposed, hash(1), &[]).expect("write accepted");
    network.run(1_000);
    let taken = network.take_all(1, reader);
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].0.instance_state, InstanceState::NotAliveDisposed);
}

/// More samples expire than one call removes.
#[test]
fn all_samples_are_removed_when_many_expire_at_once() {
    let mut network = Network::new(2, 307);
    let writer_qos = DataWriterQos { lifespan: lifespan(100), ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, keep_all_reader());
    for number in 0..200 {
        write(&mut network, writer, number);
    }
    network.run(50);
    assert_eq!(held(&mut network, 1, reader).len(), 200);
    network.run(60);
    assert_eq!(network.nodes[1].has_samples(reader, &Selector::READ), Ok(false));
}

/// Samples of some vendors state their lifespan.
#[test]
fn lifespan_in_a_sample_overrides_the_announced_one() {
    let mut network = Network::new(1, 308);
    let mut puppet = Puppet::new(9);
    let qos = DataReaderQos { reliability: best_effort(), history: History::KeepAll, ..DataReaderQos::default() };
    let reader = network.reader(0, reader_spec("T", false, qos));
    let now = network.now;
    puppet.join(&mut network.nodes[0], now);
    let publication = puppet.publication(1, false);
    puppet.publish(&mut network.nodes[0], now, &publication);
    assert_eq!(network.nodes[0].matched_publications(reader).expect("the reader exists"), [publication.guid]);
    let two_seconds = [0x2b, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let (writer, stamp) = (publication.guid.entity_id, network.wall());
    puppet.say(&mut network.nodes[0], now, |message| {
        message.info_timestamp(Some(stamp)).expect("it fits");
        for (number, inline_qos) in [(1, Some(&two_seconds[..])), (2, None)] {
            let bytes = payload(number, 20);
            let data = data(writer, i64::from(number), Payload::Data(&bytes));
            message.data(&DataEmit { inline_qos, ..data }).expect("it fits");
        }
    });
    assert_eq!(held(&mut network, 0, reader), [1, 2]);
    network.run(2_001);
    assert_eq!(held(&mut network, 0, reader), [2]);
}

/// An expired sample still counts as a write to an instance that is not alive, although its data
/// are dropped.
#[test]
fn sample_that_expired_in_transit_counts_as_a_write_to_its_instance() {
    let by_source = DestinationOrder::BySourceTimestamp;
    let exclusive = Ownership::Exclusive;
    // The cases: whether the writer of the expired sample owns the instance, and when the instance
    // was disposed.
    for (destination_order, ownership, is_owner, disposed_s, revives) in [
        (DestinationOrder::ByReceptionTimestamp, Ownership::Shared, false, 1, true),
        (by_source, Ownership::Shared, false, 1, false),
        (by_source, Ownership::Shared, false, 3, true),
        (DestinationOrder::ByReceptionTimestamp, exclusive, false, 1, false),
        (DestinationOrder::ByReceptionTimestamp, exclusive, true, 1, true),
    ] {
        let mut network = Network::new(3, 309);
        let qos = |strength, lifespan| DataWriterQos {
            lifespan,
            destination_order,
            ownership,
            ownership_strength: OwnershipStrength(strength),
            ..keep_all_writer()
        };
        let reader_qos = DataReaderQos { destination_order, ownership, ..keep_all_reader() };
        let (first, reader) = pair(&mut network, qos(2, Lifespan::default()), reader_qos);
        let strength = if is_owner { 3 } else { 1 };
        let late = network.writer(2, writer_spec("T", true, qos(strength, lifespan(1_000))));
        network.await_match((2, late), (1, reader));
        network.run(100);
        let before = |network: &Network, s| Some(Timestamp::from_nanos(network.wall().to_nanos() - s * SECOND_NS));
        for (kind, s, bytes) in [(ChangeKind::Alive, 4, &payload(1, 20)[..]), (ChangeKind::Disposed, disposed_s, &[])] {
            let stamp = before(&network, s);
            network.write_stamped(0, first, kind, hash(1), stamp, bytes).expect("write accepted");
        }
        network.run(10);
        assert_eq!(network.take_all(1, reader).len(), 2, "a sample and its disposal");
        let stamp = before(&network, 2);
        network.write_stamped(2, late, ChangeKind::Alive, hash(1), stamp, &payload(1, 20)).expect("write accepted");
        network.run(10);
        assert_eq!(network.take_all(1, reader).len(), 0, "it has expired");
        for (node, writer) in [(0, first), (2, late)] {
            network.write_key(node, writer, ChangeKind::Unregistered, hash(1), &[]).expect("write accepted");
            network.run(10);
        }
        let states: Vec<_> = network.take_all(1, reader).iter().map(|(info, _)| info.instance_state).collect();
        let expected = if revives { vec![InstanceState::NotAliveNoWriters] } else { vec![] };
        assert_eq!(states, expected, "{destination_order:?} {ownership:?} {disposed_s}");
    }
}

/// Octets in flight count only samples in the history, so unacknowledged samples that expire open
/// the send window.
#[test]
fn expired_samples_leave_the_send_window() {
    let mut network = Network::new(0, 310);
    for node in 0..2 {
        let mut config = config(node, 1500);
        config.limits.send_window_bytes = 4_000;
        network.join_with(config);
    }
    let writer_qos = DataWriterQos { lifespan: lifespan(100), ..keep_all_writer() };
    let (writer, reader) = pair(&mut network, writer_qos, keep_all_reader());
    let write_large = |network: &mut Network, number: u8| {
        let bytes = payload(u32::from(number), 1_000);
        network.write_key(0, writer, ChangeKind::Alive, hash(number), &bytes).expect("write accepted");
    };
    network.cut = vec![1];
    (1..=3).for_each(|number| write_large(&mut network, number));
    network.run(150);
    assert_eq!(network.nodes[0].is_acknowledged(writer, None), Ok(false));
    network.cut = vec![];
    (4..=6).for_each(|number| write_large(&mut network, number));
    network.run(90);
    assert_eq!(held(&mut network, 1, reader), [4, 5, 6]);
}
