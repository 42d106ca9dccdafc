//! Two machines reached by ssh: one connection for each, agents started over it, versions and
//! environments of both.
//!
//! A shell starts the remote process and ends it (SIGTERM, then SIGKILL) when the shell's standard
//! input ends. So the remote process ends with its local ssh, with the connection, and with this
//! process.

use super::environment;
use super::file::site::SshSite;
use super::system::{Agent, System};
use crate::campaign::Column;
use crate::campaign::child::{Placement, place};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Options of every ssh: no prompts, and a host that does not answer is an error.
const OPTIONS: [&str; 3] = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5"];
/// Exit code of ssh for its own failures.
pub(crate) const FAILED: i32 = 255;
/// Exit code of a shell that does not find a program.
pub(crate) const NOT_FOUND: i32 = 127;
/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// Script that runs its arguments as a program until its standard input has a line or ends. The
/// sleep is the time between SIGTERM and SIGKILL.
const SHELL: &str = "exec 3<&0; \"$@\" </dev/null & agent=$!; \
    { read -r line; kill -TERM $agent; sleep 4; kill -KILL $agent; } <&3 >/dev/null 2>&1 & watch=$!; \
    wait $agent; code=$?; kill $watch; exit $code";

/// Connections to both machines; they end when the value is dropped.
#[derive(Debug)]
pub struct Ssh {
    site: SshSite,
    /// Directory of the control sockets.
    directory: PathBuf,
    masters: Vec<Child>,
}

impl Ssh {
    /// Connects to both machines.
    ///
    /// # Errors
    /// ssh is not installed, or a host is not reached or refuses.
    pub fn connect(site: &SshSite) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("takt-ssh-{}-{count}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|e| Error::os(format!("make {}", directory.display()), e))?;
        let mut ssh = Self { site: site.clone(), directory, masters: Vec::new() };
        for side in 0..2 {
            let mut command = ssh.command(side);
            command.args(["-M", "-N", "--", &site.hosts[side]]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            place(&mut command, Placement::default());
            let master = command.spawn().map_err(|e| Error::os("start ssh (is openssh-client installed?)", e))?;
            ssh.masters.push(master);
            ssh.wait_until_connected(side)?;
        }
        Ok(ssh)
    }

    fn socket(&self, side: usize) -> PathBuf {
        self.directory.join(side.to_string())
    }

    fn words(&self, side: usize) -> Vec<String> {
        let mut words: Vec<String> =
            OPTIONS.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]).collect();
        words.extend(["-S".to_owned(), self.socket(side).display().to_string()]);
        words.extend(self.site.options.iter().cloned());
        words
    }

    fn command(&self, side: usize) -> Command {
        let mut command = Command::new("ssh");
        command.args(self.words(side));
        command
    }

    fn wait_until_connected(&mut self, side: usize) -> Result<()> {
        let begin = Instant::now();
        while !self.socket(side).exists() {
            let host = &self.site.hosts[side];
            let master = &mut self.masters[side];
            if master.try_wait().map_err(|e| Error::os("wait for ssh", e))?.is_some() {
                let mut text = String::new();
                if let Some(errors) = &mut master.stderr {
                    // An unreadable text is omitted from the error.
                    let _ = errors.read_to_string(&mut text);
                }
                return Err(Error::NoAnswer { what: explained(host, &text) });
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            if begin.elapsed() > CONNECT_LIMIT {
                let what = format!("ssh {host}: no connection within {} s", CONNECT_LIMIT.as_secs());
                return Err(Error::NoAnswer { what });
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    /// Runs a program to its end on one of the machines.
    ///
    /// # Errors
    /// ssh cannot be started.
    fn output(&self, side: usize, words: &[String]) -> Result<Output> {
        let mut command = self.command(side);
        command.args(["--", &self.site.hosts[side]]).args(words.iter().map(|word| quoted(word)));
        command.stdin(Stdio::null()).output().map_err(|e| Error::os("start ssh", e))
    }

    /// Returns the column of an agent on one of the machines, bound to its processor.
    #[must_use]
    pub fn column(&self, side: usize, column: &Column) -> Column {
        let host = &self.site.hosts[side];
        let mut prefix = self.words(side);
        prefix.extend(["--", host, "sh", "-c", &quoted(SHELL), "agent", "taskset", "-c"].map(str::to_owned));
        prefix.push(self.site.processors[side].to_string());
        prefix.push(quoted(&column.program.display().to_string()));
        prefix.extend(column.prefix.iter().map(|word| quoted(word)));
        Column { program: "ssh".into(), prefix, host: Some(host.clone()), ..column.clone() }
    }

    /// Returns the path of an agent, by its program in `systems.toml`; it is the same on both
    /// machines.
    #[must_use]
    pub fn agent(&self, program: &str) -> Agent {
        if program == System::TAKT {
            return Agent::Program { path: self.site.program.clone(), prefix: vec!["perf".into(), "agent".into()] };
        }
        if program.contains('/') {
            return Agent::Program { path: program.into(), prefix: Vec::new() };
        }
        match &self.site.agents {
            Some(directory) => Agent::Program { path: directory.join(program), prefix: Vec::new() },
            None => Agent::Missing("[site] names no directory of agents".into()),
        }
    }

    /// Returns the `info` line of a system's agent, which must be the same on both machines.
    ///
    /// # Errors
    /// Says why the system cannot be measured: the agent is missing or prints nothing, or the
    /// machines have different versions.
    pub fn info(&self, system: &System) -> std::result::Result<Value, String> {
        let mut infos = Vec::new();
        for side in 0..2 {
            let host = &self.site.hosts[side];
            let (path, prefix) = match self.agent(&system.program) {
                Agent::Program { path, prefix } => (path, prefix),
                Agent::Missing(why) => return Err(why),
            };
            let mut words = vec![path.display().to_string()];
            words.extend(prefix.into_iter().chain(["info".to_owned()]).chain(system.arguments.iter().cloned()));
            let output = self.output(side, &words).map_err(|why| why.to_string())?;
            match environment::info(&String::from_utf8_lossy(&output.stdout)) {
                Some(info) => infos.push(info),
                None => return Err(self.why_no_info(side, &path, &output, host)),
            }
        }
        let version = |info: &Value| format!("{} {}", text(&info["peer"]), text(&info["version"]));
        match infos.as_slice() {
            [one, other] if version(one) == version(other) => Ok(one.clone()),
            [one, other] => {
                let [first, second] = &self.site.hosts;
                Err(format!("two versions: {} on {first}, {} on {second}", version(one), version(other)))
            }
            _ => Err("no info".into()),
        }
    }

    fn why_no_info(&self, side: usize, path: &Path, output: &Output, host: &str) -> String {
        let errors = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(NOT_FOUND) => format!("{} is not on {host}", path.display()),
            Some(FAILED) if !self.socket(side).exists() => explained(host, &errors),
            _ => format!("{} on {host} reports no info, {}: {}", path.display(), output.status, last(&errors)),
        }
    }

    /// Returns the environments of both machines, by host.
    #[must_use]
    pub fn environments(&self) -> Value {
        let program = self.site.program.display().to_string();
        let words = [&program, "bench", "environment", "--json"].map(str::to_owned);
        let one = |side: usize| {
            let environment = self.output(side, &words).map_err(|why| why.to_string()).and_then(|output| {
                let parsed = serde_json::from_slice(&output.stdout);
                parsed.map_err(|_| {
                    format!("{program} bench environment: {}", last(&String::from_utf8_lossy(&output.stderr)))
                })
            });
            let environment: Value = environment.unwrap_or_else(|why| json!({ "not captured": why }));
            // Both hosts may be the same machine.
            (format!("{} ({})", self.site.hosts[side], ["measuring", "answering"][side]), environment)
        };
        [one(0), one(1)].into_iter().collect::<Map<_, _>>().into()
    }

    /// Returns the interface counters of a machine, as in `/proc/net/dev`.
    ///
    /// # Errors
    /// The machine is not reached.
    pub fn interface_counters(&self, side: usize) -> Result<String> {
        let output = self.output(side, &["cat".into(), "/proc/net/dev".into()])?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Reads a file of a machine, up to a length; a missing file is empty.
    ///
    /// # Errors
    /// The machine is not reached.
    pub fn read(&self, side: usize, path: &Path, len_max: u64) -> Result<Vec<u8>> {
        let path = path.display().to_string();
        let words = ["head".to_owned(), "-c".into(), len_max.to_string(), path.clone()];
        let output = self.output(side, &words)?;
        match output.status.code() {
            Some(FAILED) => {
                let what = explained(&self.site.hosts[side], &String::from_utf8_lossy(&output.stderr));
                Err(Error::NoAnswer { what })
            }
            _ => Ok(output.stdout),
        }
    }

    /// Removes a file of a machine, if it exists.
    pub fn remove(&self, side: usize, path: &Path) {
        // A leftover file is in the directory for temporary files.
        drop(self.output(side, &["rm".into(), "-f".into(), path.display().to_string()]));
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        for master in &mut self.masters {
            // An error means that the process has ended already.
            drop(master.kill());
            drop(master.wait());
        }
        // A leftover is an empty directory for temporary files.
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("not reported")
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn last(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason").trim()
}

/// Explains a failure of ssh, with advice.
pub(crate) fn explained(host: &str, errors: &str) -> String {
    let advice = [
        (
            "Permission denied",
            "the key was refused; set another one with options = [\"-i\", FILE], passwords are not supported",
        ),
        (
            "Host key verification failed",
            "the key of the host is unknown; connect once by hand, or set its file with options",
        ),
        ("Could not resolve", "the host name is unknown"),
        ("Connection refused", "no sshd listens at that port of the host"),
        ("No route to host", "the host is unreachable"),
        ("Network is unreachable", "the host is unreachable"),
        ("timed out", "the host does not answer"),
    ];
    let found = advice.iter().find(|(words, _)| errors.contains(words));
    let advice = found.map_or_else(String::new, |(_, advice)| format!(" ({advice})"));
    format!("ssh {host}: {}{advice}", last(errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_reach_the_remote_program_unchanged() {
        for word in ["size=16,64", "", "a b", "it's $HOME; `x`", "xdp:eth0/mode=native-spin", "a\nb", "*"] {
            let line = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").args(["-c", &line]).output().expect("a shell is installed");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn remote_program_ends_when_its_standard_input_ends() {
        let script = "trap 'echo ended; exit 5' TERM; echo begun; while :; do sleep 0.05; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", SHELL, "agent", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = shell.spawn().expect("a shell is installed");
        let mut output = process.stdout.take().expect("stdout is piped");
        output.read_exact(&mut [0; 6]).expect("the output begins");
        drop(process.stdin.take());
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("the stream ends");
        assert_eq!((rest.as_str(), process.wait().expect("the process is a child").code()), ("ended\n", Some(5)));
    }

    #[test]
    fn failures_of_ssh_include_advice() {
        let text = explained("u@a", "Warning: x\nu@a: Permission denied (publickey).\r\n");
        assert!(text.starts_with("ssh u@a: u@a: Permission denied (publickey). (the key was refused"), "{text}");
        assert_eq!(explained("b", ""), "ssh b: no reason");
    }
}
