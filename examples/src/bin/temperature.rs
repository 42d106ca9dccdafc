//! Program of `docs/tutorial/getting-started.md`: publishes a sensor for two seconds, and
//! subscribes as a possibly late joiner.

use takt::prelude::*;

/// In IDL: @appendable struct Reading { @key unsigned long sensor; double celsius; };
#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("temperature").build()?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant),
        _ => subscribe(&participant),
    }
}

fn publish(participant: &DomainParticipant) -> takt::Result<()> {
    let qos = DataWriterQos::reliable().transient_local().min_separation(ms(100));
    let writer = participant.writer_with::<Reading>("Temperature", qos)?;
    writer.wait_for_readers(1, secs(30))?;
    for step in 0..20 {
        writer.write(&Reading { sensor: 7, celsius: 20.0 + f64::from(step) / 10.0 })?;
        std::thread::sleep(ms(100));
    }
    writer.wait_for_acknowledgments(secs(1))
}

fn subscribe(participant: &DomainParticipant) -> takt::Result<()> {
    let qos = DataReaderQos::reliable().transient_local().latency(ms(50));
    let reader = participant.reader_with::<Reading>("Temperature", qos)?;
    for sample in &reader {
        let sample = sample?;
        match (sample.data, sample.key) {
            (Some(reading), _) => println!("{reading:?}"),
            (None, key) => {
                println!("sensor {}: {:?}", key.unwrap_or_default().sensor, sample.info.instance_state);
                break;
            }
        }
    }
    Ok(())
}
