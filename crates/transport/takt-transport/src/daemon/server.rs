//! Event loop of the daemon over its sockets and rings.
//!
//! The daemon has a single thread. A pass takes at most [`DATAGRAMS_PER_PASS`] frames of
//! applications and as many datagrams of each domain, and sends the resulting messages. It never
//! waits for an application: a full ring loses messages of that application alone, which are
//! counted.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use takt_wire::{GuidPrefix, Locator};

use super::frame::{IN_LEN, Inbound, Outbound, UPDATE};
use super::handshake::{Request, TEXT_LEN_MAX, Welcome, address, refusal};
use super::outputs::{Outputs, Sockets, write};
use super::router::{ApplicationCounters, Bundling, Router};
use super::shm_config;
use crate::readiness::WaitSet;
use crate::shm::{self, ShmTransport};
use crate::udp::{UdpConfig, UdpTransport};
use crate::{Commit, Control, FlowId, Receive, Scan, Transport, TransportError, TransportEvent};

/// Maximum number of frames of applications, and of datagrams of a domain, in one pass.
const DATAGRAMS_PER_PASS: usize = 64;
/// Maximum number of passes in one call.
const PASSES_PER_CALL: usize = 64;
/// Maximum number of connections without a complete request; a further one closes the oldest.
const SILENT_MAX: usize = 16;
/// Maximum number of connections that one pass accepts.
const ACCEPTED_MAX: usize = 64;
/// Maximum number of domains of a daemon.
const DOMAINS_MAX: usize = 16;
/// Minimum time between two refreshes of the interfaces.
const REFRESH_PERIOD: Duration = Duration::from_millis(50);
/// Maximum number of pending events; the oldest is evicted.
const EVENTS_MAX: usize = 1024;
/// MTU of a machine whose only interface is loopback.
const MTU_DEFAULT: usize = 1500;

/// Configuration of a daemon.
#[derive(Clone, Debug)]
pub struct DaemonConfig {
    /// Name by which applications of the same user find the daemon.
    pub name: Option<String>,
    /// Domains that the daemon serves; `None` for every domain that an application requests, up to
    /// 16.
    pub domains: Option<Vec<u32>>,
    /// UDP settings. The domain is that of the application.
    pub udp: UdpConfig,
    /// Messages that share a datagram.
    pub bundling: Bundling,
    /// Time to spin before sleeping.
    pub spin: Duration,
    /// Maximum number of applications. Each takes four descriptors of the daemon.
    pub applications_max: usize,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            name: None,
            domains: None,
            udp: UdpConfig::new(0),
            bundling: Bundling::default(),
            spin: Duration::ZERO,
            applications_max: 128,
        }
    }
}

/// Event that the daemon reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonEvent {
    /// The daemon joined a domain.
    Opened {
        /// Id of the domain.
        domain: u32,
        /// Locators of user data.
        locators: Vec<Locator>,
    },
    /// An application joined.
    Joined(ApplicationStatus),
    /// An application left.
    Left(ApplicationStatus),
    /// An application, or an invalid peer, was refused.
    Refused {
        /// Reason of the refusal.
        why: String,
    },
}

/// Status of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationStatus {
    /// Process id; 0 if the process is not visible here.
    pub process: u32,
    /// Command name of the process, without spaces.
    pub command: String,
    /// Id of the domain.
    pub domain: u32,
    /// GUID prefix of the participant, once it has sent a message.
    pub prefix: Option<GuidPrefix>,
    /// Counters of the application.
    pub counters: ApplicationCounters,
}

impl std::fmt::Display for ApplicationStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, command, domain, prefix, counters } = self;
        write!(f, "domain {domain} process {process} command {command}")?;
        match prefix {
            Some(prefix) => write!(f, " participant {prefix}")?,
            None => write!(f, " participant -")?,
        }
        let ApplicationCounters { messages_in, messages_out, dropped, refused } = counters;
        write!(f, " messages_in {messages_in} messages_out {messages_out} dropped {dropped} refused {refused}")
    }
}

/// Connection without a complete request.
#[derive(Debug)]
struct Caller {
    stream: UnixStream,
    request: Vec<u8>,
}

/// Result of reading from a caller.
enum ReadResult {
    Request,
    Nothing,
    End,
}

/// Daemon of a host. See the [module](super).
#[derive(Debug)]
pub struct Daemon {
    config: DaemonConfig,
    user: u32,
    listener: UnixListener,
    callers: VecDeque<Caller>,
    /// Rings from applications.
    inbox: ShmTransport,
    outputs: Outputs,
    router: Router,
    /// Status of the applications by locator.
    application_status: BTreeMap<Locator, ApplicationStatus>,
    started: Instant,
    /// Descriptors that the daemon waits for; rebuilt when they change.
    wait_set: Option<WaitSet>,
    events: VecDeque<DaemonEvent>,
}

impl Daemon {
    /// Opens the socket of the daemon's name. The sockets of a domain are opened for its first
    /// application.
    ///
    /// # Errors
    /// Another daemon of this user has the name, or the machine has no shared memory.
    pub fn open(config: DaemonConfig) -> Result<Self, TransportError> {
        let name = config.name.as_deref().unwrap_or("default");
        let failed = |source| TransportError::new("listen as", format_args!("the daemon {name:?}"), source);
        let user = shm::own_user();
        let address = address(config.name.as_deref(), user).map_err(failed)?;
        let listener = UnixListener::bind_addr(&address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                failed(io::Error::new(error.kind(), "a daemon of this name already runs in this network namespace"))
            }
            _ => failed(error),
        })?;
        listener.set_nonblocking(true).map_err(failed)?;
        let shm = shm_config(config.applications_max);
        let outbox = ShmTransport::open(&shm)?;
        Ok(Self {
            user,
            listener,
            callers: VecDeque::new(),
            inbox: ShmTransport::open(&shm)?,
            outputs: Outputs::new(outbox),
            router: Router::new(config.bundling),
            application_status: BTreeMap::new(),
            started: Instant::now(),
            wait_set: None,
            events: VecDeque::new(),
            config,
        })
    }

    /// Returns the oldest event that was not returned yet.
    pub fn poll_event(&mut self) -> Option<DaemonEvent> {
        self.events.pop_front()
    }

    /// Returns the number of applications.
    pub fn applications(&self) -> usize {
        self.application_status.len()
    }

    /// Processes pending work, or waits up to `timeout` for work.
    ///
    /// # Errors
    /// The machine refuses to wait.
    pub fn run_once(&mut self, timeout: Duration) -> Result<(), TransportError> {
        let is_busy = self.work()?;
        let failed = |source| TransportError::new("wait for", "applications and the network", source);
        let wait_set = match self.wait_set.take() {
            Some(wait_set) => wait_set,
            None => WaitSet::new(&self.descriptors()).map_err(failed)?,
        };
        let timeout = if is_busy { Duration::ZERO } else { timeout };
        let ready = wait_set.wait(Some(timeout)).map_err(failed)?;
        self.wait_set = Some(wait_set);
        if ready & 1 != 0 {
            // An application sends nothing to this end, so readiness means that an application has
            // ended.
            self.outputs.outbox.shm.recv(Receive::Any(Scan::All))?;
        }
        self.remove_ended_applications()?;
        let callers = (2_u64 << (self.callers.len() + 1)) - 2;
        if ready & callers != 0 {
            self.accept_callers();
        }
        self.apply_interface_changes();
        Ok(())
    }

    /// Receives frames and datagrams until there are none, or for [`PASSES_PER_CALL`] passes;
    /// returns true in the latter case. Spins for the configured time.
    fn work(&mut self) -> Result<bool, TransportError> {
        let mut spins_until = None;
        for _ in 0..PASSES_PER_CALL {
            if self.run_pass(Scan::All)? {
                continue;
            }
            if self.config.spin.is_zero() {
                return Ok(false);
            }
            let until = *spins_until.get_or_insert_with(|| Instant::now() + self.config.spin);
            loop {
                if self.run_pass(Scan::Hot)? {
                    spins_until = None;
                    break;
                }
                if Instant::now() >= until {
                    return self.run_pass(Scan::All);
                }
            }
        }
        Ok(true)
    }

    /// Returns the descriptors to wait for: ended applications, callers, frames, datagrams.
    fn descriptors(&self) -> Vec<RawFd> {
        let mut all = self.outputs.outbox.shm.status().descriptors.to_vec();
        all.push(self.listener.as_raw_fd());
        all.extend(self.callers.iter().map(|caller| caller.stream.as_raw_fd()));
        all.extend(self.inbox.status().descriptors);
        all.extend(self.outputs.sockets.values().flat_map(|sockets| sockets.udp.status().descriptors));
        all
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Runs one pass and reports whether anything arrived.
    fn run_pass(&mut self, scan: Scan) -> Result<bool, TransportError> {
        let now = self.now();
        let Self { inbox, outputs, router, .. } = self;
        let mut is_busy = false;
        for _ in 0..DATAGRAMS_PER_PASS {
            let Some(frame) = inbox.recv(Receive::Any(scan))? else { break };
            is_busy = true;
            let from = frame.meta.source;
            match Outbound::parse(frame.bytes()) {
                Some((header, message)) => {
                    router.handle_message(now, &from, header.priority, header.destinations(), message, outputs);
                }
                None => router.refuse(&from),
            }
        }
        for (domain, Sockets { udp, .. }) in &mut outputs.sockets {
            for _ in 0..DATAGRAMS_PER_PASS {
                let Some(frame) = udp.recv(Receive::Any(scan))? else { break };
                is_busy = true;
                let meta = frame.meta;
                let header = Inbound { source: meta.source, local: meta.local, is_multicast: meta.multicast };
                router.handle_datagram(now, *domain, &header, frame.bytes(), &mut outputs.outbox);
            }
        }
        if is_busy {
            router.flush(outputs);
            outputs.flush()?;
        }
        Ok(is_busy)
    }

    /// Removes applications that have ended, after all their messages were handled.
    fn remove_ended_applications(&mut self) -> Result<(), TransportError> {
        while let Some(TransportEvent::Lost(lost)) = self.outputs.outbox.shm.poll_event() {
            for _ in 0..PASSES_PER_CALL {
                if !self.run_pass(Scan::All)? {
                    break;
                }
            }
            let Some(application) = self.router.leave(&lost.locator, &mut self.outputs) else { continue };
            self.outputs.flush()?;
            let status = self.application_status.remove(&lost.locator).unwrap_or_default();
            self.push_event(DaemonEvent::Left(ApplicationStatus {
                prefix: application.prefix,
                counters: application.counters,
                ..status
            }));
        }
        Ok(())
    }

    fn push_event(&mut self, event: DaemonEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Accepts connections, and answers complete requests.
    fn accept_callers(&mut self) {
        for _ in 0..ACCEPTED_MAX {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            // Most callers have sent their request already, and so do not count as silent.
            self.handle_caller(Caller { stream, request: Vec::new() });
            if self.callers.len() > SILENT_MAX {
                self.callers.pop_front();
            }
            self.wait_set = None;
        }
        for _ in 0..self.callers.len() {
            if let Some(caller) = self.callers.pop_front() {
                self.handle_caller(caller);
            }
        }
    }

    /// Answers a caller whose request is complete; keeps the others.
    fn handle_caller(&mut self, mut caller: Caller) {
        match caller.listen() {
            ReadResult::Nothing => return self.callers.push_back(caller),
            ReadResult::Request => {
                let text = String::from_utf8_lossy(&caller.request).into_owned();
                let reply = self.handle_request(&caller.stream, &text);
                // A caller that has disconnected or does not read gets no reply.
                let _ = caller.stream.write(reply.as_bytes());
            }
            ReadResult::End => {}
        }
        self.wait_set = None;
    }

    fn handle_request(&mut self, stream: &UnixStream, text: &str) -> String {
        let joined = match Request::parse(text) {
            Ok(Request::Status) => return self.status(),
            Ok(Request::Join { domain, shm, prefix }) => self.join(stream, domain, shm, prefix),
            Err(why) => Err(why),
        };
        joined.unwrap_or_else(|why| {
            self.push_event(DaemonEvent::Refused { why: why.clone() });
            refusal(&why)
        })
    }

    fn join(
        &mut self,
        stream: &UnixStream,
        domain: u32,
        at: Locator,
        prefix: Option<GuidPrefix>,
    ) -> Result<String, String> {
        let peer =
            shm::peer(stream.as_fd()).map_err(|error| format!("cannot read the caller's credentials: {error}"))?;
        if peer.user != self.user {
            return Err(format!("the caller runs as user {}, expected the daemon's user, {}", peer.user, self.user));
        }
        if let Some(domains) = self.config.domains.as_ref().filter(|domains| !domains.contains(&domain)) {
            return Err(format!("domain {domain} is not served; the daemon serves {domains:?}"));
        }
        if self.application_status.len() >= self.config.applications_max {
            return Err(format!(
                "the daemon already serves {} applications, its maximum",
                self.application_status.len()
            ));
        }
        if self.application_status.contains_key(&at) {
            return Err("the application is already served".into());
        }
        self.open_domain(domain)?;
        if self.outputs.outbox.shm.control(Control::Connect(&at)).is_err() {
            return Err("the caller's shared memory cannot be attached, or the daemon has no file descriptors left: \
                        raise ulimit -n, four per application"
                .into());
        }
        let now = self.now();
        self.router.join(now, at, domain, prefix, &mut self.outputs);
        self.outputs.outbox.shm.flush().map_err(|error| error.to_string())?;
        let command = std::fs::read_to_string(format!("/proc/{}/comm", peer.process)).unwrap_or_default();
        // A single word, since status lines are split at spaces.
        let command = command.split_whitespace().collect::<Vec<_>>().join("_");
        let status = ApplicationStatus { process: peer.process, command, domain, prefix, ..Default::default() };
        self.application_status.insert(at, status.clone());
        self.push_event(DaemonEvent::Joined(status));
        Ok(self.welcome(domain).to_text())
    }

    fn welcome(&self, domain: u32) -> Welcome {
        let udp = self.outputs.sockets.get(&domain).map(|sockets| &sockets.udp);
        Welcome {
            inbox: self.inbox.status().locators.default_unicast.first().copied(),
            locators: udp.map(|udp| udp.status().locators.clone()).unwrap_or_default(),
            interfaces: udp.map(|udp| udp.status().interfaces.to_vec()).unwrap_or_default(),
        }
    }

    fn open_domain(&mut self, domain: u32) -> Result<(), String> {
        if self.outputs.sockets.contains_key(&domain) {
            return Ok(());
        }
        if self.outputs.sockets.len() == DOMAINS_MAX {
            return Err(format!("the daemon already serves {DOMAINS_MAX} domains, its maximum"));
        }
        let config = UdpConfig { domain_id: domain, ..self.config.udp.clone() };
        let mut udp = UdpTransport::open(&config).map_err(|error| error.to_string())?;
        udp.control(Control::ReportSources).map_err(|error| error.to_string())?;
        let locators = udp.status().locators.default_unicast.clone();
        self.outputs.sockets.insert(domain, Sockets::new(udp));
        self.update_router(domain);
        self.push_event(DaemonEvent::Opened { domain, locators });
        self.wait_set = None;
        Ok(())
    }

    fn update_router(&mut self, domain: u32) {
        let Some(Sockets { udp, .. }) = self.outputs.sockets.get(&domain) else { return };
        let mtus =
            udp.status().interfaces.iter().filter(|interface| !interface.loopback).map(|interface| interface.mtu);
        self.router.set_own(domain, udp.status().locators, mtus.min().unwrap_or(MTU_DEFAULT));
    }

    /// Applies changes of the interfaces, and notifies the applications.
    fn apply_interface_changes(&mut self) {
        let now = Instant::now();
        let mut moved = Vec::new();
        for (domain, sockets) in &mut self.outputs.sockets {
            sockets.has_changes |= sockets.udp.poll_event().is_some();
            if sockets.has_changes && now >= sockets.refresh_due {
                sockets.has_changes = false;
                sockets.refresh_due = now + REFRESH_PERIOD;
                let former = (sockets.udp.status().locators.clone(), sockets.udp.status().interfaces.to_vec());
                // An interface that cannot be used is retried at its next change.
                let _ = sockets.udp.control(Control::Refresh);
                self.wait_set = None;
                if former != (sockets.udp.status().locators.clone(), sockets.udp.status().interfaces.to_vec()) {
                    moved.push(*domain);
                }
            }
        }
        for domain in moved {
            self.update_router(domain);
            let text = self.welcome(domain).to_text();
            let applications =
                self.application_status.iter().filter(|(_, status)| status.domain == domain).map(|(at, _)| *at);
            for at in applications.collect::<Vec<_>>() {
                let outbox = &mut self.outputs.outbox.shm;
                let mut header = [0; IN_LEN];
                header[0] = UPDATE;
                if let Ok(frame) = outbox.loan() {
                    let len = write(frame, &[&header, text.as_bytes()]);
                    // An application whose ring is full keeps the former addresses until the next
                    // change.
                    let _ = outbox.commit(Commit::new(len, FlowId::DEFAULT, &[at]));
                    let _ = outbox.flush();
                }
            }
        }
    }

    /// Returns the text that [`status`](super::status) shows.
    pub fn status(&self) -> String {
        let Self { outputs, router, .. } = self;
        let (process, uptime, count) =
            (std::process::id(), self.started.elapsed().as_secs(), self.application_status.len());
        let mut text = format!(
            "daemon process {process} uptime_s {uptime} applications {count} strays {} send_failures {}\n",
            router.unknown_senders, outputs.send_failures
        );
        for (domain, counters) in router.domain_counters() {
            let at = outputs.sockets.get(&domain).map(|sockets| &sockets.udp.status().locators.default_unicast);
            let at: Vec<String> = at.into_iter().flatten().map(ToString::to_string).collect();
            let it = counters;
            text += &format!(
                "domain id {domain} at {} datagrams_out {} messages_out {} bundles_out {} datagrams_in {} \
                 bundles_in {} absorbed {} unrouted {} malformed {}\n",
                at.join(","),
                it.datagrams_out,
                it.messages_out,
                it.bundles_out,
                it.datagrams_in,
                it.bundles_in,
                it.suppressed,
                it.unrouted,
                it.malformed
            );
        }
        for (at, status) in &self.application_status {
            if let Some(application) = router.applications().get(at) {
                let status =
                    ApplicationStatus { prefix: application.prefix, counters: application.counters, ..status.clone() };
                text += &format!("application {status}\n");
            }
        }
        text
    }
}

impl Caller {
    /// Reads the available octets.
    fn listen(&mut self) -> ReadResult {
        let mut buffer = [0; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return ReadResult::End,
                Ok(len) => self.request.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadResult::Nothing,
                Err(_) => return ReadResult::End,
            }
            if self.request.ends_with(b"\n\n") || self.request.len() > TEXT_LEN_MAX {
                return ReadResult::Request;
            }
        }
    }
}
