//! Paths through the network: loop-free paths in ascending length, and trees of them for several
//! receivers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use takt_calculus::network::{Branch, HOPS_MAX};

use crate::model::{Egress, HostId, Node, Snapshot};

/// Maximum number of paths to one receiver that are considered.
pub const PATHS_MAX: usize = 4;

/// Maximum number of search steps for paths to one receiver.
const STEPS_MAX: usize = 512;

/// Maximum number of additional hops of a path compared with the shortest one.
pub const DETOUR_MAX: usize = 4;

/// Ports from a source to its receivers, each after its predecessor or at a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Ports, that of the source first.
    pub ports: Vec<Egress>,
    /// Branches at which frames are copied.
    pub branches: Vec<Branch>,
}

impl Tree {
    /// Returns the ports on the path to a host.
    fn path_to(&self, snapshot: &Snapshot, host: HostId) -> Option<Vec<Egress>> {
        let is_last = |port: &Egress| snapshot.link(*port).is_some_and(|link| link.to == Node::Host(host));
        let mut at = Some(self.ports.iter().position(is_last)?);
        let mut path = Vec::new();
        while let Some(n) = at {
            path.push(self.ports[n]);
            let branch = self.branches.iter().find(|branch| branch.at == n);
            at = branch.map_or(n.checked_sub(1), |branch| Some(branch.after));
        }
        path.reverse();
        Some(path)
    }
}

/// Returns the number of hops from each switch to a host; links have the same state in both
/// directions.
fn distances(snapshot: &Snapshot, to: HostId) -> BTreeMap<Node, usize> {
    let mut distances = BTreeMap::from([(Node::Host(to), 0)]);
    let mut queue = VecDeque::from([(Node::Host(to), 0)]);
    while let Some((node, distance)) = queue.pop_front() {
        for (_, next) in snapshot.neighbors(node) {
            if matches!(next, Node::Switch(_)) && !distances.contains_key(&next) {
                distances.insert(next, distance + 1);
                queue.push_back((next, distance + 1));
            }
        }
    }
    distances
}

/// Returns the shortest loop-free paths between two hosts, at most [`PATHS_MAX`], each at most
/// [`DETOUR_MAX`] hops longer than the shortest. Other hosts do not forward.
pub fn paths(snapshot: &Snapshot, from: HostId, to: HostId) -> Vec<Vec<Egress>> {
    let distances = distances(snapshot, to);
    let (mut found, mut steps) = (Vec::new(), 0);
    // Ordered by the total length of the path, where the length of the rest is the distance.
    let mut open = BinaryHeap::from([Reverse((0, Vec::<Egress>::new(), Node::Host(from)))]);
    let mut longest = HOPS_MAX;
    while let Some(Reverse((len, path, node))) = open.pop() {
        if len > longest {
            break;
        }
        if node == Node::Host(to) {
            longest = longest.min(len + DETOUR_MAX);
            found.push(path);
            if found.len() == PATHS_MAX {
                break;
            }
            continue;
        }
        steps += 1;
        if steps > STEPS_MAX {
            break;
        }
        for (port, next) in snapshot.neighbors(node) {
            let Some(rest) = distances.get(&next) else { continue };
            let is_known = path.iter().any(|before| before.node() == next) || path.len() + 1 + rest > HOPS_MAX;
            if !is_known {
                let mut longer = path.clone();
                longer.push(port);
                open.push(Reverse((longer.len() + rest, longer, next)));
            }
        }
    }
    found
}

/// Returns the union of one path to each receiver: a later path branches off at its last node in
/// the tree.
fn grow(snapshot: &Snapshot, from: HostId, paths: &[&Vec<Egress>]) -> Option<Tree> {
    let mut tree = Tree::default();
    // Hop that reaches each node.
    let mut reached: BTreeMap<Node, Option<usize>> = BTreeMap::from([(Node::Host(from), None)]);
    for path in paths {
        let ends = |port: &Egress| snapshot.link(*port).map(|link| link.to);
        let last = ends(path.last()?)?;
        if reached.contains_key(&last) {
            continue;
        }
        let joins = path.iter().rposition(|port| reached.contains_key(&port.node()))?;
        let after = reached[&path[joins].node()];
        for (n, port) in path[joins..].iter().enumerate() {
            let at = tree.ports.len();
            if let Some(after) = after.filter(|after| n == 0 && after + 1 != at) {
                tree.branches.push(Branch { at, after });
            }
            tree.ports.push(*port);
            reached.insert(ends(port)?, Some(at));
        }
    }
    (!tree.ports.is_empty() && tree.ports.len() <= HOPS_MAX).then_some(tree)
}

/// Returns a tree that keeps the paths of `base` to receivers reached by links that are up, and
/// adds the shortest path to each other receiver. `None` if a receiver is unreachable.
pub fn extended(snapshot: &Snapshot, base: &Tree, from: HostId, to: &[HostId]) -> Option<Tree> {
    let is_up = |path: &Vec<Egress>| path.iter().all(|port| snapshot.link(*port).is_some_and(|link| link.is_up));
    let (known, new): (Vec<_>, Vec<_>) =
        to.iter().map(|to| (to, base.path_to(snapshot, *to).filter(is_up))).partition(|(_, path)| path.is_some());
    let mut known_paths: Vec<Vec<Egress>> = known.into_iter().filter_map(|(_, path)| path).collect();
    for (to, _) in new {
        known_paths.push(paths(snapshot, from, *to).into_iter().next()?);
    }
    grow(snapshot, from, &known_paths.iter().collect::<Vec<_>>())
}

/// Returns trees from a host to the receivers: one with the shortest path to each receiver, one
/// with the second path to each, and so on, without duplicates. `None` if a receiver is
/// unreachable.
pub fn trees(snapshot: &Snapshot, from: HostId, to: &[HostId]) -> Option<Vec<Tree>> {
    let each: Vec<Vec<Vec<Egress>>> = to.iter().map(|to| paths(snapshot, from, *to)).collect();
    if each.is_empty() || each.iter().any(Vec::is_empty) {
        return None;
    }
    let mut trees = Vec::new();
    for n in 0..PATHS_MAX {
        let chosen: Vec<&Vec<Egress>> = each.iter().map(|paths| &paths[n.min(paths.len() - 1)]).collect();
        if let Some(tree) = grow(snapshot, from, &chosen).filter(|tree| !trees.contains(tree)) {
            trees.push(tree);
        }
    }
    Some(trees)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use takt_calculus::network::Depth;

    use super::*;
    use crate::PortRef;
    use crate::model::{HostInterface, Network, SwitchModel};

    /// Builds a ring of four switches with one host each, of the same number.
    fn ring() -> Network {
        let model = Arc::new(SwitchModel::built_in("generic-hardware").expect("the model is built in"));
        let mut network = Network::default();
        for dpid in 0..4 {
            network.add_switch(dpid, Arc::clone(&model)).expect("the network accepts the switch");
        }
        for dpid in 0..4 {
            network.link([(dpid, 1), ((dpid + 1) % 4, 2)], 1_000_000_000, 0).expect("the ports are free");
            let interface = HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 };
            network.attach(HostId(dpid), interface, (dpid, 3), 1_000_000_000, 0).expect("the port is free");
        }
        network
    }

    fn switches(path: &[Egress]) -> Vec<u64> {
        path.iter()
            .filter_map(|port| if let Egress::Switch(PortRef { dpid, .. }) = port { Some(*dpid) } else { None })
            .collect()
    }

    #[test]
    fn paths_come_in_ascending_length_and_have_no_loop() {
        let snapshot = ring().snapshot();
        let found: Vec<_> = paths(&snapshot, HostId(0), HostId(1)).iter().map(|path| switches(path)).collect();
        assert_eq!(found, [vec![0, 1], vec![0, 3, 2, 1]]);
        assert!(paths(&snapshot, HostId(0), HostId(9)).is_empty());
    }

    #[test]
    fn paths_avoid_links_that_are_down() {
        let mut network = ring();
        network.set_up(Egress::Switch(PortRef::new(0, 1)), false).expect("the port has a link");
        let found = paths(&network.snapshot(), HostId(0), HostId(1));
        assert_eq!(found.iter().map(|path| switches(path)).collect::<Vec<_>>(), [vec![0, 3, 2, 1]]);
    }

    #[test]
    fn tree_shares_the_ports_that_its_receivers_have_in_common() {
        let snapshot = ring().snapshot();
        let trees = trees(&snapshot, HostId(0), &[HostId(1), HostId(2), HostId(1)]).expect("they are reached");
        let first = &trees[0];
        assert_eq!(switches(&first.ports), [0, 1, 1, 2]);
        // The second receiver is reached from the switch after the second hop.
        assert_eq!(first.branches, [Branch { at: 3, after: 1 }]);
        for tree in &trees {
            let mut ports = tree.ports.clone();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), tree.ports.len(), "no port twice");
        }
    }
}
