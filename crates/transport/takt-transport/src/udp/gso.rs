//! UDP segmentation offload: GSO on send, GRO on receive. A *super-packet* is a run of datagrams
//! of one size to one address that passes the network stack as one unit.
//!
//! Sending (`UDP_SEGMENT`, Linux 4.18): consecutive datagrams to one address, all of one length
//! except the last, which may be shorter, pass the network stack once and are segmented after it.
//! Receiving (`UDP_GRO`, Linux 5.0): such datagrams arrive in one buffer with the length of each.
//! Neither the wire nor the users of the transport see a difference.
//!
//! Datagrams that fit into one packet together are not sent as a super-packet. Otherwise, a program
//! that reads packets before the network stack of the receiving machine, as AF_XDP does in generic
//! mode, would see a single datagram.
//!
//! A kernel, device or path without support reports an error; then datagrams are sent singly. A
//! receiving socket enables GRO only after it had a long queue, because the call that reports
//! segment lengths costs some 0.2 us more.

use super::syscall::{Incoming, Outgoing};
use crate::Interface;

/// Maximum octets of a super-packet: those that fit into one IP packet, with the headers of IPv6.
const LEN_MAX: u32 = 65_487;

/// Maximum number of datagrams of a super-packet: `UDP_MAX_SEGMENTS` of the kernels before 6.9.
const DATAGRAMS_MAX: usize = 64;

/// Number of datagrams received at once, and their octets, from which on a socket enables GRO.
const LOAD: (usize, usize) = (8, 8 << 10);

/// Length from which on datagrams gain too little from GRO.
const LONG: u32 = 16 << 10;

/// Limits of segmentation offload on this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gso {
    /// Maximum length of the datagrams; 0 disables GSO.
    longest: u32,
    /// MTU of the largest packet of an interface other than loopback; the octets of a super-packet
    /// must exceed it.
    packet_len: u32,
}

impl Gso {
    pub(super) const NONE: Self = Self { longest: 0, packet_len: 0 };
    pub(super) const ANY: Self = Self { longest: LEN_MAX, packet_len: 0 };

    /// Excludes super-packets that one packet of these interfaces can carry.
    pub(super) fn beyond_packets(self, interfaces: &[Interface]) -> Self {
        let largest = interfaces.iter().filter(|interface| !interface.loopback).map(|interface| interface.mtu).max();
        Self { packet_len: largest.map_or(0, |mtu| u32::try_from(mtu).unwrap_or(u32::MAX)), ..self }
    }

    /// Returns the number of datagrams, from the first, that form a super-packet; 1 if there is
    /// none.
    pub(super) fn first(self, queue: &[Outgoing]) -> usize {
        let Some(first) = queue.first().filter(|first| first.len > 0) else { return 1 };
        if first.len > self.longest {
            return 1;
        }
        let (mut count, mut len) = (1, first.len);
        for next in queue[1..].iter().take(DATAGRAMS_MAX - 1) {
            let is_next = next.fd == first.fd && next.connected == first.connected && next.control == first.control;
            if !is_next || next.len > first.len || next.len == 0 || len + next.len > LEN_MAX {
                break;
            }
            if !first.connected && next.address != first.address {
                break;
            }
            (count, len) = (count + 1, len + next.len);
            if next.len < first.len {
                break;
            }
        }
        if len > self.packet_len { count } else { 1 }
    }

    /// Returns the number of sent datagrams that were in super-packets.
    pub(super) fn count(self, mut sent: &[Outgoing]) -> u64 {
        let mut count = 0;
        while !sent.is_empty() {
            let segments = self.first(sent);
            count += if segments > 1 { segments as u64 } else { 0 };
            sent = &sent[segments..];
        }
        count
    }

    /// Handles the refusal of a super-packet of datagrams of this length. Reports whether to send
    /// them singly.
    pub(super) fn handle_refusal(&mut self, len: u32, error: &std::io::Error) -> bool {
        match error.raw_os_error() {
            // The length may exceed the limit of this path alone.
            Some(libc::EINVAL | libc::EMSGSIZE) => self.longest = self.longest.min(len - 1),
            // Not supported, or a device that does not compute checksums.
            Some(libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => *self = Self::NONE,
            _ => return false,
        }
        true
    }
}

/// Reports whether the received datagrams are enough load to enable GRO.
pub(super) fn is_load(found: &[Incoming]) -> bool {
    let len: usize = found.iter().map(|one| one.len as usize).sum();
    found.len() >= LOAD.0 && len >= LOAD.1 && found.iter().all(|one| one.len < LONG)
}

#[cfg(test)]
mod tests {
    use super::super::address::SockAddr;
    use super::*;

    fn datagram(len: u32, port: u16) -> Outgoing {
        let address = SockAddr::v4([127, 0, 0, 1], port);
        Outgoing { fd: 3, connected: false, offset: 0, len, address, control: None }
    }

    fn first(lens: &[u32]) -> usize {
        let queue: Vec<Outgoing> = lens.iter().map(|len| datagram(*len, 9)).collect();
        Gso::ANY.first(&queue)
    }

    #[test]
    fn super_packet_has_one_size_except_the_last_datagram() {
        assert_eq!(first(&[]), 1);
        assert_eq!(first(&[100]), 1);
        assert_eq!(first(&[100, 100, 100]), 3);
        assert_eq!(first(&[100, 100, 60]), 3);
        assert_eq!(first(&[100, 60, 60]), 2, "the shorter one is the last");
        assert_eq!(first(&[100, 101]), 1, "none is longer than the first");
        assert_eq!(first(&[100, 0]), 1);
        assert_eq!(first(&[0, 0]), 1);
    }

    #[test]
    fn super_packet_fits_into_one_ip_packet() {
        assert_eq!(first(&[40_000, 30_000]), 1);
        assert_eq!(first(&[21_829, 21_829, 21_829]), 3);
        assert_eq!(first(&[21_830, 21_830, 21_830]), 2);
        assert_eq!(first(&[10; 100]), DATAGRAMS_MAX);
    }

    #[test]
    fn datagrams_that_fit_into_one_packet_are_not_segmented() {
        let interface = |mtu, loopback| Interface {
            name: String::new(),
            index: 1,
            addresses: Vec::new(),
            mtu,
            loopback,
            multicast: true,
        };
        let gso = Gso::ANY.beyond_packets(&[interface(65_536, true), interface(1500, false)]);
        let first = |len: u32, count: usize| gso.first(&vec![datagram(len, 9); count]);
        assert_eq!((first(100, 15), first(100, 16), first(750, 2), first(751, 2)), (1, 16, 1, 2));
        let loopback_only = Gso::ANY.beyond_packets(&[interface(65_536, true)]);
        assert_eq!(loopback_only.first(&[datagram(10, 9); 2]), 2, "there are no packets but to this machine");
    }

    #[test]
    fn super_packet_has_one_address_one_socket_and_one_interface() {
        let plain = datagram(10, 9);
        let others = [
            Outgoing { fd: 4, ..plain },
            Outgoing { connected: true, ..plain },
            Outgoing { control: Some(0), ..plain },
            datagram(10, 10),
        ];
        for other in others {
            assert_eq!(Gso::ANY.first(&[plain, plain, other, other]), 2);
            assert_eq!(Gso::ANY.first(&[other, plain]), 1);
        }
        let by_one = [Outgoing { control: Some(1), ..plain }; 3];
        assert_eq!(Gso::ANY.first(&by_one), 3, "a group by one interface");
        let connected = [datagram(10, 9), datagram(10, 10)].map(|one| Outgoing { connected: true, ..one });
        assert_eq!(Gso::ANY.first(&connected), 2, "the socket has the address");
    }

    #[test]
    fn refusal_lowers_the_limit_permanently() {
        let error = std::io::Error::from_raw_os_error;
        let queue = [datagram(9_000, 9); 2];
        let mut gso = Gso::ANY;
        assert!(!gso.handle_refusal(9_000, &error(libc::ECONNREFUSED)) && gso.first(&queue) == 2);
        assert!(gso.handle_refusal(9_000, &error(libc::EINVAL)) && gso.first(&queue) == 1);
        assert_eq!(gso.first(&[datagram(8_999, 9); 2]), 2, "shorter ones may do");
        assert!(gso.handle_refusal(1_000, &error(libc::EIO)) && gso.first(&[datagram(10, 9); 2]) == 1);
        assert_eq!(Gso::NONE.first(&queue), 1);
    }
}
