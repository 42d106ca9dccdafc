//! What is kept of a topic, without the data: how DURABILITY_SERVICE decides (DDS 1.4 §2.2.3.5).
//!
//! Changes are numbered in the order in which they came. Of each original writer only what follows the last one is taken,
//! so what arrives by several ways is kept once. An instance gives way when it was disposed of, no writer is left that
//! wrote it, and `service_cleanup_delay` has passed since.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use takt::qos::History;
use takt::relay::ChangeKind;
use takt::{Guid, InstanceHandle};

use crate::record::Record;

/// DURABILITY_SERVICE and the service's own limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) history: History,
    pub(crate) samples_max: usize,
    pub(crate) instances_max: usize,
    pub(crate) samples_per_instance_max: usize,
    pub(crate) bytes_max: u64,
    pub(crate) cleanup_delay: Option<Duration>,
}

/// What becomes of a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is kept under this number, and those give way.
    Kept { number: u64, evicted: Vec<u64> },
    /// It was here before.
    Repeated,
    /// There is no room: which limit says so.
    Full(&'static str),
}

#[derive(Debug, Default)]
struct Instance {
    changes: VecDeque<u64>,
    is_disposed: bool,
    /// Those that have written it and not unregistered it.
    writers: Vec<Guid>,
    /// Since when nobody is left.
    ended: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Index {
    policy: Policy,
    /// Instance and payload length of each change.
    changes: BTreeMap<u64, (InstanceHandle, u64)>,
    instances: HashMap<InstanceHandle, Instance>,
    /// The last change that came of each original writer.
    origins: HashMap<Guid, i64>,
    bytes: u64,
    next: u64,
}

impl Index {
    pub(crate) fn new(policy: Policy) -> Self {
        let (changes, instances, origins) = Default::default();
        Self { policy, changes, instances, origins, bytes: 0, next: 0 }
    }

    /// Payload bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The last number that came of an original writer.
    pub(crate) fn last_of(&self, writer: Guid) -> i64 {
        self.origins.get(&writer).copied().unwrap_or(0)
    }

    /// A change that a store had under this number. Changes come in order of their numbers, and fit, since they did before.
    pub(crate) fn restore(&mut self, number: u64, record: &Record) {
        self.next = number;
        self.keep(record);
    }

    /// How far an original writer had come when the store was closed.
    pub(crate) fn restore_origin(&mut self, writer: Guid, last: i64) {
        let known = self.origins.entry(writer).or_insert(last);
        *known = (*known).max(last);
    }

    /// Decides about a change, and keeps account of it if it is kept.
    pub(crate) fn admit(&mut self, record: &Record) -> Admission {
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
        let freed = gives_way.and_then(|number| self.changes.get(&number)).map_or(0, |(_, len)| *len);
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
        let evicted: Vec<u64> = gives_way.into_iter().collect();
        for number in &evicted {
            self.forget(*number);
        }
        Admission::Kept { number: self.keep(record), evicted }
    }

    fn keep(&mut self, record: &Record) -> u64 {
        let number = self.next;
        self.next += 1;
        let len = record.payload.len() as u64;
        self.changes.insert(number, (record.instance, len));
        self.bytes += len;
        self.origins.insert(record.origin.writer, record.origin.sn.0);
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

    fn forget(&mut self, number: u64) {
        let Some((handle, len)) = self.changes.remove(&number) else { return };
        self.bytes -= len;
        if let Some(instance) = self.instances.get_mut(&handle) {
            instance.changes.retain(|kept| *kept != number);
        }
    }

    /// Gives up the instances that have ended for long enough. Returns them with the numbers of their changes.
    pub(crate) fn clean_up(&mut self, now: Instant, lives: impl Fn(Guid) -> bool) -> Vec<(InstanceHandle, Vec<u64>)> {
        let Some(delay) = self.policy.cleanup_delay else { return Vec::new() };
        let mut over = Vec::new();
        for (handle, instance) in self.instances.iter_mut().filter(|(_, instance)| instance.is_disposed) {
            instance.writers.retain(|writer| lives(*writer));
            if instance.writers.is_empty() && now - *instance.ended.get_or_insert(now) >= delay {
                over.push(*handle);
            }
        }
        over.into_iter()
            .map(|handle| {
                let numbers = self.instances.remove(&handle).map(|instance| Vec::from(instance.changes));
                let numbers = numbers.unwrap_or_default();
                for number in &numbers {
                    self.forget(*number);
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
        let Admission::Kept { number, .. } = admission else { panic!("{admission:?}") };
        number
    }

    #[test]
    fn each_change_of_a_writer_is_kept_once_and_in_order() {
        let mut index = Index::new(POLICY);
        assert_eq!(number(index.admit(&record(1, 1, 0, ChangeKind::Alive))), 0);
        assert_eq!(number(index.admit(&record(2, 1, 0, ChangeKind::Alive))), 1, "another writer's");
        assert_eq!(number(index.admit(&record(1, 3, 0, ChangeKind::Alive))), 2);
        assert_eq!(index.admit(&record(1, 3, 0, ChangeKind::Alive)), Admission::Repeated);
        assert_eq!(index.admit(&record(1, 2, 0, ChangeKind::Alive)), Admission::Repeated);
        assert_eq!((index.len(), index.bytes()), (3, 30));
    }

    #[test]
    fn keep_last_lets_the_oldest_of_the_instance_give_way() {
        let mut index = Index::new(Policy { history: History::KeepLast(2), samples_max: 4, ..POLICY });
        for sn in 1..=4 {
            index.admit(&record(1, sn, (sn % 2) as u8, ChangeKind::Alive));
        }
        let admission = index.admit(&record(1, 5, 1, ChangeKind::Alive));
        assert_eq!(admission, Admission::Kept { number: 4, evicted: vec![0] });
        assert_eq!(index.admit(&record(1, 6, 7, ChangeKind::Alive)), Admission::Full("max_samples"));
        assert_eq!(index.len(), 4);
    }

    #[test]
    fn every_limit_refuses_what_is_too_much_and_keeps_what_there_is() {
        for (policy, limit) in [
            (Policy { samples_max: 2, ..POLICY }, "max_samples"),
            (Policy { instances_max: 2, ..POLICY }, "max_instances"),
            (Policy { bytes_max: 25, ..POLICY }, "memory of a topic"),
        ] {
            let mut index = Index::new(policy);
            for sn in 1..=2 {
                number(index.admit(&record(1, sn, sn as u8, ChangeKind::Alive)));
            }
            assert_eq!(index.admit(&record(1, 3, 3, ChangeKind::Alive)), Admission::Full(limit));
            assert_eq!((index.len(), index.last_of(Guid::from_bytes([1; 16]))), (2, 2), "{limit}");
        }
        let mut index = Index::new(Policy { samples_per_instance_max: 1, ..POLICY });
        number(index.admit(&record(1, 1, 1, ChangeKind::Alive)));
        let refused = index.admit(&record(1, 2, 1, ChangeKind::Alive));
        assert_eq!(refused, Admission::Full("max_samples_per_instance"));
    }

    #[test]
    fn an_instance_goes_when_it_is_disposed_and_without_writers_for_the_delay() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut index = Index::new(POLICY);
        index.admit(&record(1, 1, 1, ChangeKind::Alive));
        index.admit(&record(1, 2, 2, ChangeKind::Alive));
        index.admit(&record(1, 3, 3, ChangeKind::Alive));
        index.admit(&record(1, 4, 1, ChangeKind::DisposedUnregistered));
        index.admit(&record(1, 5, 2, ChangeKind::Disposed));
        index.admit(&record(1, 6, 3, ChangeKind::Unregistered));
        assert_eq!(index.clean_up(start, |_| true), []);
        assert_eq!(index.clean_up(after(4), |_| true), []);
        assert_eq!(index.clean_up(after(5), |_| true), [(InstanceHandle([1; 16]), vec![0, 3])]);
        assert_eq!(index.clean_up(after(9), |_| false), [], "its writer died only now");
        assert_eq!(index.clean_up(after(14), |_| false), [(InstanceHandle([2; 16]), vec![1, 4])]);
        assert_eq!(index.clean_up(after(99), |_| false), [], "what its writer only left stays");
        assert_eq!((index.len(), index.bytes()), (2, 20));
    }

    #[test]
    fn a_disposed_instance_that_is_written_again_stays() {
        let start = Instant::now();
        let mut index = Index::new(POLICY);
        index.admit(&record(1, 1, 1, ChangeKind::DisposedUnregistered));
        assert_eq!(index.clean_up(start, |_| false), []);
        index.admit(&record(1, 2, 1, ChangeKind::Alive));
        assert_eq!(index.clean_up(start + Duration::from_secs(50), |_| false), []);
    }

    #[test]
    fn what_a_store_had_counts_as_if_it_had_come() {
        let mut index = Index::new(POLICY);
        index.restore(7, &record(1, 5, 1, ChangeKind::Alive));
        index.restore_origin(Guid::from_bytes([1; 16]), 9);
        assert_eq!(index.admit(&record(1, 9, 1, ChangeKind::Alive)), Admission::Repeated);
        assert_eq!(number(index.admit(&record(1, 10, 1, ChangeKind::Alive))), 8);
    }
}
