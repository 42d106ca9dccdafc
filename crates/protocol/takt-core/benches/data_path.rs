//! Benchmark of the data path: nanoseconds per sample for each step, with two participants in
//! memory and no transport. Run with `cargo bench -p takt-core`; the last argument is the payload
//! size.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/network.rs"]
#[allow(dead_code)]
mod network;

use network::*;
use std::hint::black_box;
use std::time::Instant as Clock;
use takt_core::*;

const SAMPLES: usize = 200_000;

struct Steps {
    names: [&'static str; 4],
    nanos: [u128; 4],
}

impl Steps {
    fn time<T>(&mut self, step: usize, call: impl FnOnce() -> T) -> T {
        let start = Clock::now();
        let result = call();
        self.nanos[step] += start.elapsed().as_nanos();
        result
    }
}

fn main() {
    let size = std::env::args().next_back().and_then(|size| size.parse().ok()).unwrap_or(64);
    let mut network = Network::with_mtu(2, 1, 65_536);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(1_000);
    let bytes = payload(1, size);
    let mut frame = vec![0; 65_507];
    let mut steps = Steps { names: ["write", "poll_transmit", "handle_datagram", "read_next"], nanos: [0; 4] };
    let clock_cost = {
        let start = Clock::now();
        for _ in 0..SAMPLES {
            black_box(Clock::now().elapsed());
        }
        start.elapsed().as_nanos() as f64 / SAMPLES as f64
    };
    for _ in 0..SAMPLES {
        let now = network.now;
        steps
            .time(0, || {
                let change = NewChange {
                    kind: ChangeKind::Alive,
                    key_hash: [0; 16],
                    source_timestamp: None,
                    destinations: &[],
                    payload_len: bytes.len(),
                };
                network.nodes[0].write(now, writer, &change, |slot| {
                    slot.copy_from_slice(&bytes);
                    Some(bytes.len())
                })
            })
            .unwrap();
        let (left, right) = network.nodes.split_at_mut(1);
        while let Some(transmit) = steps.time(1, || left[0].poll_transmit(now, &mut frame).map(|t| t.len)) {
            let from = Received { source: address(0), multicast: false };
            steps.time(2, || right[0].handle_datagram(now, from, &frame[..transmit]));
        }
        steps.time(3, || {
            let mut cursor = ReadCursor::default();
            while let Some(sample) = right[0].read_next(now, reader, Selector::TAKE, &mut cursor).unwrap() {
                black_box(sample.payload);
            }
        });
        while right[0].poll_event().is_some() {}
        while let Some(transmit) = right[0].poll_transmit(now, &mut frame).map(|t| t.len) {
            let from = Received { source: address(1), multicast: false };
            left[0].handle_datagram(now, from, &frame[..transmit]);
        }
        while left[0].poll_event().is_some() {}
    }
    println!("{size} B, {SAMPLES} samples, one clock read costs {clock_cost:.0} ns and is subtracted");
    for (name, nanos) in steps.names.iter().zip(steps.nanos) {
        println!("{name:>16} {:7.1} ns", nanos as f64 / SAMPLES as f64 - clock_cost);
    }
}
