//! Matrix of sample exchange: all combinations that a writer and a reader of different vendors
//! support, with every byte compared.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use takt_interop::content;
use takt_interop::event::{Event, InstanceState, Sample};
use takt_interop::network::{Drops, Host};
use takt_interop::peer::{Batch, Durability, Endpoint, Kind, Peer, Representation};
use takt_interop::programs::Program;

const KINDS: [Kind; 3] = [Kind::Unkeyed, Kind::Key, Kind::NameKey];
const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];
/// Payload lengths in bytes. The odd one makes a sample end in padding.
const SIZES: [usize; 5] = [16, 1021, 1 << 10, 64 << 10, 4 << 20];
/// Payload length from which best-effort samples are written one by one. Receivers with the
/// kernel's default socket buffer cannot hold several of them.
const LARGE: usize = 64 << 10;
/// Payload length from which a best-effort sample may be lost. Some must still arrive.
const HUGE: usize = 4 << 20;
const KEYS: u32 = 3;
/// Number of samples that are written back to back, unless they are huge.
const BATCH: usize = 9;
/// UDP payload of one Ethernet frame in octets.
const PACKET: usize = 1472;
/// First sequence number of the warm-up.
const WARM_UP: u64 = 1 << 32;
/// Maximum number of attempts to send a sample that may be lost.
const ATTEMPTS: u64 = 20;
/// Timeout of a best-effort sample that may be lost.
const SHORT_TIMEOUT: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(30);

/// RELIABILITY and DURABILITY, and the time at which the reader is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// BEST_EFFORT, VOLATILE.
    BestEffort,
    /// RELIABLE, VOLATILE.
    Reliable,
    /// RELIABLE, TRANSIENT_LOCAL. The reader is created after all samples are written.
    LateJoiner,
}

/// One combination of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    kind: Kind,
    appendable: bool,
    representation: Representation,
    pub delivery: Delivery,
    size: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, appendable, representation, delivery, size } = self;
        let extensibility = if *appendable { "appendable" } else { "final" };
        write!(f, "{kind:?} {extensibility} {representation:?} {delivery:?} {size} B")
    }
}

/// Returns all combinations that both `publisher` and `subscriber` support.
pub fn cases(publisher: Program, subscriber: Program) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for appendable in [false, true] {
            for representation in REPRESENTATIONS {
                for delivery in [Delivery::BestEffort, Delivery::Reliable, Delivery::LateJoiner] {
                    for size in SIZES {
                        // The encoding of a large payload does not depend on the preceding members.
                        let repetitive = size >= HUGE && (appendable || kind == Kind::Key);
                        let case = Case { kind, appendable, representation, delivery, size };
                        if !repetitive && case.is_within(publisher, subscriber) {
                            cases.push(case);
                        }
                    }
                }
            }
        }
    }
    cases
}

impl Case {
    /// Reports whether both products support the combination.
    fn is_within(&self, publisher: Program, subscriber: Program) -> bool {
        // INTEROP(CycloneDDS 0.10.2): refuses XCDR1 for an appendable type when the endpoint is
        // created, also as one of two representations. Fast DDS never announces that it sends XCDR2
        // (see `exchange`).
        let xcdr1 = self.representation == Representation::Xcdr1 || publisher == Program::FastDds2;
        let old_cyclone = [publisher, subscriber].contains(&Program::Cyclone10);
        let refused = old_cyclone && self.appendable && xcdr1;
        // INTEROP(Fast DDS 2.9.1): its reader never announces XCDR2, so that a writer that offers
        // XCDR2 must not match it. `refusals.rs` checks that Takt's writer does not.
        let unannounced = subscriber == Program::FastDds2 && self.representation == Representation::Xcdr2;
        !refused && !unannounced
    }

    /// Reports whether the case belongs to the subset for tests of the transport: every delivery
    /// and size, one type.
    pub fn is_representative(&self) -> bool {
        self.kind == Kind::NameKey && !self.appendable && self.representation == Representation::Xcdr1
    }

    /// Reports whether `dispose` and `unregister` reach the reader.
    fn ends_reach_reader(&self, publisher: Program, subscriber: Program) -> bool {
        let keyed = self.kind != Kind::Unkeyed;
        keyed
            && match (publisher, subscriber) {
                // INTEROP(CycloneDDS 0.10.2): reads the delimiter before the key of an appendable
                // type as part of the key. Its own keys have no delimiter, which Takt accepts too.
                (Program::Takt, Program::Cyclone10) => !self.appendable,
                (Program::Takt, _) | (_, Program::Takt) => true,
                // INTEROP(Fast DDS 2.9.1): uses the serialized key of a DATA without key hash as
                // the instance handle.
                (_, Program::FastDds2) => publisher == Program::FastDds2,
                // INTEROP(Fast DDS 2.9.1): sends only the hash of the key, and CycloneDDS cannot
                // derive a key from an MD5 hash.
                (Program::FastDds2, _) => self.kind == Kind::Key,
                // The same applies between the two versions of CycloneDDS.
                _ => publisher == subscriber || !self.appendable || self.representation == Representation::Xcdr1,
            }
    }

    fn endpoint(&self, id: &str, topic: &str) -> Endpoint {
        Endpoint {
            appendable: self.appendable,
            representation: self.representation,
            reliable: self.delivery != Delivery::BestEffort,
            durability: if self.delivery == Delivery::LateJoiner {
                Durability::TransientLocal
            } else {
                Durability::Volatile
            },
            ..Endpoint::new(id, topic, self.kind)
        }
    }

    fn keys(&self) -> u32 {
        let one_at_a_time = self.delivery == Delivery::BestEffort && self.size >= HUGE;
        if self.kind == Kind::Unkeyed || one_at_a_time { 1 } else { KEYS }
    }

    /// INTEROP(Fast DDS 2.9.1): treats a key hash of sixteen zeros as a missing key hash, so the
    /// tests do not use instance 0.
    fn first_key(&self) -> u32 {
        u32::from(self.kind != Kind::Unkeyed)
    }

    fn batch(&self) -> Batch {
        let count = if self.size >= HUGE { 2 } else { BATCH as u64 };
        Batch { key: self.first_key(), keys: self.keys(), ..Batch::new(count, self.size) }
    }
}

/// Runs one case from `publisher` to `subscriber` on a topic of its own. A best-effort sample may
/// be missing only if the kernel of one of the `hosts` has dropped packets. Without `hosts` any may
/// be missing.
pub fn exchange(
    publisher: (&mut Peer, Program),
    subscriber: (&mut Peer, Program),
    case: &Case,
    topic: &str,
    hosts: Option<[&Host; 2]>,
) -> Result<(), String> {
    let ends = case.ends_reach_reader(publisher.1, subscriber.1);
    // INTEROP(Fast DDS 2.9.1): ignores the deletion of a remote endpoint that is announced by key
    // alone, without key hash.
    let unmatches = publisher.1 != Program::FastDds2 || subscriber.1 == Program::Takt;
    // INTEROP(Fast DDS 2.9.1): its writer announces no representation, which means XCDR1, but sends
    // XCDR2.
    let announced = publisher.1 != Program::FastDds2 || case.representation == Representation::Xcdr1;
    // INTEROP(CycloneDDS 0.10.2, 11.0.1): reports a match a fraction of a millisecond before it
    // delivers samples. It acknowledges and drops the samples that arrive in between.
    let hasty = matches!(subscriber.1, Program::Cyclone10 | Program::Cyclone11);
    // INTEROP(Fast DDS 3.2): puts some samples together into a datagram of several packets, and
    // others into one packet. With AF_XDP, single packets overtake the IP fragments, which arrive
    // through Takt's socket (docs/guide/xdp.md).
    let is_overtaken = hosts.is_none()
        && matches!(publisher.1, Program::FastDds2 | Program::FastDds3)
        && subscriber.1 == Program::Takt
        && case.size * BATCH > PACKET;
    let (publisher, subscriber) = (publisher.0, subscriber.0);
    let (writer, reader) = (format!("{topic}-w"), format!("{topic}-r"));
    let mut read = case.endpoint(&reader, topic);
    if !announced {
        read.representation = Representation::Any;
    }
    let text = |error: takt_interop::Error| error.to_string();

    publisher.writer(&case.endpoint(&writer, topic)).map_err(text)?;
    if case.delivery == Delivery::LateJoiner {
        publisher.write(&writer, &case.batch()).map_err(text)?;
        publisher.written(&writer, TIMEOUT).map_err(text)?;
    }
    subscriber.reader(&read).map_err(text)?;
    publisher.matched(&writer, 1).map_err(text)?;
    subscriber.matched(&reader, 1).map_err(text)?;
    if case.delivery == Delivery::BestEffort || case.delivery == Delivery::Reliable && hasty {
        warm_up(publisher, &writer, subscriber, &reader, case)?;
    }
    match case.delivery {
        Delivery::LateJoiner => collect(subscriber, &reader, case)?,
        Delivery::Reliable => {
            publisher.write(&writer, &case.batch()).map_err(text)?;
            collect(subscriber, &reader, case)?;
            publisher.written(&writer, TIMEOUT).map_err(text)?;
        }
        Delivery::BestEffort if case.size < LARGE && !is_overtaken => {
            publisher.write(&writer, &case.batch()).map_err(text)?;
            publisher.written(&writer, TIMEOUT).map_err(text)?;
            collect(subscriber, &reader, case)?;
        }
        Delivery::BestEffort => one_by_one(publisher, &writer, subscriber, &reader, case, hosts)?,
    }
    if ends {
        end_instances(publisher, &writer, subscriber, &reader, case)?;
    }
    if case.delivery != Delivery::BestEffort {
        publisher.acknowledged(&writer, TIMEOUT).map_err(text)?;
    }
    subscriber.delete(&reader).map_err(text)?;
    if unmatches {
        publisher.matched(&writer, 0).map_err(text)?;
    }
    publisher.delete(&writer).map_err(text)
}

/// Writes until a sample arrives.
fn warm_up(publisher: &mut Peer, writer: &str, subscriber: &mut Peer, reader: &str, case: &Case) -> Result<(), String> {
    for attempt in 0..ATTEMPTS {
        let batch = Batch { first: WARM_UP + attempt, key: case.first_key(), ..Batch::new(1, 16) };
        publisher.write(writer, &batch).map_err(|error| error.to_string())?;
        publisher.written(writer, TIMEOUT).map_err(|error| error.to_string())?;
        if subscriber.sample_within(reader, SHORT_TIMEOUT).is_ok() {
            return Ok(());
        }
    }
    Err(format!("none of {ATTEMPTS} samples arrived"))
}

/// Returns the next sample after the [`warm_up`], whose samples may still arrive.
fn next(subscriber: &mut Peer, reader: &str, timeout: Duration) -> takt_interop::Result<Sample> {
    loop {
        let sample = subscriber.sample_within(reader, timeout)?;
        if sample.seq < WARM_UP {
            return Ok(sample);
        }
    }
}

/// Receives the batch. Each sample must arrive once, in order within its instance, with correct
/// content.
fn collect(subscriber: &mut Peer, reader: &str, case: &Case) -> Result<(), String> {
    let batch = case.batch();
    let mut awaited: BTreeMap<u32, u64> = (0..batch.keys).map(|n| (batch.key + n, u64::from(n))).collect();
    for received in 0..batch.count {
        let sample = next(subscriber, reader, TIMEOUT)
            .map_err(|error| format!("{received} of {} samples: {error}", batch.count))?;
        check(&sample, case)?;
        let key = sample.key.unwrap_or_default();
        let expected = awaited.get_mut(&key).ok_or_else(|| format!("unknown key {key}"))?;
        if sample.seq != *expected {
            return Err(format!("instance {key}: sample {} instead of {expected}", sample.seq));
        }
        *expected += u64::from(batch.keys);
    }
    nothing_more(subscriber, reader)
}

/// Sends best-effort samples one at a time. Huge samples may be lost if a kernel reports drops.
/// Without `hosts` the kernel counters are not checked, since the datagrams bypass the kernels.
fn one_by_one(
    publisher: &mut Peer,
    writer: &str,
    subscriber: &mut Peer,
    reader: &str,
    case: &Case,
    hosts: Option<[&Host; 2]>,
) -> Result<(), String> {
    let wanted = if case.size >= HUGE { 1 } else { 5 };
    let key_of = |seq: u64| case.first_key() + u32::try_from(seq).unwrap_or(0) % case.keys();
    let mut received: Vec<u64> = Vec::new();
    for seq in 0..ATTEMPTS {
        let batch = Batch { first: seq, key: key_of(seq), keys: 1, ..Batch::new(1, case.size) };
        let before = drops(hosts)?;
        publisher.write(writer, &batch).map_err(|error| error.to_string())?;
        publisher.written(writer, TIMEOUT).map_err(|error| error.to_string())?;
        let deadline = Instant::now() + TIMEOUT;
        while received.last() != Some(&seq) {
            // A sample may arrive after its timeout, while the next one is awaited.
            if let Ok(sample) = next(subscriber, reader, SHORT_TIMEOUT) {
                check(&sample, case)?;
                if sample.key != Some(key_of(sample.seq)) || received.last().is_some_and(|last| sample.seq <= *last) {
                    return Err(format!("{sample:?} behind {received:?}"));
                }
                received.push(sample.seq);
                continue;
            }
            let dropped = dropped_since(&before, hosts)?;
            if case.size >= LARGE && (hosts.is_none() || !dropped.is_empty()) {
                eprintln!("{case}: sample {seq} was lost: {dropped:?}");
                break;
            }
            if Instant::now() >= deadline {
                return Err(format!("sample {seq} is missing; the kernels have dropped {dropped:?}"));
            }
        }
        if received.len() >= wanted {
            return nothing_more(subscriber, reader);
        }
    }
    Err(format!("only {received:?} of {ATTEMPTS} best-effort samples arrived"))
}

fn drops(hosts: Option<[&Host; 2]>) -> Result<Vec<Drops>, String> {
    hosts.into_iter().flatten().map(|host| host.drops().map_err(|error| error.to_string())).collect()
}

/// Returns the hosts and counters that report drops since `before`.
fn dropped_since(before: &[Drops], hosts: Option<[&Host; 2]>) -> Result<Vec<String>, String> {
    let mut dropped = Vec::new();
    for (host, (now, before)) in hosts.into_iter().flatten().zip(drops(hosts)?.iter().zip(before)) {
        dropped.extend(now.since(before).iter().map(|(name, more)| format!("{name} of {}: {more}", host.address())));
    }
    Ok(dropped)
}

/// Disposes one instance and unregisters another. The reader must report the right state of each.
fn end_instances(
    publisher: &mut Peer,
    writer: &str,
    subscriber: &mut Peer,
    reader: &str,
    case: &Case,
) -> Result<(), String> {
    let (disposed, unregistered) = (case.first_key(), case.first_key() + 1);
    publisher.dispose(writer, disposed).map_err(|error| error.to_string())?;
    expect_end(subscriber, reader, disposed, InstanceState::Disposed, case)?;
    if case.keys() > 1 {
        publisher.unregister(writer, unregistered).map_err(|error| error.to_string())?;
        expect_end(subscriber, reader, unregistered, InstanceState::NoWriters, case)?;
    }
    Ok(())
}

fn expect_end(subscriber: &mut Peer, reader: &str, key: u32, state: InstanceState, case: &Case) -> Result<(), String> {
    let sample = subscriber.sample(reader).map_err(|error| format!("{state:?} of instance {key}: {error}"))?;
    if sample.valid || sample.state != state || sample.key != Some(key) {
        return Err(format!("instance {key} shall be {state:?}: {sample:?}"));
    }
    check_name(&sample, case)
}

fn check(sample: &Sample, case: &Case) -> Result<(), String> {
    let key = sample.key.ok_or("the key is missing")?;
    if !sample.valid || sample.state != InstanceState::Alive {
        return Err(format!("not data: {sample:?}"));
    }
    let expected = content::expected_hash(case.size, key, sample.seq);
    if sample.len != case.size || sample.hash != format!("{expected:016x}") {
        return Err(format!("wrong content, {expected:016x} is right: {sample:?}"));
    }
    // The source timestamp lies between the application's timestamp and the reception. Its unit is
    // 2^-32 s.
    const TICK_NS: i64 = 1_000;
    if sample.source_ns + TICK_NS < sample.stamp_ns || sample.source_ns - TICK_NS > sample.received_ns {
        return Err(format!("source timestamp is not between writing and taking: {sample:?}"));
    }
    check_name(sample, case)
}

fn check_name(sample: &Sample, case: &Case) -> Result<(), String> {
    let expected = (case.kind == Kind::NameKey).then(|| content::instance_name(sample.key.unwrap_or_default()));
    if sample.name == expected { Ok(()) } else { Err(format!("name shall be {expected:?}: {sample:?}")) }
}

fn nothing_more(subscriber: &mut Peer, reader: &str) -> Result<(), String> {
    let surplus: Vec<Event> = subscriber.pending(reader);
    let bad = surplus.iter().find(|event| !matches!(event, Event::Matched { .. }));
    bad.map_or(Ok(()), |event| Err(format!("unexpected: {event:?}")))
}
