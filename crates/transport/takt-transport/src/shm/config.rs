//! Configuration of the shared memory transport.

use std::ops::RangeInclusive;

use super::segment::{SLOTS_MAX, SLOTS_STEP};

/// Configuration of a [`ShmTransport`](super::ShmTransport).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmConfig {
    /// Size of the ring to another participant in bytes: within [`RING_BYTES`](Self::RING_BYTES),
    /// rounded up to a power of two. Address space; pages become resident when a reader is that far
    /// behind. A sample that is copied and larger than the ring loses fragments, which are repaired
    /// slowly. Flows with a priority above 0 have a separate ring, an eighth of this size and at
    /// least 256 KiB.
    pub ring_bytes: usize,
    /// Maximum number of connections to other participants, and of those from them; within
    /// [`CONNECTIONS_MAX`](Self::CONNECTIONS_MAX). Each costs a descriptor. Further participants
    /// are reached by other transports.
    pub connections_max: usize,
    /// Total size of the payloads that are on loan at once, in bytes: within
    /// [`SEGMENT_BYTES`](Self::SEGMENT_BYTES). Address space; pages become resident when they are
    /// used. Payloads that do not fit are copied.
    pub segment_bytes: usize,
    /// Maximum number of payloads on loan at once: within [`SEGMENT_SLOTS`](Self::SEGMENT_SLOTS),
    /// rounded up to a multiple of 512. Each costs eight bytes in the segment and in each ring.
    pub segment_slots: usize,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self { ring_bytes: 32 << 20, connections_max: 512, segment_bytes: 256 << 20, segment_slots: 1024 }
    }
}

impl ShmConfig {
    /// Bounds of `ring_bytes`: 256 KiB to 64 MiB.
    pub const RING_BYTES: RangeInclusive<usize> = 256 << 10..=64 << 20;
    /// Bounds of `connections_max`: 0 to 65,536.
    pub const CONNECTIONS_MAX: RangeInclusive<usize> = 0..=1 << 16;
    /// Bounds of `segment_bytes`: 64 KiB to 15 GiB.
    pub const SEGMENT_BYTES: RangeInclusive<usize> = 64 << 10..=15 << 30;
    /// Bounds of `segment_slots`: 1 to 65,536.
    pub const SEGMENT_SLOTS: RangeInclusive<usize> = 1..=SLOTS_MAX;

    /// Checks all values against their bounds.
    ///
    /// # Errors
    /// Describes the value that is out of bounds, and its bounds, in words.
    pub fn check(&self) -> Result<(), String> {
        let bounds = [
            ("ring_bytes", self.ring_bytes, Self::RING_BYTES),
            ("connections_max", self.connections_max, Self::CONNECTIONS_MAX),
            ("segment_bytes", self.segment_bytes, Self::SEGMENT_BYTES),
            ("segment_slots", self.segment_slots, Self::SEGMENT_SLOTS),
        ];
        let wrong = bounds.into_iter().find(|(_, value, bounds)| !bounds.contains(value));
        wrong.map_or(Ok(()), |(name, value, bounds)| {
            Err(format!("{name} of shared memory is {value}, expected {} to {}", bounds.start(), bounds.end()))
        })
    }

    pub(super) fn segment_slots(&self) -> usize {
        self.segment_slots.next_multiple_of(SLOTS_STEP)
    }

    /// Returns the bytes of address space of the own segment, one segment of another participant of
    /// the same size, and the rings to and from it.
    pub(super) fn address_space(&self) -> usize {
        let ring: usize = self.ring_words().iter().sum();
        2 * (self.segment_bytes + 8 * (ring + 2 * self.segment_slots()))
    }

    /// Returns the words of the records in both rings, by [bands](super::ports::Band): the urgent
    /// ring has an eighth of the non-urgent one, and room for some datagrams of the maximum length.
    pub(super) fn ring_words(&self) -> [usize; 2] {
        let not_urgent = self.ring_bytes.next_power_of_two() / 8;
        [not_urgent, (not_urgent / 8).max(*Self::RING_BYTES.start() / 8)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_out_of_bounds_is_reported() {
        let valid = ShmConfig::default();
        assert_eq!(valid.check(), Ok(()));
        let largest = ShmConfig {
            ring_bytes: 64 << 20,
            connections_max: 1 << 16,
            segment_bytes: 15 << 30,
            segment_slots: 65_536,
        };
        let smallest =
            ShmConfig { ring_bytes: 256 << 10, connections_max: 0, segment_bytes: 64 << 10, segment_slots: 1 };
        assert_eq!((largest.check(), smallest.check()), (Ok(()), Ok(())));
        assert_eq!((smallest.ring_words(), smallest.segment_slots()), ([32_768; 2], 512));
        assert_eq!((largest.ring_words(), largest.segment_slots()), ([8 << 20, 1 << 20], 65_536));
        for (wrong, name) in [
            (ShmConfig { ring_bytes: (64 << 20) + 1, ..valid.clone() }, "ring_bytes"),
            (ShmConfig { connections_max: 65_537, ..valid.clone() }, "connections_max"),
            (ShmConfig { segment_bytes: 65_535, ..valid.clone() }, "segment_bytes"),
            (ShmConfig { segment_slots: 0, ..valid.clone() }, "segment_slots"),
        ] {
            assert!(wrong.check().expect_err("out of bounds").contains(name), "{name}");
        }
    }
}
