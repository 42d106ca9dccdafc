//! Network flows of the driver: the flows that the datagrams of an endpoint use in each transport,
//! if the endpoint has a priority, a port or transports of its own.
//!
//! The core names a flow by its [`FlowTag`], the index in the list of the driver. The tag of a
//! closed flow is reused. The default flow has the first tag and is never closed.

use takt_core::{FlowTag, Priority, WriterFlows};
use takt_schedule::PrioritySet;
use takt_transport::{FlowId, FlowSpec};
use takt_wire::Locator;

use super::Driver;
use crate::runtime::roles::TransportSet;
use crate::{Error, Result};

/// Network flow of an endpoint's outgoing datagrams.
pub(super) struct Flow {
    /// Flow id in each transport.
    pub(super) ids: Vec<FlowId>,
    /// Transports that may carry the datagrams.
    pub(super) transports: TransportSet,
    /// Priority of datagrams received at the flow's own port.
    pub(super) arrivals: Priority,
}

impl Driver {
    /// Returns the priorities above normal of flows that have a receive port of their own.
    #[inline]
    pub(crate) fn urgent(&self) -> PrioritySet {
        self.urgent
    }

    /// Opens a flow on these transports. Also returns the locators that reach the flow if they
    /// differ from those of the participant.
    pub(crate) fn open_flow(&mut self, spec: &FlowSpec, transports: TransportSet) -> Result<(FlowTag, Vec<Locator>)> {
        let is_default = *spec == FlowSpec::default();
        let mut locators = Vec::new();
        if !spec.own_port && transports != self.roles.user_data {
            let chosen = self.transports.iter().enumerate().filter(|(position, _)| transports.has(*position));
            locators.extend(chosen.flat_map(|(_, transport)| &transport.status().locators.default_unicast));
        }
        if is_default && transports == self.roles.discovery {
            return Ok((FlowTag::default(), locators));
        }
        let index = self.flows.iter().position(Option::is_none).unwrap_or(self.flows.len());
        let tag =
            u16::try_from(index).map_err(|_| Error::OutOfResources { limit: "flows", value: u64::from(u16::MAX) })?;
        let mut ids = Vec::new();
        for (position, transport) in self.transports.iter_mut().enumerate() {
            if is_default || !transports.has(position) {
                ids.push(FlowId::DEFAULT);
                continue;
            }
            match transport.open_flow(spec) {
                Ok((flow, reached_at)) => {
                    ids.push(flow);
                    locators.extend(reached_at);
                }
                Err(error) => {
                    self.close_flows(&ids);
                    return Err(error.into());
                }
            }
        }
        self.has_new_descriptors = true;
        if index == self.flows.len() {
            self.flows.push(None);
        }
        let arrivals = if spec.own_port { Priority::new(spec.transport_priority) } else { Priority::NORMAL };
        self.flows[index] = Some(Flow { ids, transports, arrivals });
        self.find_urgent();
        Ok((FlowTag(tag), locators))
    }

    /// Opens the flows of a writer on these transports. A writer with a priority sends historical
    /// data to late joiners on a second flow of priority 0. Also returns the locators that reach
    /// the writer if they differ from those of the participant.
    pub(crate) fn open_writer_flows(
        &mut self,
        spec: &FlowSpec,
        transports: TransportSet,
    ) -> Result<(WriterFlows, Vec<Locator>)> {
        let (live, locators) = self.open_flow(spec, transports)?;
        if spec.transport_priority <= 0 {
            return Ok((live.into(), locators));
        }
        let (history, _) = self.open_flow(&FlowSpec::default(), transports).inspect_err(|_| self.close_flow(live))?;
        Ok((WriterFlows { live, history }, locators))
    }

    /// Closes the flows opened by [`Self::open_writer_flows`].
    pub(crate) fn close_writer_flows(&mut self, flows: WriterFlows) {
        self.close_flow(flows.live);
        if flows.history != flows.live {
            self.close_flow(flows.history);
        }
    }

    /// Closes a flow, except the default flow.
    pub(crate) fn close_flow(&mut self, tag: FlowTag) {
        if tag == FlowTag::default() {
            return;
        }
        if let Some(flow) = self.flows.get_mut(usize::from(tag.0)).and_then(Option::take) {
            self.kinds.iter().for_each(|kinds| self.core.unblock_fragments(tag, *kinds));
            self.close_flows(&flow.ids);
            self.find_urgent();
        }
    }

    /// Delays fragments of all flows that use this flow of a transport, or ends that.
    pub(super) fn set_blocked(&mut self, transport: usize, id: FlowId, is_blocked: bool) {
        let kinds = self.kinds[transport];
        for (index, flow) in self.flows.iter().enumerate() {
            let uses = |flow: &Flow| flow.transports.has(transport) && flow.ids[transport] == id;
            if !flow.as_ref().is_some_and(uses) {
                continue;
            }
            let tag = FlowTag(index as u16);
            match is_blocked {
                true => self.core.block_fragments(tag, kinds),
                false => self.core.unblock_fragments(tag, kinds),
            }
        }
    }

    fn find_urgent(&mut self) {
        let arrivals = self.flows.iter().flatten().map(|flow| flow.arrivals);
        self.urgent = PrioritySet::default();
        arrivals.filter(|priority| *priority > Priority::NORMAL).for_each(|priority| self.urgent.insert(priority));
    }

    fn close_flows(&mut self, flows: &[FlowId]) {
        for (transport, flow) in self.transports.iter_mut().zip(flows) {
            if transport.close_flow(*flow).is_err() {
                self.counters.send_failures += 1;
            }
        }
        self.has_new_descriptors = true;
    }
}

/// Returns the priority of datagrams received for a flow of a transport.
#[inline]
pub(super) fn priority_of(flows: &[Option<Flow>], transport: usize, id: FlowId) -> Priority {
    if id == FlowId::DEFAULT {
        return Priority::NORMAL;
    }
    let its = flows.iter().flatten().find(|flow| flow.ids.get(transport) == Some(&id));
    its.map_or(Priority::NORMAL, |flow| flow.arrivals)
}
