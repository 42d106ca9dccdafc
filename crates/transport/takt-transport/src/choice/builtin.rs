//! Factories of the transports of this crate.

use std::sync::Arc;

use super::factory::{Description, Opened, Request, TransportFactory};
use super::probe::{Finding, Needs, capabilities_finding, interface_finding};
use super::spec::TransportOption;
use crate::TransportError;
use crate::daemon::DaemonTransport;
use crate::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};
use crate::shm::ShmTransport;
use crate::tcp::{TcpConfig, TcpTransport};
use crate::udp::UdpTransport;

/// Returns the factories of all built-in transports.
pub(super) fn all() -> Vec<Arc<dyn TransportFactory>> {
    vec![Arc::new(Udp), Arc::new(Tcp), Arc::new(Shm), Arc::new(Daemon), Arc::new(Packet)]
}

struct Udp;

impl TransportFactory for Udp {
    fn description(&self) -> Description {
        Description {
            name: "udp",
            summary: "UDP over kernel sockets, interoperable with every DDS",
            needs: "nothing",
            form: "udp or udp:IFACE",
        }
    }

    fn probe(&self, interface: &str) -> Vec<Finding> {
        vec![interface_finding(interface, Needs { ethernet: false, ipv4: true }).0]
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        UdpTransport::open(&request.udp_config()).map(Opened::plain)
    }
}

struct Tcp;

impl TransportFactory for Tcp {
    fn description(&self) -> Description {
        Description {
            name: "tcp",
            summary: "TCP to configured peers, with or without TLS",
            needs: "a peer tcp/HOST:PORT, or an address to listen on",
            form: "tcp or tcp:IFACE",
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        let config = TcpConfig { interfaces: request.udp_config().interfaces, ..request.tcp.clone() };
        TcpTransport::open(&config).map(Opened::plain)
    }
}

struct Shm;

impl TransportFactory for Shm {
    fn description(&self) -> Description {
        Description {
            name: "shm",
            summary: "shared memory between processes of one user on one host",
            needs: "Linux 5.14, Unix sockets and memfd_create",
            form: "shm, combined with another transport",
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        if let Some(target) = &request.spec.target {
            return Err(request.error(&format!("found interface {target}; shared memory has none")));
        }
        ShmTransport::open(request.shm).map(Opened::plain)
    }
}

/// Factory of the transport that connects to the daemon of the host.
struct Daemon;

impl TransportFactory for Daemon {
    fn description(&self) -> Description {
        Description {
            name: "daemon",
            summary: "the daemon of this host, which sends and receives for its applications",
            needs: "a running `takt daemon run` of the same user; Linux 5.14",
            form: "daemon or daemon:NAME",
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        let (name, domain) = (request.spec.target.as_deref(), request.udp.domain_id);
        DaemonTransport::open(name, domain, request.udp.multicast).map(Opened::plain)
    }
}

/// Factory of RTPS on Ethernet without IP. Options:
/// - `vlan`: the VLAN ID, or 0 for a priority tag;
/// - `qdisc`: `bypass`.
struct Packet;

impl TransportFactory for Packet {
    fn description(&self) -> Description {
        Description {
            name: "packet",
            summary: "RTPS on Ethernet without IP, over AF_PACKET",
            needs: "CAP_NET_RAW; an Ethernet interface",
            form: "packet:IFACE[/vlan=ID][/qdisc=bypass]",
        }
    }

    fn probe(&self, interface: &str) -> Vec<Finding> {
        let needs = Needs { ethernet: true, ipv4: false };
        vec![capabilities_finding(&["CAP_NET_RAW"]), interface_finding(interface, needs).0]
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        let mut config = PacketConfig::new(request.target()?);
        for TransportOption { key, value } in request.options(&["vlan", "qdisc"])? {
            match (key.as_str(), value.as_str()) {
                ("qdisc", "bypass") => config.bypass_qdisc = true,
                ("vlan", _) => {
                    let vlan = value.parse();
                    let wrong = |_| request.error(&format!("vlan {value:?}: expected a number from 0 to 4,094"));
                    config.vlan = Some(vlan.map_err(wrong)?);
                }
                _ => return Err(request.error(&format!("qdisc {value:?}: expected bypass"))),
            }
        }
        let port = PacketPort::open(&config)?;
        EthernetTransport::open(port, &EthernetConfig::from_udp(request.udp)).map(Opened::plain)
    }
}
