//! Steering: marked frames leave by their planned queue or class, and other frames do not.

use std::ffi::CStr;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use takt_host::{Facts, Journal, Machine, Plan, Request, apply, revert};

use super::namespace::Namespace;

const ACTOR: &str = "steering::the_sender";
const WISH: &str = "TAKT_TEST_HOST_WISH";

/// Number of datagrams of each kind.
const COUNT: usize = 40;

/// Role that other tests start within a namespace: plans, applies, sends with and without marks,
/// and prints the frames of each queue; not a test.
#[test]
#[ignore = "role: started by other tests"]
fn the_sender() {
    let Ok(wish) = std::env::var(WISH) else { return };
    let (queue, line_rate_bits) = if wish == "queue" { (Some(3), None) } else { (None, Some(1_000_000_000)) };
    let interface = Some("takt0".to_owned());
    let request = Request { interface, queue, line_rate_bits, dscp: vec![46, 34], pcp: vec![5], ..Request::default() };
    let machine = Machine::default();
    let mut plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    plan.changes.retain(|change| change.setting.to_string().contains("takt0"));
    let path = std::env::temp_dir().join(format!("takt-host-steering-{}", std::process::id()));
    let mut journal = Journal::open(path).expect("not locked");
    apply(&machine, &plan, &mut journal).unwrap_or_else(|why| panic!("{why}"));
    for dscp in [0_i32, 46, 0, 34, 10] {
        for port in 0..COUNT {
            // Each socket is a different flow.
            let socket = UdpSocket::bind("10.77.0.1:0").expect("the address is there");
            set_tos(&socket, dscp << 2);
            socket.send_to(b"frame", ("10.77.0.2", 9000 + port as u16)).expect("a route exists");
        }
    }
    let packets = Packets::new();
    for (_, frame) in frames() {
        (0..COUNT).for_each(|_| packets.send(&frame));
    }
    let output = std::process::Command::new("tc").args(["-j", "-s", "qdisc", "show", "dev", "takt0"]).output();
    println!("\nCOUNTS {}", String::from_utf8_lossy(&output.expect("tc can be run").stdout).replace('\n', ""));
    let failures = revert(&machine, journal).expect("the journal can be ended");
    assert!(failures.is_empty(), "{failures:?}");
}

const CROWD: &str = "steering::the_crowd";

/// Role that other tests start within a namespace: saturates a link of 2 Mbit/s with unmarked
/// frames and then sends a few marked ones; not a test.
#[test]
#[ignore = "role: started by other tests"]
fn the_crowd() {
    if std::env::var_os(WISH).is_none_or(|wish| wish != "crowd") {
        return;
    }
    let interface = Some("takt0".to_owned());
    let request = Request { interface, line_rate_bits: Some(2_000_000), dscp: vec![46], ..Request::default() };
    let machine = Machine::default();
    let mut plan = Plan::new(&machine, &Facts::of(&machine), &request).expect("valid request");
    plan.changes.retain(|change| change.setting.to_string().contains("takt0"));
    let path = std::env::temp_dir().join(format!("takt-host-crowd-{}", std::process::id()));
    let mut journal = Journal::open(path).expect("not locked");
    apply(&machine, &plan, &mut journal).unwrap_or_else(|why| panic!("{why}"));
    let other_end = Packets::at(c"takt1", libc::ETH_P_IP as u16);
    let send = |tos: i32, count: usize| {
        // Queued datagrams are charged to their socket, so that each socket sends few.
        let socket = UdpSocket::bind("10.77.0.1:0").expect("the address is there");
        set_tos(&socket, tos);
        for _ in 0..count {
            socket.send_to(&[7; 1000], "10.77.0.2:9000").expect("a route exists");
        }
    };
    (0..UNMARKED / 20).for_each(|_| send(0, 20));
    send(46 << 2, MARKED);
    let mut order = String::new();
    while order.len() < UNMARKED + MARKED {
        order.push(if other_end.receive()[15] >> 2 == 46 { 'M' } else { '.' });
    }
    println!("\nORDER {order}");
    let failures = revert(&machine, journal).expect("the journal can be ended");
    assert!(failures.is_empty(), "{failures:?}");
}

/// Frames that saturate the link for some two and a half seconds, and marked frames that are sent
/// last and leave first.
const UNMARKED: usize = 600;
const MARKED: usize = 5;

#[test]
fn marked_frames_overtake_queued_frames() {
    let Some(namespace) = Namespace::new("crowd") else { return };
    namespace.sh("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev takt0");
    let output = namespace.test(CROWD, &[(WISH, "crowd".to_owned())]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let order = text.lines().find_map(|line| line.strip_prefix("ORDER ")).expect("the line is printed");
    let last = order.rfind('M').expect("they arrive");
    assert_eq!(order.matches('M').count(), MARKED);
    assert!(order.len() - last > UNMARKED / 6, "sent last, and not overtaken by what waited: {order}");
}

/// Returns raw frames, and whether each is marked.
fn frames() -> Vec<(bool, Vec<u8>)> {
    let frame = |tag: &[u8], kind: [u8; 2], begins: [u8; 2]| {
        let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        [&addresses, tag, &kind, &begins, &[0; 60]].concat()
    };
    const IPV4: [u8; 2] = [0x08, 0x00];
    const IPV6: [u8; 2] = [0x86, 0xdd];
    // Ethernet without IP (RTPS's own).
    const OTHER: [u8; 2] = [0x88, 0xb5];
    let tag = |pcp: u8| [0x81, 0x00, pcp << 5, 7];
    vec![
        // Traffic classes of IPv6: DSCP 46 and 10.
        (true, frame(&[], IPV6, [0x6b, 0x80])),
        (false, frame(&[], IPV6, [0x62, 0x80])),
        (true, frame(&tag(5), OTHER, [0, 0])),
        (false, frame(&tag(4), OTHER, [0, 0])),
        (true, frame(&tag(0), IPV4, [0x45, 46 << 2])),
        (true, frame(&tag(1), IPV6, [0x68, 0x80])),
        (false, frame(&tag(1), IPV4, [0x45, 0])),
        // Frame of another protocol that resembles a DSCP.
        (false, frame(&[], OTHER, [0x45, 46 << 2])),
    ]
}

/// Raw socket that sends whole frames over an interface.
pub(super) struct Packets(OwnedFd, libc::sockaddr_ll);

impl Packets {
    fn new() -> Self {
        Self::at(c"takt0", 0)
    }

    /// Opens the socket. It receives frames of a protocol; with protocol 0 it receives none.
    pub(super) fn at(name: &CStr, protocol: u16) -> Self {
        // SAFETY: no pointers; a result >= 0 is a new descriptor without another owner.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "root may");
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: all-zero is a valid value of this C structure, and the name ends in a zero.
        let (mut to, index) = unsafe { (std::mem::zeroed::<libc::sockaddr_ll>(), libc::if_nametoindex(name.as_ptr())) };
        (to.sll_family, to.sll_ifindex) = (libc::AF_PACKET as u16, index.cast_signed());
        to.sll_protocol = protocol.to_be();
        let (address, len) = ((&raw const to).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        // SAFETY: the address is of as many octets as the length says.
        assert_eq!(unsafe { libc::bind(socket.as_raw_fd(), address, len) }, 0);
        let timeout = libc::timeval { tv_sec: 30, tv_usec: 0 };
        let (value, len) = ((&raw const timeout).cast(), size_of_val(&timeout) as libc::socklen_t);
        // SAFETY: as above.
        let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, len) };
        assert_eq!(set, 0);
        Self(socket, to)
    }

    /// Returns the beginning of the next frame.
    pub(super) fn receive(&self) -> [u8; 64] {
        let mut frame = [0; 64];
        // SAFETY: the address is of as many octets as the length says.
        let len = unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        assert_eq!(len, 64, "{}", std::io::Error::last_os_error());
        frame
    }

    fn send(&self, frame: &[u8]) {
        let (to, len) = ((&raw const self.1).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
        // SAFETY: both addresses are of as many octets as their lengths say.
        let sent = unsafe { libc::sendto(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, to, len) };
        assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
    }
}

pub(super) fn set_tos(socket: &UdpSocket, tos: i32) {
    let (value, len) = ((&raw const tos).cast(), size_of_val(&tos) as libc::socklen_t);
    // SAFETY: the address is of an integer of that length.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_TOS, value, len) };
    assert_eq!(result, 0);
}

/// Returns the number of frames that left by each leaf, with its handle or its parent.
fn counts(wish: &str) -> Option<Vec<(String, u64)>> {
    let namespace = Namespace::new(&format!("steer-{wish}"))?;
    // With a static neighbor entry, no address resolution is necessary.
    namespace.sh("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev takt0");
    let output = namespace.test(ACTOR, &[(WISH, wish.to_owned())]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.strip_prefix("COUNTS ")).expect("the line is printed");
    let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let leaf = |one: &serde_json::Value| Some((one["handle"].as_str()?.to_owned(), one["packets"].as_u64()?));
    Some(value.as_array().expect("a list").iter().filter_map(leaf).collect())
}

fn of(counts: &[(String, u64)], handle: &str) -> u64 {
    counts.iter().find(|(name, _)| name == handle).map(|(_, count)| *count).unwrap_or_else(|| panic!("{counts:?}"))
}

/// Returns the number of marked and unmarked frames sent: datagrams with DSCP 46, 34 and 0, 0, 10,
/// and [`frames`].
fn kinds() -> (u64, u64) {
    let marked = 2 + frames().iter().filter(|(is_marked, _)| *is_marked).count();
    let unmarked = 3 + frames().iter().filter(|(is_marked, _)| !is_marked).count();
    ((marked * COUNT) as u64, (unmarked * COUNT) as u64)
}

#[test]
fn marked_frames_leave_by_their_queue() {
    let Some(counts) = counts("queue") else { return };
    let (marked, unmarked) = kinds();
    assert_eq!(of(&counts, "13:"), marked, "DSCP 46 and 34, PCP 5: {counts:?}");
    let others: Vec<_> = ["10:", "11:", "12:"].iter().map(|handle| of(&counts, handle)).collect();
    assert_eq!(others.iter().sum::<u64>(), unmarked, "all else: {counts:?}");
    assert!(others.iter().all(|count| *count > 0), "by their flows: {counts:?}");
}

#[test]
fn marked_frames_leave_by_the_class_with_precedence() {
    let Some(counts) = counts("class") else { return };
    assert_eq!((of(&counts, "10:"), of(&counts, "20:")), kinds(), "{counts:?}");
}
