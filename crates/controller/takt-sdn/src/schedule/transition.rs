//! Class changes of flows whose frames are in transit, in an order that keeps all limits during and
//! after each change.
//!
//! Switches change one by one. In between, a flow has its old class at some ports and its new class
//! at others. Neither the proof before the changes nor the proof after them covers that, so each
//! intermediate state is proved as well. The flows of the request that requires the changes are
//! added after the last change.
//!
//! **During a change** older frames of the flow wait in the old class and newer ones in the new
//! class. Each class has some of the frames. Later ports get them with the delay of the class with
//! the longer budget. The state is proved in this form: all frames of the flow are in the class
//! with the longer budget, with the jitter of that class at later ports, and a copy of all of them
//! is in the other class at this port alone. Newer frames may overtake older ones. The limit of the
//! flow is therefore compared with the sum of budgets, since separated-flow analysis assumes that
//! frames keep their order. After [`Step::drain_ns`], the older frames and the frames that waited
//! for them have left.
//!
//! **After the last change** each queue that flows use keeps the largest of its budgets in the
//! intermediate states, and the new flows are admitted with these. A frame that was delayed in an
//! intermediate state is therefore not later than the last proof assumes.
//!
//! Whether a state is proved depends on the set of changes made, not on their order. The search
//! goes depth first through the states that are proved. It returns from a state without a further
//! one, and does not enter that state again. It makes at most [`PROOFS_MAX`] proofs.

use std::collections::BTreeSet;

use takt_calculus::network::{Admission, Flow, FlowId, Hop};

/// Maximum number of proofs in the search for an order.
pub const PROOFS_MAX: usize = 128;

/// Flows with the same hops, which change their classes together.
#[derive(Debug)]
pub(super) struct Mover {
    /// Flows before the changes.
    pub(super) flows: Vec<Flow>,
    /// Ids of the flows in the network before the changes.
    pub(super) ids: Vec<FlowId>,
    /// Hops of the flows after the changes.
    pub(super) hops: Vec<Hop>,
}

/// Change of the class of a mover at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Index of the mover.
    pub(super) mover: usize,
    /// Port, and the class there before the change.
    pub(super) hop: Hop,
    /// Class after the change.
    pub(super) class: usize,
    /// Time in ns for which the next change must wait; 0 until the change is proved.
    pub(super) drain_ns: u64,
}

/// Returns a change for each port that a mover uses in another class than before, in the order of
/// its hops. Ports that it uses only before or only after need none.
pub(super) fn required_steps(movers: &[Mover]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (mover, Mover { flows, hops, .. }) in movers.iter().enumerate() {
        for hop in flows.first().into_iter().flat_map(|flow| &flow.hops) {
            let after = hops.iter().find(|after| after.port == hop.port && after.class != hop.class);
            steps.extend(after.map(|after| Step { mover, hop: *hop, class: after.class, drain_ns: 0 }));
        }
    }
    steps
}

/// Finds an order of the required changes in which all flows of `network` keep their limits during
/// and after each. `None` if none is found. `network` is unchanged afterwards.
pub(super) fn find_order(network: &mut Admission, movers: &[Mover]) -> Option<Vec<Step>> {
    let steps = required_steps(movers);
    with_held_budgets(network, |network| {
        let mut search = Search {
            steps: &steps,
            assigned: movers.iter().map(Assigned::before).collect(),
            made: vec![false; steps.len()],
            order: Vec::new(),
            dead_ends: BTreeSet::new(),
            proofs_left: PROOFS_MAX,
        };
        search.search(network).then_some(search.order)
    })
}

/// Makes the changes in an order that [`find_order`] found. Returns the new ids of the flows of
/// each mover.
pub(super) fn apply_steps(network: &mut Admission, movers: &[Mover], order: &[Step]) -> Option<Vec<Vec<FlowId>>> {
    with_held_budgets(network, |network| {
        let mut assigned: Vec<Assigned> = movers.iter().map(Assigned::before).collect();
        for step in order {
            (assigned[step.mover], _) = assigned[step.mover].change_through_both(network, step)?;
        }
        Some(assigned.into_iter().map(|flows| flows.ids).collect())
    })
}

/// Runs `changes` while no budget of a queue may be lowered.
pub(super) fn with_held_budgets<T>(network: &mut Admission, changes: impl FnOnce(&mut Admission) -> T) -> T {
    let was_held = network.holds_budgets();
    network.hold_budgets(true);
    let outcome = changes(network);
    network.hold_budgets(was_held);
    outcome
}

/// Flows of a mover with their present classes.
#[derive(Debug, Clone)]
struct Assigned {
    flows: Vec<Flow>,
    ids: Vec<FlowId>,
}

impl Assigned {
    /// Returns the flows before the changes.
    fn before(mover: &Mover) -> Self {
        Self { flows: mover.flows.clone(), ids: mover.ids.clone() }
    }

    /// Admits the flows; `None` if a flow would not keep its limit.
    fn admit(network: &mut Admission, flows: Vec<Flow>) -> Option<Self> {
        let admitted = network.admit_all(flows.clone()).ok()?; // tidy-allow(dropped-cause): the state is not proved.
        Some(Self { flows, ids: admitted.into_iter().map(|(id, _)| id).collect() })
    }

    /// Applies a change to the flows and admits the result.
    fn change(&self, network: &mut Admission, step: &Step) -> Option<Self> {
        network.remove_all(&self.ids);
        let mut flows = self.flows.clone();
        let hops = flows.iter_mut().flat_map(|flow| &mut flow.hops);
        hops.filter(|hop| **hop == step.hop).for_each(|hop| hop.class = step.class);
        Self::admit(network, flows)
    }

    /// Proves the state during the change, in which frames are in both classes, and the state after
    /// it. Returns the flows after the change and the drain time.
    fn change_through_both(&self, network: &mut Admission, step: &Step) -> Option<(Self, u64)> {
        let after = Hop { class: step.class, ..step.hop };
        // Usually the less urgent class has the longer budget. The other case is tried second.
        let is_old_longer = step.class < step.hop.class;
        [is_old_longer, !is_old_longer].into_iter().find_map(|is_old_longer| {
            let changed = network.attempt(|network| {
                let (whole, (longer, shorter)) = match is_old_longer {
                    true => (self.clone(), (step.hop, after)),
                    false => (self.change(network, step).ok_or(())?, (after, step.hop)),
                };
                let copies =
                    whole.flows.iter().zip(&whole.ids).map(|(flow, id)| copy_at(network, flow, *id, longer, shorter));
                let copies = Self::admit(network, copies.collect::<Option<_>>().ok_or(())?).ok_or(())?;
                let drain_ns = whole.drain_ns(network, longer, shorter).ok_or(())?;
                network.remove_all(&copies.ids);
                let after = if is_old_longer { whole.change(network, step).ok_or(())? } else { whole };
                Ok::<_, ()>((after, drain_ns))
            });
            changed.ok() // tidy-allow(dropped-cause): the state is not proved.
        })
    }

    /// Returns the maximum time in ns after which no frame from before the change, and none that
    /// waited for one, is in transit. `None` if a flow does not keep its limit by the sum of
    /// budgets, or the budget at `longer` is shorter than that at `shorter`.
    fn drain_ns(&self, network: &Admission, longer: Hop, shorter: Hop) -> Option<u64> {
        let budget = |hop| network.queue(hop).map(|claim| claim.delay_ns);
        let is_longer = budget(longer)? >= budget(shorter)?;
        let drains = self.flows.iter().zip(&self.ids).map(|(flow, id)| {
            let is_kept = network.bound(*id)?.total_ns <= flow.limit_ns;
            let n = flow.hops.iter().position(|hop| *hop == longer)?;
            network.drain_ns(*id, n).filter(|_| is_kept && is_longer)
        });
        drains.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}

/// Returns a flow with all frames of `flow` as they arrive at its hop `from`, and with `to` as its
/// only hop.
fn copy_at(network: &Admission, flow: &Flow, id: FlowId, from: Hop, to: Hop) -> Option<Flow> {
    let n = flow.hops.iter().position(|hop| *hop == from)?;
    Some(Flow {
        name: flow.name.clone(),
        arrivals: network.arrivals(id, n)?,
        frames: flow.frames.clone(),
        hops: vec![to],
        branches: Vec::new(),
        limit_ns: u64::MAX,
    })
}

/// State of the search for an order of changes.
struct Search<'a> {
    steps: &'a [Step],
    /// Flows by mover.
    assigned: Vec<Assigned>,
    /// For each step, whether it is made. This is the state of the search.
    made: Vec<bool>,
    /// Steps in the order in which they are made.
    order: Vec<Step>,
    /// Proved states from which no order of the remaining steps was found.
    dead_ends: BTreeSet<Vec<bool>>,
    /// Number of proofs that may still be made.
    proofs_left: usize,
}

impl Search<'_> {
    /// Finds an order of the remaining steps, and stores it in `order`. Returns false if there is
    /// none.
    fn search(&mut self, network: &mut Admission) -> bool {
        let is_done = self.order.len() == self.steps.len();
        is_done || (0..self.steps.len()).any(|step| !self.made[step] && self.try_step(network, step))
    }

    /// Finds an order of the remaining steps that begins with this one. Returns false if there is
    /// none.
    fn try_step(&mut self, network: &mut Admission, number: usize) -> bool {
        self.made[number] = true;
        if self.proofs_left == 0 || self.dead_ends.contains(&self.made) {
            self.made[number] = false;
            return false;
        }
        self.proofs_left -= 1;
        let step = self.steps[number];
        let before = self.assigned[step.mover].clone();
        let (mut is_proved, mut is_found) = (false, false);
        // The attempt always fails, so that it leaves the network unchanged.
        let _: Result<(), ()> = network.attempt(|network| {
            let (after, drain_ns) = before.change_through_both(network, &step).ok_or(())?;
            is_proved = true;
            self.assigned[step.mover] = after;
            self.order.push(Step { drain_ns, ..step });
            is_found = self.search(network);
            Err(())
        });
        if !is_found {
            self.assigned[step.mover] = before;
            if is_proved {
                self.order.pop();
                self.dead_ends.insert(self.made.clone());
            }
            self.made[number] = false;
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_calculus::Arrivals;
    use takt_calculus::network::{Depth, FlowBound, Frames, Port};

    const MS: u64 = 1_000_000;

    /// Builds ports of 100 Mbit/s with three classes, whose queues hold these numbers of frames.
    fn network(ports: usize, depths: [u64; 3]) -> Admission {
        let classes = depths.map(|frames| Depth { frames, ..Depth::UNLIMITED });
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

    /// Returns a flow with one frame per sample each 100 ms, in a class at each port.
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

    /// Admits flows and returns their class changes.
    fn movers(network: &mut Admission, changes: &[(Flow, &[usize])]) -> Vec<Mover> {
        let before = changes.iter().map(|(before, _)| before.clone()).collect();
        let admitted = network.admit_all(before).expect("the first state is proved");
        let mover = |((before, classes), (id, _)): (&(Flow, &[usize]), &(FlowId, FlowBound))| Mover {
            flows: vec![before.clone()],
            ids: vec![*id],
            hops: flow(&before.name, classes, before.limit_ns).hops,
        };
        changes.iter().zip(&admitted).map(mover).collect()
    }

    /// Returns the order for flows with these classes before and after, and checks that the network
    /// is unchanged.
    fn ordered(network: &mut Admission, changes: &[(Flow, &[usize])]) -> Option<Vec<(usize, usize, usize)>> {
        let movers = movers(network, changes);
        let before = network.clone();
        let steps = find_order(network, &movers);
        assert_eq!(*network, before, "nothing has changed");
        let steps = steps?;
        let made = apply_steps(network, &movers, &steps).expect("the transition is proven");
        for (ids, mover) in made.iter().zip(&movers) {
            let hops = ids.iter().map(|id| network.flow(*id).map(|flow| &flow.hops));
            assert!(hops.into_iter().all(|hops| hops == Some(&mover.hops)), "{steps:?}");
        }
        Some(steps.iter().map(|step| (step.mover, step.hop.port, step.class)).collect())
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

    /// A flow of class 1 keeps its limit if one other frame precedes it at one of the ports, and
    /// not at both.
    #[test]
    fn last_port_changes_first_if_the_first_one_would_break_the_limit_of_another_flow() {
        let mut network = network(2, [8; 3]);
        let (id, _) = network.admit(flow("c", &[1, 1], MS)).expect("the flow alone is admitted");
        let alone_ns = network.bound(id).expect("the flow is admitted").bound_ns();
        network.remove_all(&[id]);
        let frame_ns = (1_000 + 24) * 80;
        network.admit(flow("c", &[1, 1], alone_ns + frame_ns * 3 / 2)).expect("the flow alone is admitted");
        let changes = [(flow("a", &[2, 0], MS), [0, 2].as_slice())];
        assert_eq!(ordered(&mut network, &changes), Some(vec![(0, 1, 2), (0, 0, 0)]));
    }

    #[test]
    fn unchanged_classes_need_no_step_and_a_single_change_has_an_order() {
        let same = [(flow("a", &[0, 1], MS), [0, 1].as_slice())];
        assert_eq!(ordered(&mut network(2, [1; 3]), &same), Some(Vec::new()));
        let one = [(flow("a", &[0, 1], MS), [0, 2].as_slice())];
        assert_eq!(ordered(&mut network(2, [1; 3]), &one), Some(vec![(0, 1, 2)]));
    }

    /// Older frames wait in one class and newer ones in the other: a flow below both waits for
    /// both.
    #[test]
    fn change_counts_a_flow_in_both_classes_until_older_frames_have_left() {
        let moves = |spare: u64| {
            let mut network = network(1, [8; 3]);
            // The flow also waits for a frame without a contract.
            let (foreign_ns, frame_ns) = ((1_514 + 24) * 80, (1_000 + 24) * 80);
            let limit_ns = foreign_ns + frame_ns + frame_ns * spare / 2;
            network.admit(flow("c", &[2], limit_ns)).expect("the flow alone is admitted");
            ordered(&mut network, &[(flow("a", &[1], MS), [0].as_slice())])
        };
        assert_eq!(moves(3), None, "the flow meets its limit behind one frame, not behind two");
        assert_eq!(moves(5), Some(vec![(0, 0, 0)]));
    }

    /// Separated-flow analysis assumes that the frames of a flow keep their order.
    #[test]
    fn flow_whose_frames_overtake_others_keeps_its_limit_by_the_sum_of_budgets() {
        let large = |classes: &[usize], limit_ns| Flow {
            frames: vec![Frames { len: 1_000, count: 8 }],
            ..flow("a", classes, limit_ns)
        };
        let mut network = network(2, [64; 3]);
        let (id, bound) = network.admit(large(&[1, 1], 100 * MS)).expect("the flow alone is admitted");
        let separated_ns = bound.separated_ns.expect("the flow has a bound");
        assert!(separated_ns + MS / 10 < bound.total_ns, "{bound:?}");
        network.remove_all(&[id]);
        for (limit_ns, is_found) in [(bound.total_ns * 2, true), (separated_ns + MS / 10, false)] {
            let (before, hops) = (large(&[1, 1], limit_ns), large(&[0, 1], limit_ns).hops);
            let (id, _) = network.admit(before.clone()).expect("the flow alone is admitted");
            let movers = [Mover { flows: vec![before], ids: vec![id], hops }];
            assert_eq!(find_order(&mut network, &movers).is_some(), is_found, "{limit_ns}");
            network.remove_all(&[id]);
        }
    }

    #[test]
    fn change_drains_when_the_busy_periods_from_its_port_on_are_over() {
        let mut network = network(3, [64; 3]);
        let movers = movers(&mut network, &[(flow("a", &[2, 1, 0], 10 * MS), [2, 2, 0].as_slice())]);
        let order = find_order(&mut network, &movers).expect("an order exists");
        let [step] = order.as_slice() else { panic!("{order:?}") };
        // A frame without a contract, and all frames of the flow in each class.
        let (foreign_ns, frame_ns) = ((1_514 + 24) * 80, (1_000 + 24) * 80);
        let both_ns = foreign_ns + 2 * frame_ns;
        let last_ns = foreign_ns + frame_ns;
        assert!(step.drain_ns >= both_ns + last_ns, "{step:?}");
        assert!(step.drain_ns < 4 * (both_ns + last_ns), "{step:?}");
        apply_steps(&mut network, &movers, &order).expect("the transition is proven");
        let budget_ns = network.queue(Hop { port: 1, class: 2 }).map(|claim| claim.delay_ns);
        assert!(budget_ns >= Some(both_ns), "the budget covers the flow in both classes: {budget_ns:?}");
    }

    /// Each flow takes the class that the other one leaves, at another port: neither can make both
    /// of its changes first.
    #[test]
    fn changes_of_two_flows_alternate_when_each_waits_for_the_other() {
        let changes = [(flow("a", &[1, 0], MS), [2, 1].as_slice()), (flow("b", &[0, 1], MS), [1, 2].as_slice())];
        let expected = vec![(0, 0, 2), (1, 0, 1), (1, 1, 2), (0, 1, 1)];
        assert_eq!(ordered(&mut network(2, [1; 3]), &changes), Some(expected));
    }

    /// Reports whether each state during and after the changes is proved.
    fn is_proved(network: &mut Admission, movers: &[Mover], order: &[Step]) -> bool {
        let mut is_proved = false;
        let _: Result<(), ()> = network.attempt(|network| {
            is_proved = apply_steps(network, movers, order).is_some();
            Err(())
        });
        is_proved
    }

    fn permutations(steps: &[Step]) -> Vec<Vec<Step>> {
        let [first, rest @ ..] = steps else { return vec![Vec::new()] };
        let insert = |rest: Vec<Step>| {
            let at = |index: usize| [&rest[..index], &[*first], &rest[index..]].concat();
            (0..=rest.len()).map(at).collect::<Vec<_>>()
        };
        permutations(rest).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn search_finds_an_order_if_one_exists_and_proves_each_state() {
        let mut random = takt_testkit::Random(1);
        let mut class = || random.below(3);
        let (mut found, mut missing) = (0, 0);
        while found + missing < 300 {
            let mut network = network(2, [1, 2, 1]);
            let flows = ["a", "b", "c"].map(|name| flow(name, &[class(), class()], MS));
            let Ok(admitted) = network.admit_all(flows.to_vec()) else { continue };
            let movers: Vec<Mover> = flows
                .into_iter()
                .zip(admitted)
                .map(|(before, (id, _))| {
                    let hops = flow(&before.name, &[class(), class()], MS).hops;
                    Mover { flows: vec![before], ids: vec![id], hops }
                })
                .collect();
            let all = required_steps(&movers);
            if all.len() < 2 || all.len() > 5 {
                continue;
            }
            let exists = permutations(&all).iter().any(|order| is_proved(&mut network, &movers, order));
            let order = find_order(&mut network, &movers);
            assert_eq!(order.is_some(), exists, "{movers:?}");
            assert!(order.as_ref().is_none_or(|order| is_proved(&mut network, &movers, order)), "{order:?}");
            (found, missing) = (found + usize::from(exists), missing + usize::from(!exists));
        }
        assert!(found > 30 && missing > 20, "{found} with an order, {missing} without");
    }
}
