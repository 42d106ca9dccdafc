//! Refusals before all ports are bounded, against the whole analysis.

use alloc::format;
use alloc::vec::Vec;

use takt_testkit::Random;

use super::*;
use crate::Arrivals;
use crate::network::{Depth, Frames, check};

const PORTS: usize = 8;
const CLASSES: usize = 3;

fn network(random: &mut Random) -> Admission {
    let port = |number: usize| {
        let depth = |_| Depth { frames: random.between(8, 48), ..Depth::UNLIMITED };
        Port {
            name: format!("port {number}"),
            rate_bps: 100_000_000,
            foreign_frame_len: 1_514,
            classes: (0..CLASSES).map(depth).collect(),
            delay_ns: 5_000,
            delay_ns_min: 1_000,
        }
    };
    Admission::new((0..PORTS).map(port).collect()).expect("the ports make sense")
}

/// A flow along some ports, in ascending or descending order, so that ways have cycles.
fn flow(random: &mut Random) -> Flow {
    let (first, len) = (random.below(PORTS), 1 + random.below(5));
    let mut hops: Vec<Hop> =
        (0..len).map(|n| Hop { port: (first + n) % PORTS, class: random.below(CLASSES) }).collect();
    if random.one_in(2) {
        hops.reverse();
    }
    let limit_ns = (0..len).map(|_| random.between(400_000, 1_300_000)).sum();
    Flow {
        name: "flow".into(),
        arrivals: Arrivals {
            jitter_ns: random.between(0, 2_000_000),
            ..Arrivals::sporadic(random.between(3_000_000, 12_000_000))
        },
        frames: alloc::vec![Frames { len: random.between(100, 1_500), count: random.between(1, 2) }],
        hops,
        branches: Vec::new(),
        limit_ns,
    }
}

/// The network with new flows, or without them if they are refused, and the queues that were bounded.
fn outcome(network: &Admission, new: &Flow, tighten: &[Hop], stops_early: bool) -> (Option<Admission>, usize) {
    let (mut after, before) = (network.clone(), network.queues_bounded());
    let named = network.named(core::slice::from_ref(new));
    let draft = network.bound_all(&named, tighten, stops_early);
    let work = network.queues_bounded() - before;
    (draft.ok().map(|draft| after.apply(draft)).map(|()| after), work)
}

#[test]
fn early_refusal_is_one_of_the_whole_analysis() {
    let mut random = Random(1);
    let (mut early, mut refused, mut admitted, mut fell) = (0, 0, 0, 0);
    for _ in 0..150 {
        let mut network = network(&mut random);
        for _ in 0..60 {
            let new = flow(&mut random);
            let others: Vec<Flow> = network.flows().map(|(_, flow)| flow.clone()).collect();
            let other = others.get(random.below(60));
            for tighten in [&[][..], &new.hops, other.map_or(&[][..], |other| &other.hops)] {
                let [(whole, work), (short, less)] =
                    [false, true].map(|stops_early| outcome(&network, &new, tighten, stops_early));
                assert_eq!(short, whole, "{new:?} {tighten:?}");
                assert!(less <= work);
                (early, refused) = (early + u32::from(less < work), refused + u32::from(whole.is_none()));
                admitted += u32::from(whole.is_some());
                fell += u32::from(whole.is_some() && !tighten.is_empty());
            }
            if let Ok((id, _)) = network.admit(new) {
                assert_eq!(check(&network.certificate()), Ok(()), "{id:?}");
            }
        }
    }
    assert!(early > 500 && refused > 1_000 && admitted > 1_000 && fell > 500, "{early} {refused} {admitted} {fell}");
}
