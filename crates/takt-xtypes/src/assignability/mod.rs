//! May values of a writer's type be read as a reader's (XTypes 1.3 §7.2.4)?
//!
//! [`is_assignable`] compares definitions, complete or minimal, and gives a reason in words if they do not fit. All its
//! rules have to hold at once. So it keeps a list of pairs of types that still have to be compared, and a set of those
//! it has seen: no recursion, each pair once, and types that contain themselves end by themselves.
//!
//! What is assignable can be decoded, whatever the order in which members were added. Where a value does not fit after
//! all, a string longer than the reader's bound for instance, the sample is dropped when it is decoded (`@try_construct`
//! is DISCARD).
//!
//! Bounds: [`MAX_STEPS`] looks at members, labels and types, whatever a peer has made up; memory in proportion.
//!
//! DEVIATION(XTypes 1.3 §7.2.4): `octet` and `uint8` are assignable to one another, with a [`Caution`]. The extensibilities of
//! enums are compared where both definitions have one, since Annex B says that no flag of theirs has a meaning. Enums of
//! other sizes are not assignable, since they could not be decoded. `@ignore_literal_names` is not in type objects.
//! Structures and unions that are final within another type have to be the same where the order of octets depends on
//! it, as what counts in minimal type objects says: names, ids, flags of members, bounds. Members that differ there in
//! `@key` or `@external` alone have the same octets: that is a [`Caution`].

mod scalar;
mod shape;
mod structure;
mod union;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::type_object::identifier::Identifier;
use crate::type_object::{TypeIdentifier, TypeRegistry};
use crate::{Extensibility, Representation};
use shape::{Shape, resolve};

/// How many looks at members, labels and types one comparison takes at most.
pub const MAX_STEPS: usize = 1 << 17;
/// How many differences of one pair are returned as [`Caution`]s.
pub const CAUTIONS_MAX: usize = 8;
/// How many parts of a member's path a reason names.
const PATH_PARTS_MAX: usize = 8;

/// What TYPE_CONSISTENCY_ENFORCEMENT (XTypes 1.3 §7.6.3.7) says of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Sequences and maps need not fit.
    pub ignore_sequence_bounds: bool,
    /// Strings need not fit.
    pub ignore_string_bounds: bool,
    /// Members of one id may have different names.
    pub ignore_member_names: bool,
    /// A structure or union of the writer may have nothing that the reader's lacks.
    pub prevent_type_widening: bool,
    /// How the writer encodes: XCDR1 does not say where an appendable structure within another ends.
    pub representation: Representation,
}

impl Default for Rules {
    /// Those of ALLOW_TYPE_COERCION, with XCDR2.
    fn default() -> Self {
        Self {
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: false,
            prevent_type_widening: false,
            representation: Representation::Xcdr2,
        }
    }
}

/// A type and where its definition is.
#[derive(Clone, Copy, Debug)]
pub struct TypeRef<'a> {
    /// The type.
    pub identifier: &'a TypeIdentifier,
    /// Its definition, and all it is made of.
    pub types: &'a TypeRegistry,
}

/// Why a type is not assignable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inassignable {
    /// The types differ.
    Differs {
        /// The way to the member: `pose.position[]`. Empty for the type itself.
        member: String,
        /// What differs there, in words.
        what: String,
    },
    /// A definition is missing, or is none of a type.
    Undefined {
        /// Of this type.
        identifier: TypeIdentifier,
    },
    /// More than [`MAX_STEPS`] to look at.
    Limit,
}

impl fmt::Display for Inassignable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { member, what } if member.is_empty() => f.write_str(what),
            Self::Differs { member, what } => write!(f, "member '{member}': {what}"),
            Self::Undefined { identifier } => write!(f, "the definition of type {identifier} is not known"),
            Self::Limit => write!(f, "more than {MAX_STEPS} members and labels to compare"),
        }
    }
}

impl core::error::Error for Inassignable {}

/// A difference between assignable types for which another implementation may refuse the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// The way to the member: `pose.position[]`. Empty for the type itself.
    pub member: String,
    /// What differs there, in words.
    pub what: String,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member[..] {
            "" => f.write_str(&self.what),
            member => write!(f, "member '{member}': {}", self.what),
        }
    }
}

/// Whether the reader can have every value of the writer's type, as far as the rules ask. Returns what other implementations may
/// refuse all the same, at most [`CAUTIONS_MAX`].
///
/// # Errors
/// Why not.
pub fn is_assignable(reader: TypeRef<'_>, writer: TypeRef<'_>, rules: &Rules) -> Result<Vec<Caution>, Inassignable> {
    Checker::new(reader.types, writer.types, *rules).run(reader, writer, Relation::Assignable)
}

/// Whether both are the same type, as DISALLOW_TYPE_COERCION asks: equal in all that minimal type objects say of names,
/// ids, keys, optional members, extensibility and bounds. Returns what other implementations may refuse all the same.
///
/// # Errors
/// Why not.
pub fn is_equivalent(reader: TypeRef<'_>, writer: TypeRef<'_>) -> Result<Vec<Caution>, Inassignable> {
    let rules = Rules::default();
    Checker::new(reader.types, writer.types, rules).run(reader, writer, Relation::Equivalent)
}

/// What a pair has to be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    Equivalent,
    Assignable,
}

/// What counts of keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Keys {
    /// The type of the topic: keys are keys.
    Whole,
    /// KeyErased: a type within, whose keys mean nothing there.
    Erased,
    /// KeyHolder: the key members alone, if there are any.
    Holder,
}

/// What is left of the work that one comparison may take.
struct Fuel(usize);

impl Fuel {
    fn burn(&mut self, steps: usize) -> Result<(), Inassignable> {
        self.0 = self.0.checked_sub(steps).ok_or(Inassignable::Limit)?;
        Ok(())
    }
}

/// Two types to compare, and how one came to them.
struct Pair<'a> {
    reader: &'a Identifier,
    writer: &'a Identifier,
    relation: Relation,
    keys: Keys,
    /// The index of the pair that it is part of, and the part's name.
    within: Option<(usize, String)>,
}

struct Checker<'a> {
    of_reader: &'a TypeRegistry,
    of_writer: &'a TypeRegistry,
    rules: Rules,
    pairs: Vec<Pair<'a>>,
    seen: BTreeSet<(&'a Identifier, &'a Identifier, Relation, Keys)>,
    fuel: Fuel,
    /// The pair that is being compared.
    current: usize,
    cautions: Vec<Caution>,
}

impl<'a> Checker<'a> {
    fn new(of_reader: &'a TypeRegistry, of_writer: &'a TypeRegistry, rules: Rules) -> Self {
        let (pairs, seen) = (Vec::new(), BTreeSet::new());
        let cautions = Vec::new();
        Self { of_reader, of_writer, rules, pairs, seen, fuel: Fuel(MAX_STEPS), current: 0, cautions }
    }

    fn run(
        mut self,
        reader: TypeRef<'a>,
        writer: TypeRef<'a>,
        relation: Relation,
    ) -> Result<Vec<Caution>, Inassignable> {
        let (reader, writer) = (&reader.identifier.0, &writer.identifier.0);
        self.seen.insert((reader, writer, relation, Keys::Whole));
        self.pairs.push(Pair { reader, writer, relation, keys: Keys::Whole, within: None });
        while let Some(pair) = self.pairs.get(self.current) {
            let (reader, writer, relation, keys) = (pair.reader, pair.writer, pair.relation, pair.keys);
            self.compare(reader, writer, relation, keys)?;
            self.current += 1;
        }
        Ok(self.cautions)
    }

    fn compare(
        &mut self,
        reader: &'a Identifier,
        writer: &'a Identifier,
        relation: Relation,
        keys: Keys,
    ) -> Result<(), Inassignable> {
        // Equal hashes are equal types, and so are equal descriptions.
        if reader == writer && *reader != Identifier::None {
            return Ok(());
        }
        let reader = resolve(reader, self.of_reader, &mut self.fuel)?;
        let writer = resolve(writer, self.of_writer, &mut self.fuel)?;
        match (reader, writer) {
            (Shape::Struct(reader), Shape::Struct(writer)) => self.structures(&reader, &writer, relation, keys),
            (Shape::Union(reader), Shape::Union(writer)) => self.unions(&reader, &writer, relation, keys),
            (reader, writer) => self.scalars(&reader, &writer, relation, keys),
        }
    }

    /// To be compared later.
    fn require(
        &mut self,
        reader: &'a Identifier,
        writer: &'a Identifier,
        relation: Relation,
        keys: Keys,
        part: String,
    ) -> Result<(), Inassignable> {
        self.fuel.burn(1)?;
        if self.seen.insert((reader, writer, relation, keys)) {
            self.pairs.push(Pair { reader, writer, relation, keys, within: Some((self.current, part)) });
        }
        Ok(())
    }

    /// As [`require`](Self::require), strongly: what has no end of its own on the wire has to be the same
    /// (XTypes 1.3 §7.2.4).
    fn require_strongly(
        &mut self,
        reader: &'a Identifier,
        writer: &'a Identifier,
        relation: Relation,
        keys: Keys,
        part: String,
    ) -> Result<(), Inassignable> {
        let relation = if self.is_delimited(writer)? { relation } else { Relation::Equivalent };
        self.require(reader, writer, relation, keys, part)
    }

    /// Whether the end of a value of the writer's type shows without its definition (XTypes 1.3 §7.2.4).
    fn is_delimited(&mut self, identifier: &'a Identifier) -> Result<bool, Inassignable> {
        let mut left = alloc::vec![identifier];
        while let Some(identifier) = left.pop() {
            match resolve(identifier, self.of_writer, &mut self.fuel)? {
                Shape::Struct(shape::Struct { extensibility, .. })
                | Shape::Union(shape::Union { extensibility, .. }) => {
                    let delimited = match extensibility {
                        Extensibility::Final => false,
                        Extensibility::Appendable => self.rules.representation == Representation::Xcdr2,
                        Extensibility::Mutable => true,
                    };
                    if !delimited {
                        return Ok(false);
                    }
                }
                Shape::Sequence { element, .. } | Shape::Array { element, .. } => left.push(element),
                Shape::Map { key, element, .. } => left.extend([key, element]),
                _ => {}
            }
        }
        Ok(true)
    }

    fn differs<T>(&self, what: String) -> Result<T, Inassignable> {
        Err(Inassignable::Differs { member: self.path(), what })
    }

    /// Assignable here, but perhaps not for others.
    fn caution(&mut self, what: String) {
        let caution = Caution { member: self.path(), what };
        if self.cautions.len() < CAUTIONS_MAX && !self.cautions.contains(&caution) {
            self.cautions.push(caution);
        }
    }

    /// The way to what is being compared.
    fn path(&self) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let mut at = self.pairs.get(self.current);
        while let Some((within, part)) = at.and_then(|pair| pair.within.as_ref()) {
            parts.push(part);
            at = self.pairs.get(*within);
        }
        let mut member = String::new();
        for (i, part) in parts.iter().rev().enumerate() {
            if i == PATH_PARTS_MAX {
                member.push_str("..");
                break;
            }
            if i > 0 && !part.starts_with('[') {
                member.push('.');
            }
            member.push_str(part);
        }
        member
    }

    /// The sides differ in kind.
    fn other_kind<T>(&self, reader: &Shape<'_>, writer: &Shape<'_>) -> Result<T, Inassignable> {
        self.differs(format!("{reader} for the reader, {writer} from the writer"))
    }
}

/// The words for an extensibility.
fn word(extensibility: Extensibility) -> String {
    match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    }
    .to_owned()
}
