//! Soundness tests of the scheduler: requests in random networks against simulated frames; no flow
//! exceeds its bound, no queue its depth.

use takt_calculus::network::simulation::{ArrivalPattern, run};
use takt_calculus::network::{NetworkCertificate, check};
use takt_sdn::model::{HostId, Network};
use takt_sdn::schedule::{Request, RequestId, Scheduler};
use takt_sdn::simulation::{RandomNetwork, network, request};
use takt_testkit::Random;

/// Number of networks in a usual run, and at full length.
const NETWORKS: [u64; 2] = [200, 5000];

/// Creates a network with admitted requests, of which some are removed again, and with a failed
/// link.
fn scheduled(random: &mut Random) -> (Scheduler, usize) {
    let mut draw = |low, high| random.between(low, high);
    let RandomNetwork { mut network, hosts, links } = network(&mut draw);
    let (mut scheduler, mut shared) = (Scheduler::default(), 0);
    let wanted = if random.one_in(8) { 200 } else { 25 };
    let mut ids: Vec<RequestId> = Vec::new();
    for number in 0..random.between(2, wanted) {
        let mut wanted = request(&mut |low, high| random.between(low, high), hosts, number);
        let at = random.between(0, ids.len().max(1) as u64 - 1) as usize;
        match ids.get(at).filter(|_| random.one_in(3)) {
            Some(id) => shared += usize::from(share(&mut scheduler, &network, random, *id, &mut wanted)),
            None => ids.extend(scheduler.admit(&network.snapshot(), wanted).map(|admitted| admitted.id)),
        }
        ids.retain(|id| scheduler.requests_of(*id).is_some());
        if let Some(id) = ids.get(at).filter(|_| random.one_in(3)) {
            regroup(&mut scheduler, &network, random, *id, hosts);
        }
        if random.one_in(10) && !ids.is_empty() {
            let at = random.between(0, ids.len() as u64 - 1) as usize;
            scheduler.remove(ids.swap_remove(at)).expect("the flow was admitted");
        }
        if random.one_in(40) && !links.is_empty() {
            let link = links[random.between(0, links.len() as u64 - 1) as usize];
            network.set_up(link, random.one_in(2)).expect("the port has a link");
            scheduler.reroute(&network.snapshot());
            ids.retain(|id| scheduler.requests_of(*id).is_some());
        }
    }
    let snapshot = network.snapshot();
    for (id, _) in scheduler.requests() {
        for route in scheduler.routes(&snapshot, id).expect("the flow is admitted") {
            assert!(route.bound_ns <= route.limit_ns, "{route:?}");
            assert!(route.hops.iter().all(|hop| snapshot.link(hop.port).expect("a link").is_up), "{route:?}");
        }
    }
    (scheduler, shared)
}

/// Makes a request join others, or removes one of them. Reports whether it joined.
fn share(
    scheduler: &mut Scheduler,
    network: &Network,
    random: &mut Random,
    id: RequestId,
    wanted: &mut Request,
) -> bool {
    let known = scheduler.requests_of(id).expect("the flow is admitted");
    let (first, last) = (known[0].clone(), known[known.len() - 1].name.clone());
    if random.one_in(4) {
        scheduler.remove_request(id, &network.snapshot(), &last).expect("the flow is admitted");
        return false;
    }
    (wanted.source, wanted.destinations) = (first.source, first.destinations);
    let before = scheduler.routes(&network.snapshot(), id);
    let joined = scheduler.join(id, &network.snapshot(), wanted.clone()).is_ok();
    let routes = scheduler.routes(&network.snapshot(), id).expect("the flow is admitted");
    if !joined {
        assert_eq!(Some(&routes), before.as_ref(), "a refusal changes nothing");
    }
    for (n, route) in routes.iter().enumerate() {
        let same = routes[..n]
            .iter()
            .filter(|other| (other.source, &other.destinations) == (route.source, &route.destinations));
        same.for_each(|other| assert_eq!(other.hops, route.hops, "joined requests share entries"));
    }
    joined
}

/// Adds a receiver to a flow of several requests, or removes one.
fn regroup(scheduler: &mut Scheduler, network: &Network, random: &mut Random, id: RequestId, hosts: u64) {
    let mut requests = scheduler.requests_of(id).expect("the flow is admitted").to_vec();
    let host = HostId(random.between(0, hosts - 1));
    let mut destinations = requests[0].destinations.clone();
    match destinations.iter().position(|known| *known == host) {
        Some(at) if destinations.len() > 1 => _ = destinations.remove(at),
        None if host != requests[0].source => destinations.push(host),
        _ => return,
    }
    requests.iter_mut().for_each(|request| request.destinations.clone_from(&destinations));
    let before = scheduler.routes(&network.snapshot(), id);
    if scheduler.replace(id, &network.snapshot(), requests.clone()).is_err() {
        assert_eq!(scheduler.routes(&network.snapshot(), id), before, "a refusal changes nothing");
    } else {
        assert_eq!(scheduler.requests_of(id), Some(requests.as_slice()));
    }
}

fn check_bounds(certificate: &NetworkCertificate, random: &mut Random, context: &str) -> f64 {
    let NetworkCertificate { ports, flows, bounds, .. } = certificate;
    let victims: Vec<usize> =
        (0..flows.len().min(4)).map(|_| random.between(0, flows.len() as u64 - 1) as usize).collect();
    let synchronous = victims
        .iter()
        .flat_map(|flow| (0..flows[*flow].hops.len()).map(|hop| ArrivalPattern::Aligned { flow: *flow, hop }));
    let mut largest = 0_f64;
    for manner in synchronous.chain([ArrivalPattern::Random; 2]).collect::<Vec<_>>() {
        let flooded = random.one_in(2);
        let observed = run(ports, flows, manner, flooded, 30_000_000, &mut |low, high| random.between(low, high));
        for (at, (longest_ns, bound)) in observed.longest_ns.iter().zip(bounds).enumerate() {
            assert!(*longest_ns <= bound.bound_ns(), "{context}, {manner:?}, {:#?}: {longest_ns}", flows[at]);
            largest = largest.max(*longest_ns as f64 / bound.bound_ns() as f64);
        }
        for (port, queues) in ports.iter().zip(&observed.queues) {
            for (depth, (_, octets, frames)) in port.classes.iter().zip(queues) {
                assert!(*octets <= depth.octets && *frames <= depth.frames, "{context}, {}: loss", port.name);
            }
        }
    }
    largest
}

#[test]
fn no_flow_of_a_scheduled_network_exceeds_its_bound_or_loses_a_frame() {
    let (mut admitted, mut shared, mut largest) = (0, 0, 0_f64);
    for seed in 0..NETWORKS[usize::from(takt_testkit::is_full_length())] {
        let mut random = Random(seed);
        let (scheduler, joined) = scheduled(&mut random);
        shared += joined;
        let certificate = scheduler.certificate();
        check(&certificate).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        admitted += certificate.flows.len();
        largest = largest.max(check_bounds(&certificate, &mut random, &format!("seed {seed}")));
    }
    println!("{admitted} flows admitted, {shared} requests joined; largest of longest seen / bound: {largest:.3}");
    assert!(admitted > 1000 && shared > 100, "{admitted}, {shared}");
}
