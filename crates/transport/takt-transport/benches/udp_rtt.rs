//! Benchmark of the transport overhead over raw sockets: round trips of 64 B over loopback.
//!
//! Rounds of both are interleaved, so that both run under the same conditions, and the ratio is
//! computed within each round. Two modes: both ends spinning, and both ends blocking in the kernel.
//! `cargo bench -p takt-transport --bench udp_rtt`, with `-- ROUNDS SAMPLES` for other than 15
//! rounds of 20,000.

#![allow(missing_docs)]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use takt_transport::udp::{InterfaceSelection, ParticipantIndex, UdpConfig, UdpTransport};
use takt_transport::{Commit, FlowId, Receive, Scan, Transport, readiness};
use takt_wire::Locator;

const SIZE: usize = 64;

/// One end of a ping-pong.
trait End: Send {
    /// Waits for a datagram and returns its length.
    fn receive(&mut self) -> usize;
    /// Sends a datagram of `len` bytes to the other end.
    fn send(&mut self, len: usize);
}

struct Raw {
    socket: UdpSocket,
    peer: SocketAddr,
    buffer: [u8; 2048],
}

impl End for Raw {
    fn receive(&mut self) -> usize {
        loop {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, _)) => return len,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
        }
    }

    fn send(&mut self, len: usize) {
        let sent = self.socket.send_to(&self.buffer[..len], self.peer);
        assert_eq!(sent.expect("loopback accepts the datagram"), len);
    }
}

struct Takt {
    transport: UdpTransport,
    peer: Locator,
    spin: bool,
}

impl End for Takt {
    fn receive(&mut self) -> usize {
        let scan = if self.spin { Scan::Hot } else { Scan::All };
        loop {
            if let Some(frame) = self.transport.recv(Receive::Any(scan)).expect("receive succeeds") {
                return frame.len();
            }
            if !self.spin {
                readiness::wait(self.transport.status().descriptors, None).expect("poll succeeds");
            }
        }
    }

    fn send(&mut self, len: usize) {
        let t = &mut self.transport;
        t.loan().expect("a frame")[..len].fill(7);
        t.commit(Commit::new(len, FlowId::DEFAULT, &[self.peer])).expect("fits");
        t.flush().expect("send succeeds");
    }
}

fn raw_pair(spin: bool) -> [Raw; 2] {
    let open = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        socket.set_nonblocking(spin).expect("the socket option is set");
        socket
    };
    let (a, b) = (open(), open());
    let end = |socket: UdpSocket, peer: &SocketAddr| Raw { socket, peer: *peer, buffer: [7; 2048] };
    let (at_a, at_b) = (a.local_addr(), b.local_addr());
    [end(a, &at_b.expect("bound")), end(b, &at_a.expect("bound"))]
}

fn takt_pair(spin: bool) -> [Takt; 2] {
    let config = UdpConfig {
        participant_index: ParticipantIndex::Ephemeral,
        interfaces: InterfaceSelection::Named(vec!["lo".into()]),
        ..UdpConfig::new(199)
    };
    let open = || UdpTransport::open(&config).expect("lo exists");
    let (a, b) = (open(), open());
    let at = |t: &UdpTransport| t.status().locators.default_unicast[0];
    let (at_a, at_b) = (at(&a), at(&b));
    let end = |transport, peer| Takt { transport, peer, spin };
    [end(a, at_b), end(b, at_a)]
}

/// Measures round trip times in ns, sorted.
fn ping_pong<E: End>(ends: &mut [E; 2], samples: usize) -> Vec<u64> {
    let [ping, pong] = ends;
    let mut times = Vec::with_capacity(samples);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            while pong.receive() == SIZE {
                pong.send(SIZE);
            }
        });
        pin(0);
        for _ in 0..samples {
            let start = Instant::now();
            ping.send(SIZE);
            assert_eq!(ping.receive(), SIZE);
            times.push(start.elapsed().as_nanos() as u64);
        }
        // Any other size ends the loop.
        ping.send(SIZE + 1);
    });
    times.sort_unstable();
    times
}

fn pin(cpu: usize) {
    // SAFETY: all-zero is an empty set, `cpu` is a small number, and the kernel reads the set
    // during the call only. A machine with one core is no error here.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

fn compare(mode: &str, spin: bool, rounds: usize, samples: usize) {
    let (mut raw, mut takt) = (raw_pair(spin), takt_pair(spin));
    let quantile = |times: &[u64], q: f64| times[((times.len() - 1) as f64 * q) as usize];
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let a = ping_pong(&mut raw, samples);
        let b = ping_pong(&mut takt, samples);
        let ratio = quantile(&b, 0.5) as f64 / quantile(&a, 0.5) as f64;
        ratios.push(ratio);
        println!(
            "{mode} {round:2}: raw min {:5} p50 {:5} p99 {:6}  takt min {:5} p50 {:5} p99 {:6} ns  ratio {ratio:.3}",
            a[0],
            quantile(&a, 0.5),
            quantile(&a, 0.99),
            b[0],
            quantile(&b, 0.5),
            quantile(&b, 0.99),
        );
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    println!("{mode}: median ratio of the medians {median:.3} [{least:.3} .. {most:.3}]\n");
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let (rounds, samples) = match numbers[..] {
        [rounds, samples] => (rounds, samples),
        _ => (15, 20_000),
    };
    compare("spin ", true, rounds, samples);
    compare("block", false, rounds, samples.div_ceil(4));
}
