//! System calls of the Unix sockets that carry the memory of connections and wake-ups.
//!
//! All sockets are of the type SEQPACKET, with names in the abstract namespace, which belongs to
//! the network namespace. Such a name is no file: it needs no common directory, and the kernel
//! removes it when its owner ends, for any reason. No call blocks.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::udp::syscall::check;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// Maximum number of descriptors in one message.
pub(super) const DESCRIPTORS: usize = 2;

/// Words of a control message for these descriptors, aligned as its header.
const CONTROL_WORDS: usize = 4;

/// Returns the octets of so many descriptors.
const fn descriptors_len(count: usize) -> u32 {
    (count * size_of::<libc::c_int>()) as u32
}

fn check_len(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the abstract address of a participant's name: `takt-shm-3/` and 16 hexadecimal digits.
/// The 3 is the version of everything on which two sides must agree.
fn address(name: u64) -> (libc::sockaddr_un, libc::socklen_t) {
    const PREFIX: &[u8] = b"\0takt-shm-3/";
    // SAFETY: all-zero is a valid value of this C structure.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let digits = (0..16).map(|digit| b"0123456789abcdef"[(name >> (60 - 4 * digit)) as usize & 15]);
    let mut len = size_of::<libc::sa_family_t>();
    for (to, from) in address.sun_path.iter_mut().zip(PREFIX.iter().copied().chain(digits)) {
        *to = from as libc::c_char;
        len += 1;
    }
    (address, len as libc::socklen_t)
}

/// Opens a listening socket of this name. An error if the name is taken.
pub(super) fn listen_at(name: u64) -> io::Result<OwnedFd> {
    let fd = socket()?;
    let (address, len) = address(name);
    // SAFETY: `address` holds `len` initialized bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) })?;
    Ok(fd)
}

/// Connects to the listener of this name. `WouldBlock` if its backlog is full.
pub(super) fn connect_to(name: u64) -> io::Result<OwnedFd> {
    let fd = socket()?;
    let (address, len) = address(name);
    // SAFETY: `address` holds `len` initialized bytes of a socket address.
    check(unsafe { libc::connect(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(fd)
}

/// Refuses all further connections, even if another process has the descriptor: a child has it
/// between `fork` and `exec`.
pub(super) fn set_owner_only(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) })?;
    Ok(())
}

/// Accepts the next connection.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the address is not requested. A result >= 0 is a new descriptor without another
    // owner.
    let fd = check(unsafe { libc::accept4(listener.as_raw_fd(), ptr::null_mut(), ptr::null_mut(), flags) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Credentials of the process that connected or listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) user: u32,
    /// Process id; 0 if the process is not visible here.
    pub(crate) process: u32,
}

impl Peer {
    pub(super) fn is_this_process(&self) -> bool {
        self.process == std::process::id()
    }
}

/// Returns the credentials of the peer, as the kernel reports them.
pub(crate) fn peer(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let at = ptr::from_mut(&mut peer).cast();
    // SAFETY: `peer` has room for `len` bytes; any bytes are valid in it.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len) })?;
    Ok(Peer { user: peer.uid, process: u32::try_from(peer.pid).unwrap_or(0) })
}

/// Returns the effective user of this process.
pub(crate) fn own_user() -> u32 {
    // SAFETY: no pointers; it cannot fail.
    unsafe { libc::geteuid() }
}

/// Returns the kernel's cookie of the network namespace of a socket; unique until the next boot.
/// Since Linux 5.14.
pub(super) fn network_namespace(fd: BorrowedFd<'_>) -> io::Result<u64> {
    /// `SO_NETNS_COOKIE` of the kernel's `asm-generic/socket.h`.
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let mut cookie = 0_u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    let at = ptr::from_mut(&mut cookie).cast();
    // SAFETY: `cookie` has room for `len` bytes; any bytes are valid in it.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, at, &mut len) })?;
    Ok(cookie)
}

/// Returns the current limit of descriptors of this process.
pub(super) fn descriptors_max() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is alive and written by the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// Returns the maximum size of a file of this process, in bytes.
pub(super) fn file_size_max() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is alive and written by the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) })?;
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// Changes the effective user of the calling thread alone; false without the privilege.
#[cfg(test)]
pub(super) fn act_as(user: u32) -> bool {
    // SAFETY: no pointers. The C library's function would change all threads; the system call
    // changes this one.
    unsafe { libc::syscall(libc::SYS_setresuid, -1, user, -1) == 0 }
}

/// Returns random bits.
pub(super) fn random() -> io::Result<u64> {
    let mut bits = [0; 8];
    // SAFETY: `bits` has room for its own length; any bytes are valid in it.
    let count = check_len(unsafe { libc::getrandom(bits.as_mut_ptr().cast(), bits.len(), 0) })?;
    if count == bits.len() { Ok(u64::from_ne_bytes(bits)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Sends a message with up to [`DESCRIPTORS`] descriptors.
pub(super) fn send(fd: BorrowedFd<'_>, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if descriptors.len() > DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut vector = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: all-zero is a valid value of this C structure.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let len = descriptors_len(descriptors.len());
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: arithmetic.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(len) } as _;
        // SAFETY: `control` has room for a header with `DESCRIPTORS` descriptors, and is aligned
        // for it; so the first header is there and its data too.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(len) as _;
            let data = libc::CMSG_DATA(first).cast::<libc::c_int>();
            for (at, descriptor) in descriptors.iter().enumerate() {
                data.add(at).write_unaligned(descriptor.as_raw_fd());
            }
        }
    }
    // SAFETY: the header's pointers lead to `message`, `vector` and `control`, all alive; sending
    // only reads.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) })?;
    Ok(())
}

/// Received message: its length, whether it was truncated, and the descriptors that came with it.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) len: usize,
    pub(super) truncated: bool,
    pub(super) descriptors: [Option<OwnedFd>; DESCRIPTORS],
}

/// Receives a message. A length of 0 means that the peer is gone.
pub(super) fn receive(fd: BorrowedFd<'_>, message: &mut [u8]) -> io::Result<Received> {
    let mut vector = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: all-zero is a valid value of this C structure.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    // The kernel closes further descriptors that a peer sends.
    // SAFETY: arithmetic.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(descriptors_len(DESCRIPTORS)) } as _;
    // SAFETY: the header's pointers lead to `message`, `vector` and `control`, all alive, with
    // their true lengths.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) };
    let len = check_len(len)?;
    let truncated = header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    Ok(Received { len, truncated, descriptors: descriptors(&header) })
}

/// Extracts the descriptors from a control message.
fn descriptors(header: &libc::msghdr) -> [Option<OwnedFd>; DESCRIPTORS] {
    let mut found = [const { None }; DESCRIPTORS];
    // SAFETY: the kernel has filled in the control messages and their length, within the buffer
    // that is alive.
    unsafe {
        let Some(first) = libc::CMSG_FIRSTHDR(header).as_ref() else { return found };
        if first.cmsg_level != libc::SOL_SOCKET || first.cmsg_type != libc::SCM_RIGHTS {
            return found;
        }
        #[allow(clippy::unnecessary_cast, reason = "a u32 in some C libraries")]
        let bytes = first.cmsg_len as usize - libc::CMSG_LEN(0) as usize;
        let data = libc::CMSG_DATA(first).cast::<libc::c_int>();
        for at in 0..bytes / size_of::<libc::c_int>() {
            // Each is a new descriptor without another owner.
            let descriptor = OwnedFd::from_raw_fd(data.add(at).read_unaligned());
            // Surplus descriptors are closed.
            if let Some(slot) = found.get_mut(at) {
                *slot = Some(descriptor);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd, OwnedFd) {
        let name = random().expect("randomness");
        let listener = listen_at(name).expect("the name is not in use");
        let caller = connect_to(name).expect("the peer listens");
        let accepted = accept(listener.as_fd()).expect("the caller connected");
        (listener, caller, accepted)
    }

    #[test]
    fn name_is_exclusive_and_free_after_its_owner() {
        let name = random().expect("randomness");
        let refused = |result: io::Result<OwnedFd>| result.map(drop).expect_err("the peer is gone").kind();
        assert_eq!(refused(connect_to(name)), io::ErrorKind::ConnectionRefused);
        let listener = listen_at(name).expect("the name is not in use");
        assert_eq!(refused(listen_at(name)), io::ErrorKind::AddrInUse);
        assert_eq!(refused(accept(listener.as_fd())), io::ErrorKind::WouldBlock);
        drop(listener);
        assert_eq!(refused(connect_to(name)), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn both_ends_know_the_user_of_the_peer() {
        let (_listener, caller, accepted) = pair();
        let us = Peer { user: own_user(), process: std::process::id() };
        assert_eq!(peer(caller.as_fd()).expect("connected"), us);
        assert_eq!(peer(accepted.as_fd()).expect("connected"), us);
    }

    #[test]
    fn descriptors_are_handed_over() {
        let (_listener, caller, accepted) = pair();
        let file = File::open("/proc/self/comm").expect("the file exists");
        send(caller.as_fd(), b"hello", &[file.as_fd(), caller.as_fd()]).expect("the write succeeds");
        let mut message = [0; 16];
        let received = receive(accepted.as_fd(), &mut message).expect("a message is available");
        assert_eq!((received.len, received.truncated), (5, false));
        let mut text = String::new();
        let [Some(first), Some(_)] = received.descriptors else { panic!("expected two descriptors") };
        File::from(first).read_to_string(&mut text).expect("readable");
        assert!(!text.is_empty());
        send(caller.as_fd(), &[7; 17], &[]).expect("the buffer has space");
        let received = receive(accepted.as_fd(), &mut message).expect("a message is available");
        assert!(received.truncated && received.descriptors.iter().all(Option::is_none));
    }

    #[test]
    fn end_of_a_connection_is_detected() {
        let (_listener, caller, accepted) = pair();
        let error = receive(accepted.as_fd(), &mut [0; 4]).expect_err("no message was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(caller);
        assert_eq!(receive(accepted.as_fd(), &mut [0; 4]).expect("the end of the stream").len, 0);
        let error = send(accepted.as_fd(), &[1], &[]).expect_err("the peer is gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn network_namespace_has_a_cookie() {
        let (listener, caller, _) = pair();
        let cookie = network_namespace(listener.as_fd()).expect("Linux 5.14");
        assert_eq!(network_namespace(caller.as_fd()).expect("Linux 5.14"), cookie);
    }
}
