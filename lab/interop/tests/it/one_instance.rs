//! One instance, written in XCDR1 and in XCDR2 by writers of all products. A KEEP_LAST 1 reader
//! holds it once, and every writer can dispose it.

use std::time::{Duration, Instant};

use takt_interop::event::{InstanceState, Sample};
use takt_interop::network::Network;
use takt_interop::peer::{Batch, Endpoint, Kind, Options, Peer, Representation};
use takt_interop::programs::Program;

use crate::scene::{hosts, start};

const KEYED: [Kind; 4] = [Kind::WideKey, Kind::OctetKey, Kind::NameKey, Kind::SequenceKey];
const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];
const KEY: u32 = 7;
/// Payload length. In the type with a name in its key, the length of the name requires padding.
const SIZE: usize = 16;
/// Maximum number of writes to a reader that has just matched.
const ATTEMPTS: u64 = 20;
const SHORT_TIMEOUT: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(20);

/// A reader in a separate process, and writers of one instance.
struct Group {
    kind: Kind,
    subscriber: Program,
    reader: Peer,
    publishers: Vec<(Program, Peer)>,
    /// Index of the publisher of each writer, and the id of the writer.
    writers: Vec<(usize, String)>,
    written: u64,
    /// Declared last: dropping it kills the programs on its hosts.
    network: Network,
}

impl Group {
    /// Writes a sample with the given writer and returns its number.
    fn write(&mut self, at: usize) -> u64 {
        let (publisher, id) = &self.writers[at];
        let peer = &mut self.publishers[*publisher].1;
        self.written += 1;
        peer.write(id, &Batch { first: self.written, key: KEY, ..Batch::new(1, SIZE) }).expect("running");
        peer.written(id, TIMEOUT).expect("written");
        self.written
    }

    /// Makes a writer dispose or unregister the instance.
    fn end(&mut self, at: usize, end: fn(&mut Peer, &str, u32) -> takt_interop::Result<()>) {
        let (publisher, id) = &self.writers[at];
        end(&mut self.publishers[*publisher].1, id, KEY).expect("ended");
    }

    /// Waits until the reader has acknowledged everything. A Fast DDS writer requests
    /// acknowledgments every 3 s.
    fn await_acknowledgments(&mut self) {
        for (publisher, id) in &self.writers {
            self.publishers[*publisher].1.acknowledged(id, TIMEOUT).expect("acknowledged");
        }
    }

    /// Takes until there is a sample. Returns nothing after `timeout`.
    fn take_within(&mut self, timeout: Duration) -> Vec<Sample> {
        let deadline = Instant::now() + timeout;
        loop {
            let samples = self.reader.take("r").expect("taken");
            if !samples.is_empty() || Instant::now() >= deadline {
                return samples;
            }
            std::thread::yield_now();
        }
    }

    /// INTEROP(CycloneDDS 0.10.2, 11.0.1): a reader drops the samples that arrive in the first
    /// fraction of a millisecond after it has reported a match.
    fn warm_up(&mut self, at: usize) {
        for _ in 0..ATTEMPTS {
            self.write(at);
            if !self.take_within(SHORT_TIMEOUT).is_empty() {
                return;
            }
        }
        panic!("nothing arrives from {}", self.name(at));
    }

    fn name(&self, at: usize) -> String {
        let (publisher, id) = &self.writers[at];
        format!("{} {id}, {:?} to {}", self.publishers[*publisher].0, self.kind, self.subscriber)
    }

    /// Makes all writers write the instance and returns the number of samples that a KEEP_LAST 1
    /// reader then holds.
    fn samples_of_all(&mut self) -> usize {
        for at in 0..self.writers.len() {
            self.write(at);
        }
        self.await_acknowledgments();
        let samples = self.take_within(TIMEOUT);
        assert!(samples.iter().all(|sample| sample.valid && sample.key == Some(KEY)), "{samples:?}");
        samples.len()
    }

    /// Returns validity, key and state of the samples without data.
    fn ends_within(&mut self, timeout: Duration) -> Vec<(bool, Option<u32>, InstanceState)> {
        let samples = self.take_within(timeout);
        samples.iter().map(|sample| (sample.valid, sample.key, sample.state)).collect()
    }

    /// Makes each writer dispose the instance that another one wrote last.
    fn check_disposals(&mut self) {
        for at in 0..self.writers.len() {
            let seq = self.write((at + 1) % self.writers.len());
            let samples = self.take_within(TIMEOUT);
            assert_eq!(samples.iter().map(|sample| sample.seq).collect::<Vec<_>>(), [seq], "{}", self.name(at));
            self.end(at, Peer::dispose);
            let expected = (false, Some(KEY), InstanceState::Disposed);
            assert_eq!(self.ends_within(TIMEOUT), [expected], "{}", self.name(at));
        }
    }

    /// Checks that the instance becomes NOT_ALIVE_NO_WRITERS when the last writer unregisters it,
    /// not earlier.
    fn check_unregistrations(&mut self) {
        assert_eq!(self.samples_of_all(), 1);
        let last = self.writers.len() - 1;
        (0..last).for_each(|at| self.end(at, Peer::unregister));
        self.await_acknowledgments();
        // INTEROP(Fast DDS 2.9.1, 3.2.2): its reader delivers a sample without data for every
        // unregistration.
        let earlier = self.ends_within(Duration::ZERO);
        let is_alive = |state: &(bool, Option<u32>, InstanceState)| *state == (false, Some(KEY), InstanceState::Alive);
        assert!(earlier.iter().all(is_alive), "{} still writes: {earlier:?}", self.name(last));
        let is_fast_dds = matches!(self.subscriber, Program::FastDds2 | Program::FastDds3);
        assert!(earlier.is_empty() || is_fast_dds, "{}: {earlier:?}", self.name(last));
        self.end(last, Peer::unregister);
        let expected = (false, Some(KEY), InstanceState::NoWriters);
        assert_eq!(self.ends_within(TIMEOUT), [expected], "{}", self.name(last));
    }
}

/// INTEROP(CycloneDDS 0.10.2): its IDL compiler refuses a sequence in a key.
fn has_type(program: Program, kind: Kind) -> bool {
    kind != Kind::SequenceKey || !matches!(program, Program::Cyclone10 | Program::Cyclone11)
}

/// Creates a reader of `subscriber` and one writer of each of `publishers` for each representation,
/// and waits for the matches. `None` if this machine cannot run such a test.
fn group(kind: Kind, subscriber: Program, publishers: &[Program]) -> Option<Group> {
    let network = hosts()?;
    let mut group = Group {
        kind,
        subscriber,
        reader: start(subscriber, &network.right, Options::default())?,
        publishers: Vec::new(),
        writers: Vec::new(),
        written: 0,
        network,
    };
    let endpoint = |id: &str, representation| Endpoint { representation, ..Endpoint::new(id, "T", kind) };
    let read = Endpoint { keep_last: 1, on_demand: true, ..endpoint("r", Representation::Any) };
    group.reader.reader(&read).expect("created");
    for publisher in publishers.iter().copied().filter(|publisher| has_type(*publisher, kind)) {
        let mut peer = start(publisher, &group.network.left, Options::default())?;
        for representation in REPRESENTATIONS {
            // INTEROP(Fast DDS 2.9.1): its reader announces only XCDR1.
            if subscriber == Program::FastDds2 && representation == Representation::Xcdr2 {
                continue;
            }
            let id = format!("{representation:?}");
            peer.writer(&endpoint(&id, representation)).expect("created");
            peer.matched(&id, 1).expect("matched");
            group.writers.push((group.publishers.len(), id));
        }
        group.publishers.push((publisher, peer));
    }
    group.reader.matched("r", group.writers.len() as i64).expect("matched");
    (0..group.writers.len()).for_each(|at| group.warm_up(at));
    Some(group)
}

#[test]
fn takt_reader_holds_an_instance_of_all_products_once() {
    const PUBLISHERS: [Program; 5] =
        [Program::Takt, Program::Cyclone10, Program::Cyclone11, Program::FastDds2, Program::FastDds3];
    for kind in KEYED {
        let Some(mut group) = group(kind, Program::Takt, &PUBLISHERS) else { return };
        assert_eq!(group.writers.len(), if kind == Kind::SequenceKey { 6 } else { 10 });
        assert_eq!(group.samples_of_all(), 1, "{kind:?}");
        assert!(group.reader.has_instance("r", KEY).expect("looked up"), "{kind:?}");
        group.check_disposals();
        group.check_unregistrations();
    }
}

/// INTEROP(Fast DDS 2.9.1): its reader identifies an instance by the key hash on the wire. Its own
/// writers announce the hash of the XCDR1 key, other products that of XTypes 1.3 §7.6.8. Where
/// these differ, the reader holds an instance twice.
fn holds_its_own_apart(subscriber: Program, kind: Kind) -> bool {
    subscriber == Program::FastDds2 && kind != Kind::NameKey
}

#[test]
fn cyclonedds_0_10_reader_holds_an_instance_of_takt_once() {
    holds_an_instance_of_takt_once(Program::Cyclone10);
}

#[test]
fn cyclonedds_11_reader_holds_an_instance_of_takt_once() {
    holds_an_instance_of_takt_once(Program::Cyclone11);
}

#[test]
fn fast_dds_2_reader_holds_an_instance_of_takt_once() {
    holds_an_instance_of_takt_once(Program::FastDds2);
}

#[test]
fn fast_dds_3_reader_holds_an_instance_of_takt_once() {
    holds_an_instance_of_takt_once(Program::FastDds3);
}

fn holds_an_instance_of_takt_once(subscriber: Program) {
    for kind in KEYED.into_iter().filter(|kind| has_type(subscriber, *kind)) {
        let with_its_own = [Program::Takt, subscriber];
        let publishers = if holds_its_own_apart(subscriber, kind) { &with_its_own[..1] } else { &with_its_own };
        let Some(mut group) = group(kind, subscriber, publishers) else { return };
        assert_eq!(group.samples_of_all(), 1, "{subscriber}, {kind:?}");
        group.check_disposals();
        group.check_unregistrations();
    }
}

#[test]
fn fast_dds_2_reader_holds_an_instance_of_takt_and_fast_dds_twice() {
    for kind in KEYED.into_iter().filter(|kind| holds_its_own_apart(Program::FastDds2, *kind)) {
        let Some(mut group) = group(kind, Program::FastDds2, &[Program::Takt, Program::FastDds2]) else { return };
        assert_eq!(group.samples_of_all(), 2, "{kind:?}");
    }
}
