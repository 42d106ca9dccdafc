//! Systems by seed.

use takt_calculus::system::Server;
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};

/// The priority of whose work one piece goes first, now and then.
const SERVED: i32 = 1;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// One to three resources, two to seven flows of one to three stages. Each resource is used by nine tenths at most, without waits for locks.
pub fn system(random: &mut Random) -> System {
    let count = random.between(1, 3);
    let resources: Vec<_> = (0..count).map(|n| Resource::new(format!("resource {n}"))).collect();
    let flows = random.between(2, 7);
    let share = random.between(50, 900) / flows;
    let flow = |n| {
        let period_ns = random.between(100, 2000);
        let arrivals = Arrivals {
            period_ns,
            jitter_ns: if random.one_in(2) { random.between(0, 3 * period_ns) } else { 0 },
            distance_ns: if random.one_in(2) { random.between(0, period_ns / 2) } else { 0 },
        };
        let visited: Vec<u64> = (0..random.between(1, 3)).map(|_| random.between(0, count - 1)).collect();
        let stages = visited
            .iter()
            .map(|&resource| {
                let pieces = if random.one_in(3) { random.between(2, 4) } else { 1 };
                let visits = visited.iter().filter(|other| **other == resource).count() as u64;
                let piece_ns = (period_ns * share / 1000 / pieces / visits.max(random.between(1, 3))).max(1);
                let delay_ns = random.between(0, 50);
                Stage {
                    resource: resource as usize,
                    priority: random.between(0, 4) as i32,
                    piece_ns,
                    piece_ns_min: random.between(0, piece_ns),
                    pieces,
                    delay_ns,
                    delay_ns_min: random.between(0, delay_ns),
                }
            })
            .collect();
        Flow { name: format!("flow {n}"), arrivals: Some(arrivals), stages, limit_ns: None }
    };
    let flows: Vec<Flow> = (0..flows).map(flow).collect();
    let resource = |(place, resource): (usize, Resource)| {
        let stages = flows.iter().flat_map(|flow| &flow.stages).filter(|stage| stage.resource == place);
        let piece_ns = stages.filter(|stage| stage.priority == SERVED).map(|stage| stage.piece_ns).max();
        let period_ns = random.between(500, 3000);
        let server = piece_ns.map(|piece_ns| Server { priority: SERVED, period_ns, piece_ns });
        Resource { lock_ns: if random.one_in(3) { random.between(0, 20) } else { 0 }, server, ..resource }
    };
    let resources = resources.into_iter().enumerate().map(resource).collect();
    System { resources, flows }
}
