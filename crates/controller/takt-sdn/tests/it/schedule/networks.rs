//! Networks and requests for tests.

use std::sync::Arc;

use takt_calculus::network::Depth;
use takt_sdn::PortRef;
use takt_sdn::model::{Egress, HostId, HostInterface, Network, Queue, QueueSelection, SwitchModel, Tables};
use takt_sdn::schedule::{Contract, Reliability, Request, WireFormat};

pub const MILLISECOND: u64 = 1_000_000;
pub const RATE_BPS: u64 = 100_000_000;

/// Returns a switch model without delay, with this number of classes of unlimited depth.
pub fn model(classes: usize, flow_entries: u32) -> SwitchModel {
    let queue =
        |class| Queue { selection: QueueSelection { set_queue: Some(7 - class), dscp: None }, depth: Depth::UNLIMITED };
    SwitchModel {
        name: "test".into(),
        queues: (0..classes as u32).map(queue).collect(),
        control: None,
        forwarding_ns_min: 0,
        forwarding_ns: 0,
        foreign_frame_len: 1514,
        rate_limiter_ppm: 0,
        rate_limiter_step_ns: 0,
        tables: Tables { flow_entries, groups: 8, meters: 1000 },
    }
}

pub fn interface() -> HostInterface {
    HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 }
}

/// Builds a line of switches, or a ring of three or more, with two hosts at each: numbers 2 * dpid
/// and 2 * dpid + 1. Port 1 leads to the next switch.
pub fn network(switches: u64, model: SwitchModel) -> Network {
    let model = Arc::new(model);
    let mut network = Network::default();
    for dpid in 0..switches {
        network.add_switch(dpid, Arc::clone(&model)).expect("the network accepts the switch");
    }
    let links = if switches > 2 { switches } else { switches - 1 };
    for dpid in 0..links {
        network.link([(dpid, 1), ((dpid + 1) % switches, 2)], RATE_BPS, 0).expect("the ports are free");
    }
    for dpid in 0..switches {
        for n in 0..2 {
            network
                .attach(HostId(2 * dpid + n), interface(), (dpid, 3 + n as u32), RATE_BPS, 0)
                .expect("the port is free");
        }
    }
    network
}

pub const fn next(dpid: u64) -> Egress {
    Egress::Switch(PortRef::new(dpid, 1))
}

/// Returns a request for 1,400 octets every 5 ms, best effort.
pub fn request(source: u64, destinations: &[u64], limit_ns: u64) -> Request {
    Request {
        name: format!("from {source}"),
        source: HostId(source),
        destinations: destinations.iter().map(|host| HostId(*host)).collect(),
        contract: Contract {
            min_separation_ns: 5 * MILLISECOND,
            burst: 1,
            jitter_ns: 0,
            sample_len: 1300,
            limit_ns,
            reliability: None,
            importance: 0,
        },
        format: WireFormat::default(),
    }
}

pub fn reliable(mut request: Request) -> Request {
    request.contract.reliability =
        Some(Reliability { heartbeat_period_ns: 100 * MILLISECOND, response_delay_ns: MILLISECOND });
    request
}
