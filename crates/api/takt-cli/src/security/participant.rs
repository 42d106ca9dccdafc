//! `takt security participant`: creates an enclave with a certificate, its private key and signed
//! permissions.

use std::path::PathBuf;

use clap::Args;
use takt_bench::{Error, Result};
use takt_security::documents::{Effect, Grant, Permissions, format_date_time};
use takt_security::identity::{Certificate, SubjectName};
use takt_security::tools::Validity;

use super::enclave::{CERTIFICATE, Enclave, IDENTITY_CA, KEY, PERMISSIONS, PERMISSIONS_XML};
use super::files::{Readers, make_directory, read, write};
use super::grant::{own_grant, signed_permissions};
use super::keystore::{Keystore, parse_name};
use super::rules::{RuleArgs, print, render};
use super::time::{days, now, validity};
use super::{failed, refused, signed};
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security participant keys talker --publish HelloWorld
  takt security participant keys gateway --publish 'rt/*' --subscribe 'rt/*' --deny-publish 'rt/debug/*'
  takt security participant keys /robot/arm --subscribe Pose --partition left --domain 0 --days 30
  takt security participant keys talker --renew      new key and certificate, same rules

Without --publish and --subscribe the participant may join the domain, but has no permission for a topic.
Copy only the directory of the enclave to the host of the participant.";

/// `takt security participant`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Participant {
    /// Directory of the keystore
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of the enclave, and common name of the certificate
    #[arg(value_parser = parse_name)]
    name: String,
    #[command(flatten)]
    rules: RuleArgs,
    /// Validity of certificate and permissions in days, at most that of the identity CA
    #[arg(long, value_name = "DAYS", default_value = "365", value_parser = days())]
    days: u32,
    /// Replace key and certificate of an existing enclave; its rules stay
    #[arg(long, conflicts_with_all = ["publish", "subscribe", "deny_publish", "deny_subscribe", "partition", "domain"])]
    renew: bool,
}

impl Participant {
    /// Creates the enclave.
    ///
    /// # Errors
    /// The enclave exists already, or with `--renew` it does not; the keystore lacks a private key,
    /// or a file cannot be written.
    pub fn run(&self) -> Result<()> {
        let keystore = Keystore::existing(&self.directory)?;
        let enclave = keystore.enclave(&self.name);
        let permissions_issuer = keystore.permissions_issuer()?;
        let (certificate, key, validity) = self.issue(&keystore)?;
        let subject = Certificate::from_pem(&certificate).map_err(failed)?.subject().clone();
        let permissions = if self.renew {
            renewed(&keystore, &enclave, &subject, validity)?
        } else {
            self.first_permissions(&keystore, &enclave, &subject, validity)?
        };
        let (text, permissions) = render(&permissions)?;
        let signed = signed(&permissions_issuer, &text)?;
        make_directory(enclave.path(), Readers::All)?;
        keystore.copy_common_files(&enclave)?;
        write(&enclave.file(KEY), &key, Readers::Owner)?;
        write(&enclave.file(CERTIFICATE), &certificate, Readers::All)?;
        write(&enclave.file(PERMISSIONS_XML), text.as_bytes(), Readers::All)?;
        write(&enclave.file(PERMISSIONS), &signed, Readers::All)?;
        outln!("participant \"{subject}\" in {}", enclave.path().display())?;
        outln!("  valid until {}", format_date_time(validity.not_after))?;
        permissions.grants.iter().filter(|grant| grant.subject == subject).try_for_each(print)
    }

    /// Issues a certificate and its private key. The kind of key is that of the identity CA.
    fn issue(&self, keystore: &Keystore) -> Result<(Vec<u8>, Vec<u8>, Validity)> {
        let path = keystore.public(IDENTITY_CA);
        let authority = Certificate::from_pem(&read(&path)?).map_err(|error| refused(&path, error))?;
        let mut validity = validity(self.days);
        if authority.not_after() <= now() {
            let reason = format!("expired at {}", format_date_time(authority.not_after()));
            return Err(refused(&path, reason));
        }
        validity.not_after = validity.not_after.min(authority.not_after());
        let issuer = keystore.identity_issuer()?;
        let (certificate, key) = issuer.issue(&self.name, authority.algorithm(), validity).map_err(failed)?;
        Ok((certificate, key, validity))
    }

    fn first_permissions(
        &self,
        keystore: &Keystore,
        enclave: &Enclave,
        subject: &SubjectName,
        validity: Validity,
    ) -> Result<Permissions> {
        if !self.rules.has_topics() && self.rules.has_partitions() {
            return Err(Error::Usage("--partition needs --publish or --subscribe".to_owned()));
        }
        if enclave.exists() {
            let path = enclave.path().display();
            let advice = "takt security grant changes its rules, --renew replaces its key and certificate";
            return Err(Error::Usage(format!("{path} exists; {advice}")));
        }
        let domains = self.rules.domains(keystore.domains(now())?);
        let mut rules = Vec::new();
        self.rules.add_to(&mut rules, &domains);
        let Validity { not_before, not_after } = validity;
        let (name, subject) = (self.name.clone(), subject.clone());
        let grant = Grant { name, subject, not_before, not_after, rules, default: Effect::Deny };
        Ok(Permissions { grants: vec![grant] })
    }
}

/// Returns the permissions of an enclave with a new validity.
fn renewed(keystore: &Keystore, enclave: &Enclave, subject: &SubjectName, validity: Validity) -> Result<Permissions> {
    // A certificate that cannot be read is replaced as well.
    if let Ok(old) = enclave.clone().existing()?.certificate()
        && old.subject() != subject
    {
        let advice = "--renew requires a certificate with the name of the enclave";
        let reason = format!("subject \"{}\", expected \"{subject}\": {advice}", old.subject());
        return Err(refused(&enclave.file(CERTIFICATE), reason));
    }
    let mut permissions = signed_permissions(keystore, enclave)?;
    let index = own_grant(enclave, &permissions, subject)?;
    let grant = &mut permissions.grants[index];
    (grant.not_before, grant.not_after) = (validity.not_before, validity.not_after);
    Ok(permissions)
}
