//! Errors of calls from the application. Malformed data from the network are never an error here.

use alloc::string::String;
use core::fmt;

/// Error of a call that the core refused. The variants are the return codes of DDS 1.4 §2.2.1.1.
/// A caller maps each of them: the enumeration is exhaustive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The handle's endpoint no longer exists.
    AlreadyDeleted,
    /// A parameter is outside its domain.
    BadParameter {
        /// The parameter, and the reason.
        what: String,
    },
    /// The entity is not enabled yet (DDS 1.4 §2.2.2.1.1.7).
    NotEnabled,
    /// The policy with this OMG name cannot change once the entity is enabled.
    ImmutablePolicy(&'static str),
    /// Two policies of one entity contradict each other (DDS 1.4 §2.2.3).
    InconsistentPolicy {
        /// Description of the contradiction.
        what: String,
    },
    /// Governance or permissions do not allow the entity (DDS-SEC 1.1 §7.2.1).
    NotAllowedBySecurity {
        /// Rule that forbids the entity.
        what: String,
    },
    /// The call is valid, but not in the present state.
    PreconditionNotMet {
        /// Condition that is not met.
        what: String,
    },
    /// A limit is reached.
    OutOfResources {
        /// Name of the limit as in the configuration.
        limit: &'static str,
        /// Value of the limit.
        value: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyDeleted => f.write_str("the entity was deleted"),
            Self::BadParameter { what } => write!(f, "bad parameter: {what}"),
            Self::NotEnabled => f.write_str("the entity is not enabled"),
            Self::ImmutablePolicy(policy) => write!(f, "{policy} cannot change once the entity is enabled"),
            Self::InconsistentPolicy { what } => write!(f, "inconsistent policies: {what}"),
            Self::NotAllowedBySecurity { what } => write!(f, "not allowed by security: {what}"),
            Self::PreconditionNotMet { what } => write!(f, "precondition not met: {what}"),
            Self::OutOfResources { limit, value } => write!(f, "out of resources: {limit} is limited to {value}"),
        }
    }
}

impl core::error::Error for Error {}

/// Error of a `write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The history is full of samples that readers have not acknowledged. The call had no effect.
    /// Retry after [`crate::Event::WriterSpace`].
    WouldBlock,
    /// The serializer failed; nothing was written.
    Serialize,
    /// The call itself is invalid.
    Refused(Error),
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}
