//! Errors of the codec: malformed octets, and messages that a version cannot express.

use core::fmt;

use crate::version::Version;

/// Octets that violate the specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Offset of the violation from the start of the message, in octets.
    pub offset: usize,
    /// Violated rule.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed at octet {}: {}", self.offset, self.what)
    }
}

impl core::error::Error for Malformed {}

/// Error of a message that cannot be encoded. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The version cannot express a part of the message.
    NotInVersion {
        /// Version of the encoding.
        version: Version,
        /// Part without a form in this version.
        what: &'static str,
    },
    /// A part exceeds its length field.
    TooLong {
        /// Part of the message.
        what: &'static str,
        /// Length in octets.
        len: usize,
        /// Maximum length in octets.
        len_max: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInVersion { version, what } => write!(f, "OpenFlow {version} cannot express {what}"),
            Self::TooLong { what, len, len_max } => {
                write!(f, "{what} has {len} octets, at most {len_max} can be expressed")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::string::ToString;

    use super::*;

    #[test]
    fn errors_name_the_rule_and_the_lengths() {
        let error = EncodeError::NotInVersion { version: Version::V1_3, what: "the importance of a flow" };
        assert_eq!(error.to_string(), "OpenFlow 1.3 cannot express the importance of a flow");
        let error = EncodeError::TooLong { what: "message", len: 70_000, len_max: 65_535 };
        assert_eq!(error.to_string(), "message has 70000 octets, at most 65535 can be expressed");
        assert_eq!(Malformed { offset: 3, what: "x" }.to_string(), "malformed at octet 3: x");
    }
}
