//! Conversion of configuration files of other vendors.

use takt::Duration;
use takt::qos::{Durability, History, LivelinessKind, PropertyEntry, ReliabilityKind};
use takt_config::{Conversion, Format, Settings, Vendor, convert};

const CYCLONEDDS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="7">
    <General>
      <Interfaces>
        <NetworkInterface name="eth1" priority="10" multicast="default"/>
        <NetworkInterface address="192.168.3.4"/>
      </Interfaces>
      <AllowMulticast>spdp</AllowMulticast>
      <MaxMessageSize>65500B</MaxMessageSize>
    </General>
    <Discovery>
      <ParticipantIndex>auto</ParticipantIndex>
      <LeaseDuration>5 s</LeaseDuration>
      <SPDPInterval>1s</SPDPInterval>
      <Peers>
        <Peer Address="10.0.0.2"/>
        <Peer Address="10.0.0.3:7410"/>
      </Peers>
      <Ports><Base>7500</Base></Ports>
    </Discovery>
    <Internal>
      <SocketReceiveBufferSize min="10MB"/>
      <SquashParticipants>true</SquashParticipants>
    </Internal>
    <Security>
      <Authentication>
        <Library initFunction="init_authentication"/>
        <IdentityCA>file:/keys/ca.pem</IdentityCA>
        <PrivateKey>file:/keys/key.pem</PrivateKey>
      </Authentication>
    </Security>
    <Tracing><Verbosity>config</Verbosity></Tracing>
  </Domain>
  <Domain Id="8"/>
</CycloneDDS>"#;

const FAST_DDS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com">
  <profiles>
    <transport_descriptors>
      <transport_descriptor>
        <transport_id>wired</transport_id>
        <type>UDPv4</type>
        <interfaceWhiteList><address>192.168.1.41</address></interfaceWhiteList>
        <TTL>3</TTL>
        <maxMessageSize>1400</maxMessageSize>
      </transport_descriptor>
    </transport_descriptors>
    <participant profile_name="other"><domainId>1</domainId></participant>
    <participant profile_name="camera" is_default_profile="true">
      <domainId>4</domainId>
      <rtps>
        <name>camera</name>
        <useBuiltinTransports>false</useBuiltinTransports>
        <userTransports><transport_id>wired</transport_id></userTransports>
        <propertiesPolicy><properties>
          <property><name>dds.sec.auth.builtin.PKI-DH.identity_ca</name><value>file:///ca.pem</value></property>
          <property><name>fastdds.statistics</name><value>HISTORY_LATENCY_TOPIC</value></property>
        </properties></propertiesPolicy>
        <builtin>
          <discovery_config>
            <leaseDuration><sec>10</sec></leaseDuration>
            <discoveryProtocol>CLIENT</discoveryProtocol>
            <discoveryServersList>
              <locator><udpv4><address>10.0.0.9</address></udpv4></locator>
            </discoveryServersList>
          </discovery_config>
          <initialPeersList>
            <locator><udpv4><address>10.0.0.2</address><port>7412</port></udpv4></locator>
          </initialPeersList>
        </builtin>
      </rtps>
    </participant>
    <data_writer profile_name="fast writer">
      <topic>
        <historyQos><kind>KEEP_LAST</kind><depth>20</depth></historyQos>
        <resourceLimitsQos><max_samples>0</max_samples><max_instances>5</max_instances></resourceLimitsQos>
      </topic>
      <qos>
        <reliability><kind>RELIABLE</kind><max_blocking_time><sec>1</sec><nanosec>5</nanosec></max_blocking_time></reliability>
        <durability><kind>TRANSIENT_LOCAL</kind></durability>
        <liveliness><kind>MANUAL_BY_TOPIC</kind><lease_duration><sec>DURATION_INFINITY</sec></lease_duration></liveliness>
        <partition><names><name>A</name><name>B</name></names></partition>
        <userData><value>3.2.0</value></userData>
        <publishMode><kind>ASYNCHRONOUS</kind></publishMode>
      </qos>
    </data_writer>
  </profiles>
</dds>"#;

const CONNEXT: &str = r#"<dds version="7.3.0">
  <qos_library name="Robots">
    <qos_profile name="Base" is_default_qos="true">
      <domain_participant_qos>
        <discovery><initial_peers>
          <element>239.255.0.1</element>
          <element>4@udpv4://10.0.0.2</element>
          <element>shmem://</element>
        </initial_peers></discovery>
        <discovery_config>
          <participant_liveliness_lease_duration><sec>8</sec><nanosec>0</nanosec></participant_liveliness_lease_duration>
        </discovery_config>
        <transport_builtin><mask>UDPv4</mask></transport_builtin>
        <property><value>
          <element><name>dds.transport.UDPv4.builtin.parent.allow_interfaces_list</name><value>eth1</value></element>
          <element><name>com.example.role</name><value>camera</value><propagate>true</propagate></element>
          <element><name>dds.transport.shmem.builtin.received_message_count_max</name><value>64</value></element>
        </value></property>
      </domain_participant_qos>
      <datawriter_qos topic_filter="Fast*">
        <reliability>
          <kind>RELIABLE_RELIABILITY_QOS</kind>
          <max_blocking_time><sec>0</sec><nanosec>300000000</nanosec></max_blocking_time>
          <acknowledgment_kind>PROTOCOL_ACKNOWLEDGMENT_MODE</acknowledgment_kind>
        </reliability>
        <batch><enable>true</enable></batch>
      </datawriter_qos>
    </qos_profile>
    <qos_profile name="Derived" base_name="Base">
      <datareader_qos base_name="BuiltinQosLib::Generic.StrictReliable">
        <deadline><period><sec>DURATION_INFINITE_SEC</sec><nanosec>DURATION_INFINITE_NSEC</nanosec></period></deadline>
        <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
        <resource_limits><max_samples>LENGTH_UNLIMITED</max_samples></resource_limits>
      </datareader_qos>
    </qos_profile>
  </qos_library>
  <participant_library name="P"/>
</dds>"#;

fn converted(text: &str) -> (Conversion, Settings) {
    let conversion = convert("vendor.xml", text).expect("convertible");
    let mut settings = Settings::new();
    settings.add_text("converted.toml", &conversion.toml, Format::Toml).expect("readable");
    (conversion, settings)
}

fn setting(settings: &Settings, path: &str) -> Option<String> {
    let found = settings.explain().find(|setting| setting.setting.path() == path).expect("the setting exists");
    found.value.map(|value| value.to_string())
}

/// Returns the last components of the paths of the omitted elements.
fn omitted(conversion: &Conversion) -> Vec<&str> {
    conversion.omissions.iter().map(|omission| omission.element.rsplit('/').next().expect("one part")).collect()
}

#[test]
fn cyclonedds_file_becomes_settings() {
    let (conversion, settings) = converted(CYCLONEDDS);
    assert_eq!(conversion.vendor, Vendor::CycloneDds);
    let expected = [
        ("participant.domain", "7"),
        ("participant.lease_duration", "5 s"),
        ("participant.announcement_period", "1 s"),
        ("participant.qos_profile", "CycloneDDS::Security"),
        ("network.interfaces", "eth1,192.168.3.4"),
        ("network.peers", "10.0.0.2,10.0.0.3:7410"),
        ("network.multicast_readers_min", "0"),
        ("udp.port_base", "7500"),
        ("udp.receive_buffer_bytes", "10485760"),
    ];
    for (path, value) in expected {
        assert_eq!(setting(&settings, path).as_deref(), Some(value), "{path}");
    }
    assert_eq!(settings.explain().filter(|setting| setting.value.is_some()).count(), expected.len());
    let qos = settings.profiles().participant_qos("CycloneDDS::Security").expect("the profile is written");
    let properties: Vec<(&str, &str)> =
        qos.property.entries.iter().map(|entry| (entry.name.as_str(), entry.value.as_str())).collect();
    assert_eq!(
        properties,
        [("dds.sec.auth.identity_ca", "file:/keys/ca.pem"), ("dds.sec.auth.private_key", "file:/keys/key.pem"),]
    );
    assert_eq!(
        omitted(&conversion),
        ["@priority", "MaxMessageSize", "SquashParticipants", "Library", "Verbosity", "Domain",]
    );
    let line = conversion.omissions.iter().find(|omission| omission.element.ends_with("MaxMessageSize"));
    assert_eq!(line.expect("it is omitted").origin.to_string(), "vendor.xml:10");
}

#[test]
fn fast_dds_file_becomes_settings_and_profiles() {
    let (conversion, settings) = converted(FAST_DDS);
    assert_eq!(conversion.vendor, Vendor::FastDds);
    let expected = [
        ("participant.domain", "4"),
        ("participant.name", "camera"),
        ("participant.lease_duration", "10 s"),
        ("participant.qos_profile", "FastDDS::Participant"),
        ("network.interfaces", "192.168.1.41"),
        ("network.peers", "10.0.0.2:7412"),
        ("network.discovery_servers", "10.0.0.9:11811"),
        ("udp.multicast_ttl", "3"),
    ];
    for (path, value) in expected {
        assert_eq!(setting(&settings, path).as_deref(), Some(value), "{path}");
    }
    assert_eq!(settings.explain().filter(|setting| setting.value.is_some()).count(), expected.len());
    let profiles = settings.profiles();
    let qos = profiles.datawriter_qos("FastDDS::fast_writer", "Pose").expect("the profile is written");
    assert_eq!(qos.reliability.kind, ReliabilityKind::Reliable);
    assert_eq!(qos.reliability.max_blocking_time, Duration::from_nanos(1_000_000_005));
    assert_eq!(qos.durability, Durability::TransientLocal);
    assert_eq!(qos.liveliness.kind, LivelinessKind::ManualByTopic);
    assert_eq!(qos.liveliness.lease_duration, Duration::INFINITE);
    assert_eq!(qos.history, History::KeepLast(20));
    assert_eq!((qos.resource_limits.max_samples, qos.resource_limits.max_instances), (None, Some(5)));
    assert_eq!(qos.user_data.0, [3, 2, 0]);
    let group = profiles.publisher_qos("FastDDS::fast_writer").expect("the profile is written");
    assert_eq!(group.partition.names, ["A", "B"]);
    let participant = profiles.participant_qos("FastDDS::Participant").expect("the profile is written");
    assert_eq!(participant.property.entries[0].name, "dds.sec.auth.identity_ca");
    assert_eq!(omitted(&conversion), ["participant", "useBuiltinTransports", "maxMessageSize", "publishMode"]);
}

#[test]
fn connext_file_keeps_standard_policies_and_reports_extensions() {
    let (conversion, settings) = converted(CONNEXT);
    assert_eq!(conversion.vendor, Vendor::Connext);
    let expected = [
        ("participant.lease_duration", "8 s"),
        ("network.interfaces", "eth1"),
        ("network.peers", "10.0.0.2"),
        ("network.shared_memory", "false"),
    ];
    for (path, value) in expected {
        assert_eq!(setting(&settings, path).as_deref(), Some(value), "{path}");
    }
    assert_eq!(settings.explain().filter(|setting| setting.value.is_some()).count(), expected.len());
    let profiles = settings.profiles();
    assert_eq!(profiles.default_profile(), Some("Robots::Base"));
    let participant = profiles.participant_qos("").expect("there is a default profile");
    assert_eq!(participant.property.entries, [PropertyEntry::propagated("com.example.role", "camera")]);
    let fast = profiles.datawriter_qos("Robots::Derived", "FastPose").expect("inherited");
    assert_eq!(fast.reliability.max_blocking_time, Duration::from_millis(300));
    let reader = profiles.datareader_qos("Robots::Derived", "Pose").expect("the profile is written");
    assert_eq!((reader.history, reader.deadline.period), (History::KeepAll, Duration::INFINITE));
    assert_eq!(
        omitted(&conversion),
        [
            "initial_peers",
            "dds.transport.shmem.builtin.received_message_count_max",
            "acknowledgment_kind",
            "batch",
            "@base_name BuiltinQosLib::Generic.StrictReliable",
            "participant_library",
        ]
    );
}

#[test]
fn values_that_takt_does_not_accept_are_omitted_with_the_expected_form() {
    let text =
        "<CycloneDDS><Domain Id='400'><Discovery><LeaseDuration>2 hr</LeaseDuration></Discovery></Domain></CycloneDDS>";
    let (conversion, settings) = converted(text);
    assert_eq!(settings.explain().filter(|setting| setting.value.is_some()).count(), 0);
    let reasons: Vec<String> = conversion.omissions.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].contains("a number from 0 to 232"), "{}", reasons[0]);
    assert!(reasons[1].contains("a duration such as"), "{}", reasons[1]);
}

#[test]
fn file_of_no_known_vendor_is_refused() {
    for text in ["<config/>", "<dds/>", "<qos_library name='L'/>", "no XML"] {
        assert!(convert("x.xml", text).is_err(), "{text}");
    }
    let error = convert("x.xml", "\n<config/>").expect_err("refused").to_string();
    assert!(error.starts_with("x.xml:2: config: root element of no known vendor"), "{error}");
}
