//! Flow counters: fixed fields up to OpenFlow 1.4, OpenFlow Extensible Statistics in 1.5 (
//! OF 1.3.5 §7.3.5).

use alloc::vec::Vec;

use crate::error::Malformed;
use crate::version::Version;
use crate::wire::{Reader, Wire, Writer};

/// Class of the standard statistics.
const OPENFLOW_BASIC: u16 = 0x8002;

/// Statistic of OpenFlow 1.5.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// Time since the creation of the flow.
    Duration {
        /// Whole seconds.
        sec: u32,
        /// Nanoseconds beyond these seconds.
        nsec: u32,
    },
    /// Time since the flow last matched a packet.
    IdleTime {
        /// Whole seconds.
        sec: u32,
        /// Nanoseconds beyond these seconds.
        nsec: u32,
    },
    /// Number of aggregated flows.
    FlowCount(u32),
    /// Matched packets.
    PacketCount(u64),
    /// Octets of these packets.
    ByteCount(u64),
    /// Statistic without a variant in this crate, including experimenter statistics.
    Other {
        /// Class of the statistic.
        class: u16,
        /// Octet with field number and reserved bit.
        field: u8,
        /// Value of at most 255 octets.
        body: Vec<u8>,
    },
}

impl Wire for Statistic {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let class = r.u16()?;
        let field = r.u8()?;
        let len = r.u8()?;
        let mut body = r.sub(usize::from(len))?;
        let what = "OXS length does not fit its field";
        if class != OPENFLOW_BASIC {
            return Ok(Self::Other { class, field, body: body.rest().to_vec() });
        }
        let value = match field {
            0x00 => Self::Duration { sec: body.u32()?, nsec: body.u32()? },
            0x02 => Self::IdleTime { sec: body.u32()?, nsec: body.u32()? },
            0x06 => Self::FlowCount(body.u32()?),
            0x08 => Self::PacketCount(body.u64()?),
            0x0a => Self::ByteCount(body.u64()?),
            _ => Self::Other { class, field, body: body.rest().to_vec() },
        };
        body.finish(what)?;
        Ok(value)
    }

    fn write(&self, w: &mut Writer<'_>) {
        let mut header = |field: u8, len: u8| {
            w.u16(OPENFLOW_BASIC);
            w.u8(field);
            w.u8(len);
        };
        match self {
            Self::Duration { sec, nsec } => {
                header(0x00, 8);
                w.u32(*sec);
                w.u32(*nsec);
            }
            Self::IdleTime { sec, nsec } => {
                header(0x02, 8);
                w.u32(*sec);
                w.u32(*nsec);
            }
            Self::FlowCount(count) => {
                header(0x06, 4);
                w.u32(*count);
            }
            Self::PacketCount(count) => {
                header(0x08, 8);
                w.u64(*count);
            }
            Self::ByteCount(count) => {
                header(0x0a, 8);
                w.u64(*count);
            }
            Self::Other { class, field, body } => {
                if body.len() > 255 {
                    w.too_long("OXS field", body.len(), 255);
                }
                w.u16(*class);
                w.u8(*field);
                w.u8(u8::try_from(body.len()).unwrap_or(u8::MAX));
                w.bytes(body);
            }
        }
    }
}

/// Reads a list of statistics: reserved field, length, statistics, padding to 8 octets.
pub(crate) fn read_statistics(r: &mut Reader<'_>) -> Result<Vec<Statistic>, Malformed> {
    let start = r.position();
    r.reserved(2)?;
    let len = r.u16()?;
    let statistics = r.rest_of(len, 4)?.list()?;
    r.align(start)?;
    Ok(statistics)
}

/// Writes the octets that [`read_statistics`] reads.
pub(crate) fn write_statistics(w: &mut Writer<'_>, statistics: &[Statistic]) {
    let start = w.position();
    w.reserved(4);
    w.list(statistics);
    w.set_len(start + 2, start, "statistics");
    w.align(start);
}

/// Counters of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowCounters {
    /// Counters of OpenFlow 1.0 to 1.4.
    Fixed {
        /// Time since the creation of the flow, in whole seconds.
        duration_sec: u32,
        /// Nanoseconds beyond these seconds.
        duration_nsec: u32,
        /// Matched packets. All ones if the switch does not count.
        packet_count: u64,
        /// Octets of these packets. All ones if the switch does not count.
        byte_count: u64,
    },
    /// Counters of OpenFlow 1.5.
    Extensible(Vec<Statistic>),
}

impl Default for FlowCounters {
    fn default() -> Self {
        Self::Fixed { duration_sec: 0, duration_nsec: 0, packet_count: 0, byte_count: 0 }
    }
}

impl FlowCounters {
    /// Returns the number of matched packets, if the switch counts them.
    pub fn packet_count(&self) -> Option<u64> {
        match self {
            Self::Fixed { packet_count, .. } => Some(*packet_count).filter(|count| *count != u64::MAX),
            Self::Extensible(statistics) => statistics.iter().find_map(|statistic| match statistic {
                Statistic::PacketCount(count) => Some(*count),
                _ => None,
            }),
        }
    }

    /// Returns the octets of these packets, if the switch counts them.
    pub fn byte_count(&self) -> Option<u64> {
        match self {
            Self::Fixed { byte_count, .. } => Some(*byte_count).filter(|count| *count != u64::MAX),
            Self::Extensible(statistics) => statistics.iter().find_map(|statistic| match statistic {
                Statistic::ByteCount(count) => Some(*count),
                _ => None,
            }),
        }
    }

    /// Returns the fixed fields of versions below 1.5. The writer refuses extensible statistics.
    pub(crate) fn fixed(&self, w: &mut Writer<'_>) -> (u32, u32, u64, u64) {
        match self {
            Self::Fixed { duration_sec, duration_nsec, packet_count, byte_count } => {
                (*duration_sec, *duration_nsec, *packet_count, *byte_count)
            }
            Self::Extensible(_) => {
                w.refuse("extensible statistics");
                (0, 0, 0, 0)
            }
        }
    }

    /// Writes the list of 1.5. The writer refuses fixed fields.
    pub(crate) fn write_extensible(&self, w: &mut Writer<'_>) {
        match self {
            Self::Extensible(statistics) => write_statistics(w, statistics),
            Self::Fixed { .. } => w.refuse("counters in fixed fields"),
        }
    }
}

/// Sums of an aggregate request (OF 1.3.5 §7.3.5.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aggregate {
    /// Sums of OpenFlow 1.0 to 1.4.
    Fixed {
        /// Packets of the flows.
        packet_count: u64,
        /// Octets of these packets.
        byte_count: u64,
        /// Number of flows that match the request.
        flow_count: u32,
    },
    /// Sums of OpenFlow 1.5.
    Extensible(Vec<Statistic>),
}

impl Wire for Aggregate {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if r.version() == Version::V1_5 {
            return read_statistics(r).map(Self::Extensible);
        }
        let (packet_count, byte_count, flow_count) = (r.u64()?, r.u64()?, r.u32()?);
        r.reserved(4)?;
        Ok(Self::Fixed { packet_count, byte_count, flow_count })
    }

    fn write(&self, w: &mut Writer<'_>) {
        match (self, w.version()) {
            (Self::Extensible(statistics), Version::V1_5) => write_statistics(w, statistics),
            (Self::Extensible(_), _) => w.refuse("extensible statistics"),
            (Self::Fixed { .. }, Version::V1_5) => w.refuse("sums in fixed fields"),
            (Self::Fixed { packet_count, byte_count, flow_count }, _) => {
                w.u64(*packet_count);
                w.u64(*byte_count);
                w.u32(*flow_count);
                w.reserved(4);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn statistics_round_trip_and_truncated_octets_fail() {
        let statistics = vec![
            Statistic::Duration { sec: 1, nsec: 2 },
            Statistic::IdleTime { sec: 3, nsec: 4 },
            Statistic::FlowCount(5),
            Statistic::PacketCount(6),
            Statistic::ByteCount(7),
            Statistic::Other { class: 0xffff, field: 2, body: vec![1; 5] },
        ];
        let mut out = Vec::new();
        write_statistics(&mut Writer::new(Version::V1_5, &mut out), &statistics);
        assert_eq!(out.len() % 8, 0);
        assert_eq!(read_statistics(&mut Reader::new(Version::V1_5, &out)), Ok(statistics));
        for len in 0..out.len() {
            assert!(read_statistics(&mut Reader::new(Version::V1_5, &out[..len])).is_err(), "{len}");
        }
    }

    #[test]
    fn counters_that_a_switch_does_not_keep_are_none() {
        let fixed = FlowCounters::Fixed { duration_sec: 1, duration_nsec: 0, packet_count: u64::MAX, byte_count: 9 };
        assert_eq!((fixed.packet_count(), fixed.byte_count()), (None, Some(9)));
        let listed = FlowCounters::Extensible(vec![Statistic::PacketCount(4)]);
        assert_eq!((listed.packet_count(), listed.byte_count()), (Some(4), None));
    }
}
