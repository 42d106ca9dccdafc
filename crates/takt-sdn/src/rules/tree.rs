//! The switches of a flow: where its frames come in, and by which ports they leave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Receivers;
use crate::PortRef;
use crate::model::{Egress, Node, Reach, Snapshot};
use crate::schedule::Route;

/// What a switch does with the frames of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Station {
    pub(super) dpid: u64,
    /// The only port where they come in.
    pub(super) input: u32,
    /// Ports where they leave in the lowest class.
    pub(super) others: BTreeSet<u32>,
    /// Ports where they leave in a class of the flow.
    pub(super) classed: Vec<(u32, Reach)>,
}

impl Station {
    fn new(dpid: u64, input: u32) -> Self {
        Self { dpid, input, others: BTreeSet::new(), classed: Vec::new() }
    }
}

/// Which hops of a route lead to hosts that are wanted.
fn wanted(snapshot: &Snapshot, route: &Route, receivers: &Receivers) -> Vec<bool> {
    let is_end = |port| match snapshot.link(port).map(|link| link.to) {
        Some(Node::Host(host)) => receivers.hosts.contains(&host),
        _ => false,
    };
    let mut leads: Vec<bool> = route.hops.iter().map(|hop| is_end(hop.port)).collect();
    for n in (0..route.hops.len()).rev() {
        if let Some(after) = route.hops[n].after.filter(|_| leads[n]) {
            leads[after] = true;
        }
    }
    leads
}

/// The switches, each behind the one that sends to it. `None` if the route is not one of `snapshot`.
pub(super) fn stations(snapshot: &Snapshot, route: &Route, receivers: &Receivers) -> Option<Vec<Station>> {
    let leads = wanted(snapshot, route, receivers);
    let mut stations: Vec<Station> = Vec::new();
    for (hop, _) in route.hops.iter().zip(leads).filter(|(_, leads)| *leads) {
        let Egress::Switch(out) = hop.port else { continue };
        let before = hop.after.map_or(Egress::Host(route.source), |after| route.hops[after].port);
        // Where the port before it leads to.
        let Egress::Switch(input) = snapshot.link(before)?.back else { return None };
        let at = stations.iter().position(|station| station.dpid == out.dpid).unwrap_or_else(|| {
            stations.push(Station::new(out.dpid, input.port));
            stations.len() - 1
        });
        stations[at].classed.push((out.port, hop.reach?));
    }
    let branches = branches(receivers, &stations);
    for edge in &receivers.others {
        branch_to(&mut stations, &branches, *edge);
    }
    Some(stations)
}

/// For each further switch the port that sends to it on the shortest way from those of the flow, and the port where that comes in.
fn branches(receivers: &Receivers, stations: &[Station]) -> BTreeMap<u64, (PortRef, u32)> {
    let mut neighbours: BTreeMap<u64, BTreeMap<PortRef, PortRef>> = BTreeMap::new();
    for (a, b) in receivers.links.iter() {
        neighbours.entry(a.dpid).or_default().insert(*a, *b);
        neighbours.entry(b.dpid).or_default().insert(*b, *a);
    }
    let mut reached: BTreeSet<u64> =
        stations.iter().map(|station| station.dpid).chain(receivers.avoided.iter().copied()).collect();
    let mut open: VecDeque<u64> = stations.iter().map(|station| station.dpid).collect();
    let mut branches = BTreeMap::new();
    while let Some(dpid) = open.pop_front() {
        for (out, input) in neighbours.get(&dpid).into_iter().flatten() {
            if reached.insert(input.dpid) {
                branches.insert(input.dpid, (*out, input.port));
                open.push_back(input.dpid);
            }
        }
    }
    branches
}

/// Lets frames go to an edge in the lowest class, unless they come from there, or go there in their class.
fn branch_to(stations: &mut Vec<Station>, branches: &BTreeMap<u64, (PortRef, u32)>, edge: PortRef) {
    let mut way = Vec::new();
    let mut out = edge;
    while !stations.iter().any(|station| station.dpid == out.dpid) {
        let Some((before, input)) = branches.get(&out.dpid) else { return };
        way.push((Station::new(out.dpid, *input), out.port));
        out = *before;
    }
    let add = |station: &mut Station, port: u32| {
        if station.input != port && station.classed.iter().all(|(classed, _)| *classed != port) {
            station.others.insert(port);
        }
    };
    if let Some(station) = stations.iter_mut().find(|station| station.dpid == out.dpid) {
        add(station, out.port);
    }
    for (mut station, port) in way.into_iter().rev() {
        add(&mut station, port);
        stations.push(station);
    }
}
