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
/// writers, of each service the process that hears and the one that serves, the readers, the one that forges.
#[derive(Clone, Copy, Debug)]
pub struct KeepingPlan {
    /// The first one.
    pub first: usize,
    /// So many writers.
    pub writers: usize,
    /// So many services.
    pub services: usize,
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
    /// It is the part of this service that hears.
    Hears(usize),
    /// It is the part of this service that serves.
    Serves(usize),
    /// It reads.
    Reads,
    /// It claims to be a service, and lies.
    Forges,
}

impl KeepingPlan {
    /// The process of a service that hears.
    #[must_use]
    pub fn hearing(&self, service: usize) -> usize {
        self.first + self.writers + 2 * service
    }

    /// The process of a service that serves.
    #[must_use]
    pub fn serving(&self, service: usize) -> usize {
        self.hearing(service) + 1
    }

    /// What a process has to do with it.
    #[must_use]
    pub fn part_of(&self, process: usize) -> Option<Part> {
        let index = process.checked_sub(self.first)?;
        let Some(index) = index.checked_sub(self.writers) else { return Some(Part::Writes) };
        Some(match index.checked_sub(2 * self.services) {
            None if index.is_multiple_of(2) => Part::Hears(index / 2),
            None => Part::Serves(index / 2),
            Some(index) if index < self.readers => Part::Reads,
            Some(_) => Part::Forges,
        })
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

/// A service, with its store.
#[derive(Debug, Default)]
struct Service {
    /// What was committed, in its order. It outlives the processes of the service.
    store: Vec<KeptChange>,
    /// Taken, and not committed.
    pending: Vec<KeptChange>,
    /// Something was taken that is not acknowledged.
    is_unsettled: bool,
    /// A commit is planned.
    commits: bool,
    /// By writer: the last change that was heard, and the last one in the store.
    heard: BTreeMap<Guid, i64>,
    committed: BTreeMap<Guid, i64>,
}

/// The stores of the services, and the model of what is promised.
#[derive(Debug)]
pub struct Keeping {
    /// The processes.
    pub plan: KeepingPlan,
    services: Vec<Service>,
    /// By writer: the last change that was written, and that the writer was told to be safe.
    written: BTreeMap<Guid, i64>,
    safe: BTreeMap<Guid, i64>,
    /// Writers that live.
    living: BTreeMap<usize, Guid>,
}

impl Keeping {
    /// With empty stores.
    #[must_use]
    pub fn new(plan: KeepingPlan) -> Self {
        Self {
            plan,
            services: (0..plan.services).map(|_| Service::default()).collect(),
            written: BTreeMap::new(),
            safe: BTreeMap::new(),
            living: BTreeMap::new(),
        }
    }

    /// What a service has committed.
    #[must_use]
    pub fn store(&self, service: usize) -> &[KeptChange] {
        &self.services[service].store
    }

    /// A service has taken a change, once or again.
    pub fn heard(&mut self, service: usize, change: KeptChange) {
        let service = &mut self.services[service];
        service.is_unsettled = true;
        let last = service.heard.entry(change.origin.writer).or_default();
        if change.origin.sn.0 > *last {
            *last = change.origin.sn.0;
            service.pending.push(change);
        }
    }

    /// Whether a transaction of a service begins now.
    pub fn begins_transaction(&mut self, service: usize) -> bool {
        let service = &mut self.services[service];
        service.is_unsettled && !std::mem::replace(&mut service.commits, true)
    }

    /// What a service has heard is in its store.
    pub fn commit(&mut self, service: usize) {
        let service = &mut self.services[service];
        (service.commits, service.is_unsettled) = (false, false);
        let committed = service.pending.iter().map(|change| (change.origin.writer, change.origin.sn.0));
        service.committed.extend(committed);
        service.store.append(&mut service.pending);
    }

    /// A service was killed: only its store is left.
    pub fn crash(&mut self, service: usize) {
        let store = std::mem::take(&mut self.services[service].store);
        let heard: BTreeMap<_, _> = store.iter().map(|change| (change.origin.writer, change.origin.sn.0)).collect();
        self.services[service] = Service { store, committed: heard.clone(), heard, ..Service::default() };
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

    /// The service of a process acknowledges a writer's changes up to this one.
    ///
    /// # Errors
    /// What of it is not in the store of that service.
    pub fn judge_safe(&self, process: usize, writer: Guid, upto: i64) -> Result<(), String> {
        let Some(Part::Hears(service)) = self.plan.part_of(process) else { return Ok(()) };
        let committed = self.services[service].committed.get(&writer).copied().unwrap_or(0);
        let is_true = upto <= committed || self.plan.forges;
        if is_true {
            Ok(())
        } else {
            Err(format!("service {service} has {committed} of {writer:?}, which was told {upto}"))
        }
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

    /// What a service should have heard in the end, and has not.
    #[must_use]
    pub fn unheard(&self, service: usize) -> Option<String> {
        let heard = |writer: &Guid| self.services[service].heard.get(writer).copied().unwrap_or(0);
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
        Keeping::new(KeepingPlan {
            first: 3,
            writers: 2,
            services: 2,
            readers: 1,
            forges: true,
            period: 1,
            commit_time: 1,
        })
    }

    #[test]
    fn processes_have_their_parts_in_order() {
        let plan = keeping().plan;
        let parts: Vec<_> = (2..11).map(|process| plan.part_of(process)).collect();
        let services = [Part::Hears(0), Part::Serves(0), Part::Hears(1), Part::Serves(1)];
        let expected = [Part::Writes; 2].into_iter().chain(services).chain([Part::Reads, Part::Forges]);
        assert_eq!(parts[0], None);
        assert!(parts[1..].iter().copied().eq(expected.map(Some)), "{parts:?}");
        assert_eq!((plan.hearing(0), plan.serving(1)), (5, 8));
    }

    #[test]
    fn crash_leaves_what_was_committed_and_the_rest_is_heard_again() {
        let mut keeping = keeping();
        keeping.heard(0, change(1));
        keeping.commit(0);
        keeping.heard(0, change(2));
        keeping.crash(0);
        assert!(!keeping.begins_transaction(0));
        (1..=3).for_each(|sn| keeping.heard(0, change(sn)));
        assert!(keeping.begins_transaction(0) && !keeping.begins_transaction(0) && !keeping.begins_transaction(1));
        keeping.commit(0);
        assert!(keeping.store(1).is_empty(), "each service has a store of its own");
        let stored: Vec<_> = keeping.store(0).iter().map(|change| change.origin.sn.0).collect();
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
