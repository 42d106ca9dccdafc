//! Contracts of writer and reader: minimum separation, jitter, size, latency limit, importance and
//! protection, each with its source.
//!
//! For each of the six values, the first source that has it counts:
//!
//! | value | sources, by precedence |
//! |---|---|
//! | separation | [`ContractFile`]; key `rt.min_sep_ns` or `rt.minsep` of the writer; finite DEADLINE of the writer |
//! | jitter | [`ContractFile`]; key `rt.jitter` of the writer; one separation |
//! | size | [`ContractFile`]; key `rt.max_bytes` or `rt.maxsize` of the writer; `PID_TYPE_MAX_SIZE_SERIALIZED` of the writer |
//! | limit | [`ContractFile`]; key `rt.e2e_ns` or `rt.e2e` of the reader; LATENCY_BUDGET of the reader; DEADLINE of the reader |
//! | importance | [`ContractFile`]; key `rt.importance` of the writer; TRANSPORT_PRIORITY of the writer; 0 |
//! | protection | [`ContractFile`]; key `rt.protected` of the writer; none |
//!
//! The `[default]` table of the [`ContractFile`], if it exists, is the last source of all values.
//!
//! DEADLINE promises that a sample arrives at least once in its period. Used as a separation it is
//! an assumption; the network polices it like a declared one. An infinite DEADLINE and a
//! LATENCY_BUDGET of zero or infinity, which are the defaults of DDS 1.4 §2.2.3.7 and §2.2.3.8, are
//! ignored.
//!
//! The size is the length in octets of a serialized sample with its encapsulation header, as in
//! [`takt_wire::qos::Contract`]; it excludes protocol octets. A pair without separation, size or
//! limit has no contract ([`NoContract`]); the size is never guessed from a type.

mod file;
mod keys;
mod span;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use takt_wire::discovery::{PublicationData, SubscriptionData};

pub use file::{CONTRACTS_MAX, ContractFile, FILE_LEN_MAX, FileError};
use keys::Declared;
pub(crate) use keys::fields as declared_fields;
pub use span::parse_span;

/// Source of a value of a contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The operator's file, at this line.
    File {
        /// Line of the key, starting at 1.
        line: usize,
    },
    /// A key in the USER_DATA or the properties of the writer.
    WriterKey(&'static str),
    /// A key in the USER_DATA or the properties of the reader.
    ReaderKey(&'static str),
    /// A QoS policy of the writer.
    WriterPolicy(&'static str),
    /// A QoS policy of the reader.
    ReaderPolicy(&'static str),
    /// `PID_TYPE_MAX_SIZE_SERIALIZED` of the writer.
    TypeMaxSize,
    /// A registration.
    Registration,
    /// The default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line } => write!(f, "contract file, line {line}"),
            Self::WriterKey(key) => write!(f, "key {key} of the writer"),
            Self::ReaderKey(key) => write!(f, "key {key} of the reader"),
            Self::WriterPolicy(policy) => write!(f, "{policy} of the writer"),
            Self::ReaderPolicy(policy) => write!(f, "{policy} of the reader"),
            Self::TypeMaxSize => f.write_str("PID_TYPE_MAX_SIZE_SERIALIZED of the writer"),
            Self::Registration => f.write_str("registration"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value with its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Source of the value.
    pub source: Source,
}

impl<T> Sourced<T> {
    /// Creates a value from a source.
    pub const fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }
}

/// Contract of one writer with one reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contract {
    /// Minimum time between two samples of the writer, over all instances; greater than zero.
    pub separation: Sourced<Duration>,
    /// Jitter: maximum delay of a sample, relative to its nominal time, at the interface. A writer
    /// that was delayed for this time sends all samples of that time at once. The jitter is part of
    /// neither the separation nor the limit.
    pub jitter: Sourced<Duration>,
    /// Length in octets of the longest serialized sample with its encapsulation header; greater
    /// than zero.
    pub size: Sourced<u32>,
    /// Limit of the time from writing to delivery; greater than zero.
    pub limit: Sourced<Duration>,
    /// Importance: flows of higher importance are kept when not all fit.
    pub importance: Sourced<i32>,
    /// Whether backup paths are reserved, which carry the samples when a link fails.
    pub is_protected: Sourced<bool>,
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { separation, jitter, size, limit, importance, is_protected } = self;
        write!(f, "{} octets ({}) every {:?} ({})", size.value, size.source, separation.value, separation.source)?;
        if jitter.source != Source::Default {
            write!(f, ", up to {:?} late ({}),", jitter.value, jitter.source)?;
        }
        write!(f, " within {:?} ({})", limit.value, limit.source)?;
        write!(f, ", importance {} ({})", importance.value, importance.source)?;
        if is_protected.value { write!(f, ", protected ({})", is_protected.source) } else { Ok(()) }
    }
}

/// A mandatory value of a contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// The minimum separation.
    Separation,
    /// The size of a sample.
    Size,
    /// The latency limit.
    Limit,
}

/// Error of a pair without a contract: no source has these values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoContract {
    /// Missing values, in the order of [`Value`].
    pub missing: Vec<Value>,
}

impl NoContract {
    /// Reports whether any of the three values has a source. If not, neither endpoint requests a
    /// contract.
    pub fn is_partial(&self) -> bool {
        self.missing.len() < 3
    }
}

impl fmt::Display for NoContract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self
            .missing
            .iter()
            .map(|value| match value {
                Value::Separation => "no separation: declare rt.min_sep_ns or DEADLINE at the writer",
                Value::Size => "no size: declare rt.max_bytes at the writer",
                Value::Limit => "no latency limit: declare rt.e2e_ns or LATENCY_BUDGET at the reader",
            })
            .collect();
        write!(f, "{}, or give it in the contract file", texts.join("; "))
    }
}

impl std::error::Error for NoContract {}

/// Resolves the contract of a writer and a reader of one topic. `file` holds the operator's
/// contracts, which take precedence over the values that the endpoints announce.
pub fn resolve(
    writer: &PublicationData,
    reader: &SubscriptionData,
    file: &ContractFile,
) -> Result<Contract, NoContract> {
    let entry = file.find(&writer.topic_name, &writer.type_name);
    let default = file.default_entry();
    let of_writer = Declared::read(&writer.qos.user_data, &writer.qos.property);
    let of_reader = Declared::read(&reader.qos.user_data, &reader.qos.property);
    let separation = entry
        .and_then(|entry| entry.separation)
        .or(of_writer.separation.map(|(value, key)| Sourced::new(value, Source::WriterKey(key))))
        .or(policy(writer.qos.deadline.period).map(|value| Sourced::new(value, Source::WriterPolicy("DEADLINE"))))
        .or(default.and_then(|default| default.separation));
    let jitter = entry
        .and_then(|entry| entry.jitter)
        .or(of_writer.jitter.map(|(value, key)| Sourced::new(value, Source::WriterKey(key))))
        .or(default.and_then(|default| default.jitter));
    let size = entry
        .and_then(|entry| entry.size)
        .or(of_writer.size.map(|(value, key)| Sourced::new(value, Source::WriterKey(key))))
        .or(writer.max_sample_serialized.filter(|size| *size > 0).map(|size| Sourced::new(size, Source::TypeMaxSize)))
        .or(default.and_then(|default| default.size));
    let limit = entry
        .and_then(|entry| entry.limit)
        .or(of_reader.limit.map(|(value, key)| Sourced::new(value, Source::ReaderKey(key))))
        .or(policy(reader.qos.latency_budget.duration)
            .map(|value| Sourced::new(value, Source::ReaderPolicy("LATENCY_BUDGET"))))
        .or(policy(reader.qos.deadline.period).map(|value| Sourced::new(value, Source::ReaderPolicy("DEADLINE"))))
        .or(default.and_then(|default| default.limit));
    let priority = writer.qos.transport_priority.0;
    let importance = entry
        .and_then(|entry| entry.importance)
        .or(of_writer.importance.map(|(value, key)| Sourced::new(value, Source::WriterKey(key))))
        .or((priority != 0).then(|| Sourced::new(priority, Source::WriterPolicy("TRANSPORT_PRIORITY"))))
        .or(default.and_then(|default| default.importance))
        .unwrap_or(Sourced::new(0, Source::Default));
    let is_protected = entry
        .and_then(|entry| entry.is_protected)
        .or(of_writer.is_protected.map(|(value, key)| Sourced::new(value, Source::WriterKey(key))))
        .or(default.and_then(|default| default.is_protected))
        .unwrap_or(Sourced::new(false, Source::Default));
    match (separation, size, limit) {
        (Some(separation), Some(size), Some(limit)) => {
            let jitter = jitter.unwrap_or(Sourced::new(separation.value, Source::Default));
            Ok(Contract { separation, jitter, size, limit, importance, is_protected })
        }
        _ => {
            let of = [
                (Value::Separation, separation.is_none()),
                (Value::Size, size.is_none()),
                (Value::Limit, limit.is_none()),
            ];
            Err(NoContract { missing: of.iter().filter(|(_, is)| *is).map(|(value, _)| *value).collect() })
        }
    }
}

/// Returns the duration of a policy unless it is zero or infinite.
fn policy(span: takt_wire::Duration) -> Option<Duration> {
    span.as_nanos().filter(|nanos| *nanos > 0).map(Duration::from_nanos)
}
