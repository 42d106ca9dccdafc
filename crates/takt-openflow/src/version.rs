//! Versions of the OpenFlow protocol, and the bitmap of them that HELLO carries (OF 1.3.5 §7.5.1).

use core::fmt;

/// A version of the wire protocol that this crate encodes and decodes.
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
    /// All of them, the lowest first.
    pub const ALL: [Self; 4] = [Self::V1_0, Self::V1_3, Self::V1_4, Self::V1_5];

    /// The octet of the header.
    pub const fn octet(self) -> u8 {
        self as u8
    }

    /// The version of a header's octet, if it is one of [`Self::ALL`].
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

/// A set of [`Version`]s: the versions that one end of a channel is willing to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Bit n stands for wire version n, as in the bitmap of HELLO.
    bits: u32,
}

impl Versions {
    /// Every version that this crate has.
    pub const ALL: Self = Self { bits: 0x72 };

    /// The versions of a slice.
    pub const fn of(versions: &[Version]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < versions.len() {
            bits |= 1 << versions[index].octet();
            index += 1;
        }
        Self { bits }
    }

    /// The versions of a bitmap; bits of versions that this crate does not have are left out.
    pub const fn from_bitmap(bits: u32) -> Self {
        Self { bits: bits & Self::ALL.bits }
    }

    /// The bitmap, bit n for wire version n.
    pub const fn bitmap(self) -> u32 {
        self.bits
    }

    /// Whether `version` is one of them.
    pub const fn contains(self, version: Version) -> bool {
        self.bits & 1 << version.octet() != 0
    }

    /// The highest of them.
    pub fn highest(self) -> Option<Version> {
        Version::ALL.into_iter().rev().find(|version| self.contains(*version))
    }

    /// The highest that both sets have.
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
