//! Takt by AF_XDP, the others by their kernels' UDP, at one switch: the same cases as over sockets, recorded and judged as
//! there, and the same streams over a link that loses, repeats and delays.
//!
//! `TAKT_TEST_LONG=1` runs all cases, natively and generically, and all loss rates; else it is the representative ones, natively.
//! In generic mode the others send no datagram that is longer than a packet, so that their large samples come by AF_XDP as
//! well; natively they do what they do by themselves, and IP fragments come through Takt's sockets.

use takt_interop::peer::{Options, Xdp};
use takt_interop::programs::Program;

use crate::exchange::Case;
use crate::interoperability::takt_and;
use crate::loss::{is_long, survives};

const NATIVE: Options =
    Options { domain: 0, max_message: 0, tcp: None, xdp: Some(Xdp::Native), daemon: false, clear_discovery: false };
/// INTEROP(Fast DDS 2.9.1): receives no datagram that is longer than the longest that it may send.
const ONE_PACKET: u32 = 1472;
const GENERIC: Options = Options { max_message: ONE_PACKET, xdp: Some(Xdp::Generic), ..NATIVE };

/// A sample of 4 MB in datagrams of at most 1,472 octets.
const LARGE_SAMPLE: u64 = 2850;

#[test]
fn cyclonedds_0_10() {
    exchanges_with(Program::Cyclone10);
}

#[test]
fn cyclonedds_11() {
    exchanges_with(Program::Cyclone11);
}

#[test]
fn fast_dds_2() {
    exchanges_with(Program::FastDds2);
}

#[test]
fn fast_dds_3() {
    exchanges_with(Program::FastDds3);
}

fn exchanges_with(peer: Program) {
    let Some((received, sent)) = takt_and(peer, NATIVE, if is_long() { |_| true } else { Case::is_representative })
    else {
        return;
    };
    // Two samples of 4 MB each, reliable and for a late joiner; and what answers them.
    assert!(sent > 4 * LARGE_SAMPLE && received > 100, "{received} in, {sent} out");
    if is_long() {
        let Some((received, sent)) = takt_and(peer, GENERIC, |_| true) else { return };
        assert!(sent > 4 * LARGE_SAMPLE && received > 4 * LARGE_SAMPLE, "{received} in, {sent} out");
    }
}

#[test]
fn a_bad_link_from_takt_to_cyclonedds() {
    survive(Program::Takt, Program::Cyclone11);
}

#[test]
fn a_bad_link_from_cyclonedds_to_takt() {
    survive(Program::Cyclone11, Program::Takt);
}

#[test]
fn a_bad_link_between_two_of_takt() {
    survive(Program::Takt, Program::Takt);
}

fn survive(publisher: Program, subscriber: Program) {
    let options = Options { max_message: ONE_PACKET, ..NATIVE };
    let rates: &[u32] = if is_long() { &[1, 10, 30] } else { &[10] };
    for carried in survives(publisher, subscriber, options, rates).into_iter().flatten() {
        // Data one way and answers the other way: a few of these must do for many of those.
        let (more, fewer) = (carried.0.max(carried.1), carried.0.min(carried.1));
        assert!(more > 500 && fewer > 10, "{carried:?} past the kernel");
    }
}
