//! Processes of the isolation experiment. The driver starts each one on its host. A process writes
//! one JSON object per line to standard output and reads lines from standard input.
//!
//! | role | task |
//! |---|---|
//! | `probe` | reports which measures of a process are unavailable |
//! | `ping` | writes pings on the grid from its first input line on, and reports the answers |
//! | `pong` | answers each ping at once, and reports the pings when it reads a line |
//! | `flood` | writes the samples of [`load`](super::load) |
//! | `crowd` | runs the simulated participants of `load` |

use super::countermeasure::{Countermeasure, Countermeasures, UnavailableMeasure};
use super::load;
use super::open_loop::{Record, SidePlan};
use super::participant::{self, BACKGROUND, PING, PONG, ParticipantPlan, SLOW};
use crate::agent::Lines;
use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use crate::pauses::{self, PausingLink};
use crate::payload::Blob;
use crate::signal::stopped;
use crate::stats::Histogram;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use takt::real_time::{LatencyRequest, ProcessSettings, Refusal, Scheduling, ThreadSettings};
use takt::{DataReader, DataReaderListener, DataWriter, DomainParticipant};

/// Maximum time for a process to match the other one.
const MATCH_LIMIT: Duration = Duration::from_secs(20);
/// Maximum wait for the answers to the last pings.
const LINGER: Duration = Duration::from_secs(1);
/// Interval between checks of standard input.
const STEP: Duration = Duration::from_millis(50);

/// Runs a role. Its settings are JSON: `flood` and `crowd` have plans of their own, the other roles
/// a [`SidePlan`].
///
/// # Errors
/// The plan is invalid, a measure is unavailable, or the middleware failed. The error is also
/// written to `out`.
pub fn run(role: &str, plan: &str, out: &mut dyn Write) -> Result<()> {
    let mut lines = Lines::new(out);
    let result = run_role(role, plan, &mut lines);
    if let Err(error) = &result {
        lines.write(&json!({"ev": "error", "what": error.to_string()}))?;
    }
    result
}

fn run_role(role: &str, plan: &str, lines: &mut Lines<'_>) -> Result<()> {
    match role {
        "probe" => probe(&parsed(plan)?, lines),
        "ping" => ping(&parsed(plan)?, lines),
        "pong" => pong(&parsed(plan)?, lines),
        "flood" => load::flood(&parsed(plan)?, lines),
        "crowd" => load::crowd(&parsed(plan)?, lines),
        _ => Err(Error::Usage(format!("{role} is not a role of this experiment"))),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(plan: &str) -> Result<T> {
    serde_json::from_str(plan).map_err(|why| Error::Usage(format!("invalid plan of this role: {why}")))
}

pub(crate) fn refused(refusal: Refusal) -> Error {
    Error::os(format!("{} ({})", refusal.setting, refusal.remedy), refusal.cause)
}

/// Applies the process's measures.
fn prepare(plan: &SidePlan) -> Result<LatencyRequest> {
    let has = |measure| plan.participant.measures.has(measure);
    let thread = ThreadSettings {
        scheduling: has(Countermeasure::Fifo).then_some(Scheduling::Fifo(plan.fifo)),
        cpus: if has(Countermeasure::Affinity) { vec![plan.cpu] } else { Vec::new() },
        timer_slack: None,
    };
    thread.apply().map_err(refused)?;
    let cpu_latency = has(Countermeasure::DmaLatency).then_some(Duration::ZERO);
    ProcessSettings { cpu_latency, ..ProcessSettings::default() }.apply().map_err(refused)
}

/// Reports each unavailable measure of a process with the reason.
fn probe(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let with = |measures: &[Countermeasure]| -> SidePlan {
        let measures: Countermeasures = measures.iter().copied().collect();
        SidePlan { participant: ParticipantPlan { measures, ..plan.participant.clone() }, ..plan.clone() }
    };
    let mut missing = Vec::new();
    if let Err(why) = participant::participant(&with(&[Countermeasure::AfXdp]).participant) {
        missing.push(UnavailableMeasure { measure: Countermeasure::AfXdp, why: why.to_string() });
    }
    for measure in [Countermeasure::DmaLatency, Countermeasure::Affinity, Countermeasure::Fifo] {
        if let Err(why) = prepare(&with(&[measure])) {
            missing.push(UnavailableMeasure { measure, why: why.to_string() });
        }
    }
    for missing in missing {
        lines.write(&json!({"ev": "result", "missing": missing}))?;
    }
    lines.write(&json!({"ev": "done"}))
}

fn ping(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let _guard = prepare(plan)?;
    let ParticipantPlan { measures, spins, .. } = plan.participant;
    let participant = participant::participant(&plan.participant)?;
    let writer = participant::critical_writer(&participant, measures, PING)?;
    let reader = participant::critical_reader(&participant, measures, PONG)?;
    let record = Arc::new(Mutex::new(Record::new(plan)));
    let recorded = Arc::clone(&record);
    reader.set_listener(CallbackListener::boxed(move |pong| {
        lock(&recorded).arrived(monotonic_ns(), pong);
        Ok(())
    }))?;
    lines.ready()?;
    wait_matched(&participant, &writer, &reader, spins)?;
    lines.write(&json!({"ev": "matched"}))?;
    while !read_line()? {
        drive(&participant, STEP, spins)?;
    }
    let (lateness, refused) = write_pings(plan, &participant, &writer)?;
    let until = monotonic_ns() + LINGER.as_nanos() as u64;
    while !lock(&record).is_over() && monotonic_ns() < until && !stopped() {
        drive(&participant, STEP, spins)?;
    }
    let record = lock(&record);
    lines.write(&json!({
        "ev": "result", "latencies": record.buckets(), "received": record.received(), "sent": plan.count,
        "lateness": lateness.buckets(), "refused": refused,
    }))
}

/// Writes all pings, each when it is due or as soon as possible afterwards. Returns their lateness,
/// and the number of pings without room.
fn write_pings(
    plan: &SidePlan,
    participant: &DomainParticipant,
    writer: &DataWriter<Blob>,
) -> Result<(Histogram, u64)> {
    let spins = plan.participant.spins;
    let (mut lateness, mut refused) = (Histogram::new(), 0);
    let mut ping = Blob::filled(plan.size);
    let mut due_ns = monotonic_ns();
    for sequence in 1..=plan.last() {
        due_ns += plan.period_ns;
        if spins {
            due_ns = pauses::next_start(due_ns);
        }
        let mut left = due_ns.saturating_sub(monotonic_ns());
        // The participant is driven at least once, so that a late process also takes answers.
        loop {
            drive(participant, Duration::from_nanos(left), spins)?;
            left = due_ns.saturating_sub(monotonic_ns());
            if left == 0 {
                break;
            }
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        ping.mark(sequence, due_ns);
        if sequence > plan.warmup {
            lateness.record(monotonic_ns().saturating_sub(due_ns));
        }
        match writer.write(&ping) {
            Ok(()) => {}
            Err(takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. }) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok((lateness, refused))
}

fn pong(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let _guard = prepare(plan)?;
    let ParticipantPlan { measures, spins, .. } = plan.participant;
    let participant = participant::participant(&plan.participant)?;
    let writer = participant::critical_writer(&participant, measures, PONG)?;
    let reader = participant::critical_reader(&participant, measures, PING)?;
    let record = Arc::new(Mutex::new(Record::new(plan)));
    let recorded = Arc::clone(&record);
    reader.set_listener(CallbackListener::boxed(move |ping| {
        lock(&recorded).arrived(monotonic_ns(), ping);
        // An answer without room counts as lost at the pinging process.
        match writer.write(ping) {
            Ok(()) | Err(takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }))?;
    let background = participant::background_reader(&participant, measures, BACKGROUND)?;
    let slow = participant::background_reader(&participant, measures, SLOW)?;
    let load = load::CallbackLoad::on(&background, &slow, plan.callback_ns)?;
    lines.ready()?;
    let mut next_check_ns = 0;
    loop {
        drive(&participant, STEP, spins)?;
        if stopped() {
            return Err(Error::Stopped);
        }
        let now = monotonic_ns();
        if now < next_check_ns {
            continue;
        }
        next_check_ns = now + STEP.as_nanos() as u64;
        if read_line()? {
            break;
        }
    }
    let record = lock(&record);
    let (samples, lost, callbacks) = load.counts();
    lines.write(&json!({
        "ev": "result", "latencies": record.buckets(), "received": record.received(),
        "background": samples, "background_lost": lost, "callbacks": callbacks,
        "discovered": participant.discovered_participants()?.len(),
    }))
}

/// Drives the participant for up to `timeout`. A spinning thread pauses periodically, so that RT
/// throttling does not stop it.
pub(crate) fn drive(participant: &DomainParticipant, timeout: Duration, spins: bool) -> Result<()> {
    let timeout = if spins { PausingLink::awake(timeout).unwrap_or_default() } else { timeout };
    participant.spin_once(timeout)?;
    Ok(())
}

fn wait_matched(
    participant: &DomainParticipant,
    writer: &DataWriter<Blob>,
    reader: &DataReader<Blob>,
    spins: bool,
) -> Result<()> {
    let deadline = monotonic_ns() + MATCH_LIMIT.as_nanos() as u64;
    while writer.publication_matched_status()?.current_count == 0
        || reader.subscription_matched_status()?.current_count == 0
    {
        if stopped() {
            return Err(Error::Stopped);
        }
        if monotonic_ns() > deadline {
            return Err(Error::NoAnswer {
                what: format!("the other process is not discovered within {MATCH_LIMIT:?}"),
            });
        }
        drive(participant, STEP, spins)?;
    }
    Ok(())
}

/// Reports whether a line arrived on standard input, and consumes it.
pub(crate) fn read_line() -> Result<bool> {
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: `input` is one valid entry.
    if unsafe { libc::poll(&mut input, 1, 0) } <= 0 {
        return if stopped() { Err(Error::Stopped) } else { Ok(false) };
    }
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line).map_err(|e| Error::os("standard input", e))? {
        // End of file: the driver has ended.
        0 => Err(Error::Stopped),
        _ => Ok(true),
    }
}

/// Listener that calls a function with each sample. A failure ends the process, because no caller
/// receives it.
pub(crate) struct CallbackListener<F> {
    call: F,
    sample: Blob,
}

impl<F: FnMut(&Blob) -> Result<()> + Send + 'static> CallbackListener<F> {
    pub(crate) fn boxed(call: F) -> Box<Self> {
        Box::new(Self { call, sample: Blob::default() })
    }

    fn take(&mut self, reader: &DataReader<Blob>) -> Result<()> {
        while let Some(info) = reader.take_next_sample(&mut self.sample)? {
            if info.valid_data {
                (self.call)(&self.sample)?;
            }
        }
        Ok(())
    }
}

impl<F: FnMut(&Blob) -> Result<()> + Send + 'static> DataReaderListener<Blob> for CallbackListener<F> {
    fn on_data_available(&mut self, reader: &DataReader<Blob>) {
        if let Err(why) = self.take(reader) {
            // If nothing reads standard output, only the exit code remains to report the failure.
            let _ = writeln!(std::io::stdout(), "{}", json!({"ev": "error", "what": why.to_string()}));
            std::process::exit(1);
        }
    }
}

/// Locks a mutex that a listener shares with its loop, also after a panic of the other thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
