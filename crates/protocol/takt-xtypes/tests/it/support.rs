//! Test helpers: hexadecimal octets, and payloads as vectors.

use takt_xtypes::{Endianness, Representation, TypeSupport, deserialize_reporting, serialize_with, serialized_len};

pub const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];
pub const ENDIANNESSES: [Endianness; 2] = [Endianness::Big, Endianness::Little];

/// Parses hexadecimal octets; blanks are ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).expect("hexadecimal digit") as u8).collect();
    assert!(digits.len().is_multiple_of(2), "an even number of digits");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Serializes a value. Checks that the predicted length is exact and that no octets after it are
/// written.
pub fn payload<T: TypeSupport>(value: &T, representation: Representation, endianness: Endianness) -> Vec<u8> {
    let len = serialized_len(value, representation);
    let mut out = vec![0xee; len + 8];
    assert_eq!(serialize_with(value, representation, endianness, &mut out), Ok(len));
    assert_eq!(out[len..], [0xee; 8]);
    out.truncate(len);
    out
}

/// Serializes a value without encapsulation header and padding.
pub fn body<T: TypeSupport>(value: &T, representation: Representation, endianness: Endianness) -> Vec<u8> {
    let mut bytes = payload(value, representation, endianness);
    let padding = usize::from(bytes[3] & 3);
    assert!(bytes[bytes.len() - padding..].iter().all(|&byte| byte == 0), "padding is zero");
    bytes.truncate(bytes.len() - padding);
    bytes.split_off(4)
}

/// Deserializes a payload and checks that no bytes are left.
pub fn decoded<T: TypeSupport>(payload: &[u8]) -> T {
    let mut value = T::default();
    let report = deserialize_reporting(&mut value, payload).expect("a well-formed payload");
    assert_eq!(report.trailing_bytes, 0);
    value
}
