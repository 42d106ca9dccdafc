//! Messages of the security plugins (DDS-SEC 1.1 §7.4.3, §7.4.4).
//!
//! Each remote participant has local writers of its own here, one for each channel. A message has a
//! single addressee, and a shared writer would have to send a GAP for it to all others. The writers
//! have the entity ID of the specification, so a remote participant sees one writer. The readers
//! are shared.
//!
//! A received message waits in its reader until a timer passes it to the plugin, one message at a
//! time. Verification may take milliseconds, which the call that received the message must not.
//!
//! Bounds: [`STATELESS_DEPTH`] and [`VOLATILE_DEPTH`] waiting messages to one participant,
//! [`RECEIVED_MAX`] received messages of each channel, [`MESSAGE_LEN_MAX`] octets each.

use crate::cache::{ChangeKind, PayloadPool, ReadCursor, ReaderCache, Selector};
use crate::context::Context;
use crate::discovery::{Call, Discovery, STATELESS_MESSAGES, VOLATILE_MESSAGES};
use crate::endpoints::Endpoints;
use crate::participant::{cache_limits, history_limits};
use crate::presentation::SetPosition;
use crate::reader::Reader;
use crate::security::{SecurityChannel, SecurityMessage};
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Directed, Write, Writer, WriterHistory};
use crate::{Priority, WriterFlows};
use alloc::boxed::Box;
use alloc::string::ToString;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{Durability, History, Reliability, ReliabilityKind, ResourceLimits};
use takt_wire::{Duration, EntityId, Guid, GuidPrefix, Timestamp};

/// Maximum number of handshake messages that wait to be sent to one participant; a later one
/// replaces the oldest.
const STATELESS_DEPTH: u32 = 4;
/// Maximum number of key tokens that one participant has not acknowledged; further ones are refused
/// and counted.
const VOLATILE_DEPTH: u32 = 4_096;
/// Maximum number of received messages of a channel that wait to be handled.
const RECEIVED_MAX: u32 = 256;
/// Maximum number of octets of a message.
const MESSAGE_LEN_MAX: usize = 65_536;
/// Maximum number of octets of the key tokens that wait for one participant.
const VOLATILE_MEMORY_BYTES: usize = 1 << 20;
/// Overhead of each fragment of a message in octets: headers of IP, UDP and RTPS, INFO_DST,
/// INFO_TS, DATA_FRAG.
const FRAGMENT_OVERHEAD: usize = 28 + 20 + 16 + 12 + 36;
/// Minimum number of octets of a fragment, on paths with a small MTU.
const FRAGMENT_LEN: usize = 1_024;

impl SecurityChannel {
    fn topic_name(self) -> &'static str {
        match self {
            Self::Stateless => "DCPSParticipantStatelessMessage",
            Self::Volatile => "DCPSParticipantVolatileMessageSecure",
        }
    }

    pub(super) const fn writer(self) -> EntityId {
        match self {
            Self::Stateless => EntityId::STATELESS_MESSAGE_WRITER,
            Self::Volatile => EntityId::VOLATILE_MESSAGE_WRITER,
        }
    }

    pub(super) const fn reader(self) -> EntityId {
        match self {
            Self::Stateless => EntityId::STATELESS_MESSAGE_READER,
            Self::Volatile => EntityId::VOLATILE_MESSAGE_READER,
        }
    }

    const fn own_reader(self) -> u32 {
        match self {
            Self::Stateless => STATELESS_MESSAGES,
            Self::Volatile => VOLATILE_MESSAGES,
        }
    }

    const fn is_reliable(self) -> bool {
        matches!(self, Self::Volatile)
    }

    fn reliability(self) -> Reliability {
        let kind = if self.is_reliable() { ReliabilityKind::Reliable } else { ReliabilityKind::BestEffort };
        Reliability { kind, max_blocking_time: Duration::ZERO }
    }
}

/// Maximum number of messages that wait for octets of a participant on probation: an AuthRequest
/// and the handshake message after it.
const DELAYED_MAX: usize = 2;

/// Returns the octets that are sent for a message of `payload_len` octets.
fn sent_len(payload_len: usize) -> usize {
    payload_len + payload_len.div_ceil(FRAGMENT_LEN).max(1) * FRAGMENT_OVERHEAD
}

impl Discovery {
    /// Opens a channel to a participant.
    pub(crate) fn open_channel(&mut self, call: &mut Call<'_>, remote: u32, channel: SecurityChannel) {
        let Some(prefix) = self.remotes.get(remote).map(|remote| remote.prefix) else { return };
        let mut data = PublicationData {
            guid: Guid { prefix: call.ctx.header.prefix, entity_id: channel.writer() },
            topic_name: channel.topic_name().to_string(),
            ..PublicationData::default()
        };
        data.qos.reliability = channel.reliability();
        data.qos.durability = Durability::Volatile;
        let (history, memory) = match channel {
            SecurityChannel::Stateless => {
                (History::KeepLast(STATELESS_DEPTH), STATELESS_DEPTH as usize * MESSAGE_LEN_MAX)
            }
            SecurityChannel::Volatile => (History::KeepAll, VOLATILE_MEMORY_BYTES),
        };
        data.qos.history = history;
        let limits = call.ctx.limits;
        let resources = ResourceLimits { max_samples: Some(VOLATILE_DEPTH), ..ResourceLimits::default() };
        let writer_history =
            WriterHistory::new(history_limits(history, &resources, &limits), memory.min(limits.endpoint_memory_bytes));
        let next = call.endpoints.writers.vacant();
        let handle = WriterHandle { index: next, generation: call.endpoints.writers.generation(next) };
        let mut writer =
            Writer::new(handle, Box::new(data), false, WriterFlows::default(), writer_history, call.now, call.ctx);
        writer.is_enabled = true;
        writer.security.addressee = Some(prefix);
        writer.set_protection(call.ctx.builtin_protection(channel.writer()), call.ctx);
        debug_assert_eq!(writer.priority, Priority::NORMAL);
        let index = call.endpoints.writers.insert(writer);
        self.add_builtin_reader(call, index, Guid { prefix, entity_id: channel.reader() }, remote);
        self.add_builtin_writer(call, channel.own_reader(), Guid { prefix, entity_id: channel.writer() }, remote);
        if let Some(remote) = self.remotes.get_mut(remote) {
            *remote.security.writer_mut(channel) = Some(index);
        }
    }

    /// Returns the local writer of a channel to a participant, if `writer` names one.
    pub(crate) fn channel_writer(&self, remote: GuidPrefix, writer: EntityId) -> Option<u32> {
        let channel = match writer {
            EntityId::STATELESS_MESSAGE_WRITER => SecurityChannel::Stateless,
            EntityId::VOLATILE_MESSAGE_WRITER => SecurityChannel::Volatile,
            _ => return None,
        };
        let remote = self.remotes.get(*self.remote_by_prefix.get(&remote)?)?;
        remote.security.writer(channel)
    }

    /// Sends a message of the plugin. If the participant is on probation, the message waits until
    /// enough octets were received from it for all waiting messages: one alone is useless to a
    /// participant that must also receive the one before it. A message beyond [`DELAYED_MAX`]
    /// replaces the oldest one.
    pub(super) fn send_security_message(&mut self, call: &mut Call<'_>, message: SecurityMessage) {
        let Some(&index) = self.remote_by_prefix.get(&message.to) else { return };
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let delayed = &mut remote.security.delayed_messages;
        if let Some(probation) = &mut remote.probation
            && (!delayed.is_empty() || !probation.spend(sent_len(message.payload.len()), call.ctx))
        {
            if delayed.len() == DELAYED_MAX {
                delayed.remove(0);
            }
            delayed.push(message);
            return;
        }
        let Some(writer) = remote.security.writer(message.channel) else { return };
        call.endpoints.write_security_message(call.now, call.ctx, writer, &message.payload);
    }

    /// Sends the messages that wait for octets of a participant on probation, if these suffice now.
    pub(crate) fn send_delayed_messages_to(&mut self, call: &mut Call<'_>, prefix: GuidPrefix) {
        let Some(&index) = self.remote_by_prefix.get(&prefix) else { return };
        self.send_delayed_messages(call, index);
    }

    /// Sends the waiting messages to a participant on probation, if enough octets were received
    /// from it.
    pub(crate) fn send_delayed_messages(&mut self, call: &mut Call<'_>, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let delayed = &mut remote.security.delayed_messages;
        let octets: usize = delayed.iter().map(|message| sent_len(message.payload.len())).sum();
        if delayed.is_empty() || remote.probation.as_mut().is_some_and(|probation| !probation.spend(octets, call.ctx)) {
            return;
        }
        for message in core::mem::take(delayed) {
            if let Some(writer) = remote.security.writer(message.channel) {
                call.endpoints.write_security_message(call.now, call.ctx, writer, &message.payload);
            }
        }
    }
}

impl Endpoints {
    /// Creates the readers of both channels.
    pub(crate) fn create_channel_readers(&mut self, ctx: &mut Context) {
        for channel in [SecurityChannel::Stateless, SecurityChannel::Volatile] {
            let mut data = SubscriptionData {
                guid: Guid { prefix: ctx.header.prefix, entity_id: channel.reader() },
                topic_name: channel.topic_name().to_string(),
                ..SubscriptionData::default()
            };
            data.qos.reliability = channel.reliability();
            data.qos.history = History::KeepAll;
            let resources = ResourceLimits { max_samples: Some(RECEIVED_MAX), ..ResourceLimits::default() };
            let limits = ctx.limits;
            let memory = PayloadPool::capacity_for(RECEIVED_MAX as usize, MESSAGE_LEN_MAX);
            let cache = ReaderCache::new(
                cache_limits(History::KeepAll, &resources, &limits),
                memory.min(limits.endpoint_memory_bytes),
            );
            let handle = ReaderHandle { index: self.readers.len() as u32, generation: 0 };
            let mut reader = Reader::new(handle, Box::new(data), false, None, cache, ctx);
            reader.is_enabled = true;
            reader.set_protection(ctx.builtin_protection(channel.reader()));
            let index = self.readers.insert(reader);
            debug_assert_eq!(index, channel.own_reader());
        }
    }

    /// Closes the channels to a departed participant.
    pub(crate) fn close_channels(&mut self, ctx: &mut Context, writers: [Option<u32>; 2]) {
        for index in writers.into_iter().flatten() {
            if let Some(mut writer) = self.writers.remove(index) {
                writer.close(ctx);
            }
        }
    }

    fn write_security_message(&mut self, now: Instant, ctx: &mut Context, writer: u32, payload: &[u8]) {
        let write = Write {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: Timestamp::INVALID,
            payload_len: payload.len(),
            directed: Directed::default(),
            position: SetPosition::default(),
            in_set: false,
            origin: None,
        };
        let Some(writer) = self.writers.get_mut(writer) else { return };
        let written = writer.write(now, ctx, &write, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        });
        ctx.counters.refused_security_messages += u64::from(written.is_err());
    }

    /// Passes the next received message to the plugin. Returns false if there is none.
    pub(super) fn take_security_message(&mut self, now: Instant, ctx: &mut Context) -> bool {
        for channel in [SecurityChannel::Volatile, SecurityChannel::Stateless] {
            let Self { readers, .. } = self;
            let Some(reader) = readers.get_mut(channel.own_reader()) else { continue };
            let clocks = ctx.clocks(now);
            let found = match reader.cache.next(Selector::TAKE, None, &mut ReadCursor::default()) {
                None => false,
                Some(sample) => {
                    let from = sample.info.publication.prefix;
                    if let Some(security) = ctx.security.as_mut().filter(|_| sample.info.valid_data) {
                        security.handle_message(clocks, channel, from, sample.payload);
                    }
                    true
                }
            };
            reader.cache.release_taken();
            reader.unblock(now, ctx);
            if found {
                return true;
            }
        }
        false
    }

    /// Reports whether a received message waits for the plugin.
    pub(super) fn has_security_message(&self) -> bool {
        [STATELESS_MESSAGES, VOLATILE_MESSAGES]
            .into_iter()
            .any(|index| self.readers.get(index).is_some_and(|reader| reader.cache.has(&Selector::TAKE)))
    }
}

impl Context {
    /// Arms the timer that passes received messages to the plugin.
    pub(crate) fn await_security_message(&mut self, now: Instant) {
        if let Some(timer) = self.security_timer {
            self.timers.arm_by(timer, now);
        }
    }
}
