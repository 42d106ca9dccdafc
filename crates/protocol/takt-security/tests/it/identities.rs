//! Identities, grants and governances for tests, and core participants that use them.

use std::sync::OnceLock;

use takt_core::Participant;
use takt_security::documents::{
    BasicProtectionKind, DomainRule, DomainSet, Effect, Governance, Grant, Permissions, ProtectionKind, TopicRule,
};
use takt_security::identity::{Certificate, KeyAlgorithm, SubjectName, secure_guid_prefix};
use takt_security::plugin::{Plugin, Settings};
use takt_security::tools::{Issuer, Validity, governance_xml, permissions_xml, sign_document};
use takt_wire::GuidPrefix;

use crate::network::{Network, START, config};

const VALID: Validity = Validity { not_before: START - 1_000, not_after: START + 1_000_000 };

/// Returns the identity CA, the permissions CA, and an unrelated CA.
pub fn issuers() -> &'static [Issuer; 3] {
    static ISSUERS: OnceLock<[Issuer; 3]> = OnceLock::new();
    ISSUERS.get_or_init(|| {
        ["Identity CA", "Permissions CA", "Other CA"]
            .map(|name| Issuer::create(name, KeyAlgorithm::EcP256, VALID).expect("an authority"))
    })
}

pub fn rule(rtps: ProtectionKind, discovery: ProtectionKind, topic: TopicRule) -> DomainRule {
    DomainRule {
        domains: DomainSet(vec![(0, 0)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: discovery,
        liveliness_protection_kind: discovery,
        rtps_protection_kind: rtps,
        topic_rules: vec![topic],
    }
}

pub fn topic(metadata: ProtectionKind, data: BasicProtectionKind, discovery: bool) -> TopicRule {
    TopicRule {
        topic_expression: "*".to_owned(),
        enable_discovery_protection: discovery,
        enable_liveliness_protection: discovery,
        enable_read_access_control: true,
        enable_write_access_control: true,
        metadata_protection_kind: metadata,
        data_protection_kind: data,
    }
}

pub fn grant(name: &str) -> Grant {
    Grant {
        name: name.to_owned(),
        subject: SubjectName::parse(&format!("CN={name}")).expect("a name"),
        not_before: VALID.not_before,
        not_after: VALID.not_after,
        rules: Vec::new(),
        default: Effect::Allow,
    }
}

pub struct Identity<'a> {
    pub name: &'a str,
    pub issuer: &'a Issuer,
    pub algorithm: KeyAlgorithm,
    pub validity: Validity,
    pub grant: Grant,
}

impl<'a> Identity<'a> {
    pub fn new(name: &'a str) -> Self {
        Self { name, issuer: &issuers()[0], algorithm: KeyAlgorithm::EcP256, validity: VALID, grant: grant(name) }
    }

    pub fn plugin(self, rule: &DomainRule) -> (GuidPrefix, Plugin) {
        let (certificate, key) = self.issuer.issue(self.name, self.algorithm, self.validity).expect("an identity");
        let parsed = Certificate::from_pem(&certificate).expect("a certificate");
        let governance = Governance { domain_rules: vec![rule.clone()] };
        let permissions = Permissions { grants: vec![self.grant] };
        let settings = Settings {
            prefix: secure_guid_prefix(&parsed, GuidPrefix([7; 12])).expect("a prefix"),
            identity_certificate: certificate,
            private_key: key,
            identity_authority: self.issuer.certificate_pem().expect("PEM"),
            permissions_authority: issuers()[1].certificate_pem().expect("PEM"),
            governance: sign_document(&issuers()[1], &governance_xml(&governance)).expect("a signature"),
            permissions: sign_document(&issuers()[1], &permissions_xml(&permissions)).expect("a signature"),
            ..Settings::default()
        };
        (settings.prefix, Plugin::new(settings, START).expect("it may exist"))
    }

    pub fn join(self, network: &mut Network, rule: &DomainRule) -> usize {
        let node = network.nodes.len();
        let (prefix, plugin) = self.plugin(rule);
        let config = config(node, prefix);
        let participant = Participant::with_security(config, Box::new(plugin), network.now);
        network.join(participant.expect("the configuration is valid"))
    }
}
