//! Sequence numbers, fragment numbers, and the sets of them in acknowledgments
//! (RTPS 2.5 §8.3.5.4, §9.4.2).

use core::fmt;

use crate::cursor::{Cursor, Emitter};
use crate::error::Malformed;

/// Sequence number of a change in its writer's history; the first is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// `SEQUENCENUMBER_UNKNOWN`: no sequence number.
    pub const UNKNOWN: Self = Self(-1 << 32);
    /// Number before the first change.
    pub const ZERO: Self = Self(0);
    /// Number of the first change of every writer.
    pub const FIRST: Self = Self(1);
    /// Largest sequence number.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the next number. It saturates at [`SequenceNumber::MAX`].
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the previous number. It saturates at `i64::MIN`.
    #[must_use]
    pub const fn prev(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Reports whether a change can have this number (1 to 2^63 - 1).
    pub const fn is_valid(self) -> bool {
        self.0 > 0
    }

    /// Reads a number without validation.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self::from_halves(cursor.u32()?, cursor.u32()?))
    }

    /// Reads the number of a change, which must be positive.
    pub(crate) fn parse_valid(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = cursor.malformed("sequence number is not positive");
        let number = Self::parse(cursor)?;
        if number.is_valid() { Ok(number) } else { Err(at) }
    }

    /// Returns the number with this upper and lower half.
    pub(crate) const fn from_halves(high: u32, low: u32) -> Self {
        Self((((high as u64) << 32) | low as u64).cast_signed())
    }

    /// Returns the upper and the lower half, in wire order.
    pub(crate) const fn halves(self) -> (u32, u32) {
        let bits = self.0.cast_unsigned();
        ((bits >> 32) as u32, bits as u32)
    }

    pub(crate) fn emit(self, emitter: &mut Emitter<'_>) {
        let (high, low) = self.halves();
        emitter.u32(high);
        emitter.u32(low);
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Maximum number of bits in a set.
pub const SET_WINDOW: u32 = 256;

/// Bits of a set. Bit 0 is the most significant bit of the first word. Bits from `len` on are zero.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Window {
    len: u32,
    words: [u32; 8],
}

impl Window {
    const fn mask(index: u32) -> u32 {
        0x8000_0000 >> (index % 32)
    }

    fn insert(&mut self, index: u64) -> bool {
        let Some(index) = u32::try_from(index).ok().filter(|index| *index < SET_WINDOW) else {
            return false;
        };
        self.words[(index / 32) as usize] |= Self::mask(index);
        self.len = self.len.max(index + 1);
        true
    }

    fn contains(&self, index: u64) -> bool {
        u32::try_from(index)
            .is_ok_and(|index| index < self.len && self.words[(index / 32) as usize] & Self::mask(index) != 0)
    }

    fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.len).filter(move |index| self.contains(u64::from(*index)))
    }

    const fn word_count(&self) -> usize {
        self.len.div_ceil(32) as usize
    }

    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = cursor.malformed("set spans more than 256 numbers");
        let len = cursor.u32()?;
        if len > SET_WINDOW {
            return Err(at);
        }
        let mut window = Self { len, words: [0; 8] };
        for word in &mut window.words[..len.div_ceil(32) as usize] {
            *word = cursor.u32()?;
        }
        if len % 32 != 0 {
            window.words[(len / 32) as usize] &= !(u32::MAX >> (len % 32));
        }
        Ok(window)
    }

    fn emit(&self, emitter: &mut Emitter<'_>) {
        emitter.u32(self.len);
        for word in &self.words[..self.word_count()] {
            emitter.u32(*word);
        }
    }
}

/// Set of up to 256 sequence numbers from a base.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SequenceNumberSet {
    base: SequenceNumber,
    window: Window,
}

impl SequenceNumberSet {
    /// Returns the empty set at `base`. In an ACKNACK, it acknowledges all changes before `base`.
    pub const fn new(base: SequenceNumber) -> Self {
        Self { base, window: Window { len: 0, words: [0; 8] } }
    }

    /// Returns the number of bit 0.
    pub const fn base(&self) -> SequenceNumber {
        self.base
    }

    /// Returns the number of bits.
    pub const fn num_bits(&self) -> u32 {
        self.window.len
    }

    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.window.words == [0; 8]
    }

    /// Adds a number. Returns `false` and changes nothing if it lies outside of the 256 numbers
    /// from the base.
    pub fn insert(&mut self, number: SequenceNumber) -> bool {
        self.index(number).is_some_and(|index| self.window.insert(index))
    }

    /// Reports whether the number is in the set.
    pub fn contains(&self, number: SequenceNumber) -> bool {
        self.index(number).is_some_and(|index| self.window.contains(index))
    }

    /// Returns the numbers in the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = SequenceNumber> + use<> {
        let base = self.base.0;
        self.window.iter().map(move |index| SequenceNumber(base.saturating_add(i64::from(index))))
    }

    fn index(&self, number: SequenceNumber) -> Option<u64> {
        number.0.checked_sub(self.base.0).and_then(|index| u64::try_from(index).ok())
    }

    /// Returns the length on the wire in octets.
    pub(crate) const fn encoded_len(&self) -> usize {
        12 + 4 * self.window.word_count()
    }

    /// Parses a set whose base is at least `base_min`.
    pub(crate) fn parse(cursor: &mut Cursor<'_>, base_min: i64) -> Result<Self, Malformed> {
        let at = *cursor;
        let base = SequenceNumber::parse(cursor)?;
        if base.0 < base_min {
            return Err(at.malformed("base of a sequence number set is too low"));
        }
        let window = Window::parse(cursor)?;
        if base.0.checked_add(i64::from(window.len)).is_none() {
            return Err(at.malformed("sequence number set exceeds the largest number"));
        }
        Ok(Self { base, window })
    }

    pub(crate) fn emit(&self, emitter: &mut Emitter<'_>) {
        self.base.emit(emitter);
        self.window.emit(emitter);
    }
}

impl fmt::Debug for SequenceNumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:", self.base, self.num_bits())?;
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Set of up to 256 fragment numbers from a base; the first fragment of a sample is 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FragmentNumberSet {
    base: u32,
    window: Window,
}

impl FragmentNumberSet {
    /// Returns the empty set at `base`.
    pub const fn new(base: u32) -> Self {
        Self { base, window: Window { len: 0, words: [0; 8] } }
    }

    /// Returns the number of bit 0.
    pub const fn base(&self) -> u32 {
        self.base
    }

    /// Returns the number of bits.
    pub const fn num_bits(&self) -> u32 {
        self.window.len
    }

    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.window.words == [0; 8]
    }

    /// Adds a number. Returns `false` and changes nothing if it lies outside of the 256 numbers
    /// from the base.
    pub fn insert(&mut self, number: u32) -> bool {
        number.checked_sub(self.base).is_some_and(|index| self.window.insert(u64::from(index)))
    }

    /// Reports whether the number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        number.checked_sub(self.base).is_some_and(|index| self.window.contains(u64::from(index)))
    }

    /// Returns the numbers in the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let base = self.base;
        self.window.iter().map(move |index| base.saturating_add(index))
    }

    /// Returns the length on the wire in octets.
    pub(crate) const fn encoded_len(&self) -> usize {
        8 + 4 * self.window.word_count()
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = *cursor;
        let base = cursor.u32()?;
        if base == 0 {
            return Err(at.malformed("base of a fragment number set is zero"));
        }
        let window = Window::parse(cursor)?;
        if base.checked_add(window.len).is_none() {
            return Err(at.malformed("fragment number set exceeds the largest number"));
        }
        Ok(Self { base, window })
    }

    pub(crate) fn emit(&self, emitter: &mut Emitter<'_>) {
        emitter.u32(self.base);
        self.window.emit(emitter);
    }
}

impl fmt::Debug for FragmentNumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:", self.base, self.num_bits())?;
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
