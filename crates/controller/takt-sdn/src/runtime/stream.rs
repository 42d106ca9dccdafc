//! Connection of a switch: TCP, or TLS over TCP.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

use super::tls::Identity;

/// Maximum number of octets of plain text that TLS buffers before sending.
const PENDING_MAX: usize = 256 << 10;

/// Result of a read.
pub(super) enum Progress {
    /// Number of octets read.
    Octets(usize),
    /// No octets are available now.
    Blocked,
    /// The peer has closed the connection.
    Ended,
}

/// Byte stream of a connection.
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
}

fn retried(mut operation: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match operation() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn progress(result: io::Result<usize>) -> io::Result<Progress> {
    match result {
        Ok(0) => Ok(Progress::Ended),
        Ok(len) => Ok(Progress::Octets(len)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Progress::Blocked),
        Err(error) => Err(error),
    }
}

impl Stream {
    pub(super) fn new(socket: TcpStream, identity: Option<&Identity>) -> io::Result<Self> {
        let tls = identity.map(Identity::accept).transpose()?.map(Box::new);
        Ok(Self { socket, tls })
    }

    pub(super) fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Reads available octets, at most as many as fit.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Progress> {
        let Some(tls) = &mut self.tls else { return progress(retried(|| self.socket.read(into))) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return progress(result),
            }
            match progress(retried(|| tls.read_tls(&mut self.socket)))? {
                Progress::Octets(_) => {}
                other => return Ok(other),
            }
            if let Err(error) = tls.process_new_packets() {
                // The TLS alert informs the peer, if it can be sent at once.
                let _ = tls.write_tls(&mut self.socket);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Writes as many octets as the connection accepts; 0 if it accepts none now.
    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let blocked = |error: io::Error| if error.kind() == ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        let Some(tls) = &mut self.tls else {
            return if octets.is_empty() { Ok(0) } else { retried(|| self.socket.write(octets)).or_else(blocked) };
        };
        while tls.wants_write() {
            if retried(|| tls.write_tls(&mut self.socket)).or_else(blocked)? == 0 {
                return Ok(0);
            }
        }
        if tls.is_handshaking() || octets.is_empty() {
            return Ok(0);
        }
        let written = tls.writer().write(&octets[..octets.len().min(PENDING_MAX)])?;
        while tls.wants_write() && retried(|| tls.write_tls(&mut self.socket)).or_else(blocked)? != 0 {}
        Ok(written)
    }
}
