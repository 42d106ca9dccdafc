//! QoS policies from options and from discovered endpoints.

use super::learning::Endpoints;
use clap::Args;
use takt::dynamic::{ReaderPolicies, WriterPolicies, reader_policies_for, writer_policies_for};
use takt::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, Durability, History, Ownership, Partition, Policy, PolicySet,
    PublisherQos, Reliability, ReliabilityKind, SubscriberQos,
};

/// Policies on the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct PolicyOptions {
    /// RELIABILITY RELIABLE
    #[arg(long, conflicts_with = "best_effort")]
    reliable: bool,
    /// RELIABILITY BEST_EFFORT
    #[arg(long)]
    best_effort: bool,
    /// DURABILITY TRANSIENT_LOCAL
    #[arg(long, conflicts_with = "volatile")]
    transient_local: bool,
    /// DURABILITY VOLATILE
    #[arg(long)]
    volatile: bool,
    /// OWNERSHIP EXCLUSIVE
    #[arg(long)]
    exclusive: bool,
    /// HISTORY KEEP_LAST of this depth
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..=4096))]
    keep_last: Option<u32>,
    /// HISTORY KEEP_ALL
    #[arg(long, conflicts_with = "keep_last")]
    keep_all: bool,
    /// PARTITION; may be repeated
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// Data representation
    #[arg(long, value_name = "VERSION", value_parser = ["xcdr1", "xcdr2"])]
    representation: Option<String>,
}

impl PolicyOptions {
    fn reliability(&self) -> Option<Reliability> {
        match (self.reliable, self.best_effort) {
            (true, _) => Some(Reliability::RELIABLE),
            (_, true) => Some(Reliability::BEST_EFFORT),
            _ => None,
        }
    }

    fn durability(&self) -> Option<Durability> {
        match (self.transient_local, self.volatile) {
            (true, _) => Some(Durability::TransientLocal),
            (_, true) => Some(Durability::Volatile),
            _ => None,
        }
    }

    fn history(&self) -> Option<History> {
        if self.keep_all { Some(History::KeepAll) } else { self.keep_last.map(History::KeepLast) }
    }

    fn representation(&self) -> Option<DataRepresentation> {
        self.representation.as_deref().map(|version| match version {
            "xcdr1" => DataRepresentation::xcdr1(),
            _ => DataRepresentation::xcdr2(),
        })
    }

    /// Overrides the policies of an endpoint, and those of its publisher or subscriber, with those
    /// of the options.
    pub fn apply(&self, qos: &mut impl PolicySet, group: &mut impl PolicySet) {
        set(qos, self.reliability());
        set(qos, self.durability());
        set(qos, self.history());
        set(qos, self.exclusive.then_some(Ownership::Exclusive));
        set(qos, self.representation());
        set(group, (!self.partition.is_empty()).then(|| Partition { names: self.partition.clone() }));
    }
}

fn set<P: Policy>(qos: &mut impl PolicySet, value: Option<P>) {
    if let (Some(policy), Some(value)) = (qos.policy_mut(), value) {
        *policy = value;
    }
}

/// Returns the QoS of a reader that matches all discovered writers: it requests no more than the
/// weakest writer offers.
pub fn reader_for(endpoints: &Endpoints) -> (DataReaderQos, SubscriberQos) {
    let Some((first, others)) = endpoints.writers.split_first() else {
        let partition = endpoints.readers.first().map(|reader| reader.partition.clone()).unwrap_or_default();
        return (DataReaderQos::default(), SubscriberQos { partition, ..SubscriberQos::default() });
    };
    let ReaderPolicies { reader: mut qos, mut subscriber } = reader_policies_for(first);
    for ReaderPolicies { reader: other, subscriber: its_subscriber } in others.iter().map(reader_policies_for) {
        if other.reliability.kind == ReliabilityKind::BestEffort {
            qos.reliability = other.reliability;
        }
        qos.durability = qos.durability.min(other.durability);
        qos.deadline = qos.deadline.max(other.deadline);
        qos.latency_budget = qos.latency_budget.max(other.latency_budget);
        let names = &mut subscriber.partition.names;
        // A writer without partition names is in the partition of the empty name.
        if names.is_empty() != its_subscriber.partition.names.is_empty() {
            names.push(String::new());
        }
        names.extend(its_subscriber.partition.names);
        names.sort();
        names.dedup();
    }
    (qos, subscriber)
}

/// Returns the QoS of a writer that matches the first discovered reader. Without a reader, the
/// writer joins the partition of the first writer.
pub fn writer_for(endpoints: &Endpoints) -> (DataWriterQos, PublisherQos) {
    match (endpoints.readers.first(), endpoints.writers.first()) {
        (Some(reader), _) => {
            let WriterPolicies { writer, publisher } = writer_policies_for(reader);
            (writer, publisher)
        }
        (None, Some(writer)) => {
            let partition = writer.partition.clone();
            (writer.qos.clone(), PublisherQos { partition, ..PublisherQos::default() })
        }
        (None, None) => Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt::{PublicationData, SubscriptionData};
    use takt_wire::compat::{check, partitions_match};

    fn writer(reliability: Reliability, durability: Durability, partitions: &[&str]) -> PublicationData {
        let mut data = PublicationData::default();
        data.qos.reliability = reliability;
        data.qos.durability = durability;
        data.partition = Partition { names: partitions.iter().map(|name| (*name).to_owned()).collect() };
        data
    }

    #[test]
    fn reader_qos_matches_all_writers() {
        let writers = vec![
            writer(Reliability::RELIABLE, Durability::TransientLocal, &["a"]),
            writer(Reliability::BEST_EFFORT, Durability::TransientLocal, &[]),
            writer(Reliability::RELIABLE, Durability::Volatile, &["b", "c"]),
        ];
        let (qos, subscriber) = reader_for(&Endpoints { writers: writers.clone(), readers: vec![] });
        let reader = SubscriptionData { qos, partition: subscriber.partition, ..SubscriptionData::default() };
        for writer in &writers {
            assert_eq!(check(writer, &reader), []);
            assert!(partitions_match(&writer.partition, &reader.partition), "{:?}", reader.partition);
        }
        assert_eq!(reader.qos.durability, Durability::Volatile);
    }

    #[test]
    fn options_take_precedence_over_discovered_policies() {
        let options = PolicyOptions { best_effort: true, keep_all: true, ..PolicyOptions::default() };
        let writers = vec![writer(Reliability::RELIABLE, Durability::TransientLocal, &["a"])];
        let (mut qos, mut subscriber) = reader_for(&Endpoints { writers, readers: vec![] });
        options.apply(&mut qos, &mut subscriber);
        assert_eq!((qos.reliability, qos.history), (Reliability::BEST_EFFORT, History::KeepAll));
        assert_eq!((qos.durability, subscriber.partition.names), (Durability::TransientLocal, vec!["a".to_owned()]));
    }
}
