//! The builtin logging topic of DDS Security (DDS-SEC 1.1 §8.6, §9.6): log entries of the security plugins as samples.
//!
//! A participant has the writer if [`SecurityConfig::distributes_log`](super::SecurityConfig::distributes_log) is set. Governance and
//! permissions apply to it as to any endpoint. It is RELIABLE and TRANSIENT_LOCAL, and keeps the last [`LOG_TOPIC_DEPTH`] entries for
//! late joiners.

use std::collections::BTreeMap;

use takt_core::security::{SecurityLogEntry, SecuritySeverity};
use takt_core::{ChangeKind, Instant, NewChange, Participant, WriteError, WriterFlows, WriterHandle, WriterSpec};
use takt_derive::DdsType;
use takt_wire::qos::{DataWriterQos, Durability, History, PublisherQos, Reliability, ReliabilityKind, TopicData};
use takt_xtypes::{Representation, TypeSupport, serialize, serialized_len};

use crate::dynamic::announce;
use crate::{Error, Result};

/// The name of the topic.
pub const LOG_TOPIC_NAME: &str = "DDS:Security:LogTopicV2";
/// Entries for late joiners.
pub const LOG_TOPIC_DEPTH: u32 = 256;

/// The facility of messages of security and authorization (RFC 5424 §6.2.1).
const FACILITY: u8 = 10;
/// Identifies the kind of message.
const MESSAGE_ID: &str = "security";
/// The structured data of DDS.
const STRUCTURED_DATA_ID: &str = "DDS";

/// How much an entry matters (RFC 5424 §6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDSSecurity::LoggingLevel", extensibility = "final")]
pub enum LoggingLevel {
    /// The system is unusable.
    #[dds(name = "EMERGENCY_LEVEL")]
    Emergency,
    /// Action must be taken immediately.
    #[dds(name = "ALERT_LEVEL")]
    Alert,
    /// A critical condition.
    #[dds(name = "CRITICAL_LEVEL")]
    Critical,
    /// The participant cannot do what it has to.
    #[dds(name = "ERROR_LEVEL")]
    Error,
    /// Another participant was refused, or a message of it.
    #[dds(name = "WARNING_LEVEL")]
    Warning,
    /// Another participant was authenticated, or has expired.
    #[dds(name = "NOTICE_LEVEL")]
    Notice,
    /// For information.
    #[dds(name = "INFO_LEVEL")]
    #[default]
    Info,
    /// For developers.
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

/// A time since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDS::Time_t", extensibility = "final")]
pub struct LogTime {
    /// Seconds.
    pub sec: i32,
    /// And nanoseconds.
    pub nanosec: u32,
}

/// A value with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(crate = "takt_xtypes", name = "DDSSecurity::NameValuePair", extensibility = "final")]
pub struct NameValuePair {
    /// What it is.
    pub name: String,
    /// The value.
    pub value: String,
}

/// An entry of the log, as samples of [`LOG_TOPIC_NAME`] have it.
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
    /// 10: messages of security and authorization.
    pub facility: u8,
    /// How much it matters.
    pub severity: LoggingLevel,
    /// When it happened, by the wall clock of the participant.
    pub timestamp: LogTime,
    /// The host of the participant.
    pub hostname: String,
    /// An address of that host; empty if it is not known.
    pub hostip: String,
    /// The name of the participant.
    pub appname: String,
    /// The process.
    pub procid: String,
    /// `security`.
    pub msgid: String,
    /// What happened, and why.
    pub message: String,
    /// `DDS`: `guid` and `domain_id` of the participant.
    pub structured_data: BTreeMap<String, Vec<NameValuePair>>,
}

/// The participant as its log entries name it.
pub(crate) struct Origin {
    pub(crate) hostname: String,
    pub(crate) hostip: String,
    pub(crate) name: String,
    pub(crate) domain_id: u32,
}

/// The writer of a participant's log.
pub(crate) struct LogTopic {
    writer: WriterHandle,
    /// An entry without time and message.
    blank: BuiltinLoggingTypeV2,
}

impl LogTopic {
    /// Makes the writer.
    ///
    /// # Errors
    /// [`Error::NotAllowedBySecurity`](crate::Error::NotAllowedBySecurity) if governance or permissions do not allow it.
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

    /// Writes an entry.
    ///
    /// # Errors
    /// The writer has no memory for it, or it cannot be serialized.
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
                let cause = failure.map_or_else(String::new, |error| format!(": {error}"));
                Err(Error::BadParameter { what: format!("log entry cannot be serialized{cause}") })
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
