//! Discovery data of a peer's choice as a script of bytes: what fuzzing writes, and what the replayed corpus holds.
//!
//! Each record is an octet that says whose it is, a length in two octets, little endian, and a payload. The payload is
//! read, written and read again; and the matched peer, or a stranger, says it to the participant of a session. Whatever
//! is said, what is kept of it stays within the limits and is forgotten with those who said it.

use crate::puppet::*;
use crate::session::{Script, Session};
use takt_core::Received;
use takt_wire::EntityId;
use takt_wire::discovery::{ParticipantData, ParticipantMessageData, PublicationData, SubscriptionData, parse_key};
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::Payload;
use takt_wire::type_lookup::{
    EquivalenceId, Question, ReplyBody, TypeReply, TypeRequest, TypesEmitter, UnionForm, dependencies_reply,
};

/// Records of a script that are played; the rest is ignored.
const MAX_RECORDS: usize = 200;

/// What a record is: the number is the lower half of its first octet.
pub mod record {
    pub const PARTICIPANT: u8 = 0;
    pub const PUBLICATION: u8 = 1;
    pub const SUBSCRIPTION: u8 = 2;
    pub const LIVELINESS: u8 = 3;
    pub const TYPE_REQUEST: u8 = 4;
    pub const TYPE_REPLY: u8 = 5;
    /// As many milliseconds as its length says; no payload.
    pub const WAIT: u8 = 6;
    /// A step of the application; the payload is a script of it.
    pub const APPLICATION: u8 = 7;
    /// The payload is a key, and its entity is disposed of and unregistered.
    pub const IS_KEY: u8 = 0x10;
    /// Said by somebody who has shown nothing.
    pub const BY_STRANGER: u8 = 0x20;
}

/// Plays a script to its end, and then waits until everybody has been forgotten.
pub fn play(script: &[u8]) {
    let mut session = Session::begin();
    let mut stranger = Puppet::new(7);
    let mut script = Script(script);
    for _ in 0..MAX_RECORDS {
        if script.0.is_empty() {
            break;
        }
        let (what, len) = (script.u8(), script.u16());
        match what & 0x0f {
            record::WAIT => session.wait(u64::from(len) * 1_000_000),
            record::APPLICATION => application(&mut session, script.bytes(usize::from(len))),
            kind => {
                let payload = script.bytes(usize::from(len));
                round_trip(kind, payload);
                let by_stranger = what & record::BY_STRANGER != 0;
                say(&mut session, by_stranger.then_some(&mut stranger), kind, what & record::IS_KEY != 0, payload);
                within_limits(&session);
            }
        }
    }
    session.end();
}

fn application(session: &mut Session, script: &[u8]) {
    let mut script = Script(script);
    match script.u8() % 4 {
        0 => session.type_lookup(&mut script),
        1 => session.application(&mut script),
        2 => session.peer_discovery(&mut script),
        _ => session.drain(),
    }
}

/// The peer says it, or the stranger.
fn say(session: &mut Session, stranger: Option<&mut Puppet>, kind: u8, is_key: bool, bytes: &[u8]) {
    let writer = match kind {
        record::PUBLICATION => EntityId::SEDP_PUB_WRITER,
        record::SUBSCRIPTION => EntityId::SEDP_SUB_WRITER,
        record::LIVELINESS => EntityId::P2P_MESSAGE_WRITER,
        record::TYPE_REQUEST => EntityId::TYPE_LOOKUP_REQUEST_WRITER,
        record::TYPE_REPLY => EntityId::TYPE_LOOKUP_REPLY_WRITER,
        _ => EntityId::SPDP_WRITER,
    };
    let puppet = stranger.unwrap_or(&mut session.peer);
    let mut inline = InlineQosBuilder::<32>::new();
    inline.status_info(3).expect("it fits");
    let inline_qos = is_key.then(|| inline.finish().expect("it fits"));
    let payload = if is_key { Payload::Key(bytes) } else { Payload::Data(bytes) };
    let sn = puppet.next_number(writer);
    let heartbeat = puppet.heartbeat(writer, 1, sn);
    let datagram = puppet.datagram(|message| {
        if writer != EntityId::SPDP_WRITER {
            message.heartbeat(&heartbeat).expect("it fits");
        }
        message.data(&takt_wire::DataEmit { inline_qos, ..data(writer, sn, payload) }).expect("it fits");
    });
    let received = Received { source: puppet.address, multicast: kind & 1 == 0 };
    session.node.handle_datagram(session.now, received, &datagram);
    while session.node.poll_event().is_some() {}
}

/// What is kept of others is as much as the session's configuration allows.
fn within_limits(session: &Session) {
    let limits = Session::limits();
    let participants = limits.max_participants + limits.max_unvalidated_participants;
    assert!(session.node.discovered_participants().len() <= participants);
    let endpoints = participants * limits.max_endpoints_per_participant;
    let (publications, subscriptions) =
        (session.node.discovered_publications(), session.node.discovered_subscriptions());
    assert!(publications.count() + subscriptions.count() <= endpoints);
}

/// What was read is the same after it was written and read again.
fn round_trip(kind: u8, payload: &[u8]) {
    match kind {
        record::PUBLICATION => {
            if let Ok(data) = PublicationData::parse(payload) {
                assert_eq!(PublicationData::parse(&data.to_bytes()), Ok(data));
            }
        }
        record::SUBSCRIPTION => {
            if let Ok(data) = SubscriptionData::parse(payload) {
                assert_eq!(SubscriptionData::parse(&data.to_bytes()), Ok(data));
            }
        }
        record::LIVELINESS => {
            if let Ok(message) = ParticipantMessageData::parse(payload) {
                assert_eq!(ParticipantMessageData::parse(&message.to_bytes()), Ok(message));
            }
        }
        record::TYPE_REQUEST => type_request(payload),
        record::TYPE_REPLY => type_reply(payload),
        _ => {
            if let Ok(data) = ParticipantData::parse(payload) {
                assert_eq!(ParticipantData::parse(&data.to_bytes()), Ok(data));
            }
        }
    }
    if let Ok(guid) = parse_key(payload) {
        assert_eq!(parse_key(&takt_wire::discovery::key_payload(guid)), Ok(guid));
    }
}

fn type_request(payload: &[u8]) {
    let Ok(request) = TypeRequest::parse(payload) else { return };
    let again = TypeRequest::parse(&request.to_bytes()).expect("what was written can be read");
    // A service that is nobody's has no name that could be written.
    assert_eq!((again.id, &again.question, again.form), (request.id, &request.question, request.form));
}

fn type_reply(payload: &[u8]) {
    let Ok(reply) = TypeReply::parse(payload) else { return };
    for form in [UnionForm::Appendable, UnionForm::Final] {
        let bytes = match &reply.body {
            ReplyBody::Types { types, .. } => {
                let mut emitter = TypesEmitter::new(reply.request, form, 1 << 20);
                types.iter().for_each(|(id, object)| assert!(emitter.push(*id, &little(object), None)));
                emitter.finish()
            }
            ReplyBody::Dependencies { type_ids, continuation_point } => {
                dependencies_reply(reply.request, form, type_ids, *continuation_point)
            }
            ReplyBody::Failure(_) => return,
        };
        let again = TypeReply::parse(&bytes).expect("what was written can be read");
        assert_eq!(again.request, reply.request);
        assert_eq!(content(&again.body), content(&reply.body));
    }
}

/// An object as a reply in little endian has it: its delimiter tells its length, and the rest is not looked into.
fn little(object: &[u8]) -> Vec<u8> {
    [&(object.len() as u32 - 4).to_le_bytes(), &object[4..]].concat()
}

/// The types without their delimiters, which differ with the byte order; the types that others refer to.
fn content<'a>(body: &'a ReplyBody<'_>) -> (Vec<(EquivalenceId, &'a [u8])>, Option<&'a ReplyBody<'a>>) {
    match body {
        ReplyBody::Types { types, .. } => (types.iter().map(|(id, object)| (*id, &object[4..])).collect(), None),
        other => (Vec::new(), Some(other)),
    }
}

/// A record as bytes.
pub fn record_of(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind], &(payload.len() as u16).to_le_bytes()[..], payload].concat()
}

/// What a builtin writer said, as a record; `None` if it is said nowhere here.
pub fn record_by(writer: EntityId, payload: &[u8]) -> Option<Vec<u8>> {
    let kind = match writer {
        EntityId::SPDP_WRITER => record::PARTICIPANT,
        EntityId::SEDP_PUB_WRITER => record::PUBLICATION,
        EntityId::SEDP_SUB_WRITER => record::SUBSCRIPTION,
        EntityId::P2P_MESSAGE_WRITER => record::LIVELINESS,
        _ => return None,
    };
    Some(record_of(kind, payload))
}

/// Scripts to start from: everything once, said by the peer and by a stranger, and taken back.
pub fn examples() -> Vec<(&'static str, Vec<u8>)> {
    let wait = record_of(record::WAIT, &[]);
    let drain = record_of(record::APPLICATION, &[3]);
    let [mut peer, stranger] = [Puppet::new(1), Puppet::new(7)];
    peer.serves_types = true;
    let mut examples = Vec::new();
    for (name, puppet, by) in [("peer", &peer, 0), ("stranger", &stranger, record::BY_STRANGER)] {
        let (publication, subscription) = (puppet.publication(1, true), puppet.subscription(1, true));
        let message = ParticipantMessageData {
            prefix: puppet.prefix,
            kind: ParticipantMessageData::KIND_AUTOMATIC,
            data: &[1, 2, 3, 4],
        };
        let key = takt_wire::discovery::key_payload(publication.guid);
        let participant_key = ParticipantData::key_payload(puppet.guid(EntityId::PARTICIPANT));
        let records = [
            record_of(record::PARTICIPANT | by, &puppet.announcement().to_bytes()),
            record_of(record::PUBLICATION | by, &publication.to_bytes()),
            record_of(record::SUBSCRIPTION | by, &subscription.to_bytes()),
            drain.clone(),
            record_of(record::LIVELINESS | by, &message.to_bytes()),
            wait.clone(),
            record_of(record::PUBLICATION | record::IS_KEY | by, &key),
            drain.clone(),
            record_of(record::PARTICIPANT | record::IS_KEY | by, &participant_key),
            drain.clone(),
        ];
        examples.push((name, records.concat()));
    }
    examples.push(("types", types(&peer).concat()));
    examples
}

fn types(peer: &Puppet) -> Vec<Vec<u8>> {
    use crate::session::type_id;
    use takt_wire::type_lookup::{Addressee, ContinuationPoint, RequestId};
    let id = RequestId { writer: peer.guid(EntityId::TYPE_LOOKUP_REQUEST_WRITER), number: 1 };
    let mut records = Vec::new();
    let ids = vec![type_id(0), type_id(1)];
    for question in
        [Question::Types(ids.clone()), Question::Dependencies(ids, ContinuationPoint::default()), Question::Unknown]
    {
        for form in [UnionForm::Appendable, UnionForm::Final] {
            let request = TypeRequest { id, addressee: Addressee::Anyone, question: question.clone(), form };
            records.push(record_of(record::TYPE_REQUEST, &request.to_bytes()));
        }
        records.push(record_of(record::APPLICATION, &[3]));
    }
    // The application asks for two types, and is answered.
    let answered = RequestId { number: (0x0101 << 16) + 1, ..id };
    records.push(record_of(record::APPLICATION, &[0, 0, 2, 0, 1, 0]));
    let mut reply = TypesEmitter::new(answered, UnionForm::Appendable, 4_000);
    assert!(reply.push(type_id(0), &[4, 0, 0, 0, 1, 2, 3, 4], Some(type_id(1))));
    records.push(record_of(record::TYPE_REPLY, &reply.finish()));
    records.push(record_of(record::APPLICATION, &[0, 2, 0, 0]));
    records.push(record_of(record::APPLICATION, &[0, 1, 2, 0, 1, 0]));
    let answered = RequestId { number: answered.number + 1, ..id };
    let point = ContinuationPoint::new(&[1]).expect("it is short");
    let reply = dependencies_reply(answered, UnionForm::Final, &[(type_id(2), 64)], point);
    records.push(record_of(record::TYPE_REPLY, &reply));
    records.push(record_of(record::TYPE_REPLY, &takt_wire::type_lookup::failure_reply(answered, 4)));
    records
}
