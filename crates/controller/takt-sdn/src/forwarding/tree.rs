//! Spanning tree for floods and shortest paths for unicast.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::PortRef;

/// A link, the lower port first.
pub type Link = (PortRef, PortRef);

/// Connected components of switches (union-find).
#[derive(Default)]
struct Components {
    parents: BTreeMap<u64, u64>,
}

impl Components {
    fn root(&mut self, dpid: u64) -> u64 {
        let mut root = dpid;
        while let Some(parent) = self.parents.get(&root).copied().filter(|parent| *parent != root) {
            root = parent;
        }
        self.parents.insert(dpid, root);
        root
    }

    /// Joins the components of two switches; returns `false` if they are already joined.
    fn join(&mut self, a: u64, b: u64) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parents.insert(a.max(b), a.min(b));
        a != b
    }
}

/// Computes a spanning forest of the links (Kruskal's algorithm). Links of `active`, the present
/// tree, are preferred, so that a failed link changes no more of the tree than necessary. Links of
/// a switch that `is_frozen`, because it is disconnected and cannot be changed, stay as they are:
/// they are in the tree exactly if they are in `active`.
pub fn spanning_tree(
    links: &BTreeSet<Link>,
    active: &BTreeSet<Link>,
    is_frozen: impl Fn(u64) -> bool,
) -> BTreeSet<Link> {
    let frozen = |link: &&Link| is_frozen(link.0.dpid) || is_frozen(link.1.dpid);
    let remaining: Vec<&Link> = active.intersection(links).collect();
    let of_frozen = remaining.iter().copied().filter(frozen);
    let others = remaining.iter().copied().filter(|link| !frozen(link));
    let new = links.iter().filter(|link| !frozen(link));
    let mut components = Components::default();
    of_frozen.chain(others).chain(new).filter(|link| components.join(link.0.dpid, link.1.dpid)).copied().collect()
}

/// Returns, for each switch that reaches `target`, the port of its shortest path. Among equal
/// paths, the lowest next switch and port decide. Switches for which `is_transit` is false are only
/// ends of paths.
pub fn next_hops(links: &BTreeSet<Link>, target: u64, is_transit: impl Fn(u64) -> bool) -> BTreeMap<u64, u32> {
    let mut neighbors: BTreeMap<u64, BTreeSet<(u64, u32)>> = BTreeMap::new();
    for (a, b) in links {
        // Seen from the target: from `near`, the switch `far` is reached, whose own port leads
        // back.
        for (near, far) in [(a, b), (b, a)] {
            neighbors.entry(near.dpid).or_default().insert((far.dpid, far.port));
        }
    }
    let mut ports = BTreeMap::new();
    let mut queue = VecDeque::from([target]);
    while let Some(near) = queue.pop_front() {
        if near != target && !is_transit(near) {
            continue;
        }
        for (far, port) in neighbors.get(&near).into_iter().flatten() {
            if *far != target && !ports.contains_key(far) {
                ports.insert(*far, *port);
                queue.push_back(*far);
            }
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(a: u64, b: u64) -> Link {
        (PortRef::new(a, b as u32), PortRef::new(b, a as u32))
    }

    fn links(pairs: &[(u64, u64)]) -> BTreeSet<Link> {
        pairs.iter().map(|(a, b)| link(*a, *b)).collect()
    }

    fn none(_: u64) -> bool {
        false
    }

    fn all(_: u64) -> bool {
        true
    }

    #[test]
    fn tree_of_a_ring_omits_one_link() {
        let ring = links(&[(1, 2), (2, 3), (1, 3)]);
        let tree = spanning_tree(&ring, &BTreeSet::new(), none);
        assert_eq!(tree, links(&[(1, 2), (1, 3)]));
    }

    #[test]
    fn failed_link_changes_a_minimum_of_the_tree() {
        let square = links(&[(1, 2), (2, 3), (3, 4), (1, 4)]);
        let active = links(&[(2, 3), (3, 4), (1, 4)]);
        assert_eq!(spanning_tree(&square, &active, none), active);
        let without = links(&[(1, 2), (2, 3), (1, 4)]);
        assert_eq!(spanning_tree(&without, &active, none), without);
    }

    #[test]
    fn links_of_a_disconnected_switch_stay_as_they_are() {
        let ring = links(&[(1, 2), (2, 3), (1, 3)]);
        let active = links(&[(1, 3), (2, 3)]);
        // Switch 3 continues to flood to both, so the link between the others stays out.
        assert_eq!(spanning_tree(&ring, &active, |dpid| dpid == 3), active);
        // A link to switch 3 outside the tree stays out, even if it is the only one left.
        let left = links(&[(1, 3), (1, 2)]);
        let active = links(&[(1, 2), (2, 3)]);
        assert_eq!(spanning_tree(&left, &active, |dpid| dpid == 3), links(&[(1, 2)]));
    }

    #[test]
    fn random_graphs_have_trees_without_cycles_that_span() {
        let mut random = takt_testkit::Random(1);
        let mut random = move |bound: u64| random.next() % bound;
        for _ in 0..300 {
            let count = 2 + random(12);
            let graph: BTreeSet<Link> = (0..random(30))
                .map(|_| (random(count), random(count)))
                .filter(|(a, b)| a != b)
                .map(|(a, b)| link(a.min(b), a.max(b)))
                .collect();
            let active: BTreeSet<Link> = graph.iter().filter(|_| random(2) == 0).copied().collect();
            let active = spanning_tree(&active, &BTreeSet::new(), none);
            let tree = spanning_tree(&graph, &active, none);
            let parts = |links: &BTreeSet<Link>| {
                let mut components = Components::default();
                let joined = links.iter().filter(|link| components.join(link.0.dpid, link.1.dpid)).count();
                (joined, (0..count).map(|dpid| components.root(dpid)).collect::<BTreeSet<u64>>().len())
            };
            assert_eq!(parts(&tree).0, tree.len(), "no cycle");
            assert_eq!(parts(&tree).1, parts(&graph).1, "the tree spans every component");
            assert!(active.is_subset(&tree));
        }
    }

    #[test]
    fn paths_are_shortest_and_avoid_disconnected_switches() {
        let graph = links(&[(1, 2), (2, 3), (1, 4), (4, 5), (3, 5)]);
        let hops = next_hops(&graph, 3, all);
        assert_eq!(hops, BTreeMap::from([(1, 2), (2, 3), (4, 5), (5, 3)]));
        let hops = next_hops(&graph, 3, |dpid| dpid != 2);
        assert_eq!(hops, BTreeMap::from([(1, 4), (2, 3), (4, 5), (5, 3)]));
        assert_eq!(next_hops(&graph, 9, all), BTreeMap::new());
    }
}
