//! What applications change while all goes on: policies that may change (DDS 1.4 §2.2.3), suspended publications, and what is
//! ignored.

use super::{FilterPlan, QosPlan, Role, Scenario};
use crate::clock::{MILLISECOND, Nanos};
use crate::rng::Rng;
use crate::sql;

/// What is altered at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// PARTITION, by its index.
    Partition(u8),
    /// DEADLINE; `None` is infinite.
    Deadline(Option<Nanos>),
    /// LATENCY_BUDGET.
    Budget(Nanos),
    /// OWNERSHIP_STRENGTH of a writer that has one.
    Strength(i32),
    /// LIFESPAN of a writer that has one.
    Lifespan(Nanos),
    /// TIME_BASED_FILTER of a reader that has one.
    Separation(Nanos),
    /// The parameters of the SQL filter of a reader.
    Filter(sql::Parameters),
    /// USER_DATA.
    UserData(u8),
    /// `suspend_publications` and `resume_publications` of a writer.
    Suspended(bool),
    /// The participant of a writer ignores the readers that others have matched with it.
    IgnoreReaders,
    /// The participant of a reader ignores the writers that others have matched with it.
    IgnoreWriters,
    /// The participant ignores that of the first endpoint of another one that is matched.
    IgnoreParticipant,
    /// The participant ignores what others have of the topic.
    IgnoreTopic,
}

impl Alteration {
    /// The policies afterwards; `None` if they would contradict each other, or if there is nothing to alter.
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

/// An alteration of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct AlterationPlan {
    /// When.
    pub at: Nanos,
    /// Whose endpoint.
    pub process: usize,
    /// Which one.
    pub endpoint: usize,
    /// What.
    pub what: Alteration,
    /// A suspended writer resumes after this time.
    pub time: Nanos,
}

impl AlterationPlan {
    /// When all is as usual again.
    #[must_use]
    pub fn until(&self) -> Nanos {
        self.at + self.time.max(1)
    }
}

impl Scenario {
    /// Alterations in 15 % of the worlds. Coherent sets are left alone.
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
