//! Discovery without multicast, by servers that introduce participants to each other.
//!
//! A server is a participant that the others, its clients, announce themselves to by unicast, and that has SEDP with each
//! of them like anybody else. So it knows who is there and who has which topics. It introduces two clients to each other
//! once one of them writes a topic that the other reads: it passes on what the one announces (SPDP) to the other, behind an
//! `INFO_SRC` (RTPS 2.5 §8.3.8.9.4) that names the one as its source. Everything after that happens between the two, as if
//! multicast had brought them together: they prove their addresses, exchange their endpoints, keep each other's lease,
//! and send user data directly. What they have found stays when the server goes.
//!
//! A client believes an introduction as far as to challenge the address in it, and only if it comes from a server that
//! has proven its own address and that the user named, or that such a server has introduced. An introduction renews no lease
//! and changes nothing for who is known.
//!
//! Servers that name each other as peers introduce their clients to each other. So a client that knows one of them has
//! them all, and each goes on without the others.
//!
//! Introductions go by best effort: soon after somebody's endpoints have changed, again with each of its next
//! [`REPEATS`] announcements, and then with one of [`RARELY`]. One of the two directions is enough. Each is one datagram to all whom it concerns, and takes
//! a look at each remote endpoint.
//!
//! DEVIATION(RTPS 2.5 §8.5.3): participants of any vendor may be clients, but the flag that says that a
//! participant is a server, the property [`SERVER_PROPERTY`], is this implementation's own.

use super::Remote;
use crate::context::{Context, Job};
use crate::participant::{Participant, Received};
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;
use takt_exec::Priority;
use takt_wire::builder::{DataEmit, MessageBuilder};
use takt_wire::discovery::ParticipantData;
use takt_wire::message::{InfoSource, Payload};
use takt_wire::{EntityId, GuidPrefix, Locator, SequenceNumber};

/// The property by which a participant says that it is a server; its value is `1`.
pub const SERVER_PROPERTY: &str = "takt.discovery.server";

/// The property by which a client asks to be introduced to all, whatever their topics; its value is `all`. For tools.
pub const INTEREST_PROPERTY: &str = "takt.discovery.interest";

/// Introductions wait for one another this long, so that the endpoints of a program that starts cause one.
const COLLECTION_TIME: Duration = Duration::from_millis(30);
/// Announcements with which a participant is introduced again.
const REPEATS: u32 = 3;
/// Afterwards it is introduced with one announcement of so many.
const RARELY: u32 = 8;

/// Lost participants that are announced to for a while; the oldest gives way.
const LOST_MAX: usize = 256;
/// For how long.
const LOST_TIME: Duration = Duration::from_secs(600);

/// What a server is about to do.
#[derive(Debug)]
pub(crate) struct Introducer {
    /// Who is to be introduced, by index.
    due: BTreeSet<u32>,
    timer: TimerId,
}

impl Introducer {
    pub(crate) fn new(ctx: &mut Context) -> Self {
        Self { due: BTreeSet::new(), timer: ctx.timers.register(TimerKind::Introduce) }
    }
}

/// How a remote participant came to be known, and how it is made known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// A server that is believed has introduced it.
    pub(super) introduced: bool,
    /// With how many of its announcements it is still to be introduced in any case.
    repeats_left: u32,
    /// Announcements that came from itself.
    announcements: u32,
}

/// Participants that fell silent, who can find us only if we announce ourselves to them.
#[derive(Debug, Default)]
pub(crate) struct Lost(VecDeque<(Locator, Instant)>);

impl Lost {
    /// A participant that only unicast reaches has fallen silent.
    pub(super) fn remember(&mut self, now: Instant, at: Locator) {
        self.0.retain(|(known, until)| *known != at && *until > now);
        if self.0.len() == LOST_MAX {
            self.0.pop_front();
        }
        self.0.push_back((at, now.after(LOST_TIME)));
    }

    /// Somebody is there.
    pub(super) fn forget(&mut self, at: &Locator) {
        self.0.retain(|(known, _)| known != at);
    }

    /// Where to announce ourselves too.
    pub(super) fn places(&self, now: Instant) -> impl Iterator<Item = Locator> {
        self.0.iter().filter(move |(_, until)| *until > now).map(|(at, _)| *at)
    }
}

/// Says of itself that it is a server.
pub(super) fn mark_as_server(data: &mut ParticipantData) {
    data.properties.0.push((SERVER_PROPERTY.to_string(), "1".to_string(), true));
}

fn claims_to_serve(data: &ParticipantData) -> bool {
    data.properties.get(SERVER_PROPERTY) == Some("1")
}

fn wants_all(data: &ParticipantData) -> bool {
    data.properties.get(INTEREST_PROPERTY) == Some("all")
}

impl Participant {
    /// The named discovery servers ([`Config::servers`](crate::Config::servers)) that have not answered, or do not any more: no
    /// participant that says it is a server is known at their address. Right after the start that is all of them. Looks at
    /// each remote participant once for each server.
    pub fn silent_servers(&self) -> Vec<Locator> {
        let answers = |server: &Locator| {
            let mut remotes = self.remotes.iter().map(|(_, remote)| remote);
            remotes.any(|remote| {
                let at = remote.metatraffic.locator;
                at.ip() == server.ip() && !remote.is_on_probation() && claims_to_serve(&remote.data)
            })
        };
        self.servers.iter().filter(|server| !answers(server)).copied().collect()
    }

    /// Whether a participant is a server whose introductions are believed.
    fn is_trusted_server(&self, remote: &Remote) -> bool {
        let at = remote.metatraffic.locator;
        let is_named = self.servers.iter().any(|server| server.ip() == at.ip());
        !remote.is_on_probation() && claims_to_serve(&remote.data) && (is_named || remote.standing.introduced)
    }

    /// Somebody passed on an announcement that is not its own. Says whether that was an introduction by a server; if so,
    /// nothing else is to be done with it.
    pub(super) fn handle_introduction(
        &mut self,
        now: Instant,
        from: &Received,
        (sender, prefix): (GuidPrefix, GuidPrefix),
        (sn, payload): (SequenceNumber, &[u8]),
        octets: &mut usize,
    ) -> bool {
        let Some(server) = self.remote_by_prefix.get(&sender).and_then(|&index| self.remotes.get(index)) else {
            return false;
        };
        if !self.is_trusted_server(server) {
            return false;
        }
        self.ctx.counters.introductions_received += 1;
        if let Some(remote) = self.remote_by_prefix.get(&prefix).and_then(|&index| self.remotes.get_mut(index)) {
            remote.standing.introduced = true;
            return true;
        }
        let from = Received { multicast: false, ..*from };
        self.introducing = true;
        self.handle_announcement(now, &from, prefix, sn, payload);
        self.introducing = false;
        if let Some(&index) = self.remote_by_prefix.get(&prefix) {
            if let Some(remote) = self.remotes.get_mut(index) {
                remote.standing.introduced = true;
            }
            if self.receive_announcement(index, *octets) {
                *octets = 0;
            }
        }
        true
    }

    /// The endpoints of a participant have changed: others may want to know it.
    pub(super) fn introduce_soon(&mut self, now: Instant, prefix: GuidPrefix) {
        let Some(introducer) = &mut self.introducer else { return };
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.standing.repeats_left = REPEATS;
            introducer.due.insert(index);
            self.ctx.timers.arm_by(introducer.timer, now.after(COLLECTION_TIME));
        }
    }

    /// A participant has announced itself.
    pub(super) fn introduce_again(&mut self, now: Instant, index: u32) {
        let Some(introducer) = &mut self.introducer else { return };
        let Some(Remote { standing, .. }) = self.remotes.get_mut(index) else { return };
        standing.announcements = standing.announcements.wrapping_add(1);
        if standing.repeats_left > 0 || standing.announcements.is_multiple_of(RARELY) {
            standing.repeats_left = standing.repeats_left.saturating_sub(1);
            introducer.due.insert(index);
            self.ctx.timers.arm_by(introducer.timer, now.after(COLLECTION_TIME));
        }
    }

    /// A participant has gone.
    pub(super) fn introduce_no_more(&mut self, index: u32) {
        if let Some(introducer) = &mut self.introducer {
            introducer.due.remove(&index);
        }
    }

    /// Introductions have waited long enough. A step for each.
    pub(crate) fn handle_introductions(&mut self) {
        let Some(introducer) = &mut self.introducer else { return };
        self.ctx.work.steps(introducer.due.len());
        for participant in core::mem::take(&mut introducer.due) {
            self.ctx.jobs.push(Priority::NORMAL, Job::Introduce { participant });
        }
    }

    /// Builds what makes a participant known to all whom it concerns.
    pub(crate) fn transmit_introduction(&mut self, index: u32, frame: &mut [u8]) -> Option<usize> {
        let remote = self.remotes.get(index).filter(|remote| !remote.is_on_probation())?;
        let concerned = self.concerned_by(remote);
        let (others, endpoints) = (self.remotes.len(), self.publications.len() + self.subscriptions.len());
        self.ctx.work.steps(others + endpoints);
        if concerned.is_empty() {
            return None;
        }
        let mut builder = MessageBuilder::new(frame, &self.header).ok()?;
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
        let limit = concerned.iter().map(|(_, max_message)| *max_message).min()?;
        self.destinations.extend(concerned.into_iter().map(|(at, _)| at));
        self.ctx.counters.introductions_sent += 1;
        (len <= limit).then_some(len)
    }

    /// Where those are who write what the participant reads, or read what it writes; all of them if it is a server or asks
    /// for all, and such in any case.
    fn concerned_by(&self, remote: &Remote) -> BTreeSet<(Locator, usize)> {
        let prefix = remote.prefix;
        let own = |guid: &takt_wire::Guid| guid.prefix == prefix;
        let writes: BTreeSet<&str> =
            self.publications.iter().filter(|(guid, _)| own(guid)).map(|(_, data)| data.topic_name.as_str()).collect();
        let reads: BTreeSet<&str> =
            self.subscriptions.iter().filter(|(guid, _)| own(guid)).map(|(_, data)| data.topic_name.as_str()).collect();
        let readers = self.subscriptions.iter().filter(|(_, data)| writes.contains(data.topic_name.as_str()));
        let writers = self.publications.iter().filter(|(_, data)| reads.contains(data.topic_name.as_str()));
        let mut concerned: BTreeSet<GuidPrefix> =
            readers.map(|(guid, _)| guid.prefix).chain(writers.map(|(guid, _)| guid.prefix)).collect();
        let is_curious = |of: &Remote| self.is_trusted_server(of) || wants_all(&of.data);
        let concerns_all = is_curious(remote);
        let others = self.remotes.iter().map(|(_, other)| other);
        concerned.extend(others.filter(|other| concerns_all || is_curious(other)).map(|other| other.prefix));
        concerned.remove(&prefix);
        let remotes = concerned.iter().filter_map(|prefix| self.remotes.get(*self.remote_by_prefix.get(prefix)?));
        let proven = remotes.filter(|other| !other.is_on_probation());
        proven.map(|other| (other.metatraffic.locator, other.metatraffic.max_message)).collect()
    }
}
