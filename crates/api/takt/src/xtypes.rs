//! Types of samples: field types of IDL, serialization, and types that are known at run time only
//! (XTypes 1.3).

pub use takt_xtypes::{
    Bounded, Char8, Char16, DecodeError, DecodeErrorKind, Decoded, EncodeError, Endianness, Extensibility, KeyHash,
    Representation, TypeSupport, Uint8, WString, bitmask, deserialize, serialize, serialized_len,
};

/// Samples and types that are known at run time only.
pub mod dynamic {
    pub use takt_xtypes::dynamic::{
        Chars, DynamicData, DynamicType, Field, FieldError, FieldKind, FieldPart, JsonValue, Scalar, Text, ValueError,
    };
}

/// Type objects and their identifiers, which endpoints announce (XTypes 1.3 §7.3.4).
pub mod type_object {
    pub use takt_xtypes::type_object::{
        TypeError, TypeIdentifier, TypeIdentifierWithDependencies, TypeInformation, TypeObject, TypeRegistry,
    };
}
