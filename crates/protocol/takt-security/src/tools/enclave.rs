//! Files of a secured participant, named as in an SROS2 enclave.

use crate::documents::{Criteria, DomainSet, Effect, Governance, Grant, Permissions, Rule};
use crate::error::Result;
use crate::identity::{Certificate, KeyAlgorithm};

use super::{Issuer, Validity, governance_xml, permissions_xml, sign_document};

/// Certificate of the identity CA.
pub const IDENTITY_CA: &str = "identity_ca.cert.pem";
/// Certificate of the permissions CA.
pub const PERMISSIONS_CA: &str = "permissions_ca.cert.pem";
/// Certificate of the participant.
pub const CERTIFICATE: &str = "cert.pem";
/// Private key of the participant.
pub const KEY: &str = "key.pem";
/// PKCS#11 URI of the private key, used instead of the key file.
pub const KEY_URI: &str = "key.p11";
/// Signed governance document.
pub const GOVERNANCE: &str = "governance.p7s";
/// Signed permissions document.
pub const PERMISSIONS: &str = "permissions.p7s";
/// Revocation list of the identity CA; SROS2 has no such file. It is missing if nothing is revoked.
pub const REVOCATION_LIST: &str = "crl.pem";

/// Two authorities and a governance, for participants that may do everything in its domains.
pub struct Realm<'a> {
    /// Authority that issues identities.
    pub identity: &'a Issuer,
    /// Authority that signs both documents.
    pub permissions: &'a Issuer,
    /// Governance of the domains.
    pub governance: &'a Governance,
    /// Validity of certificates and grants.
    pub validity: Validity,
}

impl Realm<'_> {
    /// Issues an identity. Returns file names with file contents.
    ///
    /// # Errors
    /// The name is no valid certificate name, or OpenSSL fails.
    pub fn enclave(&self, name: &str, algorithm: KeyAlgorithm) -> Result<[(&'static str, Vec<u8>); 6]> {
        let Validity { not_before, not_after } = self.validity;
        let (certificate, key) = self.identity.issue(name, algorithm, self.validity)?;
        let subject = Certificate::from_pem(&certificate)?.subject().clone();
        let domains = self.governance.domain_rules.iter().flat_map(|rule| rule.domains.0.iter().copied()).collect();
        let rules = vec![everything(DomainSet(domains))];
        let grant = Grant { name: name.to_owned(), subject, not_before, not_after, rules, default: Effect::Deny };
        let permissions = permissions_xml(&Permissions { grants: vec![grant] });
        Ok([
            (IDENTITY_CA, self.identity.certificate_pem()?),
            (PERMISSIONS_CA, self.permissions.certificate_pem()?),
            (CERTIFICATE, certificate),
            (KEY, key),
            (GOVERNANCE, sign_document(self.permissions, &governance_xml(self.governance))?),
            (PERMISSIONS, sign_document(self.permissions, &permissions)?),
        ])
    }
}

/// Returns a rule that allows everything.
///
/// INTEROP(Fast DDS 2.9): a grant without a rule for the domain does not let a participant join,
/// regardless of its default.
fn everything(domains: DomainSet) -> Rule {
    let all = || vec![Criteria { topics: vec!["*".to_owned()], ..Criteria::default() }];
    Rule { line: 0, effect: Effect::Allow, domains, publish: all(), subscribe: all(), relay: Vec::new() }
}
