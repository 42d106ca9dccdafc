//! Conformance of the layer-2 transport over AF_XDP in both modes, and its interoperation with
//! AF_PACKET.

use std::sync::atomic::{AtomicUsize, Ordering};

use takt_testkit::memory::allocations;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, FramePort, PacketConfig, PacketPort};
use takt_transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_xdp::{Mode, XdpPort, XdpPortConfig};

use crate::datagrams::{receive, send, user};
use crate::network::Host;
use crate::test_networks::TestNetwork;

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

type Xdp = EthernetTransport<XdpPort>;
type Packet = EthernetTransport<PacketPort>;

/// Maximum number of hosts of a test; each has one queue.
const HOSTS: usize = 8;

fn open(host: &Host, mode: Mode, vlan: Option<u16>) -> Xdp {
    let packet = PacketConfig { vlan, ..PacketConfig::new("eth0") };
    let config = XdpPortConfig { packet, mode: Some(mode), ..XdpPortConfig::new("eth0") };
    let opened = host.run(|| EthernetTransport::open(XdpPort::open(&config)?, &EthernetConfig::new(0)));
    opened.expect("AF_XDP can be opened")
}

pub fn by_packet(host: &Host, vlan: Option<u16>) -> Packet {
    let config = PacketConfig { vlan, ..PacketConfig::new("eth0") };
    host.run(|| EthernetTransport::open(PacketPort::open(&config)?, &EthernetConfig::new(0))).expect("root may")
}

/// Opens each transport of a test on the next host.
fn in_mode(mode: Mode, mtu: usize, test: impl FnOnce(&dyn Fn() -> Xdp)) {
    let Some(network) = TestNetwork::of_mtu(mtu) else { return };
    let first = open(&network.host(0), mode, None);
    assert_eq!((first.port().mode(), first.capabilities().max_message_len), (mode, mtu - 8));
    drop(first);
    let opened = AtomicUsize::new(0);
    test(&|| {
        let nth = opened.fetch_add(1, Ordering::Relaxed);
        open(&network.host(nth % HOSTS), mode, None)
    });
}

macro_rules! conforms {
    ($module:ident, $mode:expr, $mtu:expr, $($name:ident)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    in_mode($mode, $mtu, |open| takt_transport::conformance::$name(open));
                }
            )*
        }
    };
    ([] $($realm:literal $name:ident,)*) => {
        conforms!(native, Mode::Native, 1500, $($name)*);
        conforms!(generic, Mode::Generic, 1500, $($name)*);
        // Large messages take three frames each.
        conforms!(native_large, Mode::Native, 9000, $($name)*);
        conforms!(generic_large, Mode::Generic, 9000, $($name)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);

#[test]
fn both_backends_interoperate() {
    let Some(network) = TestNetwork::of_mtu(1500) else { return };
    let hosts = [network.host(0), network.host(1)];
    for (mode, vlan) in [(MODES[0], None), (MODES[1], None), (MODES[0], Some(42)), (MODES[1], Some(42))] {
        let mut xdp = open(&hosts[0], mode, vlan);
        let (mut there, mut here) = (by_packet(&hosts[1], vlan), by_packet(&hosts[0], vlan));
        let (at_xdp, at_there, at_here) = (user(&xdp), user(&there), user(&here));
        for len in [1, 30, 31, 38, 39, 1000, 1492] {
            let message = vec![len as u8; len];
            send(&mut xdp, &message, at_there);
            assert_eq!(receive(&mut there), message, "{len} octets, {mode:?}, {vlan:?}");
            send(&mut there, &message, at_xdp);
            assert_eq!(receive(&mut xdp), message);
            // On one host.
            send(&mut xdp, &message, at_here);
            assert_eq!(receive(&mut here), message);
            send(&mut here, &message, at_xdp);
            assert_eq!(receive(&mut xdp), message);
        }
        let group = xdp.status().locators.metatraffic_multicast[0];
        for n in 0..3 {
            match n {
                0 => send(&mut xdp, &[n; 9], group),
                1 => send(&mut there, &[n; 9], group),
                _ => send(&mut here, &[n; 9], group),
            }
            let received = [receive(&mut xdp), receive(&mut there), receive(&mut here)];
            assert!(received.iter().all(|received| *received == [n; 9]));
        }
        assert_eq!(xdp.port().stats().in_place_out, 7, "frames sent by AF_XDP are written in place");
        // A bridge strips tags, and the filter does not find them in the frame.
        if vlan.is_none() {
            assert_eq!(xdp.port().received_by_xdp(), 7, "datagrams of the other host arrive by AF_XDP, {mode:?}");
        }
        assert_eq!((xdp.status().stats.send_errors.total(), xdp.counters().malformed), (0, 0));
    }
}

#[test]
fn large_frames_go_by_af_xdp_in_several_parts() {
    let Some(network) = TestNetwork::of_mtu(9000) else { return };
    let hosts = [network.host(0), network.host(1)];
    for mode in MODES {
        let mut xdp = open(&hosts[0], mode, None);
        let mut there = by_packet(&hosts[1], None);
        let at = |transport: &dyn Transport| transport.status().locators.default_unicast[0];
        let (at_xdp, at_there) = (at(&xdp), at(&there));
        // Around the bounds of frames, for receiving and sending, and the maximum.
        let sizes = [1, 3818, 3819, 4032, 4033, 7658, 7659, 8128, 8129, 8991, 8992];
        for (n, len) in sizes.into_iter().enumerate() {
            let message: Vec<u8> = (0..len).map(|at| (at * 7 + n) as u8).collect();
            send(&mut xdp, &message, at_there);
            assert_eq!(receive(&mut there), message, "{len} octets, {mode:?}");
            send(&mut there, &message, at_xdp);
            assert_eq!(receive(&mut xdp), message, "{len} octets, {mode:?}");
        }
        let count = sizes.len() as u64;
        assert_eq!((xdp.port().stats().in_place_out, xdp.port().received_by_xdp()), (count, count), "{mode:?}");
        assert_eq!(
            (xdp.status().stats.send_errors.total(), xdp.counters().malformed, xdp.status().stats.kernel_drops),
            (0, 0, 0)
        );
    }
}

#[test]
fn sending_and_receiving_do_not_allocate() {
    let Some(network) = TestNetwork::of_mtu(1500) else { return };
    let hosts = [network.host(0), network.host(1)];
    for mode in MODES {
        let (mut a, mut b) = (open(&hosts[0], mode, None), open(&hosts[1], mode, None));
        let locators = b.status().locators.clone();
        let to = [locators.default_unicast, locators.metatraffic_unicast, locators.metatraffic_multicast].concat();
        let mut received = 0;
        let count = allocations(|| {
            for round in 0..100 {
                for _ in 0..round % 70 {
                    a.loan().expect("a frame is loaned")[..100].fill(1);
                    a.commit(Commit::new(100, FlowId::DEFAULT, &to)).expect("the frame is accepted");
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
        assert!(received > 5_000 && b.port().received_by_xdp() > 5_000, "{received}");
    }
}
