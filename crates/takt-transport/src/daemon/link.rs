//! An application's connection to its daemon: made, lost, and made again.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use takt_wire::{GuidPrefix, Locator};

use super::handshake::{Request, TEXT_LEN_MAX, Welcome, address};
use crate::shm;

/// How long a daemon may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// Between attempts to reach a daemon that has gone; doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest time between attempts.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Whom to ask, and what for.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) name: Option<String>,
    pub(super) domain: u32,
    pub(super) shm: Locator,
}

impl Question {
    fn request(&self, prefix: Option<GuidPrefix>) -> Request {
        Request::Join { domain: self.domain, shm: self.shm, prefix }
    }
}

#[derive(Debug)]
pub(super) enum Link {
    /// The daemon takes frames here.
    Up { inbox: Locator },
    /// The next attempt is due then, and the one after it so much later.
    Down { due: Instant, pause: Duration },
    /// The daemon was asked.
    Asked { stream: UnixStream, reply: Vec<u8>, until: Instant, pause: Duration },
}

/// Connects to the daemon of a name and asks it.
fn ask(name: Option<&str>, request: &Request) -> io::Result<UnixStream> {
    let user = shm::own_user();
    let mut stream = UnixStream::connect_addr(&address(name, user)?)?;
    if shm::peer(stream.as_fd())?.user != user {
        let why = "another user listens at the name of the daemon";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    stream.write_all(request.to_text().as_bytes())?;
    Ok(stream)
}

/// Asks a daemon and waits for the reply, up to a second.
pub(super) fn converse(name: Option<&str>, request: &Request) -> io::Result<String> {
    let stream = ask(name, request)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let mut text = String::new();
    match stream.take(TEXT_LEN_MAX as u64).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer within a second"))
        }
        result => result.map(|_| text),
    }
}

/// What a reply says.
fn understand(text: &str) -> io::Result<(Locator, Welcome)> {
    let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
    let welcome = Welcome::parse(text).map_err(refused)?;
    let inbox = welcome.inbox.ok_or_else(|| refused("its reply has no inbox".into()))?;
    Ok((inbox, welcome))
}

impl Link {
    /// Connects, and waits for the daemon's answer.
    pub(super) fn open(question: &Question) -> io::Result<(Self, Welcome)> {
        let name = question.name.as_deref();
        let text = converse(name, &question.request(None)).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                let option = name.map_or(String::new(), |name| format!(" --name {name}"));
                let why = format!(
                    "no daemon of this user runs in this network namespace; start one: takt daemon run{option}"
                );
                io::Error::new(error.kind(), why)
            }
            _ => error,
        })?;
        let (inbox, welcome) = understand(&text)?;
        Ok((Self::Up { inbox }, welcome))
    }

    /// The daemon has gone.
    pub(super) fn lose(&mut self) {
        *self = Self::Down { due: Instant::now(), pause: PAUSE_MIN };
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up { .. })
    }

    /// Takes the next step to a daemon, if it is due. Never blocks. Says what a daemon that has answered tells.
    pub(super) fn advance(&mut self, question: &Question, prefix: Option<GuidPrefix>) -> Option<Welcome> {
        let now = Instant::now();
        match self {
            Self::Up { .. } => None,
            Self::Down { due, .. } if now < *due => None,
            Self::Down { pause, .. } => {
                let pause = *pause;
                let asked = ask(question.name.as_deref(), &question.request(prefix));
                let asked = asked.and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
                *self = match asked {
                    Ok(stream) => Self::Asked { stream, reply: Vec::new(), until: now + ANSWER_TIME, pause },
                    Err(_) => Self::later(now, pause),
                };
                None
            }
            Self::Asked { stream, reply, until, pause } => {
                let (until, pause) = (*until, *pause);
                match stream.take((TEXT_LEN_MAX - reply.len()) as u64).read_to_end(reply) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < until => None,
                    Err(_) => {
                        *self = Self::later(now, pause);
                        None
                    }
                    Ok(_) => {
                        let understood = std::str::from_utf8(reply).ok().and_then(|text| understand(text).ok());
                        let Some((inbox, welcome)) = understood else {
                            *self = Self::later(now, pause);
                            return None;
                        };
                        *self = Self::Up { inbox };
                        Some(welcome)
                    }
                }
            }
        }
    }

    fn later(now: Instant, pause: Duration) -> Self {
        Self::Down { due: now + pause, pause: (2 * pause).min(PAUSE_MAX) }
    }
}
