//! Errors of types and of values of dynamic types.

use core::fmt;

use super::TypeIdentifier;

/// Reason why a type cannot be registered or built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// The type object of this identifier is needed and not known.
    Missing {
        /// Identifier without a type object.
        identifier: TypeIdentifier,
    },
    /// The hash of the type object differs from the given identifier.
    HashMismatch {
        /// Given identifier.
        identifier: TypeIdentifier,
    },
    /// A minimal type object has no names; the complete one is needed.
    Minimal,
    /// The root of a topic type must be a structure or a union.
    NotAggregated,
    /// The type is valid but not supported.
    Unsupported {
        /// Description of the type.
        what: &'static str,
    },
    /// A definition contradicts itself.
    Invalid {
        /// Description of the error.
        what: &'static str,
    },
    /// A limit that bounds the memory for types of peers is exceeded.
    Limit {
        /// Limited quantity.
        what: &'static str,
        /// Value of the limit.
        limit: usize,
    },
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { identifier } => write!(f, "the definition of type {identifier} is not known"),
            Self::HashMismatch { identifier } => write!(f, "the definition does not belong to type {identifier}"),
            Self::Minimal => f.write_str("only the minimal type object is known; the complete one is required"),
            Self::NotAggregated => f.write_str("the type of a topic must be a structure or a union"),
            Self::Unsupported { what } => write!(f, "{what} is not supported"),
            Self::Invalid { what } => write!(f, "the type definition is invalid: {what}"),
            Self::Limit { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

impl core::error::Error for TypeError {}
