//! Conformance of the daemon transport, as far as it applies: without own ports of flows, and with
//! RTPS messages. Each transport has its own daemon, on loopback.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use takt_testkit::domain;
use takt_transport::daemon::{Bundling, Daemon, DaemonConfig, DaemonTransport};
use takt_transport::udp::{InterfaceSelection, ParticipantIndex, UdpConfig};

use super::with_header::WithHeader;

/// Number of started daemons.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Opens a transport with its own daemon, which ends with it.
fn open(realm: u32, bundling: Bundling) -> WithHeader<DaemonTransport> {
    let (domain_id, number) = (160 + realm, COUNT.fetch_add(1, Ordering::Relaxed));
    domain::claim(domain_id);
    let name = format!("conforms-{}-{number}", std::process::id());
    let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
    // Datagrams to well-known ports of an earlier daemon could still be in transit.
    let udp = UdpConfig { interfaces, participant_index: ParticipantIndex::Ephemeral, ..UdpConfig::new(0) };
    let config = DaemonConfig { name: Some(name.clone()), udp, bundling, ..DaemonConfig::default() };
    let mut daemon = Daemon::open(config).expect("the name is not in use");
    std::thread::spawn(move || {
        let mut had_application = false;
        while !had_application || daemon.applications() > 0 {
            daemon.run_once(Duration::from_millis(10)).expect("the runtime can wait");
            had_application |= daemon.applications() > 0;
        }
    });
    WithHeader::new(DaemonTransport::open(Some(&name), domain_id, true).expect("the domain is served"))
}

mod by_default {
    use super::*;

    takt_transport::conformance_cases!(
        streams[takt_transport::conformance_tests][|realm: u32| open(realm, Bundling::Daemons)]
    );
}

mod with_bundles_to_all {
    use super::*;

    takt_transport::conformance_cases!(
        streams[takt_transport::conformance_tests][|realm: u32| open(20 + realm, Bundling::All)]
    );
}
