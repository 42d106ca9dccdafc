//! Actions of the applications of a world: creation and deletion of endpoints, writes, takes and
//! alterations.

use super::World;
use super::events::Event;
use crate::check::exact::DISPOSAL_MAX;
use crate::clock::Nanos;
use crate::process::{Endpoint, Moment, TAKES_EVERY};
use crate::scenario::{Alteration, Role};

/// Time between two takes of a reader that takes in batches.
const BETWEEN_TAKES: Nanos = 1_000;

impl World<'_> {
    pub(super) fn create(&mut self, process: usize, at: usize) {
        let plan = &self.scenario.processes[process].endpoints[at];
        let topic = &self.scenario.topics[plan.topic];
        let clock = &self.clocks[self.processes[process].host];
        let moment = Moment { now: self.now, clock };
        self.processes[process].create(at, plan, topic, moment, &mut self.checker);
        self.timeline.note(self.now, process, &format!("creates endpoint {at}: {plan:?}"));
        let life = self.processes[process].incarnation;
        match plan.role {
            Role::Writer { period, samples, .. } => {
                self.at(self.now + period, Event::Write(process, life, at, samples));
            }
            Role::Reader { period: 0 } => {}
            Role::Reader { period } => {
                if let Some(Endpoint::Reader { id, .. }) = self.processes[process].endpoints[at] {
                    let every = if self.scenario.reads { TAKES_EVERY } else { 1 };
                    self.checker.takes_every(id, u64::from(every) * period);
                }
                self.at(self.now + period, Event::Take(process, life, at));
            }
        }
    }

    /// Makes a process request types from another one, and repeats this periodically.
    pub(super) fn request_types(&mut self, process: usize, life: u32) {
        let Some(period) = self.scenario.services.lookup_period.filter(|_| !self.is_draining) else { return };
        let others = self.processes.iter().filter(|other| other.index != process);
        let others: Vec<_> = others.map(|other| (other.index, other.prefix)).collect();
        let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
        self.processes[process].request_types(&others, moment, &mut self.checker);
        self.at(self.now + period, Event::RequestTypes(process, life));
    }

    pub(super) fn delete(&mut self, process: usize, at: usize) {
        self.timeline.note(self.now, process, &format!("deletes endpoint {at}"));
        let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
        let gone = self.processes[process].delete(at, moment, &mut self.checker);
        self.at(self.now + DISPOSAL_MAX, Event::MustBeUnmatched(gone.into_iter().collect()));
    }

    pub(super) fn write(&mut self, process: usize, at: usize, left: u32) {
        if self.is_draining {
            return;
        }
        let Role::Writer { period, burst, .. } = self.scenario.processes[process].endpoints[at].role else { return };
        let burst = burst.min(left);
        if self.scenario.batches.is_some() {
            self.write_batch(process, at, burst);
        } else {
            for _ in 0..burst {
                let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
                self.processes[process].toggle_coherent_set(moment, false, &mut self.checker);
                self.write_one(process, at, false);
            }
        }
        if left > burst {
            let life = self.processes[process].incarnation;
            self.at(self.now + period, Event::Write(process, life, at, left - burst));
        }
    }

    /// Writes a batch like `write_batch` of `takt`: a sample that finds no space waits with all
    /// that follow it. No sample replaces one that could be sent.
    fn write_batch(&mut self, process: usize, at: usize, count: u32) {
        let written = (0..count).take_while(|_| self.write_one(process, at, true)).count() as u32;
        if written < count && !self.processes[process].is_postponed(at) {
            self.processes[process].postpone(at, count - written);
        }
    }

    /// Writes the next change of a writer; false if there is no space. In a batch, earlier samples
    /// that it would replace are sent first.
    fn write_one(&mut self, process: usize, at: usize, is_of_batch: bool) -> bool {
        let plan = &self.scenario.processes[process].endpoints[at];
        let Role::Writer { endings, .. } = plan.role else { return false };
        let topic = &self.scenario.topics[plan.topic];
        let Some(draft) = self.processes[process].draft(at, (topic, endings), &self.checker) else { return false };
        if is_of_batch && self.processes[process].displaces_unsent(at, &draft) {
            self.transmit(process);
        }
        let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
        self.processes[process].write(at, &draft, moment, &mut self.checker)
    }

    pub(super) fn take(&mut self, process: usize, at: usize) {
        let Role::Reader { period } = self.scenario.processes[process].endpoints[at].role else { return };
        if self.scenario.reads && period > 0 {
            let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
            self.processes[process].read_and_take(at, moment, &mut self.checker);
        } else {
            self.take_batch(process, at);
        }
        if period > 0 {
            let life = self.processes[process].incarnation;
            self.at(self.now + period, Event::Take(process, life, at));
        }
    }

    /// Takes all samples, or as many as a batch holds, and the rest a moment later.
    pub(super) fn take_batch(&mut self, process: usize, at: usize) {
        let most = self.scenario.batches.unwrap_or(usize::MAX);
        let moment = Moment { now: self.now, clock: &self.clocks[self.processes[process].host] };
        if self.processes[process].take(at, most, moment, &mut self.checker) {
            let life = self.processes[process].incarnation;
            self.at(self.now + BETWEEN_TAKES, Event::ContinueTake(process, life, at));
        }
    }

    /// Handles the notification that a writer has space again, or a reader has data.
    pub(super) fn resume_application(&mut self, process: usize, at: usize) {
        match self.scenario.processes[process].endpoints[at].role {
            Role::Writer { .. } if self.is_draining => {}
            Role::Writer { .. } if self.scenario.batches.is_some() => {
                let count = self.processes[process].resume(at);
                self.write_batch(process, at, count);
            }
            Role::Writer { .. } => _ = self.write_one(process, at, false),
            Role::Reader { period: 0 } => self.take_batch(process, at),
            Role::Reader { .. } => {}
        }
    }

    /// Makes an application alter one of its endpoints as soon as it gets processor time.
    pub(super) fn alter(&mut self, index: usize, resumes: bool) {
        let plan = &self.scenario.alterations[index];
        let process = &mut self.processes[plan.process];
        if process.stalled_until > self.now {
            let until = process.stalled_until;
            return self.at(until, Event::Alter(index, resumes));
        }
        let what = if resumes { Alteration::Suspended(false) } else { plan.what };
        let of = &self.scenario.processes[plan.process].endpoints[plan.endpoint];
        let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
        process.alter(plan.endpoint, what, (of, &self.scenario.topics[of.topic]), moment, &mut self.checker);
        self.timeline.note(self.now, plan.process, &format!("alters endpoint {}: {what:?}", plan.endpoint));
        self.congested = self.now;
        self.process_outputs(plan.process);
    }
}
