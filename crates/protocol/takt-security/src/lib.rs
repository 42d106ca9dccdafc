//! Plugins of DDS Security 1.1: authentication, access control and cryptography, sans-IO.
//!
//! - [`identity`]: certificates, keys, authorities, revocation, GUID prefixes.
//! - [`documents`]: signed governance and permissions documents, and the decisions they lead to.
//! - [`attributes`]: security attribute masks of participants and endpoints, and their comparison.
//! - [`handshake`]: authentication of two participants.
//! - [`keys`]: key material, session keys, key tokens.
//! - [`transform`]: protection of payloads, submessages and messages.
//! - [`plugin`]: all of these as one object that a participant of `takt-core` takes.
//! - [`token`], [`message`]: the wire forms of tokens and of the messages that carry them.
//! - [`tools`]: creation of authorities, identities and signed documents.
//!
//! Invariants:
//! - time is an argument: seconds since 1970 for validity, a monotonic duration for timeouts;
//! - every size and count that a sender chooses is checked before memory is allocated;
//! - malformed octets end in an error with its reason, never in a panic;
//! - sealing and opening allocate no memory while a session lasts.
//!
//! # Order of a session
//!
//! A participant takes these steps with each remote participant:
//!
//! 1. It compares the masks of both ([`attributes::SecurityInfo::check_participants`]).
//! 2. It runs a [`handshake::Handshake`] on the builtin stateless endpoints.
//! 3. It checks the permissions that the handshake delivered ([`documents::AccessControl`]).
//! 4. It derives the key of the builtin volatile endpoints ([`keys::SharedSecret`]) and sends key
//!    tokens over them. An initiator sends the tokens after its Final message: a replier drops
//!    tokens that arrive earlier.
//! 5. It opens messages of the remote participant with the key that the crypto header names
//!    ([`transform::peek_message`], [`transform::peek_submessage`]), once the key token has
//!    arrived.
//!
//! Certificates and permissions expire during a session: steps 1 and 3 may be repeated at any time.
//! A [`plugin::Renewer`] replaces them.
//!
//! Not implemented: OCSP, and the additions of DDS Security 1.2.
//!
//! # Cryptographic library
//!
//! AES-GCM of a session uses `ring`: a call takes a third of the time of the same call to OpenSSL
//! for a short message. Every other primitive uses OpenSSL, through the crate `openssl`. It is the
//! only library for Rust that has all of these: X.509 path checks at a given time, PKCS#7 with
//! S/MIME, ECDH on P-256, the MODP-2048-256 group of RFC 5114, RSA-PSS, ECDSA and AES-GCM with
//! GMAC. CycloneDDS and Fast DDS use OpenSSL as well. The library of the system is linked: security
//! updates reach Takt without a rebuild. OpenSSL also generates the random numbers: they are the
//! only input of this crate that is no argument.
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
