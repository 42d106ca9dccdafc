//! QoS policies that consist of one duration: DEADLINE, LATENCY_BUDGET, LIFESPAN, TIME_BASED_FILTER
//! (DDS 1.4 §2.2.3.7, §2.2.3.8, §2.2.3.16, §2.2.3.12).

use alloc::string::ToString;

use super::{WirePolicy, requested_policy};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{PID_DEADLINE, PID_LATENCY_BUDGET, PID_LIFESPAN, PID_TIME_BASED_FILTER, ParameterWriter};
use crate::time::Duration;

macro_rules! span {
    ($($(#[$meta:meta])* $name:ident { $(#[$field_meta:meta])* $field:ident }, $pid:ident, $default:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name {
            $(#[$field_meta])*
            pub $field: Duration,
        }

        impl $name {
            /// Policy with this duration.
            pub fn new($field: impl Into<Duration>) -> Self {
                Self { $field: $field.into() }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $field: $default }
            }
        }

        impl WirePolicy for $name {
            const PID: u16 = $pid;

            fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
                Ok(Self { $field: Duration::parse(value)? })
            }

            fn emit(&self, value: &mut ParameterWriter<'_>) {
                value.duration(self.$field);
            }
        }
    )*};
}

span! {
    /// DEADLINE: each instance is updated at least once in each period; infinite by default.
    Deadline {
        /// Maximum time between two updates.
        period
    }, PID_DEADLINE, Duration::INFINITE;
    /// LATENCY_BUDGET: hint for the acceptable latency of samples; zero by default.
    LatencyBudget {
        /// Maximum acceptable delay from writing to delivery.
        duration
    }, PID_LATENCY_BUDGET, Duration::ZERO;
    /// LIFESPAN: time after which a sample expires; infinite by default.
    Lifespan {
        /// Validity of a sample after its source timestamp.
        duration
    }, PID_LIFESPAN, Duration::INFINITE;
    /// TIME_BASED_FILTER: a reader receives at most one sample of an instance in each period; zero
    /// by default.
    TimeBasedFilter {
        /// Minimum time between two samples of an instance.
        minimum_separation
    }, PID_TIME_BASED_FILTER, Duration::ZERO;
}

requested_policy! {
    Deadline, |offered, requested| offered.period <= requested.period, |policy| policy.period.to_string();
    LatencyBudget, |offered, requested| offered.duration <= requested.duration, |policy| policy.duration.to_string();
}
