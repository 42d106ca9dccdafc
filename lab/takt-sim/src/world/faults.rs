//! Faults of a world: partitions, faulty links, hosts that move to another address, and jumps of a
//! wall clock.

use super::World;
use super::events::Event;
use crate::scenario::FaultKind;

impl World<'_> {
    pub(super) fn fault(&mut self, index: usize, on: bool) {
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

    pub(super) fn notify_addresses(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let host = process.host;
        process.moved(self.now, &self.clocks[host], self.scenario, self.locations[host]);
    }

    pub(super) fn is_partitioned(&self, from: usize, to: usize) -> bool {
        self.active_partitions.iter().any(|&index| match self.scenario.faults[index].kind {
            FaultKind::Partition { group, one_way, .. } => {
                let inside = |host: usize| group >> (host % 64) & 1 == 1;
                inside(from) != inside(to) && (!one_way || inside(from))
            }
            FaultKind::Link { .. } | FaultKind::Move { .. } => false,
        })
    }

    pub(super) fn wall_jump(&mut self, host: usize, by: i64) {
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
}
