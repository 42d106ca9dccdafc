//! Error of a setting that could not be applied.

use std::error::Error;
use std::fmt;
use std::io;

/// Setting that could not be applied.
#[derive(Debug)]
pub struct Refusal {
    /// Description of the setting.
    pub setting: String,
    /// Error of the kernel, or the value read back.
    pub cause: io::Error,
    /// Remedy.
    pub remedy: String,
}

impl Refusal {
    pub(crate) fn new(what: impl fmt::Display, why: io::Error, remedy: impl fmt::Display) -> Self {
        Self { setting: what.to_string(), cause: why, remedy: remedy.to_string() }
    }

    /// Returns the error for a setting that the kernel accepted but did not apply.
    pub(crate) fn not_applied(what: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self::new(what, io::Error::other(format!("the kernel reports {found}")), "find out which process changes it")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.setting, self.cause, self.remedy)
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
