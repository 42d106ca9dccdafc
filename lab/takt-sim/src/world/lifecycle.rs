//! Life of the processes of a world: start, renewal of the documents, timers, stall and end.

use super::World;
use super::events::Event;
use crate::check::exact::{DISPOSAL_MAX, LEASE_END_MAX};
use crate::clock::Nanos;
use crate::process::Moment;

impl World<'_> {
    /// Runs an action of an application: after the stall if its process is stalled, and not at all
    /// if that incarnation of the process has ended.
    pub(super) fn run_action(&mut self, process: usize, life: u32, event: Event, action: impl FnOnce(&mut Self)) {
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

    pub(super) fn start(&mut self, index: usize) {
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

    pub(super) fn renew(&mut self, index: usize) {
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
    pub(super) fn end(&mut self, index: usize, announces_end: bool) {
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

    pub(super) fn timer(&mut self, index: usize) {
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

    pub(super) fn resume(&mut self, index: usize) {
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
}
