//! Network that loses, repeats and reorders datagrams in both directions, and the verification that
//! samples arrive complete, once and in order. Shared with the long test.

use crate::support::*;
use takt::qos::*;
use takt::transport::{FaultConfig, FaultInjector, Faults};
use takt::*;

/// Creates a pair with reproducible faults on both sides.
pub fn suffering_pair(runtime: Runtime, seed: u64, faults: Faults) -> Pair<Blob> {
    let domain = domain();
    let join = |seed| {
        let config = FaultConfig { seed, tx: faults, rx: Faults::NONE };
        let builder = on_loopback(domain, runtime);
        builder.wrap_transport(move |udp| Box::new(FaultInjector::new(udp, config))).build().expect("participant")
    };
    // The tests wait for space themselves, so that an inline subscriber is driven meanwhile.
    let reliability = Reliability { max_blocking_time: takt::Duration::ZERO, ..Reliability::RELIABLE };
    let writer = DataWriterQos { reliability, ..reliable_writer(History::KeepAll) };
    Pair::between(join(seed), join(seed + 1), writer, reliable_reader(History::KeepAll))
}

/// Sends `count` samples of `len` bytes and verifies that all arrive, once and in order.
pub fn deliver(pair: &Pair<Blob>, count: u32, len: usize) {
    let mut expected = 0;
    let mut received = Blob::default();
    let mut take_all = |expected: &mut u32| {
        while pair.reader.take_next_sample(&mut received).expect("open").is_some() {
            assert!(received == Blob::new(*expected, len), "sample {expected} is wrong, or not in its place");
            *expected += 1;
        }
    };
    for number in 0..count {
        let blob = Blob::new(number, len);
        loop {
            match pair.writer.write(&blob) {
                Ok(()) => break,
                Err(Error::Timeout { .. }) => pair.drive(),
                Err(error) => panic!("{error}"),
            }
            take_all(&mut expected);
        }
        take_all(&mut expected);
    }
    pair.wait_until("all samples", || {
        take_all(&mut expected);
        expected == count
    });
    pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    assert_eq!(pair.reader.sample_lost_status().expect("open").total_count, 0);
}

pub fn loss(probability: f64) -> Faults {
    Faults { loss: probability, duplication: probability, reorder: probability, ..Faults::NONE }
}
