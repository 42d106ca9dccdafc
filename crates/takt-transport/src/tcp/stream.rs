//! The byte stream of one connection: plain TCP, or TLS on it. Nothing here blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::buffer::Buffer;
use crate::udp::syscall::set_option;

/// What a call has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All that there was is done.
    Done,
    /// The other side, or the network, is slower.
    Blocked,
    /// The other side sends nothing more.
    Ended,
}

/// A socket, and what encrypts on it.
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

    /// Reads once; may leave something in the kernel, never anywhere else.
    pub(super) fn read_into(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        match self {
            Self::Plain(socket) => match retried(|| socket.read(buffer.space())) {
                Ok(0) => Ok(Progress::Ended),
                Ok(len) => {
                    buffer.filled(len);
                    Ok(Progress::Done)
                }
                Err(error) => blocked(error),
            },
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.read_into(buffer),
        }
    }

    /// Writes what is in the buffer, as far as it goes.
    pub(super) fn write_from(&mut self, buffer: &mut Buffer) -> io::Result<Progress> {
        match self {
            Self::Plain(socket) => {
                while !buffer.is_empty() {
                    match retried(|| socket.write(buffer.data())) {
                        Ok(len) => drop(buffer.consume(len)),
                        Err(error) => return blocked(error),
                    }
                }
                Ok(Progress::Done)
            }
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.write_from(buffer),
        }
    }

    /// Whether the two ends are still to agree on keys.
    pub(super) fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.is_handshaking(),
        }
    }

    /// The certificate of the other side, in DER; none without TLS, and before the end of the handshake.
    pub(super) fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.certificate(),
        }
    }

    /// Tells the other side that nothing more comes, after all that was written.
    pub(super) fn finish(&mut self) {
        #[cfg(feature = "tls")]
        if let Self::Tls(tls) = self {
            tls.say_goodbye();
        }
        // A socket that is not connected any more needs no goodbye.
        let _ = self.socket().shutdown(Shutdown::Write);
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// Calls again after a signal.
pub(super) fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub(super) fn blocked(error: io::Error) -> io::Result<Progress> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(Progress::Blocked) } else { Err(error) }
}

/// What every socket is set to: no waiting for more to send, and death after so long a silence.
pub(super) fn prepare(socket: &TcpStream, silence_max: Duration) -> io::Result<()> {
    let number = |value: u64| libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    let fd = socket.as_fd();
    let set = |level, name, value: libc::c_int| set_option(fd, level, name, &value);
    // Three questions in the last part of the silence.
    let seconds = silence_max.as_secs().max(4);
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, number(seconds.div_ceil(4)))?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, number(seconds.div_ceil(4)))?;
    set(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3)?;
    let millis = u64::try_from(silence_max.as_millis()).unwrap_or(u64::MAX);
    set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, number(millis))
}

/// Whether a connection that was begun is open. One with itself is none: that may happen where nobody listens.
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
