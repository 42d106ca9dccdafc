//! Rules of hosts: the source rule, by which a host sends without the controller, and the routes
//! that lead to it by the shortest paths.

use std::collections::{BTreeMap, BTreeSet};

use takt_openflow::channel::Instant;
use takt_openflow::flow::{FlowRemoved, RemovedReason};

use super::sync::fields;
use super::tables::rules;
use super::{Controller, Event, FlowKey};
use crate::PortRef;
use crate::devices::HostId;
use crate::forwarding::rules::{Kind, host_of};
use crate::forwarding::{Link, next_hops};

impl Controller {
    /// Handles the removal of a rule by a switch. A rule to a host that timed out is no longer
    /// wanted.
    pub(super) fn handle_removed(&mut self, now: Instant, dpid: u64, removed: &FlowRemoved) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let key = FlowKey::of_removed(removed);
        let Some(flow) = switch.sync.removed(&key) else { return };
        if removed.reason != RemovedReason::IDLE_TIMEOUT {
            return;
        }
        let Some((host, _)) = host_of(fields(&flow.matching)) else { return };
        if flow.cookie == Kind::Source.cookie() {
            switch.sync.drop_flow(&key);
            switch.sources.remove(&host);
            self.devices.set_active(now, host, false);
        } else if flow.cookie == Kind::Route.cookie() {
            switch.sync.drop_flow(&key);
            switch.routes.remove(&host);
        }
    }

    /// Returns the port of a switch that leads to a host; `None` without a known path.
    pub(super) fn next_hop_port(&self, links: &BTreeSet<Link>, dpid: u64, host: HostId) -> Option<u32> {
        let at = self.devices.get(host)?.at;
        if at.dpid == dpid {
            return Some(at.port);
        }
        next_hops(links, at.dpid, |dpid| self.topology.is_connected(dpid)).get(&dpid).copied()
    }

    /// Updates the rules that lead to hosts to the shortest paths.
    pub(super) fn renew_routes(&mut self, links: &BTreeSet<Link>) {
        let routes = self.switches.iter();
        let routes: Vec<(u64, HostId, u32)> =
            routes.flat_map(|(dpid, switch)| switch.routes.iter().map(|(host, port)| (*dpid, *host, *port))).collect();
        let mut ports_by_host: BTreeMap<HostId, BTreeMap<u64, u32>> = BTreeMap::new();
        for (dpid, host, old) in routes {
            let at = self.devices.get(host).map(|host| host.at);
            let hops = ports_by_host.entry(host).or_insert_with(|| {
                let mut hops = at.map_or_else(BTreeMap::new, |at| {
                    next_hops(links, at.dpid, |dpid| self.topology.is_connected(dpid))
                });
                hops.extend(at.map(|at| (at.dpid, at.port)));
                hops
            });
            match hops.get(&dpid) {
                Some(port) if *port == old => {}
                Some(port) => self.want_route(dpid, host, *port),
                None => self.drop_route(dpid, host),
            }
        }
    }

    pub(super) fn want_route(&mut self, dpid: u64, host: HostId, port: u32) {
        let limit = self.config.forwarding.rules;
        let is_last = self.devices.get(host).is_some_and(|host| host.at == PortRef::new(dpid, port));
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let is_full = switch.routes.len() + switch.sources.len() >= limit;
        if is_full && !switch.routes.contains_key(&host) {
            self.counters.no_room_for_rule += 1;
            return;
        }
        let rules = rules(&self.config, switch.has_meters, &switch.limits);
        switch.sync.want(rules.route(host, port, is_last));
        switch.routes.insert(host, port);
    }

    fn drop_route(&mut self, dpid: u64, host: HostId) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let rules = rules(&self.config, switch.has_meters, &switch.limits);
        if let Some(port) = switch.routes.remove(&host) {
            switch.sync.drop_flow(&FlowKey::of(&rules.route(host, port, false)));
        }
    }

    /// Installs a rule that lets a host send from its port without the controller.
    pub(super) fn want_source(&mut self, now: Instant, at: PortRef, host: HostId) {
        let limit = self.config.forwarding.rules;
        let Some(switch) = self.switches.get_mut(&at.dpid) else { return };
        let is_full = switch.routes.len() + switch.sources.len() >= limit;
        if is_full && !switch.sources.contains_key(&host) {
            self.counters.no_room_for_rule += 1;
            return;
        }
        let rules = rules(&self.config, switch.has_meters, &switch.limits);
        switch.sync.want(rules.source(host, at.port));
        switch.sources.insert(host, at.port);
        self.devices.set_active(now, host, true);
    }

    /// Drops the rules that let a host send or lead to it.
    pub(super) fn drop_rules_of(&mut self, host: HostId) {
        let dpids: Vec<u64> = self.switches.keys().copied().collect();
        for dpid in dpids {
            self.drop_route(dpid, host);
            let Some(switch) = self.switches.get_mut(&dpid) else { continue };
            let rules = rules(&self.config, switch.has_meters, &switch.limits);
            if let Some(port) = switch.sources.remove(&host) {
                switch.sync.drop_flow(&FlowKey::of(&rules.source(host, port)));
            }
        }
    }

    pub(super) fn remove_host(&mut self, host: HostId) {
        self.drop_rules_of(host);
        self.push(Event::HostGone(host));
    }
}
