//! Bounds of strings, sequences and maps: checked at encoding and decoding, and included in the
//! extent.

use core::ops::{Deref, DerefMut};

use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::{CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extent, Sink};

/// Types to which a bound applies.
#[diagnostic::on_unimplemented(
    message = "a bound does not apply to `{Self}`",
    note = "only strings, sequences (`Vec`) and maps (`BTreeMap`) have a bound"
)]
pub trait HasLength: CdrValue {
    /// Returns the length that the bound limits: bytes of a string, code units of a wide string,
    /// elements, or pairs.
    fn length(&self) -> usize;

    /// Advances a worst-case position past a value of at most this length.
    fn extend_bounded(extent: Extent, bound: usize) -> Extent;

    /// Describes the type as [`CdrValue::describe`] does, with a bound; 0 means unbounded.
    fn describe_bounded(types: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers;
}

/// Fails if a value to be encoded exceeds its bound.
#[inline]
pub fn check_encoded_bound<T: HasLength>(value: &T, bound: usize) -> Result<(), EncodeError> {
    let len = value.length();
    if len > bound { Err(EncodeError::BoundExceeded { bound, len }) } else { Ok(()) }
}

/// Fails if a decoded value exceeds its bound. The input has already limited its memory.
#[inline]
pub fn check_decoded_bound<T: HasLength>(value: &T, bound: usize, d: &Decoder<'_>) -> Result<(), DecodeError> {
    let len = value.length();
    if len > bound { Err(d.error(DecodeErrorKind::Bound { bound, len })) } else { Ok(()) }
}

/// String, sequence or map of at most `N` elements, for places where `#[dds(bound = N)]` does not
/// apply: `Vec<Bounded<String, 8>>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounded<T, const N: usize>(pub T);

impl<T, const N: usize> Deref for Bounded<T, N> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Bounded<T, N> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: HasLength, const N: usize> CdrValue for Bounded<T, N> {
    const MIN_ENCODED_LEN: usize = T::MIN_ENCODED_LEN;
    const LENGTH_CODE: u8 = T::LENGTH_CODE;
    const INITIAL_HEAP_LEN: usize = T::INITIAL_HEAP_LEN;

    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        check_encoded_bound(&self.0, N)?;
        self.0.encode(e)
    }

    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.0.decode(d)?;
        check_decoded_bound(&self.0, N, d)
    }

    fn initial() -> Self {
        Self(T::initial())
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn extend(extent: Extent) -> Extent {
        T::extend_bounded(extent, N)
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        T::describe_bounded(types, N)
    }
}
