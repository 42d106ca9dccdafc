//! One participant takes another for dead that does not notice, and they meet again (RTPS 2.5 §8.5.4.2).

use crate::network::*;
use core::time::Duration;
use takt_core::*;

/// Node 0 forgets node 1 after a second of silence, node 1 keeps node 0 for an hour.
fn forgetful() -> Network {
    let mut network = Network::new(0, 40);
    for (node, lease_s) in [(0, 3_600), (1, 2)] {
        let lease_duration = Duration::from_secs(lease_s);
        let announcement_period = Duration::from_millis(500);
        network.join_with(Config { lease_duration, announcement_period, ..config(node, 1500) });
    }
    network
}

/// Node 0 takes node 1 for dead; what `meanwhile` does there, node 1 cannot hear.
fn forget(network: &mut Network, meanwhile: impl FnOnce(&mut Network)) {
    network.cut = vec![1];
    network.run(5_000);
    assert!(network.nodes[0].discovered_participants().is_empty());
    assert_eq!(network.nodes[1].discovered_participants().len(), 1);
    meanwhile(network);
    network.cut.clear();
}

fn writers_of(network: &mut Network, reader: ReaderHandle) -> (u32, u32) {
    let status = network.nodes[1].subscription_matched_status(reader).expect("the reader lives");
    (status.current_count, status.total_count)
}

/// Found by the simulation, seed 2667.
#[test]
fn the_deletion_of_an_endpoint_is_heard_of_by_one_who_was_forgotten_meanwhile() {
    for is_first in [false, true] {
        let mut network = forgetful();
        let names = if is_first { ["Gone", "Stays"] } else { ["Stays", "Gone"] };
        let writers = names.map(|topic| network.writer(0, writer_spec(topic, false, keep_all_writer())));
        let readers = names.map(|topic| network.reader(1, reader_spec(topic, false, keep_all_reader())));
        for (writer, reader) in writers.into_iter().zip(readers) {
            network.await_match((0, writer), (1, reader));
        }
        network.run(1_000);
        let (gone, stays) = if is_first { (0, 1) } else { (1, 0) };
        forget(&mut network, |network| network.nodes[0].delete_writer(network.now, writers[gone]).expect("it lives"));
        network.run(5_000);
        assert_eq!(writers_of(&mut network, readers[gone]), (0, 1), "{is_first}");
        assert_eq!(writers_of(&mut network, readers[stays]), (1, 1), "{is_first}: it never went");
        network.write(0, writers[stays], &payload(1, 20)).expect("there is room");
        network.run(100);
        assert_eq!(network.take_all(1, readers[stays]).len(), 1);
    }
}

#[test]
fn the_deletion_of_the_only_endpoint_is_heard_of_too() {
    let mut network = forgetful();
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let writer = network.writer(1, writer_spec("T", false, keep_all_writer()));
    network.await_match((1, writer), (0, reader));
    network.run(1_000);
    forget(&mut network, |network| network.nodes[0].delete_reader(network.now, reader).expect("it lives"));
    network.run(5_000);
    let status = network.nodes[1].publication_matched_status(writer).expect("the writer lives");
    assert_eq!((status.current_count, status.total_count), (0, 1));
}

/// Its acknowledgements are new to the writer, however many there were before.
#[test]
fn a_reader_that_has_forgotten_its_writer_is_heard_at_once() {
    let mut network = forgetful();
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let writer = network.writer(1, writer_spec("T", false, keep_all_writer()));
    network.await_match((1, writer), (0, reader));
    for number in 0..500 {
        network.write(1, writer, &payload(number, 20)).expect("there is room");
        network.run(50);
    }
    assert_eq!(network.take_all(0, reader).len(), 500);
    forget(&mut network, |_| {});
    network.run(1_000);
    let gone = network.take_all(0, reader);
    assert!(gone.iter().all(|(info, _)| !info.valid_data), "it was told that its writer had gone");
    network.write(1, writer, &payload(500, 20)).expect("there is room");
    network.run(1_000);
    assert_eq!(network.take_all(0, reader).len(), 1);
    assert_eq!(network.nodes[1].is_acknowledged(writer, None), Ok(true));
}
