//! Benchmark of the codec: times to encode and decode a FLOW_MOD, and to copy the same octets, in
//! nanoseconds. Run with `cargo bench -p takt-openflow`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use takt_openflow::action::Action;
use takt_openflow::flow::FlowMod;
use takt_openflow::instruction::Instruction;
use takt_openflow::oxm::{Masked, Oxm};
use takt_openflow::value::PortNo;
use takt_openflow::{Message, Version};

const ROUNDS: u32 = 200_000;
/// Number of measurements, of which the median is printed.
const REPEATS: usize = 15;

/// Returns a flow as a controller for network QoS writes it: addresses, UDP port, DSCP, queue,
/// port.
fn flow() -> Message {
    let host = |last| Masked::exact(Ipv4Addr::new(10, 0, 0, last));
    let matching = vec![
        Oxm::InPort(PortNo(3)),
        Oxm::EthType(0x0800),
        Oxm::IpProto(17),
        Oxm::Ipv4Src(host(1)),
        Oxm::Ipv4Dst(host(2)),
        Oxm::UdpDst(7411),
    ];
    let actions = vec![Action::SetField(Oxm::IpDscp(46)), Action::SetQueue(1), Action::output(PortNo(2))];
    Message::FlowMod(FlowMod {
        cookie: 0x1234,
        priority: 200,
        matching: matching.into(),
        instructions: vec![Instruction::Meter(7), Instruction::ApplyActions(actions)],
        ..FlowMod::default()
    })
}

/// Returns the median time of one call, in nanoseconds.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let mut measured: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .collect();
    measured.sort_by(f64::total_cmp);
    measured[REPEATS / 2]
}

fn main() {
    let message = flow();
    let octets = message.encode(Version::V1_3, 1).expect("1.3 has all of it");
    let mut out = Vec::with_capacity(4096);
    let copy = nanoseconds(|| {
        out.clear();
        out.extend_from_slice(black_box(&octets));
        black_box(&out);
    });
    let encode = nanoseconds(|| {
        out.clear();
        black_box(&message).encode_into(Version::V1_3, 1, &mut out).expect("1.3 has all of it");
        black_box(&out);
    });
    let decode = nanoseconds(|| {
        black_box(Message::decode(Version::V1_3, black_box(&octets)).expect("the message is well formed"));
    });
    println!("FLOW_MOD of {} octets: copy {copy:.0} ns, encode {encode:.0} ns, decode {decode:.0} ns", octets.len());
}
