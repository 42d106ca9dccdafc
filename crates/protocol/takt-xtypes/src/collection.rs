//! Encoding of sequences, arrays and boxes (XTypes 1.3 §7.4.3.5, rules for SEQUENCE_TYPE and
//! ARRAY_TYPE).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::describe::{TypeCollector, TypeIdentifiers, wire_bound};
use crate::encoder::{Content, Value};
use crate::{
    CdrValue, DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extent, HasLength, Representation, Sink,
};

/// Count and elements of a sequence.
struct Counted<'a, T>(&'a [T]);

impl<T: CdrValue> Content for Counted<'_, T> {
    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.write_len(self.0.len())?;
        if T::IS_PRIMITIVE { T::encode_slice(self.0, e) } else { e.nested(&Elements(self.0)) }
    }
}

/// Elements of a sequence.
struct Elements<'a, T>(&'a [T]);

impl<T: CdrValue> Content for Elements<'_, T> {
    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        T::encode_slice(self.0, e)
    }
}

/// Elements of an array.
struct ArrayElements<'a, T>(&'a [T]);

impl<T: CdrValue> Content for ArrayElements<'_, T> {
    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        T::encode_array(self.0, e)
    }
}

/// Reports whether a collection of these elements has a DHEADER: in XCDR2, unless they are
/// primitive.
#[inline]
pub(crate) fn is_delimited(representation: Representation, plain: bool) -> bool {
    representation == Representation::Xcdr2 && !plain
}

/// Reads a collection within its DHEADER. Unlike an appendable type, it must fill the delimited
/// length.
#[inline]
pub(crate) fn delimited_exactly(
    d: &mut Decoder<'_>,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    d.delimited(|d| {
        read(d)?;
        if d.remaining() != 0 {
            return Err(d.error(DecodeErrorKind::Excess));
        }
        Ok(())
    })
}

fn decode_counted<T: CdrValue>(values: &mut Vec<T>, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    const { assert!(T::MIN_ENCODED_LEN > 0, "elements of a sequence must occupy at least one byte") };
    let count = d.read_count(T::MIN_ENCODED_LEN)?;
    if T::IS_PRIMITIVE { T::decode_vec(values, count, d) } else { d.nested(|d| T::decode_vec(values, count, d)) }
}

impl<T: CdrValue> CdrValue for Vec<T> {
    const MIN_ENCODED_LEN: usize = 4;
    const LENGTH_CODE: u8 = match (T::IS_PRIMITIVE, T::LENGTH_CODE) {
        (false, _) | (true, 0) => 5, // The DHEADER or the octet count doubles as length.
        (true, 2) => 6,
        (true, 3) => 7,
        (true, _) => 4,
    };

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if is_delimited(e.representation(), T::IS_PRIMITIVE) {
            e.delimited(&Counted(self))
        } else {
            Counted(self).encode(e)
        }
    }

    #[inline]
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if is_delimited(d.representation(), T::IS_PRIMITIVE) {
            delimited_exactly(d, |d| decode_counted(self, d))
        } else {
            decode_counted(self, d)
        }
    }

    #[inline]
    fn initial() -> Self {
        Self::new()
    }

    #[inline]
    fn reset(&mut self) {
        self.clear();
    }

    #[inline]
    fn extend(extent: Extent) -> Extent {
        extent.unbounded()
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Self::describe_bounded(types, 0)
    }
}

impl<T: CdrValue> HasLength for Vec<T> {
    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    fn extend_bounded(extent: Extent, bound: usize) -> Extent {
        let extent = if is_delimited(extent.representation(), T::IS_PRIMITIVE) { extent.add(4, 4) } else { extent };
        extent.add(4, 4).nested(|extent| extent.repeat(bound, T::extend))
    }

    fn describe_bounded(types: &mut TypeCollector<'_>, bound: usize) -> TypeIdentifiers {
        T::describe(types).sequence(bound, T::IS_EXTERNAL)
    }
}

impl<T: CdrValue, const N: usize> CdrValue for [T; N] {
    const MIN_ENCODED_LEN: usize = T::MIN_ENCODED_LEN * N;
    const ARRAY_IS_PLAIN: bool = T::ARRAY_IS_PLAIN;
    const LENGTH_CODE: u8 = if T::ARRAY_IS_PLAIN { 4 } else { 5 };
    const INITIAL_HEAP_LEN: usize = T::INITIAL_HEAP_LEN * N;

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        if is_delimited(e.representation(), T::ARRAY_IS_PLAIN) {
            e.delimited(&ArrayElements(self))
        } else {
            T::encode_array(self, e)
        }
    }

    #[inline]
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if is_delimited(d.representation(), T::ARRAY_IS_PLAIN) {
            delimited_exactly(d, |d| T::decode_array(self, d))
        } else {
            T::decode_array(self, d)
        }
    }

    #[inline]
    fn initial() -> Self {
        core::array::from_fn(|_| T::initial())
    }

    #[inline]
    fn reset(&mut self) {
        self.iter_mut().for_each(T::reset);
    }

    fn extend(extent: Extent) -> Extent {
        let extent = if is_delimited(extent.representation(), T::ARRAY_IS_PLAIN) { extent.add(4, 4) } else { extent };
        Self::extend_array(extent)
    }

    fn extend_array(extent: Extent) -> Extent {
        extent.repeat(N, T::extend_array)
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Self::describe_array(types, &mut Vec::new())
    }

    fn describe_array(types: &mut TypeCollector<'_>, dimensions: &mut Vec<u32>) -> TypeIdentifiers {
        dimensions.push(wire_bound(N));
        T::describe_array(types, dimensions)
    }

    #[inline]
    fn encode_array<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        T::encode_array(values.as_flattened(), e)
    }

    #[inline]
    fn decode_array(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        T::decode_array(values.as_flattened_mut(), d)
    }
}

impl<T: CdrValue> CdrValue for Box<T> {
    const IS_EXTERNAL: bool = true;
    const MIN_ENCODED_LEN: usize = T::MIN_ENCODED_LEN;
    const IS_PRIMITIVE: bool = T::IS_PRIMITIVE;
    const LENGTH_CODE: u8 = T::LENGTH_CODE;
    const INITIAL_HEAP_LEN: usize = size_of::<T>() + T::INITIAL_HEAP_LEN;

    #[inline]
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        e.nested(&Value::<T>(self))
    }

    #[inline]
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        d.nested(|d| T::decode(self, d))
    }

    #[inline]
    fn initial() -> Self {
        Self::new(T::initial())
    }

    #[inline]
    fn reset(&mut self) {
        T::reset(self);
    }

    #[inline]
    fn extend(extent: Extent) -> Extent {
        extent.nested(T::extend)
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        T::describe(types)
    }
}
