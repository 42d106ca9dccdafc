//! Drain times of a network: how long frames that are queued when flows change, and the frames that
//! they delay, have an effect.
//!
//! **One change.** From some time on, no frame of a flow enters hop `n` as before. Its last frame
//! reaches a later hop after at most the budgets and delays in between. Other frames wait for it,
//! or for frames that waited for it, until the end of the busy period that it belongs to. Its own
//! budget is therefore too short a wait: the frames queued behind it would meet the burst of the
//! next flow. The busy period of the lowest class ends after
//! [`QueueClaim::busy_ns`](crate::network::QueueClaim::busy_ns). From then on, the port behaves as
//! if the flow had never existed. Arrivals of other flows keep their bounds, since no budget is
//! lowered ([`Admission::hold_budgets`]).
//!
//! The proof for a flow that keeps its limit only by separated-flow analysis uses the service of
//! all its hops together. A frame that waits at one hop before the change, and at another one after
//! it, has neither service. Its frames therefore leave the network before another flow may use the
//! capacity.
//!
//! **Lowered budgets.** Frames that waited for longer than the lowered budget arrive later at the
//! following ports and delay other frames there in turn. A port is free of this effect when its
//! inputs are, their frames have arrived, and its busy period has ended. Over all ports, that is
//! the longest path through the network. A cycle of ports has no bound.

use alloc::vec::Vec;

use super::{Admission, Draft, FlowId, Refused};
use crate::Arrivals;
use crate::network::{HOPS_MAX, Hop};

impl Admission {
    /// Sets whether budgets must not be lowered. Otherwise, a flow that would exceed its limit
    /// lowers the budgets on its route once. That is sound only while no frame of a flow that was
    /// removed, or changed its hops, has an effect: [`memory_ns`](Self::memory_ns) after the last
    /// one.
    pub fn hold_budgets(&mut self, is_held: bool) {
        self.budgets_are_held = is_held;
    }

    /// Reports whether budgets are not lowered.
    pub fn holds_budgets(&self) -> bool {
        self.budgets_are_held
    }

    /// Returns the budgets of all queues.
    pub fn budgets(&self) -> impl Iterator<Item = (Hop, u64)> {
        let of_port = |(port, queues): (usize, &'_ Vec<crate::network::QueueClaim>)| {
            let budgets: Vec<u64> = queues.iter().map(|claim| claim.delay_ns).collect();
            budgets.into_iter().enumerate().map(move |(class, budget_ns)| (Hop { port, class }, budget_ns))
        };
        self.queues.iter().enumerate().flat_map(of_port)
    }

    /// Raises the budgets of queues that have flows to at least these values. If it fails, nothing
    /// changes.
    ///
    /// # Errors
    /// Returns the queue or the flow that is not proven with larger budgets.
    pub fn raise_budgets(&mut self, least: &[(Hop, u64)]) -> Result<(), Refused> {
        let mut draft = Draft::default();
        let is_raised = |hop: Hop, budget_ns| {
            self.queue(hop).is_some_and(|claim| !claim.intervals.is_empty() && claim.delay_ns < budget_ns)
        };
        let raised: Vec<(Hop, u64)> =
            least.iter().copied().filter(|(hop, budget_ns)| is_raised(*hop, *budget_ns)).collect();
        raised.iter().for_each(|(hop, _)| draft.mark(*hop));
        raised
            .iter()
            .try_for_each(|(hop, budget_ns)| self.change_budget(*hop, (*budget_ns, false), &[], &mut draft))?;
        self.bound_marked(&[], &mut draft)?;
        self.apply(draft);
        Ok(())
    }

    /// Returns the arrivals of an admitted flow at its hop `n`, by the budgets.
    pub fn arrivals(&self, id: FlowId, n: usize) -> Option<Arrivals> {
        let flow = self.flow(id)?;
        let input = flow.before(n).and_then(|before| flow.hops.get(before)).map(|hop| hop.port);
        Some(self.loads.get(flow.hops.get(n)?.port)?.get(input, id.0)?.arrivals)
    }

    /// Returns the drain time after the last frame of an admitted flow was sent to hop `n`. From
    /// then on, the ports from that hop on behave as if the flow had never existed. `None` beyond
    /// `u64`, or if the flow is not admitted.
    pub fn drain_ns(&self, id: FlowId, n: usize) -> Option<u64> {
        let flow = self.flow(id)?;
        let mut until: [Option<u64>; HOPS_MAX] = [None; HOPS_MAX];
        let mut longest_ns = 0_u64;
        for (at, hop) in flow.hops.iter().enumerate().skip(n) {
            let before = flow.before(at);
            let arrival_ns = match before {
                None => 0,
                // A frame that was sent to the hop may still be in forwarding.
                Some(before) if at == n => self.ports[flow.hops[before].port].delay_ns,
                Some(before) => {
                    let Some(from_ns) = until[before] else { continue };
                    let from = flow.hops[before];
                    from_ns.checked_add(self.ports[from.port].delay_ns)?
                }
            };
            until[at] = Some(arrival_ns.checked_add(self.queue(*hop)?.delay_ns)?);
            let free_ns = arrival_ns.checked_add(self.busy_ns(hop.port))?.checked_add(self.tail_ns(hop.port))?;
            longest_ns = longest_ns.max(free_ns);
        }
        Some(longest_ns)
    }

    /// Returns the maximum busy period of classes with contracts at a port.
    fn busy_ns(&self, port: usize) -> u64 {
        self.queues[port].iter().map(|claim| claim.busy_ns).max().unwrap_or_default()
    }

    /// Returns the maximum time that frames through a port stay in the network, of flows that keep
    /// their limits only by separated-flow analysis.
    fn tail_ns(&self, port: usize) -> u64 {
        let through = self.loads[port].iter().map(|load| FlowId(load.flow)).filter(|id| self.by_separated.contains(id));
        let totals = through.filter_map(|id| Some(self.total(self.flow(id)?, &Draft::default())));
        totals.max().unwrap_or_default()
    }

    /// Returns the time for which removed or rerouted flows affect the network after their last
    /// frame has left its last port. `None` if the routes of the admitted flows have a cycle: then
    /// there is no bound. The work grows with the hops of all flows.
    pub fn memory_ns(&self) -> Option<u64> {
        let links = self.links();
        let mut open: Vec<usize> = alloc::vec![0; self.ports.len()];
        links.iter().for_each(|(_, to)| open[*to] += 1);
        let mut free_ns: Vec<u64> = alloc::vec![0; self.ports.len()];
        let mut next: Vec<usize> = (0..self.ports.len()).filter(|port| open[*port] == 0).collect();
        let (mut seen, mut longest_ns) = (0, 0_u64);
        while let Some(port) = next.pop() {
            seen += 1;
            let own_ns = free_ns[port].checked_add(self.busy_ns(port))?;
            let left_ns = own_ns.checked_add(self.ports[port].delay_ns)?;
            longest_ns = longest_ns.max(own_ns.checked_add(self.tail_ns(port))?);
            let from = links.partition_point(|link| link.0 < port);
            for (_, to) in links[from..].iter().take_while(|link| link.0 == port) {
                free_ns[*to] = free_ns[*to].max(left_ns);
                open[*to] -= 1;
                if open[*to] == 0 {
                    next.push(*to);
                }
            }
        }
        (seen == self.ports.len()).then_some(longest_ns)
    }

    /// Returns the distinct pairs of ports between which frames pass, sorted.
    fn links(&self) -> Vec<(usize, usize)> {
        let inputs = |(to, loads): (usize, &super::Loads)| {
            let inputs: Vec<usize> = loads.iter().filter_map(|load| load.input).collect();
            inputs.into_iter().map(move |from| (from, to))
        };
        let mut links: Vec<(usize, usize)> = self.loads.iter().enumerate().flat_map(inputs).collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}
