//! Simulated durability service (DDS 1.4 §2.2.3.4) and the model of its guarantees.
//!
//! The service consists of two processes on one host, like the two participants of
//! `takt-durability`. One *receives* from the writers of a TRANSIENT topic, the other one *relays*
//! to late joiners. Received changes are committed some milliseconds later, in one transaction, and
//! only then acknowledged and relayed. The store outlives the processes. The two processes are
//! killed together, lose uncommitted changes, and serve the store after a restart.
//!
//! Writers are KEEP_ALL, so every change of a writer must arrive. A reader shows the changes of a
//! writer in order from the first one on, whichever process sends them. In the end it has all
//! changes of living writers, and all changes that the service has reported as stored to any
//! writer, living or not.
//!
//! In some worlds another process is a forger. It claims to be a service and relays changes in the
//! names of the living writers, with numbers that these have not reached. These worlds have no
//! other faults. Readers that are matched with a writer still show its further changes, and the
//! service still keeps all of them. No check covers which first changes readers miss and which
//! forged ones they show: without DDS Security a reader cannot distinguish them.

use std::collections::BTreeMap;

use takt_core::SampleRef;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

use crate::check::Rule;
use crate::clock::Nanos;

/// Processes of a world that use the TRANSIENT topic. Their indices follow those of the
/// applications, in this order: the writers, the receiving and the relaying process of each
/// service, the readers, the forger.
#[derive(Clone, Copy, Debug)]
pub struct DurabilityPlan {
    /// Index of the first process.
    pub first: usize,
    /// Number of writers.
    pub writers: usize,
    /// Number of services.
    pub services: usize,
    /// Number of readers.
    pub readers: usize,
    /// Whether the last process is a forger.
    pub has_forger: bool,
    /// Time between two samples of a writer.
    pub period: Nanos,
    /// Time from the first change of a transaction to its commit.
    pub commit_time: Nanos,
}

/// Role of a process on the TRANSIENT topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityRole {
    /// A writer.
    Writer,
    /// The receiving process of this service.
    Receiver(usize),
    /// The serving process of this service.
    Relay(usize),
    /// A reader.
    Reader,
    /// A forger, which falsely claims to be a service.
    Forger,
}

impl DurabilityPlan {
    /// Returns the receiving process of a service.
    #[must_use]
    pub fn receiving_process(&self, service: usize) -> usize {
        self.first + self.writers + 2 * service
    }

    /// Returns the relaying process of a service.
    #[must_use]
    pub fn relaying_process(&self, service: usize) -> usize {
        self.receiving_process(service) + 1
    }

    /// Returns the role of a process.
    #[must_use]
    pub fn role_of(&self, process: usize) -> Option<DurabilityRole> {
        let index = process.checked_sub(self.first)?;
        let Some(index) = index.checked_sub(self.writers) else { return Some(DurabilityRole::Writer) };
        Some(match index.checked_sub(2 * self.services) {
            None if index.is_multiple_of(2) => DurabilityRole::Receiver(index / 2),
            None => DurabilityRole::Relay(index / 2),
            Some(index) if index < self.readers => DurabilityRole::Reader,
            Some(_) => DurabilityRole::Forger,
        })
    }
}

/// A change in the store.
#[derive(Clone, Debug)]
pub struct StoredChange {
    /// GUID of the original writer and sequence number of the change.
    pub origin: SampleIdentity,
    /// Source timestamp.
    pub source_timestamp: Timestamp,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// A service with its store.
#[derive(Debug, Default)]
struct Service {
    /// Committed changes, in commit order. They outlive the processes of the service.
    store: Vec<StoredChange>,
    /// Changes that were taken and not committed.
    pending: Vec<StoredChange>,
    /// Whether taken changes are not yet acknowledged.
    is_unacknowledged: bool,
    /// Whether a commit is scheduled.
    commits: bool,
    /// By writer: the last received change; `committed` holds the last one in the store.
    received: BTreeMap<Guid, i64>,
    committed: BTreeMap<Guid, i64>,
}

/// Stores of the services, and the model of their guarantees.
#[derive(Debug)]
pub struct DurabilityModel {
    /// Plan of the processes.
    pub plan: DurabilityPlan,
    services: Vec<Service>,
    /// By writer: the last written change. `stored` holds the last change that was reported as
    /// stored.
    written: BTreeMap<Guid, i64>,
    stored: BTreeMap<Guid, i64>,
    /// Living writers, by process.
    alive_writers: BTreeMap<usize, Guid>,
}

impl DurabilityModel {
    /// Creates the model with empty stores.
    #[must_use]
    pub fn new(plan: DurabilityPlan) -> Self {
        Self {
            plan,
            services: (0..plan.services).map(|_| Service::default()).collect(),
            written: BTreeMap::new(),
            stored: BTreeMap::new(),
            alive_writers: BTreeMap::new(),
        }
    }

    /// Returns the committed changes of a service.
    #[must_use]
    pub fn store(&self, service: usize) -> &[StoredChange] {
        &self.services[service].store
    }

    /// Records that a service has taken a change, for the first time or again.
    pub fn received(&mut self, service: usize, change: StoredChange) {
        let service = &mut self.services[service];
        service.is_unacknowledged = true;
        let last = service.received.entry(change.origin.writer).or_default();
        if change.origin.sn.0 > *last {
            *last = change.origin.sn.0;
            service.pending.push(change);
        }
    }

    /// Reports whether a transaction of a service begins now.
    pub fn begins_transaction(&mut self, service: usize) -> bool {
        let service = &mut self.services[service];
        service.is_unacknowledged && !std::mem::replace(&mut service.commits, true)
    }

    /// Commits the received changes of a service.
    pub fn commit(&mut self, service: usize) {
        let service = &mut self.services[service];
        (service.commits, service.is_unacknowledged) = (false, false);
        let committed = service.pending.iter().map(|change| (change.origin.writer, change.origin.sn.0));
        service.committed.extend(committed);
        service.store.append(&mut service.pending);
    }

    /// Records that a service was killed: only its store remains.
    pub fn crash(&mut self, service: usize) {
        let store = std::mem::take(&mut self.services[service].store);
        let received: BTreeMap<_, _> = store.iter().map(|change| (change.origin.writer, change.origin.sn.0)).collect();
        self.services[service] = Service { store, committed: received.clone(), received, ..Service::default() };
    }

    /// Records the start of a writer.
    pub fn writer_started(&mut self, process: usize, writer: Guid) {
        self.alive_writers.insert(process, writer);
    }

    /// Records the end of a process.
    pub fn writer_ended(&mut self, process: usize) {
        self.alive_writers.remove(&process);
    }

    /// Records that a writer has written its next change.
    pub fn wrote(&mut self, writer: Guid) {
        *self.written.entry(writer).or_default() += 1;
    }

    /// Returns the number of the next change of a writer.
    #[must_use]
    pub fn next_number(&self, writer: Guid) -> i64 {
        self.written.get(&writer).map_or(1, |written| written + 1)
    }

    /// Records that a writer was notified that all services have its changes up to `upto`.
    pub fn record_stored(&mut self, writer: Guid, upto: i64) {
        let safe = self.stored.entry(writer).or_default();
        *safe = (*safe).max(upto);
    }

    /// Returns the next changes of a forger, which no living writer has written.
    #[must_use]
    pub fn forgery(&self, count: i64) -> Vec<StoredChange> {
        let forged = |writer: &Guid| {
            let sn = SequenceNumber(FORGED_MIN + count);
            let payload = payload_of(*writer, sn.0);
            StoredChange { origin: SampleIdentity { writer: *writer, sn }, source_timestamp: Timestamp::ZERO, payload }
        };
        self.alive_writers.values().map(forged).collect()
    }

    /// Checks that the service of a process may acknowledge the changes of a writer up to `upto`.
    ///
    /// # Errors
    /// Describes the changes that are not in the store of that service.
    pub fn check_stored(&self, process: usize, writer: Guid, upto: i64) -> Result<(), String> {
        let Some(DurabilityRole::Receiver(service)) = self.plan.role_of(process) else { return Ok(()) };
        let committed = self.services[service].committed.get(&writer).copied().unwrap_or(0);
        let is_true = upto <= committed || self.plan.has_forger;
        if is_true {
            Ok(())
        } else {
            Err(format!("service {service} has {committed} of {writer:?}, which was told {upto}"))
        }
    }

    /// Checks a change that a reader takes; `taken` holds the last change taken of each writer.
    ///
    /// # Errors
    /// Returns the violated rule and a description.
    pub fn check_taken(&self, taken: &mut BTreeMap<Guid, i64>, found: &SampleRef<'_>) -> Result<(), (Rule, String)> {
        if !found.info.valid_data {
            return Ok(());
        }
        let SampleIdentity { writer, sn } = found.info.origin;
        if self.plan.has_forger && sn.0 >= FORGED_MIN {
            return Ok(());
        }
        let written = self.written.get(&writer).copied().unwrap_or(0);
        if sn.0 > written || found.payload != payload_of(writer, sn.0) {
            return Err((Rule::UnknownSample, format!("{:?} from {:?}", found.info.origin, found.info.publication)));
        }
        let last = taken.entry(writer).or_default();
        if sn.0 <= *last {
            return Err((Rule::Duplicate, format!("change {} of {writer:?} after {last}", sn.0)));
        }
        if sn.0 != *last + 1 && !self.plan.has_forger {
            return Err((Rule::Gap, format!("change {} of {writer:?} after {last}", sn.0)));
        }
        *last = sn.0;
        Ok(())
    }

    /// Describes the changes that a reader lacks in the end.
    #[must_use]
    pub fn missing(&self, taken: &BTreeMap<Guid, i64>) -> Option<String> {
        let has = |writer: &Guid| taken.get(writer).copied().unwrap_or(0);
        let unsafe_one = self.stored.iter().find(|(writer, safe)| has(writer) < **safe);
        if let Some((writer, safe)) = unsafe_one {
            return Some(format!("{} of {writer:?}, of which changes up to {safe} are safe", has(writer)));
        }
        let written = |writer: &Guid| self.written.get(writer).copied().unwrap_or(0);
        let late = self.alive_writers.values().find(|writer| has(writer) < written(writer))?;
        Some(format!("{} of {late:?}, which lives and has written {}", has(late), written(late)))
    }

    /// Describes the changes that a service lacks in the end.
    #[must_use]
    pub fn missing_at_service(&self, service: usize) -> Option<String> {
        let received = |writer: &Guid| self.services[service].received.get(writer).copied().unwrap_or(0);
        let written = |writer: &Guid| self.written.get(writer).copied().unwrap_or(0);
        let late = self.alive_writers.values().find(|writer| received(writer) < written(writer))?;
        Some(format!("{} of {late:?}, which lives and has written {}", received(late), written(late)))
    }
}

/// Number of the first forged change.
const FORGED_MIN: i64 = 1_000_000;

/// Returns the payload of a writer's change with this number.
#[must_use]
pub fn payload_of(writer: Guid, number: i64) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &writer.to_bytes(), &number.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: Guid = Guid::from_bytes([7; 16]);

    fn change(sn: i64) -> StoredChange {
        let origin = SampleIdentity { writer: WRITER, sn: SequenceNumber(sn) };
        StoredChange { origin, source_timestamp: Timestamp::ZERO, payload: payload_of(WRITER, sn) }
    }

    fn keeping() -> DurabilityModel {
        DurabilityModel::new(DurabilityPlan {
            first: 3,
            writers: 2,
            services: 2,
            readers: 1,
            has_forger: true,
            period: 1,
            commit_time: 1,
        })
    }

    #[test]
    fn processes_have_their_roles_in_order() {
        let plan = keeping().plan;
        let parts: Vec<_> = (2..11).map(|process| plan.role_of(process)).collect();
        let services = [
            DurabilityRole::Receiver(0),
            DurabilityRole::Relay(0),
            DurabilityRole::Receiver(1),
            DurabilityRole::Relay(1),
        ];
        let expected = [DurabilityRole::Writer; 2]
            .into_iter()
            .chain(services)
            .chain([DurabilityRole::Reader, DurabilityRole::Forger]);
        assert_eq!(parts[0], None);
        assert!(parts[1..].iter().copied().eq(expected.map(Some)), "{parts:?}");
        assert_eq!((plan.receiving_process(0), plan.relaying_process(1)), (5, 8));
    }

    #[test]
    fn crash_keeps_committed_changes_and_others_are_received_again() {
        let mut model = keeping();
        model.received(0, change(1));
        model.commit(0);
        model.received(0, change(2));
        model.crash(0);
        assert!(!model.begins_transaction(0));
        (1..=3).for_each(|sn| model.received(0, change(sn)));
        assert!(model.begins_transaction(0) && !model.begins_transaction(0) && !model.begins_transaction(1));
        model.commit(0);
        assert!(model.store(1).is_empty(), "each service has a store of its own");
        let stored: Vec<_> = model.store(0).iter().map(|change| change.origin.sn.0).collect();
        assert_eq!(stored, [1, 2, 3]);
    }

    #[test]
    fn reader_must_have_safe_changes_and_those_of_living_writers() {
        let mut model = keeping();
        (0..5).for_each(|_| model.wrote(WRITER));
        assert_eq!(model.missing(&BTreeMap::new()), None, "the writer is dead, and nothing was said to be safe");
        model.record_stored(WRITER, 3);
        let has = |count: i64| BTreeMap::from([(WRITER, count)]);
        assert!(model.missing(&has(2)).is_some() && model.missing(&has(3)).is_none());
        model.writer_started(3, WRITER);
        assert!(model.missing(&has(4)).is_some() && model.missing(&has(5)).is_none());
        model.writer_ended(3);
        assert!(model.missing(&has(4)).is_none());
    }
}
