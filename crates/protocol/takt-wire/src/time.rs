//! Timestamps and durations in seconds and units of 2^-32 s (RTPS 2.5 §9.3.2).
//!
//! Every bit pattern is a value: conversions saturate and none loops. Nanoseconds round-trip
//! through the wire format exactly. Other fractions are rounded to the nearest nanosecond.

use core::fmt;

use crate::cursor::Cursor;
use crate::error::Malformed;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Converts units of 2^-32 s to nanoseconds, rounded to nearest. The result may be a full second.
const fn fraction_to_nanos(fraction: u32) -> u64 {
    (fraction as u64 * NANOS_PER_SECOND + (1 << 31)) >> 32
}

/// Converts nanoseconds below one second to units of 2^-32 s, rounded up.
const fn nanos_to_fraction(nanos: u64) -> u32 {
    // Below 2^32 because `nanos` is below one second: (10^9 - 1) * 2^32 / 10^9 < 2^32 - 4.
    (nanos << 32).div_ceil(NANOS_PER_SECOND) as u32
}

/// Time since 1970-01-01 00:00:00 UTC, up to the year 2106.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: u32,
    /// Fraction in units of 2^-32 s.
    pub fraction: u32,
}

impl Timestamp {
    /// The epoch.
    pub const ZERO: Self = Self { seconds: 0, fraction: 0 };
    /// Invalid timestamp: no time.
    pub const INVALID: Self = Self { seconds: u32::MAX, fraction: u32::MAX };
    /// Infinite timestamp, later than all others.
    pub const INFINITE: Self = Self { seconds: u32::MAX, fraction: u32::MAX - 1 };
    /// [`Timestamp::INFINITE`] before RTPS 2.3, where seconds were signed.
    const INFINITE_SIGNED: Self = Self { seconds: i32::MAX as u32, fraction: u32::MAX };
    /// Latest finite timestamp.
    const LAST: Self = Self { seconds: u32::MAX, fraction: nanos_to_fraction(999_999_998) };

    /// Reports whether the timestamp is invalid.
    pub const fn is_invalid(self) -> bool {
        self.seconds == u32::MAX && self.fraction == u32::MAX
    }

    /// Reports whether the timestamp is infinite, in the current or the older form.
    pub const fn is_infinite(self) -> bool {
        (self.seconds == Self::INFINITE.seconds && self.fraction == Self::INFINITE.fraction)
            || (self.seconds == Self::INFINITE_SIGNED.seconds && self.fraction == Self::INFINITE_SIGNED.fraction)
    }

    /// Returns the timestamp for nanoseconds since the epoch. Times before the epoch become the
    /// epoch; times after the latest timestamp become the latest.
    pub const fn from_nanos(nanos: i64) -> Self {
        if nanos <= 0 {
            return Self::ZERO;
        }
        let nanos = nanos.cast_unsigned();
        let seconds = nanos / NANOS_PER_SECOND;
        if seconds >= u32::MAX as u64 {
            return Self::LAST;
        }
        Self { seconds: seconds as u32, fraction: nanos_to_fraction(nanos % NANOS_PER_SECOND) }
    }

    /// Returns nanoseconds since the epoch.
    pub const fn to_nanos(self) -> i64 {
        // At most 2^32 * 10^9, below 2^62.
        (self.seconds as u64 * NANOS_PER_SECOND + fraction_to_nanos(self.fraction)).cast_signed()
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { seconds: cursor.u32()?, fraction: cursor.u32()? })
    }
}

impl fmt::Display for Timestamp {
    /// Writes seconds since the epoch with nine decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_invalid() {
            return f.write_str("invalid");
        }
        if self.is_infinite() {
            return f.write_str("infinite");
        }
        let nanos = self.to_nanos().cast_unsigned();
        write!(f, "{}.{:09}", nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Duration of QoS policies and of discovery data; may be infinite.
///
/// A [`core::time::Duration`] converts into it; 2^31 - 1 seconds (68 years) and more, such as its
/// `MAX`, become infinite. [`as_std`](Self::as_std) converts back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration {
    /// Whole seconds.
    pub seconds: i32,
    /// Fraction in units of 2^-32 s.
    pub fraction: u32,
}

impl Duration {
    /// Zero duration.
    pub const ZERO: Self = Self { seconds: 0, fraction: 0 };
    /// Infinite duration.
    pub const INFINITE: Self = Self { seconds: i32::MAX, fraction: u32::MAX };

    /// Reports whether the duration is infinite. Any duration with the largest number of seconds is
    /// infinite: several such values are in use, because DDS specifies the infinite fraction in
    /// nanoseconds.
    pub const fn is_infinite(self) -> bool {
        self.seconds == i32::MAX
    }

    /// Reports whether the duration is negative. The wire format can express it; no policy and no
    /// call accepts it.
    pub const fn is_negative(self) -> bool {
        self.seconds < 0
    }

    /// Returns the duration in whole seconds; the largest number is [`Duration::INFINITE`].
    pub const fn from_secs(seconds: i32) -> Self {
        if seconds == i32::MAX { Self::INFINITE } else { Self { seconds, fraction: 0 } }
    }

    /// Returns the duration in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Returns the duration in nanoseconds; 2^31 - 1 seconds (68 years) and more become infinite.
    pub const fn from_nanos(nanos: u64) -> Self {
        let seconds = nanos / NANOS_PER_SECOND;
        if seconds >= i32::MAX as u64 {
            return Self::INFINITE;
        }
        Self { seconds: seconds as i32, fraction: nanos_to_fraction(nanos % NANOS_PER_SECOND) }
    }

    /// Returns nanoseconds; `None` if infinite, zero if negative.
    pub const fn as_nanos(self) -> Option<u64> {
        if self.is_infinite() {
            return None;
        }
        if self.seconds < 0 {
            return Some(0);
        }
        Some(self.seconds as u64 * NANOS_PER_SECOND + fraction_to_nanos(self.fraction))
    }

    /// Returns the duration as one of the standard library; `None` if infinite, zero if negative.
    pub fn as_std(self) -> Option<core::time::Duration> {
        self.as_nanos().map(core::time::Duration::from_nanos)
    }

    /// Parses a duration. All infinite values become [`Duration::INFINITE`].
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let duration = Self { seconds: cursor.i32()?, fraction: cursor.u32()? };
        Ok(if duration.is_infinite() { Self::INFINITE } else { duration })
    }
}

/// Exact conversion; 2^31 - 1 seconds (68 years) and more become infinite.
impl From<core::time::Duration> for Duration {
    fn from(duration: core::time::Duration) -> Self {
        u64::try_from(duration.as_nanos()).map_or(Self::INFINITE, Self::from_nanos)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            let nanos = u64::from(self.seconds.unsigned_abs()) * NANOS_PER_SECOND - fraction_to_nanos(self.fraction);
            return write!(f, "-{:?}", core::time::Duration::from_nanos(nanos));
        }
        match self.as_nanos() {
            None => f.write_str("infinite"),
            Some(nanos) => fmt::Debug::fmt(&core::time::Duration::from_nanos(nanos), f),
        }
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Endianness;
    use alloc::string::ToString;

    #[test]
    fn standard_durations_convert_in_both_directions_and_the_longest_are_infinite() {
        let short = core::time::Duration::new(3, 7);
        assert_eq!(Duration::from(short).as_std(), Some(short));
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::INFINITE);
        assert_eq!(Duration::INFINITE.as_std(), None);
        assert_eq!(Duration { seconds: -2, fraction: 0 }.as_std(), Some(core::time::Duration::ZERO));
    }

    #[test]
    fn nanoseconds_round_trip_through_the_fraction() {
        for nanos in [0, 1, 2, 999, 100_000_000, 499_999_999, 500_000_000, 999_999_999] {
            assert_eq!(Duration::from_nanos(nanos).as_nanos(), Some(nanos));
            let later = 1_700_000_000_000_000_000 + nanos.cast_signed();
            assert_eq!(Timestamp::from_nanos(later).to_nanos(), later);
        }
    }

    #[test]
    fn fractions_round_to_the_nearest_nanosecond() {
        let floor = Duration { seconds: 0, fraction: 0x1999_9999 };
        let ceil = Duration { seconds: 0, fraction: 0x1999_999a };
        assert_eq!(floor.as_nanos(), Some(100_000_000));
        assert_eq!(ceil.as_nanos(), Some(100_000_000));
        let almost = Duration { seconds: 1, fraction: u32::MAX };
        assert_eq!(almost.as_nanos(), Some(2_000_000_000));
    }

    #[test]
    fn durations_saturate() {
        assert_eq!(Duration::from_nanos(u64::MAX), Duration::INFINITE);
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::INFINITE);
        assert_eq!(Duration { seconds: -1, fraction: 7 }.as_nanos(), Some(0));
        assert_eq!(Duration::from_secs(i32::MAX), Duration::INFINITE);
        assert_eq!(Duration::from_millis(1_500).as_nanos(), Some(1_500_000_000));
    }

    #[test]
    fn all_infinite_durations_are_recognized() {
        for bytes in
            [[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], [0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]]
        {
            let parsed = Duration::parse(&mut Cursor::new(&bytes, Endianness::Big));
            assert_eq!(parsed, Ok(Duration::INFINITE));
        }
        assert_eq!(Duration::INFINITE.as_nanos(), None);
        assert_eq!(Duration::INFINITE.to_string(), "infinite");
        assert!(Duration::from_secs(i32::MAX - 1) < Duration::INFINITE);
    }

    #[test]
    fn timestamps_saturate() {
        assert_eq!(Timestamp::from_nanos(-1), Timestamp::ZERO);
        let last = Timestamp::from_nanos(i64::MAX);
        assert!(!last.is_invalid() && !last.is_infinite() && last < Timestamp::INFINITE);
        assert!(Timestamp::INVALID.to_nanos() > 0);
    }

    #[test]
    fn timestamps_and_durations_display_with_units() {
        assert_eq!(Timestamp::from_nanos(1_000_000_001).to_string(), "1.000000001");
        assert_eq!(Timestamp::INVALID.to_string(), "invalid");
        assert_eq!(Duration::from_millis(100).to_string(), "100ms");
        assert_eq!(Duration { seconds: -2, fraction: 1 << 31 }.to_string(), "-1.5s");
        assert_eq!(Duration { seconds: i32::MIN, fraction: 0 }.to_string(), "-2147483648s");
    }
}
