//! Interrupt coalescing, as `ethtool -c` and `-C`: by the family `ethtool` of generic netlink (linux/ethtool_netlink.h).
//!
//! The kernel tells only what the driver has, and one value is set without the others, with the driver's own words where it refuses: the
//! structure of the ioctl tells neither. Times in microseconds.

use std::io;

use takt_netlink::{GENERIC_LEN, Netlink, code, find, number, put, put_nested, put_text};

const GET: u8 = 19;
const SET: u8 = 20;
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;

/// One value: its attribute, and whether it is a switch of one octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) attribute: u16,
    pub(crate) is_switch: bool,
}

/// The family, and the beginning of a message about an interface.
fn begin(command: u8, interface: &str) -> io::Result<(Netlink, u16, Vec<u8>)> {
    let mut generic = Netlink::generic()?;
    let family = generic.family("ethtool").map_err(|why| match code(&why) {
        Some(libc::ENOENT) => io::Error::new(io::ErrorKind::Unsupported, "this kernel has no ethtool by netlink"),
        _ => why,
    })?;
    let mut header = Vec::new();
    put_text(&mut header, HEADER_NAME, interface);
    let mut body = vec![command, 1, 0, 0];
    put_nested(&mut body, HEADER, &header);
    Ok((generic, family, body))
}

/// What the driver has.
///
/// # Errors
/// `EOPNOTSUPP`: the driver has no such value; `ENODEV`: there is no such interface.
pub(crate) fn read(interface: &str, value: Value) -> io::Result<u32> {
    let (mut generic, family, body) = begin(GET, interface)?;
    let answer = generic.get(family, &body)?;
    let octets = answer.get(GENERIC_LEN..).and_then(|rest| find(rest, value.attribute));
    let found = octets.and_then(|octets| match octets {
        [octet] => Some(u32::from(*octet)),
        octets => number(octets),
    });
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Sets one value.
///
/// # Errors
/// As of [`read`]; a value that the driver does not take.
pub(crate) fn write(interface: &str, value: Value, to: u32) -> io::Result<()> {
    let (mut generic, family, mut body) = begin(SET, interface)?;
    match value.is_switch {
        true => put(&mut body, value.attribute, &[u8::from(to != 0)]),
        false => put(&mut body, value.attribute, &to.to_ne_bytes()),
    }
    generic.order(family, 0, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RX_USECS: Value = Value { attribute: 2, is_switch: false };

    /// Loopback has no driver with interrupts; an interface that is not there has no driver at all.
    #[test]
    fn what_the_driver_has_not_is_told() {
        assert_eq!(read("lo", RX_USECS).map_err(|e| code(&e)), Err(Some(libc::EOPNOTSUPP)));
        assert_eq!(read("there-is-none", RX_USECS).map_err(|e| code(&e)), Err(Some(libc::ENODEV)));
        let refused = write("lo", RX_USECS, 5).map_err(|e| code(&e));
        assert!(matches!(refused, Err(Some(libc::EOPNOTSUPP | libc::EPERM))), "{refused:?}");
    }
}
