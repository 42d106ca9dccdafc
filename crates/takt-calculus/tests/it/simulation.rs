//! Resources that serve, event by event: what the analysis is about, in the plainest form.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use takt_calculus::{Arrivals, System};

use super::random::Random;

/// What waits for a resource: by priority, then by arrival, then as it came.
type Waiting = BinaryHeap<(i32, Reverse<u64>, Reverse<u64>, Piece)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
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
    /// All begin at the same time, as densely as allowed, and all takes longest.
    Worst,
    /// By chance, within what is allowed.
    Random,
}

/// Times of a flow's events, from `offset` on.
fn times(arrivals: &Arrivals, until: u64, manner: Manner, random: &mut Random) -> Vec<u64> {
    let offset = if manner == Manner::Worst { 0 } else { random.between(0, arrivals.period_ns) };
    let mut times: Vec<u64> = Vec::new();
    let mut late = 0;
    for n in 0.. {
        let time = if manner == Manner::Worst {
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
    let mut waiting: Vec<Waiting> = system.resources.iter().map(|_| Waiting::new()).collect();
    let mut served: Vec<Option<Piece>> = vec![None; system.resources.len()];
    let (mut longest, mut order) = (vec![0; flows.len()], 0);
    let takes = |low: u64, high: u64, random: &mut Random| match manner {
        Manner::Worst => high,
        Manner::Random => random.between(low, high),
    };
    while let Some(Reverse((now, happening))) = happenings.pop() {
        match happening {
            Happening::Arrival { flow, stage, event } => {
                let at = &flows[flow].stages[stage];
                for n in 1..=at.pieces {
                    let takes = takes(at.piece_ns_min, at.piece_ns, random);
                    let piece = Piece { flow, stage, event, is_last: n == at.pieces, takes };
                    order += 1;
                    waiting[at.resource].push((at.priority, Reverse(now), Reverse(order), piece));
                }
            }
            Happening::Completion { resource } => {
                let done = served[resource].take().expect("it was served");
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
        for (resource, served) in served.iter_mut().enumerate() {
            if served.is_none()
                && let Some((_, _, _, piece)) = waiting[resource].pop()
            {
                *served = Some(piece);
                happenings.push(Reverse((now + piece.takes, Happening::Completion { resource })));
            }
        }
    }
    longest
}
