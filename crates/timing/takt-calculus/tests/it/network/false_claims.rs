//! Tests of the network certificate checker: it refuses false claims.

use takt_calculus::network::{Admission, Branch, Depth, NetworkCertificate, check};

use super::generate::Topology;
use crate::random::Random;

fn certificate() -> NetworkCertificate {
    let mut random = Random(77);
    let topology = Topology::new(&mut random, 3);
    let mut admission = Admission::new(topology.ports.clone()).expect("the ports are valid");
    for number in 0..40 {
        drop(admission.admit(topology.flow(&mut random, number)));
    }
    admission.certificate()
}

fn refuses(what: &str, change: impl Fn(&mut NetworkCertificate)) {
    let mut lie = certificate();
    change(&mut lie);
    assert!(check(&lie).is_err(), "{what}");
}

#[test]
fn computed_claims_are_proven() {
    let certificate = certificate();
    assert_eq!(check(&certificate), Ok(()));
    assert!(certificate.flows.len() > 5, "{}", certificate.flows.len());
}

#[test]
fn understated_claims_are_refused() {
    let known = certificate();
    let used: Vec<(usize, usize)> = known.flows[0].hops.iter().map(|hop| (hop.port, hop.class)).collect();
    for (port, class) in used {
        refuses("a smaller budget", |lie| lie.queues[port][class].delay_ns /= 2);
        refuses("a shorter busy period", |lie| lie.queues[port][class].busy_ns /= 2);
        refuses("an earlier start", |lie| {
            lie.queues[port][class].intervals.iter_mut().for_each(|interval| interval.start_ns /= 2);
        });
        refuses("no intervals", |lie| lie.queues[port][class].intervals.clear());
        refuses("not from the begin", |lie| lie.queues[port][class].intervals[0].from_ns = 1);
        refuses("a queue that is too short", |lie| lie.ports[port].classes[class] = Depth { octets: 60, frames: 1 });
        refuses("longer frames without contract", |lie| lie.ports[port].foreign_frame_len = 100_000);
        refuses("a slower link", |lie| lie.ports[port].rate_bps /= 10);
    }
    for flow in 0..known.flows.len() {
        refuses("a smaller sum", |lie| lie.bounds[flow].total_ns -= 1);
        if known.bounds[flow].separated_ns.is_some() {
            refuses("a smaller separated bound", |lie| {
                lie.bounds[flow].separated_ns = lie.bounds[flow].separated_ns.map(|bound| bound - 1);
            });
        }
        refuses("a lower limit", |lie| lie.flows[flow].limit_ns = lie.bounds[flow].bound_ns() - 1);
        refuses("more jitter", |lie| lie.flows[flow].arrivals.jitter_ns += 20 * lie.flows[flow].arrivals.period_ns);
        refuses("longer frames", |lie| lie.flows[flow].frames[0].len += 20_000);
        refuses("a branch after nothing", |lie| lie.flows[flow].branches.push(Branch { at: 1000, after: 0 }));
        refuses("a way through nothing", |lie| lie.flows[flow].hops[0].port = 1000);
    }
}

/// Randomly damaged certificates are proven or refused, without panic.
#[test]
fn damaged_certificates_cause_no_panic() {
    let known = certificate();
    let mut random = Random(5);
    for _ in 0..3000 {
        let mut lie = known.clone();
        let (flow, port) = (
            random.between(0, lie.flows.len() as u64 - 1) as usize,
            random.between(0, lie.ports.len() as u64 - 1) as usize,
        );
        let value = [0, 1, random.next(), u64::MAX, 1 << random.between(0, 63)][random.between(0, 4) as usize];
        let class = random.between(0, lie.queues[port].len() as u64 - 1) as usize;
        match random.between(0, 9) {
            0 => lie.flows[flow].arrivals.period_ns = value,
            1 => lie.flows[flow].arrivals.jitter_ns = value,
            2 => lie.flows[flow].frames[0].len = value,
            3 => lie.flows[flow].frames[0].count = value,
            4 => lie.ports[port].rate_bps = value,
            5 => lie.ports[port].delay_ns = value,
            6 => lie.queues[port][class].delay_ns = value,
            7 => lie.queues[port][class].busy_ns = value,
            8 => lie.ports[port].foreign_frame_len = value,
            _ => lie.flows[flow].limit_ns = value,
        }
        drop(check(&lie));
        drop(Admission::new(lie.ports.clone()).map(|mut admission| admission.admit(lie.flows[flow].clone())));
    }
}
