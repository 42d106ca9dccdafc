//! Shared-memory paths to participants on this host.
//!
//! A participant announces a shared-memory locator among those of its user data. The driver is
//! asked whether a transport leads there ([`Event::LocalPeerAnnounced`]) under three conditions:
//! the participant has validated an address of this host, this participant has such a locator too,
//! and endpoints of both are matched, or would be if the path were open. Until the driver confirms
//! ([`crate::Participant::handle_local_peer`]), and after it withdraws, data use the ordinary
//! network path, so no participant becomes unreachable. Discovery traffic always uses the network
//! path. The participant also has a shared-memory path to itself: its readers receive its own
//! writers by shared memory.
//!
//! On such a path the driver also notices the end of the remote process
//! ([`crate::Participant::handle_local_peer_end`]), which ends the participant long before its
//! lease.

use super::builtin_topics::Departure;
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::event::Event;
use crate::path::Path;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};

/// Shared-memory path to a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedMemoryPath {
    /// Locator as announced. Its endpoints have ports of their own at this address.
    locator: Locator,
    /// The path has been requested from the driver.
    is_requested: bool,
    /// The driver has confirmed the path.
    is_open: bool,
}

impl SharedMemoryPath {
    fn leads_to(&self, locator: &Locator) -> bool {
        (locator.kind, locator.address) == (self.locator.kind, self.locator.address)
    }

    /// Returns the path to a participant that announces these locators.
    pub(super) fn path(&self, announced: &[Locator], max_message: usize) -> Option<Path> {
        let locator = announced.iter().find(|locator| self.is_open && self.leads_to(locator))?;
        Some(Path { locator: *locator, max_message })
    }
}

/// Reports whether a locator addresses shared memory of a host.
pub(super) fn is_memory(locator: &Locator) -> bool {
    locator.kind == Locator::KIND_TAKT_SHM
}

impl Discovery {
    /// Records the shared-memory path to a participant after it was validated, moved or changed its
    /// announcement.
    pub(super) fn update_shared_memory_path(&mut self, ctx: &mut Context, index: u32) {
        let do_we = self.locators.default_unicast.iter().any(is_memory);
        let Some(remote) = self.remotes.get_mut(index).filter(|remote| do_we && remote.probation.is_none()) else {
            return;
        };
        let is_on_this_host = self.reachability.is_on_this_host(&remote.metatraffic.locator);
        let announced = remote.data.default_unicast.iter().find(|locator| is_memory(locator));
        let Some(locator) = announced.filter(|_| is_on_this_host).copied() else {
            remote.shared_memory_path = None;
            return;
        };
        if remote.shared_memory_path.is_none_or(|known| !known.leads_to(&locator)) {
            remote.shared_memory_path = Some(SharedMemoryPath { locator, is_requested: false, is_open: false });
            self.request_shared_memory_path(ctx, index);
        }
    }

    /// Returns the shared-memory path to this participant itself. Requests it from the driver the
    /// first time.
    pub(super) fn own_shared_memory_path(&mut self, ctx: &mut Context) -> Option<SharedMemoryPath> {
        if self.own_shared_memory_path.is_none() {
            let locator = *self.locators.default_unicast.iter().find(|locator| is_memory(locator))?;
            self.own_shared_memory_path = Some(SharedMemoryPath { locator, is_requested: true, is_open: false });
            ctx.notify(Event::LocalPeerAnnounced(locator));
        }
        self.own_shared_memory_path
    }

    /// Records that an endpoint of a participant was matched with a local one, so that the two
    /// exchange data, or would be if there were a path. Returns whether the shared-memory path is
    /// requested because of that.
    pub(super) fn begin_exchange(&mut self, ctx: &mut Context, prefix: GuidPrefix) -> bool {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return false };
        let Some(remote) = self.remotes.get_mut(index).filter(|remote| !remote.exchanges) else { return false };
        remote.exchanges = true;
        self.request_shared_memory_path(ctx, index)
    }

    /// Requests the path from the driver once, and only to participants with matched endpoints: a
    /// path costs memory and descriptors. Returns whether it is requested.
    fn request_shared_memory_path(&mut self, ctx: &mut Context, index: u32) -> bool {
        let remote = self.remotes.get_mut(index).filter(|remote| remote.exchanges);
        let Some(memory_path) =
            remote.and_then(|remote| remote.shared_memory_path.as_mut()).filter(|it| !it.is_requested)
        else {
            return false;
        };
        memory_path.is_requested = true;
        ctx.notify(Event::LocalPeerAnnounced(memory_path.locator));
        true
    }

    /// Sets whether datagrams reach this locator.
    pub(crate) fn handle_local_peer(&mut self, call: &mut Call<'_>, locator: &Locator, is_reached: bool) {
        call.ctx.work.steps(self.remotes.len());
        let home = self.own_shared_memory_path.as_mut().map(|memory_path| (call.ctx.header.prefix, memory_path));
        let others = self.remotes.iter_mut();
        let others = others.filter_map(|(_, remote)| Some((remote.prefix, remote.shared_memory_path.as_mut()?)));
        let found = home.into_iter().chain(others).find(|(_, memory_path)| memory_path.leads_to(locator));
        let found =
            found.map(|(prefix, memory_path)| (prefix, core::mem::replace(&mut memory_path.is_open, is_reached)));
        let Some((prefix, before)) = found else { return };
        if before != is_reached {
            self.redirect_endpoints(call.ctx, call.endpoints, prefix);
        }
        self.match_unreachable(call, prefix);
    }

    /// Handles the end of the process at a [confirmed](Self::handle_local_peer) locator, after all
    /// its datagrams were received.
    pub(crate) fn handle_local_peer_end(&mut self, call: &mut Call<'_>, locator: &Locator) {
        call.ctx.work.steps(self.remotes.len());
        let ended = self.remotes.iter().find(|(_, remote)| {
            remote.shared_memory_path.is_some_and(|memory_path| memory_path.is_open && memory_path.leads_to(locator))
        });
        if let Some(prefix) = ended.map(|(_, remote)| remote.prefix) {
            call.ctx.counters.local_peers_ended += 1;
            self.departed.note(call.now, prefix, SequenceNumber::MAX);
            self.depart(call, Guid::new(prefix, EntityId::PARTICIPANT), Departure::Lost);
        }
    }
}
