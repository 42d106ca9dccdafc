//! Tests that AF_XDP does not affect other traffic of the interface: TCP streams, datagrams to
//! other ports, echo requests, and address resolution.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt_testkit::Random;
use takt_transport::udp::UdpTransport;
use takt_transport::{Receive, Scan, Transport, readiness};
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::datagrams::{message, send, user};
use crate::network::{Host, Network, wire};

/// Length of the stream in octets.
const STREAM: usize = 32 << 20;
/// Number of datagrams to a foreign port; some begin like RTPS.
const DATAGRAMS: usize = 500;

/// Addresses of the first two hosts of a network.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

/// Makes pseudorandom octets.
fn octets(len: usize) -> Vec<u8> {
    let mut random = Random(1);
    (0..len).map(|_| random.next() as u8).collect()
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Sends a TCP stream from one host to the other, and returns the received octets.
fn stream(from: &Host, to: &Host, address: Ipv4Addr, bytes: &[u8]) -> Vec<u8> {
    let listener = to.run(|| TcpListener::bind((address, 0)).expect("a port is free"));
    let at = listener.local_addr().expect("the socket is bound");
    let mut sender = from.run(|| TcpStream::connect(at).expect("the hosts reach each other"));
    let (mut receiver, _) = listener.accept().expect("the peer has connected");
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(bytes).expect("the peer reads"));
        let mut arrived = Vec::with_capacity(bytes.len());
        receiver.read_to_end(&mut arrived).expect("the stream ends");
        arrived
    })
}

/// Sends datagrams to a foreign port, and awaits each.
fn datagrams(from: &Host, to: &Host, address: Ipv4Addr) {
    let there = to.run(|| UdpSocket::bind((address, 0)).expect("a port is free"));
    let here = from.run(|| UdpSocket::bind("0.0.0.0:0").expect("a port is free"));
    let at: SocketAddr = there.local_addr().expect("the socket is bound");
    let mut buffer = [0; 2048];
    for n in 0..DATAGRAMS {
        let sent = message(n, 4 + n * 2);
        here.send_to(&sent, at).expect("the datagram is sent");
        let (len, _) = there.recv_from(&mut buffer).expect("the datagram arrives");
        assert_eq!(buffer[..len], sent);
    }
}

/// Sends echo requests until one is answered.
fn echo(from: &Host, to: Ipv4Addr) {
    from.run(|| {
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) };
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new and has no other owner.
        let socket: UdpSocket = unsafe { std::os::fd::FromRawFd::from_raw_fd(socket) };
        // Type 8, code 0; the checksum is that of these words alone.
        let (id, sequence) = (0x7461_u16, 1_u16);
        let checksum = !(0x0800_u16 + sequence).wrapping_add(id);
        let request: Vec<u8> =
            [0x0800, checksum, id, sequence].iter().flat_map(|word: &u16| word.to_be_bytes()).collect();
        socket.send_to(&request, (to, 0)).expect("the datagram is sent");
        let mut buffer = [0; 256];
        loop {
            let len = socket.recv(&mut buffer).expect("a reply arrives");
            // Behind the IP header; type 0 is the reply.
            if len >= 28 && buffer[20] == 0 && buffer[24..28] == request[4..8] {
                return;
            }
        }
    });
}

/// Reports whether the kernel leaves outgoing TCP segments of this host's interface unsegmented
/// (TSO).
fn keeps_segmentation(host: &Host) -> bool {
    /// Command of `linux/ethtool.h`, which reads the TSO state.
    const GET_TSO: u32 = 0x1e;
    host.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
        let mut value = [GET_TSO, 0];
        // SAFETY: all-zero is a valid value of this C structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name[..4].copy_from_slice(&b"eth0".map(|octet| octet as libc::c_char));
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: the request names an interface, and `value` has room for the reply.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        value[1] != 0
    })
}

#[test]
fn default_mode_on_a_veth_does_not_slow_other_traffic() {
    let Some([here, there]) = wire(1) else { return };
    assert!(keeps_segmentation(&there));
    let xdp = here.run(|| XdpTransport::open(&XdpConfig::new(0, "eth0"))).expect("AF_XDP can be opened");
    assert_eq!((xdp.report().mode, &xdp.report().not_native), (Mode::Generic, &None));
    assert!(xdp.status().warnings.is_empty(), "{:?}", xdp.status().warnings);
    assert!(keeps_segmentation(&there), "while a filter is there");
}

/// Makes a datagram with its number after the four octets of `RTPS`.
fn numbered(n: u64) -> Vec<u8> {
    let mut datagram = message(0, 200);
    datagram[4..12].copy_from_slice(&n.to_le_bytes());
    datagram
}

/// Receives until the datagram of this number arrives or the time is over. Reports whether it
/// arrived.
fn take_until(xdp: &mut XdpTransport, n: u64, timeout: Duration, arrived: &mut BTreeSet<u64>) -> bool {
    let deadline = Instant::now() + timeout;
    while !arrived.contains(&n) {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
        while let Some(frame) = xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
            let number = u64::from_le_bytes(frame[4..12].try_into().expect("eight octets"));
            assert_eq!(frame.to_vec(), numbered(number));
            assert!(arrived.insert(number), "{number} arrived twice");
        }
        readiness::wait(xdp.status().descriptors, Some(left)).expect("wait succeeds");
    }
    true
}

#[test]
fn foreign_traffic_arrives_complete_and_unchanged() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(false), network.host(false));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let (at_xdp, is_over) = (user(&xdp), AtomicBool::new(false));
        let bytes = octets(STREAM);
        let (sent, arrived) = std::thread::scope(|scope| {
            let ours = scope.spawn(|| {
                let (mut sent, mut arrived) = (0, BTreeSet::new());
                while !is_over.load(Ordering::Relaxed) || arrived.is_empty() {
                    send(&mut udp, &numbered(sent), at_xdp);
                    take_until(&mut xdp, sent, Duration::from_secs(1), &mut arrived);
                    sent += 1;
                }
                // On a busy machine, some arrive after their timeout.
                for n in 0..sent {
                    take_until(&mut xdp, n, Duration::from_secs(1), &mut arrived);
                }
                (sent, arrived.len() as u64)
            });
            for (from, to, address) in [(&here, &there, ADDRESSES[1]), (&there, &here, ADDRESSES[0])] {
                let arrived = stream(from, to, address, &bytes);
                assert_eq!((arrived.len(), hash(&arrived)), (bytes.len(), hash(&bytes)));
                datagrams(from, to, address);
                echo(from, address);
            }
            is_over.store(true, Ordering::Relaxed);
            ours.join().expect("ours arrive too")
        });
        // A veth drops frames when another sender is faster than the receiver; TCP retransmits its
        // own.
        let dropped = network.drops() + here.drops() + there.drops();
        assert!(sent - arrived <= dropped, "{sent} of ours sent, {arrived} arrived, {dropped} frames dropped");
        let counters = xdp.counters();
        assert!(counters.datagrams_in > 0 && counters.datagrams_in <= arrived, "{arrived}: {counters:?}");
        assert_eq!(
            (counters.malformed, counters.damaged, counters.kernel_drops),
            (0, 0, 0),
            "{:?}",
            xdp.status().stats
        );
    }
}
