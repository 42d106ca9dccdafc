//! Connection of an application to its daemon, with reconnection.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use takt_wire::{GuidPrefix, Locator};

use super::handshake::{Request, TEXT_LEN_MAX, Welcome, address};
use crate::shm;

/// Time limit for the reply of a daemon.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// First pause between attempts to reach a lost daemon; doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause between attempts.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Parameters of a connection: the daemon and the request.
#[derive(Debug)]
pub(super) struct ConnectParameters {
    pub(super) name: Option<String>,
    pub(super) domain: u32,
    pub(super) shm: Locator,
}

impl ConnectParameters {
    fn request(&self, prefix: Option<GuidPrefix>) -> Request {
        Request::Join { domain: self.domain, shm: self.shm, prefix }
    }
}

#[derive(Debug)]
pub(super) enum Link {
    /// Connected; the daemon receives frames at this locator.
    Up { inbox: Locator },
    /// Disconnected; the next attempt is due at `due`, and the one after it `pause` later.
    Down { due: Instant, pause: Duration },
    /// Connecting; a request was sent, and the reply is due at `until`.
    AwaitingReply { stream: UnixStream, reply: Vec<u8>, until: Instant, pause: Duration },
}

/// Connects to the named daemon and sends a request.
fn send_request(name: Option<&str>, request: &Request) -> io::Result<UnixStream> {
    let user = shm::own_user();
    let mut stream = UnixStream::connect_addr(&address(name, user)?)?;
    if shm::peer(stream.as_fd())?.user != user {
        let why = "a process of another user listens under the name of the daemon";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    stream.write_all(request.to_text().as_bytes())?;
    Ok(stream)
}

/// Sends a request to a daemon and waits for the reply, up to one second.
pub(super) fn converse(name: Option<&str>, request: &Request) -> io::Result<String> {
    let stream = send_request(name, request)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let mut text = String::new();
    match stream.take(TEXT_LEN_MAX as u64).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no reply within one second"))
        }
        result => result.map(|_| text),
    }
}

/// Parses a reply.
fn parse_reply(text: &str) -> io::Result<(Locator, Welcome)> {
    let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
    let welcome = Welcome::parse(text).map_err(refused)?;
    let inbox = welcome.inbox.ok_or_else(|| refused("the reply has no inbox".into()))?;
    Ok((inbox, welcome))
}

impl Link {
    /// Connects, and waits for the reply of the daemon.
    pub(super) fn open(parameters: &ConnectParameters) -> io::Result<(Self, Welcome)> {
        let name = parameters.name.as_deref();
        let text = converse(name, &parameters.request(None)).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                let option = name.map_or(String::new(), |name| format!(" --name {name}"));
                let why = format!(
                    "no daemon of this user runs in this network namespace; start one: takt daemon run{option}"
                );
                io::Error::new(error.kind(), why)
            }
            _ => error,
        })?;
        let (inbox, welcome) = parse_reply(&text)?;
        Ok((Self::Up { inbox }, welcome))
    }

    /// Marks the connection as lost.
    pub(super) fn mark_lost(&mut self) {
        *self = Self::Down { due: Instant::now(), pause: PAUSE_MIN };
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up { .. })
    }

    /// Takes the next step of a reconnection, if one is due. Never blocks. Returns the reply of a
    /// daemon that answered.
    pub(super) fn advance(&mut self, parameters: &ConnectParameters, prefix: Option<GuidPrefix>) -> Option<Welcome> {
        let now = Instant::now();
        match self {
            Self::Up { .. } => None,
            Self::Down { due, .. } if now < *due => None,
            Self::Down { pause, .. } => {
                let pause = *pause;
                let sent = send_request(parameters.name.as_deref(), &parameters.request(prefix));
                let sent = sent.and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
                *self = match sent {
                    Ok(stream) => Self::AwaitingReply { stream, reply: Vec::new(), until: now + ANSWER_TIME, pause },
                    Err(_) => Self::retry_after(now, pause),
                };
                None
            }
            Self::AwaitingReply { stream, reply, until, pause } => {
                let (until, pause) = (*until, *pause);
                match stream.take((TEXT_LEN_MAX - reply.len()) as u64).read_to_end(reply) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < until => None,
                    Err(_) => {
                        *self = Self::retry_after(now, pause);
                        None
                    }
                    Ok(_) => {
                        let parsed = std::str::from_utf8(reply).ok().and_then(|text| parse_reply(text).ok());
                        let Some((inbox, welcome)) = parsed else {
                            *self = Self::retry_after(now, pause);
                            return None;
                        };
                        *self = Self::Up { inbox };
                        Some(welcome)
                    }
                }
            }
        }
    }

    fn retry_after(now: Instant, pause: Duration) -> Self {
        Self::Down { due: now + pause, pause: (2 * pause).min(PAUSE_MAX) }
    }
}
