//! The flows of admitted pairs, with those that have changed, and those that wait for something.
//!
//! A flow at rest has all its entries in force, and nothing that switches or other flows do leads it further ([`SharedFlow::is_at_rest`]). The
//! controller follows admission after every message of a switch, so it looks at the other flows alone: the work does not grow with the number
//! that is admitted. Whoever gets a flow to change it makes it one of those.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::shared::SharedFlow;
use crate::rules::Selector;

#[derive(Debug, Default)]
pub(super) struct Flows {
    all: BTreeMap<Selector, SharedFlow>,
    /// Those that may not be at rest.
    moving: BTreeSet<Selector>,
    /// Those that may have changed since [`take_changed`](Self::take_changed), and those that are gone since.
    changed: BTreeSet<Selector>,
    /// Whether one may have changed since [`take_touched`](Self::take_touched), or is gone.
    is_touched: bool,
}

impl Deref for Flows {
    type Target = BTreeMap<Selector, SharedFlow>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Flows {
    pub(super) fn get_mut(&mut self, selector: &Selector) -> Option<&mut SharedFlow> {
        let flow = self.all.get_mut(selector)?;
        self.moving.insert(*selector);
        self.changed.insert(*selector);
        self.is_touched = true;
        flow.looked_at = None;
        Some(flow)
    }

    pub(super) fn get_or_insert_with(
        &mut self,
        selector: Selector,
        new: impl FnOnce() -> SharedFlow,
    ) -> &mut SharedFlow {
        self.moving.insert(selector);
        self.changed.insert(selector);
        self.is_touched = true;
        let flow = self.all.entry(selector).or_insert_with(new);
        flow.looked_at = None;
        flow
    }

    pub(super) fn remove(&mut self, selector: &Selector) -> Option<SharedFlow> {
        self.moving.remove(selector);
        self.changed.insert(*selector);
        self.is_touched = true;
        self.all.remove(selector)
    }

    /// The flows that are chosen, to change them.
    pub(super) fn iter_mut_of(
        &mut self,
        mut is_chosen: impl FnMut(&Selector, &SharedFlow) -> bool,
    ) -> impl Iterator<Item = (&Selector, &mut SharedFlow)> {
        let Self { all, moving, changed, is_touched } = self;
        all.iter_mut().filter_map(move |(selector, flow)| {
            is_chosen(selector, flow).then(|| {
                moving.insert(*selector);
                changed.insert(*selector);
                *is_touched = true;
                flow.looked_at = None;
                (selector, flow)
            })
        })
    }

    /// Those that may not be at rest.
    pub(super) fn moving(&self) -> impl Iterator<Item = (&Selector, &SharedFlow)> {
        self.moving.iter().filter_map(|selector| self.all.get_key_value(selector))
    }

    /// Passes over those that have come to rest, from now on.
    pub(super) fn settle(&mut self) {
        let Self { all, moving, .. } = self;
        moving.retain(|selector| all.get(selector).is_some_and(|flow| !flow.is_at_rest()));
    }

    /// Whether one may have changed since the last call, or is gone.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// A flow waits for its switches, of which these versions were looked at. It has not changed.
    pub(super) fn look_at(&mut self, selector: &Selector, versions: Vec<u64>) {
        if let Some(flow) = self.all.get_mut(selector) {
            flow.looked_at = Some(versions);
        }
    }

    /// Those that may have changed since the last call, and those that are gone since.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Selector> {
        std::mem::take(&mut self.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HostId;
    use crate::schedule::RequestId;

    fn selector(port: u16) -> Selector {
        let address = std::net::IpAddr::from([10, 0, 0, 1]);
        Selector { sender: HostId(1), vlan: 0, source: address, destination: address, port }
    }

    #[test]
    fn flow_that_is_got_to_be_changed_is_among_the_moving_and_changed_ones() {
        let mut flows = Flows::default();
        for port in [1, 2, 3] {
            flows.get_or_insert_with(selector(port), || SharedFlow::new(RequestId(port.into()), port.into()));
        }
        assert_eq!(flows.take_changed().len(), 3);
        assert!(flows.get_mut(&selector(2)).is_some());
        assert!(flows.get_mut(&selector(9)).is_none());
        flows.remove(&selector(3));
        assert_eq!(flows.take_changed(), [selector(2), selector(3)].into());
        let moving = |flows: &Flows| flows.moving().map(|(selector, _)| selector.port).collect::<Vec<u16>>();
        assert_eq!(moving(&flows), [1, 2]);
        flows.settle();
        assert_eq!(moving(&flows), [1, 2], "flows without a pair are leaving, so they wait for switches");
        assert_eq!(flows.iter_mut_of(|selector, _| selector.port == 1).count(), 1);
        assert_eq!(flows.take_changed(), [selector(1)].into());
    }

    #[test]
    fn flow_is_looked_at_again_after_a_change_and_is_not_touched_by_a_look() {
        let mut flows = Flows::default();
        flows.get_or_insert_with(selector(1), || SharedFlow::new(RequestId(1), 1));
        assert!(flows.take_touched() && !flows.take_touched());
        flows.take_changed();
        flows.look_at(&selector(1), vec![7]);
        assert_eq!(flows[&selector(1)].looked_at, Some(vec![7]));
        assert!(!flows.take_touched() && flows.take_changed().is_empty());
        assert!(flows.get_mut(&selector(1)).is_some_and(|flow| flow.looked_at.is_none()));
        assert!(flows.take_touched());
    }
}
