//! Conformance of both wire formats over DPDK's virtual devices. Devices at the kernel's bridge
//! require root; `net_af_xdp` and `net_tap` are tested only with `TAKT_TEST_LONG`.

use std::net::Ipv4Addr;

use takt_dpdk::{DpdkPort, UdpStack, UdpStackConfig};
use takt_transport::ethernet::{EthernetConfig, EthernetTransport};

use super::devices::{Bench, Device, mac, with_bench};

/// Opens UDP at the next port of the bench; the ports know each other's hardware addresses.
fn udp(bench: &Bench) -> UdpStack<DpdkPort> {
    let (n, port) = bench.port();
    let address = |n| Ipv4Addr::new(10, 78, 0, n);
    let config = UdpStackConfig {
        neighbors: (1..12).map(|n| (address(n), mac(n))).collect(),
        ..UdpStackConfig::new(0, address(n), 24)
    };
    UdpStack::new(&config, port).expect("the address is valid")
}

/// Opens RTPS directly on Ethernet at the next port of the bench.
fn l2(bench: &Bench) -> EthernetTransport<DpdkPort> {
    EthernetTransport::open(bench.port().1, &EthernetConfig::new(0)).expect("the port is not in use")
}

macro_rules! conforms {
    ($module:ident, $device:expr, $open:expr, $($name:ident)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    with_bench($device, |bench| takt_transport::conformance::$name(|| $open(bench)));
                }
            )*
        }
    };
    ([] $($realm:literal $name:ident,)*) => {
        conforms!(udp_ring, Device::Ring, udp, $($name)*);
        conforms!(l2_ring, Device::Ring, l2, $($name)*);
        conforms!(udp_memif, Device::Memif, udp, $($name)*);
        conforms!(l2_memif, Device::Memif, l2, $($name)*);
        conforms!(udp_packet, Device::Packet, udp, $($name)*);
        conforms!(l2_packet, Device::Packet, l2, $($name)*);
        conforms!(udp_xdp, Device::Xdp, udp, $($name)*);
        conforms!(l2_xdp, Device::Xdp, l2, $($name)*);
        conforms!(udp_tap, Device::Tap, udp, $($name)*);
        conforms!(l2_tap, Device::Tap, l2, $($name)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);
