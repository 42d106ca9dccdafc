//! Packet sockets (packet(7)) that send Ethernet frames, or capture the frames of an interface with
//! kernel timestamps.
//!
//! A frame of another socket of this machine is captured when the driver receives it for
//! transmission. A frame from the link is captured when the kernel receives it from the driver.
//! Both timestamps are of CLOCK_REALTIME. Differences between two interfaces of one machine are
//! therefore transit times.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Octets copied to the buffer.
    pub len: usize,
    /// Timestamp of CLOCK_REALTIME, in ns since 1970.
    pub time_ns: u64,
    /// Whether this machine sent the frame.
    pub is_outgoing: bool,
}

/// Packet socket of an interface; see the [module](self).
#[derive(Debug)]
pub struct FrameSocket(OwnedFd);

impl FrameSocket {
    /// Opens a socket that sends over an interface of this thread's network namespace and receives
    /// nothing.
    ///
    /// # Errors
    /// `EPERM`: without CAP_NET_RAW. `ENODEV`: the interface does not exist.
    pub fn sender(index: i32) -> io::Result<Self> {
        socket::open(index, 0).map(Self)
    }

    /// Opens a socket that captures every frame of an interface in both directions. `buffer` is the
    /// size of the receive buffer in octets.
    ///
    /// # Errors
    /// Those of [`sender`](Self::sender). `EPERM`: without CAP_NET_ADMIN.
    pub fn capture(index: i32, buffer: i32) -> io::Result<Self> {
        let socket = socket::open(index, libc::ETH_P_ALL as u16)?;
        socket::set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer)?;
        socket::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket::set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(Self(socket))
    }

    /// Restricts the capture to UDP over IPv4 from this address, without a VLAN tag. Frames
    /// captured before can still be received.
    ///
    /// # Errors
    /// A system call failed.
    pub fn accept_udp_from(&self, source: Ipv4Addr) -> io::Result<()> {
        socket::accept_udp_from(&self.0, source)
    }

    /// Restricts the capture to frames that may carry RTPS: UDP over IPv4 or IPv6, fragments of
    /// IPv6, and the EtherType of Takt, with or without a VLAN tag. Frames captured before can
    /// still be received.
    ///
    /// # Errors
    /// A system call failed.
    pub fn accept_udp(&self) -> io::Result<()> {
        socket::accept_udp(&self.0)
    }

    /// Returns the Ethernet address of the interface.
    ///
    /// # Errors
    /// A system call failed.
    pub fn address(&self) -> io::Result<[u8; 6]> {
        socket::address(&self.0)
    }

    /// Waits until a frame can be received, or until `timeout` has passed. Returns whether a frame
    /// can be received.
    ///
    /// # Errors
    /// A system call failed.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        socket::wait(&self.0, timeout)
    }

    /// Returns the number of frames dropped since the last call because the receive buffer was
    /// full.
    ///
    /// # Errors
    /// A system call failed.
    pub fn take_lost(&self) -> io::Result<u32> {
        socket::lost(&self.0)
    }

    /// Sends a frame, which begins with its destination address.
    ///
    /// # Errors
    /// `ENOBUFS`: the queue of the interface is full. `ENETDOWN`: it is down. `EMSGSIZE`: the frame
    /// is too long.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        socket::send(self.0.as_raw_fd(), frame)
    }

    /// Returns the next captured frame, or `None` if there is none.
    ///
    /// # Errors
    /// `ENETDOWN`: the interface went down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<CapturedFrame>> {
        socket::receive(self.0.as_raw_fd(), buffer)
    }
}

impl AsRawFd for FrameSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// System calls that the standard library does not offer.
mod socket {
    #![allow(unsafe_code)]

    use std::io::{self, ErrorKind};
    use std::net::Ipv4Addr;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::time::Duration;

    use super::CapturedFrame;

    pub(super) fn open(index: i32, protocol: u16) -> io::Result<OwnedFd> {
        // Protocol 0 prevents frames of other interfaces before the socket is bound.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call made a new descriptor that has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain data, for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index;
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is of `len` initialized octets.
        match unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) } {
            0 => Ok(fd),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn set<T: Copy>(fd: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
        let (address, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the address is of `len` initialized octets.
        match unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, address, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Offsets from the start of the Ethernet header, in octets, for frames without a VLAN tag.
    const ETHER_TYPE_AT: u32 = 12;
    const IPV4_PROTOCOL_AT: u32 = 23;
    const IPV4_SOURCE_AT: u32 = 26;
    const IPV6_NEXT_HEADER_AT: u32 = 20;

    /// Returns the classic BPF instruction (linux/filter.h) that loads a field of `size` from the
    /// frame.
    fn load(size: u32, at: u32) -> libc::sock_filter {
        instruction(libc::BPF_LD | libc::BPF_ABS | size, at, (0, 0))
    }

    /// Returns the instruction that skips `equal` instructions if the loaded value is `value`,
    /// otherwise `different`.
    fn compare(value: u32, equal: u8, different: u8) -> libc::sock_filter {
        instruction(libc::BPF_JMP | libc::BPF_JEQ, value, (equal, different))
    }

    /// Returns the instruction that ends the filter: the socket receives `len` octets of the frame,
    /// or drops it if `len` is 0.
    fn end(len: u32) -> libc::sock_filter {
        instruction(libc::BPF_RET | libc::BPF_K, len, (0, 0))
    }

    fn instruction(code: u32, k: u32, (jt, jf): (u8, u8)) -> libc::sock_filter {
        libc::sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
    }

    fn attach(fd: &OwnedFd, filter: &mut [libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Attaches a filter of UDP over IPv4 from one address.
    pub(super) fn accept_udp_from(fd: &OwnedFd, source: Ipv4Addr) -> io::Result<()> {
        let mut filter = [
            load(libc::BPF_H, ETHER_TYPE_AT),
            compare(libc::ETH_P_IP as u32, 0, 5),
            load(libc::BPF_B, IPV4_PROTOCOL_AT),
            compare(libc::IPPROTO_UDP as u32, 0, 3),
            load(libc::BPF_W, IPV4_SOURCE_AT),
            compare(source.into(), 0, 1),
            end(u32::MAX),
            end(0),
        ];
        attach(fd, &mut filter)
    }

    /// Attaches a filter of the protocols that carry RTPS. The kernel removes VLAN tags before the
    /// filter.
    pub(super) fn accept_udp(fd: &OwnedFd) -> io::Result<()> {
        /// Next header of an IPv6 fragment.
        const FRAGMENT: u32 = 44;
        /// EtherType of RTPS on Ethernet without IP.
        const ETHER_TYPE_TAKT: u32 = 0x88b5;
        let mut filter = [
            load(libc::BPF_H, ETHER_TYPE_AT),
            compare(libc::ETH_P_IP as u32, 2, 0),
            compare(libc::ETH_P_IPV6 as u32, 3, 0),
            compare(ETHER_TYPE_TAKT, 5, 6),
            load(libc::BPF_B, IPV4_PROTOCOL_AT),
            compare(libc::IPPROTO_UDP as u32, 3, 4),
            load(libc::BPF_B, IPV6_NEXT_HEADER_AT),
            compare(libc::IPPROTO_UDP as u32, 1, 0),
            compare(FRAGMENT, 0, 1),
            end(u32::MAX),
            end(0),
        ];
        attach(fd, &mut filter)
    }

    pub(super) fn address(fd: &OwnedFd) -> io::Result<[u8; 6]> {
        // SAFETY: plain data, for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is of `len` octets, and both live until the end of the call.
        match unsafe { libc::getsockname(fd.as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &raw mut len) } {
            0 => Ok(address.sll_addr.first_chunk().copied().unwrap_or_default()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn wait(fd: &OwnedFd, timeout: Duration) -> io::Result<bool> {
        let mut wanted = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up, so that a short wait does not return immediately.
        let millis = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: one descriptor.
        match unsafe { libc::poll(&raw mut wanted, 1, millis) } {
            ready if ready >= 0 => Ok(ready > 0),
            _ => Err(io::Error::last_os_error()).or_else(|error| match error.kind() {
                ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            }),
        }
    }

    pub(super) fn lost(fd: &OwnedFd) -> io::Result<u32> {
        // `tpacket_stats`: frames, and dropped frames.
        let mut statistics = [0_u32; 2];
        let mut len = size_of_val(&statistics) as libc::socklen_t;
        let address = std::ptr::from_mut(&mut statistics).cast();
        // SAFETY: the address is of `len` octets, and both live until the end of the call.
        match unsafe {
            libc::getsockopt(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, address, &raw mut len)
        } {
            0 => Ok(statistics[1]),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn send(fd: i32, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the address is of `len` initialized octets.
        match unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), 0) } {
            len if len < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    pub(super) fn receive(fd: i32, buffer: &mut [u8]) -> io::Result<Option<CapturedFrame>> {
        // SAFETY: plain data, for which all zeroes is a value.
        let (mut message, mut from): (libc::msghdr, libc::sockaddr_ll) = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // `u64` has the alignment of `cmsghdr`.
        let mut control = [0_u64; 16];
        message.msg_name = std::ptr::from_mut(&mut from).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: the message points to the buffers above, which live until the end of the
        // function, with their lengths.
        let len = unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) };
        if len < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let is_outgoing = from.sll_pkttype == libc::PACKET_OUTGOING;
        Ok(Some(CapturedFrame { len: len.cast_unsigned(), time_ns: time(&message).unwrap_or(0), is_outgoing }))
    }

    /// Returns the timestamp in the control messages.
    fn time(message: &libc::msghdr) -> Option<u64> {
        // SAFETY: the kernel filled the control messages, and their length.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
        while !header.is_null() {
            // SAFETY: not null, and within the control messages.
            let found = unsafe { &*header };
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                // SAFETY: the kernel writes a `timespec` after a header of this type, at any
                // alignment.
                let time: libc::timespec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
                let (seconds, ns) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
                return seconds.ok()?.checked_mul(1_000_000_000)?.checked_add(ns.ok()?); // tidy-allow(dropped-cause): no time before 1970
            }
            // SAFETY: `header` is one of this message.
            header = unsafe { libc::CMSG_NXTHDR(message, header) };
        }
        None
    }
}
