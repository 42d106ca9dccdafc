//! Readers of multitopics.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use takt_core::{InstanceState, Selector};

use super::join::{Memory, typed};
use super::{Inner, MultiTopic};
use crate::condition::ReadCondition;
use crate::dynamic::DynamicDataReader;
use crate::qos::DataReaderQos;
use crate::sample::Sample;
use crate::{Result, Subscriber, TypeSupport};

/// Maximum number of joined samples that wait to be taken. The oldest one is dropped to make room
/// for the newest.
const RESULTS_MAX: usize = 4096;

/// Reader of a [`MultiTopic`]. Clones refer to the same reader.
pub struct MultiTopicReader<T> {
    inner: Arc<ReaderInner<T>>,
}

struct ReaderInner<T> {
    topic: Arc<Inner>,
    /// Reader of each joined topic.
    readers: Vec<DynamicDataReader>,
    state: Mutex<State<T>>,
    type_: PhantomData<fn(&T)>,
}

struct State<T> {
    memory: Memory,
    results: VecDeque<Sample<T>>,
    lost: u64,
}

impl Subscriber {
    /// Creates a reader of a multitopic. It has an ordinary reader with these policies for each
    /// joined topic.
    ///
    /// # Errors
    /// As [`create_datareader`](Self::create_datareader).
    pub fn create_multitopic_datareader<T: TypeSupport>(
        &self,
        topic: &MultiTopic<T>,
        qos: &DataReaderQos,
    ) -> Result<MultiTopicReader<T>> {
        let constituents = topic.inner.constituents.iter();
        let readers = constituents.map(|(name, type_)| self.create_dynamic_datareader(name, type_, qos.clone()));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let memory = Memory::new(readers.len());
        let state = Mutex::new(State { memory, results: VecDeque::new(), lost: 0 });
        let inner = ReaderInner { topic: Arc::clone(&topic.inner), readers, state, type_: PhantomData };
        Ok(MultiTopicReader { inner: Arc::new(inner) })
    }
}

impl<T: TypeSupport> MultiTopicReader<T> {
    /// Joins the samples that have arrived, and takes up to `max` joined samples, the oldest first.
    /// All of them have data. The SampleInfo of a joined sample is that of the received sample that
    /// completed it.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after the participant was closed.
    pub fn take(&self, max: usize) -> Result<Vec<Sample<T>>> {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = self.inner.topic.filter();
        for (topic, reader) in self.inner.readers.iter().enumerate() {
            for sample in reader.take(usize::MAX)? {
                let (info, instance) = (sample.info, sample.info.instance_handle);
                match sample.value {
                    Some(Ok(data)) if info.valid_data => {
                        let State { memory, results, lost } = &mut *state;
                        let type_ = &self.inner.topic.type_;
                        memory.add(&self.inner.topic.plan, type_, (topic, instance, data), |made| {
                            let wanted = filter.matches_data(&made);
                            let Some(value) = wanted.then(|| typed::<T>(type_, &made)).flatten() else { return };
                            if results.len() == RESULTS_MAX {
                                results.pop_front();
                                *lost += 1;
                            }
                            results.push_back(Sample { data: Some(value), key: None, info });
                        });
                    }
                    _ if info.instance_state != InstanceState::Alive => state.memory.remove(topic, instance),
                    _ => {}
                }
            }
        }
        let count = max.min(state.results.len());
        Ok(state.results.drain(..count).collect())
    }

    /// Returns one condition for each joined topic. A condition is true while a sample of its topic
    /// has arrived that is not yet joined.
    #[must_use]
    pub fn read_conditions(&self) -> Vec<ReadCondition> {
        self.inner.readers.iter().map(|reader| reader.read_condition(Selector::READ)).collect()
    }

    /// Returns the readers of the joined topics, in the order of the expression.
    #[must_use]
    pub fn constituents(&self) -> &[DynamicDataReader] {
        &self.inner.readers
    }

    /// Returns the number of joined samples that were not produced or not kept because a limit was
    /// reached.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lost + state.memory.refused
    }
}

impl<T> Clone for MultiTopicReader<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for MultiTopicReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiTopicReader").field("constituents", &self.inner.readers).finish_non_exhaustive()
    }
}
