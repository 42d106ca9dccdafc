//! Socket addresses and control messages in the layout of the kernel, built and read as plain
//! bytes. Everything that `syscall` passes to the kernel by pointer is composed here, without
//! `unsafe`.

use std::net::{Ipv4Addr, Ipv6Addr};

use takt_wire::Locator;

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// Returns the family of locators of `kind`.
    pub(crate) fn of_kind(kind: i32) -> Option<Self> {
        match kind {
            Locator::KIND_UDP_V4 => Some(Self::V4),
            Locator::KIND_UDP_V6 => Some(Self::V6),
            _ => None,
        }
    }

    pub(crate) fn domain(self) -> libc::c_int {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }
}

const V4_LEN: usize = size_of::<libc::sockaddr_in>();
const V6_LEN: usize = size_of::<libc::sockaddr_in6>();

/// A `sockaddr_in` or `sockaddr_in6`: 16 or 28 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SockAddr {
    bytes: [u8; V6_LEN],
    len: u32,
}

impl SockAddr {
    /// Room for an address that the kernel writes.
    pub(crate) const EMPTY: Self = Self { bytes: [0; V6_LEN], len: V6_LEN as u32 };

    pub(crate) fn v4(address: [u8; 4], port: u16) -> Self {
        let mut bytes = [0; V6_LEN];
        bytes[..2].copy_from_slice(&(libc::AF_INET as libc::sa_family_t).to_ne_bytes());
        bytes[2..4].copy_from_slice(&port.to_be_bytes());
        bytes[4..8].copy_from_slice(&address);
        Self { bytes, len: V4_LEN as u32 }
    }

    pub(crate) fn v6(address: [u8; 16], port: u16, scope_id: u32) -> Self {
        let mut bytes = [0; V6_LEN];
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as libc::sa_family_t).to_ne_bytes());
        bytes[2..4].copy_from_slice(&port.to_be_bytes());
        bytes[8..24].copy_from_slice(&address);
        bytes[24..28].copy_from_slice(&scope_id.to_ne_bytes());
        Self { bytes, len: V6_LEN as u32 }
    }

    /// Returns the address of a UDP locator, or `None` if its port is invalid or its address is
    /// unspecified.
    pub(crate) fn of_locator(locator: &Locator, family: Family) -> Option<Self> {
        let port = u16::try_from(locator.port).ok().filter(|p| *p != 0)?;
        if locator.address == [0; 16] {
            return None;
        }
        Some(match family {
            Family::V4 => {
                let [.., a, b, c, d] = locator.address;
                Self::v4([a, b, c, d], port)
            }
            Family::V6 => Self::v6(locator.address, port, 0),
        })
    }

    /// Returns the same address with another port.
    pub(crate) fn with_port(mut self, port: u16) -> Self {
        self.bytes[2..4].copy_from_slice(&port.to_be_bytes());
        self
    }

    /// Returns the same address with the scope of an interface (IPv6).
    pub(crate) fn with_scope(mut self, ifindex: u32) -> Self {
        self.bytes[24..28].copy_from_slice(&ifindex.to_ne_bytes());
        self
    }

    /// Converts to a locator; invalid (kind −1) for addresses other than IPv4 and IPv6.
    pub(crate) fn to_locator(self) -> Locator {
        let family = libc::c_int::from(u16::from_ne_bytes([self.bytes[0], self.bytes[1]]));
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        match family {
            libc::AF_INET => {
                let [_, _, _, _, a, b, c, d, ..] = self.bytes;
                Locator::udp_v4(Ipv4Addr::new(a, b, c, d), port)
            }
            libc::AF_INET6 => {
                let mut address = [0; 16];
                address.copy_from_slice(&self.bytes[8..24]);
                Locator::udp_v6(Ipv6Addr::from(address), port)
            }
            _ => Locator::INVALID,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }
}

/// Control messages (`cmsghdr` and data), aligned as the kernel requires.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Control {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

/// `cmsg_len` (a `size_t` of the kernel), `cmsg_level`, `cmsg_type`.
const CMSG_HEADER: usize = size_of::<usize>() + 8;

impl Control {
    /// Room for a drop counter and an IPv6 packet info, rounded up.
    pub(crate) const CAPACITY: usize = 96;

    pub(crate) const EMPTY: Self = Self { bytes: [0; Self::CAPACITY], len: 0 };

    /// Requests sending through this interface, from this address (`IP_PKTINFO`).
    pub(crate) fn pktinfo_v4(ifindex: u32, source: Ipv4Addr) -> Self {
        let mut data = [0; 12]; // in_pktinfo: ifindex, spec_dst, addr
        data[..4].copy_from_slice(&ifindex.to_ne_bytes());
        data[4..8].copy_from_slice(&source.octets());
        Self::message(libc::IPPROTO_IP, libc::IP_PKTINFO, &data)
    }

    /// Requests sending through this interface, from this address (`IPV6_PKTINFO`).
    pub(crate) fn pktinfo_v6(ifindex: u32, source: Ipv6Addr) -> Self {
        let mut data = [0; 20]; // in6_pktinfo: addr, ifindex
        data[..16].copy_from_slice(&source.octets());
        data[16..].copy_from_slice(&ifindex.to_ne_bytes());
        Self::message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data)
    }

    /// Requests segmentation into datagrams of this many octets (`UDP_SEGMENT`), in addition to the
    /// message `pktinfo`.
    pub(crate) fn segment(len: u16, pktinfo: Option<&Self>) -> Self {
        let segment = Self::message(libc::IPPROTO_UDP, libc::UDP_SEGMENT, &len.to_ne_bytes());
        let Some(pktinfo) = pktinfo else { return segment };
        let (mut both, end) = (*pktinfo, pktinfo.len + segment.len);
        both.bytes[pktinfo.len..end].copy_from_slice(&segment.bytes[..segment.len]);
        both.len = end;
        both
    }

    /// Makes the message in which the kernel reports the segment length of coalesced datagrams.
    #[cfg(test)]
    pub(crate) fn gro_segment(len: libc::c_int) -> Self {
        Self::message(libc::IPPROTO_UDP, libc::UDP_GRO, &len.to_ne_bytes())
    }

    /// Returns the length of each datagram, if the kernel coalesced several (`UDP_GRO`).
    pub(crate) fn segment_len(&self) -> Option<usize> {
        let mut found = None;
        self.for_each(|level, kind, data| {
            if (level, kind) == (libc::IPPROTO_UDP, libc::UDP_GRO)
                && let Some(len) = data.first_chunk()
            {
                found = usize::try_from(libc::c_int::from_ne_bytes(*len)).ok().filter(|len| *len > 0);
            }
        });
        found
    }

    fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Self {
        let mut control = Self::EMPTY;
        let word = size_of::<usize>();
        let len = CMSG_HEADER + data.len();
        control.bytes[..word].copy_from_slice(&len.to_ne_bytes());
        control.bytes[word..word + 4].copy_from_slice(&level.to_ne_bytes());
        control.bytes[word + 4..CMSG_HEADER].copy_from_slice(&kind.to_ne_bytes());
        control.bytes[CMSG_HEADER..len].copy_from_slice(data);
        control.len = len.next_multiple_of(word);
        control
    }

    /// Calls `visit(level, type, data)` for each received control message.
    fn for_each(&self, mut visit: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
        let word = size_of::<usize>();
        let mut rest = &self.bytes[..self.len.min(Self::CAPACITY)];
        while let Some((header, _)) = rest.split_at_checked(CMSG_HEADER) {
            let int = |at: usize| {
                let mut b = [0; 4];
                b.copy_from_slice(&header[at..at + 4]);
                libc::c_int::from_ne_bytes(b)
            };
            let mut len = [0; size_of::<usize>()];
            len.copy_from_slice(&header[..word]);
            let len = usize::from_ne_bytes(len);
            let Some(data) = rest.get(CMSG_HEADER..len) else {
                return;
            };
            visit(int(word), int(word + 4), data);
            rest = rest.get(len.next_multiple_of(word)..).unwrap_or(&[]);
        }
    }

    /// Returns the destination address of a received IPv6 datagram, and the index of the interface
    /// where it arrived (`IPV6_PKTINFO`).
    pub(crate) fn arrival_v6(&self) -> Option<(Ipv6Addr, u32)> {
        let mut found = None;
        self.for_each(|level, kind, data| {
            if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)
                && let Some((address, rest)) = data.split_first_chunk::<16>()
                && let Some(ifindex) = rest.first_chunk()
            {
                found = Some((Ipv6Addr::from(*address), u32::from_ne_bytes(*ifindex)));
            }
        });
        found
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// Returns the bytes in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Records how many bytes the kernel wrote.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators_round_trip_through_the_kernel_layout() {
        let v4 = Locator::udp_v4(Ipv4Addr::new(192, 0, 2, 7), 7411);
        let v6 = Locator::udp_v6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, 2), 65535);
        let a4 = SockAddr::of_locator(&v4, Family::V4).expect("has a port");
        let a6 = SockAddr::of_locator(&v6, Family::V6).expect("has a port");
        assert_eq!((a4.to_locator(), a4.len()), (v4, 16));
        assert_eq!((a6.to_locator(), a6.len()), (v6, 28));
    }

    #[test]
    fn port_must_be_valid() {
        let mut locator = Locator::udp_v4(Ipv4Addr::LOCALHOST, 0);
        assert!(SockAddr::of_locator(&locator, Family::V4).is_none());
        locator.port = 65536;
        assert!(SockAddr::of_locator(&locator, Family::V4).is_none());
        let unspecified = Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 7411);
        assert!(SockAddr::of_locator(&unspecified, Family::V4).is_none());
    }

    #[test]
    fn control_messages_round_trip() {
        let mut control = Control::message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &[1, 0, 0, 0]);
        assert_eq!(control.arrival_v6(), None);
        // A second message after the first.
        let info = Control::pktinfo_v6(3, Ipv6Addr::LOCALHOST);
        let (a, b) = (control.len, info.len);
        control.bytes[a..a + b].copy_from_slice(&info.bytes[..b]);
        control.len = a + b;
        assert_eq!(control.arrival_v6(), Some((Ipv6Addr::LOCALHOST, 3)));
    }

    #[test]
    fn truncated_control_messages_are_ignored() {
        let full = Control::pktinfo_v6(3, Ipv6Addr::LOCALHOST);
        for len in 0..full.len {
            let mut cut = full;
            cut.len = len;
            let complete = len >= CMSG_HEADER + 20;
            assert_eq!(cut.arrival_v6().is_some(), complete, "{len} bytes");
        }
    }
}
