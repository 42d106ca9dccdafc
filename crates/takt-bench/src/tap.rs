//! IPv4 packets that pass the interfaces of a network namespace, with the kernel's time stamps (packet(7), `SO_TIMESTAMPNS`).
//!
//! A packet that leaves is stamped behind its queueing discipline, one that arrives before the host's stack. Times are nanoseconds since 1970
//! (`CLOCK_REALTIME`), of the same clock in all namespaces of a machine. Packets are cut to [`PACKET_LEN_MAX`] octets.

use crate::error::{Error, Result};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};
use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Octets of a packet that are read at most: the MTU of Ethernet.
pub const PACKET_LEN_MAX: usize = 1500;
/// What the socket holds: 3,500 packets of 1,400 octets. A packet beyond is missing.
const BUFFER_LEN: usize = 8 << 20;
/// A read returns at the latest after this time, us.
const READ_LIMIT_US: i64 = 20_000;

/// A socket that sees packets.
#[derive(Debug)]
pub struct Tap(OwnedFd);

impl Tap {
    /// Of the calling thread's namespace: UDP from one address.
    ///
    /// # Errors
    /// Not root.
    pub fn new(source: Ipv4Addr) -> Result<Self> {
        let failed = |what: &'static str| move |error: nix::Error| Error::os(what, error.into());
        let packet = (AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll);
        let (family, kind, flags, protocol) = packet;
        let fd = socket(family, kind, flags, protocol).map_err(failed("make a packet socket"))?;
        setsockopt(&fd, sockopt::RcvBufForce, &BUFFER_LEN).map_err(failed("set SO_RCVBUFFORCE"))?;
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).map_err(failed("set SO_TIMESTAMPNS"))?;
        let limit = TimeVal::new(0, READ_LIMIT_US);
        setsockopt(&fd, sockopt::ReceiveTimeout, &limit).map_err(failed("set SO_RCVTIMEO"))?;
        attach(&fd, source).map_err(|source| Error::os("set SO_ATTACH_FILTER", source))?;
        let tap = Self(fd);
        // What came before the filter.
        while tap.read()?.is_some() {}
        Ok(tap)
    }

    /// The next packet, from its IP header on, and its time in ns; `None` if there was none for a while.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self) -> Result<Option<(Vec<u8>, i64)>> {
        let mut packet = vec![0; PACKET_LEN_MAX];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut packet)];
        let received = match recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) {
            Ok(received) => received,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(error) => return Err(Error::os("read a packet socket", error.into())),
        };
        let of = |message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec()),
            _ => None,
        };
        let mut messages = received.cmsgs().map_err(|error| Error::os("read a time stamp", error.into()))?;
        let at_ns = messages.find_map(of);
        let len = received.bytes;
        packet.truncate(len);
        Ok(at_ns.map(|at_ns| (packet, at_ns)))
    }
}

/// Classic BPF: accepts UDP over IPv4 from this source. Offsets count from the IP header, as the socket has no link-layer header.
fn attach(fd: &OwnedFd, source: Ipv4Addr) -> std::io::Result<()> {
    let code = |code: u32| u16::try_from(code).unwrap_or(u16::MAX);
    let load_octet = code(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS);
    let load_word = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
    let mask = code(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K);
    let equal = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
    let end = code(libc::BPF_RET | libc::BPF_K);
    let plain = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let check = |k, jf| libc::sock_filter { code: equal, jt: 0, jf, k };
    let mut filter = [
        plain(load_octet, 0),
        plain(mask, 0xf0),
        check(0x40, 5),
        plain(load_octet, 9),
        check(u32::from(takt_packet::UDP), 3),
        plain(load_word, 12),
        check(u32::from(source), 1),
        plain(end, PACKET_LEN_MAX as u32),
        plain(end, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let len = size_of_val(&program) as libc::socklen_t;
    let value = std::ptr::from_ref(&program).cast();
    // SAFETY: `program` and the filter that it points to live until the call returns, and their lengths are given.
    match unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, len) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use takt_packet::{Ipv4Packet, UdpDatagram};
    use takt_testkit::{not_run, require};

    #[test]
    fn tap_sees_datagrams_of_its_source_alone_with_their_times() {
        if let Err(why) = require::root() {
            return not_run(why);
        }
        let socket = |last: u8| UdpSocket::bind((Ipv4Addr::new(127, 43, 0, last), 0)).expect("loopback has it");
        let [seen, other, receiver] = [1, 2, 3].map(socket);
        let tap = Tap::new(Ipv4Addr::new(127, 43, 0, 1)).expect("root may");
        let target = receiver.local_addr().expect("it is bound");
        for (from, text) in [(&other, b"no".as_slice()), (&seen, b"one"), (&other, b"no"), (&seen, b"two")] {
            from.send_to(text, target).expect("loopback takes it");
        }
        let mut found = Vec::new();
        while let Some((packet, at_ns)) = tap.read().expect("it can be read") {
            let packet = Ipv4Packet::parse(&packet).expect("it is one");
            let datagram = UdpDatagram::parse(packet.payload()).expect("it is one");
            assert_eq!(datagram.destination_port(), target.port());
            found.push((datagram.payload().to_vec(), at_ns));
        }
        // On loopback each packet leaves and arrives.
        let texts: Vec<&[u8]> = found.iter().map(|(text, _)| text.as_slice()).collect();
        assert_eq!(texts, [b"one", b"one", b"two", b"two"]);
        assert!(found[0].1 > 0 && found.windows(2).all(|two| two[0].1 <= two[1].1), "{found:?}");
    }
}
