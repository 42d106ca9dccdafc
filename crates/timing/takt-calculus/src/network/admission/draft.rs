//! Draft of an admission decision: changes by port.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::OnceCell;

use super::{FlowId, Hop};
use crate::network::load::{Load, Loads};
use crate::network::{CLASSES_MAX, QueueClaim};

/// Changes of a decision.
#[derive(Debug, Default)]
pub(super) struct Draft {
    ports: BTreeMap<usize, Box<PortDraft>>,
    /// Ports to be bounded, with the highest class whose loads changed.
    pub(super) todo: BTreeMap<usize, usize>,
    /// Flows that may exceed their limits by the sum of budgets, or did so before.
    pub(super) over: BTreeSet<FlowId>,
    /// Flows whose bounds were checked, and whether they keep their limits only by separated-flow
    /// analysis.
    pub(super) by_separated: BTreeMap<FlowId, bool>,
}

/// Changes at a port. Usually a few loads change and the port is not bounded again; the loads are
/// copied only if they are examined.
#[derive(Debug, Default)]
pub(super) struct PortDraft {
    /// All loads, once they are needed.
    all: OnceCell<Loads>,
    /// Changed loads by position, until all loads are needed.
    changed: Vec<(usize, Load)>,
    /// Changed budgets.
    budgets: [Option<u64>; CLASSES_MAX],
    /// Claims that are bounded again.
    claims: [Option<QueueClaim>; CLASSES_MAX],
    /// Longest window of each claim, if it was requested.
    windows: Option<[u64; CLASSES_MAX]>,
    /// True if the budget is to be lowered to the needed value, once.
    falls: [bool; CLASSES_MAX],
}

/// Returns the longest window that a claim examines.
fn window_ns(claim: &QueueClaim) -> u64 {
    claim.intervals.last().map_or(0, |last| last.start_ns.max(claim.busy_ns))
}

impl PortDraft {
    fn has_loads(&self) -> bool {
        self.all.get().is_some() || !self.changed.is_empty()
    }

    /// Returns all loads, given the previous ones.
    pub(super) fn loads<'a>(&'a self, before: &'a Loads) -> &'a Loads {
        if !self.has_loads() {
            return before;
        }
        self.all.get_or_init(|| self.copied(before))
    }

    fn copied(&self, before: &Loads) -> Loads {
        let mut all = before.clone();
        self.changed.iter().for_each(|(at, load)| all.set_at(Ok(*at), *load));
        all
    }

    /// Changes all loads, given the previous ones.
    pub(super) fn change_loads(&mut self, before: &Loads, change: impl FnOnce(&mut Loads)) {
        let mut all = self.all.take().unwrap_or_else(|| self.copied(before));
        change(&mut all);
        self.changed.clear();
        self.all = OnceCell::from(all);
    }

    /// Returns the position of a flow with an input, and its load.
    pub(super) fn find(
        &self,
        before: &Loads,
        input: Option<usize>,
        flow: usize,
    ) -> (Result<usize, usize>, Option<Load>) {
        let loads = self.all.get().unwrap_or(before);
        let place = loads.place(input, flow);
        let Ok(at) = place else { return (place, None) };
        // A copy of all loads includes the changed ones.
        let changed = self.changed.binary_search_by_key(&at, |(at, _)| *at);
        (place, Some(changed.map_or(loads.as_slice()[at], |n| self.changed[n].1)))
    }

    /// Stores a load at its position.
    pub(super) fn set_load(&mut self, before: &Loads, place: Result<usize, usize>, load: Load) {
        match (place, self.all.get()) {
            (Ok(at), None) => match self.changed.binary_search_by_key(&at, |(at, _)| *at) {
                Ok(n) => self.changed[n].1 = load,
                Err(n) => self.changed.insert(n, (at, load)),
            },
            _ => self.change_loads(before, |all| all.set_at(place, load)),
        }
    }

    /// Returns the longest window that the claims of this class and the lower ones examine, given
    /// the previous claims.
    pub(super) fn longest_busy_ns(&mut self, class: usize, before: &[QueueClaim]) -> u64 {
        let windows = self.windows.get_or_insert_with(|| {
            let mut windows = [0; CLASSES_MAX];
            before.iter().zip(&mut windows).for_each(|(claim, own)| *own = window_ns(claim));
            let drafted = self.claims.iter().zip(&mut windows);
            drafted.for_each(|(claim, own)| *own = claim.as_ref().map_or(*own, window_ns));
            windows
        });
        windows[class..].iter().copied().max().unwrap_or_default()
    }

    /// Returns all loads if some changed, and the claims that were bounded again with their
    /// classes.
    pub(super) fn into_parts(mut self, before: &Loads) -> (Option<Loads>, Vec<(usize, QueueClaim)>) {
        let loads = self.has_loads().then(|| self.all.take().unwrap_or_else(|| self.copied(before)));
        let claims = self.claims.into_iter().enumerate();
        (loads, claims.filter_map(|(class, claim)| Some((class, claim?))).collect())
    }
}

impl Draft {
    pub(super) fn port(&self, port: usize) -> Option<&PortDraft> {
        self.ports.get(&port).map(|port| &**port)
    }

    pub(super) fn port_mut(&mut self, port: usize) -> &mut PortDraft {
        self.ports.entry(port).or_default()
    }

    pub(super) fn into_ports(self) -> (impl Iterator<Item = (usize, PortDraft)>, BTreeMap<FlowId, bool>) {
        (self.ports.into_iter().map(|(at, port)| (at, *port)), self.by_separated)
    }

    pub(super) fn mark(&mut self, hop: Hop) {
        let first = self.todo.entry(hop.port).or_insert(hop.class);
        *first = hop.class.min(*first);
    }

    /// Returns the budget of a queue, if it changes.
    pub(super) fn budget(&self, hop: Hop) -> Option<u64> {
        self.port(hop.port)?.budgets[hop.class]
    }

    pub(super) fn set_budget(&mut self, hop: Hop, budget_ns: u64) {
        self.port_mut(hop.port).budgets[hop.class] = Some(budget_ns);
    }

    pub(super) fn set_claim(&mut self, hop: Hop, claim: QueueClaim) {
        let port = self.port_mut(hop.port);
        port.windows.iter_mut().for_each(|windows| windows[hop.class] = window_ns(&claim));
        port.claims[hop.class] = Some(claim);
    }

    /// Marks the budget of a queue to be lowered.
    pub(super) fn allow_lowering(&mut self, hop: Hop) {
        self.port_mut(hop.port).falls[hop.class] = true;
    }

    /// Removes the mark that the budget of a queue is to be lowered. Returns whether it was set.
    pub(super) fn take_lowering(&mut self, hop: Hop) -> bool {
        core::mem::take(&mut self.port_mut(hop.port).falls[hop.class])
    }

    /// Reports whether the loads of a port change.
    pub(super) fn has_loads(&self, port: usize) -> bool {
        self.port(port).is_some_and(PortDraft::has_loads)
    }
}
