//! The programs in README and `docs/tutorial/getting-started.md` equal the examples, and the
//! examples exchange samples.
#![allow(missing_docs)]

mod newcomer;
mod programs;

use std::io::{BufRead, BufReader, Lines};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time that a test waits for another one to leave the domain.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reserves domain 0, which the programs use, for one test at a time. The tests of `takt` reserve
/// their domains in the same way.
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

/// Running program, which is killed when this is dropped.
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
        // The program may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the first Rust block of a document that contains a `main`.
fn program_in(document: &str) -> &str {
    let blocks = document.split("```").skip(1).step_by(2);
    let program = blocks.filter(|block| block.starts_with("rust")).find(|block| block.contains("fn main()"));
    program.and_then(|block| block.split_once('\n')).expect("a program").1
}

/// Returns an example without its first comment.
fn program_of(example: &str) -> &str {
    example.split_once("\n\n").expect("a comment and a program").1
}

#[test]
fn documents_contain_the_examples() {
    let readme = program_in(include_str!("../../../README.md"));
    assert_eq!(readme, program_of(include_str!("../../src/bin/hello.rs")));
    let getting_started = program_in(include_str!("../../../docs/tutorial/getting-started.md"));
    assert_eq!(getting_started, program_of(include_str!("../../src/bin/temperature.rs")));
}

#[test]
fn hello_delivers_its_sample_in_either_start_order() {
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
fn temperature_delivers_every_reading_and_ends_with_its_writer_process() {
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

/// Runs a program with these environment variables. Returns its standard output and standard error.
fn output(program: &str, variables: &[(&str, &str)]) -> [String; 2] {
    let mut command = Command::new(program);
    command.env("TAKT_INTERFACES", "lo").env_remove("TAKT_LOG").envs(variables.iter().copied());
    let output = command.output().expect("the program was built");
    assert!(output.status.success(), "{output:?}");
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"))
}

#[test]
fn refused_match_warns_once_on_standard_error() {
    let _domain = domain_0();
    let [out, errors] = output(env!("CARGO_BIN_EXE_mismatch"), &[]);
    assert!(out.starts_with("no match: timeout"), "{out}");
    let refused: Vec<_> = errors.lines().filter(|line| line.contains("do not match")).collect();
    assert_eq!(refused.len(), 1, "{errors}");
    assert!(refused[0].starts_with("takt: warning: \"mismatch\" in domain 0: topic 'Temperature': "), "{errors}");
    assert!(
        refused[0].ends_with("RELIABILITY: the writer offers BEST_EFFORT, the reader requests RELIABLE"),
        "{errors}"
    );
}

#[test]
fn standard_error_stays_empty_with_the_log_off() {
    let _domain = domain_0();
    let [_, errors] = output(env!("CARGO_BIN_EXE_mismatch"), &[("TAKT_LOG", "off"), ("TAKT_NO_SUCH", "1")]);
    assert_eq!(errors, "");
}

#[test]
fn ineffective_variables_are_reported_once() {
    let _domain = domain_0();
    let [_, errors] = output(env!("CARGO_BIN_EXE_mismatch"), &[("TAKT_MULTICATS", "0"), ("TAKT_DOMAIN", "3")]);
    let lines = |word: &str| errors.lines().filter(|line| line.contains(word)).count();
    assert_eq!(
        (lines("TAKT_MULTICATS is set, but no such setting exists"), lines("did you mean TAKT_MULTICAST?")),
        (1, 1)
    );
    assert_eq!(lines("TAKT_DOMAIN is set, but this participant ignores it"), 1, "{errors}");
}

#[test]
fn invalid_log_level_is_reported_and_warnings_remain() {
    let _domain = domain_0();
    let [_, errors] = output(env!("CARGO_BIN_EXE_mismatch"), &[("TAKT_LOG", "loud")]);
    assert!(errors.contains("TAKT_LOG is \"loud\"; expected off, warn, info, debug or trace"), "{errors}");
    assert!(errors.contains("do not match"), "{errors}");
}

#[test]
fn program_subscriber_receives_records_but_none_for_samples() {
    let _domain = domain_0();
    let [out, errors] = output(env!("CARGO_BIN_EXE_subscriber_of_tracing"), &[("TAKT_NO_SUCH", "1")]);
    assert!(out.contains("WARN takt: TAKT_NO_SUCH is set, but no such setting exists"), "{out}");
    assert!(out.contains("DEBUG takt: \"traced\" in domain 0: writer of Temperature matches 1 readers"), "{out}");
    // The program writes and takes a thousand samples: none of them leads to a record.
    assert!(out.lines().count() < 100, "{out}");
    assert_eq!(errors, "");
}

#[test]
fn silent_discovery_server_is_reported() {
    let _domain = domain_0();
    let mut command = Command::new(env!("CARGO_BIN_EXE_temperature"));
    command.env("TAKT_INTERFACES", "lo").env("TAKT_DISCOVERY_SERVERS", "127.0.0.1:17400").env_remove("TAKT_LOG");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program was built");
    let errors = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let named = errors.map_while(Result::ok).find(|line| line.contains("127.0.0.1:17400 does not answer"));
    drop(child.kill());
    child.wait().expect("it was killed");
    let expected = "takt: warning: \"temperature\" in domain 0: discovery server 127.0.0.1:17400 does not answer; ";
    assert!(named.as_deref().is_some_and(|line| line.starts_with(expected)), "{named:?}");
}
