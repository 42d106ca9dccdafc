//! Memory under hostile datagrams by the million: no panic, memory below a bound, and back to its
//! start once all leases have ended.
//!
//! A separate test binary, because the allocator counts for the whole process ([`counting`]). It
//! plays 200,000 datagrams, or ten million with `TAKT_TEST_LONG=1`, and prints its measurements.
#![allow(missing_docs)]

mod counting;

#[allow(dead_code)]
#[path = "it/catalogue.rs"]
mod catalogue;
#[allow(dead_code)]
#[path = "it/network.rs"]
mod network;
#[allow(dead_code)]
#[path = "it/outbound.rs"]
mod outbound;
#[allow(dead_code)]
#[path = "it/puppet.rs"]
mod puppet;
#[allow(dead_code)]
#[path = "it/session.rs"]
mod session;

use counting::{LIVE, PEAK};
use network::*;
use puppet::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Clock};
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::message::Payload;
use takt_wire::qos::*;

/// Maximum memory that the participant may add to its normal use. A thousand remote participants
/// with validated addresses, each with five matched writers, take two thirds of it.
const GROWTH_BYTES: usize = 32 << 20;
/// Memory that may remain after everything was removed: tables keep their largest size.
const REST_BYTES: usize = 1 << 20;

struct Storm {
    node: Participant,
    now: Instant,
    readers: [ReaderHandle; 2],
    writers: [WriterHandle; 2],
    peer: Puppet,
    dice: Dice,
    own: Vec<Vec<u8>>,
    named: Vec<Vec<u8>>,
    frame: Vec<u8>,
    slowest: Duration,
    taken: u64,
}

impl Storm {
    fn new() -> Self {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let reader = |node: &mut Participant, topic, keyed, history| {
            let qos = DataReaderQos { history, ..keep_all_reader() };
            node.create_reader(now, reader_spec(topic, keyed, qos)).expect("the reader is valid")
        };
        let writer = |node: &mut Participant, topic, keyed, durability, history| {
            let qos = DataWriterQos { durability, history, ..keep_all_writer() };
            node.create_writer(now, writer_spec(topic, keyed, qos)).expect("the writer is valid")
        };
        // The first two endpoints are those of the exchange.
        let keyed = reader(&mut node, "K", true, History::KeepLast(1));
        let unkeyed = writer(&mut node, "T", false, Durability::Volatile, History::KeepLast(10));
        let readers = [keyed, reader(&mut node, "T", false, History::KeepAll)];
        let writers = [unkeyed, writer(&mut node, "K", true, Durability::TransientLocal, History::KeepLast(1))];
        let named =
            catalogue::cases().into_iter().map(|case| case.datagram).filter(|bytes| bytes.len() < 2_000).collect();
        Self {
            node,
            now,
            readers,
            writers,
            peer: Puppet::new(1),
            dice: Dice(130),
            own: vec![Vec::new(); 64],
            named,
            frame: vec![0; 65_507],
            slowest: Duration::ZERO,
            taken: 0,
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice.roll(sides as u64) as usize
    }

    fn datagrams(&mut self, count: u64) {
        for number in 0..count {
            if number % 200 == 0 {
                self.match_peer();
            }
            // Occasionally as many participants join as the limits allow, and more.
            if number % 400_000 < 2_000 {
                self.admit_participant();
            }
            let bytes = self.make();
            let source = if self.dice.percent(50) { self.peer.address } else { address(2 + self.roll(100)) };
            let received = Received { source, multicast: self.dice.percent(50) };
            let start = Clock::now();
            self.node.handle_datagram(self.now, received, &bytes);
            self.slowest = self.slowest.max(start.elapsed());
            self.now = Instant(self.now.0 + 200_000);
            if self.node.poll_timeout().is_some_and(|due| due <= self.now) {
                self.node.handle_timeout(self.now);
            }
            self.send();
            if number % 16 == 0 {
                self.application();
            }
        }
    }

    /// Restarts the peer, because forged farewells and numbers make its matches unusable.
    fn match_peer(&mut self) {
        self.peer.leave(&mut self.node, self.now);
        let sn = self.peer.spdp_sn.get();
        self.peer = Puppet::new(1);
        self.peer.spdp_sn.set(sn);
        session::peer_joins(&mut self.peer, &mut self.node, self.now);
        for writer in session::PEER_WRITERS {
            let heartbeat = self.peer.heartbeat(writer, 1, 0);
            self.peer.say(&mut self.node, self.now, |message| message.heartbeat(&heartbeat).expect("it fits"));
        }
    }

    fn make(&mut self) -> Vec<u8> {
        let kind = self.roll(10);
        let mut bytes = match kind {
            0 => {
                let len = self.roll(200);
                let mut bytes: Vec<u8> = (0..len).map(|_| self.dice.roll(256) as u8).collect();
                if self.dice.percent(80) && len >= 20 {
                    bytes[..8].copy_from_slice(b"RTPS\x02\x05\x01\x7a");
                }
                bytes
            }
            1 => return self.unknown_participant(),
            2 => {
                let which = self.roll(self.own.len());
                self.own[which].clone()
            }
            3 => {
                let which = self.roll(self.named.len());
                self.named[which].clone()
            }
            _ => {
                let which = self.roll(session::EXCHANGE.len());
                session::EXCHANGE[which].clone()
            }
        };
        for _ in 0..self.roll(4) {
            session::mutate(&mut self.dice, &mut bytes);
        }
        if bytes.len() >= 20 && self.dice.percent(80) {
            let prefix = if self.dice.percent(60) { self.peer.prefix } else { prefix(2 + self.roll(100)) };
            bytes[8..20].copy_from_slice(&prefix.0);
        }
        bytes
    }

    fn random_sender(&mut self) -> Puppet {
        let mut sender = Puppet::new(3 + self.roll(100));
        (0..12).for_each(|i| sender.prefix.0[i] = self.dice.roll(256) as u8);
        sender
    }

    /// Adds a new participant that validates its address, with writers of a topic that is read
    /// here.
    fn admit_participant(&mut self) {
        let mut sender = self.random_sender();
        sender.join(&mut self.node, self.now);
        for key in 1..=5 {
            let publication = sender.publication(key, true);
            sender.publish(&mut self.node, self.now, &publication);
        }
    }

    /// Returns the announcement of a participant that validates no address.
    fn unknown_participant(&mut self) -> Vec<u8> {
        let mut sender = self.random_sender();
        let participant = sender.announcement().to_bytes();
        let endpoints: Vec<_> = (1..=5).map(|key| sender.publication(key, true).to_bytes()).collect();
        let heartbeat = sender.heartbeat(EntityId::SEDP_PUB_WRITER, 1, 5);
        sender.datagram(|message| {
            message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&participant))).expect("it fits");
            message.heartbeat(&heartbeat).expect("it fits");
            for (sn, endpoint) in (1..).zip(&endpoints) {
                message.data(&data(EntityId::SEDP_PUB_WRITER, sn, Payload::Data(endpoint))).expect("it fits");
            }
        })
    }

    fn send(&mut self) {
        while let Some(transmit) = self.node.poll_transmit(self.now, &mut self.frame) {
            let len = transmit.len;
            let index = self.dice.roll(self.own.len() as u64) as usize;
            self.own[index].clear();
            self.own[index].extend_from_slice(&self.frame[..len]);
        }
        while self.node.poll_event().is_some() {}
    }

    fn application(&mut self) {
        for reader in self.readers {
            let mut cursor = ReadCursor::default();
            let mut next = || {
                let sample = self.node.read_next(self.now, reader, Selector::TAKE, &mut cursor);
                sample.expect("the reader exists").is_some()
            };
            while next() {
                self.taken += 1;
            }
            self.node.end_read(self.now, reader).expect("the reader exists");
        }
        let key = self.dice.roll(50) as u8;
        let bytes = payload(u32::from(key), if key < 5 { 5_000 } else { 100 });
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: hash(key),
            source_timestamp: None,
            destinations: &[],
            payload_len: bytes.len(),
        };
        let writer = self.writers[usize::from(key % 2)];
        let result = self.node.write(self.now, writer, &change, |slot| {
            slot.copy_from_slice(&bytes);
            Some(bytes.len())
        });
        assert!(matches!(result, Ok(_) | Err(WriteError::WouldBlock)), "{result:?}");
    }

    /// Advances the clock by ten days without a datagram, so that every discovered participant
    /// expires. The participant treats each jump of a day as a standstill. Up to eight standstills
    /// postpone the end of a lease, which is at most one day.
    fn calm(&mut self) {
        for _ in 0..10 {
            self.now = Instant(self.now.0 + 86_400_000_000_000);
            while self.node.poll_timeout().is_some_and(|due| due <= self.now) {
                self.node.handle_timeout(self.now);
                self.send();
            }
        }
        self.application();
        self.own.iter_mut().for_each(|bytes| *bytes = Vec::new());
        assert!(self.node.discovered_participants().is_empty());
    }
}

#[test]
fn memory_returns_to_its_start_after_hostile_datagrams() {
    let long = std::env::var_os("TAKT_TEST_LONG").is_some_and(|value| value == "1");
    let count = if long { 10_000_000 } else { 200_000 };
    let mut storm = Storm::new();
    // The first round lets the tables grow to their size.
    storm.datagrams(100_000);
    storm.calm();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    storm.slowest = Duration::ZERO;
    let start = Clock::now();
    storm.datagrams(count);
    let elapsed = start.elapsed();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    storm.calm();
    let rest = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    println!(
        "{count} datagrams in {elapsed:.1?}: heap at most {peak} bytes above {before}, {rest} stay; the slowest took \
         {:.1?}; {} samples taken; peak resident set {}",
        storm.slowest,
        storm.taken,
        resident_peak(),
    );
    println!("{:#?}", storm.node.counters());
    assert!(peak <= GROWTH_BYTES, "{peak} bytes");
    assert!(rest <= REST_BYTES, "{rest} bytes");
    assert!(storm.taken > 50, "some of it were samples");
}

fn resident_peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |line| line.trim().into())
}
