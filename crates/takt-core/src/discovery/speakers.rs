//! From which addresses a participant is believed to speak.
//!
//! The header of a message (RTPS 2.5 §8.3.4) names a participant, and anybody can write that. So what is said in the name of a
//! participant that has proven its address counts only from there, from the other addresses that it or one of its endpoints
//! announces, and, of a participant on this host, from all of this host. An address counts whatever the port. All else is counted
//! (`foreign_datagrams`) and ignored, but for what may make a participant known at another address: its announcement, and the
//! acknowledgements that prove it (`super::validation`, `super::moving`).
//!
//! Shared memory has no addresses; the kernel says which user speaks, and the participant has to be on this host. What comes by a
//! transport that names no source is believed.
//!
//! It deliberately does not do: stop who forges the source address of IP packets. Only DDS Security does.

use super::reachability::Host;
use super::spdp::Remote;
use crate::participant::Participant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator};

/// Addresses that a participant has proven and need not announce.
const PROVEN_MAX: usize = 4;

/// Where a participant has spoken from.
#[derive(Debug, Default)]
pub(super) struct Voices {
    /// The last one that was found good.
    last: Option<Host>,
    /// Those that answered a challenge, the oldest of which gives way.
    proven: [Option<Host>; PROVEN_MAX],
}

impl Voices {
    /// The answer to a challenge came from there.
    pub(super) fn prove(&mut self, source: &Locator) {
        let Some(host) = Host::of(source) else { return };
        if !self.proven.contains(&Some(host)) {
            self.proven.rotate_right(1);
            self.proven[0] = Some(host);
        }
    }
}

impl Remote {
    fn announces(&self, host: Host) -> bool {
        let announced = self.data.metatraffic_unicast.iter().chain(&self.data.default_unicast);
        announced.chain([&self.metatraffic.locator]).any(|locator| Host::of(locator) == Some(host))
    }
}

impl Participant {
    /// Whether what comes from an address in the name of a participant is believed. One that is not known, or has not proven its
    /// address, has nothing to lose.
    pub(crate) fn may_speak(&mut self, source: &Locator, prefix: GuidPrefix) -> bool {
        if !self.checks_sources || *source == Locator::INVALID {
            return true;
        }
        let host = Host::of(source);
        if prefix == self.header.prefix {
            return host.is_none() || self.reachability.is_here(source);
        }
        let Some(remote) = self.speaker(prefix).filter(|remote| !remote.is_on_probation()) else { return true };
        if host.is_some() && remote.voices.last == host {
            return true;
        }
        self.may_speak_from(source, host, prefix)
    }

    /// As [`may_speak`](Self::may_speak), of a participant that has proven its address and spoke from elsewhere last.
    fn may_speak_from(&mut self, source: &Locator, host: Option<Host>, prefix: GuidPrefix) -> bool {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return true };
        let Some(remote) = self.remotes.get_mut(index) else { return true };
        let is_neighbour = self.reachability.is_here(&remote.metatraffic.locator);
        let Some(host) = host else { return remote.shortcut.is_some() || is_neighbour };
        let is_good = remote.announces(host)
            || remote.voices.proven.contains(&Some(host))
            || (is_neighbour && self.reachability.is_here(source))
            || endpoint_announces(&self.publications, &self.subscriptions, prefix, host);
        if is_good {
            remote.voices.last = Some(host);
        }
        is_good
    }
}

/// Whether an endpoint of the participant has a unicast locator of its own there. Looks at each of its endpoints at most.
fn endpoint_announces(
    publications: &BTreeMap<Guid, Box<PublicationData>>,
    subscriptions: &BTreeMap<Guid, Box<SubscriptionData>>,
    prefix: GuidPrefix,
    host: Host,
) -> bool {
    let first = Guid { prefix, entity_id: EntityId::UNKNOWN };
    let of_writers = publications.range(first..).take_while(|(guid, _)| guid.prefix == prefix);
    let of_readers = subscriptions.range(first..).take_while(|(guid, _)| guid.prefix == prefix);
    let mut locators =
        of_writers.flat_map(|(_, data)| &data.unicast).chain(of_readers.flat_map(|(_, data)| &data.unicast));
    locators.any(|locator| Host::of(locator) == Some(host))
}
