//! Generation of systems from a seed: the load of the executor, and its description for the
//! analysis.

use std::collections::BTreeSet;

use takt_calculus::system::Server;
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};
use takt_core::Priority;
use takt_schedule::lock_waits;
use takt_testkit::Random;

use super::Releaser;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// Source of a flow's events and the work for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Samples of `octets` octets in one or more datagrams. Each datagram is received, then a
    /// listener is called.
    Topic { participant: usize, octets: usize },
    /// Application job.
    Job,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedFlow {
    pub(super) kind: Kind,
    pub(super) priority: i32,
    pub(super) arrivals: Arrivals,
    /// Execution time of one run of the job or one listener call.
    pub(super) cost_ns: u64,
}

/// Calls of other threads into each participant.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedCalls {
    pub(super) hold_ns: u64,
    pub(super) gap_ns: u64,
}

/// System to be simulated.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) class: &'static str,
    pub(super) participants: usize,
    /// Samples arrive by shared memory, else by the network.
    pub(super) by_memory: bool,
    pub(super) flows: Vec<PlannedFlow>,
    /// Execution time of receiving one datagram, by priority.
    pub(super) receive_ns: Vec<(i32, u64)>,
    /// Execution time of a job of normal priority of any kind.
    pub(super) normal_ns: u64,
    /// Execution time of an application job at priority -10 that is always ready.
    pub(super) below_ns: u64,
    /// Datagrams of normal priority per millisecond. Their listener takes as long as a normal job.
    pub(super) normal_load: u64,
    pub(super) calls: Option<PlannedCalls>,
}

impl Plan {
    /// Returns the execution time of receiving one datagram of this priority.
    pub(super) fn receive_ns_of(&self, priority: i32) -> u64 {
        self.receive_ns.iter().find(|(known, _)| *known == priority).map_or(self.normal_ns, |(_, ns)| *ns)
    }

    /// Returns the jobs at whose start all events arrive: for each priority of a flow, the longest
    /// job below it.
    pub(super) fn releasers(&self) -> Vec<Releaser> {
        let mut releasers = vec![Releaser::Below];
        for victim in &self.flows {
            let lower = self.flows.iter().enumerate().filter(|(_, flow)| flow.priority < victim.priority);
            let longest = lower.max_by_key(|(_, flow)| flow.cost_ns).filter(|(_, flow)| flow.cost_ns > self.below_ns);
            let releaser = longest.map_or(Releaser::Below, |(at, _)| Releaser::Flow(at));
            if !releasers.contains(&releaser) {
                releasers.push(releaser);
            }
        }
        releasers
    }

    /// Returns the maximum time from the arrival of a normal datagram to the end of the next normal
    /// job: the running job, the period of the normal server, the job running then, and the lock
    /// before and after each of them.
    pub(super) fn normal_wait_ns(&self) -> u64 {
        let above_ns = self.flows.iter().map(|flow| flow.cost_ns).max().unwrap_or(0);
        let lock_ns = 3 * self.lock_ns();
        let begun_ns = self.below_ns.max(self.normal_ns);
        begun_ns + Priority::NORMAL_SERVER_PERIOD.as_nanos() as u64 + above_ns + self.normal_ns + lock_ns
    }

    /// Returns the maximum time that a job waits for the locks of all participants.
    fn lock_ns(&self) -> u64 {
        let priorities: BTreeSet<i32> = self.flows.iter().map(|flow| flow.priority).chain([0, -10]).collect();
        let participants = self.participants as u64;
        let hold_ns = self.calls.map_or(0, |calls| calls.hold_ns) * participants;
        lock_waits(participants, priorities.len() as u64) * hold_ns
    }

    /// Returns the description for the analysis. `pieces` is the number of datagrams of a sample of
    /// each flow.
    pub(super) fn described(&self, pieces: &[u64]) -> System {
        let stage = |priority, piece_ns, pieces| Stage {
            resource: 0,
            priority,
            piece_ns,
            piece_ns_min: 0,
            pieces,
            delay_ns: 0,
            delay_ns_min: 0,
        };
        let flow = |(at, planned): (usize, &PlannedFlow)| {
            let PlannedFlow { kind, priority, arrivals, cost_ns } = *planned;
            let stage = match kind {
                Kind::Job => stage(priority, cost_ns, 1),
                Kind::Topic { .. } => stage(priority, cost_ns.max(self.receive_ns_of(priority)), pieces[at] + 1),
            };
            Flow { name: format!("{at}"), arrivals: Some(arrivals), stages: vec![stage], limit_ns: None }
        };
        let mut flows: Vec<Flow> = self.flows.iter().enumerate().map(flow).collect();
        for (priority, piece_ns) in [(0, self.normal_ns), (-10, self.below_ns)] {
            let stages = vec![stage(priority, piece_ns, 1)];
            flows.push(Flow { name: format!("at {priority}"), arrivals: None, stages, limit_ns: None });
        }
        let server = Server {
            priority: Priority::NORMAL.get(),
            period_ns: Priority::NORMAL_SERVER_PERIOD.as_nanos() as u64,
            piece_ns: self.normal_ns,
        };
        let lock_ns = self.lock_ns();
        let executor = Resource { lock_ns, server: Some(server), ..Resource::new("executor") };
        System { resources: vec![executor], flows }
    }
}

/// Class of systems that are not adversarial.
pub(super) const ANY: &str = "any";

/// Generates a random system.
pub(super) fn any(seed: u64) -> Plan {
    let mut random = Random(seed);
    let participants = random.between(1, 3) as usize;
    let count = random.between(2, 7);
    let share = random.between(200, 900) / count;
    let flows = (0..count).map(|_| flow(&mut random, participants, share, 5)).collect();
    let calls = (participants == 1 && random.one_in(2)).then(|| PlannedCalls {
        hold_ns: random.between(1, 30) * MICROSECOND,
        gap_ns: random.between(0, 500) * MICROSECOND,
    });
    complete(ANY, flows, participants, calls, &mut random)
}

/// Generates a flow with the given share of the executor in thousandths, at one of `priorities`
/// priorities.
fn flow(random: &mut Random, participants: usize, share: u64, priorities: u64) -> PlannedFlow {
    let period_ns = random.between(1_000, 20_000) * MICROSECOND;
    let jitter_ns = if random.one_in(2) { random.between(0, 2 * period_ns) } else { 0 };
    let distance_ns = if random.one_in(2) { random.between(0, period_ns / 2) } else { 0 };
    let is_job = random.one_in(2);
    let octets = if random.one_in(3) { random.between(1, 5) as usize * 1000 } else { 8 };
    let participant = random.between(0, participants as u64 - 1) as usize;
    // Each sample needs a receive job and a listener call.
    let pieces = if is_job { 1 } else { octets as u64 / 1000 + 2 };
    PlannedFlow {
        kind: if is_job { Kind::Job } else { Kind::Topic { participant, octets } },
        priority: [40, 46, 20, 5, 30][random.between(0, priorities - 1) as usize],
        arrivals: Arrivals { period_ns, jitter_ns, distance_ns },
        cost_ns: (period_ns * share / 1000 / pieces).max(1),
    }
}

/// Completes a system. Receiving a datagram of a priority takes as long as the shortest listener of
/// that priority.
fn complete(
    class: &'static str,
    flows: Vec<PlannedFlow>,
    participants: usize,
    calls: Option<PlannedCalls>,
    random: &mut Random,
) -> Plan {
    let topics = || flows.iter().filter(|flow| flow.kind != Kind::Job);
    let shortest = |priority| topics().filter(|flow| flow.priority == priority).map(|flow| flow.cost_ns).min();
    let receive_ns = topics().filter_map(|flow| Some((flow.priority, shortest(flow.priority)?))).collect();
    Plan {
        class,
        participants,
        by_memory: random.one_in(2),
        receive_ns,
        normal_ns: random.between(5, 200) * MICROSECOND,
        below_ns: random.between(10, 3000) * MICROSECOND,
        normal_load: random.between(0, 5),
        flows,
        calls,
    }
}

/// Generates adversarial systems, which provoke late responses.
pub(super) fn adversarial(seed: u64) -> Plan {
    let mut random = Random(seed ^ 0xbad);
    let job = |priority, period_us, cost_us| PlannedFlow {
        kind: Kind::Job,
        priority,
        arrivals: Arrivals::sporadic(period_us * MICROSECOND),
        cost_ns: cost_us * MICROSECOND,
    };
    let topic =
        |participant, octets, flow: PlannedFlow| PlannedFlow { kind: Kind::Topic { participant, octets }, ..flow };
    match seed % 6 {
        // All flows have the same priority, and their jobs use nearly the whole capacity.
        0 => {
            let (period_us, n) = (random.between(3_000, 6_000), random.between(2, 4));
            let jobs = (0..n).map(|n| job(40, period_us + 700 * n, period_us * 850 / 1000 / (n + 2).max(3)));
            let sample = topic(0, 8, job(40, 100_000, random.between(20, 100)));
            complete("equals", jobs.chain([sample]).collect(), 1, None, &mut random)
        }
        // A burst of medium priority occupies the executor for more than two periods of the server.
        1 => {
            let urgent = topic(0, 8, job(46, 1_000, random.between(10, 50)));
            let burst = random.between(300, 600);
            let arrivals = Arrivals::bursts(300 * MILLISECOND, burst);
            let flood = PlannedFlow { arrivals, ..job(10, 300_000, random.between(60, 100)) };
            let flood =
                if random.one_in(2) { topic(0, 8, PlannedFlow { cost_ns: flood.cost_ns / 2, ..flood }) } else { flood };
            let plan = complete("flood", vec![urgent, flood], 1, None, &mut random);
            Plan { normal_load: 20, ..plan }
        }
        // Many participants, each with flows of several priorities.
        2 => {
            let flow = |n: u64| {
                topic(n as usize % 8, 8, job([46, 30, 10][n as usize % 3], 8_000 + 500 * n, 60 + 10 * (n % 5)))
            };
            let plan = complete("participants", (0..16).map(flow).collect(), 8, None, &mut random);
            Plan { normal_load: 5, ..plan }
        }
        // Large samples in many datagrams, interleaved with others.
        3 => {
            let large = topic(0, random.between(30, 100) as usize * 1000, job(46, 60_000, random.between(10, 80)));
            let others = [job(46, 10_000, 200), topic(0, 8, job(30, 5_000, 80)), job(5, 20_000, 900)];
            let plan = complete("pieces", others.into_iter().chain([large]).collect(), 1, None, &mut random);
            Plan { by_memory: false, normal_load: 20, ..plan }
        }
        // Other threads call `write` and `take` without a pause.
        4 => {
            let hold_ns = random.between(10, 100) * MICROSECOND;
            let flows = vec![
                topic(0, 8, job(46, 5_000, random.between(10, 100))),
                job(30, 8_000, random.between(10, 500)),
                topic(0, 8, job(10, 20_000, random.between(10, 200))),
            ];
            complete("calls", flows, 1, Some(PlannedCalls { hold_ns, gap_ns: 0 }), &mut random)
        }
        // Application jobs above, between and below the topics.
        _ => {
            let jobs =
                [63, 40, 20, 5].map(|priority| job(priority, random.between(4_000, 12_000), random.between(50, 800)));
            let topics = [46, 30, 10].map(|priority| topic(0, 8, job(priority, random.between(8_000, 15_000), 80)));
            complete("jobs", jobs.into_iter().chain(topics).collect(), 1, None, &mut random)
        }
    }
}

/// Generates a host of a pair: a random system with an additional first flow. The flow is a job
/// that writes or, with `received`, samples of that many octets with a listener.
pub(super) fn host(seed: u64, received: Option<usize>, arrivals: Arrivals) -> Plan {
    let mut random = Random(seed);
    let kind = received.map_or(Kind::Job, |octets| Kind::Topic { participant: 0, octets });
    // A sample is received in several datagrams, and its listener is called.
    let pieces = received.map_or(1, |octets| octets as u64 / 1000 + 2);
    let cost_ns = (arrivals.period_ns * random.between(10, 250) / 1000 / pieces).min(300 * MICROSECOND);
    let own = PlannedFlow { kind, priority: [46, 30, 10][random.between(0, 2) as usize], arrivals, cost_ns };
    let (count, participants) = (random.between(2, 6), random.between(1, 2) as usize);
    let share = random.between(50, 500) / count;
    let others: Vec<PlannedFlow> = (0..count).map(|_| flow(&mut random, participants, share, 5)).collect();
    let plan = complete("host", [own].into_iter().chain(others).collect(), participants, None, &mut random);
    Plan { below_ns: plan.below_ns.min(500 * MICROSECOND), ..plan }
}

/// Generates systems of several participants on one executor, which other threads call without a
/// pause.
pub(super) fn locked(seed: u64) -> Plan {
    let mut random = Random(seed ^ 0x10c);
    let participants = random.between(2, 4) as usize;
    let flow = |n: u64| PlannedFlow {
        kind: if n.is_multiple_of(4) {
            Kind::Job
        } else {
            Kind::Topic { participant: n as usize % participants, octets: 8 }
        },
        priority: [46, 30, 10][n as usize % 3],
        arrivals: Arrivals::sporadic((40_000 + 3_000 * n) * MICROSECOND),
        cost_ns: (50 + 10 * n) * MICROSECOND,
    };
    let flows = (0..6).map(flow).collect();
    let calls = PlannedCalls { hold_ns: random.between(1, 10) * MICROSECOND, gap_ns: 0 };
    complete("locks", flows, participants, Some(calls), &mut random)
}
