//! Changes of flows while frames flow, switch by switch: every state in between is looked at.
//!
//! The operations that admission wants are executed one by one, in random order between switches, and confirmed at random later. After each one
//! the frames of every admitted flow are followed through the tables that the switches have then ([`world::World::check`]).

mod tables;
mod world;

use takt_testkit::Random;

use self::world::{Order, World};

/// Networks in a usual run, and at full length.
const NETWORKS: [u64; 2] = [100, 1500];

/// Reconfigurations of a network.
const CHANGES: usize = 14;

fn networks() -> u64 {
    NETWORKS[usize::from(std::env::var_os("TAKT_TEST_LONG").is_some())]
}

#[test]
fn no_state_between_two_configurations_breaks_an_admitted_flow() {
    let mut seen = world::Seen::default();
    for seed in 0..networks() {
        let mut random = Random(seed);
        let mut world = World::new(&mut random);
        for _ in 0..CHANGES {
            world.reconfigure(&mut random);
            world.carry_out(&mut random, Order::Confirmed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        }
        seen.add(&world.seen);
    }
    // Otherwise the changes were not what they are to be.
    assert!(seen.is_everything(), "{seen:?}");
}

/// Controllers that do not wait are found out: this shows that the checks see what they are for.
#[test]
fn orders_that_do_not_wait_break_admitted_flows() {
    for order in [Order::FirstSwitchFirst, Order::NoBarrier, Order::OldRemovedEarly] {
        let is_broken = |seed: u64| {
            let mut random = Random(seed);
            let mut world = World::new(&mut random);
            let changes = (0..CHANGES).try_for_each(|_| {
                world.reconfigure(&mut random);
                world.carry_out(&mut random, order)
            });
            changes.is_err()
        };
        assert!((0..networks()).any(is_broken), "{order:?} breaks nothing");
    }
}
