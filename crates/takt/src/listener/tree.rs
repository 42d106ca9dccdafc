//! Listeners of publishers, subscribers, topics and participants, which stand in for those of the entities below them.

use std::sync::Arc;

use takt_wire::Guid;

use crate::reader::AnyDataReader;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LatencyExceededStatus,
    LivelinessChangedStatus, LivelinessLostStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::topic::{AnyTopic, TopicInner};
use crate::writer::AnyDataWriter;
use crate::{BudgetOverrunStatus, Result, Subscriber};

/// What a subscriber tells of its readers. Every method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait SubscriberListener: Send + 'static {
    /// Samples have arrived for readers of the subscriber. Called only if the mask says so, and then instead of
    /// `on_data_available`, here and in the readers' listeners.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {}

    /// Samples have arrived. Take until there are none: the next call comes with the next arrival.
    fn on_data_available(&mut self, reader: &AnyDataReader) {}

    /// A writer was matched, or a matched one has gone.
    fn on_subscription_matched(&mut self, reader: &AnyDataReader, status: MatchedStatus) {}

    /// A writer offers less than the reader asks for.
    fn on_requested_incompatible_qos(&mut self, reader: &AnyDataReader, status: IncompatibleQosStatus) {}

    /// Instances got no sample within DEADLINE.
    fn on_requested_deadline_missed(&mut self, reader: &AnyDataReader, status: DeadlineMissedStatus) {}

    /// A matched writer has come to life, or was not heard of for as long as its lease.
    fn on_liveliness_changed(&mut self, reader: &AnyDataReader, status: LivelinessChangedStatus) {}

    /// Samples were lost.
    fn on_sample_lost(&mut self, reader: &AnyDataReader, status: SampleLostStatus) {}

    /// Samples were older than the reader's E2E_LATENCY (`rt.e2e_ns`), or than the bound of the system file.
    fn on_latency_exceeded(&mut self, reader: &AnyDataReader, status: LatencyExceededStatus) {}

    /// A sample found no room.
    fn on_sample_rejected(&mut self, reader: &AnyDataReader, status: SampleRejectedStatus) {}
}

/// What a publisher tells of its writers. Every method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait PublisherListener: Send + 'static {
    /// A reader was matched, or a matched one has gone.
    fn on_publication_matched(&mut self, writer: &AnyDataWriter, status: MatchedStatus) {}

    /// A reader asks for more than the writer offers.
    fn on_offered_incompatible_qos(&mut self, writer: &AnyDataWriter, status: IncompatibleQosStatus) {}

    /// Instances were not written within DEADLINE.
    fn on_offered_deadline_missed(&mut self, writer: &AnyDataWriter, status: DeadlineMissedStatus) {}

    /// A writer, whose LIVELINESS is manual, was not asserted within its lease.
    fn on_liveliness_lost(&mut self, writer: &AnyDataWriter, status: LivelinessLostStatus) {}
}

/// What a topic tells. Its method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait TopicListener: Send + 'static {
    /// Another participant has an endpoint of this topic's name with another type.
    fn on_inconsistent_topic(&mut self, topic: &AnyTopic, status: InconsistentTopicStatus) {}
}

/// What a participant tells: who comes and goes, and for its entities what no listener below it has an ear for. Every
/// method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DomainParticipantListener: PublisherListener + SubscriberListener + TopicListener {
    /// Another participant has appeared.
    fn on_participant_discovered(&mut self, participant: Guid) {}

    /// Another participant has left, or was not heard of for as long as its lease.
    fn on_participant_lost(&mut self, participant: Guid) {}

    /// Jobs of this participant's executor took longer than their budget.
    fn on_budget_overrun(&mut self, status: BudgetOverrunStatus) {}
}

/// Calls the method of each status in the set.
pub(crate) fn tell_subscriber(listener: &mut dyn SubscriberListener, reader: &AnyDataReader, statuses: StatusMask) {
    // Most calls are of samples alone.
    if statuses == StatusMask::DATA_AVAILABLE {
        return listener.on_data_available(reader);
    }
    if statuses.intersects(StatusMask::REQUESTED_INCOMPATIBLE_QOS) {
        tell(reader.requested_incompatible_qos_status(), |status| {
            listener.on_requested_incompatible_qos(reader, status);
        });
    }
    if statuses.intersects(StatusMask::SUBSCRIPTION_MATCHED) {
        tell(reader.subscription_matched_status(), |status| listener.on_subscription_matched(reader, status));
    }
    if statuses.intersects(StatusMask::LIVELINESS_CHANGED) {
        tell(reader.liveliness_changed_status(), |status| listener.on_liveliness_changed(reader, status));
    }
    if statuses.intersects(StatusMask::REQUESTED_DEADLINE_MISSED) {
        tell(reader.requested_deadline_missed_status(), |status| {
            listener.on_requested_deadline_missed(reader, status);
        });
    }
    if statuses.intersects(StatusMask::SAMPLE_LOST) {
        tell(reader.sample_lost_status(), |status| listener.on_sample_lost(reader, status));
    }
    if statuses.intersects(StatusMask::LATENCY_EXCEEDED)
        && let Ok(Some(status)) = reader.latency_exceeded_status()
    {
        listener.on_latency_exceeded(reader, status);
    }
    if statuses.intersects(StatusMask::SAMPLE_REJECTED) {
        tell(reader.sample_rejected_status(), |status| listener.on_sample_rejected(reader, status));
    }
    if statuses.intersects(StatusMask::DATA_ON_READERS) {
        listener.on_data_on_readers(&reader.subscriber());
    }
    if statuses.intersects(StatusMask::DATA_AVAILABLE) {
        listener.on_data_available(reader);
    }
}

/// Calls the method of each status in the set.
pub(crate) fn tell_publisher(listener: &mut dyn PublisherListener, writer: &AnyDataWriter, statuses: StatusMask) {
    if statuses.intersects(StatusMask::OFFERED_INCOMPATIBLE_QOS) {
        tell(writer.offered_incompatible_qos_status(), |status| {
            listener.on_offered_incompatible_qos(writer, status);
        });
    }
    if statuses.intersects(StatusMask::OFFERED_DEADLINE_MISSED) {
        tell(writer.offered_deadline_missed_status(), |status| {
            listener.on_offered_deadline_missed(writer, status);
        });
    }
    if statuses.intersects(StatusMask::LIVELINESS_LOST) {
        tell(writer.liveliness_lost_status(), |status| listener.on_liveliness_lost(writer, status));
    }
    if statuses.intersects(StatusMask::PUBLICATION_MATCHED) {
        tell(writer.publication_matched_status(), |status| listener.on_publication_matched(writer, status));
    }
}

/// Calls the method of the one status that topics have.
pub(crate) fn tell_topic(listener: &mut dyn TopicListener, topic: &Arc<TopicInner>, statuses: StatusMask) {
    if statuses.intersects(StatusMask::INCONSISTENT_TOPIC) {
        let topic = AnyTopic::from_inner(Arc::clone(topic));
        tell(topic.inconsistent_topic_status(), |status| listener.on_inconsistent_topic(&topic, status));
    }
}

/// Passes a status on. There is none if the entity was closed meanwhile: then there is nobody to tell.
fn tell<S>(status: Result<S>, listener: impl FnOnce(S)) {
    if let Ok(status) = status {
        listener(status);
    }
}
