//! Tests of number sets: round trips and limits.

use super::*;
use crate::cursor::Endianness;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

fn set(base: i64, numbers: &[i64]) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(base));
    for number in numbers {
        assert!(set.insert(SequenceNumber(*number)), "{number} lies in the window of {base}");
    }
    set
}

fn parse(bytes: &[u8]) -> Result<SequenceNumberSet, Malformed> {
    SequenceNumberSet::parse(&mut Cursor::new(bytes, Endianness::Big), 1)
}

#[test]
fn set_of_the_specification_example_is_parsed() {
    // RTPS 2.5 §9.4.2.6: "1234/12:00110" is {1236, 1237} from base 1234, 12 bits.
    let bytes = [0, 0, 0, 0, 0, 0, 0x04, 0xd2, 0, 0, 0, 12, 0x30, 0, 0, 0];
    let parsed = parse(&bytes).expect("well formed");
    assert_eq!(parsed.num_bits(), 12);
    let numbers: Vec<i64> = parsed.iter().map(|number| number.0).collect();
    assert_eq!(numbers, [1236, 1237]);
    assert_eq!(format!("{parsed:?}"), "1234/12:{#1236, #1237}");
}

#[test]
fn insertion_reaches_exactly_256_numbers() {
    let mut window = set(10, &[10, 265]);
    assert!(!window.insert(SequenceNumber(266)));
    assert!(!window.insert(SequenceNumber(9)));
    assert!(!window.insert(SequenceNumber::UNKNOWN));
    assert_eq!(window.num_bits(), 256);
    assert!(window.contains(SequenceNumber(265)) && !window.contains(SequenceNumber(264)));
    assert_eq!(window.iter().count(), 2);
}

#[test]
fn sets_round_trip_in_both_byte_orders() {
    for numbers in [&[][..], &[5], &[5, 36, 37, 68], &[5, 260]] {
        for endianness in [Endianness::Big, Endianness::Little] {
            let original = set(5, numbers);
            let mut bytes = vec![0; original.encoded_len()];
            original.emit(&mut Emitter::new(&mut bytes, endianness));
            let mut cursor = Cursor::new(&bytes, endianness);
            assert_eq!(SequenceNumberSet::parse(&mut cursor, 1), Ok(original));
            assert!(cursor.is_empty());
        }
    }
}

#[test]
fn bits_beyond_the_length_are_ignored() {
    let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff];
    let parsed = parse(&bytes).expect("well formed");
    assert!(parsed.is_empty());
    assert_eq!(parsed, {
        let mut expected = SequenceNumberSet::new(SequenceNumber(1));
        expected.window.len = 1;
        expected
    });
}

#[test]
fn set_wider_than_256_is_malformed() {
    let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1];
    bytes.resize(12 + 36, 0xff);
    assert_eq!(parse(&bytes).expect_err("257 bits").what, "set spans more than 256 numbers");
    assert!(parse(&[0xff; 64]).is_err());
}

#[test]
fn set_running_past_the_last_number_is_malformed() {
    let bytes = [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0];
    let error = parse(&bytes).expect_err("2^63 does not exist");
    assert_eq!(error.what, "sequence number set exceeds the largest number");
}

#[test]
fn base_below_one_is_malformed() {
    assert!(parse(&[0; 12]).is_err());
    assert!(parse(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
}

#[test]
fn numbers_saturate() {
    assert_eq!(SequenceNumber::MAX.next(), SequenceNumber::MAX);
    assert_eq!(SequenceNumber(i64::MIN).prev(), SequenceNumber(i64::MIN));
    assert_eq!(SequenceNumber::ZERO.next(), SequenceNumber::FIRST);
    assert!(!SequenceNumber::UNKNOWN.is_valid());
    assert_eq!(SequenceNumber::UNKNOWN.halves(), (0xffff_ffff, 0));
}

#[test]
fn fragment_sets_round_trip_within_their_limits() {
    let mut fragments = FragmentNumberSet::new(3);
    assert!(fragments.insert(3) && fragments.insert(258));
    assert!(!fragments.insert(2) && !fragments.insert(259));
    for endianness in [Endianness::Big, Endianness::Little] {
        let mut bytes = vec![0; fragments.encoded_len()];
        fragments.emit(&mut Emitter::new(&mut bytes, endianness));
        let parsed = FragmentNumberSet::parse(&mut Cursor::new(&bytes, endianness));
        assert_eq!(parsed, Ok(fragments));
    }
    assert_eq!(fragments.iter().collect::<Vec<_>>(), [3, 258]);
    assert!(fragments.contains(258) && !fragments.contains(4));
    let parse = |bytes: &[u8]| FragmentNumberSet::parse(&mut Cursor::new(bytes, Endianness::Big));
    assert!(parse(&[0; 8]).is_err(), "base zero");
    assert!(parse(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0]).is_err(), "overflow");
    assert!(parse(&[0, 0, 0, 1, 0, 0, 1, 1]).is_err(), "257 bits");
}
