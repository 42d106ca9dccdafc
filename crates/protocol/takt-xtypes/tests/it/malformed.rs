//! Hostile input tests: no panic, memory within a multiple of the payload, and the expected errors.

use std::fmt::Debug;

use takt_derive::DdsType;
use takt_testkit::memory::peak_octets;
use takt_xtypes::{
    DecodeErrorKind, Endianness, Extensibility, Representation, TypeSupport, deserialize, deserialize_key,
    serialize_key, serialized_key_len,
};

use crate::random::{ForEachType, Random, Rng, for_each_type};
use crate::support::{ENDIANNESSES, REPRESENTATIONS, hex, payload};
use crate::zoo::*;

/// Returns the limit on the memory of decoding. It is the documented limit for elements, doubled
/// since vectors grow by doubling, and the bytes of strings and primitive sequences.
fn memory_limit(payload_len: usize) -> usize {
    2 * (64 * 1024 + 64 * payload_len) + 16 * payload_len + 4096
}

fn decode_bounded<T: TypeSupport>(payload: &[u8]) -> bool {
    let mut accepted = false;
    let peak = peak_octets(|| {
        let mut value = T::default();
        accepted = deserialize(&mut value, payload).is_ok();
        let _ = deserialize_key(&mut value, payload);
    });
    assert!(peak <= memory_limit(payload.len()), "{}: {peak} bytes for {}", T::TYPE_NAME, payload.len());
    accepted
}

struct Prefixes(Rng);

impl ForEachType for Prefixes {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        for _ in 0..20 {
            let value = T::random(&mut self.0);
            for representation in REPRESENTATIONS {
                for endianness in ENDIANNESSES {
                    let mut bytes = payload(&value, representation, endianness);
                    let body_len = bytes.len() - usize::from(bytes[3] & 3);
                    bytes[3] = 0;
                    for len in 0..body_len {
                        let accepted = decode_bounded::<T>(&bytes[..len]);
                        // An appendable type, or a type that ends in one, may end early in XCDR1
                        // only.
                        let appendable = T::EXTENSIBILITY == Extensibility::Appendable || T::TYPE_NAME == "Unions";
                        let may_end = representation == Representation::Xcdr1 && appendable;
                        assert!(!accepted || may_end, "{} at {len} of {body_len}", T::TYPE_NAME);
                    }
                    assert!(decode_bounded::<T>(&bytes[..body_len]), "{}", T::TYPE_NAME);
                }
            }
        }
    }
}

#[test]
fn truncated_payloads_are_refused() {
    for_each_type(&mut Prefixes(Rng(3)));
}

struct Mutations(Rng);

impl Mutations {
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let rng = &mut self.0;
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len());
            match rng.below(6) {
                0 => bytes[at] = rng.next() as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
                3 => {
                    // Boundary values at positions of lengths.
                    let at = at & !3;
                    let word = [0, 1, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX][rng.below(7)];
                    if let Some(to) = bytes.get_mut(at..at + 4) {
                        to.copy_from_slice(&word.to_le_bytes());
                    }
                }
                4 => bytes.truncate(at.max(4)),
                _ => {
                    let from = rng.below(bytes.len());
                    let end = (from + rng.below(16)).min(bytes.len());
                    bytes.extend_from_within(from..end);
                }
            }
        }
    }
}

impl ForEachType for Mutations {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        for round in 0..2500 {
            let value = T::random(&mut self.0);
            let representation = REPRESENTATIONS[round % 2];
            let mut bytes = payload(&value, representation, ENDIANNESSES[round / 2 % 2]);
            for _ in 0..4 {
                self.mutate(&mut bytes);
                decode_bounded::<T>(&bytes);
            }
        }
    }
}

#[test]
fn mutated_payloads_cause_no_panic() {
    for_each_type(&mut Mutations(Rng(4)));
}

struct Noise(Rng);

impl ForEachType for Noise {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        let identifiers = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11];
        for _ in 0..2000 {
            let mut bytes = vec![0, identifiers[self.0.below(identifiers.len())], 0, self.0.next() as u8];
            bytes.extend((0..self.0.below(200)).map(|_| self.0.next() as u8 & [0xff, 0x03][self.0.below(2)]));
            decode_bounded::<T>(&bytes);
        }
    }
}

#[test]
fn random_payloads_cause_no_panic() {
    for_each_type(&mut Noise(Rng(5)));
}

fn refused<T: TypeSupport>(payload: &str) -> DecodeErrorKind {
    deserialize(&mut T::default(), &hex(payload)).expect_err("malformed").kind
}

#[test]
fn invalid_encapsulation_is_refused() {
    for payload in ["", "00", "000700"] {
        assert_eq!(refused::<Point>(payload), DecodeErrorKind::EndOfInput);
    }
    // Three bytes of padding are declared, two are present.
    assert_eq!(refused::<Point>("00070003 0000"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<Point>("00030000 00000000"), DecodeErrorKind::Encapsulation { identifier: 3 });
}

#[test]
fn counts_are_checked_against_the_remaining_bytes() {
    // Counts of shorts: 0xffffffff, then 0x80000000, then one more than present.
    assert_eq!(refused::<Collections>("00000000 ffffffff"), DecodeErrorKind::Count { count: u32::MAX });
    assert_eq!(refused::<Collections>("00010000 00000080"), DecodeErrorKind::Count { count: 0x8000_0000 });
    assert_eq!(refused::<Collections>("00000000 00000003 0001 0002"), DecodeErrorKind::Count { count: 3 });
    // A string that extends beyond the payload.
    assert_eq!(refused::<Grown>("00000000 00000009 61626300"), DecodeErrorKind::Count { count: 9 });
}

#[test]
fn invalid_strings_are_refused() {
    assert_eq!(refused::<Grown>("00000000 00000003 616263 00"), DecodeErrorKind::Unterminated);
    assert_eq!(refused::<Grown>("00000000 00000003 ff61 00 00"), DecodeErrorKind::Text);
    // A wide string with an odd number of bytes.
    assert_eq!(refused::<Exotic>("000a0000 0000000b 53591eb7 00000003 610061"), DecodeErrorKind::Text);
    // Zero bytes, without even a NUL, are an empty string.
    let mut value = Grown { name: "used".into(), count: 0 };
    deserialize(&mut value, &hex("00000000 00000000 05")).expect("an empty string");
    assert_eq!(value, Grown { name: String::new(), count: 5 });
    let long = format!("00000000 00000082 {} 00", "61".repeat(129));
    let bound = DecodeErrorKind::Bound { bound: 128, len: 129 };
    assert_eq!(refused::<ShapeType>(&long), bound);
}

#[test]
fn invalid_delimiters_are_refused() {
    // Longer than the payload; ends within a member; ends within the alignment of a member.
    assert_eq!(refused::<Grown>("00080000 00000009 00000001 00 05"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<Grown>("00080000 00000003 00000001 00 05"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<Grown>("00080000 00000004 00000001 00 05"), DecodeErrorKind::Count { count: 1 });
    assert_eq!(refused::<Enums>("00080000 00000002 0101 0000 00000000"), DecodeErrorKind::EndOfInput);
    // The delimiter of a collection must be exact: one byte more, one byte less.
    let words = |len: &str| refused::<Words>(&format!("00060000 {len} 00000002 00000002 6100 0000 00000002 6200 00"));
    assert_eq!(words("00000013"), DecodeErrorKind::Excess);
    assert_eq!(words("00000011"), DecodeErrorKind::Count { count: 2 });
    // The inner delimiter exceeds the outer one.
    assert_eq!(refused::<Nested>("00060000 01000000 000000ff 00000001 00"), DecodeErrorKind::EndOfInput);
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct Words {
    words: Vec<String>,
}

#[test]
fn invalid_member_headers_are_refused() {
    // EMHEADER truncated; NEXTINT truncated; a member longer than the struct; a length that
    // overflows.
    assert_eq!(refused::<MutableKeyed>("000a0000 00000002 3000"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<MutableKeyed>("000a0000 00000004 40000001"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<MutableKeyed>("000a0000 00000008 30000001 00000000"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<MutableKeyed>("000a0000 00000008 7000000a ffffffff"), DecodeErrorKind::EndOfInput);
    // A member shorter than its type.
    assert_eq!(refused::<MutableKeyed>("000a0000 00000008 20000001 00000000"), DecodeErrorKind::EndOfInput);
    // Parameter list without an end; an extended header of the wrong length; a length beyond the
    // payload.
    assert_eq!(refused::<MutableKeyed>("00020000 0003 0004 01000000"), DecodeErrorKind::EndOfInput);
    assert_eq!(refused::<MutableKeyed>("00020000 7f01 0004 00000003"), DecodeErrorKind::Header);
    assert_eq!(refused::<MutableKeyed>("00020000 0003 ffff 01000000"), DecodeErrorKind::EndOfInput);
    // An optional member other than the next one; an end of list without a list.
    assert_eq!(refused::<FinalOptional>("00000000 01000000 0002 0000"), DecodeErrorKind::Header);
    assert_eq!(refused::<FinalOptional>("00000000 01000000 7f02 0000"), DecodeErrorKind::Header);
    // A union whose discriminator is not first, and a union without discriminator.
    assert_eq!(refused::<MutableUnion>("000a0000 00000006 10000001 0007"), DecodeErrorKind::Header);
    assert_eq!(refused::<MutableUnion>("00020000 7f02 0000"), DecodeErrorKind::Header);
    let twice = "000a0000 00000016 80000000 01 000000 10000001 0007 0000 90000001 0007";
    assert_eq!(refused::<MutableUnion>(twice), DecodeErrorKind::MustUnderstand { id: 1 });
}

#[test]
fn values_outside_the_range_of_their_type_are_refused() {
    assert_eq!(refused::<Enums>("00080000 00000001 03"), DecodeErrorKind::EnumValue { value: 3 });
    assert_eq!(refused::<AppendableUnion>("00080000 00000004 00000002"), DecodeErrorKind::EnumValue { value: 2 });
    assert_eq!(refused::<OnlyOne>("00060000 02"), DecodeErrorKind::Discriminator);
    // Any non-zero octet is true.
    let mut value = Primitives::default();
    let bytes = payload(&value, Representation::Xcdr2, Endianness::Little);
    let bytes: Vec<u8> = bytes[..4].iter().chain(&[0x80]).chain(&bytes[5..]).copied().collect();
    deserialize(&mut value, &bytes).expect("a boolean");
    assert!(value.flag);
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final", discriminator = "u8", default)]
enum OnlyOne {
    #[dds(case = 1)]
    One(u8),
}

#[test]
fn recursion_is_bounded() {
    // Each level: DHEADER, value, no children, and a nested value.
    for levels in [10_usize, 63, 64, 65, 10_000] {
        let mut bytes = hex("00080000");
        let mut remaining = levels * 20 + 17;
        for _ in 0..levels {
            bytes.extend((remaining as u32 - 4).to_be_bytes());
            bytes.extend(hex("00000001 00000004 00000000 01000000"));
            remaining -= 20;
        }
        bytes.extend(hex("0000000d 00000001 00000004 00000000 00"));
        let result = deserialize(&mut Tree::default(), &bytes);
        // The innermost (empty) sequence counts as a level.
        assert_eq!(result.err().map(|error| error.kind), (levels > 63).then_some(DecodeErrorKind::TooDeep), "{levels}");
    }
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final", default)]
struct Huge {
    absent: Option<[u64; 4096]>,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct ManyHuge {
    list: Vec<Huge>,
}

#[test]
fn memory_amplification_is_limited() {
    let payload = |count: usize| {
        let mut bytes = hex("00060000");
        bytes.extend((count as u32 + 4).to_be_bytes());
        bytes.extend((count as u32).to_be_bytes());
        bytes.resize(bytes.len() + count, 0);
        bytes
    };
    // Each byte takes 32 KiB of memory: one is within the limit, a hundred are not.
    let mut value = ManyHuge::default();
    deserialize(&mut value, &payload(1)).expect("within the limit");
    assert_eq!(value.list.len(), 1);
    let error = deserialize(&mut value, &payload(100)).expect_err("beyond the limit");
    assert_eq!(error.kind, DecodeErrorKind::MemoryLimit);
    assert!(!decode_bounded::<ManyHuge>(&payload(10_000)));
}

/// Each box of 32 KiB takes four bytes of payload, an empty delimiter.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", extensibility = "final")]
struct ManyBoxes {
    list: Vec<Boxed>,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(crate = "takt_xtypes", default)]
struct Boxed {
    inner: Box<[u64; 4096]>,
}

#[test]
fn memory_of_boxes_counts_towards_the_limit() {
    let payload = |count: usize| {
        let mut bytes = hex("00060000");
        bytes.extend((count as u32 * 4 + 4).to_be_bytes());
        bytes.extend((count as u32).to_be_bytes());
        bytes.resize(bytes.len() + count * 4, 0);
        bytes
    };
    deserialize(&mut ManyBoxes::default(), &payload(1)).expect("within the limit");
    let error = deserialize(&mut ManyBoxes::default(), &payload(100)).expect_err("beyond the limit");
    assert_eq!(error.kind, DecodeErrorKind::MemoryLimit);
    assert!(!decode_bounded::<ManyBoxes>(&payload(10_000)));
}

struct Keys(Rng);

impl ForEachType for Keys {
    fn visit<T: TypeSupport + Random + PartialEq + Clone + Debug>(&mut self) {
        for _ in 0..20 {
            let value = T::random(&mut self.0);
            for representation in REPRESENTATIONS {
                let mut key = vec![0; serialized_key_len(&value, representation)];
                serialize_key(&value, representation, &mut key).expect("a key");
                let body_len = key.len() - usize::from(key[3] & 3);
                key[3] = 0;
                // The truncated key may be a complete key without its delimiter.
                let may_lack_header = T::EXTENSIBILITY == Extensibility::Appendable;
                for len in 0..body_len {
                    // No member of a key may be missing.
                    let result = deserialize_key(&mut T::default(), &key[..len]);
                    assert!(result.is_err() || may_lack_header, "{} at {len} of {body_len}", T::TYPE_NAME);
                }
            }
        }
    }
}

#[test]
fn truncated_keys_are_refused() {
    for_each_type(&mut Keys(Rng(6)));
}

#[test]
fn errors_display_reason_and_offset() {
    let error = deserialize(&mut Grown::default(), &hex("00000000 00000003 616263 00")).expect_err("malformed");
    assert_eq!(error.to_string(), "at byte 7: string does not end in NUL");
    assert_eq!(error.offset, 7);
}

#[test]
fn excessive_parameters_are_refused_early() {
    // Unknown parameters of two bytes (EMHEADER with length code 1, id 999) within one DHEADER.
    let parameters = "100003e7 0000 0000".repeat(100_000);
    let payload = format!("000a0000 000c3500 {parameters}");
    assert_eq!(refused::<Exotic>(&payload), DecodeErrorKind::TooManyParameters);
}
