//! Classes for the hops of a flow: the lowest at each hop at which it and all admitted flows keep their limits.
//!
//! Audsley's rule, hop by hop: a flow begins in the lowest class everywhere. As long as it would be late, it moves up by one class at the hop
//! where it spends most of its bound. If an admitted flow would be late then, that one is placed again behind the new one, and moves up in
//! turn; [`VICTIMS_MAX`] of them at most. A queue that would overflow moves no other flow: what is above it adds to its backlog, too.

use takt_calculus::network::{Admission, Flow, FlowBound, FlowId, QueueFault, Refused};

/// Admitted flows that may change their classes for a new one.
pub const VICTIMS_MAX: usize = 3;

/// A flow that was placed, and those that changed their classes for it: their names before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) id: FlowId,
    pub(super) moved: Vec<(FlowId, FlowId)>,
}

/// Admits a flow in the lowest classes that fit; others move up for it only if `moves` says so. `Err` changes nothing.
pub(super) fn place(network: &mut Admission, flow: &Flow, moves: bool) -> Result<Placed, Refused> {
    let mut lowest = flow.clone();
    for hop in &mut lowest.hops {
        hop.class = network.ports()[hop.port].classes.len() - 1;
    }
    let refused = match network.admit(lowest.clone()) {
        Ok((id, _)) => return Ok(Placed { id, moved: Vec::new() }),
        Err(refused) => refused,
    };
    let mut urgent = flow.clone();
    urgent.hops.iter_mut().for_each(|hop| hop.class = 0);
    match (network.what_if(&urgent), &refused) {
        // What is late in the most urgent classes is late in all.
        (Err(Refused::Late { flow, bound_ns, limit_ns, hop }), _) if network.flow(flow).is_none() => {
            return Err(Refused::Late { flow, bound_ns, limit_ns, hop });
        }
        // A port that is too full for the lowest and the most urgent class has no room in between, as it is.
        (Err(Refused::Queue { hop, .. }), Refused::Queue { hop: before, .. }) if hop.port == before.port && !moves => {
            return Err(refused);
        }
        (Err(Refused::Nonsense(what)), _) => return Err(Refused::Nonsense(what)),
        _ => {}
    }
    network.attempt(|network| {
        let mut victims = Vec::new();
        let id = loop {
            let refused = match raise(network, &mut lowest) {
                Ok((id, _)) => break id,
                Err(refused) => refused,
            };
            let victim = victim(network, &refused).filter(|_| moves && victims.len() < VICTIMS_MAX);
            let Some(victim) = victim else { return Err(refused) };
            victims.extend(network.remove(victim).map(|flow| (victim, flow)));
        };
        let mut moved = Vec::new();
        for (victim, mut flow) in victims {
            moved.push((victim, raise(network, &mut flow)?.0));
        }
        Ok(Placed { id, moved })
    })
}

/// The admitted flow that a new one would make late.
fn victim(network: &Admission, refused: &Refused) -> Option<FlowId> {
    let Refused::Late { flow, .. } = refused else { return None };
    network.flow(*flow).map(|_| *flow)
}

/// Admits a flow in its classes or more urgent ones; leaves it in the last ones that were tried.
fn raise(network: &mut Admission, flow: &mut Flow) -> Result<(FlowId, FlowBound), Refused> {
    loop {
        let refused = match network.admit(flow.clone()) {
            Ok(admitted) => return Ok(admitted),
            Err(refused) => refused,
        };
        let wanted = match refused {
            Refused::Late { flow: late, hop, .. } if network.flow(late).is_none() => hop,
            Refused::Queue { hop, fault: QueueFault::Overflow { .. } | QueueFault::Unbounded(_) } => hop,
            _ => return Err(refused),
        };
        let ports = network.ports();
        let room = |hop: &takt_calculus::network::Hop| ports[hop.port].classes.len() - 1 - hop.class;
        // At the hop that is named, or else where it has moved least.
        let named = flow.hops.iter().position(|hop| *hop == wanted && hop.class > 0);
        let is_own = flow.hops.contains(&wanted);
        let least = flow.hops.iter().enumerate().filter(|(_, hop)| hop.class > 0 && is_own);
        let at = named.or_else(|| least.min_by_key(|(_, hop)| room(hop)).map(|(at, _)| at));
        let Some(at) = at else { return Err(refused) };
        flow.hops[at].class -= 1;
    }
}
