//! Listeners of the API, with a thread per connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::http::{Connection, Method, RequestError, read_request};
use super::service::{Access, Service, error};
use super::{ApiCounters, control};

/// Maximum number of open connections of a listener; a further one is closed.
pub const CONNECTIONS_MAX: usize = 32;
/// Stack size of a connection's thread in octets.
const STACK: usize = 512 << 10;
/// Pause after a connection cannot be accepted, for instance without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener that serves until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: ListenAddress,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone)]
enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A slot among the open connections; dropping it frees the slot.
struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let slot = Self(Arc::clone(open));
        (open.fetch_add(1, Ordering::AcqRel) < CONNECTIONS_MAX).then_some(slot)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn serve_connection(service: &Service, mut connection: impl Connection) {
    let (response, has_body) = match read_request(&mut connection) {
        Ok(request) => {
            ApiCounters::count(&service.counters.requests);
            (service.answer(&request), request.method != Method::Head)
        }
        Err(RequestError::Closed) => return,
        Err(RequestError::Refused(status, why)) => {
            ApiCounters::count(&service.counters.malformed);
            (error(status, why), true)
        }
    };
    if response.write(&mut connection, has_body).is_err() {
        ApiCounters::count(&service.counters.cut_off);
    }
}

/// Accepts connections until the server is dropped.
fn serve<C: Connection + Send + 'static>(
    service: Service,
    is_over: &AtomicBool,
    mut accept: impl FnMut() -> io::Result<C>,
) {
    let open = Arc::new(AtomicUsize::new(0));
    while !is_over.load(Ordering::Acquire) {
        let Ok(connection) = accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let Some(slot) = ConnectionSlot::take(&open) else {
            ApiCounters::count(&service.counters.overloaded);
            continue;
        };
        let service = service.clone();
        let thread = Builder::new().name("takt-sdn-api".to_owned()).stack_size(STACK);
        // If no thread can be started, the connection is closed.
        let _ = thread.spawn(move || {
            serve_connection(&service, connection);
            drop(slot);
        });
    }
}

impl Server {
    fn start(address: ListenAddress, serve: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = Builder::new().name("takt-sdn-api".to_owned()).spawn(move || serve(&flag))?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }

    /// Listens on a loopback address, because the token is sent as plain text.
    ///
    /// # Errors
    /// The address is not a loopback address, or cannot be bound.
    pub fn tcp(address: SocketAddr, service: Service) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let what = "expected a loopback address, since HTTP goes without encryption";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let accept = move || listener.accept().map(|(connection, _)| connection);
        Self::start(ListenAddress::Tcp(address), move |is_over| serve(service, is_over, accept))
    }

    /// Listens on a Unix socket that only its owner can access. The socket is removed when the
    /// server is dropped.
    ///
    /// # Errors
    /// Another controller listens there, or the socket cannot be created.
    pub fn unix(path: &Path, service: Service) -> io::Result<Self> {
        let listener: UnixListener = control::bind(path)?;
        let service = Service { access: Access::Reachable, ..service };
        let accept = move || listener.accept().map(|(connection, _)| connection);
        Self::start(ListenAddress::Unix(path.to_owned()), move |is_over| serve(service, is_over, accept))
    }

    /// Returns the address of a TCP listener.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.address {
            ListenAddress::Tcp(address) => Some(address),
            ListenAddress::Unix(_) => None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // A connection wakes the blocked `accept`. If none can be made, the thread ends with the
        // process.
        let is_woken = match &self.address {
            ListenAddress::Tcp(address) => TcpStream::connect(address).is_ok(),
            ListenAddress::Unix(path) => UnixStream::connect(path).is_ok(),
        };
        if let Some(thread) = self.thread.take().filter(|_| is_woken) {
            // A panic of the thread affects only a connection, which ends with it.
            let _ = thread.join();
        }
        if let ListenAddress::Unix(path) = &self.address {
            // The socket may be removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}
