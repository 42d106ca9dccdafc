//! Conformance suite on the UDP transport: UDPv4, UDPv6, both, and UDPv4 without segmentation
//! offload.
//!
//! `realm` is the number of a test in the suite. The tests of one module use consecutive domains.
//! Other modules use some of these domains too, but never at the same time ([`loopback`]).

use takt_transport::udp::UdpConfig;

use super::{loopback, open};

mod v4 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| open(&loopback(150 + realm)));
}

mod v6 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| {
        open(&UdpConfig { ipv4: false, ipv6: true, ..loopback(150 + realm) })
    });
}

mod v4_without_segmentation {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| {
        open(&UdpConfig { segmentation: false, ..loopback(190 + realm) })
    });
}

mod v4_and_v6 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| { open(&UdpConfig { ipv6: true, ..loopback(170 + realm) }) });
}
