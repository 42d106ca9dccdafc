//! What became of the transports that were asked for.

use std::fmt;

/// Which transports were asked for, for what, and what came of it; see
/// [`DomainParticipant::transport_report`](crate::DomainParticipant::transport_report).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransportReport {
    /// In the order in which they were made. Empty if nothing was configured.
    pub decisions: Vec<Decision>,
    /// Opened though nothing needs them yet.
    pub(super) kept: Vec<String>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What for: `user data`, `discovery`, `topics PATTERN`, `extra`.
    pub purpose: String,
    /// In the order of preference.
    pub attempts: Vec<Attempt>,
}

/// One alternative of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The transports, as they were asked for.
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

    pub(super) fn refused(transports: String, why: String) -> Self {
        Self { transports, outcome: Outcome::Refused(why) }
    }

    pub(super) fn untried(transports: String) -> Self {
        Self { transports, outcome: Outcome::Untried }
    }

    /// Whether this is the one that was taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Open(_))
    }

    /// Why it was not, if it was tried.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Refused(why) => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Open(detail) if detail.is_empty() => write!(f, "{}: open", self.transports),
            Outcome::Open(detail) => write!(f, "{}: open, {detail}", self.transports),
            Outcome::Refused(why) => write!(f, "{}: refused, {why}", self.transports),
            Outcome::Untried => write!(f, "{}: not needed", self.transports),
        }
    }
}

impl fmt::Display for TransportReport {
    /// A line for each alternative, under what it is for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for decision in &self.decisions {
            writeln!(f, "{}", decision.purpose)?;
            decision.attempts.iter().try_for_each(|attempt| writeln!(f, "  {attempt}"))?;
        }
        Ok(())
    }
}
