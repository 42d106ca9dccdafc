//! Implementations of the agent's basic roles: `ping`, `pong`, `pub`, `sub`, `pick`, `load`, `disc`
//! and `idle`.

use super::Lines;
use super::options::Options;
use crate::error::{Error, Result};
use crate::link::{Link, Matched};
use crate::machine::{Memory, Usage, monotonic_ns};
use crate::payload::Form;
use crate::signal::stopped;
use crate::workload::ping::Ping;
use crate::workload::subscribe::{self, Subscription};
use crate::workload::{TOPIC_DATA, TOPIC_PING, TOPIC_PONG, Window, ping, pong, publish, settle, wait_matched};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

/// Maximum time until the endpoints are matched.
pub(super) const MATCH_LIMIT: Duration = Duration::from_secs(30);
/// Interval between checks for a match where the time to match is not the result.
const MATCH_STEP: Duration = Duration::from_millis(1);
/// Interval between checks for a match where the time to match is the result.
pub(super) const DISCOVERY_STEP: Duration = Duration::from_micros(200);
/// Time between the match and the first ping.
const PING_PAUSE: Duration = Duration::from_millis(300);
/// Time between the match and the first sample of a stream.
const STREAM_PAUSE: Duration = Duration::from_millis(500);
/// Time for which a stream continues after its measured window.
const STREAM_TAIL: Duration = Duration::from_millis(300);
/// Interval between checks for a stop while a participant is idle.
pub(super) const IDLE_STEP: Duration = Duration::from_secs(1);
/// Time for repairs after the end of a stream.
const STREAM_LINGER: Duration = Duration::from_secs(1);
/// Maximum number of latencies of a stream that are kept.
const TIMES_MAX: usize = 1 << 22;
const ONE_PAIR: Matched = Matched { readers: 1, writers: 1 };

pub(super) fn ping(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let mut link = options.link.open(Some(TOPIC_PING), Some(TOPIC_PONG))?;
    lines.ready()?;
    let mut out = open_times(options)?;
    let mut ping = Ping::new(&mut *link, options.link.wants_listener())?;
    wait_matched(ping.link(), ONE_PAIR, MATCH_LIMIT, MATCH_STEP)?;
    settle(ping.link(), PING_PAUSE)?;
    for &size in &options.sizes {
        if stopped() {
            break;
        }
        let Options { warmup, count, period, .. } = *options;
        let Options { short_reply, .. } = *options;
        let pauses = options.link.pauses;
        let outcome = ping.run(ping::Plan { size, warmup, count, period, pauses, short_reply })?;
        if let Some(out) = &mut out {
            write_times(out, &outcome.latencies_ns)?;
        }
        let lost = match options.period {
            Some(_) => outcome.counts.lost,
            None => outcome.timeouts,
        };
        lines.write(&json!({
            "ev": "result", "role": "ping", "size": size, "got": outcome.latencies_ns.len(), "lost": lost,
            "cpu_s": outcome.usage.cpu_seconds, "wall_s": outcome.wall_seconds,
            "nvcsw": outcome.usage.voluntary_switches, "nivcsw": outcome.usage.involuntary_switches,
            "listening": u8::from(ping.is_listening()),
        }))?;
    }
    lines.write(&json!({"ev": "done"}))
}

pub(super) fn pong(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let mut link = options.link.open(Some(TOPIC_PONG), Some(TOPIC_PING))?;
    lines.ready()?;
    let listen = options.link.wants_listener();
    pong::run(&mut *link, listen, options.short_reply, &mut |_| false).map(drop)
}

/// Creates the file for round-trip times, if one is configured.
fn open_times(options: &Options) -> Result<Option<File>> {
    let Some(path) = &options.out else { return Ok(None) };
    let file = File::options().create(true).append(true).open(path);
    file.map(Some).map_err(|e| Error::os(path.display().to_string(), e))
}

fn write_times(out: &mut File, times_ns: &[u64]) -> Result<()> {
    let octets: Vec<u8> = times_ns.iter().flat_map(|ns| ns.to_le_bytes()).collect();
    out.write_all(&octets).map_err(|e| Error::os("out", e))
}

/// Returns the window of a stream, which the contract gives in seconds.
fn window(options: &Options) -> Window {
    Window { skip: options.warm, time_max: Some(options.window), ..Window::default() }
}

pub(super) fn subscribe(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let mut link = options.link.open(None, Some(TOPIC_DATA))?;
    let mut out = open_times(options)?;
    let times_max = if out.is_some() { TIMES_MAX } else { 0 };
    let plan = subscribe::Plan { window: window(options), touch: options.link.touch, times_max };
    let mut subscription = Subscription::new(&mut *link, plan, options.link.wants_listener(), None)?;
    lines.ready()?;
    let outcome = subscription.run()?;
    if let Some(out) = &mut out {
        write_times(out, &outcome.times_ns)?;
    }
    if outcome.arrivals_total > 0 {
        lines.write(&json!({
            "ev": "result", "role": "sub", "id": options.id, "n": outcome.arrivals, "bytes": outcome.bytes,
            "wall_s": outcome.wall_seconds, "cpu_s": outcome.usage.cpu_seconds, "span": outcome.span,
            "total": outcome.arrivals_total, "listening": u8::from(subscription.is_listening()),
        }))?;
    }
    subscription.drain()
}

/// Runs `sub` with a content filter.
pub(super) fn pick(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    if options.link.pass_percent.is_none() || options.link.form != Form::Numbered {
        return Err(Error::Usage("pick needs a share and numbers: pass_percent=10 type=numbered".into()));
    }
    subscribe(options, lines)
}

/// Runs `pub`, or with `is_planned` the role `load`: each sample carries the time that it was
/// planned for, however late it is written.
pub(super) fn publish(options: &Options, lines: &mut Lines<'_>, is_planned: bool) -> Result<()> {
    if is_planned && options.rate_hz.is_none() {
        return Err(Error::Usage("load needs a rate: rate=1000".into()));
    }
    let mut link = options.link.open(Some(TOPIC_DATA), None)?;
    lines.ready()?;
    let wanted = Matched { readers: options.peers, writers: 0 };
    wait_matched(&mut *link, wanted, MATCH_LIMIT, MATCH_STEP)?;
    if is_planned {
        lines.write(&json!({"ev": "matched"}))?;
    }
    settle(&mut *link, STREAM_PAUSE)?;
    let plan = publish::Plan {
        size: options.sizes[0],
        batch: options.link.batch,
        rate_hz: options.rate_hz,
        window: window(options),
        tail: STREAM_TAIL,
        retry_refused: options.link.reliable,
        is_planned,
    };
    let outcome = publish::run(&mut *link, &plan)?;
    lines.write(&json!({
        "ev": "result", "role": if is_planned { "load" } else { "pub" }, "n": outcome.written, "wall_s": outcome.wall_seconds,
        "cpu_s": outcome.usage.cpu_seconds, "fails": outcome.refused, "total": outcome.written_total,
    }))?;
    publish::finish(&mut *link, plan.size, STREAM_LINGER)?;
    lines.write(&json!({"ev": "done"}))
}

/// Runs `disc`, or `idle`, which then measures a participant without traffic.
pub(super) fn discover(options: &Options, lines: &mut Lines<'_>, idle: bool) -> Result<()> {
    let bare = Memory::now()?;
    let main_ns = monotonic_ns();
    let (write, read) = match options.id {
        0 => (TOPIC_PING, TOPIC_PONG),
        _ => (TOPIC_PONG, TOPIC_PING),
    };
    let mut link = options.link.open(Some(write), Some(read))?;
    let init_ns = monotonic_ns();
    lines.ready()?;
    if !idle || options.peers > 0 {
        // An idle participant that has peers waits for one of them.
        let pairs = if idle { 1 } else { options.peers.max(1) };
        wait_matched(&mut *link, Matched { readers: pairs, writers: pairs }, MATCH_LIMIT, DISCOVERY_STEP)?;
        let started_ns = options.started_at_ns.unwrap_or(main_ns);
        let since_start = |ns: u64| ns.saturating_sub(started_ns) as f64 * 1e-6;
        lines.write(&json!({
            "ev": "matched", "main_ms": since_start(main_ns), "init_ms": since_start(init_ns),
            "match_ms": since_start(monotonic_ns()),
        }))?;
    }
    if idle {
        measure_idle(options, &mut *link, bare, lines)?;
    }
    while !stopped() {
        link.drive(IDLE_STEP)?;
    }
    Ok(())
}

/// Measures what an idle participant costs. In addition to the keys of the contract, it reports the
/// resident memory before the participant was created and at the end, KiB.
fn measure_idle(options: &Options, link: &mut dyn Link, bare: Memory, lines: &mut Lines<'_>) -> Result<()> {
    settle(link, options.warm)?;
    let (usage, started_ns) = (Usage::now(), monotonic_ns());
    let is_over = || stopped() || monotonic_ns() - started_ns >= options.window.as_nanos() as u64;
    while !is_over() {
        // Long steps, so that the measured wake-ups are those of the participant, not of this loop.
        link.drive(options.window.min(IDLE_STEP))?;
    }
    let used = Usage::now().since(&usage);
    let memory = Memory::now()?;
    lines.write(&json!({
        "ev": "result", "role": "idle", "cpu_s": used.cpu_seconds,
        "wall_s": (monotonic_ns() - started_ns) as f64 * 1e-9, "nvcsw": used.voluntary_switches,
        "bare_kib": bare.resident_kib, "resident_kib": memory.resident_kib, "peak_kib": memory.peak_kib,
        "private_kib": memory.private_kib,
    }))
}
