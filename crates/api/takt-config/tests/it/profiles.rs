//! QoS libraries, inheritance, topic filters, and equivalence of the two formats.

use takt::Duration;
use takt::qos::{
    DataRepresentation, Durability, History, LivelinessKind, Ownership, Partition, PropertyEntry, ReliabilityKind,
};
use takt_config::{Entity, Format, QosProvider};

const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.omg.org/spec/DDS-XML" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
     xsi:schemaLocation="http://www.omg.org/spec/DDS-XML qos.xsd">
  <qos_library name="Base">
    <qos_profile name="Strict">
      <datawriter_qos>
        <reliability>
          <kind>RELIABLE_RELIABILITY_QOS</kind>
          <max_blocking_time><sec>1</sec><nanosec>500000000</nanosec></max_blocking_time>
        </reliability>
        <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
      </datawriter_qos>
      <datareader_qos>
        <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
        <history><depth>7</depth></history>
      </datareader_qos>
    </qos_profile>
    <datareader_qos name="Late" base_name="Strict">
      <durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability>
    </datareader_qos>
  </qos_library>
  <qos_library name="Robots">
    <qos_profile name="Telemetry" base_name="Base::Strict" is_default_qos="true">
      <datawriter_qos topic_filter="Fast*">
        <history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>3</depth></history>
        <deadline><period><sec>0</sec><nanosec>20000000</nanosec></period></deadline>
      </datawriter_qos>
      <datawriter_qos topic_filter="*Slow">
        <lifespan><duration><sec>DURATION_INFINITE_SEC</sec><nanosec>DURATION_INFINITE_NSEC</nanosec></duration></lifespan>
        <ownership><kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership>
        <ownership_strength><value>12</value></ownership_strength>
      </datawriter_qos>
      <datawriter_qos>
        <user_data><value>84, 0x71, 255</value></user_data>
        <resource_limits>
          <max_samples>LENGTH_UNLIMITED</max_samples>
          <max_instances>10</max_instances>
          <initial_samples>128</initial_samples>
        </resource_limits>
        <data_representation><value><element>XCDR2_DATA_REPRESENTATION</element></value></data_representation>
      </datawriter_qos>
      <publisher_qos>
        <partition><name><element>a</element><element>b*</element></name></partition>
        <group_data><valueB64>AAEC</valueB64></group_data>
      </publisher_qos>
      <domain_participant_qos>
        <property><value><element><name>k</name><value>v</value><propagate>true</propagate></element></value></property>
      </domain_participant_qos>
      <topic_qos>
        <liveliness>
          <kind>MANUAL_BY_TOPIC_LIVELINESS_QOS</kind>
          <lease_duration><sec>2</sec></lease_duration>
        </liveliness>
      </topic_qos>
    </qos_profile>
  </qos_library>
</dds>"#;

const TOML: &str = r#"
[qos_library.Base.Strict.datawriter_qos]
reliability = { kind = "RELIABLE", max_blocking_time = "1500 ms" }
history.kind = "KEEP_ALL"

[qos_library.Base.Strict.datareader_qos]
reliability.kind = "RELIABLE_RELIABILITY_QOS"
history.depth = 7

[qos_library.Base.Late.datareader_qos]
base_name = "Strict"
durability.kind = "TRANSIENT_LOCAL"

[qos_library.Robots.Telemetry]
base_name = "Base::Strict"
is_default_qos = true

[[qos_library.Robots.Telemetry.datawriter_qos]]
topic_filter = "Fast*"
history = { kind = "KEEP_LAST", depth = 3 }
deadline.period = { sec = 0, nanosec = 20_000_000 }

[[qos_library.Robots.Telemetry.datawriter_qos]]
topic_filter = "*Slow"
lifespan.duration = "infinite"
ownership.kind = "EXCLUSIVE"
ownership_strength.value = 12

[[qos_library.Robots.Telemetry.datawriter_qos]]
user_data.value = [84, 0x71, 255]
resource_limits = { max_samples = "LENGTH_UNLIMITED", max_instances = 10, initial_samples = 128 }
data_representation.value = ["XCDR2"]

[qos_library.Robots.Telemetry.publisher_qos]
partition.name = ["a", "b*"]
group_data.valueB64 = "AAEC"

[qos_library.Robots.Telemetry.domain_participant_qos]
property.value = [{ name = "k", value = "v", propagate = true }]

[qos_library.Robots.Telemetry.topic_qos]
liveliness = { kind = "MANUAL_BY_TOPIC", lease_duration = "2 s" }
"#;

fn both() -> [QosProvider; 2] {
    [(XML, Format::Xml), (TOML, Format::Toml)]
        .map(|(text, format)| QosProvider::from_text("q", text, format).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn xml_and_toml_give_the_same_policies() {
    let [xml, toml] = both();
    assert_eq!(xml.profiles().collect::<Vec<_>>(), ["Base::Strict", "Base::Late", "Robots::Telemetry"]);
    assert_eq!(xml.profiles().collect::<Vec<_>>(), toml.profiles().collect::<Vec<_>>());
    assert_eq!((xml.default_profile(), toml.default_profile()), (Some("Robots::Telemetry"), Some("Robots::Telemetry")));
    for profile in ["Base::Strict", "Base::Late", "Robots::Telemetry"] {
        for topic in ["FastPose", "TooSlow", "Other"] {
            assert_eq!(xml.datawriter_qos(profile, topic), toml.datawriter_qos(profile, topic), "{profile} {topic}");
            assert_eq!(xml.datareader_qos(profile, topic), toml.datareader_qos(profile, topic), "{profile} {topic}");
            assert_eq!(xml.topic_qos(profile, topic), toml.topic_qos(profile, topic), "{profile} {topic}");
        }
        assert_eq!(xml.publisher_qos(profile), toml.publisher_qos(profile), "{profile}");
        assert_eq!(xml.subscriber_qos(profile), toml.subscriber_qos(profile), "{profile}");
        assert_eq!(xml.participant_qos(profile), toml.participant_qos(profile), "{profile}");
    }
}

#[test]
fn policies_not_set_by_a_profile_are_inherited_or_default() {
    let [profiles, _] = both();
    let strict = profiles.datawriter_qos("Base::Strict", "T").expect("there");
    assert_eq!(strict.history, History::KeepAll);
    assert_eq!(strict.reliability.max_blocking_time, Duration::from_millis(1500));
    assert_eq!(strict.durability, Durability::Volatile);
    let fast = profiles.datawriter_qos("Robots::Telemetry", "FastPose").expect("there");
    assert_eq!((fast.history, fast.deadline.period), (History::KeepLast(3), Duration::from_millis(20)));
    assert_eq!(fast.reliability, strict.reliability);
    let late = profiles.datareader_qos("Base::Late", "T").expect("there");
    assert_eq!((late.durability, late.history), (Durability::TransientLocal, History::KeepLast(7)));
    assert_eq!(late.reliability.kind, ReliabilityKind::Reliable);
}

#[test]
fn first_matching_filter_takes_precedence_over_policies_for_all_topics() {
    let [profiles, _] = both();
    let slow = profiles.datawriter_qos("", "FastAndSlow").expect("the default profile");
    assert_eq!((slow.history, slow.ownership), (History::KeepLast(3), Ownership::Shared), "Fast* stands first");
    let slow = profiles.datawriter_qos("", "Slow").expect("the default profile");
    assert_eq!((slow.ownership, slow.ownership_strength.0), (Ownership::Exclusive, 12));
    assert!(slow.lifespan.duration.is_infinite() && slow.user_data.0.is_empty());
    let other = profiles.datawriter_qos("", "Other").expect("the default profile");
    assert_eq!((other.ownership, other.user_data.0.as_slice()), (Ownership::Shared, &[84, 0x71, 255][..]));
    assert_eq!((other.resource_limits.max_samples, other.resource_limits.max_instances), (None, Some(10)));
    assert_eq!(other.data_representation, DataRepresentation::xcdr2());
}

#[test]
fn entities_without_a_topic_have_policies() {
    let [profiles, _] = both();
    let publisher = profiles.publisher_qos("").expect("there");
    assert_eq!(publisher.partition, Partition { names: vec!["a".to_owned(), "b*".to_owned()] });
    assert_eq!(publisher.group_data.0, [0, 1, 2]);
    let participant = profiles.participant_qos("").expect("there");
    assert_eq!(participant.property.entries, [PropertyEntry::propagated("k", "v")]);
    let topic = profiles.topic_qos("", "T").expect("there");
    assert_eq!(
        (topic.liveliness.kind, topic.liveliness.lease_duration),
        (LivelinessKind::ManualByTopic, Duration::from_secs(2))
    );
}

#[test]
fn each_value_has_its_origin() {
    let [profiles, _] = both();
    let fields = profiles.explain("Robots::Telemetry", Entity::DataWriter, "FastPose").expect("there");
    let origin = |path: &str| {
        let found = fields.iter().find(|effective| effective.field().path() == path).expect("a field of writers");
        let origin = found.origin.as_ref().map(|(origin, profile)| format!("{origin} {profile}"));
        (found.value.to_string(), origin)
    };
    let from = |value: &str, origin: &str| (value.to_owned(), Some(origin.to_owned()));
    assert_eq!(origin("history.depth"), from("3", "q:25 Robots::Telemetry"));
    assert_eq!(origin("reliability.kind"), from("RELIABLE", "q:8 Base::Strict"));
    assert_eq!(origin("durability.kind"), ("VOLATILE".to_owned(), None));
}

#[test]
fn second_file_inherits_from_the_first() {
    let [mut profiles, _] = both();
    let text = "[qos_library.More.Deep]\nbase_name = \"Base::Strict\"\ndatawriter_qos.history.kind = \"KEEP_LAST\"\n";
    profiles.add_text("more.toml", text, Format::Toml).expect("well-formed");
    let qos = profiles.datawriter_qos("More::Deep", "T").expect("there");
    assert_eq!((qos.history, qos.reliability.max_blocking_time), (History::KeepLast(1), Duration::from_millis(1500)));
    let again = profiles.add_text("again.toml", text, Format::Toml).expect_err("twice").to_string();
    assert!(again.contains("More::Deep is already defined in more.toml:1"), "{again}");
}

/// Each level inherits twice from the previous one. A naive resolution would follow 2^200 paths.
#[test]
fn each_profile_is_resolved_once() {
    let mut text = "[qos_library.L.P0.datawriter_qos]\nhistory.depth = 9\n".to_owned();
    for level in 1..200 {
        let base = level - 1;
        text.push_str(&format!(
            "[qos_library.L.P{level}]\nbase_name = \"P{base}\"\ndatawriter_qos.base_name = \"P{base}\"\n"
        ));
    }
    let profiles = QosProvider::from_text("q", &text, Format::Toml).expect("well-formed");
    assert_eq!(profiles.datawriter_qos("L::P199", "T").expect("there").history, History::KeepLast(9));
}
