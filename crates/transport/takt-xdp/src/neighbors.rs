//! Table of the neighbors' hardware addresses at one interface, mirrored from the kernel.
//!
//! The kernel resolves addresses (ARP, and IPv6 neighbor discovery) and monitors them. This module
//! follows its table by netlink (rtnetlink(7)): first a complete dump, then changes. It learns
//! nothing from received frames, so it trusts exactly the neighbors that the kernel trusts.
//!
//! Datagrams to a neighbor outside the table are sent through the kernel's sockets, which makes the
//! kernel resolve it. A neighbor that the kernel has not confirmed for a while (`NUD_STALE`) stays
//! in use. Since the kernel only verifies it when it sends a packet itself, an empty datagram to
//! the discard port (RFC 863) is sent through the kernel, once for each transition to that state.
//!
//! Lengths are in octets. Messages come from the kernel, but are parsed as untrusted input.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use takt_packet::MacAddress;

use crate::syscall;

/// Maximum number of neighbors; further ones are reached through the kernel's sockets.
pub(crate) const NEIGHBORS_MAX: usize = 1024;

/// Maximum number of messages read at once.
const READS_MAX: usize = 64;

const DISCARD_PORT: u16 = 9;

/// Lengths of `struct nlmsghdr`, `struct ndmsg` and `struct rtattr`.
const MESSAGE_HEADER: usize = 16;
const NEIGHBOR_HEADER: usize = 12;
const ATTRIBUTE_HEADER: usize = 4;

/// States in which the address is known and usable.
const USABLE: u16 =
    libc::NUD_REACHABLE | libc::NUD_STALE | libc::NUD_DELAY | libc::NUD_PROBE | libc::NUD_NOARP | libc::NUD_PERMANENT;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Neighbor {
    ip: IpAddr,
    mac: MacAddress,
    /// The kernel would verify it if it had a packet to send.
    stale: bool,
}

/// Table of neighbors, sorted by address.
#[derive(Debug)]
struct Table {
    ifindex: u32,
    known: Vec<Neighbor>,
}

impl Table {
    fn new(ifindex: u32) -> Self {
        Self { ifindex, known: Vec::with_capacity(NEIGHBORS_MAX) }
    }

    fn find(&self, ip: IpAddr) -> Result<usize, usize> {
        self.known.binary_search_by_key(&ip, |neighbor| neighbor.ip)
    }

    /// Applies the messages of one read.
    fn learn(&mut self, mut bytes: &[u8]) {
        while let Some((header, _)) = bytes.split_first_chunk::<MESSAGE_HEADER>() {
            let [a, b, c, d, e, f, ..] = *header;
            let (len, kind) = (u32::from_ne_bytes([a, b, c, d]) as usize, u16::from_ne_bytes([e, f]));
            let Some(message) = bytes.get(MESSAGE_HEADER..len) else {
                return;
            };
            if let Some((ip, neighbor)) = neighbor(message, self.ifindex) {
                self.set(ip, neighbor.filter(|_| kind == libc::RTM_NEWNEIGH), kind);
            }
            bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    fn set(&mut self, ip: IpAddr, neighbor: Option<Neighbor>, kind: u16) {
        if !matches!(kind, libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH) {
            return;
        }
        match (self.find(ip), neighbor) {
            (Ok(at), Some(neighbor)) => self.known[at] = neighbor,
            (Ok(at), None) => drop(self.known.remove(at)),
            (Err(at), Some(neighbor)) if self.known.len() < NEIGHBORS_MAX => self.known.insert(at, neighbor),
            (Err(_), _) => {}
        }
    }
}

/// Parses the address of a message, and its usable neighbor if there is one. Returns `None` for
/// other interfaces.
fn neighbor(message: &[u8], ifindex: u32) -> Option<(IpAddr, Option<Neighbor>)> {
    // struct ndmsg: family, padding, interface, state, flags, type.
    let (header, mut attributes) = message.split_first_chunk::<NEIGHBOR_HEADER>()?;
    let [family, _, _, _, a, b, c, d, state_a, state_b, ..] = *header;
    if u32::from_ne_bytes([a, b, c, d]) != ifindex {
        return None;
    }
    let state = u16::from_ne_bytes([state_a, state_b]);
    let (mut ip, mut mac) = (None, None);
    while let Some((header, _)) = attributes.split_first_chunk::<ATTRIBUTE_HEADER>() {
        let [a, b, c, d] = *header;
        let (len, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = attributes.get(ATTRIBUTE_HEADER..len)?;
        match kind {
            libc::NDA_DST => ip = address(family, value),
            libc::NDA_LLADDR => mac = value.first_chunk().copied().map(MacAddress),
            _ => {}
        }
        attributes = attributes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    let ip = ip?;
    let usable = mac.filter(|mac| state & USABLE != 0 && !mac.is_group());
    Some((ip, usable.map(|mac| Neighbor { ip, mac, stale: state == libc::NUD_STALE })))
}

/// Parses an address of this family.
fn address(family: u8, octets: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        libc::AF_INET6 => octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}

/// Neighbors at one interface.
#[derive(Debug)]
pub(crate) struct Neighbors {
    table: Table,
    route: OwnedFd,
    /// Sockets of the datagrams that make the kernel verify a neighbor; none for IPv6 where the
    /// machine has none.
    discard: UdpSocket,
    discard_v6: Option<UdpSocket>,
    buffer: Vec<u8>,
}

impl Neighbors {
    /// Reads the kernel's table of an interface, and subscribes to its changes.
    pub(crate) fn new(ifindex: u32) -> io::Result<Self> {
        let discard = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        discard.set_nonblocking(true)?;
        // tidy-allow(dropped-cause): without IPv6, there are no neighbors to verify by it.
        let discard_v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok();
        if let Some(discard) = &discard_v6 {
            discard.set_nonblocking(true)?;
        }
        let route = syscall::route_socket(libc::RTMGRP_NEIGH as u32)?;
        let mut neighbors = Self { table: Table::new(ifindex), route, discard, discard_v6, buffer: vec![0; 32 << 10] };
        neighbors.request_dump()?;
        while neighbors.listen() {}
        Ok(neighbors)
    }

    /// Requests a complete dump; the replies are read like changes.
    fn request_dump(&mut self) -> io::Result<()> {
        let mut request = [0; MESSAGE_HEADER + NEIGHBOR_HEADER];
        request[..4].copy_from_slice(&((MESSAGE_HEADER + NEIGHBOR_HEADER) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETNEIGH.to_ne_bytes());
        request[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        request[MESSAGE_HEADER] = libc::AF_UNSPEC as u8;
        self.table.known.clear();
        syscall::send(self.route.as_fd(), &request)
    }

    /// Reads pending changes. Reports whether there may be more. Does not allocate.
    pub(crate) fn listen(&mut self) -> bool {
        for _ in 0..READS_MAX {
            match syscall::receive(self.route.as_fd(), &mut self.buffer) {
                Ok(len) => self.table.learn(&self.buffer[..len.min(self.buffer.len())]),
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => {
                    // Changes were lost. If the kernel does not reply now, its sockets carry all
                    // datagrams.
                    drop(self.request_dump());
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Returns the hardware address of a neighbor, if it is known.
    pub(crate) fn find(&mut self, ip: IpAddr) -> Option<MacAddress> {
        let at = self.table.find(ip).ok()?;
        let neighbor = &mut self.table.known[at];
        if std::mem::take(&mut neighbor.stale) {
            // If it cannot be sent, the neighbor stays in use until the kernel reports otherwise.
            match (ip, &self.discard_v6) {
                (IpAddr::V6(ip), Some(discard)) => {
                    // The scope only matters for link-local addresses.
                    let to = SocketAddrV6::new(ip, DISCARD_PORT, 0, self.table.ifindex);
                    drop(discard.send_to(&[], to));
                }
                (IpAddr::V6(_), None) => {}
                (IpAddr::V4(_), _) => drop(self.discard.send_to(&[], SocketAddr::new(ip, DISCARD_PORT))),
            }
        }
        Some(neighbor.mac)
    }

    /// Returns the netlink socket, which is readable when changes are pending. It belongs to the
    /// interface's network namespace.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.route.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    const IP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7));
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);

    /// Makes a neighbor message in the layout of the kernel.
    fn message(kind: u16, ifindex: u32, state: u16, ip: IpAddr, mac: Option<MacAddress>) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE_HEADER + NEIGHBOR_HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[MESSAGE_HEADER] = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
        bytes[MESSAGE_HEADER + 4..][..4].copy_from_slice(&ifindex.to_ne_bytes());
        bytes[MESSAGE_HEADER + 8..][..2].copy_from_slice(&state.to_ne_bytes());
        let mut attribute = |kind: u16, value: &[u8]| {
            bytes.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        };
        match ip {
            IpAddr::V4(ip) => attribute(libc::NDA_DST, &ip.octets()),
            IpAddr::V6(ip) => attribute(libc::NDA_DST, &ip.octets()),
        }
        if let Some(mac) = mac {
            attribute(libc::NDA_LLADDR, &mac.0);
        }
        attribute(libc::NDA_PROBES, &[0; 4]);
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes
    }

    fn new(ip: IpAddr, state: u16) -> Vec<u8> {
        message(libc::RTM_NEWNEIGH, 3, state, ip, Some(MAC))
    }

    fn known(table: &Table) -> Vec<(IpAddr, MacAddress, bool)> {
        table.known.iter().map(|n| (n.ip, n.mac, n.stale)).collect()
    }

    #[test]
    fn neighbors_are_added_changed_and_removed() {
        let mut table = Table::new(3);
        let before = IpAddr::from([10, 0, 0, 1]);
        table.learn(&[new(IP, libc::NUD_REACHABLE), new(before, libc::NUD_STALE)].concat());
        assert_eq!(known(&table), [(before, MAC, true), (IP, MAC, false)], "sorted");
        let other = MacAddress([2, 0, 0, 0, 0, 8]);
        table.learn(&message(libc::RTM_NEWNEIGH, 3, libc::NUD_REACHABLE, before, Some(other)));
        assert_eq!(known(&table)[0], (before, other, false));
        table.learn(&message(libc::RTM_DELNEIGH, 3, libc::NUD_REACHABLE, before, Some(other)));
        table.learn(&message(libc::RTM_NEWNEIGH, 3, libc::NUD_FAILED, IP, None));
        assert_eq!(known(&table), []);
    }

    #[test]
    fn unusable_state_is_no_neighbor() {
        let mut table = Table::new(3);
        table.learn(&message(libc::RTM_NEWNEIGH, 4, libc::NUD_REACHABLE, IP, Some(MAC)));
        table.learn(&message(libc::RTM_NEWNEIGH, 3, libc::NUD_INCOMPLETE, IP, None));
        table.learn(&message(libc::RTM_NEWNEIGH, 3, libc::NUD_FAILED, IP, Some(MAC)));
        table.learn(&message(libc::RTM_NEWNEIGH, 3, libc::NUD_NOARP, IP, Some(MacAddress::BROADCAST)));
        table.learn(&message(libc::RTM_NEWLINK, 3, libc::NUD_REACHABLE, IP, Some(MAC)));
        assert_eq!(known(&table), []);
    }

    #[test]
    fn truncated_messages_are_tolerated() {
        let whole = [new(IP, libc::NUD_REACHABLE), new(IP_V6, libc::NUD_REACHABLE)].concat();
        let of_the_first = new(IP, libc::NUD_REACHABLE).len();
        for len in 0..whole.len() {
            let mut table = Table::new(3);
            table.learn(&whole[..len]);
            assert_eq!(table.known.len(), usize::from(len >= of_the_first), "{len} octets");
        }
        // Invalid lengths.
        for (at, value) in (0..whole.len()).flat_map(|at| [(at, 0), (at, 1), (at, 0xff)]) {
            let mut damaged = whole.clone();
            damaged[at] = value;
            Table::new(3).learn(&damaged);
        }
    }

    #[test]
    fn number_of_neighbors_is_bounded() {
        let mut table = Table::new(3);
        for n in 0..=NEIGHBORS_MAX as u32 {
            table.learn(&new(Ipv4Addr::from_bits(0x0a00_0000 + n).into(), libc::NUD_REACHABLE));
        }
        assert_eq!(table.known.len(), NEIGHBORS_MAX);
        assert_eq!(table.known.capacity(), NEIGHBORS_MAX, "no allocation occurred");
    }

    #[test]
    fn kernel_dumps_its_table() {
        // Loopback has no neighbors; the test only shows that the exchange works.
        let mut neighbors = Neighbors::new(1).expect("netlink is there");
        assert_eq!(neighbors.find(Ipv4Addr::LOCALHOST.into()), None);
        assert!(!neighbors.listen());
    }
}
