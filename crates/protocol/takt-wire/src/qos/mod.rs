//! QoS policies: values, defaults and wire forms.
//!
//! Policies and their defaults are those of DDS 1.4 §2.2.3, with data representation and type
//! consistency from XTypes 1.3 §7.6.3; the wire forms are those of RTPS 2.5 §9.6.3. The names
//! are the OMG's without the suffix `QosPolicy`.
//!
//! This module covers values and bytes only. The creation of entities decides whether the policies
//! of an entity are consistent, and which of them may change later.

mod chain;
mod contract;
mod data;
mod delivery;
mod lifecycle;
mod ordering;
mod policy;
mod representation;
mod storage;
mod table;
mod timing;

pub use chain::Overrun;
pub use contract::{
    BUDGET as BUDGET_PROPERTY, Contract, EarlyWrite, OVERRUN as OVERRUN_PROPERTY, PRIORITY as PRIORITY_PROPERTY,
    TRANSPORT as TRANSPORT_PROPERTY, contradictions,
};
pub use data::*;
pub use delivery::*;
pub use lifecycle::*;
pub use ordering::*;
pub use policy::{Announcement, Policy, PolicyInfo, PolicySet, RequestedPolicy, Terms};
pub use representation::*;
pub use storage::*;
pub(crate) use table::incompatibilities;
pub use table::*;
pub use timing::*;

use policy::requested_policy;

use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterListBuilder, ParameterWriter};

/// QoS policy that is sent as a parameter.
pub trait WirePolicy: Sized + PartialEq {
    /// Parameter id.
    const PID: u16;

    /// Parses the parameter value.
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed>;

    /// Writes the parameter value.
    fn emit(&self, value: &mut ParameterWriter<'_>);

    /// Parses the policy from its parameter.
    fn from_parameter(parameter: &Parameter<'_>) -> Result<Self, Malformed> {
        Self::parse(&mut parameter.cursor())
    }

    /// Adds the policy to a parameter list.
    fn put(&self, list: &mut ParameterListBuilder) {
        list.put(Self::PID, |value| self.emit(value));
    }

    /// Adds the policy to a parameter list unless it equals the value that an absent parameter
    /// implies.
    fn put_unless(&self, absent: &Self, list: &mut ParameterListBuilder) {
        if self != absent {
            self.put(list);
        }
    }
}

/// Reads a CDR boolean; every octet but zero is true.
fn parse_bool(value: &mut Cursor<'_>) -> Result<bool, Malformed> {
    Ok(value.u8()? != 0)
}

/// Defines an enum whose variants have a number on the wire and a name in reports.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $name:ident, $unknown:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $wire:literal, $text:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            const fn to_wire(self) -> u32 {
                match self {
                    $(Self::$variant => $wire,)+
                }
            }

            fn parse_kind(value: &mut $crate::cursor::Cursor<'_>) -> Result<Self, $crate::error::Malformed> {
                let at = value.malformed($unknown);
                match value.u32()? {
                    $($wire => Ok(Self::$variant),)+
                    _ => Err(at),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)+
                })
            }
        }
    };
}
use wire_enum;

#[cfg(test)]
mod tests;
