//! What the reader's policy says of two types that are known, and of those that are not (XTypes 1.3 §7.6.3.7).

use takt_core::{Participant, TypeVerdict};
use takt_wire::VendorId;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{DataRepresentation, TypeConsistencyKind};
use takt_wire::type_lookup::EquivalenceId;
use takt_xtypes::Representation;
use takt_xtypes::assignability::{Caution, Inassignable, Rules, TypeRef, is_assignable, is_equivalent};
use takt_xtypes::type_object::{TypeIdentifier, TypeInformation, TypeObject, TypeRegistry};

/// A type and all it is made of.
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

/// The type of an endpoint of ours, from what is given out to others.
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
            let kept = TypeObject::parse(bytes).map(|object| types.insert_as(&identifier, object));
            if !matches!(kept, Ok(Ok(()))) {
                return None;
            }
        }
    }
}

/// Whether a reader may have what a writer writes, as the reader's policy says.
pub(crate) fn compared(
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

/// Whether CycloneDDS takes part in a pair.
///
/// INTEROP(CycloneDDS 11): does not match what a [`Caution`] names, without a word on the network. A match that this side alone
/// makes stops a writer of KEEP_ALL.
pub(crate) fn involves_cyclone(vendors: [VendorId; 2]) -> bool {
    vendors.contains(&VendorId::CYCLONE)
}

pub(super) fn judged(
    vendors: [VendorId; 2],
    writer: &PublicationData,
    reader: &SubscriptionData,
    of_writer: &Definition,
    of_reader: &Definition,
) -> TypeVerdict {
    match compared(writer, reader, of_writer, of_reader) {
        Ok(cautions) if cautions.is_empty() => TypeVerdict::Fit,
        Ok(cautions) if involves_cyclone(vendors) => TypeVerdict::Differ { why: refused_by_cyclone(&cautions).into() },
        Ok(cautions) => TypeVerdict::FitWithCaution { what: in_words(&cautions).into() },
        Err(why @ Inassignable::Differs { .. }) => TypeVerdict::Differ { why: why.to_string().into() },
        Err(why) => unlearned(reader, &why.to_string()),
    }
}

/// Cautions as one text.
pub(crate) fn in_words(cautions: &[Caution]) -> String {
    let texts: Vec<String> = cautions.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Why a pair with CycloneDDS is refused that would match otherwise.
pub(crate) fn refused_by_cyclone(cautions: &[Caution]) -> String {
    format!("{} (CycloneDDS does not match these types)", in_words(cautions))
}

/// What holds for a pair of which one type is not known.
pub(super) fn unlearned(reader: &SubscriptionData, why: &str) -> TypeVerdict {
    if reader.qos.type_consistency.force_type_validation {
        let why = format!("force_type_validation is set, and the other type cannot be learned: {why}");
        return TypeVerdict::Differ { why: why.into() };
    }
    TypeVerdict::Fit
}
