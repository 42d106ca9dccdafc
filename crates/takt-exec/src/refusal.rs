//! What is not as asked.

use std::error::Error;
use std::fmt;
use std::io;

/// Something that was asked for, and is not so.
#[derive(Debug)]
pub struct Refusal {
    /// What was asked for, in words.
    pub what: String,
    /// What the kernel said, or what was found afterwards.
    pub why: io::Error,
    /// What would mend it.
    pub remedy: String,
}

impl Refusal {
    pub(crate) fn new(what: impl fmt::Display, why: io::Error, remedy: impl fmt::Display) -> Self {
        Self { what: what.to_string(), why, remedy: remedy.to_string() }
    }

    /// The kernel took it and did not do it.
    pub(crate) fn unlike(what: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self::new(what, io::Error::other(format!("afterwards it is {found}")), "look for what sets it otherwise")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, self.why, self.remedy)
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.why)
    }
}
