//! Tests of TypeLookup messages: round trips, messages of other vendors, and malformed input.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::cursor::Endianness;
use crate::guid::{EntityId, GuidPrefix};

fn id(kind: u8, fill: u8) -> EquivalenceId {
    EquivalenceId::new(kind, [fill; 14])
}

fn guid() -> Guid {
    Guid::new(GuidPrefix([7; 12]), EntityId::PARTICIPANT)
}

fn request_id() -> RequestId {
    RequestId { writer: Guid::new(GuidPrefix([9; 12]), EntityId::TYPE_LOOKUP_REQUEST_WRITER), number: (3 << 32) | 5 }
}

/// Returns octets that this module accepts as a `TypeObject`: a delimiter and `len` octets.
fn object(len: u8) -> Vec<u8> {
    let mut bytes = u32::from(len).to_le_bytes().to_vec();
    bytes.resize(4 + usize::from(len), len);
    bytes
}

fn requests() -> Vec<TypeRequest> {
    let point = ContinuationPoint::new(&[1, 2, 3]).expect("short");
    let operations = [
        Operation::Types(vec![id(EquivalenceId::COMPLETE, 1), id(EquivalenceId::MINIMAL, 2)]),
        Operation::Types(Vec::new()),
        Operation::Dependencies(vec![id(EquivalenceId::COMPLETE, 3)], point),
        Operation::Dependencies(vec![id(EquivalenceId::MINIMAL, 4)], ContinuationPoint::default()),
    ];
    let addressees = [Addressee::Participant(guid()), Addressee::Any];
    let all = operations.into_iter().flat_map(|operation| addressees.map(|addressee| (addressee, operation.clone())));
    let forms = [UnionForm::Appendable, UnionForm::Final];
    let all = all.flat_map(|(addressee, operation)| forms.map(|form| (addressee, operation.clone(), form)));
    all.map(|(addressee, operation, form)| TypeRequest { id: request_id(), addressee, operation, form }).collect()
}

fn replies(form: UnionForm) -> Vec<Vec<u8>> {
    let mut types = TypesEmitter::new(request_id(), form, 4096);
    assert!(types.push(id(EquivalenceId::COMPLETE, 1), &object(5), Some(id(EquivalenceId::MINIMAL, 1))));
    assert!(types.push(id(EquivalenceId::MINIMAL, 2), &object(8), None));
    let dependencies = [(id(EquivalenceId::COMPLETE, 6), 100), (id(EquivalenceId::COMPLETE, 7), 200)];
    let point = ContinuationPoint::new(&[9; 32]).expect("short enough");
    vec![
        types.finish(),
        TypesEmitter::new(request_id(), form, 0).finish(),
        dependencies_reply(request_id(), form, &dependencies, point),
        failure_reply(request_id(), REMOTE_UNKNOWN_OPERATION),
    ]
}

#[test]
fn requests_round_trip() {
    for request in requests() {
        assert_eq!(TypeRequest::parse(&request.to_bytes()), Ok(request));
    }
}

#[test]
fn replies_round_trip() {
    for form in [UnionForm::Appendable, UnionForm::Final] {
        check_replies(form);
    }
}

fn check_replies(form: UnionForm) {
    let bodies: Vec<_> = replies(form)
        .iter()
        .map(|payload| {
            let reply = TypeReply::parse(payload).expect("well-formed");
            assert_eq!((reply.request, reply.endianness), (request_id(), Endianness::Little));
            alloc::format!("{:?}", reply.body)
        })
        .collect();
    let (five, eight) = (object(5), object(8));
    let types = vec![(id(EquivalenceId::COMPLETE, 1), &five[..]), (id(EquivalenceId::MINIMAL, 2), &eight[..])];
    let complete_to_minimal = vec![(id(EquivalenceId::COMPLETE, 1), id(EquivalenceId::MINIMAL, 1))];
    let expected = [
        ReplyBody::Types { types, complete_to_minimal },
        ReplyBody::Types { types: vec![], complete_to_minimal: vec![] },
        ReplyBody::Dependencies {
            type_ids: vec![(id(EquivalenceId::COMPLETE, 6), 100), (id(EquivalenceId::COMPLETE, 7), 200)],
            continuation_point: ContinuationPoint::new(&[9; 32]).expect("short enough"),
        },
        ReplyBody::Failure(REMOTE_UNKNOWN_OPERATION),
    ];
    assert_eq!(bodies, expected.map(|body| alloc::format!("{body:?}")));
}

#[test]
fn truncated_messages_are_malformed_at_every_length() {
    for payload in requests().iter().map(TypeRequest::to_bytes) {
        // Up to three octets at the end are padding.
        for len in 0..payload.len() - 3 {
            assert!(TypeRequest::parse(&payload[..len]).is_err(), "{len}");
        }
    }
    for payload in [UnionForm::Appendable, UnionForm::Final].into_iter().flat_map(replies) {
        let failure = matches!(TypeReply::parse(&payload).map(|reply| reply.body), Ok(ReplyBody::Failure(_)));
        let needed = if failure { 32 } else { payload.len() - 3 };
        for len in 0..needed {
            assert!(TypeReply::parse(&payload[..len]).is_err(), "{len}");
        }
    }
}

#[test]
fn mutually_recursive_types_have_an_index_and_a_hash() {
    let component = Some(Component { length: 3, index: 2 });
    let recursive = EquivalenceId { component, ..id(EquivalenceId::COMPLETE, 8) };
    let bytes = recursive.to_bytes();
    assert_eq!((bytes.len(), EquivalenceId::from_bytes(&bytes)), (32, Some(recursive)));
    let plain = id(EquivalenceId::MINIMAL, 1);
    assert_eq!(EquivalenceId::from_bytes(&plain.to_bytes()), Some(plain));
    assert_eq!(EquivalenceId::from_bytes(&[4]), None, "a primitive type has no object");
    // The positions of the identifiers affect the alignment within them.
    let operation = Operation::Types(vec![recursive, plain, recursive, recursive]);
    let (addressee, form) = (Addressee::Any, UnionForm::Appendable);
    let request = TypeRequest { id: request_id(), addressee, operation, form };
    assert_eq!(TypeRequest::parse(&request.to_bytes()), Ok(request));
    let mut types = TypesEmitter::new(request_id(), form, 4096);
    assert!(types.push(recursive, &object(5), Some(recursive)) && types.push(plain, &object(1), None));
    let payload = types.finish();
    let ReplyBody::Types { types, complete_to_minimal } = TypeReply::parse(&payload).expect("well-formed").body else {
        panic!("types were sent");
    };
    assert_eq!(types, [(recursive, &object(5)[..]), (plain, &object(1))]);
    assert_eq!(complete_to_minimal, [(recursive, recursive)]);
}

#[test]
fn changed_octet_neither_panics_nor_yields_more_than_was_sent() {
    let replies = [UnionForm::Appendable, UnionForm::Final].into_iter().flat_map(replies);
    for payload in replies.chain(requests().iter().map(TypeRequest::to_bytes)) {
        for position in 0..payload.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = payload.clone();
                changed[position] = value;
                if let Ok(TypeReply { body: ReplyBody::Types { types, .. }, .. }) = TypeReply::parse(&changed) {
                    assert!(types.iter().map(|(_, object)| object.len()).sum::<usize>() < payload.len());
                }
                if let Ok(TypeRequest { operation: Operation::Types(ids), .. }) = TypeRequest::parse(&changed) {
                    assert!(ids.len() * 15 <= payload.len());
                }
            }
        }
    }
}

#[test]
fn reply_stays_within_its_maximum_length() {
    let mut types = TypesEmitter::new(request_id(), UnionForm::Final, 300);
    let fits = (0..100).take_while(|n| types.push(id(EquivalenceId::COMPLETE, *n), &object(20), None)).count();
    assert_eq!(types.count() as usize, fits);
    let payload = types.finish();
    assert!(fits > 0 && payload.len() <= 300, "{fits} types, {} octets", payload.len());
    let body = TypeReply::parse(&payload).expect("well-formed").body;
    assert!(matches!(body, ReplyBody::Types { types, .. } if types.len() == fits));
}

#[test]
fn member_length_may_be_shared_with_the_delimiter() {
    let mut payload = requests()[0].to_bytes();
    // Octets of the member's header and length, then the delimiter of the sequence. Without the
    // length, the delimiter serves as both.
    let header = (4_u32 << 28 | member::TYPE_IDS).to_le_bytes();
    let position = payload.windows(4).position(|word| word == header).expect("it is there");
    payload[position + 3] = payload[position + 3] & 0x0f | 5 << 4;
    payload.drain(position + 4..position + 8);
    for delimiter in [position - 4, position - 12] {
        let mut word = [0; 4];
        word.copy_from_slice(&payload[delimiter..delimiter + 4]);
        payload[delimiter..delimiter + 4].copy_from_slice(&(u32::from_le_bytes(word) - 4).to_le_bytes());
    }
    assert_eq!(TypeRequest::parse(&payload), Ok(requests().swap_remove(0)));
}

#[test]
fn instance_name_that_is_no_guid_addresses_no_participant() {
    let bytes = requests()[0].to_bytes();
    let text = |digit: u8| {
        let mut bytes = bytes.clone();
        let position = bytes.windows(4).position(|text| text == b"TOS.").expect("it is there") + 4;
        bytes[position] = digit;
        TypeRequest::parse(&bytes).expect("well-formed").addressee
    };
    assert_eq!(text(b'+'), Addressee::Other);
    assert_eq!(text(b'x'), Addressee::Other);
    assert_ne!(text(b'f'), Addressee::Participant(guid()));
    assert_eq!(text(b'0'), Addressee::Participant(guid()));
}
