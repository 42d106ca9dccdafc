//! What a port, and a transport by UDP at it, are asked to be.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::{MacAddress, VlanTag};
use takt_wire::ports::PortMapping;

/// A port of DPDK's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpdkConfig {
    /// Arguments of DPDK's environment. Whoever opens the first port of a process decides; those of the others are
    /// ignored, with a warning if they differ.
    pub eal: Vec<String>,
    /// The device, as DPDK names it, with its arguments: `0000:03:00.0`, `net_af_packet0,iface=eth0`.
    pub device: String,
    /// The address that frames are sent from and received at; `None`: the device's own, or a random one if it has none. With an
    /// address that is not the device's the port receives all frames and leaves out those that are not for it.
    pub mac: Option<MacAddress>,
    /// Octets that a frame carries behind its Ethernet header, 64 to 9,216; `None`: what the device is set to, at most 1,500.
    pub mtu: Option<u16>,
    /// Octets of the buffers that the driver receives into; a longer frame comes in several, which are copied together. `None`: as
    /// many as the longest frame has.
    pub rx_room: Option<u16>,
    /// Show all frames, also those for other hardware addresses.
    pub promiscuous: bool,
    /// Descriptors for receiving: frames that can wait. The device may round it.
    pub rx_frames: u16,
    /// Descriptors for sending: frames that can be on their way out. The device may round it.
    pub tx_frames: u16,
    /// How often the link is looked at.
    pub link_period: Duration,
}

impl DpdkConfig {
    /// The defaults for a device. The environment keeps no files and listens at no socket; hugepages are needed.
    pub fn new(device: &str) -> Self {
        Self {
            eal: ["--in-memory", "--no-telemetry", "--log-level=error"].map(str::to_owned).to_vec(),
            device: device.to_owned(),
            mac: None,
            mtu: None,
            rx_room: None,
            promiscuous: false,
            rx_frames: 1024,
            tx_frames: 512,
            link_period: Duration::from_millis(100),
        }
    }

    /// As [`new`](Self::new), to try it on a machine without hugepages, with a virtual device: 256 MiB of ordinary memory, no look
    /// for hardware.
    pub fn trial(device: &str) -> Self {
        let mut config = Self::new(device);
        // `--in-memory` is about hugepages; this is what it has in common with it.
        config.eal[0] = "--no-shconf".to_owned();
        config.eal.extend(["--no-huge", "-m", "256", "--no-pci"].map(str::to_owned));
        config
    }
}

/// UDP and IPv4 of our own, over a port that moves frames.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpStackConfig {
    /// The DDS domain; decides on the well-known ports.
    pub domain_id: u32,
    /// Whose well-known ports are taken: those of this participant index, 0 to 119. Nobody else has the address, so that the
    /// first one will do.
    pub participant_index: u16,
    /// Our address. Nobody else may have it; the kernel neither, if it uses the same interface.
    pub address: Ipv4Addr,
    /// How many of its bits are the network's.
    pub prefix_len: u8,
    /// The router to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Hardware addresses that are known from the start and need not be asked for.
    pub neighbours: Vec<(Ipv4Addr, MacAddress)>,
    /// Tag of all outgoing frames; only frames of the same VLAN are received. Its PCP is that of flows without priority.
    pub vlan: Option<VlanTag>,
    /// Use multicast: join the group, announce it, and send to any group.
    pub multicast: bool,
    /// The group of discovery and user data: 239.255.0.1 (RTPS 2.5 §9.6.2).
    pub multicast_group: Ipv4Addr,
    /// How many routers a multicast datagram may pass, plus one.
    pub multicast_ttl: u8,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl UdpStackConfig {
    /// The defaults for a domain and an address.
    pub fn new(domain_id: u32, address: Ipv4Addr, prefix_len: u8) -> Self {
        Self {
            domain_id,
            participant_index: 0,
            address,
            prefix_len,
            gateway: None,
            neighbours: Vec::new(),
            vlan: None,
            multicast: true,
            multicast_group: Ipv4Addr::new(239, 255, 0, 1),
            multicast_ttl: 1,
            ports: PortMapping::default(),
        }
    }
}
