//! Payload type of all workloads, and the marks in its data.
//!
//! `struct Blob { sequence<octet> data; }`, final, type name `Blob`. The data begins with a u64
//! sequence number and the u64 `CLOCK_MONOTONIC` send time in ns, both in the byte order of the
//! machine (both sides have the same). Filler follows: every second byte is pseudo-random, so that
//! compression cannot remove it. A payload of 4 to 15 octets begins with a u32 sequence number and
//! has no send time.

use serde::Serialize;
use takt::DdsType;

/// Data type that carries the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// [`Blob`].
    #[default]
    Octets,
    /// [`Complex`](crate::complex::Complex).
    Complex,
    /// [`Numbered`](crate::numbered::Numbered).
    Numbered,
}

/// Length of the marks in bytes.
pub const MARKS_LEN: usize = 16;

/// Length in bytes of the sequence number of a payload without room for the marks; the minimum
/// payload size.
pub const SEQUENCE_LEN: usize = 4;

/// Sequence number of the samples that end a stream.
pub const END_OF_STREAM: u64 = u64::MAX;

/// Sample of the benchmarks.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Blob", extensibility = "final")]
pub struct Blob {
    /// Sequence number, send time, filler.
    pub data: Vec<u8>,
}

impl Blob {
    /// Creates a sample with `size` bytes of data, at least [`SEQUENCE_LEN`], with zero marks.
    #[must_use]
    pub fn filled(size: usize) -> Self {
        let mut state = 0x2545_f491_u32;
        let mut data: Vec<u8> = (0..size.max(SEQUENCE_LEN))
            .map(|index| {
                // xorshift32
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                if index % 2 == 1 { state as u8 } else { 0xa5 }
            })
            .collect();
        let marks = data.len().min(MARKS_LEN);
        data[..marks].fill(0);
        Self { data }
    }

    /// Writes the marks that fit.
    pub fn mark(&mut self, sequence: u64, sent_at_ns: u64) {
        if self.data.len() < MARKS_LEN {
            self.data[..SEQUENCE_LEN].copy_from_slice(&(sequence as u32).to_ne_bytes());
            return;
        }
        self.data[..8].copy_from_slice(&sequence.to_ne_bytes());
        self.data[8..MARKS_LEN].copy_from_slice(&sent_at_ns.to_ne_bytes());
    }

    /// Returns sequence number and send time in ns, which is 0 in a payload without room for it;
    /// `None` if the data has no sequence number.
    #[must_use]
    pub fn marks(&self) -> Option<(u64, u64)> {
        if self.data.len() < MARKS_LEN {
            let (sequence, _) = self.data.split_first_chunk::<SEQUENCE_LEN>()?;
            return Some((u32::from_ne_bytes(*sequence).into(), 0));
        }
        let (sequence, rest) = self.data.split_first_chunk::<8>()?;
        let (sent_at_ns, _) = rest.split_first_chunk::<8>()?;
        Some((u64::from_ne_bytes(*sequence), u64::from_ne_bytes(*sent_at_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_round_trip() {
        let mut blob = Blob::filled(64);
        assert_eq!(blob.marks(), Some((0, 0)));
        blob.mark(7, 1 << 40);
        assert_eq!(blob.marks(), Some((7, 1 << 40)));
        assert_eq!(blob.data.len(), 64);
    }

    #[test]
    fn short_payload_has_a_sequence_number_alone() {
        for len in 0..SEQUENCE_LEN {
            assert_eq!(Blob { data: vec![1; len] }.marks(), None, "{len} bytes");
        }
        for len in SEQUENCE_LEN..MARKS_LEN {
            let mut blob = Blob::filled(len);
            blob.mark(7, 9);
            assert_eq!((blob.marks(), blob.data.len()), (Some((7, 0)), len));
        }
        assert_eq!(Blob::filled(0).data.len(), SEQUENCE_LEN);
    }

    #[test]
    fn filler_is_half_random() {
        let blob = Blob::filled(4096);
        let (even, odd): (Vec<_>, Vec<_>) = (MARKS_LEN..4096).partition(|i| i % 2 == 0);
        assert!(even.iter().all(|&i| blob.data[i] == 0xa5));
        let different: std::collections::BTreeSet<u8> = odd.iter().map(|&i| blob.data[i]).collect();
        assert!(different.len() > 200);
    }
}
