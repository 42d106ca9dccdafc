//! End-to-end simulation: no event from the writing job to the receiving listener exceeds the bound
//! composed by `takt_sdn::schedule::Plan`.
//!
//! Writer's host, network and reader's host are simulated one after the other: the times at which
//! events leave one part are their arrival times at the next part. Both hosts use the production
//! executor with additional flows. The network is a `takt_sdn::simulation` at frame level with
//! other admitted flows. Every part starts at a critical instant. Since the clocks of the parts may
//! differ by any amount, the events of the pair are shifted to the time of most interference.

use std::fmt;

use takt_calculus::composition::{EndToEnd, HostFlow, HostPart, Unproven, check};
use takt_calculus::link::frame_time_ns;
use takt_calculus::network::NetworkCertificate;
use takt_calculus::network::simulation::{ArrivalPattern as NetworkPattern, run_given};
use takt_calculus::{Arrivals, Resource, Stage, analyze};
use takt_sdn::model::Snapshot;
use takt_sdn::schedule::{HostStages, Plan, Request, Scheduler};
use takt_sdn::simulation::{network, request};
use takt_testkit::{Random, is_full_length};

use super::report::median;
use super::system;
use super::test_bench::{ArrivalPattern, TestBench};

const MICROSECOND: u64 = 1_000;
/// Duration of arrivals at a host in one run.
const HOST_NS: u64 = 120_000_000;
/// Duration of arrivals of other flows at the network in one run.
const NETWORK_NS: u64 = 60_000_000;
/// Time of the critical instant in the network.
const CRITICAL_INSTANT_NS: u64 = 5_000_000;
/// Runs of network and reader's host for each run of the writer's host.
const PASSES: usize = 2;
/// Maximum number of seeds tried for each required pair.
const SEEDS_EACH: u64 = 20;

/// Times at which an event of the pair is written and leaves the writer's host.
#[derive(Clone, Copy)]
struct Departure {
    written_ns: u64,
    departed_ns: u64,
}

/// Event that exceeded its claimed bound.
#[derive(Debug)]
struct Exceeded {
    what: &'static str,
    took_ns: u64,
    claimed_ns: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} > {}", self.what, self.took_ns, self.claimed_ns)
    }
}

fn within(what: &'static str, took_ns: u64, claimed_ns: u64) -> Result<(), Exceeded> {
    if took_ns > claimed_ns { Err(Exceeded { what, took_ns, claimed_ns }) } else { Ok(()) }
}

/// Deliberate error in a composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// The network's contract uses the jitter of the writes, not that of the events that leave the
    /// writer's host.
    SourceJitter,
    /// The reader's host uses the jitter of the events that enter the network, not of those that
    /// leave it.
    NetworkJitter,
    /// The description of the writer's host omits the job below all others, which cannot be
    /// preempted.
    BlockingJob,
}

/// Pair in a network with other requests.
struct Case {
    seed: u64,
    own: Request,
    arrivals: Arrivals,
    snapshot: std::sync::Arc<Snapshot>,
    hosts: u64,
    source: HostFlow,
    sink: HostFlow,
    /// The limit of the pair is the minimum plus a twentieth of the network's bound.
    is_tight: bool,
    /// Generator of the other requests.
    random: Random,
}

/// Simulates the writer's host. Returns its description and the events that leave it in several
/// runs.
fn writer(seed: u64, arrivals: Arrivals, random: &mut Random) -> (HostFlow, Vec<Vec<Departure>>) {
    let plan = system::host(seed, None, arrivals);
    let mut test_bench = TestBench::new(plan.clone());
    let mut system = plan.described(&test_bench.pieces());
    // Time from the end of the job until the frames are in the queue of the interface.
    let stack_ns = random.between(0, 200) * MICROSECOND;
    system.flows[0].stages[0].delay_ns = stack_ns;
    test_bench.begin(&[]);
    let mut runs = Vec::new();
    for pattern in plan.releasers().into_iter().map(ArrivalPattern::Critical).chain([ArrivalPattern::Random]) {
        test_bench.run(pattern, HOST_NS, random);
        let mut leave = |(written_ns, done_ns)| Departure {
            written_ns,
            departed_ns: done_ns + if random.one_in(2) { stack_ns } else { random.between(0, stack_ns) },
        };
        let mut departures: Vec<Departure> = test_bench.done_of_first().into_iter().map(&mut leave).collect();
        departures.sort_by_key(|event| event.departed_ns);
        runs.push(departures);
    }
    runs.retain(|departures| !departures.is_empty());
    (HostFlow { system, flow: 0 }, runs)
}

/// Describes the reader's host. Its interface serves one sample at a time before the executor
/// receives it.
fn reader(plan: &system::Plan, pieces: &[u64], random: &mut Random) -> HostFlow {
    let mut system = plan.described(pieces);
    system.resources.push(Resource::new("interface"));
    let interface = Stage {
        resource: 1,
        priority: 0,
        piece_ns: random.between(1, 40) * MICROSECOND,
        piece_ns_min: 0,
        pieces: 1,
        delay_ns: random.between(0, 100) * MICROSECOND,
        delay_ns_min: 0,
    };
    system.flows[0].stages.insert(0, interface);
    HostFlow { system, flow: 0 }
}

/// Admits other requests and drops those that are rejected.
fn admit_others(case: &Case, random: &mut Random, scheduler: &mut Scheduler) {
    let most = if random.one_in(8) { 100 } else { 12 };
    for number in 0..random.between(0, most) {
        let requested = request(&mut |low, high| random.between(low, high), case.hosts, number);
        drop(scheduler.admit(&case.snapshot, requested));
    }
}

fn bound_ns(part: &Option<HostPart>) -> u64 {
    part.as_ref().and_then(HostPart::bound_ns).expect("it has a bound")
}

/// Composes the bound of a pair with its proof; `None` if the pair is not admitted. With a mistake,
/// the claim is wrong.
fn compose(case: &Case, mistake: Option<Mistake>) -> Option<EndToEnd> {
    let (mut random, mut own, mut source) = (case.random.clone(), case.own.clone(), case.source.clone());
    if mistake == Some(Mistake::BlockingJob) {
        source.system.flows.pop();
    }
    let stages = HostStages { source: Some(source), sinks: [(own.destinations[0], case.sink.clone())].into() };
    let mut plan = Plan::new(&own, &stages).ok()?; // tidy-allow(dropped-cause): not admitted
    let mut scheduler = Scheduler::default();
    admit_others(case, &mut random, &mut scheduler);
    if case.is_tight {
        let first = scheduler.admit(&case.snapshot, plan.request.clone()).ok()?; // tidy-allow(dropped-cause): not admitted
        scheduler.remove(first.id);
        let hosts_ns = own.contract.limit_ns - plan.request.contract.limit_ns;
        own.contract.limit_ns = hosts_ns + first.bound_ns + first.bound_ns / 20;
        plan = Plan::new(&own, &stages).ok()?; // tidy-allow(dropped-cause): not admitted
    }
    if mistake == Some(Mistake::SourceJitter) {
        plan.request.contract.jitter_ns = case.arrivals.jitter_ns;
    }
    let admitted = scheduler.admit(&case.snapshot, plan.request.clone()).ok()?; // tidy-allow(dropped-cause): not admitted
    admit_others(case, &mut random, &mut scheduler);
    let claims = plan.certificates(&scheduler, &case.snapshot, admitted.id).expect("it is admitted");
    let mut claim = claims.into_values().next().expect("one reader");
    if mistake == Some(Mistake::NetworkJitter) {
        let mut system = case.sink.system.clone();
        system.flows[0].arrivals = Some(claim.network.flows[claim.flow].arrivals);
        let certificate = analyze(&system).expect("it has a bound with more jitter");
        claim.sink = Some(HostPart { certificate, flow: 0, stages: None });
        let limit_ns = claim.network.flows[claim.flow].limit_ns;
        claim.bound_ns = bound_ns(&claim.source) + limit_ns + bound_ns(&claim.sink);
    }
    Some(claim)
}

/// Selects the event that is shifted to the critical instant of the next part: the first one, a
/// random one, or the first of the three closest ones.
fn anchor(times: &[u64], random: &mut Random) -> usize {
    match random.between(0, 3) {
        0 => 0,
        1 => random.below(times.len()),
        _ => {
            let spans = times.windows(3).enumerate().map(|(at, three)| (three[2] - three[0], at));
            spans.min().map_or(0, |(_, at)| at)
        }
    }
}

/// Simulates the network for events with ascending arrival times. Returns the arrival times,
/// shifted to the network's clock, and the reception times.
fn pass(claim: &EndToEnd, departures: &[u64], random: &mut Random) -> Result<(Vec<u64>, Vec<u64>), Exceeded> {
    let NetworkCertificate { ports, flows, bounds, .. } = &claim.network;
    let own = &flows[claim.flow];
    let hop = random.below(own.hops.len());
    let lead = |hop: &takt_calculus::network::Hop| {
        let port = &ports[hop.port];
        frame_time_ns(own.frames[0].len, port.rate_bps).expect("a rate") + port.delay_ns_min
    };
    let first_ns = CRITICAL_INSTANT_NS.saturating_sub(own.hops[..hop].iter().map(lead).sum());
    let times: Vec<u64> = departures.iter().map(|time| time - departures[0] + first_ns).collect();
    let pattern =
        if random.one_in(4) { NetworkPattern::Random } else { NetworkPattern::Aligned { flow: claim.flow, hop } };
    let flooded = random.one_in(2);
    let mut draw = |low, high| random.between(low, high);
    let (seen, received) = run_given((ports, flows), (pattern, flooded), NETWORK_NS, (claim.flow, &times), &mut draw);
    for (at, (longest_ns, bound)) in seen.longest_ns.iter().zip(bounds).enumerate() {
        let what = if at == claim.flow { "network" } else { "flow of others" };
        within(what, *longest_ns, bound.bound_ns())?;
    }
    for (port, queues) in ports.iter().zip(&seen.queues) {
        for (depth, (_, octets, frames)) in port.classes.iter().zip(queues) {
            within("octets of a queue", *octets, depth.octets)?;
            within("frames of a queue", *frames, depth.frames)?;
        }
    }
    Ok((times, received))
}

/// Returns the times at which events reach the executor of the reader's host, from ascending
/// arrival times at its interface.
fn enter(flow: &HostFlow, received: &[u64], random: &mut Random) -> Vec<u64> {
    let Stage { piece_ns, delay_ns, .. } = flow.system.flows[0].stages[0];
    let mut free_ns = 0;
    let through = received.iter().map(|time| {
        free_ns = free_ns.max(*time) + if random.one_in(2) { piece_ns } else { random.between(0, piece_ns) };
        free_ns + if random.one_in(2) { delay_ns } else { random.between(0, delay_ns) }
    });
    through.collect()
}

/// Simulates a pair end to end. Returns the longest latency of an event, or the event that exceeded
/// its claim.
fn simulate(
    case: &Case,
    claim: &EndToEnd,
    runs: &[Vec<Departure>],
    (test_bench, plan): (&mut TestBench, &system::Plan),
) -> Result<u64, Exceeded> {
    let mut random = Random(case.seed ^ 0x0f1e);
    let (source_ns, sink_ns) = (bound_ns(&claim.source), bound_ns(&claim.sink));
    let mut worst_ns = 0;
    for departures in runs.iter().flat_map(|departures| [departures; PASSES]) {
        departures
            .iter()
            .try_for_each(|event| within("writer's host", event.departed_ns - event.written_ns, source_ns))?;
        let times: Vec<u64> = departures.iter().map(|event| event.departed_ns).collect();
        let from = anchor(&times, &mut random);
        let departures = &departures[from..];
        let (sent, received) = pass(claim, &times[from..], &mut random)?;
        let mut events: Vec<usize> = (0..departures.len()).collect();
        events.sort_by_key(|event| received[*event]);
        let arrivals: Vec<u64> = events.iter().map(|event| received[*event]).collect();
        let mut through: Vec<(u64, usize)> =
            enter(&case.sink, &arrivals, &mut random).into_iter().zip(events).collect();
        through.sort_unstable();
        let entered: Vec<u64> = through.iter().map(|(time, _)| *time).collect();
        let from = anchor(&entered, &mut random);
        let given: Vec<u64> = entered[from..].iter().map(|time| time - entered[from]).collect();
        let releasers = plan.releasers();
        let pattern = match random.below(releasers.len() + 1) {
            at if at < releasers.len() => ArrivalPattern::Critical(releasers[at]),
            _ => ArrivalPattern::Random,
        };
        test_bench.run_given(pattern, HOST_NS, Some(&given), &mut random);
        let done = test_bench.done_of_first();
        assert_eq!(done.len(), given.len(), "seed {}: every event is received", case.seed);
        for ((entered_ns, event), (came_ns, done_ns)) in through[from..].iter().zip(done) {
            let Departure { written_ns, departed_ns } = departures[*event];
            let in_reader_ns = (entered_ns - received[*event]) + (done_ns - came_ns);
            within("reader's host", in_reader_ns, sink_ns)?;
            let took_ns = (departed_ns - written_ns) + (received[*event] - sent[*event]) + in_reader_ns;
            within("all", took_ns, claim.bound_ns)?;
            worst_ns = worst_ns.max(took_ns);
        }
    }
    Ok(worst_ns)
}

/// Creates the pair of a seed and returns the result of `evaluate`, which can simulate claims.
fn with_case<T>(
    seed: u64,
    evaluate: impl FnOnce(&Case, &mut dyn FnMut(&EndToEnd) -> Result<u64, Exceeded>) -> Option<T>,
) -> Option<T> {
    let mut random = Random(seed ^ 0xe2e);
    let mut draw = |low, high| random.between(low, high);
    let place = network(&mut draw);
    let mut own = request(&mut draw, place.hosts, u64::MAX);
    own.destinations.truncate(1);
    let contract = own.contract;
    let arrivals = Arrivals::bursts(contract.min_separation_ns, contract.burst);
    let arrivals = Arrivals { jitter_ns: arrivals.jitter_ns + contract.jitter_ns, ..arrivals };
    let (source, runs) = writer(seed, arrivals, &mut random);
    let plan = system::host(seed ^ 0xff, Some(contract.sample_len as usize), arrivals);
    let mut test_bench = TestBench::new(plan.clone());
    let pieces = test_bench.pieces();
    let sink = reader(&plan, &pieces, &mut random);
    let (is_tight, snapshot, hosts) = (random.one_in(2), place.network.snapshot(), place.hosts);
    let case = Case { seed, own, arrivals, snapshot, hosts, source, sink, is_tight, random };
    test_bench.begin(&[]);
    evaluate(&case, &mut |claim| simulate(&case, claim, &runs, (&mut test_bench, &plan)))
}

/// Returns whether the limit is tight, and the longest latency as a fraction of the bound; `None`
/// if the pair is not admitted.
fn ratio(seed: u64) -> Option<(bool, f64)> {
    with_case(seed, |case, simulate| {
        let claim = compose(case, None)?;
        check(&claim).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
        let worst_ns = simulate(&claim).unwrap_or_else(|exceeded| panic!("seed {seed}: {exceeded} ns\n{claim:#?}"));
        assert!(worst_ns > 0, "seed {seed}: nothing was written");
        Some((case.is_tight, worst_ns as f64 / claim.bound_ns as f64))
    })
}

fn print_ratios(what: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (ratios.get(ratios.len() / 10), ratios.last());
    let [low, high] = [low, high].map(|ratio| ratio.copied().unwrap_or(0.0));
    let (count, median) = (ratios.len(), median(&ratios));
    println!(
        "{count} {what}; longest seen over bound: median {median:.3}, 10th percentile {low:.3}, largest {high:.3}"
    );
}

/// Simulates 300 pairs with `TAKT_TEST_LONG=1`, else 20.
#[test]
fn latency_from_write_to_callback_never_exceeds_the_composed_bound() {
    let wanted = if is_full_length() { 300 } else { 20 };
    let ratios: Vec<(bool, f64)> = (0..wanted as u64 * SEEDS_EACH).filter_map(ratio).take(wanted).collect();
    let of = |tight: bool| ratios.iter().filter(|(is_tight, _)| *is_tight == tight).map(|(_, ratio)| *ratio).collect();
    print_ratios("pairs with tight limits", of(true));
    print_ratios("pairs with other limits", of(false));
    print_ratios("pairs in all", ratios.iter().map(|(_, ratio)| *ratio).collect());
    assert_eq!(ratios.len(), wanted, "too few pairs fit");
}

/// Composes pairs with a mistake. Returns their number and the events that exceeded the claim.
fn check_mistake(mistake: Mistake, wanted: usize) -> (usize, Vec<Exceeded>) {
    let check_case = |seed| {
        with_case(seed, |case, simulate| {
            let claim = compose(case, Some(mistake))?;
            let proof = check(&claim);
            let expected = match mistake {
                Mistake::SourceJitter => Err(Unproven::ToNetwork),
                Mistake::NetworkJitter => Err(Unproven::ToSink),
                // The proof is valid for the incomplete description.
                Mistake::BlockingJob => Ok(()),
            };
            // The tolerance of a meter can cover a small jitter. The claim is then valid.
            assert!(proof == expected || proof.is_ok(), "{mistake:?}, seed {seed}: {proof:?}");
            let exceeded = simulate(&claim).err();
            assert!(proof != Ok(()) || expected == Ok(()) || exceeded.is_none(), "{mistake:?}, seed {seed}");
            (proof == expected).then_some(exceeded)
        })
    };
    let checked: Vec<Option<Exceeded>> = (0..wanted as u64 * SEEDS_EACH).filter_map(check_case).take(wanted).collect();
    (checked.len(), checked.into_iter().flatten().collect())
}

#[test]
fn checker_and_simulation_detect_wrong_compositions() {
    let wanted = if is_full_length() { 300 } else { 30 };
    for mistake in [Mistake::SourceJitter, Mistake::NetworkJitter, Mistake::BlockingJob] {
        let (checked, found) = check_mistake(mistake, wanted);
        let first = found.first().map_or_else(|| "no event exceeds a claim".to_owned(), ToString::to_string);
        println!("{mistake:?}: {} of {checked} pairs exceed a claim; the first one: {first}", found.len());
        assert_eq!(checked, wanted, "too few pairs fit");
        // Events of one flow rarely meet behind a network, so only the checker must detect that
        // mistake.
        let is_seen = !found.is_empty() || mistake == Mistake::NetworkJitter;
        assert!(is_seen, "{mistake:?} is not found in {checked} pairs");
    }
}
