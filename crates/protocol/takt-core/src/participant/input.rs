//! Message receiver: input of datagrams (RTPS 2.5 §8.3.4).

use super::Participant;
use super::protection::{self, Layer};
use crate::context::Context;
use crate::discovery::{Call, SpdpSource};
use crate::endpoints::Endpoints;
use crate::reader::{Reader, Stamp};
use crate::security::OpenedSubmessages;
use crate::slots::Slots;
use crate::time::Instant;
use core::slice;
use takt_wire::discovery::ENCAPSULATION_LEN;
use takt_wire::message::{
    AckNack, Data, DataFrag, Envelope, Gap, Heartbeat, MessageView, NackFrag, Submessage, Submessages, id,
};
use takt_wire::{EntityId, Guid, GuidPrefix, Locator, Malformed, SharedBuffer, Timestamp};

/// Origin of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Address of the sender.
    pub source: Locator,
    /// The datagram was addressed to a multicast group.
    pub multicast: bool,
}

/// State of the message receiver, set by interpreter submessages.
#[derive(Debug)]
struct Interpreter {
    /// GUID prefix of the sender.
    sender: GuidPrefix,
    source: GuidPrefix,
    for_us: bool,
    /// The message names this participant as its destination, so the source knows it.
    names_us: bool,
    /// The datagram comes from a validated or announced address of the source.
    is_authentic: bool,
    /// Octets of the datagram that are not yet charged to any participant.
    octets: usize,
    timestamp: Timestamp,
    protection: protection::Received,
}

/// Local readers that are matched with the writer of a submessage.
struct MatchedReaders<'a> {
    /// Index of each reader, and of its proxy of the writer.
    pairs: slice::Iter<'a, (u32, u32)>,
    /// The writer is matched, or its submessage is refused for want of protection.
    is_matched: bool,
    readers: &'a mut Slots<Reader>,
    ctx: &'a mut Context,
    addressee: EntityId,
    is_sealed: bool,
}

impl MatchedReaders<'_> {
    /// Returns the next reader that the submessage addresses, with its proxy of the writer. Skips
    /// readers that require more protection than the submessage has.
    #[inline(always)]
    fn next(&mut self) -> Option<(&mut Reader, &mut Context, u32)> {
        let Self { pairs, readers, ctx, addressee, is_sealed, .. } = self;
        let &(index, proxy) = pairs.find(|(index, _)| {
            let Some(reader) = readers.get(*index) else { return false };
            let is_addressed = *addressee == EntityId::UNKNOWN || *addressee == reader.entity_id;
            let is_refused = is_addressed && reader.protection.submessage && !*is_sealed;
            ctx.counters.unprotected_submessages += u64::from(is_refused);
            is_addressed && !is_refused
        })?;
        Some((readers.get_mut(index)?, ctx, proxy))
    }
}

impl Participant {
    /// Handles one datagram with any content: at most one pass over its bytes, and deliveries of at
    /// most one reorder window for each sample in it. Malformed content is counted and dropped.
    pub fn handle_datagram(&mut self, now: Instant, from: Received, datagram: &[u8]) {
        self.handle_with_buffer(now, from, datagram, SharedBuffer::Nothing);
    }

    /// As [`Self::handle_datagram`], with a buffer that can be retained: the loaned payload of the
    /// DATA, or the datagram's frame. Readers that do not [keep loans](Self::set_keeps_loans) copy
    /// the payloads.
    pub fn handle_with_buffer(&mut self, now: Instant, from: Received, datagram: &[u8], buffer: SharedBuffer<'_>) {
        self.ctx.counters.datagrams_received += 1;
        if !self.discovery.is_enabled {
            return;
        }
        let Ok(message) = MessageView::parse(datagram) else {
            self.ctx.counters.malformed_messages += 1;
            return;
        };
        if self.ctx.security.is_none() {
            return self.handle_message(now, from, message, buffer, false);
        }
        let mut memory = self.take_memory(Layer::Message);
        if let Some((message, is_protected)) = self.open_message(datagram, message, &mut memory) {
            // Decrypted content lies in separate memory, so no transport frame can be retained for
            // it.
            let buffer = if is_protected { SharedBuffer::Nothing } else { buffer };
            self.handle_message(now, from, message, buffer, is_protected);
        }
        self.return_memory(Layer::Message, memory);
    }

    /// Handles one plain message, which may contain protected submessages.
    fn handle_message(
        &mut self,
        now: Instant,
        from: Received,
        message: MessageView<'_>,
        buffer: SharedBuffer<'_>,
        is_protected: bool,
    ) {
        let source = message.header().prefix;
        if from.multicast && source == self.ctx.header.prefix {
            // Local readers receive the samples of local writers without the network.
            return;
        }
        let is_authentic = self.is_authentic(&from, source);
        let len = match is_authentic {
            true => self.discovery.message_received(now, source, &from.source, message.len()),
            false => message.len(),
        };
        let mut interpreter = Interpreter {
            sender: source,
            source,
            for_us: true,
            names_us: false,
            is_authentic,
            octets: len,
            timestamp: Timestamp::INVALID,
            protection: protection::Received { message: is_protected, sender: None },
        };
        let mut submessages = message.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            match envelope {
                Ok(prefix) if prefix.id() == id::SEC_PREFIX && self.ctx.security.is_some() => {
                    self.handle_protected(now, &from, &mut interpreter, &message, &prefix, &mut submessages);
                }
                envelope => {
                    let handled = self.handle_envelope(now, &from, &mut interpreter, envelope, buffer);
                    self.ctx.counters.malformed_submessages += u64::from(handled.is_err());
                }
            }
        }
        if self.ctx.security.is_some() {
            self.discovery.send_delayed_messages_to(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), source);
        }
    }

    /// Handles the submessages between the present prefix and its postfix. Advances `rest` past the
    /// postfix.
    fn handle_protected(
        &mut self,
        now: Instant,
        from: &Received,
        interpreter: &mut Interpreter,
        message: &MessageView<'_>,
        prefix: &Envelope<'_>,
        rest: &mut Submessages<'_>,
    ) {
        self.ctx.work.unit();
        let (mut memory, source) = (self.take_memory(Layer::Submessages), interpreter.source);
        if let Some(OpenedSubmessages { plain, sender }) =
            self.open_submessages(source, message, prefix, rest, &mut memory)
        {
            interpreter.protection.sender = Some(sender);
            let mut opened = Submessages::of(plain);
            while let Some(envelope) = opened.next_envelope() {
                let handled = self.handle_envelope(now, from, interpreter, envelope, SharedBuffer::Nothing);
                self.ctx.counters.malformed_submessages += u64::from(handled.is_err());
            }
            interpreter.protection.sender = None;
            if sender == EntityId::VOLATILE_MESSAGE_WRITER {
                self.discovery.confirm_session(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), source);
            }
        }
        self.return_memory(Layer::Submessages, memory);
    }

    #[inline]
    fn handle_envelope(
        &mut self,
        now: Instant,
        from: &Received,
        interpreter: &mut Interpreter,
        envelope: Result<Envelope<'_>, Malformed>,
        buffer: SharedBuffer<'_>,
    ) -> Result<(), Malformed> {
        let envelope = envelope?;
        // DATA and their INFO_TS are the most frequent: handling them apart avoids the stack space
        // of a general submessage.
        if let Some(data) = envelope.data() {
            self.handle_data(now, from, interpreter, &data?, buffer);
        } else if let Some(timestamp) = envelope.timestamp() {
            self.handle_timestamp(interpreter, timestamp?);
        } else {
            self.handle_submessage(now, from, interpreter, &envelope.open()?);
        }
        Ok(())
    }

    fn handle_timestamp(&mut self, interpreter: &mut Interpreter, timestamp: Option<Timestamp>) {
        self.ctx.work.unit();
        interpreter.timestamp = timestamp.unwrap_or(Timestamp::INVALID);
    }

    fn handle_data(
        &mut self,
        now: Instant,
        from: &Received,
        interpreter: &mut Interpreter,
        data: &Data<'_>,
        buffer: SharedBuffer<'_>,
    ) {
        self.ctx.work.unit();
        if !interpreter.for_us {
            return;
        }
        if data.writer == EntityId::SPDP_WRITER {
            let Interpreter { sender, source, is_authentic, .. } = *interpreter;
            let from = SpdpSource { received: *from, sender, prefix: source, is_authentic };
            let Self { ctx, endpoints, discovery, .. } = self;
            return discovery.handle_spdp(&mut Call::new(now, ctx, endpoints), &from, data, &mut interpreter.octets);
        }
        if !interpreter.is_authentic {
            return;
        }
        let writer = Guid { prefix: interpreter.source, entity_id: data.writer };
        let Some(protected) = data.payload.bytes().filter(|_| self.has_protected_payload(interpreter, &writer)) else {
            return self.deliver_data(now, interpreter, data, buffer, false);
        };
        let mut memory = self.take_memory(Layer::Payload);
        if let Some(plain) = self.open_payload(writer, protected, ENCAPSULATION_LEN, &mut memory) {
            let data = Data { payload: data.payload.replaced(plain), ..*data };
            self.deliver_data(now, interpreter, &data, SharedBuffer::Nothing, true);
        }
        self.return_memory(Layer::Payload, memory);
    }

    fn has_protected_payload(&self, interpreter: &Interpreter, writer: &Guid) -> bool {
        self.endpoints.has_protected_payload(&self.ctx, &interpreter.protection, writer)
    }

    /// Passes a sample to its matched readers, after decryption if it was protected.
    fn deliver_data(
        &mut self,
        now: Instant,
        interpreter: &Interpreter,
        data: &Data<'_>,
        buffer: SharedBuffer<'_>,
        is_opened: bool,
    ) {
        let writer = Guid { prefix: interpreter.source, entity_id: data.writer };
        let stamp = Stamp { now, source_timestamp: interpreter.timestamp };
        let has_payload = data.payload.bytes().is_some();
        let mut matched = self.matched_readers(interpreter, writer, data.reader);
        while let Some((reader, ctx, proxy)) = matched.next() {
            if (has_payload && reader.protection.payload) == is_opened {
                reader.handle_data(ctx, proxy, stamp, data, buffer);
            }
        }
        let is_matched = matched.is_matched;
        self.after_data(now, writer, is_matched);
    }

    /// Passes the fragments of a sample to its matched readers.
    fn handle_data_frag(&mut self, now: Instant, interpreter: &Interpreter, data: &DataFrag<'_>) {
        let writer = Guid { prefix: interpreter.source, entity_id: data.writer };
        if !self.has_protected_payload(interpreter, &writer) {
            return self.deliver_data_frag(now, interpreter, data, false);
        }
        let mut memory = self.take_memory(Layer::Payload);
        if let Some(plain) = self.open_payload(writer, data.rest, data.payload.len(), &mut memory) {
            let payload = &plain[..data.payload.len()];
            self.deliver_data_frag(now, interpreter, &DataFrag { payload, ..*data }, true);
        }
        self.return_memory(Layer::Payload, memory);
    }

    fn deliver_data_frag(&mut self, now: Instant, interpreter: &Interpreter, data: &DataFrag<'_>, is_opened: bool) {
        let writer = Guid { prefix: interpreter.source, entity_id: data.writer };
        let stamp = Stamp { now, source_timestamp: interpreter.timestamp };
        let mut matched = self.matched_readers(interpreter, writer, data.reader);
        while let Some((reader, ctx, proxy)) = matched.next() {
            if reader.protection.payload == is_opened {
                reader.handle_data_frag(ctx, proxy, stamp, data);
            }
        }
        let is_matched = matched.is_matched;
        self.after_data(now, writer, is_matched);
    }

    /// Reports whether the source address may send for a participant; counts rejected messages.
    fn is_authentic(&mut self, from: &Received, source: GuidPrefix) -> bool {
        let is_authentic = self.discovery.accepts_source(&mut self.ctx, &from.source, source);
        self.ctx.counters.foreign_datagrams += u64::from(!is_authentic);
        is_authentic
    }

    fn handle_submessage(
        &mut self,
        now: Instant,
        from: &Received,
        interpreter: &mut Interpreter,
        submessage: &Submessage<'_>,
    ) {
        self.ctx.work.unit();
        match submessage {
            Submessage::InfoSource(info) => {
                interpreter.source = info.prefix;
                interpreter.is_authentic = self.is_authentic(from, info.prefix);
                interpreter.timestamp = Timestamp::INVALID;
            }
            Submessage::InfoDestination(prefix) => {
                interpreter.names_us = *prefix == self.ctx.header.prefix;
                interpreter.for_us = interpreter.names_us || *prefix == GuidPrefix::default();
                if interpreter.names_us {
                    self.discovery.handle_addressed_message(now, &mut self.ctx, interpreter.source);
                }
            }
            Submessage::Unknown { .. } => self.ctx.counters.unknown_submessages += 1,
            // DEVIATION(RTPS 2.5 §8.3.8.9): answers go to the locators that discovery has
            // validated, not to those of INFO_REPLY.
            // DEVIATION(RTPS 2.5 §8.3.8.5): the checksum and length of the header extension are not
            // checked.
            Submessage::InfoReply(_) | Submessage::Pad | Submessage::HeaderExtension(_) => {}
            _ if !interpreter.for_us => {}
            // A submessage that may validate another address.
            Submessage::AckNack(acknack) if !interpreter.is_authentic && acknack.writer.is_builtin() => {
                self.discovery.handle_challenge_answer(
                    &mut Call::new(now, &mut self.ctx, &mut self.endpoints),
                    from,
                    interpreter.source,
                    acknack,
                );
            }
            Submessage::Heartbeat(heartbeat) if !interpreter.is_authentic => {
                if interpreter.names_us && heartbeat.writer.is_builtin() {
                    self.discovery.handle_challenge(&mut self.ctx, interpreter.source, heartbeat);
                }
            }
            _ if !interpreter.is_authentic => {}
            // Handled before the submessage is parsed in general form.
            Submessage::Data(_) | Submessage::InfoTimestamp(_) => {}
            Submessage::DataFrag(data) => self.handle_data_frag(now, interpreter, data),
            Submessage::Heartbeat(heartbeat) => self.handle_heartbeat(now, interpreter, heartbeat),
            // DEVIATION(RTPS 2.5 §8.3.8.7): contains less than the HEARTBEAT that follows it, so it
            // is ignored.
            Submessage::HeartbeatFrag(_) => {}
            Submessage::Gap(gap) => self.handle_gap(now, interpreter, gap),
            Submessage::AckNack(acknack) => self.handle_acknack(now, from, interpreter, acknack),
            Submessage::NackFrag(nack) => self.handle_nack_frag(now, interpreter, nack),
        }
    }

    fn handle_gap(&mut self, now: Instant, interpreter: &Interpreter, gap: &Gap) {
        self.ctx.counters.gaps_received += 1;
        let writer = Guid { prefix: interpreter.source, entity_id: gap.writer };
        let mut matched = self.matched_readers(interpreter, writer, gap.reader);
        while let Some((reader, ctx, proxy)) = matched.next() {
            reader.handle_gap(now, ctx, proxy, gap);
        }
        self.after_data(now, writer, true);
    }

    fn handle_nack_frag(&mut self, now: Instant, interpreter: &Interpreter, nack: &NackFrag) {
        self.ctx.counters.nack_frags_received += 1;
        let reader = Guid { prefix: interpreter.source, entity_id: nack.reader };
        if let Some(index) = self.writer_for(interpreter, nack.writer, nack.reader)
            && let Some(writer) = self.endpoints.writers.get_mut(index)
        {
            writer.handle_nack_frag(now, &mut self.ctx, reader, nack);
        }
    }

    fn handle_acknack(&mut self, now: Instant, from: &Received, interpreter: &Interpreter, acknack: &AckNack) {
        let source = interpreter.source;
        self.ctx.counters.acknacks_received += 1;
        if acknack.writer.is_builtin() {
            self.discovery.handle_challenge_answer(
                &mut Call::new(now, &mut self.ctx, &mut self.endpoints),
                from,
                source,
                acknack,
            );
        }
        let Some(index) = self.writer_for(interpreter, acknack.writer, acknack.reader) else { return };
        let shortened = match acknack.writer {
            EntityId::P2P_MESSAGE_WRITER => {
                self.discovery.handle_probe_answer(&mut self.ctx, &mut self.endpoints, source, acknack)
            }
            _ => None,
        };
        let acknack = shortened.as_ref().unwrap_or(acknack);
        let reader = Guid { prefix: source, entity_id: acknack.reader };
        if let Some(writer) = self.endpoints.writers.get_mut(index) {
            writer.handle_acknack(now, &mut self.ctx, reader, acknack);
        }
        self.discovery.confirm_matches(&mut self.ctx, &mut self.endpoints, reader, acknack.writer);
    }

    fn handle_heartbeat(&mut self, now: Instant, interpreter: &Interpreter, heartbeat: &Heartbeat) {
        self.ctx.counters.heartbeats_received += 1;
        if interpreter.names_us && heartbeat.writer.is_builtin() {
            self.discovery.handle_challenge(&mut self.ctx, interpreter.source, heartbeat);
        }
        let writer = Guid { prefix: interpreter.source, entity_id: heartbeat.writer };
        let mut matched = self.matched_readers(interpreter, writer, heartbeat.reader);
        while let Some((reader, ctx, proxy)) = matched.next() {
            reader.handle_heartbeat(now, ctx, proxy, heartbeat);
        }
        self.after_data(now, writer, true);
    }

    /// Returns the local writer that a reader of the sender addresses, if the submessage is
    /// protected as required.
    fn writer_for(&mut self, interpreter: &Interpreter, writer: EntityId, reader: EntityId) -> Option<u32> {
        let index = match self.discovery.channel_writer(interpreter.source, writer) {
            Some(index) => index,
            None => *self.endpoints.writer_ids.get(&writer)?,
        };
        if self.ctx.security.is_none() {
            return Some(index);
        }
        let is_sealed = interpreter.protection.is_sealed_by(reader);
        if self.endpoints.writers.get(index)?.security.protection.submessage && !is_sealed {
            self.ctx.counters.unprotected_submessages += 1;
            return None;
        }
        self.ctx.is_message_as_required(&interpreter.protection, reader).then_some(index)
    }

    /// Returns the local readers that are matched with `writer`, for a submessage of it. None if
    /// the message has less protection than required.
    #[inline(always)]
    fn matched_readers(&mut self, interpreter: &Interpreter, writer: Guid, addressee: EntityId) -> MatchedReaders<'_> {
        let is_as_required =
            self.ctx.security.is_none() || self.ctx.is_message_as_required(&interpreter.protection, writer.entity_id);
        let is_sealed = interpreter.protection.is_sealed_by(writer.entity_id);
        let Self { endpoints: Endpoints { sources, readers, .. }, ctx, .. } = self;
        let (pairs, is_matched): (&[_], _) = match sources.get(&writer) {
            _ if !is_as_required => (&[], true),
            Some(pairs) => (pairs, true),
            None => (&[], false),
        };
        ctx.work.steps(pairs.len());
        MatchedReaders { pairs: pairs.iter(), is_matched, readers, ctx, addressee, is_sealed }
    }

    fn after_data(&mut self, now: Instant, writer: Guid, has_readers: bool) {
        self.endpoints.present_due_groups(now, &mut self.ctx);
        if !has_readers {
            self.ctx.counters.unmatched_data += 1;
        } else if writer.entity_id.is_builtin() {
            self.discovery.handle_builtin_data(&mut Call::new(now, &mut self.ctx, &mut self.endpoints));
            self.discovery.review(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), writer);
            if matches!(writer.entity_id, EntityId::STATELESS_MESSAGE_WRITER | EntityId::VOLATILE_MESSAGE_WRITER) {
                self.ctx.await_security_message(now);
            }
        }
    }
}
