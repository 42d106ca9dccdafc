//! Type definitions built at run time, as an IDL parser produces them (XTypes 1.3 §7.2, §7.5.2.1).
//!
//! [`Definitions`] holds types that refer to each other by [`DefinitionId`], so they may be
//! recursive. A type and its parts yield both type objects, and from these a
//! [`DynamicType`](crate::dynamic::DynamicType). A type defined here has the same identifier as the
//! same type defined by the derive.
//!
//! Invariants:
//! - Computing identifiers is bounded: at most [`MAX_NESTING`](crate::dynamic::MAX_NESTING) types
//!   nest; deeper nesting is an error.
//! - Contradictory types are refused by [`DynamicType::new`](crate::dynamic::DynamicType::new), not
//!   here.
//!
//! Not supported: bitsets, `long double`, user-defined annotations.

mod naming;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Extensibility;
use crate::type_object::{TypeError, TypeInformation, TypeRegistry};

/// Type definitions in the order of declaration.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    types: Vec<Option<Definition>>,
}

/// Id of a type in [`Definitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionId(usize);

/// Definition of a named type.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// `struct`
    Struct(StructDefinition),
    /// `union`
    Union(UnionDefinition),
    /// `enum`
    Enum(EnumDefinition),
    /// `bitmask`
    Bitmask(BitmaskDefinition),
    /// `typedef`
    Alias(AliasDefinition),
}

/// Type of a member. A bound of 0 means unbounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSpec {
    /// `boolean`
    Boolean,
    /// `octet`
    Octet,
    /// `int8`
    Int8,
    /// `uint8`
    Uint8,
    /// `short`, `int16`
    Int16,
    /// `unsigned short`, `uint16`
    Uint16,
    /// `long`, `int32`
    Int32,
    /// `unsigned long`, `uint32`
    Uint32,
    /// `long long`, `int64`
    Int64,
    /// `unsigned long long`, `uint64`
    Uint64,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `char`
    Char,
    /// `wchar`
    WChar,
    /// `string`
    String {
        /// Maximum number of octets.
        bound: u32,
    },
    /// `wstring`
    WString {
        /// Maximum number of characters.
        bound: u32,
    },
    /// `sequence`
    Sequence {
        /// Type of the elements.
        element: Box<TypeSpec>,
        /// `@external` of the elements.
        external: bool,
        /// Maximum number of elements.
        bound: u32,
    },
    /// `T name[2][3]`
    Array {
        /// Type of the elements.
        element: Box<TypeSpec>,
        /// Dimensions, the outermost first.
        dimensions: Vec<u32>,
    },
    /// `map`
    Map {
        /// Type of the keys.
        key: Box<TypeSpec>,
        /// Type of the values.
        element: Box<TypeSpec>,
        /// Maximum number of pairs.
        bound: u32,
    },
    /// Named type.
    Named(DefinitionId),
}

/// Treatment of received values that a member cannot hold (XTypes 1.3 §7.3.1.2.1,
/// `@try_construct`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TryConstruct {
    /// Drops the sample.
    #[default]
    Discard,
    /// Sets the member to its default.
    UseDefault,
    /// Truncates a string or sequence to its bound.
    Trim,
}

/// Definition of a `struct`.
#[derive(Clone, Debug, PartialEq)]
pub struct StructDefinition {
    /// Qualified name.
    pub name: String,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// True if the type is not a topic type.
    pub nested: bool,
    /// True if member ids are hashes of the names by default.
    pub autoid_hash: bool,
    /// Base struct.
    pub base: Option<DefinitionId>,
    /// Members without those of the base.
    pub members: Vec<MemberDefinition>,
}

/// Member of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDefinition {
    /// Name of the member.
    pub name: String,
    /// Member id.
    pub id: u32,
    /// `@hashid`: the name whose hash is the id; empty for the member's own name.
    pub hash_id: Option<String>,
    /// `@unit`, `@min`, `@max`
    pub values: ValueAnnotations,
    /// `@key`
    pub key: bool,
    /// `@must_understand`; key members imply it.
    pub must_understand: bool,
    /// `@optional`
    pub optional: bool,
    /// `@external`
    pub external: bool,
    /// `@try_construct`
    pub try_construct: TryConstruct,
    /// Type of the member.
    pub of: TypeSpec,
}

/// Annotations about the values of a member. Values are not checked against them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueAnnotations {
    /// `@unit`
    pub unit: Option<String>,
    /// `@min`
    pub min: Option<Limit>,
    /// `@max`
    pub max: Option<Limit>,
}

/// Parameter of `@min` and `@max`, with the type of its literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Integer of 64 bits, signed or unsigned. Values outside of this range are written as the
    /// nearest one.
    Integer(i128),
    /// Floating-point number.
    Float(f64),
}

/// Definition of a `union`.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionDefinition {
    /// Qualified name.
    pub name: String,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// True if the type is not a topic type.
    pub nested: bool,
    /// True if member ids are hashes of the names by default.
    pub autoid_hash: bool,
    /// True if the discriminator is the key.
    pub key: bool,
    /// Type of the discriminator.
    pub discriminator: TypeSpec,
    /// Cases that have a member.
    pub cases: Vec<CaseDefinition>,
}

/// Case of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseDefinition {
    /// Name of the case's member.
    pub name: String,
    /// Member id.
    pub id: u32,
    /// `@hashid`: the name whose hash is the id; empty for the member's own name.
    pub hash_id: Option<String>,
    /// `@unit`, `@min`, `@max`
    pub values: ValueAnnotations,
    /// Discriminator values that select the case.
    pub labels: Vec<i32>,
    /// True for the default case.
    pub default: bool,
    /// `@external`
    pub external: bool,
    /// `@try_construct`
    pub try_construct: TryConstruct,
    /// Type of the case's member.
    pub of: TypeSpec,
}

/// Definition of an `enum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumDefinition {
    /// Qualified name.
    pub name: String,
    /// Extensibility.
    pub extensibility: Extensibility,
    /// Number of bits of a value.
    pub bit_bound: u16,
    /// Names and values of the literals.
    pub literals: Vec<(String, i32)>,
    /// Index of the literal with `@default_literal`.
    pub default: Option<usize>,
}

/// Definition of a `bitmask`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitmaskDefinition {
    /// Qualified name.
    pub name: String,
    /// Number of bits of a value.
    pub bit_bound: u16,
    /// Names and positions of the flags.
    pub flags: Vec<(String, u16)>,
}

/// Definition of a `typedef`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasDefinition {
    /// Qualified name.
    pub name: String,
    /// Aliased type.
    pub of: TypeSpec,
}

impl Definitions {
    /// Returns an empty set of definitions.
    #[must_use]
    pub const fn new() -> Self {
        Self { types: Vec::new() }
    }

    /// Declares a type. Other types may refer to it before it is defined.
    pub fn declare(&mut self) -> DefinitionId {
        self.types.push(None);
        DefinitionId(self.types.len() - 1)
    }

    /// Defines a declared type.
    ///
    /// # Panics
    /// Panics if the id belongs to other `Definitions`.
    pub fn define(&mut self, id: DefinitionId, definition: Definition) {
        self.types[id.0] = Some(definition);
    }

    /// Declares and defines a type.
    pub fn add(&mut self, definition: Definition) -> DefinitionId {
        let id = self.declare();
        self.define(id, definition);
        id
    }

    /// Returns a type; `None` if it is not defined.
    #[must_use]
    pub fn get(&self, id: DefinitionId) -> Option<&Definition> {
        self.types.get(id.0)?.as_ref()
    }

    /// Returns all defined types.
    pub fn iter(&self) -> impl Iterator<Item = (DefinitionId, &Definition)> {
        let defined = self.types.iter().enumerate();
        defined.filter_map(|(index, definition)| Some((DefinitionId(index), definition.as_ref()?)))
    }

    /// Returns the type with its aliases resolved. `None` if one of them is not defined, or if
    /// there are more than [`MAX_NESTING`](crate::dynamic::MAX_NESTING).
    #[must_use]
    pub fn resolve<'a>(&'a self, mut of: &'a TypeSpec) -> Option<&'a TypeSpec> {
        for _ in 0..=crate::dynamic::MAX_NESTING {
            match of {
                TypeSpec::Named(id) => match self.get(*id)? {
                    Definition::Alias(alias) => of = &alias.of,
                    _ => return Some(of),
                },
                _ => return Some(of),
            }
        }
        None
    }

    /// Returns the `TypeInformation` that an endpoint announces. Adds the type objects of the type
    /// and its parts to `registry`.
    ///
    /// # Errors
    /// Fails if a type is declared but not defined, or if types nest too deeply.
    pub fn type_information(
        &self,
        root: DefinitionId,
        registry: &mut TypeRegistry,
    ) -> Result<TypeInformation, TypeError> {
        let identifiers = naming::name(self, root, registry)?;
        Ok(TypeInformation {
            minimal: registry.with_dependencies(&identifiers.minimal),
            complete: registry.with_dependencies(&identifiers.complete),
        })
    }
}

impl Definition {
    /// Returns the qualified name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Struct(StructDefinition { name, .. })
            | Self::Union(UnionDefinition { name, .. })
            | Self::Enum(EnumDefinition { name, .. })
            | Self::Bitmask(BitmaskDefinition { name, .. })
            | Self::Alias(AliasDefinition { name, .. }) => name,
        }
    }

    /// Returns the named types that the type consists of, in order.
    #[must_use]
    pub fn parts(&self) -> Vec<DefinitionId> {
        let mut parts = Vec::new();
        let specs: Vec<&TypeSpec> = match self {
            Self::Struct(structure) => {
                parts.extend(structure.base);
                structure.members.iter().map(|member| &member.of).collect()
            }
            Self::Union(union) => {
                core::iter::once(&union.discriminator).chain(union.cases.iter().map(|case| &case.of)).collect()
            }
            Self::Alias(alias) => Vec::from([&alias.of]),
            Self::Enum(_) | Self::Bitmask(_) => Vec::new(),
        };
        specs.into_iter().for_each(|spec| spec.collect_named(&mut parts));
        parts
    }
}

impl TypeSpec {
    fn collect_named(&self, found: &mut Vec<DefinitionId>) {
        let mut open = Vec::from([self]);
        while let Some(spec) = open.pop() {
            match spec {
                Self::Named(id) => found.push(*id),
                Self::Sequence { element, .. } | Self::Array { element, .. } => open.push(element),
                Self::Map { key, element, .. } => open.extend([&**element, &**key]),
                _ => {}
            }
        }
    }
}
