//! The TCP transport passes the conformance suite as far as a stream can: without ports and priorities of
//! flows, and with datagrams that begin with a header of RTPS.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use takt_transport::tcp::{TcpConfig, TcpTransport};
use takt_transport::{FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats};
use takt_wire::Locator;

const HEADER: usize = 20;

/// Puts a header of RTPS before each datagram.
pub(super) struct WithHeader {
    tcp: TcpTransport,
    header: [u8; HEADER],
}

pub(super) fn open(listen: &str) -> WithHeader {
    let listen = vec![listen.parse().expect("an address")];
    let config = TcpConfig { listen, connections_per_address_max: 64, ..TcpConfig::default() };
    let mut header = *b"RTPS\x02\x05\x00\x00............";
    header[8..16].copy_from_slice(&RandomState::new().hash_one(1).to_ne_bytes());
    header[6..8].copy_from_slice(&takt_wire::VendorId::TAKT.0);
    WithHeader { tcp: TcpTransport::open(&config).expect("loopback can be used"), header }
}

impl Transport for WithHeader {
    fn name(&self) -> &'static str {
        self.tcp.name()
    }
    fn serves(&self, locator: &Locator) -> bool {
        self.tcp.serves(locator)
    }
    fn interfaces(&self) -> &[Interface] {
        self.tcp.interfaces()
    }
    fn locators(&self) -> &Locators {
        self.tcp.locators()
    }
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.tcp.open_flow(spec)
    }
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.tcp.close_flow(flow)
    }
    fn max_message_len(&self) -> usize {
        self.tcp.max_message_len() - HEADER
    }
    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        let frame = self.tcp.loan()?;
        frame[..HEADER].copy_from_slice(&self.header);
        Ok(&mut frame[HEADER..])
    }
    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        self.tcp.commit(len + HEADER, flow, destinations)
    }
    fn flush(&mut self) -> Result<(), TransportError> {
        self.tcp.flush()
    }
    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        let frame = self.tcp.recv(scan)?;
        Ok(frame.map(|frame| RxFrame::new(&frame.bytes()[HEADER..], frame.meta)))
    }
    fn descriptors(&self) -> &[RawFd] {
        self.tcp.descriptors()
    }
    fn stats(&self) -> TransportStats {
        let stats = self.tcp.stats();
        let headers = |datagrams: u64| datagrams * HEADER as u64;
        TransportStats {
            bytes_in: stats.bytes_in - headers(stats.datagrams_in),
            bytes_out: stats.bytes_out - headers(stats.datagrams_out),
            ..stats
        }
    }
}

mod v4 {
    use super::*;

    takt_transport::conformance_cases!(streams[takt_transport::conformance_tests][|_: u32| open("127.0.0.1:0")]);
}

mod v6 {
    use super::*;

    takt_transport::conformance_cases!(streams[takt_transport::conformance_tests][|_: u32| open("[::1]:0")]);
}

#[test]
fn listening_everywhere_announces_where() {
    let config = TcpConfig { listen: vec![(Ipv4Addr::UNSPECIFIED, 0).into()], ..TcpConfig::default() };
    let transport = TcpTransport::open(&config).expect("all addresses can be listened at");
    let announced = &transport.locators().default_unicast;
    assert!(!announced.is_empty() && announced.iter().all(|locator| transport.serves(locator)), "{announced:?}");
}
