//! Tests of the AF_XDP transport with the kernel's UDP as its peer.

use takt_transport::udp::UdpTransport;
use takt_transport::{Receive, Scan, Transport};
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::datagrams::{commit, message, pair_of, receive, send, user};
use crate::network::Network;

const MODES: [Mode; 2] = [Mode::Native, Mode::Generic];

/// Opens a transport over AF_XDP on one host, and one over the kernel on another.
fn pair(network: &Network, mode: Mode, know_each_other: bool) -> (XdpTransport, UdpTransport) {
    let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
    let (here, there) = (network.host(know_each_other), network.host(know_each_other));
    let udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
    (here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened"), udp)
}

#[test]
fn af_xdp_carries_rtps_in_both_directions() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (mut xdp, mut udp) = pair(&network, mode, true);
        let (at_xdp, at_udp) = (user(&xdp), user(&udp));
        let sizes = [4, 5, 17, 18, 19, 64, 333, 1472];
        for (n, len) in sizes.into_iter().enumerate() {
            send(&mut xdp, &message(n, len), at_udp);
            assert_eq!(receive(&mut udp), message(n, len), "the kernel accepts checksums and lengths");
            send(&mut udp, &message(n, len), at_xdp);
            assert_eq!(receive(&mut xdp), message(n, len), "{len} octets");
        }
        let counters = xdp.counters();
        let count = sizes.len() as u64;
        assert_eq!((counters.datagrams_out, counters.datagrams_in), (count, count));
        assert_eq!((counters.in_place_out, counters.by_kernel_out), (count, 0), "the datagram is written in place");
        assert_eq!((xdp.status().stats.bypassed_out, xdp.status().stats.bypassed_in), (count, count));
    }
}

#[test]
fn datagrams_that_the_filter_passes_arrive_at_the_sockets() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (mut xdp, mut udp) = pair(&network, mode, true);
        let at_xdp = user(&xdp);
        // No RTPS; in fragments.
        for bytes in [b"something else".to_vec(), message(0, 20_000)] {
            send(&mut udp, &bytes, at_xdp);
            assert_eq!(receive(&mut xdp), bytes);
        }
        let group = xdp.status().locators.metatraffic_multicast[0];
        send(&mut udp, &message(1, 100), group);
        assert_eq!(receive(&mut xdp), message(1, 100), "a group's");
        assert_eq!(receive(&mut udp), message(1, 100), "the sender is a member too");
        assert_eq!(xdp.counters().datagrams_in, 0);
        send(&mut xdp, &message(2, 100), group);
        assert_eq!(receive(&mut udp), message(2, 100));
        assert_eq!(receive(&mut xdp), message(2, 100));
        // To the own host.
        send(&mut xdp, &message(3, 100), at_xdp);
        assert_eq!(receive(&mut xdp), message(3, 100));
        assert_eq!((xdp.counters().datagrams_out, xdp.counters().datagrams_in), (0, 0));
    }
}

#[test]
fn segmented_datagrams_arrive_whole() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (mut xdp, mut udp) = pair(&network, mode, true);
        let at_xdp = user(&xdp);
        for n in 0..30 {
            commit(&mut udp, &message(n, 1000), at_xdp);
        }
        udp.flush().expect("flush succeeds");
        assert_eq!(udp.status().stats.segmented_out, 30, "the datagrams were sent as one segment");
        let mut received: Vec<Vec<u8>> = (0..30).map(|_| receive(&mut xdp)).collect();
        received.sort();
        let mut sent: Vec<Vec<u8>> = (0..30).map(|n| message(n, 1000)).collect();
        sent.sort();
        assert_eq!(received, sent);
        // In generic mode, the filter sees them as one frame, which is too long for it.
        let by_af_xdp = if mode == Mode::Native { 30 } else { 0 };
        assert_eq!(xdp.counters().datagrams_in, by_af_xdp);
    }
}

#[test]
fn neighbor_is_resolved_without_loss() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (mut xdp, mut udp) = pair(&network, mode, false);
        let at_udp = user(&udp);
        let mut sent = 0;
        while xdp.counters().datagrams_out < 10 {
            send(&mut xdp, &message(sent, 50), at_udp);
            assert_eq!(
                receive(&mut udp),
                message(sent, 50),
                "the first ones through the kernel, which resolves the address"
            );
            sent += 1;
            // Reads the changes of neighbors.
            assert!(xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        }
        let counters = xdp.counters();
        assert!(counters.by_kernel_out >= 1, "{counters:?}");
        assert_eq!(counters.by_kernel_out + counters.datagrams_out, sent as u64);
    }
}

#[test]
fn large_packets_are_carried_in_several_frames() {
    for mode in MODES {
        let Some(network) = Network::of_mtu(9000) else { return };
        let (here, there) = (network.host(true), network.host(true));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let mut udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let mut xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let (at_xdp, at_udp) = (user(&xdp), user(&udp));
        let most = xdp.capabilities().max_message_len;
        assert_eq!((xdp.report().frame_len, xdp.report().parts, most), (4096, 3, 9000 - 28));
        // Around the bounds of frames, for receiving and sending, and the maximum.
        let sizes = [100, 3797, 3798, 3799, 3967, 3968, 3969, 7638, 7639, 8063, 8064, 8065, most - 1, most];
        for (n, len) in sizes.into_iter().enumerate() {
            send(&mut xdp, &message(n, len), at_udp);
            assert_eq!(receive(&mut udp), message(n, len));
            send(&mut udp, &message(n, len), at_xdp);
            assert_eq!(receive(&mut xdp), message(n, len), "{len} octets");
        }
        let count = sizes.len() as u64;
        let counters = xdp.counters();
        assert_eq!((counters.datagrams_out, counters.datagrams_in), (count, count), "{mode}: {counters:?}");
        assert_eq!((counters.in_place_out, counters.invalid_entries, counters.kernel_drops), (count, 0, 0));
        // In fragments: by the kernel.
        send(&mut udp, &message(7, 20_000), at_xdp);
        assert_eq!(receive(&mut xdp), message(7, 20_000));
        assert_eq!(xdp.counters().datagrams_in, count);
    }
}

#[test]
fn unusable_interface_is_an_error() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    let none = XdpConfig { interface: "eth7".into(), ..XdpConfig::new(0, "eth0") };
    let why = host.run(|| XdpTransport::open(&none)).expect_err("the interface does not exist").to_string();
    assert!(why.contains("eth7"), "{why}");
    for frames in [0, 63, 100, 65_536] {
        let odd = XdpConfig { rx_frames: frames, ..XdpConfig::new(0, "eth0") };
        let why = host.run(|| XdpTransport::open(&odd)).expect_err("not a possible number").to_string();
        assert!(why.contains("a power of two"), "{why}");
    }
}

#[test]
fn more_large_packets_than_frames_arrive_whole() {
    for mode in MODES {
        let Some(network) = Network::of_mtu(9000) else { return };
        let config = XdpConfig { mode: Some(mode), tx_frames: 64, rx_frames: 64, ..XdpConfig::new(0, "eth0") };
        let [mut here, mut there] = pair_of(&network, || XdpTransport::open(&config));
        let to = user(&there);
        for round in 0..50 {
            // The 64 transmit chunks are 21 frames of three; these six packets are received into
            // twelve chunks.
            let sizes = [8000, 100, 8972, 4000, 20, 7000];
            for (n, len) in sizes.into_iter().enumerate() {
                commit(&mut here, &message(round + n, len), to);
            }
            here.flush().expect("flush succeeds");
            for (n, len) in sizes.into_iter().enumerate() {
                assert_eq!(receive(&mut there), message(round + n, len), "round {round}, {mode}");
            }
        }
        let (sent, received) = (here.counters(), there.counters());
        assert_eq!((sent.in_place_out, sent.no_frame_out, sent.invalid_entries), (300, 0, 0), "{sent:?}");
        assert_eq!(
            (received.datagrams_in, received.kernel_drops, received.invalid_entries),
            (300, 0, 0),
            "{received:?}"
        );
    }
}
#[test]
fn datagrams_that_fit_into_one_packet_arrive_separately() {
    for mode in MODES {
        let Some(network) = Network::new() else { return };
        let (mut xdp, mut udp) = pair(&network, mode, true);
        let at_xdp = user(&xdp);
        for n in 0..10 {
            commit(&mut udp, &message(n, 100), at_xdp);
        }
        udp.flush().expect("flush succeeds");
        let mut received: Vec<Vec<u8>> = (0..10).map(|_| receive(&mut xdp)).collect();
        received.sort();
        let mut sent: Vec<Vec<u8>> = (0..10).map(|n| message(n, 100)).collect();
        sent.sort();
        assert_eq!(received, sent, "{mode:?}");
    }
}
