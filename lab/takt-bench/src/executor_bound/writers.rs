//! Writer threads of the experiment: critical samples, background samples, and the crowd.
//!
//! Each thread has a participant of its own, with the Inline runtime. The critical thread takes the
//! time just before `write`. It writes again one period after that call has ended, so that the
//! interval between two samples is never shorter. With real-time priorities, the threads share the
//! first core in the order critical, background, crowd.

use super::phase::{CRITICAL, CRITICAL_PRIORITY, DEPTH, PhasePlan, properties};
use crate::error::{Error, Result};
use crate::isolation::crowd::{Crowd, CrowdSettings};
use crate::isolation::load::{Flood, TICK};
use crate::isolation::participant::{BACKGROUND, SLOW};
use crate::isolation::side::{drive, refused};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use takt::qos::{DataWriterQos, History, PublisherQos, Reliability, TopicQos};
use takt::{DataWriter, DomainParticipant, PRIORITY_PROPERTY, Runtime};

/// SCHED_FIFO priorities of the threads.
const CRITICAL_FIFO: u8 = 70;
const BACKGROUND_FIFO: u8 = 60;
const CROWD_FIFO: u8 = 10;
/// Name of the thread that writes critical samples.
pub const WRITER_NAME: &str = "bound-writer";
/// Payload size of a critical sample, octets.
const SAMPLE_LEN: usize = 64;
const CROWD_ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3), Ipv4Addr::new(127, 0, 0, 4)];
/// Maximum time for writers to match their readers.
const MATCH_LIMIT: Duration = Duration::from_secs(20);

/// Barrier of a phase: threads become ready, then all are released, then the phase is over.
#[derive(Default)]
pub struct PhaseBarrier {
    ready: AtomicUsize,
    is_released: AtomicBool,
    is_over: AtomicBool,
}

impl PhaseBarrier {
    /// Releases all threads that are ready.
    pub fn release(&self) {
        self.is_released.store(true, Ordering::Relaxed);
    }

    /// Ends the phase for all threads.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || stopped()
    }

    /// Marks a thread as ready and calls `wait` repeatedly until all threads are released. Returns
    /// whether they are.
    fn ready(&self, mut wait: impl FnMut() -> Result<()>) -> Result<bool> {
        self.ready.fetch_add(1, Ordering::Relaxed);
        while !self.is_released.load(Ordering::Relaxed) && !self.is_over() {
            wait()?;
        }
        Ok(!self.is_over())
    }
}

/// Results of the writer threads: number of critical samples and the longest `write` call, number
/// of background samples and of samples that trigger slow callbacks.
#[derive(Default)]
pub struct Written {
    pub critical: (u64, u64),
    pub background: (u64, u64),
}

/// Runs all writer threads during `pass`, which starts once they have matched their readers.
pub fn write_all(plan: &PhasePlan, barrier: &PhaseBarrier, pass: impl FnOnce() -> Result<()>) -> Result<Written> {
    std::thread::scope(|scope| {
        let writer = std::thread::Builder::new().name(WRITER_NAME.into());
        let part = || ending(barrier, || write_critical(plan, barrier));
        let critical = writer.spawn_scoped(scope, part).map_err(|e| Error::os("start a thread", e))?;
        let floods = plan.load.floods();
        let background = floods.then(|| scope.spawn(|| ending(barrier, || write_background(plan, barrier))));
        let has_crowd = plan.load.participants > 0;
        let crowd = has_crowd.then(|| scope.spawn(|| ending(barrier, || replace_participants(plan, barrier))));
        let threads = 1 + usize::from(floods) + usize::from(has_crowd);
        while barrier.ready.load(Ordering::Relaxed) < threads && !barrier.is_over() {
            std::thread::sleep(TICK);
        }
        let passed = if barrier.is_over() { Ok(()) } else { pass() };
        barrier.end();
        crowd.map_or(Ok(()), joined)?;
        let written = Written { critical: joined(critical)?, background: background.map_or(Ok((0, 0)), joined)? };
        passed.map(|()| written)
    })
}

/// Runs a thread's part. A failure ends the phase for all threads.
fn ending<T>(barrier: &PhaseBarrier, part: impl FnOnce() -> Result<T>) -> Result<T> {
    part().inspect_err(|_| barrier.end())
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn writer(from: &DomainParticipant, topic: &str, pairs: &[(&str, String)]) -> Result<DataWriter<Blob>> {
    let topic = from.create_topic::<Blob>(topic, TopicQos::default())?;
    let (history, property) = (History::KeepLast(DEPTH), properties(pairs));
    let qos = DataWriterQos { reliability: Reliability::BEST_EFFORT, history, property, ..DataWriterQos::default() };
    Ok(from.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?)
}

fn wait_matched(from: &DomainParticipant, writers: &[&DataWriter<Blob>], barrier: &PhaseBarrier) -> Result<()> {
    let since = monotonic_ns();
    for writer in writers {
        while writer.publication_matched_status()?.current_count == 0 && !barrier.is_over() {
            if monotonic_ns() - since > MATCH_LIMIT.as_nanos() as u64 {
                return Err(Error::NoAnswer { what: format!("a reader is not discovered within {MATCH_LIMIT:?}") });
            }
            drive(from, TICK, false)?;
        }
    }
    Ok(())
}

/// Writes critical samples. Returns their number and the longest `write` call.
fn write_critical(plan: &PhasePlan, barrier: &PhaseBarrier) -> Result<(u64, u64)> {
    plan.thread(0, CRITICAL_FIFO).apply().map_err(refused)?;
    let from = plan.participant("takt-critical")?.runtime(Runtime::Inline).build()?;
    let pairs = [(PRIORITY_PROPERTY, CRITICAL_PRIORITY.to_string()), ("rt.min_sep_ns", plan.period_ns.to_string())];
    let critical = writer(&from, CRITICAL, &pairs)?;
    wait_matched(&from, &[&critical], barrier)?;
    let (mut sent, mut longest_ns) = (0, 0);
    if !barrier.ready(|| drive(&from, TICK, false))? {
        return Ok((0, 0));
    }
    let mut sample = Blob::filled(SAMPLE_LEN);
    let mut due_ns = monotonic_ns();
    while !barrier.is_over() {
        // The participant is driven at least once, so that it also stays alive if it is late.
        loop {
            let left = due_ns.saturating_sub(monotonic_ns());
            drive(&from, Duration::from_nanos(left), false)?;
            if monotonic_ns() >= due_ns {
                break;
            }
        }
        sent += 1;
        let begin_ns = monotonic_ns();
        sample.mark(sent, begin_ns);
        critical.write(&sample)?;
        let end_ns = monotonic_ns();
        longest_ns = longest_ns.max(end_ns - begin_ns);
        due_ns = end_ns + plan.period_ns;
    }
    Ok((sent, longest_ns))
}

/// Writes background samples and samples that trigger slow callbacks. Returns the number of each.
fn write_background(plan: &PhasePlan, barrier: &PhaseBarrier) -> Result<(u64, u64)> {
    plan.thread(0, BACKGROUND_FIFO).apply().map_err(refused)?;
    let from = plan.participant("takt-background")?.runtime(Runtime::Inline).build()?;
    let (background, slow) = (writer(&from, BACKGROUND, &[])?, writer(&from, SLOW, &[])?);
    wait_matched(&from, &[&background, &slow], barrier)?;
    if !barrier.ready(|| drive(&from, TICK, false))? {
        return Ok((0, 0));
    }
    let mut flood = Flood::begin(background, slow, plan.load.clone());
    while !barrier.is_over() {
        drive(&from, TICK, false)?;
        flood.write_due()?;
    }
    Ok(flood.counts())
}

/// Replaces participants of the crowd continuously.
fn replace_participants(plan: &PhasePlan, barrier: &PhaseBarrier) -> Result<()> {
    plan.thread(0, CROWD_FIFO).apply().map_err(refused)?;
    let pause = || {
        std::thread::sleep(TICK);
        Ok(())
    };
    if !barrier.ready(pause)? {
        return Ok(());
    }
    let settings =
        CrowdSettings { domain: plan.domain, interface: "lo", own: &CROWD_ADDRESSES, peer: Ipv4Addr::LOCALHOST };
    let count = plan.load.participants;
    let mut crowd = match &plan.keys {
        Some(keys) => Crowd::with_constructor(keys.crowd()?, &settings, count)?,
        None => Crowd::new(&settings, count)?,
    };
    while !barrier.is_over() {
        crowd.step(TICK)?;
    }
    Ok(())
}
