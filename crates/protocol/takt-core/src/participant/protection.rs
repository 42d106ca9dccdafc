//! Protection of sent messages and verification of received ones (DDS-SEC 1.1 §8.5.1.9).
//!
//! The participant builds a plain message in its own memory. The plugin writes the protected
//! message into the transport's frame, and protects the payload of each DATA and DATA_FRAG there,
//! so a writer's history holds plain payloads. Received signed octets are read in the transport's
//! buffer; encrypted ones are decrypted into memory of the participant. No other process can write
//! to that buffer between verification and use: the shared-memory transport copies a message out of
//! the ring before it delivers it.

use crate::FlowTag;
use crate::context::{Context, Job};
use crate::endpoints::Endpoints;
use crate::participant::Participant;
use crate::security::OpenedSubmessages;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use takt_wire::message::{Envelope, MessageView, Submessages, id};
use takt_wire::{EntityId, Guid, GuidPrefix};

/// Maximum number of octets of a datagram.
const DATAGRAM_LEN_MAX: usize = 65_536;

/// Buffers for messages during protection: four datagrams.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Message being built.
    built: Vec<u8>,
    /// Decrypted content, by [`Layer`].
    opened: [Vec<u8>; 3],
}

/// Layers of protection, each inside the previous one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer {
    /// Submessages of a message protected as a whole.
    Message,
    /// Submessages protected with the key of an endpoint.
    Submessages,
    /// Protected payload.
    Payload,
}

impl Scratch {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { built: vec![0; DATAGRAM_LEN_MAX], opened: core::array::from_fn(|_| vec![0; DATAGRAM_LEN_MAX]) })
    }
}

/// Protection that was verified so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// The message as a whole was verified with the key of its source participant.
    pub(crate) message: bool,
    /// The present submessages were verified with the key of this endpoint of the source.
    pub(crate) sender: Option<EntityId>,
}

impl Received {
    /// Reports whether a submessage of `sender` is protected by its key. Both endpoints of the
    /// volatile channel share one key.
    pub(crate) fn is_sealed_by(&self, sender: EntityId) -> bool {
        let key_of = match sender {
            EntityId::VOLATILE_MESSAGE_READER => EntityId::VOLATILE_MESSAGE_WRITER,
            other => other,
        };
        self.sender == Some(key_of)
    }
}

/// Reports whether a message with a submessage of this endpoint is not protected as a whole:
/// discovery and handshakes precede the keys.
fn goes_clear(sender: EntityId) -> bool {
    matches!(
        sender,
        EntityId::SPDP_WRITER
            | EntityId::SPDP_READER
            | EntityId::STATELESS_MESSAGE_WRITER
            | EntityId::STATELESS_MESSAGE_READER
            | EntityId::VOLATILE_MESSAGE_WRITER
            | EntityId::VOLATILE_MESSAGE_READER
    )
}

/// Reports whether an endpoint carries discovery or liveliness that the governance does not
/// protect.
fn is_plain_discovery(sender: EntityId) -> bool {
    matches!(
        sender,
        EntityId::SEDP_PUB_WRITER
            | EntityId::SEDP_PUB_READER
            | EntityId::SEDP_SUB_WRITER
            | EntityId::SEDP_SUB_READER
            | EntityId::P2P_MESSAGE_WRITER
            | EntityId::P2P_MESSAGE_READER
    )
}

impl Participant {
    /// Builds the datagram of a job, and protects it unless its destinations have no keys yet.
    pub(crate) fn build_protected(
        &mut self,
        now: Instant,
        job: Job,
        frame: &mut [u8],
        flow: &mut FlowTag,
    ) -> Option<usize> {
        if matches!(job, Job::Announce | Job::Introduction { .. } | Job::DirectedAnnouncement { .. }) {
            return self.build(now, job, frame, flow);
        }
        let overhead = self.ctx.security.as_ref()?.message_overhead();
        let mut memory = core::mem::take(&mut self.scratch.as_mut()?.built);
        let room = frame.len().saturating_sub(overhead).min(memory.len());
        let len = self.build(now, job, &mut memory[..room], flow);
        let built = len.map(|len| &memory[..len]);
        let protected = built.and_then(|built| self.ctx.security.as_mut()?.protect(built, frame));
        self.ctx.counters.unprotectable_messages += u64::from(len.is_some() && protected.is_none());
        if let Some(scratch) = &mut self.scratch {
            scratch.built = memory;
        }
        protected
    }

    /// Takes the memory for decrypted content, until [`return_memory`](Self::return_memory).
    pub(super) fn take_memory(&mut self, layer: Layer) -> Vec<u8> {
        self.scratch.as_mut().map(|scratch| core::mem::take(&mut scratch.opened[layer as usize])).unwrap_or_default()
    }

    pub(super) fn return_memory(&mut self, layer: Layer, memory: Vec<u8>) {
        if let Some(scratch) = &mut self.scratch {
            scratch.opened[layer as usize] = memory;
        }
    }

    /// Verifies a message that is protected as a whole; returns a plain message unchanged. Also
    /// returns whether it was protected. Counts a message that is not authentic.
    pub(super) fn open_message<'a>(
        &mut self,
        datagram: &'a [u8],
        message: MessageView<'a>,
        memory: &'a mut [u8],
    ) -> Option<(MessageView<'a>, bool)> {
        if !begins_with(&message, id::SRTPS_PREFIX) {
            return Some((message, false));
        }
        let plain = self.ctx.security.as_mut()?.open_message(datagram, memory);
        self.ctx.counters.unauthentic_messages += u64::from(plain.is_none());
        Some((message.with_submessages(plain?), true))
    }

    /// Verifies the submessages between the present prefix and its postfix. Advances `rest` past
    /// the postfix. Counts submessages that are not authentic.
    pub(super) fn open_submessages<'a>(
        &mut self,
        source: GuidPrefix,
        message: &MessageView<'a>,
        prefix: &Envelope<'_>,
        rest: &mut Submessages<'_>,
        memory: &'a mut [u8],
    ) -> Option<OpenedSubmessages<'a>> {
        let end = core::iter::from_fn(|| rest.next_envelope().and_then(Result::ok))
            .find(|envelope| envelope.id() == id::SEC_POSTFIX)
            .map(|postfix| postfix.range().end);
        let protected = end.and_then(|end| message.octets(prefix.range().start..end));
        let security = self.ctx.security.as_mut().zip(protected);
        let opened = security.and_then(|(security, protected)| security.open_submessages(source, protected, memory));
        self.ctx.counters.unauthentic_submessages += u64::from(opened.is_none());
        opened
    }

    /// Verifies the payload of a writer's submessage, which must have at least `len_min` octets.
    /// Counts one that is too short or not authentic.
    pub(super) fn open_payload<'a>(
        &mut self,
        writer: Guid,
        protected: &'a [u8],
        len_min: usize,
        memory: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let plain = self.ctx.security.as_mut()?.open_payload(writer, protected, memory);
        self.ctx.counters.unauthentic_payloads += u64::from(plain.is_none());
        let is_short = plain.is_some_and(|plain| plain.len() < len_min);
        self.ctx.counters.malformed_submessages += u64::from(is_short);
        plain.filter(|_| !is_short)
    }
}

impl Endpoints {
    /// Reports whether the payload of a writer's submessage is protected. False if its readers
    /// refuse the submessage for insufficient protection.
    pub(crate) fn has_protected_payload(&self, ctx: &Context, received: &Received, writer: &Guid) -> bool {
        ctx.security.is_some()
            && ctx.meets_requirement(received, writer.entity_id)
            && self.sources.get(writer).into_iter().flatten().any(|(reader, _)| {
                let protection = self.readers.get(*reader).map(|reader| reader.protection);
                protection.is_some_and(|it| it.payload && (!it.submessage || received.is_sealed_by(writer.entity_id)))
            })
    }
}

impl Context {
    /// Reports whether a submessage of an endpoint has the message protection that the governance
    /// requires; counts those that do not.
    pub(crate) fn is_message_as_required(&mut self, received: &Received, sender: EntityId) -> bool {
        let is_good = self.meets_requirement(received, sender);
        self.counters.unprotected_submessages += u64::from(!is_good);
        is_good
    }

    fn meets_requirement(&self, received: &Received, sender: EntityId) -> bool {
        let Some(security) = self.security.as_deref().filter(|security| security.protects_messages()) else {
            return true;
        };
        received.message || goes_clear(sender) || (security.accepts_clear_discovery() && is_plain_discovery(sender))
    }
}

fn begins_with(message: &MessageView<'_>, id: u8) -> bool {
    matches!(message.submessages().next_envelope(), Some(Ok(envelope)) if envelope.id() == id)
}
