//! Switches of a flow: the ingress port of its frames, and their output ports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Receivers;
use crate::PortRef;
use crate::model::{Egress, Node, QueueSelection, Snapshot};
use crate::schedule::Route;

/// Ingress and outputs of the frames of a flow at a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowSwitch {
    pub(super) dpid: u64,
    /// The only ingress port.
    pub(super) input: u32,
    /// Output ports in the lowest class.
    pub(super) other_ports: BTreeSet<u32>,
    /// Output ports in a class of the flow.
    pub(super) classed: Vec<(u32, QueueSelection)>,
}

impl FlowSwitch {
    fn new(dpid: u64, input: u32) -> Self {
        Self { dpid, input, other_ports: BTreeSet::new(), classed: Vec::new() }
    }
}

/// Reports for each hop of a route whether it leads to wanted hosts.
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

/// Returns the switches, each after the one that sends to it. `None` if the route does not match
/// `snapshot`.
pub(super) fn flow_switches(snapshot: &Snapshot, route: &Route, receivers: &Receivers) -> Option<Vec<FlowSwitch>> {
    let leads = wanted(snapshot, route, receivers);
    let mut switches: Vec<FlowSwitch> = Vec::new();
    for (hop, _) in route.hops.iter().zip(leads).filter(|(_, leads)| *leads) {
        let Egress::Switch(out) = hop.port else { continue };
        let before = hop.after.map_or(Egress::Host(route.source), |after| route.hops[after].port);
        // Port at which frames of the previous hop arrive.
        let Egress::Switch(input) = snapshot.link(before)?.back else { return None };
        let at = switches.iter().position(|switch| switch.dpid == out.dpid).unwrap_or_else(|| {
            switches.push(FlowSwitch::new(out.dpid, input.port));
            switches.len() - 1
        });
        switches[at].classed.push((out.port, hop.selection?));
    }
    let branches = branches(receivers, &switches);
    for edge in &receivers.other_ports {
        branch_to(&mut switches, &branches, *edge);
    }
    Some(switches)
}

/// Returns for each further switch the port that sends to it on the shortest path from the switches
/// of the flow, and its ingress port.
fn branches(receivers: &Receivers, switches: &[FlowSwitch]) -> BTreeMap<u64, (PortRef, u32)> {
    let mut neighbors: BTreeMap<u64, BTreeMap<PortRef, PortRef>> = BTreeMap::new();
    for (a, b) in receivers.links.iter() {
        neighbors.entry(a.dpid).or_default().insert(*a, *b);
        neighbors.entry(b.dpid).or_default().insert(*b, *a);
    }
    let mut reached: BTreeSet<u64> =
        switches.iter().map(|switch| switch.dpid).chain(receivers.avoided.iter().copied()).collect();
    let mut open: VecDeque<u64> = switches.iter().map(|switch| switch.dpid).collect();
    let mut branches = BTreeMap::new();
    while let Some(dpid) = open.pop_front() {
        for (out, input) in neighbors.get(&dpid).into_iter().flatten() {
            if reached.insert(input.dpid) {
                branches.insert(input.dpid, (*out, input.port));
                open.push_back(input.dpid);
            }
        }
    }
    branches
}

/// Sends frames to an edge in the lowest class, unless they arrive there, or already leave there in
/// their class.
fn branch_to(switches: &mut Vec<FlowSwitch>, branches: &BTreeMap<u64, (PortRef, u32)>, edge: PortRef) {
    let mut path = Vec::new();
    let mut out = edge;
    while !switches.iter().any(|switch| switch.dpid == out.dpid) {
        let Some((before, input)) = branches.get(&out.dpid) else { return };
        path.push((FlowSwitch::new(out.dpid, *input), out.port));
        out = *before;
    }
    let add = |switch: &mut FlowSwitch, port: u32| {
        if switch.input != port && switch.classed.iter().all(|(classed, _)| *classed != port) {
            switch.other_ports.insert(port);
        }
    };
    if let Some(switch) = switches.iter_mut().find(|switch| switch.dpid == out.dpid) {
        add(switch, out.port);
    }
    for (mut switch, port) in path.into_iter().rev() {
        add(&mut switch, port);
        switches.push(switch);
    }
}
