//! Reassembly of announcements that arrive in fragments (RTPS 2.5 §8.3.8.3).

use std::collections::BTreeMap;

use takt_openflow::channel::Instant;
use takt_wire::{DataFrag, Guid};

use super::Limits;

/// An announcement of which some fragments have arrived.
#[derive(Debug)]
struct Reassembly {
    payload: Vec<u8>,
    fragment_size: u16,
    has: Vec<bool>,
    missing: usize,
    since: Instant,
}

/// All incomplete announcements, by SEDP writer and sequence number.
#[derive(Debug, Default)]
pub(super) struct Reassemblies {
    open: BTreeMap<(Guid, i64), Reassembly>,
}

/// Result of adding a fragment.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum AddResult {
    /// Other fragments are missing.
    Incomplete,
    /// All fragments have arrived.
    Complete(Vec<u8>),
    /// The announcement is too long, or the fragment contradicts earlier ones.
    Refused,
}

impl Reassemblies {
    /// Adds the fragments of a DATA_FRAG. At the limit the oldest announcement is discarded and
    /// counted in `evicted`.
    pub(super) fn add(
        &mut self,
        now: Instant,
        writer: Guid,
        data: &DataFrag<'_>,
        limits: &Limits,
        evicted: &mut u64,
    ) -> AddResult {
        let len = data.sample_size as usize;
        if len > limits.fragmented_bytes || data.key {
            return AddResult::Refused;
        }
        let key = (writer, data.sn.0);
        if !self.open.contains_key(&key) && self.open.len() >= limits.reassemblies {
            let oldest = self.open.iter().min_by_key(|(_, reassembly)| reassembly.since).map(|(key, _)| *key);
            oldest.map(|key| self.open.remove(&key));
            *evicted += 1;
        }
        let count = len.div_ceil(usize::from(data.fragment_size));
        let reassembly = self.open.entry(key).or_insert_with(|| Reassembly {
            payload: vec![0; len],
            fragment_size: data.fragment_size,
            has: vec![false; count],
            missing: count,
            since: now,
        });
        if reassembly.payload.len() != len || reassembly.fragment_size != data.fragment_size {
            return AddResult::Refused;
        }
        let start = data.payload_offset() as usize;
        reassembly.payload[start..start + data.payload.len()].copy_from_slice(data.payload);
        let first = data.fragment_starting_num as usize - 1;
        for has in &mut reassembly.has[first..first + usize::from(data.fragments_in_submessage)] {
            if !std::mem::replace(has, true) {
                reassembly.missing -= 1;
            }
        }
        if reassembly.missing > 0 {
            return AddResult::Incomplete;
        }
        self.open.remove(&key).map_or(AddResult::Refused, |reassembly| AddResult::Complete(reassembly.payload))
    }

    /// Discards announcements that were not completed in time and returns their number.
    pub(super) fn expire(&mut self, now: Instant, limits: &Limits) -> u64 {
        let before = self.open.len();
        self.open.retain(|_, reassembly| now < reassembly.since.after(limits.reassembly_timeout));
        (before - self.open.len()) as u64
    }

    /// Returns the time when the oldest announcement is discarded.
    pub(super) fn timeout(&self, limits: &Limits) -> Option<Instant> {
        self.open.values().map(|reassembly| reassembly.since.after(limits.reassembly_timeout)).min()
    }

    /// Discards the announcements of a participant.
    pub(super) fn remove_participant(&mut self, prefix: takt_wire::GuidPrefix) {
        self.open.retain(|(writer, _), _| writer.prefix != prefix);
    }
}
