//! Random kills (SIGKILL) of processes that exchange data through shared memory. The survivors are
//! a writer and a reader with participants of their own. They lose no data between each other,
//! receive the data of each killed process in order and without gaps, and keep no memory of the
//! killed processes.
//!
//! The end of a process is detected independently of its lease.
//!
//! Performs 20 kills; with `TAKT_TEST_LONG=1` 2,000; with `TAKT_TEST_KILLS` that number. All kills
//! are performed, without a time limit. The processes execute this test binary.

#[allow(dead_code, reason = "the other test binary uses the rest")]
#[path = "it/support.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use support::*;
use takt::qos::*;
use takt::*;

/// Environment variable that assigns a role to a process of this test. It contains the domain and
/// the parent.
const ROLE: &str = "TAKT_TEST_ROLE";
/// Longer than any test.
const LONG_LEASE: std::time::Duration = std::time::Duration::from_secs(36_000);
/// Number of concurrent processes.
const VICTIMS: usize = 3;
/// Topics of the survivors' samples to all, and of the victims' samples to the survivors.
const TOPICS: [&str; 2] = ["Orders", "Reports"];

fn participant(domain: u32) -> DomainParticipant {
    // Upper bound of the time for which killed processes are waited for. A live process on a loaded
    // machine may also miss it.
    let lease = std::time::Duration::from_secs(4);
    on_loopback(domain, Runtime::Shared).lease_duration(lease).build().expect("participant")
}

struct Victim(Child);

impl Victim {
    fn start(domain: u32) -> Self {
        Self::with_role("run_victim_process", domain)
    }

    /// Starts a process that runs this test of the binary.
    fn with_role(test: &str, domain: u32) -> Self {
        let child = Command::new(std::env::current_exe().expect("this binary has a path"))
            .args(["--ignored", "--exact", test, "--quiet", "--nocapture"])
            .env(ROLE, format!("{domain} {}", std::process::id()))
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("a process"))
    }
}

/// Returns the domain and the parent of a process started by a test; `None` for any other process.
fn role() -> Option<(u32, u32)> {
    let role = std::env::var_os(ROLE)?.into_string().expect("two numbers");
    let (domain, parent) = role.split_once(' ').expect("two numbers");
    Some((domain.parse().expect("a number"), parent.parse().expect("a number")))
}

impl Drop for Victim {
    fn drop(&mut self) {
        let ended = self.0.try_wait().expect("it is a child");
        self.0.kill().expect("it is a child");
        self.0.wait().expect("it is a child");
        assert!(ended.is_none() || std::thread::panicking(), "it found something wrong");
    }
}

/// Next expected number of each writer.
#[derive(Default)]
struct ReceivedSamples(BTreeMap<InstanceHandle, u32>);

impl ReceivedSamples {
    /// Takes all samples and verifies that they are in order and without gaps, from any first
    /// number on.
    fn take(&mut self, reader: &DataReader<Blob>) {
        for sample in reader.take(usize::MAX).expect("open") {
            let Some(blob) = sample.data else { continue };
            assert_eq!(blob, Blob::new(blob.number, blob.bytes.len()), "whole");
            let next = self.0.entry(sample.info.publication_handle()).or_insert(blob.number);
            assert_eq!(blob.number, *next, "in order and without a gap");
            *next += 1;
        }
    }
}

/// Samples that the survivors exchange with each other, and that the victims write.
struct SurvivorSamples {
    writer: DataWriter<Blob>,
    orders: DataReader<Blob>,
    reports: DataReader<Blob>,
    /// Orders of the writer.
    received: ReceivedSamples,
    /// Reports of the victims.
    reported: ReceivedSamples,
    /// Number of orders written.
    written: u32,
}

impl SurvivorSamples {
    /// Creates the endpoints, and waits until the writer is matched.
    fn new(writes: &DomainParticipant, reads: &DomainParticipant) -> Self {
        let writer = create_writer::<Blob>(writes, TOPICS[0], reliable_writer(History::KeepAll));
        let orders = create_reader::<Blob>(reads, TOPICS[0], reliable_reader(History::KeepAll));
        let reports = create_reader::<Blob>(reads, TOPICS[1], reliable_reader(History::KeepAll));
        wait_until(&[], "match", || !writer.matched_subscriptions().expect("open").is_empty());
        let (received, reported) = (ReceivedSamples::default(), ReceivedSamples::default());
        Self { writer, orders, reports, received, reported, written: 0 }
    }

    /// Writes an order, and takes what has arrived.
    fn exchange(&mut self) {
        self.writer.write(&Blob::new(self.written, len_of(self.written))).expect("room within ten seconds");
        self.written += 1;
        self.received.take(&self.orders);
        self.reported.take(&self.reports);
    }

    /// Verifies that the shared memory of the writer's participant has room for a payload.
    fn assert_room_for(&self, writes: &DomainParticipant, len: usize) {
        let copied = || writes.diagnostics().driver_counters().expect("open").payloads_copied_without_loan;
        let before = copied();
        self.writer.write(&Blob::new(self.written, len)).expect("room within ten seconds");
        assert_eq!(copied(), before);
    }
}

/// Returns the number of ring ends in shared memory that this process has mapped.
fn open_rings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("it is there");
    maps.lines().filter(|line| line.contains("takt-shm")).count()
}

/// Resources of a survivor that a leak would increase.
#[derive(Debug, PartialEq)]
struct ResourceUsage {
    rings: usize,
    /// File descriptors except UDP sockets, of which some remain connected to frequent
    /// destinations, and except epoll instances with their timers, which threads create after many
    /// sleeps.
    descriptors: usize,
    /// Files in `/dev/shm`, which Takt does not use.
    files: usize,
}

impl ResourceUsage {
    fn now() -> Self {
        let unix = std::fs::read_to_string("/proc/net/unix").expect("it is there");
        let unix: BTreeSet<_> = unix.lines().filter_map(|line| line.split_whitespace().nth(6)).collect();
        let is_counted = |target: &str| {
            if ["[eventpoll]", "[timerfd]"].iter().any(|kind| target.contains(kind)) {
                return false;
            }
            let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            inode.is_none_or(|inode| unix.contains(inode))
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").expect("it is there").flatten();
        let targets = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        let descriptors = targets.filter(|target| is_counted(&target.to_string_lossy())).count();
        let is_ours = |name: &std::ffi::OsStr| name.to_string_lossy().contains("takt-shm");
        let files = std::fs::read_dir("/dev/shm").expect("it is there").flatten();
        let files = files.filter(|file| is_ours(&file.file_name())).count();
        Self { rings: open_rings(), descriptors, files }
    }
}

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it is reported");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

/// Returns the announced names in shared memory, as they appear in the list of sockets.
fn names(participant: &DomainParticipant) -> impl Iterator<Item = String> {
    let all = participant.discovered_participants().expect("open");
    let memory = |locator: &Locator| locator.kind == Locator::KIND_TAKT_SHM;
    let found = all.into_iter().filter_map(move |data| data.default_unicast.into_iter().find(memory));
    found.map(|locator| locator.address[8..].iter().map(|octet| format!("{octet:02x}")).collect())
}

/// Excludes other tests while the resources of the process are counted.
fn run_exclusively() -> impl Sized {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the length of a blob: one datagram, or many for every 50th number.
fn len_of(number: u32) -> usize {
    if number.is_multiple_of(50) { 200_000 } else { 100 + number as usize % 1_000 }
}

/// Number of kills after which histories and rings have been used. Memory must not grow from then
/// on.
const USED_AFTER: usize = 500;

/// Returns the number of processes to kill.
fn kills() -> usize {
    if let Some(kills) = std::env::var_os("TAKT_TEST_KILLS") {
        return kills.into_string().expect("a number").parse().expect("a number");
    }
    if takt_testkit::is_full_length() { 2_000 } else { 20 }
}

#[test]
fn survivors_lose_no_samples() {
    let _alone = run_exclusively();
    let (kills, start) = (kills(), Instant::now());
    let seed = RandomState::new().hash_one(std::process::id());
    println!("seed {seed}");
    let mut random = takt_testkit::Random(seed);
    let mut below = |bound: u64| random.next() % bound;
    let domain = domain();
    let (writes, reads) = (participant(domain), participant(domain));
    let mut samples = SurvivorSamples::new(&writes, &reads);
    samples.exchange();
    wait_until(&[], "the first order", || {
        samples.received.take(&samples.orders);
        !samples.received.0.is_empty()
    });
    // Two ends of each of the two rings between the survivors.
    wait_until(&[], "the rings", || open_rings() == 4);
    let before_kills = ResourceUsage::now();
    let (mut resident, mut known_names) = (0, BTreeSet::new());
    let mut victims: Vec<Victim> = (0..VICTIMS).map(|_| Victim::start(domain)).collect();
    for made in 1..=kills {
        // Sometimes waits until a new process was received, sometimes not.
        let known = samples.reported.0.len();
        let waits = below(4) > 0;
        for _ in 0..below(300) {
            samples.exchange();
        }
        wait_until(&[], "a report of a new process", || {
            samples.reported.take(&samples.reports);
            !waits || samples.reported.0.len() > known || samples.reported.0.len() < VICTIMS
        });
        known_names.extend(names(&reads));
        let which = below(VICTIMS as u64) as usize;
        victims[which] = Victim::start(domain);
        if made == USED_AFTER {
            resident = resident_kib();
        }
    }
    victims.clear();
    samples.exchange();
    wait_until(&[], "all orders", || {
        samples.received.take(&samples.orders);
        samples.received.0.values().copied().eq([samples.written])
    });
    wait_until(&[], "all killed processes are gone", || {
        samples.reported.take(&samples.reports);
        [&writes, &reads].iter().all(|survivor| survivor.discovered_participants().expect("open").len() == 1)
    });
    wait_until(&[], "nothing of theirs is left", || ResourceUsage::now() == before_kills);
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("it is there");
    let ours: BTreeSet<_> = names(&reads).chain(names(&writes)).collect();
    assert!(known_names.difference(&ours).all(|name| !sockets.contains(name)), "none of them listens");
    assert_eq!(writes.diagnostics().driver_counters().expect("open").send_failures, 0);
    // Killed processes hold no slot of the segment.
    samples.assert_room_for(&writes, 1 << 20);
    let ends: u64 =
        [&writes, &reads].iter().map(|it| it.diagnostics().counters().expect("open").local_peers_ended).sum();
    let grown = resident_kib().saturating_sub(resident);
    println!(
        "{kills} kills in {:?}, {} reported, {} orders, {ends} ends noticed",
        start.elapsed(),
        samples.reported.0.len(),
        samples.written
    );
    println!("{resident} KiB after {USED_AFTER} of them, {grown} KiB more at the end; {before_kills:?}");
    assert!(resident == 0 || grown < 32 << 10, "memory of the survivors grows by {grown} KiB");
    let reported = samples.reported.0.len();
    assert!(reported > kills / 4, "{reported} of them reported");
}

/// Reads orders and writes reports until it is killed or the survivors have ended.
#[test]
#[ignore = "role: started by other tests"]
fn run_victim_process() {
    let Some((domain, parent)) = role() else { return };
    let own = participant(domain);
    let writer = create_writer::<Blob>(&own, TOPICS[1], reliable_writer(History::KeepAll));
    let orders = create_reader::<Blob>(&own, TOPICS[0], reliable_reader(History::KeepAll));
    let mut received = ReceivedSamples::default();
    let mut number = 0;
    while std::os::unix::process::parent_id() == parent {
        match writer.write(&Blob::new(number, len_of(number))) {
            Ok(()) => number += 1,
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        received.take(&orders);
        if writer.matched_subscriptions().expect("open").is_empty() {
            std::thread::yield_now();
        }
    }
}

/// A process with a lease of hours is killed. Its writer, its reader and its instances disappear at
/// once. The samples that it wrote before are available, and threads that wait for its
/// acknowledgments continue.
#[test]
fn end_of_a_process_is_detected_independently_of_its_lease() {
    let _alone = run_exclusively();
    for runtime in RUNTIMES {
        let domain = domain();
        let own = on_loopback(domain, runtime).lease_duration(LONG_LEASE).build().expect("participant");
        let shapes = create_reader::<Shape>(&own, "Shapes", reliable_reader(History::KeepAll));
        let writer = create_writer::<Blob>(&own, TOPICS[0], reliable_writer(History::KeepAll));
        let peer = Victim::with_role("run_peer_process", domain);
        wait_until(&[&own], "matches", || {
            writer.matched_subscriptions().expect("open").len() + shapes.matched_publications().expect("open").len()
                == 2
        });
        let mut seen = Vec::new();
        wait_until(&[&own], "its shapes", || {
            seen.extend(shapes.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            seen.len() >= 100
        });
        drop(peer);
        let mut has_no_writers = false;
        wait_until(&[&own], "its end", || {
            for sample in shapes.take(usize::MAX).expect("open") {
                has_no_writers |= sample.info.instance_state == InstanceState::NotAliveNoWriters;
                seen.extend(sample.data);
            }
            has_no_writers
        });
        assert!((0..).zip(&seen).all(|(x, shape)| *shape == Shape::new("RED", x)), "in order and without a gap");
        assert_eq!(own.discovered_participants().expect("open"), []);
        assert_eq!(shapes.liveliness_changed_status().expect("open").alive_count, 0, "{runtime:?}");
        assert_eq!(writer.publication_matched_status().expect("open").current_count, 0);
        let counters = own.diagnostics().counters().expect("open");
        assert_eq!((counters.local_peers_ended, counters.leases_expired), (1, 0), "{runtime:?}");
        // Far more than the capacity of the histories.
        for number in 0..1_000 {
            writer.write(&Blob::new(number, 100_000)).expect("the writer waits for no reader");
        }
    }
}

/// Writes shapes and reads orders until it is killed or its parent has ended.
#[test]
#[ignore = "role: started by other tests"]
fn run_peer_process() {
    let Some((domain, parent)) = role() else { return };
    let own = on_loopback(domain, Runtime::Shared).lease_duration(LONG_LEASE).build().expect("participant");
    let _orders = create_reader::<Blob>(&own, TOPICS[0], reliable_reader(History::KeepAll));
    let writer = create_writer::<Shape>(&own, "Shapes", reliable_writer(History::KeepAll));
    wait_until(&[], "a match", || !writer.matched_subscriptions().expect("open").is_empty());
    for x in 0.. {
        if std::os::unix::process::parent_id() != parent {
            break;
        }
        writer.write(&Shape::new("RED", x)).expect("room");
    }
}
