//! Stored change and its encoding on disk. Fields: kind 1 octet (its highest bit: another service
//! relayed the change), instance 16, original writer 16, its sequence number 8, source timestamp 4
//! for seconds and 4 for the fraction, all integers little-endian, then the payload.

use takt::qos::DataRepresentation;
use takt::relay::{ChangeKind, RelayedChange, SampleIdentity};
use takt::{Guid, InstanceHandle, SequenceNumber, Timestamp};

/// Length in octets of the fields before the payload.
pub(crate) const HEADER_LEN: usize = 49;

/// Change and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: ChangeKind,
    pub(crate) instance: InstanceHandle,
    pub(crate) origin: SampleIdentity,
    pub(crate) source_timestamp: Timestamp,
    /// Whether the change came from another service instead of its original writer.
    pub(crate) is_relayed: bool,
    pub(crate) payload: Vec<u8>,
}

/// Bit of the kind that marks a relayed change.
const RELAYED: u8 = 0x80;

impl Record {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + self.payload.len());
        let kind = match self.kind {
            ChangeKind::Alive => 0,
            ChangeKind::Disposed => 1,
            ChangeKind::Unregistered => 2,
            ChangeKind::DisposedUnregistered => 3,
        };
        bytes.push(kind | if self.is_relayed { RELAYED } else { 0 });
        bytes.extend_from_slice(&self.instance.0);
        bytes.extend_from_slice(&self.origin.writer.to_bytes());
        bytes.extend_from_slice(&self.origin.sn.0.to_le_bytes());
        bytes.extend_from_slice(&self.source_timestamp.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.source_timestamp.fraction.to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Decodes a record; `None` if the bytes are malformed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (instance, rest) = rest.split_first_chunk::<16>()?;
        let (writer, rest) = rest.split_first_chunk::<16>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (seconds, rest) = rest.split_first_chunk::<4>()?;
        let (fraction, payload) = rest.split_first_chunk::<4>()?;
        Some(Self {
            is_relayed: kind & RELAYED != 0,
            kind: match kind & !RELAYED {
                0 => ChangeKind::Alive,
                1 => ChangeKind::Disposed,
                2 => ChangeKind::Unregistered,
                3 => ChangeKind::DisposedUnregistered,
                _ => return None,
            },
            instance: InstanceHandle(*instance),
            origin: SampleIdentity {
                writer: Guid::from_bytes(*writer),
                sn: SequenceNumber(i64::from_le_bytes(*number)),
            },
            source_timestamp: Timestamp {
                seconds: u32::from_le_bytes(*seconds),
                fraction: u32::from_le_bytes(*fraction),
            },
            payload: payload.to_vec(),
        })
    }

    /// Returns the data representation named by the encapsulation header of the payload. `None`
    /// without an XCDR payload.
    pub(crate) fn representation(&self) -> Option<DataRepresentation> {
        match self.payload.get(..2)? {
            [0, 0..=3] => Some(DataRepresentation::xcdr1()),
            [0, 6..=11] => Some(DataRepresentation::xcdr2()),
            _ => None,
        }
    }

    pub(crate) fn as_relayed(&self) -> RelayedChange<'_> {
        RelayedChange {
            kind: self.kind,
            instance: self.instance,
            origin: self.origin,
            source_timestamp: self.source_timestamp,
            payload: &self.payload,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns change `sn` of writer `writer`, of instance `instance`.
    pub(crate) fn record(writer: u8, sn: i64, instance: u8, kind: ChangeKind) -> Record {
        Record {
            kind,
            instance: InstanceHandle([instance; 16]),
            origin: SampleIdentity { writer: Guid::from_bytes([writer; 16]), sn: SequenceNumber(sn) },
            source_timestamp: Timestamp { seconds: sn as u32, fraction: 5 },
            is_relayed: false,
            payload: vec![instance; 10],
        }
    }

    #[test]
    fn record_round_trips_and_truncated_bytes_fail() {
        for kind in
            [ChangeKind::Alive, ChangeKind::Disposed, ChangeKind::Unregistered, ChangeKind::DisposedUnregistered]
        {
            let record = Record { is_relayed: kind == ChangeKind::Disposed, ..record(7, 1 << 40, 3, kind) };
            let bytes = record.to_bytes();
            assert_eq!(Record::from_bytes(&bytes), Some(record));
            for len in 0..HEADER_LEN {
                assert_eq!(Record::from_bytes(&bytes[..len]), None, "{len} octets");
            }
            assert_eq!(Record::from_bytes(&[&[9], &bytes[1..]].concat()), None, "an unknown kind");
        }
    }
}
