//! Interrupt coalescing as by `ethtool -c` and `-C`, over the generic netlink family `ethtool`
//! (linux/ethtool_netlink.h).
//!
//! The kernel reports only the parameters that the driver supports. One parameter is set without
//! the others, and a refusal includes the driver's message. The ioctl offers neither. Times are in
//! microseconds.

use std::io;

use takt_netlink::{GENERIC_LEN, Netlink, code, find, number, put, put_nested, put_text};

const GET: u8 = 19;
const SET: u8 = 20;
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;

/// Parameter: its attribute, and whether it is a flag of one octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) attribute: u16,
    pub(crate) is_switch: bool,
}

/// Returns the family and the beginning of a message about an interface.
fn begin(command: u8, interface: &str) -> io::Result<(Netlink, u16, Vec<u8>)> {
    let mut generic = Netlink::generic()?;
    let family = generic.family("ethtool").map_err(|why| match code(&why) {
        Some(libc::ENOENT) => {
            io::Error::new(io::ErrorKind::Unsupported, "this kernel does not support ethtool by netlink")
        }
        _ => why,
    })?;
    let mut header = Vec::new();
    put_text(&mut header, HEADER_NAME, interface);
    let mut body = vec![command, 1, 0, 0];
    put_nested(&mut body, HEADER, &header);
    Ok((generic, family, body))
}

/// Reads one parameter.
///
/// # Errors
/// `EOPNOTSUPP` if the driver does not support the parameter, `ENODEV` if the interface does not
/// exist.
pub(crate) fn read(interface: &str, value: Value) -> io::Result<u32> {
    let (mut generic, family, body) = begin(GET, interface)?;
    let reply = generic.get(family, &body)?;
    let octets = reply.get(GENERIC_LEN..).and_then(|rest| find(rest, value.attribute));
    let found = octets.and_then(|octets| match octets {
        [octet] => Some(u32::from(*octet)),
        octets => number(octets),
    });
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Sets one parameter.
///
/// # Errors
/// Those of [`read`], and a value that the driver refuses.
pub(crate) fn write(interface: &str, value: Value, to: u32) -> io::Result<()> {
    let (mut generic, family, mut body) = begin(SET, interface)?;
    match value.is_switch {
        true => put(&mut body, value.attribute, &[u8::from(to != 0)]),
        false => put(&mut body, value.attribute, &to.to_ne_bytes()),
    }
    generic.request(family, 0, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RX_USECS: Value = Value { attribute: 2, is_switch: false };

    /// Loopback has no driver with interrupts, and a missing interface has no driver.
    #[test]
    fn unsupported_parameter_and_missing_interface_are_errors() {
        assert_eq!(read("lo", RX_USECS).map_err(|e| code(&e)), Err(Some(libc::EOPNOTSUPP)));
        assert_eq!(read("there-is-none", RX_USECS).map_err(|e| code(&e)), Err(Some(libc::ENODEV)));
        let refused = write("lo", RX_USECS, 5).map_err(|e| code(&e));
        assert!(matches!(refused, Err(Some(libc::EOPNOTSUPP | libc::EPERM))), "{refused:?}");
    }
}
