//! Static endpoints of all participants from a TOML file, for discovery without an endpoint
//! discovery protocol.
//!
//! ```toml
//! [[participant]]
//! name = "camera"                  # its ENTITY_NAME
//!
//! [[participant.writer]]
//! topic = "Image"
//! type = "sensor::Image"
//! entity = 1                       # 1 to 16777215, each once among the participant's endpoints
//! keyed = true                     # the type has a key; else false
//! profile = "Camera::Stream"       # its policies and its publisher's; else those of DDS
//! reliability = "reliable"         # or "best_effort"; these three go before what the profile says
//! durability = "transient_local"   # or "volatile"
//! partition = ["left"]
//!
//! [qos_library.Camera.Stream]      # as in a file of profiles
//! datawriter_qos.deadline.period = "100 ms"
//! ```
//!
//! `[[participant.reader]]` has the same keys. Unknown and missing keys are errors.

use std::path::Path;

use takt::qos::{Durability, Partition, Reliability};
use takt::{EntityId, PublicationData, StaticParticipant, SubscriptionData};
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Origin, Result};
use crate::provider::{QosProvider, read_file};
use crate::toml_tree;
use crate::tree::Format;

/// Reads a file.
///
/// # Errors
/// [`ConfigError`] if the file cannot be read or does not have the form above.
pub fn read_static_endpoints(path: impl AsRef<Path>) -> Result<Vec<StaticParticipant>> {
    let (source, text, _) = read_file(path.as_ref())?;
    parse_static_endpoints(&source, &text)
}

/// Parses a text. `source` is its name in errors.
///
/// # Errors
/// Same as [`read_static_endpoints`].
pub fn parse_static_endpoints(source: &str, text: &str) -> Result<Vec<StaticParticipant>> {
    let wrong =
        |element: &str, what: String| ConfigError::new(Origin { source: source.to_owned(), line: 0 }, element, what);
    let root = DeTable::parse(text).map_err(|error| wrong("", format!("invalid TOML: {}", error.message())))?;
    let mut profiles = QosProvider::new();
    profiles.add_root(source, Format::Toml, &toml_tree::parse(source, text)?)?;
    let known = ["participant", "qos_library"];
    let participants = tables(root.get_ref(), "participant", &known).map_err(|what| wrong("", what))?;
    let mut all = Vec::new();
    for (at, table) in participants.iter().enumerate() {
        let element = format!("participant[{at}]");
        all.push(participant(table, &profiles).map_err(|what| wrong(&element, what))?);
    }
    Ok(all)
}

fn get<'a>(table: &'a DeTable<'a>, key: &str) -> Option<&'a DeValue<'a>> {
    table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value.get_ref())
}

fn as_text<'a>(value: &'a DeValue<'a>) -> Option<&'a str> {
    match value {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

/// Returns the tables of an array. Fails on an unknown key.
fn tables<'a>(table: &'a DeTable<'a>, key: &str, known: &[&str]) -> std::result::Result<Vec<&'a DeTable<'a>>, String> {
    let mut keys = table.iter().map(|(key, _)| key.get_ref().as_ref());
    if let Some(unknown) = keys.find(|key| !known.contains(key)) {
        return Err(format!("unknown key '{unknown}'; expected one of {}", known.join(", ")));
    }
    match get(table, key) {
        None => Ok(Vec::new()),
        Some(DeValue::Array(values)) => {
            let tables = values.iter().map(|value| match value.get_ref() {
                DeValue::Table(table) => Ok(table),
                _ => Err(format!("{key} is not a table")),
            });
            tables.collect()
        }
        Some(_) => Err(format!("{key} is not an array of tables")),
    }
}

fn participant(table: &DeTable<'_>, profiles: &QosProvider) -> std::result::Result<StaticParticipant, String> {
    let known = ["name", "writer", "reader"];
    let mut found = StaticParticipant { name: text(table, "name")?, ..StaticParticipant::default() };
    for writer in tables(table, "writer", &known)? {
        let endpoint = Endpoint::read(writer)?;
        let mut data = PublicationData::default();
        if let Some(profile) = &endpoint.profile {
            let publisher = profiles.publisher_qos(profile).map_err(|error| error.to_string())?;
            data.qos = profiles.datawriter_qos(profile, &endpoint.topic).map_err(|error| error.to_string())?;
            (data.partition, data.presentation) = (publisher.partition, publisher.presentation);
        }
        data.qos.reliability = endpoint.reliability.unwrap_or(data.qos.reliability);
        data.qos.durability = endpoint.durability.unwrap_or(data.qos.durability);
        data.partition = endpoint.partition.unwrap_or(data.partition);
        data.guid.entity_id = EntityId::user_writer(endpoint.entity, endpoint.keyed);
        (data.topic_name, data.type_name) = (endpoint.topic, endpoint.type_name);
        found.publications.push(data);
    }
    for reader in tables(table, "reader", &known)? {
        let endpoint = Endpoint::read(reader)?;
        let mut data = SubscriptionData::default();
        if let Some(profile) = &endpoint.profile {
            let subscriber = profiles.subscriber_qos(profile).map_err(|error| error.to_string())?;
            data.qos = profiles.datareader_qos(profile, &endpoint.topic).map_err(|error| error.to_string())?;
            (data.partition, data.presentation) = (subscriber.partition, subscriber.presentation);
        }
        data.qos.reliability = endpoint.reliability.unwrap_or(data.qos.reliability);
        data.qos.durability = endpoint.durability.unwrap_or(data.qos.durability);
        data.partition = endpoint.partition.unwrap_or(data.partition);
        data.guid.entity_id = EntityId::user_reader(endpoint.entity, endpoint.keyed);
        (data.topic_name, data.type_name) = (endpoint.topic, endpoint.type_name);
        found.subscriptions.push(data);
    }
    Ok(found)
}

/// Entry of a writer or a reader.
struct Endpoint {
    topic: String,
    type_name: String,
    entity: u32,
    keyed: bool,
    profile: Option<String>,
    reliability: Option<Reliability>,
    durability: Option<Durability>,
    partition: Option<Partition>,
}

impl Endpoint {
    fn read(table: &DeTable<'_>) -> std::result::Result<Self, String> {
        let known = ["topic", "type", "entity", "keyed", "profile", "reliability", "durability", "partition"];
        tables(table, "", &known)?;
        let entity = match get(table, "entity") {
            Some(DeValue::Integer(id)) => u32::from_str_radix(id.as_str(), id.radix()).unwrap_or(0),
            _ => 0,
        };
        if !(1..1 << 24).contains(&entity) {
            return Err("entity must be a number from 1 to 16777215".to_owned());
        }
        let keyed = match get(table, "keyed") {
            None => false,
            Some(DeValue::Boolean(keyed)) => *keyed,
            Some(_) => return Err("keyed must be true or false".to_owned()),
        };
        let reliability = match choice(table, "reliability")? {
            None => None,
            Some("reliable") => Some(Reliability::RELIABLE),
            Some("best_effort") => Some(Reliability::BEST_EFFORT),
            Some(other) => return Err(format!("reliability is '{other}'; expected reliable or best_effort")),
        };
        let durability = match choice(table, "durability")? {
            None => None,
            Some("volatile") => Some(Durability::Volatile),
            Some("transient_local") => Some(Durability::TransientLocal),
            Some(other) => return Err(format!("durability is '{other}'; expected volatile or transient_local")),
        };
        let partition = match get(table, "partition") {
            None => None,
            Some(DeValue::Array(names)) => {
                let names = names.iter().map(|name| as_text(name.get_ref()).map(str::to_owned));
                Some(Partition { names: names.collect::<Option<_>>().ok_or("partition must be an array of strings")? })
            }
            Some(_) => return Err("partition must be an array of strings".to_owned()),
        };
        let (topic, type_name) = (text(table, "topic")?, text(table, "type")?);
        let profile = choice(table, "profile")?.map(str::to_owned);
        Ok(Self { topic, type_name, entity, keyed, profile, reliability, durability, partition })
    }
}

fn text(table: &DeTable<'_>, key: &str) -> std::result::Result<String, String> {
    get(table, key).and_then(as_text).map(str::to_owned).ok_or_else(|| format!("{key} is missing or not a string"))
}

fn choice<'a>(table: &'a DeTable<'a>, key: &str) -> std::result::Result<Option<&'a str>, String> {
    get(table, key).map(|value| as_text(value).ok_or_else(|| format!("{key} is not a string"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[participant]]
        name = "camera"
        [[participant.writer]]
        topic = "Image"
        type = "sensor::Image"
        entity = 1
        keyed = true
        durability = "transient_local"
        partition = ["left"]

        [[participant]]
        name = "display"
        [[participant.reader]]
        topic = "Image"
        type = "sensor::Image"
        entity = 1
        keyed = true
        reliability = "reliable"
        partition = ["*"]
    "#;

    #[test]
    fn file_describes_all_endpoints() {
        let all = parse_static_endpoints("f", FILE).expect("well-formed");
        let names: Vec<_> = all.iter().map(|participant| participant.name.as_str()).collect();
        assert_eq!(names, ["camera", "display"]);
        let writer = &all[0].publications[0];
        assert_eq!((writer.topic_name.as_str(), writer.qos.durability), ("Image", Durability::TransientLocal));
        assert_eq!(writer.partition.names, ["left"]);
        assert_eq!(writer.guid.entity_id, EntityId::user_writer(1, true));
        assert_eq!(all[1].subscriptions[0].qos.reliability, Reliability::RELIABLE);
    }

    #[test]
    fn profile_gives_all_policies_except_those_of_the_entry() {
        let profile = r#"
            [qos_library.Camera.Stream]
            datawriter_qos = { deadline.period = "1 s", durability.kind = "VOLATILE", ownership.kind = "EXCLUSIVE" }
            datareader_qos.deadline.period = "2 s"
            publisher_qos.presentation.access_scope = "TOPIC"
            subscriber_qos.presentation.ordered_access = true
        "#;
        let file = FILE.replace("entity = 1", "entity = 1\n profile = \"Camera::Stream\"") + profile;
        let all = parse_static_endpoints("f", &file).expect("well-formed");
        let (writer, reader) = (&all[0].publications[0], &all[1].subscriptions[0]);
        assert_eq!(writer.qos.deadline.period, takt::Duration::from_secs(1));
        assert_eq!(writer.qos.ownership, takt::qos::Ownership::Exclusive);
        assert_eq!(writer.qos.durability, Durability::TransientLocal, "the entry states it");
        assert_eq!(writer.partition.names, ["left"]);
        assert_eq!(writer.presentation.access_scope, takt::qos::AccessScope::Topic);
        assert_eq!(reader.qos.deadline.period, takt::Duration::from_secs(2));
        assert!(reader.presentation.ordered_access);
        let error = parse_static_endpoints("f", &file.replace("Camera::Stream", "Camera::Strean")).expect_err("a typo");
        assert!(error.to_string().contains("Camera::Strean"), "{error}");
    }

    #[test]
    fn mistakes_are_reported() {
        for (from, to, what) in [
            ("entity = 1", "entity = 0", "entity"),
            ("entity = 1", "entity = 16777216", "entity"),
            ("topic = \"Image\"", "topc = \"Image\"", "topc"),
            ("\"transient_local\"", "\"persistent\"", "persistent"),
            ("name = \"camera\"", "", "name"),
            ("[\"left\"]", "\"left\"", "partition"),
            ("[[participant]]", "participants = 1\n[[participant]]", "participants"),
        ] {
            let error = parse_static_endpoints("f", &FILE.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.starts_with("f: ") && error.contains(what), "{error}");
        }
    }

    #[derive(takt::DdsType, Clone, Debug, Default, PartialEq)]
    #[dds(name = "sensor::Image")]
    struct Image {
        #[dds(key)]
        number: u32,
    }

    /// The participants use unicast on loopback.
    #[test]
    fn participants_that_share_a_file_match() {
        use takt::qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
        let domain = takt_testkit::domain::domain();
        let join = |name: &str| {
            let builder =
                takt::DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]).multicast(false);
            let list = parse_static_endpoints("f", FILE).expect("well-formed");
            builder.name(name).static_endpoints(list).build().expect("participant")
        };
        let (camera, display) = (join("camera"), join("display"));
        let partition = Partition { names: vec!["left".to_owned()] };
        let topic = camera.create_topic::<Image>("Image", TopicQos::default()).expect("topic");
        let publisher = camera.create_publisher(PublisherQos { partition, ..Default::default() }).expect("publisher");
        let qos = DataWriterQos { durability: Durability::Volatile, ..Default::default() };
        let refused = publisher.create_datawriter(&topic, qos).map(drop).expect_err("the file states something else");
        assert!(refused.to_string().contains("DURABILITY"), "{refused}");
        let qos = DataWriterQos { durability: Durability::TransientLocal, ..Default::default() };
        let writer = publisher.create_datawriter(&topic, qos).expect("writer");
        let topic = display.create_topic::<Image>("Image", TopicQos::default()).expect("topic");
        let partition = Partition { names: vec!["*".to_owned()] };
        let subscriber =
            display.create_subscriber(SubscriberQos { partition, ..Default::default() }).expect("subscriber");
        let qos = DataReaderQos { reliability: Reliability::RELIABLE, ..Default::default() };
        let refused =
            subscriber.create_datareader(&topic, DataReaderQos::default()).map(drop).expect_err("best effort");
        assert!(refused.to_string().contains("RELIABILITY"), "{refused}");
        let reader = subscriber.create_datareader(&topic, qos).expect("reader");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        // A volatile reader receives what is written after the match.
        while writer.matched_subscriptions().expect("open").is_empty() {
            assert!(std::time::Instant::now() < deadline, "no match");
            std::thread::yield_now();
        }
        writer.write(&Image { number: 7 }).expect("room");
        while reader.take(1).expect("open").first().is_none_or(|sample| sample.data != Some(Image { number: 7 })) {
            assert!(std::time::Instant::now() < deadline, "nothing arrives");
            std::thread::yield_now();
        }
        let matched = writer.matched_subscriptions().expect("open");
        assert_eq!(matched[0].entity_id, EntityId::user_reader(1, true));
    }

    #[test]
    fn missing_file_is_an_error() {
        let error = read_static_endpoints("/nowhere/endpoints.toml").expect_err("no file").to_string();
        assert!(error.contains("endpoints.toml"), "{error}");
    }
}
