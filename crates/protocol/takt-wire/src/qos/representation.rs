//! QoS policies of data representation and type consistency: DATA_REPRESENTATION,
//! TYPE_CONSISTENCY_ENFORCEMENT (XTypes 1.3 §7.6.3.1, §7.6.3.4).

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{RequestedPolicy, WirePolicy, parse_bool};
use crate::cursor::Cursor;
use crate::discovery::limits;
use crate::error::Malformed;
use crate::parameter::{PID_DATA_REPRESENTATION, PID_TYPE_CONSISTENCY_ENFORCEMENT, ParameterWriter};

/// DATA_REPRESENTATION: ids of the encodings that a writer offers (only the first is used) or a
/// reader accepts.
///
/// The empty list means XCDR1 alone, and so does the absence of the policy in discovery data. The
/// defaults of the entities are explicit: writers offer XCDR1, readers accept XCDR1 and XCDR2.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DataRepresentation(pub Vec<i16>);

impl DataRepresentation {
    /// Id of XCDR version 1.
    pub const XCDR1: i16 = 0;
    /// Id of XML.
    pub const XML: i16 = 1;
    /// Id of XCDR version 2.
    pub const XCDR2: i16 = 2;

    /// Returns the policy with XCDR1 alone.
    pub fn xcdr1() -> Self {
        Self(vec![Self::XCDR1])
    }

    /// Returns the policy with XCDR2 alone.
    pub fn xcdr2() -> Self {
        Self(vec![Self::XCDR2])
    }

    /// Returns the policy with XCDR1 and XCDR2.
    pub fn any_xcdr() -> Self {
        Self(vec![Self::XCDR1, Self::XCDR2])
    }

    /// Returns the ids. An empty list yields XCDR1.
    pub fn effective(&self) -> &[i16] {
        if self.0.is_empty() { &[Self::XCDR1] } else { &self.0 }
    }

    /// Returns the encoding that a writer with this policy uses.
    pub fn offered(&self) -> i16 {
        self.effective()[0]
    }

    /// Reports whether a reader with this policy accepts the encoding.
    pub fn accepts(&self, id: i16) -> bool {
        self.effective().contains(&id)
    }

    /// Returns the name of an encoding as reports spell it.
    pub const fn name(id: i16) -> Option<&'static str> {
        match id {
            Self::XCDR1 => Some("XCDR1"),
            Self::XML => Some("XML"),
            Self::XCDR2 => Some("XCDR2"),
            _ => None,
        }
    }
}

impl WirePolicy for DataRepresentation {
    const PID: u16 = PID_DATA_REPRESENTATION;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = value.malformed("too many data representations");
        let count = value.count(2)?;
        if count > limits::REPRESENTATIONS_MAX {
            return Err(at);
        }
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            ids.push(value.i16()?);
        }
        Ok(Self(ids))
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.count(self.0.len());
        for id in &self.0 {
            value.u16(id.cast_unsigned());
        }
    }
}

impl RequestedPolicy for DataRepresentation {
    fn offers(&self, requested: &Self) -> bool {
        requested.accepts(self.offered())
    }

    fn offered_text(&self) -> String {
        names(&[self.offered()])
    }

    fn requested_text(&self) -> String {
        names(self.effective())
    }
}

fn names(ids: &[i16]) -> String {
    let name = |id: &i16| DataRepresentation::name(*id).map_or_else(|| id.to_string(), String::from);
    ids.iter().map(name).collect::<Vec<_>>().join(" or ")
}

/// Kind of TYPE_CONSISTENCY_ENFORCEMENT: whether a writer's type may differ from the reader's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TypeConsistencyKind {
    /// The types must be equivalent.
    DisallowTypeCoercion,
    /// The writer's type must be assignable to the reader's.
    #[default]
    AllowTypeCoercion,
}

/// TYPE_CONSISTENCY_ENFORCEMENT: rules by which a reader compares types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeConsistency {
    /// Kind of consistency.
    pub kind: TypeConsistencyKind,
    /// True if sequence bounds may differ.
    pub ignore_sequence_bounds: bool,
    /// True if string bounds may differ.
    pub ignore_string_bounds: bool,
    /// True if names of members with equal ids may differ.
    pub ignore_member_names: bool,
    /// True if the writer's type must not have more members than the reader's.
    pub prevent_type_widening: bool,
    /// True if endpoints without type information do not match.
    pub force_type_validation: bool,
}

impl TypeConsistency {
    /// Returns the policy of this kind with the other fields at their defaults.
    pub const fn of(kind: TypeConsistencyKind) -> Self {
        let allow = matches!(kind, TypeConsistencyKind::AllowTypeCoercion);
        Self {
            kind,
            ignore_sequence_bounds: allow,
            ignore_string_bounds: allow,
            ignore_member_names: false,
            prevent_type_widening: !allow,
            force_type_validation: false,
        }
    }
}

impl Default for TypeConsistency {
    fn default() -> Self {
        Self::of(TypeConsistencyKind::default())
    }
}

impl WirePolicy for TypeConsistency {
    const PID: u16 = PID_TYPE_CONSISTENCY_ENFORCEMENT;

    /// Parses the kind and the booleans that are present. The others keep their defaults, because
    /// later versions of the specification have more of them.
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = value.malformed("unknown TYPE_CONSISTENCY_ENFORCEMENT kind");
        let kind = match value.u16()? {
            0 => TypeConsistencyKind::DisallowTypeCoercion,
            1 => TypeConsistencyKind::AllowTypeCoercion,
            _ => return Err(at),
        };
        let mut policy = Self::of(kind);
        for flag in [
            &mut policy.ignore_sequence_bounds,
            &mut policy.ignore_string_bounds,
            &mut policy.ignore_member_names,
            &mut policy.prevent_type_widening,
            &mut policy.force_type_validation,
        ] {
            if value.is_empty() {
                break;
            }
            *flag = parse_bool(value)?;
        }
        Ok(policy)
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.u16(match self.kind {
            TypeConsistencyKind::DisallowTypeCoercion => 0,
            TypeConsistencyKind::AllowTypeCoercion => 1,
        });
        value.bool(self.ignore_sequence_bounds);
        value.bool(self.ignore_string_bounds);
        value.bool(self.ignore_member_names);
        value.bool(self.prevent_type_widening);
        value.bool(self.force_type_validation);
    }
}
