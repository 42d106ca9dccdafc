//! Repairs of large samples for several readers behind one slow link (RTPS 2.5 §8.4.7.1): amount of
//! retransmission.

use crate::network::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use takt_core::*;
use takt_wire::qos::*;

/// Transmission time of an octet at 10 Mbit/s, in ns.
const NS_PER_OCTET: u64 = 800;
/// Transit time of a datagram to node 0.
const RETURN_NS: u64 = 200_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Maximum number of octets that wait for the link. The link drops further datagrams; the queue is
/// large enough that it drops none.
const QUEUE_LEN: u64 = 1 << 20;

/// Arrival in ns, order, sender, receiver, octets.
type Datagram = (u64, u64, usize, usize, Vec<u8>);

/// Network in which node 0 sends to the others over one link of 10 Mbit/s. Their datagrams arrive
/// after 0.2 ms.
struct SlowLink {
    now: Instant,
    nodes: Vec<Participant>,
    free_at_ns: u64,
    in_flight: BinaryHeap<Reverse<Datagram>>,
    sent: u64,
}

impl SlowLink {
    fn new(nodes: usize) -> Self {
        let now = Instant(SECOND_NS);
        let nodes = (0..nodes).map(|node| Participant::new(config(node, 1500), now).expect("it is valid")).collect();
        Self { now, nodes, free_at_ns: 0, in_flight: BinaryHeap::new(), sent: 0 }
    }

    fn transmit(&mut self) {
        let mut frame = vec![0; 65_507];
        for from in 0..self.nodes.len() {
            while let Some(transmit) = self.nodes[from].poll_transmit(self.now, &mut frame) {
                let len = transmit.len;
                let destinations = transmit.destinations.to_vec();
                for to in destinations {
                    let others = (0..self.nodes.len()).filter(|node| *node != from);
                    let receivers: Vec<_> = others
                        .filter(|node| address(*node) == to || to.ip().is_some_and(|ip| ip.is_multicast()))
                        .collect();
                    let mut arrival = self.now.0 + RETURN_NS;
                    if from == 0 && !receivers.is_empty() {
                        let start = self.free_at_ns.max(self.now.0);
                        if (start - self.now.0) / NS_PER_OCTET > QUEUE_LEN {
                            continue;
                        }
                        self.free_at_ns = start + len as u64 * NS_PER_OCTET;
                        arrival = self.free_at_ns;
                    }
                    for to in receivers {
                        self.sent += 1;
                        self.in_flight.push(Reverse((arrival, self.sent, from, to, frame[..len].to_vec())));
                    }
                }
            }
        }
    }

    /// Returns false if the time is up before `done` holds.
    fn run_until(&mut self, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now.0 + seconds * SECOND_NS;
        loop {
            self.transmit();
            if done(self) {
                return true;
            }
            let timer = self.nodes.iter().filter_map(Participant::poll_timeout).min().map_or(end, |due| due.0);
            let arrival = self.in_flight.peek().map_or(end, |Reverse((arrival, ..))| *arrival);
            let next = timer.min(arrival).max(self.now.0);
            if next >= end {
                self.now = Instant(end);
                return done(self);
            }
            self.now = Instant(next);
            if arrival <= next {
                let Reverse((_, _, from, to, bytes)) = self.in_flight.pop().expect("it was seen");
                let received = Received { source: address(from), multicast: false };
                self.nodes[to].handle_datagram(self.now, received, &bytes);
            } else {
                self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
            }
        }
    }
}

#[test]
fn repairs_in_transit_to_several_readers_are_not_repeated() {
    const READERS: usize = 4;
    const SAMPLES: usize = 40;
    const LEN: usize = 20_000;
    let mut link = SlowLink::new(1 + READERS);
    let now = link.now;
    let durability = Durability::TransientLocal;
    let writer = link.nodes[0]
        .create_writer(now, writer_spec("T", false, DataWriterQos { durability, ..keep_all_writer() }))
        .expect("it is valid");
    for number in 0..SAMPLES {
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: LEN,
        };
        let fill = |slot: &mut [u8]| {
            slot.copy_from_slice(&payload(number as u32, LEN));
            Some(LEN)
        };
        link.nodes[0].write(now, writer, &change, fill).expect("write accepted");
    }
    let readers: Vec<_> = (1..=READERS)
        .map(|node| {
            let spec = reader_spec("T", false, DataReaderQos { durability, ..keep_all_reader() });
            link.nodes[node].create_reader(now, spec).expect("it is valid")
        })
        .collect();
    let mut taken = [0; READERS];
    let all = link.run_until(60, |link| {
        for (node, reader) in (1..).zip(&readers) {
            let mut cursor = ReadCursor::default();
            let now = link.now;
            while link.nodes[node].read_next(now, *reader, Selector::TAKE, &mut cursor).expect("it exists").is_some() {
                taken[node - 1] += 1;
            }
        }
        taken == [SAMPLES; READERS]
    });
    assert!(all, "{taken:?}");
    let needed = (READERS * SAMPLES * LEN.div_ceil(1_300)) as u64;
    let sent = link.nodes[0].counters().repairs_sent;
    assert!(sent < needed * 3 / 2, "{sent} repairs for {needed} fragments");
}
