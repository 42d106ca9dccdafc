//! Timing plan: priorities, latency limits and latency bounds of topics, from the timing analysis
//! of a whole system.
//!
//! `takt_config::read_timing_plan` builds it from a system file, so that this crate needs no
//! parser; see `docs/guide/analysis.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use takt_core::LatencyTerms;
use takt_schedule::Priority;
use takt_wire::discovery::HostStages;

use crate::{Error, Result};

/// Timing of one topic on one executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicTiming {
    /// Priority of writers: that of the first stage on the executor.
    pub writer: Priority,
    /// Priority of readers and their listeners: that of the last stage on the executor.
    pub reader: Priority,
    /// Required maximum latency from `write` on, if there is one.
    pub limit: Option<Duration>,
    /// Computed latency bound from `write` to the end of the flow's last stage. `None` if there is
    /// no bound.
    pub bound: Option<Duration>,
}

/// Latency that a host adds to a topic that crosses the network, on one executor. Writers and
/// readers announce it to the OpenFlow controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicStages {
    /// Latency from `write` to the queue of the interface.
    pub writer: Option<HostStages>,
    /// Latency from the interface to the end of the callback.
    pub reader: Option<HostStages>,
}

/// Priorities and bounds of all topics of a system, by executor and topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingPlan {
    source: String,
    executors: BTreeMap<String, BTreeMap<String, TopicTiming>>,
    stages: BTreeMap<(String, String), TopicStages>,
}

impl TimingPlan {
    /// Creates a plan without topics. `source` names the plan in errors; `executors` are the names
    /// of all executors.
    #[must_use]
    pub fn new<S: Into<String>>(source: &str, executors: impl IntoIterator<Item = S>) -> Self {
        let executors = executors.into_iter().map(|name| (name.into(), BTreeMap::new())).collect();
        Self { source: source.to_owned(), executors, stages: BTreeMap::new() }
    }

    /// Adds the timing of a flow. For a topic with several flows, the shortest limit and the
    /// longest bound apply.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an unknown executor, and for flows of a topic with different
    /// priorities on it.
    pub fn add(&mut self, executor: &str, topic: &str, timing: TopicTiming) -> Result<()> {
        let Some(topics) = self.executors.get_mut(executor) else { return Err(self.no_executor(executor)) };
        let Some(known) = topics.get_mut(topic) else {
            topics.insert(topic.to_owned(), timing);
            return Ok(());
        };
        if (known.writer, known.reader) != (timing.writer, timing.reader) {
            let what = format!("{}: flows of topic {topic:?} have different priorities on {executor:?}", self.source);
            return Err(Error::bad_parameter(what));
        }
        known.limit = known.limit.into_iter().chain(timing.limit).min();
        known.bound = known.bound.zip(timing.bound).map(|(a, b)| a.max(b));
        Ok(())
    }

    /// Adds the stages of a flow that crosses the network.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an unknown executor, and for a second flow of the topic on it.
    pub fn add_stages(&mut self, executor: &str, topic: &str, stages: TopicStages) -> Result<()> {
        if !self.executors.contains_key(executor) {
            return Err(self.no_executor(executor));
        }
        if self.stages.insert((executor.to_owned(), topic.to_owned()), stages).is_some() {
            let what = format!("{}: several flows of topic {topic:?} cross {executor:?} and the network", self.source);
            return Err(Error::bad_parameter(what));
        }
        Ok(())
    }

    /// Returns the stages of a topic on an executor, if the topic crosses the network.
    #[must_use]
    pub fn stages(&self, executor: &str, topic: &str) -> Option<&TopicStages> {
        self.stages.get(&(executor.to_owned(), topic.to_owned()))
    }

    /// Returns the timing of a topic on an executor.
    #[must_use]
    pub fn get(&self, executor: &str, topic: &str) -> Option<TopicTiming> {
        self.executors.get(executor)?.get(topic).copied()
    }

    /// Returns the part of the plan that concerns one executor.
    pub(crate) fn for_executor(self, executor: &str) -> Result<ExecutorPlan> {
        match self.executors.contains_key(executor) {
            true => Ok(ExecutorPlan { plan: self, executor: executor.to_owned() }),
            false => Err(self.no_executor(executor)),
        }
    }

    fn no_executor(&self, executor: &str) -> Error {
        let known: Vec<&str> = self.executors.keys().map(String::as_str).collect();
        let what = format!("{}: unknown executor {executor:?}; known executors: {}", self.source, known.join(", "));
        Error::bad_parameter(what)
    }
}

/// Part of a plan that concerns the executor of a participant.
#[derive(Debug)]
pub(crate) struct ExecutorPlan {
    plan: TimingPlan,
    executor: String,
}

impl ExecutorPlan {
    /// Returns the timing of a topic on this executor; `None` if the plan has no flow of the topic.
    pub(crate) fn of(&self, topic: &str) -> Result<Option<TopicTiming>> {
        let here = self.plan.get(&self.executor, topic);
        let is_elsewhere = || self.plan.executors.values().any(|topics| topics.contains_key(topic));
        if here.is_some() || !is_elsewhere() {
            return Ok(here);
        }
        let (source, executor) = (&self.plan.source, &self.executor);
        let what = format!("{source}: no flow of topic {topic:?} has a stage on the executor {executor:?}");
        Err(Error::bad_parameter(what))
    }

    /// Returns the stages of a topic on this executor.
    pub(crate) fn stages(&self, topic: &str) -> Option<&TopicStages> {
        self.plan.stages(&self.executor, topic)
    }

    /// Returns the priority of a listener that another executor calls, if the plan states it.
    pub(crate) fn listener_priority(&self, executor: &str, topic: &str) -> Option<Priority> {
        self.plan.get(executor, topic).map(|timing| timing.reader)
    }
}

/// Returns the limit and the bound with which the latencies of a reader's samples are compared.
pub(crate) fn latency_terms(timing: Option<TopicTiming>) -> LatencyTerms {
    let nanos = |most: Option<Duration>| most.map(|most| u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
    timing.map_or(LatencyTerms::default(), |TopicTiming { limit, bound, .. }| LatencyTerms {
        limit_ns: nanos(limit),
        bound_ns: nanos(bound),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(writer: i32, reader: i32, limit_ns: Option<u64>, bound_ns: Option<u64>) -> TopicTiming {
        let [limit, bound] = [limit_ns, bound_ns].map(|most_ns| most_ns.map(Duration::from_nanos));
        TopicTiming { writer: Priority::new(writer), reader: Priority::new(reader), limit, bound }
    }

    #[test]
    fn several_flows_yield_shortest_limit_and_longest_bound() {
        let mut plan = TimingPlan::new("f.toml", ["a", "b"]);
        plan.add("a", "T", timing(5, 6, None, Some(10))).expect("the first");
        plan.add("a", "T", timing(5, 6, Some(30), Some(20))).expect("as urgent");
        plan.add("a", "T", timing(5, 6, Some(40), Some(15))).expect("as urgent");
        assert_eq!(plan.get("a", "T"), Some(timing(5, 6, Some(30), Some(20))));
        plan.add("a", "T", timing(5, 6, None, None)).expect("as urgent");
        assert_eq!(plan.get("a", "T"), Some(timing(5, 6, Some(30), None)));
        let message = plan.add("a", "T", timing(7, 6, None, None)).expect_err("another priority").to_string();
        assert!(message.contains("f.toml: flows of topic \"T\" have different priorities on \"a\""), "{message}");
        let message = plan.add("c", "T", timing(5, 6, None, None)).expect_err("no executor").to_string();
        assert!(message.contains("f.toml: unknown executor \"c\"; known executors: a, b"), "{message}");
    }

    #[test]
    fn topic_of_another_executor_is_an_error() {
        let mut plan = TimingPlan::new("f.toml", ["a", "b"]);
        plan.add("a", "T", timing(5, 6, None, None)).expect("room");
        let plan = plan.for_executor("b").expect("it is there");
        assert_eq!(plan.of("Other").expect("no flow is of it"), None);
        let message = plan.of("T").expect_err("analyzed elsewhere").to_string();
        assert!(message.contains("no flow of topic \"T\" has a stage on the executor \"b\""), "{message}");
    }
}
