//! Bounds of strings, sequences and maps: checked when encoding and when decoding, and counted in the extent.

use core::ops::{Deref, DerefMut};

use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::{CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extent, Sink};

/// What a bound applies to.
#[diagnostic::on_unimplemented(
    message = "a bound does not apply to `{Self}`",
    note = "only strings, sequences (`Vec`) and maps (`BTreeMap`) have a bound"
)]
pub trait HasLength: CdrValue {
    /// The length that the bound limits: bytes of a string, code units of a wide string, elements, pairs.
    fn length(&self) -> usize;

    /// Moves a worst-case position behind a value of at most this length.
    fn extend_bounded(extent: Extent, bound: usize) -> Extent;

    /// [`CdrValue::describe`] with a bound; 0 is none.
    fn describe_bounded(types: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers;
}

/// Fails if a value about to be encoded is longer than its bound.
#[inline]
pub fn check_encoded_bound<T: HasLength>(value: &T, bound: usize) -> Result<(), EncodeError> {
    let len = value.length();
    if len > bound { Err(EncodeError::BoundExceeded { bound, len }) } else { Ok(()) }
}

/// Fails if a value just decoded is longer than its bound. Its memory was already limited by the input.
#[inline]
pub fn check_decoded_bound<T: HasLength>(value: &T, bound: usize, d: &Decoder<'_>) -> Result<(), DecodeError> {
    let len = value.length();
    if len > bound { Err(d.error(DecodeErrorKind::Bound { bound, len })) } else { Ok(()) }
}

/// A string, sequence or map of at most `N`, for places that no `#[dds(bound = N)]` reaches: `Vec<Bounded<String, 8>>`.
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
