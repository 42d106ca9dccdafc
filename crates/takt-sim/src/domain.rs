//! A domain under DDS Security: its authorities, its documents, and the plugins of its members.
//!
//! The plugins are those that ship ([`takt_security::Plugin`]). Each process has an identity of its own for all its lives.

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
use crate::clock::Nanos;
use crate::insider::{COMMON_TOPIC, Insider};
use crate::process::topic_name;

/// Certificates and grants are valid for so many seconds before and after the world begins.
const VALID_SECONDS: i64 = 86_400;

/// The protection kinds of a domain, and its members.
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
    /// Blocks of 16 octets that a session key protects.
    pub blocks_per_session: u64,
    /// By process.
    pub members: Vec<MemberPlan>,
}

impl DomainPlan {
    /// Whether all messages are signed or encrypted, but for those of discovery and handshakes.
    #[must_use]
    pub fn signs_messages(&self) -> bool {
        self.messages != ProtectionKind::None
    }

    /// Whether somebody begins handshakes that cannot end.
    #[must_use]
    pub fn has_stranger(&self) -> bool {
        self.members.iter().any(|member| matches!(member.kind, MemberKind::Stranger | MemberKind::Open))
    }
}

/// A process in a domain.
#[derive(Clone, Copy, Debug)]
pub struct MemberPlan {
    /// Whether it keeps to the rules.
    pub kind: MemberKind,
    /// What the permissions authority has granted.
    pub rights: Rights,
    /// The grant has a deny rule and allows the rest. Else it has an allow rule and denies the rest.
    pub has_deny_rule: bool,
    /// Of its private key.
    pub algorithm: KeyAlgorithm,
    /// When it gets another certificate of the same rights, if it does.
    pub renews_at: Option<Nanos>,
}

/// Whether a process keeps to the rules of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// It does.
    Honest,
    /// It has an identity, and creates endpoints that its permissions do not allow.
    Insider,
    /// Its identity is of another authority.
    Stranger,
    /// It has no security.
    Open,
}

/// How a process takes part.
pub struct Admission {
    /// The GUID prefix of its participant.
    pub prefix: GuidPrefix,
    /// Its plugins; `None` if it has none.
    pub security: Option<Box<dyn Security>>,
    /// Gives them other documents.
    pub renewer: Option<Renewer>,
    /// What others may take from it and give to it.
    pub rights: Rights,
    /// It refuses itself what its permissions do not allow.
    pub is_honest: bool,
}

/// A domain with its authorities.
pub struct Domain {
    plan: DomainPlan,
    /// By process.
    settings: Vec<Settings>,
    /// By process too: what takes their place.
    renewed: Vec<Option<Settings>>,
}

impl Domain {
    /// Makes authorities, identities and documents that are valid now. `topics` is how many there are.
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
        let settings = |(process, member): (usize, &MemberPlan)| {
            let issuer = if member.kind == MemberKind::Stranger { &other } else { &identity_authority };
            let name = subject(process);
            let (identity_certificate, private_key) =
                issuer.issue(&name, member.algorithm, validity).expect("an identity");
            let permissions = Permissions { grants: vec![grant(&name, member, topics, validity)] };
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
        let renewed = |(process, member): (usize, &MemberPlan)| member.renews_at.map(|_| settings((process, member)));
        Self {
            settings: members.clone().map(&settings).collect(),
            renewed: members.map(renewed).collect(),
            plan: plan.clone(),
        }
    }

    /// What a process goes on with, and begins with in its next lives; `None` if it has no security.
    pub fn renew(&mut self, process: usize) -> Option<&Settings> {
        let renewed = self.renewed[process].take().filter(|_| self.plan.members[process].kind != MemberKind::Open)?;
        self.settings[process] = renewed;
        Some(&self.settings[process])
    }

    /// How a process takes part, which would have the prefix `candidate` without security.
    #[must_use]
    pub fn admit(&self, process: usize, candidate: GuidPrefix, now: Timestamp) -> Admission {
        let (member, settings) = (self.plan.members[process], &self.settings[process]);
        if member.kind == MemberKind::Open {
            let rights = Rights::NONE;
            return Admission { prefix: candidate, security: None, renewer: None, rights, is_honest: false };
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
        let rights = if member.kind == MemberKind::Stranger { Rights::NONE } else { member.rights };
        Admission { prefix, security: Some(security), renewer, rights, is_honest: member.kind == MemberKind::Honest }
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
