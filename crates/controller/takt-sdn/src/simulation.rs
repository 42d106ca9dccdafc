//! Random networks and requests for tests that compare bounds with simulated frames.
//!
//! Each switch has a model of its own, with one to four classes of any depth; the switches form a
//! tree with chords. A quarter of the networks have up to 20 switches, the others at most five. The
//! result depends only on the numbers that the caller draws.

use std::sync::Arc;

use takt_calculus::network::Depth;
pub use takt_calculus::network::simulation::Draw;

use crate::PortRef;
use crate::model::{Egress, HostId, HostInterface, Network, Queue, QueueSelection, SwitchModel, Tables};
use crate::schedule::{Contract, Reliability, Request, WireFormat};

const RATES_BPS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];

/// A random network, with the data from which requests and failures are drawn.
#[derive(Debug)]
pub struct RandomNetwork {
    /// The network.
    pub network: Network,
    /// Number of hosts, which are numbered from 0.
    pub hosts: u64,
    /// Links between switches, by one end.
    pub links: Vec<Egress>,
}

/// Returns true once in `n` on average.
fn one_in(draw: &mut impl Draw, n: u64) -> bool {
    draw(1, n) == 1
}

fn rate_bps(draw: &mut impl Draw) -> u64 {
    RATES_BPS[usize::from(draw(0, 2) as u8)]
}

fn queue(draw: &mut impl Draw, class: u8) -> Queue {
    let depth = match draw(0, 2) {
        0 => Depth { frames: draw(3, 100), octets: u64::MAX },
        1 => Depth { octets: draw(4_000, 90_000), frames: u64::MAX },
        _ => Depth::UNLIMITED,
    };
    Queue { selection: QueueSelection { set_queue: None, dscp: Some(46 - class) }, depth }
}

fn model(draw: &mut impl Draw) -> SwitchModel {
    let classes = draw(1, 4) as u8;
    let forwarding_ns = draw(0, 50_000);
    SwitchModel {
        name: "random".into(),
        queues: (0..classes).map(|class| queue(draw, class)).collect(),
        control: one_in(draw, 2).then(|| queue(draw, classes)),
        forwarding_ns_min: draw(0, forwarding_ns),
        forwarding_ns,
        foreign_frame_len: draw(60, 1514),
        rate_limiter_ppm: draw(0, 50_000) as u32,
        rate_limiter_step_ns: 0,
        tables: Tables { flow_entries: draw(5, 200) as u32, groups: 20, meters: 200 },
    }
}

/// Draws a network of switches and hosts.
///
/// # Panics
/// If `draw` returns a number out of the requested range.
pub fn network(draw: &mut impl Draw) -> RandomNetwork {
    let mut network = Network::default();
    let switches = if one_in(draw, 4) { draw(2, 20) } else { draw(1, 5) };
    let mut next_port = vec![1_u32; switches as usize];
    let mut free = |dpid: u64| {
        next_port[dpid as usize] += 1;
        (dpid, next_port[dpid as usize])
    };
    let mut links = Vec::new();
    for dpid in 0..switches {
        network.add_switch(dpid, Arc::new(model(draw))).expect("20 switches fit");
        let chords = if dpid > 1 && one_in(draw, 2) { 2 } else { 1 };
        for _ in 0..if dpid == 0 { 0 } else { chords } {
            let ends = [free(dpid), free(draw(0, dpid - 1))];
            network.link(ends, rate_bps(draw), draw(0, 1000)).expect("the ports are new");
            links.push(Egress::Switch(PortRef::new(ends[0].0, ends[0].1)));
        }
    }
    let hosts = switches * draw(1, 3) + 1;
    for host in 0..hosts {
        let queues = vec![Depth::UNLIMITED; draw(1, 2) as usize];
        let interface = HostInterface { queues, foreign_frame_len: 1514 };
        let cable_ns = draw(0, 1000);
        network.attach(HostId(host), interface, free(host % switches), rate_bps(draw), cable_ns).expect("new");
    }
    RandomNetwork { network, hosts, links }
}

/// Draws a request from one of this number of hosts to one to four others.
pub fn request(draw: &mut impl Draw, hosts: u64, number: u64) -> Request {
    let source = draw(0, hosts - 1);
    let receivers = if one_in(draw, 4) { draw(2, 4) } else { 1 };
    let mut destinations: Vec<HostId> = (0..receivers).map(|_| HostId((source + draw(1, hosts - 1)) % hosts)).collect();
    destinations.sort_unstable();
    destinations.dedup();
    let reliability = one_in(draw, 3).then(|| Reliability {
        heartbeat_period_ns: draw(10_000_000, 100_000_000),
        response_delay_ns: draw(0, 2_000_000),
    });
    Request {
        name: format!("request {number}"),
        source: HostId(source),
        destinations,
        contract: Contract {
            min_separation_ns: draw(500_000, 20_000_000),
            burst: if one_in(draw, 5) { draw(2, 3) } else { 1 },
            jitter_ns: if one_in(draw, 3) { draw(0, 3_000_000) } else { 0 },
            sample_len: if one_in(draw, 4) { draw(1, 8_000) } else { draw(1, 1_344) },
            limit_ns: draw(300_000, 60_000_000),
            reliability,
            importance: draw(0, 3) as i32,
        },
        format: WireFormat { vlan: one_in(draw, 2), ipv6: one_in(draw, 4), ..WireFormat::default() },
    }
}
