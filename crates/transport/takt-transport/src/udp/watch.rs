//! Watch for changes of interfaces and addresses, by a netlink socket (`rtnetlink(7)`). Only the
//! index of the affected interface is read from a message; the current state is queried again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::syscall;

/// Maximum number of affected interfaces that are remembered; beyond that, all count as affected.
const AFFECTED_MAX: usize = 64;

/// Size of the buffer of one read, in bytes.
const READ_LEN: usize = 8192;

/// Maximum number of reads of one call. The socket stays readable if messages remain.
const READS_MAX: usize = 16;

/// Length of `struct nlmsghdr` in bytes: length, type, flags, sequence number, port.
const HEADER_LEN: usize = 16;

/// Netlink socket that receives changes of interfaces.
#[derive(Debug)]
pub(crate) struct Watch {
    fd: OwnedFd,
    changes: InterfaceChanges,
    /// [`poll`](Watch::poll) has reported the changes.
    is_reported: bool,
}

/// Interfaces that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InterfaceChanges {
    affected: Vec<u32>,
    /// Messages were lost, so every interface may have changed.
    all: bool,
}

impl InterfaceChanges {
    fn none() -> Self {
        Self { affected: Vec::with_capacity(AFFECTED_MAX), all: false }
    }

    fn is_some(&self) -> bool {
        self.all || !self.affected.is_empty()
    }

    /// Reports whether this interface may have changed.
    pub(crate) fn affects(&self, ifindex: u32) -> bool {
        self.all || self.affected.contains(&ifindex)
    }

    fn add(&mut self, ifindex: u32) {
        if self.affected.len() == AFFECTED_MAX {
            self.all = true;
        } else if !self.affected.contains(&ifindex) {
            self.affected.push(ifindex);
        }
    }

    /// Parses the messages of one read. A malformed message may concern any interface.
    fn read(&mut self, mut bytes: &[u8]) {
        while let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() {
            let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            let Some(body) = bytes.get(HEADER_LEN..len) else {
                self.all = true;
                return;
            };
            if [libc::RTM_NEWLINK, libc::RTM_DELLINK, libc::RTM_NEWADDR, libc::RTM_DELADDR].contains(&kind) {
                // Both `ifinfomsg` and `ifaddrmsg` have the index at offset 4.
                match body.get(4..8) {
                    Some(&[a, b, c, d]) => self.add(u32::from_ne_bytes([a, b, c, d])),
                    _ => self.all = true,
                }
            }
            bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { fd: syscall::open_interface_events()?, changes: InterfaceChanges::none(), is_reported: false })
    }

    /// Reads the pending messages. Does not allocate.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0; READ_LEN];
        for _ in 0..READS_MAX {
            match syscall::read_interface_events(self.fd.as_fd(), &mut buffer) {
                Ok(len) => self.changes.read(&buffer[..len]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // Messages are lost: the receive buffer overflowed (ENOBUFS), or the read failed.
                Err(_) => self.changes.all = true,
            }
        }
    }

    /// Reports whether the changes since the last call or [`take`](Self::take) concern this
    /// interface, or whether there are any if `ifindex` is `None`. Does not allocate.
    pub(crate) fn is_affected(&mut self, ifindex: Option<u32>) -> bool {
        let is_affected = ifindex.map_or(self.changes.is_some(), |ifindex| self.changes.affects(ifindex));
        self.changes.affected.clear();
        self.changes.all = false;
        is_affected
    }

    /// Reports whether there are changes, once until [`take`](Self::take).
    pub(crate) fn poll(&mut self) -> bool {
        self.changes.is_some() && !std::mem::replace(&mut self.is_reported, true)
    }

    /// Returns the changes since the last call.
    pub(crate) fn take(&mut self) -> Option<InterfaceChanges> {
        self.is_reported = false;
        self.changes.is_some().then(|| std::mem::replace(&mut self.changes, InterfaceChanges::none()))
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, ifindex: u32) -> Vec<u8> {
        let mut bytes = 28_u32.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 14]);
        bytes.extend_from_slice(&ifindex.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    #[test]
    fn affected_interfaces_are_reported() {
        let mut changes = InterfaceChanges::none();
        changes.read(
            &[message(libc::RTM_NEWADDR, 3), message(libc::RTM_NEWROUTE, 4), message(libc::RTM_DELLINK, 5)].concat(),
        );
        assert!(changes.affects(3) && !changes.affects(4) && changes.affects(5) && changes.is_some());
    }

    #[test]
    fn truncated_or_too_many_messages_affect_all_interfaces() {
        let full = message(libc::RTM_NEWLINK, 3);
        for len in HEADER_LEN..full.len() {
            let mut changes = InterfaceChanges::none();
            changes.read(&full[..len]);
            assert!(changes.affects(9), "{len} bytes");
        }
        let mut changes = InterfaceChanges::none();
        (0..=AFFECTED_MAX as u32).for_each(|index| changes.read(&message(libc::RTM_NEWLINK, index)));
        assert!(changes.affects(1000));
        let mut changes = InterfaceChanges::none();
        changes.read(&[0; 64]);
        assert!(changes.is_some(), "a length of 0 does not loop");
    }
}
