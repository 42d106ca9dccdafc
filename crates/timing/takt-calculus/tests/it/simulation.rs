//! Discrete-event simulation of resources, the reference for the analysis.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use takt_calculus::{Arrivals, Resource, System};

use super::random::Random;

/// Piece that waits for a resource or is in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    priority: i32,
    /// Rank among pieces of equal priority: the lowest is served first. Pieces of the same rank are
    /// served by `order`.
    rank: u64,
    order: u64,
    flow: usize,
    stage: usize,
    event: usize,
    is_last: bool,
    takes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Declared first, so that simultaneous arrivals are visible when a resource becomes free.
    Arrival {
        flow: usize,
        stage: usize,
        event: usize,
    },
    Completion {
        resource: usize,
    },
}

/// Choice of times in a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalPattern {
    /// All flows start simultaneously with the densest arrivals and maximum execution times. Among
    /// equal priorities, this flow is served last.
    WorstFor(usize),
    /// Random choices within the bounds, including the order among equal priorities.
    Random,
}

/// Resource in operation.
#[derive(Debug, Default)]
struct Serving {
    waiting: Vec<Piece>,
    served: Option<Piece>,
    /// Time since which work above the server's priority has kept the resource busy without a
    /// pause, or time of the server's last piece.
    busy_since: Option<u64>,
}

impl Serving {
    /// Removes the piece that is served next by the scheduling rule.
    fn choose(&mut self, resource: &Resource, now: u64) -> Option<Piece> {
        let first = |pieces: &mut dyn Iterator<Item = (usize, &Piece)>| {
            pieces.min_by_key(|(_, piece)| (Reverse(piece.priority), piece.rank, piece.order)).map(|(place, _)| place)
        };
        let Some(mut place) = first(&mut self.waiting.iter().enumerate()) else {
            self.busy_since = None;
            return None;
        };
        let Some(server) = resource.server else { return Some(self.waiting.remove(place)) };
        if self.waiting[place].priority <= server.priority {
            self.busy_since = None;
        } else if now - *self.busy_since.get_or_insert(now) >= server.period_ns {
            let mut its = self.waiting.iter().enumerate().filter(|(_, piece)| piece.priority == server.priority);
            self.busy_since = Some(now);
            if let Some(its) = first(&mut its) {
                (place, self.busy_since) = (its, Some(now + self.waiting[its].takes));
            }
        }
        Some(self.waiting.remove(place))
    }
}

/// Returns the arrival times of a flow's events, starting at `offset`.
fn times(arrivals: &Arrivals, until: u64, pattern: ArrivalPattern, random: &mut Random) -> Vec<u64> {
    let is_random = pattern == ArrivalPattern::Random;
    let offset = if is_random { random.between(0, arrivals.period_ns) } else { 0 };
    let mut times: Vec<u64> = Vec::new();
    let mut late = 0;
    for n in 0.. {
        let time = if !is_random {
            arrivals.span(n)
        } else {
            // Each event is late by at most its jitter, and not earlier than the previous one.
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
    // An event that is too close to its predecessor is dropped, since moving it could exceed the
    // jitter.
    let mut kept: Vec<u64> = Vec::new();
    for time in times {
        if kept.last().is_none_or(|last| time - last >= arrivals.distance_ns) {
            kept.push(time);
        }
    }
    kept
}

/// Returns the maximum time of any event of each flow.
pub fn longest(system: &System, until: u64, pattern: ArrivalPattern, random: &mut Random) -> Vec<u64> {
    let flows = &system.flows;
    let times: Vec<Vec<u64>> =
        flows.iter().map(|flow| times(&flow.arrivals.expect("limited"), until, pattern, random)).collect();
    let mut events = BinaryHeap::new();
    for (flow, times) in times.iter().enumerate() {
        for (event, time) in times.iter().enumerate() {
            events.push(Reverse((*time, Event::Arrival { flow, stage: 0, event })));
        }
    }
    let mut serving: Vec<Serving> = system.resources.iter().map(|_| Serving::default()).collect();
    let ranks: Vec<u64> = (0..flows.len())
        .map(|flow| match pattern {
            ArrivalPattern::WorstFor(last) => u64::from(flow == last),
            ArrivalPattern::Random => random.next(),
        })
        .collect();
    let (mut longest, mut order) = (vec![0; flows.len()], 0);
    let takes = |low: u64, high: u64, random: &mut Random| match pattern {
        ArrivalPattern::WorstFor(_) => high,
        ArrivalPattern::Random => random.between(low, high),
    };
    while let Some(Reverse((now, next_event))) = events.pop() {
        match next_event {
            Event::Arrival { flow, stage, event } => {
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
            Event::Completion { resource } => {
                let done = serving[resource].served.take().expect("the job was served");
                let Piece { flow, stage, event, is_last, .. } = done;
                let at = &flows[flow].stages[stage];
                if is_last {
                    let next = now + takes(at.delay_ns_min, at.delay_ns, random);
                    if stage + 1 < flows[flow].stages.len() {
                        events.push(Reverse((next, Event::Arrival { flow, stage: stage + 1, event })));
                    } else {
                        longest[flow] = longest[flow].max(next - times[flow][event]);
                    }
                }
            }
        }
        // Process all simultaneous arrivals before a piece is selected.
        if events.peek().is_some_and(|Reverse((next, _))| *next == now) {
            continue;
        }
        for (resource, serving) in serving.iter_mut().enumerate() {
            if serving.served.is_none()
                && let Some(piece) = serving.choose(&system.resources[resource], now)
            {
                serving.served = Some(piece);
                events.push(Reverse((now + piece.takes, Event::Completion { resource })));
            }
        }
    }
    longest
}
