//! Shared XDP program and maps for all participants at an interface, in all processes of one user.
//!
//! There is no daemon. The first participant attaches the program, and listens at a name in the
//! abstract namespace of Unix sockets, which belongs to the network namespace. Later ones connect
//! there and receive the descriptors. The program stays attached as long as any process has them.
//! When the listening participant ends, for any reason, the connections notify the others, and
//! one of them takes over the name.
//!
//! Nothing needs to be cleaned up after a process: the kernel frees its name, its queues and its
//! part in the program. The [filter](crate::program::filter) determines the owner of each queue.
//!
//! One thread per participant does this. It sleeps until other participants come or go, and does
//! not affect the data path. It has no capabilities and blocks all signals.
//!
//! Trust: only processes of the same user are served or trusted. Another user can take the name,
//! which prevents this one from using AF_XDP, and no more.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use takt_transport::readiness;

use crate::capabilities::{drop_capabilities, name_missing};
use crate::config::Mode;
use crate::program::attach::{self, Attached, Target};
use crate::program::bpf::Attachment;
use crate::program::filter::Switchboard;
use crate::retry::retry_while_busy;
use crate::syscall;

/// Version of the names, the greeting, the maps and the meaning of their entries. Any incompatible
/// change increments it.
const VERSION: u32 = 1;

/// Maximum number of connected participants, the listening one not counted: as many as one wait
/// supports.
const CLIENTS_MAX: usize = 62;

/// Time limit for the reply of the listening participant, which has a dedicated thread.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

/// First and longest pause between attempts to take over the name; doubled each time.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(256)];

/// Number of descriptors of a greeting: the attachment, and those of the switchboard.
const DESCRIPTORS: usize = 3;

/// Maximum length of a greeting in octets: the attachment's id, the mode, and the reason why that
/// is not native.
const GREETING_MAX: usize = 5 + 512;

/// Resources that all participants share.
#[derive(Debug)]
struct SharedProgram {
    attached: Attached,
    switchboard: Switchboard,
}

/// Part of one participant in the shared program. The program is detached when all of them are
/// dropped.
#[derive(Debug)]
pub(crate) struct Share {
    program: Arc<SharedProgram>,
    /// Whether another participant had attached the program.
    is_joined: bool,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Share {
    /// Joins the participants at this interface, which needs no capability, or attaches the filter.
    ///
    /// # Errors
    /// "Busy" if a foreign program, or one of another version of Takt, is attached; the requested
    /// mode differs from that of the running filter; the filter belongs to another user; the
    /// listening participant does not reply.
    pub(crate) fn open(at: Target<'_>) -> io::Result<Self> {
        let address = address(at.ifindex)?;
        retry_while_busy(|| match UnixStream::connect_addr(&address) {
            Ok(connection) => Self::join(connection, &address, at.mode),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Self::begin(at, &address),
            Err(e) => Err(e),
        })
    }

    fn begin(at: Target<'_>, address: &SocketAddr) -> io::Result<Self> {
        let switchboard = Switchboard::new().map_err(name_missing("CAP_BPF and CAP_NET_ADMIN"))?;
        let listener = UnixListener::bind_addr(address).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => busy("other processes keep opening and closing it"),
            _ => e,
        })?;
        // If this fails because others have the program and are about to take over the name, the
        // program is theirs: the listener is dropped.
        let program = SharedProgram { attached: attach::attach(&switchboard, at)?, switchboard };
        Self::start(program, Role::Server(listener, Vec::new()), address, false)
    }

    fn join(connection: UnixStream, address: &SocketAddr, wanted: Option<Mode>) -> io::Result<Self> {
        let (_, program) = receive_greeting(&connection)?;
        let mode = program.attached.mode;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != mode) {
            let why = format!("its filter runs in {mode} mode for other participants, and {wanted} mode is requested");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Self::start(program, Role::Client(connection), address, true)
    }

    fn start(program: SharedProgram, role: Role, address: &SocketAddr, is_joined: bool) -> io::Result<Self> {
        let program = Arc::new(program);
        let (stop, stopped) = UnixStream::pair()?;
        role.set_nonblocking()?;
        let service = Service { program: program.clone(), address: address.clone(), stopped };
        let thread = std::thread::Builder::new().name("takt-xdp".into()).spawn(move || service.run(role))?;
        Ok(Self { program, is_joined, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the switchboard where queues are connected.
    pub(crate) fn switchboard(&self) -> &Switchboard {
        &self.program.switchboard
    }

    /// Returns the mode of the filter.
    pub(crate) fn mode(&self) -> Mode {
        self.program.attached.mode
    }

    /// Returns the reason why the filter is not native, if that was tried.
    pub(crate) fn not_native(&self) -> Option<&str> {
        self.program.attached.not_native.as_deref()
    }

    /// Reports whether another participant had attached the filter.
    pub(crate) fn is_joined(&self) -> bool {
        self.is_joined
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread has closed its descriptors then. A panic was reported already.
            drop(thread.join());
        }
    }
}

/// Role of a participant.
#[derive(Debug)]
enum Role {
    /// Owns the name, and has these connections.
    Server(UnixListener, Vec<UnixStream>),
    /// Is connected to the owner of the name.
    Client(UnixStream),
}

impl Role {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Server(listener, _) => listener.set_nonblocking(true),
            Self::Client(connection) => connection.set_nonblocking(true),
        }
    }

    fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::Server(listener, guests) => {
                guests.iter().map(AsRawFd::as_raw_fd).chain([listener.as_raw_fd()]).collect()
            }
            Self::Client(connection) => vec![connection.as_raw_fd()],
        }
    }
}

/// State of the thread.
#[derive(Debug)]
struct Service {
    program: Arc<SharedProgram>,
    address: SocketAddr,
    /// The other end is closed to end the thread.
    stopped: UnixStream,
}

impl Service {
    fn run(self, mut role: Role) {
        syscall::block_signals();
        // Dropping is always possible; and if not, the thread uses none.
        drop(drop_capabilities());
        loop {
            let mut descriptors = role.descriptors();
            descriptors.push(self.stopped.as_raw_fd());
            if readiness::wait(&descriptors, None).is_err() || self.is_stopped(Duration::ZERO) {
                return;
            }
            role = match role {
                Role::Server(listener, mut guests) => {
                    guests.retain(|client| !is_closed(client));
                    // After the interface is deleted, no participant may join any more.
                    if !self.program.attached.attachment.is_in_place() {
                        return;
                    }
                    self.admit(&listener, &mut guests);
                    Role::Server(listener, guests)
                }
                Role::Client(host) if is_closed(&host) => match self.take_over() {
                    Some(role) => role,
                    None => return,
                },
                guest => guest,
            };
        }
    }

    /// Waits up to `timeout` for the end of the thread, and reports whether it was requested.
    fn is_stopped(&self, timeout: Duration) -> bool {
        readiness::wait(&[self.stopped.as_raw_fd()], Some(timeout)).unwrap_or(true)
    }

    /// Accepts the pending connections and sends each its greeting.
    fn admit(&self, listener: &UnixListener, clients: &mut Vec<UnixStream>) {
        loop {
            let client = match listener.accept() {
                Ok((guest, _)) => guest,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // Mostly for lack of descriptors: pause before the next attempt.
                Err(_) => {
                    self.is_stopped(PAUSES[1]);
                    return;
                }
            };
            let is_same_user = syscall::peer_user(client.as_fd()).is_ok_and(|user| user == syscall::own_user());
            // A refused peer sees the end of the connection.
            let is_greeted = clients.len() < CLIENTS_MAX && is_same_user && self.program.send_greeting(&client).is_ok();
            if is_greeted && client.set_nonblocking(true).is_ok() {
                clients.push(client);
            }
        }
    }

    /// Takes over the name, or connects to a faster participant. Returns `None` if the thread must
    /// end.
    fn take_over(&self) -> Option<Role> {
        let [mut pause, longest] = PAUSES;
        loop {
            let role = match UnixListener::bind_addr(&self.address) {
                Ok(listener) => Some(Role::Server(listener, Vec::new())),
                Err(_) => self.connect().map(Role::Client),
            };
            if let Some(role) = role.filter(|role| role.set_nonblocking().is_ok()) {
                return Some(role);
            }
            if self.is_stopped(pause) {
                return None;
            }
            pause = longest.min(pause * 2);
        }
    }

    /// Connects to the owner of the name, if it has the same program.
    fn connect(&self) -> Option<UnixStream> {
        let connection = UnixStream::connect_addr(&self.address).ok()?; // tidy-allow(dropped-cause): tried again.
        let own = self.program.attached.attachment.id();
        let (theirs, _) = receive_greeting(&connection).ok()?; // tidy-allow(dropped-cause): as above.
        own.is_ok_and(|own| own == theirs).then_some(connection)
    }
}

impl SharedProgram {
    /// Sends the shared resources to a client.
    fn send_greeting(&self, client: &UnixStream) -> io::Result<()> {
        let mut greeting = self.attached.attachment.id()?.to_ne_bytes().to_vec();
        greeting.push(u8::from(self.attached.mode == Mode::Generic));
        greeting.extend(self.attached.not_native.as_deref().unwrap_or_default().bytes());
        greeting.truncate(GREETING_MAX);
        let [tables, sockets] = self.switchboard.descriptors();
        syscall::send_with(client.as_fd(), &greeting, &[self.attached.attachment.as_fd(), tables, sockets])
    }
}

/// Receives a greeting: the attachment's id, and the shared resources.
fn receive_greeting(connection: &UnixStream) -> io::Result<(u32, SharedProgram)> {
    if syscall::peer_user(connection.as_fd())? != syscall::own_user() {
        let why = "a process of another user owns its filter; only participants of one user can share an interface";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    }
    connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let mut greeting = [0; GREETING_MAX];
    let received = syscall::receive_with::<DESCRIPTORS>(connection.as_fd(), &mut greeting);
    let (len, descriptors) = received.map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, "the process that owns its filter does not answer; is it stopped?")
        }
        // The owner has ended, or could not reply.
        _ => busy("the process that owns its filter refuses other participants"),
    })?;
    let (Some((number, rest)), [Some(attachment), Some(tables), Some(sockets)]) =
        (greeting[..len].split_first_chunk::<4>(), descriptors)
    else {
        return Err(busy("the process that owns its filter refuses other participants"));
    };
    let (mode, why) = rest.split_first().unwrap_or((&0, &[]));
    let not_native = (!why.is_empty()).then(|| String::from_utf8_lossy(why).into_owned());
    let mode = if *mode == 0 { Mode::Native } else { Mode::Generic };
    let attached = Attached { attachment: Attachment::of(attachment), mode, not_native };
    Ok((u32::from_ne_bytes(*number), SharedProgram { attached, switchboard: Switchboard::of([tables, sockets]) }))
}

fn busy(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, why)
}

fn address(ifindex: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("takt-xdp-{VERSION}/{ifindex}"))
}

/// Reports whether the other end was closed. No data is ever sent in this direction.
fn is_closed(mut connection: &UnixStream) -> bool {
    match connection.read(&mut [0; 64]) {
        Ok(len) => len == 0,
        Err(e) => !matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}
