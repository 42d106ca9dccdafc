//! UDP socket: creation, buffer sizes, binding, group membership.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use takt_wire::Locator;

use super::address::{Family, SockAddr};
use super::config::UdpConfig;
use super::priority::{Priority, UNPRIVILEGED_MAX};
use super::syscall;
use crate::{Interface, TransportError, Warning};

/// An open UDP socket.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    pub(super) family: Family,
    /// Bound address, which may be unspecified, and port.
    pub(super) local: Locator,
}

impl Socket {
    fn new(family: Family, config: &UdpConfig) -> io::Result<Self> {
        let socket = Self { fd: syscall::udp_socket(family)?, family, local: Locator::INVALID };
        let ttl = libc::c_int::from(config.multicast_ttl);
        match family {
            Family::V4 => {
                socket.set(libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, ttl)?;
                socket.set(libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, 1)?;
            }
            Family::V6 => {
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, ttl)?;
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP, 1)?;
            }
        }
        Ok(socket)
    }

    /// Returns the number of datagrams that the kernel dropped because the receive buffer was full.
    /// Queried on demand (`SO_MEMINFO`), because a report with each datagram (`SO_RXQ_OVFL`) costs
    /// time for every one.
    pub(super) fn drops(&self) -> u32 {
        // Fails only on Linux before 4.12.
        syscall::drops(self.fd.as_fd()).unwrap_or(0)
    }

    /// Opens a socket bound to `address` with exclusive use of the port; port 0 lets the kernel
    /// choose.
    pub(super) fn unicast(address: IpAddr, port: u16, config: &UdpConfig) -> io::Result<Self> {
        let mut socket = Self::new(family(address), config)?;
        socket.bind(address, port)?;
        Ok(socket)
    }

    /// Opens a socket bound to `address` with the port of `former`, which is still open; the port
    /// is exclusive once `former` is closed. Closing `former` first would not work: a child process
    /// holds a copy of it between `fork` and `exec`, and another process may take a port that is
    /// free for a moment.
    pub(super) fn replacing(former: &Self, address: IpAddr, config: &UdpConfig) -> io::Result<Self> {
        let mut socket = Self::new(family(address), config)?;
        former.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        socket.bind(address, former.port())?;
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 0)?;
        Ok(socket)
    }

    /// Opens a socket for `group` that shares its port with other processes. It is not yet a member
    /// of the group on any interface.
    pub(super) fn multicast(group: IpAddr, port: u16, config: &UdpConfig) -> io::Result<Self> {
        let mut socket = Self::new(family(group), config)?;
        // INTEROP(CycloneDDS 0.10.2): it sets SO_REUSEPORT and SO_REUSEADDR, and the latter on both
        // sides is enough. Takt must not set both: on Linux 6.18, if only one socket is a member at
        // the interface, the kernel delivers a multicast datagram to any one of the sockets that
        // share by SO_REUSEPORT.
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        match group {
            IpAddr::V4(_) => {
                // Only datagrams to groups that *this* socket joined, at the interface where it
                // joined.
                socket.set(libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
                // Bound to the group, so unicast to the port goes to other sockets.
                socket.bind(group, port)?;
            }
            IpAddr::V6(_) => {
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0)?;
                // Binding to a link-local group would require a fixed interface.
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
                socket.bind(Ipv6Addr::UNSPECIFIED.into(), port)?;
            }
        }
        Ok(socket)
    }

    fn bind(&mut self, address: IpAddr, port: u16) -> io::Result<()> {
        let address = match address {
            IpAddr::V4(ip) => SockAddr::v4(ip.octets(), port),
            IpAddr::V6(ip) => SockAddr::v6(ip.octets(), port, 0),
        };
        syscall::bind(self.fd.as_fd(), &address)?;
        self.local = syscall::local_address(self.fd.as_fd())?.to_locator();
        Ok(())
    }

    /// Joins `group` at the interface; succeeds if it is a member already.
    pub(super) fn join(&self, group: IpAddr, interface: &Interface) -> io::Result<()> {
        let joined = match group {
            IpAddr::V4(group) => {
                let request = libc::ip_mreqn {
                    imr_multiaddr: in_addr(group),
                    imr_address: in_addr(Ipv4Addr::UNSPECIFIED),
                    imr_ifindex: interface.index as libc::c_int,
                };
                let (level, name) = (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP);
                syscall::set_option(self.fd.as_fd(), level, name, &request)
            }
            IpAddr::V6(group) => {
                let request = libc::ipv6_mreq {
                    ipv6mr_multiaddr: libc::in6_addr { s6_addr: group.octets() },
                    ipv6mr_interface: interface.index,
                };
                let (level, name) = (libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP);
                syscall::set_option(self.fd.as_fd(), level, name, &request)
            }
        };
        match joined {
            Err(e) if e.raw_os_error() == Some(libc::EADDRINUSE) => Ok(()),
            joined => joined,
        }
    }

    /// Leaves `group` at the interface of this index; without effect if it is no member.
    pub(super) fn leave(&self, group: IpAddr, ifindex: u32) {
        let result = match group {
            IpAddr::V4(group) => {
                let request = libc::ip_mreqn {
                    imr_multiaddr: in_addr(group),
                    imr_address: in_addr(Ipv4Addr::UNSPECIFIED),
                    imr_ifindex: ifindex as libc::c_int,
                };
                syscall::set_option(self.fd.as_fd(), libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP, &request)
            }
            IpAddr::V6(group) => {
                let request = libc::ipv6_mreq {
                    ipv6mr_multiaddr: libc::in6_addr { s6_addr: group.octets() },
                    ipv6mr_interface: ifindex,
                };
                syscall::set_option(self.fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_DROP_MEMBERSHIP, &request)
            }
        };
        drop(result);
    }

    /// Checks that multicast to `group` can be sent through the interface. Only uncertain for IPv6
    /// through loopback, which needs a route that does not exist by default. Queries the routing
    /// table without sending.
    pub(super) fn probe_route(group: IpAddr, interface: &Interface, config: &UdpConfig) -> io::Result<()> {
        let (IpAddr::V6(group), true) = (group, interface.loopback) else {
            return Ok(());
        };
        let socket = Self::new(Family::V6, config)?;
        let to = SockAddr::v6(group.octets(), 7400, interface.index);
        syscall::connect(socket.as_fd(), &to)
    }

    /// Sets the priority of all outgoing datagrams.
    pub(super) fn set_priority(&self, priority: Priority, warnings: &mut Warnings) -> io::Result<()> {
        match self.family {
            Family::V4 => self.set(libc::IPPROTO_IP, libc::IP_TOS, priority.tos())?,
            Family::V6 => self.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, priority.tos())?,
        }
        // After IP_TOS, which sets SO_PRIORITY too.
        let wanted = priority.so_priority;
        let set = |value: u8| self.set(libc::SOL_SOCKET, libc::SO_PRIORITY, value.into());
        match set(wanted) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                warnings.add(Warning {
                    what: format!("SO_PRIORITY {wanted} refused, {UNPRIVILEGED_MAX} set instead"),
                    remedy: "run with CAP_NET_ADMIN, or use a TRANSPORT_PRIORITY below 56".into(),
                });
                set(UNPRIVILEGED_MAX.min(wanted))
            }
            other => other,
        }
    }

    /// Requests buffers of these sizes; smaller ones are a warning, not an error.
    pub(super) fn size_buffers(&self, config: &UdpConfig, warnings: &mut Warnings) {
        self.size_buffer(&RECEIVE, config.receive_buffer_bytes, warnings);
        self.size_buffer(&SEND, config.send_buffer_bytes, warnings);
    }

    /// Limits the datagrams in the queues of network interfaces. The socket is writable (`POLLOUT`)
    /// while they have fewer than `bytes`, and accepts datagrams up to twice as many.
    pub(super) fn limit_queue(&self, bytes: usize, warnings: &mut Warnings) {
        self.size_buffer(&SEND, bytes, warnings);
    }

    fn size_buffer(&self, kind: &BufferKind, requested: usize, warnings: &mut Warnings) {
        // The kernel doubles the requested size to account for its overhead.
        let value = libc::c_int::try_from(requested).unwrap_or(libc::c_int::MAX / 2);
        let granted = |option| {
            // A refusal shows in the granted size, which is what counts.
            let _ = self.set(libc::SOL_SOCKET, option, value);
            let now = syscall::int_option(self.fd.as_fd(), libc::SOL_SOCKET, kind.option);
            now.map_or(0, |bytes| bytes.unsigned_abs() as usize / 2)
        };
        let mut have = granted(kind.option);
        if have < requested {
            have = granted(kind.force);
        }
        if have < requested {
            warnings.add(Warning {
                what: format!("{} buffer of {have} bytes instead of {requested}", kind.name),
                remedy: format!("as root: sysctl -w {}={requested}", kind.sysctl),
            });
        }
    }

    fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        syscall::set_option(self.fd.as_fd(), level, name, &value)
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn port(&self) -> u16 {
        self.local.port as u16
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

struct BufferKind {
    name: &'static str,
    option: libc::c_int,
    force: libc::c_int,
    sysctl: &'static str,
}

const RECEIVE: BufferKind =
    BufferKind { name: "receive", option: libc::SO_RCVBUF, force: libc::SO_RCVBUFFORCE, sysctl: "net.core.rmem_max" };

const SEND: BufferKind =
    BufferKind { name: "send", option: libc::SO_SNDBUF, force: libc::SO_SNDBUFFORCE, sysctl: "net.core.wmem_max" };

/// Collected warnings without duplicates.
#[derive(Debug, Default)]
pub(super) struct Warnings(Vec<Warning>);

impl Warnings {
    pub(super) fn add(&mut self, warning: Warning) {
        if !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    pub(super) fn as_slice(&self) -> &[Warning] {
        &self.0
    }
}

/// Makes a [`TransportError`] about a socket.
pub(super) fn socket_error(op: &'static str, address: IpAddr, port: u16) -> impl Fn(io::Error) -> TransportError {
    move |source| TransportError::new(op, std::net::SocketAddr::new(address, port), source)
}

fn family(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}

fn in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_reach_the_socket() {
        let config = UdpConfig::new(0);
        for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let socket = Socket::unicast(address, 0, &config).expect("a port is free");
            let mut warnings = Warnings::default();
            for (value, so_priority) in [(0, 0), (46, 5), (48, 6), (1, 0), (63, 7)] {
                let priority = Priority::of(value);
                socket.set_priority(priority, &mut warnings).expect("the socket option is set");
                let level = libc::SOL_SOCKET;
                let now = syscall::int_option(socket.as_fd(), level, libc::SO_PRIORITY);
                // Without the privilege for 7, there is a warning, and 6 is set.
                let refused = libc::c_int::from(so_priority == 7 && !warnings.as_slice().is_empty());
                assert_eq!(now.expect("the socket option is set"), so_priority - refused);
            }
        }
    }

    #[test]
    fn equal_warnings_are_collected_once() {
        let warning = |what: &str| Warning { what: what.into(), remedy: "none".into() };
        let mut warnings = Warnings::default();
        for what in ["a", "b", "a"] {
            warnings.add(warning(what));
        }
        assert_eq!(warnings.as_slice(), [warning("a"), warning("b")]);
    }
}
