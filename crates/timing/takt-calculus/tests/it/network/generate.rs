//! Random networks and flows from a seed: switches in a tree or a ring with chords, each with
//! hosts.

use std::collections::VecDeque;

use takt_calculus::Arrivals;
use takt_calculus::network::{Branch, Depth, Flow, Frames, Hop, Port};

use crate::random::Random;

/// Largest Ethernet frame without FCS, in octets.
const FRAME_LEN: u64 = 1514;

/// Ports with the nodes that they connect.
pub struct Topology {
    pub ports: Vec<Port>,
    /// Source and destination node of each port.
    ends: Vec<(usize, usize)>,
    hosts: Vec<usize>,
    nodes: usize,
}

impl Topology {
    /// Returns a topology with `switches` switches and one to three hosts each.
    pub fn new(random: &mut Random, switches: usize) -> Self {
        let mut topology = Self { ports: Vec::new(), ends: Vec::new(), hosts: Vec::new(), nodes: switches };
        for switch in 1..switches {
            let other = random.between(0, switch as u64 - 1) as usize;
            topology.join(random, switch, other);
        }
        if switches > 2 && random.one_in(2) {
            topology.join(random, 0, switches - 1);
        }
        for switch in 0..switches {
            for _ in 0..random.between(1, 3) {
                let host = topology.nodes;
                topology.nodes += 1;
                topology.hosts.push(host);
                topology.join(random, host, switch);
            }
        }
        topology
    }

    /// Adds a link: a port at each end.
    fn join(&mut self, random: &mut Random, a: usize, b: usize) {
        let rate_bps = [10_000_000, 100_000_000, 1_000_000_000][random.between(0, 2) as usize];
        let classes = random.between(1, 4);
        for (from, to) in [(a, b), (b, a)] {
            let depth = |random: &mut Random| match random.between(0, 2) {
                0 => Depth { frames: random.between(2, 60), octets: u64::MAX },
                1 => Depth { octets: random.between(2_000, 60_000), frames: u64::MAX },
                _ => Depth::UNLIMITED,
            };
            let delay_ns = random.between(0, 20_000);
            self.ports.push(Port {
                name: format!("{from}-{to}"),
                rate_bps,
                foreign_frame_len: random.between(60, FRAME_LEN),
                classes: (0..classes).map(|_| depth(random)).collect(),
                delay_ns,
                delay_ns_min: random.between(0, delay_ns),
            });
            self.ends.push((from, to));
        }
    }

    /// Returns the shortest paths from a host: for each node, the port that leads to it.
    fn reached_from(&self, from: usize) -> Vec<Option<usize>> {
        let mut reached_by = vec![None; self.nodes];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (port, (_, next)) in self.ends.iter().enumerate().filter(|(_, (start, _))| *start == node) {
                if *next != from && reached_by[*next].is_none() {
                    reached_by[*next] = Some(port);
                    queue.push_back(*next);
                }
            }
        }
        reached_by
    }

    /// Returns the ports on the paths from a host to others, with the branches.
    fn tree(&self, from: usize, to: &[usize]) -> (Vec<usize>, Vec<Branch>) {
        let reached_by = self.reached_from(from);
        let (mut ports, mut branches) = (Vec::<usize>::new(), Vec::new());
        for leaf in to {
            let (mut branch, mut node) = (Vec::new(), *leaf);
            while let Some(port) = reached_by[node].filter(|port| !ports.contains(port)) {
                branch.push(port);
                node = self.ends[port].0;
            }
            // The rest of the path already exists.
            if let (Some(port), Some(_)) = (reached_by[node], branch.last()) {
                let after = ports.iter().position(|other| *other == port).expect("the port is on the path");
                branches.push(Branch { at: ports.len(), after });
            }
            ports.extend(branch.into_iter().rev());
        }
        (ports, branches)
    }

    /// Returns a flow from a host to another one, or to several.
    pub fn flow(&self, random: &mut Random, number: u64) -> Flow {
        let host = |random: &mut Random| random.between(0, self.hosts.len() as u64 - 1) as usize;
        let from = host(random);
        let receivers = if random.one_in(5) { random.between(2, 5) } else { 1 };
        let to = (0..receivers).map(|_| from + random.between(1, self.hosts.len() as u64 - 1) as usize);
        let to: Vec<usize> = to.map(|to| self.hosts[to % self.hosts.len()]).collect();
        let (route, branches) = self.tree(self.hosts[from], &to);
        let period_ns = random.between(500_000, 20_000_000);
        let arrivals = Arrivals {
            period_ns,
            jitter_ns: if random.one_in(3) { random.between(0, 2 * period_ns) } else { 0 },
            distance_ns: if random.one_in(3) { random.between(0, period_ns / 2) } else { 0 },
        };
        let mut frames = vec![Frames { len: random.between(60, FRAME_LEN), count: 1 }];
        if random.one_in(4) {
            frames.push(Frames { len: FRAME_LEN, count: random.between(1, 6) });
        }
        let hop =
            |port: usize| Hop { port, class: random.between(0, self.ports[port].classes.len() as u64 - 1) as usize };
        let hops = route.into_iter().map(hop).collect();
        let limit_ns = random.between(300_000, 60_000_000);
        Flow { name: format!("flow {number}"), arrivals, frames, hops, branches, limit_ns }
    }
}
