//! Unicast peers that are added and removed at run time.

use crate::config::MAX_PEERS;
use crate::context::Context;
use crate::discovery::Discovery;
use crate::error::Error;
use crate::time::Instant;
use alloc::vec::Vec;
use takt_wire::Locator;

impl Discovery {
    /// Adds peers: the participant announces itself to them, and accepts that remote endpoints are
    /// located there.
    pub(crate) fn add_peers(&mut self, now: Instant, ctx: &mut Context, peers: &[Locator]) -> Result<(), Error> {
        let new: Vec<_> = peers.iter().filter(|peer| !self.initial_peers.contains(peer)).copied().collect();
        if self.initial_peers.len() + new.len() > MAX_PEERS {
            return Err(Error::OutOfResources { limit: "peers", value: MAX_PEERS as u64 });
        }
        ctx.work.unit();
        ctx.work.steps(new.len());
        self.initial_peers.extend(new);
        self.reachability.set_peers(&self.initial_peers);
        if self.is_enabled {
            self.announcer.announce_soon(now, ctx);
        }
        Ok(())
    }

    /// Removes peers from the destinations of announcements.
    pub(crate) fn remove_peers(&mut self, ctx: &mut Context, peers: &[Locator]) {
        ctx.work.unit();
        self.initial_peers.retain(|peer| !peers.contains(peer));
        self.reachability.set_peers(&self.initial_peers);
    }
}
