//! Why types, or values of types known at run time, cannot be used.

use core::fmt;

use super::TypeIdentifier;

/// Why a type cannot be registered or built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// The type object of this identifier is needed and not known.
    Missing {
        /// The identifier that no type object is known for.
        identifier: TypeIdentifier,
    },
    /// The type object does not hash to the identifier it was offered under.
    HashMismatch {
        /// The identifier that was claimed.
        identifier: TypeIdentifier,
    },
    /// A minimal type object has no names; its complete one is needed.
    Minimal,
    /// The root of a topic's type has to be a structure or a union.
    NotAggregated,
    /// Something that is a type, but not one that is supported.
    Unsupported {
        /// What it is.
        what: &'static str,
    },
    /// A definition that contradicts itself.
    Invalid {
        /// What is wrong.
        what: &'static str,
    },
    /// A limit that keeps peers from filling the memory.
    Limit {
        /// What is limited.
        what: &'static str,
        /// How much of it there may be.
        limit: usize,
    },
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { identifier } => write!(f, "the definition of type {identifier} is not known"),
            Self::HashMismatch { identifier } => write!(f, "the definition does not belong to type {identifier}"),
            Self::Minimal => f.write_str("the type is known without names only; its complete definition is needed"),
            Self::NotAggregated => f.write_str("the type of a topic is a structure or a union"),
            Self::Unsupported { what } => write!(f, "{what} is not supported"),
            Self::Invalid { what } => write!(f, "the type is contradictory: {what}"),
            Self::Limit { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl core::error::Error for TypeError {}
