//! `takt security grant`: changes the rules of a participant's permissions and signs them.

use std::path::PathBuf;

use clap::Args;
use takt_bench::{Error, Result};
use takt_security::documents::{self, Permissions, format_date_time};
use takt_security::identity::SubjectName;

use super::enclave::{CERTIFICATE, Enclave, PERMISSIONS, PERMISSIONS_XML, is_same_text, signed_text};
use super::files::{Readers, read_text, write};
use super::keystore::{Keystore, parse_name};
use super::rules::{RuleArgs, print, render};
use super::time::{days, now, validity};
use super::{refused, signed};
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security grant keys talker --publish Status
  takt security grant keys listener --subscribe Pose --partition left --partition right
  takt security grant keys listener --deny-subscribe 'Diagnostics*'
  takt security grant keys talker --replace --publish HelloWorld      only this rule
  takt security grant keys talker --days 30                           valid for 30 days from now

The first rule that applies decides: deny rules are inserted first, allow rules last.
The participant reads permissions.p7s when it starts: copy the enclave to its host, then restart it.";

/// `takt security grant`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Grant {
    /// Directory of the keystore
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of the enclave
    #[arg(value_parser = parse_name)]
    name: String,
    #[command(flatten)]
    rules: RuleArgs,
    /// Remove all previous rules
    #[arg(long)]
    replace: bool,
    /// Validity of the permissions in days from now, at most that of the certificate [default: unchanged]
    #[arg(long, value_name = "DAYS", value_parser = days())]
    days: Option<u32>,
}

impl Grant {
    /// Changes the rules and signs the permissions.
    ///
    /// # Errors
    /// - There is nothing to change.
    /// - The permissions have no grant for the participant, or were edited and not signed.
    /// - A file is missing or cannot be written.
    pub fn run(&self) -> Result<()> {
        if !self.rules.has_topics() && !self.replace && self.days.is_none() {
            let what = "nothing to change: name a topic by --publish, --subscribe, --deny-publish or --deny-subscribe";
            return Err(Error::Usage(what.to_owned()));
        }
        let keystore = Keystore::existing(&self.directory)?;
        let enclave = keystore.enclave(&self.name).existing()?;
        let issuer = keystore.permissions_issuer()?;
        let certificate = enclave.certificate()?;
        let subject = certificate.subject();
        let mut permissions = signed_permissions(&keystore, &enclave)?;
        let index = own_grant(&enclave, &permissions, subject)?;
        let domains = self.rules.domains(keystore.domains(now())?);
        let grant = &mut permissions.grants[index];
        if self.replace {
            grant.rules.clear();
        }
        if self.replace || self.rules.has_topics() {
            self.rules.add_to(&mut grant.rules, &domains);
        }
        if let Some(days) = self.days {
            let validity = validity(days);
            grant.not_before = validity.not_before;
            grant.not_after = validity.not_after.min(certificate.not_after());
        }
        let (text, permissions) = render(&permissions)?;
        let signed = signed(&issuer, &text)?;
        write(&enclave.file(PERMISSIONS_XML), text.as_bytes(), Readers::All)?;
        write(&enclave.file(PERMISSIONS), &signed, Readers::All)?;
        let grant = &permissions.grants[index];
        outln!("permissions of \"{subject}\" in {}", enclave.path().display())?;
        outln!("  valid until {}", format_date_time(grant.not_after))?;
        print(grant)?;
        self.rules.warn_of_denials(grant, &domains);
        Ok(())
    }
}

/// Returns the index of the subject's grant that is valid now, or of its first grant.
///
/// # Errors
/// The subject has no grant.
pub fn own_grant(enclave: &Enclave, permissions: &Permissions, subject: &SubjectName) -> Result<usize> {
    let is_own = |grant: &documents::Grant| grant.subject == *subject;
    let valid = permissions.grants.iter().position(|grant| is_own(grant) && grant.validity(now()).is_ok());
    valid.or_else(|| permissions.grants.iter().position(is_own)).ok_or_else(|| {
        let reason = format!("no grant for \"{subject}\", the subject name of {CERTIFICATE}");
        refused(&enclave.file(PERMISSIONS), reason)
    })
}

/// Returns the signed permissions of an enclave.
///
/// # Errors
/// The permissions are missing or not signed by the permissions CA. It is also an error if the
/// unsigned document differs, since its changes would be lost.
pub fn signed_permissions(keystore: &Keystore, enclave: &Enclave) -> Result<Permissions> {
    let path = enclave.file(PERMISSIONS);
    let signed = signed_text(&path, &keystore.permissions_authority()?, now())?;
    let document = enclave.file(PERMISSIONS_XML);
    if document.exists() && !is_same_text(&read_text(&document)?, &signed) {
        let advice = "sign it with takt security sign, or remove it";
        return Err(refused(&document, format_args!("differs from the signed {PERMISSIONS}; {advice}")));
    }
    Permissions::parse(&signed).map_err(|error| refused(&path, error))
}
