//! Classes for the hops of flows: the lowest at each hop at which they and all admitted flows keep their limits.
//!
//! Flows of one entry have the same hops and classes, and are placed together. Audsley's rule, hop by hop: they begin in the lowest class
//! everywhere. As long as one would be late, they move up by one class at the hop where it spends most of its bound. If an admitted flow would be late then, that one is placed again behind the new one, with the
//! flows of its entry, and moves up in turn; [`VICTIMS_MAX`] of them at most. A queue that would overflow moves no other flow: what is above it adds to its backlog, too.
//!
//! A decision makes [`TRIALS_MAX`] trials for each entry at most: so a full network refuses in bounded time, and may refuse what a longer search would place.

use takt_calculus::network::{Admission, Flow, FlowId, Hop, QueueFault, Refused};

/// Admitted flows that may change their classes for a new one.
pub const VICTIMS_MAX: usize = 3;
/// Placements of flows, in given classes on a given way, that a decision tries for each of its entries.
pub const TRIALS_MAX: usize = 48;

/// Flows that were placed, and those that changed their classes for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) ids: Vec<FlowId>,
    pub(super) moved: Vec<Moved>,
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
    /// A port has no room for them in their classes, nor in the most urgent one.
    Full {
        port: usize,
        refused: Refused,
    },
    Other(Refused),
}

/// The flows that share the entries of one: they move together. None of a flow that must not move.
pub(super) type Peers<'a> = &'a dyn Fn(FlowId) -> Vec<FlowId>;

/// The trials that are left to a decision.
#[derive(Debug)]
pub(super) struct Trials(usize);

impl Trials {
    pub(super) fn new(most: usize) -> Self {
        Self(most)
    }

    /// Takes all that are left.
    pub(super) fn take(&mut self) -> Self {
        Self(std::mem::take(&mut self.0))
    }

    pub(super) fn are_spent(&self) -> bool {
        self.0 == 0
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.0
    }

    /// `None` if none is left.
    pub(super) fn admit(&mut self, network: &mut Admission, flows: &[Flow]) -> Option<Result<Vec<FlowId>, Refused>> {
        self.0 = self.0.checked_sub(1)?;
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

/// Admits flows that go by the same hops, in their classes or more urgent ones; others move up for them only if `peers` are given. `Err`
/// changes nothing.
pub(super) fn place(
    network: &mut Admission,
    mut flows: Vec<Flow>,
    peers: Option<Peers<'_>>,
    trials: &mut Trials,
) -> Result<Placed, NotPlaced> {
    let refused = match trials.admit(network, &flows) {
        Some(Ok(ids)) => return Ok(Placed { ids, moved: Vec::new() }),
        Some(Err(refused)) => refused,
        None => return Err(NotPlaced::Other(Refused::TooFar)),
    };
    if trials.are_spent() {
        return Err(NotPlaced::Other(refused));
    }
    trials.0 -= 1;
    match (network.what_if_all(&in_classes(&flows, |_| 0)), &refused) {
        // What is late in the most urgent classes is late in all.
        (Err(Refused::Late { flow, bound_ns, limit_ns, hop }), _) if network.flow(flow).is_none() => {
            return Err(NotPlaced::Other(Refused::Late { flow, bound_ns, limit_ns, hop }));
        }
        // A port that is too full for these and the most urgent class has no room in between, as it is.
        (Err(Refused::Queue { hop, .. }), Refused::Queue { hop: before, .. })
            if hop.port == before.port && peers.is_none() =>
        {
            return Err(NotPlaced::Full { port: hop.port, refused });
        }
        (Err(Refused::Nonsense(what)), _) => return Err(NotPlaced::Other(Refused::Nonsense(what))),
        _ => {}
    }
    let placed = network.attempt(|network| {
        let (mut victims, mut known) = (Vec::new(), Some(refused));
        let ids = loop {
            let refused = match raise(network, &mut flows, known.take(), trials) {
                Ok(ids) => break ids,
                Err(refused) => refused,
            };
            let victim = victim(network, &refused).filter(|_| victims.len() < VICTIMS_MAX);
            let Some((victim, peers)) = victim.zip(peers) else { return Err(refused) };
            let before = peers(victim);
            if before.is_empty() {
                return Err(refused);
            }
            let flows = network.remove_all(&before);
            victims.push((before, flows));
        };
        let mut moved = Vec::new();
        for (before, mut raised) in victims {
            let flows = raised.clone();
            let after = raise(network, &mut raised, None, trials)?;
            moved.push(Moved { flows, before, after });
        }
        Ok(Placed { ids, moved })
    });
    placed.map_err(NotPlaced::Other)
}

/// The admitted flow that a new one would make late.
fn victim(network: &Admission, refused: &Refused) -> Option<FlowId> {
    let Refused::Late { flow, .. } = refused else { return None };
    network.flow(*flow).map(|_| *flow)
}

/// Admits flows in their classes or more urgent ones; leaves them in the last ones that were tried. `known` is the refusal in their classes, if
/// that was tried already.
fn raise(
    network: &mut Admission,
    flows: &mut [Flow],
    mut known: Option<Refused>,
    trials: &mut Trials,
) -> Result<Vec<FlowId>, Refused> {
    let mut last = Refused::TooFar;
    loop {
        let refused = match known.take() {
            Some(refused) => refused,
            None => match trials.admit(network, flows) {
                Some(Ok(ids)) => return Ok(ids),
                Some(Err(refused)) => refused,
                None => return Err(last),
            },
        };
        let hops = flows.first().map_or(&[][..], |flow| &flow.hops);
        let Some(at) = hop_to_raise(network, hops, &refused) else { return Err(refused) };
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
