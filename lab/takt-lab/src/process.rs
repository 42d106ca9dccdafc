//! Process identity by ID and start time: the kernel may reuse an ID.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// Maximum time for killed processes to end.
const END_LIMIT: Duration = Duration::from_secs(20);
/// Interval between checks whether they have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Process identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process ID.
    pub pid: i32,
    /// Start time in kernel ticks since boot (proc_pid_stat(5), field 22).
    start: u64,
}

impl Process {
    /// Returns the process that has an ID now; `None` if there is none, or it is a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?; // tidy-allow(dropped-cause): no such process
        // The second field is the name in parentheses, which may contain anything.
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
        let state = fields.next()?;
        let start = fields.nth(18)?.parse().ok()?; // tidy-allow(dropped-cause): the kernel writes a number
        (state != "Z" && state != "X").then_some(Self { pid, start })
    }

    /// Returns this process.
    pub fn own() -> Self {
        let pid = i32::try_from(std::process::id()).expect("the kernel's process IDs have 22 bits");
        Self::of(pid).unwrap_or(Self { pid, start: 0 })
    }

    /// Reports whether the process runs.
    pub fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Kills the process, if it runs.
    fn kill(self) -> io::Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the processes whose network namespace is one of these inodes, except this process.
pub fn in_namespaces(inodes: &[u64]) -> Vec<Process> {
    let own = Process::own();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()); // tidy-allow(dropped-cause): no process
    let is_inside = |pid: &i32| {
        fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|namespace| inodes.contains(&namespace.ino()))
    };
    pids.filter(is_inside).filter_map(Process::of).filter(|process| *process != own).collect()
}

/// Ends all processes in namespaces, including those that they start meanwhile.
pub fn end_all(inodes: &[u64]) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        let processes = in_namespaces(inodes);
        if processes.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > END_LIMIT {
            let what = format!("process {} does not end after SIGKILL", processes[0].pid);
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        processes.iter().try_for_each(|process| process.kill())?;
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_with_another_start_time_is_another_process() {
        let own = Process::own();
        assert!(own.is_alive());
        let earlier = Process { start: own.start - 1, ..own };
        assert!(!earlier.is_alive());
        earlier.kill().expect("no process to end");
    }
}
