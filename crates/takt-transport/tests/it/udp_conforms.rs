//! UDPv4 and UDPv6 pass the conformance suite.

use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};

/// A transport of loopback alone. Two in the same realm share a domain.
fn open(config: UdpConfig) -> UdpTransport {
    let config = UdpConfig {
        interfaces: InterfaceSelection::Named(vec!["lo".into()]),
        ..config
    };
    UdpTransport::open(&config).expect("loopback can be used")
}

mod v4 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| open(UdpConfig::new(150 + realm)));
}

mod v6 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| open(UdpConfig {
        ipv4: false,
        ipv6: true,
        ..UdpConfig::new(150 + realm)
    }));
}

mod v4_and_v6 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| open(UdpConfig {
        ipv6: true,
        ..UdpConfig::new(170 + realm)
    }));
}
