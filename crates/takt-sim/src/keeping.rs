//! A durability service in the world (DDS 1.4 §2.2.3.4): what it keeps, and what is promised of it.
//!
//! The service is two processes of one host, as `takt-durability` is two participants: one *hears* the writers of a TRANSIENT topic,
//! one *serves* late joiners. What was heard is committed some milliseconds later, in one transaction; only then it is acknowledged and
//! passed on. The store outlives the processes: they are killed together, lose what was not committed, and serve the store when
//! they start again.
//!
//! Writers keep all, so each number of a writer is owed: a reader shows the changes of a writer one after the other from the first
//! one on, whoever brings them; in the end it has all that a living writer has written, and all that a writer, whether it lives or
//! not, was told to be safe.
//!
//! In some worlds one more process forges: it claims to be a service, and passes on changes in the names of the living writers, with
//! numbers that those have not reached. Nothing else goes wrong there. Readers that a writer is matched with still show what it goes on
//! to write, and the service still keeps all of it. No check judges which of its first changes they miss and
//! which forged ones they show: without DDS Security a reader cannot tell the two apart.

use std::collections::BTreeMap;

use takt_core::SampleRef;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

use crate::check::Rule;
use crate::clock::Nanos;

/// The processes of a world that have to do with the topic that is kept. They stand behind the applications, in this order: the
/// writers, the process that hears, the one that serves, the readers, the one that forges.
#[derive(Clone, Copy, Debug)]
pub struct KeepingPlan {
    /// The first one.
    pub first: usize,
    /// So many writers.
    pub writers: usize,
    /// So many readers.
    pub readers: usize,
    /// One process forges.
    pub forges: bool,
    /// Between two samples of a writer.
    pub period: Nanos,
    /// From the first change of a transaction to its commit.
    pub commit_time: Nanos,
}

/// What a process has to do with the topic that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It writes.
    Writes,
    /// It is the part of the service that hears.
    Hears,
    /// It is the part of the service that serves.
    Serves,
    /// It reads.
    Reads,
    /// It claims to be a service, and lies.
    Forges,
}

impl KeepingPlan {
    /// The process of the service that hears.
    #[must_use]
    pub fn hearing(&self) -> usize {
        self.first + self.writers
    }

    /// The process of the service that serves.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.hearing() + 1
    }

    /// What a process has to do with it.
    #[must_use]
    pub fn part_of(&self, process: usize) -> Option<Part> {
        match process.checked_sub(self.first)? {
            index if index < self.writers => Some(Part::Writes),
            index if index == self.writers => Some(Part::Hears),
            index if index == self.writers + 1 => Some(Part::Serves),
            index if index < self.writers + 2 + self.readers => Some(Part::Reads),
            _ => Some(Part::Forges),
        }
    }
}

/// A change that is kept.
#[derive(Clone, Debug)]
pub struct KeptChange {
    /// Who wrote it, and which change of that writer it is.
    pub origin: SampleIdentity,
    /// When it was written.
    pub source_timestamp: Timestamp,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// The store of the service, and the model of what is promised.
#[derive(Debug)]
pub struct Keeping {
    /// The processes.
    pub plan: KeepingPlan,
    /// What was committed, in its order. It outlives the service.
    pub store: Vec<KeptChange>,
    /// Taken, and not committed.
    pending: Vec<KeptChange>,
    /// Something was taken that is not acknowledged.
    is_unsettled: bool,
    /// A commit is planned.
    commits: bool,
    /// By writer: the last change that was heard, that was written, and that the writer was told to be safe.
    heard: BTreeMap<Guid, i64>,
    written: BTreeMap<Guid, i64>,
    safe: BTreeMap<Guid, i64>,
    /// Writers that live.
    living: BTreeMap<usize, Guid>,
}

impl Keeping {
    /// With an empty store.
    #[must_use]
    pub fn new(plan: KeepingPlan) -> Self {
        Self {
            plan,
            store: Vec::new(),
            pending: Vec::new(),
            is_unsettled: false,
            commits: false,
            heard: BTreeMap::new(),
            written: BTreeMap::new(),
            safe: BTreeMap::new(),
            living: BTreeMap::new(),
        }
    }

    /// The service has taken a change, once or again.
    pub fn heard(&mut self, change: KeptChange) {
        self.is_unsettled = true;
        let last = self.heard.entry(change.origin.writer).or_default();
        if change.origin.sn.0 > *last {
            *last = change.origin.sn.0;
            self.pending.push(change);
        }
    }

    /// Whether a transaction begins now.
    pub fn begins_transaction(&mut self) -> bool {
        self.is_unsettled && !std::mem::replace(&mut self.commits, true)
    }

    /// What was heard is in the store.
    pub fn commit(&mut self) {
        (self.commits, self.is_unsettled) = (false, false);
        self.store.append(&mut self.pending);
    }

    /// The service was killed: only the store is left.
    pub fn crash(&mut self) {
        (self.commits, self.is_unsettled) = (false, false);
        self.pending.clear();
        self.heard.clear();
        for change in &self.store {
            self.heard.insert(change.origin.writer, change.origin.sn.0);
        }
    }

    /// The writer of a process has come to life.
    pub fn lives(&mut self, process: usize, writer: Guid) {
        self.living.insert(process, writer);
    }

    /// A process is gone.
    pub fn ends(&mut self, process: usize) {
        self.living.remove(&process);
    }

    /// A writer has written its next change.
    pub fn wrote(&mut self, writer: Guid) {
        *self.written.entry(writer).or_default() += 1;
    }

    /// The number of the next change of a writer.
    #[must_use]
    pub fn next_number(&self, writer: Guid) -> i64 {
        self.written.get(&writer).map_or(1, |written| written + 1)
    }

    /// A writer was told that all services have its changes up to this one.
    pub fn is_safe(&mut self, writer: Guid, upto: i64) {
        let safe = self.safe.entry(writer).or_default();
        *safe = (*safe).max(upto);
    }

    /// What a forger says next: a change that a living writer has not made.
    #[must_use]
    pub fn forgery(&self, count: i64) -> Vec<KeptChange> {
        let forged = |writer: &Guid| {
            let sn = SequenceNumber(FORGED_MIN + count);
            let payload = payload_of(*writer, sn.0);
            KeptChange { origin: SampleIdentity { writer: *writer, sn }, source_timestamp: Timestamp::ZERO, payload }
        };
        self.living.values().map(forged).collect()
    }

    /// A reader, which has taken these numbers of each writer, takes a change.
    ///
    /// # Errors
    /// The promise that this breaks, and how.
    pub fn judge(&self, taken: &mut BTreeMap<Guid, i64>, found: &SampleRef<'_>) -> Result<(), (Rule, String)> {
        if !found.info.valid_data {
            return Ok(());
        }
        let SampleIdentity { writer, sn } = found.info.origin;
        if self.plan.forges && sn.0 >= FORGED_MIN {
            return Ok(());
        }
        let written = self.written.get(&writer).copied().unwrap_or(0);
        if sn.0 > written || found.payload != payload_of(writer, sn.0) {
            return Err((Rule::Invented, format!("{:?} from {:?}", found.info.origin, found.info.publication)));
        }
        let last = taken.entry(writer).or_default();
        if sn.0 <= *last {
            return Err((Rule::Twice, format!("change {} of {writer:?} after {last}", sn.0)));
        }
        if sn.0 != *last + 1 && !self.plan.forges {
            return Err((Rule::Gap, format!("change {} of {writer:?} after {last}", sn.0)));
        }
        *last = sn.0;
        Ok(())
    }

    /// What a reader should have in the end, and has not.
    #[must_use]
    pub fn missing(&self, taken: &BTreeMap<Guid, i64>) -> Option<String> {
        let has = |writer: &Guid| taken.get(writer).copied().unwrap_or(0);
        let unsafe_one = self.safe.iter().find(|(writer, safe)| has(writer) < **safe);
        if let Some((writer, safe)) = unsafe_one {
            return Some(format!("{} of {writer:?}, of which changes up to {safe} are safe", has(writer)));
        }
        let written = |writer: &Guid| self.written.get(writer).copied().unwrap_or(0);
        let late = self.living.values().find(|writer| has(writer) < written(writer))?;
        Some(format!("{} of {late:?}, which lives and has written {}", has(late), written(late)))
    }

    /// What the service should have heard in the end, and has not.
    #[must_use]
    pub fn unheard(&self) -> Option<String> {
        let heard = |writer: &Guid| self.heard.get(writer).copied().unwrap_or(0);
        let written = |writer: &Guid| self.written.get(writer).copied().unwrap_or(0);
        let late = self.living.values().find(|writer| heard(writer) < written(writer))?;
        Some(format!("{} of {late:?}, which lives and has written {}", heard(late), written(late)))
    }
}

/// The number of the first forged change.
const FORGED_MIN: i64 = 1_000_000;

/// What a writer writes as its change of this number.
#[must_use]
pub fn payload_of(writer: Guid, number: i64) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &writer.to_bytes(), &number.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: Guid = Guid::from_bytes([7; 16]);

    fn change(sn: i64) -> KeptChange {
        let origin = SampleIdentity { writer: WRITER, sn: SequenceNumber(sn) };
        KeptChange { origin, source_timestamp: Timestamp::ZERO, payload: payload_of(WRITER, sn) }
    }

    fn keeping() -> Keeping {
        Keeping::new(KeepingPlan { first: 3, writers: 2, readers: 1, forges: true, period: 1, commit_time: 1 })
    }

    #[test]
    fn processes_have_their_parts_in_order() {
        let plan = keeping().plan;
        let parts: Vec<_> = (2..9).map(|process| plan.part_of(process)).collect();
        let expected = [Part::Writes, Part::Writes, Part::Hears, Part::Serves, Part::Reads, Part::Forges];
        assert_eq!(parts[0], None);
        assert!(parts[1..].iter().copied().eq(expected.map(Some)), "{parts:?}");
        assert_eq!((plan.hearing(), plan.serving()), (5, 6));
    }

    #[test]
    fn crash_leaves_what_was_committed_and_the_rest_is_heard_again() {
        let mut keeping = keeping();
        keeping.heard(change(1));
        keeping.commit();
        keeping.heard(change(2));
        keeping.crash();
        assert!(!keeping.begins_transaction());
        (1..=3).for_each(|sn| keeping.heard(change(sn)));
        assert!(keeping.begins_transaction() && !keeping.begins_transaction());
        keeping.commit();
        let stored: Vec<_> = keeping.store.iter().map(|change| change.origin.sn.0).collect();
        assert_eq!(stored, [1, 2, 3]);
    }

    #[test]
    fn reader_misses_what_is_safe_and_what_a_living_writer_has_written() {
        let mut keeping = keeping();
        (0..5).for_each(|_| keeping.wrote(WRITER));
        assert_eq!(keeping.missing(&BTreeMap::new()), None, "the writer is dead, and nothing was said to be safe");
        keeping.is_safe(WRITER, 3);
        let has = |count: i64| BTreeMap::from([(WRITER, count)]);
        assert!(keeping.missing(&has(2)).is_some() && keeping.missing(&has(3)).is_none());
        keeping.lives(3, WRITER);
        assert!(keeping.missing(&has(4)).is_some() && keeping.missing(&has(5)).is_none());
        keeping.ends(3);
        assert!(keeping.missing(&has(4)).is_none());
    }
}
