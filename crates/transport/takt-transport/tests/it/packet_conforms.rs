//! Conformance of RTPS on Ethernet over AF_PACKET: between hosts at a bridge, with a VLAN, and
//! within one host.
//!
//! Requires root. All tests share the hosts; each has its own domain.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use takt_testkit::{not_run, require};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};

use super::network::{Host, Network};

pub(super) type Packet = EthernetTransport<PacketPort>;

pub(super) fn open_on(host: &Host, config: &PacketConfig, domain_id: u32) -> Packet {
    host.run(|| {
        let port = PacketPort::open(config).expect("root may open sockets of AF_PACKET");
        EthernetTransport::open(port, &EthernetConfig::new(domain_id)).expect("an index is free")
    })
}

/// Returns four hosts. If they cannot be made, each test reports that it cannot run.
fn hosts() -> Option<&'static [Host]> {
    static HOSTS: OnceLock<(Network, Vec<Host>)> = OnceLock::new();
    require::network_namespaces().map_err(not_run).ok()?;
    let (_, hosts) = HOSTS.get_or_init(|| {
        let network = Network::new().expect("namespaces can be made");
        let hosts = (0..4).map(|_| network.host(true)).collect();
        (network, hosts)
    });
    Some(hosts)
}

/// Opens each transport on the next host, or all on one.
fn among(domain_id: u32, vlan: Option<u16>, is_one_host: bool, test: impl FnOnce(&dyn Fn() -> Packet)) {
    let Some(hosts) = hosts() else { return };
    let config = PacketConfig { vlan, ..PacketConfig::new("eth0") };
    let opened = AtomicUsize::new(0);
    test(&|| {
        let nth = opened.fetch_add(1, Ordering::Relaxed);
        let host = if is_one_host { &hosts[0] } else { &hosts[nth % hosts.len()] };
        let transport = open_on(host, &config, domain_id);
        assert_eq!((transport.capabilities().name, transport.capabilities().max_message_len), ("packet", 1492));
        transport
    });
}

macro_rules! conforms {
    ($module:ident, $first:literal, $vlan:expr, $is_one_host:expr, $($realm:literal $name:ident,)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    let domain_id = $first + $realm;
                    among(domain_id, $vlan, $is_one_host, |open| takt_transport::conformance::$name(open));
                }
            )*
        }
    };
    ([] $($realm:literal $name:ident,)*) => {
        conforms!(between_hosts, 0, None, false, $($realm $name,)*);
        conforms!(on_one_host, 20, None, true, $($realm $name,)*);
        conforms!(between_hosts_with_a_vlan, 40, Some(42), false, $($realm $name,)*);
        conforms!(on_one_host_with_a_vlan, 60, Some(42), true, $($realm $name,)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);
