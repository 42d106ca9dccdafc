//! Links, addresses and routes of interfaces (rtnetlink(7); linux/if_link.h, linux/if_addr.h,
//! linux/rtnetlink.h).
//!
//! An interface is identified by its index, which [`interface_index`](crate::interface_index)
//! returns. Indices and names are those of the network namespace of the socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{NEW, Netlink, find, number, put, put_nested, put_text};

pub(crate) const NEW_LINK: u16 = 16;
pub(crate) const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;

const LINK_ADDRESS: u16 = 1;
pub(crate) const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
pub(crate) const LINK_INFO: u16 = 18;
const LINK_STATISTICS: u16 = 23;
const LINK_NAMESPACE: u16 = 28;
const LINK_SEND_QUEUES: u16 = 31;
const LINK_RECEIVE_QUEUES: u16 = 32;
const LINK_XDP: u16 = 43;
const XDP_PROGRAM: u16 = 1;
const XDP_FLAGS: u16 = 3;
/// XDP modes: generic and driver (`XDP_FLAGS_SKB_MODE`, `XDP_FLAGS_DRV_MODE`).
const XDP_MODES: [u32; 2] = [0x2, 0x4];
const NO_PROGRAM: i32 = -1;
pub(crate) const INFO_KIND: u16 = 1;
pub(crate) const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const UP: u32 = 0x1;
const RUNNING: u32 = 0x40;
const MULTICAST: u32 = 0x1000;

const LOCAL: u16 = 2;
const ADDRESS: u16 = 1;
const BROADCAST: u16 = 4;
/// Flag of an address without duplicate address detection.
const NO_DETECTION: u8 = 0x02;

const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_LINK: u8 = 253;
const UNICAST: u8 = 1;

/// End of a veth(4) pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Name of the interface, at most 15 octets.
    pub name: &'a str,
    /// Network namespace in which the interface is created.
    pub namespace: BorrowedFd<'a>,
    /// Hardware address. `None` for a random one.
    pub mac: Option<[u8; 6]>,
    /// MTU in octets.
    pub mtu: u32,
    /// Number of transmit queues, and of receive queues. `None` uses one of each.
    pub queues: Option<u32>,
}

/// Frames and octets that an interface has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames received.
    pub received_frames: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Octets received, from the destination address to the last octet of the payload.
    pub received_octets: u64,
    /// Octets sent, counted in the same way.
    pub sent_octets: u64,
}

impl VethEnd<'_> {
    /// Returns `ifinfomsg` and the attributes of this end.
    fn message(&self) -> Vec<u8> {
        let mut body = header(0, 0, 0);
        put_text(&mut body, LINK_NAME, self.name);
        put(&mut body, LINK_MTU, &self.mtu.to_ne_bytes());
        put(&mut body, LINK_NAMESPACE, &self.namespace.as_raw_fd().to_ne_bytes());
        if let Some(mac) = self.mac {
            put(&mut body, LINK_ADDRESS, &mac);
        }
        if let Some(queues) = self.queues {
            put(&mut body, LINK_SEND_QUEUES, &queues.to_ne_bytes());
            put(&mut body, LINK_RECEIVE_QUEUES, &queues.to_ne_bytes());
        }
        body
    }
}

impl Netlink {
    /// Creates a veth pair. Each end is in its namespace from the start and never in another one.
    ///
    /// # Errors
    /// `EEXIST`: an interface of this name exists. `EINVAL`: too many queues. `EPERM`: not root.
    pub fn add_veth(&mut self, ends: [&VethEnd<'_>; 2]) -> io::Result<()> {
        let mut data = Vec::new();
        put(&mut data, VETH_PEER, &ends[1].message());
        let mut info = Vec::new();
        put_text(&mut info, INFO_KIND, "veth");
        put(&mut info, INFO_DATA, &data);
        let mut body = ends[0].message();
        put(&mut body, LINK_INFO, &info);
        self.request(NEW_LINK, NEW, &body)
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EPERM`: not root.
    pub fn set_up(&mut self, index: i32, is_up: bool) -> io::Result<()> {
        self.request(NEW_LINK, 0, &header(index, if is_up { UP } else { 0 }, UP))
    }

    /// Enables or disables multicast on an interface. The kernel creates the loopback interface
    /// without multicast.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EPERM`: not root.
    pub fn set_multicast(&mut self, index: i32, is_on: bool) -> io::Result<()> {
        self.request(NEW_LINK, 0, &header(index, if is_on { MULTICAST } else { 0 }, MULTICAST))
    }

    /// Reports whether an interface is up and has a carrier. Since Linux 6.8, the query also makes
    /// the kernel handle a change of the carrier immediately. Otherwise it does so once a second.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn is_running(&mut self, index: i32) -> io::Result<bool> {
        let reply = self.get(GET_LINK, &header(index, 0, 0))?;
        let flags = reply.get(8..).and_then(number).ok_or(io::ErrorKind::InvalidData)?;
        Ok(flags & (UP | RUNNING) == UP | RUNNING)
    }

    /// Returns the counters of an interface since its creation.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `InvalidData`: the kernel returns no counters.
    pub fn counters(&mut self, index: i32) -> io::Result<LinkCounters> {
        let reply = self.get(GET_LINK, &header(index, 0, 0))?;
        // `rtnl_link_stats64`: frames received and sent, octets received and sent, 64 bits each.
        let statistics = reply.get(HEADER_LEN..).and_then(|attributes| find(attributes, LINK_STATISTICS));
        let at = |field: usize| Some(u64::from_ne_bytes(*statistics?.get(8 * field..)?.first_chunk()?));
        let counters = || {
            let [received_frames, sent_frames] = [at(0)?, at(1)?];
            let [received_octets, sent_octets] = [at(2)?, at(3)?];
            Some(LinkCounters { received_frames, sent_frames, received_octets, sent_octets })
        };
        counters().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Detaches XDP programs from an interface, in both modes.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EBUSY`: a process holds the program by a BPF link.
    /// `EPERM`: not root.
    pub fn detach_xdp(&mut self, index: i32) -> io::Result<()> {
        for mode in XDP_MODES {
            let mut xdp = Vec::new();
            put(&mut xdp, XDP_PROGRAM, &NO_PROGRAM.to_ne_bytes());
            put(&mut xdp, XDP_FLAGS, &mode.to_ne_bytes());
            let mut body = header(index, 0, 0);
            put_nested(&mut body, LINK_XDP, &xdp);
            self.request(NEW_LINK, 0, &body)?;
        }
        Ok(())
    }

    /// Adds an address with its network to an interface.
    ///
    /// # Errors
    /// `EEXIST`: the interface has the address. `EINVAL`: the prefix is too long. `EPERM`: not
    /// root.
    pub fn add_address(&mut self, index: i32, address: IpAddr, prefix_len: u8) -> io::Result<()> {
        let (family, flags) = match address {
            IpAddr::V4(_) => (libc::AF_INET, 0),
            IpAddr::V6(_) => (libc::AF_INET6, NO_DETECTION),
        };
        let mut body = vec![family as u8, prefix_len, flags, 0];
        body.extend(index.to_ne_bytes());
        let octets = octets(address);
        put(&mut body, LOCAL, &octets);
        put(&mut body, ADDRESS, &octets);
        if let IpAddr::V4(address) = address
            && prefix_len < 31
        {
            let broadcast = u32::from(address) | u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            put(&mut body, BROADCAST, &broadcast.to_be_bytes());
        }
        self.request(NEW_ADDRESS, NEW, &body)
    }

    /// Adds a route to a network, or to a range of multicast groups, over an interface without a
    /// gateway.
    ///
    /// # Errors
    /// `EEXIST`: the route exists. `ENETDOWN`: the interface is down. `EPERM`: not root.
    pub fn add_route(&mut self, index: i32, destination: IpAddr, prefix_len: u8) -> io::Result<()> {
        let family = if destination.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut body = vec![family as u8, prefix_len, 0, 0, TABLE_MAIN, PROTOCOL_BOOT, SCOPE_LINK, UNICAST];
        body.extend([0; 4]);
        put(&mut body, DESTINATION, &octets(destination));
        put(&mut body, INTERFACE, &index.to_ne_bytes());
        self.request(NEW_ROUTE, NEW, &body)
    }
}

/// Length of `ifinfomsg`, in octets.
pub(crate) const HEADER_LEN: usize = 16;

/// Returns `ifinfomsg` with the flags to set and the mask of changed flags.
pub(crate) fn header(index: i32, flags: u32, changed: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend(changed.to_ne_bytes());
    body
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
