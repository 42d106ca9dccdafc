//! READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.22): samples of instances that are not alive are purged
//! after a delay.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

fn pair(network: &mut Network, nowriter_ms: Option<u64>, disposed_ms: Option<u64>) -> (WriterHandle, ReaderHandle) {
    let delay = |ms: Option<u64>| ms.map_or(Duration::INFINITE, Duration::from_millis);
    let reader_data_lifecycle = ReaderDataLifecycle {
        autopurge_nowriter_samples_delay: delay(nowriter_ms),
        autopurge_disposed_samples_delay: delay(disposed_ms),
    };
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader_qos = DataReaderQos { reader_data_lifecycle, ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(100);
    (writer, reader)
}

fn change(network: &mut Network, writer: WriterHandle, kind: ChangeKind, key: u8) {
    let bytes = if kind == ChangeKind::Alive { payload(u32::from(key), 20) } else { vec![] };
    network.write_key(0, writer, kind, hash(key), &bytes).expect("write accepted");
}

/// Returns how many samples and state changes a reader holds.
fn held(network: &mut Network, reader: ReaderHandle) -> usize {
    let (mut cursor, mut count) = (ReadCursor::default(), 0);
    while network.nodes[1].read_next(network.now, reader, Selector::READ, &mut cursor).expect("it exists").is_some() {
        count += 1;
    }
    count
}

#[test]
fn disposed_instance_loses_its_samples_after_its_delay() {
    let mut network = Network::new(2, 360);
    let (writer, reader) = pair(&mut network, None, Some(300));
    for kind in [ChangeKind::Alive, ChangeKind::Alive, ChangeKind::Disposed] {
        change(&mut network, writer, kind, 1);
    }
    change(&mut network, writer, ChangeKind::Alive, 2);
    network.run(290);
    assert_eq!(held(&mut network, reader), 4);
    network.run(11);
    assert_eq!(held(&mut network, reader), 1, "instance 2 is alive");
    change(&mut network, writer, ChangeKind::Unregistered, 2);
    network.run(5_000);
    assert_eq!(held(&mut network, reader), 2, "of instances without writers nothing goes");
}

#[test]
fn instance_without_writers_is_removed_after_its_delay() {
    let mut network = Network::new(2, 361);
    let (writer, reader) = pair(&mut network, Some(300), None);
    change(&mut network, writer, ChangeKind::Alive, 1);
    change(&mut network, writer, ChangeKind::Alive, 2);
    change(&mut network, writer, ChangeKind::Disposed, 2);
    network.run(10);
    network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
    network.run(295);
    assert_eq!(held(&mut network, reader), 4);
    network.run(20);
    assert_eq!(held(&mut network, reader), 2, "a disposed one stays");
    assert_eq!(network.nodes[1].key_of(reader, InstanceHandle(hash(1))), Ok(None));
}

#[test]
fn revived_instance_keeps_its_samples() {
    let mut network = Network::new(2, 362);
    let (writer, reader) = pair(&mut network, Some(300), Some(300));
    change(&mut network, writer, ChangeKind::Alive, 1);
    for end in [ChangeKind::Disposed, ChangeKind::Unregistered] {
        change(&mut network, writer, end, 1);
        network.run(200);
        change(&mut network, writer, ChangeKind::Alive, 1);
        network.run(1_000);
    }
    assert_eq!(held(&mut network, reader), 4, "three samples, and the latest state change");
}

#[test]
fn purged_samples_make_room_for_waiting_ones() {
    let mut network = Network::new(2, 363);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader_data_lifecycle =
        ReaderDataLifecycle { autopurge_disposed_samples_delay: Duration::ZERO, ..ReaderDataLifecycle::default() };
    let resource_limits = ResourceLimits { max_samples: Some(100), ..ResourceLimits::default() };
    let reader_qos = DataReaderQos { reader_data_lifecycle, resource_limits, ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    for _ in 0..100 {
        change(&mut network, writer, ChangeKind::Alive, 1);
    }
    change(&mut network, writer, ChangeKind::Disposed, 1);
    change(&mut network, writer, ChangeKind::Alive, 2);
    network.run(100);
    assert_eq!(held(&mut network, reader), 1);
}
