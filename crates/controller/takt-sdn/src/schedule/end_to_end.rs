//! End-to-end bound from `write` to callback: stages on the hosts, and the network between them.
//!
//! The stages are flows of systems as in `takt analyze`: executors, and other resources that a
//! sample passes on its host. The queue of the host's interface belongs to the network.
//! [`takt_calculus::composition`] explains why the bounds add up.

use std::collections::BTreeMap;

use takt_calculus::Arrivals;
use takt_calculus::composition::{Division, DivisionError, EndToEnd, HostFlow, HostPart, divide};

use super::decision::RequestId;
use super::scheduler::Scheduler;
use super::streams::{Contract, Request};
use crate::model::{HostId, Snapshot};

/// Host stages of a request. A host without stages begins or ends at its interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostStages {
    /// Stages on the writer's host.
    pub source: Option<HostFlow>,
    /// Stages on the readers' hosts.
    pub sinks: BTreeMap<HostId, HostFlow>,
}

/// A request whose limit is divided between hosts and network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Request to the network: the contract of `write` with the jitter of the source's stages, and
    /// the rest of the limit.
    pub request: Request,
    limit_ns: u64,
    arrivals: Arrivals,
    source: Option<HostPart>,
    sinks: BTreeMap<HostId, HostPart>,
}

impl Plan {
    /// Divides the limit of a request whose contract applies from `write` to callback. With readers
    /// on several hosts, the network gets the smallest rest. The cost is that of analyzing the
    /// systems of all its hosts.
    ///
    /// # Errors
    /// A host has no bounds, or leaves nothing for the network.
    pub fn new(request: &Request, stages: &HostStages) -> Result<Self, DivisionError> {
        let contract = request.contract;
        let arrivals = contract.arrivals();
        let (mut sinks, mut network_limit_ns) = (BTreeMap::new(), u64::MAX);
        let mut first: Option<Division> = None;
        for destination in &request.destinations {
            let sink = stages.sinks.get(destination);
            let division = divide(arrivals, contract.limit_ns, stages.source.as_ref(), sink)?;
            network_limit_ns = network_limit_ns.min(division.network_limit_ns);
            sinks.extend(division.sink.clone().map(|part| (*destination, part)));
            first.get_or_insert(division);
        }
        let Division { arrivals: at_network, source, .. } = first.ok_or(DivisionError::NoFlow)?;
        let contract = Contract {
            min_separation_ns: at_network.period_ns,
            burst: 1,
            jitter_ns: at_network.jitter_ns,
            limit_ns: network_limit_ns,
            ..contract
        };
        let limit_ns = request.contract.limit_ns;
        Ok(Self { request: Request { contract, ..request.clone() }, limit_ns, arrivals, source, sinks })
    }

    /// Returns the bound from `write` to the callback on each reader's host with its proof, for
    /// [`takt_calculus::composition::check`]. `id` is the admitted [`request`](Self::request);
    /// `None` if it is not admitted.
    pub fn certificates(
        &self,
        scheduler: &Scheduler,
        snapshot: &Snapshot,
        id: RequestId,
    ) -> Option<BTreeMap<HostId, EndToEnd>> {
        let network_ns = scheduler.routes(snapshot, id)?.first()?.limit_ns;
        let (network, flow) = scheduler.certificate_of(id)?;
        let source_ns = self.source.as_ref().and_then(HostPart::bound_ns).unwrap_or_default();
        let each = self.request.destinations.iter().map(|destination| {
            let sink = self.sinks.get(destination);
            let sink_ns = sink.and_then(HostPart::bound_ns).unwrap_or_default();
            let claim = EndToEnd {
                arrivals: self.arrivals,
                source: self.source.clone(),
                network: network.clone(),
                flow,
                sink: sink.cloned(),
                bound_ns: source_ns.saturating_add(network_ns).saturating_add(sink_ns).min(self.limit_ns),
            };
            (*destination, claim)
        });
        Some(each.collect())
    }
}
