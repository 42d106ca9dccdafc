//! Requests of the TypeLookup service: for type objects, or for the dependencies of types.

use alloc::format;
use alloc::vec::Vec;

use super::{ContinuationPoint, EquivalenceId, RequestId, TYPE_IDS_MAX, UnionForm, member, operation, xcdr};
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::guid::Guid;

/// Prefix of the instance name of a participant's service. The participant's GUID follows, as 32
/// hexadecimal digits.
const INSTANCE_NAME_PREFIX: &str = "dds.builtin.TOS.";

/// Addressee of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressee {
    /// The service of this participant.
    Participant(Guid),
    /// Every service: the instance name is empty, or its GUID is zero.
    Any,
    /// No service of a participant: any other instance name. [`TypeRequest::to_bytes`] writes an
    /// empty one.
    Other,
}

impl Addressee {
    fn from_instance_name(name: &str) -> Self {
        let Some(digits) = name.strip_prefix(INSTANCE_NAME_PREFIX) else {
            return if name.is_empty() { Self::Any } else { Self::Other };
        };
        let is_hexadecimal = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(digits, 16) {
            Ok(0) if is_hexadecimal => Self::Any,
            Ok(octets) if is_hexadecimal => Self::Participant(Guid::from_bytes(octets.to_be_bytes())),
            _ => Self::Other,
        }
    }
}

/// Request of the TypeLookup service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeRequest {
    /// Identity of the request, which the reply refers to.
    pub id: RequestId,
    /// Addressee of the request.
    pub addressee: Addressee,
    /// Requested operation and its arguments.
    pub operation: Operation,
    /// Extensibility of the unions in the request. The reply should use the same.
    pub form: UnionForm,
}

/// Requested operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `getTypes`: requests the type objects with these identifiers.
    Types(Vec<EquivalenceId>),
    /// `getTypeDependencies`: requests the identifiers of all types that these refer to, directly
    /// or indirectly. The continuation point is that of the last reply if the list was too long for
    /// it.
    Dependencies(Vec<EquivalenceId>, ContinuationPoint),
    /// An operation that is none of the two. Its hash and arguments are not kept.
    Unknown,
}

impl TypeRequest {
    /// Parses a request, encapsulation header included. Keeps the first [`TYPE_IDS_MAX`]
    /// identifiers, without those that are not hashes and therefore have no object.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = xcdr::decapsulate(payload)?;
        let id = RequestId::parse(&mut cursor)?;
        let addressee = Addressee::from_instance_name(cursor.string()?);
        let form = UnionForm::detect(&cursor)?;
        let mut call = form.open(&mut cursor)?;
        let operation = match call.i32()? {
            operation::GET_TYPES => Operation::Types(Arguments::parse(&mut call)?.type_ids),
            operation::GET_DEPENDENCIES => {
                let arguments = Arguments::parse(&mut call)?;
                Operation::Dependencies(arguments.type_ids, arguments.continuation_point)
            }
            _ => Operation::Unknown,
        };
        Ok(Self { id, addressee, operation, form })
    }

    /// Returns the payload, encapsulation header included. [`Operation::Unknown`] gets the hash 0.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = xcdr::Output::new();
        self.id.emit(&mut out);
        match self.addressee {
            Addressee::Participant(guid) => {
                let digits = u128::from_be_bytes(guid.to_bytes());
                out.string(&format!("{INSTANCE_NAME_PREFIX}{digits:032x}"));
            }
            Addressee::Any | Addressee::Other => out.string(""),
        }
        let position = self.form.begin(&mut out);
        match &self.operation {
            Operation::Types(type_ids) => {
                out.u32(operation::GET_TYPES as u32);
                out.delimited(|out| emit_type_ids(out, type_ids));
            }
            Operation::Dependencies(type_ids, continuation_point) => {
                out.u32(operation::GET_DEPENDENCIES as u32);
                out.delimited(|out| {
                    emit_type_ids(out, type_ids);
                    continuation_point.emit(out);
                });
            }
            Operation::Unknown => out.u32(0),
        }
        UnionForm::close(position, &mut out);
        out.finish()
    }
}

fn emit_type_ids(out: &mut xcdr::Output, type_ids: &[EquivalenceId]) {
    out.member(member::TYPE_IDS, |out| {
        out.delimited(|out| {
            out.u32(type_ids.len() as u32);
            type_ids.iter().for_each(|id| id.emit(out));
        });
    });
}

/// Arguments of either operation. An absent member has its default value.
#[derive(Default)]
struct Arguments {
    type_ids: Vec<EquivalenceId>,
    continuation_point: ContinuationPoint,
}

impl Arguments {
    fn parse(call: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut members = xcdr::delimited(call)?;
        let mut arguments = Self::default();
        while let Some((id, mut value)) = xcdr::next_member(&mut members)? {
            match id {
                member::TYPE_IDS => {
                    let (count, mut elements) = xcdr::sequence(&mut value, 1)?;
                    for _ in 0..count.min(TYPE_IDS_MAX) {
                        arguments.type_ids.extend(EquivalenceId::parse(&mut elements)?);
                    }
                }
                member::CONTINUATION_POINT => {
                    arguments.continuation_point = ContinuationPoint::parse(&mut value)?;
                }
                _ => {}
            }
        }
        Ok(arguments)
    }
}
