//! Classes for the hops of flows: the lowest at each hop at which they and all admitted flows keep their limits.
//!
//! Flows of one entry have the same hops and classes, and are placed together. Audsley's rule, hop by hop: they begin in the lowest class
//! everywhere. As long as one would be late, they move up by one class at the hop where it spends most of its bound. If an admitted flow would be late then, that one is placed again behind the new one, with the
//! flows of its entry, and moves up in turn; [`VICTIMS_MAX`] of them at most. A queue that would overflow moves no other flow: what is above it adds to its backlog, too.
//!
//! A decision makes [`TRIALS_MAX`] trials for each entry at most, of which [`FURTHER_TRIALS_MAX`] are for other ways than the least loaded one and while
//! admitted flows move: so a full network refuses in bounded time, and may refuse what a longer search would place.

use takt_calculus::network::{Admission, Flow, FlowId, Hop, QueueFault, Refused};

/// Admitted flows that may change their classes for a new one.
pub const VICTIMS_MAX: usize = 3;
/// Placements of flows, in given classes on a given way, that a decision tries for each of its entries.
pub const TRIALS_MAX: usize = 48;
/// Those of them for other ways than the least loaded one, and while admitted flows move.
pub const FURTHER_TRIALS_MAX: usize = 8;

/// Flows that were placed, and those that changed their classes for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) ids: Vec<FlowId>,
    pub(super) moved: Vec<Moved>,
}

impl Placed {
    /// No other flow moved.
    pub(super) fn alone(ids: Vec<FlowId>) -> Self {
        Self { ids, moved: Vec::new() }
    }
}

/// The flows of an entry that changed their classes: their names before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// As they were.
    pub(super) flows: Vec<Flow>,
    pub(super) before: Vec<FlowId>,
    pub(super) after: Vec<FlowId>,
}

/// Why flows are not placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotPlaced {
    /// A port has no room for them in their classes, nor in more urgent ones.
    Full {
        port: usize,
        refused: Refused,
    },
    Other(Refused),
}

impl NotPlaced {
    fn into_refused(self) -> Refused {
        match self {
            Self::Full { refused, .. } | Self::Other(refused) => refused,
        }
    }
}

/// The flows that share the entries of one: they move together. None of a flow that must not move.
pub(super) type Peers<'a> = &'a dyn Fn(FlowId) -> Vec<FlowId>;

/// The trials that are left to a decision.
#[derive(Debug, Default)]
pub(super) struct Trials {
    left: usize,
    /// How many of them may be for other ways than the least loaded one, or while admitted flows move.
    further: usize,
}

impl Trials {
    /// Those of a decision with so many entries.
    pub(super) fn of_entries(entries: usize) -> Self {
        Self { left: TRIALS_MAX.saturating_mul(entries), further: FURTHER_TRIALS_MAX.saturating_mul(entries) }
    }

    /// Takes all that are left.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Takes those for other ways than the least loaded one.
    pub(super) fn take_further(&mut self) -> Self {
        let left = self.left.min(std::mem::take(&mut self.further));
        self.left -= left;
        Self { left, further: 0 }
    }

    /// Gives back what [`take_further`](Self::take_further) took and was not spent.
    pub(super) fn give_back(&mut self, further: &Self) {
        self.left += further.left;
        self.further += further.left;
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// `None` if none is left.
    pub(super) fn admit(&mut self, network: &mut Admission, flows: &[Flow]) -> Option<Result<Vec<FlowId>, Refused>> {
        self.left = self.left.checked_sub(1)?;
        let admitted = network.admit_all(flows.to_vec());
        Some(admitted.map(|admitted| admitted.into_iter().map(|(id, _)| id).collect()))
    }
}

/// The same flows in these classes, one for each hop.
fn in_classes(flows: &[Flow], class: impl Fn(&Hop) -> usize) -> Vec<Flow> {
    let mut flows = flows.to_vec();
    let hops = flows.iter_mut().flat_map(|flow| &mut flow.hops);
    hops.for_each(|hop| hop.class = class(hop));
    flows
}

/// Flows that are not placed as long as no other flow moves for them.
#[derive(Debug)]
pub(super) struct Stuck {
    /// In the classes that were tried last.
    flows: Vec<Flow>,
    pub(super) why: NotPlaced,
    /// Whether the classes between the lowest and the most urgent one were not tried.
    has_untried: bool,
}

/// Admits flows that go by the same hops, in their classes or more urgent ones. `Err` changes nothing.
pub(super) fn place(network: &mut Admission, mut flows: Vec<Flow>, trials: &mut Trials) -> Result<Vec<FlowId>, Stuck> {
    let stuck = |flows, why, has_untried| Err(Stuck { flows, why, has_untried });
    let refused = match trials.admit(network, &flows) {
        Some(Ok(ids)) => return Ok(ids),
        Some(Err(refused)) => refused,
        None => return stuck(flows, NotPlaced::Other(Refused::TooFar), false),
    };
    if trials.are_spent() {
        return stuck(flows, NotPlaced::Other(refused), false);
    }
    trials.left -= 1;
    // In the most urgent class: at the port that has no room, or everywhere if they are late.
    let is_raised = |hop: &Hop| !matches!(&refused, Refused::Queue { hop: full, .. } if full.port != hop.port);
    let urgent = in_classes(&flows, |hop| if is_raised(hop) { 0 } else { hop.class });
    match (network.what_if_all(&urgent), &refused) {
        // What is late in the most urgent classes is late in all.
        (Err(late @ Refused::Late { flow, .. }), Refused::Late { .. }) if network.flow(flow).is_none() => {
            return stuck(flows, NotPlaced::Other(late), false);
        }
        // A port that is too full for these and the most urgent class has no room in between, as it is.
        (Err(Refused::Queue { hop, .. }), Refused::Queue { hop: before, .. }) if hop.port == before.port => {
            return stuck(flows, NotPlaced::Full { port: hop.port, refused }, true);
        }
        (Err(Refused::Nonsense(what)), _) => return stuck(flows, NotPlaced::Other(Refused::Nonsense(what)), false),
        _ => {}
    }
    match raise(network, &mut flows, Some(refused), trials) {
        Ok(ids) => Ok(ids),
        Err(why) => stuck(flows, why, false),
    }
}

/// Goes on with flows that are not placed: flows that they would make late move up for them. `Err` changes nothing.
pub(super) fn place_with(
    network: &mut Admission,
    stuck: Stuck,
    peers: Peers<'_>,
    trials: &mut Trials,
) -> Result<Placed, NotPlaced> {
    let Stuck { mut flows, mut why, has_untried } = stuck;
    network.attempt(|network| {
        if has_untried {
            match raise(network, &mut flows, Some(why.into_refused()), trials) {
                Ok(ids) => return Ok(Placed::alone(ids)),
                Err(not_placed) => why = not_placed,
            }
        }
        let mut victims = Vec::new();
        let ids = loop {
            let victim = victim(network, &why).filter(|_| victims.len() < VICTIMS_MAX);
            let Some(victim) = victim else { return Err(why) };
            let before = peers(victim);
            if before.is_empty() {
                return Err(why);
            }
            let removed = network.remove_all(&before);
            victims.push((before, removed));
            match raise(network, &mut flows, None, trials) {
                Ok(ids) => break ids,
                Err(not_placed) => why = not_placed,
            }
        };
        let mut moved = Vec::new();
        for (before, mut raised) in victims {
            let flows = raised.clone();
            let after = raise(network, &mut raised, None, trials);
            let after = after.map_err(|not_placed| NotPlaced::Other(not_placed.into_refused()))?;
            moved.push(Moved { flows, before, after });
        }
        Ok(Placed { ids, moved })
    })
}

/// The admitted flow that a new one would make late.
fn victim(network: &Admission, not_placed: &NotPlaced) -> Option<FlowId> {
    let NotPlaced::Other(Refused::Late { flow, .. }) = not_placed else { return None };
    network.flow(*flow).map(|_| *flow)
}

/// Admits flows in their classes or more urgent ones; leaves them in the last ones that were tried. `known` is the refusal in their classes, if
/// that was tried already.
fn raise(
    network: &mut Admission,
    flows: &mut [Flow],
    mut known: Option<Refused>,
    trials: &mut Trials,
) -> Result<Vec<FlowId>, NotPlaced> {
    let mut last = Refused::TooFar;
    // Queues that these flows left since they would overflow.
    let mut left: Vec<Hop> = Vec::new();
    loop {
        let refused = match known.take() {
            Some(refused) => refused,
            None => match trials.admit(network, flows) {
                Some(Ok(ids)) => return Ok(ids),
                Some(Err(refused)) => refused,
                None => return Err(NotPlaced::Other(last)),
            },
        };
        let hops = flows.first().map_or(&[][..], |flow| &flow.hops);
        match &refused {
            // Flows above a queue add to its backlog, whatever their class.
            Refused::Queue { hop, .. } if left.contains(hop) => {
                return Err(NotPlaced::Full { port: hop.port, refused });
            }
            Refused::Queue { hop, .. } if hops.contains(hop) => left.push(*hop),
            _ => {}
        }
        let Some(at) = hop_to_raise(network, hops, &refused) else { return Err(NotPlaced::Other(refused)) };
        flows.iter_mut().for_each(|flow| flow.hops[at].class -= 1);
        last = refused;
    }
}

/// The hop at which refused flows move up: the one that is named, or else where they have moved least.
fn hop_to_raise(network: &Admission, hops: &[Hop], refused: &Refused) -> Option<usize> {
    let wanted = match *refused {
        Refused::Late { flow: late, hop, .. } if network.flow(late).is_none() => hop,
        Refused::Queue { hop, fault: QueueFault::Overflow { .. } | QueueFault::Unbounded(_) } => hop,
        _ => return None,
    };
    let ports = network.ports();
    let room = |hop: &Hop| ports[hop.port].classes.len() - 1 - hop.class;
    let named = hops.iter().position(|hop| *hop == wanted && hop.class > 0);
    let is_own = hops.contains(&wanted);
    let least = hops.iter().enumerate().filter(|(_, hop)| hop.class > 0 && is_own);
    named.or_else(|| least.min_by_key(|(_, hop)| room(hop)).map(|(at, _)| at))
}

#[cfg(test)]
mod tests {
    use takt_calculus::Arrivals;
    use takt_calculus::network::{Depth, Frames, Port};

    use super::*;

    fn flow(period_ns: u64, count: u64, hops: &[(usize, usize)]) -> Flow {
        Flow {
            name: "test".into(),
            arrivals: Arrivals::sporadic(period_ns),
            frames: vec![Frames { len: 1_000, count }],
            hops: hops.iter().map(|(port, class)| Hop { port: *port, class: *class }).collect(),
            branches: vec![],
            limit_ns: 1_000_000_000,
        }
    }

    /// A port with two classes, of which the lower one holds so many octets.
    fn port(octets: u64) -> Port {
        Port {
            name: "test".into(),
            rate_bps: 1_000_000_000,
            foreign_frame_len: 64,
            classes: vec![Depth::UNLIMITED, Depth { octets, frames: u64::MAX }],
            delay_ns: 0,
            delay_ns_min: 0,
        }
    }

    /// The first port is busier, so it is looked at first. Its lower class has room for four frames at once, whatever is above them. At the second
    /// one frames follow one another: what is above them adds to their backlog.
    #[test]
    fn port_without_room_in_any_class_is_found_behind_one_with_room_above() {
        let mut network = Admission::new(vec![port(5_100), port(2_200)]).expect("the ports make sense");
        for (period_ns, count, hop) in [(1_000_000_000, 4, (0, 1)), (12_000, 1, (0, 0)), (14_000, 1, (1, 1))] {
            network.admit(flow(period_ns, count, &[hop])).expect("there is room");
        }
        let mut place = |hops: &[(usize, usize)]| {
            let mut trials = Trials::of_entries(1);
            let placed = network
                .attempt(|network| Err::<(), _>(place(network, vec![flow(1_000_000_000, 2, hops)], &mut trials)));
            (placed.expect_err("nothing stays"), TRIALS_MAX - trials.left())
        };
        let (first, _) = place(&[(0, 1)]);
        assert!(first.is_ok(), "it moves up: {first:?}");
        let (both, trials) = place(&[(0, 1), (1, 1)]);
        assert!(matches!(&both, Err(Stuck { why: NotPlaced::Full { port: 1, .. }, .. })), "{both:?}");
        assert_eq!(trials, 4, "the first port, its upper class, and both classes of the second one");
    }
}
