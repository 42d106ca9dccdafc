//! Admission in the controller: builds the network model, requests the admission of pairs, and
//! installs the entries of admitted flows.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use takt_openflow::channel::Instant;
use takt_openflow::oxm::VLAN_PRESENT;
use takt_wire::qos::ReliabilityKind;
use takt_wire::{GuidPrefix, Locator, VendorId};

use super::registration::is_registered;
use super::tables::rules;
use super::{Controller, Event, FlowKey};
use crate::PortRef;
use crate::admission::{Admission, Application, End, Outcome, Presence, Sibling, Wanted, port_of};
use crate::devices::Vlan;
use crate::discovery::{Pair, PairView};
use crate::forwarding::rules::Kind;
use crate::frame::{MacAddress, VlanTag};
use crate::model::{Egress, HostId};
use crate::rules::{Entry, GROUPS, Selector};
use crate::schedule::{PairStages, trailer_len};
use crate::topology::Role;

/// Vendors whose writers serve a reader by unicast as long as no other reader announces its group.
const UNICAST_TO_ONE: [VendorId; 3] = [VendorId::TAKT, VendorId::CYCLONE, VendorId::EPROSIMA];

/// Wanted entries, meters and groups of a flow, by switch.
pub(super) struct Installed {
    flows: Vec<(u64, Arc<FlowKey>)>,
    meters: Vec<(u64, u32)>,
    groups: Vec<(u64, u32)>,
}

pub(super) fn model_host(mac: MacAddress) -> HostId {
    let [a, b, c, d, e, f] = mac.0;
    HostId(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Returns the VLAN of a participant; `None` if its frames have several tags.
fn vlan_of(tags: &[VlanTag]) -> Option<Vlan> {
    match tags {
        [] => Some(0),
        [tag] => Some(VLAN_PRESENT | tag.vid),
        _ => None,
    }
}

/// Returns the VLAN of both ends of a pair, or the reason why rules for the pair match nothing.
fn common_vlan(view: &PairView<'_>) -> Result<Vlan, String> {
    let name = |vlan: Vlan| match vlan {
        0 => "sends without a VLAN tag".to_owned(),
        vlan => format!("sends in VLAN {}", vlan & !VLAN_PRESENT),
    };
    match (vlan_of(view.writer_tags), vlan_of(view.reader_tags)) {
        (Some(writer), Some(reader)) if writer == reader => Ok(writer),
        (Some(writer), Some(reader)) => Err(format!(
            "the writer {} and the reader {}, and rules of admitted flows keep tags; let both send in one VLAN, or without a tag",
            name(writer),
            name(reader)
        )),
        _ => Err("writer or reader sends frames with several VLAN tags, and rules match at most one; let both send \
                  with one tag, or without"
            .to_owned()),
    }
}

impl Controller {
    /// Returns the state of admission; `None` without a description of the network.
    pub fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref()
    }

    /// Decides on a pair with a contract, or defers the decision.
    pub(super) fn request_admission(&mut self, now: Instant, pair: Pair) {
        let Some(mut admission) = self.admission.take() else {
            // Without a description of the network every pair matches. A removed pair needs no
            // decision.
            let _ = self.discovery.release(now, pair);
            return;
        };
        admission.remove_pair(pair);
        match &mut self.restoration {
            // The resources of pairs of the earlier run are not known yet.
            Some(restoration) => _ = restoration.deferred.insert(pair),
            None => self.apply(&mut admission, pair),
        }
        self.admission = Some(admission);
    }

    pub(super) fn remove_pair(&mut self, pair: Pair) {
        if let Some(admission) = &mut self.admission {
            admission.remove_pair(pair);
        }
    }

    /// Defers a pair that needs no admission until the other pairs of its writer have their flows
    /// to groups.
    pub(super) fn request_companion(&mut self, now: Instant, pair: Pair) {
        let Some(mut admission) = self.admission.take() else {
            // A removed pair needs no decision.
            let _ = self.discovery.release(now, pair);
            return;
        };
        match &mut self.restoration {
            Some(restoration) => _ = restoration.deferred.insert(pair),
            None => self.apply(&mut admission, pair),
        }
        self.admission = Some(admission);
    }

    pub(super) fn apply(&self, admission: &mut Admission, pair: Pair) {
        if is_registered(pair) {
            return match self.registered_application(admission, pair) {
                Some(Ok(application)) => admission.request(&application, &[]),
                Some(Err((importance, reason))) => admission.refuse(pair, importance, reason),
                None => admission.remove_pair(pair),
            };
        }
        let mut siblings = self.siblings(admission, pair);
        // Other writers of the participant discover the reader at the same time.
        let shown = self.discovery.shown_with(pair);
        siblings.extend(shown.into_iter().flat_map(|other| self.siblings(admission, other)));
        let view = self.discovery.pair(pair).filter(|view| !view.is_denied);
        let is_local = view.as_ref().is_some_and(|view| view.writer_host.1.ip() == view.reader_host.1.ip());
        match self.application(admission, pair, pair) {
            // Discovery within a host passes no switch and cannot be withheld.
            _ if is_local => admission.admit_local_companion(pair, &siblings),
            Some(Ok(application)) => admission.request(&application, &siblings),
            Some(Err((importance, reason))) => admission.refuse(pair, importance, reason),
            None if view.is_some() => admission.admit_companion(pair, &siblings),
            None => admission.remove_pair(pair),
        }
    }

    /// Returns the admitted pairs of the same writer, with the groups by which it may send their
    /// samples once `pair` matches.
    fn siblings(&self, admission: &Admission, pair: Pair) -> Vec<Sibling> {
        let others = self.discovery.pairs_of(pair.writer).into_iter();
        let others = others.filter(|other| *other != pair && admission.is_admitted(*other));
        let siblings = others
            .filter_map(|other| Some(Sibling { pair: other, application: self.application(admission, other, pair)? }));
        let is_by_unicast = |sibling: &Sibling| sibling.application.as_ref().is_ok_and(|own| own.groups.is_empty());
        siblings.filter(|sibling| !is_by_unicast(sibling)).collect()
    }

    /// Checks which admitted flows the datagrams of a pair without a contract share.
    pub(super) fn register_uncontracted(&mut self, pair: Pair) {
        let Some(mut admission) = self.admission.take() else { return };
        match self.sockets(&admission, pair) {
            Some((topic, selectors)) => admission.register_uncontracted(pair, topic, selectors),
            None => admission.remove_pair(pair),
        }
        self.admission = Some(admission);
    }

    /// Returns the topic of a pair without a contract, and the selectors that its datagrams match;
    /// `None` if it is within one host, or not known well enough.
    fn sockets(&self, admission: &Admission, pair: Pair) -> Option<(String, Vec<Selector>)> {
        let view = self.discovery.pair(pair).filter(|view| view.contract.is_err())?;
        // Without a common VLAN, no entry matches its datagrams.
        let Ok(vlan) = common_vlan(&view) else { return None };
        let end = |address: std::net::IpAddr| {
            let host = self.devices.by_address(vlan, address)?;
            Some(End { host: model_host(host.mac), vlan, address, trailer_len: 0 })
        };
        let (writer, reader) = (end(view.writer_host.1.ip())?, end(view.reader_host.1.ip())?);
        let of_writer = self.locators_of(&view.writer.unicast, pair.writer.prefix);
        let is_reliable = view.reader.qos.reliability.kind == ReliabilityKind::Reliable;
        let samples = port_of(&view.destinations, reader.address).map(|port| writer.selector_to(&reader, port));
        let answers = port_of(of_writer, writer.address).filter(|_| is_reliable);
        let answers = answers.map(|port| reader.selector_to(&writer, port));
        let groups = self.groups(admission, &view, &writer, (pair, pair)).unwrap_or_default();
        let to_reader = writer.selector_to(&reader, 0);
        let groups =
            groups.into_iter().map(|group| Selector { destination: group.ip(), port: group.port(), ..to_reader });
        let selectors: Vec<Selector> = samples.into_iter().chain(answers).chain(groups).collect();
        (writer.host != reader.host).then(|| (view.writer.topic_name.clone(), selectors))
    }

    /// Returns the locators of an endpoint: its own, or else those of its participant.
    fn locators_of<'a>(&'a self, own: &'a [Locator], prefix: GuidPrefix) -> &'a [Locator] {
        let participant = || self.discovery.participants().find(|data| data.guid.prefix == prefix);
        if own.is_empty() { participant().map_or(&[], |data| &data.default_unicast) } else { own }
    }

    /// Returns the groups by which a writer may send samples to the reader of a pair, once it has
    /// matched the reader of `with`.
    fn groups(
        &self,
        admission: &Admission,
        view: &PairView<'_>,
        writer: &End,
        (pair, with): (Pair, Pair),
    ) -> Result<Vec<SocketAddr>, String> {
        let least = if UNICAST_TO_ONE.contains(&view.writer_vendor) { 2 } else { 1 };
        // Admitted readers count even if the interceptor still refuses or holds them: they match as
        // soon as their entries are in force.
        let counts = self.discovery.fan_out(pair.writer, |other| other == with || admission.is_admitted(other));
        let mut groups = Vec::new();
        for group in view.groups.iter().filter_map(Locator::socket_addr) {
            let is_used = counts.get(&group).is_some_and(|count| *count >= least) && !groups.contains(&group);
            if !is_used || !self.may_send_to(pair.writer.prefix, writer, &group) {
                continue;
            }
            if !group.ip().is_multicast() {
                return Err(format!("the reader's multicast locator {group} is not a multicast address; remove it"));
            }
            if group.is_ipv4() != writer.address.is_ipv4() {
                return Err(format!(
                    "the writer may send samples to the group {group}, whose IP version differs from its unicast; let \
                     participants use one version of IP, or no multicast for samples"
                ));
            }
            if self.discovery_ports.contains(&group.port()) {
                return Err(format!(
                    "the reader receives samples at the group {group}, whose UDP port is that of discovery, so that \
                     rules for samples would let discovery bypass the controller; give samples a port of their own \
                     (RTPS: 7401 + 250 * domain)"
                ));
            }
            groups.push(group);
        }
        Ok(groups)
    }

    /// Reports whether a participant uses the IP version of a group, so that it may send to the
    /// group.
    fn may_send_to(&self, prefix: GuidPrefix, writer: &End, group: &SocketAddr) -> bool {
        let mut participants = self.discovery.participants().filter(|data| data.guid.prefix == prefix);
        let is_of_version = |locator: &Locator| locator.ip().is_some_and(|ip| ip.is_ipv4() == group.is_ipv4());
        group.is_ipv4() == writer.address.is_ipv4()
            || participants.any(|data| data.default_unicast.iter().any(is_of_version))
    }

    /// Returns the admission request of a pair once its writer has matched the reader of `with`, or
    /// its importance and the missing facts; `None` if the pair has no contract or was removed.
    pub(super) fn application(
        &self,
        admission: &Admission,
        pair: Pair,
        with: Pair,
    ) -> Option<Result<Application, (i32, String)>> {
        if is_registered(pair) {
            return self.registered_application(admission, pair);
        }
        let view = self.discovery.pair(pair).filter(|view| !view.is_denied)?;
        let contract = *view.contract.as_ref().ok()?;
        let build = || {
            let vlan = common_vlan(&view)?;
            let writer = self.end_of("writer", (vlan, view.writer_host.1.ip()), view.writer_vendor)?;
            let reader = self.end_of("reader", (vlan, view.reader_host.1.ip()), view.reader_vendor)?;
            if writer.address.is_ipv4() != reader.address.is_ipv4() {
                return Err("writer and reader use different versions of IP".to_owned());
            }
            let port = |what: &str, end: &End, locators: &[Locator], prefix| {
                let port = port_of(locators, end.address);
                let port = port.ok_or_else(|| format!("the {what} announces no UDP port at {}", end.address))?;
                if self.is_shared(prefix, end, port) {
                    return Err(format!(
                        "the {what} receives discovery and samples at UDP port {port}, so that rules for samples \
                         would let discovery bypass the controller; give it separate ports (CycloneDDS: \
                         Discovery/ParticipantIndex auto)"
                    ));
                }
                Ok(port)
            };
            let data_port = port("reader", &reader, &view.destinations, pair.reader.prefix)?;
            let is_reliable = view.reader.qos.reliability.kind == ReliabilityKind::Reliable;
            let of_writer = || {
                let locators = self.locators_of(&view.writer.unicast, pair.writer.prefix);
                port("writer", &writer, locators, pair.writer.prefix)
            };
            let answer_port = is_reliable.then(of_writer).transpose()?;
            for (at, _) in [view.writer_host, view.reader_host] {
                if self.switches.get(&at.dpid).is_none_or(|switch| !switch.has_meters) {
                    return Err(format!("switch {:016x} has no meters", at.dpid));
                }
            }
            let name = format!("{} {pair}", view.writer.topic_name.escape_debug());
            let stages =
                PairStages { writer: view.writer.host_stages.clone(), reader: view.reader.host_stages.clone() };
            let groups = self.groups(admission, &view, &writer, (pair, with))?;
            let has_reliable_writer = view.writer.qos.reliability.kind == ReliabilityKind::Reliable;
            let announces_groups = !view.groups.is_empty();
            Ok(Application {
                pair,
                name,
                contract,
                writer,
                reader,
                data_port,
                answer_port,
                has_reliable_writer,
                announces_groups,
                probes_paths: view.writer_vendor == VendorId::TAKT,
                groups,
                stages,
            })
        };
        Some(build().map_err(|reason| (contract.importance.value, reason)))
    }

    /// Returns an end of a pair by its address in a VLAN.
    fn end_of(&self, what: &str, (vlan, address): (Vlan, IpAddr), vendor: VendorId) -> Result<End, String> {
        let host = self.devices.by_address(vlan, address);
        let host = host.ok_or_else(|| format!("the host of the {what}, {address}, is not known"))?;
        let here = self.devices.get(host).map(|host| host.at);
        let modeled = self.devices.interface(host.mac);
        if let Some((here, modeled)) = here.zip(modeled).filter(|(here, modeled)| here != modeled) {
            return Err(format!(
                "the host of the {what}, {host}, is at {here}, and its Ethernet address was seen before in another \
                 VLAN at {modeled}; give interfaces at different ports different addresses"
            ));
        }
        Ok(End { host: model_host(host.mac), vlan, address, trailer_len: trailer_len(vendor) })
    }

    /// Reports whether the participant receives discovery at this port, too: rules for samples
    /// would let it bypass the controller.
    fn is_shared(&self, prefix: GuidPrefix, end: &End, port: u16) -> bool {
        let mut participants = self.discovery.participants().filter(|data| data.guid.prefix == prefix);
        let is_same = |locator: &Locator| locator.socket_addr() == Some((end.address, port).into());
        self.discovery_ports.contains(&port) || participants.any(|data| data.metatraffic_unicast.iter().any(is_same))
    }

    /// Adapts admitted flows to the network and the switches, until no further decision is possible
    /// now.
    pub(super) fn advance_admission(&mut self, now: Instant) {
        let mut may_retry = true;
        while let Some(mut admission) = self.admission.take() {
            let is_stale = std::mem::take(&mut self.is_network_stale);
            if is_stale {
                let hosts = self.devices.interfaces().map(|(mac, at)| (model_host(mac), at));
                let network = admission.file().network(self.topology.switches(), self.topology.links(), hosts);
                admission.set_network(network);
                let snapshot = admission.snapshot();
                self.rate_limiters.retain(now, |at| snapshot.link(Egress::Switch(at)).is_some());
                admission.retry();
            }
            if is_stale || self.restoration.as_ref().is_some_and(|restoration| now >= restoration.until) {
                self.advance_restoration(now, &mut admission);
            }
            if is_stale {
                let known = self.discovery.pairs().filter_map(|pair| Some((pair, self.sockets(&admission, pair)?)));
                let known: Vec<_> = known.collect();
                known
                    .into_iter()
                    .for_each(|(pair, (topic, selectors))| admission.register_uncontracted(pair, topic, selectors));
            }
            may_retry &= self.restoration.is_none();
            let retried = if std::mem::take(&mut may_retry) { admission.next_retry() } else { None };
            if let Some(pair) = retried {
                self.apply(&mut admission, pair);
            }
            if std::mem::take(&mut self.are_members_stale) | is_stale | admission.has_new_groups() {
                admission.set_members(self.links(), |selector| self.members(selector));
            }
            let switches = &self.switches;
            let presence = |entry: &Entry| {
                switches.get(&entry.dpid).map_or(Presence::Absent, |switch| switch.sync.presence(entry))
            };
            let is_connected = |dpid| switches.get(&dpid).is_some_and(|switch| switch.connection.is_some());
            let version = |dpid| switches.get(&dpid).map_or(0, |switch| switch.sync.version());
            let is_changed = admission.advance(now, presence, is_connected, version) | self.is_restored;
            let outcomes = admission.take_outcomes();
            self.retry_at = (self.restoration.is_none() && admission.has_retries()).then_some(now);
            self.admission = Some(admission);
            if is_changed {
                self.want_changed();
            }
            if outcomes.is_empty() {
                return;
            }
            outcomes.into_iter().for_each(|outcome| self.apply_outcome(now, outcome));
            self.handle_discovery_events(now);
        }
    }

    /// Returns the edge ports where members of a group may be; none if the isolation policy denies
    /// traffic to the group.
    fn members(&self, selector: &Selector) -> BTreeSet<PortRef> {
        let group = SocketAddr::new(selector.destination, selector.port);
        if !crate::isolation::passes_to(&self.filters, selector.source, group) {
            return BTreeSet::new();
        }
        // Membership queries are untagged, so hosts in VLANs do not answer.
        let group = MacAddress::of_group(selector.destination).filter(|_| selector.vlan == 0);
        let receivers = group.and_then(|group| self.membership.receivers(group));
        receivers.unwrap_or_else(|| self.topology.edges().collect())
    }

    fn apply_outcome(&mut self, now: Instant, outcome: Outcome) {
        if is_registered(outcome.pair()) {
            return self.update_registration(now, outcome);
        }
        match outcome {
            Outcome::Admitted { pair, bound_ns } => {
                if self.discovery.release(now, pair).is_ok() {
                    self.log_decision(now, pair, Ok(bound_ns));
                    self.push(Event::Admitted { pair, bound_ns });
                }
            }
            // The pair may have been removed, or matches already.
            Outcome::Free { pair } => _ = self.discovery.release(now, pair),
            Outcome::Caution { pair, topic } => self.push(Event::Caution { pair, topic }),
            Outcome::Protection { pair, protection } => self.push(Event::Protection { pair, protection }),
            Outcome::Refused { pair, reason } => {
                let before = self.discovery.pair(pair).and_then(|view| view.refused.map(str::to_owned));
                if before.as_ref() == Some(&reason) {
                    return;
                }
                let Ok(enforcement) = self.discovery.refuse(now, pair, &reason) else { return };
                if let Some(mut admission) = self.admission.take_if(|_| !enforcement.known_to_writer) {
                    // The writer discovers the reader all the same.
                    admission.admit_unconditionally(pair, &self.siblings(&admission, pair));
                    self.admission = Some(admission);
                }
                self.log_decision(now, pair, Err(reason.clone()));
                self.push(Event::Refused { pair, reason });
            }
        }
    }

    /// Updates the wanted entries and meters of changed flows in all switches. Entries of an
    /// earlier run belong to no flow: while some exist, and when they are deleted, all flows are
    /// updated.
    fn want_changed(&mut self) {
        let is_restoring = self.restoration.is_some() | std::mem::take(&mut self.is_restored);
        let Some(mut admission) = self.admission.take() else { return };
        let changed = admission.take_changed();
        let wanted: Vec<(Selector, Wanted)> =
            changed.into_iter().map(|selector| (selector, admission.wanted(&selector))).collect();
        self.admission = Some(admission);
        // Deletions come first, since a flow may get the meter of a removed flow.
        for (selector, wanted) in &wanted {
            let Some(Installed { flows, meters, groups }) = self.installed.remove(selector) else { continue };
            let is_kept =
                |dpid: u64, key: &FlowKey| wanted.flows.iter().any(|(other, own, _)| (*other, &**own) == (dpid, key));
            for (dpid, key) in flows.into_iter().filter(|(dpid, key)| !is_kept(*dpid, key)) {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.drop_flow(&key));
            }
            for (dpid, group) in groups.into_iter().filter(|group| !wanted.groups.contains_key(group)) {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.drop_group(group));
            }
            for (dpid, meter) in meters.into_iter().filter(|meter| !wanted.meters.contains_key(meter)) {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.drop_meter(meter));
            }
        }
        for (selector, Wanted { flows, meters, groups }) in wanted {
            if flows.is_empty() && meters.is_empty() && groups.is_empty() {
                continue;
            }
            let installed = Installed {
                flows: flows.iter().map(|(dpid, key, _)| (*dpid, Arc::clone(key))).collect(),
                meters: meters.keys().copied().collect(),
                groups: groups.keys().copied().collect(),
            };
            self.installed.insert(selector, installed);
            for ((dpid, _), group) in groups {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.want_group(group.clone()));
            }
            for (dpid, _, flow) in flows {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.want(flow.clone()));
            }
            for ((dpid, _), meter) in meters {
                self.switches.get_mut(&dpid).into_iter().for_each(|switch| switch.sync.want_meter(meter.clone()));
            }
        }
        if is_restoring {
            let dpids: Vec<u64> = self.switches.keys().copied().collect();
            dpids.into_iter().for_each(|dpid| self.want_admitted(dpid));
        }
    }

    /// Sets the wanted entries of admitted flows in a switch, and all its meters.
    pub(super) fn want_admitted(&mut self, dpid: u64) {
        let (mut flows, mut meters, mut groups) = self.entries_of_earlier_run(dpid);
        let ports: Vec<(u32, Role)> = self.topology.ports(dpid).map(|(port, role)| (port.number, role)).collect();
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let rules = rules(&self.config, switch.has_meters, &switch.limits);
        let own = self.admission.iter().flat_map(|admission| admission.meters(dpid));
        meters.extend(rules.meters(&ports));
        // A meter of the earlier run stays unchanged until all pairs that share it are admitted
        // again.
        own.for_each(|meter| _ = meters.entry(meter.meter).or_insert(meter));
        if let Some(admission) = &self.admission {
            groups.extend(admission.groups(dpid).into_iter().map(|group| (group.group, group)));
            switch.sync.want_groups_within(&GROUPS, &groups);
            flows.extend(admission.entries(dpid).into_iter().map(|flow| (FlowKey::of(&flow), flow)));
            switch.sync.want_all(Kind::Admitted.cookie(), flows.into_values().collect());
        }
        switch.sync.want_meters(meters.into_values().collect());
        switch.has_admitted = true;
    }
}
