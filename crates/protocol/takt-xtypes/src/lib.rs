//! XCDR1 and XCDR2 serialization, type objects and dynamic types of DDS-XTypes.
//!
//! XTypes 1.3 §7.4 defines the encoding of IDL types; this crate implements it. A type is supported
//! by `#[derive(DdsType)]`. The derive implements [`CdrValue`] (encoding and decoding) and, for
//! topic types, [`TypeSupport`] (name, key, bounds). The middleware calls [`serialize`],
//! [`deserialize`] and [`key_hash`].
//!
//! | Rust | IDL |
//! |---|---|
//! | `bool`, `u8` .. `u64`, `i8` .. `i64`, `f32`, `f64` | `boolean`, `octet` .. `double` |
//! | [`Uint8`] | `uint8`, which is not `octet` where types are compared |
//! | [`Char8`], [`Char16`] | `char`, `wchar` |
//! | `String`, [`WString`] | `string`, `wstring` |
//! | `Vec<T>`, `[T; N]`, `BTreeMap<K, V>` | `sequence<T>`, `T name[N]`, `map<K, V>` |
//! | `Option<T>` as a field | `@optional` |
//! | `Box<T>` | `@external`, and what makes a type recursive |
//! | struct, unit-only enum, enum with data, [`bitmask!`] | `struct`, `enum`, `union`, `bitmask` |
//! | [`Bounded<T, N>`], `#[dds(bound = N)]` | `string<N>`, `sequence<T, N>`, `map<K, V, N>` |
//!
//! Modules about types:
//! - [`type_object`]: identifiers and definitions that participants exchange.
//!   [`TypeSupport::type_information`] returns those of a derived type.
//! - [`definition`]: types that are defined at run time.
//! - [`dynamic`]: values of types that are known at run time only.
//! - [`assignability`]: comparison of a reader's type with a writer's.
//! - [`sql`]: the language of content filters, evaluated on payloads.
//!
//! Invariants:
//! - Encoding writes into the caller's slice and never allocates.
//! - Decoding happens in place and reuses the capacity of existing `String` and `Vec` values, so it
//!   does not allocate in steady state. (`BTreeMap`, and an `Option` whose presence changes, do.)
//! - Decoding is bounded by its input: counts are checked against the remaining bytes before memory
//!   is reserved, nesting is limited to [`MAX_DEPTH`], and the memory of all elements is limited to
//!   a multiple of the payload.
//! - No input causes a panic.
//!
//! Not supported: `long double` (Rust has no 128-bit float).

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod assignability;
mod bitmask;
mod bounded;
mod collection;
mod decoder;
pub mod definition;
pub mod describe;
pub mod dynamic;
mod encoder;
mod error;
mod extent;
mod key;
mod map;
mod member;
mod parameter;
mod payload;
mod primitive;
mod representation;
mod sink;
pub mod sql;
pub mod structure;
mod text;
pub mod type_object;
pub mod union;
mod value;

pub use bounded::{Bounded, HasLength, check_decoded_bound, check_encoded_bound};
pub use decoder::Decoder;
pub use encoder::{Encoder, MAX_DEPTH, Scope};
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use extent::Extent;
pub use key::{KeyHash, key_digest_with, key_hash, key_hash_from_key_payload, key_hash_from_payload, key_hash_with};
pub use payload::{
    Decoded, ENCAPSULATION_LEN, deserialize, deserialize_key, deserialize_key_reporting, deserialize_reporting,
    encapsulation, measure, serialize, serialize_key, serialize_key_with, serialize_with, serialized_key_len,
    serialized_len,
};
pub use primitive::{Char8, Char16, Uint8};
pub use representation::{Endianness, Extensibility, Representation};
pub use sink::Sink;
pub use text::WString;
pub use value::{CdrValue, TypeSupport};
