//! Discovery without multicast, through servers that introduce participants to each other.
//!
//! A server is a participant to which its clients announce themselves by unicast, and that runs
//! SEDP with each of them. It therefore knows all participants and their topics. It introduces two
//! clients to each other once one writes a topic that the other reads. An introduction forwards the
//! SPDP announcement of one client to the other, after an `INFO_SRC` (RTPS 2.5 §8.3.8.9.4) that
//! names the announced client as the source. All further traffic is direct, as after multicast
//! discovery: the clients validate their addresses, exchange endpoints, monitor leases, and send
//! user data. Their matches survive the loss of the server.
//!
//! A client challenges the address in an introduction. It accepts introductions only from servers
//! with a validated address that are configured, or were introduced by such a server. An
//! introduction renews no lease and has no effect on a known participant.
//!
//! Servers that are configured as peers of each other introduce their clients to each other. A
//! client of one server therefore has all of them, and each server works without the others.
//!
//! Introductions are best effort: sent soon after a client's endpoints have changed, again with
//! each of its next [`REPEATS`] announcements, and then with one in [`LATER_REPEAT_INTERVAL`]. One
//! of the two directions suffices. Each introduction is one datagram to all participants concerned,
//! and visits each remote endpoint.
//!
//! DEVIATION(RTPS 2.5 §8.5.3): participants of any vendor may be clients, but the property that
//! marks a server, [`SERVER_PROPERTY`], is specific to this implementation.

use super::Remote;
use super::spdp::Announcement;
use crate::context::{Context, Job};
use crate::discovery::{Call, Discovery, SpdpSource};
use crate::participant::Received;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use takt_schedule::Priority;
use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::discovery::ParticipantData;
use takt_wire::message::{InfoSource, Payload};
use takt_wire::{EntityId, GuidPrefix, Locator};

/// Property that marks a participant as a server; its value is `1`.
pub const SERVER_PROPERTY: &str = "takt.discovery.server";

/// Property by which a client requests introductions to all participants, regardless of topics; its
/// value is `all`. For tools.
pub const INTEREST_PROPERTY: &str = "takt.discovery.interest";

/// Delay of introductions, so that the endpoints of a starting program cause one.
const COLLECTION_TIME: Duration = Duration::from_millis(30);
/// Number of announcements with which an introduction is repeated.
const REPEATS: u32 = 3;
/// Number of announcements per later introduction.
const LATER_REPEAT_INTERVAL: u32 = 8;

/// Maximum number of lost participants that still receive announcements; the oldest is replaced.
const LOST_MAX: usize = 256;
/// Time for which a lost participant receives announcements.
const LOST_TIME: Duration = Duration::from_secs(600);

/// Pending work of a server.
#[derive(Debug)]
pub(crate) struct DiscoveryServer {
    /// Indices of the participants to be introduced.
    due: BTreeSet<u32>,
    timer: TimerId,
}

impl DiscoveryServer {
    pub(crate) fn new(ctx: &mut Context) -> Self {
        Self { due: BTreeSet::new(), timer: ctx.timers.register(TimerKind::Introduction) }
    }
}

/// Introductions of a remote participant, received and sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntroductionState {
    /// The participant was introduced by a trusted server.
    pub(super) introduced: bool,
    /// Number of its announcements with which it will be introduced in any case.
    repeats_left: u32,
    /// Number of announcements received directly from the participant.
    announcements: u32,
}

/// Lost participants that can find this one only by its unicast announcements.
#[derive(Debug, Default)]
pub(crate) struct Lost(VecDeque<(Locator, Instant)>);

impl Lost {
    /// Stores the address of a lost participant that only unicast reaches.
    pub(super) fn insert(&mut self, now: Instant, at: Locator) {
        self.0.retain(|(known, until)| *known != at && *until > now);
        if self.0.len() == LOST_MAX {
            self.0.pop_front();
        }
        self.0.push_back((at, now.after(LOST_TIME)));
    }

    /// Removes an address at which a participant was found.
    pub(super) fn remove(&mut self, at: &Locator) {
        self.0.retain(|(known, _)| known != at);
    }

    /// Returns the additional destinations of announcements.
    pub(super) fn locators(&self, now: Instant) -> impl Iterator<Item = Locator> {
        self.0.iter().filter(move |(_, until)| *until > now).map(|(at, _)| *at)
    }
}

/// Marks a participant's announcement as that of a server.
pub(super) fn mark_as_server(data: &mut ParticipantData) {
    data.properties.set(SERVER_PROPERTY, "1", true);
}

fn claims_to_serve(data: &ParticipantData) -> bool {
    data.properties.get(SERVER_PROPERTY) == Some("1")
}

fn wants_all(data: &ParticipantData) -> bool {
    data.properties.get(INTEREST_PROPERTY) == Some("all")
}

impl Discovery {
    /// Returns the configured discovery servers ([`Config::servers`](crate::Config::servers)) that
    /// do not answer: no participant that claims to be a server is known at their address.
    pub(crate) fn silent_servers(&self) -> Vec<Locator> {
        let answers = |server: &Locator| {
            let mut remotes = self.remotes.iter().map(|(_, remote)| remote);
            remotes.any(|remote| {
                let at = remote.metatraffic.locator;
                at.ip() == server.ip() && !remote.is_on_probation() && claims_to_serve(&remote.data)
            })
        };
        self.servers.iter().filter(|server| !answers(server)).copied().collect()
    }

    /// Reports whether a participant is a server whose introductions are accepted.
    fn is_trusted_server(&self, remote: &Remote) -> bool {
        let at = remote.metatraffic.locator;
        let is_configured = self.servers.iter().any(|server| server.ip() == at.ip());
        !remote.is_on_probation() && claims_to_serve(&remote.data) && (is_configured || remote.introduction.introduced)
    }

    /// Handles an announcement that was forwarded by another participant. Returns whether it was an
    /// introduction by a server, which needs no further handling.
    pub(super) fn handle_introduction(
        &mut self,
        call: &mut Call<'_>,
        from: &SpdpSource,
        announcement: Announcement<'_>,
        octets: &mut usize,
    ) -> bool {
        let prefix = announcement.prefix;
        let Some(server) = self.remote_by_prefix.get(&from.sender).and_then(|&index| self.remotes.get(index)) else {
            return false;
        };
        if !self.is_trusted_server(server) {
            return false;
        }
        call.ctx.counters.introductions_received += 1;
        if let Some(remote) = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index)) {
            remote.introduction.introduced = true;
            return true;
        }
        let received = Received { multicast: false, ..from.received };
        self.is_introduction = true;
        self.handle_announcement(call, &received, announcement);
        self.is_introduction = false;
        if let Some(&index) = self.remote_by_prefix.get(&prefix) {
            if let Some(remote) = self.remotes.get_mut(index) {
                remote.introduction.introduced = true;
            }
            if self.receive_announcement(index, *octets) {
                *octets = 0;
            }
        }
        true
    }

    /// Schedules the introduction of a participant whose endpoints have changed.
    pub(super) fn schedule_introduction(&mut self, now: Instant, ctx: &mut Context, prefix: GuidPrefix) {
        let Some(server) = &mut self.discovery_server else { return };
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.introduction.repeats_left = REPEATS;
            server.due.insert(index);
            ctx.timers.arm_by(server.timer, now.after(COLLECTION_TIME));
        }
    }

    /// Counts an announcement of a participant, and repeats its introduction if that is due.
    pub(super) fn repeat_introduction(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(server) = &mut self.discovery_server else { return };
        let Some(Remote { introduction, .. }) = self.remotes.get_mut(index) else { return };
        introduction.announcements = introduction.announcements.wrapping_add(1);
        if introduction.repeats_left > 0 || introduction.announcements.is_multiple_of(LATER_REPEAT_INTERVAL) {
            introduction.repeats_left = introduction.repeats_left.saturating_sub(1);
            server.due.insert(index);
            ctx.timers.arm_by(server.timer, now.after(COLLECTION_TIME));
        }
    }

    /// Cancels the introduction of a departed participant.
    pub(super) fn cancel_introduction(&mut self, index: u32) {
        if let Some(server) = &mut self.discovery_server {
            server.due.remove(&index);
        }
    }

    /// Queues the due introductions. Takes a step for each.
    pub(crate) fn handle_introductions(&mut self, ctx: &mut Context) {
        let Some(server) = &mut self.discovery_server else { return };
        ctx.work.steps(server.due.len());
        for participant in core::mem::take(&mut server.due) {
            ctx.jobs.push(Priority::NORMAL, Job::Introduction { participant });
        }
    }

    /// Builds the introduction of a participant to all participants it concerns.
    pub(crate) fn transmit_introduction(&mut self, ctx: &mut Context, index: u32, frame: &mut [u8]) -> Option<usize> {
        let remote = self.remotes.get(index).filter(|remote| !remote.is_on_probation())?;
        let destinations = self.introduction_destinations(remote);
        let (others, endpoints) = (self.remotes.len(), self.publications.len() + self.subscriptions.len());
        ctx.work.steps(others + endpoints);
        if destinations.is_empty() {
            return None;
        }
        let mut builder = MessageBuilder::new(frame, &ctx.header).ok()?;
        let (version, vendor) = (remote.data.protocol_version, remote.data.vendor_id);
        builder.info_source(&InfoSource { version, vendor, prefix: remote.prefix }).ok()?;
        builder
            .data(&DataEmit {
                reader: EntityId::SPDP_READER,
                writer: EntityId::SPDP_WRITER,
                sn: remote.sn,
                inline_qos: None,
                payload: Payload::Data(&remote.announcement),
            })
            .ok()?;
        let len = builder.len();
        let limit = destinations.iter().map(|(_, max_message)| *max_message).min()?;
        ctx.destinations.extend(destinations.into_iter().map(|(at, _)| at));
        ctx.counters.introductions_sent += 1;
        (len <= limit).then_some(len)
    }

    /// Returns the destinations of an introduction: participants with a matching writer or reader,
    /// and servers and clients that request all. If the participant itself is one of these, all
    /// participants.
    fn introduction_destinations(&self, remote: &Remote) -> BTreeSet<(Locator, usize)> {
        let prefix = remote.prefix;
        let own = |guid: &takt_wire::Guid| guid.prefix == prefix;
        let writes: BTreeSet<&str> =
            self.publications.iter().filter(|(guid, _)| own(guid)).map(|(_, data)| data.topic_name.as_str()).collect();
        let reads: BTreeSet<&str> =
            self.subscriptions.iter().filter(|(guid, _)| own(guid)).map(|(_, data)| data.topic_name.as_str()).collect();
        let readers = self.subscriptions.iter().filter(|(_, data)| writes.contains(data.topic_name.as_str()));
        let writers = self.publications.iter().filter(|(_, data)| reads.contains(data.topic_name.as_str()));
        let mut prefixes: BTreeSet<GuidPrefix> =
            readers.map(|(guid, _)| guid.prefix).chain(writers.map(|(guid, _)| guid.prefix)).collect();
        let wants_introductions = |of: &Remote| self.is_trusted_server(of) || wants_all(&of.data);
        let is_for_all = wants_introductions(remote);
        let others = self.remotes.iter().map(|(_, other)| other);
        prefixes.extend(others.filter(|other| is_for_all || wants_introductions(other)).map(|other| other.prefix));
        prefixes.remove(&prefix);
        let remotes = prefixes.iter().filter_map(|prefix| self.remotes.get(*self.remote_by_prefix.get(prefix)?));
        let validated = remotes.filter(|other| !other.is_on_probation());
        validated.map(|other| (other.metatraffic.locator, other.metatraffic.max_message)).collect()
    }
}
