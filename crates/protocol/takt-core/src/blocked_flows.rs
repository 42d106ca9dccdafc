//! Flows whose fragments wait, because the queue of their network interface is full.
//!
//! A large sample would otherwise fill that queue, and samples of other topics and processes would
//! wait behind all of it. All other datagrams of a blocked flow are sent as usual.

use crate::context::Job;
use crate::{FlowTag, LocatorKinds};
use alloc::vec::Vec;
use takt_schedule::{Priority, PriorityQueue};
use takt_wire::Locator;

/// Blocked flows, and the jobs that wait for them.
#[derive(Debug, Default)]
pub(crate) struct BlockedFlows {
    flows: Vec<(FlowTag, LocatorKinds)>,
    jobs: Vec<(Priority, Job)>,
}

impl BlockedFlows {
    /// Reports whether no flow is blocked.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Blocks the fragments of a flow to locators of these kinds.
    pub(crate) fn block(&mut self, flow: FlowTag, kinds: LocatorKinds) {
        if !self.flows.contains(&(flow, kinds)) {
            self.flows.push((flow, kinds));
        }
    }

    /// Ends what [`block`](Self::block) began. All waiting jobs are queued again; those of flows
    /// that are still blocked wait again.
    pub(crate) fn unblock(&mut self, flow: FlowTag, kinds: LocatorKinds, jobs: &mut PriorityQueue<Job>) {
        self.flows.retain(|blocked| *blocked != (flow, kinds));
        self.jobs.drain(..).for_each(|(priority, job)| jobs.push(priority, job));
    }

    /// Reports whether fragments of this flow to any of these locators must wait.
    pub(crate) fn blocks<'a>(&self, flow: FlowTag, mut to: impl Iterator<Item = &'a Locator>) -> bool {
        let mut of_flow = self.flows.iter().filter(|(blocked, _)| *blocked == flow).map(|(_, kinds)| *kinds);
        let Some(first) = of_flow.next() else { return false };
        let kinds = of_flow.fold(first, LocatorKinds::union);
        to.any(|locator| kinds.has(locator))
    }

    /// Keeps a job until a flow is unblocked.
    pub(crate) fn hold(&mut self, priority: Priority, job: Job) {
        self.jobs.push((priority, job));
    }
}
