//! Durability: a TRANSIENT_LOCAL writer gives its history to a reader that joins late.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Waypoint {
    number: u32,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;
    let qos = DataWriterQos::reliable().transient_local().keep_last(3);
    let writer = participant.writer_with::<Waypoint>("Route", qos)?;
    for number in 1..=5 {
        writer.write(&Waypoint { number })?;
    }

    let qos = DataReaderQos::reliable().transient_local().keep_all();
    let reader = participant.reader_with::<Waypoint>("Route", qos)?;
    reader.wait_for_historical_data(secs(10))?;
    for sample in reader.take(usize::MAX)? {
        println!("{:?}", sample.data.unwrap_or_default());
    }
    Ok(())
}
