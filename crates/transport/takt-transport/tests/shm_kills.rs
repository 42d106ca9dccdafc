//! Stress test that kills processes with shared memory (SIGKILL) at random times.
//!
//! The survivor receives whole datagrams of each process, in order and without gaps, separately for
//! urgent ones and others. It is notified of each ended process, and keeps no memory, descriptor or
//! socket of it. Some datagrams carry loans: loans of a killed process that the survivor holds stay
//! unchanged, and loans that a killed process held are free again.
//!
//! A hundred kills; ten thousand with `TAKT_TEST_LONG=1`. The processes run this test binary again.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::process::{Child, Command, Stdio};

use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::{
    Commit, Control, FlowId, FlowSpec, Lost, Payload, Receive, RxFrame, Scan, Transport, TransportEvent, readiness,
};
use takt_wire::{Locator, SharedPayload};

/// Environment variable that makes a process of this binary a victim. It holds the address of the
/// survivor, and the port of urgent datagrams.
const ROLE: &str = "TAKT_TEST_VICTIM_OF";
/// Maximum number of concurrent loans of a process.
const SLOTS: usize = 16;
/// Maximum number of loans that the survivor holds.
const HELD: usize = 12;
/// Number of concurrent processes.
const VICTIMS: usize = 4;

fn open() -> ShmTransport {
    let config = ShmConfig { ring_bytes: 256 << 10, segment_bytes: SLOTS * 4096, ..ShmConfig::default() };
    ShmTransport::open(&config).expect("shared memory opens from Linux 5.14 on")
}

/// Returns the next lost locator.
fn poll_lost(transport: &mut ShmTransport) -> Option<Lost> {
    match transport.poll_event()? {
        TransportEvent::Lost(lost) => Some(lost),
        other => panic!("shared memory has no {other:?}"),
    }
}

/// Returns the bytes of datagram `n`; the length depends on `n`.
fn content(n: u32) -> impl Iterator<Item = u8> {
    let len = 4 + n.wrapping_mul(2_654_435_761) as usize % 700;
    let body = (0_u32..).map(move |i| (n ^ i.wrapping_mul(31)) as u8);
    n.to_le_bytes().into_iter().chain(body).take(len)
}

/// Copies datagram `n` into memory, and returns its length.
fn fill(n: u32, memory: &mut [u8]) -> usize {
    let filled = memory.iter_mut().zip(content(n)).map(|(to, byte)| *to = byte);
    filled.count()
}

/// Sends datagram `n`; reports whether there was room for it. Every third one is loaned, if there
/// is memory for it.
fn send(transport: &mut ShmTransport, n: u32, to: Locator) -> bool {
    let before = transport.status().stats.datagrams_out;
    let loan = if n.is_multiple_of(3) { transport.loan_payload(content(n).count()) } else { None };
    let frame = transport.loan().expect("a frame is loaned");
    match loan {
        Some(mut loan) => {
            let len = fill(n, loan.bytes_mut());
            let payload = loan.finish(len);
            frame[..4].copy_from_slice(&n.to_le_bytes());
            transport
                .commit(Commit::new(4, FlowId::DEFAULT, &[to]).with(Payload::Loaned(&payload)))
                .expect("the frame is accepted");
        }
        None => {
            let len = fill(n, frame);
            transport.commit(Commit::new(len, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
        }
    }
    transport.flush().expect("flush succeeds");
    transport.status().stats.datagrams_out > before
}

/// Returns the number of a datagram; panics unless the datagram and its loan are intact.
fn number(datagram: &RxFrame<'_>) -> u32 {
    let number = datagram.first_chunk().map(|first| u32::from_le_bytes(*first)).expect("a number");
    match datagram.loan() {
        Some(payload) => assert!(is_whole(number, payload), "payload {number} is damaged"),
        None => assert!(content(number).eq(datagram.iter().copied()), "datagram {number} is damaged"),
    }
    number
}

fn is_whole(number: u32, payload: &SharedPayload) -> bool {
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(0, &mut bytes);
    payload.is_intact() && content(number).eq(bytes)
}

struct Victim(Child);

impl Victim {
    fn start(urgent: &Locator) -> Self {
        let address = urgent.address.iter().copied().chain(urgent.port.to_be_bytes());
        let address: String = address.map(|byte| format!("{byte:02x}")).collect();
        let child = Command::new(std::env::current_exe().expect("this binary has a path"))
            .args(["--ignored", "--exact", "victim", "--quiet", "--nocapture"])
            .env(ROLE, address)
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("the victim starts"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let ended = self.0.try_wait().expect("the process is a child");
        self.0.kill().expect("the process is a child");
        self.0.wait().expect("the process is a child");
        assert!(ended.is_none() || std::thread::panicking(), "the child reported a defect");
    }
}

/// State of the exchange with a process.
#[derive(Default)]
struct Sender {
    /// Next expected numbers of datagrams that are not urgent, and of urgent ones.
    next: [u32; 2],
    /// Number of replies sent to it.
    answered: u32,
}

struct Survivor {
    transport: ShmTransport,
    senders: BTreeMap<Locator, Sender>,
    received: u64,
    /// Number of urgent datagrams received.
    urgent: u64,
    lost: usize,
    /// Loans that the survivor holds, of living and killed processes.
    held_loans: VecDeque<(u32, SharedPayload)>,
    loans_received: u64,
}

impl Survivor {
    /// Receives a datagram, if there is one, and replies.
    fn receive(&mut self) -> bool {
        let Some(frame) = self.transport.recv(Receive::Any(Scan::All)).expect("receive succeeds") else { return false };
        let (from, n) = (frame.meta.source, number(&frame));
        let is_urgent = frame.meta.flow != FlowId::DEFAULT;
        let sender = self.senders.entry(from).or_default();
        let next = &mut sender.next[usize::from(is_urgent)];
        assert_eq!(n, *next, "in order and without a gap");
        *next += 1;
        self.received += 1;
        self.urgent += u64::from(is_urgent);
        if let Some(payload) = frame.loan() {
            self.loans_received += 1;
            self.held_loans.push_back((n, payload.clone()));
        }
        if self.held_loans.len() > HELD
            && let Some((n, payload)) = self.held_loans.pop_front()
        {
            assert!(is_whole(n, &payload), "payload {n} was overwritten while it was held");
        }
        if !is_urgent && n % 16 == 0 && send(&mut self.transport, sender.answered, from) {
            sender.answered += 1;
        }
        while let Some(lost) = poll_lost(&mut self.transport) {
            assert!(lost.has_ended && self.senders.contains_key(&lost.locator), "{lost:?} answered before");
            self.lost += 1;
        }
        true
    }

    /// Receives `count` datagrams, and waits while none is pending.
    fn receive_many(&mut self, count: u64) {
        let until = self.received + count;
        while self.received < until {
            if !self.receive() {
                readiness::wait(self.transport.status().descriptors, None).expect("wait succeeds");
            }
        }
    }
}

fn count(directory: &str) -> usize {
    fs::read_dir(directory).expect("the file exists").count()
}

fn mapped(label: &str) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("the file exists");
    maps.lines().filter(|line| line.contains(label)).count()
}

#[test]
fn survivor_is_unharmed_by_killed_processes() {
    let kills = if takt_testkit::is_full_length() { 10_000 } else { 100 };
    let seed = RandomState::new().hash_one(std::process::id());
    println!("seed {seed}");
    let mut random = takt_testkit::Random(seed);
    let mut below = |bound: u64| random.next() % bound;
    let mut transport = open();
    let opened = transport.open_flow(&FlowSpec { own_port: true, transport_priority: 46 });
    let (_, locators) = opened.expect("a port is free");
    let at = locators[0];
    let (senders, held_loans) = (BTreeMap::new(), VecDeque::new());
    let mut survivor = Survivor { transport, senders, received: 0, urgent: 0, lost: 0, held_loans, loans_received: 0 };
    assert!(survivor.transport.loan_payload(1).is_some(), "its segment exists");
    let descriptors = count("/proc/self/fd");
    let mut victims: Vec<Victim> = (0..VICTIMS).map(|_| Victim::start(&at)).collect();
    for _ in 0..kills {
        // One kill in four follows at once, possibly before the first datagram of the process.
        if below(4) > 0 {
            survivor.receive_many(below(3_000));
        }
        let index = below(VICTIMS as u64) as usize;
        victims[index] = Victim::start(&at);
    }
    victims.clear();
    while survivor.receive() {}
    while poll_lost(&mut survivor.transport).is_some() {
        survivor.lost += 1;
    }
    let answered = survivor.senders.values().filter(|sender| sender.answered > 0).count();
    assert!(survivor.senders.len() > kills / 4, "{} of them were received", survivor.senders.len());
    assert_eq!(survivor.lost, answered, "each loss is reported once");
    assert_eq!(survivor.transport.status().stats.receive_errors, 0);
    assert!(
        survivor.loans_received > 0 && survivor.held_loans.iter().all(|(n, payload)| is_whole(*n, payload)),
        "{}",
        survivor.loans_received
    );
    survivor.held_loans.clear();
    let loans: Vec<_> = std::iter::from_fn(|| survivor.transport.loan_payload(4096)).collect();
    assert_eq!(loans.len(), SLOTS, "memory held by killed processes is free");
    drop(loans);
    let mapped = (mapped("takt-shm"), mapped("takt-segment"));
    assert_eq!((mapped, count("/proc/self/fd")), ((0, 1), descriptors), "only its own resources remain");
    let sockets = fs::read_to_string("/proc/net/unix").expect("the file exists");
    for locator in survivor.senders.keys() {
        let name: String = locator.address[8..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!sockets.contains(&name), "{locator} still listens");
    }
    let Survivor { senders, received, urgent, loans_received, .. } = &survivor;
    assert!(*urgent > received / 100, "{urgent} of {received}");
    println!("{kills} kills, {} senders, {received} datagrams, {urgent} urgent, {loans_received} loans", senders.len());
}

/// Sends to the survivor as fast as possible, and reads its replies, until it is killed or the
/// survivor is gone.
#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let digits = role.into_string().expect("hexadecimal digits");
    let octet = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("two of them");
    let mut transport = open();
    let own = transport.status().locators.default_unicast[0];
    let to = Locator { address: std::array::from_fn(octet), ..own };
    assert!(transport.control(Control::Connect(&to)).is_ok(), "the survivor is alive");
    let port = u32::from_be_bytes(std::array::from_fn(|at| octet(16 + at)));
    let (mut next, mut replies, mut count) = ([0, 0], 0, 0_u32);
    while poll_lost(&mut transport).is_none() {
        count = count.wrapping_add(1);
        let is_urgent = count.is_multiple_of(4);
        let next = &mut next[usize::from(is_urgent)];
        if send(&mut transport, *next, if is_urgent { Locator { port, ..to } } else { to }) {
            *next += 1;
        }
        while let Some(frame) = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
            assert_eq!(number(&frame), replies, "in order and without a gap");
            replies += 1;
        }
    }
}
