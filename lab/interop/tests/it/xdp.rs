//! Interoperability of Takt over AF_XDP with peers over kernel UDP, on one switch: the cases and
//! checks of the tests over sockets, and their streams over an impaired link.
//!
//! `TAKT_TEST_LONG=1` runs all cases, in native and in generic mode, at all loss rates. The default
//! is the representative cases in native mode. In generic mode the peers send no datagram longer
//! than a packet, so that their large samples arrive through AF_XDP as well. In native mode the
//! peers have their default settings, and IP fragments arrive through Takt's sockets.

use takt_interop::peer::{Options, Xdp};
use takt_interop::programs::Program;

use crate::exchange::Case;
use crate::interoperability::takt_and;
use crate::loss::survives;

const NATIVE: Options =
    Options { domain: 0, max_message: 0, tcp: None, xdp: Some(Xdp::Native), daemon: false, clear_discovery: false };
/// INTEROP(Fast DDS 2.9.1): receives no datagram that is longer than the longest that it may send.
const ONE_PACKET: u32 = 1472;
const GENERIC: Options = Options { max_message: ONE_PACKET, xdp: Some(Xdp::Generic), ..NATIVE };

/// Number of datagrams of at most 1,472 octets in a sample of 4 MiB.
const LARGE_SAMPLE_DATAGRAMS: u64 = 2850;

#[test]
fn cyclonedds_0_10_and_takt_exchange_by_xdp() {
    exchanges_with(Program::Cyclone10);
}

#[test]
fn cyclonedds_11_and_takt_exchange_by_xdp() {
    exchanges_with(Program::Cyclone11);
}

#[test]
fn fast_dds_2_and_takt_exchange_by_xdp() {
    exchanges_with(Program::FastDds2);
}

#[test]
fn fast_dds_3_and_takt_exchange_by_xdp() {
    exchanges_with(Program::FastDds3);
}

fn exchanges_with(peer: Program) {
    let Some((received, sent)) =
        takt_and(peer, NATIVE, if takt_testkit::is_full_length() { |_| true } else { Case::is_representative })
    else {
        return;
    };
    // Two samples of 4 MiB each, reliable and for a late joiner, and their acknowledgments.
    assert!(sent > 4 * LARGE_SAMPLE_DATAGRAMS && received > 100, "{received} in, {sent} out");
    if takt_testkit::is_full_length() {
        let Some((received, sent)) = takt_and(peer, GENERIC, |_| true) else { return };
        assert!(
            sent > 4 * LARGE_SAMPLE_DATAGRAMS && received > 4 * LARGE_SAMPLE_DATAGRAMS,
            "{received} in, {sent} out"
        );
    }
}

#[test]
fn takt_to_cyclonedds_survives_impairment_by_xdp() {
    survive(Program::Takt, Program::Cyclone11);
}

#[test]
fn cyclonedds_to_takt_survives_impairment_by_xdp() {
    survive(Program::Cyclone11, Program::Takt);
}

#[test]
fn takt_to_takt_survives_impairment_by_xdp() {
    survive(Program::Takt, Program::Takt);
}

fn survive(publisher: Program, subscriber: Program) {
    let options = Options { max_message: ONE_PACKET, ..NATIVE };
    let rates: &[u32] = if takt_testkit::is_full_length() { &[1, 10, 30] } else { &[10] };
    for counters in survives(publisher, subscriber, options, rates).into_iter().flatten() {
        // Samples pass in one direction and acknowledgments in the other. One acknowledgment covers
        // many samples.
        let (more, fewer) = (counters.0.max(counters.1), counters.0.min(counters.1));
        assert!(more > 500 && fewer > 10, "{counters:?} datagrams by AF_XDP");
    }
}
