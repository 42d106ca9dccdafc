//! Traits of types: [`CdrValue`], types with an encoding, and [`TypeSupport`], topic types.

use alloc::vec::Vec;

use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::type_object::{TypeInformation, TypeRegistry};
use crate::{DecodeError, Decoder, EncodeError, Encoder, Extensibility, Extent, Representation, Scope, Sink, payload};

/// Value with an XCDR encoding. The derive implements it; this crate implements it for the types of
/// members.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an IDL type",
    label = "not an IDL type",
    note = "types with an encoding: bool, u8..u64, i8..i64, f32, f64, Uint8, Char8, Char16, String, WString, Vec, arrays, \
            BTreeMap, Box, and types that derive DdsType; Option only as the type of a struct's field"
)]
pub trait CdrValue: Sized {
    /// Lower bound of the encoded length in either representation. Counts are checked against it.
    const MIN_ENCODED_LEN: usize;

    /// True for primitive types of XTypes 1.3 §7.2.2. Collections of other types are delimited in
    /// XCDR2. Enumerations and bitmasks are not primitive.
    ///
    /// INTEROP(Fast-CDR 2.3): writes no DHEADER for sequences of enumerations; CycloneDDS 11 does,
    /// and so does Takt.
    const IS_PRIMITIVE: bool = false;

    /// True if an array of this type has no DHEADER: primitives, and arrays of them (an array of
    /// arrays is one array with several dimensions).
    const ARRAY_IS_PLAIN: bool = Self::IS_PRIMITIVE;

    /// True for `@external`: a [`Box`](alloc::boxed::Box).
    const IS_EXTERNAL: bool = false;

    /// Length code of a member of this type (XTypes 1.3 §7.4.3.4.2): 0 to 3 for 1, 2, 4 and 8
    /// bytes; 4 for a separate NEXTINT; 5, 6 and 7 if the encoding starts with a count of 1-, 4- or
    /// 8-byte units.
    const LENGTH_CODE: u8 = 4;

    /// Bytes of heap memory that [`initial`](Self::initial) allocates: the content of a
    /// [`Box`](alloc::boxed::Box).
    const INITIAL_HEAP_LEN: usize = 0;

    /// Appends the encoding of the value.
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError>;

    /// Decodes into the value and reuses its memory. After an error, the value is valid but
    /// unspecified.
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;

    /// Returns the default value of the type (XTypes 1.3 §7.2.2): zero, empty, the default
    /// enumerator, a union's first case.
    fn initial() -> Self;

    /// Sets the default value and keeps memory where possible.
    fn reset(&mut self) {
        *self = Self::initial();
    }

    /// Advances a worst-case position past a value of this type.
    fn extend(extent: Extent) -> Extent;

    /// Describes the type as specified in XTypes 1.3 §7.3.4, and registers its type objects and
    /// those that it needs.
    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers;

    /// Describes an array of this type; `dimensions` are the outer ones, outermost first. See
    /// [`describe`](Self::describe).
    fn describe_array(types: &mut TypeCollector<'_>, dimensions: &mut Vec<u32>) -> TypeIdentifiers {
        Self::describe(types).array(dimensions, Self::IS_EXTERNAL)
    }

    /// Advances a worst-case position past an element of an array.
    #[inline]
    fn extend_array(extent: Extent) -> Extent {
        Self::extend(extent)
    }

    /// Encodes the elements of a sequence without the count.
    #[inline]
    fn encode_slice<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        values.iter().try_for_each(|value| value.encode(e))
    }

    /// Decodes elements in place.
    #[inline]
    fn decode_slice(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        values.iter_mut().try_for_each(|value| value.decode(d))
    }

    /// Encodes the elements of an array: like those of a sequence, but inner arrays are further
    /// dimensions.
    #[inline]
    fn encode_array<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        Self::encode_slice(values, e)
    }

    /// Decodes the elements of an array in place.
    #[inline]
    fn decode_array(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Self::decode_slice(values, d)
    }

    /// Decodes `count` elements and reuses existing ones. The count has been checked.
    fn decode_vec(values: &mut Vec<Self>, count: usize, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        d.charge(count, size_of::<Self>() + Self::INITIAL_HEAP_LEN)?;
        values.truncate(count);
        Self::decode_slice(values, d)?;
        values.reserve(count - values.len());
        while values.len() < count {
            let mut value = Self::initial();
            value.decode(d)?;
            values.push(value);
        }
        Ok(())
    }
}

/// Topic type. Derived for structs and unions unless they are `#[dds(nested)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a topic type",
    note = "topic types are structs and unions that derive DdsType without `#[dds(nested)]`"
)]
pub trait TypeSupport: CdrValue + Default + Send + 'static {
    /// Name under which the type is registered and matched, e.g. `module::Name`.
    const TYPE_NAME: &'static str;
    /// Extensibility.
    const EXTENSIBILITY: Extensibility;
    /// True if the topic has instances.
    const HAS_KEY: bool;

    /// Registers the type objects of the type and its dependencies. Returns the type information to
    /// announce.
    ///
    /// Allocates; called when an endpoint is created.
    fn type_information(types: &mut TypeRegistry) -> TypeInformation {
        let identifiers = Self::describe(&mut TypeCollector::new(types));
        TypeInformation {
            minimal: types.with_dependencies(&identifiers.minimal),
            complete: types.with_dependencies(&identifiers.complete),
        }
    }

    /// Returns the maximum length of a payload in bytes, encapsulation header and padding included;
    /// `None` if it is unbounded.
    fn max_serialized_len(representation: Representation) -> Option<usize> {
        payload::padded_len(Self::extend(Extent::new(representation, Scope::Sample)).end()?)
    }

    /// Returns the maximum length of the key in bytes as it is hashed (XTypes 1.3 §7.6.8); `None`
    /// if it is unbounded.
    #[inline]
    fn max_key_len(representation: Representation) -> Option<usize> {
        if !Self::HAS_KEY {
            return Some(0);
        }
        Self::extend(Extent::new(representation, Scope::KeyHash)).end()
    }
}
