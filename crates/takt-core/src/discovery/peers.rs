//! Unicast peers that are added and removed at run time.

use crate::config::MAX_PEERS;
use crate::error::Error;
use crate::participant::Participant;
use crate::time::Instant;
use alloc::vec::Vec;
use takt_wire::Locator;

impl Participant {
    /// Adds peers: the participant announces itself to them, and accepts that remote endpoints are
    /// located there.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`MAX_PEERS`]; no peer is added then.
    pub fn add_peers(&mut self, now: Instant, peers: &[Locator]) -> Result<(), Error> {
        let new: Vec<_> = peers.iter().filter(|peer| !self.initial_peers.contains(peer)).copied().collect();
        if self.initial_peers.len() + new.len() > MAX_PEERS {
            return Err(Error::OutOfResources { limit: "peers", value: MAX_PEERS as u64 });
        }
        self.ctx.work.unit();
        self.ctx.work.steps(new.len());
        self.initial_peers.extend(new);
        self.reachability.set_peers(&self.initial_peers);
        if self.is_enabled {
            self.announcer.announce_soon(now, &mut self.ctx);
        }
        Ok(())
    }

    /// Removes peers from the destinations of announcements. Known participants stay known until
    /// they leave or their lease ends.
    pub fn remove_peers(&mut self, peers: &[Locator]) {
        self.ctx.work.unit();
        self.initial_peers.retain(|peer| !peers.contains(peer));
        self.reachability.set_peers(&self.initial_peers);
    }

    /// Returns the destinations of announcements: multicast groups and peers.
    #[must_use]
    pub fn peers(&self) -> &[Locator] {
        &self.initial_peers
    }
}
