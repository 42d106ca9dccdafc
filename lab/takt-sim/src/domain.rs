//! Simulated DDS Security domain: certificate authorities, signed documents, and security plugins
//! of its members.
//!
//! The plugins are the shipped ones ([`takt_security::Plugin`]). A process keeps its identity over
//! all its incarnations.

use takt_core::security::Security;
use takt_security::documents::{
    BasicProtectionKind, Criteria, DomainRule, DomainSet, Effect, Governance, Grant, Permissions, ProtectionKind, Rule,
    TopicRule,
};
use takt_security::identity::{Certificate, KeyAlgorithm, SubjectName, secure_guid_prefix};
use takt_security::plugin::Renewer;
use takt_security::tools::{Issuer, Validity, governance_xml, permissions_xml, sign_document};
use takt_security::{Plugin, Settings};
use takt_wire::{GuidPrefix, Timestamp};

use crate::check::Rights;
use crate::clock::{Nanos, SECOND};
use crate::insider::{COMMON_TOPIC, Insider};
use crate::process::topic_name;

/// Validity of certificates and grants before and after the start of the simulation, in seconds.
const VALID_SECONDS: i64 = 86_400;

/// Protection kinds and members of a domain.
#[derive(Clone, Debug)]
pub struct DomainPlan {
    /// `rtps_protection_kind`.
    pub messages: ProtectionKind,
    /// `discovery_protection_kind` and `liveliness_protection_kind`.
    pub discovery: ProtectionKind,
    /// `metadata_protection_kind` of all topics.
    pub submessages: ProtectionKind,
    /// `data_protection_kind` of all topics.
    pub payloads: BasicProtectionKind,
    /// Maximum number of 16-octet blocks that a session key protects.
    pub blocks_per_session: u64,
    /// Members, indexed by process.
    pub members: Vec<MemberPlan>,
}

impl DomainPlan {
    /// Reports whether all messages except those of discovery and handshakes are signed or
    /// encrypted.
    #[must_use]
    pub fn signs_messages(&self) -> bool {
        self.messages != ProtectionKind::None
    }

    /// Reports whether matches end although no fault occurs: documents expire, or renewed
    /// permissions do not allow them.
    #[must_use]
    pub fn ends_matches(&self) -> bool {
        let ends = |member: &MemberPlan| member.expiry.is_some() || member.renewed_rights != member.rights;
        self.members.iter().any(ends)
    }

    /// Reports whether a member begins handshakes that cannot complete, or others do with it: it is
    /// outside of the domain, or its documents expire.
    #[must_use]
    pub fn has_outsider(&self) -> bool {
        let is_outside = |kind| matches!(kind, MemberKind::ForeignAuthority | MemberKind::Open);
        self.members.iter().any(|member| is_outside(member.kind) || member.expiry.is_some())
    }
}

/// Process in a domain.
#[derive(Clone, Copy, Debug)]
pub struct MemberPlan {
    /// Compliance of the process with the rules of the domain.
    pub kind: MemberKind,
    /// Rights that the permissions authority grants.
    pub rights: Rights,
    /// Form of the grant: `true` for a deny rule with default `ALLOW`, `false` for an allow rule
    /// with default `DENY`.
    pub has_deny_rule: bool,
    /// Algorithm of the private key.
    pub algorithm: KeyAlgorithm,
    /// Document that expires during the simulation, if any.
    pub expiry: Option<ExpiryPlan>,
    /// Time at which the process gets another certificate and other permissions, if any. Both are
    /// valid until the end of the simulation.
    pub renews_at: Option<Nanos>,
    /// Rights of the other permissions: the same, or a part of them.
    pub renewed_rights: Rights,
}

/// Expiry of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryPlan {
    /// Whether the permissions expire; otherwise the certificate.
    pub is_of_permissions: bool,
    /// First second after the start of the simulation at which the document is not valid.
    pub second: u32,
}

impl ExpiryPlan {
    /// Returns the time at which the document is no longer valid. Wall clocks start at a whole
    /// second.
    #[must_use]
    pub fn at(self) -> Nanos {
        Nanos::from(self.second) * SECOND
    }
}

/// Compliance of a process with the rules of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// The process has a valid identity and obeys its permissions.
    Honest,
    /// The process has a valid identity, and creates endpoints that its permissions do not allow.
    Insider,
    /// The identity of the process is issued by another authority.
    ForeignAuthority,
    /// The process has no security plugins.
    Open,
}

impl MemberKind {
    /// Reports whether the process has an identity of the domain.
    #[must_use]
    pub fn has_identity(self) -> bool {
        matches!(self, Self::Honest | Self::Insider)
    }
}

/// Security configuration with which a process starts.
pub struct SecurityConfig {
    /// GUID prefix of the participant.
    pub prefix: GuidPrefix,
    /// Security plugins; `None` if the process has none.
    pub security: Option<Box<dyn Security>>,
    /// Handle that replaces the documents of the plugins.
    pub renewer: Option<Renewer>,
    /// Whether the process refuses endpoints that its own permissions do not allow.
    pub is_honest: bool,
}

/// Domain with its authorities.
pub struct Domain {
    plan: DomainPlan,
    /// Current settings, indexed by process.
    settings: Vec<Settings>,
    /// Settings that replace the current ones at a renewal, indexed by process.
    renewed: Vec<Option<Settings>>,
    /// Expiry of the current settings, indexed by process.
    expiries: Vec<Option<ExpiryPlan>>,
}

impl Domain {
    /// Creates authorities, identities and documents that are valid at `now`. `topics` is the
    /// number of topics.
    #[must_use]
    pub fn new(plan: &DomainPlan, topics: usize, now: Timestamp) -> Self {
        let now = i64::from(now.seconds);
        let validity = Validity { not_before: now - VALID_SECONDS, not_after: now + VALID_SECONDS };
        let authority = |name| Issuer::create(name, KeyAlgorithm::EcP256, validity).expect("an authority");
        let [identity_authority, permissions_authority, other] =
            ["identity authority", "permissions authority", "another authority"].map(authority);
        let pem = |issuer: &Issuer| issuer.certificate_pem().expect("a certificate in PEM");
        let signed = |xml: &str| sign_document(&permissions_authority, xml).expect("a signature");
        let governance = signed(&governance_xml(&Governance { domain_rules: vec![domain_rule(plan)] }));
        let settings = |process: usize, member: &MemberPlan, rights: Rights, expiry: Option<ExpiryPlan>| {
            let until = |is_of_permissions: bool, last: i64| match expiry {
                Some(expiry) if expiry.is_of_permissions == is_of_permissions => {
                    Validity { not_after: now + i64::from(expiry.second) - last, ..validity }
                }
                _ => validity,
            };
            let issuer = if member.kind == MemberKind::ForeignAuthority { &other } else { &identity_authority };
            let name = subject(process);
            let (identity_certificate, private_key) =
                issuer.issue(&name, member.algorithm, until(false, 0)).expect("an identity");
            // A grant is valid in its last second.
            let member = MemberPlan { rights, ..*member };
            let permissions = Permissions { grants: vec![grant(&name, &member, topics, until(true, 1))] };
            Settings {
                identity_certificate,
                private_key,
                identity_authority: pem(issuer),
                permissions_authority: pem(&permissions_authority),
                governance: governance.clone(),
                permissions: signed(&permissions_xml(&permissions)),
                blocks_per_session: plan.blocks_per_session,
                ..Settings::default()
            }
        };
        let members = plan.members.iter().enumerate();
        let first = |(process, member): (usize, &MemberPlan)| settings(process, member, member.rights, member.expiry);
        let renewed = |(process, member): (usize, &MemberPlan)| {
            member.renews_at.map(|_| settings(process, member, member.renewed_rights, None))
        };
        Self {
            settings: members.clone().map(first).collect(),
            renewed: members.map(renewed).collect(),
            expiries: plan.members.iter().map(|member| member.expiry).collect(),
            plan: plan.clone(),
        }
    }

    /// Replaces the settings of a process for its current and later incarnations, and returns them.
    /// Returns `None` if the process has no security, or no settings for a renewal.
    pub fn renew(&mut self, process: usize) -> Option<&Settings> {
        let renewed = self.renewed[process].take().filter(|_| self.plan.members[process].kind != MemberKind::Open)?;
        self.settings[process] = renewed;
        self.expiries[process] = None;
        let member = &mut self.plan.members[process];
        member.rights = member.renewed_rights;
        Some(&self.settings[process])
    }

    /// Returns the time at which the current documents of a process expire, if they do.
    #[must_use]
    pub fn expires_at(&self, process: usize) -> Option<Nanos> {
        self.expiries[process].map(ExpiryPlan::at)
    }

    /// Returns the rights that the current permissions give to a process.
    #[must_use]
    pub fn rights(&self, process: usize) -> Rights {
        let member = &self.plan.members[process];
        let is_outside = matches!(member.kind, MemberKind::ForeignAuthority | MemberKind::Open);
        if is_outside { Rights::NONE } else { member.rights }
    }

    /// Returns the security configuration of a process. Without security, its GUID prefix is
    /// `candidate`.
    #[must_use]
    pub fn security_config(&self, process: usize, candidate: GuidPrefix, now: Timestamp) -> SecurityConfig {
        let (member, settings) = (self.plan.members[process], &self.settings[process]);
        if member.kind == MemberKind::Open {
            return SecurityConfig { prefix: candidate, security: None, renewer: None, is_honest: false };
        }
        let certificate = Certificate::from_pem(&settings.identity_certificate).expect("it was issued so");
        let prefix = secure_guid_prefix(&certificate, candidate).expect("the subject has a name");
        let settings = Settings { prefix, ..settings.clone() };
        let plugin = Plugin::new(settings, i64::from(now.seconds)).expect("its documents are valid");
        let renewer = Some(plugin.renewer());
        let security: Box<dyn Security> = match member.kind {
            MemberKind::Insider => Box::new(Insider(plugin)),
            _ => Box::new(plugin),
        };
        SecurityConfig { prefix, security: Some(security), renewer, is_honest: member.kind == MemberKind::Honest }
    }
}

fn subject(process: usize) -> String {
    format!("process{process}")
}

fn domain_rule(plan: &DomainPlan) -> DomainRule {
    DomainRule {
        domains: DomainSet(vec![(0, 0)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: plan.discovery,
        liveliness_protection_kind: plan.discovery,
        rtps_protection_kind: plan.messages,
        topic_rules: vec![TopicRule {
            topic_expression: "*".to_owned(),
            enable_discovery_protection: true,
            enable_liveliness_protection: true,
            enable_read_access_control: true,
            enable_write_access_control: true,
            metadata_protection_kind: plan.submessages,
            data_protection_kind: plan.payloads,
        }],
    }
}

fn grant(name: &str, member: &MemberPlan, topics: usize, validity: Validity) -> Grant {
    let MemberPlan { rights, has_deny_rule, .. } = *member;
    let criteria = |may: fn(Rights, usize) -> bool| {
        let of_rule = (0..topics).filter(|topic| may(rights, *topic) != has_deny_rule).map(topic_name);
        let common = (!has_deny_rule).then(|| COMMON_TOPIC.to_owned());
        let topics: Vec<_> = of_rule.chain(common).collect();
        let criteria = Criteria { topics, partitions: Vec::new(), data_tags: Vec::new() };
        if criteria.topics.is_empty() { Vec::new() } else { vec![criteria] }
    };
    let (effect, default) = if has_deny_rule { (Effect::Deny, Effect::Allow) } else { (Effect::Allow, Effect::Deny) };
    let rule = Rule {
        line: 0,
        effect,
        domains: DomainSet(vec![(0, 0)]),
        publish: criteria(Rights::publishes),
        subscribe: criteria(Rights::subscribes),
        relay: Vec::new(),
    };
    let is_empty = rule.publish.is_empty() && rule.subscribe.is_empty();
    Grant {
        name: name.to_owned(),
        subject: SubjectName::parse(&format!("CN={name}")).expect("a name"),
        not_before: validity.not_before,
        not_after: validity.not_after,
        rules: if is_empty { Vec::new() } else { vec![rule] },
        default,
    }
}
