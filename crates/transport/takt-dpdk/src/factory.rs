//! Transport factories for configurations: `dpdk:DEVICE` and `dpdk-ethernet:DEVICE`.

use std::net::Ipv4Addr;
use std::str::FromStr;

use takt_packet::VlanTag;
use takt_transport::choice::probe::Finding;
use takt_transport::choice::{Description, Opened, Request, TransportFactory, TransportOption};
use takt_transport::ethernet::{EthernetConfig, EthernetTransport};
use takt_transport::udp::ParticipantIndex;
use takt_transport::{Transport, TransportError};

use crate::{DpdkConfig, DpdkPort, DpdkTransport, UdpStackConfig, probe};

/// Registers `dpdk:DEVICE` and `dpdk-ethernet:DEVICE` for the participants of this process, so that
/// configurations can request them.
pub fn register() {
    takt_transport::choice::register(Dpdk);
    takt_transport::choice::register(DpdkEthernet);
}

/// Options of the device.
const DEVICE_OPTIONS: [&str; 4] = ["huge", "mac", "mtu", "rx_room"];

fn number<T: FromStr>(request: &Request<'_>, key: &str, value: &str) -> Result<T, TransportError> {
    value.parse().map_err(|_| request.error(&format!("{key} {value:?} is invalid")))
}

/// Parses the device and its options: `huge=no` makes DPDK use ordinary memory and not probe
/// hardware.
fn device(request: &Request<'_>) -> Result<DpdkConfig, TransportError> {
    let name = request.target()?;
    let mut config = DpdkConfig::new(name);
    for TransportOption { key, value } in &request.spec.options {
        match (key.as_str(), value.as_str()) {
            ("huge", "no") => {
                let DpdkConfig { mac, mtu, rx_room, .. } = config;
                config = DpdkConfig { mac, mtu, rx_room, ..DpdkConfig::for_trial(name) };
            }
            ("huge", "yes") => {}
            ("huge", _) => return Err(request.error(&format!("huge {value:?}: expected yes or no"))),
            ("mac", _) => config.mac = Some(number(request, key, value)?),
            ("mtu", _) => config.mtu = Some(number(request, key, value)?),
            ("rx_room", _) => config.rx_room = Some(number(request, key, value)?),
            _ => {}
        }
    }
    Ok(config)
}

/// Factory of the UDP transport.
struct Dpdk;

impl TransportFactory for Dpdk {
    fn description(&self) -> Description {
        Description {
            name: "dpdk",
            summary: "UDP over a port driven by DPDK",
            needs: "a device that DPDK has a driver for, hugepages (or huge=no), an address of its own",
            form: "dpdk:DEVICE/address=A.B.C.D[/prefix=24][/gateway=A.B.C.D][/vlan=ID][/huge=no][/mac=ADDRESS][/mtu=N][/rx_room=N]",
        }
    }

    fn at(&self, interface: &str) -> String {
        format!("dpdk:net_af_packet0,iface={interface}/address=A.B.C.D")
    }

    fn probe(&self, interface: &str) -> Vec<Finding> {
        probe::findings(interface)
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        let known = [&["address", "prefix", "gateway", "vlan"][..], &DEVICE_OPTIONS].concat();
        request.options(&known)?;
        let device = device(request)?;
        let mut config = UdpStackConfig::new(request.udp.domain_id, Ipv4Addr::UNSPECIFIED, 24);
        for TransportOption { key, value } in &request.spec.options {
            match key.as_str() {
                "address" => config.address = number(request, key, value)?,
                "prefix" => config.prefix_len = number(request, key, value)?,
                "gateway" => config.gateway = Some(number(request, key, value)?),
                "vlan" => config.vlan = Some(VlanTag { vid: number(request, key, value)?, ..VlanTag::default() }),
                _ => {}
            }
        }
        if config.address.is_unspecified() {
            return Err(request.error("an unused address is required, as in address=10.0.0.1"));
        }
        if let ParticipantIndex::Fixed(index) = request.udp.participant_index {
            config.participant_index = index;
        }
        config.multicast = request.udp.multicast;
        config.multicast_group = request.udp.multicast_group_v4;
        config.multicast_ttl = request.udp.multicast_ttl;
        config.ports = request.udp.ports;
        let dpdk = DpdkTransport::open(&device, &config)?;
        let detail = format!(
            "{}, {}/{}, datagrams of up to {}",
            dpdk.port().driver(),
            config.address,
            config.prefix_len,
            dpdk.capabilities().max_message_len
        );
        Ok(Opened { transport: Box::new(dpdk), detail })
    }
}

/// Factory of the layer-2 transport.
struct DpdkEthernet;

impl TransportFactory for DpdkEthernet {
    fn description(&self) -> Description {
        Description {
            name: "dpdk-ethernet",
            summary: "RTPS on Ethernet without IP, over a port driven by DPDK",
            needs: "a device that DPDK has a driver for, hugepages (or huge=no)",
            form: "dpdk-ethernet:DEVICE[/huge=no][/mac=ADDRESS][/mtu=N][/rx_room=N]",
        }
    }

    fn at(&self, interface: &str) -> String {
        format!("dpdk-ethernet:net_af_packet0,iface={interface}")
    }

    fn probe(&self, interface: &str) -> Vec<Finding> {
        probe::findings(interface)
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&DEVICE_OPTIONS)?;
        let port = DpdkPort::open(&device(request)?)?;
        let driver = port.driver().to_owned();
        let ethernet = EthernetTransport::open(port, &EthernetConfig::from_udp(request.udp))?;
        let detail = format!("{driver}, messages of up to {}", ethernet.capabilities().max_message_len);
        Ok(Opened { transport: Box::new(ethernet), detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_transport::choice::TransportSpec;
    use takt_transport::shm::ShmConfig;
    use takt_transport::tcp::TcpConfig;
    use takt_transport::udp::UdpConfig;

    fn refusal(text: &str) -> String {
        let spec: TransportSpec = text.parse().expect("well-formed");
        let (udp, tcp, shm) = (UdpConfig::new(0), TcpConfig::default(), ShmConfig::default());
        let request = Request { spec: &spec, udp: &udp, tcp: &tcp, shm: &shm };
        let factory: &dyn TransportFactory = if spec.name == "dpdk" { &Dpdk } else { &DpdkEthernet };
        factory.open(&request).map(drop).expect_err("the transport is refused").to_string()
    }

    #[test]
    fn invalid_option_is_reported_with_its_reason() {
        assert_eq!(refusal("dpdk"), "open dpdk: an interface is missing: dpdk:eth0");
        let text = "dpdk:net_null0";
        assert_eq!(refusal(text), format!("open {text}: an unused address is required, as in address=10.0.0.1"));
        assert!(refusal("dpdk:net_null0/address=10.0.0").ends_with("address \"10.0.0\" is invalid"));
        assert!(refusal("dpdk:net_null0/mac=02:00").ends_with("mac \"02:00\" is invalid"));
        assert!(refusal("dpdk:net_null0/huge=maybe").ends_with("huge \"maybe\": expected yes or no"));
        assert!(refusal("dpdk-ethernet:net_null0/address=10.0.0.1").contains("unknown option address"));
    }
}
