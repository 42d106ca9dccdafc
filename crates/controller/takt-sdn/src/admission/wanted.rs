//! Wanted entries, meters and groups of admitted flows, by switch and by flow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use takt_openflow::flow::FlowMod;
use takt_openflow::group::GroupMod;
use takt_openflow::meter::MeterMod;

use super::Admission;
use super::shared::SharedFlow;
use crate::controller::FlowKey;
use crate::rules::Selector;

/// Entries, meters and groups of one flow, by switch.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Entries, each with the key that identifies it.
    pub flows: Vec<(u64, Arc<FlowKey>, FlowMod)>,
    /// Meters, by switch and number.
    pub meters: BTreeMap<(u64, u32), MeterMod>,
    /// Groups, by switch and number.
    pub groups: BTreeMap<(u64, u32), GroupMod>,
}

impl Admission {
    /// Returns the meters of flows whose first switch is this one.
    pub fn metered(&self, dpid: u64) -> impl Iterator<Item = (u32, Selector)> {
        let is_policed_here = move |flow: &SharedFlow| flow.policed.as_ref().is_some_and(|(at, _)| *at == dpid);
        self.flows.iter().filter(move |(_, flow)| is_policed_here(flow)).map(|(selector, flow)| (flow.meter, *selector))
    }

    /// Returns the entries that a switch is to have.
    pub fn entries(&self, dpid: u64) -> Vec<FlowMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let wanted = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        wanted.map(|entry| entry.flow.clone()).collect()
    }

    /// Returns the meters that a switch is to have: first the present ones, then those of leaving
    /// entries, which stay until the entries are deleted.
    pub fn meters(&self, dpid: u64) -> Vec<MeterMod> {
        let policed = self.flows.values().filter_map(|flow| flow.policed.as_ref());
        let policed = policed.filter(|(at, _)| *at == dpid).map(|(_, meter)| meter.clone());
        let leaving = self.flows.values().flat_map(|flow| &flow.leaving).filter(|entry| entry.dpid == dpid);
        policed.chain(leaving.filter_map(|entry| entry.meter.clone())).collect()
    }

    /// Returns the groups that a switch is to have.
    pub fn groups(&self, dpid: u64) -> Vec<GroupMod> {
        let flows = self.flows.values().filter(|flow| !flow.is_leaving());
        let entries = flows.flat_map(|flow| &flow.placed).filter(|entry| entry.dpid == dpid);
        entries.filter_map(|entry| entry.group.clone()).collect()
    }

    /// Returns the flows whose entries or meters in the switches may differ from the wanted ones
    /// since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<Selector> {
        self.flows.take_changed()
    }

    /// Returns the wanted state of a flow in the switches; nothing if the flow was removed.
    pub fn wanted(&self, selector: &Selector) -> Wanted {
        let Some(flow) = self.flows.get(selector) else { return Wanted::default() };
        let placed = flow.placed.iter().filter(|_| !flow.is_leaving());
        let leaving = flow.leaving.iter().filter_map(|entry| Some((entry.dpid, entry.meter.clone()?)));
        let mut meters = BTreeMap::new();
        for (dpid, meter) in flow.policed.iter().cloned().chain(leaving) {
            meters.entry((dpid, meter.meter)).or_insert(meter);
        }
        let groups =
            placed.clone().filter_map(|entry| entry.group.clone().map(|group| ((entry.dpid, group.group), group)));
        let groups = groups.collect();
        let flows = placed.map(|entry| (entry.dpid, Arc::clone(&entry.key), entry.flow.clone())).collect();
        Wanted { flows, meters, groups }
    }
}
