//! Keyed topics: instances, their states and generations.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

struct Keyed {
    network: Network,
    writer: WriterHandle,
    reader: ReaderHandle,
}

fn keyed(seed: u64, history: History) -> Keyed {
    let mut network = Network::new(2, seed);
    let writer_qos = DataWriterQos { reliability: reliable(), history, ..DataWriterQos::default() };
    let reader_qos = DataReaderQos { reliability: reliable(), history, ..DataReaderQos::default() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    Keyed { network, writer, reader }
}

impl Keyed {
    fn send(&mut self, kind: ChangeKind, key: u8) {
        let bytes = match kind {
            ChangeKind::Alive => payload(u32::from(key), 20),
            _ => vec![0, 1, 0, 0, key, 0, 0, 0],
        };
        self.network.write_key(0, self.writer, kind, hash(key), &bytes).expect("write accepted");
        self.network.run(10);
    }

    fn take(&mut self) -> Option<(SampleInfo, Vec<u8>)> {
        self.network.take(1, self.reader)
    }
}

#[test]
fn dispose_and_unregister_are_seen_with_their_key() {
    let mut t = keyed(80, History::KeepAll);
    t.send(ChangeKind::Alive, 5);
    let (info, _) = t.take().expect("data");
    assert_eq!((info.view_state, info.instance_state), (ViewState::New, InstanceState::Alive));
    assert_eq!(info.instance_handle, InstanceHandle(hash(5)));
    t.send(ChangeKind::Disposed, 5);
    let (info, key) = t.take().expect("the disposal");
    assert_eq!((info.valid_data, info.instance_state), (false, InstanceState::NotAliveDisposed));
    assert_eq!(key, [0, 1, 0, 0, 5, 0, 0, 0]);
    t.send(ChangeKind::Alive, 5);
    let (info, _) = t.take().expect("data again");
    assert_eq!((info.view_state, info.disposed_generation_count), (ViewState::New, 1));
    t.send(ChangeKind::Unregistered, 5);
    let (info, _) = t.take().expect("the unregistration");
    assert_eq!((info.valid_data, info.instance_state), (false, InstanceState::NotAliveNoWriters));
    t.send(ChangeKind::Alive, 5);
    let (info, _) = t.take().expect("data again");
    assert_eq!((info.no_writers_generation_count, info.instance_state), (1, InstanceState::Alive));
    assert!(t.take().is_none());
}

#[test]
fn keep_last_is_counted_for_each_instance() {
    let mut t = keyed(81, History::KeepLast(2));
    for _ in 0..5 {
        for key in 1..4 {
            t.send(ChangeKind::Alive, key);
        }
    }
    let all = t.network.take_all(1, t.reader);
    assert_eq!(all.len(), 6);
    for key in 1..4 {
        assert_eq!(all.iter().filter(|(info, _)| info.instance_handle == InstanceHandle(hash(key))).count(), 2);
    }
}

#[test]
fn instances_lose_their_writer_when_its_participant_is_lost() {
    let mut t = keyed(82, History::KeepAll);
    t.send(ChangeKind::Alive, 1);
    t.send(ChangeKind::Alive, 2);
    assert_eq!(t.network.take_all(1, t.reader).len(), 2);
    t.network.nodes[0].delete_writer(t.network.now, t.writer).expect("the writer exists");
    t.network.run(1_000);
    let taken = t.network.take_all(1, t.reader);
    assert_eq!(taken.len(), 2);
    for (info, key) in taken {
        assert_eq!((info.valid_data, info.instance_state), (false, InstanceState::NotAliveNoWriters));
        assert_eq!(key[4], info.instance_handle.0[0], "the key is known");
    }
}

#[test]
fn read_keeps_samples_and_marks_them_as_read() {
    let mut t = keyed(83, History::KeepAll);
    for key in 1..4 {
        t.send(ChangeKind::Alive, key);
    }
    let now = t.network.now;
    let mut pass = |selector| {
        let mut cursor = ReadCursor::default();
        let mut states = Vec::new();
        while let Some(sample) =
            t.network.nodes[1].read_next(now, t.reader, selector, &mut cursor).expect("the reader exists")
        {
            states.push((sample.info.sample_state, sample.info.view_state));
        }
        states
    };
    assert_eq!(pass(Selector::READ), [(SampleState::NotRead, ViewState::New); 3]);
    assert_eq!(pass(Selector::READ), [(SampleState::Read, ViewState::NotNew); 3]);
    assert!(pass(Selector { sample_states: SampleStates::NOT_READ, ..Selector::TAKE }).is_empty());
    let only = Selector { instance: Instances::Only(InstanceHandle(hash(2))), ..Selector::TAKE };
    assert_eq!(pass(only).len(), 1);
    assert_eq!(pass(Selector::TAKE).len(), 2);
    assert!(pass(Selector::READ).is_empty());
}

#[test]
fn repeated_disposal_leaves_one_sample() {
    let mut t = keyed(84, History::KeepLast(1));
    for _ in 0..500 {
        t.send(ChangeKind::Alive, 1);
        t.send(ChangeKind::Disposed, 1);
    }
    let all = t.network.take_all(1, t.reader);
    assert_eq!(all.iter().map(|(info, _)| info.valid_data).collect::<Vec<_>>(), [true, false]);
}

/// Found by the simulation: the second disposal, which changed nothing, replaced the first, which
/// was not taken yet.
#[test]
fn disposal_stays_until_it_is_taken() {
    for kind in [ChangeKind::Disposed, ChangeKind::Unregistered, ChangeKind::DisposedUnregistered] {
        let mut t = keyed(87, History::KeepLast(3));
        t.send(ChangeKind::Alive, 5);
        assert!(t.take().is_some_and(|(info, _)| info.valid_data));
        t.send(kind, 5);
        t.send(kind, 5);
        let (info, _) = t.take().expect("the first ending");
        assert!(!info.valid_data && info.instance_state != InstanceState::Alive, "{kind:?}");
        assert!(t.take().is_none());
    }
}

/// Found by the simulation: the first disposal had been taken, which removed the instance. The
/// second one created it again without writers, although it had been disposed.
#[test]
fn removed_instance_is_not_disposed_again() {
    let mut t = keyed(88, History::KeepAll);
    t.send(ChangeKind::Alive, 5);
    assert!(t.take().is_some_and(|(info, _)| info.valid_data));
    t.send(ChangeKind::DisposedUnregistered, 5);
    assert!(t.take().is_some_and(|(info, _)| info.instance_state == InstanceState::NotAliveDisposed));
    assert!(t.take().is_none(), "done with the last sample");
    t.send(ChangeKind::Unregistered, 5);
    assert!(t.take().is_none());
    t.send(ChangeKind::Alive, 5);
    let (info, _) = t.take().expect("data of a new life");
    assert_eq!((info.view_state, info.instance_state), (ViewState::New, InstanceState::Alive));
}

#[test]
fn key_hash_that_contradicts_the_payload_is_ignored() {
    let mut t = keyed(90, History::KeepAll);
    t.network.write_key(0, t.writer, ChangeKind::Alive, hash(9), &payload(5, 20)).expect("write accepted");
    t.network.write_key(0, t.writer, ChangeKind::Disposed, hash(8), &[0, 1, 0, 0, 5, 0, 0, 0]).expect("write accepted");
    t.network.run(10);
    let all = t.network.take_all(1, t.reader);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(info, _)| info.instance_handle == InstanceHandle(hash(5))), "{all:?}");
    assert_eq!(all[1].0.instance_state, InstanceState::NotAliveDisposed);
}

#[test]
fn key_hash_is_used_when_the_payload_holds_no_key() {
    let mut t = keyed(91, History::KeepAll);
    t.network.write_key(0, t.writer, ChangeKind::Alive, hash(5), &payload(5, 20)).expect("write accepted");
    t.network.write_key(0, t.writer, ChangeKind::Disposed, hash(5), &[]).expect("write accepted");
    t.network.run(10);
    let all = t.network.take_all(1, t.reader);
    assert_eq!(all[1].0.instance_handle, InstanceHandle(hash(5)));
    assert_eq!(all[1].0.instance_state, InstanceState::NotAliveDisposed);
}

/// As [`FirstByte`], for a type whose key hash in XCDR1 differs.
struct OtherInXcdr1;

impl KeyExtractor for OtherInXcdr1 {
    fn key_hash(&mut self, payload: &[u8], key_only: bool) -> Option<KeyHash> {
        FirstByte.key_hash(payload, key_only)
    }

    fn key_hash_in_xcdr1(&mut self, payload: &[u8], _key_only: bool, _is_digest: bool) -> Option<KeyHash> {
        Some([*payload.get(4)?; 16])
    }

    fn serialize_key(&mut self, payload: &[u8], key_only: bool, key: &mut Vec<u8>) -> bool {
        FirstByte.serialize_key(payload, key_only, key)
    }
}

#[test]
fn disposal_by_the_key_hash_in_xcdr1_reaches_its_instance() {
    let mut network = Network::new(2, 92);
    let writer_qos = DataWriterQos { reliability: reliable(), history: History::KeepAll, ..DataWriterQos::default() };
    let reader_qos = DataReaderQos { reliability: reliable(), history: History::KeepAll, ..DataReaderQos::default() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader =
        network.reader(1, ReaderSpec { key: Some(Box::new(OtherInXcdr1)), ..reader_spec("T", true, reader_qos) });
    network.await_match((0, writer), (1, reader));
    network.write_key(0, writer, ChangeKind::Alive, [5; 16], &payload(5, 20)).expect("write accepted");
    network.write_key(0, writer, ChangeKind::Disposed, [5; 16], &[]).expect("write accepted");
    network.run(10);
    let states: Vec<_> =
        network.take_all(1, reader).iter().map(|(info, _)| (info.instance_handle, info.instance_state)).collect();
    assert_eq!(states, [(InstanceHandle(hash(5)), InstanceState::NotAliveDisposed); 2]);
}

/// Two keyed writers of one topic in separate nodes, and a reader.
struct TwoWriters {
    network: Network,
    writers: [WriterHandle; 2],
    reader: ReaderHandle,
}

fn two_writers(seed: u64) -> TwoWriters {
    let mut network = Network::new(3, seed);
    let writer_qos = DataWriterQos { reliability: reliable(), history: History::KeepAll, ..DataWriterQos::default() };
    let reader_qos = DataReaderQos { reliability: reliable(), history: History::KeepAll, ..DataReaderQos::default() };
    let writers = [0, 1].map(|node| network.writer(node, writer_spec("T", true, writer_qos.clone())));
    let reader = network.reader(2, reader_spec("T", true, reader_qos));
    for (node, writer) in writers.into_iter().enumerate() {
        network.await_match((node, writer), (2, reader));
    }
    TwoWriters { network, writers, reader }
}

impl TwoWriters {
    /// Sends a sample of instance `key` that announces the hash `announced`, from writer `from`.
    fn sample(&mut self, from: usize, key: u8, announced: u8) {
        let bytes = payload(u32::from(key), 20);
        self.network.write_key(from, self.writers[from], ChangeKind::Alive, hash(announced), &bytes).expect("room");
        self.network.run(10);
    }

    /// Sends a change without payload.
    fn end(&mut self, from: usize, kind: ChangeKind, announced: u8) {
        self.network.write_key(from, self.writers[from], kind, hash(announced), &[]).expect("room");
        self.network.run(10);
    }

    /// Returns instances and states of the changes since the last call.
    fn taken(&mut self) -> Vec<(InstanceHandle, InstanceState)> {
        let all = self.network.take_all(2, self.reader);
        all.iter().map(|(info, _)| (info.instance_handle, info.instance_state)).collect()
    }
}

#[test]
fn disposal_by_an_announced_hash_reaches_its_instance() {
    let ends = [
        (ChangeKind::Disposed, InstanceState::NotAliveDisposed),
        (ChangeKind::Unregistered, InstanceState::NotAliveNoWriters),
        (ChangeKind::DisposedUnregistered, InstanceState::NotAliveDisposed),
    ];
    for (kind, state) in ends {
        let mut t = two_writers(93);
        t.sample(0, 5, 9);
        assert_eq!(t.taken(), [(InstanceHandle(hash(5)), InstanceState::Alive)]);
        t.end(0, kind, 9);
        assert_eq!(t.taken(), [(InstanceHandle(hash(5)), state)], "{kind:?}");
    }
}

#[test]
fn announced_hash_identifies_an_instance_only_for_its_writer() {
    let mut t = two_writers(94);
    t.sample(0, 5, 9);
    t.end(1, ChangeKind::Disposed, 9);
    assert_eq!(t.taken(), [(InstanceHandle(hash(5)), InstanceState::Alive)], "no instance of the other writer");
    t.sample(1, 9, 9);
    t.end(1, ChangeKind::Disposed, 9);
    assert_eq!(t.taken(), [(InstanceHandle(hash(9)), InstanceState::NotAliveDisposed); 2]);
    t.end(0, ChangeKind::Disposed, 9);
    assert_eq!(t.taken(), [(InstanceHandle(hash(5)), InstanceState::NotAliveDisposed)]);
}

#[test]
fn announced_hash_identifies_the_instance_of_its_last_sample() {
    let mut t = two_writers(95);
    t.sample(0, 5, 9);
    t.sample(0, 9, 9);
    assert_eq!(t.taken().len(), 2);
    t.end(0, ChangeKind::Disposed, 9);
    assert_eq!(t.taken(), [(InstanceHandle(hash(9)), InstanceState::NotAliveDisposed)]);
    t.end(0, ChangeKind::Disposed, 5);
    assert_eq!(t.taken(), [(InstanceHandle(hash(5)), InstanceState::NotAliveDisposed)]);
}

#[test]
fn ninth_announced_hash_of_an_instance_replaces_the_first() {
    let mut t = two_writers(96);
    t.sample(1, 5, 99);
    for announced in 10..18 {
        t.sample(0, 5, announced);
    }
    assert_eq!(t.taken().len(), 9);
    t.end(0, ChangeKind::Disposed, 10);
    assert_eq!(t.taken(), [], "the oldest of the same writer made room");
    t.end(0, ChangeKind::Disposed, 11);
    assert_eq!(t.taken(), [(InstanceHandle(hash(5)), InstanceState::NotAliveDisposed)]);
    t.sample(0, 5, 5);
    assert_eq!(t.taken().len(), 1);
    t.end(1, ChangeKind::Disposed, 99);
    assert_eq!(
        t.taken(),
        [(InstanceHandle(hash(5)), InstanceState::NotAliveDisposed)],
        "that of the other writer stays"
    );
}
