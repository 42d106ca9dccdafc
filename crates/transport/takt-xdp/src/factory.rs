//! Transport factories for configurations: `xdp:eth0` and `xdp-ethernet:eth0`.

use takt_transport::TransportError;
use takt_transport::choice::probe::Finding;
use takt_transport::choice::{Description, Opened, Request, TransportFactory, TransportOption};
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, FramePort};

use crate::config::{Mode, Queues, XdpConfig};
use crate::ethernet::{XdpPort, XdpPortConfig};
use crate::probe;
use crate::transport::XdpTransport;

/// Registers `xdp:IFACE` and `xdp-ethernet:IFACE` for the participants of this process, so that
/// configurations can request them.
pub fn register() {
    takt_transport::choice::register(Xdp);
    takt_transport::choice::register(XdpEthernet);
}

/// Options of a request:
/// - `queues`: a number of free queues, or `all`; `queue`: the number of one queue;
/// - `mode`: `native` or `generic`;
/// - `vlan`: the VLAN ID of frames by AF_XDP.
#[derive(Default)]
struct Options {
    queues: Option<Queues>,
    mode: Option<Mode>,
    vlan: Option<u16>,
}

impl Options {
    fn of(request: &Request<'_>) -> Result<Self, TransportError> {
        let mut options = Self::default();
        for TransportOption { key, value } in request.options(&["queues", "queue", "mode", "vlan"])? {
            let number = || {
                let parsed = value.parse::<u16>();
                parsed.map_err(|_| request.error(&format!("{key} {value:?}: expected a number from 0 to 65,535")))
            };
            match (key.as_str(), value.as_str()) {
                ("queues", "all") => options.queues = Some(Queues::All),
                ("queues", _) => options.queues = Some(Queues::Free(number()?.into())),
                ("queue", _) => options.queues = Some(Queues::These(vec![number()?.into()])),
                ("vlan", _) => options.vlan = Some(number()?),
                ("mode", "native") => options.mode = Some(Mode::Native),
                ("mode", "generic") => options.mode = Some(Mode::Generic),
                _ => return Err(request.error(&format!("mode {value:?}: expected native or generic"))),
            }
        }
        Ok(options)
    }
}

/// Factory of the UDP transport.
struct Xdp;

impl TransportFactory for Xdp {
    fn description(&self) -> Description {
        Description {
            name: "xdp",
            summary: "UDP that bypasses the kernel's network stack with AF_XDP",
            needs: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF to open; AF_XDP; an Ethernet interface with an address",
            form: "xdp:IFACE[/queues=COUNT|all][/queue=N][/mode=native|generic][/vlan=ID]",
        }
    }

    fn probe(&self, interface: &str) -> Vec<Finding> {
        probe::findings(interface)
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        let interface = request.target()?;
        let mut config = XdpConfig { udp: request.udp_config(), ..XdpConfig::new(request.udp.domain_id, interface) };
        let Options { queues, mode, vlan } = Options::of(request)?;
        config.queues = queues.unwrap_or(config.queues);
        (config.mode, config.vlan) = (mode, vlan);
        let xdp = XdpTransport::open(&config)?;
        let detail = xdp.report().to_string();
        Ok(Opened { transport: Box::new(xdp), detail })
    }
}

/// Factory of the layer-2 transport.
struct XdpEthernet;

impl TransportFactory for XdpEthernet {
    fn description(&self) -> Description {
        Description {
            name: "xdp-ethernet",
            summary: "RTPS on Ethernet without IP, over AF_XDP",
            needs: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF; AF_XDP; an Ethernet interface",
            form: "xdp-ethernet:IFACE[/queues=COUNT|all][/queue=N][/mode=native|generic][/vlan=ID]",
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        let mut config = XdpPortConfig::new(request.target()?);
        let Options { queues, mode, vlan } = Options::of(request)?;
        config.queues = queues.unwrap_or(config.queues);
        (config.mode, config.packet.vlan) = (mode, vlan);
        let port = XdpPort::open(&config)?;
        let detail = format!("{}: {}, messages of up to {}", config.packet.interface, port.mode(), port.mtu() - 8);
        let ethernet = EthernetTransport::open(port, &EthernetConfig::from_udp(request.udp))?;
        Ok(Opened { transport: Box::new(ethernet), detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_transport::shm::ShmConfig;
    use takt_transport::tcp::TcpConfig;
    use takt_transport::udp::UdpConfig;

    fn refusal(text: &str) -> String {
        let spec: takt_transport::choice::TransportSpec = text.parse().expect("well-formed");
        let (udp, tcp, shm) = (UdpConfig::new(0), TcpConfig::default(), ShmConfig::default());
        let request = Request { spec: &spec, udp: &udp, tcp: &tcp, shm: &shm };
        let factory: &dyn TransportFactory = if spec.name == "xdp" { &Xdp } else { &XdpEthernet };
        factory.open(&request).map(drop).expect_err("the transport is refused").to_string()
    }

    #[test]
    fn invalid_option_is_reported_with_its_reason() {
        assert_eq!(refusal("xdp"), "open xdp: an interface is missing: xdp:eth0");
        assert_eq!(refusal("xdp:x/queue=a"), "open xdp:x/queue=a: queue \"a\": expected a number from 0 to 65,535");
        assert_eq!(refusal("xdp:x/mode=fast"), "open xdp:x/mode=fast: mode \"fast\": expected native or generic");
        assert_eq!(
            refusal("xdp:x/speed=1"),
            "open xdp:x/speed=1: unknown option speed; expected one of queues, queue, mode, vlan"
        );
        assert!(refusal("xdp:nowhere0").contains("nowhere0"));
        assert!(refusal("xdp-ethernet:nowhere0").contains("nowhere0"));
        assert!(refusal("xdp-ethernet:x/vlan=4095").contains("VLAN 4095"));
    }
}
