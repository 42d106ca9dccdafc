//! Governance and permissions: signed XML documents and what they decide (DDS-SEC 1.1 §9.4).
//!
//! A document is read in two steps. [`verify`] checks its S/MIME signature against the permissions
//! authority and returns the XML text. [`Governance::parse`] and [`Permissions::parse`] read the
//! text, of the schemas of 2016 and of 2017. An element that the schema does not have is an error:
//! a rule that is not understood must not be left out.
//!
//! Limits: [`DOCUMENT_LEN_MAX`] octets signed and unsigned, [`NODES_MAX`] nodes of XML, no DTD.
//! An expression of a topic or of a partition is a pattern of POSIX `fnmatch` of at most
//! [`EXPRESSION_LEN_MAX`] octets.

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
