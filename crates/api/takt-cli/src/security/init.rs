//! `takt security init`: a keystore with its authorities and a signed governance document.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use takt_bench::{Error, Result};
use takt_security::documents::{
    BasicProtectionKind, DomainRule, DomainSet, Governance, ProtectionKind, TopicRule, format_date_time,
};
use takt_security::identity::KeyAlgorithm;
use takt_security::tools::{Issuer, governance_xml};

use super::enclave::{GOVERNANCE, IDENTITY_CA, PERMISSIONS_CA};
use super::files::{Readers, make_directory, write};
use super::keystore::{GOVERNANCE_XML, IDENTITY_CA_KEY, Keystore, PERMISSIONS_CA_KEY};
use super::rules::{DomainRange, parse_domains};
use super::time::{days, validity};
use super::{failed, signed};
use crate::output::outln;

const EXAMPLES: &str = "\
Examples:
  takt security init keys
  takt security init keys --protect sign --domain 0-10      authenticated, not encrypted, in eleven domains
  takt security init keys --ca-name Plant7 --rsa --days 7300

Protection on the wire:
            rtps  discovery  liveliness  metadata  data
  none      NONE  NONE       NONE        NONE      NONE    participants authenticate and need permissions
  sign      SIGN  SIGN       SIGN        SIGN      NONE    third parties can read samples, but not forge messages
  encrypt   SIGN  ENCRYPT    ENCRYPT     ENCRYPT   NONE    third parties cannot read samples, topics and QoS either
Metadata protection covers the payload. For other rules edit enclaves/governance.xml, then use takt security sign.";

/// `takt security init`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Init {
    /// Directory to create
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Prefix of the names of both authorities
    #[arg(long, value_name = "NAME", default_value = "Takt")]
    ca_name: String,
    /// Protection of all topics on the wire
    #[arg(long, value_enum, value_name = "KIND", default_value = "encrypt")]
    protect: Protect,
    /// Domain, or a range such as 0-10; may be repeated, or separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = parse_domains, default_value = "0")]
    domain: Vec<DomainRange>,
    /// Use RSA keys of 2,048 bits instead of EC keys on P-256, also for participants
    #[arg(long)]
    rsa: bool,
    /// Validity of the authorities in days
    #[arg(long, value_name = "DAYS", default_value = "3650", value_parser = days())]
    days: u32,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Protect {
    None,
    Sign,
    Encrypt,
}

impl Protect {
    /// Returns the governance document.
    ///
    /// Payloads have no protection of their own, since metadata protection covers them.
    ///
    /// INTEROP(Fast DDS 2.9): pads payloads that `data_protection_kind` SIGN signs, and then
    /// refuses its own.
    fn governance(self, domains: DomainSet) -> Governance {
        let kind = match self {
            Self::None => ProtectionKind::None,
            Self::Sign => ProtectionKind::Sign,
            Self::Encrypt => ProtectionKind::Encrypt,
        };
        let topic = TopicRule {
            topic_expression: "*".to_owned(),
            enable_discovery_protection: kind.is_protected(),
            enable_liveliness_protection: kind.is_protected(),
            enable_read_access_control: true,
            enable_write_access_control: true,
            metadata_protection_kind: kind,
            data_protection_kind: BasicProtectionKind::None,
        };
        let rule = DomainRule {
            domains,
            allow_unauthenticated_participants: false,
            enable_join_access_control: true,
            discovery_protection_kind: kind,
            liveliness_protection_kind: kind,
            rtps_protection_kind: if kind.is_protected() { ProtectionKind::Sign } else { kind },
            topic_rules: vec![topic],
        };
        Governance { domain_rules: vec![rule] }
    }
}

impl Init {
    /// Creates the keystore.
    ///
    /// # Errors
    /// A keystore exists already, or a file cannot be written.
    pub fn run(&self) -> Result<()> {
        let keystore = Keystore::at(&self.directory);
        let there = ["public", "private", "enclaves"].map(|name| self.directory.join(name));
        if let Some(path) = there.iter().find(|path| path.exists()) {
            return Err(Error::Usage(format!(
                "{} exists; select another directory, since a keystore is never overwritten",
                path.display()
            )));
        }
        let algorithm = if self.rsa { KeyAlgorithm::Rsa2048 } else { KeyAlgorithm::EcP256 };
        let validity = validity(self.days);
        let make = |role: &str| Issuer::create(&format!("{} {role} CA", self.ca_name), algorithm, validity);
        let identity = make("Identity").map_err(|error| Error::Usage(error.to_string()))?;
        let permissions = make("Permissions").map_err(|error| Error::Usage(error.to_string()))?;
        let domains = DomainSet(self.domain.clone());
        let governance = governance_xml(&self.protect.governance(domains.clone()));
        let signed = signed(&permissions, &governance)?;
        make_directory(&keystore.public(""), Readers::All)?;
        make_directory(&keystore.private(""), Readers::Owner)?;
        make_directory(&keystore.enclaves(), Readers::All)?;
        write_issuer(&identity, &keystore.public(IDENTITY_CA), &keystore.private(IDENTITY_CA_KEY))?;
        write_issuer(&permissions, &keystore.public(PERMISSIONS_CA), &keystore.private(PERMISSIONS_CA_KEY))?;
        write(&keystore.governance_file(GOVERNANCE_XML), governance.as_bytes(), Readers::All)?;
        write(&keystore.governance_file(GOVERNANCE), &signed, Readers::All)?;
        let (path, name) = (self.directory.display(), &self.ca_name);
        outln!("keystore {path}: \"{name} Identity CA\" and \"{name} Permissions CA\"")?;
        outln!("  valid until {}", format_date_time(validity.not_after))?;
        let kind = self.protect.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        outln!("  domains {domains}: {kind}")?;
        outln!("  {path}/private signs identities and permissions: do not copy it to the hosts of participants")
    }
}

fn write_issuer(issuer: &Issuer, certificate: &Path, key: &Path) -> Result<()> {
    write(certificate, &issuer.certificate_pem().map_err(failed)?, Readers::All)?;
    write(key, &issuer.key_pem().map_err(failed)?, Readers::Owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn governance_of_each_kind_round_trips_and_agrees_with_the_help() {
        for (protect, expected) in [
            (Protect::None, ["NONE", "NONE", "NONE", "NONE", "NONE"]),
            (Protect::Sign, ["SIGN", "SIGN", "SIGN", "SIGN", "NONE"]),
            (Protect::Encrypt, ["SIGN", "ENCRYPT", "ENCRYPT", "ENCRYPT", "NONE"]),
        ] {
            let governance = protect.governance(DomainSet(vec![(0, 0), (3, 7)]));
            assert_eq!(Governance::parse(&governance_xml(&governance)).as_ref(), Ok(&governance));
            let rule = governance.domain_rule(5).expect("the domain is in the range");
            let topic = rule.topic_rule("any").expect("all topics have a rule");
            let kinds = [
                rule.rtps_protection_kind.name(),
                rule.discovery_protection_kind.name(),
                rule.liveliness_protection_kind.name(),
                topic.metadata_protection_kind.name(),
                topic.data_protection_kind.name(),
            ];
            assert_eq!(kinds, expected, "{protect:?}");
            let name = protect.to_possible_value().expect("the option is not hidden");
            let row = EXAMPLES.lines().find(|line| line.starts_with(&format!("  {} ", name.get_name())));
            let row: Vec<_> = row.expect("the help contains the table").split_whitespace().skip(1).take(5).collect();
            assert_eq!(row, expected, "{protect:?}");
        }
    }
}
