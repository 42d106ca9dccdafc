//! ICMP (RFC 792): replies to echo requests, and nothing else.

use crate::Malformed;
use crate::checksum::Sum;
use crate::error::header;

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;

/// Converts an echo request to its reply in place. `message` is the whole payload of an IP packet.
/// Anything but an echo request with a correct checksum is refused and left unchanged.
pub fn reply_to_echo(message: &mut [u8]) -> Result<(), Malformed> {
    let fixed: &[u8; 8] = header(message, "truncated ICMP message")?;
    if fixed[..2] != [8, 0] {
        return Err(Malformed { offset: 0, what: "ICMP message other than an echo request" });
    }
    if sum(message) != 0 {
        return Err(Malformed { offset: 2, what: "ICMP message with a wrong checksum" });
    }
    (message[0], message[2], message[3]) = (0, 0, 0);
    let checksum = sum(message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

fn sum(message: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(message);
    sum.checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_request() -> [u8; 13] {
        let mut bytes = [8, 0, 0, 0, 0x12, 0x34, 0, 1, b't', b'h', b'e', b'r', b'e'];
        let checksum = sum(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    #[test]
    fn reply_is_the_request_with_another_type() {
        let mut bytes = a_request();
        reply_to_echo(&mut bytes).expect("a request");
        assert_eq!((bytes[0], &bytes[4..], sum(&bytes)), (0, &a_request()[4..], 0));
        assert!(reply_to_echo(&mut bytes).is_err(), "an echo reply is not answered");
    }

    #[test]
    fn truncated_and_damaged_requests_are_malformed() {
        for cut in 0..13 {
            assert!(reply_to_echo(&mut a_request()[..cut]).is_err(), "{cut} octets");
        }
        for at in 0..13 {
            let mut bytes = a_request();
            bytes[at] ^= 0x20;
            let before = bytes;
            assert!(reply_to_echo(&mut bytes).is_err(), "octet {at}");
            assert_eq!(bytes, before);
        }
    }
}
