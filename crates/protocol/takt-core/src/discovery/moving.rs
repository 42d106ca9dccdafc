//! Changes of addresses: remote participants that announce other locators, and local interfaces
//! that come and go.
//!
//! A participant that moves is redirected to its new address: its endpoints stay matched and keep
//! their state. An address on the same host, or a configured one, is accepted at once. Any other
//! address must be validated first, as at discovery (`validation`). Until then all traffic goes to
//! the previous address, because the announcement may be forged. If the announcement still contains
//! the validated address, the participant stays there.
//!
//! DEVIATION(RTPS 2.5 §8.5.3.2): a participant of another vendor that moves to another host's
//! address is rediscovered instead, because its readers answer no further challenge. It is sent a
//! farewell first, so that it also rediscovers this participant.
//!
//! The same applies to a participant whose announcements arrive by another connection than before,
//! once the former one was silent for half of the lease. The transport reopens connections to a
//! participant unless its address has changed.
//!
//! The largest message of a path stays as it was at the match. IP fragments what exceeds a packet
//! of the new path.

use super::Remote;
use super::footprint::Footprint;
use super::multicast::has_own_locators;
use super::validation::{AMPLIFICATION_MAX, Probation};
use crate::config::{Interface, Locators};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::locator_kinds::LocatorKinds;
use crate::multicast_group::MulticastReachability;
use crate::participant::Received;
use crate::path::Path;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::{Guid, GuidPrefix, Locator, VendorId};

/// New address that a validated participant announces and has yet to validate.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) changed: ChangedAnnouncement,
    pub(super) path: Path,
    pub(super) probation: Probation,
    /// Memory in bytes of this struct; included in the participant's footprint.
    pub(super) footprint: usize,
}

/// Changed announcement of a participant.
#[derive(Clone, Debug)]
pub(super) struct ChangedAnnouncement {
    pub(super) data: Box<ParticipantData>,
    pub(super) announcement: Box<[u8]>,
    pub(super) source: Locator,
}

impl ChangedAnnouncement {
    fn footprint(&self) -> usize {
        self.data.footprint() + self.announcement.len()
    }
}

/// Decision about the announced addresses of a participant.
enum Verdict {
    /// Accepted without further validation.
    Accepted(Path),
    /// Possible; must be validated.
    NeedsValidation(Path),
    Unreachable,
}

impl Discovery {
    /// Handles a changed announcement of a known participant.
    pub(super) fn refresh_participant(
        &mut self,
        call: &mut Call<'_>,
        from: &Received,
        data: ParticipantData,
        payload: &[u8],
    ) {
        let prefix = data.guid.prefix;
        let is_authentic = self.accepts_source(call.ctx, &from.source, prefix);
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        let Some(remote) = self.remotes.get_mut(index) else { return };
        remote.unicast_only &= !(is_authentic && from.multicast);
        let moved = remote.data.metatraffic_unicast != data.metatraffic_unicast
            || remote.data.default_unicast != data.default_unicast
            || remote.uses_other_connection(call.now, from.source);
        // The former announcement may have been forged.
        let can_authenticate_now = call.ctx.security.is_some()
            && remote.security.begins_no_handshake()
            && (remote.data.identity_token != data.identity_token || remote.data.security_info != data.security_info);
        if moved && remote.probation.is_some() || can_authenticate_now && is_authentic {
            return self.rediscover(call, from, data, payload);
        }
        let changed = ChangedAnnouncement { data: Box::new(data), announcement: payload.into(), source: from.source };
        let here = remote.metatraffic;
        if !moved {
            if is_authentic {
                self.adopt(call, index, changed, here);
            }
            return;
        }
        match self.evaluate_address(call.ctx, index, &changed) {
            // It adds addresses, and was sent from one that was not announced before.
            Verdict::Accepted(path) if path == here && !is_authentic => {}
            Verdict::Accepted(path) => self.adopt(call, index, changed, path),
            Verdict::NeedsValidation(_) if changed.data.vendor_id != VendorId::TAKT => {
                self.rediscover(call, from, *changed.data, payload);
                if let Some(&index) = self.remote_by_prefix.get(&prefix) {
                    self.queue_farewell(call.now, call.ctx, index);
                }
            }
            Verdict::NeedsValidation(path) => self.begin_move(call.ctx, index, changed, path),
            // The participant keeps its address, for as long as its lease.
            Verdict::Unreachable => call.ctx.counters.refused_remote_entities += 1,
        }
    }

    /// Removes a participant and discovers it again.
    fn rediscover(&mut self, call: &mut Call<'_>, from: &Received, data: ParticipantData, payload: &[u8]) {
        let prefix = data.guid.prefix;
        let known = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        let Some(remote) = known else { return };
        let former = remote.challenged_at();
        // The announcement may have been credited at the former address, and counts for the new
        // one. Earlier messages do not.
        let credit = remote.probation.as_ref().filter(|_| remote.is_at(&from.source)).map_or(0, Probation::credit);
        let credit = credit.min(AMPLIFICATION_MAX * payload.len());
        self.remove_participant(call, prefix, super::Departure::Lost);
        self.handle_participant_data(call, from, data, payload);
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        if let Some((probation, _)) = self.remotes.get_mut(index).and_then(Remote::trial) {
            probation.continue_at(former, credit);
        }
    }

    fn evaluate_address(&mut self, ctx: &mut Context, index: u32, changed: &ChangedAnnouncement) -> Verdict {
        let Some(remote) = self.remotes.get(index) else { return Verdict::Unreachable };
        let (here, announced) = (remote.metatraffic, &changed.data.metatraffic_unicast);
        if changed.source.is_tcp() && !here.locator.is_tcp() && announced.contains(&here.locator) {
            return Verdict::Accepted(here);
        }
        let mut refused = 0;
        let best = self.reachability.choose(announced, changed.source, &mut refused);
        ctx.counters.refused_locators += refused;
        let Some(best) = best else { return Verdict::Unreachable };
        if self.reachability.is_validated_by(&here.locator, &best.locator) {
            return Verdict::Accepted(best);
        }
        let still_here = announced.contains(&here.locator)
            && self.reachability.choose(&[here.locator], changed.source, &mut 0).is_some();
        if still_here { Verdict::Accepted(here) } else { Verdict::NeedsValidation(best) }
    }

    /// Starts the validation of a participant's new address.
    fn begin_move(&mut self, ctx: &mut Context, index: u32, changed: ChangedAnnouncement, path: Path) {
        let former = self.remotes.get(index).map(Remote::challenged_at).unwrap_or_default();
        self.cancel_move(ctx, index);
        let footprint = size_of::<Move>() + changed.footprint();
        let limits = ctx.limits;
        let Some(remote) = self.remotes.get_mut(index) else { return };
        if remote.footprint + footprint > limits.max_discovery_bytes_per_participant
            || self.discovery_bytes + footprint > limits.max_discovery_bytes
        {
            ctx.counters.refused_remote_entities += 1;
            return;
        }
        let mut probation = Probation::of_known(ctx);
        probation.continue_at(former, 0);
        probation.set_index(index, ctx);
        remote.footprint += footprint;
        self.discovery_bytes += footprint;
        remote.moving = Some(Box::new(Move { changed, path, probation, footprint }));
        self.queue_validation(ctx, index);
    }

    /// Cancels the validation of a new address.
    pub(super) fn cancel_move(&mut self, ctx: &mut Context, index: u32) -> Option<(ChangedAnnouncement, Path)> {
        let remote = self.remotes.get_mut(index)?;
        let Move { changed, path, probation, footprint } = *remote.moving.take()?;
        probation.close(ctx);
        remote.footprint -= footprint;
        self.discovery_bytes -= footprint;
        Some((changed, path))
    }

    /// Ends the validation of a new address successfully.
    pub(super) fn end_move(&mut self, call: &mut Call<'_>, index: u32) {
        if let Some((changed, path)) = self.cancel_move(call.ctx, index) {
            self.adopt(call, index, changed, path);
        }
    }

    /// Adopts the changed announcement of an authenticated participant. No address validation is
    /// needed, because the participant's key signed it.
    pub(crate) fn adopt_announcement(&mut self, call: &mut Call<'_>, data: ParticipantData) {
        let Some(&index) = self.remote_by_prefix.get(&data.guid.prefix) else { return };
        let Some(remote) = self.remotes.get(index) else { return };
        if *remote.data == data {
            return self.renew_lease(call.now, call.ctx, index);
        }
        let (source, here) = (remote.source, remote.metatraffic);
        // Unprotected announcements are compared with the previous unprotected one.
        let announcement = remote.announcement.clone();
        let mut refused = 0;
        let path = self.reachability.choose(&data.metatraffic_unicast, source, &mut refused).unwrap_or(here);
        call.ctx.counters.refused_locators += refused;
        self.adopt(call, index, ChangedAnnouncement { data: Box::new(data), announcement, source }, path);
    }

    /// Adopts an announcement and the path to its participant.
    fn adopt(&mut self, call: &mut Call<'_>, index: u32, changed: ChangedAnnouncement, path: Path) {
        self.cancel_move(call.ctx, index);
        let limits = call.ctx.limits;
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let before = remote.data.footprint() + remote.announcement.len();
        let after = changed.footprint();
        if remote.footprint - before + after > limits.max_discovery_bytes_per_participant
            || self.discovery_bytes - before + after > limits.max_discovery_bytes
        {
            // The former announcement is kept.
            call.ctx.counters.refused_remote_entities += 1;
            return self.renew_lease(call.now, call.ctx, index);
        }
        remote.footprint = remote.footprint - before + after;
        self.discovery_bytes = self.discovery_bytes - before + after;
        let ChangedAnnouncement { data, announcement, source } = changed;
        let moved = remote.metatraffic != path || remote.data.default_unicast != data.default_unicast;
        let prefix = remote.prefix;
        remote.source_addresses.add_validated(&remote.metatraffic.locator);
        remote.metatraffic = path;
        remote.last_received_on_path = call.now;
        remote.source = source;
        remote.data = data;
        remote.announcement = announcement;
        self.renew_lease(call.now, call.ctx, index);
        if let Some(remote) = self.remotes.get(index) {
            self.builtin_topics.present_participant(call, remote);
        }
        self.update_shared_memory_path(call.ctx, index);
        self.update_multicast_groups(call.ctx, call.endpoints, index);
        if moved {
            call.ctx.counters.participants_moved += 1;
            self.redirect_endpoints(call.ctx, call.endpoints, prefix);
            self.match_unreachable(call, prefix);
        }
    }

    /// Redirects traffic for a participant's endpoints, this participant's own included, to their
    /// present locators. Visits each of its endpoints, each local endpoint, and each match
    /// between them.
    pub(super) fn redirect_endpoints(&mut self, ctx: &mut Context, endpoints: &mut Endpoints, prefix: GuidPrefix) {
        let announced = self.announced_locators(ctx, endpoints, prefix);
        // Usually one: endpoints rarely have transports of their own.
        let of_writers = endpoints.writers.iter().map(|(_, writer)| writer.kinds);
        let kinds: BTreeSet<LocatorKinds> =
            of_writers.chain(endpoints.readers.iter().map(|(_, it)| it.kinds)).collect();
        ctx.work.steps(announced.len() * kinds.len() + endpoints.writers.len());
        let mut paths: BTreeMap<(LocatorKinds, Guid), (Locator, MulticastReachability)> = BTreeMap::new();
        for kinds in kinds {
            for (guid, unicast, has_own) in &announced {
                if let Some(path) = self.path_to(ctx, prefix, unicast, kinds) {
                    paths.insert(
                        (kinds, *guid),
                        (path.locator, self.multicast_reachability_of(prefix, *has_own, &path)),
                    );
                }
            }
        }
        let metatraffic = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get(index));
        let metatraffic = metatraffic.map(|remote| (remote.metatraffic.locator, MulticastReachability::default()));
        let path_of = |kinds: LocatorKinds, guid: &Guid| match guid.entity_id.is_builtin() {
            true => metatraffic,
            false => paths.get(&(kinds, *guid)).copied(),
        };
        for (_, writer) in endpoints.writers.iter_mut() {
            let kinds = writer.kinds;
            writer.redirect_readers(ctx, prefix, &|guid| path_of(kinds, guid));
        }
        let from = Guid { prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        for (guid, listeners) in endpoints.sources.range(from..).take_while(|(guid, _)| guid.prefix == prefix) {
            ctx.work.steps(listeners.len());
            for &(reader, proxy) in listeners {
                if let Some(reader) = endpoints.readers.get_mut(reader)
                    && let Some((locator, _)) = path_of(reader.kinds, guid)
                    && let Some(proxy) = reader.proxies.get_mut(proxy)
                {
                    proxy.path.locator = locator;
                }
            }
        }
    }

    /// Returns the user endpoints of a participant with the unicast locators that they announce,
    /// and whether any locators are theirs alone.
    fn announced_locators(
        &self,
        ctx: &Context,
        endpoints: &Endpoints,
        prefix: GuidPrefix,
    ) -> Vec<(Guid, Vec<Locator>, bool)> {
        let of_writer = |data: &PublicationData| (data.guid, data.unicast.clone(), !data.unicast.is_empty());
        let of_reader = |data: &SubscriptionData| (data.guid, data.unicast.clone(), has_own_locators(data));
        if prefix == ctx.header.prefix {
            let writers = endpoints.writers.iter().map(|(_, writer)| of_writer(&writer.data));
            let readers = endpoints.readers.iter().map(|(_, reader)| of_reader(&reader.data));
            return writers.chain(readers).collect();
        }
        let from = Guid { prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        let writers = self.publications.range(from..).take_while(|(guid, _)| guid.prefix == prefix);
        let readers = self.subscriptions.range(from..).take_while(|(guid, _)| guid.prefix == prefix);
        let writers = writers.map(|(_, data)| of_writer(data));
        writers.chain(readers.map(|(_, data)| of_reader(data))).collect()
    }

    /// Handles a change of this host's interfaces or their addresses.
    pub(crate) fn handle_interfaces(
        &mut self,
        call: &mut Call<'_>,
        interfaces: Vec<Interface>,
        locators: Locators,
    ) -> bool {
        if *self.reachability.interfaces() == interfaces && self.locators == locators {
            if self.is_enabled {
                self.announcer.announce_soon(call.now, call.ctx);
            }
            return false;
        }
        call.ctx.work.unit();
        let former = core::mem::replace(&mut self.locators, locators);
        self.initial_peers.retain(|peer| !former.metatraffic_multicast.contains(peer));
        self.initial_peers.extend_from_slice(&self.locators.metatraffic_multicast);
        self.reachability.set_interfaces(interfaces);
        self.reachability.set_own(&self.locators);
        let Self { announcer, locators, .. } = self;
        announcer.announce_change(call.now, call.ctx, |data| {
            data.metatraffic_unicast.clone_from(&locators.metatraffic_unicast);
            data.metatraffic_multicast.clone_from(&locators.metatraffic_multicast);
            data.default_unicast.clone_from(&locators.default_unicast);
            data.default_multicast.clone_from(&locators.default_multicast);
        });
        self.announce_own_ports(call);
        self.redirect_endpoints(call.ctx, call.endpoints, call.ctx.header.prefix);
        self.reset_multicast_groups(call.ctx, call.endpoints);
        let known: Vec<u32> = self.remotes.iter().map(|(index, _)| index).collect();
        for index in known {
            call.ctx.work.unit();
            self.choose_path(call, index);
        }
        true
    }

    /// Announces endpoints with ports of their own at the new addresses.
    fn announce_own_ports(&mut self, call: &mut Call<'_>) {
        let addresses = self.locators.default_unicast.clone();
        let mut announced = Vec::new();
        for (_, writer) in call.endpoints.writers.iter_mut() {
            if let Some(unicast) = at_addresses(&writer.data.unicast, &addresses) {
                writer.data.unicast = unicast;
                announced.push(writer.data.clone());
            }
        }
        for data in announced {
            self.announce_publication(call, &data);
        }
        let mut announced = Vec::new();
        for (_, reader) in call.endpoints.readers.iter_mut() {
            if let Some(unicast) = at_addresses(&reader.data.unicast, &addresses) {
                reader.data.unicast = unicast;
                announced.push(reader.data.clone());
            }
        }
        for data in announced {
            self.announce_subscription(call, &data);
        }
    }

    /// Chooses the path to a participant after a change of the interfaces.
    fn choose_path(&mut self, call: &mut Call<'_>, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let prefix = remote.prefix;
        let changed = match &remote.moving {
            Some(moving) => moving.changed.clone(),
            None => {
                let (data, announcement) = (remote.data.clone(), remote.announcement.clone());
                ChangedAnnouncement { data, announcement, source: remote.source }
            }
        };
        match self.evaluate_address(call.ctx, index, &changed) {
            Verdict::Accepted(path) => {
                let Some(remote) = self.remotes.get_mut(index) else { return };
                if remote.moving.is_some() {
                    return self.adopt(call, index, changed, path);
                }
                remote.metatraffic = path;
                self.update_shared_memory_path(call.ctx, index);
                self.update_multicast_groups(call.ctx, call.endpoints, index);
                self.redirect_endpoints(call.ctx, call.endpoints, prefix);
                self.match_unreachable(call, prefix);
            }
            Verdict::NeedsValidation(path) => self.try_path(call.ctx, index, changed, path),
            // The interface may return.
            Verdict::Unreachable => {}
        }
    }

    fn try_path(&mut self, ctx: &mut Context, index: u32, changed: ChangedAnnouncement, path: Path) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let former = remote.challenged_at();
        match &mut remote.probation {
            Some(probation) => {
                remote.metatraffic = path;
                probation.restart(former);
                self.queue_validation(ctx, index);
            }
            None if changed.data.vendor_id == VendorId::TAKT => self.begin_move(ctx, index, changed, path),
            None => {}
        }
    }
}

impl Remote {
    /// Reports whether an announcement has arrived by another connection than before, while the
    /// former one is silent.
    pub(super) fn uses_other_connection(&self, now: Instant, source: Locator) -> bool {
        let here = self.metatraffic.locator;
        let is_another = source.is_tcp() && here.is_tcp() && source != here;
        is_another && now.since(self.last_received_on_path) > self.lease_duration() / 2
    }

    /// Returns the validation in progress, and the path that it validates.
    pub(super) fn trial(&mut self) -> Option<(&mut Probation, Path)> {
        let at = self.metatraffic;
        match (&mut self.probation, &mut self.moving) {
            (Some(probation), _) => Some((probation, at)),
            (None, Some(moving)) => Some((&mut moving.probation, moving.path)),
            (None, None) => None,
        }
    }
}

/// Returns the UDP and Ethernet ports of `own` at each of the `addresses`, and the other locators
/// of `own`; `None` if nothing changes.
fn at_addresses(own: &[Locator], addresses: &[Locator]) -> Option<Vec<Locator>> {
    const KINDS: [i32; 3] = [Locator::KIND_UDP_V4, Locator::KIND_UDP_V6, Locator::KIND_TAKT_ETHERNET];
    let has_ports = |locator: &&Locator| KINDS.contains(&locator.kind);
    let ports: BTreeSet<(i32, u32)> =
        own.iter().filter(has_ports).map(|locator| (locator.kind, locator.port)).collect();
    let mut found: Vec<Locator> = own.iter().filter(|locator| !has_ports(locator)).copied().collect();
    for (kind, port) in ports {
        let there = addresses.iter().filter(|address| address.kind == kind);
        found.extend(there.map(|address| Locator { port, ..*address }));
    }
    (!found.is_empty() && found != own).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use core::net::Ipv4Addr;

    #[test]
    fn ports_are_kept_when_addresses_change() {
        let at = |host, port| Locator::udp_v4(Ipv4Addr::new(10, 0, 0, host), port);
        let addresses = [at(7, 7411), at(8, 7411)];
        assert_eq!(at_addresses(&[at(1, 5001)], &addresses), Some(vec![at(7, 5001), at(8, 5001)]));
        assert_eq!(at_addresses(&[at(7, 5001), at(8, 5001)], &addresses), None);
        assert_eq!(at_addresses(&[], &addresses), None);
        assert_eq!(at_addresses(&[at(1, 5001)], &[]), None, "without an address it is unchanged");
    }
}
