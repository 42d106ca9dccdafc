//! Durability services: relayed samples with their original writer, history before new samples, and
//! explicit acknowledgments.

use crate::network::*;
use std::time::Duration;
use takt_core::{
    ChangeKind, DURABILITY_SERVICE, Event, InstanceHandle, NewChange, ReaderHandle, WriteError, WriterHandle,
};
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::qos::*;
use takt_wire::{Guid, SequenceNumber};

fn durable_writer(history: History) -> DataWriterQos {
    DataWriterQos { durability: Durability::Persistent, history, reliability: reliable(), ..DataWriterQos::default() }
}

fn durable_reader() -> DataReaderQos {
    DataReaderQos { durability: Durability::Persistent, ..keep_all_reader() }
}

/// Creates a service's writer at a node.
fn relay(network: &mut Network, node: usize) -> WriterHandle {
    let writer = prepare_relay(network, node);
    network.nodes[node].enable_writer(network.now, writer).expect("it can be enabled");
    writer
}

/// Creates a service's writer that is not announced yet.
fn prepare_relay(network: &mut Network, node: usize) -> WriterHandle {
    let mut spec = writer_spec("T", false, durable_writer(History::KeepAll));
    spec.qos.user_data = UserData(DURABILITY_SERVICE.to_vec());
    let now = network.now;
    let participant = &mut network.nodes[node];
    let writer = participant.prepare_writer(now, spec).expect("the writer is valid");
    participant.make_relay(writer).expect("it exists");
    writer
}

fn relay_samples(
    network: &mut Network,
    node: usize,
    writer: WriterHandle,
    origin: Guid,
    numbers: std::ops::Range<u32>,
) {
    for number in numbers {
        let payload = payload(number, 20);
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: payload.len(),
        };
        // The first sample of a writer has the number 0 and is its change 1.
        let origin = SampleIdentity { writer: origin, sn: SequenceNumber(i64::from(number) + 1) };
        let now = network.now;
        network.nodes[node].relay(now, writer, &change, origin, &payload).expect("write accepted");
    }
}

fn numbers(network: &mut Network, node: usize, reader: ReaderHandle) -> Vec<u32> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    let taken = network.take_all(node, reader).iter().map(|(_, bytes)| number(bytes)).collect();
    let now = network.now;
    network.nodes[node].end_read(now, reader).expect("the reader exists");
    taken
}

fn guid(network: &mut Network, node: usize, writer: WriterHandle) -> Guid {
    network.nodes[node].writer_guid(writer).expect("it exists")
}

fn write(network: &mut Network, writer: WriterHandle, numbers: std::ops::Range<u32>) {
    for number in numbers {
        network.write(0, writer, &payload(number, 20)).expect("write accepted");
    }
}

#[test]
fn reader_presents_each_sample_once_and_in_order_from_any_source() {
    for (seed, loss) in [(80, 0), (81, 30)] {
        let mut network = Network::new(4, seed);
        let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepLast(10))));
        write(&mut network, writer, 0..300);
        let origin = guid(&mut network, 0, writer);
        network.faults = Faults { loss, duplication: loss, reordering: loss };
        for node in [1, 2] {
            let service = relay(&mut network, node);
            relay_samples(&mut network, node, service, origin, 0..300);
        }
        let reader = network.reader(3, reader_spec("T", false, durable_reader()));
        network.await_match((0, writer), (3, reader));
        write(&mut network, writer, 300..310);
        let mut got = Vec::new();
        network.run_until(60_000, |network| {
            got.extend(numbers(network, 3, reader));
            got.last() == Some(&309)
        });
        network.run(1_000);
        got.extend(numbers(&mut network, 3, reader));
        assert!(got.iter().copied().eq(0..310), "{got:?}");
        assert!(network.nodes[3].counters().repeated_samples >= 300);
    }
}

#[test]
fn relayed_sample_has_its_original_writer() {
    let mut network = Network::new(2, 82);
    let service = relay(&mut network, 0);
    let origin = Guid::from_bytes([9; 16]);
    relay_samples(&mut network, 0, service, origin, 4..5);
    let reader = network.reader(1, reader_spec("T", false, durable_reader()));
    network.await_match((0, service), (1, reader));
    network.run(1_000);
    let info = network.take_all(1, reader)[0].0;
    assert_eq!(info.origin, SampleIdentity { writer: origin, sn: SequenceNumber(5) });
    assert_eq!(info.publication, guid(&mut network, 0, service));
}

#[test]
fn delivery_waits_briefly_for_a_service_when_the_first_samples_are_gone() {
    let mut network = Network::new(2, 83);
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepLast(5))));
    write(&mut network, writer, 0..20);
    let reader = network.reader(1, reader_spec("T", false, durable_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(400);
    assert_eq!(numbers(&mut network, 1, reader), [], "a service may have the first ones");
    network.run(300);
    assert!(numbers(&mut network, 1, reader).into_iter().eq(15..20));
    write(&mut network, writer, 20..25);
    network.run(50);
    assert!(numbers(&mut network, 1, reader).into_iter().eq(20..25), "the wait is over for good");
}

#[test]
fn transient_local_reader_does_not_wait_for_a_service() {
    let mut network = Network::new(2, 84);
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepLast(5))));
    write(&mut network, writer, 0..20);
    let qos = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", false, qos));
    network.await_match((0, writer), (1, reader));
    network.run(300);
    assert!(numbers(&mut network, 1, reader).into_iter().eq(15..20));
}

#[test]
fn relay_sends_nothing_to_a_volatile_reader() {
    let mut network = Network::new(2, 85);
    let service = relay(&mut network, 0);
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    let durable = network.reader(1, reader_spec("T", false, durable_reader()));
    network.await_match((0, service), (1, reader));
    network.await_match((0, service), (1, durable));
    relay_samples(&mut network, 0, service, Guid::from_bytes([9; 16]), 0..50);
    network.run(1_000);
    assert_eq!(numbers(&mut network, 1, reader), []);
    assert!(numbers(&mut network, 1, durable).into_iter().eq(0..50));
    assert!(network.nodes[0].is_acknowledged(service, None).expect("it exists"));
}

#[test]
fn samples_are_acknowledged_only_after_they_are_stored() {
    let mut network = Network::new(2, 86);
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepLast(1000))));
    write(&mut network, writer, 0..10);
    let mut spec = reader_spec("T", false, durable_reader());
    spec.qos.user_data = UserData(DURABILITY_SERVICE.to_vec());
    let now = network.now;
    let reader = network.nodes[1].prepare_reader(spec).expect("the reader is valid");
    network.nodes[1].acknowledge_explicitly(reader).expect("it exists");
    network.nodes[1].enable_reader(now, reader).expect("it can be enabled");
    network.await_match((0, writer), (1, reader));
    let durable = |network: &mut Network| network.nodes[0].durability_services(writer).expect("it exists")[0].1;
    network.run(1_000);
    assert_eq!(durable(&mut network), SequenceNumber(0), "it has arrived and was not taken");
    assert_eq!(numbers(&mut network, 1, reader).len(), 10);
    network.run(1_000);
    assert_eq!(durable(&mut network), SequenceNumber(0), "it was taken and is not safe");
    write(&mut network, writer, 10..700);
    network.run(1_000);
    network.nodes[1].acknowledge_taken(reader).expect("it exists");
    network.run(1_000);
    assert_eq!(durable(&mut network), SequenceNumber(10), "changes after the pass are not included");
    let mut got = Vec::new();
    network.run_until(30_000, |network| {
        got.extend(numbers(network, 1, reader));
        network.nodes[1].acknowledge_taken(reader).expect("it exists");
        durable(network) == SequenceNumber(700)
    });
    assert!(got.iter().copied().eq(10..700), "nothing was lost by waiting");
}

/// More samples than a service sends at once.
const MANY: u32 = 3_000;

/// Creates a writer that has only its last five samples, and a service with all of them that falls
/// silent at its match.
fn history_at_a_service(seed: u64, service_first: bool) -> (Network, WriterHandle, ReaderHandle) {
    history_at_a_service_with_lease(seed, service_first, config(1, 1500).lease_duration)
}

/// As [`history_at_a_service`], with the lease of the service's participant.
fn history_at_a_service_with_lease(
    seed: u64,
    service_first: bool,
    lease: Duration,
) -> (Network, WriterHandle, ReaderHandle) {
    let mut network = Network::new(0, seed);
    for node in 0..3 {
        let mut config = config(node, 1500);
        if node == 1 {
            (config.lease_duration, config.announcement_period) = (lease, lease / 10);
        }
        network.join_with(config);
    }
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepLast(5))));
    write(&mut network, writer, 0..MANY);
    let origin = guid(&mut network, 0, writer);
    let reader = network.reader(2, reader_spec("T", false, durable_reader()));
    if !service_first {
        network.await_match((0, writer), (2, reader));
    }
    let service = prepare_relay(&mut network, 1);
    relay_samples(&mut network, 1, service, origin, 0..MANY);
    network.nodes[1].enable_writer(network.now, service).expect("it can be enabled");
    let service = guid(&mut network, 1, service);
    let is_matched = |network: &mut Network| {
        network.nodes[2].matched_publications(reader).expect("the reader exists").contains(&service)
    };
    assert!(network.run_until(10_000, is_matched));
    network.cut = vec![1];
    network.await_match((0, writer), (2, reader));
    (network, writer, reader)
}

#[test]
fn new_samples_follow_once_the_history_of_a_service_is_complete() {
    for (seed, service_first) in [(87, true), (88, false)] {
        let (mut network, writer, reader) = history_at_a_service(seed, service_first);
        write(&mut network, writer, MANY..MANY + 5);
        network.run(2_000);
        let mut got = numbers(&mut network, 2, reader);
        assert!(got.len() < MANY as usize - 5, "the service has not announced the last ones");
        network.cut = vec![];
        network.run(2_000);
        got.extend(numbers(&mut network, 2, reader));
        assert!(got.iter().copied().eq(0..MANY + 5), "{service_first} {got:?}");
        write(&mut network, writer, MANY + 5..MANY + 10);
        network.run(50);
        let new = numbers(&mut network, 2, reader);
        assert!(new.into_iter().eq(MANY + 5..MANY + 10), "nothing is waited for any more");
    }
}

#[test]
fn silent_service_delays_delivery_by_ten_seconds() {
    let (mut network, _, reader) = history_at_a_service(89, false);
    network.run(9_000);
    assert!(numbers(&mut network, 2, reader).len() < MANY as usize - 5);
    network.run(2_000);
    assert!(numbers(&mut network, 2, reader).into_iter().eq(MANY - 5..MANY), "better than nothing");
}

#[test]
fn delivery_stops_waiting_when_the_lease_of_the_service_ends() {
    let (mut network, _, reader) = history_at_a_service_with_lease(90, false, Duration::from_secs(1));
    let lost = |network: &mut Network| network.nodes[2].counters().leases_expired == 1;
    assert!(network.run_until(3_000, lost));
    assert!(numbers(&mut network, 2, reader).into_iter().rev().take(5).rev().eq(MANY - 5..MANY));
}

/// The first heartbeats of a writer are lost after each number of datagrams in turn, so that the
/// reader gets its first change from a service.
#[test]
fn sample_from_a_service_before_its_writer_is_heard_is_presented_once() {
    for datagrams in 0..60 {
        let mut network = Network::new(3, 91);
        let service = relay(&mut network, 1);
        let reader = network.reader(2, reader_spec("T", false, durable_reader()));
        network.await_match((1, service), (2, reader));
        network.run(1_000);
        let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepAll)));
        let origin = guid(&mut network, 0, writer);
        network.keep = Some(datagrams);
        network.run(20);
        write(&mut network, writer, 0..1);
        network.run(1);
        network.keep = None;
        network.muted = vec![0];
        relay_samples(&mut network, 1, service, origin, 0..1);
        network.run(50);
        // The sample waits if the writer has been heard and has not announced it.
        let mut got = numbers(&mut network, 2, reader);
        network.muted.clear();
        write(&mut network, writer, 1..2);
        network.run_until(5_000, |network| {
            got.extend(numbers(network, 2, reader));
            got.last() == Some(&1)
        });
        assert_eq!(got, [0, 1], "after {datagrams} datagrams");
    }
}

#[test]
fn forged_original_number_does_not_change_the_announced_one_and_can_be_removed() {
    let mut network = Network::new(4, 84);
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepAll)));
    let origin = guid(&mut network, 0, writer);
    let reader = network.reader(1, reader_spec("T", false, durable_reader()));
    network.nodes[1].acknowledge_explicitly(reader).expect("it exists");
    assert_eq!(network.nodes[1].last_announced(reader, origin).expect("it exists"), None, "not matched");
    let forger = relay(&mut network, 2);
    network.await_match((2, forger), (1, reader));
    relay_samples(&mut network, 2, forger, origin, 0..1);
    relay_samples(&mut network, 2, forger, origin, 1_000_000..1_000_001);
    network.await_match((0, writer), (1, reader));
    write(&mut network, writer, 0..3);
    let mut got = Vec::new();
    assert!(
        network.run_until(20_000, |network| {
            got.extend(numbers(network, 1, reader));
            got.len() == 5
        }),
        "a reader with explicit acknowledgments gets what its writers wrote, despite forged messages: {got:?}"
    );
    assert_eq!(network.nodes[1].last_announced(reader, origin).expect("it exists"), Some(SequenceNumber(3)));
    // Everything of the relay is acknowledged, so the relay can remove it.
    network.nodes[1].acknowledge_taken(reader).expect("it exists");
    network.run(5_000);
    network.nodes[2].discard_relayed(forger, origin, SequenceNumber(3)).expect("it exists");
    let late = network.reader(3, reader_spec("T", false, durable_reader()));
    network.await_match((2, forger), (3, late));
    network.await_match((0, writer), (3, late));
    network.run(20_000);
    let mut got = numbers(&mut network, 3, late);
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2], "the forged one is not among them");
}

/// Creates a service's writer of a keyed topic with at most two instances, and a reader of it.
fn relay_of_two_instances(network: &mut Network) -> (WriterHandle, ReaderHandle) {
    let limits = ResourceLimits { max_instances: Some(2), ..ResourceLimits::default() };
    let qos = DataWriterQos { resource_limits: limits, ..durable_writer(History::KeepAll) };
    let writer = network.nodes[0].prepare_writer(network.now, writer_spec("T", true, qos)).expect("writer is valid");
    network.nodes[0].make_relay(writer).expect("it exists");
    network.nodes[0].enable_writer(network.now, writer).expect("it can be enabled");
    let reader = network.reader(1, reader_spec("T", true, durable_reader()));
    network.await_match((0, writer), (1, reader));
    (writer, reader)
}

fn relay_instance(
    network: &mut Network,
    writer: WriterHandle,
    kind: ChangeKind,
    key: u8,
    number: i64,
) -> Result<(), WriteError> {
    let payload = if kind == ChangeKind::Alive { payload(u32::from(key), 20) } else { Vec::new() };
    let change =
        NewChange { kind, key_hash: hash(key), source_timestamp: None, destinations: &[], payload_len: payload.len() };
    let origin = SampleIdentity { writer: Guid::UNKNOWN, sn: SequenceNumber(number) };
    network.nodes[0].relay(network.now, writer, &change, origin, &payload).map(|_| ())
}

#[test]
fn discarded_instance_is_removed_when_a_disconnected_reader_acknowledges_it() {
    let mut network = Network::new(3, 97);
    let (writer, reader) = relay_of_two_instances(&mut network);
    network.cut = vec![1];
    for (key, number) in [(1, 1), (2, 2)] {
        relay_instance(&mut network, writer, ChangeKind::Alive, key, number).expect("write accepted");
    }
    relay_instance(&mut network, writer, ChangeKind::Disposed, 1, 3).expect("its instance is there");
    network.run(100);
    network.nodes[0].discard_instance(writer, InstanceHandle(hash(1))).expect("it exists");
    let full = relay_instance(&mut network, writer, ChangeKind::Alive, 3, 4).expect_err("the reader may request it");
    assert!(matches!(full, WriteError::WouldBlock), "room will come: {full:?}");
    network.events(0);
    network.cut.clear();
    let mut has_space = false;
    assert!(network.run_until(5_000, |network| {
        has_space |= network.events(0).iter().any(|event| matches!(event, Event::WriterSpace(_)));
        has_space
    }));
    assert_eq!(network.take_all(1, reader).len(), 3, "the reader misses nothing");
    relay_instance(&mut network, writer, ChangeKind::Alive, 3, 4).expect("the forgotten one is gone");
    let full = relay_instance(&mut network, writer, ChangeKind::Alive, 4, 5).expect_err("two instances are there");
    assert!(matches!(full, WriteError::Refused(_)), "no room will come: {full:?}");
    let late = network.reader(2, reader_spec("T", true, durable_reader()));
    network.await_match((0, writer), (2, late));
    network.run(2_000);
    let got = network.take_all(2, late);
    let keys: Vec<u8> = got.iter().map(|(_, bytes)| bytes[4]).collect();
    assert_eq!(keys, [2, 3], "a late joiner does not receive it");
}

#[test]
fn discarded_instance_keeps_samples_written_later() {
    let mut network = Network::new(3, 98);
    let (writer, reader) = relay_of_two_instances(&mut network);
    network.cut = vec![1];
    relay_instance(&mut network, writer, ChangeKind::Alive, 1, 1).expect("write accepted");
    network.run(100);
    network.nodes[0].discard_instance(writer, InstanceHandle(hash(1))).expect("it exists");
    relay_instance(&mut network, writer, ChangeKind::Alive, 1, 2).expect("its instance is there");
    network.cut.clear();
    assert!(network.run_until(5_000, |network| network.nodes[0].is_acknowledged(writer, None).expect("it exists")));
    assert_eq!(network.take_all(1, reader).len(), 2);
    let late = network.reader(2, reader_spec("T", true, durable_reader()));
    network.await_match((0, writer), (2, late));
    network.run(2_000);
    let numbers: Vec<_> = network.take_all(2, late).iter().map(|(info, _)| info.origin.sn.0).collect();
    assert_eq!(numbers, [2]);
}

/// Creates a TRANSIENT writer and a reader that has presented its samples `0..5`, with a service
/// known to the reader.
fn followed(network: &mut Network) -> (WriterHandle, ReaderHandle) {
    let writer = network.writer(0, writer_spec("T", false, durable_writer(History::KeepAll)));
    let reader = network.reader(2, reader_spec("T", false, durable_reader()));
    network.await_match((0, writer), (2, reader));
    write(network, writer, 0..5);
    network.run(1_000);
    assert!(numbers(network, 2, reader).into_iter().eq(0..5));
    (writer, reader)
}

#[test]
fn original_writer_is_ignored_when_the_sender_is_no_service() {
    let mut network = Network::new(3, 96);
    let (writer, reader) = followed(&mut network);
    let origin = guid(&mut network, 0, writer);
    let spec = writer_spec("T", false, durable_writer(History::KeepAll));
    let now = network.now;
    let forger = network.nodes[1].prepare_writer(now, spec).expect("the writer is valid");
    network.nodes[1].make_relay(forger).expect("it exists");
    relay_samples(&mut network, 1, forger, origin, 1_000..1_001);
    network.nodes[1].enable_writer(now, forger).expect("it can be enabled");
    network.run(2_000);
    let (info, _) = network.take(2, reader).expect("the forger's sample");
    assert_eq!(info.origin.writer, guid(&mut network, 1, forger), "it is its own");
    write(&mut network, writer, 5..15);
    network.run(1_000);
    assert!(numbers(&mut network, 2, reader).into_iter().eq(5..15));
}

#[test]
fn service_cannot_suppress_samples_of_a_matched_writer() {
    for number in [6, 1_000, 2_000_000_000] {
        let mut network = Network::new(3, 97);
        let (writer, reader) = followed(&mut network);
        let origin = guid(&mut network, 0, writer);
        let service = prepare_relay(&mut network, 1);
        relay_samples(&mut network, 1, service, origin, number..number + 1);
        let now = network.now;
        network.nodes[1].enable_writer(now, service).expect("it can be enabled");
        network.run(2_000);
        assert_eq!(numbers(&mut network, 2, reader), [], "the writer has not announced it");
        write(&mut network, writer, 5..6);
        write(&mut network, writer, 6..15);
        network.run(1_000);
        assert!(numbers(&mut network, 2, reader).into_iter().eq(5..15), "{number}");
    }
}

#[test]
fn samples_ahead_of_their_writer_are_presented_when_it_is_unmatched() {
    let mut network = Network::new(3, 98);
    let (writer, reader) = followed(&mut network);
    let origin = guid(&mut network, 0, writer);
    let service = prepare_relay(&mut network, 1);
    relay_samples(&mut network, 1, service, origin, 0..8);
    let now = network.now;
    network.nodes[1].enable_writer(now, service).expect("it can be enabled");
    network.run(2_000);
    assert_eq!(numbers(&mut network, 2, reader), []);
    let now = network.now;
    network.nodes[0].delete_writer(now, writer).expect("it exists");
    network.run(2_000);
    assert!(numbers(&mut network, 2, reader).into_iter().eq(5..8));
}

/// Maximum number of answers: the heartbeats of the service, ten a second, wake the reader, which
/// answers each once.
const ANSWERS_PER_SECOND: u64 = 12;

#[test]
fn waiting_samples_are_not_requested_again() {
    let mut network = Network::new(4, 99);
    let (writer, reader) = followed(&mut network);
    let origin = guid(&mut network, 0, writer);
    let service = prepare_relay(&mut network, 1);
    // More samples than one acknowledgment can request.
    relay_samples(&mut network, 1, service, origin, 1_000..1_600);
    let now = network.now;
    network.nodes[1].enable_writer(now, service).expect("it can be enabled");
    network.run(5_000);
    let acknacks = |network: &Network| network.nodes[2].counters().acknacks_sent;
    let before = acknacks(&network);
    network.run(10_000);
    let times = acknacks(&network) - before;
    assert!(times <= 10 * ANSWERS_PER_SECOND, "{times} acknowledgments of samples that wait");
    // Delivery of the waiting samples continues once their writer is deleted.
    let now = network.now;
    network.nodes[0].delete_writer(now, writer).expect("it exists");
    network.run(2_000);
    assert!(numbers(&mut network, 2, reader).into_iter().eq(1_000..1_600));
}
