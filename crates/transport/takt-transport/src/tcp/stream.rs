//! Byte stream of a connection: plain TCP, or TLS over it. No call blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::buffer::Buffer;
use crate::udp::syscall::set_option;

/// Result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All available work is done.
    Done,
    /// The peer or the network is slower.
    Blocked,
    /// The peer sends nothing more.
    Ended,
}

/// Socket, with optional encryption.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<super::tls::TlsStream>),
}

impl Stream {
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.socket(),
        }
    }

    /// Reads once. Octets may remain in the kernel, but in no other buffer.
    pub(super) fn read_into(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        match self {
            Self::Plain(socket) => match retry_interrupted(|| socket.read(buffer.space())) {
                Ok(0) => Ok(Progress::Ended),
                Ok(len) => {
                    buffer.filled(len);
                    Ok(Progress::Done)
                }
                Err(error) => progress_of(error),
            },
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.read_into(buffer),
        }
    }

    /// Writes the contents of the buffer, as far as possible.
    pub(super) fn write_from(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        match self {
            Self::Plain(socket) => {
                while !buffer.is_empty() {
                    match retry_interrupted(|| socket.write(buffer.data())) {
                        Ok(len) => drop(buffer.consume(len)),
                        Err(error) => return progress_of(error),
                    }
                }
                Ok(Progress::Done)
            }
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.write_from(buffer),
        }
    }

    /// Reports whether the TLS handshake is incomplete.
    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.is_handshaking(),
        }
    }

    /// Returns the certificate of the peer, in DER; none without TLS, and before the end of the
    /// handshake.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.certificate(),
        }
    }

    /// Ends the sending direction, after all written octets.
    pub(super) fn finish(&mut self) {
        #[cfg(feature = "tls")]
        if let Self::Tls(tls) = self {
            tls.send_close_notify();
        }
        // A socket that is not connected any more needs no shutdown.
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// Repeats a call that a signal interrupted.
pub(super) fn retry_interrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(super) fn progress_of(error: io::Error) -> io::Result<Progress> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(Progress::Blocked) } else { Err(error) }
}

/// Sets the options of every socket: no delay (Nagle's algorithm off), and a timeout for silent
/// peers.
pub(super) fn prepare(socket: &TcpStream, peer_timeout: Duration) -> io::Result<()> {
    let number = |value: u64| libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    let fd = socket.as_fd();
    let set = |level, name, value: libc::c_int| set_option(fd, level, name, &value);
    // Three keepalive probes in the last part of the timeout.
    let seconds = peer_timeout.as_secs().max(4);
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, number(seconds.div_ceil(4)))?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, number(seconds.div_ceil(4)))?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3)?;
    let millis = u64::try_from(peer_timeout.as_millis()).unwrap_or(u64::MAX);
    set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, number(millis))
}

/// Reports whether a begun connection is open. A connection to itself counts as an error; it can
/// occur at a port without a listener.
pub(super) fn is_open(socket: &TcpStream, peer: SocketAddr) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) if socket.local_addr()? == peer => Err(io::ErrorKind::ConnectionRefused.into()),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}
