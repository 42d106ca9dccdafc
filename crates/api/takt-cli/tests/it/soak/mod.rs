//! Soak test of real processes: three writers and four readers on three hosts of a bridge, and
//! random disturbances.
//!
//! The disturbances are kill -9 and restart, SIGSTOP for longer than the lease and SIGCONT, link
//! down and up, and a change of a host's address. Each writer is RELIABLE, TRANSIENT_LOCAL and
//! KEEP_ALL, and numbers its samples from 1. Each reader must print all numbers of each living
//! writer once and in order, and the end of each killed writer. The numbers restart at 1 if the
//! lease of the writer had expired. No process may exit without a kill or print an error.
//!
//! Disturbances last 8 s, with `TAKT_TEST_LONG=1` 10 minutes. `TAKT_TEST_SEED` sets the seed, which
//! a failure prints.

use std::time::{Duration, Instant, SystemTime};

use takt_testkit::network::Network;
use takt_testkit::waiting::until_ok;

mod log;
mod world;

use world::World;

/// Samples of each writer after the disturbances, once before the last kill and once after it.
const CALM_SAMPLES: usize = 40;

/// Returns the duration of the disturbances, and the period of a writer. A history holds 4096
/// samples.
fn lengths() -> (Duration, Duration) {
    if takt_testkit::is_full_length() {
        (Duration::from_secs(600), Duration::from_millis(200))
    } else {
        (Duration::from_secs(8), Duration::from_millis(50))
    }
}

fn seed() -> u64 {
    std::env::var("TAKT_TEST_SEED").map_or_else(
        |_| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970").as_secs(),
        |text| text.parse().expect("TAKT_TEST_SEED is a number"),
    )
}

#[test]
fn readers_have_all_samples_of_living_writers_after_random_disturbances() {
    let Some(network) = Network::new() else { return };
    let (length, period) = lengths();
    let mut world = World::new(&network, seed());
    let end = Instant::now() + length;
    let mut next = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        world.step(period);
        if Instant::now() >= next {
            world.inject_fault();
            next = Instant::now() + world.pause();
        }
    }
    world.end_disturbances();
    (0..CALM_SAMPLES).for_each(|_| world.step(period));
    // All killed writers are reported as ended before this one is.
    world.kill_last_writer();
    (0..CALM_SAMPLES).for_each(|_| world.step(period));
    until_ok(&format!("readers have everything, {}", world.history()), || world.has_converged());
    world.finish();
}
