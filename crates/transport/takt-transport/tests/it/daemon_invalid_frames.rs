//! Tests of a process that joins a daemon and sends invalid frames: they are counted, and other
//! applications are served.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use takt_testkit::domain;
use takt_testkit::waiting::until;
use takt_transport::daemon::{Daemon, DaemonConfig, DaemonTransport, status};
use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::udp::{InterfaceSelection, UdpConfig};
use takt_transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_wire::{Endianness, Locator};

use super::with_header::WithHeader;

/// Starts a daemon that ends with its last application.
fn start(name: &str) {
    let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
    let udp = UdpConfig { interfaces, ..UdpConfig::new(0) };
    let mut daemon = Daemon::open(DaemonConfig { name: Some(name.into()), udp, ..DaemonConfig::default() })
        .expect("the name is not in use");
    std::thread::spawn(move || {
        let mut had_application = false;
        while !had_application || daemon.applications() > 0 {
            daemon.run_once(Duration::from_millis(10)).expect("the runtime can wait");
            had_application |= daemon.applications() > 0;
        }
    });
}

/// Joins without the library. Returns the locator where the daemon receives frames.
fn join(name: &str, domain: u32, shm: &ShmTransport) -> Locator {
    let user = std::fs::metadata("/proc/self").expect("/proc is mounted").uid();
    let address = SocketAddr::from_abstract_name(format!("takt-daemon/{user}/{name}")).expect("a name");
    let mut stream = UnixStream::connect_addr(&address).expect("the peer listens");
    let hex = |locator: &Locator| {
        locator.to_bytes(Endianness::Little).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let own = hex(&shm.status().locators.default_unicast[0]);
    write!(stream, "takt-daemon 1 join\ndomain {domain}\nshm {own}\n\n").expect("the daemon reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("the daemon answers");
    let inbox = reply.lines().find_map(|line| line.strip_prefix("inbox ")).expect("the domain is served");
    let octets: Vec<u8> = (0..24).map(|at| u8::from_str_radix(&inbox[2 * at..2 * at + 2], 16).expect("hex")).collect();
    let word = |at: usize| octets[at..at + 4].try_into().expect("four octets");
    Locator {
        kind: i32::from_le_bytes(word(0)),
        port: u32::from_le_bytes(word(4)),
        address: octets[8..].try_into().expect("sixteen octets"),
    }
}

#[test]
fn invalid_frames_are_counted_and_other_applications_are_served() {
    let (name, domain_id) = (format!("strangers-{}", std::process::id()), domain::domain());
    start(&name);
    let mut raw_peer = ShmTransport::open(&ShmConfig::default()).expect("Linux 5.14");
    let inbox = join(&name, domain_id, &raw_peer);
    let mut one = WithHeader::new(DaemonTransport::open(Some(&name), domain_id, true).expect("the domain is served"));
    let mut two = WithHeader::new(DaemonTransport::open(Some(&name), domain_id, true).expect("the domain is served"));
    let to_all = one.status().locators.default_unicast[0];
    // The header of a frame to this destination, followed by octets that are no message.
    let mut framed = vec![0; 200 + 40];
    framed[..2].copy_from_slice(&[1, 1]);
    framed[8..32].copy_from_slice(&to_all.to_bytes(Endianness::Little));
    let with = |at: usize, octets: &[u8]| {
        let mut frame = framed.clone();
        frame[at..at + octets.len()].copy_from_slice(octets);
        frame
    };
    let frames = [
        vec![1],
        vec![0xff; 65_000],
        framed.clone(),
        with(1, &[0xff]),
        with(200, b"RTPS\x02\x05\x01\x2a____________\x15\x01\xff\xff"),
        with(200, b"RTPS\x02\x05\x01\x2a____________\x0e\x01\x04\x00"),
    ];
    for frame in &frames {
        raw_peer.loan().expect("a frame")[..frame.len()].copy_from_slice(frame);
        raw_peer.commit(Commit::new(frame.len(), FlowId::DEFAULT, &[inbox])).expect("the frame is accepted");
        raw_peer.flush().expect("the datagram is sent");
    }
    let refused = format!("refused {}", frames.len());
    until("all are counted", || status(Some(&name)).expect("a daemon runs").contains(&refused));
    assert!(raw_peer.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none(), "no reply arrived");
    for transport in [&mut one, &mut two] {
        let frame = transport.loan().expect("a frame");
        frame[..5].copy_from_slice(b"hello");
        transport.commit(Commit::new(5, FlowId::DEFAULT, &[to_all])).expect("the frame is accepted");
        transport.flush().expect("the datagram is sent");
        until("a message", || {
            transport
                .recv(Receive::Any(Scan::All))
                .expect("receive succeeds")
                .is_some_and(|frame| frame.bytes() == b"hello")
        });
    }
}
