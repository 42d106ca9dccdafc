//! Captures contain exactly the frames of a link, with the right times.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use takt_sim::capture::{Capture, Link};
use takt_sim::clock::{MILLISECOND, Nanos};
use takt_sim::network::Frame;
use takt_sim::scenario::Scenario;
use takt_sim::timeline::{Both, Timeline};
use takt_sim::world;

/// Number of hosts of the world, with one process each.
const HOSTS: usize = 3;

/// Length of the Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// Source address, destination port and payload of a frame.
type Shown = ([u8; 4], u16, Vec<u8>);

/// Datagrams that processes send and hosts receive, regardless of ports.
struct Hosts {
    sent: Vec<Vec<(Nanos, Shown)>>,
    received: Vec<Vec<Shown>>,
}

impl Hosts {
    fn new(hosts: usize) -> Self {
        Self { sent: vec![Vec::new(); hosts], received: vec![Vec::new(); hosts] }
    }
}

impl Timeline for Hosts {
    fn sent(&mut self, now: Nanos, _: usize, frame: &Frame) {
        self.sent[frame.from].push((now, shown(frame)));
    }

    fn received(&mut self, _: Nanos, process: usize, frame: &Frame) {
        // In this world process n is the only one on host n.
        self.received[process].push(shown(frame));
    }
}

fn shown(frame: &Frame) -> Shown {
    let [.., a, b, c, d] = frame.source.address;
    ([a, b, c, d], frame.to.port as u16, frame.bytes.to_vec())
}

/// Returns the records of a capture, each with its time.
fn records(path: &Path) -> Vec<(Nanos, Shown)> {
    let bytes = std::fs::read(path).expect("it was written");
    let (header, mut rest) = bytes.split_at(24);
    assert_eq!(header[20..], 1_u32.to_le_bytes(), "link type Ethernet");
    let mut records = Vec::new();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four octets"));
        let (time, len) = (u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)), word(8) as usize);
        let packet = &rest[16..16 + len];
        let source = packet[26..30].try_into().expect("four octets");
        let port = u16::from_be_bytes([packet[36], packet[37]]);
        records.push((time, (source, port, packet[HEADERS..].to_vec())));
        rest = &rest[16 + len..];
    }
    records
}

fn capture(link: Link) -> (Vec<(Nanos, Shown)>, Hosts) {
    // Tests run in parallel, and two of them capture the same link.
    static CAPTURES: AtomicUsize = AtomicUsize::new(0);
    let nth = CAPTURES.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = std::env::temp_dir().join(format!("takt-sim-{}-{nth}.pcap", std::process::id()));
    let (mut file, mut hosts) = (Capture::create(&path, link).expect("a file"), Hosts::new(HOSTS));
    let report = world::run(&Scenario::steady(HOSTS, 100 * MILLISECOND), &mut Both(&mut file, &mut hosts));
    assert_eq!(report.violation, None);
    assert_eq!(report.network.queue_drops, 0);
    let frames = file.finish().expect("all of it is written");
    let records = records(&path);
    std::fs::remove_file(&path).expect("it was written");
    assert_eq!(records.len() as u64, frames);
    (records, hosts)
}

#[test]
fn uplink_of_a_host_carries_all_sent_datagrams() {
    let (records, hosts) = capture(Link::Up(1));
    let payloads = |of: &[(Nanos, Shown)]| of.iter().map(|(_, shown)| shown.clone()).collect::<Vec<_>>();
    assert!(records.len() > 30);
    assert_eq!(payloads(&records), payloads(&hosts.sent[1]));
    // With one class and one queue, a frame may wait, but never leaves early.
    assert!(records.iter().zip(&hosts.sent[1]).all(|(left, sent)| left.0 >= sent.0 && left.0 < sent.0 + MILLISECOND));
    assert_eq!(records[0].0, hosts.sent[1][0].0, "the first frame finds the port idle");
}

#[test]
fn downlink_of_a_host_carries_all_received_datagrams() {
    let (records, hosts) = capture(Link::Down(2));
    let mut frames: Vec<_> = records.into_iter().map(|(_, shown)| shown).collect();
    assert!(frames.len() > 30);
    // Before the process starts, its datagrams are dropped.
    let missing = frames.len() - hosts.received[2].len();
    assert_eq!(frames.split_off(missing), hosts.received[2]);
}

#[test]
fn capture_of_all_links_contains_uplinks_and_downlinks() {
    let (all, hosts) = capture(Link::All);
    let sent: usize = hosts.sent.iter().map(Vec::len).sum();
    let up = (0..HOSTS).map(|host| capture(Link::Up(host)).0.len()).sum::<usize>();
    let down = (0..HOSTS).map(|host| capture(Link::Down(host)).0.len()).sum::<usize>();
    assert_eq!(up, sent);
    assert_eq!(all.len(), up + down);
}
