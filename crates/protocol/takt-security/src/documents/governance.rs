//! Governance document: protection of a domain and of its topics (DDS-SEC 1.1 §9.4.1.2).

use takt_wire::partition::fnmatch;

use super::DomainSet;
use super::xml::{Element, Fields, read};
use crate::error::{ErrorKind, Result, SecurityError};

/// Protection of messages and submessages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtectionKind {
    /// Plain and unauthenticated.
    #[default]
    None,
    /// Authenticated.
    Sign,
    /// Authenticated and encrypted.
    Encrypt,
    /// Authenticated, with receiver-specific codes.
    SignWithOriginAuthentication,
    /// Authenticated and encrypted, with receiver-specific codes.
    EncryptWithOriginAuthentication,
}

impl ProtectionKind {
    /// All kinds with their names in documents.
    pub const NAMES: [(Self, &'static str); 5] = [
        (Self::None, "NONE"),
        (Self::Sign, "SIGN"),
        (Self::Encrypt, "ENCRYPT"),
        (Self::SignWithOriginAuthentication, "SIGN_WITH_ORIGIN_AUTHENTICATION"),
        (Self::EncryptWithOriginAuthentication, "ENCRYPT_WITH_ORIGIN_AUTHENTICATION"),
    ];

    /// Reports whether the kind protects at all.
    pub const fn is_protected(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Reports whether the content is encrypted.
    pub const fn is_encrypted(self) -> bool {
        matches!(self, Self::Encrypt | Self::EncryptWithOriginAuthentication)
    }

    /// Reports whether messages carry receiver-specific codes.
    pub const fn has_origin_authentication(self) -> bool {
        matches!(self, Self::SignWithOriginAuthentication | Self::EncryptWithOriginAuthentication)
    }

    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("NONE", |(_, name)| name)
    }

    fn read(element: Element<'_>) -> Result<Self> {
        let text = element.text()?;
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found
            .map(|(kind, _)| *kind)
            .ok_or_else(|| element.error(&format!("is \"{text}\", which is not a protection kind")))
    }
}

/// Protection of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BasicProtectionKind {
    /// Plain and unauthenticated.
    #[default]
    None,
    /// Authenticated.
    Sign,
    /// Authenticated and encrypted, instance keys included.
    Encrypt,
}

impl BasicProtectionKind {
    /// Returns the submessage protection kind of the same strength.
    pub const fn widened(self) -> ProtectionKind {
        match self {
            Self::None => ProtectionKind::None,
            Self::Sign => ProtectionKind::Sign,
            Self::Encrypt => ProtectionKind::Encrypt,
        }
    }

    /// Returns the name in documents.
    pub fn name(self) -> &'static str {
        self.widened().name()
    }

    fn read(element: Element<'_>) -> Result<Self> {
        match ProtectionKind::read(element)? {
            ProtectionKind::None => Ok(Self::None),
            ProtectionKind::Sign => Ok(Self::Sign),
            ProtectionKind::Encrypt => Ok(Self::Encrypt),
            other => Err(element.error(&format!("is {}, which is not allowed for payloads", other.name()))),
        }
    }
}

/// Governance rules of all domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Governance {
    /// Domain rules. The first rule that contains a domain applies to it.
    pub domain_rules: Vec<DomainRule>,
}

/// Governance rule of a set of domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRule {
    /// Domains to which the rule applies.
    pub domains: DomainSet,
    /// Whether participants that cannot authenticate may match endpoints of unprotected topics.
    pub allow_unauthenticated_participants: bool,
    /// Whether a participant needs a grant to join.
    pub enable_join_access_control: bool,
    /// Protection of discovery, for topics that enable it.
    pub discovery_protection_kind: ProtectionKind,
    /// Protection of liveliness assertions, for topics that enable it.
    pub liveliness_protection_kind: ProtectionKind,
    /// Protection of whole RTPS messages.
    pub rtps_protection_kind: ProtectionKind,
    /// Topic rules. The first rule whose expression matches a topic applies to it.
    pub topic_rules: Vec<TopicRule>,
}

/// Governance rule of a set of topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRule {
    /// Pattern of topic names.
    pub topic_expression: String,
    /// Whether discovery of these topics has the protection of the domain rule.
    pub enable_discovery_protection: bool,
    /// Whether liveliness of these topics has the protection of the domain rule.
    pub enable_liveliness_protection: bool,
    /// Whether a reader needs a grant.
    pub enable_read_access_control: bool,
    /// Whether a writer needs a grant.
    pub enable_write_access_control: bool,
    /// Protection of submessages.
    pub metadata_protection_kind: ProtectionKind,
    /// Protection of payloads.
    pub data_protection_kind: BasicProtectionKind,
}

impl Governance {
    /// Parses the XML text.
    ///
    /// # Errors
    /// The text is no governance document; the reason names line and element.
    pub fn parse(text: &str) -> Result<Self> {
        read(text, |root| {
            // Some writers of the 2016 schema omit the element <dds>.
            let rules = match root.name() {
                "dds" => Fields::of(root, &["domain_access_rules"])?.required("domain_access_rules")?,
                "domain_access_rules" => root,
                _ => return Err(root.error("is not a governance document; expected <dds>")),
            };
            let domain_rules = rules.children(&["domain_rule"])?.into_iter().map(domain_rule).collect::<Result<_>>()?;
            Ok(Self { domain_rules })
        })
        .map_err(|error| error.context("governance"))
    }

    /// Returns the rule of a domain.
    ///
    /// # Errors
    /// No rule contains the domain: a participant must not be created in it.
    pub fn domain_rule(&self, domain_id: u32) -> Result<&DomainRule> {
        let found = self.domain_rules.iter().find(|rule| rule.domains.contains(domain_id));
        found.ok_or_else(|| {
            SecurityError::new(ErrorKind::Document, format!("governance has no domain_rule for domain {domain_id}"))
        })
    }
}

impl DomainRule {
    /// Returns the rule of a topic.
    ///
    /// # Errors
    /// No rule matches: endpoints of the topic must not be created.
    pub fn topic_rule(&self, topic_name: &str) -> Result<&TopicRule> {
        let found = self.topic_rules.iter().find(|rule| fnmatch(&rule.topic_expression, topic_name));
        found.ok_or_else(|| {
            let reason = format!("governance has no topic_rule for topic \"{topic_name}\" in domains {}", self.domains);
            SecurityError::new(ErrorKind::Document, reason)
        })
    }
}

fn domain_rule(element: Element<'_>) -> Result<DomainRule> {
    let fields = Fields::of(
        element,
        &[
            "domains",
            "allow_unauthenticated_participants",
            "enable_join_access_control",
            "discovery_protection_kind",
            "liveliness_protection_kind",
            "rtps_protection_kind",
            "topic_access_rules",
        ],
    )?;
    let topics = fields.required("topic_access_rules")?.children(&["topic_rule"])?;
    Ok(DomainRule {
        domains: DomainSet::read(fields.required("domains")?)?,
        allow_unauthenticated_participants: fields.required("allow_unauthenticated_participants")?.boolean()?,
        enable_join_access_control: fields.required("enable_join_access_control")?.boolean()?,
        discovery_protection_kind: ProtectionKind::read(fields.required("discovery_protection_kind")?)?,
        liveliness_protection_kind: ProtectionKind::read(fields.required("liveliness_protection_kind")?)?,
        rtps_protection_kind: ProtectionKind::read(fields.required("rtps_protection_kind")?)?,
        topic_rules: topics.into_iter().map(topic_rule).collect::<Result<_>>()?,
    })
}

fn topic_rule(element: Element<'_>) -> Result<TopicRule> {
    let fields = Fields::of(
        element,
        &[
            "topic_expression",
            "enable_discovery_protection",
            "enable_liveliness_protection",
            "enable_read_access_control",
            "enable_write_access_control",
            "metadata_protection_kind",
            "data_protection_kind",
        ],
    )?;
    // The 2016 schema does not have this element.
    let liveliness = fields.optional("enable_liveliness_protection");
    Ok(TopicRule {
        topic_expression: fields.required("topic_expression")?.expression()?,
        enable_discovery_protection: fields.required("enable_discovery_protection")?.boolean()?,
        enable_liveliness_protection: liveliness.map_or(Ok(false), Element::boolean)?,
        enable_read_access_control: fields.required("enable_read_access_control")?.boolean()?,
        enable_write_access_control: fields.required("enable_write_access_control")?.boolean()?,
        metadata_protection_kind: ProtectionKind::read(fields.required("metadata_protection_kind")?)?,
        data_protection_kind: BasicProtectionKind::read(fields.required("data_protection_kind")?)?,
    })
}
