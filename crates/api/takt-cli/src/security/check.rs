//! `takt security check`: verifies an enclave, or a keystore with all its enclaves.

use crate::progress::during;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use takt_bench::report::to_json;
use takt_bench::{Error, Result};
use takt_security::documents::{Governance, format_date_time};
use takt_security::identity::{Authority, Certificate, Identity, SubjectName, UnixSeconds};

use super::enclave::{
    CERTIFICATE, Enclave, GOVERNANCE, PERMISSIONS, PERMISSIONS_XML, REVOCATION_LIST, is_same_text, signed_text,
};
use super::files::{is_open_to_others, read_optional, read_text};
use super::findings::{Expiry, Findings, Remedy};
use super::keystore::{GOVERNANCE_XML, IDENTITY_CA_KEY, Keystore, PERMISSIONS_CA_KEY};
use super::time::{now, parse_time};
use super::{failed, refused};
use crate::finding::{Finding, count};
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security check keys                      checks the keystore and all its enclaves
  takt security check keys/enclaves/talker      checks one enclave, for example on the host of its participant
  takt security check keys --days 90 --json
  takt security check keys --at 2027-06-30      checks validity on that day

Findings that begin with 'warning:' are warnings.";

const REFUSED: &str = "remote participants refuse this participant";
const NOT_CREATED: &str = "the participant cannot be created";
const STALE: &str = "its participant does not match the others, or trusts certificates that they refuse";

/// `takt security check`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Directory of a keystore or of an enclave
    #[arg(value_name = "DIR|ENCLAVE")]
    directory: PathBuf,
    /// Warn if a certificate, grant or list expires within this number of days
    #[arg(long, value_name = "DAYS", default_value = "30")]
    days: u32,
    /// Time of the check [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<UnixSeconds>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    /// Time at which validity is checked.
    at: String,
    is_valid: bool,
    enclaves: Vec<String>,
    findings: Vec<Finding>,
    expiries: Vec<Expiry>,
}

impl Check {
    /// Runs the checks and prints the findings.
    ///
    /// # Errors
    /// There is nothing to check, or a finding is an error.
    pub fn run(&self) -> Result<()> {
        let now = self.at.unwrap_or_else(now);
        let enclave = Enclave::at(&self.directory);
        let keystore = if enclave.exists() { None } else { Some(Keystore::existing(&self.directory)?) };
        let mut checker = Checker { findings: Findings::new(now, i64::from(self.days)), keystore };
        let enclaves = during("checking enclaves", || match checker.keystore.clone() {
            Some(keystore) => checker.keystore(&keystore),
            None => {
                checker.enclave(&enclave);
                Ok(vec![enclave.path().display().to_string()])
            }
        })?;
        let mut findings = checker.findings;
        findings.found.sort_by_key(|finding| !finding.is_error);
        let errors = findings.found.iter().filter(|finding| finding.is_error).count();
        if self.json {
            let at = format_date_time(now);
            let Findings { found, expiries, .. } = findings;
            let report = Report { at, is_valid: errors == 0, enclaves, findings: found, expiries };
            outln!("{}", to_json(&report)?)?;
        } else {
            print(&findings, errors, &enclaves)?;
        }
        match errors {
            0 => Ok(()),
            errors => Err(Error::NotKept { what: format!("{} to correct", count(errors, "finding")) }),
        }
    }
}

fn print(findings: &Findings, errors: usize, enclaves: &[String]) -> Result<()> {
    for finding in &findings.found {
        outln!("{}{finding}", if finding.is_error { "" } else { "warning: " })?;
    }
    let warnings = findings.found.len() - errors;
    outln!("{}, {}, {}", count(enclaves.len(), "enclave"), count(errors, "finding"), count(warnings, "warning"))?;
    if let Some(Expiry { what, not_after, days }) = findings.first_expiry() {
        outln!("first to expire: {what}, at {not_after}, in {}", count(usize::try_from(*days).unwrap_or(0), "day"))?;
    }
    Ok(())
}

/// Check in progress. Without a keystore, a single enclave is checked.
struct Checker {
    findings: Findings,
    keystore: Option<Keystore>,
}

impl Checker {
    /// Checks a keystore and returns the names of its enclaves.
    fn keystore(&mut self, keystore: &Keystore) -> Result<Vec<String>> {
        let path = keystore.path().display().to_string();
        let replaced = Remedy::Advice("restore the file, or create a new keystore".to_owned());
        for (key, issuer) in
            [(IDENTITY_CA_KEY, keystore.identity_issuer()), (PERMISSIONS_CA_KEY, keystore.permissions_issuer())]
        {
            // A keystore whose private keys are stored elsewhere is complete without them.
            let key = keystore.private(key);
            if key.exists() {
                self.findings.value_or_error("issuer", issuer, "the keystore cannot sign", &replaced);
                self.check_access(&key);
            }
        }
        let (signed, document) = (keystore.governance_file(GOVERNANCE), keystore.governance_file(GOVERNANCE_XML));
        let sign = Remedy::Command(format!("takt security sign {path} {}", document.display()));
        if let Some(authority) = self.findings.value_or_error(
            "permissions-authority",
            keystore.permissions_authority(),
            NOT_CREATED,
            &replaced,
        ) && self
            .findings
            .value_or_error("governance", keystore.governance(self.findings.now()), NOT_CREATED, &sign)
            .is_some()
        {
            self.check_document(&document, &signed, &authority, &sign);
        }
        let revoked = fingerprints(&keystore.revoked_certificates()?)?;
        let (mut names, mut subjects) = (Vec::new(), Vec::<(SubjectName, String)>::new());
        for enclave in keystore.all_enclaves()? {
            let name = keystore.name_of(&enclave);
            names.push(name.clone());
            let certificate = enclave.certificate().and_then(|one| one.fingerprint().map_err(failed));
            if certificate.is_ok_and(|fingerprint| revoked.contains(&fingerprint)) {
                let remedy = Remedy::Command(format!("takt security participant {path} {name} --renew"));
                let what = format!("{}: its certificate is revoked", enclave.path().display());
                self.findings.add_warning("revoked", what, REFUSED, &remedy);
                continue;
            }
            let subject = self.enclave(&enclave);
            self.check_copies(keystore, &enclave);
            let Some(subject) = subject else { continue };
            if let Some((_, other)) = subjects.iter().find(|(known, _)| *known == subject) {
                let what = format!("{name} and {other} have the same subject \"{subject}\"");
                let remedy = Remedy::Advice("create one of them again, with a unique name".to_owned());
                self.findings.add_error("same-subject", what, "each of them has the permissions of both", &remedy);
            }
            subjects.push((subject, name));
        }
        Ok(names)
    }

    /// Checks an enclave and returns the subject of its certificate, if it has one.
    fn enclave(&mut self, enclave: &Enclave) -> Option<SubjectName> {
        let renew = self.renew(enclave);
        let certificate = self.findings.value_or_error("certificate", enclave.certificate(), NOT_CREATED, &renew);
        let identity =
            self.findings.value_or_error("identity-authority", enclave.identity_authority(), NOT_CREATED, &self.copy());
        let permissions = self.findings.value_or_error(
            "permissions-authority",
            enclave.permissions_authority(),
            NOT_CREATED,
            &self.copy(),
        );
        for authority in identity.iter().chain(&permissions) {
            self.authority_expires(authority);
        }
        if let (Some(one), Some(other)) = (&identity, &permissions)
            && one.certificates().first().map(Certificate::pem) == other.certificates().first().map(Certificate::pem)
        {
            let what = format!("{}: identities and permissions have the same authority", enclave.path().display());
            let why = "CycloneDDS 0.10 and Fast DDS 2.9 accept permissions that a participant signs with its own key";
            self.findings.add_warning(
                "one-authority",
                what,
                why,
                &Remedy::Advice("use a keystore with two authorities, as takt security init creates".to_owned()),
            );
        }
        let certificate = certificate?;
        self.check_identity(enclave, &certificate, identity.as_ref(), &renew);
        if let Some(authority) = permissions {
            self.check_permissions(enclave, &certificate, &authority);
        }
        Some(certificate.subject().clone())
    }

    fn check_identity(
        &mut self,
        enclave: &Enclave,
        certificate: &Certificate,
        authority: Option<&Authority>,
        renew: &Remedy,
    ) {
        let (path, key) = (enclave.file(CERTIFICATE), enclave.key_file());
        if let Some(private) = self.findings.value_or_error("key", enclave.key(), NOT_CREATED, renew) {
            let identity = Identity::new(certificate.clone(), private).map_err(|error| refused(&key, error));
            self.findings.value_or_error("identity", identity, NOT_CREATED, renew);
            self.check_access(&key);
        }
        let Some(authority) = authority else { return };
        if let (Some(time), Some(first)) = (authority.revocation_expiry(), authority.certificates().first()) {
            let what = format!("revocation list of \"{}\"", first.subject());
            self.findings.expires(
                what,
                time,
                "from then on, participants refuse all certificates of the authority",
                &self.revoke(),
            );
        }
        let checked = authority.check(certificate, self.findings.now()).map_err(|error| refused(&path, error));
        if self.findings.value_or_error("certificate-refused", checked, REFUSED, renew).is_some() {
            let what = format!("certificate of \"{}\"", certificate.subject());
            self.findings.expires(what, certificate.not_after(), "from then on, remote participants refuse it", renew);
        }
    }

    fn check_permissions(&mut self, enclave: &Enclave, certificate: &Certificate, authority: &Authority) {
        let subject = certificate.subject();
        let now = self.findings.now();
        let governance =
            self.findings.value_or_error("governance", enclave.governance(authority, now), NOT_CREATED, &self.copy());
        let (signed, document) = (enclave.file(PERMISSIONS), enclave.file(PERMISSIONS_XML));
        let sign = self.sign(&document);
        let Some(permissions) =
            self.findings.value_or_error("permissions", enclave.permissions(authority, now), NOT_CREATED, &sign)
        else {
            return;
        };
        self.check_document(&document, &signed, authority, &sign);
        let prolong = match permissions
            .grants
            .iter()
            .filter(|grant| grant.subject == *subject)
            .map(|grant| grant.not_after)
            .max()
        {
            None => sign,
            Some(last) if last < certificate.not_after() => self.extend_validity(enclave),
            // The grant ends with the certificate.
            Some(_) => self.renew(enclave),
        };
        let grant = permissions.grant(subject, now).map_err(|error| refused(&signed, error));
        let Some(grant) = self.findings.value_or_error("grant", grant, REFUSED, &prolong) else { return };
        let what = format!("grant \"{}\" of \"{subject}\"", grant.name);
        self.findings.expires(what, grant.not_after, "from then on, remote participants refuse it", &prolong);
        if let Some(governance) = governance.filter(|governance| !joins_any(governance, |id| grant.joins(id))) {
            let domains: Vec<_> = governance.domain_rules.iter().map(|rule| rule.domains.to_string()).collect();
            let what =
                format!("{}: no allow_rule for the domains {} of the governance", signed.display(), domains.join(", "));
            self.findings.add_error("no-domain", what, "the participant may not join any domain", &self.grant(enclave));
        }
    }

    fn authority_expires(&mut self, authority: &Authority) {
        // An authority that renewed its certificate has several.
        if let Some(last) = authority.certificates().iter().max_by_key(|one| one.not_after()) {
            let what = format!("certificate of \"{}\"", last.subject());
            let remedy = Remedy::Advice("create a keystore with new authorities, and its participants".to_owned());
            self.findings.expires(
                what,
                last.not_after(),
                "from then on, participants refuse everything that it signed",
                &remedy,
            );
        }
    }

    /// Checks that only the owner has access to a private key.
    fn check_access(&mut self, path: &Path) {
        let remedy = Remedy::Command(format!("chmod 600 {}", path.display()));
        if self.findings.value_or_error("key-access", is_open_to_others(path), NOT_CREATED, &remedy) == Some(true) {
            let what = format!("{}: other users have access to the private key", path.display());
            self.findings.add_error("key-open", what, "they can impersonate its owner", &remedy);
        }
    }

    /// Warns of a document that was edited after it was signed.
    fn check_document(&mut self, document: &Path, signed: &Path, authority: &Authority, sign: &Remedy) {
        if !document.exists() {
            return;
        }
        let texts =
            read_text(document).and_then(|text| Ok((text, signed_text(signed, authority, self.findings.now())?)));
        if let Some((text, signed_text)) = self.findings.value_or_error("signed-document", texts, NOT_CREATED, sign)
            && !is_same_text(&text, &signed_text)
        {
            let what = format!("{} differs from {}", document.display(), signed.display());
            self.findings.add_warning("unsigned-change", what, "participants read the signed document", sign);
        }
    }

    /// Finds files of an enclave that differ from those of the keystore.
    fn check_copies(&mut self, keystore: &Keystore, enclave: &Enclave) {
        for (name, path) in keystore.common_files() {
            let copy = enclave.file(name);
            let contents = read_optional(&path).and_then(|content| Ok((content, read_optional(&copy)?)));
            let command_remedy = match name {
                GOVERNANCE => self.sign(&keystore.governance_file(GOVERNANCE_XML)),
                REVOCATION_LIST => self.revoke(),
                _ => self.copy_from(&path, &copy),
            };
            if let Some((content, copied)) =
                self.findings.value_or_error("copy", contents, NOT_CREATED, &command_remedy)
                && content != copied
            {
                let what = format!("{} differs from {}", copy.display(), path.display());
                self.findings.add_error("stale-copy", what, STALE, &command_remedy);
            }
        }
    }
}

/// Remedies of findings, with a keystore and without.
impl Checker {
    fn command_remedy(&self, command: impl FnOnce(&Keystore) -> String) -> Remedy {
        match &self.keystore {
            Some(keystore) => Remedy::Command(command(keystore)),
            None => self.copy(),
        }
    }

    fn copy(&self) -> Remedy {
        Remedy::Advice(
            "correct the enclave in its keystore (takt security check DIR), and copy it from there".to_owned(),
        )
    }

    fn copy_from(&self, path: &Path, copy: &Path) -> Remedy {
        Remedy::Command(format!("cp {} {}", path.display(), copy.display()))
    }

    fn renew(&self, enclave: &Enclave) -> Remedy {
        self.command_remedy(|keys| {
            format!("takt security participant {} {} --renew", keys.path().display(), keys.name_of(enclave))
        })
    }

    fn extend_validity(&self, enclave: &Enclave) -> Remedy {
        self.command_remedy(|keys| {
            format!("takt security grant {} {} --days 365", keys.path().display(), keys.name_of(enclave))
        })
    }

    fn grant(&self, enclave: &Enclave) -> Remedy {
        let place = |keys: &Keystore| format!("{} {}", keys.path().display(), keys.name_of(enclave));
        self.command_remedy(|keys| format!("takt security grant {} --publish TOPIC", place(keys)))
    }

    fn sign(&self, document: &Path) -> Remedy {
        self.command_remedy(|keys| format!("takt security sign {} {}", keys.path().display(), document.display()))
    }

    fn revoke(&self) -> Remedy {
        self.command_remedy(|keys| format!("takt security revoke {}", keys.path().display()))
    }
}

fn joins_any(governance: &Governance, joins: impl Fn(u32) -> bool) -> bool {
    governance.domain_rules.iter().any(|rule| {
        !rule.enable_join_access_control || rule.domains.0.iter().any(|(low, high)| (*low..=*high).any(&joins))
    })
}

fn fingerprints(certificates: &[Vec<u8>]) -> Result<Vec<[u8; 32]>> {
    let fingerprint = |pem: &Vec<u8>| Certificate::from_pem(pem)?.fingerprint();
    certificates.iter().map(fingerprint).collect::<takt_security::Result<_>>().map_err(failed)
}
