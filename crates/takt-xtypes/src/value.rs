//! The two traits of a type: [`CdrValue`], what has an encoding, and [`TypeSupport`], what can be published.

use alloc::vec::Vec;

use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::type_object::{TypeInformation, TypeRegistry};
use crate::{DecodeError, Decoder, EncodeError, Encoder, Extensibility, Extent, Representation, Scope, Sink, payload};

/// A value with an XCDR encoding. Derived; implemented here for everything that the types are made of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an IDL type",
    label = "not an IDL type",
    note = "types with an encoding: bool, u8..u64, i8..i64, f32, f64, Uint8, Char8, Char16, String, WString, Vec, arrays, \
            BTreeMap, Box, and what derives DdsType; Option only as the type of a struct's field"
)]
pub trait CdrValue: Sized {
    /// A lower bound of the encoded length in either representation: what a count is held against.
    const MIN_ENCODED_LEN: usize;

    /// A primitive type of XTypes 1.3 §7.2.2. Collections of anything else are delimited in XCDR2. Enumerations
    /// and bitmasks are not primitive.
    ///
    /// INTEROP(Fast-CDR 2.3): writes no DHEADER for sequences of enumerations; CycloneDDS 11 does, as we do.
    const IS_PRIMITIVE: bool = false;

    /// An array of these has no DHEADER: primitives, and arrays of them (an array of arrays is one array with several
    /// dimensions).
    const ARRAY_IS_PLAIN: bool = Self::IS_PRIMITIVE;

    /// `@external`: a [`Box`](alloc::boxed::Box).
    const IS_EXTERNAL: bool = false;

    /// The length code of a member of this type (XTypes 1.3 §7.4.3.4.2): 0 to 3 for 1, 2, 4 and 8 bytes; 4 for a
    /// NEXTINT of its own; 5, 6 and 7 where the encoding starts with a count of 1-, 4- or 8-byte units.
    const LENGTH_CODE: u8 = 4;

    /// Bytes of memory that [`initial`](Self::initial) allocates behind the value itself: what a [`Box`](alloc::boxed::Box) holds.
    const INITIAL_HEAP_LEN: usize = 0;

    /// Appends the encoding of the value.
    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError>;

    /// Replaces the value by what is read, reusing its memory. After an error the value is valid but unspecified.
    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;

    /// The default value of the type (XTypes 1.3 §7.2.2): zero, empty, the default enumerator, a union's first case.
    fn initial() -> Self;

    /// Sets the default value, keeping memory where that is possible.
    fn reset(&mut self) {
        *self = Self::initial();
    }

    /// Moves a worst-case position behind a value of this type.
    fn extend(extent: Extent) -> Extent;

    /// Says what the type is in the words of XTypes 1.3 §7.3.4, and registers its type objects and those it needs.
    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers;

    /// [`describe`](Self::describe) of an array of these; `dimensions` are the outer ones, outermost first.
    fn describe_array(types: &mut TypeCollector<'_>, dimensions: &mut Vec<u32>) -> TypeIdentifiers {
        Self::describe(types).array(dimensions, Self::IS_EXTERNAL)
    }

    /// Moves a worst-case position behind an element of an array.
    #[inline]
    fn extend_array(extent: Extent) -> Extent {
        Self::extend(extent)
    }

    /// Encodes elements of a sequence, without count.
    #[inline]
    fn encode_slice<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        values.iter().try_for_each(|value| value.encode(e))
    }

    /// Decodes elements in place.
    #[inline]
    fn decode_slice(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        values.iter_mut().try_for_each(|value| value.decode(d))
    }

    /// Encodes elements of an array: like a sequence's, save that inner arrays are further dimensions.
    #[inline]
    fn encode_array<S: Sink>(values: &[Self], e: &mut Encoder<S>) -> Result<(), EncodeError> {
        Self::encode_slice(values, e)
    }

    /// Decodes elements of an array in place.
    #[inline]
    fn decode_array(values: &mut [Self], d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Self::decode_slice(values, d)
    }

    /// Decodes `count` elements, a number that has been checked, reusing those that are there.
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

/// A type of topics. Derived for structs and unions unless they are `#[dds(nested)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of topics",
    note = "structs and unions that derive DdsType are, unless they are `#[dds(nested)]`"
)]
pub trait TypeSupport: CdrValue + Default + Send + 'static {
    /// The name under which the type is registered and matched, e.g. `module::Name`.
    const TYPE_NAME: &'static str;
    /// How the type may evolve.
    const EXTENSIBILITY: Extensibility;
    /// Whether the topic has instances.
    const HAS_KEY: bool;

    /// Registers the type objects of the type and of all it is made of, and says what to announce of it.
    ///
    /// Allocates; to be called when an endpoint is created.
    fn type_information(types: &mut TypeRegistry) -> TypeInformation {
        let identifiers = Self::describe(&mut TypeCollector::new(types));
        TypeInformation {
            minimal: types.with_dependencies(&identifiers.minimal),
            complete: types.with_dependencies(&identifiers.complete),
        }
    }

    /// The greatest length of a payload in bytes, encapsulation header and padding included; `None` if there is none.
    fn max_serialized_len(representation: Representation) -> Option<usize> {
        payload::padded_len(Self::extend(Extent::new(representation, Scope::Sample)).end()?)
    }

    /// The greatest length in bytes of the key as it is hashed (XTypes 1.3 §7.6.8); `None` if there is none.
    #[inline]
    fn max_key_len(representation: Representation) -> Option<usize> {
        if !Self::HAS_KEY {
            return Some(0);
        }
        Self::extend(Extent::new(representation, Scope::KeyHash)).end()
    }
}
