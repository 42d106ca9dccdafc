//! Long-term behavior: leases and deadlines of minutes in worlds of more than an hour, and
//! boundaries of counters.
//!
//! These worlds have no faults, so rules about time are exact. Sequence numbers cannot start near a
//! boundary: they have 64 bits and begin with 1 by the standard (RTPS 2.5 §8.3.5.4).

use takt_wire::qos::LivelinessKind;

use super::{Boundaries, EndPlan, LivelinessPlan, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::{EPOCH, MILLISECOND, SECOND};
use crate::rng::Rng;

/// First value of the seconds of a timestamp and of a count that is negative as a signed 32-bit
/// number.
const BOUNDARY: i64 = 1 << 31;

impl Scenario {
    /// Creates a world of more than an hour, in which writers pause for longer than their leases
    /// and deadlines.
    pub(super) fn last_for_hours(&mut self, rng: &mut Rng) {
        self.active = rng.between(4_000, 8_000) * SECOND;
        for host in &mut self.hosts {
            host.drift_ppb = rng.between(0, 200_000) as i64 - 100_000;
        }
        self.topics = (0..3).map(|_| TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) }).collect();
        let qos = QosPlan { reliable: true, ..QosPlan::default() };
        let role = |rng: &mut Rng, samples: u32| {
            let period = rng.between(20_000, 60_000) * MILLISECOND;
            Role::Writer { period, burst: 1, samples, endings: 0 }
        };
        let deadline = rng.between(1_100, 1_800) * SECOND;
        let samples = rng.between(1, 60) as u32;
        let late = QosPlan { deadline: Some(deadline), ..qos };
        let writes = role(rng, samples);
        self.add(0, 0, late, writes, 0);
        let kinds = [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant];
        let liveliness = LivelinessPlan { kind: *rng.pick(&kinds), lease: rng.between(100, 900) * SECOND };
        let samples = rng.between(1, 60) as u32;
        let writes = role(rng, samples);
        self.add(0, 1, QosPlan { liveliness: Some(liveliness), ..qos }, writes, 0);
        let keeps = QosPlan { transient_local: true, keep_last: Some(rng.between(1, 5) as u32), ..qos };
        let writes = role(rng, 5_000);
        self.add(0, 2, keeps, writes, 0);
        for (topic, qos) in [(0, late), (1, qos), (2, QosPlan { transient_local: true, ..qos })] {
            let create = if rng.chance(500_000) { 0 } else { rng.below(self.active) };
            self.add(self.other(rng), topic, qos, Role::Reader { period: 0 }, create);
        }
        if rng.chance(300_000) {
            let at = rng.between(self.active / 2, self.active);
            let end = EndPlan { at, pause: rng.between(1, 600) * SECOND, farewell: rng.chance(500_000) };
            let process = &mut self.processes[rng.below(2) as usize];
            process.ends.push(end);
            // An endpoint that is created long after a restart would exist too briefly.
            process.endpoints.iter_mut().for_each(|endpoint| endpoint.create = 0);
        }
    }

    /// Creates a world in which the counts of heartbeats and acknowledgments and the seconds of all
    /// wall clocks pass 2^31. Writers have short histories, so that they block if acknowledgments
    /// are missing.
    pub(super) fn pass_boundaries(&mut self, rng: &mut Rng) {
        let before = rng.below(self.active) as i64;
        let counts = i32::MAX - rng.below(100) as i32;
        self.boundaries = Boundaries { counts, wall: BOUNDARY * SECOND as i64 - EPOCH - before };
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(3) as u8, sizes: (24, 200) });
            let by_source = rng.chance(300_000);
            let lifespan = (!by_source && rng.chance(300_000)).then_some(2 * SECOND);
            for _ in 0..rng.between(1, 2) {
                let max_samples = Some(rng.between(4, 20) as u32);
                let qos = QosPlan { reliable: true, max_samples, by_source, lifespan, ..QosPlan::default() };
                let period = rng.between(2, 10) * MILLISECOND;
                self.add(0, topic, qos, Role::Writer { period, burst: 1, samples: 5_000, endings: 0 }, 0);
            }
            for _ in 0..rng.between(1, 3) {
                let qos = QosPlan { reliable: true, by_source, ..QosPlan::default() };
                let create = if rng.chance(600_000) { 0 } else { rng.below(self.active) };
                self.add(self.other(rng), topic, qos, Role::Reader { period: 0 }, create);
            }
        }
    }
}
