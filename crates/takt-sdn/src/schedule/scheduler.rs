//! Admission of requests: all flows of one, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use takt_calculus::network::{self as calculus, Admission, Flow, FlowId, NetworkCertificate, QueueFault};

use super::classes::{self, NotPlaced, Placed, TRIALS_MAX, Trials};
use super::full::FullPorts;
use super::rooms::{self, NoRoom, Rooms};
use super::route::{self, Tree};
use super::streams::{Request, Stream};
use super::wire::FormatError;
use crate::PortRef;
use crate::model::{Egress, HostId, Reach, Snapshot, Tables};

/// Requests that are admitted at once, at most.
pub const REQUESTS_MAX: usize = 100_000;

/// Names an admitted request for as long as it is admitted; numbers are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A queue on a flow's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The port.
    pub port: Egress,
    /// The class there, 0 the most urgent.
    pub class: usize,
    /// How a switch puts frames into the queue; `None` for the interface of a host.
    pub reach: Option<Reach>,
    /// Index of the hop that it follows; `None` for the source's own.
    pub after: Option<usize>,
}

/// One flow of a request: its way and classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// What flows.
    pub name: String,
    /// From where.
    pub source: HostId,
    /// To where.
    pub destinations: Vec<HostId>,
    /// The queues, each behind the one that it follows.
    pub hops: Vec<Hop>,
    /// Its bound when it was asked for, from the source's interface to the last destination.
    pub bound_ns: u64,
    /// What it may take. It does not exceed that for as long as it is admitted.
    pub limit_ns: u64,
}

/// A request that was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Its name.
    pub id: RequestId,
    /// Its flows: samples first.
    pub routes: Vec<Route>,
    /// The bound of samples.
    pub bound_ns: u64,
    /// The version of the network that it holds for.
    pub snapshot: u64,
    /// Requests of which flows changed their classes for it. Their rules must follow before its own are in force.
    pub moved: BTreeSet<RequestId>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The contract makes no sense.
    Nonsense(&'static str),
    /// Samples have no frames that a rule matches.
    Format(FormatError),
    /// A destination is not reached.
    NoRoute,
    /// A switch has no room for its rules.
    Room(NoRoom),
    /// A queue has no bound, or too small a depth.
    Queue {
        /// The port.
        port: Egress,
        /// The class.
        class: usize,
        /// Why.
        fault: QueueFault,
    },
    /// A flow would be late.
    Late {
        /// The flow: of the request itself, or an admitted one.
        flow: String,
        /// Its bound.
        bound_ns: u64,
        /// Its limit.
        limit_ns: u64,
        /// The port where it spends most of its bound.
        port: Egress,
        /// The class there.
        class: usize,
    },
    /// The decision would bound too many ports.
    TooFar,
    /// There are [`REQUESTS_MAX`] requests.
    Full,
}

/// A refusal. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The flow of the request that does not fit.
    pub flow: String,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = &self.flow;
        match &self.reason {
            Reason::Nonsense(what) => write!(f, "{own}: {what}"),
            Reason::Format(error) => write!(f, "{own}: {error}"),
            Reason::NoRoute => write!(f, "{own}: no way leads to all its destinations"),
            Reason::Room(NoRoom { dpid, table, most }) => {
                write!(f, "{own}: switch {dpid:016x} has no room among its {most} {table}")
            }
            Reason::Queue { port, class, fault } => write!(f, "{own}: class {class} of {port}: {fault}"),
            Reason::Late { flow, bound_ns, limit_ns, port, class } => write!(
                f,
                "{own}: {flow} would take up to {bound_ns} ns of {limit_ns} ns, most of it in class {class} of {port}"
            ),
            Reason::TooFar => write!(f, "{own}: {}", calculus::Refused::TooFar),
            Reason::Full => write!(f, "{own}: {REQUESTS_MAX} requests are admitted"),
        }
    }
}

impl std::error::Error for Refused {}

/// What became of requests whose ways changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerouted {
    /// Those that have other ways now, under their names of before.
    pub admitted: Vec<Admitted>,
    /// Those that do not fit any more, and why.
    pub dropped: Vec<(RequestId, Request, Refused)>,
}

#[derive(Debug, Clone)]
struct PlacedStream {
    id: FlowId,
    stream: Stream,
    tree: Tree,
    needs: BTreeMap<u64, Tables>,
}

#[derive(Debug, Clone)]
struct Entry {
    request: Request,
    streams: Vec<PlacedStream>,
}

/// A stream with its ways, the least loaded first.
struct Candidates {
    stream: Stream,
    ways: Vec<(Tree, Flow)>,
}

/// Admitted requests in a network.
#[derive(Debug, Clone)]
pub struct Scheduler {
    network: Admission,
    /// By index of a port in `network`.
    ports: Vec<Egress>,
    /// The index of each port as it is now.
    index: BTreeMap<Egress, usize>,
    entries: BTreeMap<RequestId, Entry>,
    /// Whose flow it is, and which of its flows.
    owners: BTreeMap<FlowId, (RequestId, usize)>,
    rooms: Rooms,
    full: FullPorts,
    next: u64,
}

/// What a decision reads and keeps account of while it places flows.
struct Desk<'a> {
    ports: &'a [Egress],
    snapshot: &'a Snapshot,
    rooms: Rooms,
    full: &'a mut FullPorts,
    trials: Trials,
}

impl Default for Scheduler {
    fn default() -> Self {
        let network = Admission::new(Vec::new()).expect("no port makes no sense");
        Self {
            network,
            ports: Vec::new(),
            index: BTreeMap::new(),
            entries: BTreeMap::new(),
            owners: BTreeMap::new(),
            rooms: Rooms::default(),
            full: FullPorts::default(),
            next: 0,
        }
    }
}

impl Scheduler {
    /// Admits all flows of a request, or none. The work grows with the ports on its ways and the flows there.
    ///
    /// # Errors
    /// The flow that does not fit, and why.
    pub fn admit(&mut self, snapshot: &Snapshot, request: Request) -> Result<Admitted, Refused> {
        if self.entries.len() >= REQUESTS_MAX {
            return Err(Refused { flow: request.name, reason: Reason::Full });
        }
        let id = RequestId(self.next);
        let admitted = self.admit_as(id, snapshot, request)?;
        self.next += 1;
        Ok(admitted)
    }

    /// What [`admit`](Self::admit) would answer. Nothing changes.
    ///
    /// # Errors
    /// As of `admit`.
    pub fn what_if(&mut self, snapshot: &Snapshot, request: &Request) -> Result<Admitted, Refused> {
        self.try_out(snapshot, request, &mut trials_of(request))
    }

    /// [`what_if`](Self::what_if), as far as the trials go.
    pub(super) fn try_out(
        &mut self,
        snapshot: &Snapshot,
        request: &Request,
        trials: &mut Trials,
    ) -> Result<Admitted, Refused> {
        let candidates = self.candidates(snapshot, request)?;
        let Self { network, ports, rooms, full, .. } = self;
        let mut desk = Desk { ports, snapshot, rooms: rooms.clone(), full, trials: trials.take() };
        let mut outcome = None;
        // It always goes back.
        let gone: Result<(), ()> = network.attempt(|network| {
            let placed = place_all(network, &mut desk, candidates);
            outcome = Some(placed.map(|placed| {
                let routes: Vec<Route> =
                    placed.iter().map(|(stream, _)| route_of(network, desk.ports, snapshot, stream)).collect();
                let moves = placed.into_iter().flat_map(|(_, placed)| placed.moved.into_iter().map(|(old, _)| old));
                (routes, moves.collect::<Vec<FlowId>>())
            }));
            Err(())
        });
        debug_assert!(gone.is_err(), "an attempt that fails changes nothing");
        *trials = desk.trials;
        let (routes, moves) = outcome.unwrap_or_else(|| Err(no_route(request)))?;
        let moved = moves.iter().filter_map(|id| Some(self.owners.get(id)?.0)).collect();
        let bound_ns = routes.first().map_or(0, |route| route.bound_ns);
        Ok(Admitted { id: RequestId(self.next), routes, bound_ns, snapshot: snapshot.version(), moved })
    }

    /// Removes a request with all its flows.
    pub fn remove(&mut self, id: RequestId) -> Option<Request> {
        let entry = self.entries.remove(&id)?;
        for stream in &entry.streams {
            if let Some(flow) = self.network.remove(stream.id) {
                self.full.forget(&flow.hops);
            }
            self.owners.remove(&stream.id);
            self.rooms.give(&stream.needs);
        }
        Some(entry.request)
    }

    /// Gives other ways to the requests whose ways are not as they were: a link is down, or a port was described otherwise. The most important
    /// ones first, and among equals those that were admitted first.
    pub fn reroute(&mut self, snapshot: &Snapshot) -> Rerouted {
        let is_gone = |port: &Egress| {
            let described = snapshot.port(*port).filter(|_| snapshot.link(*port).is_some_and(|link| link.is_up));
            described.as_ref() != self.index.get(port).map(|at| &self.network.ports()[*at])
        };
        let is_affected = |entry: &Entry| entry.streams.iter().flat_map(|stream| &stream.tree.ports).any(is_gone);
        let affected = self.entries.iter().filter(|(_, entry)| is_affected(entry));
        let mut affected: Vec<(RequestId, i32)> =
            affected.map(|(id, entry)| (*id, entry.request.contract.importance)).collect();
        affected.sort_by_key(|(id, importance)| (std::cmp::Reverse(*importance), *id));
        let requests: Vec<(RequestId, Request)> =
            affected.into_iter().filter_map(|(id, _)| Some((id, self.remove(id)?))).collect();
        let mut rerouted = Rerouted::default();
        for (id, request) in requests {
            match self.admit_as(id, snapshot, request.clone()) {
                Ok(admitted) => rerouted.admitted.push(admitted),
                Err(refused) => rerouted.dropped.push((id, request, refused)),
            }
        }
        rerouted
    }

    /// An admitted request.
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.entries.get(&id).map(|entry| &entry.request)
    }

    /// All admitted requests.
    pub fn requests(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.entries.iter().map(|(id, entry)| (*id, &entry.request))
    }

    /// The flows of an admitted request as they are now.
    pub fn routes(&self, snapshot: &Snapshot, id: RequestId) -> Option<Vec<Route>> {
        let entry = self.entries.get(&id)?;
        Some(entry.streams.iter().map(|stream| route_of(&self.network, &self.ports, snapshot, stream)).collect())
    }

    /// What admitted flows take of a port: parts of a million of its rate, and for each class how long a frame may be there. `None` for a port
    /// that no request went by so far.
    pub fn port_use(&self, port: Egress) -> Option<(u64, Vec<u64>)> {
        let at = *self.index.get(&port)?;
        let classes = self.network.ports().get(at)?.classes.len();
        let queue = |class| self.network.queue(calculus::Hop { port: at, class }).map_or(0, |claim| claim.delay_ns);
        Some((self.network.utilisation_ppm(at), (0..classes).map(queue).collect()))
    }

    /// All flows with what proves their bounds, for [`takt_calculus::network::check`].
    pub fn certificate(&self) -> NetworkCertificate {
        self.network.certificate()
    }

    /// All flows with what proves their bounds, and the index of the request's samples among them.
    pub fn certificate_of(&self, id: RequestId) -> Option<(NetworkCertificate, usize)> {
        let samples = self.entries.get(&id)?.streams.first()?;
        Some((self.network.certificate(), self.network.index_in_certificate(samples.id)?))
    }

    fn admit_as(&mut self, id: RequestId, snapshot: &Snapshot, request: Request) -> Result<Admitted, Refused> {
        let candidates = self.candidates(snapshot, &request)?;
        let trials = trials_of(&request);
        let Self { network, ports, rooms, full, .. } = self;
        let mut desk = Desk { ports, snapshot, rooms: rooms.clone(), full, trials };
        let placed = network.attempt(|network| place_all(network, &mut desk, candidates))?;
        self.rooms = desk.rooms;
        let (mut streams, mut moved) = (Vec::new(), BTreeSet::new());
        for (n, (stream, Placed { id: flow, moved: moves })) in placed.into_iter().enumerate() {
            let owners: Vec<_> = moves.iter().filter_map(|(old, new)| Some((*new, self.owners.remove(old)?))).collect();
            self.owners.insert(flow, (id, n));
            streams.push(stream);
            for (flow, (owner, n)) in owners {
                self.owners.insert(flow, (owner, n));
                let theirs = if owner == id { Some(&mut streams) } else { None };
                let theirs = theirs.or_else(|| self.entries.get_mut(&owner).map(|entry| &mut entry.streams));
                if let Some(stream) = theirs.and_then(|streams| streams.get_mut(n)) {
                    stream.id = flow;
                }
                moved.insert(owner);
            }
        }
        moved.remove(&id);
        self.entries.insert(id, Entry { request, streams });
        let routes = self.routes(snapshot, id).unwrap_or_default();
        let bound_ns = routes.first().map_or(0, |route| route.bound_ns);
        Ok(Admitted { id, routes, bound_ns, snapshot: snapshot.version(), moved })
    }

    /// The flows of a request with their ways; adds ports that are not known yet.
    fn candidates(&mut self, snapshot: &Snapshot, request: &Request) -> Result<Vec<Candidates>, Refused> {
        let refuse = |reason| Refused { flow: request.name.clone(), reason };
        if let Some(what) = nonsense(request) {
            return Err(refuse(Reason::Nonsense(what)));
        }
        let streams = request.streams().map_err(|error| refuse(Reason::Format(error)))?;
        streams.into_iter().map(|stream| self.candidates_of(snapshot, stream)).collect()
    }

    fn candidates_of(&mut self, snapshot: &Snapshot, stream: Stream) -> Result<Candidates, Refused> {
        let no_route = || Refused { flow: stream.name.clone(), reason: Reason::NoRoute };
        let trees = route::trees(snapshot, stream.source, &stream.destinations).ok_or_else(no_route)?;
        let mut ways = Vec::new();
        for tree in trees {
            let hops = tree.ports.iter().map(|port| self.hop(snapshot, *port)).collect::<Option<Vec<_>>>();
            let hops = hops.ok_or_else(no_route)?;
            let load = hops.iter().map(|hop| self.network.utilisation_ppm(hop.port)).max();
            let mut arrivals = stream.arrivals;
            arrivals.period_ns = metered(snapshot, &tree, arrivals.period_ns);
            let flow = Flow {
                name: stream.name.clone(),
                arrivals,
                frames: stream.frames.clone(),
                hops,
                branches: tree.branches.clone(),
                limit_ns: stream.limit_ns,
            };
            ways.push((load, tree, flow));
        }
        ways.sort_by_key(|(load, tree, _)| (*load, tree.ports.len()));
        let ways = ways.into_iter().map(|(_, tree, flow)| (tree, flow)).collect();
        Ok(Candidates { stream, ways })
    }

    fn hop(&mut self, snapshot: &Snapshot, port: Egress) -> Option<calculus::Hop> {
        let described = snapshot.port(port)?;
        let known = self.index.get(&port).copied().filter(|at| self.network.ports()[*at] == described);
        let at = known.or_else(|| {
            let at = self.network.add_port(described).ok()?; // tidy-allow(dropped-cause): a port of a network makes sense.
            self.ports.push(port);
            self.index.insert(port, at);
            Some(at)
        })?;
        Some(calculus::Hop { port: at, class: 0 })
    }
}

/// The trials of a decision: [`TRIALS_MAX`] for each flow.
pub(super) fn trials_of(request: &Request) -> Trials {
    let flows = request.contract.reliability.map_or(1, |_| 2 + request.destinations.len());
    Trials::new(TRIALS_MAX.saturating_mul(flows))
}

fn no_route(request: &Request) -> Refused {
    Refused { flow: request.name.clone(), reason: Reason::NoRoute }
}

/// What is wrong with a request.
fn nonsense(request: &Request) -> Option<&'static str> {
    let contract = &request.contract;
    let heartbeat_ns = contract.reliability.map(|reliability| reliability.heartbeat_period_ns);
    if request.destinations.is_empty() {
        Some("it has no destination")
    } else if request.destinations.contains(&request.source) {
        Some("its source is a destination")
    } else if contract.min_separation_ns == 0 || heartbeat_ns == Some(0) {
        Some("its minimum separation, or its HEARTBEAT period, is 0")
    } else if contract.burst == 0 {
        Some("its burst is 0")
    } else if contract.sample_len == 0 {
        Some("its samples have no octet")
    } else {
        None
    }
}

/// The period of what the meter in the first switch may let pass of a flow that breaks its contract.
fn metered(snapshot: &Snapshot, tree: &Tree, period_ns: u64) -> u64 {
    let first = tree.ports.iter().find_map(|port| match port {
        Egress::Switch(PortRef { dpid, .. }) => snapshot.switch(*dpid),
        Egress::Host(_) => None,
    });
    let ppm = first.map_or(0, |model| u128::from(model.rate_limiter_ppm));
    let period = u128::from(period_ns) * 1_000_000 / (1_000_000 + ppm);
    u64::try_from(period).unwrap_or(u64::MAX).max(1)
}

/// Places flows one after the other, each by the first of its ways that fits.
fn place_all(
    network: &mut Admission,
    desk: &mut Desk<'_>,
    candidates: Vec<Candidates>,
) -> Result<Vec<(PlacedStream, Placed)>, Refused> {
    let numbered = candidates.into_iter().enumerate();
    numbered.map(|(n, candidates)| place_one(network, desk, candidates, n == 0)).collect()
}

/// Refusals of a flow that is placed `alone`, before others of its request, are remembered.
fn place_one(
    network: &mut Admission,
    desk: &mut Desk<'_>,
    candidates: Candidates,
    alone: bool,
) -> Result<(PlacedStream, Placed), Refused> {
    let Candidates { stream, ways } = candidates;
    // The refusal that is returned: that of the least loaded way.
    let mut first = None;
    // Others move for it on that way only, and if no way is free.
    let tries = ways.iter().map(|way| (way, false)).chain(ways.first().map(|way| (way, true)));
    for ((tree, flow), moves) in tries {
        if desk.trials.are_spent() {
            first.get_or_insert(Reason::TooFar);
            break;
        }
        if let Some(refused) = desk.full.refusal(flow) {
            first.get_or_insert_with(|| reason(network, desk.ports, &stream.name, refused.clone()));
            continue;
        }
        let needs = rooms::needs(tree);
        if let Err(no_room) = desk.rooms.take(desk.snapshot, &needs) {
            first.get_or_insert(Reason::Room(no_room));
            continue;
        }
        let refused = match classes::place(network, flow, moves, &mut desk.trials) {
            Ok(placed) => {
                return Ok((PlacedStream { id: placed.id, stream, tree: tree.clone(), needs }, placed));
            }
            Err(NotPlaced::Full { port, refused }) => {
                if alone {
                    desk.full.remember(flow, port, &refused);
                }
                refused
            }
            Err(NotPlaced::Other(refused)) => refused,
        };
        desk.rooms.give(&needs);
        first.get_or_insert_with(|| reason(network, desk.ports, &stream.name, refused));
    }
    Err(Refused { flow: stream.name, reason: first.unwrap_or(Reason::NoRoute) })
}

fn reason(network: &Admission, ports: &[Egress], own: &str, refused: calculus::Refused) -> Reason {
    match refused {
        calculus::Refused::Nonsense(what) => Reason::Nonsense(what),
        calculus::Refused::Queue { hop, fault } => Reason::Queue { port: ports[hop.port], class: hop.class, fault },
        calculus::Refused::Late { flow, bound_ns, limit_ns, hop } => {
            let flow = network.flow(flow).map_or(own, |flow| &flow.name).to_owned();
            Reason::Late { flow, bound_ns, limit_ns, port: ports[hop.port], class: hop.class }
        }
        _ => Reason::TooFar,
    }
}

/// A stream as it is placed now.
fn route_of(network: &Admission, ports: &[Egress], snapshot: &Snapshot, placed: &PlacedStream) -> Route {
    let flow = network.flow(placed.id);
    let hop = |(n, hop): (usize, &calculus::Hop)| {
        let port = ports[hop.port];
        let reach = match port {
            Egress::Switch(PortRef { dpid, .. }) => snapshot.switch(dpid).and_then(|model| model.queues.get(hop.class)),
            Egress::Host(_) => None,
        };
        let after = flow.and_then(|flow| flow.before(n));
        Hop { port, class: hop.class, reach: reach.map(|queue| queue.reach), after }
    };
    Route {
        name: placed.stream.name.clone(),
        source: placed.stream.source,
        destinations: placed.stream.destinations.clone(),
        hops: flow.map(|flow| flow.hops.iter().enumerate().map(hop).collect()).unwrap_or_default(),
        bound_ns: network.bound(placed.id).map_or(u64::MAX, |bound| bound.bound_ns()),
        limit_ns: placed.stream.limit_ns,
    }
}
