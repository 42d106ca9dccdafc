//! Driver settings of a network interface as in ethtool(8): by ioctl, which every driver supports,
//! and by netlink where the ioctl is not sufficient.
//!
//! | module | content |
//! |---|---|
//! | [`numbers`] | numbers of queues, features, and all numeric parameters by name |
//! | [`coalescing`] | interrupt coalescing |
//! | [`rules`] | rules that assign flows to a queue, as `ethtool -N` |
//! | [`indirection`] | the queues over which all other flows are distributed, as `ethtool -X` |

#![allow(unsafe_code)]

mod coalescing;
pub(crate) mod indirection;
pub(crate) mod numbers;
pub(crate) mod rules;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use numbers::Parameter;

/// ioctl number of ethtool, from linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Sends a command to a driver: its number and data. The reply replaces the command.
pub(crate) type Driver<'a> = dyn Fn(&str, &mut [u8]) -> io::Result<()> + 'a;

/// Longest reply of a driver to a command without a count, in octets. It is the minimum
/// size of a command buffer.
const ROOM: usize = 256;

/// Sends a command to a driver of this machine.
pub(crate) fn driver(interface: &str, command: &mut [u8]) -> io::Result<()> {
    debug_assert!(command.len() >= ROOM, "the buffer is large enough for the driver");
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet remains zero.
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no interface has this name"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the request lives during the call. The buffer has at least `ROOM` octets, which
    // exceeds every structure of the commands in these modules, plus the octets that its own count
    // of entries requires.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns a command buffer with `more` additional octets.
fn command(number: u32, more: usize) -> Vec<u8> {
    let mut octets = vec![0; ROOM + more];
    put(&mut octets, 0, number);
    octets
}

/// Returns the 32-bit number at an offset of a structure.
fn get(octets: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*octets[at..].first_chunk().expect("the offset is within the structure"))
}

fn put(octets: &mut [u8], at: usize, number: u32) {
    octets[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}
