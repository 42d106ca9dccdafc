//! Runtime of a [`Controller`]: TCP or TLS connections of switches, and the clock.
//!
//! One thread with non-blocking sockets. A connection that does not accept the octets to be sent is
//! not read from until it does ([`takt_openflow::channel::Limits::transmit_bytes`]). A connection
//! that the controller gives up is closed. The number of connections is bounded by
//! [`Config::connections`]; a further one is accepted and closed at once.

mod answers;
mod cluster;
mod stream;
mod tls;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant as Clock};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use takt_openflow::channel::Instant;

use self::answers::PendingRegistration;
use self::cluster::Agent;
use self::stream::{Progress, Stream};
pub use self::tls::{Identity, IdentityError, IdentityFiles};
use crate::api::controller_client::{ControllerClient, ControllerRequest};
use crate::cluster::{self as election, Cluster};
use crate::controller::{ClusterRole, Config, ConnectionId, Controller, Event};
use crate::store::{INTERVAL, Records, Store, StoreError};
use crate::topology::Key;
use crate::view::View;

const LISTENER: Token = Token(usize::MAX);
const REQUESTS: Token = Token(usize::MAX - 1);
/// Maximum number of octets per read.
const CHUNK: usize = 64 << 10;

struct Connection {
    id: ConnectionId,
    stream: Stream,
    peer: SocketAddr,
    /// Octets that the controller has not consumed yet.
    unread: Vec<u8>,
    /// Whether the socket may have more octets.
    is_readable: bool,
    is_ended: bool,
}

impl Connection {
    /// Reports whether unread octets of the switch are available. A connection that does not accept
    /// the octets to be sent is not read from.
    fn is_behind(&self, controller: &Controller) -> bool {
        let is_held = !self.unread.is_empty() && !controller.poll_transmit(self.id).is_empty();
        !is_held && (self.is_readable || !self.unread.is_empty())
    }
}

/// A controller with its listener and connections.
pub struct Runtime {
    controller: Controller,
    /// Configuration of the next controller, which replaces this one after it was leader.
    config: Config,
    poll: Poll,
    listener: TcpListener,
    identity: Option<Identity>,
    connections: BTreeMap<Token, Connection>,
    next_token: usize,
    /// Whether connections may wait at the listener.
    is_accepting: bool,
    start: Clock,
    buffer: Vec<u8>,
    requests: (ControllerClient, Receiver<ControllerRequest>),
    /// Clients whose registrations are not decided yet.
    waiting: Vec<PendingRegistration>,
    /// The last snapshot.
    view: Option<Arc<View>>,
    store: Option<RecordStorage>,
    elections: VecDeque<election::Event>,
}

/// Storage of records.
enum StorageBackend {
    File(Store),
    Cluster(Agent),
}

impl StorageBackend {
    /// Writes these records. Returns false if they are not being written yet.
    fn save(&mut self, records: Records) -> bool {
        match self {
            Self::File(store) => store.save(records),
            Self::Cluster(agent) => agent.save(records),
        }
    }
}

/// Storage of records and its state.
struct RecordStorage {
    backend: StorageBackend,
    /// Value of [`Controller::changes`] when the records were last compared.
    changes: u64,
    /// Time of the next comparison.
    due: Clock,
}

/// Returns a key from the kernel's random source.
///
/// # Errors
/// The random source cannot be read.
pub fn random_key() -> io::Result<Key> {
    let mut key = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(Key(key))
}

impl Runtime {
    /// Listens for switches. With an identity, connections use TLS 1.3, and a switch must present a
    /// certificate of a trusted authority.
    ///
    /// # Errors
    /// The address cannot be bound, or there is no random source.
    pub fn listen(address: SocketAddr, identity: Option<Identity>, config: Config) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let client = ControllerClient::new(&poll, REQUESTS)?;
        Ok(Self {
            controller: Controller::new(Instant(0), config.clone(), random_key()?),
            config,
            poll,
            listener,
            identity,
            connections: BTreeMap::new(),
            next_token: 0,
            is_accepting: true,
            start: Clock::now(),
            buffer: vec![0; CHUNK],
            requests: client,
            waiting: Vec::new(),
            view: None,
            store: None,
            elections: VecDeque::new(),
        })
    }

    /// Returns the local address of the listener.
    ///
    /// # Errors
    /// The kernel does not return the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.controller.poll_event()
    }

    /// Restores the state of an earlier run from a store, and keeps the state of this run there.
    /// Must be called before the first connection.
    ///
    /// # Errors
    /// The file cannot be opened, is not a store, or is in use by another controller.
    pub fn use_store(&mut self, path: &Path) -> Result<(), StoreError> {
        let (store, records) = Store::open(path)?;
        self.controller.restore(self.now(), &records);
        self.store = Some(RecordStorage { backend: StorageBackend::File(store), changes: 0, due: Clock::now() });
        Ok(())
    }

    /// Becomes a member of a cluster, as a standby until it is elected. Must be called before the
    /// first connection, and instead of [`Self::use_store`].
    ///
    /// # Errors
    /// No thread can be started.
    pub fn join(&mut self, cluster: Cluster, name: String) -> io::Result<()> {
        self.controller.become_standby();
        let agent = Agent::start(cluster, name, self.start)?;
        self.store = Some(RecordStorage { backend: StorageBackend::Cluster(agent), changes: 0, due: Clock::now() });
        Ok(())
    }

    /// Returns the next event of the cluster.
    pub fn poll_election(&mut self) -> Option<election::Event> {
        self.elections.pop_front()
    }

    /// Follows the decisions of the cluster. A leader whose lease has expired steps down at once,
    /// whether the cluster answers or not.
    fn follow_cluster(&mut self) -> io::Result<()> {
        let now = self.now();
        loop {
            let Some(RecordStorage { backend: StorageBackend::Cluster(agent), changes, .. }) = &mut self.store else {
                return Ok(());
            };
            let Some(event) = agent.poll_event() else { break };
            match &event {
                election::Event::Elected { generation, records } => {
                    self.controller.become_leader(now, *generation, records);
                    // The records may be incomplete, so they are compared again.
                    *changes = u64::MAX;
                }
                election::Event::Follows { generation, .. } => self.controller.follow_leader(*generation),
                election::Event::Deposed(_) => self.step_down(now)?,
                election::Event::Unreachable(_) => {}
            }
            self.elections.push_back(event);
        }
        let leads = matches!(&self.store, Some(RecordStorage { backend: StorageBackend::Cluster(agent), .. }) if agent.leads(now));
        if leads { Ok(()) } else { self.step_down(now) }
    }

    /// Ends the connections of a leader, and restarts it as a standby without state.
    fn step_down(&mut self, now: Instant) -> io::Result<()> {
        if !matches!(self.controller.cluster_role(), ClusterRole::Leader { .. }) {
            return Ok(());
        }
        self.controller = Controller::new(now, self.config.clone(), random_key()?);
        self.controller.become_standby();
        for (_, mut connection) in std::mem::take(&mut self.connections) {
            // Closing the socket with the connection also ends its registration.
            let _ = self.poll.registry().deregister(connection.stream.socket_mut());
        }
        self.view = None;
        Ok(())
    }

    /// Returns the reason why the store has failed, once.
    pub fn take_store_failure(&self) -> Option<String> {
        match &self.store.as_ref()?.backend {
            StorageBackend::File(store) => store.take_failure(),
            StorageBackend::Cluster(_) => None,
        }
    }

    /// Writes changed records to the store. Comparing takes at most a tenth of the time.
    fn save(&mut self) {
        let Some(keeping) = &mut self.store else { return };
        let begin = Clock::now();
        let is_standby = matches!(self.controller.cluster_role(), ClusterRole::Standby { .. });
        if is_standby || begin < keeping.due || keeping.changes == self.controller.changes() {
            return;
        }
        if keeping.backend.save(self.controller.records()) {
            keeping.changes = self.controller.changes();
        }
        keeping.due = begin + INTERVAL.max(begin.elapsed() * 10);
    }

    /// Returns a client for requests of other threads to this controller.
    pub fn client(&self) -> ControllerClient {
        self.requests.0.clone()
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for sockets and deadlines, for at most `limit`, and performs the due actions.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn run_once(&mut self, limit: Duration) -> io::Result<()> {
        let until = self.controller.poll_timeout().map_or(u64::MAX, |when| when.0.saturating_sub(self.now().0));
        let is_waiting = self.connections.values().all(|connection| !connection.is_behind(&self.controller));
        let timeout = if is_waiting { limit.min(Duration::from_nanos(until)) } else { Duration::ZERO };
        let mut events = Events::with_capacity(256);
        match self.poll.poll(&mut events, Some(timeout)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            match self.connections.get_mut(&event.token()) {
                Some(connection) => connection.is_readable |= event.is_readable() || event.is_read_closed(),
                None => self.is_accepting |= event.token() == LISTENER,
            }
        }
        if self.is_accepting {
            self.accept();
        }
        self.follow_cluster()?;
        // Octets that arrived in time are read before any deadline is evaluated, since this program
        // may have been suspended.
        let tokens: Vec<Token> = self.connections.keys().copied().collect();
        let mut has_read = false;
        for token in tokens {
            has_read |= self.read(token);
        }
        let now = self.now();
        if has_read {
            self.controller.process_pending(now);
        }
        if self.controller.poll_timeout().is_some_and(|when| now >= when) {
            self.controller.handle_timeout(now);
        }
        self.write_all();
        self.answer();
        self.save();
        Ok(())
    }

    fn accept(&mut self) {
        loop {
            let (socket, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // Other errors concern one connection or the resources of this process; the next
                // call tries again.
                Err(error) => return self.is_accepting = error.kind() != ErrorKind::WouldBlock,
            };
            let now = self.now();
            // Nagle's algorithm would delay small messages. If it cannot be disabled, they are
            // late.
            let _ = socket.set_nodelay(true);
            let Ok(mut stream) = Stream::new(socket, self.identity.as_ref()) else { continue };
            let token = Token(self.next_token);
            let both = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(stream.socket_mut(), token, both).is_err() {
                continue;
            }
            let Some(id) = self.controller.connect(now) else { continue };
            self.next_token += 1;
            let unread = Vec::new();
            self.connections.insert(token, Connection { id, stream, peer, unread, is_readable: true, is_ended: false });
        }
    }

    /// Reads once from a connection and passes the octets on. Reports whether there were any.
    fn read(&mut self, token: Token) -> bool {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&token) else { return false };
        if connection.unread.is_empty() && connection.is_readable {
            match connection.stream.read(&mut self.buffer) {
                Ok(Progress::Octets(len)) => connection.unread.extend_from_slice(&self.buffer[..len]),
                Ok(Progress::Blocked) => connection.is_readable = false,
                Ok(Progress::Ended) | Err(_) => (connection.is_readable, connection.is_ended) = (false, true),
            }
        }
        let has_octets = !connection.unread.is_empty();
        if has_octets {
            let consumed = self.controller.take_bytes(now, connection.id, &connection.unread);
            connection.unread.drain(..consumed);
        }
        self.controller.set_behind(connection.id, connection.is_behind(&self.controller));
        if connection.is_ended && connection.unread.is_empty() {
            self.controller.handle_disconnect(now, connection.id);
        }
        has_octets
    }

    fn write_all(&mut self) {
        let tokens: Vec<Token> = self.connections.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.write(token));
    }

    /// Writes pending octets to a connection, and closes a connection that the controller has given
    /// up.
    fn write(&mut self, token: Token) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(&token) else { return };
        loop {
            let octets = self.controller.poll_transmit(connection.id);
            match connection.stream.write(octets) {
                Ok(0) => break,
                Ok(len) => self.controller.transmitted(connection.id, len),
                Err(_) => {
                    self.controller.handle_disconnect(now, connection.id);
                    break;
                }
            }
        }
        if !self.controller.is_open(connection.id)
            && let Some(mut connection) = self.connections.remove(&token)
        {
            // Closing the socket with the connection also ends its registration.
            let _ = self.poll.registry().deregister(connection.stream.socket_mut());
        }
    }

    /// Returns the addresses of the connected switches.
    pub fn peers(&self) -> impl Iterator<Item = SocketAddr> {
        self.connections.values().map(|connection| connection.peer)
    }
}

impl Drop for Runtime {
    /// Saves the last changes.
    fn drop(&mut self) {
        let is_standby = matches!(self.controller.cluster_role(), ClusterRole::Standby { .. });
        match self.store.as_mut().map(|keeping| &mut keeping.backend) {
            Some(StorageBackend::File(store)) => store.finish(self.controller.records()),
            Some(StorageBackend::Cluster(agent)) => agent.finish((!is_standby).then(|| self.controller.records())),
            None => {}
        }
    }
}
