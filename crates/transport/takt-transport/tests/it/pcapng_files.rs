//! Tests of the captures that the transports of a process share.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};

use takt_testkit::directory::Directory;
use takt_testkit::pcapng::Pcapng;
use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::{Capture, CaptureSummary, FlowId, Transport};

use super::{open, own_loopback, receive, send, user_locator};

/// Summary of a capture, once it is closed.
type Summary = Arc<Mutex<Option<CaptureSummary>>>;

fn capture(path: &str, bytes_max: u64) -> (Arc<Capture>, Summary) {
    let summary = Summary::default();
    let reported = Arc::clone(&summary);
    let report = move |found: &CaptureSummary| {
        let CaptureSummary { path, packets, dropped_by_buffer, dropped_by_file, truncated, .. } = found;
        assert!(found.failure.is_none());
        *reported.lock().expect("no panic") = Some(CaptureSummary {
            path: path.clone(),
            packets: *packets,
            dropped_by_buffer: *dropped_by_buffer,
            dropped_by_file: *dropped_by_file,
            truncated: *truncated,
            failure: None,
        });
    };
    (Arc::new(Capture::open(path, bytes_max, report).expect("a file")), summary)
}

fn closed(summary: &Summary) -> CaptureSummary {
    summary.lock().expect("no panic").take().expect("the capture is closed")
}

#[test]
fn transports_are_interfaces_of_one_file() {
    let directory = Directory::new("capture");
    let path = directory.text("{pid}.pcapng");
    let (capture, summary) = capture(&path, 1 << 20);
    let config = own_loopback();
    let mut a = capture.tap(Box::new(open(&config)), "a");
    let mut b = capture.tap(Box::new(open(&config)), "b");
    drop(capture);
    let (at_a, at_b) = (user_locator(&a), user_locator(&b));
    send(&mut a, b"ping", FlowId::DEFAULT, &[at_b]);
    receive(&mut b);
    send(&mut b, b"pong!", FlowId::DEFAULT, &[at_a]);
    receive(&mut a);
    drop(a);
    assert!(summary.lock().expect("no panic").is_none(), "a transport still uses the file");
    drop(b);
    let summary = closed(&summary);
    assert_eq!((summary.packets, summary.dropped_by_buffer, summary.dropped_by_file, summary.truncated), (4, 0, 0, 0));
    assert_eq!(summary.path, directory.file(&format!("{}.pcapng", std::process::id())));
    let file = Pcapng::read(&summary.path);
    let described =
        file.interfaces.iter().map(|one| (one.name.as_str(), one.description.as_str(), one.link, one.counts));
    assert_eq!(described.collect::<Vec<_>>(), [("udp", "a", 101, Some((2, 0))), ("udp", "b", 101, Some((2, 0)))]);
    let packets = file.packets.iter().map(|packet| (packet.interface, packet.is_outbound, packet.udp_payload()));
    let expected: [(usize, bool, &[u8]); 4] =
        [(0, true, b"ping"), (1, false, b"ping"), (1, true, b"pong!"), (0, false, b"pong!")];
    assert_eq!(packets.collect::<Vec<_>>(), expected);
    let ports = |packet: usize| u16::from_be_bytes([file.packets[packet].octets[22], file.packets[packet].octets[23]]);
    assert_eq!((u32::from(ports(0)), u32::from(ports(2))), (at_b.port, at_a.port));
    assert!(file.packets.windows(2).all(|two| two[0].time_ns <= two[1].time_ns));
}

#[test]
fn shared_memory_has_composed_addresses_and_a_cut_of_what_udp_cannot_carry() {
    let directory = Directory::new("capture-shm");
    let path = directory.text("shm.pcapng");
    let (capture, summary) = capture(&path, 1 << 20);
    let shm = |_| Box::new(ShmTransport::open(&ShmConfig::default()).expect("Linux 5.14"));
    let mut a = capture.tap(shm(0), "a");
    let mut b = shm(1);
    let at_b = user_locator(&b);
    takt_testkit::waiting::until("b is reached", || a.reach(&at_b).is_served());
    let longest = vec![5; a.capabilities().max_message_len];
    send(&mut a, b"short", FlowId::DEFAULT, &[at_b]);
    send(&mut a, &longest, FlowId::DEFAULT, &[at_b]);
    assert_eq!((receive(&mut b).0.len(), receive(&mut b).0.len()), (5, longest.len()));
    drop((a, capture));
    let summary = closed(&summary);
    assert_eq!((summary.packets, summary.truncated), (2, 1));
    let file = Pcapng::read(&summary.path);
    let [short, long] = &file.packets[..] else { panic!("two packets") };
    assert_eq!(file.interfaces[0].name, "shm");
    assert_eq!(short.udp_payload(), b"short");
    assert_eq!((short.octets[24], &short.octets[25..40]), (0xfd, &at_b.address[1..]));
    assert_eq!(long.udp_payload(), &longest[..65_507]);
    assert_eq!(long.original_len, 48 + longest.len());
}

#[test]
fn datagrams_beyond_the_length_of_the_file_are_counted() {
    let directory = Directory::new("capture-limit");
    let path = directory.text("limit.pcapng");
    let (capture, summary) = capture(&path, 10_000);
    let config = own_loopback();
    let mut a = capture.tap(Box::new(open(&config)), "");
    let mut b = open(&config);
    let to = user_locator(&b);
    for _ in 0..50 {
        send(&mut a, &[1; 1000], FlowId::DEFAULT, &[to]);
        assert_eq!(receive(&mut b).0.len(), 1000, "the transport is unaffected");
    }
    drop((a, capture));
    let summary = closed(&summary);
    assert_eq!((summary.packets, summary.dropped_by_file), (9, 41));
    let file = Pcapng::read(&summary.path);
    assert_eq!((file.packets.len(), file.interfaces[0].counts), (9, Some((50, 41))));
    assert!(std::fs::metadata(&summary.path).expect("it exists").len() <= 10_000);
}

/// Returns a duplicate of the open descriptor of the file.
fn descriptor_of(path: &str) -> OwnedFd {
    let mut open = std::fs::read_dir("/proc/self/fd").expect("a list").map(|entry| entry.expect("an entry").path());
    let found = open.find(|entry| std::fs::read_link(entry).is_ok_and(|target| target == Path::new(path)));
    let number = found.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()?.parse().ok());
    // SAFETY: the capture keeps the descriptor open during the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number.expect("the capture has the file open")) };
    borrowed.try_clone_to_owned().expect("a duplicate")
}

#[test]
fn file_of_this_process_is_continued_and_one_of_another_process_is_refused() {
    let directory = Directory::new("capture-again");
    let path = directory.text("again.pcapng");
    std::fs::write(&path, "an older file").expect("the directory is writable");
    let mut held = Vec::new();
    for round in 1..=2 {
        let (capture, summary) = capture(&path, 1 << 20);
        let mut a = capture.tap(Box::new(open(&own_loopback())), "");
        let to = user_locator(&a);
        send(&mut a, b"to myself", FlowId::DEFAULT, &[to]);
        // A process that is being started holds the descriptor until it runs its program.
        held.push(descriptor_of(&path));
        drop((a, capture));
        assert_eq!(closed(&summary).packets, 1);
        let file = Pcapng::read(path.as_ref());
        assert_eq!((file.sections, file.interfaces.len(), file.packets.len()), (round, round, round));
    }
    // A lock of another open file description refuses this process like another one.
    let other = directory.text("other.pcapng");
    let owner = std::fs::File::create(&other).expect("the directory is writable");
    owner.lock().expect("no other owner");
    let error = Capture::open(&other, 1 << 20, |_| ()).expect_err("it is written").to_string();
    assert!(error.contains("another process writes it") && error.contains("{pid}"), "{error}");
    let error = Capture::open("/dev/null", 1 << 20, |_| ()).expect_err("a device").to_string();
    assert!(error.contains("/dev/null"), "{error}");
}
