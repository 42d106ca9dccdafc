//! Participants: one by AF_XDP, one by the kernel's UDP, that discover each other and exchange samples small and large.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Runtime};
use takt_transport::Transport;
use takt_transport::udp::UdpTransport;
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use super::network::Network;
use super::resident::Resident;

pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
pub struct Blob {
    pub number: u32,
    pub octets: Vec<u8>,
}

impl Blob {
    fn new(number: u32) -> Self {
        // Most in one datagram, some in many.
        let len = if number % 10 == 9 { 300_000 } else { 100 };
        Self { number, octets: (0..len).map(|at: u32| (at ^ number) as u8).collect() }
    }
}

pub struct Party {
    pub participant: DomainParticipant,
    pub writer: DataWriter<Blob>,
    pub reader: DataReader<Blob>,
}

/// A participant that writes one topic and reads the other.
pub fn party(transport: Box<dyn Transport>, writes: &str, reads: &str) -> takt::Result<Party> {
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

#[test]
fn one_by_af_xdp_and_one_by_the_kernel_exchange_samples() {
    for mode in [Mode::Native, Mode::Generic] {
        let Some(network) = Network::new() else { return };
        let (here, there) = (network.host(false), network.host(false));
        let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(0, "eth0") };
        let xdp = match here.run(|| XdpTransport::open(&config)) {
            Ok(xdp) => xdp,
            Err(why) => return eprintln!("not tested: {why}"),
        };
        let udp = there.run(|| UdpTransport::open(&config.udp)).expect("the kernel has UDP");
        let (tell, told) = mpsc::channel();
        let parties = [
            party(Box::new(Resident::new(xdp, here, Some(tell))), "There", "Back").expect("a participant"),
            party(Box::new(udp), "Back", "There").expect("a participant"),
        ];
        exchange(&parties, 40);
        drop(parties);
        let counters = told.recv_timeout(PATIENCE).expect("the transport is dropped");
        // 4 large samples of some 200 datagrams each, and 36 small ones. What the kernel sends in one piece comes so in generic mode.
        let in_min = if mode == Mode::Native { 800 } else { 36 };
        assert!(counters.datagrams_out > 800 && counters.datagrams_in > in_min, "{counters:?}");
    }
}

/// Both write `count` samples and read those of the other.
fn exchange(parties: &[Party; 2], count: u32) {
    let since = Instant::now();
    let turn = || {
        assert!(since.elapsed() < PATIENCE, "nothing arrives");
        for party in parties {
            party.participant.spin_once(takt::Duration::from_millis(1)).expect("open");
        }
    };
    let matched = |party: &Party| party.writer.publication_matched_status().expect("open").current_count;
    while parties.iter().any(|party| matched(party) == 0) {
        turn();
    }
    let mut expected = [0; 2];
    for number in 0..count {
        for party in parties {
            party.writer.write(&Blob::new(number)).expect("there is room");
        }
        turn();
        take(parties, &mut expected);
    }
    while expected != [count; 2] {
        turn();
        take(parties, &mut expected);
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
