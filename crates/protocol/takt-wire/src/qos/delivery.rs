//! QoS policies of delivery: RELIABILITY, LIVELINESS, OWNERSHIP, OWNERSHIP_STRENGTH,
//! TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.14, §2.2.3.11, §2.2.3.9, §2.2.3.10, §2.2.3.15).

use alloc::format;
use alloc::string::{String, ToString};

use super::{RequestedPolicy, WirePolicy, requested_policy, wire_enum};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{
    PID_LIVELINESS, PID_OWNERSHIP, PID_OWNERSHIP_STRENGTH, PID_RELIABILITY, PID_TRANSPORT_PRIORITY, ParameterWriter,
};
use crate::time::Duration;

wire_enum! {
    /// Kind of RELIABILITY, in ascending order of the offered guarantee.
    ReliabilityKind, "unknown RELIABILITY kind" {
        /// Lost samples are not retransmitted.
        #[default]
        BestEffort = 1, "BEST_EFFORT";
        /// Samples are retransmitted until they are acknowledged.
        Reliable = 2, "RELIABLE";
    }
}

/// RELIABILITY. Writers default to RELIABLE, readers and topics to BEST_EFFORT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reliability {
    /// Kind of reliability.
    pub kind: ReliabilityKind,
    /// Maximum time that a write blocks while the history is full.
    pub max_blocking_time: Duration,
}

impl Reliability {
    /// BEST_EFFORT with the default blocking time.
    pub const BEST_EFFORT: Self = Self::of(ReliabilityKind::BestEffort);
    /// RELIABLE with the default blocking time of 100 ms.
    pub const RELIABLE: Self = Self::of(ReliabilityKind::Reliable);

    const fn of(kind: ReliabilityKind) -> Self {
        Self { kind, max_blocking_time: Duration::from_millis(100) }
    }

    pub(super) const fn reliable() -> Self {
        Self::RELIABLE
    }

    /// Reports whether the kind is RELIABLE.
    pub const fn is_reliable(&self) -> bool {
        matches!(self.kind, ReliabilityKind::Reliable)
    }
}

impl Default for Reliability {
    /// Returns the default of readers and topics; writers default to [`Reliability::RELIABLE`].
    fn default() -> Self {
        Self::BEST_EFFORT
    }
}

impl WirePolicy for Reliability {
    const PID: u16 = PID_RELIABILITY;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let kind = ReliabilityKind::parse_kind(value)?;
        Ok(Self { kind, max_blocking_time: Duration::parse(value)? })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.kind.to_wire());
        value.duration(self.max_blocking_time);
    }
}

impl RequestedPolicy for Reliability {
    fn offers(&self, requested: &Self) -> bool {
        self.kind >= requested.kind
    }

    fn offered_text(&self) -> String {
        self.kind.to_string()
    }

    fn is_same_term(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

wire_enum! {
    /// Kind of LIVELINESS, in ascending order of the offered guarantee.
    LivelinessKind, "unknown LIVELINESS kind" {
        /// The middleware asserts liveliness while the process lives.
        #[default]
        Automatic = 0, "AUTOMATIC";
        /// The application asserts liveliness once for all writers of the participant.
        ManualByParticipant = 1, "MANUAL_BY_PARTICIPANT";
        /// The application asserts liveliness of each writer.
        ManualByTopic = 2, "MANUAL_BY_TOPIC";
    }
}

/// LIVELINESS; the default is AUTOMATIC with an infinite lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveliness {
    /// Kind of liveliness.
    pub kind: LivelinessKind,
    /// Lease duration of an assertion.
    pub lease_duration: Duration,
}

impl Default for Liveliness {
    fn default() -> Self {
        Self { kind: LivelinessKind::Automatic, lease_duration: Duration::INFINITE }
    }
}

impl WirePolicy for Liveliness {
    const PID: u16 = PID_LIVELINESS;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let kind = LivelinessKind::parse_kind(value)?;
        Ok(Self { kind, lease_duration: Duration::parse(value)? })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.kind.to_wire());
        value.duration(self.lease_duration);
    }
}

requested_policy! {
    Liveliness,
        |offered, requested| offered.kind >= requested.kind && offered.lease_duration <= requested.lease_duration,
        |policy| format!("{} with lease {}", policy.kind, policy.lease_duration);
    Ownership, |offered, requested| offered == requested, |policy| policy.to_string();
}

wire_enum! {
    /// OWNERSHIP: whether several writers may update the same instance.
    Ownership, "unknown OWNERSHIP kind" {
        /// Samples of all writers are delivered.
        #[default]
        Shared = 0, "SHARED";
        /// Only samples of the strongest live writer are delivered.
        Exclusive = 1, "EXCLUSIVE";
    }
}

impl WirePolicy for Ownership {
    const PID: u16 = PID_OWNERSHIP;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Self::parse_kind(value)
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.to_wire());
    }
}

macro_rules! number {
    ($($(#[$meta:meta])* $name:ident, $pid:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub i32);

        impl WirePolicy for $name {
            const PID: u16 = $pid;

            fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
                value.i32().map(Self)
            }

            fn emit(&self, value: &mut ParameterWriter<'_>) {
                value.i32(self.0);
            }
        }
    )*};
}

number! {
    /// OWNERSHIP_STRENGTH: strength of a writer under exclusive ownership; the highest wins.
    OwnershipStrength, PID_OWNERSHIP_STRENGTH;
    /// TRANSPORT_PRIORITY: hint for the transport; higher values are more urgent.
    TransportPriority, PID_TRANSPORT_PRIORITY;
}
