//! Control socket of the controller (a Unix socket that only its owner can access) and its client.
//!
//! Each controller has one in [`directories`], named by its process id, so that several controllers
//! can run on one machine. A client without a path connects to the only controller that answers.

use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of a client.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a response in octets.
const RESPONSE_MAX: u64 = 256 << 20;

/// Returns the directories that are searched for sockets: that of the system and that of the user's
/// session.
pub fn directories() -> Vec<PathBuf> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    let session = session.map(|path| PathBuf::from(path).join("takt/sdn"));
    std::iter::once(PathBuf::from("/run/takt/sdn")).chain(session).collect()
}

fn make_private(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Returns the path of this process's socket, in the first writable directory.
///
/// # Errors
/// If no directory is writable, the error of the first.
pub fn own_path() -> io::Result<PathBuf> {
    let mut first = None;
    for directory in directories() {
        let path = directory.join(format!("{}.sock", std::process::id()));
        match make_private(&directory).and_then(|()| fs::write(&path, [])) {
            Ok(()) => {
                fs::remove_file(&path)?;
                return Ok(path);
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// Creates the socket. A stale socket, at which no process listens, is replaced.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "the path exists and is not a socket"));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(io::Error::new(ErrorKind::AddrInUse, "another controller listens on it"));
        }
        _ => {}
    }
    // A private directory protects the socket until its permissions are set.
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let directory = PathBuf::from(name);
    DirBuilder::new().mode(0o700).create(&directory)?;
    let own = directory.join("s");
    let made = UnixListener::bind(&own).and_then(|listener| {
        fs::set_permissions(&own, Permissions::from_mode(0o600))?;
        fs::rename(&own, path)?;
        Ok(listener)
    });
    // The directory contains only remains of a failed attempt.
    fs::remove_dir_all(&directory)?;
    made
}

/// Reasons why a client gets no content from a controller.
#[derive(Debug)]
pub enum ControlError {
    /// No controller runs on this machine.
    None,
    /// Several controllers run on this machine, with these sockets.
    Several(Vec<PathBuf>),
    /// The socket failed.
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The response is not HTTP.
    NoAnswer,
    /// The controller refused the request for this reason.
    Refused(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => {
                let paths: Vec<String> = directories().iter().map(|path| path.display().to_string()).collect();
                write!(f, "no controller found: no control socket answers in {}", paths.join(" or "))?;
                f.write_str("; start one with takt sdn run, or give its socket with --control")
            }
            Self::Several(paths) => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                write!(f, "several controllers run; select one with --control: {}", paths.join(", "))
            }
            Self::Socket { path, source } => write!(f, "no controller answers at {}: {source}", path.display()),
            Self::NoAnswer => f.write_str("the response of the controller is not HTTP"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ControlError {}

/// Returns the sockets at which a process listens.
fn live_sockets() -> Vec<PathBuf> {
    let entries = directories().into_iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten(); // tidy-allow(dropped-cause): an unreadable directory has no usable sockets.
    let sockets = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "sock"));
    sockets.filter(|path| UnixStream::connect(path).is_ok()).collect()
}

/// Client of a controller's control socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// Finds the controller of this socket, or the only one that runs on this machine.
    ///
    /// # Errors
    /// No controller runs, or several run and `path` is `None`.
    pub fn find(path: Option<&Path>) -> Result<Self, ControlError> {
        if let Some(path) = path {
            return Ok(Self { path: path.to_owned() });
        }
        let mut paths = live_sockets();
        match (paths.pop(), paths.is_empty()) {
            (None, _) => Err(ControlError::None),
            (Some(path), true) => Ok(Self { path }),
            (Some(path), false) => Err(ControlError::Several(paths.into_iter().chain([path]).collect())),
        }
    }

    /// Gets the content at a path.
    ///
    /// # Errors
    /// The controller does not answer, or refuses the request.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, ControlError> {
        self.request("GET", path, &[])
    }

    /// Posts a body and returns the content of the response.
    ///
    /// # Errors
    /// The controller does not answer, or refuses the request.
    pub fn post(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, ControlError> {
        self.request("POST", path, body)
    }

    /// Deletes the resource at a path and returns the content of the response.
    ///
    /// # Errors
    /// The controller does not answer, or refuses the request.
    pub fn delete(&self, path: &str) -> Result<Vec<u8>, ControlError> {
        self.request("DELETE", path, &[])
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, ControlError> {
        let response = self.exchange(method, path, body);
        let response = response.map_err(|source| ControlError::Socket { path: self.path.clone(), source })?;
        let mut fields = [httparse::EMPTY_HEADER; super::http::FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let Ok(httparse::Status::Complete(len)) = head.parse(&response) else { return Err(ControlError::NoAnswer) };
        let content = &response[len..];
        if head.code.is_some_and(|code| (200..300).contains(&code)) {
            return Ok(content.to_vec());
        }
        let body: Option<serde_json::Value> = serde_json::from_slice(content).ok(); // tidy-allow(dropped-cause): then the error consists of the status alone.
        let body = body.as_ref().and_then(|body| body["error"].as_str());
        Err(ControlError::Refused(body.map_or_else(|| format!("status {:?}", head.code), str::to_owned)))
    }

    fn exchange(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut socket = UnixStream::connect(&self.path)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        write!(socket, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len())?;
        socket.write_all(body)?;
        let mut response = Vec::new();
        socket.take(RESPONSE_MAX).read_to_end(&mut response)?;
        Ok(response)
    }
}
