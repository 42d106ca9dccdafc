//! System calls of UDP sockets, epoll, timers, netlink and interface queries.
//!
//! Every function here is safe to call. The argument is the same throughout: each pointer given to
//! the kernel comes from a Rust reference that outlives the call, with the length of its referent;
//! the kernel keeps none of them after it returned. Headers with pointers in them (`msghdr`,
//! `iovec`) are built on the stack for each call and never stored, so nothing here is
//! self-referential and everything stored is plain data.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::address::{Control, Family, SockAddr};

/// Maximum number of datagrams in one call.
pub(crate) const BATCH: usize = 64;

/// Returns the result of a system call, or the error that the kernel reported.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Opens a non-blocking UDP socket that child processes do not inherit.
pub(crate) fn udp_socket(family: Family) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(family.domain(), kind, libc::IPPROTO_UDP) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens a non-blocking TCP socket, and begins to connect it to `peer`.
pub(crate) fn begin_connection(family: Family, peer: &SockAddr) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(family.domain(), kind, libc::IPPROTO_TCP) })?;
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    match connect(socket.as_fd(), peer) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        result => result.map(|()| socket),
    }
}

/// Binds a socket to an address.
pub(crate) fn bind(fd: BorrowedFd<'_>, address: &SockAddr) -> io::Result<()> {
    // SAFETY: `address` holds `len()` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr().cast(), address.len()) })?;
    Ok(())
}

/// Sets the peer of a datagram socket, which sends nothing, or begins a TCP connection.
pub(crate) fn connect(fd: BorrowedFd<'_>, peer: &SockAddr) -> io::Result<()> {
    // SAFETY: `peer` holds `len()` valid bytes of a socket address.
    check(unsafe { libc::connect(fd.as_raw_fd(), peer.as_ptr().cast(), peer.len()) })?;
    Ok(())
}

/// Opens a socket that sends from the address of `unconnected`, with the same buffer size, but to
/// `peer` alone. The caller keeps `unconnected` open meanwhile.
pub(crate) fn connected_socket(unconnected: RawFd, family: Family, peer: &SockAddr) -> io::Result<OwnedFd> {
    // SAFETY: the caller keeps the descriptor open.
    let unconnected = unsafe { BorrowedFd::borrow_raw(unconnected) };
    let connected = udp_socket(family)?;
    bind(connected.as_fd(), &local_address(unconnected)?.with_port(0))?;
    // The kernel reports twice the requested size.
    let send_buffer = int_option(unconnected, libc::SOL_SOCKET, libc::SO_SNDBUF)? / 2;
    set_option(connected.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &send_buffer)?;
    connect(connected.as_fd(), peer)?;
    Ok(connected)
}

/// Returns the address that a socket is bound to.
pub(crate) fn local_address(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    let mut address = SockAddr::EMPTY;
    let mut len = address.len();
    // SAFETY: `address` has room for `len` bytes; any bytes are valid in it.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), address.as_mut_ptr().cast(), &mut len) })?;
    Ok(address)
}

/// Plain data without padding that the kernel accepts as a socket option.
pub(crate) trait OptionValue: Copy {}
impl OptionValue for libc::c_int {}
impl OptionValue for libc::ip_mreqn {}
impl OptionValue for libc::ipv6_mreq {}

/// Sets a socket option.
pub(crate) fn set_option<T: OptionValue>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    let value = ptr::from_ref(value).cast();
    // SAFETY: `value` points to `len` initialized bytes.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value, len) })?;
    Ok(())
}

/// Reads a socket option that is an `int`.
pub(crate) fn int_option(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let at = ptr::from_mut(&mut value).cast();
    // SAFETY: `value` has room for `len` bytes; any bytes make an int.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &mut len) })?;
    Ok(value)
}

/// Returns the number of datagrams that did not fit into the receive buffer of the socket.
pub(crate) fn drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    /// `SK_MEMINFO_VARS` of the kernel's `linux/sock_diag.h`.
    const COUNTERS: usize = libc::SK_MEMINFO_DROPS as usize + 1;
    let mut counters = [0_u32; COUNTERS];
    let mut len = size_of_val(&counters) as libc::socklen_t;
    let at = counters.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes to `counters`, which is as long.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, at, &mut len) })?;
    Ok(counters[libc::SK_MEMINFO_DROPS as usize])
}

/// Datagram to be sent: plain data, no pointers.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    /// Socket, which the caller keeps open while this is queued.
    pub(crate) fd: RawFd,
    /// Whether the socket is connected to `address` already.
    pub(crate) connected: bool,
    /// Offset of the payload in the send buffer.
    pub(crate) offset: u32,
    /// Length of the payload in bytes.
    pub(crate) len: u32,
    pub(crate) address: SockAddr,
    /// Index of the control message that goes with it.
    pub(crate) control: Option<u16>,
}

impl Outgoing {
    /// Returns the destination for the kernel: none for a connected socket.
    fn name(&self) -> (*const u8, u32) {
        if self.connected { (std::ptr::null(), 0) } else { (self.address.as_ptr(), self.address.len()) }
    }
}

/// Sends one datagram of `buffer` that needs no control message.
pub(crate) fn send_one(message: &Outgoing, buffer: &[u8]) -> io::Result<()> {
    let payload = payload(message, buffer);
    let (name, name_len) = message.name();
    // SAFETY: payload and address are valid for the lengths given, for reads.
    let sent = unsafe {
        libc::sendto(
            message.fd,
            payload.as_ptr().cast(),
            payload.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            name.cast(),
            name_len,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends one datagram that begins in `buffer` and continues with `rest`.
pub(crate) fn send_gathered(
    message: &Outgoing,
    control: Option<&Control>,
    buffer: &[u8],
    rest: &[u8],
) -> io::Result<()> {
    let vector = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut vectors = [vector(payload(message, buffer)), vector(rest)];
    let (name, name_len) = message.name();
    let (control, control_len) = control.map_or((ptr::null(), 0), |control| (control.as_ptr(), control.len()));
    let header =
        header(name.cast_mut(), name_len, vectors.as_mut_ptr(), vectors.len(), control.cast_mut(), control_len);
    // SAFETY: the header's pointers lead to `message`, `control` and `vectors`, and those to
    // `buffer` and `rest`, all alive and of the lengths given. Sending only reads.
    let sent = unsafe { libc::sendmsg(message.fd, &header.msg_hdr, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends datagrams of `buffer` through the socket of the first one, in order; at most [`BATCH`].
/// `super_packet` returns how many of the remaining ones, from the first, are sent as one unit by
/// segmentation offload: at least 1, at most all. Returns how many datagrams were accepted; an
/// error concerns the first unit.
pub(crate) fn send_batch(
    messages: &[Outgoing],
    controls: &[Control],
    buffer: &[u8],
    super_packet: impl Fn(&[Outgoing]) -> usize,
) -> io::Result<usize> {
    let messages = &messages[..messages.len().min(BATCH)];
    let Some(first) = messages.first() else {
        return Ok(0);
    };
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut segments = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    // End of the datagrams of each header.
    let mut ends = [0; BATCH];
    for (vector, message) in vectors.iter_mut().zip(messages) {
        let payload = payload(message, buffer);
        vector.write(libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() });
    }
    let (mut count, mut at) = (0, 0);
    while let Some(message) = messages.get(at) {
        let len = super_packet(&messages[at..]).clamp(1, messages.len() - at);
        let (name, name_len) = message.name();
        let pktinfo = message.control.and_then(|at| controls.get(usize::from(at)));
        let control = match u16::try_from(message.len) {
            Ok(each) if len > 1 => Some(&*segments[count].write(Control::segment(each, pktinfo))),
            _ => pktinfo,
        };
        let (control, control_len) = control.map_or((ptr::null(), 0), |control| (control.as_ptr(), control.len()));
        let vector = vectors[at].as_mut_ptr();
        headers[count].write(header(name.cast_mut(), name_len, vector, len, control.cast_mut(), control_len));
        at += len;
        ends[count] = at;
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers were initialized above. Their pointers lead to `messages`,
    // `controls`, `segments`, `buffer` and `vectors`, all alive. Each header refers to as many
    // consecutive vectors as its unit has datagrams, and all of those of `messages` were
    // initialized. Sending only reads.
    let sent = unsafe { libc::sendmmsg(first.fd, headers.as_mut_ptr().cast(), count as libc::c_uint, flags) };
    Ok(match check(sent)? as usize {
        0 => 0,
        sent => ends[sent - 1],
    })
}

/// Checks that the kernel supports segmentation offload (`UDP_SEGMENT`), without changing anything.
pub(crate) fn check_gso(fd: BorrowedFd<'_>) -> io::Result<()> {
    let none: libc::c_int = 0;
    set_option(fd, libc::IPPROTO_UDP, libc::UDP_SEGMENT, &none)
}

/// Enables coalescing (`UDP_GRO`). From then on, datagrams must be received with room for control
/// messages.
pub(crate) fn enable_gro(fd: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(fd, libc::IPPROTO_UDP, libc::UDP_GRO, &on)
}

fn payload<'a>(message: &Outgoing, buffer: &'a [u8]) -> &'a [u8] {
    &buffer[message.offset as usize..][..message.len as usize]
}

fn header(
    name: *mut u8,
    name_len: u32,
    vectors: *mut libc::iovec,
    vectors_len: usize,
    control: *mut u8,
    control_len: usize,
) -> libc::mmsghdr {
    // SAFETY: all-zero is a valid value of this C structure (null pointers, zeros).
    let mut header: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_hdr.msg_name = name.cast();
    header.msg_hdr.msg_namelen = name_len;
    header.msg_hdr.msg_iov = vectors;
    header.msg_hdr.msg_iovlen = vectors_len as _;
    if control_len > 0 {
        header.msg_hdr.msg_control = control.cast();
        header.msg_hdr.msg_controllen = control_len as _;
    }
    header
}

/// Kernel metadata of one received datagram.
#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) len: u32,
    pub(crate) truncated: bool,
    pub(crate) address: SockAddr,
    pub(crate) control: Control,
}

impl Incoming {
    pub(crate) const EMPTY: Self = Self { len: 0, truncated: false, address: SockAddr::EMPTY, control: Control::EMPTY };
}

/// Receives up to `incoming.len()` (at most [`BATCH`]) datagrams; the i-th into `buffer[i *
/// stride..][..stride]`. Returns how many; `WouldBlock` if there are none.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    incoming: &mut [Incoming],
    buffer: &mut [u8],
    stride: usize,
) -> io::Result<usize> {
    let slots = buffer.chunks_exact_mut(stride);
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut count = 0;
    for (one, slot) in incoming.iter_mut().zip(slots).take(BATCH) {
        let vector = vectors[count].write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        headers[count].write(header(
            one.address.as_mut_ptr(),
            SockAddr::EMPTY.len(),
            vector,
            1,
            one.control.as_mut_ptr(),
            Control::CAPACITY,
        ));
        count += 1;
    }
    // SAFETY: the first `count` headers were initialized above. Their pointers lead to disjoint
    // elements of `incoming`, `buffer` and `vectors`, all alive, with their true lengths; the
    // kernel may write any bytes there.
    let received = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
        )
    };
    let received = check(received)? as usize;
    for (one, header) in incoming.iter_mut().zip(&headers[..received.min(count)]) {
        // SAFETY: `received <= count`, and those headers were initialized.
        let header = unsafe { header.assume_init_ref() };
        note(one, &header.msg_hdr, header.msg_len);
    }
    Ok(received)
}

/// Receives one datagram without control messages: the cheapest call, even more so without the
/// sender's address (`named` is false), which is then left empty.
pub(crate) fn receive_one(fd: BorrowedFd<'_>, one: &mut Incoming, slot: &mut [u8], named: bool) -> io::Result<()> {
    let mut name_len = SockAddr::EMPTY.len();
    let (name, name_len): (*mut u8, *mut libc::socklen_t) = match named {
        true => (one.address.as_mut_ptr(), &mut name_len),
        false => {
            one.address = SockAddr::EMPTY;
            (ptr::null_mut(), ptr::null_mut())
        }
    };
    // SAFETY: `slot` and the address, if requested, are alive, with their true lengths; the kernel
    // may write any bytes there.
    let len = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            slot.as_mut_ptr().cast(),
            slot.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            name.cast(),
            name_len,
        )
    };
    // With MSG_TRUNC, this is the length of the datagram, even if it did not fit.
    let Ok(len) = usize::try_from(len) else {
        return Err(io::Error::last_os_error());
    };
    one.truncated = len > slot.len();
    one.len = len.min(slot.len()) as u32;
    one.control.set_len(0);
    Ok(())
}

fn note(one: &mut Incoming, header: &libc::msghdr, len: u32) {
    one.len = len;
    one.truncated = header.msg_flags & libc::MSG_TRUNC != 0;
    #[allow(clippy::unnecessary_cast, reason = "a u32 in some C libraries")]
    one.control.set_len(header.msg_controllen as usize);
}

/// Creates an epoll instance.
pub(crate) fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Watches `fd` for input, level-triggered, reported as `token`. The kernel removes it when it is
/// closed.
pub(crate) fn epoll_add(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
    // SAFETY: `event` is alive during the call.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) })?;
    Ok(())
}

/// Watches like [`epoll_add`]; an error if `fd` is no open descriptor, or cannot be waited for.
pub(crate) fn epoll_add_raw(epoll: BorrowedFd<'_>, fd: RawFd, token: u64) -> io::Result<()> {
    epoll_add_for(epoll, fd, token, libc::EPOLLIN)
}

/// Watches like [`epoll_add_raw`], but an event wakes only one of the epoll instances that watch
/// `fd` this way: the first one, in the order of these calls, with a waiting thread. An error for
/// another epoll instance.
pub(crate) fn epoll_add_exclusive(epoll: BorrowedFd<'_>, fd: RawFd, token: u64) -> io::Result<()> {
    epoll_add_for(epoll, fd, token, libc::EPOLLIN | libc::EPOLLEXCLUSIVE)
}

fn epoll_add_for(epoll: BorrowedFd<'_>, fd: RawFd, token: u64, events: libc::c_int) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: token };
    // SAFETY: `event` is alive during the call. The kernel checks the descriptor.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
    Ok(())
}

/// Token of a timer that [`epoll_add_timer`] watches.
const TIMER_TOKEN: u64 = u64::MAX;

/// Watches a timer. Each expiry is reported once, and need not be read.
pub(crate) fn epoll_add_timer(epoll: BorrowedFd<'_>, timer: BorrowedFd<'_>) -> io::Result<()> {
    epoll_add_for(epoll, timer.as_raw_fd(), TIMER_TOKEN, libc::EPOLLIN | libc::EPOLLET)
}

/// Waits until a watched descriptor is ready, or the timeout expires. Returns the ready tokens,
/// which are below 64, as a bit set, and whether a watched timer has expired; at most [`BATCH`].
/// Needs Linux 5.11.
pub(crate) fn epoll_wait_bits(epoll: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<(u64, bool)> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
    let time = timeout.map(timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `events` has room for the stated number of events; `time` is null or points to a live
    // timespec; no signal mask is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            BATCH as libc::c_int,
            time,
            ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let tokens = events[..count as usize].iter().map(|event| event.u64);
    Ok(tokens.fold((0, false), |(bits, has_expired), token| match token {
        TIMER_TOKEN => (bits, true),
        _ => (bits | 1 << (token & 63), has_expired),
    }))
}

/// Converts a duration to a timespec.
fn timespec(span: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(span.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(span.subsec_nanos() as i32),
    }
}

/// Changes the events of a watched `fd`: input and, if `output`, room to send.
pub(crate) fn epoll_change(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>, token: u64, output: bool) -> io::Result<()> {
    let events = if output { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
    let mut event = libc::epoll_event { events: events as u32, u64: token };
    // SAFETY: `event` is alive during the call.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_MOD, fd.as_raw_fd(), &mut event) })?;
    Ok(())
}

/// Watches `fd`, and reports as `token` once that it has room to send, after
/// [`epoll_await_room`].
pub(crate) fn epoll_add_output(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
    epoll_add_for(epoll, fd.as_raw_fd(), token, libc::EPOLLONESHOT)
}

/// Reports once when `fd`, which [`epoll_add_output`] added, has room to send.
pub(crate) fn epoll_await_room(epoll: BorrowedFd<'_>, fd: RawFd, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events: (libc::EPOLLOUT | libc::EPOLLONESHOT) as u32, u64: token };
    // SAFETY: `event` is alive during the call. The kernel checks the descriptor.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_MOD, fd, &mut event) })?;
    Ok(())
}

/// Stops watching `fd`.
pub(crate) fn epoll_remove(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the kernel ignores the event.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), ptr::null_mut()) })?;
    Ok(())
}

/// Creates a non-blocking timer that is not armed.
pub(crate) fn timer() -> io::Result<OwnedFd> {
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Arms a timer to expire once, after `delay`, which is not zero.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, delay: Duration) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::timespec {
        tv_sec: libc::time_t::try_from(delay.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: delay.subsec_nanos().into(),
    };
    let spec = libc::itimerspec { it_interval: never, it_value: once };
    // SAFETY: `spec` is alive during the call; the former value is not requested.
    check(unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &spec, ptr::null_mut()) })?;
    Ok(())
}

/// Returns the time of the monotonic clock in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable during the call, which cannot fail: Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Reports whether the calling thread has a real-time or deadline scheduling policy.
pub(crate) fn is_real_time() -> bool {
    // SAFETY: no pointers; 0 stands for the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

/// Calls `visit` with the token of each ready descriptor, at most [`BATCH`], without waiting.
/// Returns how many.
pub(crate) fn epoll_ready(epoll: BorrowedFd<'_>, mut visit: impl FnMut(u64)) -> io::Result<usize> {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
    // SAFETY: `events` has room for the stated number of events.
    let count =
        check(unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), BATCH as libc::c_int, 0) })? as usize;
    for event in &events[..count] {
        visit(event.u64);
    }
    Ok(count)
}

/// Opens a non-blocking netlink socket that receives changes of interfaces and addresses.
pub(crate) fn open_interface_events() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: as above.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all-zero is a valid value of this C structure.
    let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
    let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: `address` holds `len` initialized bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(fd)
}

/// Reads a portion of the messages of a netlink socket; `WouldBlock` if there are none.
pub(crate) fn read_interface_events(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is alive, with its true length; any bytes are valid in it.
    let len = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    usize::try_from(len).map_err(|_| io::Error::last_os_error())
}

/// Waits until one of the first [`BATCH`] of `fds` is readable. Returns the readable ones as a bit
/// set.
pub(crate) fn poll_readable(fds: &[RawFd], timeout: Option<Duration>) -> io::Result<u64> {
    const { assert!(BATCH <= 64, "a bit for each descriptor") };
    let mut polls = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; BATCH];
    let count = fds.len().min(BATCH);
    for (poll, fd) in polls.iter_mut().zip(fds) {
        poll.fd = *fd;
    }
    let time = timeout.map(timespec);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `polls` has `count` elements; `time` is null or points to a live
    // timespec; no signal mask is given. A closed descriptor is reported, not UB.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), count as libc::nfds_t, time, ptr::null()) };
    check(ready)?;
    let is_ready = |poll: &libc::pollfd| u64::from(poll.revents != 0);
    Ok(polls[..count].iter().rev().fold(0, |bits, poll| bits << 1 | is_ready(poll)))
}

/// Reports whether a datagram socket has room to send: its queued datagrams fill less than half of
/// its send buffer.
pub(crate) fn is_writable(fd: RawFd) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `poll` is one element, alive during the call. A closed descriptor is reported.
    let count = check(unsafe { libc::poll(&mut poll, 1, 0) })?;
    Ok(count > 0)
}

/// Creates a non-blocking eventfd.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Address of an interface, as `getifaddrs` lists them.
pub(crate) struct InterfaceAddress {
    pub(crate) name: String,
    pub(crate) flags: libc::c_uint,
    pub(crate) address: IpAddr,
    pub(crate) prefix_len: u8,
}

/// Returns all IP addresses of all interfaces of this network namespace.
pub(crate) fn interface_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `list` is written on success, and freed below, once.
    check(unsafe { libc::getifaddrs(&mut list) })?;
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: `next` is null or an element of the list, which is not freed yet.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: both are null or lead to socket addresses within the list.
        let (address, mask) = unsafe { (ip(entry.ifa_addr), ip(entry.ifa_netmask)) };
        let Some(address) = address else { continue };
        // SAFETY: `ifa_name` is a C string within the list.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        found.push(InterfaceAddress {
            name: name.to_string_lossy().into_owned(),
            flags: entry.ifa_flags,
            address,
            prefix_len: mask.map_or(0, ones),
        });
    }
    // SAFETY: `list` came from getifaddrs and is not used afterwards.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

fn ones(mask: IpAddr) -> u8 {
    let count = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    count as u8
}

/// # Safety
/// `address` is null or leads to a socket address that is complete for its family.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null or valid, as the caller promises; the family field comes first.
    let family = unsafe { address.as_ref() }?.sa_family;
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: of this family, so complete for it, as the caller promises.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: of this family, so complete for it, as the caller promises.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Returns the index of the named interface.
pub(crate) fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: `name` is a C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(index)
}

/// Returns the MTU of the named interface, queried through any socket.
pub(crate) fn interface_mtu(fd: BorrowedFd<'_>, name: &CStr) -> io::Result<usize> {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU of a live `ifreq`.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) })?;
    // SAFETY: on success that member of the union is the valid one.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or_default())
}
