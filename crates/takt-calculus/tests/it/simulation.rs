//! Resources that serve, event by event: what the analysis is about, in the plainest form.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use takt_calculus::{Arrivals, Resource, System};

use super::random::Random;

/// What waits for a resource, or is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    priority: i32,
    /// Among equals the lowest is served first; of one rank, in its order.
    rank: u64,
    order: u64,
    flow: usize,
    stage: usize,
    event: usize,
    is_last: bool,
    takes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// First, so that who comes when a resource gets free is served.
    Arrival {
        flow: usize,
        stage: usize,
        event: usize,
    },
    Completion {
        resource: usize,
    },
}

/// How long is taken for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// All begin at the same time, as densely as allowed, all takes longest, and among equals this flow is served last.
    WorstFor(usize),
    /// By chance, within what is allowed, equals included.
    Random,
}

/// A resource while it serves.
#[derive(Debug, Default)]
struct Serving {
    waiting: Vec<Piece>,
    served: Option<Piece>,
    /// Since when work above the server's priority has kept it without a pause, or since the server's last turn.
    held_up_since: Option<u64>,
}

impl Serving {
    /// Takes what is served next, as the rule says.
    fn choose(&mut self, resource: &Resource, now: u64) -> Option<Piece> {
        let first = |pieces: &mut dyn Iterator<Item = (usize, &Piece)>| {
            pieces.min_by_key(|(_, piece)| (Reverse(piece.priority), piece.rank, piece.order)).map(|(place, _)| place)
        };
        let Some(mut place) = first(&mut self.waiting.iter().enumerate()) else {
            self.held_up_since = None;
            return None;
        };
        let Some(server) = resource.server else { return Some(self.waiting.remove(place)) };
        if self.waiting[place].priority <= server.priority {
            self.held_up_since = None;
        } else if now - *self.held_up_since.get_or_insert(now) >= server.period_ns {
            let mut its = self.waiting.iter().enumerate().filter(|(_, piece)| piece.priority == server.priority);
            self.held_up_since = Some(now);
            if let Some(its) = first(&mut its) {
                (place, self.held_up_since) = (its, Some(now + self.waiting[its].takes));
            }
        }
        Some(self.waiting.remove(place))
    }
}

/// Times of a flow's events, from `offset` on.
fn times(arrivals: &Arrivals, until: u64, manner: Manner, random: &mut Random) -> Vec<u64> {
    let is_random = manner == Manner::Random;
    let offset = if is_random { random.between(0, arrivals.period_ns) } else { 0 };
    let mut times: Vec<u64> = Vec::new();
    let mut late = 0;
    for n in 0.. {
        let time = if !is_random {
            arrivals.span(n)
        } else {
            // Each has its own time, and is late by its jitter at most; nearer to one another than allowed they are put apart.
            let jitter = if random.one_in(3) { arrivals.jitter_ns } else { random.between(0, arrivals.jitter_ns) };
            (n * arrivals.period_ns + jitter).max(late)
        };
        if time > until {
            break;
        }
        late = time;
        times.push(offset + time);
    }
    times.sort_unstable();
    // Pushing apart may not push beyond the jitter: who would be is left out.
    let mut kept: Vec<u64> = Vec::new();
    for time in times {
        if kept.last().is_none_or(|last| time - last >= arrivals.distance_ns) {
            kept.push(time);
        }
    }
    kept
}

/// The longest time that any event of each flow took.
pub fn longest(system: &System, until: u64, manner: Manner, random: &mut Random) -> Vec<u64> {
    let flows = &system.flows;
    let times: Vec<Vec<u64>> =
        flows.iter().map(|flow| times(&flow.arrivals.expect("limited"), until, manner, random)).collect();
    let mut happenings = BinaryHeap::new();
    for (flow, times) in times.iter().enumerate() {
        for (event, time) in times.iter().enumerate() {
            happenings.push(Reverse((*time, Happening::Arrival { flow, stage: 0, event })));
        }
    }
    let mut serving: Vec<Serving> = system.resources.iter().map(|_| Serving::default()).collect();
    let ranks: Vec<u64> = (0..flows.len())
        .map(|flow| match manner {
            Manner::WorstFor(last) => u64::from(flow == last),
            Manner::Random => random.next(),
        })
        .collect();
    let (mut longest, mut order) = (vec![0; flows.len()], 0);
    let takes = |low: u64, high: u64, random: &mut Random| match manner {
        Manner::WorstFor(_) => high,
        Manner::Random => random.between(low, high),
    };
    while let Some(Reverse((now, happening))) = happenings.pop() {
        match happening {
            Happening::Arrival { flow, stage, event } => {
                let at = &flows[flow].stages[stage];
                for n in 1..=at.pieces {
                    let lock_ns = takes(0, system.resources[at.resource].lock_ns, random);
                    let takes = lock_ns + takes(at.piece_ns_min, at.piece_ns, random);
                    order += 1;
                    let (priority, rank, is_last) = (at.priority, ranks[flow], n == at.pieces);
                    let piece = Piece { priority, rank, order, flow, stage, event, is_last, takes };
                    serving[at.resource].waiting.push(piece);
                }
            }
            Happening::Completion { resource } => {
                let done = serving[resource].served.take().expect("it was served");
                let Piece { flow, stage, event, is_last, .. } = done;
                let at = &flows[flow].stages[stage];
                if is_last {
                    let next = now + takes(at.delay_ns_min, at.delay_ns, random);
                    if stage + 1 < flows[flow].stages.len() {
                        happenings.push(Reverse((next, Happening::Arrival { flow, stage: stage + 1, event })));
                    } else {
                        longest[flow] = longest[flow].max(next - times[flow][event]);
                    }
                }
            }
        }
        // Whoever comes at the same time is seen before anybody is chosen.
        if happenings.peek().is_some_and(|Reverse((next, _))| *next == now) {
            continue;
        }
        for (resource, serving) in serving.iter_mut().enumerate() {
            if serving.served.is_none()
                && let Some(piece) = serving.choose(&system.resources[resource], now)
            {
                serving.served = Some(piece);
                happenings.push(Reverse((now + piece.takes, Happening::Completion { resource })));
            }
        }
    }
    longest
}
