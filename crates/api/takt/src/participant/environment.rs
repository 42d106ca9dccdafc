//! Detection of environment variables that begin with `TAKT_` but have no effect. Each causes a
//! warning, since a misspelled name would otherwise go unnoticed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use takt_transport::Warning;

use crate::log::{self, Level, TAKT_LOG};

/// Variables that every participant evaluates.
const EVALUATED: &[&str] = &[
    "TAKT_CAPTURE",
    "TAKT_CAPTURE_BYTES_MAX",
    "TAKT_CHECK_SOURCES",
    "TAKT_DAEMON",
    "TAKT_DISCOVERY_SERVERS",
    "TAKT_INTERFACES",
    "TAKT_IPV6",
    "TAKT_MULTICAST",
    "TAKT_MULTICAST_READERS_MIN",
    "TAKT_PEERS",
    "TAKT_SECURITY",
    "TAKT_SECURITY_CLEAR_DISCOVERY",
    "TAKT_SECURITY_LOG_TOPIC",
    "TAKT_SECURITY_REPLAY_WINDOW",
    "TAKT_SHARED_MEMORY",
    "TAKT_TRANSPORT_DISCOVERY",
    "TAKT_TRANSPORT_EXTRA",
    "TAKT_TRANSPORT_TOPICS",
    "TAKT_TRANSPORT_USER_DATA",
    "TAKT_UDP",
];

/// Further variables, evaluated by participants that `takt_config::Settings` builds.
const EVALUATED_BY_SETTINGS: &[&str] = &[
    "TAKT_ANNOUNCEMENT_PERIOD",
    "TAKT_CONFIG",
    "TAKT_DEFAULT_MAX_INSTANCES",
    "TAKT_DEFAULT_MAX_SAMPLES",
    "TAKT_DOMAIN",
    "TAKT_ENDPOINT_MEMORY_BYTES",
    "TAKT_IDLE",
    "TAKT_LEASE_DURATION",
    "TAKT_MAX_DISCOVERY_BYTES",
    "TAKT_MAX_DISCOVERY_BYTES_PER_PARTICIPANT",
    "TAKT_MAX_ENDPOINTS_PER_PARTICIPANT",
    "TAKT_MAX_PARTICIPANTS",
    "TAKT_MAX_PARTICIPANTS_PER_ADDRESS",
    "TAKT_MAX_REFUSALS",
    "TAKT_MAX_UNVALIDATED_PARTICIPANTS",
    "TAKT_NAME",
    "TAKT_PARTICIPANT_INDEX",
    "TAKT_QOS_PROFILE",
    "TAKT_REAL_TIME_CPUS",
    "TAKT_REAL_TIME_CPU_LATENCY",
    "TAKT_REAL_TIME_FIFO",
    "TAKT_REAL_TIME_LOCK_MEMORY",
    "TAKT_REAL_TIME_ROUND_ROBIN",
    "TAKT_REAL_TIME_SYSTEM",
    "TAKT_REAL_TIME_TIMER_SLACK",
    "TAKT_REASSEMBLY_BYTES",
    "TAKT_RUNTIME",
    "TAKT_SEND_WINDOW_BYTES",
    "TAKT_SHARED_MEMORY_LANES_MAX",
    "TAKT_SHARED_MEMORY_LANE_BYTES",
    "TAKT_SHARED_MEMORY_SEGMENT_BYTES",
    "TAKT_SHARED_MEMORY_SEGMENT_SLOTS",
    "TAKT_SPIN_TIME",
    "TAKT_TCP_ANNOUNCE",
    "TAKT_TCP_CA",
    "TAKT_TCP_CERTIFICATE",
    "TAKT_TCP_CONNECTIONS_MAX",
    "TAKT_TCP_CONNECTIONS_PER_ADDRESS_MAX",
    "TAKT_TCP_KEY",
    "TAKT_TCP_LISTEN",
    "TAKT_TCP_SEND_QUEUE_BYTES",
    "TAKT_UDP_D0",
    "TAKT_UDP_D1",
    "TAKT_UDP_D2",
    "TAKT_UDP_D3",
    "TAKT_UDP_DOMAIN_GAIN",
    "TAKT_UDP_FRAGMENT_QUEUE_BYTES",
    "TAKT_UDP_MULTICAST_TTL",
    "TAKT_UDP_PARTICIPANT_GAIN",
    "TAKT_UDP_PORT_BASE",
    "TAKT_UDP_RECEIVE_BUFFER_BYTES",
    "TAKT_UDP_SEND_BUFFER_BYTES",
];

/// Prefix of variables used by tests.
const TEST_PREFIX: &str = "TAKT_TEST_";

/// Returns the variables that `takt_config::Settings` evaluates, for the test that compares them
/// with its table.
#[doc(hidden)]
#[must_use]
pub fn variables_of_settings() -> Vec<&'static str> {
    EVALUATED.iter().chain(EVALUATED_BY_SETTINGS).copied().collect()
}

/// Returns warnings for variables that are set but that no participant evaluates, for programs that
/// log no warnings by default.
#[doc(hidden)]
#[must_use]
pub fn variable_warnings() -> Vec<Warning> {
    without_effect(true).into_iter().map(|(warning, _)| warning).collect()
}

/// Returns the variables that are set but not evaluated, with their warnings.
fn without_effect(is_from_settings: bool) -> Vec<(Warning, String)> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with("TAKT_")).collect();
    names.into_iter().filter_map(|name| Some((warning(&name, is_from_settings)?, name))).collect()
}

/// Returns warnings for variables that are set but not evaluated. Each is logged once per process.
pub(super) fn warnings(is_from_settings: bool) -> Vec<Warning> {
    static RECORDED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let found = without_effect(is_from_settings);
    let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    for (warning, name) in &found {
        if recorded.insert(name.clone()) {
            log::record(Level::Warn, warning.to_string());
        }
    }
    found.into_iter().map(|(warning, _)| warning).collect()
}

fn warning(name: &str, is_from_settings: bool) -> Option<Warning> {
    if name == TAKT_LOG || name.starts_with(TEST_PREFIX) || EVALUATED.contains(&name) {
        return None;
    }
    if !EVALUATED_BY_SETTINGS.contains(&name) {
        let all = EVALUATED.iter().chain(EVALUATED_BY_SETTINGS).chain(&[TAKT_LOG]);
        let nearest = all.min_by_key(|known| distance(name, known)).filter(|known| distance(name, known) <= 3);
        let remedy =
            nearest.map_or("see docs/reference/settings.md".to_owned(), |nearest| format!("did you mean {nearest}?"));
        return Some(Warning { what: format!("{name} is set, but no such setting exists"), remedy });
    }
    let what = format!("{name} is set, but this participant ignores it");
    let remedy = "build it by takt_config::Settings, which reads all settings of docs/reference/settings.md".to_owned();
    (!is_from_settings).then_some(Warning { what, remedy })
}

/// Returns the edit distance: the number of letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_variable_warns_and_names_the_nearest() {
        let warning = warning("TAKT_MULTICATS", false).expect("no such variable");
        assert_eq!(warning.what, "TAKT_MULTICATS is set, but no such setting exists");
        assert_eq!(warning.remedy, "did you mean TAKT_MULTICAST?");
    }

    #[test]
    fn settings_variable_warns_unless_settings_build_the_participant() {
        assert!(warning("TAKT_DOMAIN", false).expect("a warning").what.contains("ignores it"));
        assert_eq!(warning("TAKT_DOMAIN", true), None);
        for evaluated in ["TAKT_PEERS", "TAKT_LOG", "TAKT_TEST_LONG"] {
            assert_eq!(warning(evaluated, false), None, "{evaluated}");
        }
    }
}
