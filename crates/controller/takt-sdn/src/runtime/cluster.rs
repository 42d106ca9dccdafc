//! Thread of a cluster member: requests to etcd over TCP, and the leader's lease.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant as Clock};

use takt_openflow::channel::Instant;

use crate::cluster::etcd::{Request, Response, decode, encode};
use crate::cluster::{Cluster, Endpoint, Event, Member};
use crate::store::{Changes, Records};

/// Maximum length of a response in octets: a page of records is much shorter.
const ANSWER_MAX: u64 = 64 << 20;
/// Maximum number of header fields of a response.
const FIELDS_MAX: usize = 64;

enum Command {
    Save(Changes),
    Leave,
}

/// A cluster member with its thread.
pub(super) struct Agent {
    commands: SyncSender<Command>,
    events: Receiver<Event>,
    /// End of leadership in nanoseconds of the runtime's clock; 0 while this member is not leader.
    leads_until: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    /// Records that are in etcd or being written.
    saved: Records,
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Agent {
    /// Starts the thread. Its times count from `start`.
    pub(super) fn start(cluster: Cluster, name: String, start: Clock) -> io::Result<Self> {
        // One change may wait while another is written.
        let (commands, inbox) = sync_channel(1);
        let (outbox, events) = channel();
        let leads_until = Arc::new(AtomicU64::new(0));
        let client = Client { endpoints: cluster.endpoints.clone(), current: 0, limit: cluster.lease / 6 };
        let member = Member::new(Instant(nanos(start.elapsed())), cluster, name);
        let mut work = Work { member, client, inbox, outbox, leads_until: Arc::clone(&leads_until), start };
        let thread = Builder::new().name("takt-sdn-cluster".to_owned()).spawn(move || work.run())?;
        Ok(Self { commands, events, leads_until, thread: Some(thread), saved: Records::new() })
    }

    /// Returns the next event.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?; // tidy-allow(dropped-cause): the queue is empty, or the thread has ended.
        if let Event::Elected { records, .. } = &event {
            self.saved.clone_from(records);
        }
        Some(event)
    }

    /// Reports whether the lease of this member as leader is valid.
    pub(super) fn leads(&self, now: Instant) -> bool {
        now.0 < self.leads_until.load(Ordering::Acquire)
    }

    /// Writes the changes to these records to etcd. Returns false, without any effect, while two
    /// changes wait to be written.
    pub(super) fn save(&mut self, records: Records) -> bool {
        let changes = Changes::between(&self.saved, &records);
        if changes.is_empty() {
            return true;
        }
        match self.commands.try_send(Command::Save(changes)) {
            Ok(()) => self.saved = records,
            Err(TrySendError::Full(_)) => return false,
            // The thread ends only with its agent.
            Err(TrySendError::Disconnected(_)) => {}
        }
        true
    }

    /// Saves these records, resigns, and waits until both are done or etcd does not answer.
    pub(super) fn finish(&mut self, records: Option<Records>) {
        let changes = records.map(|records| Changes::between(&self.saved, &records));
        for command in changes.map(Command::Save).into_iter().chain([Command::Leave]) {
            // A thread that has ended has nothing left to do.
            let _ = self.commands.send(command);
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has no further consequences.
            let _ = thread.join();
        }
    }
}

struct Work {
    member: Member,
    client: Client,
    inbox: Receiver<Command>,
    outbox: Sender<Event>,
    leads_until: Arc<AtomicU64>,
    start: Clock,
}

impl Work {
    fn now(&self) -> Instant {
        Instant(nanos(self.start.elapsed()))
    }

    fn run(&mut self) {
        loop {
            while let Some(request) = self.member.poll_request(self.now()) {
                let response = self.client.request(self.member.prefix(), &request);
                self.member.handle_response(self.now(), response);
                self.publish();
            }
            self.publish();
            if self.member.has_left() {
                return;
            }
            let wait = self.member.poll_timeout().0.saturating_sub(self.now().0);
            match self.inbox.recv_timeout(Duration::from_nanos(wait)) {
                Ok(Command::Save(changes)) => self.member.save(changes),
                Ok(Command::Leave) | Err(RecvTimeoutError::Disconnected) => self.leave(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Saves the remaining changes and ends the lease, with one attempt each.
    fn leave(&mut self) {
        self.member.leave();
        while let Some(request) = self.member.poll_request(self.now()) {
            let response = self.client.request(self.member.prefix(), &request);
            let is_over = response.is_err();
            self.member.handle_response(self.now(), response);
            if is_over {
                break;
            }
        }
        self.member.abandon();
    }

    fn publish(&mut self) {
        // The lease must be visible before the event.
        self.leads_until.store(self.member.leads_until().map_or(0, |until| until.0), Ordering::Release);
        while let Some(event) = self.member.poll_event() {
            // A dropped agent needs no events.
            let _ = self.outbox.send(event);
        }
    }
}

/// HTTP/1.0 client of etcd: one request per connection, which ends with the response.
struct Client {
    endpoints: Vec<Endpoint>,
    current: usize,
    /// Timeout of connecting, each read and each write.
    limit: Duration,
}

impl Client {
    fn request(&mut self, prefix: &str, request: &Request) -> Result<Response, String> {
        let (path, body) = encode(prefix, request);
        let body = body.to_string();
        let mut failures = Vec::new();
        for _ in 0..self.endpoints.len() {
            let endpoint = &self.endpoints[self.current];
            match exchange(endpoint, path, &body, self.limit) {
                Ok(octets) => return decode(prefix, request, &octets),
                Err(error) => failures.push(format!("{}: {error}", endpoint.authority())),
            }
            self.current = (self.current + 1) % self.endpoints.len();
        }
        Err(failures.join("; "))
    }
}

fn exchange(endpoint: &Endpoint, path: &str, body: &str, limit: Duration) -> io::Result<Vec<u8>> {
    let address = endpoint.addresses()?.into_iter().next().ok_or(ErrorKind::AddrNotAvailable)?;
    let mut socket = TcpStream::connect_timeout(&address, limit)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(limit))?;
    socket.set_write_timeout(Some(limit))?;
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        endpoint.authority(),
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes())?;
    let mut octets = Vec::new();
    socket.take(ANSWER_MAX).read_to_end(&mut octets)?;
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(&octets) {
        Ok(httparse::Status::Complete(len)) => Ok(octets.split_off(len)),
        Ok(httparse::Status::Partial) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) => Err(io::Error::new(ErrorKind::InvalidData, error)),
    }
}
