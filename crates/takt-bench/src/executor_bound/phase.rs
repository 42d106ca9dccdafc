//! One phase: an executor with a participant that is written to, from its beginning to its end, and what was seen of it.

use super::cores::{CoreCounters, CoreWatch};
use super::secured::Keys;
use super::surroundings::Watch;
use super::writers::{Course, WRITER_NAME, write_all};
use crate::error::{Error, Result};
use crate::isolation::load::{Burden, LoadPlan};
use crate::isolation::participant::{BACKGROUND, SLOW};
use crate::isolation::side::{Each, lock};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::sequence::SequenceTracker;
use crate::signal::stopped;
use crate::stats::{Histogram, Summary};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use takt::qos::{DataReaderQos, History, Property, SubscriberQos, TopicQos};
use takt::real_time::{JobClass, Scheduling, ThreadSettings};
use takt::{
    BUDGET_PROPERTY, DataReader, DomainParticipant, DomainParticipantListener, Executor, Guid, Limits,
    PRIORITY_PROPERTY, PublisherListener, SubscriberListener, TopicListener,
};

/// Topic of the critical samples.
pub const CRITICAL: &str = "Critical";
/// Priorities of the critical and of the slow reader.
pub const CRITICAL_PRIORITY: i32 = 46;
pub const SLOW_PRIORITY: i32 = -10;
/// SCHED_FIFO priorities of the executors.
const EXECUTOR_FIFO: u8 = 80;
const ASIDE_FIFO: u8 = 20;
/// The executor's thread.
const EXECUTOR_NAME: &str = "bound-executor";
/// Samples that a reader or writer holds.
pub const DEPTH: u32 = 1024;
/// So long the last sample is waited for.
const LINGER: Duration = Duration::from_secs(1);
/// Between two looks at whether a phase is over.
const STEP: Duration = Duration::from_millis(20);
/// Samples above the bound that are told one by one.
const LATE_MAX: usize = 1000;
/// Jobs of a trace: about half a second under all load.
const TRACE_JOBS: usize = 1 << 15;

/// What a phase is to be.
pub struct PhasePlan {
    pub domain: u32,
    pub load: LoadPlan,
    pub length: Duration,
    pub period_ns: u64,
    pub aside: bool,
    /// If messages are encrypted.
    pub keys: Option<Arc<Keys>>,
    pub cpus: [usize; 2],
    /// Threads have priorities and cores.
    pub is_real_time: bool,
    /// What is above is told.
    pub bound_ns: Option<u64>,
    /// The phase ends with the first sample above the bound, and the last jobs are written to this file.
    pub trace: Option<PathBuf>,
}

impl PhasePlan {
    pub fn thread(&self, core: usize, fifo: u8) -> ThreadSettings {
        if !self.is_real_time {
            return ThreadSettings::default();
        }
        let scheduling = Some(Scheduling::Fifo(fifo));
        ThreadSettings { scheduling, cpus: vec![self.cpus[core]], timer_slack: None }
    }

    pub fn participant(&self, name: &str) -> Result<takt::DomainParticipantBuilder> {
        // A crowd of participants may come: none of it is to wait for room.
        let limits = Limits { max_unvalidated_participants: 1024, ..Limits::default() };
        let builder = DomainParticipant::builder(self.domain).name(name).interfaces(["lo"]).multicast(false);
        let builder = builder.peers(["127.0.0.1"]).shared_memory(false).limits(limits);
        Ok(match &self.keys {
            Some(keys) => builder.security(keys.of(name)?),
            None => builder,
        })
    }
}

/// The jobs of one kind and priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    pub kind: &'static str,
    pub priority: i32,
    pub count: u64,
    pub median_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

impl Class {
    fn of(class: &JobClass) -> Self {
        let durations = &class.durations;
        Self {
            kind: class.kind.name(),
            priority: class.priority.get(),
            count: durations.count(),
            median_ns: durations.quantile_ns(0.5),
            p999_ns: durations.quantile_ns(0.999),
            max_ns: durations.max_ns(),
        }
    }
}

/// A sample above the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Late {
    /// When it was written, since the phase began.
    pub at_ns: u64,
    pub response_ns: u64,
    /// So long executor and writer could have run around then, and the kernel had them wait.
    pub waited_ns: u64,
    /// What was counted of the cores of writer and executor around then.
    pub cores: [CoreCounters; 2],
}

impl Late {
    /// How much of its lateness the kernel's counters can explain: writer and executor could have run and did not, their cores were
    /// stolen, or in interrupts.
    pub fn by_kernel_ns(&self) -> u64 {
        self.cores.iter().fold(self.waited_ns, |sum, core| sum + core.stolen_ns + core.interrupts_ns)
    }
}

/// What was seen in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observed {
    pub seconds: f64,
    /// Critical samples, from before `write` to the listener.
    pub response_us: Summary,
    /// The longest of them, exactly.
    pub response_max_ns: u64,
    pub sent: u64,
    pub received: u64,
    /// Samples above the bound, and the first of them.
    pub late: u64,
    pub late_samples: Vec<Late>,
    /// The longest call of `write` for a critical sample.
    pub write_max_ns: u64,
    pub background_written: u64,
    pub background_received: u64,
    pub slow_written: u64,
    pub slow_callbacks: u64,
    /// Participants that came, one after the other.
    pub discovered: u64,
    /// Participants that were authenticated and may take part.
    pub authenticated: u64,
    /// Participants that were refused by their permissions, or after the time-out.
    pub refused: u64,
    /// The executor's jobs.
    pub classes: Vec<Class>,
    /// How long the executor's thread had its core.
    pub ran_ns: u64,
    /// How long it could have run, and had to wait: for others, or for the kernel to wake it.
    pub waited_ns: u64,
    /// How often the kernel took the core away from it.
    pub interrupted: u64,
    /// How long its core was not this machine's.
    pub stolen_ns: u64,
}

impl Observed {
    /// The longest job of a class; 0 if there was none.
    pub fn longest_ns(&self, kind: &str, priority: i32) -> u64 {
        let class = self.classes.iter().find(|class| class.kind == kind && class.priority == priority);
        class.map_or(0, |class| class.max_ns)
    }
}

/// What the critical listener records.
struct Record {
    tracker: SequenceTracker,
    responses: Histogram,
    max_ns: u64,
    bound_ns: u64,
    late: u64,
    late_samples: Vec<Late>,
}

impl Record {
    fn new(bound_ns: Option<u64>) -> Self {
        Self {
            tracker: SequenceTracker::new(),
            responses: Histogram::new(),
            max_ns: 0,
            bound_ns: bound_ns.unwrap_or(u64::MAX),
            late: 0,
            late_samples: Vec::with_capacity(LATE_MAX),
        }
    }

    /// Takes a sample; says whether it is above the bound.
    fn arrived(&mut self, sequence: u64, sent_ns: u64) -> bool {
        let response_ns = monotonic_ns().saturating_sub(sent_ns);
        if !self.tracker.record(sequence) {
            return false;
        }
        self.responses.record(response_ns);
        self.max_ns = self.max_ns.max(response_ns);
        let is_late = response_ns > self.bound_ns;
        if is_late {
            self.late += 1;
            if self.late_samples.len() < LATE_MAX {
                self.late_samples.push(Late { at_ns: sent_ns, response_ns, waited_ns: 0, cores: Default::default() });
            }
        }
        is_late
    }
}

/// Counts participants that come.
struct Arrivals(Arc<AtomicU64>);

impl SubscriberListener for Arrivals {}
impl PublisherListener for Arrivals {}
impl TopicListener for Arrivals {}
impl DomainParticipantListener for Arrivals {
    fn on_participant_discovered(&mut self, _: Guid) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub fn properties(pairs: &[(&str, String)]) -> Property {
    Property(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone(), false)).collect())
}

fn reader(to: &DomainParticipant, topic: &str, pairs: &[(&str, String)]) -> Result<DataReader<Blob>> {
    let topic = to.create_topic::<Blob>(topic, TopicQos::default())?;
    let (history, property) = (History::KeepLast(DEPTH), properties(pairs));
    let qos = DataReaderQos { history, property, ..DataReaderQos::default() };
    Ok(to.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?)
}

/// The side that is written to.
struct Side {
    to: DomainParticipant,
    record: Arc<Mutex<Record>>,
    burden: Burden,
    discovered: Arc<AtomicU64>,
    _readers: [DataReader<Blob>; 3],
    _executors: Vec<Executor>,
}

impl Side {
    fn new(plan: &PhasePlan, course: &Arc<Course>) -> Result<Self> {
        let start = |name, fifo| Executor::builder(name).thread_settings(plan.thread(1, fifo)).start();
        let mut executors = vec![start(EXECUTOR_NAME, EXECUTOR_FIFO)?];
        let to = plan.participant("takt-bound")?.executor(&executors[0]).build()?;
        let discovered = Arc::new(AtomicU64::new(0));
        to.set_listener(Box::new(Arrivals(Arc::clone(&discovered))))?;
        let critical = reader(&to, CRITICAL, &[(PRIORITY_PROPERTY, CRITICAL_PRIORITY.to_string())])?;
        let background = reader(&to, BACKGROUND, &[])?;
        let callback_ns = plan.load.callback_us * 1000;
        let pairs = [(PRIORITY_PROPERTY, SLOW_PRIORITY.to_string()), (BUDGET_PROPERTY, callback_ns.to_string())];
        let slow = reader(&to, SLOW, &pairs)?;
        if plan.aside {
            executors.push(start("bound-aside", ASIDE_FIFO)?);
            slow.run_listener_on(executors.last())?;
        }
        let burden = Burden::on(&background, &slow, callback_ns)?;
        let record = Arc::new(Mutex::new(Record::new(plan.bound_ns)));
        let (recorded, course, ends_if_late) = (Arc::clone(&record), Arc::clone(course), plan.trace.is_some());
        critical.set_listener(Each::boxed(move |sample| {
            if let Some((sequence, sent_ns)) = sample.marks()
                && lock(&recorded).arrived(sequence, sent_ns)
                && ends_if_late
            {
                course.end();
            }
            Ok(())
        }))?;
        if plan.trace.is_some() {
            to.keep_job_trace(TRACE_JOBS)?;
        }
        Ok(Self { to, record, burden, discovered, _readers: [critical, background, slow], _executors: executors })
    }
}

/// Runs a phase, from participants that are made to those that are gone.
///
/// # Errors
/// The middleware or the machine failed, readers were not found, no critical sample came, or a signal asked to stop.
pub fn run(plan: &PhasePlan) -> Result<Observed> {
    let course = Arc::new(Course::default());
    let side = Side::new(plan, &course)?;
    let mut pass = None;
    let written = write_all(plan, &course, || {
        pass = Some(watch(plan, &course, &side.to)?);
        Ok(())
    })?;
    let Some(pass) = pass.filter(|_| !stopped()) else { return Err(Error::Stopped) };
    if let Some(path) = plan.trace.as_ref().filter(|_| lock(&side.record).late > 0) {
        let failure = |e| Error::os(path.display().to_string(), e);
        let file = std::fs::File::create(path).map_err(failure)?;
        side.to.write_job_trace(std::io::BufWriter::new(file)).map_err(failure)?;
    }
    let last_ns = monotonic_ns();
    let received = || lock(&side.record).tracker.counts().received;
    while received() < written.critical.0 && monotonic_ns() - last_ns < LINGER.as_nanos() as u64 {
        std::thread::sleep(STEP);
    }
    let classes = side.to.job_classes()?;
    let (background_received, _, slow_callbacks) = side.burden.counts();
    let record = lock(&side.record);
    let treatment = pass.executor.total();
    let nothing = || Error::NoAnswer { what: "no critical sample came".into() };
    Ok(Observed {
        seconds: pass.seconds,
        response_us: record.responses.summary().ok_or_else(nothing)?,
        response_max_ns: record.max_ns,
        sent: written.critical.0,
        received: record.tracker.counts().received,
        late: record.late,
        late_samples: record.late_samples.iter().map(|late| pass.explain(*late)).collect(),
        write_max_ns: written.critical.1,
        background_written: written.background.0,
        background_received,
        slow_written: written.background.1,
        slow_callbacks,
        discovered: side.discovered.load(Ordering::Relaxed),
        authenticated: pass.authenticated,
        refused: pass.refused,
        classes: classes.iter().filter(|class| class.durations.count() > 0).map(Class::of).collect(),
        ran_ns: treatment.ran_ns,
        waited_ns: treatment.waited_ns,
        interrupted: treatment.interrupted,
        stolen_ns: pass.stolen_ns,
    })
}

/// How the time passed in which all wrote.
struct Pass {
    begin_ns: u64,
    seconds: f64,
    stolen_ns: u64,
    authenticated: u64,
    refused: u64,
    executor: Watch,
    writer: Watch,
    cores: [CoreWatch; 2],
}

impl Pass {
    /// A late sample with what the kernel had to do with it, timed from the beginning.
    fn explain(&self, late: Late) -> Late {
        let until_ns = late.at_ns + late.response_ns;
        let waited_ns = [&self.executor, &self.writer].map(|watch| watch.waited_ns(late.at_ns, until_ns));
        let cores = self.cores.each_ref().map(|core| core.around(late.at_ns, until_ns));
        Late { at_ns: late.at_ns.saturating_sub(self.begin_ns), waited_ns: waited_ns.iter().sum(), cores, ..late }
    }
}

/// Lets all threads go, and looks at the kernel until the time is over.
fn watch(plan: &PhasePlan, course: &Course, participant: &DomainParticipant) -> Result<Pass> {
    let (mut executor, mut writer) = (Watch::begin(EXECUTOR_NAME)?, Watch::begin(WRITER_NAME)?);
    let stolen_ns = || CoreCounters::of(plan.cpus[1]).stolen_ns;
    let stolen_before_ns = stolen_ns();
    let mut cores = plan.cpus.map(CoreWatch::begin);
    let before = participant.counters()?;
    let begin_ns = monotonic_ns();
    course.go();
    while monotonic_ns() - begin_ns < plan.length.as_nanos() as u64 && !course.is_over() {
        std::thread::sleep(STEP);
        executor.look();
        writer.look();
        cores.iter_mut().for_each(CoreWatch::look);
    }
    let seconds = (monotonic_ns() - begin_ns) as f64 * 1e-9;
    let stolen_ns = stolen_ns().saturating_sub(stolen_before_ns);
    let after = participant.counters()?;
    let authenticated = after.participants_authenticated - before.participants_authenticated;
    let refused = after.participants_refused - before.participants_refused;
    Ok(Pass { begin_ns, seconds, stolen_ns, authenticated, refused, executor, writer, cores })
}
