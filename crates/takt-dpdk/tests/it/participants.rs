//! Participants: one by DPDK, one by the kernel's UDP or by DPDK too, that discover each other and exchange samples small and large.

use std::time::{Duration, Instant};

use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Runtime};
use takt_dpdk::{DpdkConfig, DpdkPort, UdpStack, UdpStackConfig};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport, PacketConfig, PacketPort};

use super::devices::{config, fresh, mac, turn};
use super::kernel_peer::{by_dpdk, by_kernel};
use super::network::Network;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Blob {
    number: u32,
    octets: Vec<u8>,
}

impl Blob {
    fn new(number: u32) -> Self {
        // Most in one datagram, some in many.
        let len = if number % 10 == 9 { 300_000 } else { 100 };
        Self { number, octets: (0..len).map(|at: u32| (at ^ number) as u8).collect() }
    }
}

struct Party {
    participant: DomainParticipant,
    writer: DataWriter<Blob>,
    reader: DataReader<Blob>,
}

/// A participant that writes one topic and reads the other.
fn party(transport: Box<dyn Transport>, writes: &str, reads: &str) -> takt::Result<Party> {
    let participant = DomainParticipant::builder(0).runtime(Runtime::Inline).transport(transport).build()?;
    let reliability = Reliability { max_blocking_time: takt::Duration::from_secs(10), ..Reliability::RELIABLE };
    let (written, read) = (
        participant.create_topic::<Blob>(writes, TopicQos::default())?,
        participant.create_topic::<Blob>(reads, TopicQos::default())?,
    );
    let qos = DataWriterQos { history: History::KeepAll, reliability, ..DataWriterQos::default() };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&written, qos)?;
    let qos = DataReaderQos { history: History::KeepAll, reliability, ..DataReaderQos::default() };
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&read, qos)?;
    Ok(Party { participant, writer, reader })
}

/// Both write samples and read those of the other.
fn exchange(here: Box<dyn Transport>, there: Box<dyn Transport>) {
    const COUNT: u32 = 40;
    let parties =
        [party(here, "There", "Back").expect("a participant"), party(there, "Back", "There").expect("a participant")];
    let since = Instant::now();
    let turn = || {
        assert!(since.elapsed() < PATIENCE, "nothing arrives");
        for party in &parties {
            party.participant.spin_once(takt::Duration::from_millis(1)).expect("open");
        }
    };
    let matched = |party: &Party| party.writer.publication_matched_status().expect("open").current_count;
    while parties.iter().any(|party| matched(party) == 0) {
        turn();
    }
    let mut expected = [0; 2];
    for number in 0..COUNT {
        for party in &parties {
            party.writer.write(&Blob::new(number)).expect("there is room");
        }
        turn();
        take(&parties, &mut expected);
    }
    while expected != [COUNT; 2] {
        turn();
        take(&parties, &mut expected);
    }
}

fn take(parties: &[Party; 2], expected: &mut [u32; 2]) {
    for (party, expected) in parties.iter().zip(expected) {
        for sample in party.reader.take(usize::MAX).expect("open") {
            if let Some(blob) = sample.data {
                assert_eq!(blob, Blob::new(*expected));
                *expected += 1;
            }
        }
    }
}

#[test]
fn one_by_dpdk_and_one_by_the_kernel_exchange_samples() {
    let _turn = turn();
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    exchange(Box::new(by_dpdk(&here, |config| config)), Box::new(by_kernel(&there)));
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
    exchange(Box::new(dpdk), Box::new(packet));
}
