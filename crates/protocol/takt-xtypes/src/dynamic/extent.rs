//! Maximum key length of a type, which determines whether the key hash is the key itself
//! (XTypes 1.3 §7.6.8).

use core::cell::Cell;

use super::node::{Node, NodeId, Struct, Types};
use crate::{Extent, KeyHash, Representation, Scope};

/// Returns the maximum length of the key in bytes as it is hashed; `None` if it may exceed a key
/// hash.
pub(super) fn key_len(types: &Types, root: NodeId, representation: Representation) -> Option<usize> {
    let steps = Cell::new(STEPS_MAX);
    extend(&Search { types, steps: &steps }, root, Extent::new(representation, Scope::KeyHash)).end()
}

/// Maximum number of visited members. A type that is used several times is visited each time. Keys
/// of at most 16 bytes need few visits; a key that needs more counts as longer.
const STEPS_MAX: usize = 100_000;

/// Search state: the types and the remaining steps.
struct Search<'a> {
    types: &'a Types,
    steps: &'a Cell<usize>,
}

/// Advances a worst-case position past a value. A position beyond a key hash counts as unbounded,
/// which ends the search. A peer's type therefore cannot prolong it.
fn extend(search: &Search<'_>, id: NodeId, extent: Extent) -> Extent {
    let (types, steps) = (search.types, search.steps.get());
    search.steps.set(steps.saturating_sub(1));
    if steps == 0 || extent.end().is_none_or(|end| end > size_of::<KeyHash>()) {
        return extent.unbounded();
    }
    let bounded = |extent: Extent, elements: &[NodeId], count: usize| {
        let delimited = types.is_delimited(extent.representation(), elements);
        let extent = if delimited { extent.add(4, 4) } else { extent };
        extent.add(4, 4).nested(|extent| {
            extent.repeat(count, |extent| elements.iter().fold(extent, |extent, &id| extend(search, id, extent)))
        })
    };
    let extent = match types.resolved(id) {
        Node::Primitive(primitive) => extent.add(primitive.len(), primitive.len()),
        Node::Enum(enumeration) => extent.add(enumeration.holder_len(), enumeration.holder_len()),
        Node::Bitmask(bitmask) => extent.add(bitmask.holder_len(), bitmask.holder_len()),
        Node::String { bound: Some(bound) } => extent.add(4, 4).add(1, bound.saturating_add(1)),
        Node::WString { bound: Some(bound) } => extent.add(4, 4).add(1, bound.saturating_mul(2)),
        Node::Sequence { element, bound: Some(bound) } => bounded(extent, &[*element], *bound),
        Node::Map { key, element, bound: Some(bound) } => bounded(extent, &[*key, *element], *bound),
        Node::String { .. } | Node::WString { .. } | Node::Sequence { .. } | Node::Map { .. } => extent.unbounded(),
        Node::Array { element, len, .. } => {
            let delimited = types.is_array_delimited(extent.representation(), *element);
            let extent = if delimited { extent.add(4, 4) } else { extent };
            extend_rows(search, *element, *len, extent)
        }
        Node::Struct(structure) => extend_members(search, structure, extent),
        Node::Union(union) => {
            let discriminator = extend(search, union.discriminator, extent);
            if union.discriminator_is_key {
                return discriminator;
            }
            // A union may contain itself, so its depth is limited.
            discriminator.nested(|discriminator| {
                union.cases.iter().fold(discriminator, |end, case| end.max(extend(search, case.node, discriminator)))
            })
        }
        Node::Alias { target, .. } => extend(search, *target, extent),
    };
    if extent.end().is_some_and(|end| end > size_of::<KeyHash>()) { extent.unbounded() } else { extent }
}

/// Advances past the elements of an array without a header.
fn extend_rows(search: &Search<'_>, element: NodeId, len: usize, extent: Extent) -> Extent {
    match search.types.resolved(element) {
        // A length that overflows exceeds a key hash in any case.
        Node::Array { element, len: inner, .. } => extend_rows(search, *element, len.saturating_mul(*inner), extent),
        _ => extent.repeat(len, |extent| extend(search, element, extent)),
    }
}

fn extend_members(search: &Search<'_>, structure: &Struct, extent: Extent) -> Extent {
    structure.by_id.iter().map(|&index| &structure.members[index]).fold(extent, |extent, member| {
        if structure.has_key && !member.member.key {
            return extent;
        }
        match (member.optional, extent.representation()) {
            (false, _) => extend(search, member.node, extent),
            (true, Representation::Xcdr1) => crate::parameter::extend_parameter(extent, member.member.id, |extent| {
                extent.nested(|extent| extend(search, member.node, extent))
            }),
            (true, Representation::Xcdr2) => extent.add(1, 1).nested(|extent| extend(search, member.node, extent)),
        }
    })
}
