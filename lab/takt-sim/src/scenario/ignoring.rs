//! Applications that ignore remote participants, topics, writers and readers (DDS 1.4 §2.2.2.2.1).

use super::{Alteration, AlterationPlan, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::{MILLISECOND, Nanos};
use crate::rng::Rng;

impl Scenario {
    /// Adds ignored entities to 7 % of the worlds.
    pub(super) fn add_ignoring(&mut self, rng: &mut Rng) {
        if rng.chance(70_000) && self.presentation.is_none() && !self.has_static_endpoints {
            for _ in 0..rng.between(1, 3) {
                let at = rng.below(self.active);
                self.ignore(at, rng);
            }
        }
    }

    /// Creates a world in which participants ignore others, or parts of them, while samples are
    /// sent.
    pub(super) fn ignore_others(&mut self, rng: &mut Rng) {
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
            let transient_local = rng.chance(300_000);
            for _ in 0..rng.between(1, 2) {
                let keep_last = rng.chance(500_000).then(|| rng.between(1, 20) as u32);
                let qos = QosPlan { reliable: rng.chance(700_000), transient_local, keep_last, ..QosPlan::default() };
                let period = rng.between(10, 50) * MILLISECOND;
                let process = rng.below(self.processes.len() as u64) as usize;
                self.add(process, topic, qos, Role::Writer { period, burst: 1, samples: 1_000, endings: 0 }, 0);
            }
            for _ in 0..rng.between(2, 4) {
                let reliable = rng.chance(700_000);
                let qos = QosPlan { reliable, transient_local: transient_local && reliable, ..QosPlan::default() };
                let process = rng.below(self.processes.len() as u64) as usize;
                // Some endpoints are created after they are ignored.
                let create = if rng.chance(500_000) { 0 } else { rng.between(self.active / 2, self.active) };
                self.add(process, topic, qos, Role::Reader { period: 0 }, create);
            }
        }
        for _ in 0..rng.between(2, 4) {
            let at = rng.between(self.active / 4, self.active * 3 / 4);
            self.ignore(at, rng);
        }
    }

    /// Makes the participant of some endpoint ignore the endpoints matched with it, its topic, or
    /// another participant.
    fn ignore(&mut self, at: Nanos, rng: &mut Rng) {
        let owners: Vec<_> = (0..self.processes.len()).filter(|it| !self.processes[*it].endpoints.is_empty()).collect();
        let process = *rng.pick(&owners);
        let endpoint = rng.below(self.processes[process].endpoints.len() as u64) as usize;
        let is_writer = matches!(self.processes[process].endpoints[endpoint].role, Role::Writer { .. });
        let what = match rng.below(4) {
            0 => Alteration::IgnoreParticipant,
            1 => Alteration::IgnoreTopic,
            _ if is_writer => Alteration::IgnoreReaders,
            _ => Alteration::IgnoreWriters,
        };
        self.alterations.push(AlterationPlan { at, process, endpoint, what, time: 0 });
    }
}
