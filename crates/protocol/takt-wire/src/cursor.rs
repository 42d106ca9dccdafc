//! Bounds-checked reader of untrusted octets, and its counterpart that writes into a sized slice.
//!
//! A [`Cursor`] never reads beyond its slice and never computes an offset that can overflow.

use crate::error::Malformed;

/// Byte order of a submessage or of a serialized payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endianness {
    /// Most significant octet first.
    Big,
    /// Least significant octet first.
    Little,
}

impl Endianness {
    /// Returns the byte order that the E flag selects, the lowest bit of a submessage's flags
    /// (RTPS 2.5 §9.4.5.1.2).
    pub const fn from_flags(flags: u8) -> Self {
        if flags & 1 == 0 { Self::Big } else { Self::Little }
    }

    /// Returns the E flag.
    pub const fn flag(self) -> u8 {
        match self {
            Self::Big => 0,
            Self::Little => 1,
        }
    }
}

impl Endianness {
    pub(crate) const fn u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Big => u16::from_be_bytes(octets),
            Self::Little => u16::from_le_bytes(octets),
        }
    }

    pub(crate) const fn octets16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    pub(crate) const fn octets32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    pub(crate) const fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Big => u32::from_be_bytes(octets),
            Self::Little => u32::from_le_bytes(octets),
        }
    }
}

macro_rules! integers {
    ($($name:ident $type:ty, $len:literal;)*) => {$(
        #[doc = concat!("Reads ", stringify!($type), " as it stands, without aligning first.")]
        pub fn $name(&mut self) -> Result<$type, Malformed> {
            let octets = self.array::<$len>()?;
            Ok(match self.endianness {
                Endianness::Big => <$type>::from_be_bytes(octets),
                Endianness::Little => <$type>::from_le_bytes(octets),
            })
        }
    )*};
}

/// Bounds-checked reader of borrowed octets.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Offset of `bytes` in the whole input, for the offsets in errors.
    base: usize,
    endianness: Endianness,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of `bytes`.
    pub const fn new(bytes: &'a [u8], endianness: Endianness) -> Self {
        Self::with_base(bytes, endianness, 0)
    }

    /// Returns a cursor at the start of `bytes`, which begin `base` octets into the whole input.
    /// Errors report offsets into the whole input.
    pub const fn with_base(bytes: &'a [u8], endianness: Endianness, base: usize) -> Self {
        Self { bytes, position: 0, base, endianness }
    }

    /// Returns the byte order of integers.
    pub const fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Returns the number of octets read or skipped so far.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the position in the whole input. Errors report this offset.
    pub const fn offset(&self) -> usize {
        self.base + self.position
    }

    /// Returns the number of octets left.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Reports whether no octets are left.
    pub const fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns the octets left without moving the cursor.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Returns an error at the current position.
    pub const fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.offset(), what }
    }

    /// Reads the next `len` octets.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let Some(taken) = self.rest().get(..len) else {
            return Err(self.malformed("input is truncated"));
        };
        self.position += len;
        Ok(taken)
    }

    /// Reads the next `N` octets.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((taken, _)) = self.rest().split_first_chunk::<N>() else {
            return Err(self.malformed("input is truncated"));
        };
        self.position += N;
        Ok(*taken)
    }

    /// Skips `len` octets.
    pub fn skip(&mut self, len: usize) -> Result<(), Malformed> {
        self.bytes(len).map(|_| ())
    }

    /// Skips padding until the position is a multiple of `alignment` octets from the start of the
    /// cursor's octets. `alignment` is a power of two.
    pub fn align(&mut self, alignment: usize) -> Result<(), Malformed> {
        self.skip(padding(self.position, alignment))
    }

    /// Reads an octet.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let [octet] = self.array()?;
        Ok(octet)
    }

    integers! {
        i16 i16, 2;
        u16 u16, 2;
        i32 i32, 4;
        u32 u32, 4;
        i64 i64, 8;
        u64 u64, 8;
    }

    /// Reads the number of elements of a sequence whose elements take at least `element_len_min`
    /// octets each.
    ///
    /// Fails if the remaining octets cannot hold that many elements. The caller may therefore
    /// reserve memory for the result.
    pub fn count(&mut self, element_len_min: usize) -> Result<usize, Malformed> {
        let at = self.malformed("sequence is longer than its input");
        let count = usize::try_from(self.u32()?).map_err(|_| at)?;
        match count.checked_mul(element_len_min) {
            Some(len) if len <= self.remaining() => Ok(count),
            _ => Err(at),
        }
    }

    /// Reads a CDR string: aligned length, octets, and a terminating NUL that the length includes.
    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        self.align(4)?;
        let start = *self;
        let len = self.count(1)?;
        let (text, nul) = match self.bytes(len)?.split_last() {
            Some((nul, text)) => (text, *nul),
            None => return Err(start.malformed("string has length zero")),
        };
        if nul != 0 || text.contains(&0) {
            return Err(start.malformed("string does not end in exactly one NUL"));
        }
        core::str::from_utf8(text).map_err(|_| start.malformed("string is not UTF-8"))
    }
}

/// Returns the number of octets from `position` to the next multiple of `alignment`, a power of
/// two.
pub(crate) const fn padding(position: usize, alignment: usize) -> usize {
    position.wrapping_neg() & (alignment - 1)
}

/// Writer into a slice whose length the caller has computed.
///
/// Running over the end is a bug of the caller, so slices are indexed directly.
pub(crate) struct Emitter<'a> {
    bytes: &'a mut [u8],
    position: usize,
    endianness: Endianness,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], endianness: Endianness) -> Self {
        Self { bytes, position: 0, endianness }
    }

    pub(crate) fn bytes(&mut self, octets: &[u8]) {
        let end = self.position + octets.len();
        self.bytes[self.position..end].copy_from_slice(octets);
        self.position = end;
    }

    /// Fills the remaining octets with zeros.
    pub(crate) fn fill(&mut self) {
        // A loop instead of a call, since there is usually nothing to fill.
        while let Some(octet) = self.bytes.get_mut(self.position) {
            *octet = 0;
            self.position += 1;
        }
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&self.endianness.octets16(value));
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&self.endianness.octets32(value));
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.u32(value.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_both_byte_orders() {
        let bytes = [0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xfe];
        let mut big = Cursor::new(&bytes, Endianness::Big);
        assert_eq!(big.u32(), Ok(0x0102_0304));
        assert_eq!(big.i32(), Ok(-2));
        let mut little = Cursor::new(&bytes, Endianness::Little);
        assert_eq!(little.u16(), Ok(0x0201));
        assert_eq!(little.u16(), Ok(0x0403));
        assert_eq!(Cursor::new(&bytes, Endianness::Big).u64(), Ok(0x0102_0304_ffff_fffe));
    }

    #[test]
    fn read_past_the_end_fails_without_moving_the_cursor() {
        let mut cursor = Cursor::with_base(&[1, 2, 3], Endianness::Big, 20);
        cursor.skip(1).expect("one octet is there");
        let error = cursor.u32().expect_err("two octets are left");
        assert_eq!(error, Malformed { offset: 21, what: "input is truncated" });
        assert_eq!(cursor.remaining(), 2);
        assert!(cursor.bytes(usize::MAX).is_err());
    }

    #[test]
    fn alignment_counts_from_the_start() {
        let mut cursor = Cursor::new(&[0; 9], Endianness::Big);
        cursor.align(4).expect("already aligned");
        assert_eq!(cursor.position(), 0);
        cursor.skip(1).expect("in bounds");
        cursor.align(4).expect("in bounds");
        assert_eq!(cursor.position(), 4);
        cursor.skip(5).expect("in bounds");
        assert!(cursor.align(4).is_err(), "the padding is not there");
    }

    #[test]
    fn sequence_count_is_bounded_by_the_remaining_octets() {
        let bytes = [0, 0, 0, 2, 9, 9, 9, 9];
        assert_eq!(Cursor::new(&bytes, Endianness::Big).count(2), Ok(2));
        assert!(Cursor::new(&bytes, Endianness::Big).count(3).is_err());
        let huge = [0xff; 8];
        assert!(Cursor::new(&huge, Endianness::Big).count(4).is_err());
    }

    #[test]
    fn malformed_strings_are_rejected() {
        let good = [3, 0, 0, 0, b'a', b'b', 0, 0xee];
        let mut cursor = Cursor::new(&good, Endianness::Little);
        assert_eq!(cursor.string(), Ok("ab"));
        assert_eq!(cursor.remaining(), 1);
        let what = |bytes: &[u8]| Cursor::new(bytes, Endianness::Little).string().expect_err("malformed").what;
        assert_eq!(what(&[0, 0, 0, 0]), "string has length zero");
        assert_eq!(what(&[2, 0, 0, 0, b'a', b'b']), "string does not end in exactly one NUL");
        assert_eq!(what(&[2, 0, 0, 0, 0, 0]), "string does not end in exactly one NUL");
        assert_eq!(what(&[9, 0, 0, 0, b'a', 0]), "sequence is longer than its input");
        assert_eq!(what(&[2, 0, 0, 0, 0xff, 0]), "string is not UTF-8");
    }

    #[test]
    fn emitter_writes_in_order_and_fills_up() {
        let mut bytes = [0xaa; 8];
        let mut emitter = Emitter::new(&mut bytes, Endianness::Big);
        emitter.u16(0x0102);
        emitter.bytes(&[3]);
        emitter.fill();
        assert_eq!(bytes, [1, 2, 3, 0, 0, 0, 0, 0]);
    }
}
