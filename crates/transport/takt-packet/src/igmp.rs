//! IGMP (RFC 2236, RFC 3376): group memberships of the hosts in a network.
//!
//! Parsed are queries of all versions and reports of version 2; written are reports of versions 2
//! and 3 and the leave message of version 2. Source filters are not supported: a report of version
//! 3 includes all sources.

use core::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::error::{header, room};
use crate::{Malformed, NoRoom};

/// Protocol number of IGMP.
pub const IGMP: u8 = 2;

/// Membership query or report. IP carries it with a TTL of 1 and the router alert option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgmpMessage {
    /// Query of a router for the members of a group, or of any group (the unspecified address).
    Query {
        /// Version of the protocol: 1, 2 or 3.
        version: u8,
        /// Group, or the unspecified address.
        group: Ipv4Addr,
        /// Maximum response time in tenths of a second.
        max_response: u16,
    },
    /// Membership report of version 2.
    ReportV2(Ipv4Addr),
    /// Leave message of version 2.
    LeaveV2(Ipv4Addr),
    /// Report of version 3 that the host leaves a group.
    LeaveV3(Ipv4Addr),
    /// Membership report of version 3 for all sources of a group.
    ReportV3 {
        /// Group of the membership.
        group: Ipv4Addr,
        /// Whether the membership begins now; if not, the report answers a query.
        is_change: bool,
    },
}

impl IgmpMessage {
    /// Maximum length of a written message, in octets.
    pub const LEN_MAX: usize = 16;

    /// Destination of reports of version 3 (RFC 3376 §4.2.14).
    pub const REPORTS_V3: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);

    /// Destination of leave messages: all routers (RFC 2236 §3).
    pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

    /// Parses the whole payload of an IP packet, and verifies its checksum. Of a version 3 report,
    /// only the first record is parsed, and only if this crate writes its kind.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; 8] = header(bytes, "truncated IGMP message")?;
        let mut sum = Sum::default();
        sum.add(bytes);
        if sum.checksum() != 0 {
            return Err(Malformed { offset: 2, what: "IGMP message with a wrong checksum" });
        }
        let group = Ipv4Addr::new(fixed[4], fixed[5], fixed[6], fixed[7]);
        match fixed[0] {
            0x11 => {
                // RFC 3376 §7.1: length and response time determine the version.
                let version = match (bytes.len(), fixed[1]) {
                    (8, 0) => 1,
                    (8, _) => 2,
                    (12.., _) => 3,
                    _ => return Err(Malformed { offset: 8, what: "IGMP query of unknown version" }),
                };
                let max_response = match (version, fixed[1]) {
                    (1, _) => 100,
                    (3, code @ 128..) => (u16::from(code & 0x0f) | 0x10) << (u16::from(code >> 4 & 7) + 3),
                    (_, code) => u16::from(code),
                };
                Ok(Self::Query { version, group, max_response })
            }
            0x16 => Ok(Self::ReportV2(group)),
            0x17 => Ok(Self::LeaveV2(group)),
            0x22 => {
                let record: &[u8; 16] = header(bytes, "IGMP report without a record")?;
                let group = Ipv4Addr::new(record[12], record[13], record[14], record[15]);
                // Kind of record, and the number of its sources: all but none, or none.
                match (record[8], record[10], record[11]) {
                    (2, 0, 0) => Ok(Self::ReportV3 { group, is_change: false }),
                    (4, 0, 0) => Ok(Self::ReportV3 { group, is_change: true }),
                    (3, 0, 0) => Ok(Self::LeaveV3(group)),
                    _ => Err(Malformed { offset: 8, what: "IGMP report with an unsupported record type" }),
                }
            }
            _ => Err(Malformed { offset: 0, what: "unsupported type of IGMP message" }),
        }
    }

    /// Returns the IP destination of the message.
    pub fn destination(&self) -> Ipv4Addr {
        match self {
            Self::Query { group, .. } if group.is_unspecified() => Ipv4Addr::new(224, 0, 0, 1),
            Self::Query { group, .. } | Self::ReportV2(group) => *group,
            Self::LeaveV2(_) => Self::ALL_ROUTERS,
            Self::ReportV3 { .. } | Self::LeaveV3(_) => Self::REPORTS_V3,
        }
    }

    /// Writes the message with its checksum to the start of `into`, and returns its length. Queries
    /// of version 3 ask for all sources; response times above 12.7 s are written as 12.7 s.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, code, group, len) = match *self {
            Self::Query { version, group, max_response } => {
                let code = if version == 1 { 0 } else { max_response.min(127) as u8 };
                (0x11, code, group, if version == 3 { 12 } else { 8 })
            }
            Self::ReportV2(group) => (0x16, 0, group, 8),
            Self::LeaveV2(group) => (0x17, 0, group, 8),
            Self::ReportV3 { group, .. } | Self::LeaveV3(group) => (0x22, 0, group, 16),
        };
        let message = into.get_mut(..len).ok_or(NoRoom)?;
        message.fill(0);
        let fixed: &mut [u8; 8] = room(message)?;
        (fixed[0], fixed[1]) = (kind, code);
        let record = match self {
            Self::ReportV3 { is_change: false, .. } => Some(2),
            Self::LeaveV3(_) => Some(3),
            Self::ReportV3 { is_change: true, .. } => Some(4),
            _ => None,
        };
        match record {
            Some(kind) => {
                // One record, without sources.
                message[7] = 1;
                message[8] = kind;
                message[12..].copy_from_slice(&group.octets());
            }
            None => fixed[4..].copy_from_slice(&group.octets()),
        }
        let mut sum = Sum::default();
        sum.add(message);
        message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

    const ALL: [(IgmpMessage, usize); 9] = [
        (IgmpMessage::LeaveV3(GROUP), 16),
        (IgmpMessage::Query { version: 1, group: Ipv4Addr::UNSPECIFIED, max_response: 100 }, 8),
        (IgmpMessage::Query { version: 2, group: GROUP, max_response: 20 }, 8),
        (IgmpMessage::Query { version: 3, group: GROUP, max_response: 127 }, 12),
        (IgmpMessage::ReportV2(GROUP), 8),
        (IgmpMessage::LeaveV2(GROUP), 8),
        (IgmpMessage::ReportV3 { group: GROUP, is_change: false }, 16),
        (IgmpMessage::ReportV3 { group: GROUP, is_change: true }, 16),
        (IgmpMessage::Query { version: 2, group: Ipv4Addr::UNSPECIFIED, max_response: 1 }, 8),
    ];

    #[test]
    fn messages_round_trip() {
        for (message, len) in ALL {
            let mut bytes = [0xee; IgmpMessage::LEN_MAX];
            assert_eq!(message.emit(&mut bytes), Ok(len));
            assert_eq!(IgmpMessage::parse(&bytes[..len]), Ok(message));
            for cut in 0..len {
                // A truncated query of version 3 is one of version 2.
                let is_whole = (len, cut) == (12, 8);
                assert_eq!(IgmpMessage::parse(&bytes[..cut]).is_ok(), is_whole, "{message:?}: {cut} octets");
                assert_eq!(message.emit(&mut [0; 16][..cut]), Err(NoRoom));
            }
        }
    }

    #[test]
    fn every_damaged_octet_is_detected() {
        for (message, len) in ALL {
            let mut bytes = [0; IgmpMessage::LEN_MAX];
            message.emit(&mut bytes).expect("the buffer is large enough");
            for at in 0..len {
                let mut damaged = bytes;
                damaged[at] ^= 0x10;
                assert!(IgmpMessage::parse(&damaged[..len]).is_err(), "{message:?}: octet {at}");
            }
        }
    }

    #[test]
    fn report_of_version_3_equals_that_of_the_kernel() {
        // RFC 3376 §4.2: type, reserved, checksum, reserved, one record; change to "exclude none".
        let mut bytes = [0; 16];
        IgmpMessage::ReportV3 { group: GROUP, is_change: true }.emit(&mut bytes).expect("the buffer is large enough");
        assert_eq!(bytes, [0x22, 0, 0xe9, 0xfd, 0, 0, 0, 1, 4, 0, 0, 0, 239, 255, 0, 1]);
    }

    #[test]
    fn long_response_times_have_an_exponent() {
        let mut bytes = [0; 12];
        IgmpMessage::Query { version: 3, group: GROUP, max_response: 1 }.emit(&mut bytes).expect("enough space");
        bytes[1] = 0x92;
        bytes[2..4].fill(0);
        let mut sum = Sum::default();
        sum.add(&bytes);
        bytes[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        // RFC 3376 §4.1.1: (2 | 0x10) << (1 + 3).
        assert!(matches!(IgmpMessage::parse(&bytes), Ok(IgmpMessage::Query { max_response: 288, .. })));
    }
}
