//! Protocol versions and vendor ids (RTPS 2.5 §8.3.5).

use core::fmt;

/// RTPS version of a message or participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProtocolVersion {
    /// Major version; versions that differ in it are incompatible. This crate reads major version 2
    /// only.
    pub major: u8,
    /// Minor version; versions that differ in it are compatible.
    pub minor: u8,
}

impl ProtocolVersion {
    /// RTPS 2.1, the oldest version still in use.
    pub const V2_1: Self = Self { major: 2, minor: 1 };
    /// RTPS 2.5, the version that this crate writes.
    pub const V2_5: Self = Self { major: 2, minor: 5 };
}

impl Default for ProtocolVersion {
    fn default() -> Self {
        Self::V2_5
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Vendor id of an implementation, assigned by the OMG.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// Unknown vendor.
    pub const UNKNOWN: Self = Self([0, 0]);
    /// RTI Connext DDS.
    pub const RTI: Self = Self([0x01, 0x01]);
    /// OpenSplice DDS.
    pub const OPENSPLICE: Self = Self([0x01, 0x02]);
    /// OpenDDS.
    pub const OPENDDS: Self = Self([0x01, 0x03]);
    /// Twin Oaks CoreDX DDS.
    pub const COREDX: Self = Self([0x01, 0x06]);
    /// RTI Connext Micro.
    pub const RTI_MICRO: Self = Self([0x01, 0x0a]);
    /// eProsima Fast DDS.
    pub const EPROSIMA: Self = Self([0x01, 0x0f]);
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: Self = Self([0x01, 0x10]);
    /// GurumNetworks GurumDDS.
    pub const GURUM: Self = Self([0x01, 0x11]);
    /// Atostek RustDDS.
    pub const RUSTDDS: Self = Self([0x01, 0x12]);
    /// S2E Dust DDS.
    pub const DUST: Self = Self([0x01, 0x14]);
    /// Takt. The OMG has not assigned an id to Takt. 01.7a was free when it was chosen; an assigned
    /// id will replace it.
    pub const TAKT: Self = Self([0x01, 0x7a]);

    /// Returns the name of the product, if the id is known.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::RTI => "RTI Connext DDS",
            Self::OPENSPLICE => "OpenSplice DDS",
            Self::OPENDDS => "OpenDDS",
            Self::COREDX => "CoreDX DDS",
            Self::RTI_MICRO => "RTI Connext Micro",
            Self::EPROSIMA => "eProsima Fast DDS",
            Self::CYCLONE => "Eclipse Cyclone DDS",
            Self::GURUM => "GurumDDS",
            Self::RUSTDDS => "RustDDS",
            Self::DUST => "Dust DDS",
            Self::TAKT => "Takt",
            _ => return None,
        })
    }
}

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}.{:02x}", self.0[0], self.0[1])?;
        match self.name() {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn display_names_known_vendors_and_numbers_the_others() {
        assert_eq!(VendorId::CYCLONE.to_string(), "01.10 (Eclipse Cyclone DDS)");
        assert_eq!(VendorId([0x01, 0xfe]).to_string(), "01.fe");
        assert_eq!(ProtocolVersion::V2_5.to_string(), "2.5");
    }

    #[test]
    fn versions_order_by_major_first() {
        let v3_0 = ProtocolVersion { major: 3, minor: 0 };
        assert!(ProtocolVersion::V2_1 < ProtocolVersion::V2_5 && ProtocolVersion::V2_5 < v3_0);
    }
}
