//! Participant: passes every input to the state machine it concerns.
//!
//! It consists of the local endpoints ([`crate::endpoints`]), the state of [`crate::discovery`],
//! and the [`Context`] that both share. `input` parses datagrams, and `output` builds them.
//! `endpoints`, `discovery`, `policies` and `statuses` handle calls of the application.

mod discovery;
mod durability;
mod endpoints;
mod input;
mod output;
mod policies;
mod protection;
mod publishers;
mod statuses;
mod subscribers;
#[cfg(test)]
mod tests;

pub use durability::DURABILITY_SERVICE;
pub(crate) use durability::is_durability_service;
pub use endpoints::{NewChange, ReaderSpec, WriterSpec};
pub use input::Received;
pub use output::Transmit;
use protection::Scratch;

use crate::cache::CacheLimits;
use crate::config::{Config, Limits, MAX_PEERS, REORDER_WINDOW};
use crate::context::{Context, Timing};
use crate::deadline::{INSTANCES_PER_CALL, OVERTAKEN_MAX};
use crate::discovery::{BUILTIN_ENDPOINTS, Call, Discovery, SECURE_READERS, describe, for_handshakes};
use crate::endpoints::{Endpoints, live_reader};
use crate::error::Error;
use crate::event::Event;
use crate::security::Security;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::timer::TimerKind;
use crate::work::Work;
use crate::writer::HistoryLimits;
use alloc::boxed::Box;
use alloc::string::ToString;
use takt_wire::message::Header;
use takt_wire::qos::{History, ResourceLimits};
use takt_wire::{EntityId, Guid, GuidPrefix, ProtocolVersion, Timestamp, VendorId};

/// Maximum number of timers that one call of [`Participant::handle_timeout`] handles.
pub const MAX_TIMERS_PER_CALL: usize = 16;

/// Maximum number of visits of one unit of work to one entry of a table.
const STEPS_PER_ENTRY: usize = 8;

/// DDS participant. See the crate's documentation for the rules of use.
#[derive(Debug)]
pub struct Participant {
    pub(crate) ctx: Context,
    pub(crate) endpoints: Endpoints,
    pub(crate) discovery: Discovery,
    /// Buffer for protected messages, if security is in use.
    pub(crate) scratch: Option<Box<Scratch>>,
}

impl Participant {
    /// Creates a participant. If it is enabled, it announces itself as soon as it is polled.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the GUID prefix is unknown or the lease is not longer than the
    /// announcement period, [`Error::OutOfResources`] beyond [`MAX_PEERS`].
    pub fn new(config: Config, now: Instant) -> Result<Self, Error> {
        Self::make(config, None, now)
    }

    /// Creates a participant with the plugins of DDS Security, whose identity has the GUID prefix
    /// of `config`. The participant takes 192 KiB more.
    ///
    /// # Errors
    /// As [`Self::new`]; [`Error::InconsistentPolicy`] with static endpoints or discovery servers,
    /// because these are not protected.
    pub fn with_security(config: Config, security: Box<dyn Security>, now: Instant) -> Result<Self, Error> {
        if config.static_endpoints.is_some() || config.is_server || !config.servers.is_empty() {
            let what = "static endpoints and discovery servers are not supported with security".to_string();
            return Err(Error::InconsistentPolicy { what });
        }
        Self::make(config, Some(security), now)
    }

    fn make(config: Config, security: Option<Box<dyn Security>>, now: Instant) -> Result<Self, Error> {
        if config.guid_prefix == GuidPrefix::default() {
            return Err(Error::BadParameter { what: "the GUID prefix must not be zero".to_string() });
        }
        if config.lease_duration <= config.announcement_period {
            let what = "the lease must be longer than the announcement period".to_string();
            return Err(Error::BadParameter { what });
        }
        if config.initial_peers.len() > MAX_PEERS {
            return Err(Error::OutOfResources { limit: "peers", value: MAX_PEERS as u64 });
        }
        let timing = Timing {
            heartbeat_first: config.heartbeat_first,
            heartbeat_period: config.heartbeat_period,
            nack_delay: config.nack_delay,
            nack_suppression: config.nack_suppression,
        };
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: config.guid_prefix };
        let mut ctx = Context::new(header, config.limits, timing);
        ctx.multicast_groups.readers_min = config.multicast_readers_min;
        let data = describe(&config, security.as_ref().map(|security| security.announced()));
        let scratch = security.is_some().then(Scratch::new);
        ctx.security_timer = security.is_some().then(|| ctx.timers.register(TimerKind::Security));
        ctx.security = security.map(|mut security| {
            security.set_participant_data(for_handshakes(&data));
            security
        });
        let discovery = Discovery::new(config, data, now, &mut ctx)?;
        let mut participant = Self { ctx, endpoints: Endpoints::new(), discovery, scratch };
        participant.endpoints.create_builtin(&mut participant.ctx);
        if participant.ctx.security.is_some() {
            participant.endpoints.create_secure(&mut participant.ctx);
        }
        participant.discovery.open_multicast_groups(&mut participant.ctx);
        Ok(participant)
    }

    /// Sets the wall clock, which determines source and reception timestamps and the expiry of
    /// samples. Steps of the clock affect nothing else. Visits each endpoint if the clock was
    /// stepped by a millisecond or more.
    pub fn set_wall_clock(&mut self, now: Instant, wall: Timestamp) {
        if !self.ctx.set_wall_clock(now, wall) {
            return;
        }
        for (_, writer) in self.endpoints.writers.iter_mut() {
            writer.rearm_expiry(now, &mut self.ctx);
        }
        for (_, reader) in self.endpoints.readers.iter_mut() {
            reader.rearm_upkeep(now, &mut self.ctx);
        }
    }

    /// Returns the GUID of the participant.
    #[must_use]
    pub fn guid(&self) -> Guid {
        Guid { prefix: self.ctx.header.prefix, entity_id: EntityId::PARTICIPANT }
    }

    /// Returns the time at which [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ctx.timers.next_due()
    }

    /// Handles at most [`MAX_TIMERS_PER_CALL`] due timers. Call again while [`Self::poll_timeout`]
    /// is not in the future.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ctx.standstills.timers_handled(now, self.ctx.timers.next_due());
        for _ in 0..MAX_TIMERS_PER_CALL {
            let Some(kind) = self.ctx.timers.pop_due(now) else { return };
            self.ctx.work.unit();
            self.handle_timer(kind, now);
            self.endpoints.present_due_groups(now, &mut self.ctx);
        }
    }

    fn handle_timer(&mut self, kind: TimerKind, now: Instant) {
        let Self { discovery, endpoints, ctx, .. } = self;
        match kind {
            TimerKind::Groups => ctx.groups_changed = true,
            TimerKind::Announce => {
                discovery.report_latencies(ctx, endpoints);
                discovery.report_refusals(ctx);
                discovery.announcer.handle_timeout(now, ctx);
            }
            TimerKind::Introduction => discovery.handle_introductions(ctx),
            TimerKind::MulticastProbe { group } => {
                discovery.handle_multicast_probe_timeout(&mut Call::new(now, ctx, endpoints), group)
            }
            TimerKind::Lease { participant } => {
                discovery.handle_lease_end(&mut Call::new(now, ctx, endpoints), participant)
            }
            TimerKind::Challenge { participant } => discovery.handle_challenge_timeout(now, ctx, participant),
            TimerKind::RepeatTypeRequests => discovery.handle_type_request_timeout(&mut Call::new(now, ctx, endpoints)),
            TimerKind::ConfirmMatches => discovery.handle_confirmation_timeout(&mut Call::new(now, ctx, endpoints)),
            TimerKind::Security => discovery.handle_security_timeout(&mut Call::new(now, ctx, endpoints)),
            TimerKind::AssertLiveliness => discovery.assert_automatic_writers(&mut Call::new(now, ctx, endpoints)),
            TimerKind::AssertManually => discovery.assert_liveliness(&mut Call::new(now, ctx, endpoints)),
            TimerKind::Heartbeat { writer } => {
                let presence = |prefix| discovery.presence_of(prefix, now);
                endpoints.with_writer(writer, |it| it.handle_timeout(now, ctx, presence));
            }
            TimerKind::WriterDeadline { writer } => endpoints.with_writer(writer, |it| it.handle_deadline(now, ctx)),
            TimerKind::Batch { writer } => endpoints.with_writer(writer, |it| it.handle_batch(now, ctx)),
            TimerKind::Pace { writer } => endpoints.with_writer(writer, |it| it.handle_pace(ctx)),
            TimerKind::WriterExpiry { writer } => endpoints.with_writer(writer, |it| it.handle_expiry(now, ctx)),
            TimerKind::RouteChange { writer } => endpoints.with_writer(writer, |it| it.handle_route_timeout(now, ctx)),
            TimerKind::PathProbe { writer } => endpoints.with_writer(writer, |it| it.handle_probe_timeout(now, ctx)),
            TimerKind::OwnLease { writer } => endpoints.with_writer(writer, |it| it.handle_lease_end(now, ctx)),
            TimerKind::WriterLease { reader, proxy } => {
                endpoints.with_reader(reader, |it| it.handle_lease_end(now, ctx, proxy))
            }
            TimerKind::ReaderDeadline { reader } => endpoints.with_reader(reader, |it| it.handle_deadline(now, ctx)),
            TimerKind::ReaderUpkeep { reader } => endpoints.with_reader(reader, |it| it.handle_upkeep(now, ctx)),
            TimerKind::ServiceWait { reader } => {
                endpoints.with_reader(reader, |it| it.handle_service_wait_end(now, ctx))
            }
            TimerKind::AckNack { reader, proxy } => {
                endpoints.with_reader(reader, |it| it.handle_timeout(now, ctx, proxy))
            }
        }
    }

    /// Returns the work of all calls so far, and restarts the search for the largest unit.
    pub fn take_work(&mut self) -> Work {
        self.ctx.work.take()
    }

    /// Returns the present bound on the steps of a unit of work. It is a sum of these terms:
    /// - a few steps for each endpoint, match, remote participant, remote endpoint and queued
    ///   event;
    /// - each sample of the window of each reader;
    /// - each sample of one reader, or of the readers of one subscriber with scope GROUP;
    /// - each sample of one writer, twice;
    /// - 64 instances that miss a deadline;
    /// - 512 steps for a writer that applies filters of readers.
    #[must_use]
    pub fn steps_per_unit_max(&self) -> u64 {
        let tables = self.ctx.owners()
            + self.discovery.remotes.len()
            + self.discovery.publications.len()
            + self.discovery.subscriptions.len();
        let tables = tables + self.discovery.type_checks.len() + self.discovery.unconfirmed.len();
        let windows = self.endpoints.readers.iter().count() * 2 * REORDER_WINDOW as usize;
        let of_reader = self.endpoints.readers.iter().map(|(_, reader)| reader.cache.steps_max()).max().unwrap_or(0);
        let of_group = self.endpoints.subscribers.iter().filter(|(_, subscriber)| subscriber.wants_access()).map(
            |(_, subscriber)| {
                let members = subscriber.readers.iter().filter_map(|&index| self.endpoints.readers.get(index));
                members.map(|reader| reader.cache.steps_max()).sum()
            },
        );
        let of_types = self.discovery.type_lookup.steps_max();
        let of_writer = self.endpoints.writers.iter().map(|(_, writer)| writer.steps_max()).max().unwrap_or(0);
        let samples = windows + of_reader.max(of_group.max().unwrap_or(0)) + of_writer + of_types;
        let steps_per_entry = STEPS_PER_ENTRY + 2 * self.ctx.multicast_groups.list.len();
        (steps_per_entry * (1 + tables + self.ctx.events.len()) + samples + INSTANCES_PER_CALL * (1 + OVERTAKEN_MAX))
            as u64
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = self.ctx.events.pop_front()?;
            if let Event::DataAvailable(handle) = event
                && let Ok(reader) = live_reader(&mut self.endpoints.readers, handle)
            {
                reader.has_pending_event = false;
            }
            if !self.is_builtin(&event) {
                return Some(event);
            }
        }
    }

    /// Reports whether [`Self::poll_event`] may return an event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.ctx.events.is_empty()
    }

    /// Queues the farewell. Afterwards poll [`Self::poll_transmit`] until it returns `None`, and
    /// drop the participant.
    pub fn shutdown(&mut self) {
        if self.discovery.is_enabled {
            self.discovery.announcer.close(&mut self.ctx);
        }
    }
}

impl Participant {
    /// Reports whether an event concerns a builtin endpoint. Applications do not get these events.
    fn is_builtin(&self, event: &Event) -> bool {
        let is_builtin_reader = |reader: &ReaderHandle| match self.ctx.security {
            Some(_) => reader.index < SECURE_READERS,
            None => reader.index < BUILTIN_ENDPOINTS,
        };
        // The writers of the security plugins are created and deleted at run time, so their index
        // proves nothing.
        let is_builtin_writer = |writer: &WriterHandle| {
            writer.index < BUILTIN_ENDPOINTS
                || (self.ctx.security.is_some()
                    && self.endpoints.writers.get(writer.index).is_none_or(|writer| writer.entity_id.is_builtin()))
        };
        match event {
            Event::DataAvailable(reader)
            | Event::HistoryComplete(reader)
            | Event::SubscriptionMatched(reader)
            | Event::RequestedIncompatibleQos(reader)
            | Event::RequestedDeadlineMissed(reader)
            | Event::SampleLost(reader)
            | Event::LatencyExceeded(reader)
            | Event::SampleRejected(reader)
            | Event::LivelinessChanged(reader)
            | Event::ReaderInconsistentTopic(reader) => is_builtin_reader(reader),
            Event::PublicationMatched(writer)
            | Event::OfferedIncompatibleQos(writer)
            | Event::OfferedDeadlineMissed(writer)
            | Event::LivelinessLost(writer)
            | Event::WriterInconsistentTopic(writer)
            | Event::WriterSpace(writer)
            | Event::ReaderSilent(writer)
            | Event::PathNarrowed(writer)
            | Event::Acknowledged(writer) => is_builtin_writer(writer),
            Event::ParticipantDiscovered(_)
            | Event::ParticipantLost(_)
            | Event::TypeAnswer(_)
            | Event::TypeChecks
            | Event::PairsRefused
            | Event::PairsCautioned
            | Event::ParticipantSilent(_)
            | Event::ParticipantRefused(_)
            | Event::SecurityLogged
            | Event::LocalPeerAnnounced(_) => false,
        }
    }
}

fn depth(history: History) -> Option<usize> {
    match history {
        History::KeepLast(depth) => Some(depth.max(1) as usize),
        History::KeepAll => None,
    }
}

fn or(limit: Option<u32>, default: usize) -> usize {
    limit.map_or(default, |limit| limit as usize)
}

pub(crate) fn history_limits(history: History, resources: &ResourceLimits, limits: &Limits) -> HistoryLimits {
    HistoryLimits {
        depth: depth(history),
        max_samples: or(resources.max_samples, limits.default_max_samples),
        is_default_max_samples: resources.max_samples.is_none(),
        max_instances: or(resources.max_instances, limits.default_max_instances),
        max_samples_per_instance: or(resources.max_samples_per_instance, usize::MAX),
    }
}

pub(crate) fn cache_limits(history: History, resources: &ResourceLimits, limits: &Limits) -> CacheLimits {
    let HistoryLimits { depth, max_samples, max_instances, max_samples_per_instance, .. } =
        history_limits(history, resources, limits);
    CacheLimits { depth, max_samples, max_instances, max_samples_per_instance }
}
