//! Applications that write bursts as batches and take in batches.

use super::{QosPlan, Role, Scenario, TopicPlan};
use crate::clock::MILLISECOND;
use crate::rng::Rng;

/// Maximum numbers of samples of a batch take.
const PLACES: [usize; 4] = [2, 3, 8, 64];

impl Scenario {
    /// Adds batches to 10 % of the worlds. Excludes worlds with coherent sets, which a partial take
    /// would split.
    pub(super) fn add_batches(&mut self, rng: &mut Rng) {
        if rng.chance(100_000) && self.presentation.is_none() {
            self.batches = Some(*rng.pick(&PLACES));
        }
    }

    /// Creates a world whose batches exceed the writer's history of an instance, or its whole
    /// history.
    pub(super) fn write_batches(&mut self, rng: &mut Rng) {
        self.batches = Some(*rng.pick(&PLACES));
        let keeps_all = rng.chance(300_000);
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(4) as u8, sizes: (24, 200) });
            for _ in 0..rng.between(1, 2) {
                let qos = QosPlan {
                    reliable: keeps_all || rng.chance(700_000),
                    transient_local: !keeps_all && rng.chance(300_000),
                    keep_last: (!keeps_all).then(|| rng.between(1, 4) as u32),
                    max_samples: keeps_all.then(|| rng.between(4, 20) as u32),
                    ..QosPlan::default()
                };
                let period = rng.between(20, 60) * MILLISECOND;
                let role = Role::Writer { period, burst: rng.between(4, 24) as u32, samples: 2_000, endings: 0 };
                self.add(0, topic, qos, role, 0);
            }
            for _ in 0..rng.between(1, 3) {
                let (reliable, transient_local) = (rng.chance(600_000), rng.chance(200_000));
                let qos = QosPlan { reliable, transient_local, ..QosPlan::default() };
                let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
                let role = Role::Reader { period: *rng.pick(&[0, 0, 0, 50]) * MILLISECOND };
                self.add(self.other(rng), topic, qos, role, create);
            }
        }
    }
}
