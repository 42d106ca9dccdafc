//! Events of a topic that a durability service keeps.

use super::World;
use super::events::Event;
use crate::durability::DurabilityRole;
use crate::process::Moment;

impl World<'_> {
    /// Starts a process that uses the topic.
    pub(super) fn start_durable(&mut self, index: usize) {
        let Some(model) = &mut self.durability else { return };
        let process = &mut self.processes[index];
        let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
        process.create_durable_endpoint(model, moment, &mut self.checker);
        if matches!(model.plan.role_of(index), Some(DurabilityRole::Writer | DurabilityRole::Forger)) {
            let (at, life) = (self.now + model.plan.period, process.incarnation);
            self.at(at, Event::WriteDurable(index, life));
        }
    }

    /// Ends a process that uses the topic.
    pub(super) fn end_durable(&mut self, index: usize) {
        let Some(model) = &mut self.durability else { return };
        model.writer_ended(index);
        if let Some(DurabilityRole::Receiver(service)) = model.plan.role_of(index) {
            model.crash(service);
        }
    }

    /// Makes a writer write its next sample, or a forger the next ones in the names of all writers.
    pub(super) fn write_durable(&mut self, index: usize, life: u32) {
        let Some(model) = self.durability.as_mut().filter(|_| !self.is_draining) else { return };
        let process = &mut self.processes[index];
        let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
        process.write_durable(model, moment);
        process.relay_forged(model, moment, &mut self.checker);
        let at = self.now + model.plan.period;
        self.at(at, Event::WriteDurable(index, life));
    }

    /// Makes a process take the received changes. A service schedules their commit.
    pub(super) fn take_durable(&mut self, index: usize) {
        let Some(model) = &mut self.durability else { return };
        let process = &mut self.processes[index];
        process.take_durable(model, Moment { now: self.now, clock: &self.clocks[process.host] }, &mut self.checker);
        if let Some(DurabilityRole::Receiver(service)) = model.plan.role_of(index)
            && model.begins_transaction(service)
        {
            let (at, life) = (self.now + model.plan.commit_time, process.incarnation);
            self.at(at, Event::Commit(service, life));
        }
    }

    /// Makes a service commit the received changes, acknowledge and relay them.
    pub(super) fn commit_durable(&mut self, service: usize, life: u32, event: Event) {
        let Some(plan) = self.durability.as_ref().map(|model| model.plan) else { return };
        let (receiving, relaying) = (plan.receiving_process(service), plan.relaying_process(service));
        self.run_action(receiving, life, event, |world| {
            if let Some(model) = &mut world.durability {
                model.commit(service);
            }
            world.processes[receiving].acknowledge_durable();
        });
        if let Some(model) = &self.durability {
            let process = &mut self.processes[relaying];
            let moment = Moment { now: self.now, clock: &self.clocks[process.host] };
            process.relay_durable(model, moment, &mut self.checker);
        }
        self.process_outputs(relaying);
    }
}
