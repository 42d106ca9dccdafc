//! Network locations of processes: addresses, multicast groups, and the interfaces of a host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use takt_core::{Interface, Locators};
use takt_wire::Locator;

use crate::scenario::NetworkPlan;

/// Multicast group of announcements.
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// Multicast group of announcements in worlds with IPv6 alone.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 1);

/// Port of the multicast group of user data.
const USER_GROUP_PORT: u16 = 7401;

/// First port of the processes; the index of a process is added.
const PORT_BASE: u16 = 7411;

/// MTU of a second interface.
const SECOND_MTU: usize = 9_000;

/// Returns the address of a process on a host that has never moved.
#[must_use]
pub fn address(host: usize, process: usize) -> Locator {
    HostLocation::default().address(host, process)
}

/// Returns the process that listens on an address, if any.
#[must_use]
pub fn at_address(address: &Locator) -> Option<usize> {
    address.port.checked_sub(u32::from(PORT_BASE)).map(|index| index as usize)
}

/// Location of a host in the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostLocation {
    /// Number of address changes.
    pub moves: u8,
    /// Whether the host has no interface.
    pub has_no_interface: bool,
    /// Whether the addresses are IPv6.
    pub is_v6: bool,
    /// Whether the host has a second interface.
    pub has_second: bool,
}

impl HostLocation {
    /// Returns the address of a process on a host, if the host has an interface.
    #[must_use]
    pub fn address(self, host: usize, process: usize) -> Locator {
        self.on(0, host, process)
    }

    /// Reports whether a process on a host currently listens on an address.
    #[must_use]
    pub fn listens(self, to: &Locator, host: usize, process: usize) -> bool {
        *to == self.on(0, host, process) || self.has_second && *to == self.on(1, host, process)
    }

    fn on(self, interface: u8, host: usize, process: usize) -> Locator {
        let (host, port) = (host as u16 + 1, PORT_BASE + process as u16);
        if self.is_v6 {
            let net = 0xfd00 + u16::from(interface);
            return Locator::udp_v6(Ipv6Addr::new(net, u16::from(self.moves), 0, 0, 0, 0, 0, host), port);
        }
        let [high, low] = host.to_be_bytes();
        Locator::udp_v4(Ipv4Addr::new(10 + interface, self.moves, high, low), port)
    }

    /// Returns the multicast group of all processes.
    #[must_use]
    pub fn group(self, port: u16) -> Locator {
        if self.is_v6 { Locator::udp_v6(GROUP_V6, port) } else { Locator::udp_v4(GROUP, port) }
    }

    /// Returns the interfaces of the host and the locators that its processes announce, with the
    /// multicast group of user data if `shares`.
    pub(super) fn presence(
        self,
        host: usize,
        process: usize,
        network: &NetworkPlan,
        shares: bool,
    ) -> (Vec<Interface>, Locators) {
        if self.has_no_interface {
            return (Vec::new(), Locators::default());
        }
        let count = if self.has_second { 2 } else { 1 };
        let unicast: Vec<_> = (0..count).map(|interface| self.on(interface, host, process)).collect();
        let interface = |(at, address): (usize, &Locator)| {
            let ip = address.ip().expect("the address is one of IP");
            let prefix = match (ip, network.is_routed) {
                (IpAddr::V4(_), false) => 8,
                (IpAddr::V6(_), false) => 16,
                (IpAddr::V4(_), true) => 32,
                (IpAddr::V6(_), true) => 128,
            };
            let mtu = if at == 0 { network.mtu } else { SECOND_MTU };
            Interface { name: format!("sim{at}"), addresses: vec![(ip, prefix)], mtu, loopback: false }
        };
        let interfaces = unicast.iter().enumerate().map(interface).collect();
        let default_multicast = if shares { vec![self.group(USER_GROUP_PORT)] } else { Vec::new() };
        let (metatraffic_unicast, default_unicast) = (unicast.clone(), unicast);
        let locators = Locators { metatraffic_unicast, default_unicast, default_multicast, ..Locators::default() };
        (interfaces, locators)
    }
}
