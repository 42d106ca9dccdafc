//! Permission rules on the command line, and how they are added to a grant.
//!
//! The first rule that applies decides. Deny rules therefore precede allow rules.
//!
//! INTEROP(CycloneDDS 0.10): refuses a topic in both directions if the first rule that names it
//! denies either direction.
//! INTEROP(CycloneDDS 0.10): refuses documents with domain ids above 230.

use clap::Args;
use takt_bench::Result;
use takt_security::documents::{
    Action, Criteria, DomainSet, EXPRESSION_LEN_MAX, Effect, Grant, Permissions, Query, Rule,
};
use takt_security::tools::permissions_xml;

use super::failed;
use crate::output::{note, outln};

/// Largest domain ID in documents that CycloneDDS 0.10 accepts.
const DOMAIN_ID_MAX: u32 = 230;

/// Range of domain IDs, both ends included.
pub type DomainRange = (u32, u32);

/// Rules of one command.
#[derive(Args, Clone, Debug, Default)]
pub struct RuleArgs {
    /// Topic that the participant may write, or a pattern such as 'rt/*'; may be repeated
    #[arg(long, value_name = "TOPIC", value_parser = parse_topic)]
    publish: Vec<String>,
    /// Topic that the participant may read, or a pattern; may be repeated
    #[arg(long, value_name = "TOPIC", value_parser = parse_topic)]
    subscribe: Vec<String>,
    /// Topic that the participant must not write, or a pattern; overrides allow rules; may be repeated
    #[arg(long, value_name = "TOPIC", value_parser = parse_topic)]
    deny_publish: Vec<String>,
    /// Topic that the participant must not read, or a pattern; overrides allow rules; may be repeated
    #[arg(long, value_name = "TOPIC", value_parser = parse_topic)]
    deny_subscribe: Vec<String>,
    /// Partition of these rules, or a pattern; may be repeated [default: the default partition; all for deny rules]
    #[arg(long, value_name = "PARTITION", value_parser = parse_partition)]
    partition: Vec<String>,
    /// Domain of these rules, or a range such as 0-10; may be repeated, or separated by commas [default: those of the governance]
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = parse_domains)]
    domain: Vec<DomainRange>,
}

impl RuleArgs {
    /// Reports whether the rules name a topic.
    pub fn has_topics(&self) -> bool {
        [&self.publish, &self.subscribe, &self.deny_publish, &self.deny_subscribe].iter().any(|all| !all.is_empty())
    }

    /// Reports whether the rules name a partition, which has no effect without a topic.
    pub fn has_partitions(&self) -> bool {
        !self.partition.is_empty()
    }

    /// Returns the domains of the rules.
    pub fn domains(&self, of_governance: DomainSet) -> DomainSet {
        if self.domain.is_empty() { of_governance } else { DomainSet(self.domain.clone()) }
    }

    /// Adds the rules. A grant without an allow rule gets one that only allows to join the domains.
    pub fn add_to(&self, rules: &mut Vec<Rule>, domains: &DomainSet) {
        if !self.deny_publish.is_empty() || !self.deny_subscribe.is_empty() {
            let is_same = |rule: &Rule| rule.effect == Effect::Deny && rule.domains == *domains;
            if !rules.first().is_some_and(is_same) {
                rules.insert(0, empty_rule(Effect::Deny, domains));
            }
            // CycloneDDS and Fast DDS apply a rule without partitions to the default partition
            // only, even if it denies.
            let all = ["*".to_owned()];
            let partitions = if self.partition.is_empty() { &all[..] } else { &self.partition[..] };
            add(&mut rules[0], &self.deny_publish, &self.deny_subscribe, partitions);
        }
        let is_allowing = !self.publish.is_empty() || !self.subscribe.is_empty();
        if is_allowing || rules.iter().all(|rule| rule.effect == Effect::Deny) {
            let is_same = |rule: &Rule| rule.effect == Effect::Allow && rule.domains == *domains;
            if !rules.last().is_some_and(is_same) {
                rules.push(empty_rule(Effect::Allow, domains));
            }
            let last = rules.len() - 1;
            add(&mut rules[last], &self.publish, &self.subscribe, &self.partition);
        }
    }

    /// Warns of topics that these options allow but an earlier rule of the grant denies.
    pub fn warn_of_denials(&self, grant: &Grant, domains: &DomainSet) {
        let partitions: Vec<&str> = self.partition.iter().map(String::as_str).collect();
        for (action, topics) in [(Action::Publish, &self.publish), (Action::Subscribe, &self.subscribe)] {
            for topic_name in topics {
                let domain_id = domains.0.first().map_or(0, |(low, _)| *low);
                let query = Query { action, domain_id, topic_name, partitions: &partitions, data_tags: &[] };
                let decision = grant.decide(&query);
                if !decision.is_allowed {
                    note!("takt: warning: {}", decision.reason);
                }
            }
        }
    }
}

fn empty_rule(effect: Effect, domains: &DomainSet) -> Rule {
    let (publish, subscribe, relay) = Default::default();
    Rule { line: 0, effect, domains: domains.clone(), publish, subscribe, relay }
}

fn add(rule: &mut Rule, publish: &[String], subscribe: &[String], partitions: &[String]) {
    for (criteria, topics) in [(&mut rule.publish, publish), (&mut rule.subscribe, subscribe)] {
        if topics.is_empty() {
            continue;
        }
        let is_same = |one: &Criteria| one.partitions == partitions && one.data_tags.is_empty();
        let index = criteria.iter().position(is_same).unwrap_or_else(|| {
            criteria.push(Criteria { partitions: partitions.to_vec(), ..Criteria::default() });
            criteria.len() - 1
        });
        let known = &mut criteria[index].topics;
        for topic in topics {
            if !known.contains(topic) {
                known.push(topic.clone());
            }
        }
    }
}

/// Returns the document of the permissions, and the permissions as a reader of the document parses
/// them, with lines.
///
/// # Errors
/// The document would be too long.
pub fn render(permissions: &Permissions) -> Result<(String, Permissions)> {
    let text = permissions_xml(permissions);
    let read = Permissions::parse(&text).map_err(failed)?;
    Ok((text, read))
}

/// Prints the rules of a grant in order.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(grant: &Grant) -> Result<()> {
    for rule in &grant.rules {
        let word = if rule.effect == Effect::Allow { "allow" } else { "deny" };
        let mut is_empty = true;
        for (action, all) in [("publish", &rule.publish), ("subscribe", &rule.subscribe), ("relay", &rule.relay)] {
            for criteria in all {
                let partitions = match criteria.partitions.as_slice() {
                    [] => String::new(),
                    all => format!(", partitions {}", quoted(all)),
                };
                is_empty = false;
                let topics = quoted(&criteria.topics);
                outln!("  {word:<5} {action:<9} {topics} in domains {}{partitions}", rule.domains)?;
            }
        }
        if is_empty {
            outln!("  {word:<5} join      domains {}, no topic", rule.domains)?;
        }
    }
    Ok(())
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

fn parse_topic(text: &str) -> std::result::Result<String, String> {
    if text.is_empty() { Err("expected a topic name that is not empty".to_owned()) } else { parse_partition(text) }
}

fn parse_partition(text: &str) -> std::result::Result<String, String> {
    if text.len() > EXPRESSION_LEN_MAX || text.trim() != text || text.chars().any(char::is_control) {
        return Err(format!(
            "expected at most {EXPRESSION_LEN_MAX} octets without control characters and without spaces at the ends"
        ));
    }
    Ok(text.to_owned())
}

/// Parses a domain ID or a range.
pub fn parse_domains(text: &str) -> std::result::Result<DomainRange, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let id = |text: &str| text.parse::<u32>().ok().filter(|id| *id <= DOMAIN_ID_MAX);
    match (id(low), id(high)) {
        (Some(low), Some(high)) if low <= high => Ok((low, high)),
        _ => Err(format!("expected a domain ID from 0 to {DOMAIN_ID_MAX}, or a range such as 0-10")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    fn domains() -> DomainSet {
        DomainSet(vec![(0, 0)])
    }

    #[test]
    fn deny_rules_come_first_and_name_all_partitions() {
        let mut rules = Vec::new();
        RuleArgs { publish: texts(&["*"]), ..RuleArgs::default() }.add_to(&mut rules, &domains());
        RuleArgs { deny_publish: texts(&["Secret"]), ..RuleArgs::default() }.add_to(&mut rules, &domains());
        assert_eq!(rules.iter().map(|rule| rule.effect).collect::<Vec<_>>(), [Effect::Deny, Effect::Allow]);
        assert_eq!(
            (&rules[0].publish[0].topics, &rules[0].publish[0].partitions),
            (&texts(&["Secret"]), &texts(&["*"]))
        );
        assert_eq!(rules[1].publish[0].partitions, texts(&[]));
    }

    #[test]
    fn topics_of_later_commands_join_the_rule_of_the_same_domains_and_partitions() {
        let mut rules = Vec::new();
        let calls: [(&str, &[&str], &[DomainRange]); 5] =
            [("A", &[], &[]), ("B", &[], &[]), ("A", &[], &[]), ("C", &["p"], &[]), ("D", &[], &[(1, 2)])];
        for (topic, partition, domain) in calls {
            let args = RuleArgs {
                subscribe: texts(&[topic]),
                partition: texts(partition),
                domain: domain.to_vec(),
                ..RuleArgs::default()
            };
            args.add_to(&mut rules, &args.domains(domains()));
        }
        let seen: Vec<_> = rules
            .iter()
            .map(|rule| rule.subscribe.iter().map(|one| one.topics.join(" ")).collect::<Vec<_>>())
            .collect();
        assert_eq!(seen, [texts(&["A B", "C"]), texts(&["D"])]);
    }

    #[test]
    fn grant_without_topics_allows_to_join_and_nothing_else() {
        let mut rules = Vec::new();
        RuleArgs::default().add_to(&mut rules, &domains());
        assert_eq!(rules, [empty_rule(Effect::Allow, &domains())]);
        RuleArgs { deny_subscribe: texts(&["A"]), ..RuleArgs::default() }.add_to(&mut rules, &domains());
        assert_eq!(rules.len(), 2, "the allow rule already exists");
    }

    #[test]
    fn domains_and_expressions_are_checked() {
        assert_eq!((parse_domains("7"), parse_domains("0-230")), (Ok((7, 7)), Ok((0, 230))));
        for text in ["", "231", "3-2", "-1", "a"] {
            assert!(parse_domains(text).is_err(), "{text}");
        }
        assert_eq!(parse_partition("").as_deref(), Ok(""), "the default partition has no name");
        for text in ["", " a", "a\n", &"x".repeat(257)] {
            assert!(parse_topic(text).is_err(), "{text:?}");
        }
    }
}
