//! Type assignability between writer and reader types (XTypes 1.3 §7.2.4).
//!
//! [`is_assignable`] compares complete or minimal definitions and reports the first difference as
//! text. All rules must hold. The comparison keeps a list of pairs of types to compare and a set of
//! pairs seen before. It does not recurse, compares each pair once, and terminates for recursive
//! types.
//!
//! Values of an assignable type can be decoded, regardless of the order in which members were
//! added. A value may still violate the reader's type, for instance a string that exceeds the
//! reader's bound. Decoding drops such a sample (`@try_construct` is DISCARD).
//!
//! Bounds: a comparison examines at most [`MAX_STEPS`] members, labels and types for any peer
//! input. Memory is proportional to that.
//!
//! DEVIATION(XTypes 1.3 §7.2.4): `octet` and `uint8` are assignable to each other, with a
//! [`Caution`]. The extensibilities of enums are compared if both definitions have one, since Annex
//! B defines no flags for enums. Enums of different sizes are not assignable, since they cannot be
//! decoded. `@ignore_literal_names` is not in type objects. Final structures and unions within
//! another type must be identical where the order of octets depends on it. The comparison then
//! covers the contents of minimal type objects: names, ids, flags of members, bounds. Members that
//! differ there only in `@key` or `@external` have the same octets: that is a [`Caution`].

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

/// Maximum number of members, labels and types that one comparison examines.
pub const MAX_STEPS: usize = 1 << 17;
/// Maximum number of differences of one pair that are returned as [`Caution`]s.
pub const CAUTIONS_MAX: usize = 8;
/// Maximum number of parts of a member's path in a reason.
const PATH_PARTS_MAX: usize = 8;

/// Rules of TYPE_CONSISTENCY_ENFORCEMENT for the comparison (XTypes 1.3 §7.6.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// True if bounds of sequences and maps may differ.
    pub ignore_sequence_bounds: bool,
    /// True if bounds of strings may differ.
    pub ignore_string_bounds: bool,
    /// True if members with equal ids may have different names.
    pub ignore_member_names: bool,
    /// True if a structure or union of the writer must not have members that the reader's type
    /// lacks.
    pub prevent_type_widening: bool,
    /// Encoding of the writer. XCDR1 does not delimit an appendable structure within another type.
    pub representation: Representation,
}

impl Default for Rules {
    /// Returns the rules of ALLOW_TYPE_COERCION with XCDR2.
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

/// Type and the registry with its definition.
#[derive(Clone, Copy, Debug)]
pub struct TypeRef<'a> {
    /// Identifier of the type.
    pub identifier: &'a TypeIdentifier,
    /// Registry with the definitions of the type and of its parts.
    pub types: &'a TypeRegistry,
}

/// Reason why a type is not assignable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inassignable {
    /// Difference between the types.
    Differs {
        /// Path of the member: `pose.position[]`. Empty for the type itself.
        member: String,
        /// Description of the difference.
        what: String,
    },
    /// Definition that is missing or does not describe a type.
    Undefined {
        /// Identifier of the type without definition.
        identifier: TypeIdentifier,
    },
    /// The comparison exceeds [`MAX_STEPS`].
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

/// Difference between assignable types because of which another implementation may refuse the
/// match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Path of the member: `pose.position[]`. Empty for the type itself.
    pub member: String,
    /// Description of the difference.
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

/// Checks that the reader's type can represent every value of the writer's type, under the rules.
/// Returns the differences because of which other implementations may refuse the match, at most
/// [`CAUTIONS_MAX`].
///
/// # Errors
/// Fails with the reason if the type is not assignable.
pub fn is_assignable(reader: TypeRef<'_>, writer: TypeRef<'_>, rules: &Rules) -> Result<Vec<Caution>, Inassignable> {
    Checker::new(reader.types, writer.types, *rules).run(reader, writer, Relation::Assignable)
}

/// Checks that both types are equivalent, as DISALLOW_TYPE_COERCION requires. The comparison covers
/// the contents of minimal type objects: names, ids, keys, optional members, extensibility and
/// bounds. Returns the differences because of which other implementations may refuse the match.
///
/// # Errors
/// Fails with the reason if the types are not equivalent.
pub fn is_equivalent(reader: TypeRef<'_>, writer: TypeRef<'_>) -> Result<Vec<Caution>, Inassignable> {
    let rules = Rules::default();
    Checker::new(reader.types, writer.types, rules).run(reader, writer, Relation::Equivalent)
}

/// Required relation of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    Equivalent,
    Assignable,
}

/// Treatment of key members.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Keys {
    /// Type of the topic: its key members are compared as keys.
    Whole,
    /// KeyErased: nested type, whose key annotations have no effect.
    Erased,
    /// KeyHolder: the key members alone, if there are any.
    Holder,
}

/// Comparison of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mode {
    relation: Relation,
    keys: Keys,
}

impl Mode {
    fn with_keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// Returns the comparison of the types of members, cases and discriminators.
    fn of_parts(self) -> Self {
        self.with_keys(if self.keys == Keys::Holder { Keys::Holder } else { Keys::Erased })
    }
}

/// Remaining steps of the comparison.
struct Fuel(usize);

impl Fuel {
    fn burn(&mut self, steps: usize) -> Result<(), Inassignable> {
        self.0 = self.0.checked_sub(steps).ok_or(Inassignable::Limit)?;
        Ok(())
    }
}

/// Two types to compare, and the path to them.
struct Pair<'a> {
    reader: &'a Identifier,
    writer: &'a Identifier,
    mode: Mode,
    /// Index of the enclosing pair, and the name of the part.
    within: Option<(usize, String)>,
}

struct Checker<'a> {
    of_reader: &'a TypeRegistry,
    of_writer: &'a TypeRegistry,
    rules: Rules,
    pairs: Vec<Pair<'a>>,
    seen: BTreeSet<(&'a Identifier, &'a Identifier, Mode)>,
    fuel: Fuel,
    /// Index of the pair under comparison.
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
        let mode = Mode { relation, keys: Keys::Whole };
        self.seen.insert((reader, writer, mode));
        self.pairs.push(Pair { reader, writer, mode, within: None });
        while let Some(pair) = self.pairs.get(self.current) {
            let (reader, writer, mode) = (pair.reader, pair.writer, pair.mode);
            self.compare(reader, writer, mode)?;
            self.current += 1;
        }
        Ok(self.cautions)
    }

    fn compare(&mut self, reader: &'a Identifier, writer: &'a Identifier, mode: Mode) -> Result<(), Inassignable> {
        // Equal hashes and equal descriptions mean equal types.
        if reader == writer && *reader != Identifier::None {
            return Ok(());
        }
        let reader = resolve(reader, self.of_reader, &mut self.fuel)?;
        let writer = resolve(writer, self.of_writer, &mut self.fuel)?;
        match (reader, writer) {
            (Shape::Struct(reader), Shape::Struct(writer)) => self.structures(&reader, &writer, mode),
            (Shape::Union(reader), Shape::Union(writer)) => self.unions(&reader, &writer, mode),
            (reader, writer) => self.scalars(&reader, &writer, mode),
        }
    }

    /// Queues a pair for comparison.
    fn require(
        &mut self,
        reader: &'a Identifier,
        writer: &'a Identifier,
        mode: Mode,
        part: String,
    ) -> Result<(), Inassignable> {
        self.fuel.burn(1)?;
        if self.seen.insert((reader, writer, mode)) {
            self.pairs.push(Pair { reader, writer, mode, within: Some((self.current, part)) });
        }
        Ok(())
    }

    /// Queues a pair that must be strongly assignable: types that are not delimited on the wire
    /// must be identical (XTypes 1.3 §7.2.4).
    fn require_strongly(
        &mut self,
        reader: &'a Identifier,
        writer: &'a Identifier,
        mode: Mode,
        part: String,
    ) -> Result<(), Inassignable> {
        let mode = if self.is_delimited(writer)? { mode } else { Mode { relation: Relation::Equivalent, ..mode } };
        self.require(reader, writer, mode, part)
    }

    /// Reports whether the end of a value of the writer's type is detectable without its definition
    /// (XTypes 1.3 §7.2.4).
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

    /// Records a difference that other implementations may refuse.
    fn caution(&mut self, what: String) {
        let caution = Caution { member: self.path(), what };
        if self.cautions.len() < CAUTIONS_MAX && !self.cautions.contains(&caution) {
            self.cautions.push(caution);
        }
    }

    /// Returns the path to the current pair.
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

    /// Reports that reader and writer have types of different kinds.
    fn other_kind<T>(&self, reader: &Shape<'_>, writer: &Shape<'_>) -> Result<T, Inassignable> {
        self.differs(format!("{reader} for the reader, {writer} from the writer"))
    }
}

/// Returns the name of an extensibility.
fn word(extensibility: Extensibility) -> String {
    match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    }
    .to_owned()
}
