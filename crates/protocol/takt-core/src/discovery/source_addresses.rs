//! Source address checks: the addresses from which messages of a participant are accepted.
//!
//! The header of a message (RTPS 2.5 §8.3.4) names a participant and can be forged. Messages of a
//! participant with a validated address are therefore accepted only from that address, from other
//! addresses that it or one of its endpoints announces, and, for a participant on this host, from
//! all addresses of this host. Ports are not compared. Other messages are counted
//! (`foreign_datagrams`) and ignored, except those that may validate another address: its
//! announcement, and acknowledgments of challenges (`super::validation`, `super::moving`).
//!
//! Shared memory has no addresses: the kernel reports the sending user, and the participant has to
//! be on this host. Messages of a transport without source addresses are accepted.
//!
//! Not covered: forged source addresses of IP packets, against which only DDS Security protects.

use super::reachability::Host;
use super::spdp::Remote;
use crate::context::Context;
use crate::discovery::Discovery;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator};

/// Maximum number of validated addresses of a participant beyond the announced ones.
const VALIDATED_MAX: usize = 4;

/// Source addresses of a participant.
#[derive(Debug, Default)]
pub(super) struct SourceAddresses {
    /// Last accepted source.
    last: Option<Host>,
    /// Sources that answered a challenge; the oldest is replaced.
    validated: [Option<Host>; VALIDATED_MAX],
}

impl SourceAddresses {
    /// Records the source of a correct answer to a challenge.
    pub(super) fn add_validated(&mut self, source: &Locator) {
        let Some(host) = Host::of(source) else { return };
        if !self.validated.contains(&Some(host)) {
            self.validated.rotate_right(1);
            self.validated[0] = Some(host);
        }
    }
}

impl Remote {
    fn announces(&self, host: Host) -> bool {
        let announced = self.data.metatraffic_unicast.iter().chain(&self.data.default_unicast);
        announced.chain([&self.metatraffic.locator]).any(|locator| Host::of(locator) == Some(host))
    }
}

impl Discovery {
    /// Reports whether a message of a participant is accepted from an address. Always true for an
    /// unknown participant or one with an unvalidated address, which has no matches to protect.
    pub(crate) fn accepts_source(&mut self, ctx: &mut Context, source: &Locator, prefix: GuidPrefix) -> bool {
        if !self.checks_sources || *source == Locator::INVALID {
            return true;
        }
        let host = Host::of(source);
        if prefix == ctx.header.prefix {
            return host.is_none() || self.reachability.is_on_this_host(source);
        }
        let Some(remote) = self.sender(prefix).filter(|remote| !remote.is_on_probation()) else { return true };
        if host.is_some() && remote.source_addresses.last == host {
            return true;
        }
        self.accepts_changed_source(source, host, prefix)
    }

    /// As [`accepts_source`](Self::accepts_source), for a participant with a validated address
    /// whose source has changed.
    fn accepts_changed_source(&mut self, source: &Locator, host: Option<Host>, prefix: GuidPrefix) -> bool {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return true };
        let Some(remote) = self.remotes.get_mut(index) else { return true };
        let is_local_peer = self.reachability.is_on_this_host(&remote.metatraffic.locator);
        let Some(host) = host else { return remote.shared_memory_path.is_some() || is_local_peer };
        let is_good = remote.announces(host)
            || remote.source_addresses.validated.contains(&Some(host))
            || (is_local_peer && self.reachability.is_on_this_host(source))
            || endpoint_announces(&self.publications, &self.subscriptions, prefix, host);
        if is_good {
            remote.source_addresses.last = Some(host);
        }
        is_good
    }
}

/// Reports whether an endpoint of the participant announces a unicast locator of its own there.
/// Visits each of its endpoints at most.
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
