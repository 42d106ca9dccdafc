//! Questions to the kernel by netlink: one request, all its answers.
//!
//! What the kernel answers is read with bounds, as if a stranger had said it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

const HEADER_LEN: usize = 16;
/// Flags of a request, and of one for everything there is.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// Kinds of answers.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Answers that are read at most; an interface has no more queues.
const ANSWERS_MAX: usize = 8192;

/// How long the kernel may take: it answers within the request.
const PATIENCE: Duration = Duration::from_secs(1);

/// The family of generic netlink that finds families.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// A socket of one of netlink's protocols.
pub(super) struct Netlink(File);

impl Netlink {
    /// About links and addresses.
    pub(super) fn route() -> io::Result<Self> {
        socket::open(libc::NETLINK_ROUTE, PATIENCE).map(Self)
    }

    /// About everything that has a family by name.
    pub(super) fn generic() -> io::Result<Self> {
        socket::open(libc::NETLINK_GENERIC, PATIENCE).map(Self)
    }

    /// The number of a family.
    pub(super) fn family(&mut self, name: &str) -> io::Result<u16> {
        let mut body = vec![GET_FAMILY, 1, 0, 0];
        put(&mut body, FAMILY_NAME, &[name.as_bytes(), &[0]].concat());
        let answers = self.ask(CONTROL, false, &body)?;
        let id = answers.first().and_then(|(_, body)| find(body.get(4..)?, FAMILY_ID));
        let id = id.and_then(|id| Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?))); // tidy-allow(dropped-cause): two octets
        id.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Asks, and returns the bodies of all answers with their kinds.
    pub(super) fn ask(&mut self, kind: u16, is_dump: bool, body: &[u8]) -> io::Result<Vec<(u16, Vec<u8>)>> {
        let len = u32::try_from(HEADER_LEN + body.len()).map_err(io::Error::other)?;
        let flags = if is_dump { REQUEST | DUMP } else { REQUEST };
        let mut request = len.to_ne_bytes().to_vec();
        request.extend(kind.to_ne_bytes());
        request.extend(flags.to_ne_bytes());
        request.extend([0; 8]);
        request.extend(body);
        self.0.write_all(&request)?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while answers.len() < ANSWERS_MAX {
            let len = self.0.read(&mut buffer)?;
            for (kind, body) in messages(&buffer[..len]) {
                match kind {
                    DONE => return Ok(answers),
                    ERROR => return refusal(body).map_or(Ok(answers), Err),
                    _ => answers.push((kind, body.to_vec())),
                }
            }
            if !is_dump {
                break;
            }
        }
        Ok(answers)
    }
}

/// What an answer says that is none; `None`: all is well.
fn refusal(body: &[u8]) -> Option<io::Error> {
    let code = body.get(..4).and_then(|code| code.try_into().ok()).map_or(-libc::EBADMSG, i32::from_ne_bytes); // tidy-allow(dropped-cause): four octets
    (code != 0).then(|| io::Error::from_raw_os_error(code.saturating_neg()))
}

/// The messages of a datagram, each with its kind.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize; // tidy-allow(dropped-cause): four octets
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?); // tidy-allow(dropped-cause): two octets
        let body = bytes.get(HEADER_LEN..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The attributes of a message, or of an attribute that has some, each with its kind.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?)); // tidy-allow(dropped-cause): two octets
        // The upper two bits say that there are more within, and in which order the octets are.
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff; // tidy-allow(dropped-cause): two octets
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of an attribute.
pub(super) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// The number in an attribute.
pub(super) fn find_u32(bytes: &[u8], kind: u16) -> Option<u32> {
    Some(u32::from_ne_bytes(find(bytes, kind)?.get(..4)?.try_into().ok()?)) // tidy-allow(dropped-cause): four octets
}

/// Adds an attribute.
pub(super) fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(4 + value.len()).expect("what is asked for is short");
    body.extend(len.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The one system call that the standard library has not.
mod socket {
    #![allow(unsafe_code)]

    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::time::Duration;

    /// A socket of netlink that gives up reading after a while. What is written to it goes to the kernel.
    pub(super) fn open(protocol: libc::c_int, patience: Duration) -> io::Result<File> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call made a new descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let time = libc::timeval { tv_sec: patience.as_secs() as libc::time_t, tv_usec: 0 };
        let (value, len) = ((&raw const time).cast(), size_of_val(&time) as libc::socklen_t);
        // SAFETY: `value` points to `len` initialised bytes.
        if unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, len) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_ends_the_reading_at_every_length() {
        let mut inner = Vec::new();
        put(&mut inner, 7, &[1, 2, 3]);
        put(&mut inner, 8, &9_u32.to_ne_bytes());
        let mut bytes = (HEADER_LEN as u32 + inner.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(5_u16.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(&inner);
        let whole: Vec<_> = messages(&bytes).collect();
        assert_eq!((whole.len(), whole[0].0, find(whole[0].1, 7)), (1, 5, Some([1, 2, 3].as_slice())));
        assert_eq!((find_u32(whole[0].1, 8), find_u32(whole[0].1, 7), find(whole[0].1, 6)), (Some(9), None, None));
        for len in 0..bytes.len() {
            assert_eq!(messages(&bytes[..len]).count(), 0, "{len}");
        }
        for len in 0..inner.len() {
            assert!(attributes(&inner[..len]).count() < 2, "{len}");
        }
        assert_eq!(messages(&[0; 64]).count(), 0, "a message without its own header does not repeat for ever");
    }
}
