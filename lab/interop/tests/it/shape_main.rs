//! Tests of `takt-shape-main` with two processes over loopback: their output and their exit codes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A running application. Dropping it kills the process.
struct Shape {
    process: Child,
    lines: Receiver<String>,
}

impl Shape {
    /// Starts the application on loopback, in the domain of the test.
    fn start(domain: u32, arguments: &str) -> Self {
        let mut process = command(domain, arguments).spawn().expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("stdout was piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Returns the next line that contains `text`.
    fn wait_for(&self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no {text:?} ({error}) in {seen:#?}"),
            }
        }
    }

    /// Returns all further lines until the exit, and the exit code.
    fn finish(mut self) -> (Vec<String>, Option<i32>) {
        let status = self.process.wait().expect("it was started");
        (self.lines.iter().collect(), status.code())
    }

    fn interrupt(&self) {
        let id = self.process.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status().expect("kill starts");
        assert!(status.success());
    }
}

impl Drop for Shape {
    fn drop(&mut self) {
        for result in [self.process.kill(), self.process.wait().map(drop)] {
            // The process may have exited already.
            drop(result);
        }
    }
}

fn command(domain: u32, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_takt-shape-main"));
    // The partition separates concurrent runs of the test on the same machine.
    let partition = format!("run-{}", std::process::id());
    command.args(["-d", &domain.to_string(), "-p", &partition]).args(arguments.split_whitespace());
    command.env("TAKT_INTERFACES", "lo").env("TAKT_PEERS", "127.0.0.1").env("TAKT_MULTICAST", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Checks a sample line of `topic` and returns its color and size.
fn parse_sample(line: &str, topic: &str) -> (String, i32) {
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words.len(), 5, "{line:?}");
    assert_eq!(words[0], topic, "{line:?}");
    for position in &words[2..4] {
        assert!(position.len() == 3 && position.parse::<u32>().is_ok(), "{line:?}");
    }
    let size = words[4].strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    (words[1].to_owned(), size.and_then(|size| size.parse().ok()).unwrap_or_else(|| panic!("{line:?}")))
}

#[test]
fn samples_and_ends_of_instances_arrive() {
    let subscriber = Shape::start(110, "-S -t Square -r -k 0 -D l -x 2");
    assert_eq!(subscriber.wait_for("Create"), "Create topic: Square");
    assert_eq!(subscriber.wait_for("Create"), "Create reader for topic: Square");
    let arguments = "-P -t Square -r -k 0 -D l -x 2 -w -z 0 -c RED --num-instances 2 --write-period 5 \
        --final-instance-state d";
    let publisher = Shape::start(110, arguments);
    let matched = subscriber.wait_for("on_subscription_matched");
    assert_eq!(
        matched,
        "on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1 (change = 1)"
    );
    let mut sizes = [Vec::new(), Vec::new()];
    // One line for each sample that is read after the end of its instance.
    let mut ended = BTreeSet::new();
    let mut is_stopping = false;
    while ended.len() < 2 || sizes.iter().any(|sizes| sizes.len() < 20) {
        let line = subscriber.wait_for("Square ");
        if line.contains("INSTANCE_STATE") {
            ended.insert(line);
            continue;
        }
        let (color, size) = parse_sample(&line, "Square");
        sizes[usize::from(color == "RED1")].push(size);
        if !is_stopping && sizes.iter().all(|sizes| sizes.len() >= 20) {
            publisher.interrupt();
            is_stopping = true;
        }
    }
    let (written, code) = publisher.finish();
    assert_eq!(code, Some(0), "{written:#?}");
    assert_eq!(written[..2], ["Create topic: Square", "Create writer for topic: Square color: RED"]);
    assert_eq!(written.last().map(String::as_str), Some("Done."));
    assert!(written.iter().filter(|line| line.contains('[')).count() >= 40, "{written:#?}");
    let expected = ["RED ", "RED1"].map(|color| format!("Square     {color}       NOT_ALIVE_DISPOSED_INSTANCE_STATE"));
    assert_eq!(ended, BTreeSet::from(expected));
    for sizes in sizes {
        // TRANSIENT_LOCAL: all samples from the first one arrive, without loss or duplicates.
        assert!(sizes.iter().copied().eq(1..=i32::try_from(sizes.len()).expect("few")), "{sizes:?}");
    }
    subscriber.interrupt();
    let (rest, code) = subscriber.finish();
    assert_eq!((rest.last().map(String::as_str), code), (Some("Done."), Some(0)));
}

#[test]
fn incompatible_policies_are_reported_on_both_sides() {
    let subscriber = Shape::start(111, "-S -t Square -r");
    let publisher = Shape::start(111, "-P -t Square -b");
    let expected = "topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)";
    let offered = publisher.wait_for("on_offered_incompatible_qos()");
    assert_eq!(offered, format!("on_offered_incompatible_qos() {expected}"));
    let requested = subscriber.wait_for("on_requested_incompatible_qos()");
    assert_eq!(requested, format!("on_requested_incompatible_qos() {expected}"));
}

#[test]
fn missed_deadline_is_printed_on_both_sides() {
    let subscriber = Shape::start(112, "-S -t Square -f 200");
    let publisher = Shape::start(112, "-P -t Square -f 200 --write-period 1000");
    publisher.wait_for("on_offered_deadline_missed() topic: 'Square'  type: 'ShapeType' : (total = ");
    subscriber.wait_for("on_requested_deadline_missed() topic: 'Square'  type: 'ShapeType' : (total = ");
}

/// The harness stops reading once it has a verdict, and then requests the application to exit.
#[test]
fn application_exits_even_if_its_output_is_not_read() {
    let mut publisher = command(113, "-P -t Square -w --write-period 0 --num-instances 100");
    let mut process = publisher.spawn().expect("the program starts");
    let mut output = BufReader::new(process.stdout.take().expect("stdout was piped"));
    let mut line = String::new();
    while !line.contains('[') {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("text"), 0, "it ended before its first sample");
    }
    let publisher = Shape { process, lines: channel().1 };
    publisher.interrupt();
    let (_, code) = publisher.finish();
    assert_eq!(code, Some(0));
    drop(output);
}

#[test]
fn wrong_usage_and_help_give_their_exit_codes() {
    for (arguments, code) in [("-P", 1), ("-P -S -t Square", 1), ("-S -t Square --nonsense", 1), ("--help", 0)] {
        let status = command(114, arguments).status().expect("the program starts");
        assert_eq!(status.code(), Some(code), "{arguments}");
    }
}
