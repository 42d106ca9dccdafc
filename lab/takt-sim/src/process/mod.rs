//! Simulated process: one participant of the shipped core, and an application that writes and
//! takes.

mod alter;
mod durable;
mod listing;
mod partner;
mod protected;
mod reading;
mod site;
mod spec;
mod taking;
mod type_requests;
mod writing;

use std::collections::VecDeque;

use takt_core::{
    ChangeKind, Config, Error, Event, NewChange, Participant, Priority, PublisherHandle, ReaderHandle,
    SubscriberHandle, TypeRequestId, WriterHandle,
};
use takt_security::Settings;
use takt_security::plugin::Renewer;
use takt_wire::qos::{EntityName, Presentation};
use takt_wire::{Guid, GuidPrefix, Locator, Timestamp};

use crate::check::exact::DISPOSAL_MAX;
use crate::check::{Checker, EndpointId, Rule, SetId};
use crate::clock::{HostClock, Nanos, SECOND};
use crate::domain::SecurityConfig;
use crate::lookup::PendingTypeRequest;
use crate::network::Frame;
use crate::rng::Rng;
use crate::sample;
use crate::scenario::{EndpointPlan, Role, Scenario, TopicPlan};
use crate::work::Meter;
use durable::DurableEndpoint;
use partner::Partner;
use protected::ProtectedMessages;
pub use protected::is_protected;
pub use reading::TAKES_EVERY;
pub use site::{GROUP, HostLocation, address, at_address};
use spec::{reader_spec, writer_spec};
pub use spec::{topic_name, urgency_of, user_data};
pub use writing::Draft;

/// Reports whether a process joins the multicast group of user data and writes to it. In worlds
/// with an odd seed, these are the processes with an endpoint of the topic with the most readers,
/// so that multicast is cheaper for that topic.
fn shares_group(scenario: &Scenario, process: usize) -> bool {
    let endpoints = || scenario.processes.iter().flat_map(|process| &process.endpoints);
    let is_reader = |plan: &&EndpointPlan| matches!(plan.role, Role::Reader { .. });
    let readers = |topic: usize| endpoints().filter(is_reader).filter(|plan| plan.topic == topic).count();
    let most = (0..scenario.topics.len()).max_by_key(|topic| readers(*topic));
    scenario.seed % 2 == 1 && scenario.processes[process].endpoints.iter().any(|plan| Some(plan.topic) == most)
}

/// Port of the multicast group for announcements.
pub const ANNOUNCEMENT_PORT: u16 = 7400;

/// Lease duration of the participants.
pub const LEASE: Nanos = 3 * SECOND;

/// Period of the announcements.
pub const ANNOUNCEMENT_PERIOD: Nanos = SECOND / 2;

/// Capacity of the socket buffer of a process, in octets.
const SOCKET_BYTES: usize = 212_992;

/// Existing writer or reader.
#[derive(Clone, Copy, Debug)]
pub enum Endpoint {
    /// A writer.
    Writer {
        /// Handle in the core.
        handle: WriterHandle,
        /// Identifier in the checkers.
        id: EndpointId,
        /// Size in octets of the change for which the writer waits, since its history is full.
        blocked: Option<usize>,
    },
    /// A reader.
    Reader {
        /// Handle in the core.
        handle: ReaderHandle,
        /// Identifier in the checkers.
        id: EndpointId,
    },
}

impl Endpoint {
    /// Returns the identifier of the endpoint in the checkers.
    #[must_use]
    pub fn id(&self) -> EndpointId {
        match *self {
            Self::Writer { id, .. } | Self::Reader { id, .. } => id,
        }
    }

    fn writer_id(&self, writer: WriterHandle) -> Option<EndpointId> {
        matches!(self, Self::Writer { handle, .. } if *handle == writer).then(|| self.id())
    }

    fn reader_id(&self, reader: ReaderHandle) -> Option<EndpointId> {
        matches!(self, Self::Reader { handle, .. } if *handle == reader).then(|| self.id())
    }
}

/// Simulated process.
pub struct Process {
    /// Index of the process in the scenario.
    pub index: usize,
    /// Index of the host.
    pub host: usize,
    /// Number of starts so far.
    pub incarnation: u32,
    /// GUID prefix of the participant, or of the last one while the process does not run.
    pub prefix: GuidPrefix,
    /// Whether the process refuses endpoints that its own permissions do not allow.
    is_honest: bool,
    /// Handle that replaces the documents of the security plugins.
    renewer: Option<Renewer>,
    /// Shipped protocol engine; `None` while the process does not run.
    pub core: Option<Box<Participant>>,
    /// Octets of fragments sent since the last delay; see
    /// [`Scenario::limits_fragments`](crate::scenario::Scenario::limits_fragments).
    pub fragment_octets: usize,
    /// Time of the next timer event; `Nanos::MAX` if none is scheduled.
    pub timer: Nanos,
    /// End of the current stall, until which the process gets no processor time.
    pub stalled_until: Nanos,
    /// Datagrams in the socket buffer while the process is stalled or busy.
    pub inbox: VecDeque<Frame>,
    inbox_bytes: usize,
    /// Maximum number of datagrams in the socket buffer since the last call of [`Self::deepest`].
    deepest: u64,
    /// End of the processing of the last datagram, in scenarios in which each takes time.
    pub busy_until: Nanos,
    /// Whether an event for the next datagram is scheduled.
    pub is_scheduled: bool,
    /// Endpoints, indexed as in the scenario.
    pub endpoints: Vec<Option<Endpoint>>,
    /// Remaining samples of a batch that wait for space in the history, by endpoint index.
    postponed: Vec<u32>,
    /// PRESENTATION, publisher and subscriber, in scenarios that set this policy.
    group: Option<(Presentation, PublisherHandle, SubscriberHandle)>,
    /// Endpoints that match those of a recorded participant.
    partner: Option<Partner>,
    /// Endpoints on the topic that a durability service keeps.
    durable: Option<DurableEndpoint>,
    /// Number of reads of each reader, by endpoint index.
    read_counts: Vec<u32>,
    /// Pending request for types.
    type_request: Option<(TypeRequestId, PendingTypeRequest)>,
    /// Open coherent set.
    open_set: Option<SetId>,
    /// Protected messages that the participant has accepted, in worlds in which a hostile host
    /// repeats them.
    pub accepted: Option<ProtectedMessages>,
    /// Number of datagrams sent.
    pub sent: u64,
    /// Check of the work and of the kept state of the core.
    pub meter: Meter,
    rng: Rng,
}

impl Process {
    /// Creates a process that does not run yet.
    #[must_use]
    pub fn new(index: usize, host: usize, endpoints: usize, rng: Rng) -> Self {
        Self {
            index,
            host,
            incarnation: 0,
            prefix: prefix_of(index, 0),
            is_honest: true,
            renewer: None,
            core: None,
            fragment_octets: 0,
            timer: Nanos::MAX,
            stalled_until: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            deepest: 0,
            busy_until: 0,
            is_scheduled: false,
            endpoints: vec![None; endpoints],
            postponed: vec![0; endpoints],
            read_counts: vec![0; endpoints],
            group: None,
            partner: None,
            durable: None,
            type_request: None,
            open_set: None,
            accepted: None,
            sent: 0,
            meter: Meter::default(),
            rng,
        }
    }

    /// Starts the process without any state of earlier incarnations. In a domain, `admission` has
    /// its security plugins.
    pub fn start(
        &mut self,
        now: Nanos,
        clock: &HostClock,
        scenario: &Scenario,
        sites: &[HostLocation],
        admission: Option<SecurityConfig>,
    ) {
        let candidate = self.next_candidate();
        self.incarnation += 1;
        self.prefix = admission.as_ref().map_or(candidate, |admission| admission.prefix);
        self.is_honest = admission.as_ref().is_none_or(|admission| admission.is_honest);
        let mut config = Config::new(0, self.prefix);
        config.secret = [scenario.seed, u64::from(self.incarnation)];
        let presence =
            sites[self.host].presence(self.host, self.index, &scenario.network, shares_group(scenario, self.index));
        (config.interfaces, config.locators) = presence;
        config.initial_peers = peers(scenario, self.index, sites);
        if let Some(server) = scenario.services.discovery_server {
            config.is_server = server == self.index;
            config.servers = config.initial_peers.clone();
        }
        config.lease_duration = std::time::Duration::from_nanos(LEASE);
        config.announcement_period = std::time::Duration::from_nanos(ANNOUNCEMENT_PERIOD);
        if scenario.has_static_endpoints {
            config.qos.entity_name = EntityName(listing::name(self.index));
            config.static_endpoints = Some(listing::all(scenario));
        }
        // Memory of simulated processes is real memory of the host.
        config.limits.endpoint_memory_bytes = 24 << 20;
        let (security, renewer) = admission.map_or((None, None), |admission| (admission.security, admission.renewer));
        self.renewer = renewer;
        // A participant without security ignores protected messages, which is not counted.
        let records = security.is_some() && scenario.repeats_protected_messages();
        self.accepted = records.then(ProtectedMessages::default);
        let core = match security {
            Some(security) => Participant::with_security(config, security, clock.local(now)),
            None => Participant::new(config, clock.local(now)),
        };
        let mut core = core.expect("the configuration is good");
        core.set_wall_clock(clock.local(now), clock.wall(now));
        self.open_set = None;
        let recorded = scenario.services.recorded.filter(|plan| self.index < plan.matching_processes);
        self.partner = recorded.map(|_| Partner::create(&mut core, Moment { now, clock }));
        self.group = scenario.presentation.map(|presentation| {
            let publisher = core.create_publisher(presentation).expect("there is room");
            let subscriber = core.create_subscriber(presentation).expect("there is room");
            (presentation, publisher, subscriber)
        });
        self.core = Some(Box::new(core));
        if scenario.services.lookup_period.is_some() {
            self.offer_types();
        }
    }

    /// Replaces the security documents of the running participant.
    pub fn renew(&mut self, settings: &Settings, clock: Moment<'_>) {
        let (Some(core), Some(renewer)) = (&mut self.core, &self.renewer) else { return };
        renewer.offer(settings, i64::from(clock.wall().seconds)).expect("they are valid");
        core.renew_security(clock.local());
    }

    /// Returns the GUID prefix of the next incarnation if it has no security.
    #[must_use]
    pub fn next_candidate(&self) -> GuidPrefix {
        prefix_of(self.index, self.incarnation + 1)
    }

    /// Notifies the participant that its host has other addresses.
    pub fn moved(&mut self, now: Nanos, clock: &HostClock, scenario: &Scenario, site: HostLocation) {
        let shares = shares_group(scenario, self.index);
        let (interfaces, locators) = site.presence(self.host, self.index, &scenario.network, shares);
        if let Some(core) = &mut self.core {
            core.handle_interfaces(clock.local(now), interfaces, locators);
        }
    }

    /// Ends the process. All other processes detect this after `time`.
    pub fn end(&mut self, time: Nanos, checker: &mut Checker) {
        checker.participant_ended(self.prefix);
        self.core = None;
        self.type_request = None;
        self.partner = None;
        self.durable = None;
        self.timer = Nanos::MAX;
        self.stalled_until = 0;
        self.inbox.clear();
        self.inbox_bytes = 0;
        self.postponed.fill(0);
        for endpoint in self.endpoints.iter_mut().filter_map(Option::take) {
            checker.endpoint_ended(endpoint.id(), time);
        }
    }

    /// Puts a datagram into the socket buffer; returns `false` if there is no space for it.
    pub fn queue(&mut self, frame: Frame) -> bool {
        let fits = self.inbox_bytes + frame.bytes.len() <= SOCKET_BYTES;
        if fits {
            self.inbox_bytes += frame.bytes.len();
            self.inbox.push_back(frame);
            self.deepest = self.deepest.max(self.inbox.len() as u64);
        }
        fits
    }

    /// Returns the maximum number of datagrams in the socket buffer since the last call.
    pub fn deepest(&mut self) -> u64 {
        std::mem::take(&mut self.deepest)
    }

    /// Takes the next datagram from the socket buffer.
    pub fn dequeue(&mut self) -> Option<Frame> {
        let frame = self.inbox.pop_front()?;
        self.inbox_bytes -= frame.bytes.len();
        Some(frame)
    }

    /// Creates an endpoint of the scenario. Reports a violation if the core refuses an allowed
    /// endpoint, or creates one that it must refuse.
    pub fn create(
        &mut self,
        at: usize,
        plan: &EndpointPlan,
        topic: &TopicPlan,
        clock: Moment<'_>,
        checker: &mut Checker,
    ) {
        let Some(core) = &mut self.core else { return };
        let is_writer = matches!(plan.role, Role::Writer { .. });
        let (now, priority) = (clock.local(), Priority::new(plan.qos.urgency.into()));
        let created = if is_writer {
            let mut spec = writer_spec(plan, topic);
            if let Some((presentation, publisher, _)) = self.group {
                (spec.publisher.presentation, spec.group) = (presentation, Some(publisher));
            }
            core.prepare_writer(now, spec).and_then(|handle| {
                core.set_writer_priority(handle, priority)?;
                core.enable_writer(now, handle)?;
                let id = checker.created(core.writer_guid(handle)?, plan.topic, plan.qos, true);
                Ok(Endpoint::Writer { handle, id, blocked: None })
            })
        } else {
            let mut spec = reader_spec(plan, topic);
            if let Some((presentation, _, subscriber)) = self.group {
                (spec.subscriber.presentation, spec.group) = (presentation, Some(subscriber));
            }
            core.prepare_reader(spec).and_then(|handle| {
                core.set_reader_priority(handle, priority)?;
                core.enable_reader(now, handle)?;
                let id = checker.created(core.reader_guid(handle)?, plan.topic, plan.qos, false);
                Ok(Endpoint::Reader { handle, id })
            })
        };
        match created {
            Ok(endpoint) => {
                self.endpoints[at] = Some(endpoint);
                if self.is_honest {
                    checker.must_refuse(clock.now, endpoint.id());
                }
            }
            Err(Error::NotAllowedBySecurity { .. }) if !checker.is_allowed(self.prefix, plan.topic, is_writer) => {}
            Err(error) => checker.report(clock.now, Rule::CallFailed, format!("{plan:?} cannot be created: {error}")),
        }
    }

    /// Deletes an endpoint and returns its GUID.
    pub fn delete(&mut self, at: usize, clock: Moment<'_>, checker: &mut Checker) -> Option<Guid> {
        let (core, endpoint) = (self.core.as_mut()?, self.endpoints[at].take()?);
        self.postponed[at] = 0;
        let (guid, result) = match endpoint {
            Endpoint::Writer { handle, .. } => (core.writer_guid(handle), core.delete_writer(clock.local(), handle)),
            Endpoint::Reader { handle, .. } => (core.reader_guid(handle), core.delete_reader(clock.local(), handle)),
        };
        let id = endpoint.id();
        checker.endpoint_ended(id, DISPOSAL_MAX);
        if let Err(error) = result {
            checker.report(clock.now, Rule::CallFailed, format!("endpoint {id} cannot be deleted: {error}"));
        }
        guid.ok()
    }

    /// Returns how many probes of multicast reception the participant has sent.
    #[must_use]
    pub fn multicast_probes_sent(&self) -> u64 {
        self.core.as_ref().map_or(0, |core| core.counters().multicast_probes_sent)
    }

    /// Returns the GUIDs of the endpoints.
    #[must_use]
    pub fn guids(&mut self) -> Vec<Guid> {
        let Some(core) = &mut self.core else { return Vec::new() };
        let guid = |endpoint: &Endpoint| match *endpoint {
            Endpoint::Writer { handle, .. } => core.writer_guid(handle).ok(),
            Endpoint::Reader { handle, .. } => core.reader_guid(handle).ok(),
        };
        self.endpoints.iter().flatten().filter_map(guid).collect()
    }

    /// Checks that no endpoint is still matched with an endpoint in `gone`.
    pub fn must_have_unmatched(&mut self, now: Nanos, gone: &[Guid], checker: &mut Checker) {
        let Some(core) = &mut self.core else { return };
        for endpoint in self.endpoints.iter().flatten() {
            let peers = match *endpoint {
                Endpoint::Writer { handle, .. } => core.matched_subscriptions(handle),
                Endpoint::Reader { handle, .. } => core.matched_publications(handle),
            };
            checker.check_unmatched(now, endpoint.id(), &peers.unwrap_or_default(), gone);
        }
    }

    /// Checks that no endpoint is matched with one of another participant if the documents of
    /// either have expired.
    pub fn must_be_separated(&mut self, now: Nanos, checker: &mut Checker) {
        let Some(core) = &mut self.core else { return };
        for endpoint in self.endpoints.iter().flatten() {
            let peers = match *endpoint {
                Endpoint::Writer { handle, .. } => core.matched_subscriptions(handle),
                Endpoint::Reader { handle, .. } => core.matched_publications(handle),
            };
            checker.must_be_separated(now, endpoint.id(), &peers.unwrap_or_default());
        }
    }

    /// Checks the final state: matched endpoints, status counters, and blocked writers.
    /// `drain_time` is the time since the last write.
    pub fn finish(&mut self, now: Moment<'_>, drain_time: Nanos, checker: &mut Checker) {
        self.check_no_request_pending(now.now, checker);
        let Some(core) = &mut self.core else { return };
        for endpoint in self.endpoints.iter().flatten() {
            let (id, peers) = match *endpoint {
                Endpoint::Writer { handle, id, .. } => (id, core.matched_subscriptions(handle)),
                Endpoint::Reader { handle, id } => (id, core.matched_publications(handle)),
            };
            let peers = peers.unwrap_or_default();
            checker.finish_peers(now.now, id, &peers);
            for peer in &peers {
                let known = match *endpoint {
                    Endpoint::Writer { .. } => core.subscription_data(*peer).map(|data| data.qos.user_data),
                    Endpoint::Reader { .. } => core.publication_data(*peer).map(|data| data.qos.user_data),
                };
                checker.finish_user_data(now.now, id, *peer, known.as_ref());
            }
            match *endpoint {
                Endpoint::Reader { handle, .. } => {
                    if let Ok(status) = core.requested_incompatible_qos_status(handle) {
                        checker.finish_incompatible(now.now, id, &status);
                    }
                    if let (Ok(lost), Ok(rejected)) =
                        (core.sample_lost_status(handle), core.sample_rejected_status(handle))
                    {
                        checker.finish_losses(now.now, id, &lost, &rejected);
                        checker.finish_holes(now.now, id, &lost);
                    }
                    if let Ok(status) = core.liveliness_changed_status(handle) {
                        checker.finish_liveliness(now.now, id, status.alive_count, status.not_alive_count);
                    }
                    if let Ok(status) = core.requested_deadline_missed_status(handle) {
                        checker.finish_requested(now.now, id, status.total_count, drain_time);
                    }
                }
                Endpoint::Writer { handle, .. } => {
                    if let Ok(status) = core.offered_incompatible_qos_status(handle) {
                        checker.finish_incompatible(now.now, id, &status);
                    }
                    let statuses = (core.offered_deadline_missed_status(handle), core.liveliness_lost_status(handle));
                    if let (Ok(missed), Ok(lost)) = statuses {
                        checker.finish_offered(now.now, id, drain_time, missed.total_count, &lost);
                    }
                }
            }
            if let Endpoint::Writer { handle, id, blocked: Some(payload_len) } = *endpoint {
                // The space must suffice for the change that waits; a smaller one might still fit.
                let change = NewChange {
                    kind: ChangeKind::Alive,
                    key_hash: sample::key_hash(0),
                    source_timestamp: None,
                    destinations: &[],
                    payload_len,
                };
                let would_block = core.write(now.local(), handle, &change, |slot| Some(slot.len())).is_err();
                if !(would_block && checker.may_stay_full(id)) {
                    let text = format!("writer {id} {}", if would_block { "is full" } else { "has room" });
                    checker.report(now.now, Rule::BlockedWriter, text);
                }
            }
        }
    }

    /// Returns the identifiers of the readers in the checkers.
    pub fn readers(&self) -> impl Iterator<Item = EndpointId> {
        self.endpoints.iter().flatten().filter(|endpoint| matches!(endpoint, Endpoint::Reader { .. })).map(Endpoint::id)
    }

    /// Handles the events of the core. Appends endpoints that can proceed to `ready`.
    pub fn handle_events(&mut self, now: Nanos, checker: &mut Checker, ready: &mut Vec<usize>) {
        while let Some(core) = &mut self.core {
            let Some(event) = core.poll_event() else { break };
            match event {
                Event::TypeAnswer(request) => self.handle_reply(now, request, checker),
                Event::DataAvailable(reader) => ready.extend(position(
                    &self.endpoints,
                    |endpoint| matches!(endpoint, Endpoint::Reader { handle, .. } if *handle == reader),
                )),
                Event::WriterSpace(writer) => {
                    let at = position(
                        &self.endpoints,
                        |endpoint| matches!(endpoint, Endpoint::Writer { handle, .. } if *handle == writer),
                    );
                    if let Some(at) = at
                        && let Some(Endpoint::Writer { id, blocked, .. }) = &mut self.endpoints[at]
                        && blocked.take().is_some()
                    {
                        checker.writer_unblocked(*id);
                        ready.push(at);
                    }
                }
                Event::PublicationMatched(writer) => {
                    let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.writer_id(writer));
                    if let (Some(id), Ok(peers)) = (id, core.matched_subscriptions(writer)) {
                        let status = core.publication_matched_status(writer).unwrap_or_default();
                        checker.matched_status(now, id, peers.len(), &status);
                        checker.matched(now, id, &peers, status.total_count_change);
                    }
                }
                Event::SubscriptionMatched(reader) => {
                    let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.reader_id(reader));
                    if let (Some(id), Ok(peers)) = (id, core.matched_publications(reader)) {
                        let status = core.subscription_matched_status(reader).unwrap_or_default();
                        checker.matched_status(now, id, peers.len(), &status);
                        checker.matched(now, id, &peers, status.total_count_change);
                    }
                }
                Event::RequestedDeadlineMissed(reader) => {
                    let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.reader_id(reader));
                    if let (Some(id), Ok(status)) = (id, core.requested_deadline_missed_status(reader)) {
                        checker.requested_deadline_missed(now, id, &status);
                    }
                }
                Event::OfferedDeadlineMissed(writer) => {
                    let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.writer_id(writer));
                    if let (Some(id), Ok(status)) = (id, core.offered_deadline_missed_status(writer)) {
                        checker.offered_deadline_missed(now, id, &status);
                    }
                }
                Event::LivelinessLost(writer) => {
                    if let Some(id) = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.writer_id(writer)) {
                        checker.liveliness_lost(now, id);
                    }
                }
                Event::LivelinessChanged(reader) => {
                    let id = self.endpoints.iter().flatten().find_map(|endpoint| endpoint.reader_id(reader));
                    if let (Some(id), Ok(status)) = (id, core.liveliness_changed_status(reader)) {
                        checker.liveliness_changed(now, id, &status);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns the GUID prefix of an incarnation of a process.
fn prefix_of(process: usize, incarnation: u32) -> GuidPrefix {
    let [a, b] = (process as u16).to_be_bytes();
    let [c, d] = (incarnation as u16).to_be_bytes();
    GuidPrefix([1, 0x7a, 0x5e, 0xed, 0, 0, 0, 0, a, b, c, d])
}

/// Returns the process with such a GUID prefix.
fn process_of(prefix: GuidPrefix) -> usize {
    usize::from(u16::from_be_bytes([prefix.0[8], prefix.0[9]]))
}

fn position(endpoints: &[Option<Endpoint>], is: impl Fn(&Endpoint) -> bool) -> Option<usize> {
    endpoints.iter().position(|endpoint| endpoint.as_ref().is_some_and(&is))
}

/// Point in time, at a host.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// True time.
    pub now: Nanos,
    /// Clock of the host.
    pub clock: &'a HostClock,
}

impl Moment<'_> {
    fn local(&self) -> takt_core::Instant {
        self.clock.local(self.now)
    }

    fn wall(&self) -> Timestamp {
        self.clock.wall(self.now)
    }
}

/// Returns the locators to which a process announces itself: the multicast group, and the unicast
/// address of each process if multicast does not reach both of them. With a discovery server, the
/// only locator is that of the server; the server itself has none.
fn peers(scenario: &Scenario, of: usize, sites: &[HostLocation]) -> Vec<Locator> {
    if let Some(server) = scenario.services.discovery_server {
        let host = scenario.processes[server].host;
        return if of == server { Vec::new() } else { vec![sites[host].address(host, server)] };
    }
    let receives = |process: usize| scenario.hosts[scenario.processes[process].host].hears_multicast;
    let others = (0..scenario.processes.len()).filter(|&other| other != of && !(receives(of) && receives(other)));
    let mut peers = vec![sites[scenario.processes[of].host].group(ANNOUNCEMENT_PORT)];
    peers.extend(others.map(|other| {
        let host = scenario.processes[other].host;
        sites[host].address(host, other)
    }));
    peers
}
