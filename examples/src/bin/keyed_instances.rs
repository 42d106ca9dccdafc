//! Keyed instances: one topic with an instance for each sensor, and the end of one of them.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;
    let reader = participant.reader_with::<Reading>("Temperature", DataReaderQos::reliable().keep_all())?;
    let writer = participant.writer_with::<Reading>("Temperature", DataWriterQos::reliable().keep_all())?;
    for (sensor, celsius) in [(1, 20.0), (2, 30.0), (1, 20.5)] {
        writer.write(&Reading { sensor, celsius })?;
    }
    writer.dispose(&Reading { sensor: 2, ..Reading::default() })?;
    for _ in 0..4 {
        let sample = reader.recv_timeout(secs(10))?;
        match (sample.data, sample.key) {
            (Some(reading), _) => println!("sensor {}: {} degrees", reading.sensor, reading.celsius),
            (None, key) => println!("sensor {}: {:?}", key.unwrap_or_default().sensor, sample.info.instance_state),
        }
    }
    Ok(())
}
