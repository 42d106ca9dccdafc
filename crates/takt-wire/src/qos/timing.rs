//! Policies that are one span of time: DEADLINE, LATENCY_BUDGET, LIFESPAN, TIME_BASED_FILTER
//! (DDS 1.4 §2.2.3.7, §2.2.3.8, §2.2.3.16, §2.2.3.12).

use super::WirePolicy;
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
    /// DEADLINE: each instance is updated at least once in a period; infinite by default.
    Deadline {
        /// The longest time between two updates.
        period
    }, PID_DEADLINE, Duration::INFINITE;
    /// LATENCY_BUDGET: a hint how long a sample may take; zero by default.
    LatencyBudget {
        /// The longest acceptable delay from writing to delivery.
        duration
    }, PID_LATENCY_BUDGET, Duration::ZERO;
    /// LIFESPAN: when a sample is no longer of use; infinite by default.
    Lifespan {
        /// How long after its source timestamp a sample is valid.
        duration
    }, PID_LIFESPAN, Duration::INFINITE;
    /// TIME_BASED_FILTER: a reader sees an instance at most once in a period; zero by default.
    TimeBasedFilter {
        /// The shortest time between two samples of an instance.
        minimum_separation
    }, PID_TIME_BASED_FILTER, Duration::ZERO;
}
