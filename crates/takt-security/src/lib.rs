//! The plugins of DDS Security 1.1, without input, output, clock or thread.
//!
//! - [`identity`]: certificates, keys, authorities, revocation, GUID prefixes.
//! - [`documents`]: signed governance and permissions, and what they decide.
//! - [`attributes`]: the masks of participants and endpoints, and why two differ.
//! - [`handshake`]: authentication of two participants.
//! - [`keys`]: key material, session keys, key tokens.
//! - [`transform`]: protection of payloads, submessages and messages.
//! - [`plugin`]: all of these as the one object that a participant of `takt-core` is given.
//! - [`token`], [`message`]: the wire forms of tokens and of the messages that carry them.
//! - [`tools`]: makers of authorities, identities and signed documents.
//!
//! Invariants:
//! - time is an argument: seconds since 1970 for validity, a monotonic duration for time-outs;
//! - every size and count that a sender chooses is bounded before memory is taken;
//! - bad octets end in an error with its reason, never in a panic;
//! - sealing and opening take no memory while a session lasts.
//!
//! # Order of a session
//!
//! What a participant does with a remote one, and the module that knows how:
//!
//! 1. It compares the masks of both ([`attributes::SecurityInfo::check_participants`]).
//! 2. It runs a [`handshake::Handshake`] on the stateless channel.
//! 3. It checks the permissions that the handshake brought ([`documents::AccessControl`]).
//! 4. It derives the key of the volatile channel ([`keys::SharedSecret`]), and sends key tokens
//!    there. An initiator sends them behind its Final: a replier drops what comes before.
//! 5. It opens what the remote participant protects with the key that the crypto header names
//!    ([`transform::peek_message`], [`transform::peek_submessage`]), once its token has come.
//!
//! Certificates and permissions expire during a session: steps 1 and 3 may be repeated at any time. Others take their
//! place by [`plugin::Renewer`].
//!
//! Not here: OCSP, and what DDS Security 1.2 added.
//!
//! # Cryptographic library
//!
//! AES-GCM of a session is `ring`'s: a call takes a third of the time that one of OpenSSL takes for a
//! short message. Every other primitive is OpenSSL's, by the crate `openssl`. Of the libraries for Rust it alone has
//! X.509 path checks at a given time, PKCS#7 with S/MIME, ECDH on P-256, the MODP-2048-256 group
//! of RFC 5114, RSA-PSS, ECDSA and AES-GCM with GMAC. CycloneDDS and Fast DDS use it as well. It is
//! the library of the system: security updates reach Takt without a new build. Random numbers are
//! its own, too: the one input of this crate that is no argument.
#![forbid(unsafe_code)]

pub mod attributes;
mod cdr;
pub mod documents;
pub mod error;
pub mod handshake;
pub mod identity;
pub mod keys;
pub mod message;
pub mod plugin;
pub mod token;
pub mod tools;
pub mod transform;

pub use error::{ErrorKind, Result, SecurityError};
pub use plugin::{Plugin, Settings};
