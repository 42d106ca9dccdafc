//! Phase of the executor-bound experiment: an executor with a receiving participant, and the
//! observations on it.

use super::cores::{CoreCounters, CoreObserver};
use super::environment::ThreadObserver;
use super::secured::Keys;
use super::writers::{PhaseBarrier, WRITER_NAME, write_all};
use crate::error::{Error, Result};
use crate::isolation::load::{CallbackLoad, LoadPlan};
use crate::isolation::participant::{BACKGROUND, SLOW};
use crate::isolation::side::{CallbackListener, lock};
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
use takt::qos::{DataReaderQos, History, Property, PropertyEntry, SubscriberQos, TopicQos};
use takt::real_time::{JobClass, Scheduling, ThreadSettings};
use takt::{
    BUDGET_PROPERTY, DataReader, DomainParticipant, DomainParticipantListener, Executor, Guid, Limits,
    PRIORITY_PROPERTY, PublisherListener, SubscriberListener, TopicListener,
};

/// Topic of the critical samples.
pub const CRITICAL: &str = "Critical";
/// Job priorities of the critical and of the slow reader.
pub const CRITICAL_PRIORITY: i32 = 46;
pub const SLOW_PRIORITY: i32 = -10;
/// SCHED_FIFO priorities of the executors.
const EXECUTOR_FIFO: u8 = 80;
const SEPARATE_FIFO: u8 = 20;
/// Name of the executor's thread.
const EXECUTOR_NAME: &str = "bound-executor";
/// HISTORY depth of readers and writers.
pub const DEPTH: u32 = 1024;
/// Maximum wait for the last sample.
const LINGER: Duration = Duration::from_secs(1);
/// Interval between checks whether a phase is over.
const STEP: Duration = Duration::from_millis(20);
/// Maximum number of samples above the bound that are listed.
const LATE_MAX: usize = 1000;
/// Number of jobs in a trace: about half a second under full load.
const TRACE_JOBS: usize = 1 << 15;

/// Settings of a phase.
pub struct PhasePlan {
    pub domain: u32,
    pub load: LoadPlan,
    pub length: Duration,
    pub period_ns: u64,
    pub separate_executor: bool,
    /// Keys, if messages are encrypted.
    pub keys: Option<Arc<Keys>>,
    pub cpus: [usize; 2],
    /// Whether threads have real-time priorities and cores.
    pub is_real_time: bool,
    /// Bound; samples above it are listed.
    pub bound_ns: Option<u64>,
    /// File for the last jobs. If set, the phase ends with the first sample above the bound.
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
        // A crowd of participants may join at once: none of them may wait for room.
        let limits = Limits { max_unvalidated_participants: 1024, ..Limits::default() };
        let builder = DomainParticipant::builder(self.domain).name(name).interfaces(["lo"]).multicast(false);
        let builder = builder.peers(["127.0.0.1"]).shared_memory(false).limits(limits);
        Ok(match &self.keys {
            Some(keys) => builder.security(keys.of(name)?),
            None => builder,
        })
    }
}

/// Statistics of the jobs of one kind and priority.
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

/// Sample above the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Late {
    /// Write time, since the beginning of the phase.
    pub at_ns: u64,
    pub response_ns: u64,
    /// Time around the sample for which executor and writer were runnable and did not run.
    pub waited_ns: u64,
    /// Counters around that time of the cores of writer and executor.
    pub cores: [CoreCounters; 2],
}

impl Late {
    /// Returns the time that the kernel's counters explain: writer and executor were runnable and
    /// did not run, and their cores were stolen or in interrupts.
    pub fn by_kernel_ns(&self) -> u64 {
        self.cores.iter().fold(self.waited_ns, |sum, core| sum + core.stolen_ns + core.interrupts_ns)
    }
}

/// Observations of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observed {
    pub seconds: f64,
    /// Response times of critical samples, from before `write` to the listener.
    pub response_us: Summary,
    /// Longest response time, exactly.
    pub response_max_ns: u64,
    pub sent: u64,
    pub received: u64,
    /// Number of samples above the bound, and the first of them.
    pub late: u64,
    pub late_samples: Vec<Late>,
    /// Longest `write` call for a critical sample.
    pub write_max_ns: u64,
    pub background_written: u64,
    pub background_received: u64,
    pub slow_written: u64,
    pub slow_callbacks: u64,
    /// Number of participants discovered.
    pub discovered: u64,
    /// Number of participants that were authenticated and admitted.
    pub authenticated: u64,
    /// Number of participants refused by their permissions or after the timeout.
    pub refused: u64,
    /// Job classes of the executor.
    pub classes: Vec<Class>,
    /// Run time of the executor's thread.
    pub ran_ns: u64,
    /// Time for which the thread was runnable and did not run: another thread ran, or the kernel
    /// was slow to wake it.
    pub waited_ns: u64,
    /// Number of preemptions of the thread.
    pub interrupted: u64,
    /// Steal time of its core.
    pub stolen_ns: u64,
}

impl Observed {
    /// Returns the longest job of a class; 0 if there was none.
    pub fn longest_ns(&self, kind: &str, priority: i32) -> u64 {
        let class = self.classes.iter().find(|class| class.kind == kind && class.priority == priority);
        class.map_or(0, |class| class.max_ns)
    }
}

/// Records of the critical listener.
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

    /// Records a sample and returns whether it is above the bound.
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

/// Listener that counts discovered participants.
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
    pairs.iter().map(|(name, value)| PropertyEntry::local(*name, value)).collect()
}

fn reader(to: &DomainParticipant, topic: &str, pairs: &[(&str, String)]) -> Result<DataReader<Blob>> {
    let topic = to.create_topic::<Blob>(topic, TopicQos::default())?;
    let (history, property) = (History::KeepLast(DEPTH), properties(pairs));
    let qos = DataReaderQos { history, property, ..DataReaderQos::default() };
    Ok(to.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?)
}

/// Receiving side of a phase.
struct ReceivingSide {
    to: DomainParticipant,
    record: Arc<Mutex<Record>>,
    load: CallbackLoad,
    discovered: Arc<AtomicU64>,
    _readers: [DataReader<Blob>; 3],
    _executors: Vec<Executor>,
}

impl ReceivingSide {
    fn new(plan: &PhasePlan, barrier: &Arc<PhaseBarrier>) -> Result<Self> {
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
        if plan.separate_executor {
            executors.push(start("bound-aside", SEPARATE_FIFO)?);
            slow.run_listener_on(executors.last())?;
        }
        let load = CallbackLoad::on(&background, &slow, callback_ns)?;
        let record = Arc::new(Mutex::new(Record::new(plan.bound_ns)));
        let (recorded, barrier, ends_if_late) = (Arc::clone(&record), Arc::clone(barrier), plan.trace.is_some());
        critical.set_listener(CallbackListener::boxed(move |sample| {
            if let Some((sequence, sent_ns)) = sample.marks()
                && lock(&recorded).arrived(sequence, sent_ns)
                && ends_if_late
            {
                barrier.end();
            }
            Ok(())
        }))?;
        if plan.trace.is_some() {
            to.keep_job_trace(TRACE_JOBS)?;
        }
        Ok(Self { to, record, load, discovered, _readers: [critical, background, slow], _executors: executors })
    }
}

/// Runs a phase, from the creation of its participants to their end.
///
/// # Errors
/// The middleware or the machine failed, readers were not found, no critical sample arrived, or a
/// signal requested a stop.
pub fn run(plan: &PhasePlan) -> Result<Observed> {
    let barrier = Arc::new(PhaseBarrier::default());
    let side = ReceivingSide::new(plan, &barrier)?;
    let mut interval = None;
    let written = write_all(plan, &barrier, || {
        interval = Some(watch(plan, &barrier, &side.to)?);
        Ok(())
    })?;
    let Some(interval) = interval.filter(|_| !stopped()) else { return Err(Error::Stopped) };
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
    let (background_received, _, slow_callbacks) = side.load.counts();
    let record = lock(&side.record);
    let scheduling = interval.executor.total();
    let nothing = || Error::NoAnswer { what: "no critical sample arrived".into() };
    Ok(Observed {
        seconds: interval.seconds,
        response_us: record.responses.summary().ok_or_else(nothing)?,
        response_max_ns: record.max_ns,
        sent: written.critical.0,
        received: record.tracker.counts().received,
        late: record.late,
        late_samples: record.late_samples.iter().map(|late| interval.add_kernel_counters(*late)).collect(),
        write_max_ns: written.critical.1,
        background_written: written.background.0,
        background_received,
        slow_written: written.background.1,
        slow_callbacks,
        discovered: side.discovered.load(Ordering::Relaxed),
        authenticated: interval.authenticated,
        refused: interval.refused,
        classes: classes.iter().filter(|class| class.durations.count() > 0).map(Class::of).collect(),
        ran_ns: scheduling.ran_ns,
        waited_ns: scheduling.waited_ns,
        interrupted: scheduling.interrupted,
        stolen_ns: interval.stolen_ns,
    })
}

/// Observations of the interval in which all threads wrote.
struct WriteInterval {
    begin_ns: u64,
    seconds: f64,
    stolen_ns: u64,
    authenticated: u64,
    refused: u64,
    executor: ThreadObserver,
    writer: ThreadObserver,
    cores: [CoreObserver; 2],
}

impl WriteInterval {
    /// Adds the kernel's counters to a late sample, and sets its time relative to the beginning.
    fn add_kernel_counters(&self, late: Late) -> Late {
        let until_ns = late.at_ns + late.response_ns;
        let waited_ns = [&self.executor, &self.writer].map(|observer| observer.waited_ns(late.at_ns, until_ns));
        let cores = self.cores.each_ref().map(|core| core.overlapping(late.at_ns, until_ns));
        Late { at_ns: late.at_ns.saturating_sub(self.begin_ns), waited_ns: waited_ns.iter().sum(), cores, ..late }
    }
}

/// Releases all threads, and observes the kernel's counters until the time is over.
fn watch(plan: &PhasePlan, barrier: &PhaseBarrier, participant: &DomainParticipant) -> Result<WriteInterval> {
    let (mut executor, mut writer) = (ThreadObserver::begin(EXECUTOR_NAME)?, ThreadObserver::begin(WRITER_NAME)?);
    let stolen_ns = || CoreCounters::of(plan.cpus[1]).stolen_ns;
    let stolen_before_ns = stolen_ns();
    let mut cores = plan.cpus.map(CoreObserver::begin);
    let before = participant.diagnostics().counters()?;
    let begin_ns = monotonic_ns();
    barrier.release();
    while monotonic_ns() - begin_ns < plan.length.as_nanos() as u64 && !barrier.is_over() {
        std::thread::sleep(STEP);
        executor.sample();
        writer.sample();
        cores.iter_mut().for_each(CoreObserver::sample);
    }
    let seconds = (monotonic_ns() - begin_ns) as f64 * 1e-9;
    let stolen_ns = stolen_ns().saturating_sub(stolen_before_ns);
    let after = participant.diagnostics().counters()?;
    let authenticated = after.participants_authenticated - before.participants_authenticated;
    let refused = after.participants_refused - before.participants_refused;
    Ok(WriteInterval { begin_ns, seconds, stolen_ns, authenticated, refused, executor, writer, cores })
}
