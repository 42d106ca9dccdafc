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

#[cfg(test)]
mod tests {
    use super::*;
    use takt_calculus::Arrivals;
    use takt_calculus::network::{Depth, Frames, Port};

    const MS: u64 = 1_000_000;

    /// Ports of 100 Mbit/s with three classes, whose queues hold so many frames.
    fn network(ports: usize, rooms: [u64; 3]) -> Admission {
        let classes = rooms.map(|frames| Depth { frames, ..Depth::UNLIMITED });
        let port = |number: usize| Port {
            name: format!("port {number}"),
            rate_bps: 100_000_000,
            foreign_frame_len: 1_514,
            classes: classes.to_vec(),
            delay_ns: 0,
            delay_ns_min: 0,
        };
        Admission::new((0..ports).map(port).collect()).expect("the ports are well-formed")
    }

    /// A sample of a frame each 100 ms, in a class at each port.
    fn flow(name: &str, classes: &[usize], limit_ns: u64) -> Flow {
        let hops = classes.iter().enumerate().map(|(port, class)| Hop { port, class: *class }).collect();
        Flow {
            name: name.to_owned(),
            arrivals: Arrivals::sporadic(100 * MS),
            frames: vec![Frames { len: 1_000, count: 1 }],
            hops,
            branches: Vec::new(),
            limit_ns,
        }
    }

    /// The order for flows that have these classes before and after, and whether the network is as it was then.
    fn ordered(network: &mut Admission, changes: &[(Flow, &[usize])]) -> Option<Vec<(usize, usize, usize)>> {
        let after = |(before, classes): &(Flow, &[usize])| flow(&before.name, classes, before.limit_ns);
        let flows: Vec<Flow> = changes.iter().map(after).collect();
        let mover = |((before, _), after): (&(Flow, &[usize]), &Flow)| Mover {
            flows: vec![before.clone()],
            hops: after.hops.clone(),
        };
        let movers: Vec<Mover> = changes.iter().zip(&flows).map(mover).collect();
        let admitted = network.admit_all(flows.clone()).expect("the last state is proved");
        let ids: Vec<FlowId> = admitted.iter().map(|(id, _)| *id).collect();
        let steps = order(network, &movers, &ids);
        for ((id, bound), flow) in admitted.iter().zip(&flows) {
            assert_eq!(network.flow(*id), Some(flow), "nothing has changed");
            assert_eq!(network.bound(*id), Some(*bound), "nor has a bound");
        }
        Some(steps?.iter().map(|step| (step.mover, step.hop.port, step.class)).collect())
    }

    #[test]
    fn flow_makes_room_in_a_class_before_another_one_takes_it() {
        let changes = || [(flow("a", &[1], MS), [2].as_slice()), (flow("b", &[0], MS), [1].as_slice())];
        assert_eq!(ordered(&mut network(1, [1; 3]), &changes()), Some(vec![(0, 0, 2), (1, 0, 1)]));
        let [first, second] = changes();
        assert_eq!(ordered(&mut network(1, [1; 3]), &[second, first]), Some(vec![(1, 0, 2), (0, 0, 1)]));
    }

    #[test]
    fn flows_that_exchange_classes_without_room_for_both_have_no_order() {
        let changes = || [(flow("a", &[0], MS), [1].as_slice()), (flow("b", &[1], MS), [0].as_slice())];
        assert_eq!(ordered(&mut network(1, [1; 3]), &changes()), None);
        assert_eq!(ordered(&mut network(1, [2, 1, 1]), &changes()), Some(vec![(1, 0, 0), (0, 0, 1)]));
    }

    /// A flow of class 1 keeps its limit if one other frame is before it at one of the ports, and not at both.
    #[test]
    fn last_port_changes_first_if_the_first_one_would_break_the_limit_of_another_flow() {
        let mut network = network(2, [8; 3]);
        let (id, _) = network.admit(flow("c", &[1, 1], MS)).expect("it fits alone");
        let alone_ns = network.bound(id).expect("it is admitted").bound_ns();
        network.remove_all(&[id]);
        let frame_ns = (1_000 + 24) * 80;
        network.admit(flow("c", &[1, 1], alone_ns + frame_ns * 3 / 2)).expect("it fits alone");
        let changes = [(flow("a", &[2, 0], MS), [0, 2].as_slice())];
        assert_eq!(ordered(&mut network, &changes), Some(vec![(0, 1, 2), (0, 0, 0)]));
    }

    #[test]
    fn classes_that_stay_and_a_single_change_need_no_proof_in_between() {
        let same = [(flow("a", &[0, 1], MS), [0, 1].as_slice())];
        assert_eq!(ordered(&mut network(2, [1; 3]), &same), Some(Vec::new()));
        let one = [(flow("a", &[0, 1], MS), [0, 2].as_slice())];
        assert_eq!(ordered(&mut network(2, [1; 3]), &one), Some(vec![(0, 1, 2)]));
    }
}
