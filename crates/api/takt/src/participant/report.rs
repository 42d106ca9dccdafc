//! Report on the transports that were configured.

use std::fmt;

/// Configured transports by purpose, and whether each was opened; see
/// [`Diagnostics::transport_report`](crate::Diagnostics::transport_report).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransportReport {
    /// Decisions in the order in which they were made. Empty if nothing was configured.
    pub decisions: Vec<Decision>,
    /// Transports kept open although nothing uses them yet.
    pub(super) kept: Vec<String>,
}

/// Choice of transports for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Purpose: `user data`, `discovery`, `topics PATTERN`, `extra`.
    pub purpose: String,
    /// Alternatives in order of preference.
    pub attempts: Vec<Attempt>,
}

/// One alternative of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Names of the transports as configured.
    pub transports: String,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Open(String),
    Refused(String),
    Untried,
}

impl Attempt {
    pub(super) fn open(transports: String, detail: String) -> Self {
        Self { transports, outcome: Outcome::Open(detail) }
    }

    pub(super) fn refused(transports: String, reason: String) -> Self {
        Self { transports, outcome: Outcome::Refused(reason) }
    }

    pub(super) fn untried(transports: String) -> Self {
        Self { transports, outcome: Outcome::Untried }
    }

    /// Reports whether this alternative was chosen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Open(_))
    }

    /// Returns the reason why the alternative failed, if it was tried.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Open(detail) if detail.is_empty() => write!(f, "{}: open", self.transports),
            Outcome::Open(detail) => write!(f, "{}: open, {detail}", self.transports),
            Outcome::Refused(reason) => write!(f, "{}: refused, {reason}", self.transports),
            Outcome::Untried => write!(f, "{}: not needed", self.transports),
        }
    }
}

impl fmt::Display for TransportReport {
    /// Writes the purpose of each decision, followed by one line for each alternative.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for decision in &self.decisions {
            writeln!(f, "{}", decision.purpose)?;
            decision.attempts.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        }
        Ok(())
    }
}
