//! The two errors of the codec: octets that are no message, and a message that a version cannot express.

use core::fmt;

use crate::version::Version;

/// Octets that do not follow the specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Octets from the start of the message to the place where the rule was broken.
    pub offset: usize,
    /// The rule that was broken.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed at octet {}: {}", self.offset, self.what)
    }
}

impl core::error::Error for Malformed {}

/// A message that cannot be written; nothing of it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The version has no form for a part of the message.
    NotInVersion {
        /// The version to be written.
        version: Version,
        /// The part that it has no form for.
        what: &'static str,
    },
    /// A part is longer than its length field can say.
    TooLong {
        /// The part.
        what: &'static str,
        /// Its length in octets.
        len: usize,
        /// The greatest length in octets.
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
    fn errors_say_what_and_how_much() {
        let error = EncodeError::NotInVersion { version: Version::V1_3, what: "importance of a flow" };
        assert_eq!(error.to_string(), "OpenFlow 1.3 cannot express importance of a flow");
        let error = EncodeError::TooLong { what: "message", len: 70_000, len_max: 65_535 };
        assert_eq!(error.to_string(), "message has 70000 octets, at most 65535 can be expressed");
        assert_eq!(Malformed { offset: 3, what: "x" }.to_string(), "malformed at octet 3: x");
    }
}
