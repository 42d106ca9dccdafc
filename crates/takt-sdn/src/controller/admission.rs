//! Admission in the controller: fills the model of the network, asks for pairs, and gives switches the entries of admitted flows.

use takt_openflow::channel::Instant;
use takt_wire::qos::ReliabilityKind;
use takt_wire::{GuidPrefix, Locator};

use super::{Controller, Event, FlowKey};
use crate::admission::{Admission, Application, End, Outcome, Presence, port_of};
use crate::devices;
use crate::discovery::Pair;
use crate::forwarding::rules::{Kind, Rules};
use crate::frame::MacAddress;
use crate::model::HostId;

fn model_host(mac: MacAddress) -> HostId {
    let [a, b, c, d, e, f] = mac.0;
    HostId(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

impl Controller {
    /// Admitted pairs; `None` without a description of the network.
    pub fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref()
    }

    /// A pair with a contract waits for a verdict.
    pub(super) fn ask(&mut self, now: Instant, pair: Pair) {
        let Some(mut admission) = self.admission.take() else {
            // Without a description of the network every pair matches. One that has gone meanwhile needs no verdict.
            let _ = self.discovery.release(now, pair);
            return;
        };
        admission.forget(pair);
        match &mut self.restoration {
            // The share of the network that pairs of the earlier run have is not known yet.
            Some(restoration) => _ = restoration.deferred.insert(pair),
            None => self.apply(&mut admission, pair),
        }
        self.admission = Some(admission);
    }

    pub(super) fn forget_pair(&mut self, pair: Pair) {
        if let Some(admission) = &mut self.admission {
            admission.forget(pair);
        }
    }

    pub(super) fn apply(&self, admission: &mut Admission, pair: Pair) {
        match self.application(pair) {
            Some(Ok(application)) => admission.ask(&application),
            Some(Err((importance, reason))) => admission.refuse(pair, importance, reason),
            None => admission.forget(pair),
        }
    }

    /// What a pair asks for, or its importance and what is not known of it; `None` if it has no contract, or is no more.
    pub(super) fn application(&self, pair: Pair) -> Option<Result<Application, (i32, String)>> {
        let view = self.discovery.pair(pair)?;
        let contract = *view.contract.as_ref().ok()?;
        let end = |what: &str, address: std::net::IpAddr| {
            let host = self.devices.by_address(0, address);
            let host = host.ok_or_else(|| format!("the host of the {what}, {address}, is not known"))?;
            Ok::<_, String>(End { host: model_host(host.mac), address })
        };
        let build = || {
            let writer = end("writer", view.writer_host.1.ip())?;
            let reader = end("reader", view.reader_host.1.ip())?;
            if writer.address.is_ipv4() != reader.address.is_ipv4() {
                return Err("writer and reader use different versions of IP".to_owned());
            }
            let port = |what: &str, end: &End, locators: &[Locator], prefix| {
                let port = port_of(locators, end.address);
                let port = port.ok_or_else(|| format!("the {what} announces no UDP port at {}", end.address))?;
                if self.is_shared(prefix, end, port) {
                    return Err(format!("the {what} receives discovery and samples at UDP port {port}"));
                }
                Ok(port)
            };
            let data_port = port("reader", &reader, &view.destinations, pair.reader.prefix)?;
            let is_reliable = view.reader.qos.reliability.kind == ReliabilityKind::Reliable;
            let of_writer = || {
                let own = &view.writer.unicast;
                let mut participants = self.discovery.participants();
                let participant = participants.find(|data| data.guid.prefix == pair.writer.prefix);
                let locators = if own.is_empty() { participant.map(|data| &data.default_unicast) } else { Some(own) };
                port("writer", &writer, locators.map_or(&[], Vec::as_slice), pair.writer.prefix)
            };
            let answer_port = is_reliable.then(of_writer).transpose()?;
            for (at, _) in [view.writer_host, view.reader_host] {
                if self.switches.get(&at.dpid).is_none_or(|switch| !switch.has_meters) {
                    return Err(format!("switch {:016x} has no meters", at.dpid));
                }
            }
            let name = format!("{} {pair}", view.writer.topic_name.escape_debug());
            Ok(Application { pair, name, contract, writer, reader, data_port, answer_port })
        };
        Some(build().map_err(|reason| (contract.importance.value, reason)))
    }

    /// Whether discovery of a participant comes to this port, too: rules for samples would let it pass by the controller.
    fn is_shared(&self, prefix: GuidPrefix, end: &End, port: u16) -> bool {
        let mut participants = self.discovery.participants().filter(|data| data.guid.prefix == prefix);
        let is_same = |locator: &Locator| locator.socket_addr() == Some((end.address, port).into());
        self.discovery_ports.contains(&port) || participants.any(|data| data.metatraffic_unicast.iter().any(is_same))
    }

    /// Follows the network and the switches with admitted flows, until nothing more is to be decided now.
    pub(super) fn follow_admission(&mut self, now: Instant) {
        let mut may_retry = true;
        while let Some(mut admission) = self.admission.take() {
            let is_stale = std::mem::take(&mut self.is_network_stale);
            if is_stale {
                let untagged = self.devices.iter().filter(|(host, _)| host.vlan == 0);
                let hosts = untagged.map(|(host, data): (devices::HostId, _)| (model_host(host.mac), data.at));
                let network = admission.file().network(self.topology.switches(), self.topology.links(), hosts);
                admission.set_network(network);
                admission.retry();
            }
            if is_stale || self.restoration.as_ref().is_some_and(|restoration| now >= restoration.until) {
                self.follow_restoration(now, &mut admission);
            }
            may_retry &= self.restoration.is_none();
            let retried = if std::mem::take(&mut may_retry) { admission.next_retry() } else { None };
            if let Some(pair) = retried {
                self.apply(&mut admission, pair);
            }
            let switches = &self.switches;
            let presence =
                |dpid: u64, flow: &_| switches.get(&dpid).map_or(Presence::Absent, |switch| switch.sync.presence(flow));
            let is_changed = admission.advance(presence) | std::mem::take(&mut self.is_restored);
            let outcomes = admission.take_outcomes();
            self.retry_at = (self.restoration.is_none() && admission.has_retries()).then_some(now);
            self.admission = Some(admission);
            if is_changed {
                let dpids: Vec<u64> = self.switches.keys().copied().collect();
                dpids.into_iter().for_each(|dpid| self.want_admitted(dpid));
            }
            if outcomes.is_empty() {
                return;
            }
            outcomes.into_iter().for_each(|outcome| self.follow_outcome(now, outcome));
            self.follow_discovery(now);
        }
    }

    fn follow_outcome(&mut self, now: Instant, outcome: Outcome) {
        match outcome {
            Outcome::Admitted { pair, bound_ns } => {
                if self.discovery.release(now, pair).is_ok() {
                    self.log_decision(now, pair, Ok(bound_ns));
                    self.push(Event::Admitted { pair, bound_ns });
                }
            }
            Outcome::Refused { pair, reason } => {
                let before = self.discovery.pair(pair).and_then(|view| view.refused.map(str::to_owned));
                if before.as_ref() != Some(&reason) && self.discovery.refuse(now, pair, &reason).is_ok() {
                    self.log_decision(now, pair, Err(reason.clone()));
                    self.push(Event::Refused { pair, reason });
                }
            }
        }
    }

    /// The entries of admitted flows in a switch, and all its meters.
    pub(super) fn want_admitted(&mut self, dpid: u64) {
        let (mut flows, mut meters) = self.entries_of_earlier_run(dpid);
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let rules = Rules { config: &self.config.forwarding, has_meters: switch.has_meters };
        let own = self.admission.iter().flat_map(|admission| admission.meters(dpid));
        meters.extend(rules.meters().into_iter().chain(own).map(|meter| (meter.meter, meter)));
        if let Some(admission) = &self.admission {
            flows.extend(admission.entries(dpid).into_iter().map(|flow| (FlowKey::of(&flow), flow)));
            switch.sync.want_all(Kind::Admitted.cookie(), flows.into_values().collect());
        }
        switch.sync.want_meters(meters.into_values().collect());
    }
}
