//! Tests of two participants, one over AF_XDP and one over the kernel's UDP, that discover each
//! other and exchange small and large samples.

use std::sync::mpsc;

use takt_transport::udp::UdpTransport;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use super::checked::checked;
use super::network::{Network, ip};
use super::parties::{PATIENCE, exchange, party};
use super::resident::Resident;

#[test]
fn one_by_af_xdp_and_one_by_the_kernel_exchange_samples() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(false), network.host(false));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let (tell, told) = mpsc::channel();
        let parties = [
            party(Box::new(checked(xdp, here, Some(tell))), "There", "Back").expect("a participant"),
            party(Box::new(Resident::new(udp, there.clone())), "Back", "There").expect("a participant"),
        ];
        exchange(&parties, 40);
        // The participant over the kernel adapts to the new address; it stays on its own host.
        there.run(|| ip("addr add 10.77.0.77/24 dev eth0"));
        exchange(&parties, 40);
        drop(parties);
        let counters = told.recv_timeout(PATIENCE).expect("the transport is dropped");
        // 8 large samples of some 200 datagrams each, and 72 small ones. In generic mode, segmented
        // datagrams arrive by the kernel.
        let in_min = if mode == Mode::Native { 1600 } else { 72 };
        assert!(counters.datagrams_out > 1600 && counters.datagrams_in > in_min, "{counters:?}");
    }
}
