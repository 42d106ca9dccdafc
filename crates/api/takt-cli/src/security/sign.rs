//! `takt security sign`: checks and signs documents that were edited by hand.

use std::path::{Path, PathBuf};

use clap::Args;
use takt_bench::Result;
use takt_security::documents::{Governance, Permissions};
use takt_security::{ErrorKind, SecurityError};

use super::enclave::Enclave;
use super::files::{Readers, read_text, write};
use super::keystore::{GOVERNANCE_XML, Keystore};
use super::{refused, signed};
use crate::finding::count;
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security sign keys keys/enclaves/governance.xml              writes governance.p7s, there and to each enclave
  takt security sign keys keys/enclaves/talker/permissions.xml      writes permissions.p7s there
A malformed document is not signed: the error names its line and element.";

/// `takt security sign`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Sign {
    /// Directory of the keystore
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Document in XML; the signed document is written to the same directory, with the extension p7s
    #[arg(value_name = "FILE")]
    document: PathBuf,
}

enum Document {
    Governance,
    Permissions(Permissions),
}

impl Document {
    fn parse(text: &str) -> std::result::Result<Self, SecurityError> {
        let empty = |element| SecurityError::new(ErrorKind::Document, format!("the element <{element}> is missing"));
        match (Governance::parse(text), Permissions::parse(text)) {
            (Ok(governance), _) if governance.domain_rules.is_empty() => Err(empty("domain_rule")),
            (Ok(_), _) => Ok(Self::Governance),
            (_, Ok(permissions)) if permissions.grants.is_empty() => Err(empty("grant")),
            (_, Ok(permissions)) => Ok(Self::Permissions(permissions)),
            (_, Err(error)) if text.contains("<permissions") => Err(error),
            (Err(error), _) => Err(error),
        }
    }
}

impl Sign {
    /// Signs the document.
    ///
    /// # Errors
    /// The document is malformed, its permissions are not for the participant of its enclave, or a
    /// file is missing or cannot be written.
    pub fn run(&self) -> Result<()> {
        let keystore = Keystore::existing(&self.directory)?;
        let issuer = keystore.permissions_issuer()?;
        let text = read_text(&self.document)?;
        let document = Document::parse(&text).map_err(|error| refused(&self.document, error))?;
        if let Document::Permissions(permissions) = &document {
            self.check_subject(permissions)?;
        }
        let path = self.document.with_extension("p7s");
        let signed = signed(&issuer, &text)?;
        write(&path, &signed, Readers::All)?;
        let is_common = is_same_file(&self.document, &keystore.governance_file(GOVERNANCE_XML));
        if !is_common || !matches!(document, Document::Governance) {
            return outln!("signed {}", path.display());
        }
        let enclaves = keystore.all_enclaves()?;
        enclaves.iter().try_for_each(|enclave| keystore.copy_common_files(enclave))?;
        outln!("signed {}, copied to {}", path.display(), count(enclaves.len(), "enclave"))
    }

    /// Checks that permissions in an enclave name its participant.
    fn check_subject(&self, permissions: &Permissions) -> Result<()> {
        let enclave = Enclave::at(self.document.parent().unwrap_or(Path::new("")));
        if !enclave.exists() {
            return Ok(());
        }
        let certificate = enclave.certificate()?;
        let subject = certificate.subject();
        if permissions.grants.iter().any(|grant| grant.subject == *subject) {
            return Ok(());
        }
        Err(refused(
            &self.document,
            format_args!("no grant for \"{subject}\", the subject name of cert.pem in its directory"),
        ))
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
