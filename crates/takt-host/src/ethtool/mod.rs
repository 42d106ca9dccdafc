//! What ethtool(8) asks of a network interface's driver: by ioctl, which every driver knows, and by netlink what that cannot tell.
//!
//! | module | what it is |
//! |---|---|
//! | [`numbers`] | numbers of queues, features, and by name whatever is a number |
//! | [`coalescing`] | when the driver raises an interrupt |
//! | [`rules`] | rules that put flows to a queue, as `ethtool -N` |
//! | [`spread`] | over which queues everything else is spread, as `ethtool -X` |

#![allow(unsafe_code)]

mod coalescing;
pub(crate) mod numbers;
pub(crate) mod rules;
pub(crate) mod spread;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub use numbers::Parameter;

/// From linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Says something to a driver: a command's number, and what goes with it. The answer stands in its place.
pub(crate) type Driver<'a> = dyn Fn(&str, &mut [u8]) -> io::Result<()> + 'a;

/// The longest answer that a driver gives unasked, in octets: a command has so much room at least.
const ROOM: usize = 256;

/// The drivers of this machine.
pub(crate) fn driver(interface: &str, command: &mut [u8]) -> io::Result<()> {
    debug_assert!(command.len() >= ROOM, "the driver writes no further");
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet stays zero.
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no interface has such a name"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: no pointers. A result >= 0 is a new descriptor that nobody else owns.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the request lives during the call. What it points to has `ROOM` octets, which is more than any structure of the commands in
    // these modules, or as many more as its own count of entries says.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Room for a command with so many octets after it.
fn command(number: u32, more: usize) -> Vec<u8> {
    let mut octets = vec![0; ROOM + more];
    put(&mut octets, 0, number);
    octets
}

/// A number of 32 bits within a structure.
fn get(octets: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*octets[at..].first_chunk().expect("it is within the structure"))
}

fn put(octets: &mut [u8], at: usize, number: u32) {
    octets[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}
