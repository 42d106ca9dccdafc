//! Writer of plain CDR (XCDR1) for tokens and messages of DDS Security.
//!
//! Alignment counts from the first octet that the writer wrote. Parsers use [`takt_wire::Cursor`].

use takt_wire::Endianness;

/// Octets under construction.
#[derive(Debug)]
pub(crate) struct CdrWriter {
    octets: Vec<u8>,
    endianness: Endianness,
}

impl CdrWriter {
    pub(crate) const fn new(endianness: Endianness) -> Self {
        Self { octets: Vec::new(), endianness }
    }

    pub(crate) fn align(&mut self, alignment: usize) {
        let len = self.octets.len().next_multiple_of(alignment);
        self.octets.resize(len, 0);
    }

    pub(crate) fn raw(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        match self.endianness {
            Endianness::Big => self.raw(&value.to_be_bytes()),
            Endianness::Little => self.raw(&value.to_le_bytes()),
        }
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.align(8);
        match self.endianness {
            Endianness::Big => self.raw(&value.to_be_bytes()),
            Endianness::Little => self.raw(&value.to_le_bytes()),
        }
    }

    /// Writes a count. All written data is shorter than 2^32 by the limits of its source.
    pub(crate) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("limits keep counts below 2^32"));
    }

    pub(crate) fn octet_sequence(&mut self, octets: &[u8]) {
        self.count(octets.len());
        self.raw(octets);
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.count(text.len() + 1);
        self.raw(text.as_bytes());
        self.raw(&[0]);
    }

    pub(crate) fn into_octets(self) -> Vec<u8> {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use takt_wire::Cursor;

    use super::*;

    #[test]
    fn values_round_trip_in_both_byte_orders_with_their_alignment() {
        for endianness in [Endianness::Big, Endianness::Little] {
            let mut writer = CdrWriter::new(endianness);
            writer.string("ab");
            writer.u32(0x0102_0304);
            writer.raw(&[9]);
            writer.i64(-2);
            writer.octet_sequence(&[5, 6]);
            let octets = writer.into_octets();
            let mut cursor = Cursor::new(&octets, endianness);
            assert_eq!(cursor.string(), Ok("ab"));
            cursor.align(4).expect("padding");
            assert_eq!((cursor.u32(), cursor.u8()), (Ok(0x0102_0304), Ok(9)));
            cursor.align(8).expect("padding");
            assert_eq!(cursor.i64(), Ok(-2));
            assert_eq!(cursor.u32(), Ok(2));
            assert_eq!(cursor.rest(), [5, 6]);
        }
    }
}
