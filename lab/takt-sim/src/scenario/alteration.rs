//! Alterations at run time: changeable policies (DDS 1.4 §2.2.3), suspended publications, and
//! ignored entities.

use super::{FilterPlan, QosPlan, Role, Scenario};
use crate::clock::{MILLISECOND, Nanos};
use crate::rng::Rng;
use crate::sql;

/// Alteration of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// PARTITION, by the index of its list.
    Partition(u8),
    /// DEADLINE; `None` is infinite.
    Deadline(Option<Nanos>),
    /// LATENCY_BUDGET.
    Budget(Nanos),
    /// OWNERSHIP_STRENGTH of a writer with EXCLUSIVE ownership.
    Strength(i32),
    /// LIFESPAN of a writer with a finite lifespan.
    Lifespan(Nanos),
    /// TIME_BASED_FILTER of a reader with one.
    Separation(Nanos),
    /// Parameters of the SQL filter of a reader.
    Filter(sql::Parameters),
    /// USER_DATA.
    UserData(u8),
    /// `suspend_publications` or `resume_publications` of a writer.
    Suspended(bool),
    /// The participant of a writer ignores the remote readers that are matched with it.
    IgnoreReaders,
    /// The participant of a reader ignores the remote writers that are matched with it.
    IgnoreWriters,
    /// The participant ignores the participant of the first remote endpoint that is matched.
    IgnoreParticipant,
    /// The participant ignores the remote endpoints of the topic.
    IgnoreTopic,
}

impl Alteration {
    /// Returns the altered policies; `None` if they would be inconsistent, or if the alteration
    /// does not apply.
    #[must_use]
    pub fn applied_to(self, before: &QosPlan) -> Option<QosPlan> {
        let mut qos = *before;
        match self {
            Self::Partition(partition) => qos.partition = partition,
            Self::Deadline(period) => qos.deadline = period,
            Self::Budget(budget) => qos.budget = budget,
            Self::Strength(strength) => qos.strength = before.strength.map(|_| strength),
            Self::Lifespan(lifespan) => qos.lifespan = before.lifespan.map(|_| lifespan),
            Self::Separation(separation) => qos.separation = before.separation.map(|_| separation),
            Self::Filter(parameters) => {
                if let Some(FilterPlan::Sql(_, former)) = &mut qos.filter {
                    *former = parameters;
                }
            }
            Self::UserData(value) => qos.user_data = value,
            Self::Suspended(_)
            | Self::IgnoreReaders
            | Self::IgnoreWriters
            | Self::IgnoreParticipant
            | Self::IgnoreTopic => return None,
        }
        let agrees = qos.separation.is_none_or(|separation| qos.deadline.is_none_or(|period| period >= separation));
        (agrees && qos != *before).then_some(qos)
    }
}

/// Scheduled alteration of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct AlterationPlan {
    /// Time of the alteration.
    pub at: Nanos,
    /// Index of the process.
    pub process: usize,
    /// Index of the endpoint.
    pub endpoint: usize,
    /// Kind of alteration.
    pub what: Alteration,
    /// Time after which a suspended writer resumes.
    pub time: Nanos,
}

impl AlterationPlan {
    /// Returns the time at which the effect of the alteration ends.
    #[must_use]
    pub fn until(&self) -> Nanos {
        self.at + self.time.max(1)
    }
}

impl Scenario {
    /// Adds alterations to 15 % of the worlds. Excludes worlds with coherent sets.
    pub(super) fn add_alterations(&mut self, rng: &mut Rng) {
        let count = if rng.chance(150_000) && self.presentation.is_none() { rng.between(1, 12) } else { 0 };
        for _ in 0..count {
            let process = rng.below(self.processes.len() as u64) as usize;
            let endpoint = rng.below(self.processes[process].endpoints.len() as u64) as usize;
            let plan = &self.processes[process].endpoints[endpoint];
            let is_writer = matches!(plan.role, Role::Writer { .. });
            let (at, time) = (rng.below(self.active), rng.between(MILLISECOND, 500 * MILLISECOND));
            let time = time.min(self.active - at - 1);
            let period = rng.pick(&[Some(100), Some(300), Some(1_000), None]).map(|period| period * MILLISECOND);
            let what = match rng.below(if is_writer { 9 } else { 5 }) {
                0 | 1 => Alteration::Partition(rng.below(2) as u8),
                2 => Alteration::Deadline(period),
                3 => Alteration::UserData(rng.below(200) as u8),
                4 if !is_writer => Alteration::Separation(*rng.pick(&[50, 150, 300]) * MILLISECOND),
                4 => Alteration::Budget(*rng.pick(&[0, 2, 10]) * MILLISECOND),
                5 => Alteration::Strength(rng.below(3) as i32),
                6 => Alteration::Lifespan(*rng.pick(&[200, 600, 2_000]) * MILLISECOND),
                7 => Alteration::Suspended(true),
                _ => Alteration::IgnoreReaders,
            };
            let time = if what == Alteration::Suspended(true) { time } else { 0 };
            self.alterations.push(AlterationPlan { at, process, endpoint, what, time });
        }
    }
}
