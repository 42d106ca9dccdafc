//! The state of the controller as a [`View`], and the log of its decisions.

use std::collections::{BTreeMap, VecDeque};

use takt_openflow::channel::Instant;
use takt_wire::GuidPrefix;
use takt_wire::discovery::HostStages;
use takt_wire::qos::ReliabilityKind;

use super::registration::Entry;
use super::{ClusterRole, Controller, Switch};
use crate::PortRef;
use crate::admission::Progress;
use crate::contract::{Contract, Source};
use crate::discovery::{Pair, PairView};
use crate::forwarding::rules::meter;
use crate::model::{Egress, Snapshot};
use crate::registration::{RegistrationId, State};
use crate::schedule::{PairStages, Scheduler};
use crate::topology::{PortDescription, Role};
use crate::view::{self, COUNTERS, DECISIONS_MAX, Decision, Endpoint, EndpointKind, Hop, LogEntry, View};

/// Log of the most recent decisions.
#[derive(Debug, Default)]
pub(super) struct DecisionLog {
    entries: VecDeque<LogEntry>,
    taken: u64,
}

impl DecisionLog {
    pub(super) fn push(&mut self, entry: LogEntry) {
        self.taken += 1;
        if self.entries.len() >= DECISIONS_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(LogEntry { number: self.taken, ..entry });
    }
}

fn nanos(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a queue depth; `None` if it is unlimited.
fn limited(depth: u64) -> Option<u64> {
    (depth != u64::MAX).then_some(depth)
}

/// Describes a contract. `stages` are those of the writer's host; their jitter applies if none is
/// declared, or if it is longer.
fn contract_of(contract: &Contract, stages: Option<&HostStages>) -> view::Contract {
    let Contract { separation, jitter, size, limit, importance, is_protected } = contract;
    let sources = [separation.source, jitter.source, size.source, limit.source, importance.source];
    let mut sources = sources.map(|source| source.to_string());
    let is_default = jitter.source == Source::Default;
    let of_host = stages.map(|stages| stages.jitter_ns).filter(|ns| is_default || *ns > nanos(jitter.value));
    if of_host.is_some() {
        sources[1] = "stages of the writer's host".to_owned();
    }
    view::Contract {
        separation_ns: nanos(separation.value),
        jitter_ns: of_host.unwrap_or_else(|| nanos(jitter.value)),
        size: size.value,
        limit_ns: nanos(limit.value),
        importance: importance.value,
        is_protected: is_protected.value,
        sources,
    }
}

fn host_claims(stages: &PairStages) -> Vec<view::HostClaim> {
    let ends = [(view::Place::Writer, &stages.writer), (view::Place::Reader, &stages.reader)];
    let claim = |(place, stages): (view::Place, &Option<HostStages>)| {
        let HostStages { flow, period_ns, jitter_ns, .. } = stages.as_ref()?;
        Some(view::HostClaim { place, flow: flow.clone(), period_ns: *period_ns, jitter_ns: *jitter_ns })
    };
    ends.into_iter().filter_map(claim).collect()
}

impl Controller {
    /// Returns the present state. The cost is that of copying it.
    pub fn view(&self, now: Instant) -> View {
        let snapshot = self.admission.as_ref().map(|admission| admission.snapshot());
        View {
            format: view::FORMAT,
            time_ns: now.0,
            topology_version: self.topology.generation(),
            network_version: snapshot.as_ref().map(|snapshot| snapshot.version()),
            is_settled: self.is_settled(),
            cluster: self.cluster_view(),
            isolation: self.isolation_view(),
            switches: self.topology.switches().map(|dpid| self.switch_view(dpid, snapshot.as_deref())).collect(),
            links: self.topology.links().map(|(a, b)| self.link_view(a, b)).collect(),
            hosts: self.host_views(),
            participants: self.participant_views(),
            endpoints: self.endpoint_views(),
            pairs: self
                .discovery
                .pairs()
                .filter_map(|pair| self.pair_view(pair))
                .chain(self.registered_views())
                .collect(),
            counters: self.counter_views(),
            log: self.decisions.entries.iter().cloned().collect(),
        }
    }

    fn cluster_view(&self) -> Option<view::Cluster> {
        let (is_leader, generation) = match self.cluster_role() {
            ClusterRole::Single => return None,
            ClusterRole::Standby { generation } => (false, generation),
            ClusterRole::Leader { generation } => (true, generation),
        };
        Some(view::Cluster { is_leader, generation: generation.to_string() })
    }

    fn isolation_view(&self) -> Option<view::Isolation> {
        let policy = self.discovery.isolation();
        let is_denied = |pair: &Pair| self.discovery.pair(*pair).is_some_and(|view| view.is_denied);
        (!policy.is_open()).then(|| view::Isolation {
            default: policy.default_decision().name().to_owned(),
            labels: policy.labels().iter().map(|label| label.name.clone()).collect(),
            rules: policy.rules().len(),
            denied_pairs: self.discovery.pairs().filter(is_denied).count(),
            filters: self.filters().len(),
        })
    }

    fn switch_view(&self, dpid: u64, snapshot: Option<&Snapshot>) -> view::Switch {
        let scheduler = self.admission.as_ref().map(|admission| admission.scheduler());
        let switch = self.switches.get(&dpid);
        let session = switch.and_then(|switch| self.sessions.get(&switch.connection?));
        let state = match (switch, session) {
            (Some(switch), Some(_)) if switch.adopted_at.is_some() => view::SwitchState::Adopting,
            (Some(switch), Some(session)) if session.is_idle() && switch.sync.is_in_sync() => {
                view::SwitchState::Settled
            }
            (Some(_), Some(_)) => view::SwitchState::Changing,
            _ => view::SwitchState::Disconnected,
        };
        let tables = switch.map(|switch| switch.sync.actual());
        view::Switch {
            datapath_id: format!("{dpid:016x}"),
            state,
            has_meters: switch.is_some_and(|switch| switch.has_meters),
            model: snapshot.and_then(|snapshot| Some(snapshot.switch(dpid)?.name.clone())),
            flow_entries: tables.map_or(0, |tables| tables.flows.len()),
            groups: tables.map_or(0, |tables| tables.groups.len()),
            meters: tables.map_or(0, |tables| tables.meters.len()),
            refused_entries: switch.map_or(0, |switch| switch.sync.refused_len()),
            group_packets_dropped: switch
                .filter(|switch| !switch.limits.is_empty())
                .map(|switch| switch.overloads.dropped(meter::GROUPS)),
            ports: self
                .topology
                .ports(dpid)
                .map(|(port, role)| self.port_view(dpid, port, role, snapshot.zip(scheduler)))
                .collect(),
        }
    }

    fn link_view(&self, a: PortRef, b: PortRef) -> view::Link {
        view::Link { ends: [a.into(), b.into()], is_in_tree: self.active.contains(&(a, b)) }
    }

    fn host_views(&self) -> Vec<view::Host> {
        let host = |(id, host): (crate::devices::HostId, &crate::devices::Host)| view::Host {
            mac: id.mac.to_string(),
            vlan: (id.vlan != 0).then_some(id.vlan & 0x0fff),
            at: host.at.into(),
            addresses: host.addresses.iter().map(ToString::to_string).collect(),
        };
        self.devices.iter().map(host).collect()
    }

    fn participant_views(&self) -> Vec<view::Participant> {
        let participants = self.discovery.participants().filter_map(|data| {
            let prefix: GuidPrefix = data.guid.prefix;
            let (at, address, domain) = self.discovery.origin(prefix)?;
            let labels = self.discovery.labels_of_participant(prefix);
            Some(view::Participant {
                prefix: prefix.to_string(),
                label: data.label(),
                domain,
                at: at.into(),
                address: address.to_string(),
                labels: labels.map(|labels| self.discovery.isolation().names(&labels)).unwrap_or_default(),
            })
        });
        participants.collect()
    }

    fn endpoint_views(&self) -> Vec<Endpoint> {
        let writers = self.discovery.writers().map(|data| Endpoint {
            guid: data.guid.to_string(),
            kind: EndpointKind::Writer,
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            is_reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
        });
        let readers = self.discovery.readers().map(|data| Endpoint {
            guid: data.guid.to_string(),
            kind: EndpointKind::Reader,
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            is_reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
        });
        writers.chain(readers).collect()
    }

    fn pair_view(&self, pair: Pair) -> Option<view::Pair> {
        let known: PairView<'_> = self.discovery.pair(pair)?;
        let progress = self.admission.as_ref().and_then(|admission| admission.progress(pair));
        let refusal = self.admission.as_ref().and_then(|admission| admission.refusal(pair));
        let decision = match (known.contract, &progress) {
            _ if known.refused.is_some() => Decision::Refused,
            (Err(_), _) => Decision::NoContract,
            (Ok(_), _) if self.admission.is_none() => Decision::Unproven,
            (Ok(_), Some(progress)) if known.is_pending || !progress.is_in_force => Decision::Installing,
            (Ok(_), None) if known.is_pending || refusal.is_some() => Decision::Waiting,
            (Ok(_), _) => Decision::Admitted,
        };
        let samples = progress.as_ref().and_then(|progress| progress.routes.first());
        // A pair within one host has no path through the network.
        let bound_of = |progress: &Progress| progress.samples_ns().map(|bound_ns| progress.stages.whole_ns(bound_ns));
        let bound_ns = progress.as_ref().and_then(bound_of).or((decision == Decision::Admitted).then_some(0));
        let reason = refusal.map(|refusal| refusal.reason.clone());
        Some(view::Pair {
            writer: pair.writer.to_string(),
            reader: pair.reader.to_string(),
            topic: known.writer.topic_name.clone(),
            type_name: known.writer.type_name.clone(),
            from: known.writer_host.1.ip().to_string(),
            to: known.reader_host.1.ip().to_string(),
            contract: known.contract.as_ref().ok().map(|it| contract_of(it, known.writer.host_stages.as_ref())), // tidy-allow(dropped-cause): `missing` contains it.
            missing: known.contract.as_ref().err().map(ToString::to_string),
            decision,
            bound_ns,
            hops: samples.map(Hop::all_of).unwrap_or_default(),
            stages: progress.as_ref().map(|progress| self.stage_views(progress)).unwrap_or_default(),
            hosts: progress.as_ref().map(|progress| host_claims(&progress.stages)).unwrap_or_default(),
            protection: progress.as_ref().and_then(|own| view::Protection::of(&own.protection, &own.backup_paths)),
            traffic: self.flow_traffic(pair),
            registration: None,
            measured: self.discovery.observed_ns(pair.reader).map(|worst_ns| view::Measured { worst_ns }),
            reason: reason.or(known.refused.map(str::to_owned)),
            binding_hop: refusal
                .and_then(|refusal| refusal.hop)
                .map(|(port, class)| Hop { sender: port.into(), class }),
            remedies: refusal.map(|refusal| refusal.remedies.into()).unwrap_or_default(),
        })
    }

    /// Returns registrations in the form of pairs, with names instead of GUIDs.
    fn registered_views(&self) -> impl Iterator<Item = view::Pair> {
        self.registrations.iter().map(|(id, pair, entry)| self.registered_view(id, pair, entry))
    }

    /// Returns a registration in the form of a pair.
    pub fn registration_view(&self, id: RegistrationId) -> Option<view::Pair> {
        let mut all = self.registrations.iter();
        let (id, pair, entry) = all.find(|(other, ..)| *other == id)?;
        Some(self.registered_view(id, pair, entry))
    }

    fn registered_view(&self, id: RegistrationId, pair: Pair, entry: &Entry) -> view::Pair {
        let Entry { owner, registration, until, .. } = entry;
        let state = self.registration_state(pair, entry);
        let progress = self.admission.as_ref().and_then(|admission| admission.progress(pair));
        let refusal = self.admission.as_ref().and_then(|admission| admission.refusal(pair));
        let samples = progress.as_ref().and_then(|progress| progress.routes.first());
        let reason = refusal.map(|refusal| refusal.reason.clone());
        view::Pair {
            writer: registration.writer.clone(),
            reader: registration.reader.clone(),
            topic: registration.topic.clone(),
            type_name: "registered".to_owned(),
            from: registration.from.to_string(),
            to: registration.to.to_string(),
            contract: Some(contract_of(&registration.contract(), None)),
            missing: None,
            decision: match state {
                State::Waiting => Decision::Waiting,
                State::Installing => Decision::Installing,
                State::Admitted => Decision::Admitted,
                State::Refused | State::Withdrawn => Decision::Refused,
            },
            bound_ns: progress.as_ref().and_then(Progress::samples_ns),
            hops: samples.map(Hop::all_of).unwrap_or_default(),
            stages: progress.as_ref().map(|progress| self.stage_views(progress)).unwrap_or_default(),
            hosts: Vec::new(),
            protection: progress.as_ref().and_then(|own| view::Protection::of(&own.protection, &own.backup_paths)),
            traffic: self.flow_traffic(pair),
            registration: Some(view::Registration {
                id: id.to_string(),
                owner: owner.to_string(),
                state,
                port: registration.port,
                answer_port: registration.answer_port,
                group: registration.group,
                overhead: registration.overhead,
                until_ns: until.0,
            }),
            measured: None,
            reason: reason.or_else(|| entry.reason().map(str::to_owned)),
            binding_hop: refusal
                .and_then(|refusal| refusal.hop)
                .map(|(port, class)| Hop { sender: port.into(), class }),
            remedies: refusal.map(|refusal| refusal.remedies.into()).unwrap_or_default(),
        }
    }

    /// Returns the components of the bound of an admitted pair.
    fn stage_views(&self, progress: &Progress) -> Vec<view::Stage> {
        let of_host = |place, stages: &Option<HostStages>| -> Vec<view::Stage> {
            let stages = stages.iter().flat_map(|stages| &stages.stages);
            stages.map(|stage| view::Stage { place, name: stage.name.clone(), bound_ns: stage.bound_ns }).collect()
        };
        let scheduler = self.admission.as_ref().map(|admission| admission.scheduler());
        let queues = progress.routes.first().into_iter().flat_map(|route| &route.hops).map(|hop| {
            let budgets = scheduler.and_then(|scheduler| scheduler.port_use(hop.port)).map(|(_, budgets)| budgets);
            let bound_ns = budgets.and_then(|budgets| budgets.get(hop.class).copied()).unwrap_or_default();
            let name = format!("{}, class {}", view::Sender::from(hop.port), hop.class);
            view::Stage { place: view::Place::Network, name, bound_ns }
        });
        let queues: Vec<view::Stage> = queues.collect();
        let hosts = &progress.stages;
        let mut stages = of_host(view::Place::Writer, &hosts.writer);
        stages.extend(queues);
        stages.extend(of_host(view::Place::Reader, &hosts.reader));
        stages
    }

    /// Returns the values of [`COUNTERS`], in their order.
    fn counter_values(&self) -> [u64; COUNTERS.len()] {
        let (own, probes, found) = (&self.counters, self.topology.counters(), self.discovery.counters());
        [
            own.packets,
            own.malformed,
            own.ignored,
            own.spoofed,
            own.refused,
            own.directed,
            own.flooded,
            own.forwarded,
            own.unreachable,
            own.discovery,
            own.unsent,
            own.control_excess,
            own.host_excess,
            own.host_excess_of_controller,
            own.isolated,
            own.filters_without_room,
            own.no_room_for_rule,
            own.errors,
            own.events_dropped,
            own.registrations_expired,
            own.polls,
            own.polls_left_out,
            own.polls_failed,
            own.contracts_broken,
            probes.sent,
            probes.accepted,
            probes.foreign,
            probes.forged,
            probes.repeated,
            probes.late,
            probes.looped,
            probes.ports_refused,
            found.messages,
            found.passed,
            found.ip_fragments,
            found.floods,
            found.malformed,
            found.forged,
            found.unknown_participants,
            found.limited,
            found.held,
            found.refused,
            found.inserted,
            found.unfinished,
            found.opaque,
            found.events_lost,
            found.frames_lost,
        ]
    }

    fn counter_views(&self) -> BTreeMap<String, u64> {
        COUNTERS.iter().map(|counter| counter.name.to_owned()).zip(self.counter_values()).collect()
    }

    /// Logs a decision: the bound, or the reason of the refusal.
    pub(super) fn log_decision(&mut self, now: Instant, pair: Pair, outcome: Result<u64, String>) {
        let topic = self.discovery.pair(pair).map(|view| view.writer.topic_name.clone());
        let names = (pair.writer.to_string(), pair.reader.to_string());
        self.decisions.push(LogEntry::new(now.0, names, topic, outcome));
    }

    fn port_view(
        &self,
        dpid: u64,
        port: &PortDescription,
        role: Role,
        model: Option<(&Snapshot, &Scheduler)>,
    ) -> view::Port {
        let at = PortRef::new(dpid, port.number);
        let egress = Egress::Switch(at);
        let described = model.and_then(|(snapshot, scheduler)| {
            let link = snapshot.link(egress)?;
            let use_of = scheduler.port_use(egress);
            Some((link.rate_bps, snapshot.switch(dpid)?, use_of.unwrap_or_default()))
        });
        let queues = described.iter().flat_map(|(_, model, (_, budgets))| {
            model.queues.iter().enumerate().map(|(class, queue)| view::Queue {
                class,
                dscp: queue.selection.dscp,
                set_queue: queue.selection.set_queue,
                depth_octets: limited(queue.depth.octets),
                depth_frames: limited(queue.depth.frames),
                budget_ns: budgets.get(class).copied().unwrap_or_default(),
                traffic: queue.selection.set_queue.and_then(|number| self.queue_traffic(at, number)),
            })
        });
        view::Port {
            number: port.number,
            name: port.name.clone(),
            mac: port.address.to_string(),
            role: match role {
                Role::Down => view::Role::Down,
                Role::Probing => view::Role::Probing,
                Role::Edge => view::Role::Edge,
                Role::Link(_) => view::Role::Link,
            },
            peer: match role {
                Role::Link(peer) => Some(peer.into()),
                _ => None,
            },
            rate_bps: described.as_ref().map(|(rate_bps, ..)| *rate_bps),
            admitted_ppm: described.as_ref().map(|(_, _, (share_ppm, _))| *share_ppm),
            host_limit: self.switches.get(&dpid).and_then(|switch| limit_view(switch, port.number, role)),
            queues: queues.collect(),
            traffic: self.port_traffic(at, described.as_ref().map(|(rate_bps, ..)| *rate_bps)),
        }
    }
}

/// Returns the limit of the hosts at a port, with the excess.
fn limit_view(switch: &Switch, port: u32, role: Role) -> Option<view::HostLimit> {
    let limit = switch.limits.get(&port).filter(|_| role == Role::Edge)?;
    let packets_dropped = switch.overloads.dropped(meter::of_hosts(port));
    Some(view::HostLimit { packets_per_s: limit.packets_per_s(), packets_dropped })
}
