//! TypeIdentifier: the complete description of a simple type, or the hash of a type object
//! (XTypes 1.3 §7.3.4.2 and Annex B).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;

use takt_derive::DdsType;

use super::kind::*;
use super::{decode_plain, encode_plain};
use crate::describe::{TypeCollector, TypeIdentifiers};
use crate::{CdrValue, DecodeError, Decoder, EncodeError, Encoder, Extent, Sink};

/// First 14 octets of the MD5 of a type object in XCDR2, little-endian (XTypes 1.3 §7.3.1.2.1).
pub(crate) type EquivalenceHash = [u8; 14];

/// Identifier of a type. It fully describes primitive types, strings and plain collections. All
/// other types are identified by the hash of their [`TypeObject`](crate::type_object::TypeObject).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeIdentifier(pub(crate) Identifier);

/// Union TypeIdentifier of Annex B, with one variant per discriminator, so that none is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
pub(crate) enum Identifier {
    #[default]
    #[dds(case = TK_NONE)]
    None,
    #[dds(case = TK_BOOLEAN)]
    Boolean,
    #[dds(case = TK_BYTE)]
    Byte,
    #[dds(case = TK_INT16)]
    Int16,
    #[dds(case = TK_INT32)]
    Int32,
    #[dds(case = TK_INT64)]
    Int64,
    #[dds(case = TK_UINT16)]
    Uint16,
    #[dds(case = TK_UINT32)]
    Uint32,
    #[dds(case = TK_UINT64)]
    Uint64,
    #[dds(case = TK_FLOAT32)]
    Float32,
    #[dds(case = TK_FLOAT64)]
    Float64,
    #[dds(case = TK_FLOAT128)]
    Float128,
    #[dds(case = TK_INT8)]
    Int8,
    #[dds(case = TK_UINT8)]
    Uint8,
    #[dds(case = TK_CHAR8)]
    Char8,
    #[dds(case = TK_CHAR16)]
    Char16,
    #[dds(case = TI_STRING8_SMALL)]
    String8Small(u8),
    #[dds(case = TI_STRING8_LARGE)]
    String8Large(u32),
    #[dds(case = TI_STRING16_SMALL)]
    String16Small(u8),
    #[dds(case = TI_STRING16_LARGE)]
    String16Large(u32),
    #[dds(case = TI_PLAIN_SEQUENCE_SMALL)]
    SequenceSmall(SequenceSmall),
    #[dds(case = TI_PLAIN_SEQUENCE_LARGE)]
    SequenceLarge(SequenceLarge),
    #[dds(case = TI_PLAIN_ARRAY_SMALL)]
    ArraySmall(ArraySmall),
    #[dds(case = TI_PLAIN_ARRAY_LARGE)]
    ArrayLarge(ArrayLarge),
    #[dds(case = TI_PLAIN_MAP_SMALL)]
    MapSmall(MapSmall),
    #[dds(case = TI_PLAIN_MAP_LARGE)]
    MapLarge(MapLarge),
    #[dds(case = TI_STRONGLY_CONNECTED_COMPONENT)]
    Component(ComponentId),
    #[dds(case = EK_MINIMAL)]
    Minimal(EquivalenceHash),
    #[dds(case = EK_COMPLETE)]
    Complete(EquivalenceHash),
}

/// PlainCollectionHeader.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct Header {
    pub equiv_kind: u8,
    pub element_flags: MemberFlag,
}

/// PlainSequenceSElemDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct SequenceSmall {
    pub header: Header,
    pub bound: u8,
    pub element: External,
}

/// PlainSequenceLElemDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct SequenceLarge {
    pub header: Header,
    pub bound: u32,
    pub element: External,
}

/// PlainArraySElemDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct ArraySmall {
    pub header: Header,
    pub bounds: Vec<u8>,
    pub element: External,
}

/// PlainArrayLElemDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct ArrayLarge {
    pub header: Header,
    pub bounds: Vec<u32>,
    pub element: External,
}

/// PlainMapSTypeDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct MapSmall {
    pub header: Header,
    pub bound: u8,
    pub element: External,
    pub key_flags: MemberFlag,
    pub key: External,
}

/// PlainMapLTypeDefn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final")]
pub(crate) struct MapLarge {
    pub header: Header,
    pub bound: u32,
    pub element: External,
    pub key_flags: MemberFlag,
    pub key: External,
}

/// TypeObjectHashId.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "final", discriminator = "u8")]
pub(crate) enum HashId {
    #[dds(case = EK_COMPLETE)]
    Complete(EquivalenceHash),
    #[dds(case = EK_MINIMAL)]
    Minimal(EquivalenceHash),
}

/// StronglyConnectedComponentId: one of several mutually recursive types (XTypes 1.3 §7.3.4.9).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, DdsType)]
#[dds(crate = "crate", nested, extensibility = "appendable")]
pub(crate) struct ComponentId {
    pub hash: HashId,
    pub length: i32,
    pub index: i32,
}

/// Identifier of an element. It is boxed, because the union contains itself through it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct External(pub Box<Identifier>);

impl CdrValue for External {
    const MIN_ENCODED_LEN: usize = Identifier::MIN_ENCODED_LEN;
    /// Length of the box alone: its initial value has no heap memory.
    const INITIAL_HEAP_LEN: usize = size_of::<Identifier>();

    fn encode<S: Sink>(&self, e: &mut Encoder<S>) -> Result<(), EncodeError> {
        self.0.encode(e)
    }

    fn decode(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        // Decoding the content creates at most two boxes (key and element).
        d.charge(2, Self::INITIAL_HEAP_LEN)?;
        self.0.decode(d)
    }

    fn initial() -> Self {
        Self::default()
    }

    fn extend(extent: Extent) -> Extent {
        extent.unbounded()
    }

    fn describe(types: &mut TypeCollector<'_>) -> TypeIdentifiers {
        Identifier::describe(types)
    }
}

impl External {
    pub(crate) fn new(identifier: Identifier) -> Self {
        Self(Box::new(identifier))
    }
}

impl Borrow<Identifier> for TypeIdentifier {
    fn borrow(&self) -> &Identifier {
        &self.0
    }
}

impl TypeIdentifier {
    /// Parses XCDR2, little-endian, without encapsulation. Bytes after the value are ignored.
    ///
    /// # Errors
    /// Fails if the bytes are not an identifier, or nest deeper than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode_plain(bytes).map(Self)
    }

    /// Serializes to XCDR2, little-endian, without encapsulation.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_plain(&self.0)
    }

    /// Reports whether this is the hash of a complete type object, or a member of a component of
    /// such.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            Identifier::Complete(_) => true,
            Identifier::Component(component) => matches!(component.hash, HashId::Complete(_)),
            _ => false,
        }
    }

    /// Reports whether this is the hash of a minimal type object, or a member of a component of
    /// such.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        match &self.0 {
            Identifier::Minimal(_) => true,
            Identifier::Component(component) => matches!(component.hash, HashId::Minimal(_)),
            _ => false,
        }
    }

    /// Returns the equivalence hash; `None` for an identifier that fully describes the type.
    #[must_use]
    pub fn hash(&self) -> Option<[u8; 14]> {
        match &self.0 {
            Identifier::Minimal(hash) | Identifier::Complete(hash) => Some(*hash),
            Identifier::Component(ComponentId { hash: HashId::Complete(hash) | HashId::Minimal(hash), .. }) => {
                Some(*hash)
            }
            _ => None,
        }
    }

    /// Reports whether this identifies no type.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0 == Identifier::None
    }
}

impl Identifier {
    /// Passes the hash identifiers that this one contains to `visit`: itself, or those of its
    /// elements.
    pub(crate) fn for_each_hash<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        match self {
            Self::Minimal(_) | Self::Complete(_) | Self::Component(_) => visit(self),
            Self::SequenceSmall(SequenceSmall { element, .. })
            | Self::SequenceLarge(SequenceLarge { element, .. })
            | Self::ArraySmall(ArraySmall { element, .. })
            | Self::ArrayLarge(ArrayLarge { element, .. }) => element.0.for_each_hash(visit),
            Self::MapSmall(MapSmall { element, key, .. }) | Self::MapLarge(MapLarge { element, key, .. }) => {
                key.0.for_each_hash(visit);
                element.0.for_each_hash(visit);
            }
            _ => {}
        }
    }

    /// Returns the equivalence kind of a collection of this type.
    fn equivalence(&self) -> u8 {
        let mut kind = EK_BOTH;
        self.for_each_hash(&mut |identifier| {
            let complete = TypeIdentifier(identifier.clone()).is_complete();
            kind = if complete { EK_COMPLETE } else { EK_MINIMAL };
        });
        kind
    }

    /// Returns `string<bound>`; 0 means unbounded.
    pub(crate) fn string8(bound: u32) -> Self {
        u8::try_from(bound).map_or(Self::String8Large(bound), Self::String8Small)
    }

    /// Returns `wstring<bound>`; 0 means unbounded.
    pub(crate) fn string16(bound: u32) -> Self {
        u8::try_from(bound).map_or(Self::String16Large(bound), Self::String16Small)
    }

    /// Returns `sequence<element, bound>`; 0 means unbounded.
    pub(crate) fn sequence(element: Self, element_flags: MemberFlag, bound: u32) -> Self {
        let header = Header { equiv_kind: element.equivalence(), element_flags };
        let element = External::new(element);
        match u8::try_from(bound) {
            Ok(bound) => Self::SequenceSmall(SequenceSmall { header, bound, element }),
            Err(_) => Self::SequenceLarge(SequenceLarge { header, bound, element }),
        }
    }

    /// Returns `element name[bounds..]`.
    pub(crate) fn array(element: Self, element_flags: MemberFlag, bounds: &[u32]) -> Self {
        let header = Header { equiv_kind: element.equivalence(), element_flags };
        let element = External::new(element);
        let small: Option<Vec<u8>> = bounds.iter().map(|&bound| u8::try_from(bound).ok()).collect();
        match small {
            Some(bounds) => Self::ArraySmall(ArraySmall { header, bounds, element }),
            None => Self::ArrayLarge(ArrayLarge { header, bounds: bounds.to_vec(), element }),
        }
    }

    /// Returns `map<key, element, bound>`; 0 means unbounded.
    pub(crate) fn map(key: Self, element: Self, flags: MemberFlag, bound: u32) -> Self {
        let equiv_kind = match (key.equivalence(), element.equivalence()) {
            (EK_BOTH, kind) | (kind, _) => kind,
        };
        let header = Header { equiv_kind, element_flags: flags };
        let (key, element, key_flags) = (External::new(key), External::new(element), flags);
        match u8::try_from(bound) {
            Ok(bound) => Self::MapSmall(MapSmall { header, bound, element, key_flags, key }),
            Err(_) => Self::MapLarge(MapLarge { header, bound, element, key_flags, key }),
        }
    }
}

/// Displays the kind, and the hash in hexadecimal if there is one.
impl fmt::Display for TypeIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Identifier::Component(component) => {
                write!(f, "component {}/{} ", component.index, component.length)?;
                if self.is_complete() { "complete" } else { "minimal" }
            }
            Identifier::Complete(_) => "complete",
            Identifier::Minimal(_) => "minimal",
            other => return write!(f, "{other:?}"),
        };
        f.write_str(kind)?;
        f.write_str(" ")?;
        self.hash().iter().flatten().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
