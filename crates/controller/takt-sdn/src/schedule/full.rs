//! Full ports: stored refusals, so that a flow with an equal demand is refused at once.
//!
//! A refusal is stored where the queue of a flow would overflow both in the lowest and in the most
//! urgent class. Until a flow leaves that port, another flow is refused there if its frames are at
//! least as long, as many and as frequent, with at least as much jitter and as many preceding hops.
//! It could fit only if the preceding ports delayed it less than the refused flow.

use std::collections::BTreeMap;

use takt_calculus::network::{Flow, Refused};

/// Maximum number of stored refusals per port.
const REFUSALS_MAX: usize = 16;

/// Demand of a flow at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Demand {
    /// Octets and frames per event.
    octets: u64,
    frames: u64,
    period_ns: u64,
    jitter_ns: u64,
    /// Number of hops before the port.
    before: usize,
}

impl Demand {
    fn of(flow: &Flow, at: usize) -> Self {
        let octets = flow.frames.iter().map(|frames| frames.len.saturating_mul(frames.count));
        Self {
            octets: octets.fold(0, u64::saturating_add),
            frames: flow.frames.iter().fold(0, |sum, frames| sum.saturating_add(frames.count)),
            period_ns: flow.arrivals.period_ns,
            jitter_ns: flow.arrivals.jitter_ns,
            before: at,
        }
    }

    fn is_at_least(&self, other: &Self) -> bool {
        let is_more = (self.octets, self.frames, self.jitter_ns, self.before);
        let than = (other.octets, other.frames, other.jitter_ns, other.before);
        is_more.0 >= than.0
            && is_more.1 >= than.1
            && is_more.2 >= than.2
            && is_more.3 >= than.3
            && self.period_ns <= other.period_ns
    }
}

/// Stored refusals by the index of the port.
#[derive(Debug, Clone, Default)]
pub(super) struct FullPorts {
    refusals: BTreeMap<usize, Vec<(Demand, Refused)>>,
}

impl FullPorts {
    /// Returns a stored refusal of a flow whose demand was at most that of this one.
    pub(super) fn refusal(&self, flow: &Flow) -> Option<&Refused> {
        flow.hops.iter().enumerate().find_map(|(at, hop)| {
            let own = Demand::of(flow, at);
            let refusals = self.refusals.get(&hop.port)?;
            refusals.iter().find(|(demand, _)| own.is_at_least(demand)).map(|(_, refused)| refused)
        })
    }

    /// Stores the refusal of a flow for which a port has no room in any class.
    pub(super) fn insert(&mut self, flow: &Flow, port: usize, refused: &Refused) {
        let Some(at) = flow.hops.iter().position(|hop| hop.port == port) else { return };
        let own = Demand::of(flow, at);
        let refusals = self.refusals.entry(port).or_default();
        refusals.retain(|(demand, _)| !demand.is_at_least(&own));
        if refusals.len() < REFUSALS_MAX {
            refusals.push((own, refused.clone()));
        }
    }

    /// Removes the refusals of ports that a flow leaves.
    pub(super) fn remove<'a>(&mut self, ports: impl Iterator<Item = &'a usize>) {
        ports.for_each(|port| _ = self.refusals.remove(port));
    }
}

#[cfg(test)]
mod tests {
    use takt_calculus::Arrivals;
    use takt_calculus::network::{Frames, Hop, QueueFault};

    use super::*;

    fn flow(len: u64, period_ns: u64, ports: &[usize]) -> Flow {
        Flow {
            name: "test".into(),
            arrivals: Arrivals::sporadic(period_ns),
            frames: vec![Frames { len, count: 1 }],
            hops: ports.iter().map(|port| Hop { port: *port, class: 0 }).collect(),
            branches: vec![],
            limit_ns: 1_000_000,
        }
    }

    #[test]
    fn full_port_refuses_equal_demands_until_a_flow_leaves_it() {
        let hop = Hop { port: 2, class: 3 };
        let refused = Refused::Queue { hop, fault: QueueFault::Overflow { octets: 1, frames: 1 } };
        let mut full = FullPorts::default();
        full.insert(&flow(500, 100, &[1, 2]), 2, &refused);
        assert_eq!(full.refusal(&flow(500, 100, &[1, 2, 5])), Some(&refused));
        assert_eq!(full.refusal(&flow(600, 90, &[4, 3, 2])), Some(&refused));
        for other in [flow(499, 100, &[1, 2]), flow(500, 101, &[1, 2]), flow(500, 100, &[2]), flow(500, 100, &[1, 3])] {
            assert_eq!(full.refusal(&other), None, "{other:?}");
        }
        // A refused flow with a smaller demand replaces both.
        full.insert(&flow(400, 100, &[1, 2]), 2, &refused);
        assert_eq!(full.refusals[&2].len(), 1);
        full.remove([1].iter());
        assert_eq!(full.refusal(&flow(450, 100, &[1, 2])), Some(&refused));
        full.remove([2].iter());
        assert_eq!(full.refusal(&flow(500, 100, &[1, 2])), None);
    }

    #[test]
    fn refusals_of_a_port_are_bounded() {
        let refused = Refused::TooManyPorts;
        let mut full = FullPorts::default();
        for n in 0..100 {
            // Longer frames are less frequent, so that no demand covers another.
            full.insert(&flow(100 + n, 100 + n, &[0]), 0, &refused);
        }
        assert_eq!(full.refusals[&0].len(), REFUSALS_MAX);
    }
}
