//! Benchmark of one decision of the scheduler: 10,000 requests over 100 switches, admitted one by
//! one.
//!
//! `cargo bench -p takt-sdn --bench schedule`. The switches form a grid of 10 by 10 with two hosts
//! each; all links have 1 Gbit/s. Samples of 100 to 1,300 octets are sent every 20 to 200 ms, best
//! effort, with limits from 3 to 100 ms; three quarters go to nearby hosts. The scheduler chooses
//! among four paths, and the classes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use takt_calculus::network::{Depth, check};
use takt_sdn::model::{HostId, HostInterface, Network, SwitchModel};
use takt_sdn::schedule::{Contract, Request, Scheduler, WireFormat};
use takt_testkit::Random;

const SIDE: u64 = 10;
const HOSTS: u64 = 2 * SIDE * SIDE;
const REQUESTS: u64 = 10_000;
const MILLISECOND: u64 = 1_000_000;
const RATE_BPS: u64 = 1_000_000_000;

/// Builds the grid: ports 1 and 2 lead east and west, 3 and 4 south and north, 5 and 6 to hosts.
fn grid() -> Network {
    let mut model = SwitchModel::built_in("generic-hardware").expect("the model is built in");
    model.tables.flow_entries = 10_000;
    model.tables.meters = 10_000;
    let model = Arc::new(model);
    let mut network = Network::default();
    for dpid in 0..SIDE * SIDE {
        network.add_switch(dpid, Arc::clone(&model)).expect("the network accepts the switch");
        for host in [2 * dpid, 2 * dpid + 1] {
            let interface = HostInterface { queues: vec![Depth::UNLIMITED; 4], foreign_frame_len: 1514 };
            let port = 5 + (host % 2) as u32;
            network.attach(HostId(host), interface, (dpid, port), RATE_BPS, 50).expect("the port is free");
        }
    }
    for dpid in 0..SIDE * SIDE {
        if dpid % SIDE + 1 < SIDE {
            network.link([(dpid, 1), (dpid + 1, 2)], RATE_BPS, 500).expect("the ports are free");
        }
        if dpid / SIDE + 1 < SIDE {
            network.link([(dpid, 3), (dpid + SIDE, 4)], RATE_BPS, 500).expect("the ports are free");
        }
    }
    network
}

fn request(random: &mut Random, number: u64) -> Request {
    let source = random.between(0, HOSTS - 1);
    let span = if random.between(0, 3) == 0 { HOSTS - 1 } else { 8 };
    let contract = Contract {
        min_separation_ns: random.between(20, 200) * MILLISECOND,
        burst: 1,
        jitter_ns: 0,
        sample_len: random.between(100, 1300),
        limit_ns: random.between(3, 100) * MILLISECOND,
        reliability: None,
        importance: 0,
    };
    Request {
        name: format!("request {number}"),
        source: HostId(source),
        destinations: vec![HostId((source + random.between(1, span)) % HOSTS)],
        contract,
        format: WireFormat::default(),
    }
}

fn main() {
    let snapshot = grid().snapshot();
    let mut scheduler = Scheduler::default();
    let mut random = Random(1);
    let (mut times, mut work, mut admitted) = (Vec::new(), Vec::new(), 0);
    for number in 0..REQUESTS {
        let request = request(&mut random, number);
        let (before, since) = (scheduler.work(), Instant::now());
        let decision = scheduler.admit(&snapshot, request);
        times.push(since.elapsed());
        let after = scheduler.work();
        work.push((after.queues - before.queues, after.trials - before.trials));
        admitted += u64::from(decision.is_ok());
    }
    println!("{admitted} of {REQUESTS} requests admitted");
    for (part, work) in times.chunks(1000).zip(work.chunks(1000)) {
        let (mut part, mut work): (Vec<Duration>, Vec<(usize, usize)>) = (part.to_vec(), work.to_vec());
        part.sort_unstable();
        work.sort_unstable();
        let at = |percent: usize| (part.len() - 1) * percent / 100;
        let [p50, p99, longest] = [50, 99, 100].map(|percent| part[at(percent)]);
        print!("{:>6} decisions: p50 {p50:?}, p99 {p99:?}, longest {longest:?}; ", part.len());
        let [p50, p99, most] = [50, 99, 100].map(|percent| work[at(percent)].0);
        let trials = work.iter().map(|(_, trials)| trials).max().copied().unwrap_or_default();
        println!("queues bounded: p50 {p50}, p99 {p99}, most {most}; trials: most {trials}");
    }
    let certificate = scheduler.certificate();
    let since = Instant::now();
    check(&certificate).expect("the certificate is valid");
    println!("certificate of all: checked in {:?}", since.elapsed());
}
