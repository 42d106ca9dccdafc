//! Features of a network interface, as `ethtool -k` shows them (ETHTOOL_MSG_FEATURES_GET and _SET
//! of linux/ethtool_netlink.h).

use std::io;

use crate::{GENERIC_LEN, Netlink, attributes, find, put, put_nested, put_text, text};

const FAMILY: &str = "ethtool";
const GET: u8 = 11;
const SET: u8 = 12;
const HEADER: u16 = 1;
const HEADER_INDEX: u16 = 1;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Feature by which the kernel leaves TCP and UDP checksums of every protocol to the interface:
/// `tx-checksum-ip-generic`.
pub const TX_CHECKSUM: &str = "tx-checksum-ip-generic";

/// Features by which the kernel leaves the segmentation of TCP and UDP to the interface.
pub const SEGMENTATION: [&str; 4] =
    ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-udp-segmentation"];

impl Netlink {
    /// Returns the names of the enabled features of an interface. Requires a generic netlink
    /// socket.
    ///
    /// # Errors
    /// `ENODEV`: the interface does not exist.
    pub fn features(&mut self, index: i32) -> io::Result<Vec<String>> {
        let family = self.family(FAMILY)?;
        let reply = self.get(family, &message(GET, index))?;
        let active = reply.get(GENERIC_LEN..).and_then(|rest| find(find(rest, ACTIVE)?, BITS));
        let bits = attributes(active.unwrap_or_default()).filter(|(kind, _)| *kind == BIT);
        Ok(bits.filter_map(|(_, bit)| find(bit, BIT_NAME)).map(text).collect())
    }

    /// Enables or disables features by name, together with features that depend on them. Requires a
    /// generic netlink socket.
    ///
    /// # Errors
    /// `EINVAL`: this kernel has no feature of this name. `EPERM`: not root.
    pub fn set_features(&mut self, index: i32, names: &[&str], is_on: bool) -> io::Result<()> {
        let family = self.family(FAMILY)?;
        let mut bits = Vec::new();
        for name in names {
            let mut bit = Vec::new();
            put_text(&mut bit, BIT_NAME, name);
            if is_on {
                put(&mut bit, BIT_VALUE, &[]);
            }
            put_nested(&mut bits, BIT, &bit);
        }
        let mut set = Vec::new();
        put_nested(&mut set, BITS, &bits);
        let mut body = message(SET, index);
        put_nested(&mut body, WANTED, &set);
        self.request(family, 0, &body)
    }
}

fn message(command: u8, index: i32) -> Vec<u8> {
    let mut header = Vec::new();
    put(&mut header, HEADER_INDEX, &index.to_ne_bytes());
    let mut body = vec![command, 1, 0, 0];
    put_nested(&mut body, HEADER, &header);
    body
}
