//! Event queue of a world: the events in order of their true time, and the events that a scenario
//! schedules at its start.
//!
//! Events of one time are handled in the order in which they were scheduled.

use std::cmp::Reverse;

use takt_core::FlowTag;
use takt_wire::Guid;

use super::World;
use crate::check::exact::DISPOSAL_MAX;
use crate::check::progress::HEARTBEAT_PERIOD;
use crate::check::{EXPIRY_TOLERANCE, Rule};
use crate::clock::Nanos;
use crate::domain::DomainPlan;
use crate::network::{Frame, Step};
use crate::recorded::end_time;
use crate::scenario::Alteration;

/// Maximum number of events at one moment. A timer that is always due again immediately would keep
/// time from passing.
const EVENTS_AT_ONCE_MAX: u32 = 100_000;

#[derive(Debug)]
pub(super) enum Event {
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
    /// The queue of the network interface has room for fragments of this flow.
    Unblock(usize, u32, FlowTag),
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

pub(super) struct Entry {
    pub(super) at: Nanos,
    pub(super) order: u64,
    pub(super) event: Event,
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

impl World<'_> {
    pub(super) fn at(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Entry { at, order: self.order, event }));
    }

    /// Reports a violation if more than [`EVENTS_AT_ONCE_MAX`] events occur at one moment, since
    /// the simulation would not end.
    pub(super) fn count_at_once(&mut self) {
        let so_far = if self.events_at_time.0 == self.now { self.events_at_time.1 } else { 0 };
        self.events_at_time = (self.now, so_far + 1);
        if so_far >= EVENTS_AT_ONCE_MAX {
            let text = format!("time does not pass: more than {EVENTS_AT_ONCE_MAX} events at one moment");
            self.checker.report(self.now, Rule::Work, text);
        }
    }

    pub(super) fn plan(&mut self) {
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
}

#[cfg(test)]
mod tests {
    use super::{EVENTS_AT_ONCE_MAX, Event, World};
    use crate::scenario::Scenario;
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
