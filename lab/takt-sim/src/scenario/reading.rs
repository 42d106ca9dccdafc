//! Applications that read samples before they take them.

use super::{Impairment, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::MILLISECOND;
use crate::rng::Rng;

impl Scenario {
    /// Creates a world of readers that keep samples in their histories for a while, with instances
    /// that end and are written again.
    pub(super) fn read_before_taking(&mut self, rng: &mut Rng) {
        self.reads = true;
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(4) as u8, sizes: (24, 200) });
            let has_instances = self.topics[topic].instances > 0;
            for _ in 0..rng.between(1, 2) {
                let qos = QosPlan { reliable: true, transient_local: rng.chance(300_000), ..QosPlan::default() };
                let endings = if has_instances { *rng.pick(&[0, 100_000, 300_000]) } else { 0 };
                let period = rng.between(5, 60) * MILLISECOND;
                self.add(0, topic, qos, Role::Writer { period, burst: 1, samples: 2_000, endings }, 0);
            }
            for _ in 0..rng.between(1, 3) {
                let qos = QosPlan {
                    reliable: rng.chance(800_000),
                    transient_local: rng.chance(200_000),
                    ..QosPlan::default()
                };
                let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
                let role = Role::Reader { period: rng.between(20, 120) * MILLISECOND };
                self.add(self.other(rng), topic, qos, role, create);
            }
        }
        if rng.chance(300_000) {
            self.add_impairment(rng.below(self.hosts.len() as u64) as usize, Impairment::Loss(100_000), rng);
        }
    }
}
