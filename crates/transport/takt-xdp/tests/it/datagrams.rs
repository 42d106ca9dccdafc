//! Helpers that send and receive datagrams.

use std::time::Duration;

use takt_transport::{Commit, FlowId, Receive, Scan, Transport, TransportError, readiness};
use takt_wire::Locator;

use super::network::Network;

/// Time limit for expected events.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Opens two transports, on hosts that know each other's hardware addresses.
pub fn pair_of<T: Send>(network: &Network, open: impl Fn() -> Result<T, TransportError> + Sync) -> [T; 2] {
    [(); 2].map(|()| network.host(true).run(&open).expect("AF_XDP can be opened"))
}

pub fn user(transport: &impl Transport) -> Locator {
    transport.status().locators.default_unicast[0]
}

/// Makes a message of this length that begins like RTPS and varies with `n`.
pub fn message(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| if at < 4 { b"RTPS"[at] } else { (at * 7 + n) as u8 }).collect()
}

pub fn commit(transport: &mut impl Transport, bytes: &[u8], to: Locator) {
    transport.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    transport.commit(Commit::new(bytes.len(), FlowId::DEFAULT, &[to])).expect("the frame is accepted");
}

pub fn send(transport: &mut impl Transport, bytes: &[u8], to: Locator) {
    commit(transport, bytes, to);
    transport.flush().expect("flush succeeds");
}

/// Waits for the next datagram.
pub fn receive(transport: &mut impl Transport) -> Vec<u8> {
    loop {
        if let Some(frame) = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
            return frame.to_vec();
        }
        assert!(
            readiness::wait(transport.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"),
            "nothing arrives"
        );
    }
}
