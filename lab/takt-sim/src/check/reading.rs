//! Checks of read and take, and of the ranks that they return (DDS 1.4 §2.2.2.5.1.2, §2.2.2.5.1.5
//! to §2.2.2.5.1.8, §2.2.2.5.3.1).
//!
//! Apply to KEEP_ALL readers. A sample that was read and not taken is returned by the next pass, in
//! the same order and with state READ; no other sample is. An instance with samples in the cache is
//! NEW in a pass if it was written again since the last pass that returned a sample of it.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::{InstanceHandle, SampleInfo, SampleState, ViewState};
use takt_wire::{Guid, Timestamp};

use super::{Checker, EndpointId, Rule};
use crate::clock::Nanos;

/// Kind of read or take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKind {
    /// Read of the unread samples.
    Unread,
    /// Read of all samples.
    Everything,
    /// Take of the samples of an instance.
    Take(InstanceHandle),
    /// Take of all samples.
    TakeAll,
}

/// A sample that was read and not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UntakenSample {
    writer: Guid,
    number: i64,
    instance: InstanceHandle,
    written: Timestamp,
    generations: (u32, u32),
}

impl UntakenSample {
    fn of(info: &SampleInfo) -> Self {
        Self {
            writer: info.publication,
            number: info.sequence_number.0,
            instance: info.instance_handle,
            written: info.source_timestamp,
            generations: (info.disposed_generation_count, info.no_writers_generation_count),
        }
    }
}

/// Samples in a reader's cache that its application has read.
#[derive(Debug, Default)]
pub(super) struct UntakenSamples {
    held: Vec<UntakenSample>,
    /// By instance: its generation at the last pass that returned a sample of it.
    seen: BTreeMap<InstanceHandle, u32>,
}

impl Checker {
    /// Checks and records the result of a read or take, in its order.
    pub fn read_or_took(&mut self, at: Nanos, reader: EndpointId, pass: ReadKind, found: &[SampleInfo]) {
        let shelf = self.untaken_samples.entry(reader).or_default();
        let verdict = check_ranks(found).and_then(|()| shelf.check(pass, found));
        shelf.record(pass, found);
        if let Err(text) = verdict {
            self.report(at, Rule::Reading, format!("reader {reader}, {pass:?}: {text}"));
        }
    }
}

impl UntakenSamples {
    fn check(&self, pass: ReadKind, found: &[SampleInfo]) -> Result<(), String> {
        let expected: Vec<_> = match pass {
            ReadKind::Unread => Vec::new(),
            ReadKind::Everything | ReadKind::TakeAll => self.held.clone(),
            ReadKind::Take(instance) => self.held.iter().filter(|held| held.instance == instance).copied().collect(),
        };
        let samples = || found.iter().filter(|info| info.valid_data);
        let known = samples().take(expected.len());
        if !known.map(UntakenSample::of).eq(expected.iter().copied()) {
            return Err(format!("{} samples were read before, and are not all there: {expected:?}", expected.len()));
        }
        let wrong = samples().enumerate().find(|(position, info)| {
            let state = if *position < expected.len() { SampleState::Read } else { SampleState::NotRead };
            info.sample_state != state
        });
        if let Some((_, info)) = wrong {
            return Err(format!("the sample state is wrong: {info:?}"));
        }
        let held: BTreeSet<_> = self.held.iter().map(|held| (held.writer, held.number)).collect();
        let is_again = |info: &&SampleInfo| held.contains(&(info.publication, info.sequence_number.0));
        if let Some(info) = samples().skip(expected.len()).find(is_again) {
            return Err(format!("was read before: {info:?}"));
        }
        self.check_views(found)
    }

    fn check_views(&self, found: &[SampleInfo]) -> Result<(), String> {
        let mut states = BTreeMap::new();
        for info in found {
            let state = (info.view_state, info.instance_state);
            if *states.entry(info.instance_handle).or_insert(state) != state {
                return Err(format!("the states of an instance differ: {info:?}"));
            }
            let is_held = self.held.iter().any(|held| held.instance == info.instance_handle);
            let Some(seen) = self.seen.get(&info.instance_handle).filter(|_| is_held) else { continue };
            let view = if *seen == generation_now(info) { ViewState::NotNew } else { ViewState::New };
            if info.view_state != view {
                return Err(format!("was of generation {seen} when last seen: {info:?}"));
            }
        }
        Ok(())
    }

    fn record(&mut self, pass: ReadKind, found: &[SampleInfo]) {
        for info in found {
            self.seen.insert(info.instance_handle, generation_now(info));
        }
        let samples = found.iter().filter(|info| info.valid_data).map(UntakenSample::of);
        match pass {
            ReadKind::Unread => self.held.extend(samples),
            ReadKind::Everything => self.held = samples.collect(),
            ReadKind::Take(instance) => self.held.retain(|held| held.instance != instance),
            ReadKind::TakeAll => self.held.clear(),
        }
    }
}

/// Returns the generation of an instance at the time of the read or take.
fn generation_now(info: &SampleInfo) -> u32 {
    info.generation() + info.absolute_generation_rank
}

/// Checks that both generation ranks agree. The collection contains at least the newest sample that
/// the reader has of each instance.
fn check_ranks(found: &[SampleInfo]) -> Result<(), String> {
    let mut newest: BTreeMap<InstanceHandle, (u32, u32)> = BTreeMap::new();
    for info in found.iter().rev() {
        let (count, generation) = newest.entry(info.instance_handle).or_insert((0, info.generation()));
        let expected = (*count, generation.checked_sub(info.generation()));
        *count += 1;
        let is_true = (info.sample_rank, Some(info.generation_rank)) == expected
            && info.absolute_generation_rank == info.generation_rank;
        if !is_true {
            return Err(format!("the ranks must be {expected:?}: {info:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::InstanceState;
    use takt_wire::inline_qos::SampleIdentity;
    use takt_wire::{EntityId, GuidPrefix, SequenceNumber};

    const WRITER: Guid = Guid { prefix: GuidPrefix([1; 12]), entity_id: EntityId::UNKNOWN };

    /// Creates a sample of the only instance with this generation and sample state.
    fn sample(number: i64, generation: u32, sample_state: SampleState) -> SampleInfo {
        SampleInfo {
            sample_state,
            view_state: ViewState::NotNew,
            instance_state: InstanceState::Alive,
            instance_handle: InstanceHandle::default(),
            publication: WRITER,
            sequence_number: SequenceNumber(number),
            origin: SampleIdentity { writer: WRITER, sn: SequenceNumber(number) },
            source_timestamp: Timestamp::ZERO,
            reception_timestamp: Timestamp::ZERO,
            disposed_generation_count: generation,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            valid_data: true,
        }
    }

    #[test]
    fn ranks_count_later_samples_of_the_same_instance() {
        let ranked = |sample_rank: u32, generation_rank: u32, info: SampleInfo| SampleInfo {
            sample_rank,
            generation_rank,
            absolute_generation_rank: generation_rank,
            ..info
        };
        let [first, second] = [sample(1, 0, SampleState::NotRead), sample(2, 2, SampleState::NotRead)];
        assert_eq!(check_ranks(&[ranked(1, 2, first), second]), Ok(()));
        assert!(check_ranks(&[ranked(0, 2, first), second]).is_err());
        assert!(check_ranks(&[ranked(1, 1, first), second]).is_err());
        assert!(check_ranks(&[first, ranked(1, 0, second)]).is_err(), "nothing follows");
    }

    #[test]
    fn read_sample_stays_with_state_read_until_taken() {
        let (new, read) = (SampleState::NotRead, SampleState::Read);
        let shelf = || {
            let mut shelf = UntakenSamples::default();
            shelf.record(ReadKind::Everything, &[sample(1, 0, new), sample(2, 0, new)]);
            shelf
        };
        let all = |state| [sample(1, 0, state), sample(2, 0, state), sample(3, 0, new)];
        assert_eq!(shelf().check(ReadKind::Everything, &all(read)), Ok(()));
        assert!(shelf().check(ReadKind::Everything, &all(new)).is_err(), "they were read");
        assert!(shelf().check(ReadKind::TakeAll, &all(read)[1..]).is_err(), "the first one is missing");
        assert_eq!(shelf().check(ReadKind::Unread, &all(read)[2..]), Ok(()));
        assert!(shelf().check(ReadKind::Unread, &[sample(2, 0, new)]).is_err(), "it was read");
        let mut taken = shelf();
        taken.record(ReadKind::TakeAll, &all(read));
        assert_eq!(taken.check(ReadKind::Everything, &[sample(4, 0, new)]), Ok(()));
    }

    #[test]
    fn instance_is_new_if_written_again_since_last_pass() {
        let mut shelf = UntakenSamples::default();
        shelf.record(ReadKind::Everything, &[sample(1, 0, SampleState::NotRead)]);
        let found = |generation, view_state| {
            let before = SampleInfo { absolute_generation_rank: generation, ..sample(1, 0, SampleState::Read) };
            [before, sample(2, generation, SampleState::NotRead)].map(|info| SampleInfo { view_state, ..info })
        };
        let is_valid = |generation, view| shelf.check(ReadKind::Everything, &found(generation, view)).is_ok();
        assert!(is_valid(0, ViewState::NotNew) && !is_valid(0, ViewState::New));
        assert!(is_valid(1, ViewState::New) && !is_valid(1, ViewState::NotNew));
    }
}
