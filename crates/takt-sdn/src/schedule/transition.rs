//! Changes of the classes of flows whose frames are under way: in an order that keeps all limits after each change.
//!
//! Switches change one by one. In between, a flow has the class of before at some ports, and that of after at others, which neither the proof of before
//! nor that of after covers. So each state in between is proved as well. The flow that the changes are made for comes after the last one: until then it
//! is not there. The last state needs no proof of its own, since it is that of after without this flow.

use takt_calculus::network::{Admission, Flow, FlowId, Hop};

/// The flows of one entry that change their classes.
#[derive(Debug)]
pub(super) struct Mover {
    /// As they were.
    pub(super) flows: Vec<Flow>,
    /// Their hops after it.
    pub(super) hops: Vec<Hop>,
}

/// One change: which mover, the hop of before, and its class of after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) mover: usize,
    pub(super) hop: Hop,
    pub(super) class: usize,
}

/// The changes at the ports that a mover has before and after, in the order of its hops.
fn steps(movers: &[Mover]) -> Vec<Vec<Step>> {
    let of = |(mover, Mover { flows, hops }): (usize, &Mover)| {
        let before = flows.first().into_iter().flat_map(|flow| &flow.hops);
        let changed = before.filter_map(|hop| {
            let class = hops.iter().find(|after| after.port == hop.port)?.class;
            (class != hop.class).then_some(Step { mover, hop: *hop, class })
        });
        changed.collect()
    };
    movers.iter().enumerate().map(of).collect()
}

/// An order of the changes after each of which all flows of `network` keep their limits, with movers in the place of the flows `after`. `None` if
/// none is found.
pub(super) fn order(network: &mut Admission, movers: &[Mover], after: &[FlowId]) -> Option<Vec<Step>> {
    let each = steps(movers);
    let downstream: Vec<Step> = each.iter().flatten().copied().collect();
    if downstream.len() < 2 {
        return Some(downstream);
    }
    let upstream = each.iter().flat_map(|steps| steps.iter().rev()).copied().collect();
    let last_first = each.iter().rev().flatten().copied().collect();
    let orders = [downstream, upstream, last_first];
    orders.into_iter().find(|order| is_proved(network, movers, after, order))
}

/// Whether every state before the last one keeps all limits. Nothing changes.
fn is_proved(network: &mut Admission, movers: &[Mover], after: &[FlowId], order: &[Step]) -> bool {
    let mut is_proved = false;
    let _: Result<(), ()> = network.attempt(|network| {
        network.remove_all(after);
        let mut states = Vec::new();
        for mover in movers {
            let admitted = network.admit_all(mover.flows.clone()).map_err(drop)?;
            states.push((mover.flows.clone(), admitted));
        }
        let between = order.len().saturating_sub(1);
        for Step { mover, hop, class } in &order[..between] {
            let (flows, admitted) = &mut states[*mover];
            network.remove_all(&admitted.iter().map(|(id, _)| *id).collect::<Vec<FlowId>>());
            for own in flows.iter_mut().flat_map(|flow| &mut flow.hops).filter(|own| *own == hop) {
                own.class = *class;
            }
            *admitted = network.admit_all(flows.clone()).map_err(drop)?;
        }
        is_proved = true;
        // What was tried is taken back.
        Err(())
    });
    is_proved
}
