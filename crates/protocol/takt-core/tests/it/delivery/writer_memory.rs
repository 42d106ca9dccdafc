//! Writers with full history or memory: replacement, waiting, and refusal
//! (DDS 1.4 §2.2.3.18, §2.2.3.19).

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

const MEMORY: usize = 1 << 20;

/// Creates two participants of which the first has little memory per endpoint, and the given
/// default limit of samples.
fn network(seed: u64, default_max_samples: usize) -> Network {
    let mut network = Network::new(0, seed);
    let mut first = config(0, 1500);
    (first.limits.endpoint_memory_bytes, first.limits.default_max_samples) = (MEMORY, default_max_samples);
    network.join_with(first);
    network.join();
    network
}

fn keep_last(depth: u32, durability: Durability) -> DataWriterQos {
    DataWriterQos { history: History::KeepLast(depth), durability, ..keep_all_writer() }
}

fn durable_reader() -> DataReaderQos {
    DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() }
}

fn refused(limit: &'static str, value: u64) -> Result<(), WriteError> {
    Err(WriteError::Refused(Error::OutOfResources { limit, value }))
}

/// Returns a sample of an instance: its number follows the key, by which readers identify the
/// instance.
fn sample(key: u8, number: u32, len: usize) -> Vec<u8> {
    payload(number << 8 | u32::from(key), len)
}

/// Returns the instances and numbers of the samples that a late joiner gets.
fn late_joiner(network: &mut Network, writer: WriterHandle) -> Vec<(u8, u32)> {
    let reader = network.reader(1, reader_spec("T", true, durable_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(1_000);
    let taken = network.take_all(1, reader);
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[5], bytes[6], bytes[7], 0]);
    taken.into_iter().map(|(info, bytes)| (info.instance_handle.0[0], number(&bytes))).collect()
}

#[test]
fn keep_last_writer_replaces_its_oldest_when_its_memory_is_full() {
    for (durability, is_reader_dead) in [(Durability::TransientLocal, false), (Durability::Volatile, true)] {
        let mut network = network(900, 4_096);
        let writer = network.writer(0, writer_spec("T", false, keep_last(10, durability)));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        network.run(100);
        network.cut = if is_reader_dead { vec![1] } else { vec![] };
        for number in 0..30 {
            // Eight of them fit.
            network.write(0, writer, &payload(number, MEMORY / 8)).expect("the oldest makes room");
            network.run(20);
        }
        network.cut = vec![];
        network.run(2_000);
        let taken = network.take_all(1, reader);
        assert_eq!(taken.last().map(|(_, bytes)| &bytes[4..8]), Some(&29_u32.to_le_bytes()[..]), "{durability:?}");
    }
}

#[test]
fn keep_last_writer_keeps_the_newest_of_other_instances_when_its_memory_is_full() {
    let mut network = network(901, 4_096);
    let writer = network.writer(0, writer_spec("T", true, keep_last(10, Durability::TransientLocal)));
    let write = |network: &mut Network, key: u8, number: u32| {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &sample(key, number, MEMORY / 8))
    };
    for number in 0..20 {
        write(&mut network, 1, number).expect("the oldest makes room");
    }
    for (key, number) in [(2, 100), (3, 101), (2, 102)] {
        write(&mut network, key, number).expect("an older sample of another instance makes room");
    }
    let newest = |history: &[(u8, u32)], key| history.iter().rfind(|it| it.0 == key).map(|it| it.1);
    let history = late_joiner(&mut network, writer);
    for (key, number) in [(1, 19_u32), (2, 102), (3, 101)] {
        assert_eq!(newest(&history, key), Some(number), "{key}");
    }
}

#[test]
fn sample_is_refused_with_the_limit_when_none_can_be_replaced() {
    let mut network = network(902, 4_096);
    let writer = network.writer(0, writer_spec("T", true, keep_last(1, Durability::TransientLocal)));
    for key in 0..8 {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(1, MEMORY / 8)).expect("write accepted");
    }
    let ninth = network.write_key(0, writer, ChangeKind::Alive, hash(8), &payload(1, MEMORY / 8));
    assert_eq!(ninth, refused("endpoint_memory_bytes", MEMORY as u64), "each is the newest of its instance");
    network.write_key(0, writer, ChangeKind::Alive, hash(3), &payload(2, MEMORY / 8)).expect("it replaces its own");
}

#[test]
fn sample_is_written_up_to_the_memory_and_refused_beyond() {
    for len in [60_000, 65_000, 65_536] {
        let mut network = Network::new(0, 903);
        let mut first = config(0, 1500);
        first.limits.endpoint_memory_bytes = len;
        network.join_with(first);
        network.join();
        let writer = network.writer(0, writer_spec("T", false, keep_last(1, Durability::TransientLocal)));
        let capacity = len.next_multiple_of(64);
        let too_long = network.write(0, writer, &payload(1, capacity + 1));
        assert_eq!(too_long, refused("endpoint_memory_bytes", capacity as u64));
        for number in 0..3 {
            network.write(0, writer, &payload(number, len)).expect("it takes all of the memory");
        }
    }
}

#[test]
fn keep_last_writer_stays_within_the_default_max_samples_by_early_replacement() {
    let mut network = network(904, 400);
    let writer = network.writer(0, writer_spec("T", true, keep_last(100, Durability::TransientLocal)));
    for number in 0..5_000_u32 {
        let key = (number % 50) as u8;
        network
            .write_key(0, writer, ChangeKind::Alive, hash(key), &sample(key, number, 20))
            .expect("older ones make room");
    }
    for key in 50..100 {
        network
            .write_key(0, writer, ChangeKind::Alive, hash(key), &sample(key, 5_000, 20))
            .expect("older ones make room");
    }
    let history = late_joiner(&mut network, writer);
    assert_eq!(history.len(), 400);
    for key in 0..100_u8 {
        let newest = if key < 50 { 4_950 + u32::from(key) } else { 5_000 };
        let found = history.iter().rfind(|it| it.0 == key).map(|it| it.1);
        assert_eq!(found, Some(newest), "instance {key}");
    }
}

#[test]
fn write_is_refused_with_the_limit_when_the_full_history_cannot_drain() {
    let keep_all = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
    let limited = |qos: &DataWriterQos, limits| DataWriterQos { resource_limits: limits, ..qos.clone() };
    let max_samples = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let of_instance = ResourceLimits { max_samples_per_instance: Some(4), ..ResourceLimits::default() };
    let last = keep_last(3, Durability::TransientLocal);
    for (qos, limit) in [
        (limited(&keep_all, max_samples), "max_samples"),
        (limited(&keep_all, of_instance), "max_samples_per_instance"),
        (limited(&last, max_samples), "max_samples"),
        (keep_all.clone(), "default_max_samples"),
    ] {
        let mut network = network(905, 4);
        let keyed = qos.history != History::KeepAll;
        let writer = network.writer(0, writer_spec("T", keyed, qos));
        let mut results = (0..5).map(|at| {
            network.write_key(0, writer, ChangeKind::Alive, hash(if keyed { at } else { 0 }), &payload(1, 20))
        });
        assert!(results.by_ref().take(4).all(|result| result.is_ok()), "{limit}");
        assert_eq!(results.next(), Some(refused(limit, 4)));
    }
}

#[test]
fn failed_write_leaves_the_history_unchanged() {
    let mut network = network(906, 4_096);
    let qos = keep_last(1, Durability::TransientLocal);
    let writer = network.writer(0, writer_spec("T", true, qos));
    for key in 1..=3 {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 20)).expect("room");
    }
    for (key, len) in [(2, 2 * MEMORY), (3, 20), (3, MEMORY / 2)] {
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: hash(key),
            source_timestamp: None,
            destinations: &[],
            payload_len: len,
        };
        let now = network.now;
        network.nodes[0].write(now, writer, &change, |_| None).expect_err("it is not written");
    }
    let instances: Vec<_> = late_joiner(&mut network, writer).into_iter().map(|(key, _)| key).collect();
    assert_eq!(instances, [1, 2, 3]);
}

/// Each sample of each instance grows, so the memory of the replaced one is too short.
#[test]
fn keep_last_writer_continues_while_samples_grow_within_its_memory() {
    let mut network = network(907, 4_096);
    let writer = network.writer(0, writer_spec("T", true, keep_last(1, Durability::TransientLocal)));
    for len in [6_000, 8_000, 10_000, 12_000] {
        // At most 12,288 octets of memory each, 80 instances: 0.96 of 1 MiB.
        for key in 0..80 {
            let sample = sample(key, len as u32, len);
            let written = network.write_key(0, writer, ChangeKind::Alive, hash(key), &sample);
            written.unwrap_or_else(|error| panic!("instance {key}, {len} octets: {error:?}"));
        }
    }
    let history = late_joiner(&mut network, writer);
    assert!((0..80).all(|key| history.contains(&(key, 12_000))), "{history:?}");
}

/// None of the replaceable samples is long enough alone.
#[test]
fn keep_last_writer_replaces_as_many_older_samples_as_a_longer_one_needs() {
    let mut network = network(908, 4_096);
    let writer = network.writer(0, writer_spec("T", true, keep_last(1_000, Durability::TransientLocal)));
    for number in 0..2_000_u32 {
        let key = (number % 2) as u8;
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &sample(key, number, 1_000)).expect("room");
    }
    for (key, len) in [(0, MEMORY / 4), (7, MEMORY / 4)] {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &sample(key, 3_000, len)).expect("older ones go");
    }
    let history = late_joiner(&mut network, writer);
    for newest in [(0, 3_000), (1, 1_999), (7, 3_000)] {
        assert!(history.contains(&newest), "{newest:?}");
    }
    assert!(history.len() > 200, "no more go than have to: {}", history.len());
}

/// The history is sized for the maximum number of samples of the longest kind; short ones in
/// between must not reduce that number.
#[test]
fn writer_of_a_bounded_type_holds_max_samples_of_any_lengths() {
    let mut network = network(909, 4_096);
    let limits = ResourceLimits { max_samples: Some(10), ..ResourceLimits::default() };
    let qos = DataWriterQos { resource_limits: limits, ..keep_last(1, Durability::TransientLocal) };
    let mut spec = writer_spec("T", true, qos);
    spec.max_serialized_len = Some(1_000);
    let writer = network.writer(0, spec);
    for (number, len) in (0..).zip([500, 1_000, 300, 900]) {
        for key in 0..10 {
            let sample = sample(key, number, len);
            network.write_key(0, writer, ChangeKind::Alive, hash(key), &sample).expect("there is room for ten");
        }
    }
    let history = late_joiner(&mut network, writer);
    assert!((0..10).all(|key| history.contains(&(key, 3))), "{history:?}");
}
