//! Unmodified participants of other vendors behind the discovery interceptor. A program forwards
//! between the hosts and passes every frame to the interceptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use takt_interop::peer::{Endpoint, Kind, Options, Peer};
use takt_interop::programs::Program;
use takt_openflow::channel::Instant as Moment;
use takt_sdn::PortRef;
use takt_sdn::contract::ContractFile;
use takt_sdn::discovery::{Config, Counters, Decision, Event, Interceptor, Limits, Pair};

use crate::scene::{forwarded_hosts, start};

const PORTS: [&str; 2] = ["switch-1", "switch-2"];
const CONTRACTS: &str = "[[contract]]\ntopic = 'Blocked'\nseparation = '5ms'\nsize = 1400\nlimit = '1ms'\n";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Commands from the test to the bridge.
enum Command {
    Refuse(Pair),
    Release(Pair),
}

/// Measurements of a run of the bridge.
#[derive(Clone, Default)]
struct Measurements {
    counters: Counters,
    /// Processing time of the interceptor for each RTPS message, in nanoseconds.
    spent: Vec<u64>,
}

/// Handle of a thread that forwards between the two ports of the switch.
struct Bridge {
    stops: Arc<AtomicBool>,
    commands: Sender<Command>,
    found: Receiver<Pair>,
    measurements: Arc<Mutex<Measurements>>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    fn start(namespace: &str) -> Self {
        let stops = Arc::new(AtomicBool::new(false));
        let (commands, inbox) = channel();
        let (report, found) = channel();
        let measurements = Arc::new(Mutex::new(Measurements::default()));
        let namespace = format!("/var/run/netns/{namespace}");
        let (flag, shared) = (Arc::clone(&stops), Arc::clone(&measurements));
        let (ready, is_ready) = channel();
        let thread = std::thread::spawn(move || {
            let sockets = enter(&namespace);
            ready.send(()).expect("the test waits");
            forward(&sockets, &flag, &inbox, &report, &shared);
        });
        is_ready.recv_timeout(TIMEOUT).expect("the bridge starts");
        Self { stops, commands, found, measurements, thread: Some(thread) }
    }

    fn pair(&self) -> Pair {
        self.found.recv_timeout(TIMEOUT).expect("a pair with a contract is found")
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the bridge panicked");
    }
}

/// Moves this thread to the namespace of the switch, and opens a socket on each port.
fn enter(namespace: &str) -> [OwnedFd; 2] {
    let file = File::open(namespace).expect("the namespace exists");
    // SAFETY: the descriptor is that of a network namespace; the call affects this thread only.
    let moved = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(moved, 0, "{}", io::Error::last_os_error());
    PORTS.map(|port| {
        let name = std::ffi::CString::new(port).expect("no NUL");
        let all = i32::from(u16::to_be(libc::ETH_P_ALL as u16));
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, all) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor is new and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let one: libc::c_int = 1;
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the value lives during the call and has the given length.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_IGNORE_OUTGOING,
                (&raw const one).cast(),
                len,
            )
        };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
        // SAFETY: an address of all zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = u16::to_be(libc::ETH_P_ALL as u16);
        // SAFETY: the name ends in NUL.
        address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives during the call and has the given length.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        socket
    })
}

fn send(socket: &OwnedFd, frame: &[u8]) {
    // SAFETY: the octets live during the call. A frame that cannot be sent is lost, as on any
    // network.
    let _ = unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer lives during the call and has the given length.
    let len = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(len).ok()
}

fn forward(
    sockets: &[OwnedFd; 2],
    stops: &AtomicBool,
    inbox: &Receiver<Command>,
    report: &Sender<Pair>,
    figures: &Mutex<Measurements>,
) {
    let limits = Limits { verdict_timeout: Duration::from_secs(600), ..Limits::default() };
    let contracts = ContractFile::parse(CONTRACTS).expect("a good file");
    let mut interceptor = Interceptor::new(Config { limits, contracts, ..Config::default() });
    let begin = Instant::now();
    let now = || Moment(1 + begin.elapsed().as_nanos() as u64);
    let mut buffer = vec![0; 65_536];
    while !stops.load(Ordering::Relaxed) {
        for (from, socket) in sockets.iter().enumerate() {
            while let Some(len) = receive(socket, &mut buffer) {
                let frame = &buffer[..len];
                let before = (Instant::now(), interceptor.counters().messages);
                let decision = interceptor.handle(now(), PortRef::new(1, from as u32), frame);
                if interceptor.counters().messages > before.1 {
                    figures.lock().expect("no panic").spent.push(before.0.elapsed().as_nanos() as u64);
                }
                match decision {
                    Decision::Pass => send(&sockets[1 - from], frame),
                    Decision::Replace(frames) => frames.iter().for_each(|frame| send(&sockets[1 - from], frame)),
                }
            }
        }
        while let Some(event) = interceptor.poll_event() {
            match event {
                Event::PairFound { pair, contract: Ok(_) } => drop(report.send(pair)),
                Event::Forged { .. } | Event::LimitReached { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
        while let Ok(order) = inbox.try_recv() {
            match order {
                Command::Refuse(pair) => _ = interceptor.refuse(now(), pair, "no room").expect("the pair is known"),
                Command::Release(pair) => interceptor.release(now(), pair).expect("the pair is known"),
            }
        }
        if interceptor.poll_timeout().is_some_and(|at| at <= now()) {
            interceptor.handle_timeout(now());
        }
        while let Some(emission) = interceptor.poll_frame() {
            send(&sockets[1 - emission.from.port as usize], &emission.frame);
        }
        figures.lock().expect("no panic").counters = *interceptor.counters();
        wait(sockets);
    }
}

/// Waits for a frame, for at most one millisecond.
fn wait(sockets: &[OwnedFd; 2]) {
    let mut list =
        sockets.each_ref().map(|socket| libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: the list lives during the call and has two entries.
    unsafe { libc::poll(list.as_mut_ptr(), 2, 1) };
}

/// Tests two topics, one of which is refused and later released.
fn refuse_and_release(domain: u32, left: Program, right: Program, reader_is_first: bool) {
    let Some(network) = forwarded_hosts() else { return };
    let bridge = Bridge::start(network.forwarder().expect("a program is to forward"));
    let options = Options { domain, ..Options::default() };
    let Some(mut one) = start(left, &network.left, options) else { return };
    let Some(mut other) = start(right, &network.right, options) else { return };
    let blocked = Endpoint::new("blocked", "Blocked", Kind::Unkeyed);
    let free = Endpoint::new("free", "Other", Kind::Unkeyed);
    let writers = |peer: &mut Peer| [&blocked, &free].map(|endpoint| peer.writer(endpoint).expect("a writer"));
    let readers = |peer: &mut Peer| [&blocked, &free].map(|endpoint| peer.reader(endpoint).expect("a reader"));
    if reader_is_first {
        readers(&mut other);
        writers(&mut one);
    } else {
        writers(&mut one);
        readers(&mut other);
    }
    let pair = bridge.pair();
    bridge.commands.send(Command::Refuse(pair)).expect("the bridge runs");
    one.matched("free", 1).expect("the other topic matches");
    other.matched("free", 1).expect("the other topic matches");
    for (side, peer) in [(left, &mut one), (right, &mut other)] {
        let (total, policies) = peer.incompatible("blocked").expect("the refusal is a status");
        println!("{side}: {total} incompatible, {policies:?}");
    }
    bridge.commands.send(Command::Release(pair)).expect("the bridge runs");
    one.matched("blocked", 1).expect("the refusal is lifted");
    other.matched("blocked", 1).expect("the refusal is lifted");
    let figures = bridge.measurements.lock().expect("no panic").clone();
    let mut spent = figures.spent;
    spent.sort_unstable();
    let of = |percent: usize| spent[(spent.len() - 1) * percent / 100] / 1000;
    println!("{left} to {right}: {} messages, {} us at the median, {} us at most", spent.len(), of(50), of(100));
    println!("{:?}", figures.counters);
}

#[test]
fn cyclonedds_11_reports_refusal_and_matches_after_release() {
    refuse_and_release(171, Program::Cyclone11, Program::Cyclone11, false);
    refuse_and_release(171, Program::Cyclone11, Program::Cyclone11, true);
}

#[test]
fn cyclonedds_10_reports_refusal_and_matches_after_release() {
    refuse_and_release(172, Program::Cyclone10, Program::Cyclone10, false);
}

#[test]
fn fast_dds_2_reports_refusal_and_matches_after_release() {
    refuse_and_release(173, Program::FastDds2, Program::FastDds2, false);
}

#[test]
fn fast_dds_3_reports_refusal_and_matches_after_release() {
    refuse_and_release(174, Program::FastDds3, Program::FastDds3, false);
}

#[test]
fn takt_reports_refusal_and_matches_after_release() {
    refuse_and_release(175, Program::Takt, Program::Cyclone11, false);
}
