//! Hosts and processes of the soak test, and their disturbances.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use takt_testkit::Random;
use takt_testkit::network::{Host, Network, ip};

use super::log::Log;
use crate::process::Takt;

/// Signal that ends a reader. Its exit code is 128 plus this number.
const SIGTERM: i32 = 15;
const LEASE: Duration = Duration::from_secs(2);
/// Prefixes of the messages that a process may print on standard error.
const EXPECTED_MESSAGES: [&str; 3] = ["takt: looking for topic Soak", "takt: reading Soak", "takt: Soak has "];
const WRITERS: usize = 3;
/// Commands of the readers.
const READERS: [&str; 4] = [
    "sub Soak --type ShapeType --reliable --transient-local --keep-all --json",
    "sub Soak --type ShapeType --reliable --transient-local --keep-all --json",
    "sub Soak --type ShapeType --reliable --transient-local --keep-all --json",
    "echo Soak --json",
];
const WRITER: &str = "pub Soak --type ShapeType --reliable --transient-local --keep-all --no-wait --json";

/// Writer or reader, restarted after a kill.
struct Actor {
    command: &'static str,
    host: usize,
    /// Running process. `None` from a kill to the restart.
    takt: Option<Takt>,
    starts: u32,
    /// Number of samples given to a writer.
    written: u64,
    /// Output of a reader.
    log: Log,
    is_disturbed: bool,
}

/// How a disturbance ends.
enum Ending {
    Start(usize),
    Continue(usize),
    LinkUp(usize),
}

struct TestHost {
    host: Host,
    /// Last octet of the host's address.
    address: u8,
    is_down: bool,
}

/// All hosts and processes of the test.
pub struct World {
    random: Random,
    hosts: Vec<TestHost>,
    /// Writers, followed by readers.
    actors: Vec<Actor>,
    endings: Vec<(Instant, Ending)>,
    /// Names of killed writers.
    killed: Vec<String>,
    history: String,
}

impl World {
    /// Creates the hosts and processes of a network.
    pub fn new(network: &Network, seed: u64) -> Self {
        let place = |n| {
            let host = network.host(false);
            // With this setting, removing an address keeps the secondary addresses.
            host.run(|| fs::write("/proc/sys/net/ipv4/conf/all/promote_secondaries", "1").expect("as root"));
            TestHost { host, address: n, is_down: false }
        };
        let commands = [WRITER; WRITERS].into_iter().chain(READERS);
        let actor = |(at, command)| Actor {
            command,
            host: at % 3,
            takt: None,
            starts: 0,
            written: 0,
            log: Log::default(),
            is_disturbed: false,
        };
        let mut world = Self {
            random: Random(seed),
            hosts: (1..=3).map(place).collect(),
            actors: commands.enumerate().map(actor).collect(),
            endings: Vec::new(),
            killed: Vec::new(),
            history: format!("TAKT_TEST_SEED={seed}:"),
        };
        (0..world.actors.len()).for_each(|at| world.start(at));
        world
    }

    /// Returns the seed and the events so far.
    pub fn history(&self) -> &str {
        &self.history
    }

    /// Returns the random time to the next disturbance.
    pub fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.between(200, 900))
    }

    /// Writes one sample with each writer, checks the output of all processes, and ends
    /// disturbances that are over.
    pub fn step(&mut self, period: Duration) {
        // tidy-allow(sleep): the workload is one sample each period
        std::thread::sleep(period);
        for at in 0..WRITERS {
            self.write(at);
        }
        self.read_outputs();
        let now = Instant::now();
        while let Some(due) = self.endings.iter().position(|(end, _)| *end <= now) {
            let (_, ending) = self.endings.remove(due);
            self.end(&ending);
        }
    }

    fn write(&mut self, at: usize) {
        let name = self.name(at);
        let actor = &mut self.actors[at];
        if let Some(takt) = &mut actor.takt {
            actor.written += 1;
            takt.feed(&format!("{}\n", json!({ "color": name, "x": actor.written })));
        }
    }

    /// Returns the name of a process. For a writer it is the instance.
    fn name(&self, at: usize) -> String {
        let kind = if at < WRITERS { "writer" } else { "reader" };
        format!("{kind}{at}.{}", self.actors[at].starts)
    }

    fn start(&mut self, at: usize) {
        let actor = &mut self.actors[at];
        actor.starts += 1;
        actor.written = 0;
        actor.log = Log::default();
        actor.is_disturbed = false;
        let environment = [
            ("TAKT_LEASE_DURATION", format!("{} s", LEASE.as_secs())),
            ("TAKT_ANNOUNCEMENT_PERIOD", "300 ms".to_owned()),
        ];
        let command = actor.command;
        let host = &self.hosts[actor.host].host;
        actor.takt = Some(host.run(|| Takt::start_with_open_input(command, &environment)));
    }

    fn kill(&mut self, at: usize) {
        self.read_outputs();
        if at < WRITERS {
            self.killed.push(self.name(at));
        }
        // Dropping the process kills it.
        self.actors[at].takt = None;
    }

    /// Begins a disturbance, unless its target has one.
    pub fn inject_fault(&mut self) {
        let (at, place) = (self.random.below(self.actors.len()), self.random.below(self.hosts.len()));
        let brief = Duration::from_millis(self.random.between(50, 1000));
        let is_free = !self.actors[at].is_disturbed;
        match self.random.below(6) {
            0 | 1 if is_free => {
                self.record(&format!("kill {}", self.name(at)));
                self.kill(at);
                self.actors[at].is_disturbed = true;
                self.endings.push((Instant::now() + brief, Ending::Start(at)));
            }
            2 if is_free => {
                self.record(&format!("stop {}", self.name(at)));
                self.signal(at, "STOP");
                self.actors[at].is_disturbed = true;
                self.endings.push((Instant::now() + LEASE + brief, Ending::Continue(at)));
            }
            3 | 4 if !self.hosts[place].is_down => {
                let length = if self.random.one_in(3) { LEASE + brief } else { brief };
                self.record(&format!("host{place} down for {length:?}"));
                self.hosts[place].host.run(|| ip("link set eth0 down"));
                self.hosts[place].is_down = true;
                self.endings.push((Instant::now() + length, Ending::LinkUp(place)));
            }
            5 if !self.hosts[place].is_down => self.change_address(place),
            _ => {}
        }
    }

    /// Adds the new address before it removes the old one.
    fn change_address(&mut self, at: usize) {
        let place = &mut self.hosts[at];
        let old = place.address;
        let new = if old < 100 { old + 100 } else { old - 100 };
        place.address = new;
        place.host.run(|| {
            ip(&format!("addr add 10.77.0.{new}/24 brd 10.77.0.255 dev eth0\naddr del 10.77.0.{old}/24 dev eth0"));
        });
        self.record(&format!("host{at} moves to 10.77.0.{new}"));
    }

    fn end(&mut self, ending: &Ending) {
        match *ending {
            Ending::Start(at) => {
                self.start(at);
                self.record(&format!("start {}", self.name(at)));
            }
            Ending::Continue(at) => {
                self.record(&format!("continue {}", self.name(at)));
                self.signal(at, "CONT");
                self.actors[at].is_disturbed = false;
            }
            Ending::LinkUp(at) => {
                self.record(&format!("host{at} up"));
                // A link that goes down loses its routes.
                self.hosts[at]
                    .host
                    .run(|| ip("link set eth0 up\nroute replace 224.0.0.0/4 dev eth0\nlink show dev eth0"));
                self.hosts[at].is_down = false;
            }
        }
    }

    fn signal(&self, at: usize, signal: &str) {
        self.actors[at].takt.as_ref().expect("a killed process is disturbed").signal(signal);
    }

    /// Ends all disturbances.
    pub fn end_disturbances(&mut self) {
        for (_, ending) in std::mem::take(&mut self.endings) {
            self.end(&ending);
        }
        self.record("calm");
    }

    /// Kills a writer and restarts it.
    pub fn kill_last_writer(&mut self) {
        self.record(&format!("kill {}", self.name(0)));
        self.kill(0);
        self.start(0);
    }

    fn record(&mut self, what: &str) {
        write!(self.history, " {what},").expect("writing to a String cannot fail");
    }

    /// Reads the output of all processes. Asserts that no process has ended or has printed an
    /// error.
    fn read_outputs(&mut self) {
        for at in 0..self.actors.len() {
            let name = self.name(at);
            let actor = &mut self.actors[at];
            let Some(takt) = &mut actor.takt else { continue };
            let ended = takt.has_ended();
            let unexpected: Vec<_> =
                takt.new_error_lines().into_iter().filter(|line| !is_expected_message(line)).collect();
            assert!(ended.is_none() && unexpected.is_empty(), "{name} {ended:?}: {unexpected:?}; {}", self.history);
            for line in takt.new_lines() {
                actor.log.take(&line).unwrap_or_else(|why| panic!("{name}: {why}; {}", self.history));
            }
        }
    }

    /// Checks that each reader has all samples of each living writer, and the end of the others.
    /// The error lists what is missing.
    pub fn has_converged(&mut self) -> Result<(), Vec<String>> {
        self.read_outputs();
        let mut missing = Vec::new();
        for reader in WRITERS..self.actors.len() {
            let log = &self.actors[reader].log;
            for writer in 0..WRITERS {
                let (written, seen) = (self.actors[writer].written, log.of(&self.name(writer)));
                if seen.last != written || seen.has_no_writer {
                    missing.push(format!("{} has {seen:?} of {written} of {}", self.name(reader), self.name(writer)));
                }
            }
            let dead =
                log.writers().filter(|(writer, seen)| !seen.has_no_writer && self.killed.iter().any(|k| k == writer));
            missing.extend(dead.map(|(writer, _)| format!("{} takes {writer} for alive", self.name(reader))));
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Ends the writers, each of which must have matched all readers and no other, and then the
    /// readers.
    pub fn finish(mut self) {
        for at in 0..WRITERS {
            let (name, written) = (self.name(at), self.actors[at].written);
            let mut takt = self.actors[at].takt.take().expect("it was started again");
            takt.close_input();
            let (report, errors, code) = takt.ending();
            let found: serde_json::Value = serde_json::from_str(&report).unwrap_or_default();
            let found = (&found["written"], &found["readers"], &found["acknowledged"], code, &errors[..]);
            let expected = (&json!(written), &json!(READERS.len()), &json!(true), Some(0), "");
            assert_eq!(found, expected, "{name}; {}", self.history);
        }
        for at in WRITERS..self.actors.len() {
            let takt = self.actors[at].takt.take().expect("it was started again");
            takt.terminate();
            let (_, errors, code) = takt.ending();
            assert!(
                code == Some(128 + SIGTERM) && errors.lines().all(is_expected_message),
                "{} {code:?}: {errors}; {}",
                self.name(at),
                self.history
            );
        }
    }
}

fn is_expected_message(line: &str) -> bool {
    EXPECTED_MESSAGES.iter().any(|message| line.starts_with(message))
}
