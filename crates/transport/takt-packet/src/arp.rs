//! ARP (RFC 826) of IPv4 over Ethernet: requests and replies.

use core::net::Ipv4Addr;

use crate::error::{header, room};
use crate::{MacAddress, Malformed, NoRoom};

/// Operation of an ARP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpOperation {
    /// Requests the hardware address of the target.
    Request,
    /// States the hardware address of the sender.
    Reply,
}

/// ARP packet, for reading and writing: all its fields are fixed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpPacket {
    /// Operation of the packet.
    pub operation: ArpOperation,
    /// Addresses of the sender.
    pub sender: (MacAddress, Ipv4Addr),
    /// Addresses of the target; the hardware address in a request is meaningless.
    pub target: (MacAddress, Ipv4Addr),
}

/// Ethernet, IPv4, addresses of 6 and 4 octets.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];

impl ArpPacket {
    /// Length in octets; an Ethernet frame pads it.
    pub const LEN: usize = 28;

    /// Parses a packet; octets after it are padding.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; Self::LEN] = header(bytes, "truncated ARP packet")?;
        if bytes[..6] != ETHERNET_IPV4 {
            return Err(Malformed { offset: 0, what: "ARP for protocols other than IPv4 over Ethernet" });
        }
        let operation = match bytes[6..8] {
            [0, 1] => ArpOperation::Request,
            [0, 2] => ArpOperation::Reply,
            _ => return Err(Malformed { offset: 6, what: "ARP operation other than request and reply" }),
        };
        let host = |at: usize| {
            let (mut mac, mut ip) = ([0; 6], [0; 4]);
            mac.copy_from_slice(&bytes[at..at + 6]);
            ip.copy_from_slice(&bytes[at + 6..at + 10]);
            (MacAddress(mac), Ipv4Addr::from(ip))
        };
        Ok(Self { operation, sender: host(8), target: host(18) })
    }

    /// Writes the packet to the start of `into`, and returns its length.
    pub fn emit(&self, into: &mut [u8]) -> Result<usize, NoRoom> {
        let into: &mut [u8; Self::LEN] = room(into)?;
        into[..6].copy_from_slice(&ETHERNET_IPV4);
        into[6] = 0;
        into[7] = match self.operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
        };
        for (at, (mac, ip)) in [(8, self.sender), (18, self.target)] {
            into[at..at + 6].copy_from_slice(&mac.0);
            into[at + 6..at + 10].copy_from_slice(&ip.octets());
        }
        Ok(Self::LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_packet(operation: ArpOperation) -> ArpPacket {
        ArpPacket {
            operation,
            sender: (MacAddress([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(192, 0, 2, 1)),
            target: (MacAddress([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(192, 0, 2, 2)),
        }
    }

    #[test]
    fn packet_round_trips() {
        for operation in [ArpOperation::Request, ArpOperation::Reply] {
            let mut bytes = [0xee; 46];
            let packet = a_packet(operation);
            assert_eq!(packet.emit(&mut bytes), Ok(28));
            assert_eq!(ArpPacket::parse(&bytes), Ok(packet));
            for cut in 0..ArpPacket::LEN {
                assert!(ArpPacket::parse(&bytes[..cut]).is_err(), "{cut} octets");
                assert_eq!(packet.emit(&mut [0; 28][..cut]), Err(NoRoom));
            }
        }
    }

    #[test]
    fn other_protocols_and_operations_are_refused() {
        let mut bytes = [0; 28];
        a_packet(ArpOperation::Reply).emit(&mut bytes).expect("the buffer is large enough");
        for at in 0..8 {
            bytes[at] ^= 0x40;
            assert!(ArpPacket::parse(&bytes).is_err(), "octet {at}");
            bytes[at] ^= 0x40;
        }
        assert!(ArpPacket::parse(&bytes).is_ok());
    }
}
