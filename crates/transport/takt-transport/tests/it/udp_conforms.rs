//! Conformance of UDPv4 and UDPv6.

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

mod v4_one_by_one {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| {
        open(&UdpConfig { segmentation: false, ..loopback(190 + realm) })
    });
}

mod v4_and_v6 {
    use super::*;

    takt_transport::conformance_tests!(|realm: u32| { open(&UdpConfig { ipv6: true, ..loopback(170 + realm) }) });
}
