//! Tests of the transports, over loopback alone or in separate network namespaces.

mod daemon_conforms;
mod daemon_invalid_frames;
mod faults;
mod fragment_queue;
mod kernel_limits;
mod multicast_routes;
mod network_priority;
mod no_allocation;
mod packet_conforms;
mod packet_frames;
mod packet_interfaces;
mod participant_ports;
mod pcap_files;
mod pcapng_files;
mod queue_conforms;
mod shm_conforms;
mod tcp_conforms;
mod udp_conforms;
mod udp_interfaces;
mod udp_segmentation;
mod urgent_first;
mod with_header;
mod wrappers_conform;

use takt_testkit::waiting::{until, until_some};
use takt_testkit::{domain, network};
use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt_transport::{Commit, FlowId, Receive, RxMeta, Scan, Transport};
use takt_wire::Locator;

#[global_allocator]
static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;

/// UDPv4 over loopback alone, in this domain, which belongs to the test until its thread ends.
fn loopback(domain_id: u32) -> UdpConfig {
    domain::claim(domain_id);
    UdpConfig { interfaces: InterfaceSelection::Named(vec!["lo".into()]), ..UdpConfig::new(domain_id) }
}

/// UDPv4 over loopback alone, in a domain of this test. The kernel never assigns one of its ports
/// to another socket, whose datagrams could still be in transit.
fn own_loopback() -> UdpConfig {
    loopback(domain::domain())
}

fn open(config: &UdpConfig) -> UdpTransport {
    UdpTransport::open(config).expect("loopback can be used")
}

fn user_locator(transport: &impl Transport) -> Locator {
    transport.status().locators.default_unicast[0]
}

/// Commits and flushes.
fn send(transport: &mut impl Transport, bytes: &[u8], flow: FlowId, to: &[Locator]) {
    transport.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    transport.commit(Commit::new(bytes.len(), flow, to)).expect("the frame is accepted");
    transport.flush().expect("flush succeeds");
}

/// Receives all queued datagrams.
fn drain(transport: &mut impl Transport) -> Vec<(Vec<u8>, RxMeta)> {
    let mut all = Vec::new();
    while let Some(frame) = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
        all.push((frame.to_vec(), frame.meta));
    }
    all
}

/// Receives until the transport has received `count` datagrams in total.
fn drain_until(count: u64, transport: &mut impl Transport) -> Vec<(Vec<u8>, RxMeta)> {
    let mut all = drain(transport);
    until("all that was sent is received", || {
        all.append(&mut drain(transport));
        transport.status().stats.datagrams_in >= count
    });
    all
}

/// Waits for the next datagram.
fn receive(transport: &mut impl Transport) -> (Vec<u8>, RxMeta) {
    until_some("a datagram arrives", || {
        transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").map(|frame| (frame.to_vec(), frame.meta))
    })
}
