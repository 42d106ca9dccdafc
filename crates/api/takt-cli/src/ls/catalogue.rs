//! Catalogue of discovered entities: participants, topics with their writers, readers and pairs,
//! and findings.

use crate::finding::{Finding, count};
use crate::paint::Paint;
use crate::ps::PROGRAM;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};
use takt::dynamic::TypeComparison;
use takt::qos::{Deadline, Durability, Ownership, Partition, Reliability};
use takt::{
    Guid, GuidPrefix, Locator, ParticipantData, PublicationData, RefusalReason, ReportedRefusal, SilentParticipant,
    SubscriptionData, presentation_caution,
};
use takt_config::similar;
use takt_wire::compat::{check, keys_match, partitions_match};

/// Discovered entities of a domain.
#[derive(Debug, Serialize)]
pub struct Catalogue {
    domain: u32,
    participants: Vec<Participant>,
    topics: Vec<Topic>,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Participant {
    guid: String,
    name: String,
    vendor: String,
    /// Announced host name. Absent if the vendor announces none.
    host: Option<String>,
    pid: Option<String>,
    program: Option<String>,
    /// Whether the participant answers at its announced address. Otherwise its endpoints are
    /// unknown.
    answers: bool,
    unicast: Vec<String>,
    multicast: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Topic {
    name: String,
    writers: Vec<Endpoint>,
    readers: Vec<Endpoint>,
    pairs: Vec<Pair>,
    /// Topic of a similar name, if this topic has only writers or only readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    similar: Option<String>,
}

#[derive(Debug, Serialize)]
struct Endpoint {
    guid: String,
    /// Name of the endpoint's participant.
    participant: String,
    type_name: String,
    policies: Policies,
    /// Unicast locators, if they differ from those of the participant.
    unicast: Vec<String>,
    multicast: Vec<String>,
}

/// Reliability, durability, and the policies that differ from their defaults.
#[derive(Debug, Serialize)]
struct Policies {
    reliability: String,
    durability: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ns: Option<i128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ownership: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partition: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Pair {
    writer: String,
    reader: String,
    matched: bool,
    /// Reasons why the pair does not match, as sentences.
    reasons: Vec<String>,
    /// The same reasons with their values.
    mismatches: Vec<Mismatch>,
    /// Warning of a matching pair: other implementations may refuse it, or the writer does not send
    /// what it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    caution: Option<String>,
}

/// Reason why a pair does not match.
#[derive(Debug, Serialize)]
struct Mismatch {
    /// `type_name`, `key`, `partition`, `policy`, `type`, `protection` or `network`.
    cause: &'static str,
    /// Policy, if it is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Value of the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    offered: Option<Value>,
    /// Value of the reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<Value>,
    /// The reason as a sentence.
    reason: String,
}

impl Mismatch {
    /// Creates a reason that is known only as a sentence.
    fn of(cause: &'static str, reason: String) -> Self {
        Self { cause, policy: None, offered: None, requested: None, reason }
    }

    /// Creates a reason with the values of both sides.
    fn between(cause: &'static str, offered: Value, requested: Value, reason: String) -> Self {
        Self { offered: Some(offered), requested: Some(requested), ..Self::of(cause, reason) }
    }
}

/// Names of participants by GUID prefix.
type Names = BTreeMap<GuidPrefix, String>;

/// Pairs that participants report as refused by the OpenFlow controller: writer, reader, and the
/// reason.
type Refused = BTreeMap<(Guid, Guid), String>;

impl Catalogue {
    /// Builds the catalogue of the discovered entities. `compare_types` reports whether two types
    /// of the same name are compatible.
    pub fn new(
        domain: u32,
        participants: &[ParticipantData],
        publications: &[PublicationData],
        subscriptions: &[SubscriptionData],
        mut compare_types: impl FnMut(&PublicationData, &SubscriptionData) -> TypeComparison,
    ) -> Self {
        let mut refused = Refused::new();
        for (participant, report) in participants
            .iter()
            .flat_map(|data| ReportedRefusal::all_of(&data.properties).map(move |report| (data, report)))
        {
            let local = Guid { prefix: participant.guid.prefix, entity_id: report.local };
            let pair = if report.local.is_writer() { (local, report.remote) } else { (report.remote, local) };
            refused.insert(pair, report.reason);
        }
        let names: Names = participants.iter().map(|data| (data.guid.prefix, data.entity_name.0.clone())).collect();
        let mut topics: BTreeMap<&str, (Vec<&PublicationData>, Vec<&SubscriptionData>)> = BTreeMap::new();
        for publication in publications {
            topics.entry(&publication.topic_name).or_default().0.push(publication);
        }
        for subscription in subscriptions {
            topics.entry(&subscription.topic_name).or_default().1.push(subscription);
        }
        let mut participants: Vec<Participant> = participants.iter().map(Participant::new).collect();
        participants.sort_by(|a, b| a.guid.cmp(&b.guid));
        let mut topics: Vec<Topic> = topics
            .into_iter()
            .map(|(name, (writers, readers))| {
                Topic::new(name, &writers, &readers, (&names, &refused), &mut compare_types)
            })
            .collect();
        find_similar(&mut topics);
        // Topics with pairs that do not match come first.
        topics.sort_by_key(|topic| topic.pairs.iter().all(|pair| pair.matched));
        Self { domain, participants, topics, findings: Vec::new() }
    }

    /// Adds the findings that keep participants from communicating.
    pub fn with_findings(mut self, silent: &[SilentParticipant], findings: Vec<Finding>) -> Self {
        for participant in &mut self.participants {
            participant.answers = !silent.iter().any(|one| one.guid.to_string() == participant.guid);
        }
        self.findings = findings;
        self
    }

    /// Formats the catalogue as text, with every pair if `all`.
    pub fn display(&self, all: bool, paint: Paint) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text, all, paint);
        text
    }

    fn write(&self, text: &mut String, all: bool, paint: Paint) -> fmt::Result {
        match self.participants.len() {
            0 => writeln!(text, "domain {}: no participants", self.domain)?,
            participants => writeln!(text, "domain {}: {}", self.domain, count(participants, "participant"))?,
        }
        for participant in &self.participants {
            let line = participant.to_string();
            writeln!(text, "  {}", if participant.answers { line } else { paint.error(&line) })?;
        }
        self.topics.iter().try_for_each(|topic| topic.write(text, all, paint))?;
        for finding in &self.findings {
            let whole = finding.to_string();
            let (what, rest) = whole.split_once('\n').unwrap_or((&whole, ""));
            let what = if finding.is_error { paint.error(what) } else { paint.warning(what) };
            writeln!(text, "{what}\n{rest}")?;
        }
        Ok(())
    }
}

/// Sets the similar topic of each topic that has only writers or only readers. The similar topic
/// has the missing side.
fn find_similar(topics: &mut [Topic]) {
    let lacks = |topic: &Topic| (topic.writers.is_empty(), topic.readers.is_empty());
    let sides: Vec<(String, (bool, bool))> = topics.iter().map(|topic| (topic.name.clone(), lacks(topic))).collect();
    for topic in topics.iter_mut() {
        let (no_writers, no_readers) = lacks(topic);
        let fits = |other: &&(String, (bool, bool))| {
            other.0 != topic.name && ((no_writers && !other.1.0) || (no_readers && !other.1.1))
        };
        let names = sides.iter().filter(fits).map(|(name, _)| name.as_str());
        topic.similar = similar(&topic.name, names).map(str::to_owned);
    }
}

impl Participant {
    fn new(data: &ParticipantData) -> Self {
        Self {
            guid: data.guid.to_string(),
            name: data.entity_name.0.chars().filter(|c| !c.is_control()).collect(),
            vendor: data.vendor_id.to_string(),
            host: data.host().map(str::to_owned),
            pid: data.process().map(str::to_owned),
            program: PROGRAM.iter().find_map(|name| data.properties.get(name)).map(str::to_owned),
            answers: true,
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
        (names, refused): (&Names, &Refused),
        compare_types: &mut impl FnMut(&PublicationData, &SubscriptionData) -> TypeComparison,
    ) -> Self {
        let mut pairs = Vec::with_capacity(writers.len() * readers.len());
        for (writer, reader) in writers.iter().flat_map(|writer| readers.iter().map(move |reader| (*writer, *reader))) {
            let is_one_name = writer.type_name == reader.type_name;
            let comparison = if is_one_name { compare_types(writer, reader) } else { TypeComparison::Compatible };
            pairs.push(Pair::new(writer, reader, comparison, refused.get(&(writer.guid, reader.guid))));
        }
        pairs.sort_by_key(|pair| (pair.matched, pair.caution.is_none()));
        Self {
            name: name.into(),
            writers: writers.iter().map(|writer| Endpoint::of_writer(writer, names)).collect(),
            readers: readers.iter().map(|reader| Endpoint::of_reader(reader, names)).collect(),
            pairs,
            similar: None,
        }
    }

    /// Returns a line with the number of entities of each kind.
    fn summary(&self) -> String {
        let (writers, readers) = (self.writers.len(), self.readers.len());
        let matching = self.pairs.iter().filter(|pair| pair.matched).count();
        let differing = self.pairs.len() - matching;
        let side = |number: usize, noun: &str| match number {
            0 => format!("no {noun}"),
            number => count(number, noun),
        };
        let mut parts = vec![side(writers, "writer"), side(readers, "reader")];
        if differing > 0 {
            parts.push(count(differing, "pair does not match"));
        }
        if matching > 0 {
            parts.push(count(matching, "pair matches"));
        }
        if let Some(similar) = &self.similar {
            parts.push(format!("similar to {similar}"));
        }
        parts.join(", ")
    }

    fn write(&self, text: &mut String, all: bool, paint: Paint) -> fmt::Result {
        writeln!(text, "{}: {}", paint.heading(&format!("topic {}", self.name)), self.summary())?;
        for pair in self.pairs.iter().filter(|pair| all || !pair.matched || pair.caution.is_some()) {
            let names = format!("{} -> {}", self.named(&pair.writer), self.named(&pair.reader));
            match (&pair.caution, pair.matched) {
                (_, false) => writeln!(text, "  {names}: {}: {}", paint.error("no match"), pair.reasons.join("; "))?,
                (Some(what), true) => writeln!(text, "  {names}: {} {what}", paint.warning("match, but"))?,
                (None, true) => writeln!(text, "  {names}: match")?,
            }
        }
        let lines = [("writer", &self.writers), ("reader", &self.readers)];
        lines.iter().flat_map(|(role, all)| all.iter().map(move |one| (role, one))).try_for_each(|(role, endpoint)| {
            write!(text, "  {role} {}  {}, {}", self.named(&endpoint.guid), endpoint.type_name, endpoint.policies)?;
            let at: Vec<&str> = endpoint.unicast.iter().chain(&endpoint.multicast).map(String::as_str).collect();
            if !at.is_empty() {
                write!(text, ", at {}", at.join(", "))?;
            }
            writeln!(text)
        })
    }

    /// Formats the GUID of an endpoint with the name of its participant.
    fn named(&self, guid: &str) -> String {
        let mut all = self.writers.iter().chain(&self.readers);
        match all.find(|endpoint| endpoint.guid == guid).map(|endpoint| endpoint.participant.as_str()) {
            None | Some("") => guid.to_owned(),
            Some(name) => format!("{guid} ({name})"),
        }
    }
}

impl Endpoint {
    fn of_writer(data: &PublicationData, names: &Names) -> Self {
        let qos = &data.qos;
        Self {
            guid: data.guid.to_string(),
            participant: name_of(data.guid, names),
            type_name: data.type_name.clone(),
            policies: Policies::new(&qos.reliability, qos.durability, &qos.deadline, qos.ownership, &data.partition),
            unicast: texts(&data.unicast),
            multicast: texts(&data.multicast),
        }
    }

    fn of_reader(data: &SubscriptionData, names: &Names) -> Self {
        let qos = &data.qos;
        Self {
            guid: data.guid.to_string(),
            participant: name_of(data.guid, names),
            type_name: data.type_name.clone(),
            policies: Policies::new(&qos.reliability, qos.durability, &qos.deadline, qos.ownership, &data.partition),
            unicast: texts(&data.unicast),
            multicast: texts(&data.multicast),
        }
    }
}

fn name_of(guid: Guid, names: &Names) -> String {
    names.get(&guid.prefix).cloned().unwrap_or_default()
}

impl Policies {
    fn new(
        reliability: &Reliability,
        durability: Durability,
        deadline: &Deadline,
        ownership: Ownership,
        partition: &Partition,
    ) -> Self {
        Self {
            reliability: reliability.kind.to_string(),
            durability: durability.to_string(),
            deadline_ns: deadline.period.as_nanos().map(i128::from),
            ownership: (ownership != Ownership::default()).then(|| ownership.to_string()),
            partition: partition.names.clone(),
        }
    }
}

impl Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.reliability, self.durability)?;
        if let Some(nanos) = self.deadline_ns {
            write!(f, ", DEADLINE {} ms", nanos as f64 * 1e-6)?;
        }
        if let Some(ownership) = &self.ownership {
            write!(f, ", OWNERSHIP {ownership}")?;
        }
        if !self.partition.is_empty() {
            write!(f, ", PARTITION {}", self.partition.join(", "))?;
        }
        Ok(())
    }
}

impl Pair {
    fn new(
        writer: &PublicationData,
        reader: &SubscriptionData,
        comparison: TypeComparison,
        refused: Option<&String>,
    ) -> Self {
        let mut mismatches = mismatches(writer, reader);
        let of_network = refused.map(|reason| RefusalReason::Network { reason: reason.clone() }.to_string());
        mismatches.extend(of_network.map(|reason| Mismatch::of("network", reason)));
        let caution = match comparison {
            TypeComparison::Compatible => None,
            TypeComparison::CompatibleWithCaution { what } => {
                Some(format!("other implementations may refuse it: {what}"))
            }
            TypeComparison::Incompatible { reason: why } => {
                mismatches.push(Mismatch::of("type", format!("their types differ: {why}")));
                None
            }
        };
        let presentation = presentation_caution(writer, reader).map(str::to_owned);
        let cautions: Vec<String> = caution.into_iter().chain(presentation).collect();
        let caution = (!cautions.is_empty()).then(|| cautions.join("; "));
        let (writer, reader) = (writer.guid.to_string(), reader.guid.to_string());
        let reasons = mismatches.iter().map(|mismatch| mismatch.reason.clone()).collect();
        Self { writer, reader, matched: mismatches.is_empty(), reasons, mismatches, caution }
    }
}

/// Returns the reasons why a writer and a reader of one topic do not match. Empty if they match.
fn mismatches(writer: &PublicationData, reader: &SubscriptionData) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if writer.type_name != reader.type_name {
        let reason = format!("the writer's type is {}, the reader's {}", writer.type_name, reader.type_name);
        let (offered, requested) = (json!(writer.type_name), json!(reader.type_name));
        mismatches.push(Mismatch::between("type_name", offered, requested, reason));
    }
    if !keys_match(writer.guid, reader.guid) {
        let writer_has_key = writer.guid.entity_id.has_key();
        let reason = RefusalReason::Keys { writer_has_key }.to_string();
        mismatches.push(Mismatch::between("key", json!(writer_has_key), json!(!writer_has_key), reason));
    }
    if !partitions_match(&writer.partition, &reader.partition) {
        let text = |partition: &Partition| format!("{:?}", partition.names);
        let (offered, requested) = (json!(writer.partition.names), json!(reader.partition.names));
        let [of_writer, of_reader] = [text(&writer.partition), text(&reader.partition)];
        let reason = format!("PARTITION: the writer is in {of_writer}, the reader in {of_reader}");
        mismatches.push(Mismatch::between("partition", offered, requested, reason));
    }
    mismatches.extend(check(writer, reader).iter().map(|incompatible| {
        let (offered, requested) = (json!(incompatible.offered), json!(incompatible.requested));
        let mismatch = Mismatch::between("policy", offered, requested, incompatible.to_string());
        Mismatch { policy: Some(incompatible.policy.to_string()), ..mismatch }
    }));
    #[cfg(feature = "security")]
    mismatches.extend(
        super::secured::incompatible_protection(writer, reader).map(|reason| Mismatch::of("protection", reason)),
    );
    mismatches
}

fn texts(locators: &[Locator]) -> Vec<String> {
    locators.iter().map(ToString::to_string).collect()
}

impl Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        write!(f, "{}  {name}", self.guid)?;
        if let Some(host) = &self.host {
            write!(f, ", host {host}")?;
        }
        match (&self.pid, &self.program) {
            (Some(pid), Some(program)) => write!(f, ", process {pid} ({program})")?,
            (Some(pid), None) => write!(f, ", process {pid}")?,
            (None, Some(program)) => write!(f, ", process {program}")?,
            (None, None) => {}
        }
        let at: Vec<&str> = self.unicast.iter().chain(&self.multicast).map(String::as_str).collect();
        write!(f, ", {}", self.vendor)?;
        if !at.is_empty() {
            write!(f, ", at {}", at.join(", "))?;
        }
        if !self.answers {
            write!(f, ", DOES NOT ANSWER")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt::EntityId;
    use takt::qos::{AccessScope, Presentation, PropertyEntry};

    fn reasons(writer: &PublicationData, reader: &SubscriptionData) -> Vec<String> {
        mismatches(writer, reader).into_iter().map(|mismatch| mismatch.reason).collect()
    }

    fn writer(topic: &str) -> PublicationData {
        PublicationData { topic_name: topic.into(), type_name: "T".into(), ..Default::default() }
    }

    fn reader(topic: &str) -> SubscriptionData {
        SubscriptionData { topic_name: topic.into(), type_name: "T".into(), ..Default::default() }
    }

    #[test]
    fn compatible_pair_matches() {
        assert_eq!(reasons(&writer("a"), &reader("a")), Vec::<String>::new());
    }

    #[test]
    fn every_reason_for_a_mismatch_is_listed() {
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
        let values = |mismatch: Mismatch| (mismatch.cause, mismatch.policy, mismatch.offered, mismatch.requested);
        let values: Vec<_> = mismatches(&writer, &reader).into_iter().map(values).collect();
        assert_eq!(values[0], ("type_name", None, Some(json!("T")), Some(json!("U"))));
        assert_eq!(values[1], ("partition", None, Some(json!([])), Some(json!(["left"]))));
        let policy = Some("RELIABILITY".to_owned());
        assert_eq!(values[2], ("policy", policy, Some(json!("BEST_EFFORT")), Some(json!("RELIABLE"))));
    }

    #[test]
    fn writer_with_a_key_does_not_match_a_reader_without_one() {
        let (mut writer, mut reader) = (writer("a"), reader("a"));
        for writer_has_key in [true, false] {
            writer.guid.entity_id = EntityId::user_writer(1, writer_has_key);
            reader.guid.entity_id = EntityId::user_reader(2, !writer_has_key);
            assert_eq!(reasons(&writer, &reader), [RefusalReason::Keys { writer_has_key }.to_string()]);
        }
    }

    #[test]
    fn topics_are_sorted_and_pairs_are_listed_within_their_topic() {
        let participants = [ParticipantData::default()];
        let publications = [writer("b"), writer("a")];
        let subscriptions = [reader("a"), reader("a"), reader("c")];
        let catalogue =
            Catalogue::new(3, &participants, &publications, &subscriptions, |_, _| TypeComparison::Compatible);
        let shape: Vec<(&str, usize, usize, usize)> = catalogue
            .topics
            .iter()
            .map(|t| (t.name.as_str(), t.writers.len(), t.readers.len(), t.pairs.len()))
            .collect();
        assert_eq!(shape, [("a", 1, 2, 2), ("b", 1, 0, 0), ("c", 0, 1, 0)]);
        let text = catalogue.display(false, Paint::default());
        assert!(text.starts_with("domain 3: 1 participant\n"), "{text}");
        assert!(text.contains("topic a: 1 writer, 2 readers, 2 pairs match\n"), "{text}");
        assert!(text.contains("topic b: 1 writer, no reader\n"), "{text}");
        assert_eq!(text.matches(": match").count(), 0, "{text}");
        assert_eq!(catalogue.display(true, Paint::default()).matches(": match").count(), 2);
    }

    #[test]
    fn topics_with_mismatched_pairs_come_first_and_pairs_come_before_endpoints() {
        let mut other = reader("z");
        other.type_name = "U".into();
        let participants = [ParticipantData {
            entity_name: takt::qos::EntityName("display".into()),
            properties: takt::qos::Property::from_iter([
                PropertyEntry::propagated("__Hostname", "robot7"),
                PropertyEntry::propagated("__Pid", "4711"),
                PropertyEntry::propagated("__ProcessName", "ux"),
            ]),
            ..Default::default()
        }];
        let catalogue = Catalogue::new(
            0,
            &participants,
            &[writer("a"), writer("z")],
            &[reader("a"), reader("z"), other],
            |_, _| TypeComparison::Compatible,
        );
        let text = catalogue.display(false, Paint::default());
        assert!(text.contains("display, host robot7, process 4711 (ux), "), "{text}");
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "topic z: 1 writer, 2 readers, 1 pair does not match, 1 pair matches");
        assert!(lines[1].contains("(display): no match: the writer's type is T, the reader's U"), "{text}");
        assert!(lines[2].starts_with("  writer ") && lines[2].contains(" (display)  T, "), "{text}");
    }

    #[test]
    fn pair_that_other_implementations_may_refuse_is_listed_with_the_reason() {
        let caution =
            |_: &_, _: &_| TypeComparison::CompatibleWithCaution { what: "member 'm': octet and uint8".into() };
        let catalogue = Catalogue::new(0, &[], &[writer("a")], &[reader("a")], caution);
        let text = catalogue.display(false, Paint::default());
        assert!(
            text.contains(": match, but other implementations may refuse it: member 'm': octet and uint8"),
            "{text}"
        );
    }

    #[test]
    fn group_writer_without_an_announced_publisher_is_listed_with_a_caution() {
        let group = Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
        let (mut writer, mut reader) = (writer("a"), reader("a"));
        (writer.presentation, reader.presentation) = (group, group);
        let listed = |writer: &PublicationData| {
            Catalogue::new(0, &[], std::slice::from_ref(writer), &[reader.clone()], |_, _| TypeComparison::Compatible)
                .display(false, Paint::default())
        };
        let text = listed(&writer);
        assert!(
            text.contains(": match, but the writer offers PRESENTATION") && text.contains("PID_GROUP_ENTITYID"),
            "{text}"
        );
        writer.group_entity_id = takt::EntityId([0, 0, 1, 8]);
        let text = listed(&writer);
        assert!(!text.contains("match, but"), "{text}");
    }

    #[test]
    fn similar_topic_is_named_where_one_side_is_missing() {
        let catalogue =
            Catalogue::new(0, &[], &[writer("Temperature")], &[reader("Temperatur"), reader("Speed")], |_, _| {
                TypeComparison::Compatible
            });
        let text = catalogue.display(false, Paint::default());
        assert!(text.contains("topic Temperatur: no writer, 1 reader, similar to Temperature\n"), "{text}");
        assert!(text.contains("topic Temperature: 1 writer, no reader, similar to Temperatur\n"), "{text}");
        assert!(text.contains("topic Speed: no writer, 1 reader\n"), "{text}");
    }

    #[test]
    fn empty_domain_is_reported_as_empty() {
        assert_eq!(
            Catalogue::new(9, &[], &[], &[], |_, _| TypeComparison::Compatible).display(false, Paint::default()),
            "domain 9: no participants\n"
        );
    }
}
