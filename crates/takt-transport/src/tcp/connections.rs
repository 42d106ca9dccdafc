//! The connections that are open, by token.

use std::net::IpAddr;

use super::connection::Connection;

/// A connection's place and a number that no other connection has had: what comes late for one that is gone
/// is not taken for another's.
const PLACE_BITS: u32 = 16;

/// Connections, at most as many as there are places.
#[derive(Debug, Default)]
pub(super) struct Connections {
    places: Vec<Option<Connection>>,
    made: u64,
}

impl Connections {
    /// The least token; those below are for others.
    pub(super) const FIRST: u64 = 1 << PLACE_BITS;

    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Adds the connection that is made of a token.
    pub(super) fn insert(&mut self, make: impl FnOnce(u64) -> Connection) -> u64 {
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.made += 1;
        let token = self.made << PLACE_BITS | place as u64;
        self.places[place] = Some(make(token));
        token
    }

    pub(super) fn get(&self, token: u64) -> Option<&Connection> {
        self.places.get(place(token))?.as_ref().filter(|connection| connection.token == token)
    }

    pub(super) fn get_mut(&mut self, token: u64) -> Option<&mut Connection> {
        self.places.get_mut(place(token))?.as_mut().filter(|connection| connection.token == token)
    }

    pub(super) fn remove(&mut self, token: u64) -> Option<Connection> {
        self.get(token)?;
        self.places.get_mut(place(token))?.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.places.iter().flatten()
    }

    /// How many lead to an address.
    pub(super) fn with_address(&self, ip: IpAddr) -> usize {
        self.iter().filter(|connection| connection.peer.ip() == ip).count()
    }
}

fn place(token: u64) -> usize {
    (token & ((1 << PLACE_BITS) - 1)) as usize
}
