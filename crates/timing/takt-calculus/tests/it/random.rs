//! Random systems from a seed.

use takt_calculus::system::Server;
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};
pub use takt_testkit::Random;

/// Priority of the server, one piece of which periodically goes first.
const SERVED: i32 = 1;

/// Returns a system of one to three resources with two to seven flows of one to three stages. Each
/// resource has a utilization of at most nine tenths, without lock waits.
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
