//! Configuration of a DPDK port, and of UDP over it.

use std::net::Ipv4Addr;
use std::time::Duration;

use takt_packet::{MacAddress, VlanTag};
use takt_wire::ports::PortMapping;

/// Configuration of a DPDK port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpdkConfig {
    /// Arguments of DPDK's environment (EAL). The first port of a process determines them; those of
    /// later ports are ignored, with a warning if they differ.
    pub eal: Vec<String>,
    /// Device, in DPDK's notation with its arguments: `0000:03:00.0`, `net_af_packet0,iface=eth0`.
    pub device: String,
    /// Hardware address of the port; `None`: that of the device, or a random one if it has none.
    /// With an address other than the device's, the port receives all frames and drops those that
    /// are not for it.
    pub mac: Option<MacAddress>,
    /// Maximum octets of a frame after its Ethernet header, 64 to 9,216; `None`: the setting of
    /// the device, at most 1,500.
    pub mtu: Option<u16>,
    /// Size of the driver's receive buffers in octets; a longer frame arrives in several, and is
    /// copied together. `None`: the length of the longest frame.
    pub rx_room: Option<u16>,
    /// Whether to return all frames, including those for other hardware addresses.
    pub promiscuous: bool,
    /// Receive descriptors: frames that can wait. The device may round the number.
    pub rx_frames: u16,
    /// Transmit descriptors: frames that can be in transmission. The device may round the number.
    pub tx_frames: u16,
    /// Interval between checks of the link.
    pub link_period: Duration,
}

impl DpdkConfig {
    /// Returns the defaults for a device. The environment keeps no files and listens at no socket;
    /// it needs hugepages.
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

    /// Returns [`new`](Self::new) for trials with a virtual device on a machine without hugepages:
    /// 256 MiB of ordinary memory, no probing of hardware.
    pub fn for_trial(device: &str) -> Self {
        let mut config = Self::new(device);
        // `--in-memory` concerns hugepages; this is the part of it that still applies.
        config.eal[0] = "--no-shconf".to_owned();
        config.eal.extend(["--no-huge", "-m", "256", "--no-pci"].map(str::to_owned));
        config
    }
}

/// Configuration of Takt's own UDP and IPv4 over a frame port.
#[derive(Debug, Clone, PartialEq)]
pub struct UdpStackConfig {
    /// DDS domain; determines the well-known ports.
    pub domain_id: u32,
    /// Participant index of the well-known ports, 0 to 119. The address has no other users, so the
    /// first index suffices.
    pub participant_index: u16,
    /// Own address. No other host may have it, including the kernel if it uses the same interface.
    pub address: Ipv4Addr,
    /// Length of the network prefix in bits.
    pub prefix_len: u8,
    /// Router to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Hardware addresses that are known from the start and not resolved.
    pub neighbors: Vec<(Ipv4Addr, MacAddress)>,
    /// Tag of all outgoing frames; only frames of the same VLAN are received. Its PCP is that of
    /// flows without priority.
    pub vlan: Option<VlanTag>,
    /// Whether to use multicast: join the group, announce it, and send to any group.
    pub multicast: bool,
    /// Group of discovery and user data: 239.255.0.1 (RTPS 2.5 §9.6.2).
    pub multicast_group: Ipv4Addr,
    /// Time to live of multicast datagrams: the number of routers that they may pass, plus one.
    pub multicast_ttl: u8,
    /// Constants of the port mapping.
    pub ports: PortMapping,
}

impl UdpStackConfig {
    /// Returns the defaults for a domain and an address.
    pub fn new(domain_id: u32, address: Ipv4Addr, prefix_len: u8) -> Self {
        Self {
            domain_id,
            participant_index: 0,
            address,
            prefix_len,
            gateway: None,
            neighbors: Vec::new(),
            vlan: None,
            multicast: true,
            multicast_group: Ipv4Addr::new(239, 255, 0, 1),
            multicast_ttl: 1,
            ports: PortMapping::default(),
        }
    }
}
