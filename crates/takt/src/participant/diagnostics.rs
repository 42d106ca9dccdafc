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

    /// Returns participants that DDS Security refuses, entirely or for protected topics, with the
    /// reasons.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn refused_participants(&self) -> Result<Vec<(Guid, String)>> {
        self.participant
            .inspect(|core| core.refused_participants().map(|(guid, reason)| (guid, reason.to_owned())).collect())
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
    /// ([`qos::Contract`](crate::qos::Contract)): writer, reader, and the contradictions as texts.
    /// Such pairs match all the same.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn contradictions(&self) -> Result<Vec<(Guid, Guid, Vec<String>)>> {
        self.participant.inspect(|core| core.contradictions())
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

    /// Returns the traffic statistics of each transport, by name.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](DomainParticipant::close).
    pub fn transport_stats(&self) -> Result<Vec<(&'static str, TransportStats)>> {
        self.participant.inner.engine.inspect(|driver| Ok(driver.transport_stats().collect()))
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
        for (guid, why) in self.refused_participants().unwrap_or_default() {
            writeln!(f, "refused participant {guid}: {why}")?;
        }
        for caution in self.cautions().unwrap_or_default() {
            writeln!(f, "caution: {caution}")?;
        }
        for (writer, reader, terms) in self.contradictions().unwrap_or_default() {
            writeln!(f, "contradicting contracts of {writer} and {reader}: {}", terms.join("; "))?;
        }
        Ok(())
    }
}
