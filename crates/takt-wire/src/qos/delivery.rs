//! Who delivers, and how surely: RELIABILITY, LIVELINESS, OWNERSHIP, OWNERSHIP_STRENGTH,
//! TRANSPORT_PRIORITY (DDS 1.4 §2.2.3.14, §2.2.3.11, §2.2.3.9, §2.2.3.10, §2.2.3.15).

use super::{WirePolicy, wire_enum};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{
    PID_LIVELINESS, PID_OWNERSHIP, PID_OWNERSHIP_STRENGTH, PID_RELIABILITY, PID_TRANSPORT_PRIORITY, ParameterWriter,
};
use crate::time::Duration;

wire_enum! {
    /// Are lost samples sent again? Ordered: what is later offers more.
    ReliabilityKind, "unknown RELIABILITY kind" {
        /// Not sent again.
        #[default]
        BestEffort = 1, "BEST_EFFORT";
        /// Sent again until they are acknowledged.
        Reliable = 2, "RELIABLE";
    }
}

/// RELIABILITY. Writers default to RELIABLE, readers and topics to BEST_EFFORT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reliability {
    /// Are lost samples sent again?
    pub kind: ReliabilityKind,
    /// How long a write may wait for room in the history.
    pub max_blocking_time: Duration,
}

impl Reliability {
    /// BEST_EFFORT, with the default blocking time.
    pub const BEST_EFFORT: Self = Self::of(ReliabilityKind::BestEffort);
    /// RELIABLE, with the default blocking time of 100 ms.
    pub const RELIABLE: Self = Self::of(ReliabilityKind::Reliable);

    const fn of(kind: ReliabilityKind) -> Self {
        Self { kind, max_blocking_time: Duration::from_millis(100) }
    }

    /// Is it RELIABLE?
    pub const fn is_reliable(&self) -> bool {
        matches!(self.kind, ReliabilityKind::Reliable)
    }
}

impl Default for Reliability {
    /// That of readers and topics; writers have [`Reliability::RELIABLE`].
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

wire_enum! {
    /// Who says that a writer is alive? Ordered: what is later offers more.
    LivelinessKind, "unknown LIVELINESS kind" {
        /// The middleware, as long as the process lives.
        #[default]
        Automatic = 0, "AUTOMATIC";
        /// The application, once for all writers of the participant.
        ManualByParticipant = 1, "MANUAL_BY_PARTICIPANT";
        /// The application, for each writer.
        ManualByTopic = 2, "MANUAL_BY_TOPIC";
    }
}

/// LIVELINESS; the default is AUTOMATIC with an infinite lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveliness {
    /// Who says that the writer is alive?
    pub kind: LivelinessKind,
    /// How long one assertion lasts.
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

wire_enum! {
    /// OWNERSHIP: may several writers update the same instance?
    Ownership, "unknown OWNERSHIP kind" {
        /// All of them.
        #[default]
        Shared = 0, "SHARED";
        /// Only the strongest that is alive.
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
    /// OWNERSHIP_STRENGTH: which writer wins an instance that is owned exclusively; the highest.
    OwnershipStrength, PID_OWNERSHIP_STRENGTH;
    /// TRANSPORT_PRIORITY: a hint to the transport; higher is more urgent.
    TransportPriority, PID_TRANSPORT_PRIORITY;
}
