//! One bound from the source's program to the sink's: stages of a host, the network, stages of another host.
//!
//! The bounds add up. What leaves the source's stages comes to the network within the arrivals that its flow was admitted with. The network
//! keeps each event within the flow's limit for as long as it is admitted, so what comes to the sink has as much more jitter at most. The sink's
//! stages were analysed with that jitter.
//!
//! An event's frames may come to the network one by one, up to the end of the last stage: each comes within the jitter that is counted, and its
//! time in the network is counted from its own arrival.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::certificate::StageClaim;
use crate::network::{self, NetworkCertificate};
use crate::system::{Infeasible, Stage};
use crate::verify::verify;
use crate::{Arrivals, Certificate, System, analyse};

/// A flow in the system of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFlow {
    /// All that shares the host's resources.
    pub system: System,
    /// Index of the flow.
    pub flow: usize,
}

/// A flow that was bounded in the system of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// The proof of the host's flows.
    pub certificate: Certificate,
    /// Index of the flow.
    pub flow: usize,
    /// The stages of the flow that are on the host: from the first one to before the second one; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<(usize, usize)>,
}

impl HostPart {
    /// Its stages with what is claimed of them, at least one.
    fn parts(&self) -> Option<(&[Stage], &[StageClaim])> {
        let stages = &self.certificate.system.flows.get(self.flow)?.stages;
        let claims = &self.certificate.flows.get(self.flow)?.stages;
        let (from, to) = self.stages.unwrap_or((0, stages.len()));
        Some((stages.get(from..to)?, claims.get(from..to)?)).filter(|(stages, _)| !stages.is_empty())
    }

    /// From an event's arrival at the first stage until the end of the last one's delay.
    pub fn bound_ns(&self) -> Option<u64> {
        if self.stages.is_none() {
            return self.certificate.flows.get(self.flow)?.bound_ns;
        }
        let (stages, claims) = self.parts()?;
        let each = stages.iter().zip(claims).map(|(stage, claim)| claim.response_ns.checked_add(stage.delay_ns));
        each.sum()
    }

    /// How events leave the last stage; without a distance between them.
    fn leaves(&self) -> Option<Arrivals> {
        let (stages, claims) = self.parts()?;
        let (stage, claim) = (stages.last()?, claims.last()?);
        Some(Arrivals { distance_ns: 0, ..stage.pass_on(claim.arrivals, claim.response_ns)? })
    }
}

/// How an end-to-end limit is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// How events come to the network.
    pub arrivals: Arrivals,
    /// What they may take there.
    pub network_limit_ns: u64,
    /// The source's stages.
    pub source: Option<HostPart>,
    /// The sink's.
    pub sink: Option<HostPart>,
}

/// Why a limit is not divided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indivisible {
    /// The source's stages have no bounds.
    Source(Infeasible),
    /// The sink's stages have no bounds, if events come with the jitter of source and network.
    Sink(Infeasible),
    /// There is no such flow in a system, or it has no arrivals.
    NoFlow,
    /// The stages alone take the whole limit.
    Late {
        /// The bound of the source's stages.
        source_ns: u64,
        /// The bound of the sink's stages; 0 if the source's take it all.
        sink_ns: u64,
        /// The limit.
        limit_ns: u64,
    },
}

impl fmt::Display for Indivisible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(why) => write!(f, "the stages of the source: {why}"),
            Self::Sink(why) => write!(f, "the stages of the sink: {why}"),
            Self::NoFlow => f.write_str("a system does not have the flow, or the flow has no arrivals"),
            Self::Late { source_ns, sink_ns, limit_ns } => write!(
                f,
                "the stages of the source take up to {source_ns} ns and those of the sink up to {sink_ns} ns of {limit_ns} ns"
            ),
        }
    }
}

/// Divides a limit: what the source's stages need, what the sink's need if the network takes all the rest, and what is left for the network.
/// `arrivals` are those at the first stage. The sink's flow gets the arrivals that follow. The work is that of [`analyse`] for both systems.
///
/// # Errors
/// A system without bounds, or one that leaves nothing to the network.
pub fn divide(
    arrivals: Arrivals,
    limit_ns: u64,
    source: Option<&HostFlow>,
    sink: Option<&HostFlow>,
) -> Result<Division, Indivisible> {
    let source = source.map(|part| bound(part, arrivals).map_err(Indivisible::Source)).transpose()?;
    let source_ns = source.as_ref().map_or(Some(0), HostPart::bound_ns).ok_or(Indivisible::NoFlow)?;
    let arrivals = source.as_ref().map_or(Some(arrivals), HostPart::leaves).ok_or(Indivisible::NoFlow)?;
    let late = |sink_ns| Indivisible::Late { source_ns, sink_ns, limit_ns };
    let rest_ns = limit_ns.checked_sub(source_ns).filter(|rest_ns| *rest_ns > 0).ok_or_else(|| late(0))?;
    let jitter_ns = arrivals.jitter_ns.saturating_add(rest_ns);
    let at_sink = Arrivals { jitter_ns, distance_ns: 0, ..arrivals };
    let sink = sink.map(|part| bound(part, at_sink).map_err(Indivisible::Sink)).transpose()?;
    let sink_ns = sink.as_ref().map_or(Some(0), HostPart::bound_ns).ok_or(Indivisible::NoFlow)?;
    let network_limit_ns = rest_ns.checked_sub(sink_ns).filter(|ns| *ns > 0).ok_or_else(|| late(sink_ns))?;
    Ok(Division { arrivals, network_limit_ns, source, sink })
}

/// Bounds a host's flow with these arrivals.
fn bound(part: &HostFlow, arrivals: Arrivals) -> Result<HostPart, Infeasible> {
    let mut system = part.system.clone();
    let no_flow = Infeasible::Nonsense { flow: part.flow, what: "there is no such flow" };
    system.flows.get_mut(part.flow).ok_or(no_flow)?.arrivals = Some(arrivals);
    Ok(HostPart { certificate: analyse(&system)?, flow: part.flow, stages: None })
}

/// A bound from the first stage of the source's host to the end of the sink's, with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndToEnd {
    /// How often events come to the first stage.
    pub arrivals: Arrivals,
    /// The source's stages; `None`: events begin at the network.
    pub source: Option<HostPart>,
    /// The proof of the network's flows.
    pub network: NetworkCertificate,
    /// Index of the flow there.
    pub flow: usize,
    /// The sink's stages; `None`: events end at the network.
    pub sink: Option<HostPart>,
    /// What is claimed.
    pub bound_ns: u64,
}

/// What an end-to-end certificate claims without proving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// The stages of the source.
    Source,
    /// The network.
    Network,
    /// The stages of the sink.
    Sink,
    /// Events may leave the source's stages more densely than the network counts.
    ToNetwork,
    /// Events may leave the network more densely than the sink's stages count.
    ToSink,
    /// The parts take more than the bound.
    Sum,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "the stages of the source are not proven",
            Self::Network => "the network is not proven",
            Self::Sink => "the stages of the sink are not proven",
            Self::ToNetwork => "events may leave the source more densely than the network counts",
            Self::ToSink => "events may leave the network more densely than the sink counts",
            Self::Sum => "the parts take more than the bound",
        })
    }
}

/// How often events come: period, jitter.
type Coming = (u128, u128);

/// Whether arrivals allow all that comes so. Arrivals with a distance allow less.
fn covers(arrivals: Arrivals, (period, jitter): Coming) -> bool {
    let Arrivals { period_ns, jitter_ns, distance_ns } = arrivals;
    u128::from(period_ns) <= period && u128::from(jitter_ns) >= jitter && distance_ns == 0
}

/// Checks each part, that the arrivals of each follow from the part before, and the sum. It computes no bound again.
///
/// # Errors
/// The first claim that is not proven.
pub fn check(claim: &EndToEnd) -> Result<(), Unproven> {
    let flow = claim.network.flows.get(claim.flow).ok_or(Unproven::Network)?;
    network::check(&claim.network).map_err(|_| Unproven::Network)?;
    let mut sum = u128::from(flow.limit_ns);
    let mut coming = (claim.arrivals.period_ns.into(), claim.arrivals.jitter_ns.into());
    if let Some(source) = &claim.source {
        let (ns, arrivals, left) = host(source).ok_or(Unproven::Source)?;
        sum += ns;
        let Arrivals { period_ns, jitter_ns, distance_ns } = arrivals;
        let is_counted = period_ns <= claim.arrivals.period_ns && jitter_ns >= claim.arrivals.jitter_ns;
        if !is_counted || distance_ns > claim.arrivals.distance_ns {
            return Err(Unproven::Source);
        }
        // Events that come more rarely than the stages count leave so.
        coming.1 = left.1;
    }
    if !covers(flow.arrivals, coming) {
        return Err(Unproven::ToNetwork);
    }
    if let Some(sink) = &claim.sink {
        let (ns, arrivals, _) = host(sink).ok_or(Unproven::Sink)?;
        sum += ns;
        if !covers(arrivals, (coming.0, coming.1 + u128::from(flow.limit_ns))) {
            return Err(Unproven::ToSink);
        }
    }
    if sum > claim.bound_ns.into() { Err(Unproven::Sum) } else { Ok(()) }
}

/// The bound of a host's flow if it is proven, how its events come, and how they leave.
fn host(part: &HostPart) -> Option<(u128, Arrivals, Coming)> {
    verify(&part.certificate).ok()?; // tidy-allow(dropped-cause): the part that is not proven is named.
    let bound_ns = part.bound_ns()?;
    let (stages, claims) = part.parts()?;
    let (stage, claim) = (stages.last()?, claims.last()?);
    let early = u128::from(stage.piece_ns_min) + u128::from(stage.delay_ns_min);
    let spread = (u128::from(claim.response_ns) + u128::from(stage.delay_ns)).checked_sub(early)?;
    let left = (claim.arrivals.period_ns.into(), u128::from(claim.arrivals.jitter_ns) + spread);
    Some((bound_ns.into(), claims.first()?.arrivals, left))
}
