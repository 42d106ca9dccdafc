//! Creation of authorities, identities and signed documents, for `takt security` and for tests.
//!
//! The documents have the form that CycloneDDS and Fast DDS accept: `multipart/signed` with a
//! `text/plain` part, as `openssl smime -sign -text` writes it. Entity names become certificate
//! names, so two identities of one authority need different names.

pub mod enclave;
mod issuer;
mod sign;
mod xml;

pub use issuer::{Issuer, Validity};
pub use sign::sign_document;
pub use xml::{escape, governance_xml, permissions_xml};
