//! What discovery told, put in order: participants, and topics with their writers, readers and pairs.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use takt::compat::{check, partitions_match};
use takt::qos::{Deadline, Durability, Ownership, Partition, Reliability};
use takt::{Locator, ParticipantData, PublicationData, SubscriptionData};

/// A domain as seen by discovery.
#[derive(Debug, Serialize)]
pub struct Catalogue {
    domain: u32,
    participants: Vec<Participant>,
    topics: Vec<Topic>,
}

#[derive(Debug, Serialize)]
struct Participant {
    guid: String,
    name: String,
    vendor: String,
    unicast: Vec<String>,
    multicast: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Topic {
    name: String,
    writers: Vec<Endpoint>,
    readers: Vec<Endpoint>,
    pairs: Vec<Pair>,
}

#[derive(Debug, Serialize)]
struct Endpoint {
    guid: String,
    type_name: String,
    /// Reliability, durability, and the policies that are not the default.
    policies: Vec<String>,
    /// Where it listens, if not where its participant does.
    unicast: Vec<String>,
    multicast: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Pair {
    writer: String,
    reader: String,
    matched: bool,
    /// Why they do not match.
    reasons: Vec<String>,
}

impl Catalogue {
    /// Puts in order what discovery told. `type_difference` says why two types of one name do not fit.
    pub fn new(
        domain: u32,
        participants: &[ParticipantData],
        publications: &[PublicationData],
        subscriptions: &[SubscriptionData],
        mut type_difference: impl FnMut(&PublicationData, &SubscriptionData) -> Option<String>,
    ) -> Self {
        let mut topics: BTreeMap<&str, (Vec<&PublicationData>, Vec<&SubscriptionData>)> = BTreeMap::new();
        for publication in publications {
            topics.entry(&publication.topic_name).or_default().0.push(publication);
        }
        for subscription in subscriptions {
            topics.entry(&subscription.topic_name).or_default().1.push(subscription);
        }
        let mut participants: Vec<Participant> = participants.iter().map(Participant::new).collect();
        participants.sort_by(|a, b| a.guid.cmp(&b.guid));
        let topics = topics.into_iter();
        Self {
            domain,
            participants,
            topics: topics
                .map(|(name, (writers, readers))| Topic::new(name, &writers, &readers, &mut type_difference))
                .collect(),
        }
    }
}

impl Participant {
    fn new(data: &ParticipantData) -> Self {
        Self {
            guid: data.guid.to_string(),
            name: data.entity_name.0.clone(),
            vendor: data.vendor_id.to_string(),
            unicast: texts(&data.default_unicast),
            multicast: texts(&data.default_multicast),
        }
    }
}

impl Topic {
    fn new(
        name: &str,
        writers: &[&PublicationData],
        readers: &[&SubscriptionData],
        type_difference: &mut impl FnMut(&PublicationData, &SubscriptionData) -> Option<String>,
    ) -> Self {
        let mut pairs = Vec::with_capacity(writers.len() * readers.len());
        for (writer, reader) in writers.iter().flat_map(|writer| readers.iter().map(move |reader| (*writer, *reader))) {
            let is_one_name = writer.type_name == reader.type_name;
            let difference = if is_one_name { type_difference(writer, reader) } else { None };
            pairs.push(Pair::new(writer, reader, difference));
        }
        Self {
            name: name.into(),
            writers: writers.iter().map(|writer| Endpoint::of_writer(writer)).collect(),
            readers: readers.iter().map(|reader| Endpoint::of_reader(reader)).collect(),
            pairs,
        }
    }
}

impl Endpoint {
    fn of_writer(data: &PublicationData) -> Self {
        let qos = &data.qos;
        Self {
            guid: data.guid.to_string(),
            type_name: data.type_name.clone(),
            policies: policies(&qos.reliability, qos.durability, &qos.deadline, qos.ownership, &data.partition),
            unicast: texts(&data.unicast),
            multicast: texts(&data.multicast),
        }
    }

    fn of_reader(data: &SubscriptionData) -> Self {
        let qos = &data.qos;
        Self {
            guid: data.guid.to_string(),
            type_name: data.type_name.clone(),
            policies: policies(&qos.reliability, qos.durability, &qos.deadline, qos.ownership, &data.partition),
            unicast: texts(&data.unicast),
            multicast: texts(&data.multicast),
        }
    }
}

fn policies(
    reliability: &Reliability,
    durability: Durability,
    deadline: &Deadline,
    ownership: Ownership,
    partition: &Partition,
) -> Vec<String> {
    let mut policies = vec![reliability.kind.to_string(), durability.to_string()];
    if let Some(nanos) = deadline.period.as_nanos() {
        policies.push(format!("DEADLINE {} ms", nanos as f64 * 1e-6));
    }
    if ownership != Ownership::default() {
        policies.push(format!("OWNERSHIP {ownership}"));
    }
    if !partition.names.is_empty() {
        policies.push(format!("PARTITION {}", partition.names.join(", ")));
    }
    policies
}

impl Pair {
    fn new(writer: &PublicationData, reader: &SubscriptionData, type_difference: Option<String>) -> Self {
        let mut reasons = reasons(writer, reader);
        reasons.extend(type_difference.map(|why| format!("their types differ: {why}")));
        Self { writer: writer.guid.to_string(), reader: reader.guid.to_string(), matched: reasons.is_empty(), reasons }
    }
}

/// Why a writer and a reader of one topic do not match; empty if they do.
fn reasons(writer: &PublicationData, reader: &SubscriptionData) -> Vec<String> {
    let mut reasons = Vec::new();
    if writer.type_name != reader.type_name {
        reasons.push(format!("the writer's type is {}, the reader's {}", writer.type_name, reader.type_name));
    }
    if !partitions_match(&writer.partition, &reader.partition) {
        let text = |partition: &Partition| format!("{:?}", partition.names);
        reasons.push(format!(
            "PARTITION: the writer is in {}, the reader in {}",
            text(&writer.partition),
            text(&reader.partition)
        ));
    }
    reasons.extend(check(writer, reader).iter().map(ToString::to_string));
    reasons
}

fn texts(locators: &[Locator]) -> Vec<String> {
    locators.iter().map(ToString::to_string).collect()
}

impl Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.participants.is_empty() {
            return writeln!(f, "domain {}: nobody there", self.domain);
        }
        writeln!(f, "domain {}: {} participants", self.domain, self.participants.len())?;
        for Participant { guid, name, vendor, unicast, multicast } in &self.participants {
            let name = if name.is_empty() { "(no name)" } else { name };
            let at: Vec<&str> = unicast.iter().chain(multicast).map(String::as_str).collect();
            writeln!(f, "  {guid}  {name}, {vendor}, at {}", at.join(", "))?;
        }
        self.topics.iter().try_for_each(|topic| write!(f, "{topic}"))
    }
}

impl Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "topic {}", self.name)?;
        let endpoints = |f: &mut fmt::Formatter<'_>, role: &str, endpoints: &[Endpoint]| {
            endpoints.iter().try_for_each(|Endpoint { guid, type_name, policies, unicast, multicast }| {
                write!(f, "  {role} {guid}  {type_name}, {}", policies.join(", "))?;
                let at: Vec<&str> = unicast.iter().chain(multicast).map(String::as_str).collect();
                if !at.is_empty() {
                    write!(f, ", at {}", at.join(", "))?;
                }
                writeln!(f)
            })
        };
        endpoints(f, "writer", &self.writers)?;
        endpoints(f, "reader", &self.readers)?;
        for Pair { writer, reader, matched, reasons } in &self.pairs {
            if *matched {
                writeln!(f, "    {writer} -> {reader}: match")?;
            } else {
                writeln!(f, "    {writer} -> {reader}: no match: {}", reasons.join("; "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(topic: &str) -> PublicationData {
        PublicationData { topic_name: topic.into(), type_name: "T".into(), ..Default::default() }
    }

    fn reader(topic: &str) -> SubscriptionData {
        SubscriptionData { topic_name: topic.into(), type_name: "T".into(), ..Default::default() }
    }

    #[test]
    fn what_is_compatible_matches() {
        assert_eq!(reasons(&writer("a"), &reader("a")), Vec::<String>::new());
    }

    #[test]
    fn every_reason_is_told() {
        let mut writer = writer("a");
        let mut reader = reader("a");
        writer.qos.reliability = Reliability::BEST_EFFORT;
        reader.qos.reliability = Reliability::RELIABLE;
        reader.type_name = "U".into();
        reader.partition = Partition { names: vec!["left".into()] };
        let reasons = reasons(&writer, &reader);
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert_eq!(reasons[0], "the writer's type is T, the reader's U");
        assert!(reasons[1].starts_with("PARTITION") && reasons[1].contains("left"), "{reasons:?}");
        assert!(reasons[2].starts_with("RELIABILITY: the writer offers BEST_EFFORT"), "{reasons:?}");
    }

    #[test]
    fn topics_are_in_order_and_pairs_are_within_them() {
        let participants = [ParticipantData::default()];
        let publications = [writer("b"), writer("a")];
        let subscriptions = [reader("a"), reader("a"), reader("c")];
        let catalogue = Catalogue::new(3, &participants, &publications, &subscriptions, |_, _| None);
        let shape: Vec<(&str, usize, usize, usize)> = catalogue
            .topics
            .iter()
            .map(|t| (t.name.as_str(), t.writers.len(), t.readers.len(), t.pairs.len()))
            .collect();
        assert_eq!(shape, [("a", 1, 2, 2), ("b", 1, 0, 0), ("c", 0, 1, 0)]);
        let text = catalogue.to_string();
        assert!(text.starts_with("domain 3: 1 participants\n"), "{text}");
        assert_eq!(text.matches(": match").count(), 2, "{text}");
    }

    #[test]
    fn an_empty_domain_says_so() {
        assert_eq!(Catalogue::new(9, &[], &[], &[], |_, _| None).to_string(), "domain 9: nobody there\n");
    }
}
