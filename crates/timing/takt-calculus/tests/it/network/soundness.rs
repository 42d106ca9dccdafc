//! Soundness tests: no simulated frame exceeds its queue's budget, no queue its depth, and no event
//! its bound.

use takt_calculus::network::simulation::{ArrivalPattern, Observed, run};
use takt_calculus::network::{Admission, Depth, Flow, FlowId, NetworkCertificate, check};

use super::generate::Topology;
use crate::random::Random;

/// Number of networks in a normal run, and in a long one.
const NETWORKS: [u64; 2] = [60, 5000];

fn network(seed: u64) -> (NetworkCertificate, Random) {
    let mut random = Random(seed);
    let most = if random.one_in(4) { 20 } else { 5 };
    let switches = random.between(1, most);
    let topology = Topology::new(&mut random, switches as usize + 1);
    let most = if random.one_in(4) { 500 } else { 40 };
    let wanted = random.between(2, most);
    let mut admission = Admission::new(topology.ports.clone()).expect("the ports are valid");
    let mut ids = Vec::new();
    for number in 0..wanted {
        let flow = topology.flow(&mut random, number);
        let what_if = admission.what_if(&flow);
        if random.one_in(8) {
            undo(&mut admission, &flow, ids.last().copied());
        }
        let admitted = admission.admit(flow);
        assert_eq!(admitted.as_ref().map(|(_, bound)| *bound), what_if.as_ref().map(|bound| *bound));
        ids.extend(admitted.map(|(id, _)| id));
        if random.one_in(10) && !ids.is_empty() {
            let at = random.between(0, ids.len() as u64 - 1) as usize;
            let removed = ids.swap_remove(at);
            admission.remove(removed).expect("the flow was admitted");
            assert_eq!(admission.flow(removed), None);
            assert_eq!(admission.remove(removed), None);
        }
    }
    (admission.certificate(), random)
}

/// Runs an attempt that removes and admits flows, and then fails. Checks that it leaves no trace.
fn undo(admission: &mut Admission, flow: &Flow, other: Option<FlowId>) {
    let before = admission.clone();
    let failed: Result<(), ()> = admission.attempt(|admission| {
        other.map(|id| admission.remove(id));
        drop(admission.attempt(|admission| admission.admit(flow.clone())));
        drop(admission.admit(flow.clone()));
        Err(())
    });
    assert_eq!(failed, Err(()));
    assert_eq!(*admission, before);
}

fn check_bounds(certificate: &NetworkCertificate, seen: &Observed, context: &str) {
    let NetworkCertificate { ports, flows, queues, bounds } = certificate;
    for (at, port) in ports.iter().enumerate() {
        for (class, depth) in port.classes.iter().enumerate() {
            let (delay_ns, octets, frames) = seen.queues[at][class];
            let budget_ns = queues[at][class].delay_ns;
            assert!(delay_ns <= budget_ns, "{context}, port {at}, class {class}: {delay_ns} > {budget_ns}");
            let Depth { octets: octets_max, frames: frames_max } = *depth;
            assert!(
                octets <= octets_max && frames <= frames_max,
                "{context}, port {at}, class {class}: {octets}, {frames}"
            );
        }
    }
    for (at, (longest, bound)) in seen.longest_ns.iter().zip(bounds).enumerate() {
        let bound_ns = bound.bound_ns();
        assert!(*longest <= bound_ns, "{context}, flow {at}: {longest} > {bound:?}\n{:#?}", flows[at]);
        assert!(bound_ns <= flows[at].limit_ns, "{context}, flow {at}");
    }
}

#[test]
fn no_simulated_frame_of_a_random_network_exceeds_a_bound() {
    let (mut admitted, mut ratios) = (0, Vec::new());
    for seed in 0..NETWORKS[usize::from(takt_testkit::is_full_length())] {
        let (certificate, mut random) = network(seed);
        check(&certificate).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let flows = &certificate.flows;
        admitted += flows.len();
        let victims = (0..flows.len().min(8)).map(|_| random.between(0, flows.len().max(1) as u64 - 1) as usize);
        let victims: Vec<usize> = victims.collect();
        let meet = victims
            .iter()
            .flat_map(|flow| (0..flows[*flow].hops.len()).map(|hop| ArrivalPattern::Aligned { flow: *flow, hop }));
        let mut worst = vec![0; flows.len()];
        for pattern in meet.chain([ArrivalPattern::Random; 3]).collect::<Vec<_>>() {
            let flooded = random.one_in(2);
            let mut draw = |low, high| random.between(low, high);
            let seen = run(&certificate.ports, flows, pattern, flooded, 40_000_000, &mut draw);
            check_bounds(&certificate, &seen, &format!("seed {seed}, {pattern:?}"));
            worst.iter_mut().zip(seen.longest_ns).for_each(|(worst, time)| *worst = time.max(*worst));
        }
        ratios.extend(victims.iter().map(|flow| worst[*flow] as f64 / certificate.bounds[*flow].bound_ns() as f64));
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: usize| ratios[ratios.len() * part / 100];
    println!("{admitted} flows admitted; longest seen / bound: median {:.3}, 10th percentile {:.3}", at(50), at(10));
    assert!(admitted > 1000, "{admitted}");
}
