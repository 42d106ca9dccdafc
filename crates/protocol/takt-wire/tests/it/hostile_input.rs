//! Mutated datagrams from a fixed seed: no input may cause a panic.

use takt_testkit::Random;
use takt_wire::compat::{check, partitions_match};
use takt_wire::discovery::{
    ParticipantData, ParticipantMessageData, PublicationData, SubscriptionData, limits, parse_key,
};
use takt_wire::inline_qos::InlineQos;
use takt_wire::message::{MessageView, Submessage};
use takt_wire::parameter::ParameterList;
use takt_wire::{Endianness, Guid};

use crate::corpus::{ORDERS, datagrams, discovery};

/// Boundary values for lengths and counts.
const EDGES: [u32; 12] =
    [0, 1, 3, 0xff, 0x100, 0x101, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// Changes some octets, or the length.
fn mutate(octets: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(octets.len().max(1));
        match random.below(6) {
            0 => octets.truncate(at),
            1 => octets.insert(at, random.next().to_le_bytes()[0]),
            2 if at < octets.len() => {
                octets.remove(at);
            }
            3 => {
                let value = EDGES[random.below(EDGES.len())];
                let at = at / 4 * 4;
                let bytes = if random.below(2) == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
                for (octet, byte) in octets.iter_mut().skip(at).zip(bytes) {
                    *octet = byte;
                }
            }
            4 => {
                let copied = octets[at / 2..at].to_vec();
                octets.extend_from_slice(&copied);
            }
            _ => {
                if let Some(octet) = octets.get_mut(at) {
                    *octet ^= 1 << random.below(8);
                }
            }
        }
    }
}

/// Parses the datagram as every kind of data. Returns the number of items that parsed.
pub fn read_everything(datagram: &[u8]) -> usize {
    let Ok(view) = MessageView::parse(datagram) else {
        return 0;
    };
    let mut used = 0;
    let mut seen = 0;
    for item in view.submessages() {
        seen += 1;
        let Ok(submessage) = item else { continue };
        used += 1;
        match submessage {
            Submessage::Data(data) => {
                used += data.inline_qos.map_or(0, read_inline_qos);
                used += data.payload.bytes().map_or(0, read_discovery);
            }
            Submessage::DataFrag(frag) => {
                let end = u64::from(frag.payload_offset()) + frag.payload.len() as u64;
                assert!(end <= u64::from(frag.sample_size));
                used += frag.inline_qos.map_or(0, read_inline_qos);
            }
            Submessage::AckNack(acknack) => {
                let set = acknack.reader_sn_state;
                assert!(set.base().is_valid() && set.iter().count() <= 256);
                assert!(set.iter().all(|number| set.contains(number) && number.is_valid()));
            }
            Submessage::NackFrag(nack) => {
                assert!(nack.sn.is_valid() && nack.fragments.iter().count() <= 256);
                assert!(nack.fragments.iter().all(|number| number > 0));
            }
            Submessage::Gap(gap) => {
                assert!(gap.gap_start.is_valid() && gap.gap_start <= gap.gap_list.base());
            }
            Submessage::Heartbeat(heartbeat) => {
                assert!(heartbeat.first_sn.is_valid());
                assert!(heartbeat.last_sn >= heartbeat.first_sn.prev());
            }
            Submessage::InfoReply(reply) => {
                used += reply.unicast.count() + reply.multicast.map_or(0, Iterator::count);
            }
            _ => {}
        }
    }
    assert!(seen <= datagram.len() / 4 + 1, "the walk is as long as the datagram at most");
    used
}

fn read_inline_qos(list: ParameterList<'_>) -> usize {
    let Ok(qos) = InlineQos::parse(list) else {
        return 0;
    };
    1 + qos.directed_write.iter().count() + usize::from(qos.is_for(Guid::UNKNOWN))
}

/// Parses a payload as each kind of discovery data, checks the limits, and serializes the result.
fn read_discovery(payload: &[u8]) -> usize {
    let mut used = usize::from(parse_key(payload).is_ok());
    used += usize::from(ParticipantMessageData::parse(payload).is_ok());
    for endianness in ORDERS {
        used += usize::from(ParameterList::parse(payload, endianness).is_ok());
    }
    if let Ok(participant) = ParticipantData::parse(payload) {
        for locators in [&participant.metatraffic_unicast, &participant.default_multicast] {
            assert!(locators.len() <= limits::LOCATORS_MAX);
        }
        assert!(participant.properties.entries.len() <= limits::PROPERTIES_MAX);
        assert_eq!(ParticipantData::parse(&participant.to_bytes()), Ok(participant));
        used += 1;
    }
    let publication = PublicationData::parse(payload);
    if let Ok(publication) = &publication {
        assert!(publication.partition.names.len() <= limits::PARTITIONS_MAX);
        assert_eq!(PublicationData::parse(&publication.to_bytes()).as_ref(), Ok(publication));
        used += 1;
    }
    let subscription = SubscriptionData::parse(payload);
    if let Ok(subscription) = &subscription {
        assert!(subscription.topic_name.len() <= limits::NAME_LEN_MAX);
        assert_eq!(SubscriptionData::parse(&subscription.to_bytes()).as_ref(), Ok(subscription));
        used += 1;
    }
    if let (Ok(writer), Ok(reader)) = (&publication, &subscription) {
        used += check(writer, reader).len();
        used += usize::from(partitions_match(&writer.partition, &reader.partition));
    }
    used
}

#[test]
fn mutated_datagrams_cause_no_panic() {
    let corpus = datagrams();
    let mut random = Random(0x7a6b_5c4d_3e2f_1001);
    let mut used = 0;
    for _ in 0..200_000 {
        let mut datagram = corpus[random.below(corpus.len())].clone();
        mutate(&mut datagram, &mut random);
        used += read_everything(&datagram);
    }
    assert!(used > 200_000, "only {used}: the mutations hit nothing but the header");
}

#[test]
fn mutated_discovery_data_causes_no_panic() {
    let corpus: Vec<Vec<u8>> = ORDERS.into_iter().flat_map(discovery).collect();
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut used = 0;
    for _ in 0..50_000 {
        let mut payload = corpus[random.below(corpus.len())].clone();
        mutate(&mut payload, &mut random);
        used += read_discovery(&payload);
    }
    assert!(used > 20_000, "only {used}: the mutations hit nothing but the header");
}

#[test]
fn random_octets_after_a_valid_header_cause_no_panic() {
    let mut random = Random(0x0fed_cba9_8765_4321);
    for _ in 0..20_000 {
        let len = random.below(200);
        let octets: Vec<u8> = (0..len).map(|_| random.next().to_le_bytes()[0]).collect();
        read_everything(&crate::corpus::message(&octets));
        for endianness in [Endianness::Big, Endianness::Little] {
            if let Ok((list, len)) = ParameterList::parse(&octets, endianness) {
                assert!(len <= octets.len() && list.iter().count() <= octets.len() / 4);
            }
        }
    }
}
