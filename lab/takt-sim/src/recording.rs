//! Recorded datagrams of participants of other vendors: all that a peer sent to one Takt
//! participant.
//!
//! `recordings/*.hex` contain one datagram per line: seconds, source address and port, destination
//! address and port, octets in hexadecimal. `recordings/record.sh` creates them with the programs
//! of `lab/interop/peers`. In each recording the peer has a writer of topic [`SENT_TOPIC`] and a
//! reader of [`ANSWERED_TOPIC`], both RELIABLE, TRANSIENT_LOCAL and KEEP_ALL. Their type has the
//! key `unsigned long` as its first member, in XCDR1. The last datagrams delete the endpoints and
//! the participant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use takt_core::{ChangeKind, KeyExtractor, KeyHash};
use takt_wire::inline_qos::{InlineQos, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{Header, MessageView, Submessage};
use takt_wire::parameter::ParameterList;
use takt_wire::{EntityId, Guid, GuidPrefix, Timestamp};

use crate::clock::Nanos;

/// Topic that the peer writes.
pub const SENT_TOPIC: &str = "Recorded";
/// Topic that the peer reads.
pub const ANSWERED_TOPIC: &str = "Replies";
/// IPv4 address of the peer.
pub const PEER_ADDRESS: [u8; 4] = [10, 77, 0, 1];

/// Bits of an entity kind that distinguish builtin, vendor and application entities
/// (RTPS 2.5 §9.3.1.2). They are zero for application entities.
const ORIGIN_MASK: u8 = 0xc0;

/// Length of the encapsulation header of a payload in octets.
const ENCAPSULATION_LEN: usize = 4;

/// Recorded peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Product {
    /// Eclipse Cyclone DDS 0.10.
    Cyclone10,
    /// Eclipse Cyclone DDS 11.
    Cyclone11,
    /// eProsima Fast DDS 2.9.
    FastDds2,
    /// eProsima Fast DDS 3.2.
    FastDds3,
}

impl Product {
    /// All products.
    pub const ALL: [Self; 4] = [Self::Cyclone10, Self::Cyclone11, Self::FastDds2, Self::FastDds3];

    /// Returns the recording of the product.
    #[must_use]
    pub fn recording(self) -> &'static Recording {
        static CYCLONE_10: LazyLock<Recording> =
            LazyLock::new(|| Recording::parse(include_str!("../recordings/cyclone-0.10.hex")));
        static CYCLONE_11: LazyLock<Recording> =
            LazyLock::new(|| Recording::parse(include_str!("../recordings/cyclone-11.hex")));
        static FAST_DDS_2: LazyLock<Recording> =
            LazyLock::new(|| Recording::parse(include_str!("../recordings/fastdds-2.9.hex")));
        static FAST_DDS_3: LazyLock<Recording> =
            LazyLock::new(|| Recording::parse(include_str!("../recordings/fastdds-3.2.hex")));
        match self {
            Self::Cyclone10 => &CYCLONE_10,
            Self::Cyclone11 => &CYCLONE_11,
            Self::FastDds2 => &FAST_DDS_2,
            Self::FastDds3 => &FAST_DDS_3,
        }
    }
}

/// A recorded datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// Send time, relative to the first datagram of its part of the recording.
    pub at: Nanos,
    /// Source port.
    pub port: u16,
    /// Payload.
    pub bytes: Vec<u8>,
    /// Changes that the datagram contains completely or in part, by writer.
    pub changes: BTreeSet<(EntityId, i64)>,
}

/// A change of the peer's writer of [`SENT_TOPIC`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChange {
    /// Sequence number.
    pub sn: i64,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Source timestamp.
    pub source_timestamp: Timestamp,
    /// Key hash of the instance.
    pub key_hash: KeyHash,
    /// Complete payload; empty if the change has none.
    pub payload: Vec<u8>,
}

/// All recorded datagrams of a peer.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Header of its messages.
    pub header: Header,
    /// GUID prefix of the Takt participant in the recording.
    pub partner: GuidPrefix,
    /// Multicast announcement of the peer.
    pub announcement: Datagram,
    /// Datagrams from the first one for the partner on, without multicast announcements.
    pub session: Vec<Datagram>,
    /// Datagrams that delete the endpoints and the participant.
    pub end: Vec<Datagram>,
    /// GUID of the writer of [`SENT_TOPIC`].
    pub writer: Guid,
    /// GUID of the reader of [`ANSWERED_TOPIC`].
    pub reader: Guid,
    /// Changes written before the end of the participant, by sequence number.
    pub changes: Vec<RecordedChange>,
}

impl Recording {
    /// Parses a recording. Panics on errors, since recordings are part of the program.
    fn parse(text: &str) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut all: Vec<(bool, Datagram)> = lines().map(datagram).collect();
        let header = MessageView::parse(&all[0].1.bytes).expect("a recording has messages").header();
        let partner = all.iter().find_map(|(_, datagram)| destination(&datagram.bytes)).expect("somebody is addressed");
        let announces = |(to_all, datagram): &(bool, Datagram)| {
            *to_all
                && !datagram.changes.is_empty()
                && datagram.changes.iter().all(|(writer, _)| *writer == EntityId::SPDP_WRITER)
        };
        let begin = all.iter().position(|datagram| !announces(datagram)).expect("the peer talks to its partner");
        let end =
            all.iter().position(|(_, datagram)| announces_end(&datagram.bytes)).expect("the peer takes its leave");
        let announcement =
            all.iter().find(|datagram| announces(datagram)).expect("the peer announces itself").1.clone();
        let end_part = part(all.split_off(end).into_iter().map(|(_, datagram)| datagram));
        let session = part(all.into_iter().skip(begin).filter(|it| !announces(it)).map(|(_, datagram)| datagram));
        let changes = changes(&session);
        let mut recording = Self {
            header,
            partner,
            announcement,
            session,
            end: end_part,
            writer: Guid::UNKNOWN,
            reader: Guid::UNKNOWN,
            changes,
        };
        recording.writer = recording.endpoint(|submessage| match submessage {
            Submessage::Data(data) => Some(data.writer),
            _ => None,
        });
        recording.reader = recording.endpoint(|submessage| match submessage {
            Submessage::AckNack(acknack) => Some(acknack.reader),
            _ => None,
        });
        recording
    }

    /// Returns the application endpoint of the peer that submessages of a kind name.
    fn endpoint(&self, of: impl Fn(&Submessage<'_>) -> Option<EntityId>) -> Guid {
        let mut ids = self.session.iter().flat_map(|datagram| {
            let named: Vec<_> = submessages(&datagram.bytes).filter_map(|submessage| of(&submessage)).collect();
            named
        });
        let id = ids.find(|id| is_of_application(*id)).expect("each recording has a writer and a reader");
        Guid::new(self.header.prefix, id)
    }

    /// Returns the duration of the session.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        self.session.last().map_or(0, |datagram| datagram.at)
    }
}

/// Parses a line of a recording. Also returns whether the destination is a multicast group.
fn datagram(line: &str) -> (bool, Datagram) {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [seconds, _source, port, destination, _port, octets] = fields[..] else {
        panic!("a line of a recording has six fields: {line}");
    };
    let octet = |at: usize| u8::from_str_radix(&octets[at..at + 2], 16).expect("octets are in hexadecimal");
    let bytes: Vec<u8> = (0..octets.len()).step_by(2).map(octet).collect();
    let changes = submessages(&bytes).filter_map(|submessage| change_in(&submessage)).collect();
    let at = (seconds.parse::<f64>().expect("seconds are a number") * 1e9) as Nanos;
    let port = port.parse().expect("a port is a number");
    (destination.starts_with("239."), Datagram { at, port, bytes, changes })
}

/// Returns a part of a recording with times relative to its first datagram.
fn part(datagrams: impl Iterator<Item = Datagram>) -> Vec<Datagram> {
    let mut part: Vec<Datagram> = datagrams.collect();
    let first = part.first().map_or(0, |datagram| datagram.at);
    part.iter_mut().for_each(|datagram| datagram.at -= first);
    part
}

fn submessages(datagram: &[u8]) -> impl Iterator<Item = Submessage<'_>> {
    MessageView::parse(datagram).into_iter().flat_map(|message| message.submessages().flatten())
}

/// Returns the participant that a datagram is addressed to.
fn destination(datagram: &[u8]) -> Option<GuidPrefix> {
    submessages(datagram).find_map(|submessage| match submessage {
        Submessage::InfoDestination(prefix) if prefix != GuidPrefix::UNKNOWN => Some(prefix),
        _ => None,
    })
}

fn change_in(submessage: &Submessage<'_>) -> Option<(EntityId, i64)> {
    match submessage {
        Submessage::Data(data) => Some((data.writer, data.sn.0)),
        Submessage::DataFrag(data) => Some((data.writer, data.sn.0)),
        _ => None,
    }
}

fn status_info(inline_qos: Option<ParameterList<'_>>) -> u32 {
    inline_qos.and_then(|list| InlineQos::parse(list).ok()?.status_info).unwrap_or(0)
}

/// Reports whether an endpoint is neither builtin nor vendor-specific.
#[must_use]
pub fn is_of_application(id: EntityId) -> bool {
    id != EntityId::UNKNOWN && id.kind() & ORIGIN_MASK == 0
}

/// Reports whether a datagram announces the end of an endpoint or of the participant.
fn announces_end(datagram: &[u8]) -> bool {
    submessages(datagram).any(|submessage| match submessage {
        Submessage::Data(data) => data.writer.is_builtin() && status_info(data.inline_qos) != 0,
        _ => false,
    })
}

/// Returns the changes that the peer's application wrote.
fn changes(session: &[Datagram]) -> Vec<RecordedChange> {
    let mut changes = BTreeMap::new();
    for datagram in session {
        let mut source_timestamp = Timestamp::INVALID;
        for submessage in submessages(&datagram.bytes) {
            let (writer, sn, inline_qos, offset, payload, len) = match submessage {
                Submessage::InfoTimestamp(timestamp) => {
                    source_timestamp = timestamp.unwrap_or(Timestamp::INVALID);
                    continue;
                }
                Submessage::Data(data) => {
                    let payload = data.payload.bytes().unwrap_or_default();
                    (data.writer, data.sn.0, data.inline_qos, 0, payload, payload.len())
                }
                Submessage::DataFrag(data) => {
                    let len = data.sample_size as usize;
                    (data.writer, data.sn.0, data.inline_qos, data.payload_offset() as usize, data.payload, len)
                }
                _ => continue,
            };
            if !is_of_application(writer) {
                continue;
            }
            let change = changes.entry(sn).or_insert_with(|| RecordedChange {
                sn,
                kind: kind_of(status_info(inline_qos)),
                source_timestamp,
                key_hash: [0; 16],
                payload: vec![0; len],
            });
            change.payload[offset..offset + payload.len()].copy_from_slice(payload);
            let announced = inline_qos.and_then(|list| InlineQos::parse(list).ok()?.key_hash);
            if let Some(key_hash) = announced.or_else(|| FirstMember.key_hash(&change.payload, false)) {
                change.key_hash = key_hash;
            }
        }
    }
    changes.into_values().collect()
}

fn kind_of(status_info: u32) -> ChangeKind {
    match (status_info & STATUS_INFO_DISPOSED != 0, status_info & STATUS_INFO_UNREGISTERED != 0) {
        (false, false) => ChangeKind::Alive,
        (true, false) => ChangeKind::Disposed,
        (false, true) => ChangeKind::Unregistered,
        (true, true) => ChangeKind::DisposedUnregistered,
    }
}

/// Key of the recorded type: its first member, of four octets (RTPS 2.5 §9.6.4.8).
#[derive(Debug)]
pub struct FirstMember;

impl KeyExtractor for FirstMember {
    fn key_hash(&mut self, payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        let is_big_endian = payload.get(1)? & 1 == 0;
        let mut member: [u8; 4] = payload.get(ENCAPSULATION_LEN..ENCAPSULATION_LEN + 4)?.try_into().ok()?;
        if !is_big_endian {
            member.reverse();
        }
        let mut hash = [0; 16];
        hash[..4].copy_from_slice(&member);
        Some(hash)
    }

    fn serialize_key(&mut self, payload: &[u8], _key_only: bool, key: &mut Vec<u8>) -> bool {
        let member = payload.get(..ENCAPSULATION_LEN + 4);
        key.extend_from_slice(member.unwrap_or_default());
        member.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_has_discovery_samples_disposals_and_an_end() {
        for product in Product::ALL {
            let recording = product.recording();
            let numbers: Vec<i64> = recording.changes.iter().map(|change| change.sn).collect();
            assert_eq!(numbers, (1..=24).collect::<Vec<_>>(), "{product:?}");
            let kinds = |kind| recording.changes.iter().filter(|change| change.kind == kind).count();
            assert_eq!(kinds(ChangeKind::Alive), 22, "{product:?}");
            assert_eq!((kinds(ChangeKind::Disposed), kinds(ChangeKind::Unregistered)), (1, 1), "{product:?}");
            let longest = recording.changes.iter().map(|change| change.payload.len()).max();
            assert!(longest.is_some_and(|len| len >= 3_000), "{product:?}: {longest:?}");
            assert!(recording.changes.iter().all(|change| change.key_hash[4..] == [0; 12]), "{product:?}");
            assert!(recording.writer.entity_id.is_writer() && recording.reader.entity_id.is_reader());
            let announced = |id: EntityId| {
                recording.session.iter().any(|datagram| datagram.changes.iter().any(|(writer, _)| *writer == id))
            };
            assert!(announced(EntityId::SEDP_PUB_WRITER) && announced(EntityId::SEDP_SUB_WRITER), "{product:?}");
            let leaves = recording
                .end
                .iter()
                .any(|datagram| datagram.changes.iter().any(|(writer, _)| *writer == EntityId::SPDP_WRITER));
            assert!(leaves, "{product:?}");
            assert_ne!(recording.header.prefix, recording.partner);
        }
    }

    #[test]
    fn key_is_the_first_member_in_either_byte_order() {
        let little = FirstMember.key_hash(&[0, 1, 0, 0, 1, 2, 3, 4, 9], false);
        let big = FirstMember.key_hash(&[0, 0, 0, 0, 4, 3, 2, 1, 9], false);
        assert_eq!(little.map(|hash| hash[..5].to_vec()), Some(vec![4, 3, 2, 1, 0]));
        assert_eq!(little, big);
        assert_eq!(FirstMember.key_hash(&[0, 1, 0, 0, 1, 2, 3], false), None);
    }
}
