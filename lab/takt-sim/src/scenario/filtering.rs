//! SQL content filters whose parameters change while samples are sent.

use super::{Alteration, AlterationPlan, QosPlan, Role, Scenario, TopicPlan};
use crate::clock::MILLISECOND;
use crate::rng::Rng;
use crate::sql;

/// Content filter of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPlan {
    /// Accepts numbers that are multiples of this one.
    Multiples(u32),
    /// SQL expression, by its index, with its parameters.
    Sql(u8, sql::Parameters),
}

impl FilterPlan {
    /// Reports whether a sample with this number and instance passes.
    #[must_use]
    pub fn passes(self, number: u32, instance: u8) -> bool {
        match self {
            Self::Multiples(of) => number.is_multiple_of(of),
            Self::Sql(expression, parameters) => sql::passes(expression, parameters, number, instance),
        }
    }
}

impl Scenario {
    /// Creates an exact world of readers with SQL filters. Some of the writers filter for their
    /// readers.
    pub(super) fn filter_by_content(&mut self, rng: &mut Rng) {
        for topic in 0..rng.between(1, 2) as usize {
            self.topics.push(TopicPlan { instances: rng.below(4) as u8, sizes: (24, 200) });
            let period = rng.between(10, 40) * MILLISECOND;
            for _ in 0..rng.between(1, 2) {
                let (reliable, transient_local) = (rng.chance(800_000), rng.chance(300_000));
                // A writer with any filter filters for its readers.
                let filter = rng.chance(700_000).then_some(FilterPlan::Sql(0, [0; 2]));
                let qos = QosPlan { reliable, transient_local, filter, ..QosPlan::default() };
                self.add(0, topic, qos, Role::Writer { period, burst: 1, samples: 5_000, endings: 0 }, 0);
            }
            for _ in 0..rng.between(1, 4) {
                let (reliable, transient_local) = (rng.chance(700_000), rng.chance(300_000));
                let filter = Some(FilterPlan::Sql(rng.below(sql::COUNT.into()) as u8, parameters(rng, 0)));
                let qos = QosPlan { reliable, transient_local, filter, ..QosPlan::default() };
                let create = if rng.chance(700_000) { 0 } else { rng.below(self.active) };
                let process = self.other(rng);
                self.add(process, topic, qos, Role::Reader { period: 0 }, create);
                let endpoint = self.processes[process].endpoints.len() - 1;
                let mut at = rng.between(200, 1_500) * MILLISECOND + rng.below(MILLISECOND);
                while at < self.active {
                    let what = Alteration::Filter(parameters(rng, (at / period) as u32));
                    self.alterations.push(AlterationPlan { at, process, endpoint, what, time: 0 });
                    at += rng.between(700, 2_000) * MILLISECOND + rng.below(MILLISECOND);
                }
            }
        }
    }
}

/// Returns parameters that some of the samples after this number pass and others do not.
fn parameters(rng: &mut Rng, number: u32) -> sql::Parameters {
    let low = number + rng.below(80) as u32;
    [low, low + rng.below(80) as u32]
}
