//! Flows that pairs share: one entry in each switch of the path and one meter for all pairs with
//! the same addresses and UDP port.
//!
//! Samples to a multicast group are one flow to the hosts of all readers. A writer sends each
//! sample once, so its pairs share one request. Other writers of its host that send to the group
//! have requests of their own to the same hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use takt_openflow::meter::MeterMod;

use super::demand::Demand;
use super::drain::Drain;
use super::protection::Protection;
use crate::PortRef;
use crate::discovery::Pair;
use crate::forwarding::Link;
use crate::model::{Egress, HostId, QueueSelection};
use crate::rules::{Entry, Policer, Receivers, Selector};
use crate::schedule::{Request, RequestId, Route};

/// Share that a pair has of a flow.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) pair: Pair,
    pub(super) demand: Demand,
    /// Whether the pair is removed: the share is freed when the meter passes no more than the other
    /// shares.
    pub(super) is_leaving: bool,
}

#[derive(Debug)]
pub(super) struct SharedFlow {
    pub(super) request: RequestId,
    pub(super) shares: Vec<Share>,
    pub(super) meter: u32,
    /// Edge ports of other members of the group.
    pub(super) other_member_edges: BTreeSet<PortRef>,
    /// Switches that refuse an entry for other members, until they may have room.
    pub(super) refusing_switches: BTreeSet<u64>,
    /// Disconnected switches that have no entry for other members.
    pub(super) unreachable: BTreeSet<u64>,
    /// Target entries, the last switch first.
    pub(super) entries: Vec<Entry>,
    /// Entries that the switches are to have now, on the way to `entries`.
    pub(super) placed: Vec<Entry>,
    /// Entries that the switches had and that are being deleted.
    pub(super) leaving: Vec<Entry>,
    /// Meter of the flow and the switch that has it.
    pub(super) policed: Option<(u64, MeterMod)>,
    /// Flows whose entries must be in force first.
    pub(super) after: BTreeSet<Selector>,
    /// Number of the class change, of any flow, that must be made first.
    pub(super) after_change: Option<u64>,
    /// Policer and hosts of the flow until then, and until the switches have confirmed it.
    pub(super) before: Option<(Policer, BTreeSet<HostId>)>,
    /// Classes of ports whose change is still pending.
    pub(super) held_selections: BTreeMap<Egress, QueueSelection>,
    /// Hosts reached by other paths than before, until no flow uses its old path.
    pub(super) withheld_hosts: BTreeSet<HostId>,
    /// Whether others wait until the flow has left what the scheduler no longer counts: old paths
    /// and dropped shares.
    pub(super) must_leave: bool,
    /// Path and classes when they were last computed.
    pub(super) route: Option<Route>,
    /// Whether the switches have its entries and its meter.
    pub(super) is_in_force: bool,
    /// Wait for frames of removed pairs.
    pub(super) drain: Option<Drain>,
    /// Whether a switch is changing the meter now.
    pub(super) is_meter_changing: bool,
    /// Wait since the last change of the meter.
    pub(super) metered: Option<Drain>,
    /// Whether a pair of the flow is released. The entries of a served flow change in steps.
    pub(super) is_served: bool,
    /// Protection against the failure of a link.
    pub(super) protection: Protection,
    /// Reason why its backup paths, which are being freed, are not searched again.
    pub(super) unprotectable: Option<String>,
    /// Versions of the switches of its entries when these were last checked and not confirmed.
    /// `None` if the flow has changed since.
    pub(super) checked_versions: Option<Vec<u64>>,
}

impl SharedFlow {
    pub(super) fn new(request: RequestId, meter: u32) -> Self {
        Self {
            request,
            shares: Vec::new(),
            meter,
            other_member_edges: BTreeSet::new(),
            refusing_switches: BTreeSet::new(),
            unreachable: BTreeSet::new(),
            entries: Vec::new(),
            placed: Vec::new(),
            leaving: Vec::new(),
            policed: None,
            after: BTreeSet::new(),
            after_change: None,
            before: None,
            held_selections: BTreeMap::new(),
            withheld_hosts: BTreeSet::new(),
            must_leave: false,
            route: None,
            is_in_force: false,
            drain: None,
            is_meter_changing: false,
            metered: None,
            is_served: false,
            protection: Protection::NotRequested,
            unprotectable: None,
            checked_versions: None,
        }
    }

    /// Returns the shares of pairs that are not removed.
    pub(super) fn present(&self) -> impl Iterator<Item = &Share> {
        self.shares.iter().filter(|share| !share.is_leaving)
    }

    /// Reports whether its entries are in force and it waits for nothing. Must be false wherever
    /// [`Admission::advance`](super::Admission::advance) may change it.
    pub(super) fn is_at_rest(&self) -> bool {
        let Self {
            after,
            after_change,
            before,
            held_selections: held,
            withheld_hosts: withheld,
            leaving,
            unreachable,
            ..
        } = self;
        let is_waiting = !after.is_empty() || after_change.is_some() || before.is_some() || !held.is_empty();
        let is_partial = !withheld.is_empty() || !leaving.is_empty() || !unreachable.is_empty();
        let is_moving = self.must_leave || self.is_meter_changing || self.protection.is_moving();
        let is_whole = !self.is_leaving() && !self.shares.iter().any(|share| share.is_leaving);
        self.is_in_force && self.is_placed() && is_whole && !is_waiting && !is_partial && !is_moving
    }

    /// Reports whether all pairs are removed, so that its entries are deleted.
    pub(super) fn is_leaving(&self) -> bool {
        self.present().next().is_none()
    }

    /// Returns the hosts of the present pairs.
    pub(super) fn hosts(&self) -> BTreeSet<HostId> {
        self.present().flat_map(|share| &share.demand.request.destinations).copied().collect()
    }

    /// Returns the present receivers of its frames: the hosts of present pairs, in their class.
    /// While hosts on `route` have to wait, no branch passes their switches. Otherwise they would
    /// get second copies by the branch when they are served.
    pub(super) fn receivers(&self, route: &Route, links: &Arc<BTreeSet<Link>>) -> Receivers {
        let is_served = |host: &HostId| self.before.as_ref().is_none_or(|(_, hosts)| hosts.contains(host));
        let hosts =
            self.hosts().into_iter().filter(|host| is_served(host) && !self.withheld_hosts.contains(host)).collect();
        let has_waiting = self.before.is_some() || !self.withheld_hosts.is_empty();
        let awaited = route.hops.iter().filter(|_| has_waiting).filter_map(|hop| match hop.port {
            Egress::Switch(at) => Some(at.dpid),
            Egress::Host(_) => None,
        });
        let avoided = self.refusing_switches.iter().chain(&self.unreachable).copied().chain(awaited).collect();
        Receivers { hosts, other_ports: self.other_member_edges.clone(), links: Arc::clone(links), avoided }
    }

    /// Returns the policer that the meter applies now.
    pub(super) fn present_policer(&self) -> Policer {
        self.before.as_ref().map_or_else(|| self.policer(), |(policer, _)| *policer)
    }

    /// Returns the policer for all present pairs together.
    pub(super) fn policer(&self) -> Policer {
        let mut requests: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for Share { demand, .. } in self.present() {
            let (rate, burst) = requests.entry(&demand.request.name).or_default();
            (*rate, *burst) = (demand.rate_kbps.max(*rate), demand.burst_kbit.max(*burst));
        }
        let none = Policer { meter: self.meter, rate_kbps: 0, burst_kbit: 0 };
        requests.values().fold(none, |sum, (rate, burst)| Policer {
            rate_kbps: sum.rate_kbps.saturating_add(*rate),
            burst_kbit: sum.burst_kbit.saturating_add(*burst),
            ..sum
        })
    }
}

/// Returns the requests of a flow to a group: one for each writer, to the hosts of all readers,
/// with the strictest demands of its pairs.
pub(super) fn requests<'a>(demands: impl Iterator<Item = &'a Demand> + Clone) -> Vec<Request> {
    let hosts: BTreeSet<HostId> = demands.clone().flat_map(|demand| &demand.request.destinations).copied().collect();
    merge(demands.map(|demand| &demand.request), &hosts.into_iter().collect::<Vec<HostId>>())
}

fn merge<'a>(all: impl Iterator<Item = &'a Request>, destinations: &[HostId]) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for request in all {
        let Some(known) = requests.iter_mut().find(|known| known.name == request.name) else {
            requests.push(Request { destinations: destinations.to_vec(), ..request.clone() });
            continue;
        };
        known.format.inline_qos_len = known.format.inline_qos_len.max(request.format.inline_qos_len);
        known.format.trailer_len = known.format.trailer_len.max(request.format.trailer_len);
        let (all, own) = (&mut known.contract, &request.contract);
        all.min_separation_ns = all.min_separation_ns.min(own.min_separation_ns);
        all.jitter_ns = all.jitter_ns.max(own.jitter_ns);
        all.sample_len = all.sample_len.max(own.sample_len);
        all.limit_ns = all.limit_ns.min(own.limit_ns);
        all.importance = all.importance.max(own.importance);
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Contract, WireFormat};

    fn request(separation_ns: u64, inline_qos_len: u64, trailer_len: u64) -> Request {
        let contract = Contract {
            min_separation_ns: separation_ns,
            burst: 1,
            jitter_ns: 0,
            sample_len: 100,
            limit_ns: 1_000_000,
            reliability: None,
            importance: 0,
        };
        let format = WireFormat { inline_qos_len, trailer_len, ..WireFormat::default() };
        Request { name: "writer".to_owned(), source: HostId(1), destinations: vec![HostId(2)], contract, format }
    }

    #[test]
    fn requests_of_a_writer_have_the_longest_frames_of_its_pairs() {
        for requests in [[request(5, 0, 60), request(4, 32, 0)], [request(4, 32, 0), request(5, 0, 60)]] {
            let merged = merge(requests.iter(), &[HostId(2), HostId(3)]);
            let expected = Request { destinations: vec![HostId(2), HostId(3)], ..request(4, 32, 60) };
            assert_eq!(merged, [expected]);
        }
    }
}
