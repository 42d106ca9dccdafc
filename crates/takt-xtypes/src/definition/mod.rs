//! Types that are put together at run time: what a reader of IDL makes of a text (XTypes 1.3 §7.2, §7.5.2.1).
//!
//! [`Definitions`] holds types that refer to each other by [`DefinitionId`], so that they may contain themselves. From a
//! type and all it is made of come both type objects, and from these a [`DynamicType`](crate::dynamic::DynamicType).
//! A type that is defined here has the identifier that the derive gives to the same type.
//!
//! Invariants:
//! - Naming a type is bounded: at most [`MAX_NESTING`](crate::dynamic::MAX_NESTING) types nest, an error beyond.
//! - What contradicts itself is refused by [`DynamicType::new`](crate::dynamic::DynamicType::new), not here.
//!
//! It deliberately does not do: bitsets, `long double`, annotations of a user.

mod naming;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Extensibility;
use crate::type_object::{TypeError, TypeInformation, TypeRegistry};

/// Types by their number, in the order in which they were declared.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    types: Vec<Option<Definition>>,
}

/// A type of [`Definitions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionId(usize);

/// A type that has a name.
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

/// The type of a member. A bound of 0 is none.
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
        /// The most octets.
        bound: u32,
    },
    /// `wstring`
    WString {
        /// The most characters.
        bound: u32,
    },
    /// `sequence`
    Sequence {
        /// The type of an element.
        element: Box<TypeSpec>,
        /// `@external` of the element.
        external: bool,
        /// The most elements.
        bound: u32,
    },
    /// `T name[2][3]`
    Array {
        /// The type of an element.
        element: Box<TypeSpec>,
        /// The outermost first.
        dimensions: Vec<u32>,
    },
    /// `map`
    Map {
        /// The type of a key.
        key: Box<TypeSpec>,
        /// The type of an element.
        element: Box<TypeSpec>,
        /// The most pairs.
        bound: u32,
    },
    /// A type with a name.
    Named(DefinitionId),
}

/// What a reader does with a value that a member cannot have (XTypes 1.3 §7.3.1.2.1, `@try_construct`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TryConstruct {
    /// The sample is dropped.
    #[default]
    Discard,
    /// The member has its default.
    UseDefault,
    /// A string or a sequence is cut to its bound.
    Trim,
}

/// A struct.
#[derive(Clone, Debug, PartialEq)]
pub struct StructDefinition {
    /// Its qualified name.
    pub name: String,
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// It is no type of topics.
    pub nested: bool,
    /// Its member ids are hashes of the names, where a member does not say otherwise.
    pub autoid_hash: bool,
    /// The struct it inherits from.
    pub base: Option<DefinitionId>,
    /// Its own members.
    pub members: Vec<MemberDefinition>,
}

/// A member of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberDefinition {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u32,
    /// `@hashid`: the name whose hash the id is, empty for the member's own.
    pub hash_id: Option<String>,
    /// `@unit`, `@min`, `@max`
    pub values: ValueAnnotations,
    /// `@key`
    pub key: bool,
    /// `@must_understand`; key members are understood without it.
    pub must_understand: bool,
    /// `@optional`
    pub optional: bool,
    /// `@external`
    pub external: bool,
    /// `@try_construct`
    pub try_construct: TryConstruct,
    /// Its type.
    pub of: TypeSpec,
}

/// What annotations say of the values of a member. Nothing holds values against it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueAnnotations {
    /// `@unit`
    pub unit: Option<String>,
    /// `@min`
    pub min: Option<Limit>,
    /// `@max`
    pub max: Option<Limit>,
}

/// The parameter of `@min` and `@max`, of the type that its literal has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// An integer of 64 bits, signed or not; others are written as the nearest.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
}

/// A union.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionDefinition {
    /// Its qualified name.
    pub name: String,
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// It is no type of topics.
    pub nested: bool,
    /// Its member ids are hashes of the names, where a case does not say otherwise.
    pub autoid_hash: bool,
    /// Its discriminator is the key.
    pub key: bool,
    /// The type of the discriminator.
    pub discriminator: TypeSpec,
    /// The cases that have a member.
    pub cases: Vec<CaseDefinition>,
}

/// A case of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseDefinition {
    /// The name of its member.
    pub name: String,
    /// The id of its member.
    pub id: u32,
    /// `@hashid`: the name whose hash the id is, empty for the member's own.
    pub hash_id: Option<String>,
    /// `@unit`, `@min`, `@max`
    pub values: ValueAnnotations,
    /// The discriminators that select it.
    pub labels: Vec<i32>,
    /// It is the default case.
    pub default: bool,
    /// `@external`
    pub external: bool,
    /// `@try_construct`
    pub try_construct: TryConstruct,
    /// The type of its member.
    pub of: TypeSpec,
}

/// An enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumDefinition {
    /// Its qualified name.
    pub name: String,
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// How many bits hold it.
    pub bit_bound: u16,
    /// Names and values.
    pub literals: Vec<(String, i32)>,
    /// The place of the literal with `@default_literal`.
    pub default: Option<usize>,
}

/// A bitmask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitmaskDefinition {
    /// Its qualified name.
    pub name: String,
    /// How many bits hold it.
    pub bit_bound: u16,
    /// Names and positions.
    pub flags: Vec<(String, u16)>,
}

/// Another name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasDefinition {
    /// The qualified name.
    pub name: String,
    /// The type.
    pub of: TypeSpec,
}

impl Definitions {
    /// No types.
    #[must_use]
    pub const fn new() -> Self {
        Self { types: Vec::new() }
    }

    /// Takes a place for a type that others may refer to before it is defined.
    pub fn declare(&mut self) -> DefinitionId {
        self.types.push(None);
        DefinitionId(self.types.len() - 1)
    }

    /// Defines a type that was declared.
    ///
    /// # Panics
    /// If the type is not one of these.
    pub fn define(&mut self, id: DefinitionId, definition: Definition) {
        self.types[id.0] = Some(definition);
    }

    /// Declares and defines a type.
    pub fn add(&mut self, definition: Definition) -> DefinitionId {
        let id = self.declare();
        self.define(id, definition);
        id
    }

    /// A type; `None` if it is not defined.
    #[must_use]
    pub fn get(&self, id: DefinitionId) -> Option<&Definition> {
        self.types.get(id.0)?.as_ref()
    }

    /// All types that are defined.
    pub fn iter(&self) -> impl Iterator<Item = (DefinitionId, &Definition)> {
        let defined = self.types.iter().enumerate();
        defined.filter_map(|(index, definition)| Some((DefinitionId(index), definition.as_ref()?)))
    }

    /// The type behind all its other names; `None` if one of them is not defined, or there are more than
    /// [`MAX_NESTING`](crate::dynamic::MAX_NESTING).
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

    /// What an endpoint announces of a type, with the type objects of the type and of all it is made of in `registry`.
    ///
    /// # Errors
    /// A type is declared and not defined, or types nest too deep.
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
    /// The qualified name.
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

    /// The types with names that it is made of, in order.
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

impl TryConstruct {
    /// The literal of the annotation.
    #[must_use]
    pub fn from_literal(literal: &str) -> Option<Self> {
        match literal {
            "DISCARD" => Some(Self::Discard),
            "USE_DEFAULT" => Some(Self::UseDefault),
            "TRIM" => Some(Self::Trim),
            _ => None,
        }
    }
}
