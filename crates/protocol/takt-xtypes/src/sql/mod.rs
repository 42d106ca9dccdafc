//! SQL subset of content filters, queries and multi-topics (DDS 1.4 annex B).
//!
//! | Expression | Grammar | Type |
//! |---|---|---|
//! | of a ContentFilteredTopic | `Condition` | [`Filter`] |
//! | of a QueryCondition | `[Condition] [ORDER BY field, ...]` | [`Query`] |
//! | of a MultiTopic | `SELECT ... FROM a NATURAL JOIN b [WHERE Condition] [;]` | [`TopicExpression`] |
//!
//! A text is parsed into a [`Condition`]: predicates and a program of jumps over them, so that
//! evaluation needs no stack. A condition bound to a type and its parameters is a [`Filter`]. The
//! filter reads the [fields](Field) that it needs directly from a payload. Comparisons of
//! incompatible types are refused when the filter is created.
//!
//! Interpretation of the annex:
//! - Keywords are case-insensitive, names are not. `==` and `!=` are `=` and `<>`.
//! - An enumerator is written in quotes, without quotes if no field has its name, or as its number.
//! - A parameter (`%0` to `%99`) has the type of the operand that it is compared with. Its text may
//!   be quoted or not.
//! - `LIKE` has `%` for any characters and `_` for one. INTEROP(RTI Connext 7.3): `MATCH` has `*`,
//!   `?`, `[a-z]`, `[!a-z]` and commas between alternatives.
//! - A predicate on an absent value (an optional member, an unselected case, an element beyond the
//!   last) is unknown, and so is its negation, as in the three-valued logic of SQL. A sample passes
//!   if the condition is true.
//! - `NULL` and arithmetic are not supported.
//!
//! Invariants: evaluation does not allocate. Parsing never panics and never exhausts the stack.
//! Exceeding a limit is an error.

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

/// Maximum length of an expression in octets.
pub const EXPRESSION_LEN_MAX: usize = 8 * 1024;
/// Maximum length of a parameter's value in octets.
pub const PARAMETER_LEN_MAX: usize = 8 * 1024;
/// Maximum number of parameters, `%0` to `%99`.
pub const PARAMETERS_MAX: usize = 100;
/// Maximum number of predicates of a condition.
pub const PREDICATES_MAX: usize = 256;
/// Maximum nesting depth of parentheses.
pub const NESTING_MAX: usize = 64;
/// Maximum number of parts in the path of a field.
pub const PATH_PARTS_MAX: usize = 32;
/// Maximum number of fields to order by, of selected fields, and of joined topics.
pub const LIST_MAX: usize = 64;

/// Reason why an expression or its parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Position in octets from the start of the expression.
    pub position: usize,
    /// Description of the error.
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
