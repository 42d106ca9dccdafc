//! Tests of the cost of one datagram between the caller of the transport and the kernel, in each
//! direction: copies, system calls, allocations. The results are the table of
//! `docs/design/data-path.md`.

use takt_testkit::memory::allocations;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, FramePort, PacketConfig};
use takt_transport::{Receive, Scan, Transport};
use takt_wire::Locator;
use takt_xdp::{Mode, XdpConfig, XdpPort, XdpPortConfig, XdpTransport};

use crate::counting_calls::{Calls, with_counted_calls};
use crate::datagrams::{commit, message, pair_of, receive, send, user};
use crate::network::Network;

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

/// Number of datagrams that are sent and received one by one.
const COUNT: usize = 100;

/// Number of `recv` calls between two polls of the kernel's sockets.
const INTERVAL: usize = 128;

/// Sends datagrams one by one, and then as many by one `flush` as the kernel accepts at once.
/// Checks the system calls and allocations.
fn send_all(calls: &Calls, transport: &mut impl Transport, to: Locator, len: usize) {
    let (bytes, mut count) = (message(1, len), 0);
    let made = calls.during(|| {
        count = allocations(|| {
            for _ in 0..COUNT {
                send(transport, &bytes, to);
            }
        });
    });
    assert_eq!((made, count), (vec![libc::SYS_sendto; COUNT], 0), "one system call per datagram");
    let made = calls.during(|| {
        for _ in 0..10 {
            commit(transport, &bytes, to);
        }
        transport.flush().expect("flush succeeds");
    });
    assert_eq!(made, [libc::SYS_sendto], "one system call for all datagrams");
}

/// Receives the datagrams of `send_all`. Returns the system calls that as many calls of `recv`
/// made.
fn receive_all(calls: &Calls, transport: &mut impl Transport, len: usize) -> Vec<i64> {
    let (mut received, mut count) = (0, 0);
    let made = calls.during(|| {
        count = allocations(|| {
            for _ in 0..INTERVAL {
                if let Some(frame) = transport.recv(Receive::Any(Scan::Hot)).expect("receive succeeds") {
                    assert_eq!((frame.len(), frame[5]), (len, 5 * 7 + 1));
                    received += 1;
                }
            }
        });
    });
    assert_eq!((received, count), (COUNT + 10, 0), "all datagrams arrive without allocation");
    made
}

#[test]
fn udp_datagram_is_not_copied_and_takes_one_system_call_out_and_none_in() {
    for mode in MODES {
        for (mtu, len, is_copied_in) in [(1500, 1000, false), (9000, 8000, true)] {
            let Some(network) = Network::of_mtu(mtu) else { return };
            let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
            let [mut a, mut b] = pair_of(&network, || XdpTransport::open(&config));
            let to = user(&b);
            // One-time work.
            send(&mut a, &message(0, 10), to);
            receive(&mut b);
            let made = with_counted_calls(|calls| {
                send_all(calls, &mut a, to, len);
                receive_all(calls, &mut b, len)
            });
            let Some(made) = made else { return };
            // One poll of the kernel's sockets, and of the changes of neighbors and interfaces.
            assert!(made.len() <= 6, "{made:?}");
            let (sent, received) = (a.counters(), b.counters());
            let all = COUNT as u64 + 11;
            assert_eq!((sent.in_place_out, sent.datagrams_out, received.datagrams_in), (all, all, all));
            assert_eq!(received.in_place_in, if is_copied_in { 1 } else { all }, "{mode}: {received:?}");
        }
    }
}

#[test]
fn layer_2_frame_is_not_copied_and_takes_one_system_call_out_and_none_in() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let config =
            XdpPortConfig { packet: PacketConfig::new("eth0"), mode: Some(mode), ..XdpPortConfig::new("eth0") };
        let open = || EthernetTransport::open(XdpPort::open(&config)?, &EthernetConfig::new(0));
        let [mut a, mut b] = pair_of(&network, open);
        let to = user(&b);
        send(&mut a, &message(0, 10), to);
        receive(&mut b);
        let made = with_counted_calls(|calls| {
            send_all(calls, &mut a, to, 1000);
            receive_all(calls, &mut b, 1000)
        });
        let Some(made) = made else { return };
        assert!(made.is_empty(), "{made:?}");
        let all = COUNT as u64 + 11;
        assert_eq!((a.port().stats().in_place_out, b.port().received_by_xdp()), (all, all), "{mode}");
    }
}
