//! Tests of two participants, one over DPDK and one over the kernel's UDP or DPDK too, that
//! discover each other and exchange small and large samples.

use takt::{DomainParticipant, DomainParticipantBuilder};
use takt_dpdk::{DpdkConfig, DpdkPort, UdpStack, UdpStackConfig};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};

use super::devices::{config, lock_devices, mac, unique_name};
use super::kernel_peer::{by_dpdk, by_kernel};
use super::network::Network;
use super::participants_helper::{self, participant_from};
use super::transport_on_host::TransportOnHost;

/// Exchanges samples between participants with only these transports.
fn exchange(here: Box<dyn Transport>, there: Box<dyn Transport>) {
    exchange_by([here, there].map(|transport| DomainParticipant::builder(0).transport(transport)));
}

/// Exchanges samples between the participants of these builders.
fn exchange_by([here, there]: [DomainParticipantBuilder; 2]) {
    let participants = [participant_from(here, "There", "Back"), participant_from(there, "Back", "There")];
    participants_helper::exchange(&participants.map(|participant| participant.expect("a participant")), 40);
}

#[test]
fn one_by_dpdk_and_one_by_the_kernel_exchange_samples() {
    let _guard = lock_devices();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let udp = by_kernel(&there);
    exchange(Box::new(by_dpdk(&here, |config| config)), Box::new(TransportOnHost::new(udp, there)));
}

/// Makes two ports connected by shared memory as between processes, here in one.
fn joined_ports() -> [DpdkPort; 2] {
    let socket = format!("takt-{}-{}", std::process::id(), unique_name("socket"));
    [("server", 1), ("client", 2)].map(|(role, n)| {
        let device = format!("{},role={role},socket={socket}", unique_name("net_memif"));
        DpdkPort::open(&DpdkConfig { mac: Some(mac(n)), ..config(&device) }).expect("a virtual device")
    })
}

#[test]
fn two_by_dpdk_exchange_samples_through_shared_memory() {
    let _guard = lock_devices();
    let [here, there] = joined_ports();
    let udp = |n: u8, port| {
        let address = UdpStackConfig::new(0, [10, 78, 0, n].into(), 24);
        Box::new(UdpStack::new(&address, port).expect("the address is valid"))
    };
    exchange(udp(1, here), udp(2, there));
}

/// DPDK carries everything, including discovery; no other transport is opened.
#[test]
fn participants_with_dpdk_by_name_discover_each_other_over_it() {
    let _guard = lock_devices();
    // The first port determines the arguments of DPDK: those of all tests.
    drop(DpdkPort::ring_pair(&config(&unique_name("ring")), &config("")).expect("rings"));
    takt_dpdk::register();
    let socket = format!("takt-{}-{}", std::process::id(), unique_name("socket"));
    exchange_by([("server", 1), ("client", 2)].map(|(role, n)| {
        let device = format!("{},role={role},socket={socket}", unique_name("net_memif"));
        let name = format!("dpdk:{device}/address=10.78.0.{n}/huge=no");
        DomainParticipant::builder(0).shared_memory(false).user_data_transports([name])
    }));
}

#[test]
fn two_by_dpdk_exchange_samples_without_ip() {
    let _guard = lock_devices();
    let [here, there] = joined_ports()
        .map(|port| Box::new(EthernetTransport::open(port, &EthernetConfig::new(0)).expect("the port is not in use")));
    exchange(here, there);
}

#[test]
fn one_by_dpdk_and_one_by_packet_sockets_exchange_samples_without_ip() {
    let _guard = lock_devices();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let device = config(&format!("{},iface=eth0", unique_name("net_af_packet")));
    let port = here.run(|| DpdkPort::open(&device)).expect("a virtual device");
    let dpdk = EthernetTransport::open(port, &EthernetConfig::new(0)).expect("the port is not in use");
    let packet = there.run(|| {
        let port = PacketPort::open(&PacketConfig::new("eth0")).expect("AF_PACKET can be opened");
        EthernetTransport::open(port, &EthernetConfig::new(0)).expect("the port is not in use")
    });
    exchange(Box::new(dpdk), Box::new(TransportOnHost::new(packet, there)));
}
