//! Conformance of the TCP transport, as far as it applies to a stream: without ports and priorities
//! of flows, and with datagrams that begin with an RTPS header.

use std::net::Ipv4Addr;

use takt_transport::Transport;
use takt_transport::tcp::{TcpConfig, TcpTransport};

use super::with_header::WithHeader;

pub(super) fn open(listen: &str) -> WithHeader<TcpTransport> {
    let listen = vec![listen.parse().expect("a valid address")];
    let config = TcpConfig { listen, connections_per_address_max: 64, ..TcpConfig::default() };
    WithHeader::new(TcpTransport::open(&config).expect("loopback can be used"))
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
fn listening_at_the_unspecified_address_announces_all_addresses() {
    let config = TcpConfig { listen: vec![(Ipv4Addr::UNSPECIFIED, 0).into()], ..TcpConfig::default() };
    let transport = TcpTransport::open(&config).expect("all addresses can be bound");
    let announced = &transport.status().locators.default_unicast;
    assert!(
        !announced.is_empty() && announced.iter().all(|locator| transport.reach(locator).is_served()),
        "{announced:?}"
    );
}
