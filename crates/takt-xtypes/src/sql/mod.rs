//! The subset of SQL that filters, queries and multi-topics are written in (DDS 1.4 annex B).
//!
//! | Expression | Grammar | Type |
//! |---|---|---|
//! | of a ContentFilteredTopic | `Condition` | [`Filter`] |
//! | of a QueryCondition | `[Condition] [ORDER BY field, ...]` | [`Query`] |
//! | of a MultiTopic | `SELECT ... FROM a NATURAL JOIN b [WHERE Condition] [;]` | [`TopicExpression`] |
//!
//! Text becomes a [`Condition`]: predicates, and a program of jumps over them, so that evaluating needs no stack. Bound to
//! a type and to its parameters it is a [`Filter`], which reads the fields that it needs [where they lie](Field) in a
//! payload. What cannot be compared is refused when the filter is made.
//!
//! Readings of the annex:
//! - Keywords are case-insensitive, names are not. `==` and `!=` are `=` and `<>`.
//! - An enumerator is written in quotes, or without them where no field has its name, or as its number.
//! - A parameter (`%0` to `%99`) has the type of what it is compared with; text may be quoted or not.
//! - `LIKE` has `%` for any characters and `_` for one. INTEROP(RTI Connext 7.3): `MATCH` has `*`, `?`, `[a-z]`, `[!a-z]`
//!   and commas between alternatives.
//! - A predicate on what is not there (an optional member, a case that is not selected, an element beyond the last) is
//!   unknown, and so is its negation, as in the three-valued logic of SQL. A sample passes if the condition is true.
//! - `NULL` and arithmetic do not exist.
//!
//! Invariants: evaluating does not allocate; no text makes parsing panic or exhaust the stack; what exceeds a limit is an
//! error.

mod filter;
mod lexer;
mod parser;
mod pattern;
#[cfg(test)]
mod tests;

use alloc::string::String;
use core::fmt;

pub use crate::dynamic::{Field, FieldPart};
pub use filter::{Filter, Query};
pub use parser::{Condition, QueryExpression, Selected, TopicExpression};

/// Octets of an expression.
pub const EXPRESSION_LEN_MAX: usize = 8 * 1024;
/// Octets of a parameter's value.
pub const PARAMETER_LEN_MAX: usize = 8 * 1024;
/// Parameters, `%0` to `%99`.
pub const PARAMETERS_MAX: usize = 100;
/// Predicates of a condition.
pub const PREDICATES_MAX: usize = 256;
/// Levels of parentheses.
pub const NESTING_MAX: usize = 64;
/// Parts of the path of a field.
pub const PATH_PARTS_MAX: usize = 32;
/// Fields to order by, fields selected, topics joined: so many of each.
pub const LIST_MAX: usize = 64;

/// Why an expression or its parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Octets from the start of the expression.
    pub position: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at position {}: {}", self.position, self.what)
    }
}

impl core::error::Error for SqlError {}

fn error(position: usize, what: impl Into<String>) -> SqlError {
    SqlError { position, what: what.into() }
}
