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

/// Error of another component that is the cause of an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a call failed. `RETCODE_OK` is `Ok`, and `RETCODE_NO_DATA` is an empty result.
///
/// The text of an error contains that of its cause.
/// [`source`](std::error::Error::source) returns the cause itself wherever another component
/// reported an error: a parser, a transport, the operating system or the security plugins.
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
        /// Error that another component reported, such as a parser or the operating system.
        source: Option<Cause>,
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
        /// Error of the security plugins, if they reported one.
        source: Option<Cause>,
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

    /// Invalid argument, without a cause of its own.
    pub(crate) fn bad_parameter(what: impl Into<String>) -> Self {
        Self::BadParameter { what: what.into(), source: None }
    }

    /// Invalid argument that another component refused; `what` contains the text of `source`.
    pub(crate) fn bad_parameter_from(what: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::BadParameter { what: what.into(), source: Some(source.into()) }
    }

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
            Self::BadParameter { what, .. } => write!(f, "bad parameter: {what}"),
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
            Self::NotAllowedBySecurity { what, .. } => write!(f, "not allowed by security: {what}"),
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
            Self::BadParameter { source, .. } | Self::NotAllowedBySecurity { source, .. } => {
                source.as_deref().map(|source| source as _)
            }
            Self::TypeUnavailable(reason) => Some(reason),
            Self::Encode(error) => Some(error),
            Self::Transport(error) => Some(error),
            Self::RealTime(refusal) => Some(refusal),
            Self::Timeout { .. }
            | Self::PreconditionNotMet { .. }
            | Self::OutOfResources { .. }
            | Self::SampleTooLarge { .. }
            | Self::NotEnabled
            | Self::ImmutablePolicy { .. }
            | Self::InconsistentPolicy { .. }
            | Self::AlreadyDeleted
            | Self::IllegalOperation { .. }
            | Self::Unsupported { .. } => None,
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

/// The variants are those of the same names; the core's errors have no causes of their own.
impl From<takt_core::Error> for Error {
    fn from(error: takt_core::Error) -> Self {
        match error {
            takt_core::Error::AlreadyDeleted => Self::AlreadyDeleted,
            takt_core::Error::BadParameter { what } => Self::bad_parameter(what),
            takt_core::Error::InconsistentPolicy { what } => Self::InconsistentPolicy { what },
            takt_core::Error::NotEnabled => Self::NotEnabled,
            takt_core::Error::NotAllowedBySecurity { what } => Self::NotAllowedBySecurity { what, source: None },
            takt_core::Error::ImmutablePolicy(policy) => Self::ImmutablePolicy { policy },
            takt_core::Error::OutOfResources { limit, value } => Self::OutOfResources { limit, value },
            takt_core::Error::PreconditionNotMet { what } => Self::PreconditionNotMet { what },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_parameter_keeps_the_error_of_the_parser() {
        let cause = "x".parse::<u16>().expect_err("no number");
        let error = Error::bad_parameter_from(format!("port: {cause}"), cause.clone());
        let source = std::error::Error::source(&error).expect("a cause");
        assert_eq!(source.downcast_ref(), Some(&cause));
        assert_eq!(error.to_string(), format!("bad parameter: port: {cause}"));
        assert!(std::error::Error::source(&Error::bad_parameter("port")).is_none());
    }

    #[test]
    fn error_of_the_core_keeps_its_variant_and_text() {
        let what = || "the history is full".to_owned();
        let all = [
            takt_core::Error::AlreadyDeleted,
            takt_core::Error::BadParameter { what: what() },
            takt_core::Error::NotEnabled,
            takt_core::Error::ImmutablePolicy("HISTORY"),
            takt_core::Error::InconsistentPolicy { what: what() },
            takt_core::Error::NotAllowedBySecurity { what: what() },
            takt_core::Error::PreconditionNotMet { what: what() },
            takt_core::Error::OutOfResources { limit: "readers", value: 7 },
        ];
        for error in all {
            assert_eq!(Error::from(error.clone()).to_string(), error.to_string());
        }
    }

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
