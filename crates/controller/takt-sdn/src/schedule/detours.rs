//! Backup paths of a flow: from each switch of its path around the following link.
//!
//! All detours form one tree toward the receiver, in the network without the links of the path in
//! their forward direction. A switch therefore sends every detoured frame by the same port, and
//! such a frame never returns to the path: it meets no second branch, however many links fail. A
//! detour may use links of the path in the backward direction. A detour exists from each switch if
//! no single link separates the two hosts (Menger).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use takt_calculus::network::HOPS_MAX;

use crate::model::{Egress, Node, Snapshot};

/// Returns the complete paths of a frame when one link of `path` is down, each with the index of
/// that link's port in `path`. A link without such a path has no detour. Links to hosts have none.
pub(super) fn detours(snapshot: &Snapshot, path: &[Egress]) -> Vec<(usize, Vec<Egress>)> {
    let Some((last, rest)) = path.split_last() else { return Vec::new() };
    let links = rest.iter().enumerate().filter(|(_, port)| matches!(port, Egress::Switch(_)));
    let forward: BTreeSet<Egress> = rest.iter().copied().collect();
    let next = ports_toward(snapshot, last.node(), &forward);
    let detour = |(n, port): (usize, &Egress)| {
        let mut ports = path[..n].to_vec();
        let mut node = port.node();
        while node != last.node() {
            let port = *next.get(&node)?;
            ports.push(port);
            node = snapshot.link(port)?.to;
        }
        ports.push(*last);
        (ports.len() <= HOPS_MAX).then_some((n, ports))
    };
    links.filter_map(detour).collect()
}

/// Returns for each switch the port of its shortest path to a node, by ports that are not excluded.
fn ports_toward(snapshot: &Snapshot, to: Node, excluded: &BTreeSet<Egress>) -> BTreeMap<Node, Egress> {
    let (mut ports, mut open) = (BTreeMap::new(), VecDeque::from([to]));
    while let Some(node) = open.pop_front() {
        for (port, before) in snapshot.neighbors(node) {
            let Some(back) = snapshot.link(port).map(|link| link.back) else { continue };
            let is_new = before != to && matches!(before, Node::Switch(_)) && !ports.contains_key(&before);
            if is_new && !excluded.contains(&back) {
                ports.insert(before, back);
                open.push_back(before);
            }
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use takt_calculus::network::Depth;

    use super::super::route;
    use super::*;
    use crate::PortRef;
    use crate::model::{HostId, HostInterface, Network, SwitchModel};

    /// Builds switches with one host each, of the same number, and these links, by port 10 plus the
    /// number of the other switch.
    fn network(switches: u64, links: &[(u64, u64)]) -> Network {
        let model = Arc::new(SwitchModel::built_in("generic-hardware").expect("the model is built in"));
        let mut network = Network::default();
        for dpid in 0..switches {
            network.add_switch(dpid, Arc::clone(&model)).expect("the network accepts the switch");
        }
        for (a, b) in links {
            network.link([(*a, 10 + *b as u32), (*b, 10 + *a as u32)], 1_000_000_000, 0).expect("the ports are free");
        }
        for dpid in 0..switches {
            let interface = HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 };
            network.attach(HostId(dpid), interface, (dpid, 1), 1_000_000_000, 0).expect("the port is free");
        }
        network
    }

    /// Returns the switches of the shortest path from host 0, and those of each detour.
    fn ways(network: &Network, to: u64) -> (Vec<u64>, Vec<(usize, Vec<u64>)>) {
        let snapshot = network.snapshot();
        let path = route::paths(&snapshot, HostId(0), HostId(to)).swap_remove(0);
        let switches = |ports: &[Egress]| {
            let switch = |port: &Egress| match port {
                Egress::Switch(PortRef { dpid, .. }) => Some(*dpid),
                Egress::Host(_) => None,
            };
            ports.iter().filter_map(switch).collect::<Vec<u64>>()
        };
        let found = detours(&snapshot, &path);
        (switches(&path), found.iter().map(|(n, ports)| (*n, switches(ports))).collect())
    }

    #[test]
    fn each_link_of_a_path_in_a_ring_has_a_detour_around_the_other_side() {
        let network = network(5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
        let (path, detours) = ways(&network, 2);
        assert_eq!(path, [0, 1, 2]);
        assert_eq!(
            detours,
            [(1, vec![0, 4, 3, 2]), (2, vec![0, 1, 0, 4, 3, 2])],
            "the second goes back by the first link"
        );
    }

    #[test]
    fn only_link_to_the_receiver_has_no_detour() {
        let network = network(4, &[(0, 1), (1, 2), (2, 0), (2, 3)]);
        let (path, detours) = ways(&network, 3);
        assert_eq!(path, [0, 2, 3]);
        assert_eq!(detours, []);
        assert_eq!(ways(&network, 0).1, [], "one switch");
    }

    /// The only path that avoids a link of the shortest one returns over its middle link.
    #[test]
    fn detour_may_use_links_of_the_path_backwards() {
        let links = [(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 2), (1, 6), (6, 7), (7, 5)];
        let (path, detours) = ways(&network(8, &links), 5);
        assert_eq!(path, [0, 1, 2, 5]);
        let expected = [(1, vec![0, 3, 4, 2, 1, 6, 7, 5]), (2, vec![0, 1, 6, 7, 5]), (3, vec![0, 1, 2, 1, 6, 7, 5])];
        assert_eq!(detours, expected);
    }
}
