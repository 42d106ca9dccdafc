//! Classes for the hops of a flow: the lowest at each hop at which it and all admitted flows keep their limits.
//!
//! Audsley's rule, hop by hop: a flow begins in the lowest class everywhere. As long as it would be late, it moves up by one class at the hop
//! where it spends most of its bound. If an admitted flow would be late then, that one is placed again behind the new one, and moves up in
//! turn; [`VICTIMS_MAX`] of them at most. A queue that would overflow moves no other flow: what is above it adds to its backlog, too.
//!
//! A decision makes [`TRIALS_MAX`] trials for each flow at most: so a full network refuses in bounded time, and may refuse what a longer search would place.

use takt_calculus::network::{Admission, Flow, FlowBound, FlowId, Hop, QueueFault, Refused};

/// Admitted flows that may change their classes for a new one.
pub const VICTIMS_MAX: usize = 3;
/// Placements of flows, in given classes on a given way, that a decision tries for each of its flows.
pub const TRIALS_MAX: usize = 48;

/// A flow that was placed, and those that changed their classes for it: their names before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) id: FlowId,
    pub(super) moved: Vec<(FlowId, FlowId)>,
}

/// Why a flow is not placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotPlaced {
    /// A port has no room for it in the lowest class, nor in the most urgent one.
    Full {
        port: usize,
        refused: Refused,
    },
    Other(Refused),
}

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

    /// `None` if none is left.
    fn admit(&mut self, network: &mut Admission, flow: &Flow) -> Option<Result<(FlowId, FlowBound), Refused>> {
        self.0 = self.0.checked_sub(1)?;
        Some(network.admit(flow.clone()))
    }
}

/// Admits a flow in the lowest classes that fit; others move up for it only if `moves` says so. `Err` changes nothing.
pub(super) fn place(
    network: &mut Admission,
    flow: &Flow,
    moves: bool,
    trials: &mut Trials,
) -> Result<Placed, NotPlaced> {
    let mut lowest = flow.clone();
    for hop in &mut lowest.hops {
        hop.class = network.ports()[hop.port].classes.len() - 1;
    }
    let refused = match trials.admit(network, &lowest) {
        Some(Ok((id, _))) => return Ok(Placed { id, moved: Vec::new() }),
        Some(Err(refused)) => refused,
        None => return Err(NotPlaced::Other(Refused::TooFar)),
    };
    if trials.are_spent() {
        return Err(NotPlaced::Other(refused));
    }
    let mut urgent = flow.clone();
    urgent.hops.iter_mut().for_each(|hop| hop.class = 0);
    trials.0 -= 1;
    match (network.what_if(&urgent), &refused) {
        // What is late in the most urgent classes is late in all.
        (Err(Refused::Late { flow, bound_ns, limit_ns, hop }), _) if network.flow(flow).is_none() => {
            return Err(NotPlaced::Other(Refused::Late { flow, bound_ns, limit_ns, hop }));
        }
        // A port that is too full for the lowest and the most urgent class has no room in between, as it is.
        (Err(Refused::Queue { hop, .. }), Refused::Queue { hop: before, .. }) if hop.port == before.port && !moves => {
            return Err(NotPlaced::Full { port: hop.port, refused });
        }
        (Err(Refused::Nonsense(what)), _) => return Err(NotPlaced::Other(Refused::Nonsense(what))),
        _ => {}
    }
    let placed = network.attempt(|network| {
        let (mut victims, mut known) = (Vec::new(), Some(refused));
        let id = loop {
            let refused = match raise(network, &mut lowest, known.take(), trials) {
                Ok((id, _)) => break id,
                Err(refused) => refused,
            };
            let victim = victim(network, &refused).filter(|_| moves && victims.len() < VICTIMS_MAX);
            let Some(victim) = victim else { return Err(refused) };
            victims.extend(network.remove(victim).map(|flow| (victim, flow)));
        };
        let mut moved = Vec::new();
        for (victim, mut flow) in victims {
            moved.push((victim, raise(network, &mut flow, None, trials)?.0));
        }
        Ok(Placed { id, moved })
    });
    placed.map_err(NotPlaced::Other)
}

/// The admitted flow that a new one would make late.
fn victim(network: &Admission, refused: &Refused) -> Option<FlowId> {
    let Refused::Late { flow, .. } = refused else { return None };
    network.flow(*flow).map(|_| *flow)
}

/// Admits a flow in its classes or more urgent ones; leaves it in the last ones that were tried. `known` is the refusal in its classes, if that
/// was tried already.
fn raise(
    network: &mut Admission,
    flow: &mut Flow,
    mut known: Option<Refused>,
    trials: &mut Trials,
) -> Result<(FlowId, FlowBound), Refused> {
    let mut last = Refused::TooFar;
    loop {
        let refused = match known.take() {
            Some(refused) => refused,
            None => match trials.admit(network, flow) {
                Some(Ok(admitted)) => return Ok(admitted),
                Some(Err(refused)) => refused,
                None => return Err(last),
            },
        };
        let Some(at) = hop_to_raise(network, flow, &refused) else { return Err(refused) };
        flow.hops[at].class -= 1;
        last = refused;
    }
}

/// The hop at which a refused flow moves up: the one that is named, or else where it has moved least.
fn hop_to_raise(network: &Admission, flow: &Flow, refused: &Refused) -> Option<usize> {
    let wanted = match *refused {
        Refused::Late { flow: late, hop, .. } if network.flow(late).is_none() => hop,
        Refused::Queue { hop, fault: QueueFault::Overflow { .. } | QueueFault::Unbounded(_) } => hop,
        _ => return None,
    };
    let ports = network.ports();
    let room = |hop: &Hop| ports[hop.port].classes.len() - 1 - hop.class;
    let named = flow.hops.iter().position(|hop| *hop == wanted && hop.class > 0);
    let is_own = flow.hops.contains(&wanted);
    let least = flow.hops.iter().enumerate().filter(|(_, hop)| hop.class > 0 && is_own);
    named.or_else(|| least.min_by_key(|(_, hop)| room(hop)).map(|(at, _)| at))
}
