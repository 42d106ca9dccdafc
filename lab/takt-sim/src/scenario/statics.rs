//! Static endpoints: all processes know all endpoints in advance.

use takt_wire::qos::AccessScope;

use super::{Alteration, EndPlan, Impairment, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::{MILLISECOND, SECOND};
use crate::rng::Rng;

impl Scenario {
    /// Adds static endpoints to 5 % of the worlds. Excludes PRESENTATION with scope GROUP, since
    /// the list has no publishers.
    pub(super) fn add_static_endpoints(&mut self, rng: &mut Rng) {
        let has_groups = self.presentation.is_some_and(|presentation| presentation.access_scope == AccessScope::Group);
        if rng.chance(50_000) && !has_groups {
            self.list_endpoints();
        }
    }

    /// Creates a world of static endpoints in which processes end and restart, and datagrams are
    /// lost.
    pub(super) fn match_by_list(&mut self, rng: &mut Rng) {
        for topic in 0..rng.between(1, 3) as usize {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 1_000) });
            for index in 0..rng.between(2, 5) {
                let (reliable, transient_local) = (rng.chance(700_000), rng.chance(400_000));
                let keep_last = rng.chance(300_000).then(|| rng.between(1, 20) as u32);
                let partition = u8::from(rng.chance(150_000));
                let qos = QosPlan { reliable, transient_local, keep_last, partition, ..QosPlan::default() };
                let period = rng.between(5, 50) * MILLISECOND;
                let role = if index == 0 || rng.chance(300_000) {
                    Role::Writer { period, burst: 1, samples: 1_000, endings: 0 }
                } else {
                    Role::Reader { period: 0 }
                };
                let process = rng.below(self.processes.len() as u64) as usize;
                self.add(process, topic, qos, role, 0);
            }
        }
        if rng.chance(500_000) {
            let at = rng.between(self.active / 4, self.active);
            let end = EndPlan { at, pause: rng.between(MILLISECOND, 2 * SECOND), farewell: rng.chance(500_000) };
            let process = rng.below(self.processes.len() as u64) as usize;
            self.processes[process].ends.push(end);
        }
        if rng.chance(500_000) {
            self.add_impairment(rng.below(self.hosts.len() as u64) as usize, Impairment::Loss(200_000), rng);
        }
        self.list_endpoints();
    }

    /// Makes all endpoints static. They exist while their processes run, and other processes do not
    /// learn of policy changes.
    fn list_endpoints(&mut self) {
        self.has_static_endpoints = true;
        for endpoint in self.processes.iter_mut().flat_map(|process| &mut process.endpoints) {
            (endpoint.create, endpoint.delete) = (0, None);
        }
        self.alterations.retain(|alteration| alteration.what == Alteration::Suspended(true));
    }
}
