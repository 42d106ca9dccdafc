//! Restoration of the state of an earlier run, from its records and the tables of the switches.
//!
//! Participants, endpoints and verdicts apply at once. Hosts are restored at their former ports
//! once the switch there is adopted and the port is an edge. Admitted pairs are admitted again in
//! their former order, with their meters, as soon as the network permits. Until then, for at most
//! [`Config::restoration`](super::Config::restoration), switches keep their entries, and no other
//! pair is decided. Afterwards, entries without a pair are deleted, and pairs that do not fit any
//! more are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::from_slice;
use takt_openflow::channel::Instant;
use takt_openflow::flow::FlowMod;
use takt_openflow::group::GroupMod;
use takt_openflow::meter::MeterMod;

use super::{Controller, Event, FlowKey};
use crate::PortRef;
use crate::admission::{Admission, FIRST_METER};
use crate::devices::{HostId, Vlan};
use crate::discovery::{Pair, pair_key, pair_of_key};
use crate::forwarding::rules::{Kind, meter};
use crate::frame::MacAddress;
use crate::rules::GROUPS;
use crate::store::{Records, of_kind, record};
use crate::topology::Role;

/// Entries, meters and groups of the earlier run in a switch.
type EarlierRun = (BTreeMap<FlowKey, FlowMod>, BTreeMap<u32, MeterMod>, BTreeMap<u32, GroupMod>);

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct HostRecord {
    vlan: Vlan,
    mac: [u8; 6],
    at: (u64, u32),
    addresses: Vec<IpAddr>,
}

#[derive(Serialize, Deserialize)]
struct AdmittedRecord {
    /// Position in the order in which pairs are admitted again.
    order: u64,
    meters: Vec<u32>,
}

/// State that is still to be restored.
pub(super) struct Restoration {
    pub(super) until: Instant,
    /// Pairs with their meters, in the order of their admission.
    pairs: Vec<(Pair, Vec<u32>)>,
    /// Pairs that requested admission meanwhile.
    pub(super) deferred: BTreeSet<Pair>,
}

impl Controller {
    /// Returns all state that is to be kept, by key. The cost is that of copying it.
    pub fn records(&self) -> Records {
        let mut records = Records::new();
        self.discovery.records(&mut records);
        self.registrations.records(&mut records);
        for (id, host) in self.devices.iter() {
            let addresses = host.addresses.iter().copied().collect();
            let value = HostRecord { vlan: id.vlan, mac: id.mac.0, at: (host.at.dpid, host.at.port), addresses };
            record(&mut records, format!("host/{}/{}", id.vlan, id.mac), &value);
        }
        for host in &self.hosts_kept {
            let key = format!("host/{}/{}", host.vlan, MacAddress(host.mac));
            if !records.contains_key(&key) {
                record(&mut records, key, host);
            }
        }
        for (pair, order, meters) in self.admission.iter().flat_map(Admission::admitted_pairs) {
            record(&mut records, pair_key("admitted", pair), &AdmittedRecord { order, meters });
        }
        // During restoration no other pair is admitted, so the pairs still to be restored get the
        // first numbers.
        for (n, (pair, meters)) in self.restoration.iter().flat_map(|restoration| &restoration.pairs).enumerate() {
            let value = AdmittedRecord { order: n as u64, meters: meters.clone() };
            record(&mut records, pair_key("admitted", *pair), &value);
        }
        records
    }

    /// Restores the state of an earlier run. Must be called before the first connection.
    pub fn restore(&mut self, now: Instant, records: &Records) {
        if records.is_empty() {
            return;
        }
        let mut unreadable = self.discovery.restore(now, records) + self.registrations.restore(now, records);
        let sources: Vec<_> = self.discovery.participants().map(|data| data.guid.prefix).collect();
        for prefix in sources {
            if let Some((_, source, _)) = self.discovery.origin(prefix) {
                self.learn_metatraffic(now, prefix, source.ip());
            }
        }
        let mut hosts = Vec::new();
        for (_, value) in of_kind(records, "host") {
            match from_slice(value) {
                Ok(host) => hosts.push(host),
                Err(_) => unreadable += 1,
            }
        }
        let mut pairs = Vec::new();
        for (key, value) in of_kind(records, "admitted") {
            match pair_of_key(key).zip(from_slice::<AdmittedRecord>(value).ok()) {
                // tidy-allow(dropped-cause): unreadable records are counted.
                Some((pair, AdmittedRecord { order, meters })) => pairs.push((order, pair, meters)),
                None => unreadable += 1,
            }
        }
        pairs.sort_by_key(|(order, pair, _)| (*order, *pair));
        let pairs: Vec<(Pair, Vec<u32>)> = pairs.into_iter().map(|(_, pair, meters)| (pair, meters)).collect();
        let deferred = self.discovery.decided().map(|(pair, _)| pair).chain(self.registered_pairs()).collect();
        let participants = self.discovery.participants().count();
        let until = now.after(self.config.restoration);
        self.push(Event::Restored { participants, hosts: hosts.len(), pairs: pairs.len(), unreadable });
        self.restoration = Some(Restoration { until, pairs, deferred });
        self.hosts_kept = hosts;
        self.renew_filters();
        self.handle_discovery_events(now);
    }

    /// Restores the hosts of a switch that none of its rules names.
    pub(super) fn restore_hosts(&mut self, now: Instant, dpid: u64) {
        let (here, others): (Vec<HostRecord>, _) =
            std::mem::take(&mut self.hosts_kept).into_iter().partition(|host| host.at.0 == dpid);
        self.hosts_kept = others;
        for HostRecord { vlan, mac, at: (dpid, port), addresses } in here {
            let (at, host) = (PortRef::new(dpid, port), HostId { vlan, mac: MacAddress(mac) });
            if self.topology.role(at) == Role::Edge && self.observe(now, at, host) {
                addresses.into_iter().for_each(|address| _ = self.claim(now, at, host, address));
            }
        }
    }

    /// Admits pairs of the earlier run again, as far as the network permits, and then decides the
    /// deferred ones.
    pub(super) fn advance_restoration(&mut self, now: Instant, admission: &mut Admission) {
        let Some(mut restoration) = self.restoration.take() else { return };
        restoration.pairs.retain(|(pair, meters)| match self.application(admission, *pair, *pair) {
            Some(Ok(application)) => !admission.readmit(&application, meters),
            Some(Err(_)) => true,
            None => false,
        });
        if !restoration.pairs.is_empty() && now < restoration.until {
            self.restoration = Some(restoration);
            return;
        }
        restoration.deferred.extend(restoration.pairs.into_iter().map(|(pair, _)| pair));
        for pair in restoration.deferred {
            if admission.progress(pair).is_none() {
                self.apply(admission, pair);
            }
        }
        self.is_restored = true;
    }

    /// Discards everything that was not found again when the time is over.
    pub(super) fn end_restoration(&mut self, now: Instant) {
        if self.restoration.as_ref().is_some_and(|restoration| now >= restoration.until) {
            self.hosts_kept.clear();
            if self.admission.is_none() {
                self.restoration = None;
            }
        }
    }

    /// Returns a counter that is incremented when [`Self::records`] may have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns entries, meters and groups of admitted flows that a switch has from the earlier run.
    pub(super) fn entries_of_earlier_run(&self, dpid: u64) -> EarlierRun {
        let none = || (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (Some(_), Some(switch)) = (&self.restoration, self.switches.get(&dpid)) else { return none() };
        let tables = switch.sync.actual();
        let flows = tables.flows.iter().filter(|(_, flow)| flow.cookie == Kind::Admitted.cookie());
        let meters = tables.meters.range(FIRST_METER..meter::HOSTS);
        (
            flows.map(|(key, flow)| (key.clone(), flow.clone())).collect(),
            meters.map(|(id, meter)| (*id, meter.clone())).collect(),
            tables.groups.range(GROUPS).map(|(id, group)| (*id, group.clone())).collect(),
        )
    }
}
