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
    ($($name:ident)*) => {
        conforms!(native, Mode::Native, $($name)*);
        conforms!(generic, Mode::Generic, $($name)*);
    };
}

conforms! {
    a_datagram_is_answered_to_its_sender
    every_announced_unicast_locator_is_reached
    multicast_reaches_all_members_and_oneself
    every_size_is_carried
    more_than_a_batch_is_carried
    one_frame_goes_to_many
    a_bad_destination_costs_the_others_nothing
    a_frame_is_kept_until_it_is_committed
    misuse_of_frames_is_an_error
    a_flow_has_its_own_port
    a_flow_without_demands_is_the_default_one
    a_closed_flow_is_no_more
    urgent_flows_are_carried
    many_flows_are_all_heard
    what_is_carried_is_counted
    descriptors_tell_when_to_look
    a_hot_scan_finds_everything_in_the_end
    a_received_frame_is_lent_until_the_next
    what_is_not_taken_yet_makes_a_descriptor_readable
    whoever_sleeps_is_woken
}
