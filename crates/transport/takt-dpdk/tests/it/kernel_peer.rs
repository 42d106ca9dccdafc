//! Tests of the DPDK transport with the kernel's UDP as its peer.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use takt_dpdk::{DpdkConfig, DpdkTransport, UdpStackConfig};
use takt_testkit::{not_run, require};
use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt_transport::{Commit, FlowId, Receive, Scan, Transport};
use takt_wire::Locator;

use super::devices::{TUN, config, lock_devices, mac, unique_name};
use super::network::{Host, Network, ip};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Address of the stack, at the interface of the host whose kernel has 10.77.0.1.
pub const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 101);

/// Opens a transport over the interface of the host.
pub fn by_dpdk(host: &Host, set: impl FnOnce(DpdkConfig) -> DpdkConfig + Send) -> DpdkTransport {
    let device = set(config(&format!("{},iface=eth0", unique_name("net_af_packet"))));
    host.run(|| DpdkTransport::open(&device, &UdpStackConfig::new(0, OWN, 24))).expect("a virtual device")
}

/// Opens a transport over the kernel of the host, which fragments long datagrams before they leave,
/// as with hardware. Between virtual interfaces, it avoids this by default.
pub fn by_kernel(host: &Host) -> UdpTransport {
    let cut =
        host.run(|| Command::new("ethtool").args(["-K", "eth0", "tx", "off"]).output()).expect("ethtool is installed");
    assert!(cut.status.success(), "{}", String::from_utf8_lossy(&cut.stderr));
    let config = UdpConfig { interfaces: InterfaceSelection::Named(vec!["eth0".into()]), ..UdpConfig::new(0) };
    host.run(|| UdpTransport::open(&config)).expect("UDP can be opened")
}

fn user(transport: &impl Transport) -> Locator {
    transport.status().locators.default_unicast[0]
}

fn message(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + n) as u8).collect()
}

fn send(transport: &mut impl Transport, bytes: &[u8], to: Locator) {
    transport.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    transport.commit(Commit::new(bytes.len(), FlowId::DEFAULT, &[to])).expect("the frame is accepted");
    transport.flush().expect("flush succeeds");
}

/// Waits for the next datagram at `at`; `other` is driven meanwhile, and receives nothing.
fn receive(at: &mut impl Transport, other: &mut impl Transport) -> Vec<u8> {
    let since = Instant::now();
    loop {
        if let Some(frame) = at.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
            return frame.to_vec();
        }
        assert!(other.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        assert!(since.elapsed() < TIMEOUT, "nothing arrives: {:?}, {:?}", at.status().stats, other.status().stats);
        std::thread::yield_now();
    }
}

#[test]
fn datagrams_of_all_sizes_arrive_and_groups_reach_all() {
    let _guard = lock_devices();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    // For the device, the kernel reassembles fragments, so it needs room for the whole datagram.
    let mut dpdk = by_dpdk(&here, |config| DpdkConfig {
        device: format!("{},framesz=32768,blocksz=32768,framecnt=64", config.device),
        rx_room: Some(32_768),
        rx_frames: 64,
        ..config
    });
    let mut udp = by_kernel(&there);
    let (at_dpdk, at_udp) = (user(&dpdk), user(&udp));
    let most = dpdk.capabilities().max_message_len;
    assert_eq!(most, 1_472);
    for (n, len) in [1, 4, 17, 18, 19, 64, 333, most].into_iter().enumerate() {
        send(&mut dpdk, &message(n, len), at_udp);
        assert_eq!(receive(&mut udp, &mut dpdk), message(n, len), "the kernel accepts checksums and lengths");
        send(&mut udp, &message(n, len), at_dpdk);
        assert_eq!(receive(&mut dpdk, &mut udp), message(n, len), "{len} octets");
    }
    for len in [1_473, 14_720, 32_000] {
        send(&mut udp, &message(7, len), at_dpdk);
        assert_eq!(receive(&mut dpdk, &mut udp), message(7, len), "{len} octets in parts");
    }
    for group in [dpdk.status().locators.metatraffic_multicast[0], dpdk.status().locators.default_multicast[0]] {
        for from_dpdk in [true, false] {
            match from_dpdk {
                true => send(&mut dpdk, &message(9, 200), group),
                false => send(&mut udp, &message(9, 200), group),
            }
            let since = Instant::now();
            let (mut at_dpdk, mut at_udp) = (0, 0);
            while (at_dpdk, at_udp) != (1, 1) {
                at_dpdk += usize::from(dpdk.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some());
                at_udp += usize::from(udp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some());
                assert!(since.elapsed() < TIMEOUT && at_dpdk < 2 && at_udp < 2, "{at_dpdk}, {at_udp}");
            }
        }
    }
    let counters = dpdk.counters();
    assert_eq!((counters.damaged, counters.dropped_packets, counters.conflicts), (0, 0, 0), "{counters:?}");
    assert!(counters.waited <= 1, "{counters:?}");
}

#[test]
fn fragments_of_the_kernel_are_reassembled() {
    let _guard = lock_devices();
    let Some(network) = Network::new() else { return };
    if let Err(why) = require::file(TUN) {
        return not_run(why);
    }
    let host = network.host(false);
    // The kernel owns the interface that the device creates.
    let device = DpdkConfig { mac: Some(mac(1)), ..config(&format!("{},iface=tap0", unique_name("net_tap"))) };
    let address = UdpStackConfig::new(0, Ipv4Addr::new(10, 79, 0, 2), 24);
    let mut dpdk = host.run(|| DpdkTransport::open(&device, &address)).expect("a virtual device");
    host.run(|| {
        ip("addr add 10.79.0.1/24 dev tap0
            link set tap0 up");
    });
    let interfaces = InterfaceSelection::Named(vec!["tap0".into()]);
    let config = UdpConfig { interfaces, multicast: false, ..UdpConfig::new(0) };
    let mut udp = host.run(|| UdpTransport::open(&config)).expect("UDP can be opened");
    let (at_dpdk, at_udp) = (user(&dpdk), user(&udp));
    for len in [100, 1_473, 14_720, 65_507] {
        send(&mut udp, &message(3, len), at_dpdk);
        assert_eq!(receive(&mut dpdk, &mut udp), message(3, len), "{len} octets");
        send(&mut dpdk, &message(4, 100), at_udp);
        assert_eq!(receive(&mut udp, &mut dpdk), message(4, 100));
    }
    let counters = dpdk.counters();
    assert!(counters.fragments_in > 50 && counters.dropped_packets == 0, "{counters:?}");
}

#[test]
fn ping_of_a_host_is_answered() {
    let _guard = lock_devices();
    if let Err(why) = require::program("ping") {
        return not_run(why);
    }
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let mut dpdk = by_dpdk(&here, |config| config);
    let mut ping = there.run(|| {
        let ping = ["-c", "3", "-i", "0.01", "-s", "1000", "-W", "10", &OWN.to_string()].map(str::to_owned);
        Command::new("ping").args(ping).stdout(std::process::Stdio::null()).spawn().expect("ping is installed")
    });
    let status = loop {
        assert!(dpdk.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        if let Some(status) = ping.try_wait().expect("the process is a child") {
            break status;
        }
        std::thread::yield_now();
    };
    assert!(status.success(), "{status}: {:?}", dpdk.counters());
}

#[test]
fn igmp_snooping_switch_learns_the_membership() {
    let _guard = lock_devices();
    let Some(network) = Network::new() else { return };
    let host = network.host(false);
    host.run(|| {
        ip("link add hub type bridge mcast_snooping 1 mcast_querier 1
            link set hub up
            link add v1 type veth peer name p1
            link set p1 master hub up
            link set v1 up");
    });
    let device = config(&format!("{},iface=v1", unique_name("net_af_packet")));
    let mut dpdk =
        host.run(|| DpdkTransport::open(&device, &UdpStackConfig::new(0, OWN, 24))).expect("a virtual device");
    let since = Instant::now();
    let is_known = || {
        let shown = host.run(|| Command::new("bridge").args(["mdb", "show"]).output()).expect("iproute2 is installed");
        String::from_utf8_lossy(&shown.stdout).contains("port p1 grp 239.255.0.1")
    };
    while !is_known() {
        assert!(dpdk.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        assert!(since.elapsed() < TIMEOUT, "the switch does not know the group");
    }
}
