//! Tests of two participants, one over AF_XDP and one over the kernel's UDP, that discover each
//! other and exchange small and large samples.

use std::sync::mpsc;

use takt_transport::udp::UdpTransport;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::checked::checked;
use crate::network::{Network, ip};
use crate::participants_helper::{TIMEOUT, exchange, new_participant};
use crate::transport_on_host::TransportOnHost;

#[test]
fn one_by_af_xdp_and_one_by_the_kernel_exchange_samples() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(false), network.host(false));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let xdp = here.run(|| XdpTransport::open(&config)).expect("AF_XDP can be opened");
        let udp = there.run(|| UdpTransport::open(&config.udp)).expect("UDP can be opened");
        let (sender, receiver) = mpsc::channel();
        let participants = [
            new_participant(Box::new(checked(xdp, here, Some(sender))), "There", "Back").expect("a participant"),
            new_participant(Box::new(TransportOnHost::new(udp, there.clone())), "Back", "There")
                .expect("a participant"),
        ];
        exchange(&participants, 40);
        // The participant over the kernel adapts to the new address; it stays on its own host.
        there.run(|| ip("addr add 10.77.0.77/24 dev eth0"));
        exchange(&participants, 40);
        drop(participants);
        let counters = receiver.recv_timeout(TIMEOUT).expect("the transport is dropped");
        // 8 large samples of some 200 datagrams each, and 72 small ones. In generic mode, segmented
        // datagrams arrive by the kernel.
        let in_min = if mode == Mode::Native { 1600 } else { 72 };
        assert!(counters.datagrams_out > 1600 && counters.datagrams_in > in_min, "{counters:?}");
    }
}
