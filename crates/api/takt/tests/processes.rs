//! Discovery of 120 processes on one host. Each has a participant that writes and reads one topic,
//! and all match each other. There are as many processes as well-known ports (RTPS 2.5 §9.6.2), so
//! the last ones use other ports. `TAKT_PROCESSES=N` sets another number.
//!
//! The processes execute this test binary. Takes a minute on two cores: `cargo test -p takt
//! --features long-tests --test processes --release -- --nocapture` prints how long it took.

#[allow(dead_code, reason = "the other test binary uses the rest")]
#[path = "it/support.rs"]
mod support;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::{lines, wait};

/// Environment variable that marks a process of this test. It contains the domain and the number of
/// processes.
const ROLE: &str = "TAKT_TEST_PROCESS";

struct Process {
    child: Child,
    output: Receiver<String>,
}

impl Process {
    fn start(domain: u32, count: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary has a path"))
            .args(["--ignored", "--exact", "run_one_process", "--nocapture", "--quiet"])
            .env(ROLE, format!("{domain} {count}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = lines(child.stdout.take().expect("it is piped"));
        Self { child, output }
    }

    /// Waits until the process prints the line.
    fn await_line(&self, wanted: &str) {
        let (id, deadline) = (self.child.id(), Instant::now() + 10 * TIMEOUT);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(line) if line.ends_with(wanted) => return,
                Ok(_) => {}
                Err(error) => panic!("process {id} did not say {wanted}: {error}"),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its input is closed, unless something went wrong.
        drop(self.child.stdin.take());
        if std::thread::panicking() {
            drop(self.child.kill());
        }
        let ended = wait("a process without input ends", &mut self.child);
        assert!(std::thread::panicking() || ended.success());
    }
}

#[test]
fn one_hundred_and_twenty_processes_discover_each_other() {
    let count: usize = std::env::var("TAKT_PROCESSES").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let domain = domain();
    let started = Instant::now();
    let processes: Vec<_> = (0..count).map(|_| Process::start(domain, count)).collect();
    let all_started = started.elapsed();
    let mut matched = 0;
    for process in &processes {
        process.await_line("all matched");
        matched += 1;
    }
    let all = started.elapsed();
    println!(
        "{matched} processes, {} matches: started in {all_started:.1?}, all matched after {all:.1?}",
        count * count
    );
    assert_eq!(matched, count);
}

/// Entry point of one process.
#[test]
#[ignore = "role: started by other tests"]
fn run_one_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ').map(|word| word.parse::<u32>().expect("a number"));
    let (domain, count) = (words.next().expect("a domain"), words.next().expect("a count") as usize);
    let builder = DomainParticipant::builder(domain).interfaces(["lo"]).runtime(Runtime::Shared);
    let participant = builder.build().expect("participant");
    let writer = create_writer::<Shape>(&participant, "Topic", reliable_writer(History::KeepLast(1)));
    let reader = create_reader::<Shape>(&participant, "Topic", reliable_reader(History::KeepLast(1)));
    // The process also matches its own endpoints.
    let all = || {
        writer.matched_subscriptions().expect("open").len() == count
            && reader.matched_publications().expect("open").len() == count
    };
    let deadline = Instant::now() + 10 * TIMEOUT;
    while !all() {
        assert!(Instant::now() < deadline, "timeout waiting for all matches");
        // tidy-allow(sleep): spinning would deprive the other processes of processor time
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    println!("all matched");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("the input ends");
}
