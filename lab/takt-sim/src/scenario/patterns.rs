//! PARTITION with patterns and with several names, changed while samples are sent.

use super::{Alteration, AlterationPlan, Impairment, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::MILLISECOND;
use crate::partitions;
use crate::rng::Rng;

impl Scenario {
    /// Creates a world of endpoints in partitions of all kinds.
    pub(super) fn match_by_pattern(&mut self, rng: &mut Rng) {
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
            for index in 0..rng.between(3, 8) {
                let (reliable, transient_local) = (rng.chance(700_000), rng.chance(200_000));
                let partition = rng.below(partitions::COUNT.into()) as u8;
                let qos = QosPlan { reliable, transient_local, partition, ..QosPlan::default() };
                let period = rng.between(5, 30) * MILLISECOND;
                let role = if index == 0 || rng.chance(300_000) {
                    Role::Writer { period, burst: 1, samples: 2_000, endings: 0 }
                } else {
                    Role::Reader { period: 0 }
                };
                let process = rng.below(self.processes.len() as u64) as usize;
                let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
                self.add(process, topic, qos, role, create);
            }
        }
        for _ in 0..rng.below(6) {
            let process = rng.below(self.processes.len() as u64) as usize;
            let endpoints = self.processes[process].endpoints.len() as u64;
            if endpoints > 0 {
                let (endpoint, at) = (rng.below(endpoints) as usize, rng.below(self.active));
                let what = Alteration::Partition(rng.below(partitions::COUNT.into()) as u8);
                self.alterations.push(AlterationPlan { at, process, endpoint, what, time: 0 });
            }
        }
        if rng.chance(300_000) {
            self.add_impairment(rng.below(self.hosts.len() as u64) as usize, Impairment::Loss(200_000), rng);
        }
    }
}
