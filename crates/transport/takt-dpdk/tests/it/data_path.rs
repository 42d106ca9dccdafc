//! Tests of the cost of one datagram between the caller of the transport and the device, in each
//! direction and both wire formats: copies, system calls, allocations. The results are the table of
//! `docs/design/data-path.md`. The devices are rings in memory; other devices add their own cost.

use std::net::Ipv4Addr;

use takt_dpdk::{DpdkConfig, DpdkPort, UdpStack, UdpStackConfig};
use takt_testkit::memory::allocations;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, FramePort};
use takt_transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_wire::Locator;

use super::counting_calls::with_counted_calls;
use super::devices::{config, lock_devices, mac, unique_name};

/// Number of datagrams that are sent and received one by one.
const COUNT: usize = 100;
/// Length of a datagram in octets.
const LEN: usize = 1000;

fn pair() -> [DpdkPort; 2] {
    let [one, other] = [1, 2].map(|n| DpdkConfig { mac: Some(mac(n)), ..config(&unique_name("ring")) });
    DpdkPort::ring_pair(&one, &other).expect("rings")
}

/// Sends and receives datagrams; asserts that there are no system calls and allocations.
fn exchange(here: &mut impl Transport, there: &mut impl Transport) {
    let to: Locator = there.status().locators.default_unicast[0];
    let (mut received, mut count) = (0, 0);
    let system_calls = with_counted_calls(|calls| {
        calls.during(|| {
            count = allocations(|| {
                for n in 0..COUNT {
                    here.loan().expect("a frame is loaned")[..LEN].fill(n as u8);
                    here.commit(Commit::new(LEN, FlowId::DEFAULT, &[to])).expect("the frame is accepted");
                    here.flush().expect("flush succeeds");
                    while let Some(frame) = there.recv(Receive::Any(Scan::Hot)).expect("receive succeeds") {
                        assert_eq!(frame.bytes(), [received as u8; LEN]);
                        received += 1;
                    }
                }
            });
        })
    });
    let Some(system_calls) = system_calls else { return };
    assert_eq!((received, count, system_calls), (COUNT, 0, vec![]));
}

/// Asserts that no frame was copied at either end; `others` is the number of frames that are no
/// datagrams.
fn assert_no_copies(here: &DpdkPort, there: &DpdkPort, others: u64) {
    let (counters, all) = (there.counters(), COUNT as u64 + others);
    assert_eq!((here.stats().in_place_out, counters.frames_in, counters.gathered_in), (all, all, 0));
}

#[test]
fn udp_datagram_is_not_copied_and_takes_no_system_call() {
    let _guard = lock_devices();
    let mut n = 0;
    let [mut here, mut there] = pair().map(|port| {
        n += 1;
        let address = |n| Ipv4Addr::new(10, 78, 0, n);
        let neighbors = [1, 2].map(|n| (address(n), mac(n))).to_vec();
        let config = UdpStackConfig { neighbors, multicast: false, ..UdpStackConfig::new(0, address(n), 24) };
        UdpStack::new(&config, port).expect("the address is valid")
    });
    exchange(&mut here, &mut there);
    // The announcement of the address.
    assert_no_copies(here.port(), there.port(), 1);
}

#[test]
fn layer_2_frame_is_not_copied_and_takes_no_system_call() {
    let _guard = lock_devices();
    let [mut here, mut there] =
        pair().map(|port| EthernetTransport::open(port, &EthernetConfig::new(0)).expect("the port is not in use"));
    exchange(&mut here, &mut there);
    assert_no_copies(here.port(), there.port(), 0);
}
