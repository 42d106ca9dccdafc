//! Simulation of a scenario: hosts, processes and the network, driven by a queue of events in true
//! time.

mod application;
mod durability;
mod external;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use takt_core::{Participant, Priority, Received};
use takt_wire::Guid;

use crate::check::EXPIRY_TOLERANCE;
use crate::check::exact::{DISPOSAL_MAX, LEASE_END_MAX};
use crate::check::progress::{HANDSHAKE_PERIODS, HEARTBEAT_PERIOD};
use crate::check::silence::{LastSecond, SILENCE};
use crate::check::{Checker, Rule, Violation};
use crate::clock::{HostClock, Nanos, SECOND};
use crate::counts;
use crate::domain::{Domain, DomainPlan};
use crate::durability::DurabilityModel;
use crate::hostile::{self, Hostile};
use crate::network::{Frame, Head, Network, NetworkCounters, Step};
use crate::process::{Endpoint, HostLocation, LEASE, Moment, Process, at_address, urgency_of};
use crate::randomness::Seeded;
use crate::recorded::{RecordedPeer, end_time};
use crate::rng::Rng;
use crate::scenario::{Alteration, FaultKind, Role, Scenario};
use crate::timeline::Timeline;

/// Delay of a datagram between two processes of a host.
const LOOPBACK_DELAY: Nanos = 10_000;

/// Minimum time from the last fault to the silent second: leases end, announcements pass and
/// repairs arrive. The time is longer if the missing samples need longer for [`TRANSMISSIONS`]
/// transmissions on the slowest link, or for a slow reader with limited history.
const DRAIN_TIME_MIN: Nanos = 3 * LEASE;

/// [`DRAIN_TIME_MIN`] of worlds in which participants authenticate each other. The lease of a
/// participant may have ended on one side only. That side then begins a handshake once per
/// [`takt_security::plugin::RENEWAL_PERIOD`].
const SECURED_DRAIN_TIME_MIN: Nanos = DRAIN_TIME_MIN + HANDSHAKE_PERIODS * HEARTBEAT_PERIOD;

/// Number of transmissions of a missing sample, since parts of it get lost or arrive twice. Also
/// the number of reads for one full history of a reader, since parts of coherent sets wait for
/// others.
const TRANSMISSIONS: u64 = 2;

/// Minimum octets of a sample per datagram, for samples in several datagrams.
const FRAGMENT_LEN_MIN: u64 = 1_000;

/// Maximum number of datagrams that a process sends at one moment. The send windows of all its
/// writers hold fewer.
const DATAGRAMS_AT_ONCE_MAX: u64 = 100_000;

/// Maximum number of events at one moment. A timer that is always due again immediately would keep
/// time from passing.
const EVENTS_AT_ONCE_MAX: u32 = 100_000;

/// Maximum length of a datagram.
const FRAME_LEN: usize = 65_507;

#[derive(Debug)]
enum Event {
    Start(usize),
    End(usize, bool),
    /// Replacement of the certificate and the permissions of a process.
    Renew(usize),
    /// End of the time in which matches with a process whose documents have expired must end.
    MustBeSeparated,
    /// End of the time in which all processes must unmatch these endpoints.
    MustBeUnmatched(Vec<Guid>),
    Stall(usize, Nanos),
    Create(usize, u32, usize),
    Delete(usize, u32, usize),
    Write(usize, u32, usize, u32),
    Take(usize, u32, usize),
    /// Continuation of a take that exceeded the batch.
    ContinueTake(usize, u32, usize),
    Timer(usize),
    Resume(usize),
    /// Processing of the next datagram, by a process with a cost per datagram.
    Work(usize),
    Network(Step),
    Loopback(usize, Frame),
    /// Next action of the hostile host.
    Attack,
    /// Transmission of the datagrams of the recorded participant that are due.
    Replay,
    /// Check before the end of the recorded participant (`false`), or after it (`true`).
    ReplayEnds(bool),
    /// Write to the topic that durability services keep.
    WriteDurable(usize, u32),
    /// Commit of received samples by a durability service.
    Commit(usize, u32),
    Fault(usize, bool),
    /// Request of a process for types of another one.
    RequestTypes(usize, u32),
    /// Index of the alteration; `true` for the resumption of a suspended one.
    Alter(usize, bool),
    WallJump(usize, i64),
    Drain,
    Silence,
    CheckProgress,
}

struct Entry {
    at: Nanos,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Entry {}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

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

    fn plan(&mut self) {
        let scenario = self.scenario;
        for (index, plan) in scenario.processes.iter().enumerate() {
            self.of_host[plan.host].push(index);
            self.at(plan.start, Event::Start(index));
            for end in plan.ends.iter().filter(|end| end.at < scenario.active) {
                self.at(end.at, Event::End(index, end.farewell));
                self.at((end.at + end.pause).min(scenario.active), Event::Start(index));
            }
            for (from, time) in plan.stalls.iter().filter(|(from, _)| *from < scenario.active) {
                self.at(*from, Event::Stall(index, (from + time).min(scenario.active)));
            }
        }
        for (index, member) in scenario.domain.iter().flat_map(|domain| &domain.members).enumerate() {
            if let Some(at) = member.renews_at {
                self.at(at, Event::Renew(index));
            }
            if let Some(expiry) = member.expiry {
                self.at(expiry.at() + EXPIRY_TOLERANCE, Event::MustBeSeparated);
            }
        }
        for (index, fault) in scenario.faults.iter().enumerate() {
            self.at(fault.from, Event::Fault(index, true));
            self.at(fault.until.min(scenario.active), Event::Fault(index, false));
        }
        for (index, plan) in scenario.alterations.iter().enumerate().filter(|(_, plan)| plan.at < scenario.active) {
            self.at(plan.at, Event::Alter(index, false));
            if plan.what == Alteration::Suspended(true) {
                self.at(plan.until().min(scenario.active), Event::Alter(index, true));
            }
        }
        for (host, plan) in scenario.hosts.iter().enumerate() {
            plan.wall_jumps.iter().for_each(|(at, by)| self.at(*at, Event::WallJump(host, *by)));
        }
        self.at(HEARTBEAT_PERIOD, Event::CheckProgress);
        if let Some(plan) = scenario.hostile {
            self.at(plan.start, Event::Attack);
        }
        if scenario.services.recorded.is_some() {
            let end_at = end_time(scenario.active);
            self.at(end_at - 1, Event::ReplayEnds(false));
            self.at(end_at + DISPOSAL_MAX, Event::ReplayEnds(true));
            self.schedule_recorded();
        }
        self.checker.only_safety = scenario.has_falsified();
        self.checker.forges_addresses = scenario.hostile.is_some_and(|plan| plan.impostor);
        self.checker.signed = scenario.domain.as_ref().is_some_and(DomainPlan::signs_messages);
        self.checker.introduced = scenario.services.discovery_server.is_some();
        self.checker.authenticated = scenario.domain.is_some();
        self.at(scenario.active, Event::Drain);
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Entry { at, order: self.order, event }));
    }

    /// Reports a violation if more than [`EVENTS_AT_ONCE_MAX`] events occur at one moment, since
    /// the simulation would not end.
    fn count_at_once(&mut self) {
        let so_far = if self.events_at_time.0 == self.now { self.events_at_time.1 } else { 0 };
        self.events_at_time = (self.now, so_far + 1);
        if so_far >= EVENTS_AT_ONCE_MAX {
            let text = format!("time does not pass: more than {EVENTS_AT_ONCE_MAX} events at one moment");
            self.checker.report(self.now, Rule::Work, text);
        }
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

    /// Runs an action of an application: after the stall if its process is stalled, and not at all
    /// if that incarnation of the process has ended.
    fn run_action(&mut self, process: usize, life: u32, event: Event, action: impl FnOnce(&mut Self)) {
        let of = &self.processes[process];
        if of.core.is_none() || of.incarnation != life {
            return;
        }
        if of.stalled_until > self.now {
            return self.at(of.stalled_until, event);
        }
        action(self);
        self.process_outputs(process);
    }

    fn start(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if process.core.is_some() {
            return;
        }
        let expires_at = self.domain.as_ref().and_then(|domain| domain.expires_at(index));
        if expires_at.is_some_and(|at| at <= self.now) {
            self.timeline.note(self.now, index, "cannot start with expired documents");
            return self.await_renewal(index);
        }
        self.timeline.note(self.now, index, "starts");
        let clock = &self.clocks[process.host];
        let admission = self
            .domain
            .as_ref()
            .map(|domain| domain.security_config(index, process.next_candidate(), clock.wall(self.now)));
        let rights = self.domain.as_ref().map(|domain| domain.rights(index));
        process.start(self.now, clock, self.scenario, &self.locations, admission);
        if let Some(rights) = rights {
            self.checker.set_rights(process.prefix, rights);
            self.checker.set_expiry(process.prefix, expires_at);
        }
        let life = process.incarnation;
        self.start_durable(index);
        if let Some(period) = self.scenario.services.lookup_period {
            self.at(self.now + period, Event::RequestTypes(index, life));
        }
        for (at, plan) in self.scenario.processes[index].endpoints.iter().enumerate() {
            self.at(self.now + plan.create, Event::Create(index, life, at));
            if let Some(delete) = plan.delete {
                self.at(self.now + delete, Event::Delete(index, life, at));
            }
        }
        self.process_outputs(index);
    }

    /// Schedules the start of a process after its renewal, if it has one.
    fn await_renewal(&mut self, index: usize) {
        let members = self.scenario.domain.as_ref().map(|domain| &domain.members);
        if let Some(at) = members.and_then(|members| members[index].renews_at).filter(|at| *at > self.now) {
            self.at(at + 1, Event::Start(index));
        }
    }

    fn renew(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let resumes = process.stalled_until;
        if resumes > self.now {
            return self.at(resumes, Event::Renew(index));
        }
        let Some(settings) = self.domain.as_mut().and_then(|domain| domain.renew(index)) else { return };
        self.timeline.note(self.now, index, "has another certificate");
        process.renew(settings, Moment { now: self.now, clock: &self.clocks[process.host] });
        if let Some(domain) = self.domain.as_ref().filter(|_| process.core.is_some()) {
            let is_reliable = self.scenario.faults.is_empty() && self.scenario.hostile.is_none();
            self.checker.renewed(process.prefix, domain.rights(index), is_reliable);
        }
        self.process_outputs(index);
    }

    /// Ends a process. Its participant announces the end if `announces_end` is set and the process
    /// is not stalled.
    fn end(&mut self, index: usize, announces_end: bool) {
        self.timeline.note(self.now, index, if announces_end { "says farewell" } else { "is killed" });
        let process = &mut self.processes[index];
        let gone = process.guids();
        let mut time = LEASE_END_MAX;
        if let Some(core) = process.core.as_mut().filter(|_| announces_end && process.stalled_until <= self.now) {
            core.shutdown();
            self.process_outputs(index);
            time = DISPOSAL_MAX;
        }
        self.at(self.now + time, Event::MustBeUnmatched(gone));
        self.processes[index].end(time, &mut self.checker);
        self.end_durable(index);
    }

    fn timer(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if process.timer > self.now || process.core.is_none() {
            return;
        }
        process.timer = Nanos::MAX;
        if process.stalled_until > self.now {
            return;
        }
        let local = self.clocks[process.host].local(self.now);
        if let Some(core) = &mut process.core {
            core.handle_timeout(local);
        }
        self.process_outputs(index);
    }

    fn resume(&mut self, index: usize) {
        if self.processes[index].core.is_none() {
            return;
        }
        self.timeline.note(self.now, index, "resumes");
        if self.locations[self.processes[index].host].moves > 0 {
            self.notify_addresses(index);
        }
        if self.scenario.processes[index].cost > 0 {
            self.schedule_input(index);
        } else {
            while let Some(frame) = self.processes[index].dequeue() {
                self.receive(index, &frame);
            }
            self.checker.resumed(self.processes[index].readers());
        }
        self.process_outputs(index);
    }

    /// Schedules the processing of the next datagram in the socket, after that of the last one.
    fn schedule_input(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if !process.inbox.is_empty() && !std::mem::replace(&mut process.is_scheduled, true) {
            let at = self.now.max(process.busy_until);
            self.at(at, Event::Work(index));
        }
    }

    fn work(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.is_scheduled = false;
        if process.core.is_none() || process.stalled_until > self.now {
            return;
        }
        let Some(frame) = process.dequeue() else { return };
        process.busy_until = self.now + self.scenario.processes[index].cost;
        self.receive(index, &frame);
        self.process_outputs(index);
        self.schedule_input(index);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Idle { port } => self.network.idle(self.now, port, &mut self.steps),
            Step::Arrive { port, frame } => {
                if let Some((host, frame)) = self.network.arrive(self.now, port, frame, &mut self.steps) {
                    self.arrive(host, frame);
                }
            }
        }
        self.schedule_steps();
    }

    fn schedule_steps(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        for (delay, step) in steps.drain(..) {
            if let Step::Arrive { port, frame } = &step {
                let (from, to) = self.network.ends(*port);
                self.timeline.left(self.now, from, to, frame);
            }
            self.at(self.now + delay, Event::Network(step));
        }
        self.steps = steps;
    }

    /// Delivers a frame that arrived at a host.
    fn arrive(&mut self, host: usize, frame: Frame) {
        if frame.corrupt || self.is_partitioned(frame.from, host) || self.locations[host].has_no_interface {
            return;
        }
        if frame.host.is_none() && !self.scenario.hosts[host].hears_multicast {
            return;
        }
        if frame.host.is_some() {
            return if let Some(process) = at_address(&frame.to) {
                self.deliver(process, frame)
            };
        }
        for at in 0..self.of_host[host].len() {
            self.deliver(self.of_host[host][at], frame.clone());
        }
        if self.external_participant_host() == Some(host) {
            self.deliver(self.processes.len(), frame);
        }
    }

    fn deliver(&mut self, index: usize, frame: Frame) {
        if index >= self.processes.len() {
            return self.deliver_to_external(&frame);
        }
        let process = &mut self.processes[index];
        let listens = || self.locations[process.host].listens(&frame.to, process.host, index);
        if process.core.is_none() || frame.host.is_some() && !listens() {
            return;
        }
        if process.stalled_until > self.now || self.scenario.processes[index].cost > 0 {
            // As in a real socket, a datagram without space is dropped.
            let _fits = process.queue(frame);
            return if process.stalled_until <= self.now {
                self.schedule_input(index)
            };
        }
        self.receive(index, &frame);
        self.process_outputs(index);
    }

    fn receive(&mut self, index: usize, frame: &Frame) {
        self.mix(index, &frame.bytes);
        self.timeline.received(self.now, index, frame);
        let process = &mut self.processes[index];
        let local = self.clocks[process.host].local(self.now);
        if frame.hostile {
            process.meter.record_hostile(&frame.bytes);
        }
        self.checker.received(self.now, &frame.bytes, process.readers());
        let from = Received { source: frame.source, multicast: frame.to.is_multicast() };
        let Some(core) = &mut process.core else { return };
        let refusals = |core: &Participant| {
            let counters = core.counters();
            counters.unauthentic_messages + counters.malformed_messages + counters.malformed_submessages
        };
        let before = refusals(core);
        core.handle_datagram(local, from, &frame.bytes);
        let is_refused = refusals(core) > before;
        let accepted = process.accepted.as_mut().filter(|_| !is_refused);
        if accepted.is_some_and(|accepted| accepted.is_repeated(process.prefix, &frame.bytes)) {
            let text = format!("process {index} accepts a protected message of {} octets again", frame.bytes.len());
            self.checker.report(self.now, Rule::Replay, text);
        }
    }

    /// Handles the events of a process, sends its datagrams, and schedules its next timer.
    fn process_outputs(&mut self, index: usize) {
        let loses = self.network.counters.queue_drops > 0;
        (self.checker.calm, self.checker.sound) = (self.is_calm && !loses, self.is_sound && !loses);
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            self.processes[index].handle_events(self.now, &mut self.checker, &mut ready);
            self.note_security_log(index);
            let idle = ready.is_empty();
            for at in ready.drain(..) {
                self.resume_application(index, at);
            }
            self.ready = ready;
            if let Some(recorded) = &self.recorded {
                let moment = Moment { now: self.now, clock: &self.clocks[self.processes[index].host] };
                self.processes[index].exchange(recorded.recording(), moment, &mut self.checker);
            }
            self.take_durable(index);
            self.transmit(index);
            if idle {
                break;
            }
        }
        let process = &mut self.processes[index];
        let Some(core) = &mut process.core else { return };
        process.meter.check(core, self.now, index, &mut self.checker);
        let Some(due) = core.poll_timeout() else { return };
        let at = self.clocks[process.host].when(due, self.now);
        if at < process.timer {
            process.timer = at;
            self.at(at, Event::Timer(index));
        }
    }

    /// Writes the log entries of the security plugins to the timeline.
    fn note_security_log(&mut self, index: usize) {
        let Some(core) = &mut self.processes[index].core else { return };
        while let Some(entry) = core.poll_security_log() {
            self.timeline.note(self.now, index, &format!("logs: {}", entry.text));
        }
    }

    fn transmit(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if !process.core.as_ref().is_some_and(|core| core.has_transmit()) {
            return;
        }
        let host = process.host;
        let source = self.locations[host].address(host, index);
        let local = self.clocks[host].local(self.now);
        let Some(mut core) = process.core.take() else { return };
        let mut most = core.transmit_priority();
        let sent_before = process.sent;
        while let Some(transmit) = core.poll_transmit(local, &mut self.frame) {
            self.processes[index].sent += 1;
            if self.processes[index].sent - sent_before > DATAGRAMS_AT_ONCE_MAX {
                let text = format!("process {index} sends more than {DATAGRAMS_AT_ONCE_MAX} datagrams at one moment");
                self.checker.report(self.now, Rule::Work, text);
                break;
            }
            let is_meant = urgency_of(transmit.flow).is_none_or(|urgency| urgency == transmit.priority);
            if Some(transmit.priority) > most || !is_meant {
                let text =
                    format!("process {index} sent {:?} of {:?} behind {most:?}", transmit.priority, transmit.flow);
                self.checker.report(self.now, Rule::Urgency, text);
            }
            // A sent datagram may cause a probe of multicast reception.
            most = Some(transmit.priority.max(Priority::NORMAL));
            if self.scenario.boundaries.counts != 0 {
                counts::advance(&mut self.frame[..transmit.len], self.scenario.boundaries.counts);
            }
            let bytes: Rc<[u8]> = self.frame[..transmit.len].into();
            let priority = transmit.flow.0 as u8;
            for &to in transmit.destinations {
                if to == hostile::victim() {
                    self.processes[index].meter.record_to_victim(bytes.len(), self.now, index, &mut self.checker);
                }
                let bytes = Rc::clone(&bytes);
                self.send(index, Head { source, from: host, to, host: None, priority, bytes, hostile: false });
            }
        }
        self.processes[index].core = Some(core);
        self.schedule_steps();
    }

    fn send(&mut self, sender: usize, head: Head) {
        let host = head.from;
        if self.locations[host].has_no_interface {
            return;
        }
        let is_multicast = head.to.is_multicast();
        let outsider = self.external_participant_host();
        let host_of = |to: usize| self.processes.get(to).map(|process| process.host).or(outsider);
        let to = at_address(&head.to).filter(|to| !is_multicast && *to <= self.processes.len());
        let target = to.and_then(host_of);
        let frame = Frame::new(Head { host: target, ..head });
        if let Some(hostile) = self.hostile.as_mut().filter(|hostile| hostile.plan.attacks_domain && !frame.hostile) {
            hostile.overhear(frame.to, &frame.bytes);
        }
        self.timeline.sent(self.now, sender, &frame);
        if is_multicast {
            for at in 0..self.of_host[host].len() {
                let other = self.of_host[host][at];
                if other != sender {
                    self.at(self.now + LOOPBACK_DELAY, Event::Loopback(other, frame.clone()));
                }
            }
            if sender < self.processes.len() && outsider == Some(host) {
                self.at(self.now + LOOPBACK_DELAY, Event::Loopback(self.processes.len(), frame.clone()));
            }
            return self.network.send(self.now, host, frame, &mut self.steps);
        }
        let Some(to) = to.filter(|_| target.is_some()) else { return };
        if target == Some(host) {
            return self.at(self.now + LOOPBACK_DELAY, Event::Loopback(to, frame));
        }
        self.network.send(self.now, host, frame, &mut self.steps);
    }

    fn fault(&mut self, index: usize, on: bool) {
        let fault = &self.scenario.faults[index];
        self.timeline.fault(self.now, fault, on);
        match fault.kind {
            FaultKind::Partition { flapping, .. } => {
                let was_on = self.active_partitions.contains(&index);
                self.active_partitions.retain(|active| *active != index);
                if was_on && self.active_partitions.is_empty() {
                    self.checker.healed(self.now);
                }
                let next = self.now + flapping;
                if on && !was_on {
                    self.active_partitions.push(index);
                }
                if flapping > 0
                    && next < fault.until.min(self.scenario.active)
                    && (on || was_on || self.now > fault.from)
                {
                    self.at(next, Event::Fault(index, !on));
                }
            }
            FaultKind::Link { .. } => self.network.set_fault(self.now, index, &fault.kind, on, &mut self.steps),
            FaultKind::Move { host } => self.move_host(host, on),
        }
        self.schedule_steps();
    }

    /// Removes the interface of a host, or restores it with another address.
    fn move_host(&mut self, host: usize, is_removed: bool) {
        let site = &mut self.locations[host];
        site.moves += u8::from(!is_removed);
        site.has_no_interface = is_removed;
        for at in 0..self.of_host[host].len() {
            let process = self.of_host[host][at];
            if self.processes[process].stalled_until <= self.now && self.processes[process].core.is_some() {
                self.notify_addresses(process);
                self.process_outputs(process);
            }
        }
    }

    fn notify_addresses(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let host = process.host;
        process.moved(self.now, &self.clocks[host], self.scenario, self.locations[host]);
    }

    /// Returns the maximum time that a reader with limited history takes to read its missing
    /// samples.
    fn reading_time(&self) -> Nanos {
        let mut longest = 0;
        for (plan, process) in self.scenario.processes.iter().zip(&self.processes) {
            for (plan, endpoint) in plan.endpoints.iter().zip(&process.endpoints) {
                if let (Role::Reader { period }, Some(held), Some(Endpoint::Reader { id, .. })) =
                    (plan.role, plan.qos.max_samples, endpoint)
                {
                    longest = longest.max(TRANSMISSIONS * period * self.checker.owed_to(*id) / u64::from(held));
                }
            }
        }
        longest
    }

    fn drain(&mut self) {
        self.is_draining = true;
        let owed = self.checker.owed(|topic| self.scenario.topics[topic].sizes.1 as u64);
        let transmission = u128::from(owed * TRANSMISSIONS * 8) * u128::from(SECOND)
            / u128::from(self.scenario.network.bits_per_second);
        let handled = 2
            * TRANSMISSIONS
            * self.scenario.processes.iter().map(|plan| plan.cost).max().unwrap_or(0)
            * self.checker.owed(|topic| 1 + self.scenario.topics[topic].sizes.1 as u64 / FRAGMENT_LEN_MIN);
        let lapse = self.checker.longest_lease() * 3 / 2;
        let drain_time = if self.domain.is_some() { SECURED_DRAIN_TIME_MIN } else { DRAIN_TIME_MIN };
        let idle_at = self.now + drain_time.max(transmission as Nanos).max(self.reading_time()).max(handled).max(lapse);
        self.end = idle_at + SILENCE;
        self.at(idle_at, Event::Silence);
        self.taken_while_active = self.checker.taken;
        let processes = if self.scenario.presentation.is_some() { self.processes.len() } else { 0 };
        for index in 0..processes {
            let moment = Moment { now: self.now, clock: &self.clocks[self.processes[index].host] };
            self.processes[index].toggle_coherent_set(moment, true, &mut self.checker);
            self.process_outputs(index);
        }
    }

    /// Runs the progress checks. Congestion suspends them: a queue drops frames, a link transmits
    /// for more than half of a heartbeat period, or a socket has a backlog of that time.
    fn check_progress(&mut self) {
        let drops = std::mem::replace(&mut self.drops_seen, self.network.counters.queue_drops);
        let plans = self.scenario.processes.iter();
        let waits = self.processes.iter_mut().zip(plans).map(|(process, plan)| process.deepest() * plan.cost).max();
        let is_busy = self.network.busiest().max(waits.unwrap_or(0)) > HEARTBEAT_PERIOD / 2;
        if is_busy || drops != self.drops_seen {
            self.congested = self.now;
        }
        let is_narrow = self.scenario.network.path_mtu < usize::MAX;
        let quiet_since =
            self.scenario.quiet_since(self.now, LEASE).filter(|_| !is_narrow).map(|since| since.max(self.congested));
        self.checker.check_progress(self.now, quiet_since);
        self.at(self.now + HEARTBEAT_PERIOD, Event::CheckProgress);
    }

    fn is_partitioned(&self, from: usize, to: usize) -> bool {
        self.active_partitions.iter().any(|&index| match self.scenario.faults[index].kind {
            FaultKind::Partition { group, one_way, .. } => {
                let inside = |host: usize| group >> (host % 64) & 1 == 1;
                inside(from) != inside(to) && (!one_way || inside(from))
            }
            FaultKind::Link { .. } | FaultKind::Move { .. } => false,
        })
    }

    fn wall_jump(&mut self, host: usize, by: i64) {
        self.clocks[host].set_wall(by);
        let (local, wall) = (self.clocks[host].local(self.now), self.clocks[host].wall(self.now));
        for at in 0..self.of_host[host].len() {
            let index = self.of_host[host][at];
            let process = &mut self.processes[index];
            let Some(core) = &mut process.core else { continue };
            core.set_wall_clock(local, wall);
            if process.stalled_until <= self.now {
                self.process_outputs(index);
            }
        }
    }

    fn finish(&mut self) {
        for process in 0..self.processes.len() {
            for at in 0..self.processes[process].endpoints.len() {
                let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
                self.processes[process].take(at, usize::MAX, moment, &mut self.checker);
            }
        }
        self.checker.check_idle_traffic(self.end, self.end - self.scenario.active, &self.last_second());
        self.checker.finish(self.now);
        if let Some(model) = &self.durability {
            self.processes.iter().for_each(|process| process.check_durable(self.now, model, &mut self.checker));
        }
        for process in &mut self.processes {
            let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
            process.finish(moment, self.now - self.scenario.active, &mut self.checker);
        }
        let lived = |plan: &crate::scenario::ProcessPlan| self.now.saturating_sub(plan.start);
        self.participant_time = self.scenario.processes.iter().map(lived).sum();
    }

    /// Returns the datagrams that each running process sent in the last second.
    fn last_second(&self) -> Vec<LastSecond> {
        let last = self.processes.iter().zip(&self.sent_before_silence).filter_map(|(process, (sent, probes))| {
            Some(LastSecond {
                process: process.index,
                prefix: process.core.as_ref()?.guid().prefix,
                sent: process.sent - sent,
                probes: process.multicast_probes_sent() - probes,
                assertions: self.scenario.assertions(process.index, SILENCE),
            })
        });
        last.collect()
    }

    /// Adds a received datagram, its time and its receiver to the digest, in words of eight octets.
    fn mix(&mut self, process: usize, bytes: &[u8]) {
        let mut digest = self.digest;
        let mut add = |word: u64| digest = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        add(self.now ^ (process as u64) << 48);
        add(bytes.len() as u64);
        for word in bytes.chunks(8) {
            let mut octets = [0; 8];
            octets[..word.len()].copy_from_slice(word);
            add(u64::from_le_bytes(octets));
        }
        self.digest = digest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Quiet;

    #[test]
    fn unlimited_events_at_one_moment_are_a_violation() {
        let (scenario, mut timeline) = (Scenario::exact(0), Quiet);
        let mut world = World::new(&scenario, &mut timeline);
        let is_broken_after = |world: &mut World<'_>, events: u32| {
            (0..events).for_each(|_| world.handle(Event::Timer(0)));
            world.checker.violation().is_some()
        };
        assert!(!is_broken_after(&mut world, EVENTS_AT_ONCE_MAX));
        world.now += 1;
        assert!(!is_broken_after(&mut world, EVENTS_AT_ONCE_MAX), "time has passed");
        assert!(is_broken_after(&mut world, 1));
    }
}
