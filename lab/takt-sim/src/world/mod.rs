//! Simulation of a scenario: hosts, processes and the network, driven by a queue of events in true
//! time.

mod application;
mod drain;
mod durability;
mod events;
mod external;
mod faults;
mod lifecycle;
mod traffic;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::events::{Entry, Event};
use crate::check::{Checker, Violation};
use crate::clock::{HostClock, Nanos};
use crate::domain::Domain;
use crate::durability::DurabilityModel;
use crate::hostile::Hostile;
use crate::network::{Network, NetworkCounters, Step};
use crate::process::{HostLocation, Process};
use crate::randomness::Seeded;
use crate::recorded::RecordedPeer;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::timeline::Timeline;

/// Maximum length of a datagram.
const FRAME_LEN: usize = 65_507;

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// First violation.
    pub violation: Option<Violation>,
    /// Digest of all delivered octets and their times, equal in all runs of a scenario.
    pub digest: u64,
    /// Simulated time.
    pub simulated: Nanos,
    /// Sum of the simulated time of all participants.
    pub participant_time: Nanos,
    /// Number of samples written.
    pub written: u64,
    /// Number of samples taken.
    pub taken: u64,
    /// Number of coherent sets that ended.
    pub sets: u64,
    /// Number of samples taken while applications wrote.
    pub taken_while_active: u64,
    /// Time from the last end of a partition until all readers had their samples; `None` without a
    /// partition, or if a reader still waits.
    pub recovery: Option<Nanos>,
    /// Counters of the network.
    pub network: NetworkCounters,
    /// Octets that other participants received from the hostile host, and octets that they sent to
    /// its victim.
    pub hostile_octets: (u64, u64),
}

/// Separates the random numbers of [`World::blocking`] from those of the processes.
const BLOCKING_SALT: u64 = 0x626c_6f63_6b65_6421;

/// Running simulation.
pub struct World<'a> {
    scenario: &'a Scenario,
    now: Nanos,
    events: BinaryHeap<Reverse<Entry>>,
    order: u64,
    /// Time of the last event, and number of events at that time.
    events_at_time: (Nanos, u32),
    clocks: Vec<HostClock>,
    /// Network location of each host.
    locations: Vec<HostLocation>,
    network: Network,
    processes: Vec<Process>,
    hostile: Option<Hostile>,
    recorded: Option<RecordedPeer>,
    durability: Option<DurabilityModel>,
    domain: Option<Domain>,
    /// Seeded random numbers for the security plugins, in scenarios with a domain.
    _random: Option<Seeded>,
    /// Durations for which fragments are delayed, in scenarios in which network interfaces limit
    /// them.
    blocking: Option<Rng>,
    /// Processes of each host.
    of_host: Vec<Vec<usize>>,
    checker: Checker,
    timeline: &'a mut dyn Timeline,
    active_partitions: Vec<usize>,
    frame: Vec<u8>,
    steps: Vec<(Nanos, Step)>,
    ready: Vec<usize>,
    is_draining: bool,
    /// End of the simulation.
    end: Nanos,
    taken_while_active: u64,
    /// Value of [`Scenario::is_calm`].
    is_calm: bool,
    /// Value of [`Scenario::is_sound`].
    is_sound: bool,
    /// Datagrams and probes of multicast reception that each process sent before the last second.
    sent_before_silence: Vec<(u64, u64)>,
    /// Frames dropped by queues until the last call of [`Self::check_progress`].
    drops_seen: u64,
    /// Time of the last call of [`Self::check_progress`] that found congestion.
    congested: Nanos,
    digest: u64,
    participant_time: Nanos,
}

/// Runs a scenario to its end, or to the first violation.
pub fn run(scenario: &Scenario, timeline: &mut dyn Timeline) -> Report {
    let mut world = World::new(scenario, timeline);
    while world.checker.violation().is_none() {
        let Some(Reverse(entry)) = world.events.pop() else { break };
        if entry.at > world.end {
            break;
        }
        world.now = entry.at;
        world.checker.now = entry.at;
        world.handle(entry.event);
    }
    world.now = world.now.min(world.end);
    if world.checker.violation().is_none() {
        world.finish();
    }
    Report {
        violation: world.checker.violation().cloned(),
        digest: world.digest,
        simulated: world.now,
        participant_time: world.participant_time,
        written: world.checker.written,
        taken: world.checker.taken,
        sets: world.checker.sets_ended,
        taken_while_active: world.taken_while_active,
        recovery: world.checker.recovery(),
        network: world.network.counters,
        hostile_octets: world.hostile_octets(),
    }
}

/// Runs a scenario until `done` returns `true`, or to its end. `done` is called once per period
/// with the time and the processes.
///
/// # Errors
/// Returns the first violation.
pub fn run_until(
    scenario: &Scenario,
    timeline: &mut dyn Timeline,
    period: Nanos,
    mut done: impl FnMut(Nanos, &mut [Process]) -> bool,
) -> Result<(), Violation> {
    let mut world = World::new(scenario, timeline);
    let mut next_check = period;
    while let Some(Reverse(entry)) = world.events.pop().filter(|Reverse(entry)| entry.at <= scenario.active) {
        while next_check <= entry.at {
            if done(next_check, &mut world.processes) {
                return Ok(());
            }
            next_check += period;
        }
        world.now = entry.at;
        world.handle(entry.event);
        if let Some(violation) = world.checker.violation() {
            return Err(violation.clone());
        }
    }
    Ok(())
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, timeline: &'a mut dyn Timeline) -> Self {
        let clocks = scenario.hosts.iter().enumerate().map(|(host, plan)| {
            let mut clock = HostClock::new(host, plan.drift_ppb);
            clock.set_wall(scenario.boundaries.wall);
            clock
        });
        let process = |(index, plan): (usize, &crate::scenario::ProcessPlan)| {
            let rng = Rng::new(scenario.seed ^ (index as u64 + 1) << 48);
            Process::new(index, plan.host, plan.endpoints.len(), rng)
        };
        let random = scenario.domain.as_ref().map(|_| Seeded::new(scenario.seed));
        let clocks: Vec<HostClock> = clocks.collect();
        let domain = |plan| Domain::new(plan, scenario.topics.len(), clocks[0].wall(0));
        let mut world = Self {
            scenario,
            now: 0,
            events: BinaryHeap::new(),
            order: 0,
            events_at_time: (0, 0),
            locations: vec![
                HostLocation {
                    is_v6: scenario.network.is_v6,
                    has_second: scenario.network.has_second,
                    ..HostLocation::default()
                };
                scenario.hosts.len()
            ],
            network: Network::new(scenario),
            processes: scenario.processes.iter().enumerate().map(process).collect(),
            hostile: scenario.hostile.map(|plan| Hostile::new(plan, scenario.processes.len(), scenario.seed)),
            recorded: scenario
                .services
                .recorded
                .map(|plan| RecordedPeer::new(plan, scenario.processes.len(), scenario.active)),
            durability: scenario.services.durability.map(DurabilityModel::new),
            domain: scenario.domain.as_ref().map(domain),
            clocks,
            _random: random,
            blocking: scenario.limits_fragments().then(|| Rng::new(scenario.seed ^ BLOCKING_SALT)),
            of_host: vec![Vec::new(); scenario.hosts.len()],
            checker: Checker::default(),
            timeline,
            active_partitions: Vec::new(),
            frame: vec![0; FRAME_LEN],
            steps: Vec::new(),
            ready: Vec::new(),
            is_draining: false,
            end: scenario.active,
            taken_while_active: 0,
            is_calm: scenario.is_calm(),
            is_sound: scenario.is_sound(),
            sent_before_silence: Vec::new(),
            drops_seen: 0,
            congested: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            participant_time: 0,
        };
        world.checker.light = scenario.is_light();
        world.checker.exact = scenario.is_exact();
        world.checker.exact_sets = scenario.has_exact_sets();
        world.checker.set_presentation(scenario.presentation.unwrap_or_default());
        world.checker.steady = scenario.has_steady_clocks();
        world.checker.takes_parts = scenario.batches.is_some();
        world.checker.reads = scenario.reads;
        world.plan();
        world
    }

    fn handle(&mut self, event: Event) {
        self.count_at_once();
        match event {
            Event::Start(process) => self.start(process),
            Event::End(process, farewell) => self.end(process, farewell),
            Event::Renew(process) => self.renew(process),
            Event::MustBeSeparated => {
                for process in &mut self.processes {
                    process.must_be_separated(self.now, &mut self.checker);
                }
            }
            Event::MustBeUnmatched(guids) => {
                for process in &mut self.processes {
                    process.must_have_unmatched(self.now, &guids, &mut self.checker);
                }
            }
            Event::Stall(process, until) => {
                self.timeline.note(self.now, process, "stalled");
                self.processes[process].stalled_until = until;
                self.at(until, Event::Resume(process));
            }
            Event::Create(process, life, at) => {
                self.run_action(process, life, event, |world| world.create(process, at))
            }
            Event::Delete(process, life, at) => {
                self.run_action(process, life, event, |world| world.delete(process, at))
            }
            Event::Write(process, life, at, left) => {
                self.run_action(process, life, event, |world| world.write(process, at, left));
            }
            Event::Take(process, life, at) => self.run_action(process, life, event, |world| world.take(process, at)),
            Event::ContinueTake(process, life, at) => {
                self.run_action(process, life, event, |world| world.take_batch(process, at))
            }
            Event::Unblock(process, life, flow) => {
                self.run_action(process, life, event, |world| world.unblock(process, flow));
            }
            Event::Timer(process) => self.timer(process),
            Event::Resume(process) => self.resume(process),
            Event::Work(process) => self.work(process),
            Event::Network(step) => self.step(step),
            Event::Loopback(process, frame) => self.deliver(process, frame),
            Event::Attack => self.send_hostile_burst(),
            Event::Replay => self.replay(),
            Event::ReplayEnds(is_over) => self.replay_ends(is_over),
            Event::WriteDurable(process, life) => {
                self.run_action(process, life, event, |world| world.write_durable(process, life))
            }
            Event::Commit(service, life) => self.commit_durable(service, life, event),
            Event::RequestTypes(process, life) => {
                self.run_action(process, life, event, |world| world.request_types(process, life))
            }
            Event::Fault(index, on) => self.fault(index, on),
            Event::Alter(index, resumes) => self.alter(index, resumes),
            Event::WallJump(host, by) => self.wall_jump(host, by),
            Event::CheckProgress => self.check_progress(),
            Event::Drain => self.drain(),
            Event::Silence => {
                let so_far = |process: &Process| (process.sent, process.multicast_probes_sent());
                self.sent_before_silence = self.processes.iter().map(so_far).collect();
            }
        }
    }
}
