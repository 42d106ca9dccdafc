//! Handle of a running peer program: it sends commands and receives events. Every wait has a
//! deadline.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::event::{Event, Sample};
use crate::network::Host;
use crate::process::{self, LINE_MAX, Line, lines};
use crate::programs::Program;
use crate::{Error, Result};

/// Default timeout of a reply or an event.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Number of lines of standard error that are kept for messages.
const STDERR_LINES_MAX: usize = 300;
/// Number of characters that are kept of a line that is too long.
const STDERR_LINE_LEN: usize = 240;
/// Maximum number of lines that are read of a peer: ten times those of the longest test. The pipe
/// of a peer that prints more is closed.
const EVENTS_MAX: usize = 1_000_000;

/// The types of `lab/interop/peers/interop.idl` by their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No key.
    Unkeyed,
    /// `uint32`: the key hash is the key.
    Key,
    /// `uint32` and `uint64`: the key hash is the key, with padding in XCDR1. Only the final type
    /// exists, as for the kinds below.
    NameKey,
    /// `uint32` and `uint64`: the key hash is the key, with padding in XCDR1. Final alone, as those
    /// below.
    WideKey,
    /// `octet` and `int64`: the key hash is the key, with padding in XCDR1.
    OctetKey,
    /// `sequence<uint64>`: the key hash is an MD5 digest, of different octets in XCDR1. Not
    /// supported by the CycloneDDS peers.
    SequenceKey,
}

/// Data representation of an endpoint: XCDR1, XCDR2, or both (readers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Classic CDR.
    Xcdr1,
    /// Extended CDR, version 2.
    Xcdr2,
    /// Both, for a reader.
    Any,
}

/// DURABILITY of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// VOLATILE: samples are not kept for late joiners.
    Volatile,
    /// TRANSIENT_LOCAL: the writer keeps samples for late joiners.
    TransientLocal,
    /// TRANSIENT: samples outlive the writer.
    Transient,
}

/// Description of a writer or a reader to create.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Name of the endpoint in commands and events.
    pub id: String,
    /// Topic name.
    pub topic: String,
    /// Type, by its key.
    pub kind: Kind,
    /// Whether the type is appendable instead of final.
    pub appendable: bool,
    /// DATA_REPRESENTATION.
    pub representation: Representation,
    /// RELIABLE if true, BEST_EFFORT otherwise.
    pub reliable: bool,
    /// DURABILITY.
    pub durability: Durability,
    /// KEEP_LAST depth; 0 is KEEP_ALL.
    pub keep_last: u32,
    /// LIFESPAN of a writer in milliseconds; 0 is infinite.
    pub lifespan_ms: u32,
    /// DEADLINE in milliseconds; 0 is infinite.
    pub deadline_ms: u32,
    /// Lease duration of AUTOMATIC liveliness in milliseconds; 0 is infinite.
    pub lease_ms: u32,
    /// Strength of a writer with EXCLUSIVE ownership; `None` is SHARED.
    pub strength: Option<u32>,
    /// A reader's content filter `seq < N`.
    pub filter_below: Option<u64>,
    /// Makes a Fast DDS writer send within `write`, so that KEEP_LAST does not replace unsent
    /// samples. Only for samples of one datagram. Other products ignore it.
    pub synchronous: bool,
    /// Makes a reader take on command ([`Peer::take`]) instead of on data available.
    pub on_demand: bool,
}

impl Endpoint {
    /// Creates a description with RELIABLE, VOLATILE, KEEP_ALL, XCDR1 and a final type. Other
    /// policies have the defaults of DDS.
    pub fn new(id: impl Into<String>, topic: impl Into<String>, kind: Kind) -> Self {
        Self {
            id: id.into(),
            topic: topic.into(),
            kind,
            appendable: false,
            representation: Representation::Xcdr1,
            reliable: true,
            durability: Durability::Volatile,
            keep_last: 0,
            lifespan_ms: 0,
            deadline_ms: 0,
            lease_ms: 0,
            strength: None,
            filter_below: None,
            synchronous: false,
            on_demand: false,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Unkeyed => "unkeyed",
            Kind::Key => "key",
            Kind::NameKey => "name_key",
            Kind::WideKey => "wide_key",
            Kind::OctetKey => "octet_key",
            Kind::SequenceKey => "sequence_key",
        };
        let representation = match self.representation {
            Representation::Xcdr1 => "xcdr1",
            Representation::Xcdr2 => "xcdr2",
            Representation::Any => "any",
        };
        write!(f, "id={} topic={} type={kind} repr={representation}", self.id, self.topic)?;
        write!(f, " ext={}", if self.appendable { "appendable" } else { "final" })?;
        write!(f, " reliability={}", if self.reliable { "reliable" } else { "best_effort" })?;
        let durability = match self.durability {
            Durability::Volatile => "volatile",
            Durability::TransientLocal => "transient_local",
            Durability::Transient => "transient",
        };
        write!(f, " durability={durability}")?;
        match self.keep_last {
            0 => write!(f, " history=all")?,
            depth => write!(f, " history={depth}")?,
        }
        let times = [("lifespan", self.lifespan_ms), ("deadline", self.deadline_ms), ("lease", self.lease_ms)];
        for (word, milliseconds) in times.iter().filter(|(_, milliseconds)| *milliseconds > 0) {
            write!(f, " {word}_ms={milliseconds}")?;
        }
        if let Some(strength) = self.strength {
            write!(f, " strength={strength}")?;
        }
        if let Some(end) = self.filter_below {
            write!(f, " filter_below={end}")?;
        }
        if self.synchronous {
            write!(f, " synchronous=1")?;
        }
        if self.on_demand { write!(f, " on_demand=1") } else { Ok(()) }
    }
}

/// Description of the samples to write: the i-th of `count` samples has sequence number `first + i`
/// and key `key + i % keys`.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// First sequence number.
    pub first: u64,
    /// Number of samples.
    pub count: u64,
    /// First key.
    pub key: u32,
    /// Number of keys.
    pub keys: u32,
    /// Payload length in bytes.
    pub size: usize,
    /// Time between two samples in microseconds; 0 is as fast as possible.
    pub period_us: u64,
}

impl Batch {
    /// Creates a batch of `count` samples of `size` bytes of instance 0, written as fast as
    /// possible.
    pub fn new(count: u64, size: usize) -> Self {
        Self { first: 0, count, key: 0, keys: 1, size, period_us: 0 }
    }
}

/// Start options that only some tests need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Domain id.
    pub domain: u32,
    /// Largest datagram that the peer may send; 0 leaves the product's default.
    pub max_message: u32,
    /// Use of TCP in place of UDP.
    pub tcp: Option<Tcp>,
    /// Use of AF_XDP; Takt only.
    pub xdp: Option<Xdp>,
    /// Use of the host's network daemon; Takt only.
    pub daemon: bool,
    /// With DDS Security: whether unprotected discovery may arrive outside of protected messages;
    /// Takt only.
    pub clear_discovery: bool,
}

/// Hook at which the kernel runs the AF_XDP filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xdp {
    /// The driver (native XDP).
    Native,
    /// The receive path of the network stack (generic XDP).
    Generic,
}

/// Role of a peer that uses TCP alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tcp {
    /// Listens on this port.
    Listen(u16),
    /// Connects to a listener, and does not listen.
    Connect(SocketAddr),
}

/// A peer program on a host. Dropping it kills the program.
pub struct Peer {
    name: String,
    child: Child,
    /// Standard input of the program; `None` after `quit`.
    commands: Option<ChildStdin>,
    lines: Receiver<Event>,
    /// Events that have not been consumed, by endpoint.
    backlog: HashMap<String, VecDeque<Event>>,
    stderr_lines: Arc<Mutex<VecDeque<String>>>,
}

impl Peer {
    /// Starts `program` on `host` and waits until its participant exists.
    pub fn start(program: Program, host: &Host, options: Options) -> Result<Self> {
        Self::start_in(program, host, options, None)
    }

    /// Starts as [`Self::start`], with a directory of DDS Security files, named as in SROS2.
    pub fn start_in(program: Program, host: &Host, options: Options, enclave: Option<&Path>) -> Result<Self> {
        Self::start_prepared(program, host, options, |command| {
            if let Some(enclave) = enclave {
                command.arg(format!("enclave={}", enclave.display()));
            }
        })
    }

    /// Starts as [`Self::start`], after `prepare` has changed the command.
    pub fn start_prepared(
        program: Program,
        host: &Host,
        options: Options,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let executable = program.executable()?;
        let mut command = host.command(&executable);
        prepare(&mut command);
        command.arg(format!("domain={}", options.domain));
        command.arg(format!("interface={}", host.interface())).arg(format!("address={}", host.address()));
        if host.is_loopback() {
            command.arg(format!("peer={}", host.address()));
        }
        if options.max_message > 0 {
            command.arg(format!("max_message={}", options.max_message));
        }
        match options.tcp {
            None => {}
            Some(Tcp::Listen(port)) => drop(command.arg(format!("tcp_listen={port}"))),
            Some(Tcp::Connect(to)) => drop(command.arg(format!("tcp_connect={to}"))),
        }
        match options.xdp.filter(|_| program == Program::Takt) {
            None => {}
            Some(Xdp::Native) => drop(command.arg("xdp=native")),
            Some(Xdp::Generic) => drop(command.arg("xdp=generic")),
        }
        if options.daemon && program == Program::Takt {
            command.env("TAKT_DAEMON", "1");
        }
        if options.clear_discovery && program == Program::Takt {
            command.env("TAKT_SECURITY_CLEAR_DISCOVERY", "1");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::io(format!("start {}", executable.display())))?;
        let commands = child.stdin.take();
        let output = child.stdout.take().expect("stdout was piped above");
        let stderr_lines = Arc::new(Mutex::new(VecDeque::new()));
        collect_stderr(child.stderr.take().expect("stderr was piped above"), Arc::clone(&stderr_lines));
        let (sender, lines) = channel();
        let name = program.name().to_owned();
        parse_lines(output, sender, Arc::clone(&stderr_lines));
        let mut peer = Self { name, child, commands, lines, backlog: HashMap::new(), stderr_lines };
        peer.wait("", "ready", |event| matches!(event, Event::Ready { .. }).then_some(()))?;
        Ok(peer)
    }

    /// Returns the process id, for observation from outside.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Creates a writer.
    pub fn writer(&mut self, endpoint: &Endpoint) -> Result<()> {
        self.send(&format!("writer {endpoint}"))?;
        self.done(&endpoint.id, "writer", TIMEOUT)
    }

    /// Creates a reader.
    pub fn reader(&mut self, endpoint: &Endpoint) -> Result<()> {
        self.send(&format!("reader {endpoint}"))?;
        self.done(&endpoint.id, "reader", TIMEOUT)
    }

    /// Starts to write a batch. [`Self::written`] waits for its end.
    pub fn write(&mut self, id: &str, batch: &Batch) -> Result<()> {
        let Batch { first, count, key, keys, size, period_us } = batch;
        self.send(&format!(
            "write id={id} first={first} count={count} key={key} keys={keys} size={size} period_us={period_us}"
        ))
    }

    /// Waits until the batch is written.
    pub fn written(&mut self, id: &str, timeout: Duration) -> Result<()> {
        self.done(id, "write", timeout)
    }

    /// Disposes instance `key`.
    pub fn dispose(&mut self, id: &str, key: u32) -> Result<()> {
        self.send(&format!("dispose id={id} key={key}"))?;
        self.done(id, "dispose", TIMEOUT)
    }

    /// Unregisters instance `key`.
    pub fn unregister(&mut self, id: &str, key: u32) -> Result<()> {
        self.send(&format!("unregister id={id} key={key}"))?;
        self.done(id, "unregister", TIMEOUT)
    }

    /// Waits until all matched reliable readers have acknowledged all samples of the writer.
    pub fn acknowledged(&mut self, id: &str, timeout: Duration) -> Result<()> {
        self.send(&format!("acks id={id} timeout_ms={}", timeout.as_millis()))?;
        self.done(id, "acks", timeout + TIMEOUT)
    }

    /// Makes a reader with `on_demand` take all available samples, and returns them.
    pub fn take(&mut self, id: &str) -> Result<Vec<Sample>> {
        self.send(&format!("take id={id}"))?;
        self.done(id, "take", TIMEOUT)?;
        let (mut samples, mut others) = (Vec::new(), VecDeque::new());
        for event in self.pending(id) {
            match event {
                Event::Sample(sample) => samples.push(sample),
                other => others.push_back(other),
            }
        }
        self.backlog.insert(id.to_owned(), others);
        Ok(samples)
    }

    /// Reports whether a reader knows the instance that `lookup_instance` returns for `key`. Takt
    /// only.
    pub fn has_instance(&mut self, id: &str, key: u32) -> Result<bool> {
        self.send(&format!("lookup id={id} key={key}"))?;
        let found = self.wait(id, &format!("the lookup of {key}"), |event| match event {
            Event::Instance { known, .. } => Some(*known),
            _ => None,
        })?;
        self.done(id, "lookup", TIMEOUT)?;
        Ok(found)
    }

    /// Waits for OFFERED_DEADLINE_MISSED or REQUESTED_DEADLINE_MISSED on `id` and returns the total
    /// count.
    pub fn deadline_missed(&mut self, id: &str) -> Result<i64> {
        self.wait(id, &format!("{id} to miss a deadline"), |event| match event {
            Event::DeadlineMissed { total, .. } => Some(*total),
            _ => None,
        })
    }

    /// Returns how many datagrams Takt has received and sent past the kernel's network stack so
    /// far.
    pub fn bypass_counters(&mut self) -> Result<(u64, u64)> {
        self.send("carried")?;
        self.wait("", "what was carried", |event| match event {
            Event::BypassCounters { bypassed_in, bypassed_out } => Some((*bypassed_in, *bypassed_out)),
            _ => None,
        })
    }

    /// Returns why Takt has refused participants (DDS Security), with one reason for each.
    pub fn refused(&mut self) -> Result<Vec<String>> {
        self.send("refused")?;
        self.wait("", "what was refused", |event| match event {
            Event::RefusedParticipants { reasons } => Some(reasons.clone()),
            _ => None,
        })
    }

    /// Makes Takt replace its security documents by those of an enclave directory (DDS Security).
    pub fn renew(&mut self, enclave: &Path) -> Result<()> {
        self.send(&format!("renew enclave={}", enclave.display()))?;
        self.done("", "renew", TIMEOUT)
    }

    /// Deletes an endpoint and discards its unread events.
    pub fn delete(&mut self, id: &str) -> Result<()> {
        self.send(&format!("delete id={id}"))?;
        self.done(id, "delete", TIMEOUT)?;
        self.backlog.remove(id);
        Ok(())
    }

    /// Waits until `id` is matched with exactly `count` endpoints.
    pub fn matched(&mut self, id: &str, count: i64) -> Result<()> {
        self.matched_within(id, count, TIMEOUT)
    }

    /// Waits as [`Self::matched`], with the given timeout.
    pub fn matched_within(&mut self, id: &str, count: i64, timeout: Duration) -> Result<()> {
        self.wait_within(id, &format!("{id} to match {count}"), timeout, |event| {
            matches!(event, Event::Matched { current, .. } if *current == count).then_some(())
        })
    }

    /// Waits for INCOMPATIBLE_QOS on `id`. Returns the number of the policy and, from Takt, the
    /// reasons.
    pub fn incompatible(&mut self, id: &str) -> Result<(i64, Vec<String>)> {
        self.wait(id, &format!("{id} to report incompatible QoS"), |event| match event {
            Event::Incompatible { policy, reasons, .. } => Some((*policy, reasons.clone())),
            _ => None,
        })
    }

    /// Waits for the next sample that `id` took, valid or not.
    pub fn sample(&mut self, id: &str) -> Result<Sample> {
        self.sample_within(id, TIMEOUT)
    }

    /// Waits as [`Self::sample`], with the given timeout.
    pub fn sample_within(&mut self, id: &str, timeout: Duration) -> Result<Sample> {
        self.wait_within(id, &format!("a sample on {id}"), timeout, |event| match event {
            Event::Sample(sample) => Some(sample.clone()),
            _ => None,
        })
    }

    /// Returns all received events of `id`, without waiting.
    pub fn pending(&mut self, id: &str) -> Vec<Event> {
        while let Ok(event) = self.lines.try_recv() {
            self.enqueue(event);
        }
        self.backlog.remove(id).map(Vec::from).unwrap_or_default()
    }

    /// Makes the program delete all entities and exit.
    pub fn quit(mut self) -> Result<()> {
        self.send("quit")?;
        self.done("", "quit", TIMEOUT)?;
        self.commands = None;
        process::end(&mut self.child, TIMEOUT).map(drop).map_err(Error::io(format!("wait for {}", self.name)))
    }

    fn send(&mut self, command: &str) -> Result<()> {
        let name = &self.name;
        let has_quit = || Error::Peer { peer: name.clone(), what: "has already been told to quit".to_owned() };
        let commands = self.commands.as_mut().ok_or_else(has_quit)?;
        writeln!(commands, "{command}").map_err(Error::io(format!("tell {name} to {command}")))
    }

    fn done(&mut self, id: &str, awaited: &str, timeout: Duration) -> Result<()> {
        let outcome = self.wait_within(id, &format!("{awaited} {id}"), timeout, |event| match event {
            Event::Done { command, .. } if command == awaited => Some(Ok(())),
            Event::Error { command, what, .. } if command == awaited => Some(Err(what.clone())),
            _ => None,
        })?;
        outcome.map_err(|what| Error::Peer { peer: self.name.clone(), what: format!("{awaited} {id}: {what}") })
    }

    fn wait<T>(&mut self, id: &str, awaited: &str, pick: impl FnMut(&Event) -> Option<T>) -> Result<T> {
        self.wait_within(id, awaited, TIMEOUT, pick)
    }

    /// Returns the first event of `id` that `pick` accepts, starting with the backlog. Other events
    /// stay there.
    fn wait_within<T>(
        &mut self,
        id: &str,
        awaited: &str,
        timeout: Duration,
        mut pick: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        let backlog = self.backlog.entry(id.to_owned()).or_default();
        for at in 0..backlog.len() {
            if let Some(found) = pick(&backlog[at]) {
                backlog.remove(at);
                return Ok(found);
            }
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(event) = self.lines.recv_timeout(left) else { return Err(self.timeout_error(id, awaited)) };
            if event.id() == id
                && let Some(found) = pick(&event)
            {
                return Ok(found);
            }
            if let (Event::Error { what, .. }, "") = (&event, event.id()) {
                return Err(Error::Peer { peer: self.name.clone(), what: what.clone() });
            }
            self.enqueue(event);
        }
    }

    fn enqueue(&mut self, event: Event) {
        self.backlog.entry(event.id().to_owned()).or_default().push_back(event);
    }

    fn timeout_error(&mut self, id: &str, awaited: &str) -> Error {
        let ended = self.child.try_wait().ok().flatten().map(|status| format!("it ended: {status}"));
        let unread = self.backlog.get(id).into_iter().flatten().rev().take(4).map(|event| format!("unread: {event:?}"));
        let mut context: Vec<String> = ended.into_iter().chain(unread).collect();
        context.extend(self.stderr_lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        Error::Timeout { peer: self.name.clone(), awaited: awaited.to_owned(), context: context.join("\n") }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Fails only if the program has already exited.
        let killed = self.child.kill();
        drop(killed);
        let ended = self.child.wait();
        drop(ended);
    }
}

fn parse_lines(output: impl Read + Send + 'static, events: Sender<Event>, stderr_lines: Arc<Mutex<VecDeque<String>>>) {
    thread::spawn(move || {
        for line in lines(output).take(EVENTS_MAX) {
            match &line {
                Line::Whole(text) => match serde_json::from_str(text) {
                    Ok(event) => {
                        if events.send(event).is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        record_stderr_line(&stderr_lines, format!("not a line of the protocol ({error}): {text}"))
                    }
                },
                Line::TooLong(text) => {
                    let begin: String = text.chars().take(STDERR_LINE_LEN).collect();
                    record_stderr_line(&stderr_lines, format!("a line of more than {LINE_MAX} octets: {begin}"));
                }
            }
        }
        record_stderr_line(&stderr_lines, format!("its output has ended, or has more than {EVENTS_MAX} lines"));
    });
}

fn collect_stderr(stderr: impl Read + Send + 'static, stderr_lines: Arc<Mutex<VecDeque<String>>>) {
    thread::spawn(move || {
        for Line::Whole(line) | Line::TooLong(line) in lines(stderr) {
            record_stderr_line(&stderr_lines, line);
        }
    });
}

fn record_stderr_line(stderr_lines: &Mutex<VecDeque<String>>, line: String) {
    let mut stderr_lines = stderr_lines.lock().unwrap_or_else(PoisonError::into_inner);
    if stderr_lines.len() == STDERR_LINES_MAX {
        stderr_lines.pop_front();
    }
    stderr_lines.push_back(line);
}
