//! History for late readers of a subscriber with coherent or ordered GROUP access
//! (DDS 1.4 §2.2.3.4, §2.2.3.6).

use crate::network::*;
use crate::qos::groups::*;
use takt_wire::qos::*;

/// Returns a world with coherent access whose writers keep their history, with three taken sets and
/// a change after them.
fn world_with_history(seed: u64, presentation: (bool, bool), writer: &DataWriterQos) -> World {
    let mut t = world(seed, &[], presentation, &keep_all_reader());
    let presentation = group(presentation.0, presentation.1);
    for topic in ["A", "B"] {
        add_writer(
            &mut t,
            topic,
            DataWriterQos { durability: Durability::TransientLocal, ..writer.clone() },
            presentation,
        );
        add_reader(&mut t, topic, keep_all_reader(), presentation);
    }
    t.network.run(2_000);
    for _ in 0..3 {
        t.begin();
        t.write(&[0, 1, 0]);
        t.end();
        t.network.run(1_000);
    }
    t.write(&[1]);
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![1, 3, 4, 6, 7, 9], vec![2, 5, 8, 10]]);
    t
}

/// Adds readers of both topics that request the history.
fn add_readers_of_history(t: &mut World, presentation: (bool, bool)) {
    let qos = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
    for topic in ["A", "B"] {
        add_reader(t, topic, qos.clone(), group(presentation.0, presentation.1));
    }
}

fn samples_lost(t: &mut World) -> Vec<u64> {
    let node = &mut t.network.nodes[1];
    t.readers.iter().map(|reader| node.samples_lost_total(*reader).expect("it exists")).collect()
}

#[test]
fn late_readers_of_a_subscriber_get_the_history_of_coherent_sets() {
    for (seed, presentation) in [(738, COHERENT), (739, BOTH)] {
        let mut t = world_with_history(seed, presentation, &keep_all_writer());
        add_readers_of_history(&mut t, presentation);
        t.network.run(5_000);
        assert_eq!(t.take_all(), [vec![], vec![], vec![1, 3, 4, 6, 7, 9], vec![2, 5, 8, 10]]);
        t.begin();
        t.write(&[0, 1]);
        t.end();
        t.network.run(1_000);
        assert_eq!(t.take_all(), [[11], [12], [11], [12]]);
        assert_eq!((samples_lost(&mut t), t.dropped()), (vec![0; 4], 0));
    }
}

#[test]
fn set_that_is_open_when_a_late_reader_joins_stays_complete() {
    let mut t = world_with_history(740, COHERENT, &keep_all_writer());
    t.begin();
    t.write(&[0, 1]);
    t.network.run(100);
    add_readers_of_history(&mut t, COHERENT);
    t.network.run(5_000);
    assert_eq!(t.take_all(), [vec![], vec![], vec![1, 3, 4, 6, 7, 9], vec![2, 5, 8, 10]], "the last one is open");
    t.write(&[1]);
    t.end();
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![11], vec![12, 13], vec![11], vec![12, 13]]);
    assert_eq!((samples_lost(&mut t), t.dropped()), (vec![0; 4], 0));
}

/// The third set stays complete; nothing of the others does.
#[test]
fn late_readers_of_old_and_new_subscribers_get_the_same_history() {
    let keep_two = DataWriterQos { history: History::KeepLast(2), ..keep_all_writer() };
    let mut t = world_with_history(741, COHERENT, &keep_two);
    let (old, early) = (t.subscriber, t.readers.clone());
    add_readers_of_history(&mut t, COHERENT);
    t.network.run(5_000);
    let in_old = t.take_all().split_off(2);
    t.subscriber = t.network.nodes[1].create_subscriber(group(true, false)).expect("write accepted");
    t.readers.clear();
    add_readers_of_history(&mut t, COHERENT);
    t.network.run(5_000);
    assert_eq!(in_old, [[7, 9], [8, 10]]);
    assert_eq!(t.take_all(), in_old);
    t.write(&[0]);
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![11], vec![]]);
    (t.subscriber, t.readers) = (old, early);
    assert_eq!(t.take_all(), [vec![11], vec![]]);
}

/// The first writer has replaced its half of each set.
#[test]
fn late_readers_do_not_get_half_of_a_replaced_set() {
    let keep_four = DataWriterQos { history: History::KeepLast(4), ..keep_all_writer() };
    let mut t = world_with_history(742, COHERENT, &keep_four);
    for _ in 0..2 {
        t.write(&[0, 0]);
    }
    add_readers_of_history(&mut t, COHERENT);
    t.network.run(5_000);
    assert_eq!(t.take_all().split_off(2), [vec![11, 12, 13, 14], vec![10]], "no set is whole");
}

/// A set that a departed writer broke is resolved with the next set, before another writer breaks a
/// later one. The complete sets between the two therefore stay in the history.
#[test]
fn late_readers_get_the_sets_between_two_broken_by_departed_writers() {
    let mut t = world(743, &[], COHERENT, &keep_all_reader());
    let topics = ["A", "B", "C", "D"];
    for topic in topics {
        let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
        add_writer(&mut t, topic, qos, group(true, false));
        add_reader(&mut t, topic, keep_all_reader(), group(true, false));
    }
    t.network.run(2_000);
    t.begin();
    t.write(&[0, 1, 2, 3]);
    t.end();
    t.network.run(1_000);
    assert_eq!(t.take_all(), [[1], [2], [3], [4]]);
    // The readers of the departed writers get no more sets.
    t.readers.truncate(2);
    t.begin();
    t.write(&[0, 1, 2, 3]);
    t.network.run(1_000);
    leave(&mut t, 2);
    t.end();
    t.network.run(1_000);
    assert_eq!(t.take_all(), [[]; 2] as [[u32; 0]; 2], "the third writer has not ended the set");
    for _ in 0..2 {
        t.begin();
        t.write(&[0, 1, 3]);
        t.end();
    }
    t.begin();
    t.write(&[0, 1, 3]);
    t.network.run(1_000);
    assert_eq!(t.take_all(), [[9, 12], [10, 13]], "the last set is open");
    leave(&mut t, 3);
    t.network.run(1_000);
    let qos = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
    for topic in &topics[..2] {
        add_reader(&mut t, topic, qos.clone(), group(true, false));
    }
    t.network.run(5_000);
    assert_eq!(t.take_all().split_off(2), [[9, 12], [10, 13]]);
}

fn leave(t: &mut World, writer: usize) {
    let (now, writer) = (t.network.now, t.writers[writer]);
    t.network.nodes[0].delete_writer(now, writer).expect("it exists");
    t.network.run(1_000);
}
