//! Table of open connections, by token.

use std::net::IpAddr;

use super::connection::Connection;

/// Bits of a token that hold the slot of a connection. The other bits hold a number that no other
/// connection has had, so that a late event is not taken for that of another connection.
const INDEX_BITS: u32 = 16;

/// Connections; their number is limited by the slots.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Option<Connection>>,
    created: u64,
}

impl Connections {
    /// Smallest token of a connection.
    pub(super) const FIRST: u64 = 1 << INDEX_BITS;

    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Adds a connection, made from its token.
    pub(super) fn insert(&mut self, make: impl FnOnce(u64) -> Connection) -> u64 {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.created += 1;
        let token = self.created << INDEX_BITS | index as u64;
        self.slots[index] = Some(make(token));
        token
    }

    pub(super) fn get(&self, token: u64) -> Option<&Connection> {
        self.slots.get(index_of(token))?.as_ref().filter(|connection| connection.token == token)
    }

    pub(super) fn get_mut(&mut self, token: u64) -> Option<&mut Connection> {
        self.slots.get_mut(index_of(token))?.as_mut().filter(|connection| connection.token == token)
    }

    pub(super) fn remove(&mut self, token: u64) -> Option<Connection> {
        self.get(token)?;
        self.slots.get_mut(index_of(token))?.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().flatten()
    }

    /// Returns the number of connections with an address.
    pub(super) fn with_address(&self, ip: IpAddr) -> usize {
        self.iter().filter(|connection| connection.peer.ip() == ip).count()
    }
}

fn index_of(token: u64) -> usize {
    (token & ((1 << INDEX_BITS) - 1)) as usize
}
