//! The system calls of sockets.
//!
//! Every function is safe to call. The argument is the same throughout: each pointer given to the kernel comes from a
//! Rust reference that outlives the call, with the length of what it points to, and the kernel keeps none of them.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use takt_packet::MacAddress;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// A new socket, not inherited by child processes.
fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers. A result >= 0 is a new descriptor that nobody else owns.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A new AF_XDP socket.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_XDP, libc::SOCK_RAW, 0)
}

/// A new socket that asks for and hears of the machine's network: of the groups in `groups`.
pub(crate) fn route_socket(groups: u32) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::NETLINK_ROUTE)?;
    // SAFETY: all-zero is a valid value of this C structure.
    let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = groups;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` holds `len` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(fd)
}

/// Plain data that the kernel reads or writes as a socket option.
///
/// # Safety
/// Any bytes are a value of the type.
pub(crate) unsafe trait OptionValue: Copy {}
// SAFETY: integers, or structures of integers without a rule about them.
unsafe impl OptionValue for libc::c_int {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_options {}

/// Sets an option of an AF_XDP socket. One with addresses in it (`XDP_UMEM_REG`) is the caller's to keep valid as long as the
/// socket lives; the kernel pins the pages, so it never writes anywhere else.
pub(crate) fn set_xdp_option<T: OptionValue>(fd: BorrowedFd<'_>, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` points to `len` initialised bytes.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, ptr::from_ref(value).cast(), len) })?;
    Ok(())
}

/// Reads an option of an AF_XDP socket. What an older kernel does not know of it is zero.
pub(crate) fn xdp_option<T: OptionValue>(fd: BorrowedFd<'_>, name: libc::c_int) -> io::Result<T> {
    // SAFETY: any bytes are a value of `T`.
    let mut value: T = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut len = size_of::<T>() as libc::socklen_t;
    let at = ptr::from_mut(&mut value).cast();
    // SAFETY: `value` has room for `len` bytes.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, at, &mut len) })?;
    Ok(value)
}

/// Binds an AF_XDP socket to a queue of an interface.
pub(crate) fn bind_xdp(fd: BorrowedFd<'_>, ifindex: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` holds `len` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(())
}

/// Has the kernel look at the transmit ring.
pub(crate) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: nothing is pointed to.
    let sent = unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends bytes through a connected or netlink socket.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `bytes` is valid for its length, for reads.
    let sent = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Receives one message; its own length, even if it did not fit.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: `into` is valid for its length; the kernel may write any bytes there.
    let len = unsafe { libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(len).map_err(|_| io::Error::last_os_error())
}

/// The hardware address of an interface; an error if that is not Ethernet. `any` is any socket of its network namespace.
pub(crate) fn hardware_address(any: BorrowedFd<'_>, name: &CStr) -> io::Result<MacAddress> {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let name = name.to_bytes();
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request reads the name, which ends in a zero, and writes the address to the structure.
    check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFHWADDR as _, ptr::from_mut(&mut request)) })?;
    // SAFETY: the kernel has filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    if address.sa_family != libc::ARPHRD_ETHER && address.sa_family != libc::ARPHRD_LOOPBACK {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface"));
    }
    let octet = |at: usize| address.sa_data[at] as u8;
    Ok(MacAddress([octet(0), octet(1), octet(2), octet(3), octet(4), octet(5)]))
}
