//! Reliable delivery over a network that loses, repeats and reorders datagrams, both ways.

use crate::suffering::{deliver, loss, suffering_pair};
use crate::support::RUNTIMES;

#[test]
fn small_samples_survive_a_loss_of_30_percent() {
    for runtime in RUNTIMES {
        deliver(&suffering_pair(runtime, 1, loss(0.3)), 1000, 100);
    }
}

#[test]
fn large_samples_survive_a_loss_of_10_percent() {
    for runtime in RUNTIMES {
        deliver(&suffering_pair(runtime, 3, loss(0.1)), 5, 300_000);
    }
}
