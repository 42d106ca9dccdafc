//! A packet socket (`packet(7)`) that sends and receives Ethernet frames: hosts in VLANs on a kernel without VLAN interfaces.
//!
//! The kernel takes the outer tag of a frame away before it hands the frame over.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Frames of one interface.
#[derive(Debug)]
pub struct FrameSocket {
    file: File,
    address: [u8; 6],
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

const LEN: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

impl FrameSocket {
    /// Opens a socket on an interface of the thread's network namespace.
    ///
    /// # Errors
    /// `EPERM`: not root. `ENODEV`: there is no such interface.
    pub fn open(interface: &str) -> io::Result<Self> {
        let name = std::ffi::CString::new(interface).map_err(io::Error::other)?;
        // SAFETY: the name ends with 0.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // With protocol 0 it receives nothing before it is bound to its interface.
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: it was opened above and has no other owner.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: zeros are an address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
        // SAFETY: the address is of its family, and as long as is said.
        check(unsafe { libc::bind(fd, (&raw const address).cast(), LEN) })?;
        let mut len = LEN;
        // SAFETY: the kernel writes as much as there is room for.
        check(unsafe { libc::getsockname(fd, (&raw mut address).cast(), &raw mut len) })?;
        let [a, b, c, d, e, f, ..] = address.sll_addr;
        Ok(Self { file: File::from(owned), address: [a, b, c, d, e, f] })
    }

    /// The Ethernet address of the interface.
    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.file).write_all(frame)
    }

    /// Waits for a frame, for a while at most; `None` if none came. Frames that others on this host send come, too.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive<'a>(&self, buffer: &'a mut [u8], patience: Duration) -> io::Result<Option<&'a [u8]>> {
        let mut wanted = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up, so that a short wait is none that returns at once.
        let millis = i32::try_from(patience.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        // SAFETY: one descriptor.
        match check(unsafe { libc::poll(&raw mut wanted, 1, millis) }) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(None),
            other => other?,
        };
        let len = (&self.file).read(buffer)?;
        Ok(Some(&buffer[..len]))
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::FrameSocket;
    use crate::{not_run, require};

    #[test]
    fn frames_of_loopback_are_received() {
        if let Err(why) = require::root() {
            return not_run(why);
        }
        let socket = FrameSocket::open("lo").expect("root may");
        assert_eq!(socket.address(), [0; 6]);
        let target = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let payload = format!("frame socket of {}", std::process::id());
        target.send_to(payload.as_bytes(), target.local_addr().expect("it is bound")).expect("there is a route");
        let mut buffer = vec![0; 65_550];
        loop {
            let frame = socket.receive(&mut buffer, Duration::from_secs(60)).expect("it can").expect("it came");
            if frame.ends_with(payload.as_bytes()) {
                return;
            }
        }
    }

    #[test]
    fn unknown_interface_is_an_error() {
        assert!(FrameSocket::open("no-such-interface").is_err());
    }
}
