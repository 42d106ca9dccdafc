//! Writes or reads `Greeting` by DPDK: `dpdk_hello DEVICE ADDRESS read`, or `dpdk_hello DEVICE ADDRESS write COUNT`; as ADDRESS
//! `10.0.0.1/24` for UDP, or `l2` for RTPS directly on Ethernet. For trying: in ordinary memory, with virtual devices only.

use std::error::Error;

use takt::qos::{DataReaderQos, DataWriterQos, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DdsType, DomainParticipant, Duration, StatusMask, WaitSet};
use takt_dpdk::{DpdkConfig, DpdkPort, DpdkTransport, UdpStackConfig};
use takt_transport::Transport;
use takt_transport::ethernet::{EthernetConfig, EthernetTransport};

#[derive(DdsType, Clone, Debug, Default)]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, address, role, rest @ ..] = &arguments[..] else {
        return Err("dpdk_hello DEVICE ADDRESS|l2 read | dpdk_hello DEVICE ADDRESS|l2 write COUNT".into());
    };
    let participant = DomainParticipant::builder(0).transport(open(device, address)?).build()?;
    match rest.first() {
        Some(count) if role == "write" => write(&participant, count.parse()?),
        None if role == "read" => read(&participant),
        _ => Err("either read, or write and a number".into()),
    }
}

fn open(device: &str, address: &str) -> Result<Box<dyn Transport>, Box<dyn Error>> {
    let device = DpdkConfig::trial(device);
    if address == "l2" {
        let port = DpdkPort::open(&device)?;
        println!("{}, RTPS on Ethernet", port.driver());
        return Ok(Box::new(EthernetTransport::open(port, &EthernetConfig::new(0))?));
    }
    let (address, prefix_len) = address.split_once('/').ok_or("the address has no prefix length")?;
    let udp = UdpStackConfig::new(0, address.parse()?, prefix_len.parse()?);
    let transport = DpdkTransport::open(&device, &udp)?;
    println!("{}, UDP at {address}", transport.port().driver());
    Ok(Box::new(transport))
}

fn write(participant: &DomainParticipant, count: u32) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>("Greeting", TopicQos::default())?;
    let qos = DataWriterQos { reliability: Reliability::RELIABLE, ..DataWriterQos::default() };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
    let condition = writer.status_condition();
    condition.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waitset = WaitSet::new()?;
    waitset.attach(condition)?;
    if !waitset.wait_any(Duration::from_secs(30))? {
        return Err("no reader came within 30 s".into());
    }
    for number in 1..=count {
        writer.write(&Greeting { number, text: "hello from beside the kernel".into() })?;
    }
    writer.wait_for_acknowledgments(Duration::from_secs(5))?;
    Ok(())
}

fn read(participant: &DomainParticipant) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>("Greeting", TopicQos::default())?;
    let qos = DataReaderQos {
        reliability: Reliability::RELIABLE,
        history: takt::qos::History::KeepAll,
        ..DataReaderQos::default()
    };
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
    let waitset = WaitSet::new()?;
    waitset.attach(reader.read_condition(takt::Selector::READ))?;
    let mut greeting = Greeting::default();
    while waitset.wait_any(Duration::INFINITE)? {
        while let Some(info) = reader.take_next_sample(&mut greeting)? {
            if info.valid_data {
                println!("{}: {}", greeting.number, greeting.text);
            }
        }
    }
    Ok(())
}
