//! Tests of inline QoS: round trips and malformed values.

use alloc::vec::Vec;

use super::*;
use crate::guid::{EntityId, GuidPrefix};

const GUID: Guid = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(4, true));
const OTHER: Guid = Guid::new(GuidPrefix([4; 12]), EntityId::user_reader(4, true));
const IDENTITY: SampleIdentity = SampleIdentity { writer: GUID, sn: SequenceNumber(1 << 33) };

fn list(bytes: &[u8]) -> ParameterList<'_> {
    ParameterList::parse(bytes, Endianness::Little).expect("the list is valid").0
}

fn parse(bytes: &[u8]) -> Result<InlineQos<'_>, Malformed> {
    InlineQos::parse(list(bytes))
}

#[test]
fn parameters_round_trip_in_both_byte_orders() {
    for endianness in [Endianness::Big, Endianness::Little] {
        let mut builder = InlineQosBuilder::<256>::with_endianness(endianness);
        assert!(builder.is_empty());
        builder.key_hash([7; 16]).expect("fits");
        builder.status_info(STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED).expect("fits");
        builder.directed_write(GUID).expect("fits");
        builder.directed_write(OTHER).expect("fits");
        builder.original_writer(IDENTITY).expect("fits");
        builder.related_sample_identity(IDENTITY).expect("fits");
        builder.coherent_set(SequenceNumber(5)).expect("fits");
        builder.group_coherent_set(SequenceNumber(6)).expect("fits");
        builder.group_seq_num(SequenceNumber(7)).expect("fits");
        let len = builder.encoded_len();
        let bytes = builder.finish().expect("fits");
        assert_eq!(bytes.len(), len);
        let (list, _) = ParameterList::parse(bytes, endianness).expect("the list is valid");
        let qos = InlineQos::parse(list).expect("the values are valid");
        assert_eq!(qos.key_hash, Some([7; 16]));
        assert_eq!(qos.status_info, Some(3));
        assert!(qos.directed_write.iter().eq([GUID, OTHER]));
        assert_eq!(qos.original_writer, Some(IDENTITY));
        assert_eq!(qos.related_sample_identity, Some(IDENTITY));
        assert_eq!(qos.coherent_set, Some(SequenceNumber(5)));
        assert_eq!(qos.group_coherent_set, Some(SequenceNumber(6)));
        assert_eq!(qos.group_seq_num, Some(SequenceNumber(7)));
        assert!(!qos.must_understand_unknown);
    }
}

#[test]
fn status_info_is_four_octets_and_no_integer() {
    let mut builder = InlineQosBuilder::<16>::new();
    builder.status_info(STATUS_INFO_UNREGISTERED).expect("fits");
    let bytes = builder.finish().expect("fits");
    assert_eq!(bytes, [0x71, 0, 4, 0, 0, 0, 0, 2, 1, 0, 0, 0]);
}

#[test]
fn parameter_that_exceeds_the_buffer_leaves_the_list_unchanged() {
    let mut builder = InlineQosBuilder::<31>::new();
    builder.status_info(STATUS_INFO_DISPOSED).expect("fits");
    assert_eq!(builder.key_hash([1; 16]), Err(Full), "no room for the sentinel");
    assert_eq!(builder.finish().expect("fits").len(), 12);
    assert_eq!(InlineQosBuilder::<3>::new().finish(), Err(Full));
}

#[test]
fn directed_write_may_be_a_sequence() {
    let guids = [GUID.to_bytes(), OTHER.to_bytes()].concat();
    let bytes = [&[0x57, 0, 36, 0, 2, 0, 0, 0][..], &guids, &[1, 0, 0, 0]].concat();
    let qos = parse(&bytes).expect("the values are valid");
    assert_eq!(qos.directed_write.iter().collect::<Vec<_>>(), [GUID, OTHER]);
    assert!(qos.is_for(OTHER) && !qos.is_for(Guid::UNKNOWN));
}

#[test]
fn change_without_directed_write_is_for_all_readers() {
    let qos = parse(&[1, 0, 0, 0]).expect("the values are valid");
    assert!(qos.directed_write.is_empty() && qos.is_for(GUID));
    let mut builder = InlineQosBuilder::<64>::new();
    builder.directed_write(GUID).expect("fits");
    let qos = parse(builder.finish().expect("fits")).expect("the values are valid");
    assert!(qos.is_for(GUID) && !qos.is_for(OTHER));
}

#[test]
fn policies_of_the_writer_are_parsed() {
    let bytes = [0x2b, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 4, 0, 0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0];
    let qos = parse(&bytes).expect("the values are valid");
    assert_eq!(qos.lifespan, Some(Duration::from_secs(2)));
    assert_eq!(qos.ownership_strength, Some(-2));
}

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    let unknown = [0x34, 0x12, 4, 0, 0, 0, 0, 0, 0x0f, 0x80, 0, 0, 1, 0, 0, 0];
    assert!(!parse(&unknown).expect("the values are valid").must_understand_unknown);
    let must = [0x34, 0x52, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    assert!(parse(&must).expect("the values are valid").must_understand_unknown);
    let known = [0x71, 0x40, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0];
    let qos = parse(&known).expect("the values are valid");
    assert_eq!((qos.status_info, qos.must_understand_unknown), (Some(1), false));
}

#[test]
fn values_that_are_too_short_are_malformed() {
    for pid in [
        PID_KEY_HASH,
        PID_STATUS_INFO,
        PID_DIRECTED_WRITE,
        PID_ORIGINAL_WRITER_INFO,
        PID_RELATED_SAMPLE_IDENTITY,
        PID_COHERENT_SET,
        PID_GROUP_COHERENT_SET,
        PID_GROUP_SEQ_NUM,
        PID_LIFESPAN,
        PID_OWNERSHIP_STRENGTH,
    ] {
        let [a, b] = pid.to_le_bytes();
        assert!(parse(&[a, b, 0, 0, 1, 0, 0, 0]).is_err(), "{pid:#06x}");
    }
}
