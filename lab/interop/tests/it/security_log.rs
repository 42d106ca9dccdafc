//! Builtin logging topic of DDS Security (DDS-SEC 1.1 §8.6, §9.6).

use takt::qos::{DataReaderQos, Durability, History, Reliability};
use takt::{BuiltinLoggingTypeV2, DomainParticipant, LOG_TOPIC_NAME, LoggingLevel};
use takt_security::documents::{BasicProtectionKind, ProtectionKind};
use takt_security::identity::KeyAlgorithm;
use takt_testkit::domain::claim;
use takt_testkit::waiting;

use crate::secure::{EnclaveDirectories, Variant};

/// A domain that the security documents of the tests cover.
const DOMAIN: u32 = 152;

const EVERYTHING_HIDDEN: Variant = Variant {
    discovery: ProtectionKind::Encrypt,
    liveliness: ProtectionKind::Encrypt,
    rtps: ProtectionKind::Encrypt,
    metadata: ProtectionKind::Encrypt,
    data: BasicProtectionKind::Encrypt,
    is_controlled: true,
    allows_unauthenticated: false,
};

#[test]
fn refused_participant_is_reported_on_the_log_topic() {
    claim(DOMAIN);
    let algorithms = [KeyAlgorithm::EcP256; 2];
    let enclaves = EnclaveDirectories::new("log", &EVERYTHING_HIDDEN, algorithms);
    let foreign = EnclaveDirectories::new("log-strangers", &EVERYTHING_HIDDEN, algorithms);
    let participant = |name: &str, directory: std::path::PathBuf, distributes: bool| {
        DomainParticipant::builder(DOMAIN)
            .name(name)
            .interfaces(["lo"])
            .peers(["127.0.0.1"])
            .security_directory(directory.display().to_string())
            .security_log_topic(distributes)
            .build()
            .expect("a participant")
    };
    // The untrusted participant has the lower GUID, so that it sends its certificate first.
    let watched = participant("watched", enclaves.right(), true);
    let foreign_participant = participant("stranger", foreign.left(), false);
    assert!(foreign_participant.guid() < watched.guid());
    let auditor = participant("auditor", enclaves.left(), false);
    let topic = auditor.create_topic::<BuiltinLoggingTypeV2>(LOG_TOPIC_NAME, Default::default()).expect("a topic");
    let subscriber = auditor.create_subscriber(Default::default()).expect("a subscriber");
    let qos = DataReaderQos {
        reliability: Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        history: History::KeepAll,
        ..DataReaderQos::default()
    };
    let reader = subscriber.create_datareader(&topic, qos).expect("a reader");
    let mut entries = Vec::new();
    let refusal = waiting::until_some("the refusal of the stranger in the log", || {
        entries.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
        entries.iter().find(|entry| entry.severity == LoggingLevel::Warning).cloned()
    });
    assert!(refusal.message.contains("certificate"), "{refusal:#?}");
    assert_eq!((refusal.facility, refusal.appname.as_str(), refusal.msgid.as_str()), (10, "watched", "security"));
    assert_eq!(refusal.procid, std::process::id().to_string());
    assert_eq!(refusal.hostip, "127.0.0.1");
    let of_dds = &refusal.structured_data["DDS"];
    assert!(of_dds.iter().any(|pair| pair.name == "domain_id" && pair.value == DOMAIN.to_string()), "{of_dds:?}");
    assert!(refusal.timestamp.sec > 1_700_000_000, "{:?}", refusal.timestamp);
}
