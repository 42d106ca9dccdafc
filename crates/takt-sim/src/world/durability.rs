//! Events of a topic that a durability service keeps.

use super::{Event, World};
use crate::durability::DurabilityRole;
use crate::process::Moment;

impl World<'_> {
    /// Starts a process that uses the topic.
    pub(super) fn start_durable(&mut self, index: usize) {
        let Some(keeping) = &mut self.durability else { return };
        let process = &mut self.processes[index];
        let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
        process.create_durable_endpoint(keeping, moment, &mut self.checker);
        if matches!(keeping.plan.role_of(index), Some(DurabilityRole::Writer | DurabilityRole::Forger)) {
            let (at, life) = (self.now + keeping.plan.period, process.incarnation);
            self.at(at, Event::WriteDurable(index, life));
        }
    }

    /// Ends a process that uses the topic.
    pub(super) fn end_durable(&mut self, index: usize) {
        let Some(keeping) = &mut self.durability else { return };
        keeping.writer_ended(index);
        if let Some(DurabilityRole::Receiver(service)) = keeping.plan.role_of(index) {
            keeping.crash(service);
        }
    }

    /// Makes a writer write its next sample, or a forger the next ones in the names of all writers.
    pub(super) fn write_durable(&mut self, index: usize, life: u32) {
        let Some(keeping) = self.durability.as_mut().filter(|_| !self.is_draining) else { return };
        let process = &mut self.processes[index];
        let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
        process.write_durable(keeping, moment);
        process.relay_forged(keeping, moment, &mut self.checker);
        let at = self.now + keeping.plan.period;
        self.at(at, Event::WriteDurable(index, life));
    }

    /// Makes a process take the received changes. A service schedules their commit.
    pub(super) fn take_durable(&mut self, index: usize) {
        let Some(keeping) = &mut self.durability else { return };
        let process = &mut self.processes[index];
        process.take_durable(keeping, Moment { now: self.now, clock: &self.clocks[process.host] }, &mut self.checker);
        if let Some(DurabilityRole::Receiver(service)) = keeping.plan.role_of(index)
            && keeping.begins_transaction(service)
        {
            let (at, life) = (self.now + keeping.plan.commit_time, process.incarnation);
            self.at(at, Event::Commit(service, life));
        }
    }

    /// Makes a service commit the received changes, acknowledge and relay them.
    pub(super) fn commit_durable(&mut self, service: usize, life: u32, event: Event) {
        let Some(plan) = self.durability.as_ref().map(|keeping| keeping.plan) else { return };
        let (hearing, serving) = (plan.receiving_process(service), plan.relaying_process(service));
        self.run_action(hearing, life, event, |world| {
            if let Some(keeping) = &mut world.durability {
                keeping.commit(service);
            }
            world.processes[hearing].acknowledge_durable();
        });
        if let Some(keeping) = &self.durability {
            let process = &mut self.processes[serving];
            let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
            process.relay_durable(keeping, moment, &mut self.checker);
        }
        self.process_outputs(serving);
    }
}
