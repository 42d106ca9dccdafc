//! No event from a job that writes to the listener that receives is later than the bound that `takt_sdn::schedule::Plan` composes.
//!
//! Writer's host, network and reader's host are simulated one after the other: what one passes on comes to the next. Both hosts are the
//! executor of the product with flows of its own; the network is simulated frame by frame with other admitted flows.

use std::sync::Arc;

use takt_calculus::Arrivals;
use takt_calculus::composition::{HostFlow, check};
use takt_calculus::network::simulation::{Manner as NetworkManner, run_given};
use takt_calculus::network::{Depth, NetworkCertificate};
use takt_sdn::model::{HostId, HostInterface, Network, SwitchModel};
use takt_sdn::schedule::{Contract, HostStages, Plan, Request, Scheduler, WireFormat};
use takt_testkit::Random;

use super::Releaser;
use super::report::median;
use super::stand::{Manner, Stand};
use super::system;

const MICROSECOND: u64 = 1_000;
/// How long events come in one run.
const RUN_NS: u64 = 120_000_000;
/// Seeds that are tried for each composition that is wanted.
const SEEDS_EACH: u64 = 10;

/// When each event was written, and when it left the writer's host.
type Left = Vec<(u64, u64)>;

/// Switches in a row with a host at each end and others between.
fn network(random: &mut Random) -> (Network, u64) {
    let mut model = SwitchModel::built_in("ovs-netdev").expect("it comes with Takt");
    model.forwarding_ns = random.between(1, 100) * MICROSECOND;
    model.forwarding_ns_min = model.forwarding_ns.min(MICROSECOND);
    let (model, switches) = (Arc::new(model), random.between(1, 5));
    let rate_bps = [20_000_000, 100_000_000, 1_000_000_000][random.between(0, 2) as usize];
    let mut network = Network::default();
    for dpid in 0..switches {
        network.add_switch(dpid, Arc::clone(&model)).expect("there is room");
        for n in 0..2 {
            let interface = HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 };
            network.attach(HostId(2 * dpid + n), interface, (dpid, 3 + n as u32), rate_bps, 0).expect("a free port");
        }
        if dpid > 0 {
            network.link([(dpid - 1, 1), (dpid, 2)], rate_bps, 0).expect("free ports");
        }
    }
    (network, switches)
}

fn request(random: &mut Random, from: u64, to: u64) -> Request {
    let min_separation_ns = random.between(8_000, 25_000) * MICROSECOND;
    Request {
        name: format!("{from} to {to}"),
        source: HostId(from),
        destinations: vec![HostId(to)],
        contract: Contract {
            min_separation_ns,
            burst: 1,
            jitter_ns: 0,
            sample_len: random.between(64, 3_000),
            limit_ns: random.between(5_000, 40_000) * MICROSECOND,
            reliability: None,
            importance: 0,
        },
        format: WireFormat::default(),
    }
}

/// Runs the writer's host in several manners.
fn leave(plan: &system::Plan, random: &mut Random) -> (HostFlow, Vec<Left>) {
    let mut stand = Stand::new(plan.clone());
    let pieces = stand.pieces();
    let system = plan.described(&pieces);
    stand.begin(&[]);
    let mut runs = Vec::new();
    for manner in [Manner::Critical(Releaser::Below), Manner::Critical(plan.releasers()[0]), Manner::Random] {
        stand.run(manner, RUN_NS, random);
        runs.push(stand.done_of_first());
    }
    (HostFlow { system, flow: 0 }, runs)
}

/// When the events are received behind the network, as the first one is at `first_ns` there.
fn pass(certificate: &NetworkCertificate, flow: usize, left: &[u64], first_ns: u64, random: &mut Random) -> Vec<u64> {
    let NetworkCertificate { ports, flows, .. } = certificate;
    let times: Vec<u64> = left.iter().map(|time| time - left[0] + first_ns).collect();
    let hop = random.between(0, flows[flow].hops.len() as u64 - 1) as usize;
    let manner = if random.one_in(3) { NetworkManner::Random } else { NetworkManner::Meet { flow, hop } };
    let flooded = random.one_in(2);
    let mut draw = |low, high| random.between(low, high);
    run_given((ports, flows), (manner, flooded), RUN_NS, (flow, &times), &mut draw).1
}

/// The longest time of an event over the bound; `None` if the pair does not fit.
fn simulate(seed: u64) -> Option<f64> {
    let mut random = Random(seed ^ 0xe2e);
    let (network, switches) = network(&mut random);
    let snapshot = network.snapshot();
    let own = request(&mut random, 0, 2 * switches - 1);
    let arrivals = Arrivals::sporadic(own.contract.min_separation_ns);
    let source = system::host(seed, true, arrivals);
    let (source_flow, runs) = leave(&source, &mut random);
    let sink = system::host(seed ^ 0xff, false, arrivals);
    let mut stand = Stand::new(sink.clone());
    let sink_flow = HostFlow { system: sink.described(&stand.pieces()), flow: 0 };
    let stages = HostStages { source: Some(source_flow), sinks: [(own.destinations[0], sink_flow)].into() };
    let plan = Plan::new(&own, &stages).ok()?; // tidy-allow(dropped-cause): the caller counts what fits.
    let mut scheduler = Scheduler::default();
    let others = |random: &mut Random, scheduler: &mut Scheduler| {
        for _ in 0..random.between(0, 8) {
            let from = random.between(0, 2 * switches - 1);
            let to = (from + random.between(1, 2 * switches - 1)) % (2 * switches);
            // What does not fit is not there.
            drop(scheduler.admit(&snapshot, request(random, from, to)));
        }
    };
    others(&mut random, &mut scheduler);
    let admitted = scheduler.admit(&snapshot, plan.request.clone()).ok()?; // tidy-allow(dropped-cause): the same.
    others(&mut random, &mut scheduler);
    let claims = plan.certificates(&scheduler, &snapshot, admitted.id).expect("it is admitted");
    let claim = claims.values().next().expect("one reader");
    check(claim).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    let mut worst_ns = 0;
    stand.begin(&[]);
    for left in runs.iter().filter(|left| !left.is_empty()) {
        let departures: Vec<u64> = left.iter().map(|(_, done_ns)| *done_ns).collect();
        let first_ns = 5_000_000 - random.between(0, 1_000_000);
        let received = pass(&claim.network, claim.flow, &departures, first_ns, &mut random);
        let begin_ns = received.iter().min().copied().unwrap_or(0) - random.between(0, 1_000_000);
        let given: Vec<u64> = received.iter().map(|time| time - begin_ns).collect();
        let manner = if random.one_in(3) { Manner::Random } else { Manner::Critical(Releaser::Below) };
        stand.run_given(manner, RUN_NS, Some(&given), &mut random);
        let done = stand.done_of_first();
        assert_eq!(done.len(), left.len(), "seed {seed}: every event is received");
        let mut by_arrival: Vec<usize> = (0..given.len()).collect();
        by_arrival.sort_by_key(|event| given[*event]);
        for (event, (came_ns, done_ns)) in by_arrival.into_iter().zip(done) {
            let (written_ns, left_ns) = left[event];
            let in_network_ns = received[event] - (left_ns - departures[0] + first_ns);
            let took_ns = (left_ns - written_ns) + in_network_ns + (done_ns - came_ns);
            assert!(took_ns <= claim.bound_ns, "seed {seed}: {took_ns} > {} ns", claim.bound_ns);
            worst_ns = worst_ns.max(took_ns);
        }
    }
    assert!(worst_ns > 0, "seed {seed}: nothing was written");
    Some(worst_ns as f64 / claim.bound_ns as f64)
}

fn simulate_all(wanted: usize) {
    let ratios: Vec<f64> = (0..wanted as u64 * SEEDS_EACH).filter_map(simulate).take(wanted).collect();
    let largest = ratios.iter().copied().fold(0.0, f64::max);
    println!(
        "{} pairs; longest response over bound: median {:.2}, largest {largest:.2}",
        ratios.len(),
        median(&ratios)
    );
    assert_eq!(ratios.len(), wanted, "too few pairs fit");
}

/// 300 pairs with `TAKT_TEST_LONG=1`.
#[test]
fn no_event_from_write_to_callback_is_longer_than_its_composed_bound() {
    let is_long = std::env::var_os("TAKT_TEST_LONG").is_some_and(|value| value == "1");
    simulate_all(if is_long { 300 } else { 30 });
}
