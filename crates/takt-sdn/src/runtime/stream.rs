//! A connection of a switch: TCP, or TLS over it.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ServerConnection;

use super::tls::Identity;

/// Octets of plain text that TLS holds at most before it has sent them.
const PENDING_MAX: usize = 256 << 10;

/// What a read gave.
pub(super) enum Progress {
    /// So many octets.
    Octets(usize),
    /// Nothing for now.
    Blocked,
    /// The peer has closed.
    Ended,
}

/// The octets of a connection.
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

    /// Reads what is there, at most as much as fits.
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
                // The peer learns why, if that can be sent at once.
                let _ = tls.write_tls(&mut self.socket);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Writes as much as the connection takes; 0 if it takes nothing for now.
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
        let taken = tls.writer().write(&octets[..octets.len().min(PENDING_MAX)])?;
        while tls.wants_write() && retried(|| tls.write_tls(&mut self.socket)).or_else(blocked)? != 0 {}
        Ok(taken)
    }
}
