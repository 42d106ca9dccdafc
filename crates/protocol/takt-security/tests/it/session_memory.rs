//! Test that messages of a running session are protected and opened without allocation.

use takt_core::security::{AdmissionState, Security, SecurityChannel, SecurityMessage};
use takt_core::{Clocks, Instant};
use takt_security::documents::{
    BasicProtectionKind, DomainRule, DomainSet, Effect, Governance, Grant, Permissions, ProtectionKind, TopicRule,
};
use takt_security::identity::{Certificate, KeyAlgorithm, SubjectName, secure_guid_prefix};
use takt_security::tools::{Issuer, Validity, governance_xml, permissions_xml, sign_document};
use takt_security::{Plugin, Settings};
use takt_testkit::memory::allocations;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::Header;
use takt_wire::{
    DataEmit, Endianness, EntityId, Guid, GuidPrefix, MessageBuilder, Payload, ProtocolVersion, SequenceNumber,
    Timestamp, VendorId,
};

const NOW: u32 = 1_800_000_000;
const VALID: Validity = Validity { not_before: 0, not_after: 4_000_000_000 };
const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
const READER: EntityId = EntityId([0, 0, 1, 0x04]);
/// Length of INFO_TS, which precedes the SEC_PREFIX in the messages of this test.
const TIMESTAMP_LEN: usize = 12;

fn clocks() -> Clocks {
    Clocks { at: Instant(1), wall: Timestamp { seconds: NOW, fraction: 0 } }
}

fn governance(kind: ProtectionKind) -> Governance {
    let topic = TopicRule {
        topic_expression: "*".to_owned(),
        enable_discovery_protection: true,
        enable_liveliness_protection: true,
        enable_read_access_control: false,
        enable_write_access_control: false,
        metadata_protection_kind: kind,
        data_protection_kind: BasicProtectionKind::Encrypt,
    };
    let rule = DomainRule {
        domains: DomainSet(vec![(0, 0)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: kind,
        liveliness_protection_kind: kind,
        rtps_protection_kind: kind,
        topic_rules: vec![topic],
    };
    Governance { domain_rules: vec![rule] }
}

fn participant(issuer: &Issuer, name: &str, kind: ProtectionKind) -> (Plugin, ParticipantData) {
    let (identity_certificate, private_key) = issuer.issue(name, KeyAlgorithm::EcP256, VALID).expect("an identity");
    let certificate = Certificate::from_pem(&identity_certificate).expect("a certificate");
    let prefix = secure_guid_prefix(&certificate, GuidPrefix([1; 12])).expect("a prefix");
    let authority = issuer.certificate_pem().expect("PEM");
    let grant = Grant {
        name: name.to_owned(),
        subject: SubjectName::parse(&format!("CN={name}")).expect("a name"),
        not_before: 0,
        not_after: 4_000_000_000,
        rules: Vec::new(),
        default: Effect::Allow,
    };
    let settings = Settings {
        prefix,
        identity_certificate,
        private_key,
        identity_authority: authority.clone(),
        permissions_authority: authority,
        governance: sign_document(issuer, &governance_xml(&governance(kind))).expect("a signature"),
        permissions: sign_document(issuer, &permissions_xml(&Permissions { grants: vec![grant] }))
            .expect("a signature"),
        ..Settings::default()
    };
    let mut plugin = Plugin::new(settings, i64::from(NOW)).expect("it may exist");
    let announced = plugin.announced();
    let data = ParticipantData {
        guid: Guid::new(prefix, EntityId::PARTICIPANT),
        identity_token: Some(announced.identity_token),
        security_info: Some(announced.security_info),
        ..ParticipantData::default()
    };
    plugin.set_participant_data(data.to_bytes_with(Endianness::Big)[4..].to_vec());
    (plugin, data)
}

/// Delivers messages in both directions; those of the volatile endpoints after those of the
/// handshake.
fn run(plugins: &mut [Plugin; 2], prefixes: [GuidPrefix; 2]) {
    let (mut keys, mut is_idle): (Vec<(usize, SecurityMessage)>, bool) = (Vec::new(), false);
    while !is_idle {
        is_idle = true;
        for from in [0, 1] {
            while let Some(message) = plugins[from].poll_message(clocks()) {
                is_idle = false;
                if message.channel == SecurityChannel::Volatile {
                    keys.push((from, message));
                } else {
                    plugins[1 - from].handle_message(clocks(), message.channel, prefixes[from], &message.payload);
                }
            }
        }
    }
    for (from, message) in keys {
        plugins[1 - from].handle_message(clocks(), message.channel, prefixes[from], &message.payload);
    }
}

#[test]
fn messages_of_a_session_allocate_no_memory() {
    for kind in [ProtectionKind::Sign, ProtectionKind::EncryptWithOriginAuthentication] {
        let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, VALID).expect("an authority");
        let [(one, first), (two, second)] = ["Alice", "Bob"].map(|name| participant(&issuer, name, kind));
        let (mut plugins, prefixes) = ([one, two], [first.guid.prefix, second.guid.prefix]);
        assert_eq!(plugins[0].participant_discovered(clocks(), &second), AdmissionState::Authenticating);
        assert_eq!(plugins[1].participant_discovered(clocks(), &first), AdmissionState::Authenticating);
        run(&mut plugins, prefixes);
        let [writer, reader] = [Guid::new(prefixes[0], WRITER), Guid::new(prefixes[1], READER)];
        let topic_name = "topic".to_owned();
        let data = PublicationData { guid: writer, topic_name: topic_name.clone(), ..PublicationData::default() };
        plugins[0].admit_writer(clocks(), &data).expect("admitted");
        let data = SubscriptionData { guid: reader, topic_name, ..SubscriptionData::default() };
        plugins[1].admit_reader(clocks(), &data).expect("admitted");
        plugins[0].pair_matched(WRITER, reader);
        plugins[1].pair_matched(READER, writer);
        run(&mut plugins, prefixes);

        let (mut message, mut frame) = (vec![0; 2_048], vec![0; 4_096]);
        let mut memory = [(); 3].map(|()| vec![0; 4_096]);
        let mut pass = || {
            let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: prefixes[0] };
            let mut builder = MessageBuilder::new(&mut message, &header).expect("room");
            builder.info_timestamp(Some(Timestamp::ZERO)).expect("room");
            let data = DataEmit {
                reader: EntityId::UNKNOWN,
                writer: WRITER,
                sn: SequenceNumber(1),
                inline_qos: None,
                payload: Payload::Data(&[7; 1_024]),
            };
            builder.data(&data).expect("room");
            let len = plugins[0].protect(builder.bytes(), &mut frame).expect("sealed");
            let [of_message, of_submessages, of_payload] = &mut memory;
            let plain = plugins[1].open_message(&frame[..len], of_message).expect("opened");
            let protected = &plain[TIMESTAMP_LEN..];
            let opened = plugins[1].open_submessages(prefixes[0], protected, of_submessages).expect("opened");
            assert_eq!(opened.sender, WRITER);
            plugins[1].open_payload(writer, &opened.plain[24..], of_payload).expect("opened");
        };
        pass();
        assert_eq!(allocations(|| (0..100).for_each(|_| pass())), 0, "{kind:?}");
    }
}
