//! Assignment of classes to the hops of flows: at each hop the lowest class at which they and all
//! admitted flows keep their limits.
//!
//! Flows of one entry have the same hops and classes, and are placed together. Audsley's algorithm
//! is applied hop by hop: the flows begin in the lowest class everywhere. While a flow would be
//! late, they move up by one class at the hop where it spends most of its bound. If an admitted
//! flow would then be late, it is placed again after the new one, together with the flows of its
//! entry, and moves up in turn; at most [`VICTIMS_MAX`] flows do so. A queue that would overflow
//! moves no other flow, since flows above it add to its backlog, too.
//!
//! A decision makes at most [`TRIALS_MAX`] trials per entry. Of these, at most
//! [`FURTHER_TRIALS_MAX`] are for other paths than the least loaded one and while admitted flows
//! move. A full network therefore refuses in bounded time, and may refuse a flow that a longer
//! search would place.

use takt_calculus::network::{Admission, Flow, FlowId, Hop, QueueFault, Refused};

/// Maximum number of admitted flows that may change their classes for a new one.
pub const VICTIMS_MAX: usize = 3;
/// Maximum number of trials per entry in a decision. A trial places flows in given classes on a
/// given path.
pub const TRIALS_MAX: usize = 48;
/// Maximum number of these trials for other paths than the least loaded one, and while admitted
/// flows move.
pub const FURTHER_TRIALS_MAX: usize = 8;

/// Placed flows, and flows that changed their classes for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) ids: Vec<FlowId>,
    pub(super) moved: Vec<Moved>,
}

impl Placed {
    /// Creates a placement for which no other flow moved.
    pub(super) fn alone(ids: Vec<FlowId>) -> Self {
        Self { ids, moved: Vec::new() }
    }
}

/// Flows of an entry that changed their classes, with their ids before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// Flows before the change.
    pub(super) flows: Vec<Flow>,
    pub(super) before: Vec<FlowId>,
    pub(super) after: Vec<FlowId>,
}

/// Reason why flows are not placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotPlaced {
    /// A port has no room for the flows in their classes, nor in more urgent ones.
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

/// Returns the flows that share an entry with a flow and move together with it; none for a flow
/// that must not move.
pub(super) type Peers<'a> = &'a dyn Fn(FlowId) -> Vec<FlowId>;

/// Remaining trials of a decision.
#[derive(Debug, Default)]
pub(super) struct Trials {
    left: usize,
    /// Number of remaining trials for other paths than the least loaded one, or while admitted
    /// flows move.
    further: usize,
}

impl Trials {
    /// Returns the trials of a decision with this number of entries.
    pub(super) fn of_entries(entries: usize) -> Self {
        Self { left: TRIALS_MAX.saturating_mul(entries), further: FURTHER_TRIALS_MAX.saturating_mul(entries) }
    }

    /// Takes all remaining trials.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Takes the trials for other paths than the least loaded one.
    pub(super) fn take_further(&mut self) -> Self {
        let left = self.left.min(std::mem::take(&mut self.further));
        self.left -= left;
        Self { left, further: 0 }
    }

    /// Returns unused trials that [`take_further`](Self::take_further) took.
    pub(super) fn return_unused(&mut self, further: &Self) {
        self.left += further.left;
        self.further += further.left;
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns the number of remaining trials.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Tries to admit flows; `None` if no trial is left.
    pub(super) fn admit(&mut self, network: &mut Admission, flows: &[Flow]) -> Option<Result<Vec<FlowId>, Refused>> {
        self.left = self.left.checked_sub(1)?;
        let admitted = network.admit_all(flows.to_vec());
        Some(admitted.map(|admitted| admitted.into_iter().map(|(id, _)| id).collect()))
    }
}

/// Returns the flows in other classes, one for each hop.
fn in_classes(flows: &[Flow], class: impl Fn(&Hop) -> usize) -> Vec<Flow> {
    let mut flows = flows.to_vec();
    let hops = flows.iter_mut().flat_map(|flow| &mut flow.hops);
    hops.for_each(|hop| hop.class = class(hop));
    flows
}

/// Flows that cannot be placed unless another flow moves.
#[derive(Debug)]
pub(super) struct Stuck {
    /// Flows in the last tried classes.
    flows: Vec<Flow>,
    pub(super) why: NotPlaced,
    /// Whether classes between the lowest and the most urgent one were not tried.
    has_untried: bool,
}

/// Admits flows with the same hops, in their classes or more urgent ones. An error changes nothing.
pub(super) fn place(network: &mut Admission, mut flows: Vec<Flow>, trials: &mut Trials) -> Result<Vec<FlowId>, Stuck> {
    let stuck = |flows, why, has_untried| Err(Stuck { flows, why, has_untried });
    let refused = match trials.admit(network, &flows) {
        Some(Ok(ids)) => return Ok(ids),
        Some(Err(refused)) => refused,
        None => return stuck(flows, NotPlaced::Other(Refused::TooManyPorts), false),
    };
    if trials.are_spent() {
        return stuck(flows, NotPlaced::Other(refused), false);
    }
    trials.left -= 1;
    // The most urgent class is tried: at the port that has no room, or everywhere if the flows are
    // late.
    let is_raised = |hop: &Hop| !matches!(&refused, Refused::Queue { hop: full, .. } if full.port != hop.port);
    let urgent = in_classes(&flows, |hop| if is_raised(hop) { 0 } else { hop.class });
    match (network.what_if_all(&urgent), &refused) {
        // A flow that is late in the most urgent classes is late in all.
        (Err(late @ Refused::ExceedsLimit { flow, .. }), Refused::ExceedsLimit { .. })
            if network.flow(flow).is_none() =>
        {
            return stuck(flows, NotPlaced::Other(late), false);
        }
        // A port that is too full for these flows in both the lowest and the most urgent class has
        // no room in between.
        (Err(Refused::Queue { hop, .. }), Refused::Queue { hop: before, .. }) if hop.port == before.port => {
            return stuck(flows, NotPlaced::Full { port: hop.port, refused }, true);
        }
        (Err(Refused::InvalidDescription(what)), _) => {
            return stuck(flows, NotPlaced::Other(Refused::InvalidDescription(what)), false);
        }
        _ => {}
    }
    match raise(network, &mut flows, Some(refused), trials) {
        Ok(ids) => Ok(ids),
        Err(why) => stuck(flows, why, false),
    }
}

/// Continues with flows that are not placed: flows that would be late because of them move up. An
/// error changes nothing.
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

/// Returns the admitted flow that a new one would make late.
fn victim(network: &Admission, not_placed: &NotPlaced) -> Option<FlowId> {
    let NotPlaced::Other(Refused::ExceedsLimit { flow, .. }) = not_placed else { return None };
    network.flow(*flow).map(|_| *flow)
}

/// Admits flows in their classes or more urgent ones, and leaves them in the last tried ones.
/// `known` is the refusal in their present classes, if these were already tried.
fn raise(
    network: &mut Admission,
    flows: &mut [Flow],
    mut known: Option<Refused>,
    trials: &mut Trials,
) -> Result<Vec<FlowId>, NotPlaced> {
    let mut last = Refused::TooManyPorts;
    // Queues that these flows left because the queues would overflow.
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
            // Flows above a queue add to its backlog in any class.
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

/// Returns the hop at which refused flows move up: the named one, or else the one with the fewest
/// moves.
fn hop_to_raise(network: &Admission, hops: &[Hop], refused: &Refused) -> Option<usize> {
    let wanted = match *refused {
        Refused::ExceedsLimit { flow: late, hop, .. } if network.flow(late).is_none() => hop,
        Refused::Queue { hop, fault: QueueFault::Overflow { .. } | QueueFault::Unbounded(_) } => hop,
        _ => return None,
    };
    let ports = network.ports();
    let lower_classes = |hop: &Hop| ports[hop.port].classes.len() - 1 - hop.class;
    let named = hops.iter().position(|hop| *hop == wanted && hop.class > 0);
    let is_own = hops.contains(&wanted);
    let least = hops.iter().enumerate().filter(|(_, hop)| hop.class > 0 && is_own);
    named.or_else(|| least.min_by_key(|(_, hop)| lower_classes(hop)).map(|(at, _)| at))
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

    /// Returns a port with two classes, of which the lower one holds this number of octets.
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

    /// The first port is busier, so it is checked first. Its lower class has room for four frames
    /// at once, independent of the frames above. At the second port, frames arrive one after the
    /// other: frames above add to their backlog.
    #[test]
    fn full_port_is_detected_after_a_port_with_room_in_a_higher_class() {
        let mut network = Admission::new(vec![port(5_100), port(2_200)]).expect("the ports are valid");
        for (period_ns, count, hop) in [(1_000_000_000, 4, (0, 1)), (12_000, 1, (0, 0)), (14_000, 1, (1, 1))] {
            network.admit(flow(period_ns, count, &[hop])).expect("the flow is admitted");
        }
        let mut place = |hops: &[(usize, usize)]| {
            let mut trials = Trials::of_entries(1);
            let placed = network
                .attempt(|network| Err::<(), _>(place(network, vec![flow(1_000_000_000, 2, hops)], &mut trials)));
            (placed.expect_err("the flow is refused"), TRIALS_MAX - trials.left())
        };
        let (first, _) = place(&[(0, 1)]);
        assert!(first.is_ok(), "the flow moves to a higher class: {first:?}");
        let (both, trials) = place(&[(0, 1), (1, 1)]);
        assert!(matches!(&both, Err(Stuck { why: NotPlaced::Full { port: 1, .. }, .. })), "{both:?}");
        assert_eq!(trials, 4, "the first port, its upper class, and both classes of the second one");
    }
}
