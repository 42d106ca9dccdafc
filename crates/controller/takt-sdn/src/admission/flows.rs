//! Set of the flows of admitted pairs, with the subsets that changed or that wait for an event.
//!
//! A flow at rest has all its entries in force, and no action of a switch or of another flow
//! advances it ([`SharedFlow::is_at_rest`]). The controller advances admission after every message
//! of a switch and looks only at flows that are not at rest, so the work does not grow with the
//! number of admitted flows. Mutable access to a flow puts it into that subset.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use super::shared::SharedFlow;
use crate::rules::Selector;

#[derive(Debug, Default)]
pub(super) struct Flows {
    all: BTreeMap<Selector, SharedFlow>,
    /// Flows that may not be at rest.
    moving: BTreeSet<Selector>,
    /// Flows that may have changed since [`take_changed`](Self::take_changed), and those removed
    /// since.
    changed: BTreeSet<Selector>,
    /// Whether a flow may have changed, or was removed, since [`take_touched`](Self::take_touched).
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
        flow.checked_versions = None;
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
        flow.checked_versions = None;
        flow
    }

    pub(super) fn remove(&mut self, selector: &Selector) -> Option<SharedFlow> {
        self.moving.remove(selector);
        self.changed.insert(*selector);
        self.is_touched = true;
        self.all.remove(selector)
    }

    /// Iterates mutably over the flows that `is_chosen` selects.
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
                flow.checked_versions = None;
                (selector, flow)
            })
        })
    }

    /// Iterates over the flows that may not be at rest.
    pub(super) fn moving(&self) -> impl Iterator<Item = (&Selector, &SharedFlow)> {
        self.moving.iter().filter_map(|selector| self.all.get_key_value(selector))
    }

    /// Drops the flows that have come to rest from the moving subset.
    pub(super) fn drop_resting(&mut self) {
        let Self { all, moving, .. } = self;
        moving.retain(|selector| all.get(selector).is_some_and(|flow| !flow.is_at_rest()));
    }

    /// Reports whether a flow may have changed, or was removed, since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// Records the versions of the switches at which a waiting flow was last checked. This is no
    /// change of the flow.
    pub(super) fn mark_checked(&mut self, selector: &Selector, versions: Vec<u64>) {
        if let Some(flow) = self.all.get_mut(selector) {
            flow.checked_versions = Some(versions);
        }
    }

    /// Returns the flows that may have changed, or were removed, since the last call.
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
    fn mutable_access_marks_a_flow_as_moving_and_changed() {
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
        flows.drop_resting();
        assert_eq!(moving(&flows), [1, 2], "flows without a pair are being removed and wait for switches");
        assert_eq!(flows.iter_mut_of(|selector, _| selector.port == 1).count(), 1);
        assert_eq!(flows.take_changed(), [selector(1)].into());
    }

    #[test]
    fn changed_flow_is_examined_again_and_examination_is_no_change() {
        let mut flows = Flows::default();
        flows.get_or_insert_with(selector(1), || SharedFlow::new(RequestId(1), 1));
        assert!(flows.take_touched() && !flows.take_touched());
        flows.take_changed();
        flows.mark_checked(&selector(1), vec![7]);
        assert_eq!(flows[&selector(1)].checked_versions, Some(vec![7]));
        assert!(!flows.take_touched() && flows.take_changed().is_empty());
        assert!(flows.get_mut(&selector(1)).is_some_and(|flow| flow.checked_versions.is_none()));
        assert!(flows.take_touched());
    }
}
