//! What a participant's jobs took: by class, one by one, and which of them took too long.

use std::fmt;
use std::io;
use std::time::Duration;

use takt_core::LatencyTerms;
use takt_exec::report::JobAccount;
use takt_exec::{JobClass, JobKind, Priority, Run, TraceRecord, report, trace};
use takt_wire::Guid;
use takt_wire::discovery::HostStages;
use takt_wire::qos::{DataReaderQos, DataWriterQos, Property};

use super::{DomainParticipant, ParticipantInner};
use crate::runtime::clock;
use crate::runtime::state::State;
use crate::timing::Timing;
use crate::timing_plan::latency_terms;
use crate::{Error, Executor, PRIORITY_PROPERTY, Result, TopicTiming};

/// A job that took longer than its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetOverrun {
    /// What it did.
    pub kind: JobKind,
    /// How urgent it was.
    pub priority: Priority,
    /// How long it took.
    pub took: Duration,
    /// How long it might have taken.
    pub budget: Duration,
    /// Whose listener it was, and of which topic; `None` for a job of the middleware.
    pub endpoint: Option<(Guid, String)>,
    /// The listener is not called any more, until it is [resumed](crate::AnyDataReader::resume_listener).
    pub suspended: bool,
}

impl BudgetOverrun {
    pub(crate) fn of(run: &Run, budget_ns: u64) -> Self {
        Self {
            kind: run.kind,
            priority: run.priority,
            took: Duration::from_nanos(run.duration_ns()),
            budget: Duration::from_nanos(budget_ns),
            endpoint: None,
            suspended: false,
        }
    }
}

impl fmt::Display for BudgetOverrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, priority, took, budget, endpoint, suspended } = self;
        write!(f, "{kind} of priority {priority} took {took:?} of {budget:?}")?;
        if let Some((guid, topic)) = endpoint {
            write!(f, ", {guid} of topic {topic}")?;
        }
        if *suspended { f.write_str(", suspended") } else { Ok(()) }
    }
}

/// What a participant's listener is told of overruns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetOverrunStatus {
    /// All since the participant was built.
    pub total_count: u64,
    /// Those since the last call.
    pub total_count_change: u64,
    /// The last one.
    pub last: BudgetOverrun,
}

/// The last overruns of a participant, and how many there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetOverruns {
    /// The last ones, at most 64, the oldest first.
    pub last: Vec<BudgetOverrun>,
    /// All since the participant was built.
    pub total_count: u64,
}

/// That of Takt, for accounts.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Jobs that a trace keeps at most: 24 MB.
pub const TRACE_JOBS_MAX: usize = 1 << 20;

impl ParticipantInner {
    /// What the executor is told of a writer of this topic.
    pub(crate) fn writer_timing(&self, topic: &str, qos: &DataWriterQos) -> Result<Timing> {
        Timing::of_writer(qos, self.planned(topic, &qos.property)?.map(|planned| planned.writer))
    }

    /// What the executor is told of a reader of this topic.
    pub(crate) fn reader_timing(&self, topic: &str, qos: &DataReaderQos) -> Result<Timing> {
        Timing::of_reader(qos, self.planned(topic, &qos.property)?.map(|planned| planned.reader))
    }

    /// What is known beforehand of the ages of a reader's samples.
    pub(crate) fn latency_terms(&self, topic: &str, qos: &DataReaderQos) -> Result<LatencyTerms> {
        Ok(latency_terms(self.planned(topic, &qos.property)?))
    }

    /// What a writer of this topic announces of its host.
    pub(crate) fn writer_stages(&self, topic: &str) -> Option<HostStages> {
        self.timing_plan.as_ref()?.stages(topic)?.writer.clone()
    }

    /// What a reader of this topic announces of its host.
    pub(crate) fn reader_stages(&self, topic: &str) -> Option<HostStages> {
        self.timing_plan.as_ref()?.stages(topic)?.reader.clone()
    }

    /// How urgent an endpoint's listener is on another executor, which the system file may know.
    pub(crate) fn listener_priority(&self, executor: &Executor, topic: &str, property: &Property) -> Option<Priority> {
        let plan = self.timing_plan.as_ref().filter(|_| property.get(PRIORITY_PROPERTY).is_none())?;
        plan.listener_priority(executor.name(), topic)
    }

    /// What the system file says of a topic. Who states a priority may be where the file knows nothing of.
    fn planned(&self, topic: &str, property: &Property) -> Result<Option<TopicTiming>> {
        match self.timing_plan.as_ref().map(|plan| plan.of(topic)) {
            None => Ok(None),
            Some(Err(_)) if property.get(PRIORITY_PROPERTY).is_some() => Ok(None),
            Some(planned) => planned,
        }
    }
}

impl DomainParticipant {
    /// How many jobs of each kind and priority the participant's executor has run, and how long they took: the thread `takt-rx`,
    /// or the application's under `Runtime::Inline`. What a call of the application sends from another thread is no job.
    ///
    /// While spinning, a datagram counts from the moment that it was found.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn job_classes(&self) -> Result<Vec<JobClass>> {
        self.look_at_jobs(|state| Ok(state.ledger.accounts.classes().to_vec()))
    }

    /// Sets how long a job of this kind and priority may take, listeners apart, whose budget is a
    /// [property](crate::BUDGET_PROPERTY) of their reader or writer. [`Duration::INFINITE`](crate::Duration::INFINITE), as is the
    /// default: as long as it takes. The participant counts longer ones, and calls its listener.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a negative budget, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_job_budget(&self, kind: JobKind, priority: Priority, budget: impl Into<crate::Duration>) -> Result<()> {
        let budget_ns = clock::not_negative("a budget", budget)?.as_nanos();
        self.look_at_jobs(|state| {
            state.ledger.accounts.open(kind, priority).budget_ns = budget_ns;
            Ok(())
        })
    }

    /// The jobs that took longer than they may.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn budget_overruns(&self) -> Result<BudgetOverruns> {
        self.look_at_jobs(|state| {
            let (last, total_count) = state.ledger.overruns();
            Ok(BudgetOverruns { last: last.cloned().collect(), total_count })
        })
    }

    /// Keeps so many of the jobs that ran last, 24 octets each; none with 0, as is the default.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`TRACE_JOBS_MAX`], [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn keep_job_trace(&self, jobs: usize) -> Result<()> {
        if jobs > TRACE_JOBS_MAX {
            return Err(Error::OutOfResources { limit: "jobs of a trace", value: TRACE_JOBS_MAX as u64 });
        }
        self.look_at_jobs(|state| {
            state.ledger.accounts.keep_trace(jobs);
            Ok(())
        })
    }

    /// Writes the jobs that are kept in the format that `chrome://tracing` and Perfetto read.
    ///
    /// # Errors
    /// Those of `out`; [`io::ErrorKind::Other`] after [`close`](Self::close).
    pub fn write_job_trace(&self, out: impl io::Write) -> io::Result<()> {
        let kept = self.look_at_jobs(|state| {
            let records: Vec<TraceRecord> =
                state.ledger.accounts.trace().into_iter().flat_map(|trace| trace.records()).copied().collect();
            Ok((records, state.topics_by_number()))
        });
        let (records, topics) = kept.map_err(io::Error::other)?;
        trace::write_chrome(out, "takt-rx", &records, |record| match topics.get(&record.owner) {
            Some(topic) => format!("{} {topic}", record.kind),
            None => record.kind.to_string(),
        })
    }

    /// Writes what the participant's jobs took by kind and priority, as JSON, for `takt analyze --measured`. What the jobs of others on
    /// the same executor took is in [`Executor::write_job_accounts`](crate::Executor::write_job_accounts).
    ///
    /// # Errors
    /// Those of `out`; [`io::ErrorKind::Other`] after [`close`](Self::close).
    pub fn write_job_accounts(&self, out: impl io::Write) -> io::Result<()> {
        let classes = self.job_classes().map_err(io::Error::other)?;
        report::write_accounts(out, (&self.inner.executor_name, 1), VERSION, classes.iter().map(JobAccount::from))
    }

    fn look_at_jobs<R>(&self, look: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        self.inner.engine.look_at_state(|state| {
            state.driver()?;
            look(state)
        })
    }
}
