//! Execution times of a participant's jobs: statistics by class, a trace of single jobs, and budget
//! overruns.

use std::fmt;
use std::io;
use std::time::Duration;

use takt_core::LatencyTerms;
use takt_exec::report::JobStatisticsRow;
use takt_exec::{report, trace};
use takt_schedule::{JobClass, JobKind, Priority, Run, TraceRecord};
use takt_wire::Guid;
use takt_wire::discovery::HostStages;
use takt_wire::qos::{DataReaderQos, DataWriterQos, Property};

use super::{DomainParticipant, ParticipantInner};
use crate::runtime::clock;
use crate::runtime::state::State;
use crate::timing::SchedulingProperties;
use crate::timing_plan::latency_terms;
use crate::{Error, Executor, PRIORITY_PROPERTY, Result, TopicTiming};

/// Job that exceeded its execution time budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetOverrun {
    /// Kind of the job.
    pub kind: JobKind,
    /// Priority of the job.
    pub priority: Priority,
    /// Execution time of the job.
    pub execution_time: Duration,
    /// Budget of the job.
    pub budget: Duration,
    /// Endpoint whose listener the job called; `None` for a job of the middleware.
    pub endpoint: Option<OverrunEndpoint>,
    /// The listener is suspended until it is [resumed](crate::AnyEndpoint::resume_listener).
    pub suspended: bool,
}

/// Endpoint whose listener exceeded its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrunEndpoint {
    /// GUID of the endpoint.
    pub guid: Guid,
    /// Name of its topic.
    pub topic: String,
}

impl BudgetOverrun {
    pub(crate) fn of(run: &Run, budget_ns: u64) -> Self {
        Self {
            kind: run.kind,
            priority: run.priority,
            execution_time: Duration::from_nanos(run.duration_ns()),
            budget: Duration::from_nanos(budget_ns),
            endpoint: None,
            suspended: false,
        }
    }
}

impl fmt::Display for BudgetOverrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, priority, execution_time, budget, endpoint, suspended } = self;
        write!(f, "{kind} of priority {priority} took {execution_time:?}, budget {budget:?}")?;
        if let Some(OverrunEndpoint { guid, topic }) = endpoint {
            write!(f, ", {guid} of topic {topic}")?;
        }
        if *suspended { f.write_str(", suspended") } else { Ok(()) }
    }
}

/// Status that reports budget overruns to a participant's listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetOverrunStatus {
    /// Number of overruns since the participant was built.
    pub total_count: u64,
    /// Number of overruns since the last call of the listener.
    pub total_count_change: u64,
    /// Most recent overrun.
    pub last: BudgetOverrun,
}

/// Most recent budget overruns of a participant and their total number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetOverruns {
    /// Most recent overruns, at most 64, the oldest first.
    pub last: Vec<BudgetOverrun>,
    /// Number of overruns since the participant was built.
    pub total_count: u64,
}

/// Version of Takt, recorded in job statistics.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum number of jobs in a trace: 24 MB.
pub const TRACE_JOBS_MAX: usize = 1 << 20;

impl ParticipantInner {
    /// Returns the executor's timing parameters of a writer of this topic.
    pub(crate) fn writer_timing(&self, topic: &str, qos: &DataWriterQos) -> Result<SchedulingProperties> {
        SchedulingProperties::of_writer(qos, self.planned(topic, &qos.property)?.map(|planned| planned.writer))
    }

    /// Returns the executor's timing parameters of a reader of this topic.
    pub(crate) fn reader_timing(&self, topic: &str, qos: &DataReaderQos) -> Result<SchedulingProperties> {
        SchedulingProperties::of_reader(qos, self.planned(topic, &qos.property)?.map(|planned| planned.reader))
    }

    /// Returns the latency limit and bound that the system file states for a reader of this topic.
    pub(crate) fn latency_terms(&self, topic: &str, qos: &DataReaderQos) -> Result<LatencyTerms> {
        Ok(latency_terms(self.planned(topic, &qos.property)?))
    }

    /// Returns the stages of this host that a writer of the topic announces.
    pub(crate) fn writer_stages(&self, topic: &str) -> Option<HostStages> {
        self.timing_plan.as_ref()?.stages(topic)?.writer.clone()
    }

    /// Returns the stages of this host that a reader of the topic announces.
    pub(crate) fn reader_stages(&self, topic: &str) -> Option<HostStages> {
        self.timing_plan.as_ref()?.stages(topic)?.reader.clone()
    }

    /// Returns the priority of an endpoint's listener on another executor, if the system file
    /// states one.
    pub(crate) fn listener_priority(&self, executor: &Executor, topic: &str, property: &Property) -> Option<Priority> {
        let plan = self.timing_plan.as_ref().filter(|_| property.get(PRIORITY_PROPERTY).is_none())?;
        plan.listener_priority(executor.name(), topic)
    }

    /// Returns the timing that the system file states for a topic. An endpoint with an explicit
    /// priority need not appear in the file.
    fn planned(&self, topic: &str, property: &Property) -> Result<Option<TopicTiming>> {
        match self.timing_plan.as_ref().map(|plan| plan.of(topic)) {
            None => Ok(None),
            Some(Err(_)) if property.get(PRIORITY_PROPERTY).is_some() => Ok(None),
            Some(planned) => planned,
        }
    }
}

impl DomainParticipant {
    /// Returns the number and the execution times of the jobs that the participant's executor has
    /// run, by kind and priority. The executor is the thread `takt-rx`, or the application's thread
    /// under `Runtime::Inline`. Data sent by a call of the application on another thread is not a
    /// job.
    ///
    /// While the thread spins, the execution time of a datagram starts when the datagram is found.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn job_classes(&self) -> Result<Vec<JobClass>> {
        self.inspect_jobs(|state| Ok(state.job_recorder.statistics.classes().to_vec()))
    }

    /// Sets the execution time budget of jobs of this kind and priority. The default is
    /// [`Duration::INFINITE`](crate::Duration::INFINITE), no budget. The participant counts
    /// overruns and reports them to its listener. The budget of a listener is a
    /// [property](crate::BUDGET_PROPERTY) of its reader or writer instead.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a negative budget, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
    pub fn set_job_budget(&self, kind: JobKind, priority: Priority, budget: impl Into<crate::Duration>) -> Result<()> {
        let budget_ns = clock::not_negative("a budget", budget)?.as_nanos();
        self.inspect_jobs(|state| {
            state.job_recorder.statistics.class_mut(kind, priority).budget_ns = budget_ns;
            Ok(())
        })
    }

    /// Keeps a trace of the `jobs` most recent jobs, 24 octets each. The default is 0: no trace.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`TRACE_JOBS_MAX`], [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
    pub fn keep_job_trace(&self, jobs: usize) -> Result<()> {
        if jobs > TRACE_JOBS_MAX {
            return Err(Error::OutOfResources { limit: "jobs per trace", value: TRACE_JOBS_MAX as u64 });
        }
        self.inspect_jobs(|state| {
            state.job_recorder.statistics.keep_trace(jobs);
            Ok(())
        })
    }

    /// Writes the trace in the format of `chrome://tracing` and Perfetto.
    ///
    /// # Errors
    /// Returns the errors of `out`; [`io::ErrorKind::Other`] after [`close`](Self::close).
    pub fn write_job_trace(&self, out: impl io::Write) -> io::Result<()> {
        let snapshot = self.inspect_jobs(|state| {
            let records: Vec<TraceRecord> =
                state.job_recorder.statistics.trace().into_iter().flat_map(|trace| trace.records()).copied().collect();
            Ok((records, state.topics_by_number()))
        });
        let (records, topics) = snapshot.map_err(io::Error::other)?;
        trace::write_chrome(out, "takt-rx", &records, |record| match topics.get(&record.owner) {
            Some(topic) => format!("{} {topic}", record.kind),
            None => record.kind.to_string(),
        })
    }

    /// Writes the execution times of the participant's jobs by kind and priority, as JSON, for
    /// `takt analyze --measured`.
    /// [`Executor::write_job_statistics`](crate::Executor::write_job_statistics) covers all jobs of
    /// an executor.
    ///
    /// # Errors
    /// Returns the errors of `out`; [`io::ErrorKind::Other`] after [`close`](Self::close).
    pub fn write_job_statistics(&self, out: impl io::Write) -> io::Result<()> {
        let classes = self.job_classes().map_err(io::Error::other)?;
        report::write_report(out, (&self.inner.executor_name, 1), VERSION, classes.iter().map(JobStatisticsRow::from))
    }

    pub(super) fn inspect_jobs<R>(&self, access: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut state = self.inner.engine.enter()?;
        state.driver()?;
        access(&mut state)
    }
}
