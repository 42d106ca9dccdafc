//! Blocking controller session with one switch: a channel on a socket, used by one thread that
//! waits for each reply.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant as Clock};

use takt_openflow::channel::{Controller, ControllerConfig, Event, Failure, Instant, OperationId, Outcome, SendError};
use takt_openflow::multipart::{MultipartRequest, ReplyBody, RequestBody};
use takt_openflow::{Message, Version, Versions};
use takt_ovsdb::connection::Stream;

use super::MeasureError;

/// Timeout of the switch to connect, and to reply.
const LIMIT: Duration = Duration::from_secs(30);
/// Timeout of a read.
const STEP: Duration = Duration::from_millis(10);
/// Timeout of a read that only checks for received octets.
const POLL_TIMEOUT: Duration = Duration::from_micros(1);
/// Maximum number of messages in one transaction.
pub const MESSAGES_MAX: usize = 500;

/// Endpoint of the connection to the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The switch listens at a Unix socket, as Open vSwitch does at `BRIDGE.mgmt`.
    Unix(PathBuf),
    /// The switch listens at an address.
    Tcp(SocketAddr),
    /// The switch connects to this address.
    Listen(SocketAddr),
}

/// Session with a switch. See the [module](self).
pub struct Session {
    stream: Box<dyn Stream>,
    controller: Controller,
    begin: Clock,
    received: Vec<u8>,
    completed: Vec<(OperationId, Outcome)>,
    datapath_id: u64,
}

fn failed(action: impl Into<String>) -> impl Fn(std::io::Error) -> MeasureError {
    let action = action.into();
    move |source| MeasureError::Os { action: action.clone(), source }
}

impl Session {
    /// Connects and completes the handshake.
    ///
    /// # Errors
    /// The switch cannot be reached, does not connect, or supports neither OpenFlow 1.3 nor 1.4;
    /// [`MeasureError::Stopped`].
    pub fn open(endpoint: &Endpoint, stop: &dyn Fn() -> bool) -> Result<Self, MeasureError> {
        let stream: Box<dyn Stream> = match endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(failed(format!("connect to {}", path.display())))?;
                Box::new(stream)
            }
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, LIMIT);
                let stream = stream.map_err(failed(format!("connect to {address}")))?;
                stream.set_nodelay(true).map_err(failed("set TCP_NODELAY"))?;
                Box::new(stream)
            }
            Endpoint::Listen(address) => Box::new(accept(*address, stop)?),
        };
        let versions = Versions::of(&[Version::V1_3, Version::V1_4]);
        let config = ControllerConfig { versions, ..ControllerConfig::default() };
        let mut session = Self {
            stream,
            controller: Controller::new(Instant(0), config),
            begin: Clock::now(),
            received: Vec::new(),
            completed: Vec::new(),
            datapath_id: 0,
        };
        let until = Clock::now() + LIMIT;
        while !session.controller.is_up() {
            if stop() {
                return Err(MeasureError::Stopped);
            }
            if Clock::now() > until {
                return Err(MeasureError::Switch("the handshake does not complete".to_owned()));
            }
            session.step(STEP)?;
        }
        Ok(session)
    }

    /// Returns the datapath id of the switch.
    pub fn datapath_id(&self) -> u64 {
        self.datapath_id
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sends pending octets, and reads once.
    fn step(&mut self, wait: Duration) -> Result<(), MeasureError> {
        let failed = failed("talk to the switch");
        while !self.controller.poll_transmit().is_empty() {
            self.stream.set_timeout(LIMIT).map_err(&failed)?;
            let len = self.controller.poll_transmit().len();
            self.stream.write_all(self.controller.poll_transmit()).map_err(&failed)?;
            self.controller.transmitted(len);
        }
        self.stream.set_timeout(wait).map_err(&failed)?;
        let mut buffer = [0; 16_384];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.controller.handle_disconnect(),
            Ok(len) => self.received.extend(&buffer[..len]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
        let now = self.now();
        let consumed = self.controller.handle_bytes(now, &self.received);
        self.received.drain(..consumed);
        self.controller.handle_timeout(now);
        while let Some(event) = self.controller.poll_event() {
            match event {
                Event::Up { features, .. } => self.datapath_id = features.datapath,
                Event::Completed { operation, outcome } => self.completed.push((operation, outcome)),
                Event::Down(why) => return Err(MeasureError::Switch(format!("the connection ended: {why}"))),
                // Packets and port states were not requested.
                _ => {}
            }
        }
        Ok(())
    }

    /// Answers echo requests of the switch while no request is outstanding.
    ///
    /// # Errors
    /// The connection ended.
    pub fn idle(&mut self) -> Result<(), MeasureError> {
        self.step(POLL_TIMEOUT)
    }

    fn wait(&mut self, sent: Result<OperationId, SendError>) -> Result<Outcome, MeasureError> {
        let operation = sent.map_err(|why| MeasureError::Switch(why.to_string()))?;
        loop {
            self.step(STEP)?;
            if let Some(index) = self.completed.iter().position(|(found, _)| *found == operation) {
                return Ok(self.completed.swap_remove(index).1);
            }
        }
    }

    /// Makes the switch execute messages. Returns the refused ones.
    ///
    /// # Errors
    /// The switch does not answer, or the connection ended.
    pub fn execute(&mut self, messages: &[Message]) -> Result<Vec<Failure>, MeasureError> {
        let mut refused = Vec::new();
        for (part, messages) in messages.chunks(MESSAGES_MAX).enumerate() {
            let sent = self.controller.transaction(self.now(), LIMIT, messages);
            match self.wait(sent)? {
                Outcome::Done => {}
                Outcome::Failed(failures) => refused.extend(failures.into_iter().map(|failure| Failure {
                    message: failure.message.map(|index| index + part * MESSAGES_MAX),
                    ..failure
                })),
                other => return Err(MeasureError::Switch(format!("it does not answer: {other:?}"))),
            }
        }
        Ok(refused)
    }

    /// Sends a request; returns `None` if the switch does not support it.
    ///
    /// # Errors
    /// The connection ended.
    pub fn request(&mut self, body: RequestBody) -> Result<Option<ReplyBody>, MeasureError> {
        let request = Message::MultipartRequest(MultipartRequest::new(body));
        let sent = self.controller.request(self.now(), LIMIT, &request);
        Ok(match self.wait(sent)? {
            Outcome::Multipart(body) => Some(body),
            _ => None,
        })
    }
}

/// Accepts the first switch that connects.
fn accept(address: SocketAddr, stop: &dyn Fn() -> bool) -> Result<TcpStream, MeasureError> {
    let failed = failed(format!("listen at {address}"));
    let listener = TcpListener::bind(address).map_err(&failed)?;
    listener.set_nonblocking(true).map_err(&failed)?;
    let until = Clock::now() + LIMIT;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).map_err(&failed)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed(error)),
        }
        if stop() {
            return Err(MeasureError::Stopped);
        }
        if Clock::now() > until {
            return Err(MeasureError::Switch(format!("no switch connects to {address} within {} s", LIMIT.as_secs())));
        }
        std::thread::sleep(STEP);
    }
}
