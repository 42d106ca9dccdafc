//! `takt security`: authorities, identities and signed documents of DDS Security, in the layout of
//! an SROS2 keystore (docs/security-tools.md).

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
  takt security init keys                                         authorities and governance of domain 0
  takt security participant keys talker --publish HelloWorld      files of a participant: keys/enclaves/talker
  takt security participant keys listener --subscribe HelloWorld
  takt security explain keys/enclaves/talker --topic HelloWorld   what it may do, and by which rule
  takt security check keys                                        signatures, keys, and what expires soon
  takt security grant keys talker --publish Status                one more topic
  takt security export keys/enclaves/talker --for cyclonedds      for a program of another vendor
  takt security revoke keys talker                                its certificate is refused from now on
  takt security measure                                           what protection takes on this machine
docs/security-tools.md describes the files.";

/// `takt security`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Security {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a keystore: an identity CA, a permissions CA and a signed governance document
    Init(init::Init),
    /// Make a participant: certificate, private key and signed permissions, in an enclave of their own
    Participant(participant::Participant),
    /// Change the permissions of a participant, and sign them
    Grant(grant::Grant),
    /// Check and sign a governance or permissions document that was edited by hand
    Sign(sign::Sign),
    /// Verify a keystore or an enclave, and list what expires soon
    Check(check::Check),
    /// Say what a participant may do on a topic, by which rule, and how the topic is protected on the wire
    Explain(explain::Explain),
    /// Print the configuration by which programs of other vendors load an enclave
    Export(export::Export),
    /// Revoke certificates of participants by a revocation list
    Revoke(revoke::Revoke),
    /// Measure what protection takes on this machine, for `takt analyze`
    Measure(measure::Measure),
}

impl Security {
    /// Reports whether the command only reads.
    pub fn is_question(&self) -> bool {
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
        return Err(failed(format_args!("signed document of {} octets, at most {DOCUMENT_LEN_MAX}", signed.len())));
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
        return refused(path, "the private key is encrypted; openssl pkey writes it without encryption");
    }
    refused(path, why)
}

/// Returns a refusal that names no file.
fn failed(why: impl Display) -> Error {
    Error::NotKept { what: why.to_string() }
}
