//! Participants: one by DPDK, one by the kernel's UDP or by DPDK too, that discover each other and exchange samples small and large.

use takt::{DomainParticipant, DomainParticipantBuilder};
use takt_dpdk::{DpdkConfig, DpdkPort, UdpStack, UdpStackConfig};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};

use super::devices::{config, fresh, mac, turn};
use super::kernel_peer::{by_dpdk, by_kernel};
use super::network::Network;
use super::parties::{self, party_of};
use super::resident::Resident;

/// Participants with these transports and no others exchange samples.
fn exchange(here: Box<dyn Transport>, there: Box<dyn Transport>) {
    exchange_by([here, there].map(|transport| DomainParticipant::builder(0).transport(transport)));
}

/// Those that are built so exchange samples.
fn exchange_by([here, there]: [DomainParticipantBuilder; 2]) {
    let parties = [party_of(here, "There", "Back"), party_of(there, "Back", "There")];
    parties::exchange(&parties.map(|party| party.expect("a participant")), 40);
}

#[test]
fn one_by_dpdk_and_one_by_the_kernel_exchange_samples() {
    let _turn = turn();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let udp = by_kernel(&there);
    exchange(Box::new(by_dpdk(&here, |config| config)), Box::new(Resident::new(udp, there)));
}

/// Two ports that are joined by shared memory between processes, here in one.
fn joined_ports() -> [DpdkPort; 2] {
    let socket = format!("takt-{}-{}", std::process::id(), fresh("socket"));
    [("server", 1), ("client", 2)].map(|(role, n)| {
        let device = format!("{},role={role},socket={socket}", fresh("net_memif"));
        DpdkPort::open(&DpdkConfig { mac: Some(mac(n)), ..config(&device) }).expect("a virtual device")
    })
}

#[test]
fn two_by_dpdk_exchange_samples_through_shared_memory() {
    let _turn = turn();
    let [here, there] = joined_ports();
    let udp = |n: u8, port| {
        let address = UdpStackConfig::new(0, [10, 78, 0, n].into(), 24);
        Box::new(UdpStack::new(&address, port).expect("the address can be"))
    };
    exchange(udp(1, here), udp(2, there));
}

/// All of it goes by DPDK, discovery too: nothing is opened beside it.
#[test]
fn two_that_ask_for_dpdk_by_name_find_each_other_by_it() {
    let _turn = turn();
    // Whoever is first decides how DPDK is started: as all tests have it.
    drop(DpdkPort::ring_pair(&config(&fresh("ring")), &config("")).expect("rings"));
    takt_dpdk::register();
    let socket = format!("takt-{}-{}", std::process::id(), fresh("socket"));
    exchange_by([("server", 1), ("client", 2)].map(|(role, n)| {
        let device = format!("{},role={role},socket={socket}", fresh("net_memif"));
        let name = format!("dpdk:{device}/address=10.78.0.{n}/huge=no");
        DomainParticipant::builder(0).shared_memory(false).user_data_transports([name])
    }));
}

#[test]
fn two_by_dpdk_exchange_samples_without_ip() {
    let _turn = turn();
    let [here, there] = joined_ports().map(|port| {
        Box::new(EthernetTransport::open(port, &EthernetConfig::new(0)).expect("nobody else has the port"))
    });
    exchange(here, there);
}

#[test]
fn one_by_dpdk_and_one_by_packet_sockets_exchange_samples_without_ip() {
    let _turn = turn();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let device = config(&format!("{},iface=eth0", fresh("net_af_packet")));
    let port = here.run(|| DpdkPort::open(&device)).expect("a virtual device");
    let dpdk = EthernetTransport::open(port, &EthernetConfig::new(0)).expect("nobody else has the port");
    let packet = there.run(|| {
        let port = PacketPort::open(&PacketConfig::new("eth0")).expect("the kernel has packet sockets");
        EthernetTransport::open(port, &EthernetConfig::new(0)).expect("nobody else has the port")
    });
    exchange(Box::new(dpdk), Box::new(Resident::new(packet, there)));
}
