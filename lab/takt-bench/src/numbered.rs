//! Payload type with a number that content filters select by (docs/reference/bench-agents.md).

use crate::dds::{Carrier, write_each};
use crate::error::Result;
use crate::payload::{Blob, END_OF_STREAM};
use takt::{DataReader, DataWriter, DdsType};

/// Sample with a number.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Numbered", extensibility = "final")]
pub struct Numbered {
    /// Number from 0 to 99, derived from the sequence number.
    pub number: i32,
    /// Payload as in [`Blob`].
    pub data: Vec<u8>,
}

/// Filter expression; its parameter is the percentage of samples that pass.
pub(crate) const EXPRESSION: &str = "number < %0";

/// Returns the number of a sample: the last two digits of its sequence number in reverse order. So
/// samples below 1 and below 10 are at even distances. Samples that end a stream pass every filter.
fn number_of(sequence: u64) -> i32 {
    match sequence {
        END_OF_STREAM => 0,
        sequence => (sequence % 10 * 10 + sequence / 10 % 10) as i32,
    }
}

impl Carrier for Numbered {
    fn carry<'a>(payload: &'a Blob, kept: &'a mut Self) -> &'a Self {
        kept.number = payload.marks().map_or(0, |(sequence, _)| number_of(sequence));
        kept.data.clone_from(&payload.data);
        kept
    }

    fn write_batch(writer: &DataWriter<Self>, payloads: &[Blob], kept: &mut Self) -> Result<usize> {
        write_each(writer, payloads, kept)
    }

    fn payload<'a>(&'a self, room: &'a mut Blob) -> &'a Blob {
        room.data.clone_from(&self.data);
        room
    }

    fn take(reader: &DataReader<Self>, room: &mut Self, payload: &mut Blob) -> Result<Option<bool>> {
        let info = reader.take_next_sample(room)?;
        room.payload(payload);
        Ok(info.map(|info| info.valid_data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_passes_its_percentage_and_the_end_of_a_stream() {
        let passing = |percent: i32| (1..=1000).filter(|sequence| number_of(*sequence) < percent).collect::<Vec<u64>>();
        assert_eq!(passing(100).len(), 1000);
        assert_eq!(passing(10), (1..=100).map(|n| 10 * n).collect::<Vec<u64>>());
        assert_eq!(passing(1), (1..=10).map(|n| 100 * n).collect::<Vec<u64>>());
        assert_eq!(number_of(END_OF_STREAM), 0);
        let mut payload = Blob::filled(64);
        payload.mark(12, 5);
        let mut kept = Numbered::default();
        assert_eq!(Numbered::carry(&payload, &mut kept).number, 21);
        assert_eq!(kept.payload(&mut Blob::default()), &payload);
    }
}
