//! Packet sockets (packet(7)) of a network namespace, with their buffer sizes (linux/packet_diag.h,
//! sock_diag(7)).

use std::io;

use crate::{Netlink, find, number};

const BY_FAMILY: u16 = 20;
const SHOW_INFO: u32 = 0x01;
const SHOW_MEMORY: u32 = 0x10;
const INFO: u16 = 0;
const MEMORY: u16 = 6;
/// Length of `packet_diag_msg`, in octets.
const HEADER_LEN: usize = 16;

/// Packet socket of any process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSocket {
    /// Inode, by which `/proc/PID/fd` names the socket.
    pub inode: u32,
    /// Index of the interface to which the socket is bound, 0 for none.
    pub interface: u32,
    /// Size of the receive buffer in octets: SO_RCVBUF.
    pub receive_buffer: u32,
    /// Size of the send buffer in octets, over all queueing disciplines: SO_SNDBUF.
    pub send_buffer: u32,
    /// Frames dropped because the receive buffer was full.
    pub drops: u32,
}

impl Netlink {
    /// Opens a socket for queries on the sockets of this thread's network namespace.
    ///
    /// # Errors
    /// The kernel returns no socket.
    pub fn sockets() -> io::Result<Self> {
        Self::open(libc::NETLINK_SOCK_DIAG)
    }

    /// Returns all packet sockets of the namespace. Requires a socket of
    /// [`sockets`](Self::sockets).
    ///
    /// # Errors
    /// `ENOENT`: this kernel has no packet_diag. `EPERM`: not root.
    pub fn packet_sockets(&mut self) -> io::Result<Vec<PacketSocket>> {
        let mut body = vec![libc::AF_PACKET as u8, 0, 0, 0];
        [0, SHOW_INFO | SHOW_MEMORY, 0, 0].iter().for_each(|number: &u32| body.extend(number.to_ne_bytes()));
        let all = self.dump(BY_FAMILY, &body)?;
        Ok(all.iter().filter_map(|one| state(one)).collect())
    }
}

fn state(message: &[u8]) -> Option<PacketSocket> {
    let attributes = message.get(HEADER_LEN..)?;
    let memory = find(attributes, MEMORY)?;
    // SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF and SK_MEMINFO_DROPS of linux/sock_diag.h.
    let at = |field: usize| memory.get(4 * field..).and_then(number);
    Some(PacketSocket {
        inode: number(message.get(4..)?)?,
        interface: find(attributes, INFO).and_then(number)?,
        receive_buffer: at(1)?,
        send_buffer: at(3)?,
        drops: at(8)?,
    })
}
