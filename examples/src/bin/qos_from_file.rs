//! QoS from a file: a profile in DDS-XML, which tools of other vendors read as well.

use takt::prelude::*;
use takt_config::QosProvider;

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    celsius: f64,
}

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles.xml");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profiles = QosProvider::from_file(FILE)?;
    let (profile, topic) = ("Examples::Telemetry", "Temperature");
    let participant = DomainParticipant::new(0)?;
    let reader = participant.reader_with::<Reading>(topic, profiles.datareader_qos(profile, topic)?)?;
    let writer = participant.writer_with::<Reading>(topic, profiles.datawriter_qos(profile, topic)?)?;
    println!("writer: {:?}, {:?}", writer.qos().history, writer.qos().durability);
    writer.write(&Reading { celsius: 21.5 })?;
    println!("{:?}", reader.recv_timeout(secs(10))?.data.unwrap_or_default());
    Ok(())
}
