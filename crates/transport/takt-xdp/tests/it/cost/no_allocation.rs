//! Tests that sending and receiving by AF_XDP never allocate.

use takt_testkit::memory::allocations;
use takt_transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::datagrams::pair_of;
use crate::network::Network;

#[test]
fn sending_and_receiving_allocate_nothing() {
    for mode in [Mode::Native, Mode::Generic] {
        count(mode, 1500, 100);
        // In three parts.
        count(mode, 9000, 8000);
    }
}

/// Counts allocations in this mode, at this MTU, for datagrams of `len` octets.
fn count(mode: Mode, mtu: usize, len: usize) {
    let Some(network) = Network::of_mtu(mtu) else { return };
    let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
    let [mut a, mut b] = pair_of(&network, || XdpTransport::open(&config));
    let locators = b.status().locators.clone();
    let to = [locators.default_unicast, locators.metatraffic_unicast, locators.metatraffic_multicast].concat();
    let mut received = 0;
    let count = allocations(|| {
        for round in 0..100 {
            for _ in 0..round % 70 {
                let frame = a.loan().expect("a frame is loaned");
                frame[..len].fill(1);
                frame[..4].copy_from_slice(b"RTPS");
                a.commit(Commit::new(len, FlowId::DEFAULT, &to)).expect("the frame is accepted");
            }
            a.flush().expect("flush succeeds");
            for scan in [Scan::Hot, Scan::All] {
                while b.recv(Receive::Any(scan)).expect("receive succeeds").is_some() {
                    received += 1;
                }
            }
            while a.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
        }
    });
    assert_eq!(count, 0);
    let counters = b.counters();
    assert!(received > 5_000 && counters.datagrams_in > 5_000, "{received}: {counters:?}");
    // Of two destinations by AF_XDP, one gets the frame itself.
    assert_eq!(a.counters().in_place_out * 2, a.counters().datagrams_out);
}
