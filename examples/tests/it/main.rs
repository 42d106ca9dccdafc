//! The programs of README and `docs/getting-started.md` are the examples, and the examples exchange samples.
#![allow(missing_docs)]

use std::io::{BufRead, BufReader, Lines};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// No test waits longer than this for another one to leave the domain.
const PATIENCE: Duration = Duration::from_secs(120);

/// The programs are in domain 0: one test at a time has it, as the tests of `takt` have theirs.
fn domain_0() -> UnixListener {
    let name = SocketAddr::from_abstract_name("takt-test-domain-0").expect("a short name");
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(reservation) => return reservation,
            Err(error) => assert!(Instant::now() < deadline, "domain 0 stays taken: {error}"),
        }
        std::thread::yield_now();
    }
}

/// A program that is running, and ends with this at the latest.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(path: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).env("TAKT_INTERFACES", "lo").stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program was built");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    fn next_line(&mut self) -> String {
        self.lines.next().expect("the program prints").expect("it prints text")
    }

    fn finish(mut self) {
        assert!(self.child.wait().expect("it runs").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The first block of Rust in a document that has a `main`.
fn program_in(document: &str) -> &str {
    let blocks = document.split("```").skip(1).step_by(2);
    let program = blocks.filter(|block| block.starts_with("rust")).find(|block| block.contains("fn main()"));
    program.and_then(|block| block.split_once('\n')).expect("a program").1
}

/// An example without its first comment.
fn program_of(example: &str) -> &str {
    example.split_once("\n\n").expect("a comment and a program").1
}

#[test]
fn documents_show_the_examples() {
    let readme = program_in(include_str!("../../../README.md"));
    assert_eq!(readme, program_of(include_str!("../../src/bin/hello.rs")));
    let getting_started = program_in(include_str!("../../../docs/getting-started.md"));
    assert_eq!(getting_started, program_of(include_str!("../../src/bin/temperature.rs")));
}

#[test]
fn hello_delivers_its_sample_whoever_comes_first() {
    let _domain = domain_0();
    let program = env!("CARGO_BIN_EXE_hello");
    for publisher_first in [false, true] {
        let mut started = [("publish", publisher_first), ("subscribe", !publisher_first)];
        started.sort_by_key(|(_, is_first)| !is_first);
        let [first, second] = started.map(|(role, _)| (role, Program::start(program, &[role])));
        let (publisher, mut subscriber) = if first.0 == "publish" { (first.1, second.1) } else { (second.1, first.1) };
        assert_eq!(subscriber.next_line(), "Reading { sensor: 7, celsius: 21.5 }");
        publisher.finish();
    }
}

#[test]
fn temperature_delivers_every_reading_and_ends_with_its_writer() {
    let _domain = domain_0();
    let program = env!("CARGO_BIN_EXE_temperature");
    let mut subscriber = Program::start(program, &["subscribe"]);
    let publisher = Program::start(program, &["publish"]);
    for step in 0..20 {
        let celsius = 20.0 + f64::from(step) / 10.0;
        assert_eq!(subscriber.next_line(), format!("Reading {{ sensor: 7, celsius: {celsius:?} }}"));
    }
    assert_eq!(subscriber.next_line(), "sensor 7: NotAliveNoWriters");
    publisher.finish();
    subscriber.finish();
}
