//! DPDK's environment (EAL): started once in a process, with the arguments of the first port.
//!
//! EAL binds its starting thread to one processor, and starts a thread on each processor in its
//! arguments. It is therefore started on a separate thread, with one processor unless the arguments
//! state others. That thread, and so all threads of DPDK, have ordinary scheduling, even if the
//! caller is a real-time thread. EAL is never stopped: its resources are freed with the process.
//!
//! Arguments that make EAL end the process (`--help`, `--version`) are refused. DPDK 22.11 answers
//! other invalid ones with an error; whether a driver or plugin ends the process is beyond Takt's
//! control.

use std::ffi::CString;
use std::io;
use std::sync::{Mutex, PoisonError};

use takt_transport::TransportError;

use crate::ffi;

/// State of the environment.
static STATE: Mutex<Option<Started>> = Mutex::new(None);

struct Started {
    arguments: Vec<String>,
    outcome: Result<(), (io::ErrorKind, String)>,
}

/// Starts the environment, unless it runs already. Reports whether it runs with these arguments.
///
/// # Errors
/// EAL refuses the arguments. Later calls return the first error again, since DPDK cannot be
/// started twice.
pub(crate) fn start(arguments: &[String]) -> Result<bool, TransportError> {
    let failed = |source| TransportError::new("start", format_args!("DPDK {}", arguments.join(" ")), source);
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_none() {
        let list = command_line(arguments).map_err(failed)?;
        let outcome = std::thread::spawn(|| ffi::init(list)).join();
        let outcome = outcome.unwrap_or_else(|_| Err(io::Error::other("the initialization of EAL panicked")));
        let outcome = outcome.map_err(|e| (e.kind(), e.to_string()));
        *state = Some(Started { arguments: arguments.to_vec(), outcome });
    }
    let started = state.as_ref().expect("DPDK was started above");
    match &started.outcome {
        Ok(()) => Ok(started.arguments == arguments),
        Err((kind, why)) => Err(failed(io::Error::new(*kind, why.as_str()))),
    }
}

/// Makes the argument list of a program: its name first; with a processor if none is named.
fn command_line(arguments: &[String]) -> io::Result<Vec<CString>> {
    let ends_the_process = |argument: &&String| matches!(argument.as_str(), "-h" | "--help" | "-v" | "--version");
    if let Some(argument) = arguments.iter().find(ends_the_process) {
        let why = format!("{argument} makes EAL end the process; remove it");
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

/// Returns the first processor that this process may use.
fn first_processor() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.and_then(|list| list.trim().split(['-', ',']).next()?.parse().ok()); // tidy-allow(dropped-cause): falls back to processor 0.
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
    fn one_processor_is_named_unless_the_arguments_name_any() {
        let own = first_processor().to_string();
        assert_eq!(line(&["--no-huge"]).expect("fine"), ["takt", "-l", &own, "--no-huge"]);
        for named in [&["-l", "1"][..], &["-l1"], &["--lcores=0@1"], &["-c", "3"]] {
            assert_eq!(line(named).expect("fine")[1..], *named);
        }
    }

    #[test]
    fn arguments_that_end_the_process_are_refused() {
        for argument in ["-h", "--help", "-v", "--version"] {
            let why = line(&["--no-huge", argument]).expect_err("the argument is refused").to_string();
            assert!(why.contains(argument), "{why}");
        }
        assert!(line(&["a\0b"]).is_err());
    }
}
