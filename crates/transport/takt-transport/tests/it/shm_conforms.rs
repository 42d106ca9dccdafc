//! Conformance of the shared memory transport, with rings of the default and of the smallest size.

use takt_transport::shm::{ShmConfig, ShmTransport};

fn open(config: &ShmConfig) -> ShmTransport {
    ShmTransport::open(config).expect("Linux 5.14")
}

mod by_default {
    use super::*;

    takt_transport::conformance_tests!(|_: u32| open(&ShmConfig::default()));
}

mod with_small_rings {
    use super::*;

    takt_transport::conformance_tests!(|_: u32| open(&ShmConfig { ring_bytes: 256 << 10, ..ShmConfig::default() }));
}
