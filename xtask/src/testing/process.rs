//! Process with a time limit, after which it and its descendants are killed.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Polling period of the process state.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of printed frames per stack.
const FRAMES: u32 = 24;

/// Time limit of gdb for reading the stacks, in seconds.
const GDB_SECONDS: &str = "60";

/// End of a process.
pub struct End {
    /// Exit status; of a killed process, signal 9.
    pub status: ExitStatus,
    /// Stacks of its threads at the time limit, as gdb prints them; `None` if it ended in time.
    pub stacks: Option<String>,
}

/// Waits until `child` has ended. After `limit` it and its descendants are killed.
pub fn wait(child: &mut Child, limit: Duration) -> std::io::Result<End> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End { status, stacks: None });
        }
        if begin.elapsed() >= limit {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let stacks = stacks(child.id());
    for process in with_descendants(child.id()) {
        // A process that has already ended is no error.
        let _ = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
    }
    let status = child.wait()?;
    // The process may have ended while its stacks were read.
    let status = if status.success() { ExitStatus::from_raw(9) } else { status };
    Ok(End { status, stacks: Some(stacks) })
}

/// Returns the stacks of all threads of a process.
fn stacks(process: u32) -> String {
    let show = format!("thread apply all backtrace {FRAMES}");
    let mut gdb = Command::new("timeout");
    gdb.args(["--kill-after=1", GDB_SECONDS, "gdb", "-batch", "-p", &process.to_string(), "-ex", &show]);
    match gdb.output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
            format!("the stacks of its threads are not known: gdb ended with {}\n{stdout}{stderr}", output.status)
        }
        Err(error) => format!("the stacks of its threads are not known: gdb cannot be run: {error}"),
    }
}

/// Returns a process and its descendants, parents first.
fn with_descendants(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        // tidy-allow(dropped-cause): what is not a number is no process
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process| Some((process, parent(process)?)))
        .collect();
    let mut found = vec![process];
    let mut at = 0;
    while at < found.len() {
        let children = parents.iter().filter(|(_, parent)| *parent == found[at]).map(|(process, _)| *process);
        found.extend(children.collect::<Vec<_>>());
        at += 1;
    }
    found
}

/// Returns the parent of a process that has not ended.
fn parent(process: u32) -> Option<u32> {
    // tidy-allow(dropped-cause): a process that has ended has no parent
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses.
    // tidy-allow(dropped-cause): the kernel writes a number
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{parent, wait, with_descendants};

    const SHELL_WITH_A_CHILD: &str = "sleep 1000 & wait";

    #[test]
    fn process_is_killed_with_its_descendants_after_its_time_limit() {
        let mut child = Command::new("sh").args(["-c", SHELL_WITH_A_CHILD]).spawn().expect("a shell");
        while with_descendants(child.id()).len() < 2 {
            std::thread::yield_now();
        }
        let descendant = with_descendants(child.id())[1];
        let end = wait(&mut child, Duration::ZERO).expect("a child");
        assert!(end.stacks.is_some() && !end.status.success(), "{:?}", end.status);
        while parent(descendant).is_some_and(|parent| parent == child.id()) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn process_that_ends_in_time_has_its_own_status() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).stdout(Stdio::null()).spawn().expect("a shell");
        let end = wait(&mut child, Duration::from_secs(1000)).expect("a child");
        assert_eq!((end.status.code(), end.stacks.is_none()), (Some(7), true));
    }
}
