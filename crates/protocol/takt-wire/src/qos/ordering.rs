//! QoS policies of order and coherence: PRESENTATION, DESTINATION_ORDER
//! (DDS 1.4 §2.2.3.6, §2.2.3.17).

use alloc::string::ToString;

use super::{WirePolicy, parse_bool, requested_policy, wire_enum};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{PID_DESTINATION_ORDER, PID_PRESENTATION, ParameterWriter};

wire_enum! {
    /// Access scope of coherence and order, in ascending order of the offered guarantee.
    AccessScope, "unknown PRESENTATION access scope" {
        /// One instance.
        #[default]
        Instance = 0, "INSTANCE";
        /// All instances of one writer.
        Topic = 1, "TOPIC";
        /// All writers of one publisher.
        Group = 2, "GROUP";
    }
}

/// PRESENTATION. The default scope is INSTANCE, neither coherent nor ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Presentation {
    /// Scope of the two other fields.
    pub access_scope: AccessScope,
    /// True if a set of changes becomes visible atomically.
    pub coherent_access: bool,
    /// True if changes are presented in the order in which they were made.
    pub ordered_access: bool,
}

impl WirePolicy for Presentation {
    const PID: u16 = PID_PRESENTATION;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            access_scope: AccessScope::parse_kind(value)?,
            coherent_access: parse_bool(value)?,
            ordered_access: parse_bool(value)?,
        })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.access_scope.to_wire());
        value.bool(self.coherent_access);
        value.bool(self.ordered_access);
    }
}

requested_policy! {
    Presentation,
        |offered, requested| offered.access_scope >= requested.access_scope
            && (offered.coherent_access || !requested.coherent_access)
            && (offered.ordered_access || !requested.ordered_access),
        |policy| {
            let mut text = policy.access_scope.to_string();
            if policy.coherent_access {
                text.push_str(" coherent");
            }
            if policy.ordered_access {
                text.push_str(" ordered");
            }
            text
        };
}

wire_enum! {
    /// DESTINATION_ORDER: the timestamp that orders updates, in ascending order of the offered
    /// guarantee.
    DestinationOrder, "unknown DESTINATION_ORDER kind" {
        /// The update that arrived last is the latest.
        #[default]
        ByReceptionTimestamp = 0, "BY_RECEPTION_TIMESTAMP";
        /// The update that was written last is the latest, so all readers agree.
        BySourceTimestamp = 1, "BY_SOURCE_TIMESTAMP";
    }
}

impl WirePolicy for DestinationOrder {
    const PID: u16 = PID_DESTINATION_ORDER;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Self::parse_kind(value)
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u32(self.to_wire());
    }
}

requested_policy! {
    DestinationOrder, |offered, requested| offered >= requested, |policy| policy.to_string();
}
