//! Tests of backup paths: reserved, proved, used when a link fails, and freed.

use takt_calculus::network::simulation::{ArrivalPattern, run};
use takt_calculus::network::{NetworkCertificate, check};
use takt_sdn::PortRef;
use takt_sdn::model::{Egress, Network};
use takt_sdn::schedule::{Coverage, Reason, RequestId, Scheduler};
use takt_sdn::simulation::{self, RandomNetwork};
use takt_testkit::Random;

use super::networks::{MILLISECOND, model, network, next, reliable, request};

/// Number of networks in a usual run, and at full length.
const NETWORKS: [u64; 2] = [60, 1500];

fn switches(ports: impl Iterator<Item = Egress>) -> Vec<u64> {
    ports.filter_map(|port| if let Egress::Switch(PortRef { dpid, .. }) = port { Some(dpid) } else { None }).collect()
}

fn way(scheduler: &Scheduler, network: &Network, id: RequestId) -> Vec<u64> {
    let routes = scheduler.routes(&network.snapshot(), id).expect("the flow is admitted");
    switches(routes[0].hops.iter().map(|hop| hop.port))
}

fn backup_paths(scheduler: &Scheduler, network: &Network, id: RequestId) -> Vec<Vec<u64>> {
    let paths = scheduler.backup_paths(&network.snapshot(), id);
    paths.iter().map(|path| switches(path.route.hops.iter().map(|hop| hop.port))).collect()
}

#[test]
fn protected_request_uses_its_backup_path_and_gets_another_when_the_link_returns() {
    let mut network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    let id = scheduler.admit(&network.snapshot(), request(0, &[2], 50 * MILLISECOND)).expect("the flow is admitted").id;
    let coverage = scheduler.protect(&network.snapshot(), id).expect("a detour is admitted");
    assert_eq!(coverage, Coverage { links: 1, total: 1 });
    assert_eq!(way(&scheduler, &network, id), [0, 1]);
    assert_eq!(backup_paths(&scheduler, &network, id), [[0, 3, 2, 1]]);
    let flows = scheduler.certificate().flows;
    assert_eq!(flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>(), ["from 0", "from 0, second way"]);

    network.set_up(next(0), false).expect("the port has a link");
    assert_eq!(scheduler.affected(&network.snapshot()).collect::<Vec<_>>(), [id]);
    assert!(scheduler.fall_back(&network.snapshot(), id));
    assert_eq!(way(&scheduler, &network, id), [0, 3, 2, 1]);
    assert_eq!(scheduler.affected(&network.snapshot()).count(), 0, "the flow keeps its path");
    assert_eq!(scheduler.certificate().flows.len(), 2, "frames of before are counted");
    scheduler.release_backup_paths(&network.snapshot(), id);
    assert_eq!(scheduler.certificate().flows.len(), 1);
    let refused = scheduler.protect(&network.snapshot(), id).expect_err("no link is left");
    assert_eq!(refused.reason, Reason::NoBackupPath);

    network.set_up(next(0), true).expect("the port has a link");
    let coverage = scheduler.protect(&network.snapshot(), id).expect("a detour is admitted");
    assert_eq!(coverage, Coverage { links: 3, total: 3 });
    assert_eq!(check(&scheduler.certificate()), Ok(()));
    scheduler.remove(id).expect("the flow is admitted");
    assert_eq!(scheduler.certificate().flows, []);
}

#[test]
fn backup_path_that_does_not_fit_changes_nothing() {
    let network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    let id = scheduler.admit(&network.snapshot(), request(0, &[2], MILLISECOND)).expect("one link is near").id;
    let before = scheduler.certificate();
    let refused = scheduler.protect(&network.snapshot(), id).expect_err("three links take longer");
    assert!(matches!(refused.reason, Reason::ExceedsLimit { .. }), "{refused}");
    assert!(refused.to_string().contains("second way"), "{refused}");
    assert_eq!(scheduler.certificate().flows, before.flows);
    let answered = reliable(request(4, &[6], 50 * MILLISECOND));
    let answered = scheduler.admit(&network.snapshot(), answered).expect("the flow is admitted").id;
    let refused = scheduler.protect(&network.snapshot(), answered).expect_err("the request has its own ACKNACK flow");
    assert_eq!(refused.reason, Reason::NoBackupPath);
}

#[test]
fn backup_paths_use_table_capacity_and_release_it() {
    // The path needs an entry in two switches; the detour needs one in each of three.
    let network = network(4, model(2, 2));
    let mut scheduler = Scheduler::default();
    let id = scheduler.admit(&network.snapshot(), request(0, &[2], 50 * MILLISECOND)).expect("the flow is admitted").id;
    scheduler.protect(&network.snapshot(), id).expect("a detour is admitted");
    let wanted = request(1, &[3], 50 * MILLISECOND);
    let refused = scheduler.admit(&network.snapshot(), wanted.clone()).expect_err("the last switch is full");
    assert!(matches!(refused.reason, Reason::TableFull(_)), "{refused}");
    scheduler.remove(id).expect("the flow is admitted");
    let id = scheduler.admit(&network.snapshot(), wanted).expect("the flow is admitted").id;
    let other = scheduler.admit(&network.snapshot(), request(4, &[6], 50 * MILLISECOND)).expect("admitted").id;
    scheduler.protect(&network.snapshot(), id).expect("a detour is admitted");
    let refused = scheduler.protect(&network.snapshot(), other).expect_err("the tables are full");
    assert!(matches!(refused.reason, Reason::TableFull(_)), "{refused}");
}

#[test]
fn request_that_joins_a_protected_one_uses_all_its_paths_or_is_refused() {
    let network = network(4, model(2, 1000));
    let mut scheduler = Scheduler::default();
    let first = request(0, &[2], 50 * MILLISECOND);
    let id = scheduler.admit(&network.snapshot(), first.clone()).expect("the flow is admitted").id;
    scheduler.protect(&network.snapshot(), id).expect("a detour is admitted");
    let mut other = first;
    other.name = "other".to_owned();
    scheduler.join(id, &network.snapshot(), other.clone()).expect("the request is admitted");
    let certificate = scheduler.certificate();
    assert_eq!(check(&certificate), Ok(()));
    let mut names: Vec<&str> = certificate.flows.iter().map(|flow| flow.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["from 0", "from 0, second way", "other", "other, second way"]);
    (other.name, other.contract.limit_ns) = ("late".to_owned(), MILLISECOND);
    let refused = scheduler.join(id, &network.snapshot(), other).expect_err("three links take longer");
    assert!(matches!(refused.reason, Reason::ExceedsLimit { .. }), "{refused}");
    scheduler.remove_request(id, &network.snapshot(), "from 0").expect("the flow is admitted");
    assert_eq!(scheduler.certificate().flows.len(), 2);
    assert_eq!(backup_paths(&scheduler, &network, id), [[0, 3, 2, 1]]);
    assert_eq!(check(&scheduler.certificate()), Ok(()));
}

/// Creates unicast requests in a random network, most of them protected.
fn scheduled(random: &mut Random) -> (Network, Vec<Egress>, Scheduler, Vec<RequestId>) {
    let RandomNetwork { network, hosts, links } = simulation::network(&mut |low, high| random.between(low, high));
    let (mut scheduler, mut protected) = (Scheduler::default(), Vec::new());
    for number in 0..random.between(5, 40) {
        let mut wanted = simulation::request(&mut |low, high| random.between(low, high), hosts, number);
        wanted.destinations.truncate(1);
        wanted.contract.reliability = None;
        wanted.contract.limit_ns = wanted.contract.limit_ns.max(2 * MILLISECOND) * 4;
        let known = scheduler.requests().map(|(id, known)| (id, known.source, known.destinations.clone())).last();
        if let Some((id, source, destinations)) = known.filter(|_| random.one_in(4)) {
            (wanted.source, wanted.destinations) = (source, destinations);
            let _ = scheduler.join(id, &network.snapshot(), wanted);
        } else if let Ok(admitted) = scheduler.admit(&network.snapshot(), wanted)
            && scheduler.protect(&network.snapshot(), admitted.id).is_ok_and(|coverage| coverage.links > 0)
        {
            protected.push(admitted.id);
        }
        if random.one_in(12) && !protected.is_empty() {
            let removed = protected.swap_remove(random.below(protected.len()));
            scheduler.remove(removed).expect("the flow is admitted");
        }
    }
    (network, links, scheduler, protected)
}

/// Simulates frames of all flows except `lost`, and checks them against the bounds of the
/// certificate.
fn check_bounds(certificate: &NetworkCertificate, lost: &[usize], random: &mut Random, context: &str) {
    let NetworkCertificate { ports, flows, bounds, .. } = certificate;
    let sent: Vec<usize> = (0..flows.len()).filter(|flow| !lost.contains(flow)).collect();
    let flows: Vec<_> = sent.iter().map(|flow| flows[*flow].clone()).collect();
    if flows.is_empty() {
        return;
    }
    let victim = random.below(flows.len());
    let hops = (0..flows[victim].hops.len()).map(|hop| ArrivalPattern::Aligned { flow: victim, hop });
    for manner in hops.chain([ArrivalPattern::Random]).collect::<Vec<_>>() {
        let observed =
            run(ports, &flows, manner, random.one_in(2), 20_000_000, &mut |low, high| random.between(low, high));
        for (at, longest_ns) in sent.iter().zip(&observed.longest_ns) {
            assert!(
                *longest_ns <= bounds[*at].bound_ns(),
                "{context}, {manner:?}: {longest_ns}, {:?}",
                certificate.flows[*at]
            );
        }
        for (port, queues) in ports.iter().zip(&observed.queues) {
            for (depth, (_, octets, frames)) in port.classes.iter().zip(queues) {
                assert!(*octets <= depth.octets && *frames <= depth.frames, "{context}, {}: loss", port.name);
            }
        }
    }
}

/// Returns the flows of a certificate that pass a port.
fn flows_by(certificate: &NetworkCertificate, port: Egress) -> Vec<usize> {
    let name = port.to_string();
    let passes =
        |flow: &usize| certificate.flows[*flow].hops.iter().any(|hop| certificate.ports[hop.port].name == name);
    (0..certificate.flows.len()).filter(passes).collect()
}

/// Frames are on all paths at once, then on those that avoid the failed link.
#[test]
fn no_flow_exceeds_its_bound_when_each_link_in_turn_fails() {
    let (mut protected, mut fallen_back, mut covered_again) = (0, 0, 0);
    for seed in 0..NETWORKS[usize::from(takt_testkit::is_full_length())] {
        let mut random = Random(seed);
        let (mut network, links, scheduler, ids) = scheduled(&mut random);
        protected += ids.len();
        let proved = scheduler.certificate();
        check(&proved).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        check_bounds(&proved, &[], &mut random, &format!("seed {seed}"));
        for link in links {
            let context = format!("seed {seed}, {link} failed");
            let before = network.snapshot();
            let back = before.link(link).expect("the port has a link").back;
            let lost: Vec<usize> = [link, back].into_iter().flat_map(|port| flows_by(&proved, port)).collect();
            check_bounds(&proved, &lost, &mut random, &context);
            network.set_up(link, false).expect("the port has a link");
            let snapshot = network.snapshot();
            let mut scheduler = scheduler.clone();
            for id in scheduler.affected(&snapshot).collect::<Vec<RequestId>>() {
                let first = scheduler.routes(&before, id).expect("the flow is admitted").swap_remove(0);
                let index = first.hops.iter().position(|hop| [link, back].contains(&hop.port));
                let paths = scheduler.backup_paths(&before, id);
                let has_detour =
                    ids.contains(&id) && (index.is_none() || paths.iter().any(|path| Some(path.at) == index));
                let is_kept = scheduler.fall_back(&snapshot, id);
                assert!(is_kept || !has_detour, "{context}: {first:?}");
                fallen_back += usize::from(is_kept);
                if is_kept {
                    let route = scheduler.routes(&snapshot, id).expect("the flow is admitted").swap_remove(0);
                    let is_up = |port| snapshot.link(port).is_some_and(|link| link.is_up);
                    assert!(route.hops.iter().all(|hop| is_up(hop.port)), "{context}: {route:?}");
                    assert!(route.bound_ns <= route.limit_ns, "{context}: {route:?}");
                }
            }
            check(&scheduler.certificate()).unwrap_or_else(|why| panic!("{context}: {why}"));
            scheduler.reroute(&snapshot);
            for id in ids.iter().filter(|id| scheduler.requests_of(**id).is_some()).copied().collect::<Vec<RequestId>>()
            {
                scheduler.release_backup_paths(&snapshot, id);
                covered_again +=
                    usize::from(scheduler.coverage(id).is_none() && scheduler.protect(&snapshot, id).is_ok());
            }
            check(&scheduler.certificate()).unwrap_or_else(|why| panic!("{context}, protected again: {why}"));
            network.set_up(link, true).expect("the port has a link");
        }
    }
    println!("{protected} protected flows, {fallen_back} times another way, {covered_again} times protected again");
    assert!(protected > 40 && fallen_back > 40 && covered_again > 5, "{protected}, {fallen_back}, {covered_again}");
}
