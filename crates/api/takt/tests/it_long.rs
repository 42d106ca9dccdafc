//! Reliable delivery over a faulty network, full matrix: 1, 10 and 30 % of all datagrams are lost,
//! repeated and reordered in both directions; 100,000 samples of 100 B and 200 of 1 MB. Takes
//! minutes: `cargo test -p takt --features long-tests --test it_long --release`.

#[path = "it/suffering.rs"]
mod suffering;
#[allow(dead_code, reason = "the other test binary uses the rest")]
#[path = "it/support.rs"]
mod support;

use suffering::{deliver, loss, suffering_pair};
use support::RUNTIMES;

fn deliver_under_all_losses(count: u32, len: usize) {
    for runtime in RUNTIMES {
        for (seed, probability) in (0_u64..).step_by(2).zip([0.01, 0.1, 0.3]) {
            let started = std::time::Instant::now();
            deliver(&suffering_pair(runtime, seed, loss(probability)), count, len);
            println!("{runtime:?}: {count} samples of {len} B at {probability} in {:.1?}", started.elapsed());
        }
    }
}

#[test]
fn one_hundred_thousand_small_samples_arrive_once_and_in_order() {
    deliver_under_all_losses(100_000, 100);
}

#[test]
fn two_hundred_large_samples_arrive_once_and_in_order() {
    deliver_under_all_losses(200, 1 << 20);
}
