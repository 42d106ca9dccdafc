//! System calls of AF_PACKET sockets (`packet(7)`).
//!
//! Every function is safe to call. The argument is the same throughout: each pointer given to the
//! kernel comes from a Rust reference that outlives the call, with the length of its referent, and
//! the kernel keeps none of them.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use takt_packet::MacAddress;

use super::filter::Instruction;
use crate::udp::syscall::{OptionValue, check, set_option};

impl OptionValue for libc::tpacket_req {}
impl OptionValue for libc::packet_mreq {}

/// Absent from `libc`: `linux/if_packet.h`.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Creates a socket that receives nothing until it is bound. Needs CAP_NET_RAW.
pub(super) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Receives frames of an EtherType from an interface from now on, and sends to it. With `None`,
/// receives frames of all types, except outgoing ones.
pub(super) fn bind(fd: BorrowedFd<'_>, ifindex: u32, ether_type: Option<u16>) -> io::Result<()> {
    if ether_type.is_none() {
        set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1)?;
    }
    // SAFETY: all-zero is a valid value of this C structure.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ether_type.unwrap_or(libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(ifindex).map_err(|_| io::ErrorKind::InvalidInput)?;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` holds `len` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(())
}

/// Replaces the filter of the socket.
pub(super) fn attach_filter(fd: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let mut code: Vec<libc::sock_filter> =
        program.iter().map(|(code, jt, jf, k)| libc::sock_filter { code: *code, jt: *jt, jf: *jf, k: *k }).collect();
    let len = u16::try_from(code.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: code.as_mut_ptr() };
    let (at, size) = (ptr::from_ref(&program).cast(), size_of_val(&program) as libc::socklen_t);
    // SAFETY: `program` holds the address and length of `code`, and the kernel copies it during the
    // call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, at, size) })?;
    Ok(())
}

/// Joins or leaves a hardware multicast group at the interface.
pub(super) fn set_membership(fd: BorrowedFd<'_>, ifindex: u32, group: MacAddress, is_member: bool) -> io::Result<()> {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&group.0);
    let request = libc::packet_mreq {
        mr_ifindex: i32::try_from(ifindex).map_err(|_| io::ErrorKind::InvalidInput)?,
        mr_type: libc::PACKET_MR_MULTICAST as u16,
        mr_alen: 6,
        mr_address: address,
    };
    let option = if is_member { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
    set_option(fd, libc::SOL_PACKET, option, &request)
}

/// Returns the number of frames dropped at a full ring since the last call.
pub(super) fn take_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of_val(&statistics) as libc::socklen_t;
    let at = ptr::from_mut(&mut statistics).cast();
    // SAFETY: `statistics` has room for `len` bytes; any bytes make two integers.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, at, &mut len) })?;
    Ok(statistics.tp_drops)
}

/// Sends the queued frames of the transmit ring.
pub(super) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is pointed to.
    let sent = unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends a frame on a socket without a transmit ring.
pub(super) fn send(fd: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: `frame` is valid for its length, for reads.
    let sent = unsafe { libc::send(fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes an interface request for this name.
fn request(name: &CStr) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let name = name.to_bytes();
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Returns the index of an interface. `any` is any socket of its network namespace.
pub(super) fn interface_index(any: BorrowedFd<'_>, name: &CStr) -> io::Result<u32> {
    let mut request = request(name)?;
    // SAFETY: the request reads the name, which ends in a zero, and writes the index to the
    // structure.
    check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFINDEX as _, ptr::from_mut(&mut request)) })?;
    // SAFETY: the kernel has filled in this member of the union.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    u32::try_from(index).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns the hardware address of an interface; an error if it is not Ethernet. `any` is any
/// socket of its network namespace.
pub(super) fn hardware_address(any: BorrowedFd<'_>, name: &CStr) -> io::Result<MacAddress> {
    let mut request = request(name)?;
    // SAFETY: the request reads the name, which ends in a zero, and writes the address to the
    // structure.
    check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFHWADDR as _, ptr::from_mut(&mut request)) })?;
    // SAFETY: the kernel has filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    if address.sa_family != libc::ARPHRD_ETHER {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface"));
    }
    let octet = |at: usize| address.sa_data[at] as u8;
    Ok(MacAddress([octet(0), octet(1), octet(2), octet(3), octet(4), octet(5)]))
}
