//! `takt security`: authorities, identities and signed documents of DDS Security, in the layout of
//! an SROS2 keystore (docs/guide/security-tools.md).

mod check;
mod enclave;
mod explain;
mod export;
mod files;
mod findings;
mod grant;
mod init;
mod keystore;
mod measure;
mod participant;
mod protection;
mod revoke;
mod rules;
mod sign;
mod time;

use std::fmt::Display;
use std::path::Path;

use clap::{Args, Subcommand};
use takt_bench::{Error, Result};
use takt_security::documents::DOCUMENT_LEN_MAX;
use takt_security::tools::{Issuer, sign_document};

const EXAMPLES: &str = "\
Examples:
  takt security init keys                                         creates authorities and governance of domain 0
  takt security participant keys talker --publish HelloWorld      creates the enclave keys/enclaves/talker
  takt security participant keys listener --subscribe HelloWorld
  takt security explain keys/enclaves/talker --topic HelloWorld   permitted actions with their rules
  takt security check keys                                        signatures, keys and expiry dates
  takt security grant keys talker --publish Status                permits one more topic
  takt security export keys/enclaves/talker --for cyclonedds      configuration for another vendor
  takt security revoke keys talker                                revokes its certificate
  takt security measure                                           execution times of protection on this machine
docs/guide/security-tools.md describes the files.";

/// `takt security`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Security {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a keystore: identity CA, permissions CA and signed governance document
    Init(init::Init),
    /// Create a participant: an enclave with certificate, private key and permissions
    Participant(participant::Participant),
    /// Change and sign the permissions of a participant
    Grant(grant::Grant),
    /// Check and sign a manually edited governance or permissions document
    Sign(sign::Sign),
    /// Check a keystore or an enclave, and list what expires soon
    Check(check::Check),
    /// Explain the permissions of a participant on a topic, and its protection
    Explain(explain::Explain),
    /// Print the configuration with which products of other vendors load an enclave
    Export(export::Export),
    /// Revoke certificates of participants with a revocation list
    Revoke(revoke::Revoke),
    /// Measure execution times of protection on this machine, for `takt analyze`
    Measure(measure::Measure),
}

impl Security {
    /// Reports whether the command only reads.
    pub fn is_query(&self) -> bool {
        matches!(self.command, Command::Check(_) | Command::Explain(_) | Command::Export(_) | Command::Measure(_))
    }

    /// Runs the command.
    ///
    /// # Errors
    /// A file is missing, wrong, or cannot be written; the error names it.
    pub fn run(&self) -> Result<()> {
        match &self.command {
            Command::Init(init) => init.run(),
            Command::Participant(participant) => participant.run(),
            Command::Grant(grant) => grant.run(),
            Command::Sign(sign) => sign.run(),
            Command::Check(check) => check.run(),
            Command::Explain(explain) => explain.run(),
            Command::Export(export) => export.run(),
            Command::Revoke(revoke) => revoke.run(),
            Command::Measure(measure) => measure.run(),
        }
    }
}

/// Signs a document.
///
/// # Errors
/// The library fails, or the signed document exceeds the length that readers accept.
fn signed(issuer: &Issuer, text: &str) -> Result<Vec<u8>> {
    let signed = sign_document(issuer, text).map_err(failed)?;
    if signed.len() > DOCUMENT_LEN_MAX {
        return Err(failed(format_args!(
            "the signed document has {} octets, but readers accept at most {DOCUMENT_LEN_MAX}",
            signed.len()
        )));
    }
    Ok(signed)
}

/// Returns a refusal that names the file.
fn refused(path: &Path, why: impl Display) -> Error {
    Error::NotKept { what: format!("{}: {why}", path.display()) }
}

/// Returns the refusal of a private key.
fn key_refused(path: &Path, pem: &[u8], why: impl Display) -> Error {
    if String::from_utf8_lossy(pem).contains("ENCRYPTED") {
        return refused(path, "the private key is encrypted; decrypt it with openssl pkey");
    }
    refused(path, why)
}

/// Returns a refusal that names no file.
fn failed(why: impl Display) -> Error {
    Error::NotKept { what: why.to_string() }
}
