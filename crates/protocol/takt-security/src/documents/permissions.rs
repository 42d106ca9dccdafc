//! Permissions document: grants of subjects (DDS-SEC 1.1 §9.4.1.3).

use super::DomainSet;
use super::time::parse_date_time;
use super::xml::{Element, Fields, read};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{SubjectName, UnixSeconds};
use crate::token::Token;

/// Grants, of which at most one is valid for a subject at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Grants in the order of the document.
    pub grants: Vec<Grant>,
}

/// Permissions of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Name of the grant, for logs.
    pub name: String,
    /// Subject name of the identity certificate.
    pub subject: SubjectName,
    /// First second of validity.
    pub not_before: UnixSeconds,
    /// Last second of validity.
    pub not_after: UnixSeconds,
    /// Rules. The first rule that applies decides.
    pub rules: Vec<Rule>,
    /// Effect if no rule applies.
    pub default: Effect,
}

/// Effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The action is permitted.
    Allow,
    /// The action is refused.
    Deny,
}

/// An `<allow_rule>` or a `<deny_rule>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Line in the document, for error reasons.
    pub line: u32,
    /// Effect of the rule.
    pub effect: Effect,
    /// Domains to which the rule applies.
    pub domains: DomainSet,
    /// Criteria for writers.
    pub publish: Vec<Criteria>,
    /// Criteria for readers.
    pub subscribe: Vec<Criteria>,
    /// Criteria for relays.
    pub relay: Vec<Criteria>,
}

/// Topics, partitions and data tags, all of which must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// Patterns of topic names, one of which must match.
    pub topics: Vec<String>,
    /// Patterns of partitions; empty if the document has no `<partitions>`.
    pub partitions: Vec<String>,
    /// Names and values of data tags; empty if the document has no `<data_tags>`.
    pub data_tags: Vec<(String, String)>,
}

impl Permissions {
    /// Parses the XML text.
    ///
    /// # Errors
    /// The text is no permissions document; the reason names line and element.
    pub fn parse(text: &str) -> Result<Self> {
        read(text, |root| {
            let permissions = match root.name() {
                "dds" => Fields::of(root, &["permissions"])?.required("permissions")?,
                "permissions" => root,
                _ => return Err(root.error("is not a permissions document; expected <dds>")),
            };
            Ok(Self { grants: permissions.children(&["grant"])?.into_iter().map(grant).collect::<Result<_>>()? })
        })
        .map_err(|error| error.context("permissions"))
    }

    /// Returns the grant of a subject that is valid at `now`.
    ///
    /// # Errors
    /// No grant names the subject, or none is valid now.
    pub fn grant(&self, subject: &SubjectName, now: UnixSeconds) -> Result<&Grant> {
        let own = || self.grants.iter().filter(|grant| grant.subject == *subject);
        let Some(first) = own().next() else {
            let reason = format!("permissions have no grant for \"{subject}\"");
            return Err(SecurityError::new(ErrorKind::Document, reason));
        };
        own().find(|grant| grant.validity(now).is_ok()).ok_or_else(|| match first.validity(now) {
            Err(error) => error,
            Ok(()) => unreachable!("the first grant would have been found"),
        })
    }
}

impl Grant {
    /// Checks that the grant is valid at `now`.
    ///
    /// # Errors
    /// The grant is not yet or no longer valid; the reason states the time.
    pub fn validity(&self, now: UnixSeconds) -> Result<()> {
        let refused = |word: &str, time| {
            let time = super::format_date_time(time);
            let reason = format!("grant \"{}\" of \"{}\" {word} {time}", self.name, self.subject);
            Err(SecurityError::new(ErrorKind::Document, reason))
        };
        match now {
            _ if now < self.not_before => refused("is not valid before", self.not_before),
            _ if now > self.not_after => refused("expired at", self.not_after),
            _ => Ok(()),
        }
    }
}

/// Returns the permissions token that SPDP announces (PID 0x1002). It has no properties.
///
/// INTEROP(Fast DDS 2.9): compares `dds.perm_ca.sn` octet by octet with its own notation
/// (`/CN=a/O=b`) and refuses the participant if they differ. Without the property it accepts the
/// participant.
/// INTEROP(CycloneDDS 0.10): does not send the property either.
pub fn permissions_token() -> Token<'static> {
    Token::new("DDS:Access:Permissions:1.0")
}

fn grant(element: Element<'_>) -> Result<Grant> {
    let known = ["subject_name", "validity", "allow_rule", "deny_rule", "default"];
    let (mut subject, mut validity, mut default, mut rules) = (None, None, None, Vec::new());
    for child in element.children(&known)? {
        let slot = match child.name() {
            "allow_rule" => {
                rules.push(rule(child, Effect::Allow)?);
                continue;
            }
            "deny_rule" => {
                rules.push(rule(child, Effect::Deny)?);
                continue;
            }
            "subject_name" => &mut subject,
            "validity" => &mut validity,
            _ => &mut default,
        };
        if slot.replace(child).is_some() {
            return Err(child.error("occurs twice"));
        }
    }
    let required = |found: Option<_>, name: &str| found.ok_or_else(|| element.error(&format!("has no <{name}>")));
    let name = element.attribute("name").ok_or_else(|| element.error("has no attribute name"))?.to_owned();
    let validity = Fields::of(required(validity, "validity")?, &["not_before", "not_after"])?;
    let subject = required(subject, "subject_name")?;
    Ok(Grant {
        name,
        subject: SubjectName::parse(subject.text()?).map_err(|error| subject.error(error.reason()))?,
        not_before: date_time(validity.required("not_before")?)?,
        not_after: date_time(validity.required("not_after")?)?,
        rules,
        default: effect(required(default, "default")?)?,
    })
}

fn date_time(element: Element<'_>) -> Result<UnixSeconds> {
    let text = element.text()?;
    parse_date_time(text)
        .ok_or_else(|| element.error(&format!("is \"{text}\", expected a time such as 2026-01-31T12:00:00Z")))
}

fn effect(element: Element<'_>) -> Result<Effect> {
    match element.text()? {
        "ALLOW" => Ok(Effect::Allow),
        "DENY" => Ok(Effect::Deny),
        text => Err(element.error(&format!("is \"{text}\", expected ALLOW or DENY"))),
    }
}

fn rule(element: Element<'_>, effect: Effect) -> Result<Rule> {
    let (mut domains, mut publish, mut subscribe, mut relay) = (None, Vec::new(), Vec::new(), Vec::new());
    for child in element.children(&["domains", "publish", "subscribe", "relay"])? {
        match child.name() {
            "domains" if domains.is_some() => return Err(child.error("occurs twice")),
            "domains" => domains = Some(DomainSet::read(child)?),
            "publish" => publish.push(criteria(child)?),
            "subscribe" => subscribe.push(criteria(child)?),
            _ => relay.push(criteria(child)?),
        }
    }
    let domains = domains.ok_or_else(|| element.error("has no <domains>"))?;
    Ok(Rule { line: element.line(), effect, domains, publish, subscribe, relay })
}

fn criteria(element: Element<'_>) -> Result<Criteria> {
    let mut criteria = Criteria::default();
    for child in element.children(&["topics", "partitions", "data_tags"])? {
        match child.name() {
            "topics" => expressions(child, "topic", &mut criteria.topics)?,
            "partitions" => expressions(child, "partition", &mut criteria.partitions)?,
            _ => {
                for tag in child.children(&["tag"])? {
                    let fields = Fields::of(tag, &["name", "value"])?;
                    let (name, value) = (fields.required("name")?, fields.required("value")?);
                    criteria.data_tags.push((name.expression()?, value.expression()?));
                }
            }
        }
    }
    if criteria.topics.is_empty() {
        return Err(element.error("has no <topic>"));
    }
    Ok(criteria)
}

fn expressions(element: Element<'_>, name: &str, into: &mut Vec<String>) -> Result<()> {
    for child in element.children(&[name])? {
        into.push(child.expression()?);
    }
    Ok(())
}
