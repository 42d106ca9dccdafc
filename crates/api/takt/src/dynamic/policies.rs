//! QoS compatible with that of a remote endpoint: at most what a writer offers, at least what a
//! reader requests (DDS 1.4 §2.2.3).

use crate::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, Durability, History, LatencyBudget, PolicySet, PublisherQos,
    ReliabilityKind, SubscriberQos,
};
use crate::{PublicationData, SubscriptionData};

/// History depth per instance of a reader with adapted QoS. KEEP_LAST ensures that the reader never
/// blocks a reliable writer: the oldest sample is displaced.
const READER_DEPTH: u32 = 256;

/// QoS of a reader and of its subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReaderPolicies {
    /// QoS of the reader.
    pub reader: DataReaderQos,
    /// QoS of its subscriber.
    pub subscriber: SubscriberQos,
}

/// QoS of a writer and of its publisher.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WriterPolicies {
    /// QoS of the writer.
    pub writer: DataWriterQos,
    /// QoS of its publisher.
    pub publisher: PublisherQos,
}

/// Returns QoS of a reader that matches the writer and receives all samples that it offers.
#[must_use]
pub fn reader_policies_for(writer: &PublicationData) -> ReaderPolicies {
    let offered = &writer.qos;
    let mut qos = DataReaderQos::default();
    qos.copy_from(offered, |policy| policy.is_requested);
    qos.durability = offered.durability.min(Durability::TransientLocal);
    qos.history = History::KeepLast(READER_DEPTH);
    qos.data_representation = DataRepresentation::any_xcdr();
    let subscriber = SubscriberQos { partition: writer.partition.clone(), ..SubscriberQos::default() };
    ReaderPolicies { reader: qos, subscriber }
}

/// Returns QoS of a writer that matches the reader. If the reader accepts neither XCDR1 nor XCDR2,
/// the writer offers XCDR1.
#[must_use]
pub fn writer_policies_for(reader: &SubscriptionData) -> WriterPolicies {
    let requested = &reader.qos;
    let supported = |id: &&i16| matches!(**id, DataRepresentation::XCDR1 | DataRepresentation::XCDR2);
    let encoding = requested.data_representation.effective().iter().find(supported);
    let mut qos = DataWriterQos::default();
    qos.copy_from(requested, |policy| policy.is_requested);
    qos.latency_budget = LatencyBudget::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.data_representation = DataRepresentation(vec![*encoding.unwrap_or(&DataRepresentation::XCDR1)]);
    let publisher = PublisherQos {
        presentation: reader.presentation,
        partition: reader.partition.clone(),
        ..PublisherQos::default()
    };
    WriterPolicies { writer: qos, publisher }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{
        AccessScope, DestinationOrder, LatencyBudget, Liveliness, LivelinessKind, Ownership, Partition, Presentation,
        Reliability,
    };
    use crate::{Duration, Guid};
    use takt_wire::compat::{check, partitions_match};

    #[test]
    fn reader_policies_match_the_writer() {
        for durability in [Durability::Volatile, Durability::TransientLocal, Durability::Persistent] {
            for reliability in [Reliability::BEST_EFFORT, Reliability::RELIABLE] {
                let mut writer = PublicationData { guid: Guid::UNKNOWN, ..PublicationData::default() };
                writer.qos.durability = durability;
                writer.qos.reliability = reliability;
                writer.qos.latency_budget = LatencyBudget { duration: Duration::from_secs(1) };
                writer.qos.ownership = Ownership::Exclusive;
                writer.qos.data_representation = DataRepresentation::xcdr2();
                writer.partition = Partition { names: vec!["a".to_owned(), "b*".to_owned()] };
                let ReaderPolicies { reader: qos, subscriber } = reader_policies_for(&writer);
                let reader = SubscriptionData { qos, partition: subscriber.partition, ..SubscriptionData::default() };
                assert_eq!(check(&writer, &reader), []);
                assert!(partitions_match(&writer.partition, &reader.partition));
                assert_eq!(reader.qos.reliability.kind, reliability.kind, "the same reliability");
            }
        }
    }

    #[test]
    fn writer_policies_match_the_reader() {
        let mut reader = SubscriptionData::default();
        reader.qos.durability = Durability::TransientLocal;
        reader.qos.reliability = Reliability::RELIABLE;
        reader.qos.ownership = Ownership::Exclusive;
        reader.qos.destination_order = DestinationOrder::BySourceTimestamp;
        let lease_duration = Duration::from_secs(3);
        reader.qos.liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration };
        reader.qos.data_representation = DataRepresentation(vec![DataRepresentation::XML, DataRepresentation::XCDR2]);
        reader.presentation =
            Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: true };
        let WriterPolicies { writer: qos, publisher } = writer_policies_for(&reader);
        let writer = PublicationData { qos, presentation: publisher.presentation, ..PublicationData::default() };
        assert_eq!(check(&writer, &reader), []);
        assert_eq!(writer.qos.data_representation, DataRepresentation::xcdr2());
    }
}
