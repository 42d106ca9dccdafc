//! Access control of one participant: the governance rule of its domain, and grants of local and
//! remote subjects.

use super::{Action, Decision, DomainRule, Governance, Permissions, Query, TopicRule, verify};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{Authority, SubjectName, UnixSeconds};

/// Verified governance of a domain. The same authority verifies permissions.
#[derive(Debug)]
pub struct AccessControl {
    authority: Authority,
    domain_id: u32,
    rule: DomainRule,
}

impl AccessControl {
    /// Verifies and parses a governance document.
    ///
    /// # Errors
    /// The signature is not by the authority, the text is no governance document, or it has no rule
    /// for the domain.
    pub fn new(authority: Authority, governance: &[u8], domain_id: u32, now: UnixSeconds) -> Result<Self> {
        let text = verify(governance, &authority, now).map_err(|error| error.context("governance"))?;
        let rule = Governance::parse(&text)?.domain_rule(domain_id)?.clone();
        Ok(Self { authority, domain_id, rule })
    }

    /// Returns the domain id.
    pub const fn domain_id(&self) -> u32 {
        self.domain_id
    }

    /// Returns the rule of the domain.
    pub const fn domain_rule(&self) -> &DomainRule {
        &self.rule
    }

    /// Returns the permissions authority.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Verifies and parses the permissions of a local or remote participant.
    ///
    /// # Errors
    /// The signature is not by the authority, or the text is no permissions document.
    pub fn permissions(&self, document: &[u8], now: UnixSeconds) -> Result<Permissions> {
        let text = verify(document, &self.authority, now).map_err(|error| error.context("permissions"))?;
        Permissions::parse(&text)
    }

    /// Checks that the subject may join the domain.
    ///
    /// # Errors
    /// The subject has no grant that is valid now, or none for this domain.
    pub fn check_participant(&self, permissions: &Permissions, subject: &SubjectName, now: UnixSeconds) -> Result<()> {
        if !self.rule.enable_join_access_control {
            return Ok(());
        }
        let grant = permissions.grant(subject, now)?;
        if !grant.joins(self.domain_id) {
            let reason =
                format!("grant \"{}\" of \"{subject}\" has no allow_rule for domain {}", grant.name, self.domain_id);
            return Err(SecurityError::new(ErrorKind::Document, reason));
        }
        Ok(())
    }

    /// Decides whether the subject may create this endpoint. The domain of the query is that of the
    /// participant.
    ///
    /// # Errors
    /// No governance rule matches the topic, or access is controlled and there is no valid grant.
    pub fn decide(
        &self,
        permissions: &Permissions,
        subject: &SubjectName,
        query: Query<'_>,
        now: UnixSeconds,
    ) -> Result<Decision> {
        let topic = self.rule.topic_rule(query.topic_name)?;
        if !is_controlled(topic, query.action) {
            let reason = format!(
                "governance does not control {} of topic \"{}\" (topic_rule \"{}\")",
                query.action.name(),
                query.topic_name,
                topic.topic_expression
            );
            return Ok(Decision { is_allowed: true, reason });
        }
        let grant = permissions.grant(subject, now)?;
        Ok(grant.decide(&Query { domain_id: self.domain_id, ..query }))
    }
}

const fn is_controlled(rule: &TopicRule, action: Action) -> bool {
    match action {
        Action::Publish => rule.enable_write_access_control,
        Action::Subscribe => rule.enable_read_access_control,
        Action::Relay => rule.enable_write_access_control || rule.enable_read_access_control,
    }
}
