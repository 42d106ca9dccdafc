//! Static entries of the neighbor tables (linux/neighbour.h).

use std::io;
use std::net::IpAddr;

use crate::link::octets;
use crate::{CREATE_OR_REPLACE, Netlink, put};

const NEW_NEIGHBOR: u16 = 28;
const ADDRESS: u16 = 1;
const HARDWARE_ADDRESS: u16 = 2;
const PERMANENT: u16 = 0x80;

impl Netlink {
    /// Adds a permanent neighbor entry with its hardware address at an interface, so that the
    /// kernel does not resolve it. An existing entry is replaced.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EPERM`: not root.
    pub fn set_neighbor(&mut self, index: i32, address: IpAddr, mac: [u8; 6]) -> io::Result<()> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // `ndmsg`.
        let mut body = vec![family as u8, 0, 0, 0];
        body.extend(index.to_ne_bytes());
        body.extend(PERMANENT.to_ne_bytes());
        body.extend([0; 2]);
        put(&mut body, ADDRESS, &octets(address));
        put(&mut body, HARDWARE_ADDRESS, &mac);
        self.request(NEW_NEIGHBOR, CREATE_OR_REPLACE, &body)
    }
}
