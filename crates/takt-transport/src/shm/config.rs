//! What a shared memory transport is asked to be.

/// Configuration of a [`ShmTransport`](super::ShmTransport).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmConfig {
    /// What a lane to another participant holds, in bytes: from 256 KiB to 64 MiB, rounded up to a power of two. Address
    /// space; pages become real when a reader is that far behind.
    pub lane_bytes: usize,
    /// Lanes to others, and from others, at most; 65,536 at most. Each costs a descriptor. Whoever is beyond is reached otherwise.
    pub lanes_max: usize,
    /// What payloads that others are lent may take together, in bytes: from 64 KiB to 16 GiB less 8 KiB. Address space; pages
    /// become real when they are lent. What finds no room is copied.
    pub segment_bytes: usize,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self { lane_bytes: 4 << 20, lanes_max: 512, segment_bytes: 64 << 20 }
    }
}

impl ShmConfig {
    pub(super) fn lanes_max(&self) -> usize {
        self.lanes_max.min(1 << 16)
    }

    pub(super) fn segment_bytes(&self) -> usize {
        self.segment_bytes.clamp(64 << 10, (16 << 30) - (8 << 10))
    }

    /// Words of a lane's records.
    pub(super) fn lane_words(&self) -> usize {
        self.lane_bytes.clamp(256 << 10, 64 << 20).next_power_of_two() / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_a_size_within_bounds() {
        let words = |lane_bytes| ShmConfig { lane_bytes, ..ShmConfig::default() }.lane_words();
        assert_eq!((words(0), words(usize::MAX)), (32_768, 8 << 20));
        assert_eq!((words(4 << 20), words((4 << 20) + 1)), (1 << 19, 1 << 20));
    }
}
