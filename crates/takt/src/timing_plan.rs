//! What the timing analysis of a whole system says of its topics: how urgent their work is on which executor, and how old samples become.
//!
//! It is made of a system file by `takt_config::read_timing_plan`, so that this crate needs no parser; see `docs/analysis.md`.

use std::collections::BTreeMap;

use takt_core::LatencyTerms;
use takt_exec::Priority;
use takt_wire::discovery::HostStages;

use crate::{Error, Result};

/// What the analysis says of one topic on one executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicTiming {
    /// Of writers: that of the first stage on the executor.
    pub writer: Priority,
    /// Of readers and their listeners: that of the last stage on the executor.
    pub reader: Priority,
    /// From `write` on, in nanoseconds: what is asked for, if anything is.
    pub limit_ns: Option<u64>,
    /// From `write` to the end of the flow's last stage, in nanoseconds: what the analysis computed. `None`: there is no bound.
    pub bound_ns: Option<u64>,
}

/// What a host adds to the latency of a topic that passes the network, on one executor: what its writers and readers announce to the
/// network's controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicStages {
    /// From `write` to the queue of the interface.
    pub writer: Option<HostStages>,
    /// From the interface to the end of the callback.
    pub reader: Option<HostStages>,
}

/// The priorities and bounds of all topics of a system, by executor and topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingPlan {
    source: String,
    executors: BTreeMap<String, BTreeMap<String, TopicTiming>>,
    stages: BTreeMap<(String, String), TopicStages>,
}

impl TimingPlan {
    /// A plan without topics. `source` names it in errors; `executors` are all there are.
    #[must_use]
    pub fn new<S: Into<String>>(source: &str, executors: impl IntoIterator<Item = S>) -> Self {
        let executors = executors.into_iter().map(|name| (name.into(), BTreeMap::new())).collect();
        Self { source: source.to_owned(), executors, stages: BTreeMap::new() }
    }

    /// Adds what a flow says. Of several flows of a topic the shortest limit and the longest bound hold.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an executor that is not there, and for flows of a topic that have other priorities on it.
    pub fn add(&mut self, executor: &str, topic: &str, timing: TopicTiming) -> Result<()> {
        let Some(topics) = self.executors.get_mut(executor) else { return Err(self.no_executor(executor)) };
        let Some(known) = topics.get_mut(topic) else {
            topics.insert(topic.to_owned(), timing);
            return Ok(());
        };
        if (known.writer, known.reader) != (timing.writer, timing.reader) {
            let what = format!("{}: flows of topic {topic:?} have several priorities on {executor:?}", self.source);
            return Err(Error::BadParameter { what });
        }
        known.limit_ns = known.limit_ns.into_iter().chain(timing.limit_ns).min();
        known.bound_ns = known.bound_ns.zip(timing.bound_ns).map(|(a, b)| a.max(b));
        Ok(())
    }

    /// Adds the stages of a flow that passes the network.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for an executor that is not there, and for a second flow of the topic on it.
    pub fn add_stages(&mut self, executor: &str, topic: &str, stages: TopicStages) -> Result<()> {
        if !self.executors.contains_key(executor) {
            return Err(self.no_executor(executor));
        }
        if self.stages.insert((executor.to_owned(), topic.to_owned()), stages).is_some() {
            let what = format!("{}: several flows of topic {topic:?} pass {executor:?} and the network", self.source);
            return Err(Error::BadParameter { what });
        }
        Ok(())
    }

    /// The stages of a topic on an executor, if it passes the network.
    #[must_use]
    pub fn stages(&self, executor: &str, topic: &str) -> Option<&TopicStages> {
        self.stages.get(&(executor.to_owned(), topic.to_owned()))
    }

    /// What is said of a topic on an executor.
    #[must_use]
    pub fn get(&self, executor: &str, topic: &str) -> Option<TopicTiming> {
        self.executors.get(executor)?.get(topic).copied()
    }

    /// The part of the executor of this name.
    pub(crate) fn on(self, executor: &str) -> Result<ExecutorPlan> {
        match self.executors.contains_key(executor) {
            true => Ok(ExecutorPlan { plan: self, executor: executor.to_owned() }),
            false => Err(self.no_executor(executor)),
        }
    }

    fn no_executor(&self, executor: &str) -> Error {
        let known: Vec<&str> = self.executors.keys().map(String::as_str).collect();
        let what = format!("{}: there is no executor {executor:?}; there are {}", self.source, known.join(", "));
        Error::BadParameter { what }
    }
}

/// What a plan says to a participant, whose executor it has.
#[derive(Debug)]
pub(crate) struct ExecutorPlan {
    plan: TimingPlan,
    executor: String,
}

impl ExecutorPlan {
    /// What is said of a topic here; `None` if no flow is one of this topic.
    pub(crate) fn of(&self, topic: &str) -> Result<Option<TopicTiming>> {
        let here = self.plan.get(&self.executor, topic);
        let is_elsewhere = || self.plan.executors.values().any(|topics| topics.contains_key(topic));
        if here.is_some() || !is_elsewhere() {
            return Ok(here);
        }
        let (source, executor) = (&self.plan.source, &self.executor);
        let what = format!("{source}: no flow of topic {topic:?} has a stage on the executor {executor:?}");
        Err(Error::BadParameter { what })
    }

    /// The stages of a topic here.
    pub(crate) fn stages(&self, topic: &str) -> Option<&TopicStages> {
        self.plan.stages(&self.executor, topic)
    }

    /// That of a listener which another executor calls, if the plan knows that.
    pub(crate) fn listener_priority(&self, executor: &str, topic: &str) -> Option<Priority> {
        self.plan.get(executor, topic).map(|timing| timing.reader)
    }
}

/// What a reader's samples are compared with.
pub(crate) fn latency_terms(timing: Option<TopicTiming>) -> LatencyTerms {
    timing.map_or(LatencyTerms::default(), |TopicTiming { limit_ns, bound_ns, .. }| LatencyTerms { limit_ns, bound_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(writer: i32, reader: i32, limit_ns: Option<u64>, bound_ns: Option<u64>) -> TopicTiming {
        TopicTiming { writer: Priority::new(writer), reader: Priority::new(reader), limit_ns, bound_ns }
    }

    #[test]
    fn of_several_flows_the_shortest_limit_and_the_longest_bound_hold() {
        let mut plan = TimingPlan::new("f.toml", ["a", "b"]);
        plan.add("a", "T", timing(5, 6, None, Some(10))).expect("the first");
        plan.add("a", "T", timing(5, 6, Some(30), Some(20))).expect("as urgent");
        plan.add("a", "T", timing(5, 6, Some(40), Some(15))).expect("as urgent");
        assert_eq!(plan.get("a", "T"), Some(timing(5, 6, Some(30), Some(20))));
        plan.add("a", "T", timing(5, 6, None, None)).expect("as urgent");
        assert_eq!(plan.get("a", "T"), Some(timing(5, 6, Some(30), None)));
        let told = plan.add("a", "T", timing(7, 6, None, None)).expect_err("another priority").to_string();
        assert!(told.contains("f.toml: flows of topic \"T\" have several priorities on \"a\""), "{told}");
        let told = plan.add("c", "T", timing(5, 6, None, None)).expect_err("no executor").to_string();
        assert!(told.contains("f.toml: there is no executor \"c\"; there are a, b"), "{told}");
    }

    #[test]
    fn a_topic_that_is_analysed_elsewhere_has_no_place_here() {
        let mut plan = TimingPlan::new("f.toml", ["a", "b"]);
        plan.add("a", "T", timing(5, 6, None, None)).expect("room");
        let plan = plan.on("b").expect("it is there");
        assert_eq!(plan.of("Other").expect("no flow is of it"), None);
        let told = plan.of("T").expect_err("analysed elsewhere").to_string();
        assert!(told.contains("no flow of topic \"T\" has a stage on the executor \"b\""), "{told}");
    }
}
