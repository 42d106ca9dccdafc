//! Internet checksum (RFC 1071): the complement of the ones' complement sum of 16-bit words.
//!
//! The sum does not depend on the byte order of the machine, except for a swap at the end
//! (RFC 1071 §2). It is therefore computed in machine words, four octets at a time.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Ones' complement sum under computation.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sum(u64);

impl Sum {
    /// Starts with the IPv4 pseudo header: addresses, protocol, and length of the payload
    /// (RFC 768).
    pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: u16) -> Self {
        let mut sum = Self::default();
        sum.add(&source.octets());
        sum.add(&destination.octets());
        sum.add(&[0, protocol]);
        sum.add(&len.to_be_bytes());
        sum
    }

    /// Starts with the IPv6 pseudo header (RFC 8200 §8.1).
    pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, len: u16) -> Self {
        let mut sum = Self::default();
        sum.add(&source.octets());
        sum.add(&destination.octets());
        sum.add(&[0, protocol]);
        sum.add(&len.to_be_bytes());
        sum
    }

    /// Adds bytes; only the last call may add an odd number. At most 2^32 octets in total.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(4);
        let mut sum = 0;
        for word in &mut words {
            sum += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        let rest = words.remainder();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += sum + u64::from(u32::from_ne_bytes(last));
    }

    /// Returns the sum in 16 bits. For a pseudo header, this is the value that Linux leaves in the
    /// checksum field for hardware to complete.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        // The sum over machine words is correct in wire order.
        u16::from_be_bytes((sum as u16).to_ne_bytes())
    }

    /// Returns the checksum: the complement of the sum. 0 for bytes that contain their checksum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> Sum {
        let mut sum = Sum::default();
        sum.add(bytes);
        sum
    }

    #[test]
    fn checksum_matches_the_example_of_rfc_1071() {
        // RFC 1071 §3.
        let sum = sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.checksum()), (0xddf2, !0xddf2));
    }

    #[test]
    fn odd_octet_counts_as_the_high_one() {
        assert_eq!(sum(&[0xab]).folded(), 0xab00);
        assert_eq!(sum(&[1, 2, 3]).folded(), 0x0402);
        assert_eq!(sum(&[0xff, 0xff, 0, 1]).folded(), 1);
        assert_eq!(sum(&[]).folded(), 0);
    }

    #[test]
    fn checksum_matches_a_simple_implementation() {
        let mut bytes = [0; 259];
        let mut state = 1_u32;
        for byte in &mut bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = state.to_be_bytes()[0];
        }
        for len in 0..bytes.len() {
            let mut expected = 0_u32;
            for pair in bytes[..len].chunks(2) {
                expected += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            }
            expected = (expected & 0xffff) + (expected >> 16);
            expected = (expected & 0xffff) + (expected >> 16);
            assert_eq!(u32::from(sum(&bytes[..len]).folded()), expected, "{len} octets");
            let mut halves = sum(&bytes[..len / 4 * 2]);
            halves.add(&bytes[len / 4 * 2..len]);
            assert_eq!(halves.folded(), sum(&bytes[..len]).folded(), "{len} octets in two parts");
        }
    }
}
