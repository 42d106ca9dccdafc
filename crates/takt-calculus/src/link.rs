//! How long frames take on Ethernet.

/// Preamble, start delimiter and the gap between frames, in octets, as IEEE 802.3 has them at all rates from 1 Gbit/s on.
const AROUND: u64 = 8 + 12;

/// The check sequence behind a frame.
const CHECK_SEQUENCE: u64 = 4;

/// The shortest frame, check sequence included.
const FRAME_MIN: u64 = 64;

/// Ethernet, 802.1Q, IPv4 and UDP before a datagram's payload.
pub const UDP_HEADERS: u64 = 14 + 4 + 20 + 8;

/// How long a frame keeps a link busy, in nanoseconds, rounded up. `frame_len` counts octets from the destination's address on, without
/// check sequence, as [`UDP_HEADERS`] and payload do. `None`: a link without rate, or a time beyond `u64`.
pub fn frame_time_ns(frame_len: u64, bits_per_second: u64) -> Option<u64> {
    let octets = frame_len.checked_add(CHECK_SEQUENCE)?.max(FRAME_MIN).checked_add(AROUND)?;
    let bits_ns = u128::from(octets) * 8 * 1_000_000_000;
    let time = bits_ns.checked_add(u128::from(bits_per_second.checked_sub(1)?))? / u128::from(bits_per_second);
    u64::try_from(time).ok() // tidy-allow(dropped-cause): said in the text.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_known_frames() {
        // The largest frame without tag takes 1538 octets of the line.
        assert_eq!(frame_time_ns(1514, 1_000_000_000), Some(12_304));
        assert_eq!(frame_time_ns(1514, 100_000_000), Some(123_040));
        // Short ones are padded to 84.
        assert_eq!(frame_time_ns(0, 1_000_000_000), Some(672));
        assert_eq!(frame_time_ns(60, 10_000_000_000), Some(68), "67.2 rounded up");
        assert_eq!(frame_time_ns(60, 0), None);
        assert_eq!(frame_time_ns(u64::MAX - 100, 1), None);
    }
}
