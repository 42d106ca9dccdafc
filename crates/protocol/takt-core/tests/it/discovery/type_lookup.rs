//! TypeLookup service: participants serve the types of their endpoints to validated participants,
//! in bounded replies.

use crate::network::*;
use crate::puppet::{Puppet, challenge_in, count, data, outgoing, run_alone};
use std::time::Duration;
use takt_core::*;
use takt_wire::discovery::ParticipantData;
use takt_wire::message::{Payload, Submessage};
use takt_wire::type_lookup::{
    Addressee, ContinuationPoint, EquivalenceId, Operation, RequestId, TypeRequest, UnionForm,
};
use takt_wire::{EntityId, GuidPrefix};

fn id(number: u8) -> EquivalenceId {
    EquivalenceId::new(EquivalenceId::COMPLETE, [number; 14])
}

fn object(number: u8, len: usize) -> Box<[u8]> {
    let mut object = (len as u32).to_le_bytes().to_vec();
    object.resize(4 + len, number);
    object.into()
}

fn offered(number: u8, len: usize, dependencies: &[u8]) -> OfferedType {
    let dependencies = dependencies.iter().map(|number| id(*number)).collect();
    OfferedType { id: id(number), object: object(number, len), dependencies, minimal: None }
}

/// Creates two participants that know each other.
fn pair(seed: u64) -> Network {
    let mut network = Network::new(2, seed);
    let met = |n: &mut Network| [0, 1].iter().all(|i| n.nodes[*i].serves_types(prefix(1 - i)));
    assert!(network.run_until(5_000, met));
    network.run(1_000);
    network
}

fn answer(network: &mut Network, request: TypeRequestId) -> TypeAnswer {
    let mut answer = None;
    network.run_until(20_000, |n| {
        answer = n.nodes[0].take_type_answer(request);
        answer.is_some()
    });
    assert!(network.events(0).contains(&Event::TypeAnswer(request)));
    answer.expect("the request is answered")
}

fn request_types(network: &mut Network, types: &[u8]) -> TypeRequestId {
    let types: Vec<_> = types.iter().map(|number| id(*number)).collect();
    network.nodes[0].request_types(network.now, prefix(1), &types, UnionForm::Appendable).expect("type lookups")
}

#[test]
fn request_is_answered_with_the_known_types() {
    let mut network = pair(1);
    let minimal = EquivalenceId::new(EquivalenceId::MINIMAL, [9; 14]);
    let first = OfferedType { minimal: Some(minimal), ..offered(1, 100, &[]) };
    network.nodes[1].offer_type(first).expect("write accepted");
    network.nodes[1].offer_type(offered(2, 5_000, &[])).expect("write accepted");
    let request = request_types(&mut network, &[1, 77, 2]);
    let TypeAnswer::Types { types, complete_to_minimal, big_endian } = answer(&mut network, request) else {
        panic!("types were requested");
    };
    assert_eq!(types, [(id(1), object(1, 100)), (id(2), object(2, 5_000))]);
    assert_eq!((complete_to_minimal, big_endian), (vec![(id(1), minimal)], false));
    assert_eq!(network.nodes[0].take_type_answer(request), None, "once");
    assert_eq!(network.nodes[1].counters().type_requests_served, 1);
}

#[test]
fn requests_and_replies_survive_loss() {
    let mut network = pair(2);
    network.faults = Faults { loss: 30, duplication: 10, reordering: 20 };
    network.nodes[1].offer_type(offered(1, 20_000, &[])).expect("write accepted");
    for _ in 0..20 {
        let request = request_types(&mut network, &[1]);
        assert!(matches!(answer(&mut network, request), TypeAnswer::Types { types, .. } if types.len() == 1));
    }
}

#[test]
fn request_to_an_unvalidated_participant_is_answered_later() {
    let mut network = Network::new(2, 7);
    network.nodes[1].offer_type(offered(1, 100, &[])).expect("write accepted");
    let met = |n: &mut Network| n.nodes[0].serves_types(prefix(1));
    assert!(network.run_until(5_000, met));
    assert_eq!(network.nodes[0].counters().participants_validated, 0, "it is only announced");
    let request = request_types(&mut network, &[1]);
    assert!(matches!(answer(&mut network, request), TypeAnswer::Types { types, .. } if types.len() == 1));
}

/// The requester's lease ends at the server, which drops its reply with the match, after each
/// number of datagrams in turn. The request may be acknowledged by then. The requester never loses
/// the server.
#[test]
fn request_is_answered_when_its_reply_is_lost_with_the_match() {
    for datagrams in 0..24 {
        let mut network = Network::new(0, 8);
        let mut impatient = config(0, 1500);
        impatient.lease_duration = Duration::from_secs(1);
        impatient.announcement_period = Duration::from_millis(100);
        network.join_with(impatient);
        network.join_with(config(1, 1500));
        network.nodes[1].offer_type(offered(1, 20_000, &[])).expect("write accepted");
        let validated = |n: &mut Network| [0, 1].iter().all(|i| n.nodes[*i].counters().participants_validated == 1);
        assert!(network.run_until(5_000, validated));
        network.run(1_000);
        let request = request_types(&mut network, &[1]);
        network.keep = Some(datagrams);
        assert!(network.run_until(3_000, |n| n.nodes[1].discovered_participants().is_empty()));
        network.keep = None;
        assert_eq!(network.nodes[0].counters().leases_expired, 0, "the requester does not retransmit");
        let answer = answer(&mut network, request);
        assert!(matches!(answer, TypeAnswer::Types { types, .. } if types.len() == 1), "after {datagrams} datagrams");
    }
}

#[test]
fn reply_is_bounded_and_omitted_types_can_be_requested_again() {
    let mut network = pair(3);
    for number in 0..10 {
        network.nodes[1].offer_type(offered(number, 100_000, &[])).expect("write accepted");
    }
    let mut missing: Vec<u8> = (0..10).collect();
    while !missing.is_empty() {
        let request = request_types(&mut network, &missing);
        let TypeAnswer::Types { types, .. } = answer(&mut network, request) else { panic!("types were requested") };
        assert_eq!(types.len(), missing.len().min(2), "two fit");
        missing.drain(..types.len());
    }
    let too_large = network.nodes[1].offer_type(offered(99, 200_000, &[]));
    assert!(matches!(too_large, Err(Error::OutOfResources { .. })), "{too_large:?}");
}

#[test]
fn circular_dependencies_are_served_in_portions() {
    let mut network = pair(4);
    let id = |number: u16| {
        let mut hash = [0; 14];
        hash[..2].copy_from_slice(&number.to_be_bytes());
        EquivalenceId::new(EquivalenceId::COMPLETE, hash)
    };
    for number in 0..600 {
        let dependencies = [id((number + 1) % 600), id(0)].into();
        let offered = OfferedType { id: id(number), object: object(0, 8), dependencies, minimal: None };
        network.nodes[1].offer_type(offered).expect("write accepted");
    }
    let mut all = Vec::new();
    let mut point = ContinuationPoint::default();
    loop {
        let now = network.now;
        let request = network.nodes[0].request_type_dependencies(now, prefix(1), &[id(0)], point);
        let answer = answer(&mut network, request.expect("type lookups"));
        let TypeAnswer::Dependencies { type_ids, continuation_point } = answer else { panic!("{answer:?}") };
        all.extend(type_ids);
        point = continuation_point;
        if point.octets().is_empty() {
            break;
        }
    }
    assert_eq!(all, (1..600).map(|number| (id(number), 12)).collect::<Vec<_>>());
}

#[test]
fn request_ends_when_its_participant_departs() {
    let mut network = pair(5);
    network.cut.push(1);
    let request = request_types(&mut network, &[1]);
    network.run(60_000);
    assert_eq!(network.nodes[0].take_type_answer(request), Some(TypeAnswer::Gone));
    let refused = network.nodes[0].request_types(network.now, prefix(1), &[id(1)], UnionForm::Final);
    assert!(matches!(refused, Err(Error::BadParameter { .. })), "{refused:?}");
}

#[test]
fn pending_requests_are_limited_and_can_be_canceled() {
    let mut network = pair(6);
    network.cut.push(1);
    let requests: Vec<_> = (0..16).map(|_| request_types(&mut network, &[1])).collect();
    let ask =
        |network: &mut Network| network.nodes[0].request_types(network.now, prefix(1), &[id(1)], UnionForm::Final);
    let more: Vec<_> = (0..100).filter_map(|_| ask(&mut network).ok()).collect();
    assert_eq!(requests.len() + more.len(), 64);
    requests.iter().for_each(|request| network.nodes[0].cancel_type_request(*request));
    assert!(ask(&mut network).is_ok());
}

/// Creates a participant under test, and a puppet that has announced all builtin endpoints to it.
fn stage(validated: bool) -> (Participant, Puppet, Instant) {
    let mut node = Participant::new(config(0, 1500), Instant(0)).expect("a good configuration");
    node.offer_type(offered(1, 20_000, &[])).expect("write accepted");
    let (puppet, now) = (Puppet::new(1), Instant(1_000_000));
    let payload = ParticipantData { available_builtin_endpoints: 0xfc3f, ..puppet.announcement() }.to_bytes();
    puppet.say(&mut node, now, |message| {
        message.data(&data(EntityId::SPDP_WRITER, 1, Payload::Data(&payload))).expect("it fits");
    });
    let sent = outgoing(&mut node, now);
    let challenge: Vec<_> = sent.iter().flat_map(|(_, datagram)| challenge_in(datagram)).collect();
    assert_eq!(challenge.len(), 2, "it is challenged");
    if validated {
        puppet.answer_challenge(&mut node, now, &challenge);
        outgoing(&mut node, now);
    }
    (node, puppet, now)
}

/// Writes a change of the puppet's builtin writer. Returns the number of replies of the
/// participant.
fn send(stage: &mut (Participant, Puppet, Instant), sn: i64, payload: &[u8]) -> usize {
    let (node, puppet, now) = stage;
    let writer = EntityId::TYPE_LOOKUP_REQUEST_WRITER;
    let heartbeat = puppet.heartbeat(writer, 1, sn);
    puppet.say(node, *now, |message| {
        message.heartbeat(&heartbeat).expect("it fits");
        message.data(&data(writer, sn, Payload::Data(payload))).expect("it fits");
    });
    let sent = run_alone(node, now, 10);
    count(
        &sent,
        |submessage| matches!(submessage, Submessage::DataFrag(data) if data.writer == EntityId::TYPE_LOOKUP_REPLY_WRITER),
    )
}

fn request(puppet: &Puppet, addressee: Addressee) -> Vec<u8> {
    let identity = RequestId { writer: puppet.guid(EntityId::TYPE_LOOKUP_REQUEST_WRITER), number: 1 };
    TypeRequest { id: identity, addressee, operation: Operation::Types(vec![id(1)]), form: UnionForm::Final }.to_bytes()
}

#[test]
fn unvalidated_participant_gets_no_reply() {
    for validated in [false, true] {
        let mut stage = stage(validated);
        let to = Addressee::Participant(stage.0.guid());
        let payload = request(&stage.1, to);
        assert_eq!(send(&mut stage, 1, &payload) > 0, validated);
        let counters = stage.0.counters();
        assert_eq!((counters.type_requests_served, counters.unmatched_data > 0), (u64::from(validated), !validated));
    }
}

#[test]
fn requests_to_other_participants_are_not_answered() {
    let mut stage = stage(true);
    let other = takt_wire::Guid { prefix: GuidPrefix([5; 12]), entity_id: EntityId::PARTICIPANT };
    let payload = request(&stage.1, Addressee::Participant(other));
    assert_eq!(send(&mut stage, 1, &payload), 0);
    let payload = request(&stage.1, Addressee::Any);
    assert!(send(&mut stage, 2, &payload) > 0, "a request to all is answered by the participant that knows the type");
}

#[test]
fn malformed_requests_are_counted_and_dropped() {
    let mut stage = stage(true);
    let payload = request(&stage.1, Addressee::Participant(stage.0.guid()));
    // The encapsulation header is complete, and up to three bytes at the end are padding.
    let lens = 4..payload.len() - 3;
    for (sn, len) in (1..).zip(lens.clone()) {
        assert_eq!(send(&mut stage, sn, &payload[..len]), 0);
    }
    assert_eq!(stage.0.counters().malformed_discovery, lens.len() as u64);
    assert!(send(&mut stage, lens.len() as i64 + 1, &payload) > 0, "the service goes on");
}
