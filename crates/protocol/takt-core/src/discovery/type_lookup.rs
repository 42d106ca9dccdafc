//! TypeLookup service, server and client (XTypes 1.3 §7.6.3.3): serves the types of local
//! endpoints, and requests those of remote endpoints, over a pair of builtin topics.
//!
//! Types are opaque bytes here. [`crate::Participant::offer_type`] supplies the definition of a
//! local endpoint's type. The application requests that of a remote endpoint with
//! [`crate::Participant::request_types`], and after [`Event::TypeAnswer`] reads it with
//! [`crate::Participant::take_type_answer`].
//!
//! # Bounds
//! - Only requests of participants with a validated address are handled (`validation`), so that a
//!   forged request cannot direct replies to a third party. A reply is sent to the requester alone.
//! - A reply has at most [`MAX_REPLY_BYTES`]: types that do not fit are omitted and may be
//!   requested again. The last [`REPLY_DEPTH`] replies are kept for repair.
//! - At most [`MAX_PENDING_REQUESTS`] own requests wait for a reply, each of at most
//!   [`MAX_REPLY_BYTES`].
//!
//! # Repetition
//! The topics are volatile and keep [`REPLY_DEPTH`] samples. A request or its reply can therefore
//! be lost although both sides are alive: one side considers the other dead for a while, or later
//! samples replace it. A request to a participant that is not validated yet is sent once it is. An
//! unanswered request is sent again after [`FIRST_REPETITION`], then after twice the time each, up
//! to [`REPETITION_MAX`]. All repetitions have the same number, so the reply to any of them is
//! accepted.
//!
//! Not supported: time-outs (the requester gives up with
//! [`crate::Participant::cancel_type_request`]), and serving types that were learned from other
//! participants.

use super::{TYPE_REPLIES, TYPE_REQUESTS};
use crate::cache::{ChangeKind, ReadCursor, Selector};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::error::{Error, WriteError};
use crate::event::{Event, TypeRequestId};
use crate::presentation::SetPosition;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use crate::work::Work;
use crate::writer::{Directed, Write};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::discovery::builtin_endpoints;
use takt_wire::type_lookup::{
    Addressee, ContinuationPoint, EquivalenceId, Operation, REMOTE_UNKNOWN_OPERATION, ReplyBody, RequestId,
    TYPE_IDS_MAX, TypeReply, TypeRequest, TypesEmitter, UnionForm, dependencies_reply, failure_reply,
};
use takt_wire::{Endianness, EntityId, Guid, GuidPrefix, Timestamp};

/// Longest reply in bytes, sent or received.
pub(crate) const MAX_REPLY_BYTES: usize = 256 << 10;
/// Replies that are kept for repair; the oldest is replaced.
pub(crate) const REPLY_DEPTH: u32 = 16;
/// Maximum number of requests that wait for a reply.
const MAX_PENDING_REQUESTS: usize = 64;
/// Maximum number of types that a participant can offer.
const MAX_OFFERED_TYPES: usize = 65_536;
/// Maximum number of dependencies in one reply; the rest follows on a further request.
const DEPENDENCIES_PER_REPLY: usize = 256;
/// Time from a request to its first repetition.
const FIRST_REPETITION: Duration = Duration::from_secs(1);
/// Longest time between repetitions.
const REPETITION_MAX: Duration = Duration::from_secs(32);

/// Type of a local endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedType {
    /// Identifier of the type.
    pub id: EquivalenceId,
    /// `TypeObject` of the type in XCDR2, little endian, including the delimiter.
    pub object: Box<[u8]>,
    /// Types that it refers to directly.
    pub dependencies: Box<[EquivalenceId]>,
    /// Minimal identifier of the same type, if `id` is a complete one.
    pub minimal: Option<EquivalenceId>,
}

/// Reply of a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeAnswer {
    /// Reply to [`crate::Participant::request_types`].
    Types {
        /// Each `TypeObject` in XCDR2, including the delimiter.
        types: Vec<(EquivalenceId, Box<[u8]>)>,
        /// Complete and minimal identifiers of the same types.
        complete_to_minimal: Vec<(EquivalenceId, EquivalenceId)>,
        /// Whether the objects are in big endian.
        big_endian: bool,
    },
    /// Reply to [`crate::Participant::request_type_dependencies`].
    Dependencies {
        /// Types, with the size of their objects in bytes.
        type_ids: Vec<(EquivalenceId, u32)>,
        /// Continuation of the list; empty at the end.
        continuation_point: ContinuationPoint,
    },
    /// The participant refused, with a code of DDS-RPC or a return code of DDS.
    Refused(i32),
    /// The participant is gone.
    Gone,
}

#[derive(Debug)]
struct Pending {
    participant: GuidPrefix,
    /// Serialized request.
    payload: Box<[u8]>,
    /// Time of the next repetition.
    due: Instant,
    /// Time between the last transmission and `due`.
    period: Duration,
    answer: Option<TypeAnswer>,
}

/// State of the service and of the client.
#[derive(Debug)]
pub(crate) struct TypeLookup {
    offered: BTreeMap<EquivalenceId, OfferedType>,
    /// Number of references from the offered types to other types.
    references: usize,
    pending: BTreeMap<TypeRequestId, Pending>,
    /// Number of requests made so far.
    requests: i64,
    /// Timer of the next repetition.
    timer: TimerId,
}

impl TypeLookup {
    pub(crate) fn new(ctx: &mut Context) -> Self {
        let timer = ctx.timers.register(TimerKind::RepeatTypeRequests);
        Self { offered: BTreeMap::new(), references: 0, pending: BTreeMap::new(), requests: 0, timer }
    }

    /// Offers a type to remote participants.
    pub(crate) fn offer(&mut self, offered: OfferedType) -> Result<(), Error> {
        let types = &mut self.offered;
        if types.contains_key(&offered.id) {
            return Ok(());
        }
        if types.len() >= MAX_OFFERED_TYPES {
            return Err(Error::OutOfResources { limit: "offered types", value: MAX_OFFERED_TYPES as u64 });
        }
        if offered.object.len() > MAX_REPLY_BYTES / 2 {
            return Err(Error::OutOfResources { limit: "bytes per type object", value: MAX_REPLY_BYTES as u64 / 2 });
        }
        self.references += offered.dependencies.len();
        types.insert(offered.id, offered);
        Ok(())
    }

    /// Returns the definition of a type that was offered here.
    pub(crate) fn definition(&self, id: &EquivalenceId) -> Option<&[u8]> {
        self.offered.get(id).map(|offered| &*offered.object)
    }

    /// Takes the reply to a request, once.
    pub(crate) fn take_answer(&mut self, request: TypeRequestId) -> Option<TypeAnswer> {
        self.pending.get(&request)?.answer.as_ref()?;
        self.pending.remove(&request)?.answer
    }

    /// Forgets a request, whose reply is no longer needed.
    pub(crate) fn cancel(&mut self, request: TypeRequestId) {
        self.pending.remove(&request);
    }

    /// Returns the most visits that a reply takes to types and references, or a repetition to
    /// requests.
    pub(crate) fn steps_max(&self) -> usize {
        TYPE_IDS_MAX + 2 * self.references + 2 * self.pending.len()
    }

    /// Returns all types that the given types refer to, directly or indirectly, without those types
    /// themselves. Visits each type and each reference once, however often a request names a type.
    fn dependencies_of(&self, type_ids: &[EquivalenceId], work: &mut Work) -> BTreeSet<EquivalenceId> {
        let requested: BTreeSet<EquivalenceId> = type_ids.iter().copied().collect();
        let mut found = BTreeSet::new();
        let mut next: Vec<EquivalenceId> = requested.iter().copied().collect();
        while let Some(id) = next.pop() {
            let dependencies = self.offered.get(&id).map_or(&[][..], |offered| &offered.dependencies);
            work.steps(1 + dependencies.len());
            next.extend(dependencies.iter().filter(|id| !requested.contains(id) && found.insert(**id)));
        }
        found
    }

    /// Returns the reply; `None` if the request addresses all participants and no type is known.
    fn answer(&self, request: &TypeRequest, work: &mut Work) -> Option<Vec<u8>> {
        let named = matches!(request.addressee, Addressee::Participant(_));
        match &request.operation {
            Operation::Types(type_ids) => {
                let mut reply = TypesEmitter::new(request.id, request.form, MAX_REPLY_BYTES);
                for offered in type_ids.iter().filter_map(|id| self.offered.get(id)) {
                    if !reply.push(offered.id, &offered.object, offered.minimal) {
                        break;
                    }
                }
                (named || reply.count() > 0).then(|| reply.finish())
            }
            Operation::Dependencies(type_ids, point) => {
                if !named && !type_ids.iter().any(|id| self.offered.contains_key(id)) {
                    return None;
                }
                let octets = <[u8; 4]>::try_from(point.octets()).unwrap_or_default();
                let start = usize::try_from(u32::from_le_bytes(octets)).unwrap_or(usize::MAX);
                let all = self.dependencies_of(type_ids, work);
                let size = |id: &EquivalenceId| self.offered.get(id).map_or(0, |offered| offered.object.len() as u32);
                let part: Vec<_> =
                    all.iter().skip(start).take(DEPENDENCIES_PER_REPLY).map(|id| (*id, size(id))).collect();
                let end = start.saturating_add(part.len());
                let point = if end < all.len() { ContinuationPoint::new(&(end as u32).to_le_bytes()) } else { None };
                Some(dependencies_reply(request.id, request.form, &part, point.unwrap_or_default()))
            }
            Operation::Unknown => named.then(|| failure_reply(request.id, REMOTE_UNKNOWN_OPERATION)),
        }
    }
}

impl Discovery {
    /// Reports whether a participant is known and announces that it serves types.
    #[must_use]
    pub(crate) fn serves_types(&self, participant: GuidPrefix) -> bool {
        const SERVER: u32 = builtin_endpoints::TYPE_LOOKUP_REQUEST_READER | builtin_endpoints::TYPE_LOOKUP_REPLY_WRITER;
        let remote = self.remote_by_prefix.get(&participant).and_then(|&index| self.remotes.get(index));
        remote.is_some_and(|remote| remote.data.available_builtin_endpoints & SERVER == SERVER)
    }

    /// Requests types from a participant. [`Event::TypeAnswer`] reports the reply, which may lack
    /// some types.
    pub(crate) fn request_types(
        &mut self,
        call: &mut Call<'_>,
        participant: GuidPrefix,
        type_ids: &[EquivalenceId],
        form: UnionForm,
    ) -> Result<TypeRequestId, Error> {
        self.request(call, participant, Operation::Types(type_ids.to_vec()), form)
    }

    /// Requests the types that some types refer to, directly or indirectly.
    pub(crate) fn request_type_dependencies(
        &mut self,
        call: &mut Call<'_>,
        participant: GuidPrefix,
        type_ids: &[EquivalenceId],
        from: ContinuationPoint,
    ) -> Result<TypeRequestId, Error> {
        let operation = Operation::Dependencies(type_ids.to_vec(), from);
        self.request(call, participant, operation, UnionForm::default())
    }

    fn request(
        &mut self,
        call: &mut Call<'_>,
        participant: GuidPrefix,
        operation: Operation,
        form: UnionForm,
    ) -> Result<TypeRequestId, Error> {
        if !self.serves_types(participant) {
            return Err(Error::BadParameter { what: "the participant offers no type lookup service".to_string() });
        }
        if let Operation::Types(ids) | Operation::Dependencies(ids, _) = &operation
            && ids.len() > TYPE_IDS_MAX
        {
            return Err(Error::OutOfResources { limit: "types per request", value: TYPE_IDS_MAX as u64 });
        }
        if self.type_lookup.pending.len() >= MAX_PENDING_REQUESTS {
            return Err(Error::OutOfResources { limit: "type requests", value: MAX_PENDING_REQUESTS as u64 });
        }
        let number = self.next_request_number(call.ctx);
        let writer = Guid { prefix: call.ctx.header.prefix, entity_id: EntityId::TYPE_LOOKUP_REQUEST_WRITER };
        let addressee = Addressee::Participant(Guid { prefix: participant, entity_id: EntityId::PARTICIPANT });
        let id = RequestId { writer, number };
        let payload = TypeRequest { id, addressee, operation, form }.to_bytes();
        let id = TypeRequestId(number);
        let (payload, period) = (payload.into(), FIRST_REPETITION);
        self.type_lookup.pending.insert(id, Pending { participant, payload, due: call.now, period, answer: None });
        if !self.send_type_request(call, id) {
            self.type_lookup.pending.remove(&id);
            return Err(Error::OutOfResources { limit: "type requests", value: u64::from(REPLY_DEPTH) });
        }
        Ok(id)
    }

    /// Returns the next request number. The start differs between participants, because some
    /// servers send every reply to all participants, and only the number identifies the requester.
    fn next_request_number(&mut self, ctx: &mut Context) -> i64 {
        let [.., a, b, c, d] = ctx.header.prefix.0;
        self.type_lookup.requests += 1;
        (i64::from(u32::from_be_bytes([a, b, c, d])) << 16) + self.type_lookup.requests
    }

    /// Sends a waiting request, unless its participant is not validated yet, and schedules its
    /// repetition. Returns false if there is no room.
    fn send_type_request(&mut self, call: &mut Call<'_>, id: TypeRequestId) -> bool {
        let Some(pending) = self.type_lookup.pending.get_mut(&id) else { return true };
        pending.due = call.now.after(pending.period);
        pending.period = (2 * pending.period).min(REPETITION_MAX);
        call.ctx.timers.arm_by(self.type_lookup.timer, pending.due);
        let reader = Guid { prefix: pending.participant, entity_id: EntityId::TYPE_LOOKUP_REQUEST_READER };
        let payload = pending.payload.clone();
        !call.endpoints.has_proxy(TYPE_REQUESTS, reader)
            || call.endpoints.write_directed(call.now, call.ctx, TYPE_REQUESTS, reader, &payload)
    }

    /// Repeats requests without a reply.
    pub(crate) fn handle_type_request_timeout(&mut self, call: &mut Call<'_>) {
        let now = call.now;
        self.repeat_type_requests(call, |pending| pending.due <= now);
        let waiting = self.type_lookup.pending.values().filter(|pending| pending.answer.is_none());
        if let Some(due) = waiting.map(|pending| pending.due).min() {
            call.ctx.timers.arm(self.type_lookup.timer, due);
        }
    }

    /// Sends the waiting requests to a participant that was validated.
    pub(super) fn send_type_requests_to(&mut self, call: &mut Call<'_>, participant: GuidPrefix) {
        self.repeat_type_requests(call, |pending| pending.participant == participant);
    }

    /// Sends the selected waiting requests; visits all of them. A request without room is sent
    /// when it is due again. At most the writer's history depth is sent at once, because further
    /// requests would replace unsent ones.
    fn repeat_type_requests(&mut self, call: &mut Call<'_>, is_due: impl Fn(&Pending) -> bool) {
        call.ctx.work.steps(self.type_lookup.pending.len());
        let waiting =
            self.type_lookup.pending.iter().filter(|(_, pending)| pending.answer.is_none() && is_due(pending));
        let due: Vec<_> = waiting.map(|(id, _)| *id).collect();
        let (first, rest) = due.split_at(due.len().min(REPLY_DEPTH as usize));
        for id in first {
            self.send_type_request(call, *id);
        }
        for id in rest {
            if let Some(pending) = self.type_lookup.pending.get_mut(id) {
                pending.due = call.now.after(FIRST_REPETITION);
                call.ctx.timers.arm_by(self.type_lookup.timer, pending.due);
            }
        }
    }

    /// Handles requests of remote participants.
    pub(super) fn take_type_requests(&mut self, call: &mut Call<'_>) {
        loop {
            let Some(reader) = call.endpoints.readers.get_mut(TYPE_REQUESTS) else { return };
            let Some(sample) = reader.cache.next(Selector::TAKE, None, &mut ReadCursor::default()) else { return };
            call.ctx.work.unit();
            if !sample.info.valid_data {
                continue;
            }
            let from = sample.info.publication.prefix;
            match TypeRequest::parse(sample.payload) {
                Ok(request) => self.serve_types(call, from, &request),
                Err(_) => call.ctx.counters.malformed_discovery += 1,
            }
        }
    }

    fn serve_types(&mut self, call: &mut Call<'_>, from: GuidPrefix, request: &TypeRequest) {
        let for_us = match request.addressee {
            Addressee::Participant(guid) => guid.prefix == call.ctx.header.prefix,
            Addressee::Any => true,
            Addressee::Other => false,
        };
        if !for_us {
            return;
        }
        let Some(payload) = self.type_lookup.answer(request, &mut call.ctx.work) else { return };
        let reader = Guid { prefix: from, entity_id: EntityId::TYPE_LOOKUP_REPLY_READER };
        if call.endpoints.has_proxy(TYPE_REPLIES, reader)
            && call.endpoints.write_directed(call.now, call.ctx, TYPE_REPLIES, reader, &payload)
        {
            call.ctx.counters.type_requests_served += 1;
        } else {
            call.ctx.counters.refused_type_requests += 1;
        }
    }

    /// Handles replies to own requests or to those of other participants.
    pub(super) fn take_type_replies(&mut self, ctx: &mut Context, endpoints: &mut Endpoints) {
        let own = ctx.header.prefix;
        loop {
            let Some(reader) = endpoints.readers.get_mut(TYPE_REPLIES) else { return };
            let Some(sample) = reader.cache.next(Selector::TAKE, None, &mut ReadCursor::default()) else { return };
            ctx.work.unit();
            if !sample.info.valid_data {
                continue;
            }
            let from = sample.info.publication.prefix;
            let Ok(reply) = TypeReply::parse(sample.payload) else {
                ctx.counters.malformed_discovery += 1;
                continue;
            };
            // INTEROP(CycloneDDS 0.10.2): names its own writer as that of the request, so only the
            // number identifies the request.
            let id = TypeRequestId(reply.request.number);
            match self.type_lookup.pending.get_mut(&id).filter(|pending| pending.participant == from) {
                Some(pending) if pending.answer.is_none() => {
                    pending.answer = Some(answer_of(reply));
                    ctx.notify(Event::TypeAnswer(id));
                }
                // INTEROP(CycloneDDS 0.10.2, 11.0.1): sends each reply to all participants.
                _ => ctx.counters.unsolicited_type_replies += u64::from(reply.request.writer.prefix == own),
            }
        }
    }

    /// Ends the requests to a departed participant.
    pub(super) fn abandon_type_requests(&mut self, ctx: &mut Context, prefix: GuidPrefix) {
        let waiting = |pending: &Pending| pending.participant == prefix && pending.answer.is_none();
        for (id, pending) in self.type_lookup.pending.iter_mut().filter(|(_, pending)| waiting(pending)) {
            pending.answer = Some(TypeAnswer::Gone);
            ctx.notify(Event::TypeAnswer(*id));
        }
    }
}

impl Endpoints {
    /// Reports whether a local builtin writer is matched with a reader.
    fn has_proxy(&self, writer: u32, reader: Guid) -> bool {
        self.writers.get(writer).is_some_and(|writer| writer.proxy_index(reader).is_some())
    }

    /// Writes to one reader of a builtin topic. Returns false if there is no room.
    fn write_directed(&mut self, now: Instant, ctx: &mut Context, writer: u32, reader: Guid, payload: &[u8]) -> bool {
        let write = Write {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: Timestamp::INVALID,
            payload_len: payload.len(),
            directed: Directed::new(&[reader]),
            position: SetPosition::default(),
            in_set: false,
            origin: None,
        };
        let Some(writer) = self.writers.get_mut(writer) else { return false };
        let result = writer.write(now, ctx, &write, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        });
        !matches!(result, Err(WriteError::WouldBlock | WriteError::Refused(_)))
    }
}

fn answer_of(reply: TypeReply<'_>) -> TypeAnswer {
    match reply.body {
        ReplyBody::Types { types, complete_to_minimal } => TypeAnswer::Types {
            types: types.into_iter().map(|(id, object)| (id, object.into())).collect(),
            complete_to_minimal,
            big_endian: reply.endianness == Endianness::Big,
        },
        ReplyBody::Dependencies { type_ids, continuation_point } => {
            TypeAnswer::Dependencies { type_ids, continuation_point }
        }
        ReplyBody::Failure(code) => TypeAnswer::Refused(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn request_that_names_a_type_many_times_visits_its_references_once() {
        let id = |number: u16| {
            let mut hash = [0; 14];
            hash[..2].copy_from_slice(&number.to_le_bytes());
            EquivalenceId::new(EquivalenceId::COMPLETE, hash)
        };
        let mut types = TypeLookup::new(&mut Context::for_tests());
        let dependencies: Box<[EquivalenceId]> = (1..=1_000).map(id).collect();
        types.references = dependencies.len();
        types.offered.insert(id(0), OfferedType { id: id(0), object: Box::default(), dependencies, minimal: None });
        let mut work = Work::default();
        let found = types.dependencies_of(&vec![id(0); TYPE_IDS_MAX], &mut work);
        assert_eq!((found.len(), work.steps), (1_000, 2_001));
        assert!(work.steps as usize <= types.steps_max());
    }
}
