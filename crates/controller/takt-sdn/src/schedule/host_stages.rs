//! Division of a pair's limit between its hosts and the network, by the stages that its endpoints
//! announce.
//!
//! A Takt endpoint on an executor with a system file announces the bounds of its host's stages
//! ([`takt_wire::discovery::HostStages`]). A writer announces the bound from `write` to the queue
//! of its interface, and the jitter of samples there. A reader announces the bound from its
//! interface to the end of the callback, and the jitter of samples from the network for which it
//! holds. The bounds may be added if
//!
//! - the contract's separation is no shorter than those of the analyses,
//! - jitter at the network and limit of the network together are within the jitter of the reader's
//!   analysis,
//! - the limit of the network is what the hosts leave of the pair's.
//!
//! The controller trusts the announced bounds. [`compose`] replaces them by certificates of the
//! hosts.

use std::fmt;

use takt_calculus::composition::{EndToEnd, HostPart};
use takt_calculus::network::NetworkCertificate;
use takt_calculus::{Arrivals, Certificate};
use takt_wire::discovery::HostStages;

/// Announced stages of a pair. An end without stages begins or ends at its interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairStages {
    /// Stages of the writer's host.
    pub writer: Option<HostStages>,
    /// Stages of the reader's host.
    pub reader: Option<HostStages>,
}

/// The network's part of a pair's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkShare {
    /// Jitter in ns: maximum delay of a sample, relative to its nominal time, at the queue of the
    /// interface.
    pub jitter_ns: u64,
    /// Limit in ns from that queue to the interface of the reader's host.
    pub limit_ns: u64,
    /// Maximum of `limit_ns` if the limit of the pair is raised: the jitter in the analysis of the
    /// reader's stages bounds it.
    pub limit_ns_max: u64,
}

/// Reason why nothing is left to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// The bounds of an end do not hold for the contract's separation of samples.
    Separation {
        /// Whether the end is the writer; otherwise it is the reader.
        is_writer: bool,
        /// Minimum separation in ns for which the bounds hold.
        period_ns: u64,
        /// Separation in ns that the contract allows.
        separation_ns: u64,
    },
    /// The bounds of the hosts alone use up the limit.
    Hosts {
        /// Bound of the writer's stages.
        writer_ns: u64,
        /// Bound of the reader's stages.
        reader_ns: u64,
        /// Limit of the pair.
        limit_ns: u64,
    },
    /// The reader's bounds do not hold for the jitter that samples have already at the writer's
    /// host.
    Jitter {
        /// Jitter in ns for which the reader's bounds hold.
        allowed_ns: u64,
        /// Jitter in ns of samples at the interface of the writer's host.
        jitter_ns: u64,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Separation { is_writer, period_ns, separation_ns } => {
                let end = if *is_writer { "writer" } else { "reader" };
                write!(
                    f,
                    "the stages of the {end}'s host are analyzed for a sample every {period_ns} ns, the contract allows one every \
                     {separation_ns} ns"
                )
            }
            Self::Hosts { writer_ns, reader_ns, limit_ns } => write!(
                f,
                "the writer's host takes up to {writer_ns} ns and the reader's up to {reader_ns} ns of {limit_ns} ns"
            ),
            Self::Jitter { allowed_ns, jitter_ns } => write!(
                f,
                "samples come up to {jitter_ns} ns late from the writer's host, the stages of the reader's host are analyzed for \
                 {allowed_ns} ns"
            ),
        }
    }
}

fn bound(stages: Option<&HostStages>) -> u64 {
    stages.map_or(0, HostStages::bound_ns)
}

impl PairStages {
    /// Returns the bounds of the writer's and of the reader's host in nanoseconds.
    pub fn bounds_ns(&self) -> (u64, u64) {
        (bound(self.writer.as_ref()), bound(self.reader.as_ref()))
    }

    /// Adds the bounds of the hosts to that of the network.
    pub fn whole_ns(&self, network_ns: u64) -> u64 {
        let (writer_ns, reader_ns) = self.bounds_ns();
        writer_ns.saturating_add(network_ns).saturating_add(reader_ns)
    }

    /// Divides a pair's limit. `jitter_ns` is the declared jitter: the larger one of this and the
    /// writer's applies, and `default_ns` if there is neither.
    ///
    /// # Errors
    /// Nothing is left to the network.
    pub fn share(
        &self,
        separation_ns: u64,
        (jitter_ns, default_ns): (Option<u64>, u64),
        limit_ns: u64,
    ) -> Result<NetworkShare, Unfit> {
        for (is_writer, stages) in [(true, &self.writer), (false, &self.reader)] {
            if let Some(HostStages { period_ns, .. }) = stages.as_ref().filter(|it| it.period_ns > separation_ns) {
                return Err(Unfit::Separation { is_writer, period_ns: *period_ns, separation_ns });
            }
        }
        let of_writer = self.writer.as_ref().map(|stages| stages.jitter_ns);
        let jitter_ns = of_writer.max(jitter_ns).unwrap_or(default_ns);
        let (writer_ns, reader_ns) = self.bounds_ns();
        let left_ns = limit_ns.checked_sub(writer_ns.saturating_add(reader_ns)).filter(|left_ns| *left_ns > 0);
        let left_ns = left_ns.ok_or(Unfit::Hosts { writer_ns, reader_ns, limit_ns })?;
        let allowed_ns = self.reader.as_ref().map_or(u64::MAX, |stages| stages.jitter_ns);
        let late_ns = allowed_ns.checked_sub(jitter_ns).filter(|late_ns| *late_ns > 0);
        let late_ns = late_ns.ok_or(Unfit::Jitter { allowed_ns, jitter_ns })?;
        Ok(NetworkShare { jitter_ns, limit_ns: left_ns.min(late_ns), limit_ns_max: late_ns })
    }
}

/// Error of a host's certificates that do not prove the announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCertificate {
    /// Flow that no certificate contains with these stages and bounds.
    pub flow: String,
    /// Whether the endpoint is the writer; otherwise it is the reader.
    pub is_writer: bool,
}

impl fmt::Display for NoCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_writer { "writer" } else { "reader" };
        write!(f, "no certificate of a host has the stages that the {end} of flow {:?} announced", self.flow)
    }
}

/// Returns the part of a certificate that proves an announcement: a flow of this name with these
/// bounds.
fn part(hosts: &[Certificate], announced: &HostStages, is_writer: bool) -> Result<HostPart, NoCertificate> {
    let parts = hosts.iter().flat_map(|certificate| {
        let flows = certificate.system.flows.iter().enumerate().filter(|(_, flow)| flow.name == announced.flow);
        flows.filter_map(|(at, flow)| {
            let (all, own) = (flow.stages.len(), announced.stages.len());
            let stages = Some(if is_writer { (0, own) } else { (all.checked_sub(own)?, all) });
            Some(HostPart { certificate: certificate.clone(), flow: at, stages })
        })
    });
    let mut proving = parts.filter(|part| part.bound_ns().is_some_and(|bound_ns| bound_ns <= announced.bound_ns()));
    proving.next().ok_or_else(|| NoCertificate { flow: announced.flow.clone(), is_writer })
}

/// Composes the claim of a pair from `write` to callback with the certificates of its hosts, for
/// [`takt_calculus::composition::check`].
///
/// # Errors
/// No certificate of a host proves the announcement of an endpoint.
pub fn compose(
    stages: &PairStages,
    separation_ns: u64,
    (network, flow): (NetworkCertificate, usize),
    hosts: &[Certificate],
) -> Result<EndToEnd, NoCertificate> {
    let source = stages.writer.as_ref().map(|own| part(hosts, own, true)).transpose()?;
    let sink = stages.reader.as_ref().map(|own| part(hosts, own, false)).transpose()?;
    let network_ns = network.flows.get(flow).map_or(0, |flow| flow.limit_ns);
    let at_network = network.flows.get(flow).map(|flow| flow.arrivals);
    let at_first = |part: &HostPart| part.certificate.system.flows.get(part.flow)?.arrivals;
    let arrivals = match &source {
        Some(part) => at_first(part).map(|own| Arrivals { period_ns: own.period_ns.max(separation_ns), ..own }),
        None => at_network,
    };
    let arrivals = arrivals.unwrap_or(Arrivals::sporadic(separation_ns));
    Ok(EndToEnd { arrivals, source, network, flow, sink, bound_ns: stages.whole_ns(network_ns) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::discovery::HostStage;

    const MS: u64 = 1_000_000;

    fn stages(jitter_ns: u64, bound_ns: u64) -> Option<HostStages> {
        let stages = vec![HostStage::new("executor", bound_ns)];
        Some(HostStages { period_ns: 5 * MS, jitter_ns, flow: "steering".into(), stages })
    }

    #[test]
    fn hosts_leave_the_rest_of_the_limit_and_no_more_than_the_reader_allows() {
        let of = |writer, reader| PairStages { writer, reader };
        let share = |stages: &PairStages, jitter_ns| {
            let share = stages.share(5 * MS, (jitter_ns, 5 * MS), 10 * MS);
            share.map(|share| (share.jitter_ns, share.limit_ns))
        };
        let got = |jitter_ns, limit_ns| Ok((jitter_ns, limit_ns));
        assert_eq!(share(&of(None, None), None), got(5 * MS, 10 * MS), "as without stages");
        assert_eq!(share(&of(stages(MS, 2 * MS), None), None), got(MS, 8 * MS), "the writer's jitter is known");
        assert_eq!(share(&of(stages(MS, 2 * MS), None), Some(3 * MS)), got(3 * MS, 8 * MS), "the longer one holds");
        assert_eq!(share(&of(stages(MS, 2 * MS), stages(20 * MS, 3 * MS)), None), got(MS, 5 * MS));
        assert_eq!(share(&of(stages(MS, 2 * MS), stages(3 * MS, 3 * MS)), None), got(MS, 2 * MS), "bounded by jitter");
        let late = share(&of(stages(3 * MS, 2 * MS), stages(3 * MS, MS)), None);
        assert_eq!(late, Err(Unfit::Jitter { allowed_ns: 3 * MS, jitter_ns: 3 * MS }));
        let hosts = share(&of(stages(MS, 6 * MS), stages(20 * MS, 4 * MS)), None);
        assert_eq!(hosts, Err(Unfit::Hosts { writer_ns: 6 * MS, reader_ns: 4 * MS, limit_ns: 10 * MS }));
        for (pair, is_writer) in [(of(stages(0, MS), None), true), (of(None, stages(9 * MS, MS)), false)] {
            let dense = pair.share(4 * MS, (None, 4 * MS), 10 * MS);
            assert_eq!(dense, Err(Unfit::Separation { is_writer, period_ns: 5 * MS, separation_ns: 4 * MS }));
        }
    }
}
