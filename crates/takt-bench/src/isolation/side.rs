//! The processes of the experiment. Each is started by the one that measures, on its host, says one JSON object per line on standard output,
//! and hears lines on standard input.
//!
//! | role | is |
//! |---|---|
//! | `probe` | says which measures of a process cannot be had here |
//! | `ping` | writes pings on the grid from the first line it hears on, and says what came back |
//! | `pong` | answers each ping at once, and says what came when it hears a line |
//! | `flood` | the samples of [`load`](super::load) |
//! | `crowd` | its simulated participants |

use super::load;
use super::measure::{Measure, Measures, NotHere};
use super::open_loop::{Record, SidePlan};
use super::participant::{self, BACKGROUND, PING, PONG, ParticipantPlan, SLOW};
use crate::agent::Lines;
use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::rest::{self, Resting};
use crate::signal::stopped;
use crate::stats::Histogram;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use takt::real_time::{Held, ProcessSettings, Refusal, Scheduling, ThreadSettings};
use takt::{DataReader, DataReaderListener, DataWriter, DomainParticipant};

/// So long a process looks for the other one.
const MATCH_LIMIT: Duration = Duration::from_secs(20);
/// So long the answers to the last pings are waited for.
const LINGER: Duration = Duration::from_secs(1);
/// Between two looks at standard input.
const STEP: Duration = Duration::from_millis(50);

/// Plays a role. What it is to do is JSON: of `flood` and `crowd` their own plans, of the others a [`SidePlan`].
///
/// # Errors
/// The plan is none, a measure cannot be had, or the middleware failed. It is said on `out`, too.
pub fn run(role: &str, plan: &str, out: &mut dyn Write) -> Result<()> {
    let mut lines = Lines::new(out);
    let result = play(role, plan, &mut lines);
    if let Err(error) = &result {
        lines.say(&json!({"ev": "error", "what": error.to_string()}))?;
    }
    result
}

fn play(role: &str, plan: &str, lines: &mut Lines<'_>) -> Result<()> {
    match role {
        "probe" => probe(&parsed(plan)?, lines),
        "ping" => ping(&parsed(plan)?, lines),
        "pong" => pong(&parsed(plan)?, lines),
        "flood" => load::flood(&parsed(plan)?, lines),
        "crowd" => load::crowd(&parsed(plan)?, lines),
        _ => Err(Error::Usage(format!("{role} is no role of this experiment"))),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(plan: &str) -> Result<T> {
    serde_json::from_str(plan).map_err(|why| Error::Usage(format!("the plan of this role: {why}")))
}

pub(crate) fn refused(refusal: Refusal) -> Error {
    Error::os(format!("{} ({})", refusal.what, refusal.remedy), refusal.why)
}

/// Gives this process what the measures give it.
fn prepare(plan: &SidePlan) -> Result<Held> {
    let has = |measure| plan.participant.measures.has(measure);
    let thread = ThreadSettings {
        scheduling: has(Measure::Fifo).then_some(Scheduling::Fifo(plan.fifo)),
        cpus: if has(Measure::Affinity) { vec![plan.cpu] } else { Vec::new() },
        timer_slack: None,
    };
    thread.apply().map_err(refused)?;
    let cpu_latency = has(Measure::DmaLatency).then_some(Duration::ZERO);
    ProcessSettings { cpu_latency, ..ProcessSettings::default() }.apply().map_err(refused)
}

/// Says for each measure of a process that cannot be had why not.
fn probe(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let with = |measures: &[Measure]| -> SidePlan {
        let measures: Measures = measures.iter().copied().collect();
        SidePlan { participant: ParticipantPlan { measures, ..plan.participant.clone() }, ..plan.clone() }
    };
    let mut missing = Vec::new();
    if let Err(why) = participant::participant(&with(&[Measure::AfXdp]).participant) {
        missing.push(NotHere { measure: Measure::AfXdp, why: why.to_string() });
    }
    for measure in [Measure::DmaLatency, Measure::Affinity, Measure::Fifo] {
        if let Err(why) = prepare(&with(&[measure])) {
            missing.push(NotHere { measure, why: why.to_string() });
        }
    }
    for missing in missing {
        lines.say(&json!({"ev": "result", "missing": missing}))?;
    }
    lines.say(&json!({"ev": "done"}))
}

fn ping(plan: &SidePlan, lines: &mut Lines<'_>) -> Result<()> {
    let _held = prepare(plan)?;
    let ParticipantPlan { measures, spins, .. } = plan.participant;
    let participant = participant::participant(&plan.participant)?;
    let writer = participant::critical_writer(&participant, measures, PING)?;
    let reader = participant::critical_reader(&participant, measures, PONG)?;
    let record = Arc::new(Mutex::new(Record::new(plan)));
    let recorded = Arc::clone(&record);
    reader.set_listener(Each::boxed(move |pong| {
        lock(&recorded).arrived(monotonic_ns(), pong);
        Ok(())
    }))?;
    lines.ready()?;
    wait_matched(&participant, &writer, &reader, spins)?;
    lines.say(&json!({"ev": "matched"}))?;
    while !line_heard()? {
        drive(&participant, STEP, spins)?;
    }
    let (lateness, refused) = write_pings(plan, &participant, &writer)?;
    let until = monotonic_ns() + LINGER.as_nanos() as u64;
    while !lock(&record).is_over() && monotonic_ns() < until && !stopped() {
        drive(&participant, STEP, spins)?;
    }
    let record = lock(&record);
    lines.say(&json!({
        "ev": "result", "latencies": record.buckets(), "received": record.received(), "sent": plan.count,
        "lateness": lateness.buckets(), "refused": refused,
    }))
}

/// All pings, each when it is due or as soon after as can be. How late they were, and how many there was no room for.
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
            due_ns = rest::begin_at(due_ns);
        }
        let mut left = due_ns.saturating_sub(monotonic_ns());
        // Once at least, so that answers are taken also by who is behind.
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
    let _held = prepare(plan)?;
    let ParticipantPlan { measures, spins, .. } = plan.participant;
    let participant = participant::participant(&plan.participant)?;
    let writer = participant::critical_writer(&participant, measures, PONG)?;
    let reader = participant::critical_reader(&participant, measures, PING)?;
    let record = Arc::new(Mutex::new(Record::new(plan)));
    let recorded = Arc::clone(&record);
    reader.set_listener(Each::boxed(move |ping| {
        lock(&recorded).arrived(monotonic_ns(), ping);
        // What there is no room for shows as an answer that is lost.
        match writer.write(ping) {
            Ok(()) | Err(takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }))?;
    let background = participant::background_reader(&participant, measures, BACKGROUND)?;
    let slow = participant::background_reader(&participant, measures, SLOW)?;
    let burden = load::Burden::on(&background, &slow, plan.callback_ns)?;
    lines.ready()?;
    let mut look_at_ns = 0;
    loop {
        drive(&participant, STEP, spins)?;
        if stopped() {
            return Err(Error::Stopped);
        }
        let now = monotonic_ns();
        if now < look_at_ns {
            continue;
        }
        look_at_ns = now + STEP.as_nanos() as u64;
        if line_heard()? {
            break;
        }
    }
    let record = lock(&record);
    let (samples, lost, callbacks) = burden.counts();
    lines.say(&json!({
        "ev": "result", "latencies": record.buckets(), "received": record.received(),
        "background": samples, "background_lost": lost, "callbacks": callbacks,
        "discovered": participant.discovered_participants()?.len(),
    }))
}

/// Lets the participant live for up to `timeout`; who spins rests now and then.
pub(crate) fn drive(participant: &DomainParticipant, timeout: Duration, spins: bool) -> Result<()> {
    let timeout = if spins { Resting::awake(timeout).unwrap_or_default() } else { timeout };
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
            return Err(Error::NoAnswer { what: format!("the other process is not found within {MATCH_LIMIT:?}") });
        }
        drive(participant, STEP, spins)?;
    }
    Ok(())
}

/// Whether a line is there on standard input; it is taken.
pub(crate) fn line_heard() -> Result<bool> {
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: `input` is one valid entry.
    if unsafe { libc::poll(&mut input, 1, 0) } <= 0 {
        return if stopped() { Err(Error::Stopped) } else { Ok(false) };
    }
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line).map_err(|e| Error::os("standard input", e))? {
        // Who started this process has gone.
        0 => Err(Error::Stopped),
        _ => Ok(true),
    }
}

/// Calls something with each sample that comes. What fails there ends the process: nobody else would hear of it.
pub(crate) struct Each<F> {
    call: F,
    sample: Blob,
}

impl<F: FnMut(&Blob) -> Result<()> + Send + 'static> Each<F> {
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

impl<F: FnMut(&Blob) -> Result<()> + Send + 'static> DataReaderListener<Blob> for Each<F> {
    fn on_data_available(&mut self, reader: &DataReader<Blob>) {
        if let Err(why) = self.take(reader) {
            // Without a reader of standard output there is nothing else to tell; the exit code remains.
            let _ = writeln!(std::io::stdout(), "{}", json!({"ev": "error", "what": why.to_string()}));
            std::process::exit(1);
        }
    }
}

/// Locks what a listener shares with its loop; a panic of the other does not hide it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
