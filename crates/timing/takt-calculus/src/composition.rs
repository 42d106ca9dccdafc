//! End-to-end bounds over the stages of a host, the network, and the stages of another host.
//!
//! The bounds add up. Events leave the source's stages within the arrival bound for which the flow
//! was admitted to the network. The network keeps each event within the flow's limit while the flow
//! is admitted, so the arrivals at the sink have at most that much additional jitter. The sink's
//! stages were analyzed with that jitter.
//!
//! The frames of an event may enter the network one by one, up to the end of the last stage. Each
//! arrives within the counted jitter, and its time in the network is counted from its own arrival.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::certificate::StageClaim;
use crate::network::{self, NetworkCertificate};
use crate::system::{Infeasible, Stage};
use crate::verify::verify;
use crate::{Arrivals, Certificate, System, analyze};

/// Flow in the system of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFlow {
    /// System with all flows that share the host's resources.
    pub system: System,
    /// Index of the flow.
    pub flow: usize,
}

/// Bounded flow in the system of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// Certificate of the host's flows.
    pub certificate: Certificate,
    /// Index of the flow.
    pub flow: usize,
    /// Range of the flow's stages on the host: from the first index to before the second one.
    /// `None` means all stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<(usize, usize)>,
}

impl HostPart {
    /// Returns the stages of this part with their claims, at least one.
    fn parts(&self) -> Option<(&[Stage], &[StageClaim])> {
        let stages = &self.certificate.system.flows.get(self.flow)?.stages;
        let claims = &self.certificate.flows.get(self.flow)?.stages;
        let (from, to) = self.stages.unwrap_or((0, stages.len()));
        Some((stages.get(from..to)?, claims.get(from..to)?)).filter(|(stages, _)| !stages.is_empty())
    }

    /// Returns the bound from the arrival of an event at the first stage to the end of the delay of
    /// the last stage.
    pub fn bound_ns(&self) -> Option<u64> {
        if self.stages.is_none() {
            return self.certificate.flows.get(self.flow)?.bound_ns;
        }
        let (stages, claims) = self.parts()?;
        let each = stages.iter().zip(claims).map(|(stage, claim)| claim.response_ns.checked_add(stage.delay_ns));
        each.sum()
    }

    /// Returns the arrival bound of events that leave the last stage, without a distance.
    fn departures(&self) -> Option<Arrivals> {
        let (stages, claims) = self.parts()?;
        let (stage, claim) = (stages.last()?, claims.last()?);
        Some(Arrivals { distance_ns: 0, ..stage.pass_on(claim.arrivals, claim.response_ns)? })
    }
}

/// Division of an end-to-end limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// Arrival bound at the network.
    pub arrivals: Arrivals,
    /// Limit for the network in nanoseconds.
    pub network_limit_ns: u64,
    /// Stages of the source.
    pub source: Option<HostPart>,
    /// Stages of the sink.
    pub sink: Option<HostPart>,
}

/// Reason why a limit cannot be divided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DivisionError {
    /// The stages of the source have no bounds.
    Source(Infeasible),
    /// The stages of the sink have no bounds for events with the jitter of source and network.
    Sink(Infeasible),
    /// The flow does not exist in a system, or has no arrival bound.
    NoFlow,
    /// The stages of the hosts use up the limit.
    ExceedsLimit {
        /// Bound of the source's stages in nanoseconds.
        source_ns: u64,
        /// Bound of the sink's stages in nanoseconds; 0 if those of the source use up the limit.
        sink_ns: u64,
        /// Limit in nanoseconds.
        limit_ns: u64,
    },
}

impl fmt::Display for DivisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(why) => write!(f, "the stages of the source: {why}"),
            Self::Sink(why) => write!(f, "the stages of the sink: {why}"),
            Self::NoFlow => f.write_str("a system lacks the flow, or the flow has no arrivals"),
            Self::ExceedsLimit { source_ns, sink_ns, limit_ns } => write!(
                f,
                "the stages of the source take up to {source_ns} ns and those of the sink up to {sink_ns} ns of {limit_ns} ns"
            ),
        }
    }
}

/// Divides a limit into the bound of the source's stages, the bound of the sink's stages, and the
/// remainder for the network. The sink's stages are bounded under the assumption that the network
/// uses the whole remainder.
///
/// `arrivals` is the arrival bound at the first stage. The sink's flow gets the arrival bound that
/// follows. The work is that of [`analyze`] for both systems.
///
/// # Errors
/// Fails if a system has no bounds, or if nothing remains for the network.
pub fn divide(
    arrivals: Arrivals,
    limit_ns: u64,
    source: Option<&HostFlow>,
    sink: Option<&HostFlow>,
) -> Result<Division, DivisionError> {
    let source = source.map(|part| bound(part, arrivals).map_err(DivisionError::Source)).transpose()?;
    let source_ns = source.as_ref().map_or(Some(0), HostPart::bound_ns).ok_or(DivisionError::NoFlow)?;
    let arrivals = source.as_ref().map_or(Some(arrivals), HostPart::departures).ok_or(DivisionError::NoFlow)?;
    let late = |sink_ns| DivisionError::ExceedsLimit { source_ns, sink_ns, limit_ns };
    let rest_ns = limit_ns.checked_sub(source_ns).filter(|rest_ns| *rest_ns > 0).ok_or_else(|| late(0))?;
    let jitter_ns = arrivals.jitter_ns.saturating_add(rest_ns);
    let at_sink = Arrivals { jitter_ns, distance_ns: 0, ..arrivals };
    let sink = sink.map(|part| bound(part, at_sink).map_err(DivisionError::Sink)).transpose()?;
    let sink_ns = sink.as_ref().map_or(Some(0), HostPart::bound_ns).ok_or(DivisionError::NoFlow)?;
    let network_limit_ns = rest_ns.checked_sub(sink_ns).filter(|ns| *ns > 0).ok_or_else(|| late(sink_ns))?;
    Ok(Division { arrivals, network_limit_ns, source, sink })
}

/// Bounds a host's flow with these arrivals.
fn bound(part: &HostFlow, arrivals: Arrivals) -> Result<HostPart, Infeasible> {
    let mut system = part.system.clone();
    let no_flow = Infeasible::InvalidDescription { flow: part.flow, what: "no such flow" };
    system.flows.get_mut(part.flow).ok_or(no_flow)?.arrivals = Some(arrivals);
    Ok(HostPart { certificate: analyze(&system)?, flow: part.flow, stages: None })
}

/// Bound from the first stage of the source's host to the end of the sink's, with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndToEnd {
    /// Arrival bound at the first stage.
    pub arrivals: Arrivals,
    /// Stages of the source. `None`: events start at the network.
    pub source: Option<HostPart>,
    /// Certificate of the network's flows.
    pub network: NetworkCertificate,
    /// Index of the flow in the network.
    pub flow: usize,
    /// Stages of the sink. `None`: events end at the network.
    pub sink: Option<HostPart>,
    /// Claimed bound in nanoseconds.
    pub bound_ns: u64,
}

/// Claim of an end-to-end certificate that is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// The stages of the source are not proven.
    Source,
    /// The network is not proven.
    Network,
    /// The stages of the sink are not proven.
    Sink,
    /// Events may leave the source's stages more densely than the network's arrival bound permits.
    ToNetwork,
    /// Events may leave the network more densely than the arrival bound of the sink's stages
    /// permits.
    ToSink,
    /// The sum of the parts exceeds the bound.
    Sum,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "the stages of the source are not proven",
            Self::Network => "the network is not proven",
            Self::Sink => "the stages of the sink are not proven",
            Self::ToNetwork => "events may leave the source more densely than the network assumes",
            Self::ToSink => "events may leave the network more densely than the sink assumes",
            Self::Sum => "the parts exceed the bound",
        })
    }
}

/// Period and jitter of arrivals.
type ArrivalModel = (u128, u128);

/// Reports whether an arrival bound covers these arrivals. An arrival bound with a distance covers
/// less.
fn covers(arrivals: Arrivals, (period, jitter): ArrivalModel) -> bool {
    let Arrivals { period_ns, jitter_ns, distance_ns } = arrivals;
    u128::from(period_ns) <= period && u128::from(jitter_ns) >= jitter && distance_ns == 0
}

/// Checks each part, the arrival bounds between the parts, and the sum. It does not repeat the
/// analysis.
///
/// # Errors
/// Returns the first claim that is not proven.
pub fn check(claim: &EndToEnd) -> Result<(), Unproven> {
    let flow = claim.network.flows.get(claim.flow).ok_or(Unproven::Network)?;
    network::check(&claim.network).map_err(|_| Unproven::Network)?;
    let mut sum = u128::from(flow.limit_ns);
    let mut arrivals_to_network = (claim.arrivals.period_ns.into(), claim.arrivals.jitter_ns.into());
    if let Some(source) = &claim.source {
        let (ns, arrivals, left) = host(source).ok_or(Unproven::Source)?;
        sum += ns;
        let Arrivals { period_ns, jitter_ns, distance_ns } = arrivals;
        let is_counted = period_ns <= claim.arrivals.period_ns && jitter_ns >= claim.arrivals.jitter_ns;
        if !is_counted || distance_ns > claim.arrivals.distance_ns {
            return Err(Unproven::Source);
        }
        // Events that arrive less often than the stages assume leave with their own period.
        arrivals_to_network.1 = left.1;
    }
    if !covers(flow.arrivals, arrivals_to_network) {
        return Err(Unproven::ToNetwork);
    }
    if let Some(sink) = &claim.sink {
        let (ns, arrivals, _) = host(sink).ok_or(Unproven::Sink)?;
        sum += ns;
        if !covers(arrivals, (arrivals_to_network.0, arrivals_to_network.1 + u128::from(flow.limit_ns))) {
            return Err(Unproven::ToSink);
        }
    }
    if sum > claim.bound_ns.into() { Err(Unproven::Sum) } else { Ok(()) }
}

/// Returns the bound of a host's flow if it is proven, its arrivals, and its departures.
fn host(part: &HostPart) -> Option<(u128, Arrivals, ArrivalModel)> {
    verify(&part.certificate).ok()?; // tidy-allow(dropped-cause): the error names the part that is not proven.
    let bound_ns = part.bound_ns()?;
    let (stages, claims) = part.parts()?;
    let (stage, claim) = (stages.last()?, claims.last()?);
    let early = u128::from(stage.piece_ns_min) + u128::from(stage.delay_ns_min);
    let spread = (u128::from(claim.response_ns) + u128::from(stage.delay_ns)).checked_sub(early)?;
    let left = (claim.arrivals.period_ns.into(), u128::from(claim.arrivals.jitter_ns) + spread);
    Some((bound_ns.into(), claims.first()?.arrivals, left))
}
