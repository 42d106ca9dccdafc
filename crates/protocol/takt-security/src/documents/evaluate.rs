//! Decisions of a grant, with the deciding rule (DDS-SEC 1.1 §9.4.1.3.2.3).
//!
//! An allow rule applies if it lists *all* partitions and data tags of the endpoint; without
//! `<partitions>` it lists only the default partition. A deny rule applies if it lists *one* of
//! them; without `<partitions>` or `<data_tags>` it applies to all.

use takt_wire::partition::fnmatch;

use super::{Criteria, Effect, Grant, Rule};

/// Action for which an endpoint needs permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writing.
    Publish,
    /// Reading.
    Subscribe,
    /// Forwarding samples of other writers.
    Relay,
}

impl Action {
    /// Returns the name of the element in the permissions document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Relay => "relay",
        }
    }
}

/// Endpoint for which permission is requested.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Action of the endpoint.
    pub action: Action,
    /// Domain id.
    pub domain_id: u32,
    /// Name of the topic.
    pub topic_name: &'a str,
    /// Partitions of the publisher or subscriber; empty for the default partition.
    pub partitions: &'a [&'a str],
    /// Data tags of the endpoint.
    pub data_tags: &'a [(&'a str, &'a str)],
}

/// Decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the action is permitted.
    pub is_allowed: bool,
    /// Deciding rule, and the reason.
    pub reason: String,
}

impl Grant {
    /// Decides by the first rule that applies. [`Grant::validity`] checks the validity period.
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        let applied = self.rules.iter().find_map(|rule| Some((rule, rule.matching_topic(query)?)));
        let (effect, cause) = match applied {
            Some((rule, expression)) => {
                (rule.effect, format!("the {} in line {} by topic \"{expression}\"", rule.name(), rule.line))
            }
            None => (self.default, "its default, since no rule applies".to_owned()),
        };
        let is_allowed = effect == Effect::Allow;
        let word = if is_allowed { "allows" } else { "denies" };
        let partitions = match query.partitions {
            [] => String::new(),
            names => format!(" in partitions {names:?}"),
        };
        let reason = format!(
            "grant \"{}\" {word} {} of topic \"{}\" in domain {}{partitions}: {cause}",
            self.name,
            query.action.name(),
            query.topic_name,
            query.domain_id
        );
        Decision { is_allowed, reason }
    }

    /// Reports whether the grant permits any action in this domain.
    pub fn joins(&self, domain_id: u32) -> bool {
        let has_rule = |rule: &Rule| rule.effect == Effect::Allow && rule.domains.contains(domain_id);
        self.default == Effect::Allow || self.rules.iter().any(has_rule)
    }
}

impl Rule {
    const fn name(&self) -> &'static str {
        match self.effect {
            Effect::Allow => "allow_rule",
            Effect::Deny => "deny_rule",
        }
    }

    /// Returns the expression by which the rule applies to a query.
    fn matching_topic(&self, query: &Query<'_>) -> Option<&str> {
        if !self.domains.contains(query.domain_id) {
            return None;
        }
        let all = match query.action {
            Action::Publish => &self.publish,
            Action::Subscribe => &self.subscribe,
            Action::Relay => &self.relay,
        };
        all.iter().find_map(|criteria| {
            let expression = criteria.topics.iter().find(|topic| fnmatch(topic, query.topic_name))?;
            criteria.applies(self.effect, query).then_some(expression.as_str())
        })
    }
}

impl Criteria {
    fn applies(&self, effect: Effect, query: &Query<'_>) -> bool {
        let partitions = if query.partitions.is_empty() { &[""][..] } else { query.partitions };
        let has_partition = |name: &&str| match self.partitions.as_slice() {
            [] => name.is_empty(),
            patterns => patterns.iter().any(|pattern| fnmatch(pattern, name)),
        };
        let has_tag = |tag: &(&str, &str)| self.data_tags.iter().any(|(name, value)| (&**name, &**value) == *tag);
        match effect {
            Effect::Allow => partitions.iter().all(has_partition) && query.data_tags.iter().all(has_tag),
            Effect::Deny => {
                (self.partitions.is_empty() || partitions.iter().any(has_partition))
                    && (self.data_tags.is_empty() || query.data_tags.iter().any(has_tag))
            }
        }
    }
}
