//! Scripted input of the discovery interceptor: frames from two hosts, verdicts and time.

use std::net::SocketAddr;

use takt_openflow::channel::Instant;
use takt_packet::MacAddress;
use takt_sdn::PortRef;
use takt_sdn::discovery::{Config, Decision, Interceptor, Limits, RefusalForm};
use takt_sdn::frame::UdpFrame;

/// Maximum number of steps of a script; further ones are ignored.
const STEPS_MAX: usize = 64;

/// Runs a script. Each step begins with an octet: its lowest bit selects the host, the next two the
/// kind of step, the highest the form of the octets (a message, for which a frame is built, or a
/// frame). A 16-bit little-endian length and the octets follow. Asserts that nothing panics, that
/// forwarded frames respect the maximum IP length, and that queued frames respect the limits.
pub fn run(script: &[u8]) {
    let limits = Limits { events: 64, frames: 64, ..Limits::default() };
    let refusal = if script.len().is_multiple_of(2) { RefusalForm::Incompatible } else { RefusalForm::Withheld };
    let mut interceptor = Interceptor::new(Config { limits, refusal, ..Config::default() });
    let mut rest = script;
    let mut now = 0_u64;
    for _ in 0..STEPS_MAX {
        let Some(([head, low, high], after)) = rest.split_first_chunk::<3>().map(|(head, after)| (*head, after)) else {
            break;
        };
        let len = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (octets, after) = after.split_at(len);
        rest = after;
        now += 50_000_000;
        step(&mut interceptor, Instant(now), head, octets);
        assert!(std::iter::from_fn(|| interceptor.poll_event()).count() <= 64);
        assert!(std::iter::from_fn(|| interceptor.poll_frame()).count() <= 64);
    }
    while let Some(at) = interceptor.poll_timeout().filter(|at| at.0 < now + 3_000_000_000) {
        interceptor.handle_timeout(at);
        while interceptor.poll_frame().is_some() {}
        assert!(interceptor.poll_timeout().is_none_or(|next| next > at), "time goes on");
    }
}

fn step(interceptor: &mut Interceptor, now: Instant, head: u8, octets: &[u8]) {
    let host = head & 1;
    let pair = interceptor.pairs().nth(octets.len() % 4);
    match (head >> 1 & 3, pair) {
        (1, Some(pair)) => _ = interceptor.release(now, pair),
        (2, Some(pair)) => _ = interceptor.refuse(now, pair, &String::from_utf8_lossy(octets)),
        (3, _) => interceptor.handle_timeout(Instant(now.0 + 1_000_000 * octets.len() as u64)),
        _ => {
            let port = PortRef::new(1, u32::from(host));
            let decision = if head & 0x80 == 0 {
                interceptor.handle(now, port, &frame(host, head & 0x40 != 0, octets))
            } else {
                interceptor.handle(now, port, octets)
            };
            if let Decision::Replace(frames) = decision {
                assert!(frames.iter().all(|frame| frame.len() <= 65_600));
            }
        }
    }
}

/// Builds a frame from a host to the group or the other host, with the addresses that the
/// `takt-core` engines in the tests use.
fn frame(host: u8, to_group: bool, payload: &[u8]) -> Vec<u8> {
    let address = |host: u8| SocketAddr::from(([10, 0, 0, host + 1], 7411));
    let destination = if to_group { SocketAddr::from(([239, 255, 0, 1], 7400)) } else { address(host ^ 1) };
    let payload = &payload[..payload.len().min(60_000)];
    let frame = UdpFrame {
        destination_mac: MacAddress([2, 0, 0, 0, 0, 9]),
        source_mac: MacAddress([2, 0, 0, 0, 0, host + 1]),
        tags: &[],
        source: address(host),
        destination,
        hop_limit: 64,
        traffic_class: 0,
        payload,
    };
    frame.build().expect("the payload fits")
}
