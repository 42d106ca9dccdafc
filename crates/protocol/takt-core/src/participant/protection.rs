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
    /// Decrypted submessages of a message protected as a whole.
    message: Vec<u8>,
    /// Submessages decrypted with the key of an endpoint.
    submessages: Vec<u8>,
    /// Decrypted payload.
    payload: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            built: vec![0; DATAGRAM_LEN_MAX],
            message: vec![0; DATAGRAM_LEN_MAX],
            submessages: vec![0; DATAGRAM_LEN_MAX],
            payload: vec![0; DATAGRAM_LEN_MAX],
        })
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

    /// Verifies a message that is protected as a whole and passes it to a function; passes a plain
    /// message unchanged. Counts messages that are not authentic.
    pub(crate) fn with_opened_message(
        &mut self,
        datagram: &[u8],
        message: MessageView<'_>,
        handle: impl FnOnce(&mut Self, MessageView<'_>, bool),
    ) {
        if !begins_with(&message, id::SRTPS_PREFIX) {
            return handle(self, message, false);
        }
        let (Some(security), Some(scratch)) = (self.ctx.security.as_mut(), self.scratch.as_mut()) else { return };
        let mut memory = core::mem::take(&mut scratch.message);
        match security.open_message(datagram, &mut memory) {
            Some(plain) => handle(self, message.with_submessages(plain), true),
            None => self.ctx.counters.unauthentic_messages += 1,
        }
        if let Some(scratch) = &mut self.scratch {
            scratch.message = memory;
        }
    }

    /// Verifies the submessages between the present prefix and its postfix and passes them to a
    /// function. Advances `rest` past the postfix.
    pub(crate) fn with_opened_submessages(
        &mut self,
        source: GuidPrefix,
        message: &MessageView<'_>,
        prefix: &Envelope<'_>,
        rest: &mut Submessages<'_>,
        handle: impl FnOnce(&mut Self, EntityId, &[u8]),
    ) {
        let end = core::iter::from_fn(|| rest.next_envelope().and_then(Result::ok))
            .find(|envelope| envelope.id() == id::SEC_POSTFIX)
            .map(|postfix| postfix.range().end);
        let protected = end.and_then(|end| message.octets(prefix.range().start..end));
        let security = self.ctx.security.as_mut();
        let (Some(protected), Some(security), Some(scratch)) = (protected, security, self.scratch.as_mut()) else {
            self.ctx.counters.unauthentic_submessages += 1;
            return;
        };
        let mut memory = core::mem::take(&mut scratch.submessages);
        match security.open_submessages(source, protected, &mut memory) {
            Some(opened) => handle(self, opened.sender, opened.plain),
            None => self.ctx.counters.unauthentic_submessages += 1,
        }
        if let Some(scratch) = &mut self.scratch {
            scratch.submessages = memory;
        }
    }

    /// Verifies the payload of a writer's submessage, which must have the given number of octets,
    /// and passes it to a function.
    pub(crate) fn with_opened_payload(
        &mut self,
        writer: Guid,
        protected: &[u8],
        len_min: usize,
        handle: impl FnOnce(&mut Self, &[u8]),
    ) {
        let (Some(security), Some(scratch)) = (self.ctx.security.as_mut(), self.scratch.as_mut()) else { return };
        let mut memory = core::mem::take(&mut scratch.payload);
        match security.open_payload(writer, protected, &mut memory) {
            Some(plain) if plain.len() < len_min => self.ctx.counters.malformed_submessages += 1,
            Some(plain) => handle(self, plain),
            None => self.ctx.counters.unauthentic_payloads += 1,
        }
        if let Some(scratch) = &mut self.scratch {
            scratch.payload = memory;
        }
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
