//! Changes of the classes of flows whose frames are under way: in an order that keeps all limits after each change.
//!
//! Switches change one by one. In between, a flow has the class of before at some ports, and that of after at others, which neither the proof of before
//! nor that of after covers. So each state in between is proved as well. The flow that the changes are made for comes after the last one: until then it
//! is not there. The last state needs no proof of its own, since it is that of after without this flow.
//!
//! Which changes are made decides whether a state is proved, and not their order. So the search goes on from each proved state with the first change that
//! leads to another one, and goes back from a state that leads no further, which it does not enter again. It makes [`PROOFS_MAX`] proofs at most.

use std::collections::BTreeSet;

use takt_calculus::network::{Admission, Flow, FlowId, Hop};

/// States that the search for an order proves, at most.
pub const PROOFS_MAX: usize = 128;

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
    let steps: Vec<Step> = steps(movers).into_iter().flatten().collect();
    if steps.len() < 2 {
        return Some(steps);
    }
    let mut found = None;
    // The attempt fails always, so that the network undoes the trial changes.
    let _: Result<(), ()> = network.attempt(|network| {
        network.remove_all(after);
        let admit = |mover: &Mover| Assigned::admit(network, mover.flows.clone());
        let placed = movers.iter().map(admit).collect::<Option<_>>().ok_or(())?;
        let made = vec![false; steps.len()];
        let mut search =
            Search { steps: &steps, placed, made, order: Vec::new(), dead: BTreeSet::new(), left: PROOFS_MAX };
        if search.go_on(network) {
            found = Some(search.order.iter().map(|step| steps[*step]).collect());
        }
        Err(())
    });
    found
}

/// The flows of a mover, with the classes that they have.
#[derive(Debug, Clone)]
struct Assigned {
    flows: Vec<Flow>,
    ids: Vec<FlowId>,
}

impl Assigned {
    /// `None` if a flow would not keep its limit.
    fn admit(network: &mut Admission, flows: Vec<Flow>) -> Option<Self> {
        let admitted = network.admit_all(flows.clone()).ok()?; // tidy-allow(dropped-cause): the state is not proved.
        Some(Self { flows, ids: admitted.into_iter().map(|(id, _)| id).collect() })
    }

    /// The same after a change.
    fn change(&self, network: &mut Admission, step: &Step) -> Option<Self> {
        network.remove_all(&self.ids);
        let mut flows = self.flows.clone();
        let hops = flows.iter_mut().flat_map(|flow| &mut flow.hops);
        hops.filter(|hop| **hop == step.hop).for_each(|hop| hop.class = step.class);
        Self::admit(network, flows)
    }
}

/// A search for an order of changes.
struct Search<'a> {
    steps: &'a [Step],
    /// By mover.
    placed: Vec<Assigned>,
    /// Which steps are made, and in which order.
    made: Vec<bool>,
    order: Vec<usize>,
    /// States that are not proved, or lead no further.
    dead: BTreeSet<Vec<bool>>,
    /// Proofs that may still be made.
    left: usize,
}

impl Search<'_> {
    /// Makes the steps that are left, as far as states between them are proved. If there is no order all is as before.
    fn go_on(&mut self, network: &mut Admission) -> bool {
        let is_last = self.order.len() + 1 == self.steps.len();
        for step in 0..self.steps.len() {
            if self.made[step] {
                continue;
            }
            self.made[step] = true;
            self.order.push(step);
            if is_last || self.make(network, self.steps[step]) {
                return true;
            }
            self.order.pop();
            self.made[step] = false;
        }
        false
    }

    /// Whether the steps after this one, which is counted as made, can be made as well.
    fn make(&mut self, network: &mut Admission, step: Step) -> bool {
        if self.left == 0 || self.dead.contains(&self.made) {
            return false;
        }
        self.left -= 1;
        let before = self.placed[step.mover].clone();
        let mut is_found = false;
        let _: Result<(), ()> = network.attempt(|network| {
            self.placed[step.mover] = before.change(network, &step).ok_or(())?;
            is_found = self.go_on(network);
            Err(())
        });
        if !is_found {
            self.placed[step.mover] = before;
            self.dead.insert(self.made.clone());
        }
        is_found
    }
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

    /// Each flow takes the class that the other one leaves, at another port: neither can make both of its changes first.
    #[test]
    fn changes_of_two_flows_are_made_by_turns_if_each_waits_for_the_other() {
        let changes = [(flow("a", &[1, 0], MS), [2, 1].as_slice()), (flow("b", &[0, 1], MS), [1, 2].as_slice())];
        let expected = vec![(0, 0, 2), (1, 0, 1), (1, 1, 2), (0, 1, 1)];
        assert_eq!(ordered(&mut network(2, [1; 3]), &changes), Some(expected));
    }

    /// Whether each state before the last one is proved.
    fn is_proved(network: &mut Admission, movers: &[Mover], after: &[FlowId], order: &[Step]) -> bool {
        let mut is_proved = false;
        let _: Result<(), ()> = network.attempt(|network| {
            network.remove_all(after);
            let admit = |mover: &Mover| Assigned::admit(network, mover.flows.clone());
            let mut placed: Vec<Assigned> = movers.iter().map(admit).collect::<Option<_>>().ok_or(())?;
            for step in &order[..order.len() - 1] {
                placed[step.mover] = placed[step.mover].clone().change(network, step).ok_or(())?;
            }
            is_proved = true;
            Err(())
        });
        is_proved
    }

    fn permutations(steps: &[Step]) -> Vec<Vec<Step>> {
        let [first, rest @ ..] = steps else { return vec![Vec::new()] };
        let insert = |rest: Vec<Step>| {
            let at = |place: usize| [&rest[..place], &[*first], &rest[place..]].concat();
            (0..=rest.len()).map(at).collect::<Vec<_>>()
        };
        permutations(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn order_is_found_if_there_is_one_and_each_of_its_states_is_proved() {
        let mut random = takt_testkit::Random(1);
        let mut class = || random.below(3);
        let (mut found, mut missing) = (0, 0);
        while found + missing < 300 {
            let mut network = network(2, [1, 2, 1]);
            let movers: Vec<Mover> = ["a", "b", "c"]
                .map(|name| {
                    let hops = flow(name, &[class(), class()], MS).hops;
                    Mover { flows: vec![flow(name, &[class(), class()], MS)], hops }
                })
                .into();
            let flows: Vec<Flow> =
                movers.iter().map(|mover| Flow { hops: mover.hops.clone(), ..mover.flows[0].clone() }).collect();
            let before = movers.iter().flat_map(|mover| &mover.flows).cloned().collect();
            let (Ok(_), Ok(admitted)) = (network.clone().admit_all(before), network.admit_all(flows)) else { continue };
            let ids: Vec<FlowId> = admitted.iter().map(|(id, _)| *id).collect();
            let all: Vec<Step> = steps(&movers).into_iter().flatten().collect();
            if all.len() < 2 || all.len() > 5 {
                continue;
            }
            let exists = permutations(&all).iter().any(|order| is_proved(&mut network, &movers, &ids, order));
            let order = order(&mut network, &movers, &ids);
            assert_eq!(order.is_some(), exists, "{movers:?}");
            assert!(order.as_ref().is_none_or(|order| is_proved(&mut network, &movers, &ids, order)), "{order:?}");
            (found, missing) = (found + usize::from(exists), missing + usize::from(!exists));
        }
        assert!(found > 50 && missing > 20, "{found} with an order, {missing} without");
    }
}
