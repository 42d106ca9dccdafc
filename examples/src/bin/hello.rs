//! Program of the README: one sample from a writer to a reader. `hello publish` writes the sample,
//! `hello` prints received samples.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;
    if std::env::args().nth(1).as_deref() == Some("publish") {
        let writer = participant.writer::<Reading>("Temperature")?;
        writer.wait_for_readers(1, secs(10))?;
        writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
        return writer.wait_for_acknowledgments(secs(10));
    }
    for sample in &participant.reader::<Reading>("Temperature")? {
        if let Some(reading) = sample?.data {
            println!("{reading:?}");
        }
    }
    Ok(())
}
