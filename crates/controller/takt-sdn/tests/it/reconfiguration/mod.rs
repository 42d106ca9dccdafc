//! Model-based tests of flow changes while frames flow, switch by switch, with a check of every
//! intermediate state.
//!
//! The operations that admission requests are executed one by one, in random order between
//! switches, and confirmed at a random later time. After each one the frames of every admitted flow
//! are traced through the present tables of the switches ([`world::World::check`]). Earlier frames
//! stay in queues for as long as the certificates allow ([`queued`]).

mod queued;
mod tables;
mod world;

use takt_testkit::Random;

use self::world::{Load, Order, World};

/// Number of networks in a usual run, and at full length.
const NETWORKS: [u64; 2] = [100, 1500];

/// Number of reconfigurations per network.
const CHANGES: usize = 14;

fn networks() -> u64 {
    NETWORKS[usize::from(takt_testkit::is_full_length())]
}

#[test]
fn no_state_between_two_configurations_breaks_an_admitted_flow() {
    let mut coverage = world::Coverage::default();
    for seed in 0..networks() {
        let mut random = Random(seed);
        // Most loads are mixed.
        let load = match seed % 4 {
            3 => Load::Strict,
            2 => Load::Protected,
            _ => Load::Mixed,
        };
        let mut world = World::new(&mut random, load);
        let changes = if load == Load::Strict { 3 * CHANGES } else { CHANGES };
        for _ in 0..changes {
            world.reconfigure(&mut random);
            world.run_operation(&mut random, Order::Confirmed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        }
        coverage.add(&world.coverage);
    }
    // Otherwise the changes do not cover all kinds.
    assert!(coverage.is_everything(), "{coverage:?}");
}

/// Returns the violations of a controller that executes changes in this order.
fn broken_by(order: Order, load: Load) -> impl Iterator<Item = String> {
    (0..networks()).filter_map(move |seed| {
        let mut random = Random(seed);
        let mut world = World::new(&mut random, load);
        let mut changes = (0..3 * CHANGES).map(|_| {
            world.reconfigure(&mut random);
            world.run_operation(&mut random, order)
        });
        changes.find_map(Result::err)
    })
}

/// Controllers that do not wait for switches are detected: this verifies the checks.
#[test]
fn orders_that_do_not_wait_break_admitted_flows() {
    for order in [Order::FirstSwitchFirst, Order::NoBarrier, Order::OldRemovedEarly] {
        assert!(broken_by(order, Load::Mixed).next().is_some(), "{order:?} breaks nothing");
    }
}

/// Controllers that do not wait for queued frames, or not for long enough, are detected as well.
#[test]
fn orders_that_do_not_wait_for_frames_in_queues_break_admitted_flows() {
    let kinds = [
        (queued::FREE_TOO_EARLY, Load::Mixed),
        (queued::TAKEN_TOO_EARLY, Load::Mixed),
        (queued::CHANGED_TOO_EARLY, Load::Strict),
    ];
    for order in [Order::NoDrain, Order::ShortDrain] {
        for (kind, load) in kinds {
            let is_found = broken_by(order, load).any(|why| why.starts_with(kind));
            assert!(is_found, "{order:?} under {load:?} load: not found that {kind}");
        }
    }
}
