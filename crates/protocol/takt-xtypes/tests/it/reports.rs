//! Published defects about malformed payloads, one test each, named after the report.

use takt_derive::DdsType;
use takt_xtypes::dynamic::DynamicType;
use takt_xtypes::type_object::TypeRegistry;
use takt_xtypes::{DecodeErrorKind, TypeSupport, deserialize};

use crate::support::hex;
use crate::zoo::Grown;

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Octets {
    #[dds(bound = 8)]
    octets: Vec<u8>,
}

fn refused<T: TypeSupport>(payload: &str) -> DecodeErrorKind {
    deserialize(&mut T::default(), &hex(payload)).expect_err("malformed").kind
}

#[test]
fn ros2_1690_sequence_length_without_elements() {
    let count = DecodeErrorKind::Count { count: u32::MAX };
    assert_eq!(refused::<Octets>("00010000 ffffffff"), count);
    assert_eq!(refused::<Octets>("00070000 ffffffff"), count);
}

#[test]
fn opendds_5288_sequence_longer_than_the_remaining_bytes() {
    assert_eq!(refused::<Octets>("00070000 05000000 01020304"), DecodeErrorKind::Count { count: 5 });
}

#[test]
fn cyclonedds_2453_delimiter_off_by_one() {
    // One more byte than present. Then one less than the first member needs, since five would be
    // the whole payload.
    assert_eq!(refused::<Grown>("00080000 00000004 00000001 00 05"), DecodeErrorKind::Count { count: 1 });
    assert_eq!(refused::<Grown>("00080000 00000007 00000001 00 05"), DecodeErrorKind::EndOfInput);
}

/// Bytes after a final type are padding, as in other implementations, and not elements.
#[test]
fn fast_dds_6512_empty_sequence_with_trailing_bytes() {
    let mut value = Octets { octets: vec![1] };
    deserialize(&mut value, &hex("00070000 00000000 01020304")).expect("an empty sequence");
    assert_eq!(value, Octets::default());
}

#[test]
fn cve_2026_45097_dynamic_sequence_beyond_its_bound() {
    let mut registry = TypeRegistry::new();
    let information = Octets::type_information(&mut registry);
    let ty = DynamicType::new(&information.complete.type_id, &registry).expect("a type");
    let nine = "00070000 09000000 010203040506070809";
    let bound = DecodeErrorKind::Bound { bound: 8, len: 9 };
    assert_eq!(ty.decode(&hex(nine)).expect_err("malformed").kind, bound);
    assert_eq!(refused::<Octets>(nine), bound);
}
