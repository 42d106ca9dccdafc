//! The builtin logging topic of DDS Security (DDS-SEC 1.1 §8.6, §9.6): log entries of the security
//! plugins as samples.
//!
//! A participant has the writer if
//! [`SecurityConfig::distributes_log`](super::SecurityConfig::distributes_log) is set. Governance
//! and permissions apply to it as to any endpoint. It is RELIABLE and TRANSIENT_LOCAL, and keeps
//! the last [`LOG_TOPIC_DEPTH`] entries for late joiners.

use std::collections::BTreeMap;

use takt_core::security::{SecurityLogEntry, SecuritySeverity};
use takt_core::{ChangeKind, Instant, NewChange, Participant, WriteError, WriterFlows, WriterHandle, WriterSpec};
use takt_derive::DdsType;
use takt_wire::qos::{DataWriterQos, Durability, History, PublisherQos, Reliability, ReliabilityKind, TopicData};
use takt_xtypes::{Representation, TypeSupport, serialize, serialized_len};

use crate::dynamic::announce;
use crate::{Error, Result};

/// Name of the topic.
pub const LOG_TOPIC_NAME: &str = "DDS:Security:LogTopicV2";
/// Number of entries kept for late joiners.
pub const LOG_TOPIC_DEPTH: u32 = 256;

/// Facility of security and authorization messages (RFC 5424 §6.2.1).
const FACILITY: u8 = 10;
/// Message id of all entries.
const MESSAGE_ID: &str = "security";
/// Id of the structured data element of DDS.
const STRUCTURED_DATA_ID: &str = "DDS";

/// Severity of an entry (RFC 5424 §6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDSSecurity::LoggingLevel", extensibility = "final")]
pub enum LoggingLevel {
    /// The system is unusable.
    #[dds(name = "EMERGENCY_LEVEL")]
    Emergency,
    /// Action must be taken immediately.
    #[dds(name = "ALERT_LEVEL")]
    Alert,
    /// A critical condition exists.
    #[dds(name = "CRITICAL_LEVEL")]
    Critical,
    /// The participant cannot perform its function.
    #[dds(name = "ERROR_LEVEL")]
    Error,
    /// A remote participant, or a message from it, was rejected.
    #[dds(name = "WARNING_LEVEL")]
    Warning,
    /// A remote participant was authenticated, or its authentication has expired.
    #[dds(name = "NOTICE_LEVEL")]
    Notice,
    /// Informational message.
    #[dds(name = "INFO_LEVEL")]
    #[default]
    Info,
    /// Debug message.
    #[dds(name = "DEBUG_LEVEL")]
    Debug,
}

impl From<SecuritySeverity> for LoggingLevel {
    fn from(severity: SecuritySeverity) -> Self {
        match severity {
            SecuritySeverity::Error => Self::Error,
            SecuritySeverity::Warning => Self::Warning,
            SecuritySeverity::Notice => Self::Notice,
        }
    }
}

/// Time since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDS::Time_t", extensibility = "final")]
pub struct LogTime {
    /// Whole seconds.
    pub sec: i32,
    /// Nanoseconds within the second.
    pub nanosec: u32,
}

/// Pair of name and value.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDSSecurity::NameValuePair", extensibility = "final")]
pub struct NameValuePair {
    /// Name of the value.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Log entry: the type of the samples of [`LOG_TOPIC_NAME`].
///
/// # Examples
/// ```no_run
/// use takt::qos::{DataReaderQos, Durability, Reliability};
/// use takt::{BuiltinLoggingTypeV2, DomainParticipant, LOG_TOPIC_NAME};
///
/// let auditor = DomainParticipant::builder(0).security_directory("keys/enclaves/auditor").build()?;
/// let topic = auditor.create_topic::<BuiltinLoggingTypeV2>(LOG_TOPIC_NAME, Default::default())?;
/// let subscriber = auditor.create_subscriber(Default::default())?;
/// let (reliability, durability) = (Reliability::RELIABLE, Durability::TransientLocal);
/// let qos = DataReaderQos { reliability, durability, ..DataReaderQos::default() };
/// let reader = subscriber.create_datareader(&topic, qos)?;
/// for entry in reader.take(usize::MAX)?.into_iter().filter_map(|sample| sample.data) {
///     println!("{}: {}", entry.appname, entry.message);
/// }
/// # Ok::<(), takt::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDSSecurity::BuiltinLoggingTypeV2", extensibility = "final")]
pub struct BuiltinLoggingTypeV2 {
    /// Facility; always 10, security and authorization messages.
    pub facility: u8,
    /// Severity of the entry.
    pub severity: LoggingLevel,
    /// Time of the event by the wall clock of the participant.
    pub timestamp: LogTime,
    /// Name of the participant's host.
    pub hostname: String,
    /// IP address of that host; empty if unknown.
    pub hostip: String,
    /// Name of the participant.
    pub appname: String,
    /// Id of the participant's process.
    pub procid: String,
    /// Message id; always `security`.
    pub msgid: String,
    /// Description of the event and its reason.
    pub message: String,
    /// Structured data: the element `DDS` with `guid` and `domain_id` of the participant.
    pub structured_data: BTreeMap<String, Vec<NameValuePair>>,
}

/// Identity of the participant in its log entries.
pub(crate) struct Origin {
    pub(crate) hostname: String,
    pub(crate) hostip: String,
    pub(crate) name: String,
    pub(crate) domain_id: u32,
}

/// Writer of a participant's security log.
pub(crate) struct LogTopic {
    writer: WriterHandle,
    /// Entry with the constant fields filled in.
    blank: BuiltinLoggingTypeV2,
}

impl LogTopic {
    /// Creates the writer.
    ///
    /// # Errors
    /// [`Error::NotAllowedBySecurity`](crate::Error::NotAllowedBySecurity) if governance or
    /// permissions do not allow it.
    pub(crate) fn create(core: &mut Participant, now: Instant, origin: Origin) -> Result<Self> {
        let qos = DataWriterQos {
            reliability: Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO },
            durability: Durability::TransientLocal,
            history: History::KeepLast(LOG_TOPIC_DEPTH),
            ..DataWriterQos::default()
        };
        let spec = WriterSpec {
            topic_name: LOG_TOPIC_NAME.to_owned(),
            type_name: BuiltinLoggingTypeV2::TYPE_NAME.to_owned(),
            keyed: false,
            qos,
            publisher: PublisherQos::default(),
            group: None,
            topic_data: TopicData::default(),
            type_information: announce::<BuiltinLoggingTypeV2>(core),
            max_serialized_len: None,
            flows: WriterFlows::default(),
            unicast: Vec::new(),
            filters: None,
        };
        let writer = core.create_writer(now, spec)?;
        let pair = |name: &str, value: String| NameValuePair { name: name.to_owned(), value };
        let of_dds = vec![pair("guid", core.guid().to_string()), pair("domain_id", origin.domain_id.to_string())];
        let blank = BuiltinLoggingTypeV2 {
            facility: FACILITY,
            hostname: origin.hostname,
            hostip: origin.hostip,
            appname: origin.name,
            procid: std::process::id().to_string(),
            msgid: MESSAGE_ID.to_owned(),
            structured_data: BTreeMap::from([(STRUCTURED_DATA_ID.to_owned(), of_dds)]),
            ..BuiltinLoggingTypeV2::default()
        };
        Ok(Self { writer, blank })
    }

    /// Publishes an entry.
    ///
    /// # Errors
    /// Fails if the writer has no memory for the entry, or if it cannot be serialized.
    pub(crate) fn publish(&mut self, core: &mut Participant, now: Instant, entry: &SecurityLogEntry) -> Result<()> {
        let sample = BuiltinLoggingTypeV2 {
            severity: entry.severity.into(),
            timestamp: log_time(entry.at.to_nanos()),
            message: entry.text.clone(),
            ..self.blank.clone()
        };
        let payload_len = serialized_len(&sample, Representation::Xcdr1);
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: Some(entry.at),
            destinations: &[],
            payload_len,
        };
        let mut failure = None;
        let written = core.write(now, self.writer, &change, |slot| {
            serialize(&sample, Representation::Xcdr1, slot).map_err(|error| failure = Some(error)).ok()
        });
        match written {
            Ok(_) | Err(WriteError::WouldBlock) => Ok(()),
            Err(WriteError::Refused(error)) => Err(error.into()),
            Err(WriteError::Serialize) => {
                let what = "log entry cannot be serialized";
                Err(match failure {
                    Some(error) => Error::bad_parameter_from(format!("{what}: {error}"), error),
                    None => Error::bad_parameter(what),
                })
            }
        }
    }
}

fn log_time(nanoseconds: i64) -> LogTime {
    const SECOND: i64 = 1_000_000_000;
    LogTime {
        sec: i32::try_from(nanoseconds.div_euclid(SECOND)).unwrap_or(i32::MAX),
        nanosec: u32::try_from(nanoseconds.rem_euclid(SECOND)).unwrap_or_default(),
    }
}
