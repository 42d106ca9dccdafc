//! Conformance of AF_XDP in both modes: every transport on its own host, all at one bridge.
//!
//! The hosts know each other's hardware addresses from the start, so that AF_XDP carries every
//! unicast datagram and order is kept; another test covers address resolution. The datagrams are no
//! RTPS, so the filter accepts all datagrams to the ports.

use std::sync::atomic::{AtomicUsize, Ordering};

use takt_transport::Transport;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::checked::checked;
use crate::test_networks::TestNetwork;
use crate::transport_on_host::TransportOnHost;

fn config(domain_id: u32, mode: Mode) -> XdpConfig {
    XdpConfig { mode: Some(mode), rtps_only: false, ..XdpConfig::new(domain_id, "eth0") }
}

/// Runs a test of the suite with transports in this mode.
fn in_mode(mode: Mode, mtu: usize, test: impl FnOnce(&dyn Fn() -> TransportOnHost<XdpTransport>)) {
    let Some(network) = TestNetwork::of_mtu(mtu) else { return };
    let opened = AtomicUsize::new(0);
    let open = || {
        let host = network.host(opened.fetch_add(1, Ordering::Relaxed));
        let xdp = host.run(|| XdpTransport::open(&config(0, mode)));
        xdp.map(|xdp| checked(xdp, host, None))
    };
    let transport = open().expect("AF_XDP can be opened");
    assert_eq!((transport.report().mode, transport.capabilities().max_message_len), (mode, mtu - 28));
    test(&|| open().expect("a transport could be opened before"));
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
        // Large datagrams take three frames each.
        conforms!(native_large, Mode::Native, 9000, $($name)*);
        conforms!(generic_large, Mode::Generic, 9000, $($name)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);
