//! AF_XDP passes the conformance suite, in both modes: every transport on a host of its own, all at one bridge.
//!
//! The hosts know each other's hardware addresses from the start, so that every unicast datagram goes by AF_XDP and order is
//! kept; that addresses are resolved is another test. What is carried is no RTPS, so the filter takes whatever comes to
//! the ports.

use takt_xdp::{Mode, XdpConfig, XdpTransport};

use super::network::Network;
use super::resident::Resident;

fn config(domain_id: u32, mode: Mode) -> XdpConfig {
    XdpConfig { mode: Some(mode), rtps_only: false, ..XdpConfig::new(domain_id, "eth0") }
}

/// Runs a test of the suite, if a transport can be opened in this mode; else why not is printed.
fn in_mode(mode: Mode, test: impl FnOnce(&dyn Fn() -> Resident)) {
    let Some(network) = Network::new() else { return };
    let open = || {
        let host = network.host(true);
        let opened = host.run(|| XdpTransport::open(&config(0, mode)));
        opened.map(|xdp| Resident::new(xdp, host, None))
    };
    match open() {
        Ok(resident) => assert_eq!(resident.report().mode, mode),
        Err(why) => return eprintln!("not tested: {why}"),
    }
    test(&|| open().expect("one could be opened a moment ago"));
}

macro_rules! conforms {
    ($module:ident, $mode:expr, $($name:ident)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    in_mode($mode, |open| takt_transport::conformance::$name(open));
                }
            )*
        }
    };
    ([] $($realm:literal $name:ident,)*) => {
        conforms!(native, Mode::Native, $($name)*);
        conforms!(generic, Mode::Generic, $($name)*);
    };
}

takt_transport::conformance_cases!(all [conforms] []);
