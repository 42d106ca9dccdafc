//! Participant on a host of the lab, driven by the calling thread: on UDP sockets, or in a VLAN on
//! the host's interface.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant as Clock};

use mio::{Events, Interest, Poll, Token};
use takt_core::{
    ChangeKind, Config, Instant, Interface, NewChange, Participant, ReadCursor, ReaderHandle, Received, Selector,
    WriterHandle, WriterSpec,
};
use takt_lab::Lab;
use takt_netlink::frame_socket::FrameSocket;
use takt_netlink::interface_index;
use takt_testkit::waiting::LIMIT;
use takt_wire::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use takt_wire::{GuidPrefix, Locator, Timestamp};

use super::tagged::Tagged;
use crate::endpoints::{reader_spec, writer_spec};

pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
pub(super) const MULTICAST: u16 = 7400;
pub(super) const METATRAFFIC: u16 = 7410;
pub(super) const USER: u16 = 7411;
/// Receive buffer size in octets of a frame capture.
const BUFFER_LEN: i32 = 8 << 20;
/// Encapsulation header of plain CDR, little-endian.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];

/// Network access of a participant.
enum Wire {
    /// Sockets of multicast discovery, unicast discovery, and samples. The second one sends
    /// everything.
    Sockets(Poll, [mio::net::UdpSocket; 3]),
    /// Frames with a VLAN tag.
    Tagged(Tagged),
}

pub struct Station {
    participant: Participant,
    wire: Wire,
    start: Clock,
}

impl Station {
    /// Joins domain 0 on a host.
    pub fn open(lab: &Lab, host: &str, address: Ipv4Addr, number: u8) -> Self {
        let namespace = lab.namespace(host).expect("the lab file has the host");
        let bind = |ip: Ipv4Addr, port| UdpSocket::bind((ip, port)).expect("the port is free");
        let open = || {
            let group = bind(GROUP, MULTICAST);
            group.join_multicast_v4(&GROUP, &address).expect("the interface has the address");
            [group, bind(address, METATRAFFIC), bind(address, USER)]
        };
        let sockets = namespace.run(open).expect("root");
        let poll = Poll::new().expect("a poll");
        let mut token = 0;
        let sockets = sockets.map(|socket| {
            socket.set_nonblocking(true).expect("a socket");
            let mut socket = mio::net::UdpSocket::from_std(socket);
            poll.registry().register(&mut socket, Token(token), Interest::READABLE).expect("a socket");
            token += 1;
            socket
        });
        Self::on(Wire::Sockets(poll, sockets), address, number)
    }

    /// Joins domain 0 in a VLAN, without the IP stack of the host.
    pub fn open_in_vlan(lab: &Lab, host: &str, address: Ipv4Addr, number: u8) -> Self {
        let namespace = lab.namespace(host).expect("the lab file has the host");
        let open = || FrameSocket::capture(interface_index("eth0")?, BUFFER_LEN);
        let socket = namespace.run(open).expect("root").expect("the interface is there");
        Self::on(Wire::Tagged(Tagged::new(socket, address)), address, number)
    }

    fn on(wire: Wire, address: Ipv4Addr, number: u8) -> Self {
        let mut config = Config::new(0, GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 2, number]));
        let locator = |port| vec![Locator::from(SocketAddr::from((address, port)))];
        let addresses = vec![(address.into(), 24)];
        config.interfaces = vec![Interface { name: "eth0".into(), addresses, mtu: 1500, loopback: false }];
        config.locators.metatraffic_unicast = locator(METATRAFFIC);
        config.locators.default_unicast = locator(USER);
        config.initial_peers = vec![Locator::udp_v4(GROUP, MULTICAST)];
        let mut participant = Participant::new(config, Instant(0)).expect("the configuration is valid");
        participant.set_wall_clock(Instant(0), Timestamp::from_nanos(1_700_000_000_000_000_000));
        Self { participant, wire, start: Clock::now() }
    }

    fn now(&self) -> Instant {
        Instant(self.start.elapsed().as_nanos() as u64)
    }

    /// Drives the participant until a time.
    pub fn run_until(&mut self, end: Clock) {
        let mut timeout = Duration::ZERO;
        loop {
            self.receive(timeout);
            let now = self.now();
            self.participant.handle_timeout(now);
            while self.participant.poll_event().is_some() {}
            self.send();
            let left = end.saturating_duration_since(Clock::now());
            if left.is_zero() {
                return;
            }
            let due =
                self.participant.poll_timeout().map_or(left, |at| Duration::from_nanos(at.0.saturating_sub(now.0)));
            timeout = left.min(due);
        }
    }

    /// Drives the participant while a condition holds, for at most [`LIMIT`].
    pub fn run_while(&mut self, awaited: &str, mut is_waiting: impl FnMut(&mut Self) -> bool) {
        let begin = Clock::now();
        while is_waiting(self) {
            assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}: {awaited}");
            self.run_until(Clock::now() + Duration::from_millis(10));
        }
    }

    /// Processes received datagrams, and waits for the first one for at most `timeout`.
    fn receive(&mut self, timeout: Duration) {
        let (start, participant) = (self.start, &mut self.participant);
        let mut handle = |source: SocketAddr, multicast, message: &[u8]| {
            let now = Instant(start.elapsed().as_nanos() as u64);
            participant.handle_datagram(now, Received { source: Locator::from(source), multicast }, message);
        };
        match &mut self.wire {
            Wire::Sockets(poll, sockets) => {
                match poll.poll(&mut Events::with_capacity(8), Some(timeout)) {
                    Err(error) if error.kind() != ErrorKind::Interrupted => panic!("{error}"),
                    _ => {}
                }
                receive_all(sockets, &mut handle);
            }
            Wire::Tagged(tagged) => tagged.receive(timeout, &mut handle),
        }
    }

    fn send(&mut self) {
        let mut frame = vec![0; 65_507];
        let now = self.now();
        while let Some(transmit) = self.participant.poll_transmit(now, &mut frame) {
            let (len, destinations) = (transmit.len, transmit.destinations.to_vec());
            for to in destinations.iter().filter_map(Locator::socket_addr) {
                match &self.wire {
                    Wire::Sockets(_, sockets) => match sockets[1].send_to(&frame[..len], to) {
                        Err(error) if error.kind() != ErrorKind::ConnectionRefused => panic!("to {to}: {error}"),
                        _ => {}
                    },
                    Wire::Tagged(tagged) => tagged.send(to, &frame[..len]),
                }
            }
        }
    }

    /// Creates a best-effort writer with a contract.
    pub fn writer(&mut self, topic: &str, user_data: &str, sample_len: usize) -> WriterHandle {
        let qos = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        let spec = WriterSpec { max_serialized_len: Some(sample_len), ..writer_spec(topic, user_data, qos) };
        let now = self.now();
        self.participant.create_writer(now, spec).expect("the writer can be created")
    }

    /// Creates a best-effort reader with a contract and KEEP_ALL history.
    pub fn reader(&mut self, topic: &str, user_data: &str) -> ReaderHandle {
        let (reliability, history) = (Reliability::BEST_EFFORT, History::KeepAll);
        let qos = DataReaderQos { reliability, history, ..DataReaderQos::default() };
        let spec = reader_spec(topic, user_data, qos);
        let now = self.now();
        self.participant.create_reader(now, spec).expect("the reader can be created")
    }

    pub fn is_matched_writer(&mut self, writer: WriterHandle) -> bool {
        !self.participant.matched_subscriptions(writer).expect("the writer exists").is_empty()
    }

    pub fn is_matched_reader(&mut self, reader: ReaderHandle) -> bool {
        !self.participant.matched_publications(reader).expect("the reader exists").is_empty()
    }

    /// Writes a sample that begins with its number.
    pub fn write(&mut self, writer: WriterHandle, number: u32, len: usize) {
        let now = self.now();
        let (kind, key_hash) = (ChangeKind::Alive, [0; 16]);
        let change = NewChange { kind, key_hash, source_timestamp: None, destinations: &[], payload_len: len };
        let fill = |slot: &mut [u8]| {
            slot[..4].copy_from_slice(&ENCAPSULATION);
            slot[4..8].copy_from_slice(&number.to_le_bytes());
            Some(len)
        };
        self.participant.write(now, writer, &change, fill).expect("the writer accepts the sample");
    }

    /// Takes the available samples and returns their numbers.
    pub fn take(&mut self, reader: ReaderHandle) -> Vec<u32> {
        let (now, mut cursor, mut numbers) = (self.now(), ReadCursor::default(), Vec::new());
        while let Some(sample) =
            self.participant.read_next(now, reader, Selector::TAKE, &mut cursor).expect("the reader exists")
        {
            // The disposal of an instance has no payload.
            let number = sample.payload.get(4..8).and_then(|octets| octets.try_into().ok());
            numbers.extend(number.map(u32::from_le_bytes));
        }
        self.participant.end_read(now, reader).expect("the reader exists");
        numbers
    }
}

/// Receives all pending datagrams of the sockets.
fn receive_all(sockets: &[mio::net::UdpSocket], handle: &mut impl FnMut(SocketAddr, bool, &[u8])) {
    let mut buffer = vec![0; 65_507];
    for (index, socket) in sockets.iter().enumerate() {
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((len, from)) => handle(from, index == 0, &buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An ICMP error for an earlier datagram.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
