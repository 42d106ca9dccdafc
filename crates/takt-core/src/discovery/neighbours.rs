//! Participants on this host that can be reached without a network: through shared memory.
//!
//! A participant announces among the locators of its user data one that no network leads to. If it has proven to be at an
//! address of this host, we have such a locator too, and endpoints of both are matched, the driver is asked whether a transport
//! of its leads there ([`Event::NeighbourAnnounced`]). Until it says so ([`Participant::handle_neighbour`]), and again once it says no,
//! everything goes the way that it goes to everybody else; so nobody is ever out of reach. Discovery traffic goes that
//! way anyhow. A participant is a neighbour of its own: its readers hear of its writers that way.
//!
//! Where it leads, the driver also notices the end of the process there ([`Participant::handle_neighbour_end`]), which is the
//! participant's own, long before its lease ends.

use super::builtin_topics::Departure;
use crate::event::Event;
use crate::participant::Participant;
use crate::time::Instant;
use crate::writer::Path;
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};

/// The way to a participant without a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortcut {
    /// As announced. Its endpoints have ports of their own at this address.
    locator: Locator,
    /// The driver has been asked.
    is_asked: bool,
    /// The driver says that it leads there.
    is_open: bool,
}

impl Shortcut {
    fn leads_to(&self, locator: &Locator) -> bool {
        (locator.kind, locator.address) == (self.locator.kind, self.locator.address)
    }

    /// The path to whoever announces these locators.
    pub(super) fn path(&self, announced: &[Locator], max_message: usize) -> Option<Path> {
        let locator = announced.iter().find(|locator| self.is_open && self.leads_to(locator))?;
        Some(Path { locator: *locator, max_message })
    }
}

/// Whether it leads into the memory of a host, and so no network to it.
pub(super) fn is_memory(locator: &Locator) -> bool {
    locator.kind == Locator::KIND_TAKT_SHM
}

impl Participant {
    /// A participant was believed, or has moved, or says other things: notes its shortcut, if that is news.
    pub(super) fn look_for_shortcut(&mut self, index: u32) {
        let do_we = self.locators.default_unicast.iter().any(is_memory);
        let Some(remote) = self.remotes.get_mut(index).filter(|remote| do_we && remote.probation.is_none()) else {
            return;
        };
        let is_here = self.reachability.is_here(&remote.metatraffic.locator);
        let announced = remote.data.default_unicast.iter().find(|locator| is_memory(locator));
        let Some(locator) = announced.filter(|_| is_here).copied() else {
            remote.shortcut = None;
            return;
        };
        if remote.shortcut.is_none_or(|known| !known.leads_to(&locator)) {
            remote.shortcut = Some(Shortcut { locator, is_asked: false, is_open: false });
            self.ask_about_shortcut(index);
        }
    }

    /// The shortcut to the own participant. The driver is asked about it the first time.
    pub(super) fn shortcut_home(&mut self) -> Option<Shortcut> {
        if self.shortcut_home.is_none() {
            let locator = *self.locators.default_unicast.iter().find(|locator| is_memory(locator))?;
            self.shortcut_home = Some(Shortcut { locator, is_asked: true, is_open: false });
            self.ctx.notify(Event::NeighbourAnnounced(locator));
        }
        self.shortcut_home
    }

    /// An endpoint of this participant is matched with one of ours: there is something to exchange.
    pub(super) fn begin_exchange(&mut self, prefix: GuidPrefix) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        if let Some(remote) = self.remotes.get_mut(index).filter(|remote| !remote.exchanges) {
            remote.exchanges = true;
            self.ask_about_shortcut(index);
        }
    }

    /// Asks the driver once, and only about those that we exchange something with: a way costs memory and descriptors.
    fn ask_about_shortcut(&mut self, index: u32) {
        let remote = self.remotes.get_mut(index).filter(|remote| remote.exchanges);
        let Some(shortcut) = remote.and_then(|remote| remote.shortcut.as_mut()).filter(|it| !it.is_asked) else {
            return;
        };
        shortcut.is_asked = true;
        self.ctx.notify(Event::NeighbourAnnounced(shortcut.locator));
    }

    /// Answers [`Event::NeighbourAnnounced`]: whether datagrams reach this locator. Also when that has changed since. Takes
    /// steps for each remote participant, and for each endpoint and each match of that one.
    pub fn handle_neighbour(&mut self, locator: &Locator, is_reached: bool) {
        self.ctx.work.steps(self.remotes.len());
        let home = self.shortcut_home.as_mut().map(|shortcut| (self.header.prefix, shortcut));
        let others = self.remotes.iter_mut();
        let others = others.filter_map(|(_, remote)| Some((remote.prefix, remote.shortcut.as_mut()?)));
        let found = home.into_iter().chain(others).find(|(_, shortcut)| shortcut.leads_to(locator));
        let found = found.map(|(prefix, shortcut)| (prefix, core::mem::replace(&mut shortcut.is_open, is_reached)));
        if let Some((prefix, before)) = found
            && before != is_reached
        {
            self.follow(prefix);
        }
    }

    /// The process of the participant at this locator, which was [reached](Self::handle_neighbour) there, is gone, and all that
    /// it sent that way was handed over. It is lost as at the end of its lease; announcements that are still on their way do not
    /// call it back. Takes steps for each remote participant, and for each endpoint and each match of that one.
    pub fn handle_neighbour_end(&mut self, now: Instant, locator: &Locator) {
        self.ctx.work.steps(self.remotes.len());
        let ended = self
            .remotes
            .iter()
            .find(|(_, remote)| remote.shortcut.is_some_and(|shortcut| shortcut.is_open && shortcut.leads_to(locator)));
        if let Some(prefix) = ended.map(|(_, remote)| remote.prefix) {
            self.ctx.counters.neighbours_ended += 1;
            self.departed.note(now, prefix, SequenceNumber::MAX);
            self.depart(now, Guid::new(prefix, EntityId::PARTICIPANT), Departure::Silence);
        }
    }
}
