//! Scheduling properties of an endpoint on its executor: priority and execution budget of its
//! listener.
//!
//! | property | value | endpoint |
//! |---|---|---|
//! | `rt.priority` | -64 to 63; above 0 the endpoint has its own port, which is polled before others | writer, reader |
//! | `rt.budget_ns` | maximum ns of one listener call | writer, reader |
//! | `rt.overrun` | `count` or `suspend`: reaction to a longer listener call | writer, reader |
//!
//! Without `rt.priority` an endpoint has the priority of its topic's flow in the system file
//! ([`TimingPlan`](crate::TimingPlan)). Without that, a writer has the priority of its
//! TRANSPORT_PRIORITY, and a reader that of the E2E_LATENCY of its contract
//! ([`Priority::of_latency`]).

use takt_schedule::Priority;
use takt_wire::qos::{
    BUDGET_PROPERTY, Contract, DataReaderQos, DataWriterQos, OVERRUN_PROPERTY, PRIORITY_PROPERTY, Property,
};

use crate::{Error, Result};

/// Execution budget of a listener call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) limit_ns: u64,
    /// Whether a listener that exceeds the budget is suspended.
    pub(crate) suspends: bool,
}

/// Scheduling properties of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedulingProperties {
    pub(crate) priority: Priority,
    pub(crate) budget: Option<Budget>,
    /// Whether the endpoint has its own port, so that its datagrams are distinguished before they
    /// are read.
    pub(crate) own_port: bool,
}

impl SchedulingProperties {
    /// Returns the properties of a writer. `planned` is the priority of its topic in the system
    /// file.
    pub(crate) fn of_writer(qos: &DataWriterQos, planned: Option<Priority>) -> Result<Self> {
        let priority = explicit_priority(&qos.property)?.or(planned);
        Ok(Self {
            priority: priority.unwrap_or(Priority::new(qos.transport_priority.0)),
            budget: budget(&qos.property)?,
            own_port: priority.is_some_and(|priority| priority > Priority::NORMAL),
        })
    }

    /// Returns the properties of a reader. `planned` is the priority of its topic in the system
    /// file.
    pub(crate) fn of_reader(qos: &DataReaderQos, planned: Option<Priority>) -> Result<Self> {
        let latency = Contract::of(&qos.user_data, &qos.property).e2e_latency;
        let by_latency = latency.and_then(|latency| latency.as_nanos()).map(std::time::Duration::from_nanos);
        let priority =
            explicit_priority(&qos.property)?.or(planned).or(by_latency.map(Priority::of_latency)).unwrap_or_default();
        Ok(Self { priority, budget: budget(&qos.property)?, own_port: priority > Priority::NORMAL })
    }

    /// Returns the TRANSPORT_PRIORITY of sent messages if none is set.
    pub(crate) fn transport_priority(&self) -> i32 {
        self.priority.get().max(0)
    }
}

/// Returns the priority that `rt.priority` sets.
fn explicit_priority(property: &Property) -> Result<Option<Priority>> {
    let Some(text) = property.get(PRIORITY_PROPERTY) else { return Ok(None) };
    let expected = "a number from -64 to 63";
    match text.parse::<i32>() {
        Ok(value) if (Priority::MIN.get()..=Priority::MAX.get()).contains(&value) => Ok(Some(Priority::new(value))),
        Ok(_) => Err(invalid_property(PRIORITY_PROPERTY, text, expected)),
        Err(error) => Err(Error::bad_parameter_from(invalid_text(PRIORITY_PROPERTY, text, expected), error)),
    }
}

fn budget(property: &Property) -> Result<Option<Budget>> {
    let suspends = match property.get(OVERRUN_PROPERTY) {
        None | Some("count") => false,
        Some("suspend") => true,
        Some(text) => return Err(invalid_property(OVERRUN_PROPERTY, text, "count or suspend")),
    };
    match property.get(BUDGET_PROPERTY) {
        None if suspends => Err(invalid_property(OVERRUN_PROPERTY, "suspend", "allowed without rt.budget_ns")),
        None => Ok(None),
        Some(text) => match text.parse() {
            Ok(limit_ns) => Ok(Some(Budget { limit_ns, suspends })),
            Err(error) => {
                let what = invalid_text(BUDGET_PROPERTY, text, "a number of nanoseconds");
                Err(Error::bad_parameter_from(what, error))
            }
        },
    }
}

fn invalid_property(property: &str, text: &str, expected: &str) -> Error {
    Error::bad_parameter(invalid_text(property, text, expected))
}

fn invalid_text(property: &str, text: &str, expected: &str) -> String {
    format!("property {property}: {text:?} is not {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::qos::TransportPriority;

    fn reader(properties: &[(&str, &str)]) -> Result<SchedulingProperties> {
        let mut qos = DataReaderQos::default();
        properties.iter().for_each(|(name, value)| qos.property.set(name, *value, false));
        SchedulingProperties::of_reader(&qos, None)
    }

    #[test]
    fn priority_is_explicit_or_derived_from_policies() {
        let mut qos = DataWriterQos { transport_priority: TransportPriority(46), ..DataWriterQos::default() };
        let timing = SchedulingProperties::of_writer(&qos, None).expect("well-formed");
        assert_eq!((timing.priority.get(), timing.own_port), (46, false));
        qos.property.set(PRIORITY_PROPERTY, "7", false);
        let timing = SchedulingProperties::of_writer(&qos, None).expect("well-formed");
        assert_eq!((timing.priority.get(), timing.own_port, timing.transport_priority()), (7, true, 7));

        let of = |properties: &[_]| reader(properties).expect("well-formed");
        assert_eq!(of(&[]), SchedulingProperties::default());
        let by_contract = of(&[("rt.e2e_ns", "1000000")]);
        assert_eq!((by_contract.priority.get(), by_contract.own_port), (28, true));
        let lazy = of(&[("rt.e2e_ns", "1000000"), (PRIORITY_PROPERTY, "-3")]);
        assert_eq!((lazy.priority.get(), lazy.own_port, lazy.transport_priority()), (-3, false, 0));
    }

    #[test]
    fn timing_plan_overrides_policies_and_explicit_priority_overrides_the_plan() {
        let planned = Some(Priority::new(9));
        let mut qos = DataWriterQos { transport_priority: TransportPriority(46), ..DataWriterQos::default() };
        let timing = SchedulingProperties::of_writer(&qos, planned).expect("well-formed");
        assert_eq!((timing.priority.get(), timing.own_port), (9, true));
        qos.property.set(PRIORITY_PROPERTY, "7", false);
        assert_eq!(SchedulingProperties::of_writer(&qos, planned).expect("well-formed").priority.get(), 7);
        let mut qos = DataReaderQos::default();
        qos.property.set("rt.e2e_ns", "1000000", false);
        assert_eq!(SchedulingProperties::of_reader(&qos, planned).expect("well-formed").priority.get(), 9);
    }

    #[test]
    fn budget_overrun_suspends_when_configured() {
        let of = |properties: &[_]| reader(properties).expect("well-formed").budget;
        assert_eq!(of(&[(BUDGET_PROPERTY, "5000")]), Some(Budget { limit_ns: 5000, suspends: false }));
        let both = [(OVERRUN_PROPERTY, "suspend"), (BUDGET_PROPERTY, "1")];
        assert_eq!(of(&both), Some(Budget { limit_ns: 1, suspends: true }));
        assert_eq!(of(&[(OVERRUN_PROPERTY, "count")]), None);
    }

    #[test]
    fn malformed_timing_properties_are_errors() {
        let cases = [
            (PRIORITY_PROPERTY, "64", "property rt.priority: \"64\" is not a number from -64 to 63"),
            (PRIORITY_PROPERTY, "high", "not a number"),
            (BUDGET_PROPERTY, "-1", "not a number of nanoseconds"),
            (OVERRUN_PROPERTY, "stop", "not count or suspend"),
            (OVERRUN_PROPERTY, "suspend", "without rt.budget_ns"),
        ];
        for (property, value, expected) in cases {
            let message = reader(&[(property, value)]).expect_err(value).to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
