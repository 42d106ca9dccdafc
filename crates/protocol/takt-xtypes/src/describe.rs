//! Type objects of Rust types, from the descriptions that the derive generates (XTypes 1.3 §7.3.4).
//!
//! A type describes itself to a [`TypeCollector`] by
//! [`CdrValue::describe`](crate::CdrValue::describe). The types of its members are described first,
//! since the type's hash depends on theirs. Recursive types are detected on the way (Tarjan's
//! strongly connected components) and described twice more: with a hash of zeros, and with the hash
//! over the whole component.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use md5::{Digest, Md5};

use crate::Extensibility;
use crate::definition::ValueAnnotations;
use crate::structure::Member;
pub use crate::type_object::build::TypeObjects;
use crate::type_object::build::{self, CaseParts, MemberParts, StructParts, UnionParts};
use crate::type_object::identifier::{ComponentId, EquivalenceHash, HashId, Identifier};
use crate::type_object::kind::MemberFlag;
use crate::type_object::{Object, TypeIdentifier, TypeObject, TypeRegistry, component_hash};

/// Function that describes a type.
pub type Describe = fn(&mut TypeCollector<'_>) -> TypeIdentifiers;

/// Function that builds both type objects of a type.
pub type Build = fn(&mut TypeCollector<'_>) -> TypeObjects;

/// Both identifiers of a type. They are equal if they are not hashes and contain none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeIdentifiers {
    /// Identifier of the minimal type object.
    pub minimal: TypeIdentifier,
    /// Identifier of the complete type object.
    pub complete: TypeIdentifier,
}

/// Description of a struct.
#[derive(Clone, Copy, Debug)]
pub struct StructDescription {
    /// IDL name.
    pub name: &'static str,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// True if the type is not a topic type.
    pub nested: bool,
    /// True if member ids are hashes of the names.
    pub autoid_hash: bool,
    /// Base struct.
    pub base: Option<Describe>,
    /// Members without those of the base.
    pub members: &'static [MemberDescription],
}

/// Description of a struct member.
#[derive(Clone, Copy, Debug)]
pub struct MemberDescription {
    /// IDL name.
    pub name: &'static str,
    /// Member id and flags.
    pub member: Member,
    /// `@hashid`, with the hashed name if it is not the member's own.
    pub hash_id: Option<&'static str>,
    /// `@optional`.
    pub optional: bool,
    /// `@external`.
    pub external: bool,
    /// Description of the member's type.
    pub describe: Describe,
}

/// Description of a union.
#[derive(Clone, Copy, Debug)]
pub struct UnionDescription {
    /// IDL name.
    pub name: &'static str,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// True if the type is not a topic type.
    pub nested: bool,
    /// True if the discriminator is the key.
    pub key: bool,
    /// Type of the discriminator.
    pub discriminator: Describe,
    /// Cases that have a member.
    pub cases: &'static [CaseDescription],
}

/// Description of a union case.
#[derive(Clone, Copy, Debug)]
pub struct CaseDescription {
    /// IDL name of the case's member.
    pub name: &'static str,
    /// Member id.
    pub id: u32,
    /// Discriminator values that select the case.
    pub labels: &'static [i32],
    /// True for the default case.
    pub default: bool,
    /// `@external`.
    pub external: bool,
    /// Description of the member's type.
    pub describe: Describe,
}

/// Description of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct EnumDescription {
    /// IDL name.
    pub name: &'static str,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// Number of bits of a value.
    pub bit_bound: u16,
    /// Name and value of each literal, and whether it is the default.
    pub literals: &'static [(&'static str, i32, bool)],
}

/// Description of a bitmask.
#[derive(Clone, Copy, Debug)]
pub struct BitmaskDescription {
    /// IDL name.
    pub name: &'static str,
    /// Number of bits of a value.
    pub bit_bound: u16,
    /// Names and positions of the flags.
    pub flags: &'static [(&'static str, u16)],
}

impl TypeIdentifiers {
    /// Returns the identifiers of a type that its identifier fully describes.
    pub(crate) fn same(identifier: Identifier) -> Self {
        Self { minimal: TypeIdentifier(identifier.clone()), complete: TypeIdentifier(identifier) }
    }

    /// Returns the identifiers of one of `length` types of a strongly connected component, by its
    /// index in the component (XTypes 1.3 §7.3.4.9).
    pub(crate) fn in_component(
        minimal: EquivalenceHash,
        complete: EquivalenceHash,
        length: usize,
        index: usize,
    ) -> Self {
        let (length, index) = (length as i32, index as i32 + 1);
        let name = |hash| TypeIdentifier(Identifier::Component(ComponentId { hash, length, index }));
        Self { minimal: name(HashId::Minimal(minimal)), complete: name(HashId::Complete(complete)) }
    }

    /// Returns the identifiers of a type that contains this one.
    pub(crate) fn map(self, make: impl Fn(Identifier) -> Identifier) -> Self {
        Self { minimal: TypeIdentifier(make(self.minimal.0)), complete: TypeIdentifier(make(self.complete.0)) }
    }

    pub(crate) fn sequence(self, bound: usize, external: bool) -> Self {
        let flags = element_flags(external);
        self.map(|element| Identifier::sequence(element, flags, wire_bound(bound)))
    }

    pub(crate) fn array(self, bounds: &[u32], external: bool) -> Self {
        let flags = element_flags(external);
        self.map(|element| Identifier::array(element, flags, bounds))
    }

    pub(crate) fn map_to(self, element: Self, bound: usize) -> Self {
        let (flags, bound) = (element_flags(false), wire_bound(bound));
        let map = |key: TypeIdentifier, element: TypeIdentifier| {
            TypeIdentifier(Identifier::map(key.0, element.0, flags, bound))
        };
        Self { minimal: map(self.minimal, element.minimal), complete: map(self.complete, element.complete) }
    }
}

fn element_flags(external: bool) -> MemberFlag {
    MemberFlag::TRY_CONSTRUCT1.with(MemberFlag::IS_EXTERNAL, external)
}

/// Returns the bound for the wire format. A bound that exceeds it becomes unbounded.
pub(crate) fn wire_bound(bound: usize) -> u32 {
    u32::try_from(bound).unwrap_or(0)
}

/// Type whose description has begun and whose identifiers are not known yet.
struct Open {
    key: &'static str,
    name: &'static str,
    build: Build,
    /// Index of the outermost open type that it refers back to.
    lowest: usize,
    /// True if the type contains itself.
    recursive: bool,
}

/// Collector of the type objects of a type and its parts.
pub struct TypeCollector<'r> {
    registry: &'r mut TypeRegistry,
    known: BTreeMap<&'static str, TypeIdentifiers>,
    open: Vec<Open>,
    current: Option<usize>,
}

impl<'r> TypeCollector<'r> {
    pub(crate) fn new(registry: &'r mut TypeRegistry) -> Self {
        Self { registry, known: BTreeMap::new(), open: Vec::new(), current: None }
    }

    /// Describes a named type with type objects. `name` is its IDL name. `T` distinguishes types of
    /// the same name.
    pub fn named<T>(&mut self, name: &'static str, build: Build) -> TypeIdentifiers {
        let key = core::any::type_name::<T>();
        if let Some(identifiers) = self.known.get(key) {
            return identifiers.clone();
        }
        if let Some(index) = self.open.iter().position(|open| open.key == key) {
            self.open[index].recursive = true;
            self.leads_back_to(index);
            return TypeIdentifiers::default();
        }
        let index = self.open.len();
        self.open.push(Open { key, name, build, lowest: index, recursive: false });
        let parent = self.current.replace(index);
        let objects = build(self);
        self.current = parent;
        let Open { lowest, recursive, .. } = self.open[index];
        if lowest < index {
            // The type is part of a component that an outer type completes.
            self.leads_back_to(lowest);
            return TypeIdentifiers::default();
        }
        let component = self.open.split_off(index);
        if component.len() == 1 && !recursive {
            let identifiers = objects.keep_own(self.registry);
            self.known.insert(key, identifiers);
        } else {
            self.close(component);
        }
        self.known.get(key).cloned().unwrap_or_default()
    }

    fn leads_back_to(&mut self, index: usize) {
        if let Some(current) = self.current.and_then(|current| self.open.get_mut(current)) {
            current.lowest = current.lowest.min(index);
        }
    }

    /// Assigns identifiers to all types of a strongly connected component (XTypes 1.3 §7.3.4.9).
    fn close(&mut self, mut component: Vec<Open>) {
        component.sort_by_key(|open| open.name);
        self.name_component(&component, EquivalenceHash::default(), EquivalenceHash::default());
        let (minimal, complete): (Vec<_>, Vec<_>) = self.build_component(&component).into_iter().unzip();
        self.name_component(&component, component_hash(&minimal), component_hash(&complete));
        let objects = self.build_component(&component);
        for (open, (minimal, complete)) in component.iter().zip(objects) {
            if let Some(identifiers) = self.known.get(open.key) {
                self.registry.keep_own(identifiers.minimal.clone(), TypeObject(minimal));
                self.registry.keep_own(identifiers.complete.clone(), TypeObject(complete));
            }
        }
    }

    fn build_component(&mut self, component: &[Open]) -> Vec<(Object, Object)> {
        let mut objects = Vec::with_capacity(component.len());
        for open in component {
            let TypeObjects { minimal, complete } = (open.build)(self);
            objects.push((Object::Minimal(minimal), Object::Complete(complete)));
        }
        objects
    }

    fn name_component(&mut self, component: &[Open], minimal: EquivalenceHash, complete: EquivalenceHash) {
        for (index, open) in component.iter().enumerate() {
            let identifiers = TypeIdentifiers::in_component(minimal, complete, component.len(), index);
            self.known.insert(open.key, identifiers);
        }
    }
}

/// Returns the first four octets of the MD5 of a name.
pub(crate) fn name_hash(name: &str) -> [u8; 4] {
    let digest: [u8; 16] = Md5::digest(name.as_bytes()).into();
    let [a, b, c, d, ..] = digest;
    [a, b, c, d]
}

/// Returns the member id of `@hashid`: 28 bits of the MD5 of the name (XTypes 1.3 §7.3.1.2.1.1).
#[must_use]
pub fn hash_id(name: &str) -> u32 {
    u32::from_le_bytes(name_hash(name)) & 0x0fff_ffff
}

impl StructDescription {
    /// Builds both type objects.
    #[must_use]
    pub fn build(&self, types: &mut TypeCollector<'_>) -> TypeObjects {
        let &Self { name, extensibility, nested, autoid_hash, base, members } = self;
        let base = base.map(|describe| describe(types)).unwrap_or_default();
        let members: Vec<_> = members
            .iter()
            .map(|MemberDescription { name, member, hash_id, optional, external, describe }| MemberParts {
                name,
                id: member.id,
                flags: MemberFlag::TRY_CONSTRUCT1
                    .with(MemberFlag::IS_EXTERNAL, *external)
                    .with(MemberFlag::IS_OPTIONAL, *optional)
                    .with(MemberFlag::IS_MUST_UNDERSTAND, member.must_understand)
                    .with(MemberFlag::IS_KEY, member.key),
                builtin: build::builtin(*hash_id, &ValueAnnotations::default()),
                of: describe(types),
            })
            .collect();
        StructParts { name, extensibility, nested, autoid_hash, base }.build(members)
    }
}

impl UnionDescription {
    /// Builds both type objects.
    #[must_use]
    pub fn build(&self, types: &mut TypeCollector<'_>) -> TypeObjects {
        let &Self { name, extensibility, nested, key, discriminator, cases } = self;
        let discriminator = discriminator(types);
        let cases: Vec<_> = cases
            .iter()
            .map(|CaseDescription { name, id, labels, default, external, describe }| CaseParts {
                name,
                id: *id,
                flags: MemberFlag::TRY_CONSTRUCT1
                    .with(MemberFlag::IS_EXTERNAL, *external)
                    .with(MemberFlag::IS_DEFAULT, *default),
                labels,
                builtin: None,
                of: describe(types),
            })
            .collect();
        UnionParts { name, extensibility, nested, autoid_hash: false, key, discriminator }.build(cases)
    }
}

impl EnumDescription {
    /// Builds both type objects.
    #[must_use]
    pub fn build(&self) -> TypeObjects {
        let &Self { name, extensibility, bit_bound, literals } = self;
        build::enumeration(name, extensibility, bit_bound, literals.iter().copied())
    }
}

impl BitmaskDescription {
    /// Builds both type objects.
    #[must_use]
    pub fn build(&self) -> TypeObjects {
        build::bitmask(self.name, self.bit_bound, self.flags.iter().copied())
    }
}
