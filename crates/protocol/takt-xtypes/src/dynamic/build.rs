//! Construction of a dynamic type from type objects. Types that no IDL compiler accepts are
//! refused.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::node::{Bitmask, Case, Enum, Node, NodeId, Primitive, Struct, StructMember, TryConstruct, Types, Union};
use super::{MAX_MEMBERS, MAX_NESTING, MAX_TYPES, layout};
use crate::Extensibility;
use crate::structure::{MAX_MEMBER_ID, Member};
use crate::type_object::annotation::BuiltinMember;
use crate::type_object::complete::{self, Complete};
use crate::type_object::identifier::{
    ArrayLarge, ArraySmall, Identifier, MapLarge, MapSmall, SequenceLarge, SequenceSmall,
};
use crate::type_object::kind::{MemberFlag, TypeFlag};
use crate::type_object::{Object, TypeError, TypeIdentifier, TypeRegistry};

/// Builds the type `root` and its parts.
pub(super) fn build(root: &TypeIdentifier, registry: &TypeRegistry) -> Result<(Types, NodeId), TypeError> {
    let mut builder =
        Builder { registry, nodes: Vec::new(), known: BTreeMap::new(), depth: 0, members: 0, bases: Vec::new() };
    let root = builder.node(&root.0)?;
    // Every reserved node was defined before the last call returned.
    let nodes: Option<Vec<Node>> = builder.nodes.into_iter().collect();
    let mut types = Types { nodes: nodes.ok_or(invalid("a type without a definition"))?, layouts: Vec::new() };
    types.layouts = layout::compute(&types)?;
    check_discriminators(&types)?;
    Ok((types, root))
}

struct Builder<'a> {
    registry: &'a TypeRegistry,
    /// Nodes; `None` while the type is under construction.
    nodes: Vec<Option<Node>>,
    known: BTreeMap<Identifier, NodeId>,
    depth: u8,
    /// Number of members of all structures, inherited ones included.
    members: usize,
    /// Structures under construction whose members are read for a derived structure.
    bases: Vec<Identifier>,
}

fn invalid(what: &'static str) -> TypeError {
    TypeError::Invalid { what }
}

/// Converts a bound. Zero means unbounded.
fn bound(bound: u32) -> Result<Option<usize>, TypeError> {
    match bound {
        // INTEROP(CycloneDDS 11): unbounded collections in type objects of their own have this
        // bound.
        0 | u32::MAX => Ok(None),
        _ => usize::try_from(bound).map(Some).map_err(|_| invalid("a bound that exceeds the address space")),
    }
}

/// Checks that a name is printable.
fn name(name: &str) -> Result<Arc<str>, TypeError> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(invalid("a name that is empty or has control characters"));
    }
    Ok(Arc::from(name))
}

/// Returns the annotations of a member, if they are printable.
fn builtin(detail: &complete::MemberDetail) -> Result<Option<Arc<BuiltinMember>>, TypeError> {
    let Some(builtin) = &detail.ann_builtin else { return Ok(None) };
    if builtin.hash_id.as_ref().is_some_and(|text| text.chars().any(char::is_control)) {
        return Err(invalid("a name that is empty or has control characters"));
    }
    Ok(Some(Arc::new((**builtin).clone())))
}

fn extensibility(flags: TypeFlag) -> Result<Extensibility, TypeError> {
    let is = |flag| flags.contains(flag);
    match (is(TypeFlag::IS_FINAL), is(TypeFlag::IS_APPENDABLE), is(TypeFlag::IS_MUTABLE)) {
        (true, false, false) => Ok(Extensibility::Final),
        // Appendable is the default extensibility (XTypes 1.3 §7.3.3.1).
        (false, true, false) | (false, false, false) => Ok(Extensibility::Appendable),
        (false, false, true) => Ok(Extensibility::Mutable),
        _ => Err(invalid("several extensibilities")),
    }
}

/// Converts the two flags. If neither is set, the default is to discard.
fn try_construct(flags: MemberFlag) -> TryConstruct {
    match (flags.contains(MemberFlag::TRY_CONSTRUCT1), flags.contains(MemberFlag::TRY_CONSTRUCT2)) {
        (_, false) => TryConstruct::Discard,
        (false, true) => TryConstruct::UseDefault,
        (true, true) => TryConstruct::Trim,
    }
}

/// Checks that all values differ.
fn all_differ<T: Ord>(values: impl Iterator<Item = T>, what: &'static str) -> Result<(), TypeError> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    if values.windows(2).any(|pair| pair[0] == pair[1]) { Err(invalid(what)) } else { Ok(()) }
}

/// Adds members to the count of previous structures.
fn add_members(sum: &mut usize, count: usize) -> Result<(), TypeError> {
    *sum += count;
    if *sum > MAX_MEMBERS {
        return Err(TypeError::Limit { what: "members of structures, inherited ones included", limit: MAX_MEMBERS });
    }
    Ok(())
}

impl Builder<'_> {
    /// Returns the node of a type. A recursive type may not be built yet.
    fn node(&mut self, identifier: &Identifier) -> Result<NodeId, TypeError> {
        if let Some(&id) = self.known.get(identifier) {
            return Ok(id);
        }
        if self.depth >= MAX_NESTING {
            return Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) });
        }
        let id = self.nodes.len();
        if id >= MAX_TYPES {
            return Err(TypeError::Limit { what: "types", limit: MAX_TYPES });
        }
        self.nodes.push(None);
        self.known.insert(identifier.clone(), id);
        self.depth += 1;
        let node = self.define(identifier)?;
        self.depth -= 1;
        self.nodes[id] = Some(node);
        Ok(id)
    }

    fn define(&mut self, identifier: &Identifier) -> Result<Node, TypeError> {
        Ok(match identifier {
            Identifier::Boolean => Node::Primitive(Primitive::Bool),
            Identifier::Byte => Node::Primitive(Primitive::Byte),
            Identifier::Uint8 => Node::Primitive(Primitive::U8),
            Identifier::Int8 => Node::Primitive(Primitive::I8),
            Identifier::Int16 => Node::Primitive(Primitive::I16),
            Identifier::Uint16 => Node::Primitive(Primitive::U16),
            Identifier::Int32 => Node::Primitive(Primitive::I32),
            Identifier::Uint32 => Node::Primitive(Primitive::U32),
            Identifier::Int64 => Node::Primitive(Primitive::I64),
            Identifier::Uint64 => Node::Primitive(Primitive::U64),
            Identifier::Float32 => Node::Primitive(Primitive::F32),
            Identifier::Float64 => Node::Primitive(Primitive::F64),
            Identifier::Char8 => Node::Primitive(Primitive::Char8),
            Identifier::Char16 => Node::Primitive(Primitive::Char16),
            Identifier::Float128 => return Err(TypeError::Unsupported { what: "long double" }),
            Identifier::None => return Err(invalid("a type identifier of kind TK_NONE")),
            Identifier::String8Small(len) => Node::String { bound: bound(u32::from(*len))? },
            Identifier::String8Large(len) => Node::String { bound: bound(*len)? },
            Identifier::String16Small(len) => Node::WString { bound: bound(u32::from(*len))? },
            Identifier::String16Large(len) => Node::WString { bound: bound(*len)? },
            Identifier::SequenceSmall(SequenceSmall { bound, element, .. }) => {
                self.sequence(&element.0, u32::from(*bound))?
            }
            Identifier::SequenceLarge(SequenceLarge { bound, element, .. }) => self.sequence(&element.0, *bound)?,
            Identifier::ArraySmall(ArraySmall { bounds, element, .. }) => {
                self.array(&element.0, bounds.iter().map(|&bound| u32::from(bound)).collect())?
            }
            Identifier::ArrayLarge(ArrayLarge { bounds, element, .. }) => self.array(&element.0, bounds.clone())?,
            Identifier::MapSmall(MapSmall { bound, key, element, .. }) => {
                self.map(&key.0, &element.0, u32::from(*bound))?
            }
            Identifier::MapLarge(MapLarge { bound, key, element, .. }) => self.map(&key.0, &element.0, *bound)?,
            Identifier::Minimal(_) => return Err(TypeError::Minimal),
            Identifier::Complete(_) | Identifier::Component(_) => self.object(identifier)?,
        })
    }

    fn sequence(&mut self, element: &Identifier, len: u32) -> Result<Node, TypeError> {
        Ok(Node::Sequence { element: self.node(element)?, bound: bound(len)? })
    }

    fn map(&mut self, key: &Identifier, element: &Identifier, len: u32) -> Result<Node, TypeError> {
        Ok(Node::Map { key: self.node(key)?, element: self.node(element)?, bound: bound(len)? })
    }

    fn array(&mut self, element: &Identifier, dimensions: Vec<u32>) -> Result<Node, TypeError> {
        let len = dimensions.iter().try_fold(1_usize, |len, &n| len.checked_mul(usize::try_from(n).ok()?));
        match len {
            Some(len) if len > 0 && !dimensions.is_empty() => {
                Ok(Node::Array { element: self.node(element)?, dimensions, len })
            }
            _ => Err(invalid("array dimensions that are zero or too large")),
        }
    }

    fn object(&mut self, identifier: &Identifier) -> Result<Node, TypeError> {
        match complete(self.registry, identifier)? {
            Complete::Struct(structure) => self.structure(structure),
            Complete::Union(union) => self.union(union),
            Complete::Enum(enumeration) => self::enumeration(enumeration),
            Complete::Bitmask(bitmask) => self::bitmask(bitmask),
            Complete::Alias(alias) => Ok(Node::Alias {
                name: name(&alias.header.detail.type_name)?,
                target: self.node(&alias.body.related_type)?,
            }),
            Complete::Sequence(sequence) => self.sequence(&sequence.element.type_id, sequence.header.bound),
            Complete::Array(array) => self.array(&array.element.type_id, array.header.bound_seq.clone()),
            Complete::Map(map) => self.map(&map.key.type_id, &map.element.type_id, map.header.bound),
            Complete::Bitset(_) => Err(TypeError::Unsupported { what: "a bitset" }),
            Complete::Annotation(_) => Err(invalid("an annotation used as a type")),
        }
    }

    fn structure(&mut self, object: &complete::Struct) -> Result<Node, TypeError> {
        let extensibility = extensibility(object.struct_flags)?;
        let (base, members) = self.members(object)?;
        let inherited = members.len() - object.member_seq.len();
        if members.iter().any(|member| member.optional && member.member.key) {
            return Err(invalid("an optional key member"));
        }
        all_differ(members.iter().map(|member| &member.name), "two members with the same name")?;
        all_differ(members.iter().map(|member| member.member.id), "two members with the same id")?;
        let mut by_id: Vec<usize> = (0..members.len()).collect();
        by_id.sort_unstable_by_key(|&index| members[index].member.id);
        Ok(Node::Struct(Struct {
            name: name(&object.header.detail.type_name)?,
            extensibility,
            nested: object.struct_flags.contains(TypeFlag::IS_NESTED),
            autoid_hash: object.struct_flags.contains(TypeFlag::IS_AUTOID_HASH),
            base,
            has_key: members.iter().any(|member| member.member.key),
            members,
            inherited,
            by_id,
        }))
    }

    /// Returns the base structure and all members, inherited ones first.
    fn members(&mut self, object: &complete::Struct) -> Result<(Option<NodeId>, Vec<StructMember>), TypeError> {
        add_members(&mut self.members, object.member_seq.len())?;
        let (base, mut members) = self.base(&object.header.base_type)?;
        for member in &object.member_seq {
            if member.member_id > MAX_MEMBER_ID {
                return Err(invalid("a member id of more than 28 bits"));
            }
            let flags = member.member_flags;
            members.push(StructMember {
                name: name(&member.detail.name)?,
                member: Member {
                    id: member.member_id,
                    key: flags.contains(MemberFlag::IS_KEY),
                    // The key implies must_understand, which is then not written; see `Member`.
                    must_understand: flags.contains(MemberFlag::IS_MUST_UNDERSTAND)
                        && !flags.contains(MemberFlag::IS_KEY),
                },
                optional: flags.contains(MemberFlag::IS_OPTIONAL),
                external: flags.contains(MemberFlag::IS_EXTERNAL),
                try_construct: try_construct(flags),
                builtin: builtin(&member.detail)?,
                node: self.node(&member.member_type_id)?,
            });
        }
        Ok((base, members))
    }

    /// Returns the base structure and its members.
    fn base(&mut self, identifier: &Identifier) -> Result<(Option<NodeId>, Vec<StructMember>), TypeError> {
        if *identifier == Identifier::None {
            return Ok((None, Vec::new()));
        }
        let base = self.node(identifier)?;
        let mut identifier = identifier;
        for _ in 0..MAX_NESTING {
            match self.known.get(identifier).map(|&id| &self.nodes[id]) {
                Some(Some(Node::Struct(structure))) => {
                    // Count the members before they are copied.
                    add_members(&mut self.members, structure.members.len())?;
                    return Ok((Some(base), structure.members.clone()));
                }
                Some(None | Some(Node::Alias { .. })) => {}
                _ => return Err(invalid("a base type that is not a structure")),
            }
            match complete(self.registry, identifier)? {
                Complete::Struct(structure) => return Ok((Some(base), self.members_of_open(identifier, structure)?)),
                Complete::Alias(alias) => identifier = &alias.body.related_type,
                _ => return Err(invalid("a base type that is not a structure")),
            }
        }
        Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) })
    }

    /// Returns all members of a structure under construction that contains a sequence or external
    /// member of a structure derived from it.
    fn members_of_open(
        &mut self,
        identifier: &Identifier,
        structure: &complete::Struct,
    ) -> Result<Vec<StructMember>, TypeError> {
        if self.bases.contains(identifier) {
            return Err(invalid("a structure that inherits from itself"));
        }
        if self.bases.len() >= usize::from(MAX_NESTING) {
            return Err(TypeError::Limit { what: "levels of types", limit: usize::from(MAX_NESTING) });
        }
        self.bases.push(identifier.clone());
        let (_, members) = self.members(structure)?;
        self.bases.pop();
        Ok(members)
    }

    fn union(&mut self, object: &complete::Union) -> Result<Node, TypeError> {
        let discriminator = self.node(&object.discriminator.type_id)?;
        let mut cases = Vec::with_capacity(object.member_seq.len());
        for member in &object.member_seq {
            if member.member_id > MAX_MEMBER_ID {
                return Err(invalid("a member id of more than 28 bits"));
            }
            cases.push(Case {
                name: name(&member.detail.name)?,
                id: member.member_id,
                labels: member.label_seq.clone(),
                builtin: builtin(&member.detail)?,
                default: member.member_flags.contains(MemberFlag::IS_DEFAULT),
                external: member.member_flags.contains(MemberFlag::IS_EXTERNAL),
                try_construct: try_construct(member.member_flags),
                node: self.node(&member.type_id)?,
            });
        }
        all_differ(cases.iter().map(|case| &case.name), "two cases with the same name")?;
        all_differ(cases.iter().flat_map(|case| &case.labels), "two cases with the same label")?;
        if cases.iter().filter(|case| case.default).count() > 1 {
            return Err(invalid("two default cases"));
        }
        if cases.iter().any(|case| case.labels.is_empty() && !case.default) {
            return Err(invalid("a case without a label"));
        }
        Ok(Node::Union(Union {
            name: name(&object.header.detail.type_name)?,
            extensibility: extensibility(object.union_flags)?,
            nested: object.union_flags.contains(TypeFlag::IS_NESTED),
            autoid_hash: object.union_flags.contains(TypeFlag::IS_AUTOID_HASH),
            discriminator,
            discriminator_is_key: object.discriminator.member_flags.contains(MemberFlag::IS_KEY),
            cases,
        }))
    }
}

/// Returns the type object of an identifier.
fn complete<'a>(registry: &'a TypeRegistry, identifier: &Identifier) -> Result<&'a Complete, TypeError> {
    let identifier = TypeIdentifier(identifier.clone());
    match registry.get(&identifier).map(|object| &object.0) {
        Some(Object::Complete(complete)) => Ok(complete),
        Some(Object::Minimal(_)) => Err(TypeError::Minimal),
        None => Err(TypeError::Missing { identifier }),
    }
}

fn enumeration(object: &complete::Enum) -> Result<Node, TypeError> {
    let bit_bound = object.header.bit_bound;
    if !(1..=32).contains(&bit_bound) || object.literal_seq.is_empty() {
        return Err(invalid("an enumeration"));
    }
    let limit = 1_i64 << (bit_bound - 1);
    let mut literals = Vec::with_capacity(object.literal_seq.len());
    for literal in &object.literal_seq {
        let value = literal.common.value;
        if !(-limit..limit).contains(&i64::from(value)) {
            return Err(invalid("a literal that exceeds the bit bound"));
        }
        literals.push((name(&literal.detail.name)?, value));
    }
    all_differ(literals.iter().map(|(name, _)| name), "two literals with the same name")?;
    let default = object.literal_seq.iter().position(|literal| literal.common.flags.contains(MemberFlag::IS_DEFAULT));
    let has_extensibility = [TypeFlag::IS_FINAL, TypeFlag::IS_APPENDABLE, TypeFlag::IS_MUTABLE]
        .into_iter()
        .any(|flag| object.enum_flags.contains(flag));
    Ok(Node::Enum(Enum {
        name: name(&object.header.detail.type_name)?,
        extensibility: if has_extensibility { Some(extensibility(object.enum_flags)?) } else { None },
        bit_bound,
        literals,
        default,
    }))
}

fn bitmask(object: &complete::Bitmask) -> Result<Node, TypeError> {
    let bit_bound = object.header.bit_bound;
    if !(1..=64).contains(&bit_bound) {
        return Err(invalid("a bitmask"));
    }
    let mut flags = Vec::with_capacity(object.flag_seq.len());
    for flag in &object.flag_seq {
        if flag.position >= bit_bound {
            return Err(invalid("a flag position outside of the bit bound"));
        }
        flags.push((name(&flag.detail.name)?, flag.position));
    }
    all_differ(flags.iter().map(|(name, _)| name), "two flags with the same name")?;
    Ok(Node::Bitmask(Bitmask { name: name(&object.header.detail.type_name)?, bit_bound, flags }))
}

/// Checks that discriminators are of an integer-like type.
fn check_discriminators(types: &Types) -> Result<(), TypeError> {
    let is_number = |id| match types.resolved(id) {
        Node::Primitive(primitive) => !matches!(primitive, Primitive::F32 | Primitive::F64),
        Node::Enum(_) => true,
        _ => false,
    };
    let wrong = types.nodes.iter().any(|node| matches!(node, Node::Union(union) if !is_number(union.discriminator)));
    if wrong { Err(invalid("a discriminator of an unsupported type")) } else { Ok(()) }
}
