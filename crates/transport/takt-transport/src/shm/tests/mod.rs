//! Tests of ended and malicious peers: ends are detected, and invalid data harms no other
//! participant.

mod loans;
mod urgent;

use std::sync::atomic::{AtomicU64, Ordering};

use super::hello::{HELLO_LEN, Hello, WAKE_UP};
use super::ports::Band;
use super::segment::Segment;
use super::*;

fn open() -> ShmTransport {
    ShmTransport::open(&ShmConfig::default()).expect("Linux 5.14")
}

fn at(transport: &ShmTransport) -> Locator {
    transport.locators.default_unicast[0]
}

fn send(transport: &mut ShmTransport, bytes: &[u8], to: Locator) {
    transport.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    transport.commit(Commit::new(bytes.len(), FlowId::DEFAULT, &[to])).expect("the frame is accepted");
    transport.flush().expect("flush succeeds");
}

fn receive(transport: &mut ShmTransport) -> Option<Vec<u8>> {
    transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").map(|frame| frame.to_vec())
}

/// Returns the next lost locator.
fn poll_lost(transport: &mut ShmTransport) -> Option<Lost> {
    match transport.poll_event()? {
        TransportEvent::Lost(lost) => Some(lost),
        other => panic!("shared memory has no {other:?}"),
    }
}

/// Test participant that has a connection to `other` and can write anything to it.
struct RawPeer {
    socket: OwnedFd,
    memory: Mapping,
    file: OwnedFd,
    segment: Segment,
}

impl RawPeer {
    const RINGS: [usize; 2] = [ring::RECORDS + 1024, ring::RECORDS + 256];
    const SLOTS: usize = 512;

    fn connect_to(other: &ShmTransport) -> Self {
        let socket = syscall::connect_to(other.name).expect("the peer listens");
        let (memory, file) = Mapping::create(Self::RINGS, Self::SLOTS).expect("memory");
        let segment = Segment::create(1 << 20, Self::SLOTS).expect("memory");
        Self { socket, memory, file, segment }
    }

    fn hello(&self, other: &ShmTransport) -> Hello {
        Hello {
            tag: other.host.tag(),
            name: 77,
            words: Self::RINGS.map(|words| words as u64),
            segment: self.segment.words() as u64,
            slots: Self::SLOTS as u64,
        }
    }

    fn send(&self, bytes: &[u8], files: bool) {
        let files = [self.file.as_fd(), self.segment.file()][..if files { 2 } else { 0 }].to_vec();
        syscall::send(self.socket.as_fd(), bytes, &files).expect("the write succeeds");
    }

    fn ring(&self) -> &[AtomicU64] {
        self.memory.ring(Band::NotUrgent)
    }
}

/// A forked child has all descriptors until `exec`.
#[test]
fn closed_participant_is_not_reachable_through_a_copied_descriptor() {
    let (mut a, b) = (open(), open());
    let (to, name) = (at(&b), b.name);
    let _copy = b.incoming.listener.try_clone().expect("a descriptor");
    drop(b);
    let refused = syscall::connect_to(name).map_err(|error| error.kind());
    assert_eq!(refused.err(), Some(io::ErrorKind::ConnectionRefused));
    send(&mut a, &[1], to);
    assert_eq!((a.status().stats.send_errors.refused, a.reach(&to).is_served()), (1, false));
}

#[test]
fn datagrams_of_an_ended_writer_are_still_read() {
    let (mut a, mut b) = (open(), open());
    for n in 0..5 {
        send(&mut a, &[n], at(&b));
    }
    drop(a);
    for n in 0..5 {
        assert_eq!(receive(&mut b), Some(vec![n]));
    }
    assert_eq!(receive(&mut b), None);
    assert_eq!(receive(&mut b), None);
    assert!(b.incoming.is_empty(), "its ring is gone");
    assert_eq!(b.status().stats.receive_errors, 0);
}

#[test]
fn closed_reader_is_reported_and_not_served() {
    let (mut a, b) = (open(), open());
    let to = at(&b);
    assert!(a.control(Control::Connect(&to)).is_ok() && a.reach(&to).is_served());
    drop(b);
    assert_eq!(receive(&mut a), None);
    assert_eq!(poll_lost(&mut a), Some(Lost { locator: to, has_ended: false }));
    assert_eq!((receive(&mut a), poll_lost(&mut a)), (None, None), "once");
    assert!(!a.reach(&to).is_served() && a.control(Control::Connect(&to)).is_err());
    send(&mut a, &[1], to);
    assert_eq!((a.status().stats.send_errors.refused, a.status().stats.datagrams_out), (1, 0));
}

/// Closes sockets as the kernel does for a killed process: reported after all its datagrams were
/// read.
#[test]
fn end_without_close_is_reported_as_end_of_the_process() {
    for is_accepted in [true, false] {
        let mut a = open();
        let (name, listener) = listen().expect("a name is not in use");
        let to = a.host.locator(name, USER);
        assert!(a.control(Control::Connect(&to)).is_ok());
        let connection = is_accepted.then(|| syscall::accept(listener.as_fd()).expect("the caller connected"));
        // The peer has a connection to `a` under its name.
        let mut b = RawPeer::connect_to(&a);
        b.send(&Hello { name, ..b.hello(&a) }.to_bytes(), true);
        let mut tail = ring::Tail::default();
        for n in [1, 2] {
            tail.push(b.ring(), ring::Ports { to: USER, from: USER }, &[n]).expect("the ring has free space");
        }
        assert_eq!(receive(&mut a), Some(vec![1]));
        b.socket = syscall::connect_to(a.name).expect("the peer listens");
        drop((connection, listener));
        // Polls the connections, as happens regularly during a flood of data.
        a.poll_connections().expect("poll succeeds");
        assert_eq!(poll_lost(&mut a), None, "unread data remains");
        assert_eq!(receive(&mut a), Some(vec![2]));
        assert_eq!(poll_lost(&mut a), Some(Lost { locator: to, has_ended: true }), "accepted: {is_accepted}");
        assert_eq!((receive(&mut a), poll_lost(&mut a)), (None, None), "once");
    }
}

/// Connections that were not accepted when a transport closes are distinguished from those of an
/// ended process.
#[test]
fn closing_transport_sends_close_to_all() {
    let (mut a, b, mut c) = (open(), open(), open());
    assert!(a.control(Control::Connect(&at(&b))).is_ok() && c.control(Control::Connect(&at(&b))).is_ok());
    let to = at(&b);
    drop(b);
    for other in [&mut a, &mut c] {
        assert_eq!(receive(other), None);
        assert_eq!(poll_lost(other), Some(Lost { locator: to, has_ended: false }));
    }
}

#[test]
fn participant_without_peers_has_no_segment() {
    let (mut a, mut b) = (open(), open());
    assert!(a.outgoing.segment.is_none() && b.outgoing.segment.is_none());
    send(&mut a, &[1], at(&b));
    assert_eq!(receive(&mut b), Some(vec![1]));
    assert!(a.outgoing.segment.is_some() && b.outgoing.segment.is_none(), "a receiver needs no segment");
}

#[test]
fn unused_name_is_not_reached() {
    let mut a = open();
    let to = a.host.locator(1, USER);
    assert!(a.reach(&to).is_served(), "the locator is not known to be unreachable");
    assert!(a.control(Control::Connect(&to)).is_err() && !a.reach(&to).is_served());
    assert_eq!(poll_lost(&mut a), None, "the peer was never connected");
}

#[test]
fn other_hosts_are_not_served() {
    let (mut a, b) = (open(), open());
    let mut other_host = at(&b);
    other_host.address[0] ^= 1;
    assert!(!a.reach(&other_host).is_served() && a.control(Control::Connect(&other_host)).is_err());
    send(&mut a, &[1], other_host);
    assert_eq!(a.status().stats.send_errors.unserved, 1);
}

/// Datagrams that do not fit are counted, and those that fit are not lost.
#[test]
fn full_ring_is_counted() {
    let config = ShmConfig { ring_bytes: 256 << 10, ..ShmConfig::default() };
    let (mut a, mut b) = (ShmTransport::open(&config).expect("Linux 5.14"), open());
    for n in 0..1000_u32 {
        let mut bytes = [0; 1000];
        bytes[..4].copy_from_slice(&n.to_le_bytes());
        send(&mut a, &bytes, at(&b));
    }
    let lost = a.status().stats.send_errors.would_block;
    assert!((700..800).contains(&lost), "256 KiB hold some 250 of them: {lost} of 1000 are lost");
    for n in 0..1000 - lost as u32 {
        assert_eq!(receive(&mut b).expect("not lost")[..4], n.to_le_bytes());
    }
    assert_eq!(receive(&mut b), None);
}

#[test]
fn number_of_connections_is_bounded() {
    let config = ShmConfig { connections_max: 2, ..ShmConfig::default() };
    let open_few = || ShmTransport::open(&config).expect("Linux 5.14");
    let (mut a, others) = (open_few(), [open(), open(), open()]);
    let reached = others.each_ref().map(|other| a.control(Control::Connect(&at(other))).is_ok());
    assert_eq!(reached, [true, true, false]);
    // The limit holds for incoming connections too; refused writers are notified.
    let (mut few, mut writers) = (open_few(), [open(), open(), open()]);
    for writer in &mut writers {
        send(writer, &[1], at(&few));
    }
    assert_eq!((receive(&mut few), receive(&mut few), receive(&mut few)), (Some(vec![1]), Some(vec![1]), None));
    assert_eq!(few.status().stats.receive_errors, 1);
    assert_eq!(receive(&mut writers[2]), None);
    assert_eq!(poll_lost(&mut writers[2]), Some(Lost { locator: at(&few), has_ended: false }));
    // A closed connection makes room for another.
    let [first, _, mut third] = writers;
    drop(first);
    assert_eq!(receive(&mut few), None);
    let mut fourth = open();
    send(&mut fourth, &[4], at(&few));
    assert_eq!(receive(&mut few), Some(vec![4]));
    assert!(third.control(Control::Connect(&at(&few))).is_err(), "the connection is not retried");
}

/// Invalid first messages are refused and counted, without effect on other participants.
#[test]
fn peers_with_an_invalid_hello_are_refused() {
    let (mut valid_peer, mut b) = (open(), open());
    send(&mut valid_peer, &[1], at(&b));
    type Greeting = fn(&RawPeer, Hello);
    let senders: [Greeting; 13] = [
        |s, _| s.send(b"x", false),
        |s, _| s.send(&[0; HELLO_LEN], true),
        |s, _| s.send(&[0; 500], true),
        |s, hello| s.send(&hello.to_bytes(), false),
        |s, hello| s.send(&hello.to_bytes()[1..], true),
        |s, hello| s.send(&Hello { tag: [0; 8], ..hello }.to_bytes(), true),
        |s, hello| s.send(&Hello { words: [u64::MAX; 2], ..hello }.to_bytes(), true),
        |s, hello| s.send(&Hello { words: [hello.words[0] * 2, hello.words[1]], ..hello }.to_bytes(), true),
        |s, hello| s.send(&Hello { words: [hello.words[0], 0], ..hello }.to_bytes(), true),
        |s, hello| s.send(&Hello { segment: u64::MAX, ..hello }.to_bytes(), true),
        |s, hello| s.send(&Hello { segment: hello.segment - 512, ..hello }.to_bytes(), true),
        |s, hello| {
            let descriptors = [s.file.as_fd(), s.file.as_fd()];
            syscall::send(s.socket.as_fd(), &hello.to_bytes(), &descriptors).expect("the write succeeds");
        },
        |s, hello| {
            let other = std::fs::File::open("/dev/zero").expect("the file exists");
            syscall::send(s.socket.as_fd(), &hello.to_bytes(), &[other.as_fd(), s.segment.file()])
                .expect("the write succeeds");
        },
    ];
    for (n, send_hello) in (1..).zip(senders) {
        let raw_peer = RawPeer::connect_to(&b);
        send_hello(&raw_peer, raw_peer.hello(&b));
        assert_eq!(receive(&mut b), (n == 1).then_some(vec![1]));
        assert_eq!(receive(&mut b), None);
        assert_eq!(b.status().stats.receive_errors, n, "greeting {n}");
    }
    send(&mut valid_peer, &[2], at(&b));
    assert_eq!(receive(&mut b), Some(vec![2]));
}

/// Both sides refuse another user that knows names and tag. Needs the privilege to change the user.
#[test]
fn another_user_is_refused() {
    let (mut a, mut b) = (open(), open());
    let name = 0x7461_6b74 << 32 | u64::from(std::process::id());
    let other = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let is_other = syscall::act_as(syscall::own_user() + 1);
            (is_other, RawPeer::connect_to(&b), syscall::listen_at(name).expect("the name is not in use"))
        });
        other.join().expect("the thread ends")
    });
    let (is_other, raw_peer, _listener) = other;
    raw_peer.send(&raw_peer.hello(&b).to_bytes(), true);
    assert_eq!(receive(&mut b), None);
    assert_eq!(b.status().stats.receive_errors, u64::from(is_other));
    assert_eq!(a.control(Control::Connect(&a.host.locator(name, USER))).is_ok(), !is_other);
}

/// A peer that sends nothing, or disconnects before it sends, takes only an entry.
#[test]
fn silent_peers_do_no_harm() {
    let (mut valid_peer, mut b) = (open(), open());
    let silent = RawPeer::connect_to(&b);
    drop(RawPeer::connect_to(&b));
    send(&mut valid_peer, &[1], at(&b));
    assert_eq!((receive(&mut b), receive(&mut b)), (Some(vec![1]), None));
    silent.send(&silent.hello(&b).to_bytes(), true);
    silent.send(&WAKE_UP, false);
    silent.send(&[9; 100], true);
    assert_eq!((receive(&mut b), receive(&mut b)), (None, None));
    let mut tail = ring::Tail::default();
    tail.push(silent.ring(), ring::Ports { to: USER, from: 3 }, b"late").expect("the ring has free space");
    assert_eq!(receive(&mut b), Some(b"late".to_vec()));
    assert_eq!(b.status().stats.receive_errors, 0);
}

/// A connection with invalid ring contents is closed; the others are still read.
#[test]
fn rings_with_invalid_contents_are_closed() {
    let words = [u64::MAX, 1 << 32, 1 << 63, u64::from(u32::MAX), 70_000, 9_000];
    for (word, band) in words.into_iter().flat_map(|word| [(word, Band::NotUrgent), (word, Band::Urgent)]) {
        let (mut valid_peer, mut b) = (open(), open());
        let raw_peer = RawPeer::connect_to(&b);
        raw_peer.send(&raw_peer.hello(&b).to_bytes(), true);
        assert_eq!(receive(&mut b), None);
        raw_peer.memory.ring(band).iter().for_each(|at| at.store(word, Ordering::Release));
        send(&mut valid_peer, &[1], at(&b));
        assert_eq!((receive(&mut b), receive(&mut b)), (Some(vec![1]), None));
        assert_eq!(b.status().stats.receive_errors, 1, "{word:#x}");
        let error = syscall::send(raw_peer.socket.as_fd(), &WAKE_UP, &[]).expect_err("the peer closed the connection");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

/// A reader that writes invalid positions loses its connection, and datagrams to it are counted.
#[test]
fn reader_with_an_invalid_head_is_disconnected() {
    let (mut a, b) = (open(), open());
    let (name, listener) = listen().expect("a name is not in use");
    let to = a.host.locator(name, USER);
    assert!(a.control(Control::Connect(&to)).is_ok());
    let connection = syscall::accept(listener.as_fd()).expect("the caller connected");
    let mut message = [0; HELLO_LEN];
    let received = syscall::receive(connection.as_fd(), &mut message).expect("a greeting");
    let hello = Hello::parse(&message).expect("a greeting");
    let [Some(file), Some(_)] = received.descriptors else { panic!("the memory") };
    let memory = Mapping::map_remote(file.as_fd(), hello.words.map(|words| words as usize), hello.slots as usize)
        .expect("a ring");
    send(&mut a, &[1], to);
    memory.ring(Band::NotUrgent).iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    while a.status().stats.send_errors.other == 0 {
        send(&mut a, &[0; 60_000], to);
    }
    assert_eq!(poll_lost(&mut a), Some(Lost { locator: to, has_ended: false }));
    let sent = a.status().stats.datagrams_out;
    send(&mut a, &[1], at(&b));
    assert_eq!(a.status().stats.datagrams_out, sent + 1, "other peers are reached");
}

/// A flood to a closed port neither keeps a call busy nor leaves datagrams without a wake-up.
#[test]
fn flood_to_a_closed_port_does_not_keep_a_call_busy() {
    let (mut a, mut b) = (open(), open());
    let closed = Locator { port: 4_000, ..at(&b) };
    let count = 20_000;
    for _ in 0..count {
        send(&mut a, &[0; 8], closed);
    }
    send(&mut a, &[7], at(&b));
    assert_eq!(a.status().stats.send_errors.total(), 0);
    let mut calls = 0;
    let found = loop {
        calls += 1;
        if let Some(found) = receive(&mut b) {
            break found;
        }
        assert!(crate::readiness::wait(&b.descriptors, None).expect("wait succeeds"), "more data is signaled");
    };
    assert_eq!(found, [7]);
    assert!(calls > count / (CLOSED_PORT_SKIPS_MAX * ATTEMPTS_TO_SLEEP + CLOSED_PORT_SKIPS_MAX + 1), "{calls}");
}

/// Both tables are empty after connections have come and gone.
#[test]
fn closed_connections_leave_no_entries() {
    let mut b = open();
    for n in 0..200_u8 {
        let mut a = open();
        send(&mut a, &[n], at(&b));
        assert_eq!(receive(&mut b), Some(vec![n]));
        send(&mut b, &[n], at(&a));
        assert_eq!(receive(&mut a), Some(vec![n]));
        drop(a);
        // Another test may start a process, which has a copy of the descriptor until it executes.
        let since = std::time::Instant::now();
        while !b.incoming.is_empty() {
            assert_eq!(receive(&mut b), None);
            assert!(since.elapsed() < TIMEOUT, "the connection is left");
        }
        assert!(poll_lost(&mut b).is_some());
    }
}

/// Time limit of a test for any condition.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn silent_connections_are_bounded_and_end_after_a_second() {
    let (mut a, mut b) = (open(), open());
    let silent: Vec<OwnedFd> = (0..300).map(|_| syscall::connect_to(b.name).expect("the peer listens")).collect();
    send(&mut a, &[7], at(&b));
    let since = std::time::Instant::now();
    while receive(&mut b) != Some(vec![7]) {
        assert!(since.elapsed() < TIMEOUT, "another participant connects");
    }
    assert!(b.incoming.len() <= incoming::SILENT_MAX + 1, "{}", b.incoming.len());
    while b.incoming.len() > 1 {
        assert_eq!(receive(&mut b), None);
        assert!(since.elapsed() < TIMEOUT, "{} are left", b.incoming.len());
    }
    assert_eq!(b.incoming.refused, 300, "each refusal is counted");
    send(&mut a, &[8], at(&b));
    assert_eq!(receive(&mut b), Some(vec![8]), "the ring still exists");
    drop(silent);
}

/// Arguments of `ulimit`, and the expected error text.
const LIMITS: [(&str, &str); 2] = [("-f 0", "RLIMIT_FSIZE"), ("-v 300000", "B of address space (ulimit -v)")];

/// Opens shared memory in a process with a resource limit.
fn open_below(limit: &str) {
    let line = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let mut limited = std::process::Command::new("sh");
    limited.arg("-c").arg(line).arg(std::env::current_exe().expect("own path")).env("TAKT_TEST_LIMIT", limit);
    limited.args(["--ignored", "--exact", "shm::tests::process_with_a_limit", "--nocapture"]);
    // Its output goes to a pipe, since the limit applies to files.
    let output = limited.output().expect("the shell can be run");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{limit}: {} {text}", output.status);
}

#[test]
fn limit_of_file_size_is_an_error_at_open() {
    open_below("-f 0");
}

#[test]
fn limit_of_address_space_is_an_error_at_open() {
    open_below("-v 300000");
}

#[test]
#[ignore = "role: started by other tests"]
fn process_with_a_limit() {
    let limit = std::env::var("TAKT_TEST_LIMIT").expect("another test starts this one");
    let (_, expected) = LIMITS.into_iter().find(|(name, _)| *name == limit).expect("the limit is known");
    let error = ShmTransport::open(&ShmConfig::default()).map(drop).expect_err("the limit applies").to_string();
    assert!(error.contains(expected), "{error}");
}
