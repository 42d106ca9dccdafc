//! Isolation policy: labels of participants decide which flows are allowed.
//!
//! A participant or endpoint has the [labels](Label) whose conditions hold. The first [`Rule`] that
//! names a label of each side decides for both directions. Without such a rule the default of the
//! file decides. A denial is enforced twice:
//!
//! - The interceptor refuses the pair and reports the reason to both applications.
//! - Switches drop the frames ([`Filter`]): between the networks of labels, and between the
//!   addresses and UDP ports of participants.
//!
//! A participant cannot choose its labels by address: the controller reads the address from its
//! datagrams. Labels by domain, partition and property depend on its own announcements.

mod file;
mod filter;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;
use takt_wire::partition::partitions_match;
use takt_wire::qos::{Partition, Property, UserData};

pub use self::file::{ENTRIES_MAX, FILE_LEN_MAX, LABELS_MAX, NETWORKS_MAX, RULES_MAX};
pub(crate) use self::filter::PARTICIPANTS;
pub use self::filter::{Filter, Network, passes, passes_to};
use crate::contract::{FileError, declared_fields};

/// Key of a label in USER_DATA and in the properties.
pub const KEY: &str = "rt.label";

/// Decision on flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Flows are allowed.
    #[default]
    Allow,
    /// Flows are denied.
    Deny,
}

impl Decision {
    /// Returns the name of the decision in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// A label with its conditions. A participant has the label if one of them holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name of the label.
    pub name: String,
    /// Networks that contain the address of the participant.
    pub networks: Vec<Network>,
    /// Domains of the participant.
    pub domains: Vec<u32>,
    /// Partitions of its endpoint.
    pub partitions: Option<Partition>,
    /// Value that the participant or endpoint declares under [`KEY`].
    pub property: Option<String>,
}

/// One side of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Any participant.
    Any,
    /// Participants with this label, by its index in the file.
    Label(usize),
}

/// A rule of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The two sides.
    pub between: [Side; 2],
    /// Decision of the rule.
    pub decision: Decision,
    /// Line in the file.
    pub line: usize,
}

/// Labels by their indices in the file.
pub type Labels = BTreeSet<usize>;

/// Properties of a participant or endpoint that determine its labels.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Address that it sends discovery from.
    pub address: IpAddr,
    /// Domain of the participant.
    pub domain: u32,
    /// Partitions of the endpoint; `None` for a participant.
    pub partition: Option<&'a Partition>,
    /// USER_DATA and properties: those of the endpoint, if it is one, and those of the participant.
    pub declared: &'a [(&'a UserData, &'a Property)],
}

/// The operator's isolation policy; everything is allowed by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Isolation {
    default: Decision,
    labels: Vec<Label>,
    rules: Vec<Rule>,
}

impl Rule {
    fn is_between(&self, one: &Labels, other: &Labels) -> bool {
        let has = |side: Side, labels: &Labels| match side {
            Side::Any => true,
            Side::Label(index) => labels.contains(&index),
        };
        let [a, b] = self.between;
        has(a, one) && has(b, other) || has(b, one) && has(a, other)
    }
}

impl Isolation {
    /// Parses a file of at most [`FILE_LEN_MAX`] octets.
    ///
    /// # Errors
    /// Line and key of the first error.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        file::parse(text)
    }

    /// Reports whether the policy allows all flows.
    pub fn is_open(&self) -> bool {
        self.default == Decision::Allow && self.rules.iter().all(|rule| rule.decision == Decision::Allow)
    }

    /// Returns the decision where no rule matches.
    pub fn default_decision(&self) -> Decision {
        self.default
    }

    /// Returns the labels.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the names of labels.
    pub fn names(&self, labels: &Labels) -> Vec<String> {
        labels.iter().filter_map(|index| self.labels.get(*index)).map(|label| label.name.clone()).collect()
    }

    /// Returns the labels of a participant or an endpoint.
    pub fn labels_of(&self, subject: &Subject<'_>) -> Labels {
        let has = |label: &Label| {
            let declares = |wanted: &String| {
                let fields =
                    subject.declared.iter().flat_map(|(user_data, property)| declared_fields(user_data, property));
                fields.into_iter().any(|(key, value)| key == KEY && value == wanted)
            };
            let is_in = |own: &Partition| subject.partition.is_some_and(|partition| partitions_match(own, partition));
            label.networks.iter().any(|network| network.contains(subject.address))
                || label.domains.contains(&subject.domain)
                || label.partitions.as_ref().is_some_and(is_in)
                || label.property.as_ref().is_some_and(declares)
        };
        self.labels.iter().enumerate().filter(|(_, label)| has(label)).map(|(index, _)| index).collect()
    }

    fn rule(&self, one: &Labels, other: &Labels) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.is_between(one, other))
    }

    /// Returns the decision for two participants or endpoints with these labels.
    pub fn decide(&self, one: &Labels, other: &Labels) -> Decision {
        self.rule(one, other).map_or(self.default, |rule| rule.decision)
    }

    /// Returns the reason why flows between two participants are denied; `None` if they are
    /// allowed.
    pub fn denial(&self, one: &Labels, other: &Labels) -> Option<String> {
        if self.decide(one, other) == Decision::Allow {
            return None;
        }
        let text = |labels: &Labels| match self.names(labels) {
            names if names.is_empty() => "no label".to_owned(),
            names => names.join(", "),
        };
        let by = self.rule(one, other).map_or_else(|| "the default".to_owned(), |rule| format!("line {}", rule.line));
        Some(format!("isolation: {by} of the policy denies flows between ({}) and ({})", text(one), text(other)))
    }

    /// Reports whether a label depends on more than the address, so that participants at one
    /// address can have different labels.
    pub fn has_labels_of_participants(&self) -> bool {
        self.labels.iter().any(|label| !label.domains.is_empty() || label.property.is_some())
    }

    /// Reports whether a participant with these labels may reach all others.
    pub fn is_unrestricted(&self, labels: &Labels) -> bool {
        let others = (0..self.labels.len()).map(|index| Labels::from([index])).chain([Labels::new()]);
        others.into_iter().all(|other| self.decide(labels, &other) == Decision::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
default = "deny"
[[label]]
name = "red"
addresses = ["10.0.1.0/24", "fd00:1::/64"]
property = "red"
[[label]]
name = "black"
addresses = ["10.0.2.0/24"]
domains = [7]
partitions = ["black/*"]
[[rule]]
between = ["red", "black"]
decision = "deny"
[[rule]]
between = ["red", "red"]
decision = "allow"
[[rule]]
between = ["black", "*"]
decision = "allow"
"#;

    fn subject(address: &str, domain: u32) -> Subject<'static> {
        Subject { address: address.parse().expect("a valid address"), domain, partition: None, declared: &[] }
    }

    #[test]
    fn labels_follow_from_address_domain_partition_and_property() {
        let policy = Isolation::parse(FILE).expect("the policy is valid");
        let names = |subject: &Subject<'_>| policy.names(&policy.labels_of(subject));
        assert_eq!(names(&subject("10.0.1.9", 0)), ["red"]);
        assert_eq!(names(&subject("fd00:1::9", 7)), ["red", "black"]);
        assert!(names(&subject("10.0.3.9", 0)).is_empty());
        let partition = Partition { names: vec!["black/hole".into()] };
        assert_eq!(names(&Subject { partition: Some(&partition), ..subject("10.0.3.9", 0) }), ["black"]);
        let (user_data, property) = (UserData(b"rt.e2e=5ms;rt.label=red".to_vec()), Property::default());
        let declared: &[_] = &[(&user_data, &property)];
        assert_eq!(names(&Subject { declared, ..subject("10.0.3.9", 0) }), ["red"]);
    }

    #[test]
    fn first_matching_rule_decides_in_both_directions_and_the_default_otherwise() {
        let policy = Isolation::parse(FILE).expect("the policy is valid");
        let [red, black, none] = ["10.0.1.1", "10.0.2.1", "10.0.3.1"].map(|at| policy.labels_of(&subject(at, 0)));
        for (one, other, expected) in [
            (&red, &black, Decision::Deny),
            (&black, &red, Decision::Deny),
            (&red, &red, Decision::Allow),
            (&black, &none, Decision::Allow),
            (&none, &red, Decision::Deny),
            (&none, &none, Decision::Deny),
        ] {
            assert_eq!(policy.decide(one, other), expected, "{one:?} {other:?}");
        }
        assert_eq!(policy.denial(&red, &red), None);
        let reason = policy.denial(&black, &red).expect("the pair is denied");
        assert_eq!(reason, "isolation: line 12 of the policy denies flows between (black) and (red)");
        assert!(policy.denial(&none, &red).is_some_and(|reason| reason.contains("the default of the policy")));
        assert!(!policy.is_open() && Isolation::default().is_open());
    }

    #[test]
    fn errors_name_line_and_key() {
        for (old, new, line, key, what) in [
            ("10.0.1.0/24", "10.0.1.0", 5, "addresses", "is not a network"),
            ("10.0.1.0/24", "10.0.1.0/33", 5, "addresses", "is not a network"),
            ("name = \"black\"", "name = \"red\"", 8, "name", "has the name \"red\""),
            ("name = \"black\"", "name = \"*\"", 8, "name", "other than *"),
            ("\"black\", \"*\"", "\"blue\", \"*\"", 19, "between", "no label \"blue\""),
            ("default = \"deny\"", "default = \"maybe\"", 2, "", "unknown variant"),
            ("domains = [7]", "domain = 7", 10, "", "unknown field"),
        ] {
            assert!(FILE.contains(old), "{old}");
            let error = Isolation::parse(&FILE.replacen(old, new, 1)).expect_err(new);
            assert!(error.what.contains(what), "{error}");
            assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
        }
        Isolation::parse("[[label]]\nname = \"nowhere\"").expect_err("the label matches no participant");
        Isolation::parse(&"#".repeat(FILE_LEN_MAX + 1)).expect_err("the text is too long");
    }
}
