//! Adoption of the hosts, the links and the routes of an earlier run from the tables of a switch.

use std::collections::BTreeSet;

use takt_openflow::action::Action;
use takt_openflow::channel::Instant;

use super::Controller;
use super::sync::fields;
use crate::PortRef;
use crate::devices::HostId;
use crate::forwarding::rules::{FLOOD_GROUP, Kind, host_of};
use crate::forwarding::{Link, spanning_tree};
use crate::topology::Role;

impl Controller {
    /// Adopts the hosts of an earlier run from the rules that let them send.
    pub(super) fn adopt_sources(&mut self, now: Instant, dpid: u64) {
        let Some(switch) = self.switches.get(&dpid) else { return };
        let flows = switch.sync.actual().flows.values().filter(|flow| flow.cookie == Kind::Source.cookie());
        let hosts: Vec<(HostId, u32)> = flows
            .filter_map(|flow| host_of(fields(&flow.matching)))
            .filter_map(|(host, port)| Some((host, port?)))
            .collect();
        for (host, port) in hosts {
            let at = PortRef::new(dpid, port);
            if self.topology.role(at) == Role::Edge && self.observe(now, at, host) {
                self.want_source(now, at, host);
            }
        }
    }

    /// Adopts the links of the tree and the rules that lead to hosts from an earlier run, and
    /// releases everything else for correction.
    pub(super) fn adopt_rest(&mut self, dpid: u64) {
        let links = self.links();
        let floods_to = |at: &PortRef| {
            let switch = self.switches.get(&at.dpid);
            let group = switch.and_then(|switch| switch.sync.actual().groups.get(&FLOOD_GROUP));
            let actions = group.into_iter().flat_map(|group| &group.buckets).flat_map(|bucket| &bucket.actions);
            actions.into_iter().any(|action| *action == Action::output(at.number()))
        };
        let of_switch = links.iter().filter(|(a, b)| a.dpid == dpid || b.dpid == dpid);
        let flooded: BTreeSet<Link> = of_switch.filter(|(a, b)| floods_to(a) && floods_to(b)).copied().collect();
        let both: BTreeSet<Link> = flooded.union(&self.active).copied().collect();
        self.active = spanning_tree(&both, &self.active, |_| false);
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        (switch.adopted_at, switch.sync.is_held, switch.is_unchecked) = (None, false, true);
        let routes = switch.sync.actual().flows.values().filter(|flow| flow.cookie == Kind::Route.cookie());
        let hosts: Vec<HostId> =
            routes.filter_map(|flow| host_of(fields(&flow.matching))).map(|(host, _)| host).collect();
        for host in hosts {
            if let Some(port) = self.next_hop_port(&links, dpid, host) {
                self.want_route(dpid, host, port);
            }
        }
        self.want_static(dpid);
    }
}
