//! Transmission times of Ethernet frames.

/// Octets of preamble, start delimiter and interframe gap, as IEEE 802.3 defines them for all rates
/// from 1 Gbit/s.
const AROUND: u64 = 8 + 12;

/// Octets of the frame check sequence.
const CHECK_SEQUENCE: u64 = 4;

/// Minimum frame length in octets, frame check sequence included.
const FRAME_MIN: u64 = 64;

/// Octets of the Ethernet, 802.1Q, IPv4 and UDP headers.
pub const UDP_HEADERS: u64 = 14 + 4 + 20 + 8;

/// Returns the time for which a frame occupies a link, in nanoseconds, rounded up. `frame_len`
/// counts octets from the destination address without frame check sequence, that is,
/// [`UDP_HEADERS`] and payload. `None` if the rate is zero, or if the time exceeds `u64`.
pub fn frame_time_ns(frame_len: u64, bits_per_second: u64) -> Option<u64> {
    let octets = frame_len.checked_add(CHECK_SEQUENCE)?.max(FRAME_MIN).checked_add(AROUND)?;
    let bits_ns = u128::from(octets) * 8 * 1_000_000_000;
    let time = bits_ns.checked_add(u128::from(bits_per_second.checked_sub(1)?))? / u128::from(bits_per_second);
    u64::try_from(time).ok() // tidy-allow(dropped-cause): beyond u64 there is no bound.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_times_equal_known_values() {
        // The largest untagged frame occupies 1538 octets on the line.
        assert_eq!(frame_time_ns(1514, 1_000_000_000), Some(12_304));
        assert_eq!(frame_time_ns(1514, 100_000_000), Some(123_040));
        // Short frames are padded to 84 octets.
        assert_eq!(frame_time_ns(0, 1_000_000_000), Some(672));
        assert_eq!(frame_time_ns(60, 10_000_000_000), Some(68), "67.2 rounded up");
        assert_eq!(frame_time_ns(60, 0), None);
        assert_eq!(frame_time_ns(u64::MAX - 100, 1), None);
    }
}
