//! Verdict of the reader's TYPE_CONSISTENCY_ENFORCEMENT on a pair of types, known or unavailable
//! (XTypes 1.3 §7.6.3.7).

use takt_core::{Participant, TypeVerdict};
use takt_wire::VendorId;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{DataRepresentation, TypeConsistencyKind};
use takt_wire::type_lookup::EquivalenceId;
use takt_xtypes::Representation;
use takt_xtypes::assignability::{Caution, Inassignable, Rules, TypeRef, is_assignable, is_equivalent};
use takt_xtypes::type_object::{TypeIdentifier, TypeInformation, TypeObject, TypeRegistry};

/// A type with the definitions of all types that it refers to.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) root: TypeIdentifier,
    pub(crate) types: TypeRegistry,
}

impl Definition {
    fn as_ref(&self) -> TypeRef<'_> {
        TypeRef { identifier: &self.root, types: &self.types }
    }
}

/// Returns the type of a local endpoint, from the definitions that the TypeLookup service serves.
pub(super) fn own(core: &Participant, information: &[u8]) -> Option<Definition> {
    let Ok(information) = TypeInformation::parse(information) else { return None };
    let (root, mut types) = (information.complete.type_id, TypeRegistry::with_limit(usize::MAX));
    loop {
        let missing = types.missing(&root);
        if missing.is_empty() {
            return Some(Definition { root, types });
        }
        for identifier in missing {
            let bytes = core.offered_type(&EquivalenceId::from_bytes(&identifier.to_bytes())?)?;
            let stored = TypeObject::parse(bytes).map(|object| types.insert_as(&identifier, object));
            if !matches!(stored, Ok(Ok(()))) {
                return None;
            }
        }
    }
}

/// Compares the types of a writer and a reader under the reader's policy.
pub(crate) fn compare(
    writer: &PublicationData,
    reader: &SubscriptionData,
    of_writer: &Definition,
    of_reader: &Definition,
) -> Result<Vec<Caution>, Inassignable> {
    let policy = &reader.qos.type_consistency;
    let (of_writer, of_reader) = (of_writer.as_ref(), of_reader.as_ref());
    if policy.kind == TypeConsistencyKind::DisallowTypeCoercion {
        return is_equivalent(of_reader, of_writer);
    }
    let in_xcdr2 = writer.qos.data_representation.0.first() == Some(&DataRepresentation::XCDR2);
    let rules = Rules {
        ignore_sequence_bounds: policy.ignore_sequence_bounds,
        ignore_string_bounds: policy.ignore_string_bounds,
        ignore_member_names: policy.ignore_member_names,
        prevent_type_widening: policy.prevent_type_widening,
        representation: if in_xcdr2 { Representation::Xcdr2 } else { Representation::Xcdr1 },
    };
    is_assignable(of_reader, of_writer, &rules)
}

/// Reports whether CycloneDDS owns an endpoint of the pair.
///
/// INTEROP(CycloneDDS 11): refuses pairs that a [`Caution`] describes, without any message on the
/// network. A match on this side alone blocks a KEEP_ALL writer.
pub(crate) fn involves_cyclone(vendors: [VendorId; 2]) -> bool {
    vendors.contains(&VendorId::CYCLONE)
}

pub(super) fn compare_for_vendors(
    vendors: [VendorId; 2],
    writer: &PublicationData,
    reader: &SubscriptionData,
    of_writer: &Definition,
    of_reader: &Definition,
) -> TypeVerdict {
    match compare(writer, reader, of_writer, of_reader) {
        Ok(cautions) if cautions.is_empty() => TypeVerdict::Compatible,
        Ok(cautions) if involves_cyclone(vendors) => {
            TypeVerdict::Incompatible { reason: refused_by_cyclone(&cautions).into() }
        }
        Ok(cautions) => TypeVerdict::CompatibleWithCaution { what: join_cautions(&cautions).into() },
        Err(reason @ Inassignable::Differs { .. }) => TypeVerdict::Incompatible { reason: reason.to_string().into() },
        Err(reason) => type_unavailable(reader, &reason.to_string()),
    }
}

/// Joins cautions into one text.
pub(crate) fn join_cautions(cautions: &[Caution]) -> String {
    let texts: Vec<String> = cautions.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Describes the refusal of a pair with CycloneDDS that would otherwise match.
pub(crate) fn refused_by_cyclone(cautions: &[Caution]) -> String {
    format!("{} (CycloneDDS does not match these types)", join_cautions(cautions))
}

/// Returns the verdict on a pair of which one type is unavailable.
pub(super) fn type_unavailable(reader: &SubscriptionData, reason: &str) -> TypeVerdict {
    if reader.qos.type_consistency.force_type_validation {
        let reason = format!("force_type_validation is set, but the other type is unavailable: {reason}");
        return TypeVerdict::Incompatible { reason: reason.into() };
    }
    TypeVerdict::Compatible
}
