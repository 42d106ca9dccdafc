//! Tests of the capabilities that opening needs and running does not. Capabilities belong to
//! threads: each test drops those of separate threads.

use std::io;

use takt_transport::udp::UdpTransport;
use takt_transport::{Control, FlowSpec, Receive, Scan, Transport, readiness};
use takt_xdp::{XdpConfig, XdpTransport, drop_capabilities};

use super::reopening::{exchange, is_open, refresh_until};
use crate::datagrams::{TIMEOUT, message, receive, send};
use crate::network::{Host, create_veth_pair, ip, wire};

const NET_ADMIN: u32 = 12;
pub const NET_RAW: u32 = 13;
const BPF: u32 = 39;

/// Makes a configuration with little enough memory to be locked without CAP_IPC_LOCK.
fn config() -> XdpConfig {
    XdpConfig { rx_frames: 64, tx_frames: 64, ..XdpConfig::new(0, "eth0") }
}

/// Drops all other capabilities of the calling thread.
pub fn keep_only(capabilities: &[u32]) {
    let set = capabilities.iter().fold(0_u64, |set, capability| set | 1 << capability);
    let (low, high) = (set as u32, (set >> 32) as u32);
    let (mut header, sets) = ([0x2008_0522_u32, 0], [low, low, 0, high, high, 0]);
    // SAFETY: version 3 of the call takes a header of two numbers and two structures of three; it
    // affects this thread only.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Opens a transport with these capabilities alone.
fn open(host: &Host, capabilities: &[u32]) -> Result<XdpTransport, String> {
    host.run(|| {
        keep_only(capabilities);
        XdpTransport::open(&config()).map_err(|why| why.to_string())
    })
}

/// Reports whether this machine allows unprivileged maps.
fn allows_unprivileged_maps() -> bool {
    let disabled =
        std::fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled").expect("the kernel has bpf(2)");
    disabled.trim() == "0"
}

#[test]
fn first_participant_needs_exactly_three_capabilities() {
    let Some([here, _there]) = wire(2) else { return };
    here.run(|| XdpTransport::open(&config()).map(drop)).expect("AF_XDP can be opened");
    for (capabilities, missing) in [
        (&[NET_RAW, BPF][..], "CAP_NET_ADMIN"),
        (&[NET_ADMIN, BPF], "CAP_NET_RAW"),
        (&[NET_ADMIN, NET_RAW], "CAP_BPF"),
        (&[], "CAP_"),
    ] {
        let why = open(&here, capabilities).expect_err("a capability is missing");
        assert!(why.contains(missing), "{why}");
    }
    open(&here, &[NET_ADMIN, NET_RAW, BPF]).expect("these capabilities suffice");
}

#[test]
fn joining_needs_fewer_capabilities() {
    let Some([here, _there]) = wire(2) else { return };
    let _first = here.run(|| XdpTransport::open(&config())).expect("AF_XDP can be opened");
    let second = open(&here, &[NET_RAW, BPF]).expect("these capabilities suffice");
    assert!(second.report().is_joined);
    drop(second);
    assert!(open(&here, &[NET_ADMIN, BPF]).expect_err("a capability is missing").contains("CAP_NET_RAW"));
    match open(&here, &[NET_RAW]) {
        Ok(_) => assert!(allows_unprivileged_maps()),
        Err(why) => assert!(!allows_unprivileged_maps() && why.contains("CAP_BPF"), "{why}"),
    }
}

#[test]
fn running_needs_no_capability() {
    let Some(hosts) = wire(1) else { return };
    let [here, there] = &hosts;
    let mut xdp = here.run(|| XdpTransport::open(&config())).expect("AF_XDP can be opened");
    let mut udp = there.run(|| UdpTransport::open(&config().udp)).expect("UDP can be opened");
    // Flows that are opened later, and receive.
    let locators = here.run(|| {
        drop_capabilities().expect("the capabilities are dropped");
        let (_, locators) = xdp.open_flow(&FlowSpec { own_port: true, transport_priority: 9 }).expect("a flow");
        assert!(XdpTransport::open(&config()).is_err(), "no further transport can be opened");
        locators
    });
    let before = xdp.counters().datagrams_in;
    send(&mut udp, &message(1, 99), locators[0]);
    assert_eq!(receive(&mut xdp), message(1, 99));
    assert_eq!(xdp.counters().datagrams_in, before + 1);
    // Changes of addresses.
    here.run(|| {
        ip("addr add 10.77.0.9/24 dev eth0\naddr del 10.77.0.1/24 dev eth0\naddr add 10.77.0.8/24 dev eth0
        neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 nud permanent dev eth0")
    });
    there.run(|| {
        ip("neigh add 10.77.0.8 lladdr 02:00:00:00:00:01 nud permanent dev eth0
        neigh add 10.77.0.9 lladdr 02:00:00:00:00:01 nud permanent dev eth0")
    });
    // As in a participant whose threads were started without them.
    let refresh = |xdp: &mut XdpTransport, until: &dyn Fn(&XdpTransport) -> bool| {
        while !until(xdp) {
            assert!(
                readiness::wait(xdp.status().descriptors, Some(TIMEOUT)).expect("wait succeeds"),
                "no event arrives"
            );
            while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
            here.run(|| {
                drop_capabilities().expect("the capabilities are dropped");
                xdp.control(Control::Refresh).expect("interfaces can be followed");
            });
        }
    };
    let moved = |xdp: &XdpTransport| {
        let ips: Vec<_> =
            xdp.status().interfaces.iter().flat_map(|i| &i.addresses).map(|(ip, _)| ip.to_string()).collect();
        !ips.contains(&"10.77.0.1".to_owned()) && ips.contains(&"10.77.0.8".to_owned())
    };
    refresh(&mut xdp, &moved);
    while xdp.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
    // A recreated interface needs them again.
    here.run(|| ip("link del eth0"));
    refresh(&mut xdp, &|xdp| !is_open(xdp));
    create_veth_pair(&hosts, 1);
    refresh(&mut xdp, &is_open);
    let warned = xdp.status().warnings.iter().any(|warning| warning.what.contains("CAP_"));
    assert!(warned, "{:?}", xdp.status().warnings);
    let mut udp = there.run(|| UdpTransport::open(&config().udp)).expect("UDP can be opened");
    assert_eq!(exchange(&mut xdp, &mut udp), (0, 0), "all traffic uses kernel sockets");
    // With them, it is opened at the next change.
    here.run(|| ip("addr add 10.77.1.1/24 dev eth0"));
    refresh_until(here, &mut xdp, |xdp| xdp.status().interfaces[0].addresses.len() == 2);
    assert_eq!(exchange(&mut xdp, &mut udp), (10, 10));
}
