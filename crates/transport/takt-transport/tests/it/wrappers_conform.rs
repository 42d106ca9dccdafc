//! Conformance of transport wrappers.

use super::{loopback, open};

mod boxed {
    use super::*;
    use takt_transport::Transport;

    takt_transport::conformance_tests!(|realm: u32| -> Box<dyn Transport> { Box::new(open(&loopback(190 + realm))) });
}

mod fault_injector_without_faults {
    use super::*;
    use takt_transport::{FaultConfig, FaultInjector};

    takt_transport::conformance_tests!(|realm: u32| {
        FaultInjector::new(open(&loopback(210 + realm)), FaultConfig::default())
    });
}

mod tracer {
    use super::*;
    use takt_transport::{TraceEvent, Tracer};

    takt_transport::conformance_tests!(|realm: u32| {
        Tracer::new(open(&loopback(130 + realm)), |_: TraceEvent<'_>| {})
    });
}

mod pcap_tap {
    use super::*;
    use takt_transport::PcapTap;

    takt_transport::conformance_tests!(|realm: u32| {
        let path = std::env::temp_dir().join(format!("takt-{}-{realm}.pcap", std::process::id()));
        let tap = PcapTap::create(open(&loopback(110 + realm)), &path, 1 << 20);
        // The unlinked file disappears with its last open descriptor.
        std::fs::remove_file(&path).expect("the file exists");
        tap.expect("a temporary file can be written")
    });
}

mod capture {
    use super::*;
    use std::sync::Arc;
    use takt_transport::Capture;

    takt_transport::conformance_tests!(|realm: u32| {
        let path = std::env::temp_dir().join(format!("takt-{}-{realm}.pcapng", std::process::id()));
        let capture = Capture::open(&path.display().to_string(), 1 << 20, |_| ());
        // The unlinked file disappears with its last open descriptor. The transports of a test
        // share it, so that only the first finds it.
        let _ = std::fs::remove_file(&path);
        let capture = Arc::new(capture.expect("a temporary file can be written"));
        capture.tap(Box::new(open(&loopback(150 + realm))), "")
    });
}
