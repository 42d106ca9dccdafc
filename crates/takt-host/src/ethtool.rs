//! What ethtool(8) asks of a network interface's driver: interrupt coalescing and the numbers of queues. By ioctl, since that needs
//! no library and every driver knows it.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// From linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// A structure of ethtool: a command, and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Structure {
    get: u32,
    set: u32,
    /// Of numbers, the command included.
    len: usize,
}

const COALESCE: Structure = Structure { get: 0x0e, set: 0x0f, len: 23 };
const CHANNELS: Structure = Structure { get: 0x3c, set: 0x3d, len: 9 };

/// The longest of them.
const LEN_MAX: usize = 23;

/// A number that a driver keeps for an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameter(usize);

/// Names, the structure that each is in, and where.
const PARAMETERS: [(&str, Structure, usize); 9] = [
    ("rx-usecs", COALESCE, 1),
    ("rx-frames", COALESCE, 2),
    ("tx-usecs", COALESCE, 5),
    ("tx-frames", COALESCE, 6),
    ("adaptive-rx", COALESCE, 10),
    ("adaptive-tx", COALESCE, 11),
    ("rx-channels", CHANNELS, 5),
    ("tx-channels", CHANNELS, 6),
    ("combined-channels", CHANNELS, 8),
];

impl Parameter {
    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        PARAMETERS.iter().position(|(known, _, _)| *known == name).map(Self)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PARAMETERS[self.0].0)
    }
}

/// What an interface has.
pub(crate) fn read(interface: &str, parameter: Parameter) -> io::Result<u32> {
    let (_, structure, at) = PARAMETERS[parameter.0];
    Ok(ask(interface, structure)?[at])
}

/// Changes one number, and leaves the others of its structure as they are.
pub(crate) fn write(interface: &str, parameter: Parameter, value: u32) -> io::Result<()> {
    let (_, structure, at) = PARAMETERS[parameter.0];
    let mut numbers = ask(interface, structure)?;
    if numbers[at] == value {
        return Ok(());
    }
    (numbers[0], numbers[at]) = (structure.set, value);
    call(interface, &mut numbers)
}

fn ask(interface: &str, structure: Structure) -> io::Result<[u32; LEN_MAX]> {
    debug_assert!(structure.len <= LEN_MAX, "the kernel writes no further");
    let mut numbers = [0; LEN_MAX];
    numbers[0] = structure.get;
    call(interface, &mut numbers)?;
    Ok(numbers)
}

fn call(interface: &str, numbers: &mut [u32; LEN_MAX]) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet stays zero.
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no interface has such a name"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = numbers.as_mut_ptr().cast();
    // SAFETY: no pointers. A result >= 0 is a new descriptor that nobody else owns.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the request lives during the call, and what it points to is as long as the longest structure of the commands above.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
