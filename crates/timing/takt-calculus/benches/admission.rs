//! Benchmark of admission control: 10,000 flows over 100 switches, admitted one by one.
//!
//! Run: `cargo bench -p takt-calculus --bench admission`. The switches form a grid of 10 by 10 with
//! two hosts each; all links have 1 Gbit/s. Flows are routed along the row and then along the
//! column. Each has a period of 5 to 100 ms, 200 to 1,400 octets, one of four classes, and a limit
//! of 2 to 100 ms.

use std::time::{Duration, Instant};

use takt_calculus::Arrivals;
use takt_calculus::network::{Admission, Depth, Flow, Frames, Hop, Port, check};
use takt_testkit::Random;

const SIDE: usize = 10;
const HOSTS: usize = 2 * SIDE * SIDE;
const FLOWS: usize = 10_000;
const MILLISECOND: u64 = 1_000_000;

/// Returns the index of a switch port: east, west, south, north, and to its two hosts. The ports of
/// the hosts follow those of all switches.
fn port_of(switch: usize, direction: usize) -> usize {
    switch * 6 + direction
}

fn way(from: usize, to: usize) -> Vec<usize> {
    let (mut row, mut column) = (from / 2 / SIDE, from / 2 % SIDE);
    let (last_row, last_column) = (to / 2 / SIDE, to / 2 % SIDE);
    let mut route = vec![SIDE * SIDE * 6 + from];
    while column != last_column {
        let direction = usize::from(column > last_column);
        route.push(port_of(row * SIDE + column, direction));
        column = if direction == 0 { column + 1 } else { column - 1 };
    }
    while row != last_row {
        let direction = usize::from(row > last_row);
        route.push(port_of(row * SIDE + column, 2 + direction));
        row = if direction == 0 { row + 1 } else { row - 1 };
    }
    route.push(port_of(to / 2, 4 + to % 2));
    route
}

fn flow(random: &mut Random, number: usize) -> Flow {
    let from = random.between(0, HOSTS as u64 - 1) as usize;
    // Three quarters of the flows go to nearby hosts.
    let span = if random.between(0, 3) == 0 { HOSTS - 1 } else { 8 };
    let to = (from + random.between(1, span as u64) as usize) % HOSTS;
    let class = random.between(0, 3) as usize;
    Flow {
        name: format!("flow {number}"),
        arrivals: Arrivals::sporadic(random.between(5, 100) * MILLISECOND),
        frames: vec![Frames { len: random.between(200, 1400), count: 1 }],
        hops: way(from, to).into_iter().map(|port| Hop { port, class }).collect(),
        branches: vec![],
        limit_ns: (2 + 20 * class as u64 + random.between(0, 38)) * MILLISECOND,
    }
}

fn main() {
    let port = |n| Port {
        name: format!("port {n}"),
        rate_bps: 1_000_000_000,
        foreign_frame_len: 1514,
        classes: vec![Depth { octets: 128 * 1024, frames: u64::MAX }; 4],
        delay_ns: 5_000,
        delay_ns_min: 1_000,
    };
    let mut admission = Admission::new((0..SIDE * SIDE * 6 + HOSTS).map(port).collect()).expect("the ports are valid");
    let mut random = Random(1);
    let (mut times, mut offered) = (Vec::new(), 0);
    while times.len() < FLOWS && offered < 2 * FLOWS {
        let flow = flow(&mut random, offered);
        offered += 1;
        let since = Instant::now();
        let admitted = admission.admit(flow);
        let took = since.elapsed();
        if admitted.is_ok() {
            times.push(took);
        }
    }
    println!("{} of {offered} flows admitted", times.len());
    for part in times.chunks(1000) {
        let mut part: Vec<Duration> = part.to_vec();
        part.sort_unstable();
        let at = |percent: usize| part[(part.len() - 1) * percent / 100];
        println!("{:>6} decisions: p50 {:?}, p99 {:?}, longest {:?}", part.len(), at(50), at(99), at(100));
    }
    let since = Instant::now();
    let certificate = admission.certificate();
    let made = since.elapsed();
    let since = Instant::now();
    check(&certificate).expect("the certificate is valid");
    println!("certificate of all: made in {made:?}, checked in {:?}", since.elapsed());
    let busiest = (0..admission.ports().len())
        .map(|port| certificate.flows.iter().filter(|flow| flow.hops.iter().any(|hop| hop.port == port)).count());
    println!("busiest port: {} flows", busiest.max().unwrap_or_default());
}
