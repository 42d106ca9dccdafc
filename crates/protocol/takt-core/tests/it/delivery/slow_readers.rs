//! Slow, stopped, dead and silent readers, and their effect on other readers
//! (DDS 1.4 §2.2.3.14, §2.2.3.18).

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::message::AckNack;
use takt_wire::qos::*;
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

/// Creates a KEEP_ALL writer at node 0 with a reader at node 1 and one at node 2.
fn trio(seed: u64, second: DataReaderQos) -> (Network, WriterHandle, ReaderHandle, ReaderHandle) {
    let mut network = Network::new(3, seed);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let first = network.reader(1, reader_spec("T", false, keep_all_reader()));
    let second = network.reader(2, reader_spec("T", false, second));
    network.await_match((0, writer), (1, first));
    network.await_match((0, writer), (2, second));
    network.run(1_000);
    (network, writer, first, second)
}

/// Writes samples, one every 2 ms, until one is refused. Returns their number.
fn write_until_full(network: &mut Network, writer: WriterHandle, max: u32) -> u32 {
    for number in 0..max {
        match network.write(0, writer, &payload(number, 100)) {
            Ok(()) => network.run(2),
            Err(WriteError::WouldBlock) => return number,
            Err(error) => panic!("{error:?}"),
        }
    }
    max
}

fn take_in_order(network: &mut Network, node: usize, reader: ReaderHandle, from: u32) -> u32 {
    let taken = network.take_all(node, reader);
    let numbers = taken.iter().map(|(_, bytes)| u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")));
    let mut next = from;
    for number in numbers {
        assert_eq!(number, next, "nothing is missing and the order is kept");
        next += 1;
    }
    next
}

#[test]
fn keep_all_writer_serves_other_readers_while_one_is_dead() {
    for is_other_reliable in [true, false] {
        let mut network = Network::new(3, 920);
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let mut qos = keep_all_reader();
        qos.reliability = if is_other_reliable { reliable() } else { best_effort() };
        let alive = network.reader(1, reader_spec("T", false, qos));
        let dead = network.reader(2, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, alive));
        network.await_match((0, writer), (2, dead));
        network.run(1_000);
        network.cut = vec![2];
        let written = write_until_full(&mut network, writer, 5_000);
        assert_eq!(written, 4_096, "the history is full and the dead reader is still matched");
        network.run(200);
        assert_eq!(take_in_order(&mut network, 1, alive, 0), written, "reliable: {is_other_reliable}");
        network.events(0);
        network.run(20_000);
        assert!(network.events(0).contains(&Event::WriterSpace(writer)), "its lease has ended");
        network.write(0, writer, &payload(written, 100)).expect("write accepted");
        network.run(200);
        assert_eq!(take_in_order(&mut network, 1, alive, written), written + 1);
    }
}

#[test]
fn reader_that_fell_behind_gets_all_missing_samples() {
    for faults in [Faults::default(), Faults { loss: 10, duplication: 5, reordering: 20 }] {
        let (mut network, writer, healthy, stopped) = trio(921, keep_all_reader());
        network.faults = faults;
        let (mut written, mut of_healthy, mut of_stopped) = (0, 0, 0);
        for round in 0..4 {
            network.cut = if round % 2 == 0 { vec![2] } else { vec![] };
            for _ in 0..1_500 {
                network.write(0, writer, &payload(written, 100)).expect("write accepted");
                written += 1;
                network.run(2);
            }
            network.cut.clear();
            let all = network.run_until(20_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true));
            assert!(all, "round {round}");
            of_healthy = take_in_order(&mut network, 1, healthy, of_healthy);
            of_stopped = take_in_order(&mut network, 2, stopped, of_stopped);
            assert_eq!((of_healthy, of_stopped), (written, written), "round {round}");
        }
        assert!(network.nodes[0].counters().readers_excluded > 0);
        for (node, reader) in [(1, healthy), (2, stopped)] {
            assert_eq!(network.nodes[node].sample_lost_status(reader).expect("it exists").total_count, 0);
        }
    }
}

#[test]
fn slow_reader_does_not_delay_the_others() {
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(16);
    let (mut network, writer, healthy, slow) = trio(922, qos);
    let (mut of_healthy, mut of_slow) = (0, 0);
    for number in 0..3_000 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(2);
        if number % 10 == 0 && network.take(2, slow).is_some() {
            of_slow += 1;
        }
        of_healthy = take_in_order(&mut network, 1, healthy, of_healthy);
        assert!(of_healthy + 700 > number, "{of_healthy} of {number}");
    }
    network.run(100);
    assert_eq!(take_in_order(&mut network, 1, healthy, of_healthy), 3_000);
    let rest = network.run_until(600_000, |n| {
        of_slow = take_in_order(n, 2, slow, of_slow);
        of_slow == 3_000
    });
    assert!(rest, "{of_slow}");
}

#[test]
fn new_volatile_reader_gets_its_first_sample_while_another_one_is_dead() {
    let mut network = Network::new(3, 923);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let dead = network.reader(2, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (2, dead));
    network.run(1_000);
    network.cut = vec![2];
    for number in 0..1_000 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(2);
    }
    let new_reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, new_reader));
    network.write(0, writer, &payload(1_000, 100)).expect("write accepted");
    let newest = |n: &mut Network| n.take_all(1, new_reader).iter().any(|(_, bytes)| *bytes == payload(1_000, 100));
    assert!(network.run_until(1_000, newest), "long before the lease of the dead one ends");
}

/// Creates a participant that announces a reliable reader and never answers.
fn silent_reader(network: &mut Network) -> (Puppet, takt_wire::discovery::SubscriptionData) {
    let mut puppet = Puppet::new(7);
    puppet.lease = takt_wire::Duration::from_secs(10_000);
    let now = network.now;
    puppet.join(&mut network.nodes[0], now);
    let subscription = puppet.subscription(1, true);
    puppet.subscribe(&mut network.nodes[0], now, &subscription);
    (puppet, subscription)
}

#[test]
fn silent_reader_is_reported_and_does_not_block_a_keep_all_writer() {
    let mut network = Network::new(2, 924);
    let mut qos = keep_all_writer();
    qos.resource_limits.max_samples = Some(100);
    let writer = network.writer(0, writer_spec("T", false, qos));
    let (puppet, subscription) = silent_reader(&mut network);
    let healthy = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, healthy));
    let (mut written, mut refused) = (0, 0);
    network.events(0);
    for round in 0..7_500 {
        if round % 500 == 0 {
            let now = network.now;
            puppet.announce_itself(&mut network.nodes[0], now);
        }
        match network.write(0, writer, &payload(written, 100)) {
            Ok(()) => written += 1,
            Err(error) => {
                assert_eq!(error, WriteError::WouldBlock);
                refused += 1;
            }
        }
        network.run(2);
    }
    assert!(refused > 4_000 && refused < 6_000, "{refused}: the writer waits for ten seconds, less than the lease");
    assert!(network.events(0).contains(&Event::ReaderSilent(writer)));
    assert_eq!(network.nodes[0].silent_readers(writer), Ok(vec![subscription.guid]));
    assert_eq!(network.nodes[0].counters().silent_readers, 1);
    assert_eq!(network.nodes[0].is_acknowledged(writer, None), Ok(false), "it has acknowledged nothing");
    assert_eq!(take_in_order(&mut network, 1, healthy, 0), written);

    let answer = AckNack {
        reader: subscription.guid.entity_id,
        writer: network.nodes[0].writer_guid(writer).expect("it exists").entity_id,
        reader_sn_state: SequenceNumberSet::new(SequenceNumber(1)),
        count: 1,
        is_final: false,
    };
    let (now, to) = (network.now, network.nodes[0].guid().prefix);
    puppet.say(&mut network.nodes[0], now, |message| {
        message.info_destination(to).expect("it fits");
        message.acknack(&answer).expect("it fits");
    });
    assert!(network.events(0).contains(&Event::ReaderSilent(writer)), "it answers now");
    assert_eq!(network.nodes[0].silent_readers(writer), Ok(vec![]));
    let full = (0..200).any(|number| network.write(0, writer, &payload(number, 100)).is_err());
    assert!(full, "it is waited for");
    assert_ne!(subscription.guid.entity_id, EntityId::UNKNOWN);
}

#[test]
fn keep_all_writer_keeps_samples_when_its_link_fails_after_the_match() {
    for (is_one_way, down_ms) in [(false, 2_500), (false, 9_000), (true, 2_500), (true, 9_000)] {
        let mut network = Network::new(2, 926);
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        let is_known = |n: &mut Network| n.nodes[0].discovered_subscriptions().next().is_some();
        assert!(network.run_until(10_000, is_known));
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        // The reader is known, so the writer matches it before the reader's participant knows the
        // writer.
        if is_one_way {
            network.muted = vec![0];
        } else {
            network.cut = vec![0];
        }
        for number in 0..1_000 {
            network.write(0, writer, &payload(number, 100)).expect("write accepted");
            network.run(2);
        }
        network.run(down_ms - 2_000);
        (network.cut, network.muted) = (vec![], vec![]);
        let case = format!("one way: {is_one_way}, {down_ms} ms");
        let all = network.run_until(5_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true));
        assert!(all, "{case}");
        assert_eq!(take_in_order(&mut network, 1, reader, 0), 1_000, "{case}");
        assert_eq!(network.nodes[0].counters().silent_readers, 0, "{case}");
    }
}

#[test]
fn reader_of_an_unheard_participant_is_not_silent_until_its_lease_ends() {
    let mut network = Network::new(1, 927);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let (puppet, _) = silent_reader(&mut network);
    network.write(0, writer, &payload(0, 100)).expect("write accepted");
    network.run(60_000);
    assert_eq!(network.nodes[0].silent_readers(writer), Ok(vec![]));
    let now = network.now;
    puppet.announce_itself(&mut network.nodes[0], now);
    network.run(200);
    assert_eq!(network.nodes[0].silent_readers(writer).expect("it exists").len(), 1);
}

#[test]
fn reader_without_samples_to_acknowledge_is_not_silent() {
    let mut network = Network::new(1, 925);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let _reader = silent_reader(&mut network);
    network.run(10_000);
    assert_eq!(network.nodes[0].silent_readers(writer), Ok(vec![]));
}

#[test]
fn late_joiner_of_a_keep_last_writer_does_not_count_replaced_history_as_lost() {
    for seed in 930..960 {
        let mut network = Network::new(3, seed);
        let history = History::KeepLast(10);
        let durability = Durability::TransientLocal;
        let writer =
            network.writer(0, writer_spec("T", true, DataWriterQos { history, durability, ..keep_all_writer() }));
        let reader = || reader_spec("T", true, DataReaderQos { durability, ..keep_all_reader() });
        let early = network.reader(1, reader());
        network.await_match((0, writer), (1, early));
        let mut number = 0_u32;
        let mut write = |network: &mut Network, count: u32| {
            for _ in 0..count {
                let key = (number % 100) as u8;
                network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(number, 100)).expect("room");
                number += 1;
                if number.is_multiple_of(8) {
                    network.run(1);
                }
            }
        };
        write(&mut network, 5_000);
        let late = network.reader(2, reader());
        // The reader matches the writer later than the writer matches the reader, so an initial
        // heartbeat is its first one.
        network.faults.loss = 40;
        network.run(20);
        write(&mut network, 500);
        network.faults.loss = 0;
        write(&mut network, 9_500);
        network.run(500);
        let lost = network.nodes[2].sample_lost_status(late).expect("the reader exists").total_count;
        assert_eq!(lost, 0, "seed {seed}: samples replaced before its match are not owed to it");
        assert!(network.take_all(2, late).len() > 1_000, "seed {seed}");
    }
}

/// `ignore_participant` at the reader's side is not announced to the writer's side
/// (DDS 1.4 §2.2.2.2.1). The writer waits for the lease of its own participant, after which a
/// reader that does not answer is no longer matched with it.
#[test]
fn keep_all_writer_continues_when_an_acknowledging_reader_ignores_it() {
    let mut network = Network::new(2, 928);
    let mut qos = keep_all_writer();
    qos.resource_limits.max_samples = Some(100);
    let writer = network.writer(0, writer_spec("T", false, qos));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.write(0, writer, &payload(0, 100)).expect("write accepted");
    assert!(network.run_until(1_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true)));
    let now = network.now;
    network.nodes[1].ignore_participant(now, prefix(0)).expect("write accepted");
    assert_eq!(write_until_full(&mut network, writer, 200), 100, "the reader is waited for");
    network.events(0);
    let full_since = network.now;
    let is_silent = |n: &mut Network| n.events(0).contains(&Event::ReaderSilent(writer));
    assert!(network.run_until(60_000, is_silent));
    let lease = Config::new(0, prefix(0)).lease_duration;
    let waited = network.now.since(full_since);
    assert!(waited > lease && waited < lease + std::time::Duration::from_secs(6), "{waited:?}");
    assert_eq!(network.nodes[0].silent_readers(writer).expect("it exists").len(), 1);
    assert_eq!(write_until_full(&mut network, writer, 1_000), 1_000);
}

#[test]
fn samples_are_kept_for_a_reader_unreachable_for_less_than_the_lease() {
    let mut network = Network::new(2, 929);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.write(0, writer, &payload(0, 100)).expect("write accepted");
    assert!(network.run_until(1_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true)));
    network.muted = vec![0];
    for number in 1..1_000 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(19);
    }
    network.muted.clear();
    assert!(network.run_until(5_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true)));
    assert_eq!(take_in_order(&mut network, 1, reader, 0), 1_000);
    assert_eq!(network.nodes[0].counters().silent_readers, 0);
}

/// Among many readers one always acknowledges something, and the others would get heartbeats
/// frequently without end.
#[test]
fn heartbeats_to_an_unanswering_reader_become_rarer_while_another_one_answers() {
    let (mut network, writer, _, _) = trio(933, keep_all_reader());
    network.muted = vec![2];
    network.sent_to.clear();
    for number in 0..100 {
        network.write(0, writer, &payload(number, 100)).expect("write accepted");
        network.run(20);
    }
    let sent = |node| network.sent_to.get(&address(node)).copied().unwrap_or(0);
    let heartbeats = sent(2) - 100;
    assert!((20..=30).contains(&heartbeats), "after 5, 15, 35, 75 and 155 ms, then every 100 ms: {heartbeats}");
    assert_eq!(sent(1), 200, "a reader that answers is probed once after each sample");
}

#[test]
fn builtin_readers_that_never_answer_get_rare_heartbeats() {
    let mut network = Network::new(1, 940);
    let _writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let (puppet, _) = silent_reader(&mut network);
    let sent = |network: &mut Network, milliseconds| {
        network.sent_to.clear();
        network.run(milliseconds);
        network.sent_to.get(&puppet.address).copied().unwrap_or(0)
    };
    let at_first = sent(&mut network, 10_000);
    assert!(at_first >= 100, "{at_first}: each 100 ms");
    network.run(20_000);
    let later = sent(&mut network, 32_000);
    assert!((10..=100).contains(&later), "{later}: every 3.2 s, plus those that readers and announcements request");

    let answer = AckNack {
        reader: EntityId::SEDP_PUB_READER,
        writer: EntityId::SEDP_PUB_WRITER,
        reader_sn_state: SequenceNumberSet::new(SequenceNumber(1)),
        count: 100,
        is_final: true,
    };
    let (now, to) = (network.now, network.nodes[0].guid().prefix);
    puppet.say(&mut network.nodes[0], now, |message| {
        message.info_destination(to).expect("it fits");
        message.acknack(&answer).expect("it fits");
    });
    let answered = sent(&mut network, 1_000);
    assert!((9..=20).contains(&answered), "{answered}: each 100 ms again");
}
