//! Reports on standard output: one JSON object per line, from any thread.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use takt::InstanceState;

/// A sample that a reader took.
pub struct Taken<'a> {
    pub id: &'a str,
    pub state: InstanceState,
    pub key: Option<(u32, Option<&'a str>)>,
    /// Sequence number, timestamp and payload of a valid sample.
    pub data: Option<(u64, i64, &'a [u8])>,
    pub source_ns: i64,
}

/// Returns CLOCK_REALTIME in nanoseconds.
pub fn realtime_ns() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}

fn line(value: &Value) {
    let mut out = std::io::stdout().lock();
    // If the reader of the pipe has exited, standard input ends as well, which ends this program.
    let written = writeln!(out, "{value}").and_then(|()| out.flush());
    drop(written);
}

pub fn ready(version: &str) {
    line(&json!({"ev": "ready", "peer": "takt", "version": version}));
}

pub fn done(id: &str, command: &str) {
    line(&json!({"ev": "done", "id": id, "command": command}));
}

/// Reports the datagrams that bypassed the kernel's network stack.
pub fn bypass_counters(bypassed_in: u64, bypassed_out: u64) {
    line(&json!({"ev": "carried", "bypassed_in": bypassed_in, "bypassed_out": bypassed_out}));
}

/// Reports why participants were refused.
pub fn refused_participants(reasons: &[String]) {
    line(&json!({"ev": "refused", "reasons": reasons}));
}

pub fn error(id: &str, command: &str, what: &str) {
    line(&json!({"ev": "error", "id": id, "command": command, "what": what}));
}

pub fn matched(id: &str, current: u32, total: u32) {
    line(&json!({"ev": "matched", "id": id, "current": current, "total": total}));
}

pub fn incompatible(id: &str, policy: i64, total: u32, reasons: &[String]) {
    line(&json!({"ev": "incompatible", "id": id, "policy": policy, "total": total, "reasons": reasons}));
}

pub fn instance(id: &str, known: bool) {
    line(&json!({"ev": "instance", "id": id, "known": known}));
}

pub fn deadline_missed(id: &str, total: u64) {
    line(&json!({"ev": "deadline_missed", "id": id, "total": total}));
}

pub fn lost(id: &str, total: u64) {
    line(&json!({"ev": "lost", "id": id, "total": total}));
}

pub fn rejected(id: &str, total: u64) {
    line(&json!({"ev": "rejected", "id": id, "total": total}));
}

pub fn sample(taken: &Taken<'_>) {
    let received_ns = realtime_ns();
    let state = match taken.state {
        InstanceState::Alive => "alive",
        InstanceState::NotAliveDisposed => "disposed",
        InstanceState::NotAliveNoWriters => "no_writers",
    };
    let mut value = json!({
        "ev": "sample",
        "id": taken.id,
        "valid": taken.data.is_some(),
        "state": state,
        "key": taken.key.map(|(key, _)| key),
        "name": taken.key.and_then(|(_, name)| name),
        "source_ns": taken.source_ns,
        "received_ns": received_ns,
    });
    if let Some((seq, stamp_ns, payload)) = taken.data {
        value["seq"] = seq.into();
        value["stamp_ns"] = stamp_ns.into();
        value["len"] = payload.len().into();
        value["hash"] = format!("{:016x}", takt_interop::content::hash(payload)).into();
    }
    line(&value);
}
