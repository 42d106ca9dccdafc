//! Diagnostics of a participant: what it could not do, and what it counts.

use std::fmt;

use takt_core::{Caution, Counters, Refusal, SilentParticipant};
use takt_transport::{TransportStats, Warning};
use takt_wire::Guid;

use super::{BudgetOverruns, DomainParticipant, TransportReport};
use crate::Result;
use crate::runtime::clock;
use crate::runtime::diagnosis::ANSWER_TIME;
use crate::runtime::driver::DriverCounters;
#[cfg(doc)]
use crate::{DomainParticipantBuilder, Error};

/// Diagnostics of a participant; see [`DomainParticipant::diagnostics`].
///
/// [`Display`](fmt::Display) lists everything that prevents communication, one line each, and
/// nothing if all is well.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostics<'p> {
    participant: &'p DomainParticipant,
}

/// Participant that DDS Security refuses, entirely or for protected topics.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedParticipant {
    /// The refused participant.
    pub guid: Guid,
    /// Reason of the refusal.
    pub reason: String,
}

impl fmt::Display for RefusedParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.guid, self.reason)
    }
}

/// Matched pair whose timing contracts contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contradiction {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
    /// The contradictions as texts, one for each term of the contracts.
    pub terms: Vec<String>,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}: {}", self.writer, self.reader, self.terms.join("; "))
    }
}

/// Traffic statistics of one transport of a participant.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TransportTraffic {
    /// Name of the transport, such as `udp`.
    pub name: &'static str,
    /// Its statistics since the participant was built.
    pub stats: TransportStats,
}

impl DomainParticipant {
    /// Returns the diagnostics of the participant.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics<'_> {
        Diagnostics { participant: self }
    }
}

impl<'p> Diagnostics<'p> {
    /// Returns degradations relative to the requested configuration, each with a remedy. Examples
    /// are socket buffers limited by the kernel, ignored environment variables, and participants
    /// that announce themselves and do not answer. From three seconds after the build on, they
    /// include configured peers and discovery servers that do not answer.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.participant.inner.warnings.clone();
        let is_time = clock::now().since(self.participant.inner.built) >= ANSWER_TIME;
        // A closed participant has no warnings of this kind.
        let known = self.participant.inner.engine.inspect(|driver| {
            let silent = driver.core.silent_participants().map(|silent| Warning {
                what: silent.to_string(),
                remedy: "allow UDP to and from its ports in firewalls, or add a route".into(),
            });
            let unanswered = if is_time { driver.diagnosis.unanswered(&driver.core) } else { Vec::new() };
            Ok(silent.chain(unanswered).collect::<Vec<_>>())
        });
        warnings.extend(known.unwrap_or_default());
        warnings
    }

    /// Returns the transports that were requested by name and the result of opening them. Empty if
    /// none were requested.
    #[must_use]
    pub fn transport_report(&self) -> &'p TransportReport {
        &self.participant.inner.transport_report
    }

    /// Returns the configured discovery servers
    /// ([`discovery_servers`](DomainParticipantBuilder::discovery_servers)) that do not answer, as
    /// `udp/ADDRESS:PORT`. A participant that has just started lists all of them; a running server
    /// answers within a second.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn silent_discovery_servers(&self) -> Result<Vec<String>> {
        self.participant.inspect(|core| core.silent_servers().iter().map(ToString::to_string).collect())
    }

    /// Returns recent pairs of writers and readers of one topic that were not matched, with the
    /// reasons.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn refusals(&self) -> Result<Vec<Refusal>> {
        self.participant.inspect(|core| core.refusals().cloned().collect())
    }

    /// Returns participants that DDS Security refuses, entirely or for protected topics.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn refused_participants(&self) -> Result<Vec<RefusedParticipant>> {
        let refused = |(guid, reason): (Guid, &str)| RefusedParticipant { guid, reason: reason.to_owned() };
        self.participant.inspect(|core| core.refused_participants().map(refused).collect())
    }

    /// Returns matched pairs of writers and readers of one topic that another implementation may
    /// refuse, with the members in which their types differ. CycloneDDS refuses all of these, so
    /// such pairs with it are [refusals](Self::refusals).
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn cautions(&self) -> Result<Vec<Caution>> {
        self.participant.inspect(|core| core.cautions().collect())
    }

    /// Returns participants that announce themselves and have not answered for two seconds at the
    /// announced address. Their endpoints are unknown, and none of them is matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn silent_participants(&self) -> Result<Vec<SilentParticipant>> {
        self.participant.inspect(|core| core.silent_participants().collect())
    }

    /// Returns matched pairs whose timing contracts contradict each other
    /// ([`qos::Contract`](crate::qos::Contract)). Such pairs match all the same.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn contradictions(&self) -> Result<Vec<Contradiction>> {
        let contradiction = |(writer, reader, terms)| Contradiction { writer, reader, terms };
        self.participant.inspect(|core| core.contradictions().into_iter().map(contradiction).collect())
    }

    /// Returns the counters of the protocol engine: sent, received and dropped messages.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn counters(&self) -> Result<Counters> {
        self.participant.inspect(|core| *core.counters())
    }

    /// Returns the counters of errors between protocol engine and transports.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn driver_counters(&self) -> Result<DriverCounters> {
        self.participant.inner.engine.inspect(|driver| Ok(driver.counters()))
    }

    /// Returns the traffic statistics of each transport.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn transport_stats(&self) -> Result<Vec<TransportTraffic>> {
        let traffic = |(name, stats)| TransportTraffic { name, stats };
        self.participant.inner.engine.inspect(|driver| Ok(driver.transport_stats().map(traffic).collect()))
    }

    /// Returns the budget overruns.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn budget_overruns(&self) -> Result<BudgetOverruns> {
        self.participant.inspect_jobs(|state| {
            let (last, total_count) = state.job_recorder.overruns();
            Ok(BudgetOverruns { last: last.cloned().collect(), total_count })
        })
    }
}

impl fmt::Display for Diagnostics<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings().iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        // A closed participant has no further diagnostics.
        for refusal in self.refusals().unwrap_or_default() {
            writeln!(f, "not matched: {refusal}")?;
        }
        for refused in self.refused_participants().unwrap_or_default() {
            writeln!(f, "refused participant {refused}")?;
        }
        for caution in self.cautions().unwrap_or_default() {
            writeln!(f, "caution: {caution}")?;
        }
        for contradiction in self.contradictions().unwrap_or_default() {
            writeln!(f, "contradicting contracts of {contradiction}")?;
        }
        Ok(())
    }
}
