//! Index of the stored changes of a topic, without payloads: decides by DURABILITY_SERVICE which
//! changes are stored and replaced (DDS 1.4 §2.2.3.5).
//!
//! Changes are numbered in order of arrival. Of each original writer only changes after the last
//! known one are accepted, so a change that arrives by several paths is stored once. An instance is
//! removed once it was disposed, no writer of it is left, and `service_cleanup_delay` has passed
//! since.
//!
//! The last sequence number of an original writer stays known while the writer is alive or one of
//! its changes is stored. Of all other writers the [`ORIGINS_MAX`] with the most recently stored
//! changes stay known: another service that was away may still relay old samples of those.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use takt::qos::History;
use takt::relay::{ChangeKind, SampleIdentity};
use takt::{Guid, InstanceHandle};

use crate::record::Record;

/// Maximum number of departed original writers without stored changes whose last sequence number
/// stays known.
pub(crate) const ORIGINS_MAX: usize = 1024;
/// Number of writers of an instance above which departed ones are removed.
const WRITERS_UNCHECKED_MAX: usize = 16;

/// DURABILITY_SERVICE and the limits of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) history: History,
    pub(crate) samples_max: usize,
    pub(crate) instances_max: usize,
    pub(crate) samples_per_instance_max: usize,
    pub(crate) bytes_max: u64,
    pub(crate) cleanup_delay: Option<Duration>,
}

/// Decision about a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The change is stored under this number, and the evicted ones are removed.
    Stored { number: u64, evicted: Vec<u64> },
    /// The change was received before.
    Repeated,
    /// There is no room; contains the name of the limit.
    Full(&'static str),
}

#[derive(Debug, Default)]
struct Instance {
    changes: VecDeque<u64>,
    is_disposed: bool,
    /// Writers that have written the instance and not unregistered it.
    writers: Vec<Guid>,
    /// Time at which the instance ended.
    ended: Option<Instant>,
}

/// Stored change.
#[derive(Clone, Copy, Debug)]
struct StoredChange {
    instance: InstanceHandle,
    payload_len: u64,
    origin: SampleIdentity,
    is_relayed: bool,
}

/// Progress of an original writer.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// Sequence number of its last change.
    last: i64,
    /// Number of its stored changes.
    stored: usize,
    /// Number under which its last change was stored; 0 if that was before a restart.
    last_stored: u64,
}

#[derive(Debug)]
pub(crate) struct Index {
    policy: Policy,
    changes: BTreeMap<u64, StoredChange>,
    instances: HashMap<InstanceHandle, Instance>,
    origins: HashMap<Guid, Origin>,
    bytes: u64,
    next: u64,
}

impl Index {
    pub(crate) fn new(policy: Policy) -> Self {
        let (changes, instances, origins) = Default::default();
        Self { policy, changes, instances, origins, bytes: 0, next: 0 }
    }

    /// Returns the number of stored payload bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of the next change.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns the last sequence number of an original writer.
    pub(crate) fn last_of(&self, writer: Guid) -> i64 {
        self.origins.get(&writer).map_or(0, |origin| origin.last)
    }

    /// Restores a change that the store has under this number. Changes are restored in order of
    /// their numbers, and respect the limits, since they did before.
    pub(crate) fn restore(&mut self, number: u64, record: &Record) {
        self.next = number;
        self.store(record);
    }

    /// Restores the last known sequence number of an original writer.
    pub(crate) fn restore_origin(&mut self, writer: Guid, last: i64) {
        let known = self.origins.entry(writer).or_default();
        known.last = known.last.max(last);
    }

    /// Corrects the last known sequence number of a live writer that has not reached it: another
    /// participant forged the number. Removes relayed changes above `credible`, and returns to the
    /// last remaining change, but not below `before`. Returns the numbers of the removed changes.
    /// Visits all changes.
    pub(crate) fn correct_origin(&mut self, writer: Guid, before: i64, credible: i64) -> Vec<u64> {
        let is_forged = |stored: &StoredChange| stored.is_relayed && stored.origin.sn.0 > credible;
        let of_writer = self.changes.iter().filter(|(_, stored)| stored.origin.writer == writer);
        let (forged, left): (Vec<_>, Vec<_>) = of_writer.partition(|(_, stored)| is_forged(stored));
        let last = left.iter().map(|(_, stored)| stored.origin.sn.0).fold(before, i64::max);
        let forged: Vec<u64> = forged.into_iter().map(|(number, _)| *number).collect();
        for number in &forged {
            self.remove(*number);
        }
        if let Some(origin) = self.origins.get_mut(&writer) {
            origin.last = last;
        }
        forged
    }

    /// Removes departed original writers without stored changes, except the [`ORIGINS_MAX`] whose
    /// changes were stored most recently. Returns the removed ones.
    pub(crate) fn remove_origins(&mut self, is_alive: impl Fn(Guid) -> bool) -> Vec<Guid> {
        if self.origins.len() <= ORIGINS_MAX {
            return Vec::new();
        }
        let is_idle = |writer: &Guid, origin: &Origin| origin.stored == 0 && !is_alive(*writer);
        let idle = self.origins.iter().filter(|(writer, origin)| is_idle(writer, origin));
        let mut idle: Vec<(u64, Guid)> = idle.map(|(writer, origin)| (origin.last_stored, *writer)).collect();
        idle.sort_unstable();
        idle.truncate(idle.len().saturating_sub(ORIGINS_MAX));
        let removed: Vec<Guid> = idle.into_iter().map(|(_, writer)| writer).collect();
        for writer in &removed {
            self.origins.remove(writer);
        }
        removed
    }

    /// Decides about a change, and indexes it if it is stored. `disk_bytes` is the remaining
    /// payload budget of the disk, for a change that is stored there.
    pub(crate) fn admit(&mut self, record: &Record, disk_bytes: Option<u64>) -> Admission {
        let Policy { history, samples_max, instances_max, samples_per_instance_max, bytes_max, .. } = self.policy;
        if record.origin.sn.0 <= self.last_of(record.origin.writer) {
            return Admission::Repeated;
        }
        let instance = self.instances.get(&record.instance);
        let count = instance.map_or(0, |instance| instance.changes.len());
        let gives_way = match history {
            History::KeepLast(depth) if count >= depth as usize => instance.and_then(|i| i.changes.front()).copied(),
            _ => None,
        };
        let freed = gives_way.and_then(|number| self.changes.get(&number)).map_or(0, |replaced| replaced.payload_len);
        let len = record.payload.len() as u64;
        if gives_way.is_none() && self.changes.len() >= samples_max {
            return Admission::Full("max_samples");
        }
        if instance.is_none() && self.instances.len() >= instances_max {
            return Admission::Full("max_instances");
        }
        if history == History::KeepAll && count >= samples_per_instance_max {
            return Admission::Full("max_samples_per_instance");
        }
        if self.bytes - freed + len > bytes_max {
            return Admission::Full("memory of a topic");
        }
        if disk_bytes.is_some_and(|room| len.saturating_sub(freed) > room) {
            return Admission::Full("disk");
        }
        let evicted: Vec<u64> = gives_way.into_iter().collect();
        for number in &evicted {
            self.remove(*number);
        }
        Admission::Stored { number: self.store(record), evicted }
    }

    fn store(&mut self, record: &Record) -> u64 {
        let number = self.next;
        self.next += 1;
        let len = record.payload.len() as u64;
        let Record { instance, origin, is_relayed, .. } = *record;
        self.changes.insert(number, StoredChange { instance, payload_len: len, origin, is_relayed });
        self.bytes += len;
        let origin = self.origins.entry(record.origin.writer).or_default();
        *origin = Origin { last: record.origin.sn.0, stored: origin.stored + 1, last_stored: number };
        let instance = self.instances.entry(record.instance).or_default();
        instance.changes.push_back(number);
        instance.ended = None;
        instance.is_disposed = match record.kind {
            ChangeKind::Alive => false,
            ChangeKind::Unregistered => instance.is_disposed,
            ChangeKind::Disposed | ChangeKind::DisposedUnregistered => true,
        };
        instance.writers.retain(|writer| *writer != record.origin.writer);
        if matches!(record.kind, ChangeKind::Alive | ChangeKind::Disposed) {
            instance.writers.push(record.origin.writer);
        }
        number
    }

    fn remove(&mut self, number: u64) {
        let Some(StoredChange { instance, payload_len, origin, .. }) = self.changes.remove(&number) else { return };
        self.bytes -= payload_len;
        if let Some(instance) = self.instances.get_mut(&instance) {
            instance.changes.retain(|stored| *stored != number);
        }
        if let Some(origin) = self.origins.get_mut(&origin.writer) {
            origin.stored -= 1;
        }
    }

    /// Removes the instances whose cleanup delay has passed. Returns them with the numbers of their
    /// changes.
    pub(crate) fn clean_up(
        &mut self,
        now: Instant,
        is_alive: impl Fn(Guid) -> bool,
    ) -> Vec<(InstanceHandle, Vec<u64>)> {
        for instance in self.instances.values_mut().filter(|it| it.writers.len() > WRITERS_UNCHECKED_MAX) {
            instance.writers.retain(|writer| is_alive(*writer));
        }
        let Some(delay) = self.policy.cleanup_delay else { return Vec::new() };
        let mut over = Vec::new();
        for (handle, instance) in self.instances.iter_mut().filter(|(_, instance)| instance.is_disposed) {
            instance.writers.retain(|writer| is_alive(*writer));
            if instance.writers.is_empty() && now - *instance.ended.get_or_insert(now) >= delay {
                over.push(*handle);
            }
        }
        over.into_iter()
            .map(|handle| {
                let numbers = self.instances.remove(&handle).map(|instance| Vec::from(instance.changes));
                let numbers = numbers.unwrap_or_default();
                for number in &numbers {
                    self.remove(*number);
                }
                (handle, numbers)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    const POLICY: Policy = Policy {
        history: History::KeepAll,
        samples_max: 100,
        instances_max: 100,
        samples_per_instance_max: 100,
        bytes_max: 1_000_000,
        cleanup_delay: Some(Duration::from_secs(5)),
    };

    fn number(admission: Admission) -> u64 {
        let Admission::Stored { number, .. } = admission else { panic!("{admission:?}") };
        number
    }

    #[test]
    fn each_change_of_a_writer_is_stored_once_and_in_order() {
        let mut index = Index::new(POLICY);
        assert_eq!(number(index.admit(&record(1, 1, 0, ChangeKind::Alive), None)), 0);
        assert_eq!(number(index.admit(&record(2, 1, 0, ChangeKind::Alive), None)), 1, "another writer's");
        assert_eq!(number(index.admit(&record(1, 3, 0, ChangeKind::Alive), None)), 2);
        assert_eq!(index.admit(&record(1, 3, 0, ChangeKind::Alive), None), Admission::Repeated);
        assert_eq!(index.admit(&record(1, 2, 0, ChangeKind::Alive), None), Admission::Repeated);
        assert_eq!((index.len(), index.bytes()), (3, 30));
    }

    #[test]
    fn keep_last_evicts_the_oldest_change_of_the_instance() {
        let mut index = Index::new(Policy { history: History::KeepLast(2), samples_max: 4, ..POLICY });
        for sn in 1..=4 {
            index.admit(&record(1, sn, (sn % 2) as u8, ChangeKind::Alive), None);
        }
        let admission = index.admit(&record(1, 5, 1, ChangeKind::Alive), None);
        assert_eq!(admission, Admission::Stored { number: 4, evicted: vec![0] });
        assert_eq!(index.admit(&record(1, 6, 7, ChangeKind::Alive), None), Admission::Full("max_samples"));
        assert_eq!(index.len(), 4);
    }

    #[test]
    fn every_limit_refuses_new_changes_and_keeps_existing_ones() {
        for (policy, limit) in [
            (Policy { samples_max: 2, ..POLICY }, "max_samples"),
            (Policy { instances_max: 2, ..POLICY }, "max_instances"),
            (Policy { bytes_max: 20, ..POLICY }, "memory of a topic"),
        ] {
            let mut index = Index::new(policy);
            for sn in 1..=2 {
                number(index.admit(&record(1, sn, sn as u8, ChangeKind::Alive), None));
            }
            assert_eq!(index.admit(&record(1, 3, 3, ChangeKind::Alive), None), Admission::Full(limit));
            assert_eq!((index.len(), index.last_of(Guid::from_bytes([1; 16]))), (2, 2), "{limit}");
        }
        let mut index = Index::new(Policy { samples_per_instance_max: 1, ..POLICY });
        number(index.admit(&record(1, 1, 1, ChangeKind::Alive), None));
        let refused = index.admit(&record(1, 2, 1, ChangeKind::Alive), None);
        assert_eq!(refused, Admission::Full("max_samples_per_instance"));
    }

    #[test]
    fn instance_is_removed_when_disposed_and_without_writers_for_the_delay() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut index = Index::new(POLICY);
        index.admit(&record(1, 1, 1, ChangeKind::Alive), None);
        index.admit(&record(1, 2, 2, ChangeKind::Alive), None);
        index.admit(&record(1, 3, 3, ChangeKind::Alive), None);
        index.admit(&record(1, 4, 1, ChangeKind::DisposedUnregistered), None);
        index.admit(&record(1, 5, 2, ChangeKind::Disposed), None);
        index.admit(&record(1, 6, 3, ChangeKind::Unregistered), None);
        assert_eq!(index.clean_up(start, |_| true), []);
        assert_eq!(index.clean_up(after(4), |_| true), []);
        assert_eq!(index.clean_up(after(5), |_| true), [(InstanceHandle([1; 16]), vec![0, 3])]);
        assert_eq!(index.clean_up(after(9), |_| false), [], "its writer was lost only now");
        assert_eq!(index.clean_up(after(14), |_| false), [(InstanceHandle([2; 16]), vec![1, 4])]);
        assert_eq!(index.clean_up(after(99), |_| false), [], "what its writer only left stays");
        assert_eq!((index.len(), index.bytes()), (2, 20));
    }

    #[test]
    fn disposed_instance_that_is_written_again_stays() {
        let start = Instant::now();
        let mut index = Index::new(POLICY);
        index.admit(&record(1, 1, 1, ChangeKind::DisposedUnregistered), None);
        assert_eq!(index.clean_up(start, |_| false), []);
        index.admit(&record(1, 2, 1, ChangeKind::Alive), None);
        assert_eq!(index.clean_up(start + Duration::from_secs(50), |_| false), []);
    }

    #[test]
    fn correction_removes_relayed_changes_above_the_credible_number() {
        let mut index = Index::new(POLICY);
        let relayed = |writer, sn| Record { is_relayed: true, ..record(writer, sn, 0, ChangeKind::Alive) };
        index.admit(&relayed(1, 5), None);
        index.admit(&relayed(2, 6), None);
        index.admit(&record(1, 6, 0, ChangeKind::Alive), None);
        let forged = number(index.admit(&relayed(1, 7), None));
        let writer = Guid::from_bytes([1; 16]);
        assert_eq!(index.correct_origin(writer, 0, 5), [forged], "it announced 6 itself");
        assert_eq!((index.len(), index.last_of(writer)), (3, 6));
    }

    #[test]
    fn restored_changes_count_as_received() {
        let mut index = Index::new(POLICY);
        index.restore(7, &record(1, 5, 1, ChangeKind::Alive));
        index.restore_origin(Guid::from_bytes([1; 16]), 9);
        assert_eq!(index.admit(&record(1, 9, 1, ChangeKind::Alive), None), Admission::Repeated);
        assert_eq!(number(index.admit(&record(1, 10, 1, ChangeKind::Alive), None)), 8);
    }
}
