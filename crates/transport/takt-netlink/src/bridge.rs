//! Ethernet bridges of the kernel and their ports (linux/if_link.h, `IFLA_BR_*` and
//! `IFLA_BRPORT_*`).
//!
//! Spanning tree is off, which is the kernel's default. A ring of bridges circulates frames.

use std::io;

use crate::link::{GET_LINK, HEADER_LEN, INFO_DATA, INFO_KIND, LINK_INFO, LINK_NAME, NEW_LINK, header};
use crate::{NEW, Netlink, find, number, put, put_text};

const LINK_MASTER: u16 = 10;
const FORWARD_DELAY: u16 = 1;
const MULTICAST_SNOOPING: u16 = 23;
const INFO_SLAVE_DATA: u16 = 5;
const PORT_STATE: u16 = 1;
const FORWARDING: u8 = 3;

/// Port of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// Interface index of the bridge.
    pub bridge: i32,
    /// Whether the port forwards frames.
    pub is_forwarding: bool,
}

impl Netlink {
    /// Creates a bridge in the namespace of this socket. Its ports forward without a delay. It
    /// floods multicast regardless of memberships.
    ///
    /// # Errors
    /// `EEXIST`: an interface of this name exists. `EOPNOTSUPP`: this kernel has no bridges.
    /// `EPERM`: not root.
    pub fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut data = Vec::new();
        put(&mut data, FORWARD_DELAY, &0_u32.to_ne_bytes());
        put(&mut data, MULTICAST_SNOOPING, &[0]);
        let mut info = Vec::new();
        put_text(&mut info, INFO_KIND, "bridge");
        put(&mut info, INFO_DATA, &data);
        let mut body = header(0, 0, 0);
        put_text(&mut body, LINK_NAME, name);
        put(&mut body, LINK_INFO, &info);
        self.request(NEW_LINK, NEW, &body)
    }

    /// Attaches an interface to a bridge as a port. With bridge index 0, detaches it.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist. `EOPNOTSUPP`: `bridge` is no bridge. `EPERM`: not
    /// root.
    pub fn add_bridge_port(&mut self, index: i32, bridge: i32) -> io::Result<()> {
        let mut body = header(index, 0, 0);
        put(&mut body, LINK_MASTER, &bridge.to_ne_bytes());
        self.request(NEW_LINK, 0, &body)
    }

    /// Returns the bridge of a port and whether the port forwards. `None` if the interface is no
    /// port.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn bridge_port(&mut self, index: i32) -> io::Result<Option<BridgePort>> {
        let reply = self.get(GET_LINK, &header(index, 0, 0))?;
        let attributes = reply.get(HEADER_LEN..).unwrap_or_default();
        let info = find(attributes, LINK_INFO).unwrap_or_default();
        let port = || {
            let bridge = find(attributes, LINK_MASTER).and_then(number)?.cast_signed();
            let state = find(find(info, INFO_SLAVE_DATA)?, PORT_STATE)?;
            Some(BridgePort { bridge, is_forwarding: state.first() == Some(&FORWARDING) })
        };
        Ok(port())
    }

    /// Reports whether a bridge forwards multicast only according to memberships. `None` if the
    /// interface is no bridge.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn has_multicast_snooping(&mut self, bridge: i32) -> io::Result<Option<bool>> {
        let reply = self.get(GET_LINK, &header(bridge, 0, 0))?;
        let info = reply.get(HEADER_LEN..).and_then(|attributes| find(attributes, LINK_INFO)).unwrap_or_default();
        let snooping = find(info, INFO_DATA).and_then(|data| find(data, MULTICAST_SNOOPING));
        Ok(snooping.and_then(<[u8]>::first).map(|value| *value != 0))
    }
}
