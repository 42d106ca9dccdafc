//! A loan: a megabyte goes from a writer to a reader of the same process without a copy.

use std::sync::Arc;

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Image {
    pixels: Vec<u8>,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;
    let reader = participant.reader::<Image>("Camera")?;
    let writer = participant.writer::<Image>("Camera")?;
    let image = Arc::new(Image { pixels: vec![7; 1 << 20] });
    writer.write_shared(Arc::clone(&image))?;
    let arrival = WaitSet::new()?;
    arrival.attach(reader.read_condition(takt::Selector::READ))?;
    arrival.wait_any(secs(10))?;
    let taken = reader.take_shared()?.and_then(|sample| sample.data).expect("a sample has arrived");
    println!("{} octets, the same memory: {}", taken.pixels.len(), Arc::ptr_eq(&image, &taken));
    Ok(())
}
