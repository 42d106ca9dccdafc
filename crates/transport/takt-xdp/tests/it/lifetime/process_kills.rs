//! Tests that a killed process leaves no program and no busy queue on the interface. Its peer
//! continues, and has no more descriptors than before.
//!
//! Twenty kills; a hundred with `TAKT_TEST_LONG=1`; any number with `TAKT_TEST_KILLS`. The
//! processes run this program again in the roles [`victim`] and [`survivor`].

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::network::{Host, Network};
use crate::participants_helper::{Blob, TIMEOUT, new_participant};

/// Environment variable that marks a copy of this program, with its round.
const ROUND: &str = "TAKT_XDP_ROUND";

/// Prefix of each line for the test.
pub const MARK: &str = "copy: ";

/// Returns the number of rounds; all victims use the same queue of the same interface.
fn rounds() -> usize {
    if let Some(kills) = std::env::var_os("TAKT_TEST_KILLS") {
        return kills.into_string().expect("a number").parse().expect("a number");
    }
    if takt_testkit::is_full_length() { 100 } else { 20 }
}

/// Returns the round of this copy; `None` in the test itself.
pub fn round() -> Option<u32> {
    std::env::var(ROUND).ok().map(|number| number.parse().expect("a number")) // tidy-allow(dropped-cause): the variable is not set.
}

/// Configuration of the copies: native mode, in which frames arrive at each queue of a wire.
pub fn config(domain_id: u32) -> XdpConfig {
    XdpConfig { mode: Some(Mode::Native), ..XdpConfig::new(domain_id, "eth0") }
}

/// Opens the transport of this copy, and reports the result to the test.
pub fn open() -> XdpTransport {
    let opened = XdpTransport::open(&config(0));
    println!("\n{MARK}{}", opened.as_ref().map_or_else(ToString::to_string, |_| "open".to_owned()));
    opened.expect("the test receives the reason")
}

/// Role of a copy: writes the number of its round to the survivor until it is killed. Does nothing
/// in the test itself.
#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    let Some(round) = round() else { return };
    let own = new_participant(Box::new(open()), "Numbers", "Answers").expect("a participant");
    while own.writer.publication_matched_status().expect("open").current_count == 0 {
        own.participant.spin_once(Duration::from_millis(100)).expect("open");
    }
    own.writer.write(&Blob { number: round, octets: vec![7; 5000] }).expect("the buffer has space");
    loop {
        own.participant.spin_once(Duration::from_millis(100)).expect("open");
    }
}

/// Role of a copy: reports the samples that it reads until it is killed. Does nothing in the test
/// itself.
#[test]
#[ignore = "role: started by other tests"]
fn survivor() {
    if round().is_none() {
        return;
    }
    let own = new_participant(Box::new(open()), "Answers", "Numbers").expect("a participant");
    loop {
        own.participant.spin_once(Duration::from_millis(100)).expect("open");
        for sample in own.reader.take(usize::MAX).expect("open") {
            if let Some(blob) = sample.data {
                println!("\n{MARK}heard {}", blob.number);
            }
        }
    }
}

/// Running copy; killed on drop.
pub struct Copy {
    child: Child,
    lines: Receiver<String>,
}

impl Copy {
    /// Starts a copy in a role on a host.
    pub fn start(host: &Host, role: &str, round: usize) -> Self {
        let mut child = host.run(|| {
            Command::new(std::env::current_exe().expect("the path of this program is known"))
                .args(["--ignored", "--exact", role, "--nocapture"])
                .env(ROUND, round.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("this program can be started")
        });
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let marked =
                stdout.lines().map_while(Result::ok).filter_map(|line| Some(line.strip_prefix(MARK)?.to_owned()));
            // The receiver has ended.
            for line in marked {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub fn next_line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("the child prints a line")
    }

    /// Returns the number of its descriptors, and of those that its runtime sleeps on, which are
    /// occasionally opened again: epoll instances, and a timer of each.
    fn descriptors(&self) -> (usize, usize) {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the process is alive");
        let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()); // tidy-allow(dropped-cause): closed meanwhile.
        let (waits, others): (Vec<_>, Vec<_>) =
            targets.partition(|target| WAITS.iter().any(|wait| target.ends_with(wait)));
        (others.len(), waits.len())
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("the child is not reaped");
        self.child.wait().expect("the process ends");
    }
}

/// Kinds of descriptors that a runtime sleeps on.
const WAITS: [&str; 2] = ["anon_inode:[eventpoll]", "anon_inode:[timerfd]"];

impl Drop for Copy {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the output of `ip` for the interface of the host.
pub fn interface(host: &Host) -> String {
    let shown = host.run(|| Command::new("ip").args(["link", "show", "eth0"]).output());
    String::from_utf8(shown.expect("iproute2 is installed").stdout).expect("text")
}

/// Waits until no program is attached to the interface of the host. The kernel detaches it with its
/// last descriptor, and a child of another test has a copy of each until `exec`.
pub fn await_detached(host: &Host) {
    let since = Instant::now();
    while interface(host).contains("xdp") {
        assert!(since.elapsed() < TIMEOUT, "the program is left: {}", interface(host));
    }
}

#[test]
fn killed_process_leaves_nothing_on_the_interface() {
    let Some(network) = Network::new() else { return };
    let (host, other) = (network.host(true), network.host(true));
    host.run(|| XdpTransport::open(&config(0)).map(drop)).expect("AF_XDP can be opened");
    let survivor = Copy::start(&other, "lifetime::process_kills::survivor", 0);
    assert_eq!(survivor.next_line(), "open");
    let mut descriptors = None;
    for round in 1..=rounds() {
        let mut victim = Copy::start(&host, "lifetime::process_kills::victim", round);
        assert_eq!(victim.next_line(), "open", "round {round}");
        assert!(interface(&host).contains("xdp"), "the program is there");
        assert_eq!(survivor.next_line(), format!("heard {round}"));
        let (now, waits) = survivor.descriptors();
        assert_eq!(*descriptors.get_or_insert(now), now, "of the survivor, round {round}");
        assert!(waits <= 4, "{waits} of the survivor, round {round}");
        victim.kill();
        await_detached(&host);
    }
    assert!(interface(&other).contains("xdp"), "the survivor keeps its queue");
    assert!(survivor.lines.recv_timeout(Duration::ZERO).is_err(), "each datagram arrived once");
    host.run(|| XdpTransport::open(&config(0))).expect("no queue is in use");
}
