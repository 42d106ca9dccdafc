//! Governance and permissions: signed XML documents and access decisions (DDS-SEC 1.1 §9.4).
//!
//! A document is processed in two steps. [`verify`] checks its S/MIME signature against the
//! permissions authority and returns the XML text. [`Governance::parse`] and [`Permissions::parse`]
//! parse the text, of the 2016 or the 2017 schema. An element outside the schema is an error: an
//! unknown rule must not be ignored.
//!
//! Limits: [`DOCUMENT_LEN_MAX`] octets signed and unsigned, [`NODES_MAX`] XML nodes, no DTD. A
//! topic or partition expression is a POSIX `fnmatch` pattern of at most [`EXPRESSION_LEN_MAX`]
//! octets.

mod access;
mod domains;
mod evaluate;
mod governance;
mod mime;
mod permissions;
mod smime;
mod time;
mod xml;

pub use access::AccessControl;
pub use domains::{DOMAIN_ID_MAX, DomainSet};
pub use evaluate::{Action, Decision, Query};
pub use governance::{BasicProtectionKind, DomainRule, Governance, ProtectionKind, TopicRule};
pub use permissions::{Criteria, Effect, Grant, Permissions, Rule, permissions_token};
pub use smime::verify;
pub use time::{format_date_time, parse_date_time};
pub use xml::{DOCUMENT_LEN_MAX, EXPRESSION_LEN_MAX, NODES_MAX};

#[cfg(test)]
mod tests;
