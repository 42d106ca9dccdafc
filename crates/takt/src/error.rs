//! Errors of the application's calls: the return codes of DDS 1.4 §2.2.1.1 with their reasons.
//!
//! Malformed data from the network never causes an error. It is counted (see
//! [`Diagnostics::counters`](crate::Diagnostics::counters)).

use std::borrow::Cow;
use std::fmt;

use takt_transport::TransportError;
use takt_xtypes::EncodeError;

use crate::dynamic::TypeUnavailable;

/// Result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a call failed. `RETCODE_OK` is `Ok`, and `RETCODE_NO_DATA` is an empty result.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// `RETCODE_TIMEOUT`: the timeout expired. Nothing was consumed; the call may be repeated.
    Timeout {
        /// Event that the call waited for, as far as it is known; may be empty.
        what: Cow<'static, str>,
    },
    /// `RETCODE_BAD_PARAMETER`: an argument is outside its domain.
    BadParameter {
        /// The invalid argument, and the reason.
        what: String,
    },
    /// `RETCODE_PRECONDITION_NOT_MET`: the call is not valid in the current state.
    PreconditionNotMet {
        /// The precondition that does not hold.
        what: String,
    },
    /// `RETCODE_OUT_OF_RESOURCES`: a limit is reached.
    OutOfResources {
        /// Name of the limit, as in the configuration.
        limit: &'static str,
        /// Value of the limit.
        value: u64,
    },
    /// `RETCODE_OUT_OF_RESOURCES`: the sample exceeds a limit, so the writer can never write it.
    SampleTooLarge {
        /// Length of the serialized sample in octets.
        len: u64,
        /// Name of the limit, as in the configuration.
        limit: &'static str,
        /// Value of the limit in octets.
        max: u64,
        /// Name of the writer's topic.
        topic: String,
    },
    /// `RETCODE_NOT_ENABLED`: the entity is not enabled yet.
    NotEnabled,
    /// `RETCODE_IMMUTABLE_POLICY`: the policy cannot change once the entity is enabled.
    ImmutablePolicy {
        /// Name of the policy in the OMG's spelling.
        policy: &'static str,
    },
    /// `RETCODE_INCONSISTENT_POLICY`: two policies of one entity contradict each other.
    InconsistentPolicy {
        /// Description of the contradiction.
        what: String,
    },
    /// `RETCODE_ALREADY_DELETED`: the entity or its participant was closed.
    AlreadyDeleted,
    /// `RETCODE_ILLEGAL_OPERATION`: the call is not permitted in this context, for instance from a
    /// second thread under [`Runtime::Inline`](crate::Runtime::Inline).
    IllegalOperation {
        /// Reason why the call is not permitted.
        what: &'static str,
    },
    /// `RETCODE_NOT_ALLOWED_BY_SECURITY`: governance, permissions or a certificate deny it
    /// (DDS-SEC 1.1 §7.2.1).
    NotAllowedBySecurity {
        /// The document or certificate that denies it, and the reason.
        what: String,
    },
    /// `RETCODE_UNSUPPORTED`: an optional part of the specification that Takt does not implement.
    Unsupported {
        /// The unsupported part.
        what: &'static str,
    },
    /// The type of a topic could not be obtained from other participants.
    TypeUnavailable(TypeUnavailable),
    /// The sample cannot be serialized, for instance because a string exceeds its bound.
    Encode(EncodeError),
    /// A transport or the operating system failed.
    Transport(TransportError),
    /// The operating system refused a real-time setting of a thread or of the process.
    RealTime(takt_exec::Refusal),
}

impl Error {
    /// Timeout without a description.
    pub(crate) const TIMEOUT: Self = Self::Timeout { what: Cow::Borrowed("") };

    /// Adds a description to a timeout. Returns any other error unchanged.
    pub(crate) fn explained(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Timeout { .. } => Self::Timeout { what: Cow::Owned(what()) },
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { what } if what.is_empty() => f.write_str("timeout"),
            Self::Timeout { what } => write!(f, "timeout: {what}"),
            Self::BadParameter { what } => write!(f, "bad parameter: {what}"),
            Self::PreconditionNotMet { what } => write!(f, "precondition not met: {what}"),
            Self::OutOfResources { limit, value } => write!(f, "out of resources: {limit} is limited to {value}"),
            Self::SampleTooLarge { len, limit, max, topic } => {
                let (len, max) = (grouped(*len), grouped(*max));
                write!(
                    f,
                    "out of resources: sample of {len} B exceeds {limit} ({max} B) of the writer of \"{topic}\"; "
                )?;
                write!(f, "raise Limits::{limit} at both ends")
            }
            Self::NotEnabled => f.write_str("the entity is not enabled"),
            Self::ImmutablePolicy { policy } => {
                write!(f, "{policy} cannot change once the entity is enabled")
            }
            Self::InconsistentPolicy { what } => write!(f, "inconsistent policies: {what}"),
            Self::AlreadyDeleted => f.write_str("the entity was deleted"),
            Self::IllegalOperation { what } => write!(f, "illegal operation: {what}"),
            Self::NotAllowedBySecurity { what } => write!(f, "not allowed by security: {what}"),
            Self::Unsupported { what } => write!(f, "unsupported: {what}"),
            Self::TypeUnavailable(reason) => write!(f, "the type is not available: {reason}"),
            Self::Encode(error) => write!(f, "the sample cannot be serialized: {error}"),
            Self::Transport(error) => write!(f, "transport: {error}"),
            Self::RealTime(refusal) => write!(f, "real time: {refusal}"),
        }
    }
}

/// Formats a number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TypeUnavailable(reason) => Some(reason),
            Self::Encode(error) => Some(error),
            Self::Transport(error) => Some(error),
            Self::RealTime(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl From<takt_exec::Refusal> for Error {
    fn from(refusal: takt_exec::Refusal) -> Self {
        Self::RealTime(refusal)
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<takt_core::Error> for Error {
    fn from(error: takt_core::Error) -> Self {
        match error {
            takt_core::Error::AlreadyDeleted => Self::AlreadyDeleted,
            takt_core::Error::BadParameter { what } => Self::BadParameter { what },
            takt_core::Error::InconsistentPolicy { what } => Self::InconsistentPolicy { what },
            takt_core::Error::NotEnabled => Self::NotEnabled,
            takt_core::Error::NotAllowedBySecurity { what } => Self::NotAllowedBySecurity { what },
            takt_core::Error::ImmutablePolicy(policy) => Self::ImmutablePolicy { policy },
            takt_core::Error::OutOfResources { limit, value } => Self::OutOfResources { limit, value },
            other => Self::PreconditionNotMet { what: other.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_too_large_names_topic_limit_and_remedy() {
        let (len, max) = (70_000_012, 67_108_864);
        let error = Error::SampleTooLarge { len, limit: "endpoint_memory_bytes", max, topic: "Lidar".into() };
        assert_eq!(
            error.to_string(),
            "out of resources: sample of 70,000,012 B exceeds endpoint_memory_bytes (67,108,864 B) of the writer of \"Lidar\"; \
             raise Limits::endpoint_memory_bytes at both ends"
        );
        assert_eq!([0, 999, 1_000].map(grouped), ["0", "999", "1,000"]);
    }
}
