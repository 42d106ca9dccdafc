//! Changes of flows while frames flow, switch by switch: every state in between is looked at.
//!
//! The operations that admission wants are executed one by one, in random order between switches, and confirmed at random later. After each one
//! the frames of every admitted flow are followed through the tables that the switches have then ([`world::World::check`]). Frames of before are in
//! queues for as long as the certificates allow ([`queued`]).

mod queued;
mod tables;
mod world;

use takt_testkit::Random;

use self::world::{Load, Order, World};

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
        // Most of the loads are mixed.
        let load = match seed % 4 {
            3 => Load::Strict,
            2 => Load::Protected,
            _ => Load::Mixed,
        };
        let mut world = World::new(&mut random, load);
        let changes = if load == Load::Strict { 3 * CHANGES } else { CHANGES };
        for _ in 0..changes {
            world.reconfigure(&mut random);
            world.carry_out(&mut random, Order::Confirmed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        }
        seen.add(&world.seen);
    }
    // Otherwise the changes were not what they are to be.
    assert!(seen.is_everything(), "{seen:?}");
}

/// What a controller breaks that carries out changes in this order.
fn broken_by(order: Order, load: Load) -> impl Iterator<Item = String> {
    (0..networks()).filter_map(move |seed| {
        let mut random = Random(seed);
        let mut world = World::new(&mut random, load);
        let mut changes = (0..3 * CHANGES).map(|_| {
            world.reconfigure(&mut random);
            world.carry_out(&mut random, order)
        });
        changes.find_map(Result::err)
    })
}

/// Controllers that do not wait for switches are found out: this shows that the checks see what they are for.
#[test]
fn orders_that_do_not_wait_break_admitted_flows() {
    for order in [Order::FirstSwitchFirst, Order::NoBarrier, Order::OldRemovedEarly] {
        assert!(broken_by(order, Load::Mixed).next().is_some(), "{order:?} breaks nothing");
    }
}

/// The same of controllers that do not wait for frames in queues, or not for long enough.
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
