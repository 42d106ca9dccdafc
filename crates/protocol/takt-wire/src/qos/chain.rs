//! Builder methods for the QoS of writers and readers, including the timing contract and the
//! executor's properties.
//!
//! Each call replaces the value of an earlier call or field. Durations are those of this crate or
//! of `core::time`.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};

use super::contract::{BUDGET, OVERRUN, PRIORITY, TRANSPORT};
use super::{
    Contract, DataReaderQos, DataWriterQos, Deadline, Durability, EarlyWrite, EntityName, History, LatencyBudget,
    Lifespan, Liveliness, LivelinessKind, Ownership, OwnershipStrength, Property, PropertyEntry, Reliability,
    TimeBasedFilter,
};
use crate::time::Duration;

/// Reaction of the executor to a listener whose calls exceed their budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overrun {
    /// The executor counts the overrun and reports it.
    #[default]
    Count,
    /// The executor also suspends the listener until the application resumes it.
    Suspend,
}

impl Property {
    /// Sets the property `name`, and removes all others of that name. `propagate`: discovery
    /// announces it.
    pub fn set(&mut self, name: &str, value: impl Into<String>, propagate: bool) {
        self.entries.retain(|entry| entry.name != name);
        self.entries.push(PropertyEntry { name: name.to_owned(), value: value.into(), propagate });
    }
}

macro_rules! chained {
    ($qos:ident) => {
        impl $qos {
            /// Returns the default QoS with RELIABILITY RELIABLE.
            pub fn reliable() -> Self {
                Self { reliability: Reliability::RELIABLE, ..Self::default() }
            }

            /// Returns the default QoS with RELIABILITY BEST_EFFORT.
            pub fn best_effort() -> Self {
                Self { reliability: Reliability::BEST_EFFORT, ..Self::default() }
            }

            /// Sets HISTORY KEEP_LAST: the newest `depth` samples of each instance; at least 1.
            #[must_use]
            pub fn keep_last(mut self, depth: u32) -> Self {
                self.history = History::KeepLast(depth);
                self
            }

            /// Sets HISTORY KEEP_ALL, within RESOURCE_LIMITS.
            #[must_use]
            pub fn keep_all(mut self) -> Self {
                self.history = History::KeepAll;
                self
            }

            /// Sets DURABILITY.
            #[must_use]
            pub fn durability(mut self, kind: Durability) -> Self {
                self.durability = kind;
                self
            }

            /// Sets DURABILITY TRANSIENT_LOCAL: the writer keeps its history for late joiners.
            #[must_use]
            pub fn transient_local(self) -> Self {
                self.durability(Durability::TransientLocal)
            }

            /// Sets DEADLINE: the maximum time between two samples of an instance.
            #[must_use]
            pub fn deadline(mut self, period: impl Into<Duration>) -> Self {
                self.deadline = Deadline::new(period);
                self
            }

            /// Sets LATENCY_BUDGET: the time for which the writer may delay samples to send them
            /// together.
            #[must_use]
            pub fn latency_budget(mut self, duration: impl Into<Duration>) -> Self {
                self.latency_budget = LatencyBudget::new(duration);
                self
            }

            /// Sets LIVELINESS.
            #[must_use]
            pub fn liveliness(mut self, kind: LivelinessKind, lease_duration: impl Into<Duration>) -> Self {
                self.liveliness = Liveliness { kind, lease_duration: lease_duration.into() };
                self
            }

            /// Sets ENTITY_NAME, for tools and logs.
            #[must_use]
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.entity_name = EntityName(name.into());
                self
            }

            /// Sets the maximum sample size of the timing contract: octets of a serialized sample,
            /// its encapsulation header included.
            #[must_use]
            pub fn max_size(self, octets: u32) -> Self {
                self.with_contract(|contract| contract.max_sample_bytes = Some(octets))
            }

            /// Sets the priority of the endpoint on its executor, -64 to 63. Outside of that range
            /// the creation of the endpoint fails. Above 0 the endpoint has its own port.
            #[must_use]
            pub fn priority(mut self, priority: i32) -> Self {
                self.property.set(PRIORITY, priority.to_string(), false);
                self
            }

            /// Sets the maximum time of one listener call, and the reaction to a longer one.
            #[must_use]
            pub fn listener_budget(mut self, budget: impl Into<Duration>, overrun: Overrun) -> Self {
                let nanos = budget.into().as_nanos().unwrap_or(u64::MAX);
                self.property.set(BUDGET, nanos.to_string(), false);
                let overrun = match overrun {
                    Overrun::Count => "count",
                    Overrun::Suspend => "suspend",
                };
                self.property.set(OVERRUN, overrun, false);
                self
            }

            /// Sets the transports of the data, in order of preference: those of the first
            /// alternative that opens, and no others, for instance `"shm|udp"`.
            #[must_use]
            pub fn transport(mut self, alternatives: &str) -> Self {
                self.property.set(TRANSPORT, alternatives, false);
                self
            }

            /// Returns the timing contract that USER_DATA and properties declare.
            pub fn contract(&self) -> Contract {
                Contract::of(&self.user_data, &self.property)
            }

            fn with_contract(mut self, change: impl FnOnce(&mut Contract)) -> Self {
                let mut contract = self.contract();
                change(&mut contract);
                contract.replace(&mut self.user_data, &mut self.property);
                self
            }
        }
    };
}

chained!(DataWriterQos);
chained!(DataReaderQos);

impl DataWriterQos {
    /// Sets the maximum time for which a write waits for room in the history (RELIABILITY).
    #[must_use]
    pub fn max_blocking_time(mut self, time: impl Into<Duration>) -> Self {
        self.reliability.max_blocking_time = time.into();
        self
    }

    /// Sets LIFESPAN: readers drop samples that are older.
    #[must_use]
    pub fn lifespan(mut self, duration: impl Into<Duration>) -> Self {
        self.lifespan = Lifespan::new(duration);
        self
    }

    /// Sets OWNERSHIP EXCLUSIVE with this OWNERSHIP_STRENGTH.
    #[must_use]
    pub fn exclusive(mut self, strength: i32) -> Self {
        (self.ownership, self.ownership_strength) = (Ownership::Exclusive, OwnershipStrength(strength));
        self
    }

    /// Sets the minimum separation of the timing contract: the minimum time between two samples of
    /// the writer, regardless of their instances. An earlier write waits.
    #[must_use]
    pub fn min_separation(self, time: impl Into<Duration>) -> Self {
        self.with_contract(|contract| contract.minimum_separation = Some(time.into()))
    }

    /// Sets the early-write treatment of the timing contract: a write before the minimum separation
    /// has passed fails.
    #[must_use]
    pub fn refuse_early(self) -> Self {
        self.with_contract(|contract| contract.early_write = EarlyWrite::Refuse)
    }
}

impl DataReaderQos {
    /// Sets OWNERSHIP EXCLUSIVE: the reader gets only samples of the strongest writer of each
    /// instance.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.ownership = Ownership::Exclusive;
        self
    }

    /// Sets TIME_BASED_FILTER: the minimum time between two samples of an instance.
    #[must_use]
    pub fn time_based_filter(mut self, minimum_separation: impl Into<Duration>) -> Self {
        self.time_based_filter = TimeBasedFilter::new(minimum_separation);
        self
    }

    /// Sets the latency of the timing contract: the maximum time from the write of a sample to its
    /// delivery.
    #[must_use]
    pub fn latency(self, time: impl Into<Duration>) -> Self {
        self.with_contract(|contract| contract.e2e_latency = Some(time.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{ReliabilityKind, UserData};

    #[test]
    fn chained_calls_equal_field_assignments() {
        let chained = DataWriterQos::reliable()
            .keep_last(8)
            .transient_local()
            .deadline(Duration::from_millis(10))
            .lifespan(core::time::Duration::from_millis(20))
            .exclusive(3)
            .max_blocking_time(Duration::ZERO)
            .name("lidar");
        let written = DataWriterQos {
            history: History::KeepLast(8),
            durability: Durability::TransientLocal,
            deadline: Deadline { period: Duration::from_millis(10) },
            lifespan: Lifespan { duration: Duration::from_millis(20) },
            ownership: Ownership::Exclusive,
            ownership_strength: OwnershipStrength(3),
            reliability: Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: Duration::ZERO },
            entity_name: EntityName("lidar".to_owned()),
            ..DataWriterQos::default()
        };
        assert_eq!(chained, written);
        assert_eq!(DataReaderQos::best_effort().keep_all().history, History::KeepAll);
        assert_eq!(DataReaderQos::default(), DataReaderQos::best_effort());
        assert_eq!(DataWriterQos::default(), DataWriterQos::reliable());
    }

    #[test]
    fn contract_changes_single_keys_and_keeps_other_user_data() {
        let mut qos = DataWriterQos::reliable().min_separation(Duration::from_millis(5)).max_size(1_400);
        qos.user_data = UserData(b"typehash=RIHS01_00;rt.max_bytes=7".to_vec());
        let qos = qos.min_separation(Duration::from_millis(6)).refuse_early();
        let expected = Contract {
            minimum_separation: Some(Duration::from_millis(6)),
            early_write: EarlyWrite::Refuse,
            max_sample_bytes: Some(1_400),
            e2e_latency: None,
        };
        assert_eq!(qos.contract(), expected);
        assert_eq!(Contract::of(&qos.user_data, &Property::default()), expected, "USER_DATA states the same");
        let text = String::from_utf8(qos.user_data.0.clone()).expect("text");
        assert!(text.starts_with("typehash=RIHS01_00;"), "{text}");
        assert_eq!(text.matches("rt.max_bytes").count(), 1, "{text}");
    }

    #[test]
    fn properties_of_the_executor_replace_earlier_ones() {
        let qos = DataReaderQos::reliable()
            .priority(3)
            .priority(46)
            .listener_budget(Duration::from_millis(1), Overrun::Suspend)
            .transport("shm|udp");
        let property = |name: &str| qos.property.get(name);
        assert_eq!((property("rt.priority"), property("rt.budget_ns")), (Some("46"), Some("1000000")));
        assert_eq!((property("rt.overrun"), property("takt.transport")), (Some("suspend"), Some("shm|udp")));
        assert_eq!(qos.property.entries.len(), 4);
        assert_eq!(qos.property.propagated().count(), 0, "they concern this process only");
    }
}
