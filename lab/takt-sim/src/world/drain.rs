//! Checks of a world as a whole: progress while applications write, the drain after the last fault,
//! the silent second, and the checks at the end.

use super::World;
use super::events::Event;
use crate::check::progress::{HANDSHAKE_PERIODS, HEARTBEAT_PERIOD};
use crate::check::silence::{LastSecond, SILENCE};
use crate::clock::{Nanos, SECOND};
use crate::process::{Endpoint, LEASE, Moment};
use crate::scenario::Role;

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

impl World<'_> {
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

    pub(super) fn drain(&mut self) {
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
    pub(super) fn check_progress(&mut self) {
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

    pub(super) fn finish(&mut self) {
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
}
