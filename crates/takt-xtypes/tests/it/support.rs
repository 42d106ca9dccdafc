//! Helpers: hexadecimal, and payloads as vectors.

use takt_xtypes::{Endianness, Representation, TypeSupport, deserialize_reporting, serialize_with, serialized_len};

pub const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];
pub const ENDIANNESSES: [Endianness; 2] = [Endianness::Big, Endianness::Little];

/// Bytes of a hexadecimal string; blanks are ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).expect("hexadecimal digit") as u8).collect();
    assert!(digits.len().is_multiple_of(2), "an even number of digits");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The payload of a value; checks that its length was foretold and that nothing behind it is touched.
pub fn payload<T: TypeSupport>(value: &T, representation: Representation, endianness: Endianness) -> Vec<u8> {
    let len = serialized_len(value, representation);
    let mut out = vec![0xee; len + 8];
    assert_eq!(serialize_with(value, representation, endianness, &mut out), Ok(len));
    assert_eq!(out[len..], [0xee; 8]);
    out.truncate(len);
    out
}

/// The payload without encapsulation header and padding.
pub fn body<T: TypeSupport>(value: &T, representation: Representation, endianness: Endianness) -> Vec<u8> {
    let mut bytes = payload(value, representation, endianness);
    let padding = usize::from(bytes[3] & 3);
    assert!(bytes[bytes.len() - padding..].iter().all(|&byte| byte == 0), "padding is zero");
    bytes.truncate(bytes.len() - padding);
    bytes.split_off(4)
}

/// Decodes a whole payload and checks that nothing of it is left.
pub fn decoded<T: TypeSupport>(payload: &[u8]) -> T {
    let mut value = T::default();
    let report = deserialize_reporting(&mut value, payload).expect("a well-formed payload");
    assert_eq!(report.trailing_bytes, 0);
    value
}
