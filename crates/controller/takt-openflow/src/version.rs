//! Versions of the OpenFlow protocol, and their bitmap in HELLO (OF 1.3.5 §7.5.1).

use core::fmt;

/// Version of the wire protocol that this crate encodes and decodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// OpenFlow 1.0, wire version 0x01.
    V1_0 = 1,
    /// OpenFlow 1.3, wire version 0x04.
    V1_3 = 4,
    /// OpenFlow 1.4, wire version 0x05.
    V1_4 = 5,
    /// OpenFlow 1.5, wire version 0x06.
    V1_5 = 6,
}

impl Version {
    /// All versions, in ascending order.
    pub const ALL: [Self; 4] = [Self::V1_0, Self::V1_3, Self::V1_4, Self::V1_5];

    /// Returns the octet in the header.
    pub const fn octet(self) -> u8 {
        self as u8
    }

    /// Returns the version of an octet in the header, if it is one of [`Self::ALL`].
    pub const fn from_octet(octet: u8) -> Option<Self> {
        match octet {
            1 => Some(Self::V1_0),
            4 => Some(Self::V1_3),
            5 => Some(Self::V1_4),
            6 => Some(Self::V1_5),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_0 => "1.0",
            Self::V1_3 => "1.3",
            Self::V1_4 => "1.4",
            Self::V1_5 => "1.5",
        })
    }
}

/// Set of [`Version`]s that one end of a channel supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Bitmap as in HELLO. Bit n stands for wire version n.
    bits: u32,
}

impl Versions {
    /// All versions of this crate.
    pub const ALL: Self = Self { bits: 0x72 };

    /// Creates a set from a slice.
    pub const fn of(versions: &[Version]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < versions.len() {
            bits |= 1 << versions[index].octet();
            index += 1;
        }
        Self { bits }
    }

    /// Creates a set from a bitmap. Bits of versions that this crate does not have are ignored.
    pub const fn from_bitmap(bits: u32) -> Self {
        Self { bits: bits & Self::ALL.bits }
    }

    /// Returns the bitmap, with bit n for wire version n.
    pub const fn bitmap(self) -> u32 {
        self.bits
    }

    /// Reports whether the set contains `version`.
    pub const fn contains(self, version: Version) -> bool {
        self.bits & 1 << version.octet() != 0
    }

    /// Returns the highest version of the set.
    pub fn highest(self) -> Option<Version> {
        Version::ALL.into_iter().rev().find(|version| self.contains(*version))
    }

    /// Returns the highest version in both sets.
    pub fn highest_common(self, other: Self) -> Option<Version> {
        Self { bits: self.bits & other.bits }.highest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_and_versions_agree() {
        for version in Version::ALL {
            assert_eq!(Version::from_octet(version.octet()), Some(version));
        }
        for octet in [0, 2, 3, 7, 0xff] {
            assert_eq!(Version::from_octet(octet), None);
        }
    }

    #[test]
    fn all_versions_have_the_bitmap_of_open_vswitch() {
        assert_eq!(Versions::of(&Version::ALL), Versions::ALL);
        assert_eq!(Versions::ALL.bitmap(), 0x72);
        assert_eq!(Versions::from_bitmap(u32::MAX), Versions::ALL);
    }

    #[test]
    fn highest_common_version_is_in_both_sets() {
        let old = Versions::of(&[Version::V1_0, Version::V1_3]);
        assert_eq!(Versions::ALL.highest_common(old), Some(Version::V1_3));
        assert_eq!(Versions::of(&[Version::V1_4]).highest_common(old), None);
        assert_eq!(Versions::default().highest(), None);
    }
}
