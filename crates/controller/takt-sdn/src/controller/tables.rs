//! Wanted tables of the switches, except for the rules of hosts and of admitted flows: the spanning
//! tree of the floods, the static rules and meters, and the receivers of multicast groups.

use std::collections::{BTreeMap, BTreeSet};

use takt_openflow::flow::FlowMod;

use super::{Config, Controller, Event};
use crate::PortRef;
use crate::admission::FIRST_METER;
use crate::devices::HostId;
use crate::forwarding::rules::{Kind, Rules, meter};
use crate::forwarding::{Link, next_hops, spanning_tree};
use crate::model::HostLimit;
use crate::topology::Role;

impl Controller {
    /// Directs frames of known groups to their receivers, along the tree.
    pub(super) fn want_groups(&mut self) {
        self.are_members_stale = true;
        let mut wanted: BTreeMap<u64, Vec<FlowMod>> = self.switches.keys().map(|dpid| (*dpid, Vec::new())).collect();
        for group in self.membership.groups().collect::<Vec<_>>() {
            let Some(receivers) = self.membership.receivers(group) else { continue };
            let [mut links, mut edges] = [(); 2].map(|()| BTreeMap::<u64, BTreeSet<u32>>::new());
            let dpids: BTreeSet<u64> = receivers.iter().map(|at| at.dpid).collect();
            for (dpid, port) in dpids.iter().flat_map(|dpid| next_hops(&self.active, *dpid, |_| true)) {
                links.entry(dpid).or_default().insert(port);
            }
            for at in receivers {
                edges.entry(at.dpid).or_default().insert(at.port);
            }
            let (id, none) = (HostId { vlan: 0, mac: group }, BTreeSet::new());
            for (dpid, wanted) in &mut wanted {
                let Some(switch) = self.switches.get(dpid) else { continue };
                let rules = rules(&self.config, switch.has_meters, &switch.limits);
                let [links, edges] = [&links, &edges].map(|ports| ports.get(dpid).unwrap_or(&none));
                wanted.extend(rules.multicast(id, links, edges));
            }
        }
        for (dpid, rules) in wanted {
            if let Some(switch) = self.switches.get_mut(&dpid) {
                switch.sync.want_all(Kind::Multicast.cookie(), rules);
            }
        }
    }

    fn is_frozen(&self, dpid: u64) -> bool {
        self.switches.get(&dpid).is_none_or(|switch| switch.connection.is_none() || switch.sync.is_held)
    }

    /// Follows changed roles or links: removes hosts at ports that are no edges and lost links of
    /// the tree, and updates the tables.
    pub(super) fn follow_topology(&mut self) {
        let lost =
            self.devices.iter().filter(|(_, host)| matches!(self.topology.role(host.at), Role::Down | Role::Link(_)));
        let ports: BTreeSet<PortRef> = lost.map(|(_, host)| host.at).collect();
        for at in ports {
            let hosts = self.devices.remove_port(at);
            hosts.into_iter().for_each(|host| self.remove_host(host));
        }
        let known: BTreeSet<u64> = self.topology.switches().collect();
        self.switches.retain(|dpid, switch| switch.connection.is_some() || known.contains(dpid));
        let links = self.links();
        let tree = spanning_tree(&links, &self.active, |dpid| self.is_frozen(dpid));
        let remaining: BTreeSet<Link> = self.active.intersection(&tree).copied().collect();
        if remaining != self.active {
            self.active = remaining;
            self.push(Event::Tree(self.active.clone()));
        }
        self.want_all_static();
        self.renew_routes(&links);
    }

    /// Adds links to the tree after every switch has acknowledged all earlier changes.
    pub(super) fn extend_tree(&mut self) {
        if !self.is_settled() {
            return;
        }
        let tree = spanning_tree(&self.links(), &self.active, |dpid| self.is_frozen(dpid));
        if tree == self.active {
            return;
        }
        self.active = tree;
        self.want_groups();
        self.push(Event::Tree(self.active.clone()));
        self.want_all_static();
    }

    /// Derives the tables of all switches, except for the rules of hosts.
    pub(super) fn want_all_static(&mut self) {
        let dpids: Vec<u64> = self.switches.keys().copied().collect();
        dpids.into_iter().for_each(|dpid| self.want_static(dpid));
    }

    /// Derives the tables of a switch, except for the rules of hosts.
    pub(super) fn want_static(&mut self, dpid: u64) {
        let ports: Vec<(u32, Role)> = self.topology.ports(dpid).map(|(port, role)| (port.number, role)).collect();
        let ends = self.active.iter().flat_map(|(a, b)| [a, b]);
        let tree: BTreeSet<u32> = ends.filter(|end| end.dpid == dpid).map(|end| end.port).collect();
        let metatraffic = self.metatraffic.values().flatten().copied().collect();
        let limits = self.host_limits(dpid);
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        switch.limits = if switch.has_meters { limits } else { BTreeMap::new() };
        let rules = rules(&self.config, switch.has_meters, &switch.limits);
        rules.flood_groups(&ports, &tree).into_iter().for_each(|group| switch.sync.want_group(group));
        switch.sync.want_all(Kind::Base.cookie(), rules.base(&self.discovery_ports, &metatraffic));
        switch.sync.want_all(Kind::Isolation.cookie(), rules.isolation(&self.filters));
        switch.sync.want_all(Kind::Topology.cookie(), rules.topology(&ports, &tree));
        if switch.has_admitted && self.admission.is_some() && self.restoration.is_none() {
            // Entries and meters of admitted flows do not depend on ports.
            let admitted = FIRST_METER..meter::HOSTS;
            switch.sync.want_meters_outside(&admitted, rules.meters(&ports).into_values().collect());
        } else {
            self.want_admitted(dpid);
        }
    }
}

/// Creates the rule builder of a switch.
pub(super) fn rules<'a>(config: &'a Config, has_meters: bool, limits: &'a BTreeMap<u32, HostLimit>) -> Rules<'a> {
    Rules { config: &config.forwarding, has_meters, limits }
}
