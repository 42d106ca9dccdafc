//! Worlds of participants that request types from each other.

use super::{EndPlan, Impairment, ProcessPlan, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::{MILLISECOND, SECOND};
use crate::rng::Rng;

impl Scenario {
    /// Creates a world of participants that request types from each other, including killed ones
    /// until their lease ends. In every second world links lose datagrams.
    pub(super) fn add_type_requests(&mut self, rng: &mut Rng) {
        self.services.lookup_period = Some(rng.between(5, 50) * MILLISECOND);
        for _ in 0..rng.between(0, 2) {
            let host = rng.below(self.hosts.len() as u64) as usize;
            let start = rng.below(self.active / 2);
            self.processes.push(ProcessPlan { host, start, ends: vec![], stalls: vec![], cost: 0, endpoints: vec![] });
        }
        self.topics.push(TopicPlan { instances: 0, sizes: (24, 1_000) });
        let qos = QosPlan { reliable: true, ..QosPlan::default() };
        let role = Role::Writer { period: 20 * MILLISECOND, burst: 1, samples: 1_000, endings: 0 };
        self.add(0, 0, qos, role, 0);
        self.add(1, 0, qos, Role::Reader { period: 0 }, 0);
        for process in &mut self.processes {
            if rng.chance(300_000) {
                let at = rng.between(self.active / 4, self.active);
                let end = EndPlan { at, pause: rng.between(MILLISECOND, 2 * SECOND), farewell: rng.chance(200_000) };
                process.ends.push(end);
            }
        }
        if rng.chance(500_000) {
            for _ in 0..rng.between(1, 2) {
                let impairment = *rng.pick(&[
                    Impairment::Loss(100_000),
                    Impairment::Loss(300_000),
                    Impairment::Burst(20_000, 200_000),
                ]);
                self.add_impairment(rng.below(self.hosts.len() as u64) as usize, impairment, rng);
            }
        }
    }
}
