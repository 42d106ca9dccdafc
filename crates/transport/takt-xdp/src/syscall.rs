//! System calls of AF_XDP, netlink and Unix sockets, capabilities and interface queries.
//!
//! Every function is safe to call. The argument is the same throughout: each pointer given to the
//! kernel comes from a Rust reference that outlives the call, with the length of its referent, and
//! the kernel keeps none of them.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use takt_packet::MacAddress;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Opens a socket that child processes do not inherit.
fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers. A result >= 0 is a new descriptor without another owner.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens an AF_XDP socket.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_XDP, libc::SOCK_RAW, 0)
}

/// Opens a routing netlink socket, subscribed to `groups`.
pub(crate) fn route_socket(groups: u32) -> io::Result<OwnedFd> {
    let fd = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::NETLINK_ROUTE)?;
    // SAFETY: all-zero is a valid value of this C structure.
    let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = groups;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` holds `len` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(fd)
}

/// Plain data that the kernel reads or writes as a socket option.
///
/// # Safety
/// Any bytes must be a value of the type.
pub(crate) unsafe trait OptionValue: Copy {}
// SAFETY: integers, or structures of integers without invalid values.
unsafe impl OptionValue for libc::c_int {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl OptionValue for libc::xdp_options {}

/// Sets an option of an AF_XDP socket. For an option with addresses in it (`XDP_UMEM_REG`), the
/// caller keeps the memory valid as long as the socket lives; the kernel pins the pages, so it
/// never writes anywhere else.
pub(crate) fn set_xdp_option<T: OptionValue>(fd: BorrowedFd<'_>, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` points to `len` initialized bytes.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, ptr::from_ref(value).cast(), len) })?;
    Ok(())
}

/// Reads an option of an AF_XDP socket. Fields that an older kernel does not know are zero.
pub(crate) fn xdp_option<T: OptionValue>(fd: BorrowedFd<'_>, name: libc::c_int) -> io::Result<T> {
    // SAFETY: any bytes are a value of `T`.
    let mut value: T = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut len = size_of::<T>() as libc::socklen_t;
    let at = ptr::from_mut(&mut value).cast();
    // SAFETY: `value` has room for `len` bytes.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, at, &mut len) })?;
    Ok(value)
}

/// Binds an AF_XDP socket to a queue of an interface. With the frames of another socket, it takes
/// over the flags of that socket.
pub(crate) fn bind_xdp(
    fd: BorrowedFd<'_>,
    ifindex: u32,
    queue: u32,
    flags: u16,
    frames_of: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if frames_of.is_some() { libc::XDP_SHARED_UMEM } else { flags },
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: frames_of.map_or(0, |other| other.as_raw_fd() as u32),
    };
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` holds `len` valid bytes of a socket address.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })?;
    Ok(())
}

/// Makes the kernel process the transmit ring.
pub(crate) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is pointed to.
    let sent = unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends bytes on a connected or netlink socket.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: `bytes` is valid for its length, for reads.
    let sent = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Receives one message; returns its length, even if it was truncated.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: `into` is valid for its length; the kernel may write any bytes there.
    let len = unsafe { libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(len).map_err(|_| io::Error::last_os_error())
}

/// Maximum number of descriptors in one message.
const DESCRIPTORS_MAX: usize = 4;

/// Words of a control message for these descriptors, aligned as its header.
const CONTROL_WORDS: usize = 8;

/// Returns the octets of so many descriptors.
const fn descriptors_len(count: usize) -> u32 {
    (count * size_of::<libc::c_int>()) as u32
}

/// Sends a message with descriptors on a connected Unix socket.
pub(crate) fn send_with(fd: BorrowedFd<'_>, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!((1..=DESCRIPTORS_MAX).contains(&descriptors.len()), "the control message has space");
    let mut vector = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: all-zero is a valid value of this C structure.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    let len = descriptors_len(descriptors.len());
    // SAFETY: arithmetic.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(len) } as _;
    // SAFETY: `control` has room for a header with `DESCRIPTORS_MAX` descriptors, and is aligned
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
    // SAFETY: the header's pointers lead to `message`, `vector` and `control`, all alive; sending
    // only reads.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        Ok(len) if len == message.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Receives a message of at most `into.len()` octets with up to `N` descriptors; missing ones are
/// `None`. A length of 0 means that the peer is gone.
pub(crate) fn receive_with<const N: usize>(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
) -> io::Result<(usize, [Option<OwnedFd>; N])> {
    const { assert!(N <= DESCRIPTORS_MAX, "the control message has space") };
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: all-zero is a valid value of this C structure.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    // SAFETY: arithmetic. The kernel closes further descriptors that the peer sends.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(descriptors_len(N)) } as _;
    // SAFETY: the header's pointers lead to `into`, `vector` and `control`, all alive, with room as
    // stated.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let mut descriptors = [const { None }; N];
    // SAFETY: the kernel has filled in the header and the control messages that it announces; only
    // their stated lengths are read. Each descriptor is new and has no other owner. The room is
    // aligned to 8 octets, so there may be one more than `N`.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&header);
        if !first.is_null() && (*first).cmsg_level == libc::SOL_SOCKET && (*first).cmsg_type == libc::SCM_RIGHTS {
            let data = libc::CMSG_DATA(first).cast::<libc::c_int>();
            let octets = ((*first).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            for at in 0..octets / size_of::<libc::c_int>() {
                let descriptor = OwnedFd::from_raw_fd(data.add(at).read_unaligned());
                if let Some(slot) = descriptors.get_mut(at) {
                    *slot = Some(descriptor);
                }
            }
        }
    }
    Ok((len, descriptors))
}

/// Returns the user at the other end of a connected Unix socket, as the kernel reports it.
pub(crate) fn peer_user(fd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let at = ptr::from_mut(&mut peer).cast();
    // SAFETY: `peer` has room for `len` bytes; any bytes are valid in it.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len) })?;
    Ok(peer.uid)
}

/// Returns the effective user of this process.
pub(crate) fn own_user() -> u32 {
    // SAFETY: no pointers; it cannot fail.
    unsafe { libc::geteuid() }
}

/// `struct __user_cap_header_struct` of `linux/capability.h`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

/// Version 3, for the calling thread: two structures of three sets of 32 bits each.
const CAPABILITIES: CapabilityHeader = CapabilityHeader { version: 0x2008_0522, pid: 0 };

/// Returns the capabilities of the calling thread as bit sets: effective, permitted, inheritable.
pub(crate) fn capabilities() -> io::Result<[u64; 3]> {
    let (mut header, mut low_and_high) = (CAPABILITIES, [[0_u32; 3]; 2]);
    // SAFETY: the call reads and writes the header, and writes two structures of three numbers
    // each.
    let result =
        unsafe { libc::syscall(libc::SYS_capget, ptr::from_mut(&mut header), ptr::from_mut(&mut low_and_high)) };
    check(result as libc::c_int)?;
    let [low, high] = low_and_high;
    Ok(std::array::from_fn(|set| u64::from(high[set]) << 32 | u64::from(low[set])))
}

/// Sets the capabilities; removing some is always possible.
pub(crate) fn set_capabilities(sets: [u64; 3]) -> io::Result<()> {
    let (mut header, low_and_high) = (CAPABILITIES, [sets.map(|set| set as u32), sets.map(|set| (set >> 32) as u32)]);
    // SAFETY: the call reads and writes the header, and reads two structures of three numbers each.
    let result = unsafe { libc::syscall(libc::SYS_capset, ptr::from_mut(&mut header), ptr::from_ref(&low_and_high)) };
    check(result as libc::c_int).map(drop)
}

/// Blocks all signals in the calling thread, so that other threads handle them.
pub(crate) fn block_signals() {
    // SAFETY: all-zero is a valid value of this C structure; both calls get a pointer to it, and
    // nothing else is written to.
    unsafe {
        let mut all: libc::sigset_t = MaybeUninit::zeroed().assume_init();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, ptr::null_mut());
    }
}

/// Makes an interface request for this name.
fn request(name: &CStr) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid value of this C structure.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    let name = name.to_bytes();
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Returns the current number of receive queues of an interface; 1 for a driver that reports no
/// queues. `any` is any socket of its network namespace.
pub(crate) fn receive_queues(any: BorrowedFd<'_>, name: &CStr) -> io::Result<u32> {
    /// `ETHTOOL_GCHANNELS` and `struct ethtool_channels` of `linux/ethtool.h`: command; maximum
    /// numbers of receive, transmit, other and combined channels; their current numbers.
    const GET_CHANNELS: u32 = 0x3c;
    const RX: usize = 5;
    const COMBINED: usize = 8;
    let mut channels = [0_u32; 9];
    channels[0] = GET_CHANNELS;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    // SAFETY: the request reads the name, which ends in a zero, and reads and writes `channels`,
    // which has the size of that structure.
    match check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, ptr::from_mut(&mut request)) }) {
        Ok(_) => Ok((channels[RX] + channels[COMBINED]).max(1)),
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(e) => Err(e),
    }
}

/// Returns the name of an interface's driver; empty for a driver that does not report it. `any` is
/// any socket of its network namespace.
pub(crate) fn driver(any: BorrowedFd<'_>, name: &CStr) -> io::Result<String> {
    /// `ETHTOOL_GDRVINFO` and `struct ethtool_drvinfo` of `linux/ethtool.h`: the command, the name
    /// of the driver in 32 octets, and more.
    const GET_DRIVER: u32 = 0x3;
    const WORDS: usize = 196 / 4;
    let mut info = [0_u32; WORDS];
    info[0] = GET_DRIVER;
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
    // SAFETY: the request reads the name, which ends in a zero, and reads and writes `info`, which
    // has the size of that structure.
    match check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, ptr::from_mut(&mut request)) }) {
        Ok(_) => {
            let octets = info[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|octet| *octet != 0);
            Ok(String::from_utf8_lossy(&octets.collect::<Vec<u8>>()).into_owned())
        }
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(String::new()),
        Err(e) => Err(e),
    }
}

/// Returns the hardware address of an interface; an error if it is not Ethernet. `any` is any
/// socket of its network namespace.
pub(crate) fn hardware_address(any: BorrowedFd<'_>, name: &CStr) -> io::Result<MacAddress> {
    let mut request = request(name)?;
    // SAFETY: the request reads the name, which ends in a zero, and writes the address to the
    // structure.
    check(unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFHWADDR as _, ptr::from_mut(&mut request)) })?;
    // SAFETY: the kernel has filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    if address.sa_family != libc::ARPHRD_ETHER && address.sa_family != libc::ARPHRD_LOOPBACK {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "not an Ethernet interface"));
    }
    let octet = |at: usize| address.sa_data[at] as u8;
    Ok(MacAddress([octet(0), octet(1), octet(2), octet(3), octet(4), octet(5)]))
}
