//! Two transports between the same two participants: one topic uses shared memory only, another one
//! UDP only.

use takt::prelude::*;

#[derive(DdsType, Clone, Debug, Default)]
struct Frame {
    octets: Vec<u8>,
}

fn main() -> takt::Result<()> {
    let open = |name: &str| DomainParticipant::builder(0).name(name).extra_transports(["shm"]).build();
    let (near, far) = (open("near")?, open("far")?);
    for (topic, transport) in [("Camera", "shm"), ("Log", "udp")] {
        let reader = far.reader_with::<Frame>(topic, DataReaderQos::reliable().transport(transport))?;
        let writer = near.writer_with::<Frame>(topic, DataWriterQos::reliable().transport(transport))?;
        writer.wait_for_readers(1, secs(30))?;
        writer.write(&Frame { octets: vec![1; 1_000] })?;
        let frame = reader.recv_timeout(secs(10))?.data.unwrap_or_default();
        println!("{topic} by {transport}: {} octets", frame.octets.len());
    }
    Ok(())
}
