//! Minimal netlink client (netlink(7)): one request, all its replies.
//!
//! rtnetlink covers links, addresses, routes and queueing disciplines. Generic netlink covers
//! families with a name, such as `ethtool` and `netdev`. Replies of the kernel are parsed with
//! bounds checks, like untrusted input. Octets are in host byte order, as in netlink. The client
//! does not subscribe to notifications.

//!
//! | module | content |
//! |---|---|
//! | [`link`] | links, addresses, routes |
//! | [`bridge`] | bridges of the kernel |
//! | [`neighbor`] | static neighbor entries |
//! | [`feature`] | features of an interface, such as checksum offload |
//! | [`traffic`] | HTB, FIFOs, filters by DSCP |
//! | [`loss`] | random loss of frames |
//! | [`strict_priority`] | classes of an interface in strict priority |
//! | [`frame_socket`] | Ethernet frames, sent and captured with their timestamps |
//! | [`packet_socket`] | packet sockets and their buffer sizes |

#![deny(unsafe_code)]

pub mod bridge;
pub mod feature;
pub mod frame_socket;
pub mod link;
pub mod loss;
pub mod neighbor;
pub mod packet_socket;
pub mod strict_priority;
pub mod traffic;

use std::fs::File;
use std::io::{self, Read, Write};

const HEADER_LEN: usize = 16;
/// Flags of a request.
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
/// Flags of a request that creates an object, which must not exist.
pub const NEW: u16 = 0x400 | 0x200;
/// Flags of a request that creates an object or replaces an existing one.
pub const CREATE_OR_REPLACE: u16 = 0x400 | 0x100;
/// Types of replies.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Flags of an error reply: the request is not repeated; attributes follow.
const CAPPED: u16 = 0x100;
const ERROR_ATTRIBUTES: u16 = 0x200;
/// Attribute of an error reply with the message of the kernel.
const ERROR_MESSAGE: u16 = 1;

/// Bit of an attribute's type that indicates nested attributes.
const NESTED: u16 = 0x8000;

/// Maximum number of replies that are read.
const REPLIES_MAX: usize = 65_536;

/// Generic netlink family that resolves family names.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Length of the generic netlink header, in octets: command, version, reserved.
pub const GENERIC_LEN: usize = 4;

/// Netlink socket of this thread's network namespace.
#[derive(Debug)]
pub struct Netlink(File);

impl Netlink {
    /// Opens a socket for links, addresses, routes and queueing disciplines.
    ///
    /// # Errors
    /// The kernel returns no socket.
    pub fn route() -> io::Result<Self> {
        Self::open(libc::NETLINK_ROUTE)
    }

    /// Opens a socket for families with a name.
    ///
    /// # Errors
    /// Same as [`route`](Self::route).
    pub fn generic() -> io::Result<Self> {
        Self::open(libc::NETLINK_GENERIC)
    }

    fn open(protocol: i32) -> io::Result<Self> {
        socket::open(protocol).map(Self)
    }

    /// Returns the number of a family, which is the type of its messages.
    ///
    /// # Errors
    /// `ENOENT`: this kernel has no family of this name.
    pub fn family(&mut self, name: &str) -> io::Result<u16> {
        let mut body = vec![GET_FAMILY, 1, 0, 0];
        put_text(&mut body, FAMILY_NAME, name);
        let reply = self.get(CONTROL, &body)?;
        let id = reply.get(GENERIC_LEN..).and_then(|rest| half(find(rest, FAMILY_ID)?, 0));
        id.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Requests one object.
    ///
    /// # Errors
    /// The error of the kernel ([`code`]), and `InvalidData` if it returns no object.
    pub fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        let replies = self.exchange(kind, ACK, body)?;
        replies.into_iter().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Requests all objects of a type.
    ///
    /// # Errors
    /// The error of the kernel ([`code`]).
    pub fn dump(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.exchange(kind, DUMP, body)
    }

    /// Requests a change.
    ///
    /// # Errors
    /// The error of the kernel ([`code`]), with its message if there is one.
    pub fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.exchange(kind, ACK | flags, body).map(drop)
    }

    fn exchange(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let len = u32::try_from(HEADER_LEN + body.len()).map_err(io::Error::other)?;
        let mut request = len.to_ne_bytes().to_vec();
        request.extend(kind.to_ne_bytes());
        request.extend((REQUEST | flags).to_ne_bytes());
        request.extend([0; 8]);
        request.extend(body);
        self.0.write_all(&request)?;
        let mut replies = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while replies.len() < REPLIES_MAX {
            let len = self.0.read(&mut buffer)?;
            for (kind, flags, body) in messages(&buffer[..len]) {
                match kind {
                    DONE => return Ok(replies),
                    ERROR => return kernel_error(flags, body).map_or(Ok(replies), Err),
                    _ => replies.push(body.to_vec()),
                }
            }
        }
        Err(io::Error::other("the reply of the kernel exceeds the read limit"))
    }
}

/// Error of the kernel with its message.
#[derive(Debug)]
struct KernelError {
    code: i32,
    message: String,
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, io::Error::from_raw_os_error(self.code))
    }
}

impl std::error::Error for KernelError {}

/// Returns the error number of the kernel, with or without a message.
pub fn code(error: &io::Error) -> Option<i32> {
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<KernelError>());
    refused.map(|refused| refused.code).or_else(|| error.raw_os_error())
}

/// Returns the error of an error reply, or `None` for an acknowledgment.
fn kernel_error(flags: u16, body: &[u8]) -> Option<io::Error> {
    let number = |at: usize| number(body.get(at..)?);
    let code = number(0).map_or(libc::EBADMSG, |code| code.cast_signed().saturating_neg());
    if code == 0 {
        return None;
    }
    let repeated = if flags & CAPPED == 0 { number(4).map_or(0, |len| len as usize) } else { HEADER_LEN };
    let attributes = body.get(4 + repeated.next_multiple_of(4)..).filter(|_| flags & ERROR_ATTRIBUTES != 0);
    let message = attributes.and_then(|attributes| find(attributes, ERROR_MESSAGE)).map(text).unwrap_or_default();
    if message.is_empty() {
        return Some(io::Error::from_raw_os_error(code));
    }
    let kind = io::Error::from_raw_os_error(code).kind();
    Some(io::Error::new(kind, KernelError { code, message }))
}

/// Returns the messages of a datagram, each with its type and flags.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = number(bytes)? as usize;
        let (kind, flags) = (half(bytes, 4)?, half(bytes, 6)?);
        let body = bytes.get(HEADER_LEN..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, flags, body))
    })
}

/// Returns the attributes of a message or the nested attributes of an attribute, each with its
/// type.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(half(bytes, 0)?);
        // The upper two bits indicate nested attributes, and the byte order.
        let kind = half(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the value of an attribute.
pub fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Returns the first 32 bits as a number.
pub fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns a text that ends with a NUL.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|octet| *octet == 0).next().unwrap_or_default()).into_owned()
}

/// Appends an attribute. The value must be shorter than 64 KiB.
pub fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(4 + value.len()).expect("attributes are short");
    body.extend(len.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Appends an attribute with nested attributes and sets the nested bit, which newer parts of the
/// kernel require.
pub fn put_nested(body: &mut Vec<u8>, kind: u16, within: &[u8]) {
    put(body, NESTED | kind, within);
}

/// Appends a text as an attribute.
pub fn put_text(body: &mut Vec<u8>, kind: u16, text: &str) {
    put(body, kind, &[text.as_bytes(), &[0]].concat());
}

/// Returns the index of an interface.
///
/// # Errors
/// `ENODEV`: no interface has this name.
pub fn interface_index(name: &str) -> io::Result<i32> {
    let none = || io::Error::from_raw_os_error(libc::ENODEV);
    let name = std::ffi::CString::new(name).map_err(|_| none())?;
    socket::index(&name).ok_or_else(none)
}

/// System calls that the standard library does not offer.
mod socket {
    #![allow(unsafe_code)]

    use std::ffi::CStr;
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// Opens a socket for requests to the kernel. Reads time out after a second, since the kernel
    /// replies within the request.
    pub(super) fn open(protocol: libc::c_int) -> io::Result<File> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call made a new descriptor without another owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
        set(&fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &second)?;
        set(&fd, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &1_i32)?;
        Ok(File::from(fd))
    }

    fn set<T: Copy>(fd: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
        let (address, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the address is of `len` initialized octets.
        match unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, address, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn index(name: &CStr) -> Option<i32> {
        // SAFETY: the name ends in a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        (index != 0).then_some(index.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_messages_end_parsing_at_every_length() {
        let mut inner = Vec::new();
        put(&mut inner, 7, &[1, 2, 3]);
        put(&mut inner, 8, &9_u32.to_ne_bytes());
        let mut bytes = (HEADER_LEN as u32 + inner.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(5_u16.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(&inner);
        let whole: Vec<_> = messages(&bytes).collect();
        assert_eq!((whole.len(), whole[0].0, find(whole[0].2, 7)), (1, 5, Some([1, 2, 3].as_slice())));
        for len in 0..bytes.len() {
            assert_eq!(messages(&bytes[..len]).count(), 0, "{len}");
        }
        for len in 0..inner.len() {
            assert!(attributes(&inner[..len]).count() < 2, "{len}");
        }
        assert_eq!(messages(&[0; 64]).count(), 0, "a message shorter than its header does not loop");
    }

    #[test]
    fn families_are_found_by_name_and_a_refusal_leaves_no_reply() {
        let mut generic = Netlink::generic().expect("the query needs no permission");
        assert_eq!(generic.family("nlctrl").expect("nlctrl is registered"), CONTROL);
        assert_eq!(generic.family("there-is-none").map_err(|e| code(&e)), Err(Some(libc::ENOENT)));
        // A refused request is complete. The next reply belongs to the next request.
        assert_eq!(generic.family("nlctrl").expect("nlctrl is registered"), CONTROL);
    }

    #[test]
    fn refusal_has_the_message_of_the_kernel() {
        let mut netlink = Netlink::route().expect("the query needs no permission");
        // RTM_NEWQDISC of an unknown kind of queueing discipline, on no interface.
        let error = netlink.request(36, NEW, &[0; 20]).expect_err("the request is refused");
        assert!(matches!(code(&error), Some(libc::EPERM | libc::ENODEV)), "{error}");
        assert_eq!(interface_index("there-is-none").map_err(|e| e.raw_os_error()), Err(Some(libc::ENODEV)));
        assert_eq!(interface_index("lo").map(|index| index > 0).map_err(|e| e.raw_os_error()), Ok(true));
    }
}
