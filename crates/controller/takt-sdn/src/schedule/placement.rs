//! Placement of the flows of requests: trial of paths, and flows that join others on their path.

use std::collections::BTreeMap;

use takt_calculus::network::{Admission, Flow, FlowId, Refused as Fault};

use super::classes::{self, Moved, NotPlaced, Placed, Stuck, Trials};
use super::decision::{Hop, Reason, Refused, Route};
use super::full::FullPorts;
use super::route::Tree;
use super::scheduler::protection::BackupPaths;
use super::streams::{Bundle, Stream};
use super::table_use::{self, TableUse};
use crate::PortRef;
use crate::model::{Egress, Snapshot, Tables};

/// Streams that share flow entries, with their path.
#[derive(Debug, Clone)]
pub(super) struct PlacedBundle {
    /// Flow ids: first one per stream, in the order of the streams.
    pub(super) ids: Vec<FlowId>,
    pub(super) streams: Vec<Stream>,
    pub(super) tree: Tree,
    pub(super) needs: BTreeMap<u64, Tables>,
    /// Backup paths. Their flow ids follow the others in `ids`, path by path.
    pub(super) backups: BackupPaths,
}

impl PlacedBundle {
    pub(super) fn has_ends_of(&self, bundle: &Bundle) -> bool {
        let stream = self.streams.first();
        stream.is_some_and(|own| (own.source, &own.destinations) == (bundle.source, &bundle.destinations))
    }
}

/// Streams with their possible paths, the least loaded first.
pub(super) struct Candidates {
    pub(super) bundle: Bundle,
    /// Flows on each path, in the lowest classes, or in their present ones.
    pub(super) paths: Vec<(Tree, Vec<Flow>)>,
    /// Present placement; then `paths` contains only the present path.
    pub(super) before: Option<PlacedBundle>,
}

/// Working state of a decision while it places flows.
pub(super) struct DecisionState<'a> {
    pub(super) ports: &'a [Egress],
    pub(super) snapshot: &'a Snapshot,
    pub(super) table_use: TableUse,
    pub(super) full: &'a mut FullPorts,
    pub(super) trials: Trials,
    /// Returns the flows that shared entries before the decision.
    pub(super) shared: classes::Peers<'a>,
    /// Groups of flows that share entries since the decision began, the latest last.
    pub(super) new_groups: Vec<Vec<FlowId>>,
}

impl DecisionState<'_> {
    fn record(&mut self, placed: &Placed) {
        self.new_groups.extend(placed.moved.iter().map(|moved| moved.after.clone()));
        self.new_groups.push(placed.ids.clone());
    }
}

fn peers(shared: classes::Peers<'_>, new_groups: &[Vec<FlowId>], flow: FlowId) -> Vec<FlowId> {
    let found = new_groups.iter().rev().find(|ids| ids.contains(&flow));
    found.cloned().unwrap_or_else(|| shared(flow))
}

/// A placed bundle with the flows that moved for it.
pub(super) type PlacementResult = (PlacedBundle, Vec<Moved>);

/// Places bundles one after the other, each on its first path that fits. `former` are the
/// previous bundles of the same requests.
pub(super) fn place_all(
    network: &mut Admission,
    state: &mut DecisionState<'_>,
    candidates: Vec<Candidates>,
    former: &[PlacedBundle],
) -> Result<Vec<PlacementResult>, Refused> {
    let ids: Vec<FlowId> = former.iter().flat_map(|bundle| &bundle.ids).copied().collect();
    network.remove_all(&ids);
    for needs in former.iter().flat_map(|bundle| [&bundle.needs, &bundle.backups.needs]) {
        state.table_use.release(needs);
    }
    let numbered = candidates.into_iter().enumerate();
    let place = |(n, Candidates { bundle, paths, before }): (usize, Candidates)| match before {
        Some(before) => extend(network, state, bundle, paths, before),
        None => place_one(network, state, bundle, paths, n == 0),
    };
    numbered.map(place).collect()
}

/// Places one bundle. Refusals of a flow that is placed `alone`, before others of its request, are
/// stored.
fn place_one(
    network: &mut Admission,
    state: &mut DecisionState<'_>,
    bundle: Bundle,
    paths: Vec<(Tree, Vec<Flow>)>,
    alone: bool,
) -> Result<PlacementResult, Refused> {
    let name = bundle.name();
    // The refusal of the least loaded path is returned.
    let mut first = None;
    // Intermediate result of the least loaded path. Other flows move only on that path, and only if
    // no path is free.
    let mut stuck: Option<Stuck> = None;
    let again = paths.first().map(|path| (paths.len(), path));
    for (n, (tree, flows)) in paths.iter().enumerate().chain(again) {
        let moves = if n == paths.len() { stuck.take() } else { None };
        if state.trials.are_spent() {
            first.get_or_insert(Reason::TooManyPorts);
            break;
        }
        if let Some(refused) = flows.iter().find_map(|flow| state.full.refusal(flow)) {
            first.get_or_insert_with(|| reason(network, state.ports, &name, refused.clone()));
            continue;
        }
        let needs = table_use::needs(tree);
        if let Err(table_full) = state.table_use.reserve(state.snapshot, &needs) {
            first.get_or_insert(Reason::TableFull(table_full));
            continue;
        }
        let DecisionState { shared, new_groups, trials, .. } = &mut *state;
        let peers = |flow: FlowId| peers(*shared, new_groups, flow);
        let mut further = if n > 0 { trials.take_further() } else { trials.take() };
        let placed = match moves {
            Some(moves) => classes::place_with(network, moves, &peers, &mut further),
            None => classes::place(network, flows.clone(), &mut further).map(Placed::alone).map_err(|refused| {
                let why = refused.why.clone();
                stuck = stuck.take().or((n == 0).then_some(refused));
                why
            }),
        };
        if n > 0 {
            trials.return_unused(&further);
        } else {
            *trials = further;
        }
        let refused = match placed {
            Ok(placed) => {
                state.record(&placed);
                let Placed { ids, moved } = placed;
                let (streams, tree) = (bundle.streams, tree.clone());
                return Ok((PlacedBundle { ids, streams, tree, needs, backups: BackupPaths::default() }, moved));
            }
            Err(NotPlaced::Full { port, refused }) => {
                if let ([flow], true) = (flows.as_slice(), alone) {
                    state.full.insert(flow, port, &refused);
                }
                refused
            }
            Err(NotPlaced::Other(refused)) => refused,
        };
        state.table_use.release(&needs);
        first.get_or_insert_with(|| reason(network, state.ports, &name, refused));
    }
    Err(Refused { flow: name, reason: first.unwrap_or(Reason::NoRoute) })
}

/// Adds streams to an entry, or removes them. The path stays. The classes stay if all flows fit;
/// otherwise the flows move up together.
fn extend(
    network: &mut Admission,
    state: &mut DecisionState<'_>,
    bundle: Bundle,
    paths: Vec<(Tree, Vec<Flow>)>,
    before: PlacedBundle,
) -> Result<PlacementResult, Refused> {
    let name = bundle.name();
    let flows = paths.into_iter().next().map(|(_, flows)| flows).unwrap_or_default();
    let (mut rest, mut ids) = (before.ids.clone(), vec![None; flows.len()]);
    for (flow, id) in flows.iter().zip(&mut ids) {
        let same = rest.iter().position(|known| network.flow(*known) == Some(flow));
        *id = same.map(|at| rest.swap_remove(at));
    }
    let known = flows.iter().zip(&ids);
    let new: Vec<Flow> = known.filter(|(_, id)| id.is_none()).map(|(flow, _)| flow.clone()).collect();
    let quick = network.attempt(|network| {
        network.remove_all(&rest);
        if new.is_empty() {
            Ok(Vec::new())
        } else {
            state.trials.admit(network, &new).unwrap_or(Err(Fault::TooManyPorts))
        }
    });
    let refused = match quick {
        Ok(admitted) => {
            let mut admitted = admitted.into_iter();
            let ids: Vec<FlowId> = ids.into_iter().filter_map(|id| id.or_else(|| admitted.next())).collect();
            state.new_groups.push(ids.clone());
            return Ok((PlacedBundle { ids, streams: bundle.streams, ..before }, Vec::new()));
        }
        Err(refused) => reason(network, state.ports, &name, refused),
    };
    if !before.backups.paths.is_empty() {
        // A protected flow keeps its classes.
        return Err(Refused { flow: name, reason: refused });
    }
    let (shared, new_groups) = (state.shared, state.new_groups.clone());
    let peers = |flow: FlowId| peers(shared, &new_groups, flow);
    let placed = network.attempt(|network| {
        network.remove_all(&before.ids);
        classes::place(network, flows, &mut state.trials)
            .map(Placed::alone)
            .or_else(|stuck| classes::place_with(network, stuck, &peers, &mut state.trials))
    });
    // The first refusal is more informative.
    let Ok(placed) = placed else { return Err(Refused { flow: name, reason: refused }) };
    state.record(&placed);
    let Placed { ids, moved } = placed;
    Ok((PlacedBundle { ids, streams: bundle.streams, ..before }, moved))
}

pub(super) fn reason(network: &Admission, ports: &[Egress], own: &str, refused: Fault) -> Reason {
    match refused {
        Fault::InvalidDescription(what) => Reason::Invalid(what),
        Fault::Queue { hop, fault } => Reason::Queue { port: ports[hop.port], class: hop.class, fault },
        Fault::ExceedsLimit { flow, bound_ns, limit_ns, hop } => {
            let flow = network.flow(flow).map_or(own, |flow| &flow.name).to_owned();
            Reason::ExceedsLimit { flow, bound_ns, limit_ns, port: ports[hop.port], class: hop.class }
        }
        _ => Reason::TooManyPorts,
    }
}

/// Returns the present routes of the streams of a bundle.
pub(super) fn routes_of<'a>(
    network: &'a Admission,
    ports: &'a [Egress],
    snapshot: &'a Snapshot,
    placed: &'a PlacedBundle,
) -> impl Iterator<Item = Route> + 'a {
    placed.ids.iter().zip(&placed.streams).map(|(id, stream)| route_of(network, ports, snapshot, *id, stream))
}

/// Returns the present route of a stream by one of its flows.
pub(super) fn route_of(
    network: &Admission,
    ports: &[Egress],
    snapshot: &Snapshot,
    id: FlowId,
    stream: &Stream,
) -> Route {
    let flow = network.flow(id);
    let hop = |(n, hop): (usize, &takt_calculus::network::Hop)| {
        let port = ports[hop.port];
        let queue = match port {
            Egress::Switch(PortRef { dpid, .. }) => snapshot.switch(dpid).and_then(|model| model.queues.get(hop.class)),
            Egress::Host(_) => None,
        };
        let after = flow.and_then(|flow| flow.before(n));
        Hop { port, class: hop.class, selection: queue.map(|queue| queue.selection), after }
    };
    Route {
        name: stream.name.clone(),
        source: stream.source,
        destinations: stream.destinations.clone(),
        hops: flow.map(|flow| flow.hops.iter().enumerate().map(hop).collect()).unwrap_or_default(),
        bound_ns: network.bound(id).map_or(u64::MAX, |bound| bound.bound_ns()),
        limit_ns: stream.limit_ns,
    }
}
