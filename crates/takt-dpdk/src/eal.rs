//! DPDK's environment (EAL): started once in a process, with the arguments of whoever comes first.
//!
//! It binds the thread that starts it to one processor, and starts a thread on each processor that its arguments name. So it is started
//! on a thread of its own, and told of one processor only unless the arguments say otherwise. That thread, and so all of DPDK's, has
//! ordinary scheduling even if the caller is a real-time one. It is never stopped: what it holds is gone with the process.
//!
//! Arguments that make it end the process (`--help`, `--version`) are refused. Of the others, DPDK 22.11 answers bad ones with an error;
//! that a driver or a plugin of it never ends the process is not in our hands.

use std::ffi::CString;
use std::io;
use std::sync::{Mutex, PoisonError};

use takt_transport::TransportError;

use crate::ffi;

/// What has become of the environment.
static STATE: Mutex<Option<Started>> = Mutex::new(None);

struct Started {
    arguments: Vec<String>,
    outcome: Result<(), (io::ErrorKind, String)>,
}

/// Starts the environment if nobody has yet; whether it runs with these arguments.
///
/// Errors: arguments that it refuses, and the first error again if it has been refused before: DPDK cannot be started twice.
pub(crate) fn start(arguments: &[String]) -> Result<bool, TransportError> {
    let failed = |source| TransportError::new("start", format_args!("DPDK {}", arguments.join(" ")), source);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_none() {
        let list = command_line(arguments).map_err(failed)?;
        let outcome = std::thread::spawn(|| ffi::init(list)).join();
        let outcome = outcome.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        let outcome = outcome.map_err(|e| (e.kind(), e.to_string()));
        *state = Some(Started { arguments: arguments.to_vec(), outcome });
    }
    let started = state.as_ref().expect("it was started above");
    match &started.outcome {
        Ok(()) => Ok(started.arguments == arguments),
        Err((kind, why)) => Err(failed(io::Error::new(*kind, why.as_str()))),
    }
}

/// The arguments as a program has them: its name first; with a processor if none is named.
fn command_line(arguments: &[String]) -> io::Result<Vec<CString>> {
    let ends_the_process = |argument: &&String| matches!(argument.as_str(), "-h" | "--help" | "-v" | "--version");
    if let Some(argument) = arguments.iter().find(ends_the_process) {
        let why = format!("{argument} is for programs that end then");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut list = vec!["takt".to_owned()];
    let names_processors =
        |argument: &String| ["-l", "-c", "--lcores", "-s", "-S"].iter().any(|option| argument.starts_with(option));
    if !arguments.iter().any(names_processors) {
        list.extend(["-l".to_owned(), first_processor().to_string()]);
    }
    list.extend_from_slice(arguments);
    list.into_iter().map(|argument| Ok(CString::new(argument)?)).collect()
}

/// The first processor that this process may use.
fn first_processor() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.and_then(|list| list.trim().split(['-', ',']).next()?.parse().ok()); // tidy-allow(dropped-cause): then the first there is.
    first.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> io::Result<Vec<String>> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let list = command_line(&arguments)?;
        Ok(list.iter().map(|argument| argument.to_str().expect("text").to_owned()).collect())
    }

    #[test]
    fn one_processor_is_named_unless_the_arguments_do() {
        let own = first_processor().to_string();
        assert_eq!(line(&["--no-huge"]).expect("fine"), ["takt", "-l", &own, "--no-huge"]);
        for named in [&["-l", "1"][..], &["-l1"], &["--lcores=0@1"], &["-c", "3"]] {
            assert_eq!(line(named).expect("fine")[1..], *named);
        }
    }

    #[test]
    fn what_would_end_the_process_is_refused() {
        for argument in ["-h", "--help", "-v", "--version"] {
            let why = line(&["--no-huge", argument]).expect_err("not here").to_string();
            assert!(why.contains(argument), "{why}");
        }
        assert!(line(&["a\0b"]).is_err());
    }
}
