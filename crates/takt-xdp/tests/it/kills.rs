//! A process that is killed leaves nothing on the interface: no program, no queue that is busy. Who talked to it goes on, and
//! has no more descriptors than before.
//!
//! Twenty kills; with `TAKT_TEST_LONG=1` a hundred; with `TAKT_TEST_KILLS` as many as that says. The processes are this program
//! again: they play [`victim`] and [`survivor`].

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use takt_xdp::{Mode, XdpConfig, XdpTransport};

use super::network::{Host, Network};
use super::parties::{Blob, PATIENCE, party};

/// Says to a copy of this program that it is one, and which round it is.
const ROUND: &str = "TAKT_XDP_ROUND";

/// Before each line that is for the test.
pub const MARK: &str = "copy: ";

/// Rounds; all victims take the same queue of the same interface.
fn rounds() -> usize {
    if let Some(kills) = std::env::var_os("TAKT_TEST_KILLS") {
        return kills.into_string().expect("a number").parse().expect("a number");
    }
    if std::env::var_os("TAKT_TEST_LONG").is_some_and(|value| value == "1") { 100 } else { 20 }
}

/// The round that this copy is of; `None` in the test itself.
pub fn round() -> Option<u32> {
    std::env::var(ROUND).ok().map(|number| number.parse().expect("a number")) // tidy-allow(dropped-cause): it is not set.
}

/// What copies open: natively, since then something comes by each queue of a wire.
pub fn config(domain_id: u32) -> XdpConfig {
    XdpConfig { mode: Some(Mode::Native), ..XdpConfig::new(domain_id, "eth0") }
}

/// The transport of this copy; the test is told how that went.
pub fn open() -> XdpTransport {
    let opened = XdpTransport::open(&config(0));
    println!("\n{MARK}{}", opened.as_ref().map_or_else(ToString::to_string, |_| "open".to_owned()));
    opened.expect("the test is told why not")
}

/// Writes its round's number to the survivor, and lives until it is killed. For anyone but a copy there is nothing to do.
#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    let Some(round) = round() else { return };
    let party = party(Box::new(open()), "Numbers", "Answers").expect("a participant");
    while party.writer.publication_matched_status().expect("open").current_count == 0 {
        party.participant.spin_once(Duration::from_millis(100)).expect("open");
    }
    party.writer.write(&Blob { number: round, octets: vec![7; 5000] }).expect("there is room");
    loop {
        party.participant.spin_once(Duration::from_millis(100)).expect("open");
    }
}

/// Tells what it reads, until it is killed. For anyone but a copy there is nothing to do.
#[test]
#[ignore = "role: started by other tests"]
fn survivor() {
    if round().is_none() {
        return;
    }
    let party = party(Box::new(open()), "Answers", "Numbers").expect("a participant");
    loop {
        party.participant.spin_once(Duration::from_millis(100)).expect("open");
        for sample in party.reader.take(usize::MAX).expect("open") {
            if let Some(blob) = sample.data {
                println!("\n{MARK}heard {}", blob.number);
            }
        }
    }
}

/// A running copy; killed when dropped.
pub struct Copy {
    child: Child,
    lines: Receiver<String>,
}

impl Copy {
    /// Starts a copy that plays a role on a host.
    pub fn start(host: &Host, role: &str, round: usize) -> Self {
        let mut child = host.run(|| {
            Command::new(std::env::current_exe().expect("this program"))
                .args(["--ignored", "--exact", role, "--nocapture"])
                .env(ROUND, round.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("this program can be started")
        });
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let marked =
                said.lines().map_while(Result::ok).filter_map(|line| Some(line.strip_prefix(MARK)?.to_owned()));
            // Who no longer listens has ended.
            for line in marked {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub fn says(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it says something")
    }

    /// How many it has open, and how many of those that the runtime sleeps on, which it makes anew now and then.
    fn descriptors(&self) -> (usize, usize) {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it lives");
        let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()); // tidy-allow(dropped-cause): closed meanwhile.
        let (waits, others): (Vec<_>, Vec<_>) = targets.partition(|target| target.ends_with("anon_inode:[eventpoll]"));
        (others.len(), waits.len())
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it has not been waited for");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What `ip` says of the host's interface.
pub fn interface(host: &Host) -> String {
    let shown = host.run(|| Command::new("ip").args(["link", "show", "eth0"]).output());
    String::from_utf8(shown.expect("iproute2 is installed").stdout).expect("text")
}

/// Waits until no program is attached to the host's interface. The kernel detaches it with its last descriptor, and a child that
/// another test is starting has a copy of each until it runs its program.
pub fn await_detached(host: &Host) {
    let since = Instant::now();
    while interface(host).contains("xdp") {
        assert!(since.elapsed() < PATIENCE, "the program is left: {}", interface(host));
    }
}

#[test]
fn nothing_is_left_of_a_process_that_was_killed() {
    let Some(network) = Network::new() else { return };
    let (host, other) = (network.host(true), network.host(true));
    host.run(|| XdpTransport::open(&config(0)).map(drop)).expect("AF_XDP opens");
    let survivor = Copy::start(&other, "kills::survivor", 0);
    assert_eq!(survivor.says(), "open");
    let mut descriptors = None;
    for round in 1..=rounds() {
        let mut victim = Copy::start(&host, "kills::victim", round);
        assert_eq!(victim.says(), "open", "round {round}");
        assert!(interface(&host).contains("xdp"), "the program is there");
        assert_eq!(survivor.says(), format!("heard {round}"));
        let (now, waits) = survivor.descriptors();
        assert_eq!(*descriptors.get_or_insert(now), now, "of the survivor, round {round}");
        assert!(waits <= 2, "{waits} of the survivor, round {round}");
        victim.kill();
        await_detached(&host);
    }
    assert!(interface(&other).contains("xdp"), "the survivor keeps its own");
    assert!(survivor.lines.recv_timeout(Duration::ZERO).is_err(), "it heard each once");
    host.run(|| XdpTransport::open(&config(0))).expect("nothing is taken");
}
