//! Round trips of parameter lists and discovery data.

use takt_wire::Endianness;
use takt_wire::compat;
use takt_wire::discovery::{ParticipantData, ParticipantMessageData, PublicationData, SubscriptionData, parse_key};
use takt_wire::inline_qos::InlineQos;
use takt_wire::parameter::ParameterList;
use takt_wire::partition::partitions_match;

/// Parses a payload as every kind of discovery data.
pub fn run(payload: &[u8]) {
    for endianness in [Endianness::Big, Endianness::Little] {
        if let Ok((list, len)) = ParameterList::parse(payload, endianness) {
            assert!(len <= payload.len());
            let inside: usize = list.iter().map(|parameter| 4 + parameter.value.len()).sum();
            assert!(inside + 4 <= len);
            if let Ok(inline) = InlineQos::parse(list) {
                std::hint::black_box(inline.directed_write.iter().count());
            }
        }
    }
    std::hint::black_box(parse_key(payload).is_ok());
    if let Ok(message) = ParticipantMessageData::parse(payload) {
        assert_eq!(ParticipantMessageData::parse(&message.to_bytes()), Ok(message));
    }
    if let Ok(data) = ParticipantData::parse(payload) {
        assert_eq!(ParticipantData::parse(&data.to_bytes()).as_ref(), Ok(&data));
    }
    let publication = PublicationData::parse(payload);
    let subscription = SubscriptionData::parse(payload);
    if let Ok(data) = &publication {
        assert_eq!(PublicationData::parse(&data.to_bytes()).as_ref(), Ok(data));
    }
    if let Ok(data) = &subscription {
        assert_eq!(SubscriptionData::parse(&data.to_bytes()).as_ref(), Ok(data));
    }
    if let (Ok(publication), Ok(subscription)) = (&publication, &subscription) {
        let reasons = compat::check(publication, subscription);
        std::hint::black_box(reasons.iter().map(|reason| reason.to_string().len()).sum::<usize>());
        let (one, other) = (&publication.partition, &subscription.partition);
        assert_eq!(partitions_match(one, other), partitions_match(other, one));
    }
}
