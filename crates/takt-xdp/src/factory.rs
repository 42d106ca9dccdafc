//! The transport by its name, for those who configure it: `xdp:eth0`.

use takt_transport::TransportError;
use takt_transport::choice::{Opened, Request, TransportFactory};

use crate::config::{Mode, Queues, XdpConfig};
use crate::transport::XdpTransport;

/// Makes `xdp:IFACE` known to the participants of this process: a configuration can ask for it then.
pub fn register() {
    takt_transport::choice::register(Xdp);
}

/// The UDP form. Options:
/// - `queues`: how many of those that are free, or `all`; `queue`: this one;
/// - `mode`: `native` or `generic`;
/// - `vlan`: the VLAN of what goes by AF_XDP.
struct Xdp;

impl TransportFactory for Xdp {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn summary(&self) -> &'static str {
        "UDP on the wire, past the kernel's network stack by AF_XDP"
    }

    fn needs(&self) -> &'static str {
        "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF to open; AF_XDP; an Ethernet interface with an address"
    }

    fn form(&self) -> &'static str {
        "xdp:IFACE[/queues=COUNT|all][/queue=N][/mode=native|generic][/vlan=ID]"
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        let interface = request.target()?;
        let mut config = XdpConfig { udp: request.udp_there(), ..XdpConfig::new(request.udp.domain_id, interface) };
        for (key, value) in request.options(&["queues", "queue", "mode", "vlan"])? {
            let number = || {
                let parsed = value.parse::<u16>();
                parsed.map_err(|_| request.refused(&format!("{key} {value:?} is no number from 0 to 65,535")))
            };
            match (key.as_str(), value.as_str()) {
                ("queues", "all") => config.queues = Queues::All,
                ("queues", _) => config.queues = Queues::Free(number()?.into()),
                ("queue", _) => config.queues = Queues::These(vec![number()?.into()]),
                ("vlan", _) => config.vlan = Some(number()?),
                ("mode", "native") => config.mode = Some(Mode::Native),
                ("mode", "generic") => config.mode = Some(Mode::Generic),
                _ => return Err(request.refused(&format!("mode {value:?} is neither native nor generic"))),
            }
        }
        let xdp = XdpTransport::open(&config)?;
        let detail = xdp.report().to_string();
        Ok(Opened { transport: Box::new(xdp), detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_transport::shm::ShmConfig;
    use takt_transport::tcp::TcpConfig;
    use takt_transport::udp::UdpConfig;

    fn refusal(text: &str) -> String {
        let spec = text.parse().expect("well-formed");
        let (udp, tcp, shm) = (UdpConfig::new(0), TcpConfig::default(), ShmConfig::default());
        let request = Request { spec: &spec, udp: &udp, tcp: &tcp, shm: &shm };
        Xdp.open(&request).map(drop).expect_err("it cannot be opened").to_string()
    }

    #[test]
    fn what_is_wrong_with_an_option_is_said() {
        assert_eq!(refusal("xdp"), "open xdp: an interface is missing: xdp:eth0");
        assert_eq!(refusal("xdp:x/queue=a"), "open xdp:x/queue=a: queue \"a\" is no number from 0 to 65,535");
        assert_eq!(refusal("xdp:x/mode=fast"), "open xdp:x/mode=fast: mode \"fast\" is neither native nor generic");
        assert_eq!(
            refusal("xdp:x/speed=1"),
            "open xdp:x/speed=1: it has no option speed, but queues, queue, mode, vlan"
        );
        assert!(refusal("xdp:nowhere0").contains("nowhere0"));
    }
}
