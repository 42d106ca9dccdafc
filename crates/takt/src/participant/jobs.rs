//! What a participant's jobs took: by class, one by one, and which of them took too long.

use std::fmt;
use std::io;
use std::time::Duration;

use takt_exec::{JobClass, JobKind, Priority, Run, TraceRecord, trace};
use takt_wire::Guid;

use super::DomainParticipant;
use crate::runtime::state::State;
use crate::{Error, Result};

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

/// Jobs that a trace keeps at most: 24 MB.
pub const TRACE_JOBS_MAX: usize = 1 << 20;

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
    /// [property](crate::BUDGET_PROPERTY) of their reader or writer. `None`: as long as it takes. Longer ones are counted, and
    /// told to the participant's listener.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_job_budget(&self, kind: JobKind, priority: Priority, budget: Option<Duration>) -> Result<()> {
        let nanos = |budget: Duration| budget.as_nanos().try_into().unwrap_or(u64::MAX);
        self.look_at_jobs(|state| {
            state.ledger.accounts.open(kind, priority).budget_ns = budget.map(nanos);
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

    fn look_at_jobs<R>(&self, look: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        self.inner.engine.look_at_state(|state| {
            state.driver()?;
            look(state)
        })
    }
}
