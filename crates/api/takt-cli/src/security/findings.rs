//! Findings of a check: errors, warnings and expiry dates.

use std::fmt::Display;

use serde::Serialize;
use takt_bench::Result;
use takt_security::documents::format_date_time;
use takt_security::identity::UnixSeconds;

use super::time::DAY;
use crate::finding::Finding;

/// Remedy of a finding.
#[derive(Clone)]
pub enum Remedy {
    /// Shell command.
    Command(String),
    /// Other advice.
    Advice(String),
}

/// End of a validity period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expiry {
    /// Description of the certificate, grant or list that expires.
    pub what: String,
    /// Last second of the validity.
    pub not_after: String,
    /// Whole days until the last second.
    pub days: i64,
}

/// Findings and expiry dates, in the order of their discovery.
pub struct Findings {
    now: UnixSeconds,
    warning_days: i64,
    /// Errors and warnings.
    pub found: Vec<Finding>,
    /// Expiry dates of everything that is valid now.
    pub expiries: Vec<Expiry>,
}

impl Findings {
    /// Creates an empty list. An expiry within `warning_days` becomes a warning.
    pub fn new(now: UnixSeconds, warning_days: i64) -> Self {
        Self { now, warning_days, found: Vec::new(), expiries: Vec::new() }
    }

    /// Returns the time of the check.
    pub fn now(&self) -> UnixSeconds {
        self.now
    }

    /// Adds an error.
    pub fn add_error(&mut self, code: &'static str, what: impl Display, why: &str, remedy: &Remedy) {
        self.push(code, what, why, remedy, true);
    }

    /// Adds a warning.
    pub fn add_warning(&mut self, code: &'static str, what: impl Display, why: &str, remedy: &Remedy) {
        self.push(code, what, why, remedy, false);
    }

    fn push(&mut self, code: &'static str, what: impl Display, why: &str, remedy: &Remedy, is_error: bool) {
        let (remedy, is_command) = match remedy {
            Remedy::Command(line) => (line.clone(), true),
            Remedy::Advice(text) => (text.clone(), false),
        };
        let finding = Finding { is_command, is_error, ..Finding::of_network(code, what.to_string(), why, remedy) };
        // Files that all enclaves share are checked once for each enclave.
        if !self.found.contains(&finding) {
            self.found.push(finding);
        }
    }

    /// Returns the value of a result. Adds an error and returns `None` if there is none.
    pub fn value_or_error<T>(
        &mut self,
        code: &'static str,
        result: Result<T>,
        why: &str,
        remedy: &Remedy,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add_error(code, error, why, remedy);
                None
            }
        }
    }

    /// Records an expiry date. Other checks find dates in the past.
    pub fn expires(&mut self, what: String, not_after: UnixSeconds, why: &str, remedy: &Remedy) {
        let days = (not_after - self.now).div_euclid(DAY);
        if days < 0 {
            return;
        }
        let time = format_date_time(not_after);
        if days < self.warning_days {
            self.add_warning("expires", format_args!("{what} expires at {time}, in {days} days"), why, remedy);
        }
        let expiry = Expiry { what, not_after: time, days };
        if !self.expiries.contains(&expiry) {
            self.expiries.push(expiry);
        }
    }

    /// Returns the earliest expiry.
    pub fn first_expiry(&self) -> Option<&Expiry> {
        self.expiries.iter().min_by(|one, other| one.not_after.cmp(&other.not_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_bench::Error;

    #[test]
    fn expiry_within_the_warning_days_is_a_warning() {
        let remedy = Remedy::Advice("renew the certificate".to_owned());
        let mut findings = Findings::new(100 * DAY, 30);
        for (what, day) in [("past", 99), ("soon", 129), ("soon", 129), ("later", 130)] {
            findings.expires(what.to_owned(), day * DAY, "why", &remedy);
        }
        let whats: Vec<_> = findings.expiries.iter().map(|expiry| (expiry.what.as_str(), expiry.days)).collect();
        assert_eq!(whats, [("soon", 29), ("later", 30)]);
        assert_eq!(findings.found.len(), 1, "{:?}", findings.found);
        assert_eq!(findings.found[0].what, "soon expires at 1970-05-10T00:00:00Z, in 29 days");
        assert!(!findings.found[0].is_error);
        assert_eq!(findings.first_expiry().map(|expiry| expiry.days), Some(29));
    }

    #[test]
    fn error_becomes_an_error_finding() {
        let mut findings = Findings::new(0, 30);
        let remedy = Remedy::Command("takt security check keys".to_owned());
        assert_eq!(findings.value_or_error("c", Ok(7), "why", &remedy), Some(7));
        let error = Error::NotKept { what: "a.pem: not a certificate".to_owned() };
        assert_eq!(findings.value_or_error::<()>("c", Err(error), "why", &remedy), None);
        assert_eq!((findings.found[0].what.as_str(), findings.found[0].is_error), ("a.pem: not a certificate", true));
    }
}
