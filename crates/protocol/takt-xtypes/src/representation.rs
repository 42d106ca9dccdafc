//! Encoding versions, extensibility kinds, byte order, and the encapsulation identifiers that
//! combine them.
//!
//! The identifiers are those of RTPS 2.5 §10 and XTypes 1.3 §7.6.3.1.2.

/// Encoding version, which the DATA_REPRESENTATION policy selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Representation {
    /// XCDR version 1: classic CDR, 8-byte alignment, PL_CDR for mutable types. Policy value 0.
    Xcdr1,
    /// XCDR version 2: 4-byte alignment, delimiters, EMHEADERs. Policy value 2.
    Xcdr2,
}

/// Extensibility kind: the permitted differences between a writer's and a reader's type
/// (XTypes 1.3 §7.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// No differences.
    Final,
    /// Members may be missing or added at the end.
    Appendable,
    /// Members are identified by id, in any order.
    Mutable,
}

/// Byte order of multi-byte primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Most significant byte first.
    Big,
    /// Least significant byte first. Takt writes this order.
    Little,
}

impl Representation {
    /// Returns the maximum alignment of a primitive in this version, in bytes.
    #[inline]
    pub(crate) const fn max_alignment(self) -> usize {
        match self {
            Self::Xcdr1 => 8,
            Self::Xcdr2 => 4,
        }
    }
}

/// Returns the encapsulation identifier with the byte-order bit clear (big-endian).
///
/// The identifiers are, in the order of the arms: `CDR`, `PL_CDR`, `CDR2`, `D_CDR2`, `PL_CDR2`.
const fn big_endian_identifier(representation: Representation, extensibility: Extensibility) -> u16 {
    match (representation, extensibility) {
        (Representation::Xcdr1, Extensibility::Final | Extensibility::Appendable) => 0x0000,
        (Representation::Xcdr1, Extensibility::Mutable) => 0x0002,
        (Representation::Xcdr2, Extensibility::Final) => 0x0006,
        (Representation::Xcdr2, Extensibility::Appendable) => 0x0008,
        (Representation::Xcdr2, Extensibility::Mutable) => 0x000a,
    }
}

/// Returns the encapsulation identifier of a top-level type.
pub(crate) const fn identifier(
    representation: Representation,
    extensibility: Extensibility,
    endianness: Endianness,
) -> u16 {
    let little = match endianness {
        Endianness::Big => 0,
        Endianness::Little => 1,
    };
    big_endian_identifier(representation, extensibility) | little
}

/// Returns the representation and byte order of an encapsulation identifier, if it is valid for a
/// type of this extensibility.
pub(crate) fn from_identifier(identifier: u16, extensibility: Extensibility) -> Option<(Representation, Endianness)> {
    let endianness = if identifier & 1 == 0 { Endianness::Big } else { Endianness::Little };
    [Representation::Xcdr1, Representation::Xcdr2]
        .into_iter()
        .find(|&representation| big_endian_identifier(representation, extensibility) == identifier & !1)
        .map(|representation| (representation, endianness))
}
