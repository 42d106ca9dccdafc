//! Conformance suite of transports, generic over how a transport is opened.
//!
//! Every backend must pass it. The crate of the backend writes, in a test:
//!
//! ```
//! # use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
//! fn open(realm: u32) -> UdpTransport {
//!     UdpTransport::open(&UdpConfig {
//!         interfaces: InterfaceSelection::Named(vec!["lo".into()]),
//!         ..UdpConfig::new(200 + realm)
//!     })
//!     .expect("lo is there")
//! }
//!
//! takt_transport::conformance_tests!(open);
//! ```
//!
//! `open` is called several times with the same *realm*: those transports must reach each other.
//! Each test has its own realm (below 20) and must not reach other realms. The transport under test
//! must not lose datagrams that fit into its buffers.

mod flows;
mod receiving;
mod sending;
mod unicast;

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use takt_wire::Locator;

use crate::{Commit, FlowId, Receive, RxMeta, Scan, Transport, readiness};

pub use flows::*;
pub use receiving::*;
pub use sending::*;
pub use unicast::*;

/// Time limit for the arrival of a datagram, after which the test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Calls a macro with the behaviors of the suite, each numbered: `conformance_cases!(all
/// [the_macro] [arguments])` makes `the_macro! { [arguments] 0
/// reply_reaches_the_sender_of_a_datagram, ... }`. With `streams`, only those that need no flow
/// with its own port, which a stream does not have.
#[macro_export]
macro_rules! conformance_cases {
    (@ all $then:tt $arguments:tt { $($every:tt)* } { $($flows:tt)* }) => {
        $crate::conformance_cases!(@ call $then $arguments $($every)* $($flows)*);
    };
    (@ streams $then:tt $arguments:tt { $($every:tt)* } { $($flows:tt)* }) => {
        $crate::conformance_cases!(@ call $then $arguments $($every)*);
    };
    (@ call [$($then:tt)*] $arguments:tt $($cases:tt)*) => {
        $($then)*! { $arguments $($cases)* }
    };
    ($which:ident $then:tt $arguments:tt) => {
        $crate::conformance_cases!(@ $which $then $arguments
            {
                0 reply_reaches_the_sender_of_a_datagram,
                1 every_announced_unicast_locator_is_reached,
                2 multicast_reaches_all_members_and_oneself,
                3 every_size_is_delivered,
                4 more_datagrams_than_a_batch_are_delivered,
                5 one_frame_reaches_all_its_destinations,
                6 unreachable_destination_does_not_affect_the_others,
                7 frame_is_kept_until_it_is_committed,
                8 misuse_of_frames_is_an_error,
                10 flow_without_requirements_is_the_default_flow,
                14 sent_and_received_datagrams_are_counted,
                16 hot_scan_finds_every_datagram_eventually,
                17 received_frame_is_valid_until_the_next_receive,
                18 queued_datagram_makes_a_descriptor_readable,
                19 sleeping_receiver_is_woken_by_every_datagram,
            }
            {
                9 flow_has_its_own_port,
                11 closed_flow_is_removed,
                12 urgent_flows_are_delivered,
                13 datagrams_of_many_flows_are_all_received,
                15 descriptors_are_readable_when_datagrams_arrive,
            }
        );
    };
}

/// Defines a `#[test]` for every behavior, for transports opened by `$open`, a `Fn(u32) -> impl
/// Transport`. Use it once per module.
#[macro_export]
macro_rules! conformance_tests {
    ([$open:expr] $($realm:literal $name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $crate::conformance::$name(|| ($open)($realm));
            }
        )*
    };
    ($open:expr) => {
        $crate::conformance_cases!(all [$crate::conformance_tests] [$open]);
    };
}

/// Datagrams of one test: a random mark, a sequence number, and bytes derived from it.
pub(crate) struct Marked {
    mark: [u8; 8],
}

impl Marked {
    const HEADER: usize = 12;

    pub(crate) fn new() -> Self {
        let random = RandomState::new().hash_one(std::process::id());
        Self { mark: random.to_ne_bytes() }
    }

    /// Writes datagram number `n` into the frame.
    pub(crate) fn write(&self, n: u32, frame: &mut [u8]) {
        let whole: Vec<u8> = self.bytes(n, frame.len()).collect();
        frame.copy_from_slice(&whole);
    }

    fn bytes(&self, n: u32, len: usize) -> impl Iterator<Item = u8> {
        let fill = (0..).map(move |i: u32| (i ^ n).wrapping_mul(0x9e37_79b1).to_be_bytes()[0]);
        let header = self.mark.into_iter().chain(n.to_le_bytes());
        header.chain(fill).take(len)
    }

    /// Returns the number of a datagram with the mark of this test; panics if it is damaged.
    pub(crate) fn number(&self, datagram: &[u8]) -> Option<u32> {
        let (header, _) = datagram.split_at_checked(Self::HEADER)?;
        if header[..8] != self.mark {
            return None;
        }
        let n = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        assert!(
            self.bytes(n, datagram.len()).eq(datagram.iter().copied()),
            "datagram {n} of {} bytes arrived damaged",
            datagram.len()
        );
        Some(n)
    }
}

/// Queues datagram number `n` of `len` bytes.
pub(crate) fn commit(
    transport: &mut impl Transport,
    marked: &Marked,
    n: u32,
    len: usize,
    flow: FlowId,
    to: &[Locator],
) {
    let frame = transport.loan().expect("a frame is loaned");
    marked.write(n, &mut frame[..len]);
    transport.commit(Commit::new(len, flow, to)).expect("the frame is accepted");
}

/// Sends datagram number `n` of 64 bytes by the default flow.
pub(crate) fn send(transport: &mut impl Transport, marked: &Marked, n: u32, to: Locator) {
    commit(transport, marked, n, 64, FlowId::DEFAULT, &[to]);
    transport.flush().expect("flush succeeds");
}

/// Waits for the next datagram of this test and returns its number, length and origin.
pub(crate) fn receive(transport: &mut impl Transport, marked: &Marked, scan: Scan) -> (u32, usize, RxMeta) {
    let since = Instant::now();
    loop {
        let frame = transport.recv(Receive::Any(scan)).expect("receive succeeds");
        let found = frame.map(|f| marked.number(&f).map(|n| (n, f.len(), f.meta)));
        match found {
            Some(Some(found)) => return found,
            Some(None) => {}
            None if scan == Scan::All && !transport.status().descriptors.is_empty() => {
                let left = TIMEOUT.saturating_sub(since.elapsed());
                readiness::wait(transport.status().descriptors, Some(left)).expect("wait succeeds");
            }
            None => std::thread::yield_now(),
        }
        assert!(since.elapsed() < TIMEOUT, "nothing arrives: {:?}", transport.status().stats);
    }
}

/// Asserts that no datagram of this test is pending: sends one more and checks that it arrives
/// first.
pub(crate) fn assert_nothing_before(
    sender: &mut impl Transport,
    receiver: &mut impl Transport,
    marked: &Marked,
    to: Locator,
) {
    const LAST: u32 = u32::MAX;
    send(sender, marked, LAST, to);
    assert_eq!(receive(receiver, marked, Scan::All).0, LAST);
}

/// Returns the first locator; panics if there is none.
pub(crate) fn first(locators: &[Locator]) -> Locator {
    *locators.first().expect("a locator is announced")
}
