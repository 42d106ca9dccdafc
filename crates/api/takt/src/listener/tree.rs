//! Listeners of publishers, subscribers, topics and participants. They receive statuses that the
//! listeners below them do not handle.

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

/// Listener of a subscriber for statuses of its readers. The default implementation of every method
/// does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait SubscriberListener: Send + 'static {
    /// Called when samples have arrived for readers of the subscriber. Called only if the mask
    /// contains `DATA_ON_READERS`, and then in place of `on_data_available` here and in the
    /// readers' listeners.
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {}

    /// Called when samples have arrived. Take until none are left: the next call follows the next
    /// arrival.
    fn on_data_available(&mut self, reader: &AnyDataReader) {}

    /// Called when a writer is matched or unmatched.
    fn on_subscription_matched(&mut self, reader: &AnyDataReader, status: MatchedStatus) {}

    /// Called when a writer's offered QoS is incompatible with the QoS that the reader requests.
    fn on_requested_incompatible_qos(&mut self, reader: &AnyDataReader, status: IncompatibleQosStatus) {}

    /// Called when instances received no sample within DEADLINE.
    fn on_requested_deadline_missed(&mut self, reader: &AnyDataReader, status: DeadlineMissedStatus) {}

    /// Called when a matched writer becomes alive, or not alive because its lease expired.
    fn on_liveliness_changed(&mut self, reader: &AnyDataReader, status: LivelinessChangedStatus) {}

    /// Called when samples were lost.
    fn on_sample_lost(&mut self, reader: &AnyDataReader, status: SampleLostStatus) {}

    /// Called when samples exceeded the reader's E2E_LATENCY (`rt.e2e_ns`) or the bound in the
    /// system file.
    fn on_latency_exceeded(&mut self, reader: &AnyDataReader, status: LatencyExceededStatus) {}

    /// Called when a sample was rejected because a resource limit was reached.
    fn on_sample_rejected(&mut self, reader: &AnyDataReader, status: SampleRejectedStatus) {}
}

/// Listener of a publisher for statuses of its writers. The default implementation of every method
/// does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait PublisherListener: Send + 'static {
    /// Called when a reader is matched or unmatched.
    fn on_publication_matched(&mut self, writer: &AnyDataWriter, status: MatchedStatus) {}

    /// Called when a reader's requested QoS is incompatible with the QoS that the writer offers.
    fn on_offered_incompatible_qos(&mut self, writer: &AnyDataWriter, status: IncompatibleQosStatus) {}

    /// Called when instances were not written within DEADLINE.
    fn on_offered_deadline_missed(&mut self, writer: &AnyDataWriter, status: DeadlineMissedStatus) {}

    /// Called when a writer was not asserted within its lease. Applies to manual LIVELINESS only.
    fn on_liveliness_lost(&mut self, writer: &AnyDataWriter, status: LivelinessLostStatus) {}
}

/// Listener of a topic. The default implementation of its method does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait TopicListener: Send + 'static {
    /// Called when a remote endpoint has this topic's name but another type.
    fn on_inconsistent_topic(&mut self, topic: &AnyTopic, status: InconsistentTopicStatus) {}
}

/// Listener of a participant. It is called when remote participants are discovered or lost, and for
/// statuses of its entities that no listener below handles. The default implementation of every
/// method does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DomainParticipantListener: PublisherListener + SubscriberListener + TopicListener {
    /// Called when a remote participant is discovered.
    fn on_participant_discovered(&mut self, participant: Guid) {}

    /// Called when a remote participant leaves or its lease expires.
    fn on_participant_lost(&mut self, participant: Guid) {}

    /// Called when jobs of this participant's executor exceeded their budget.
    fn on_budget_overrun(&mut self, status: BudgetOverrunStatus) {}
}

/// Calls the listener's method for each status in the set.
pub(crate) fn notify_subscriber(listener: &mut dyn SubscriberListener, reader: &AnyDataReader, statuses: StatusMask) {
    // Fast path: most calls report available data only.
    if statuses == StatusMask::DATA_AVAILABLE {
        return listener.on_data_available(reader);
    }
    if statuses.intersects(StatusMask::REQUESTED_INCOMPATIBLE_QOS) {
        notify(reader.requested_incompatible_qos_status(), |status| {
            listener.on_requested_incompatible_qos(reader, status);
        });
    }
    if statuses.intersects(StatusMask::SUBSCRIPTION_MATCHED) {
        notify(reader.subscription_matched_status(), |status| listener.on_subscription_matched(reader, status));
    }
    if statuses.intersects(StatusMask::LIVELINESS_CHANGED) {
        notify(reader.liveliness_changed_status(), |status| listener.on_liveliness_changed(reader, status));
    }
    if statuses.intersects(StatusMask::REQUESTED_DEADLINE_MISSED) {
        notify(reader.requested_deadline_missed_status(), |status| {
            listener.on_requested_deadline_missed(reader, status);
        });
    }
    if statuses.intersects(StatusMask::SAMPLE_LOST) {
        notify(reader.sample_lost_status(), |status| listener.on_sample_lost(reader, status));
    }
    if statuses.intersects(StatusMask::LATENCY_EXCEEDED)
        && let Ok(Some(status)) = reader.latency_exceeded_status()
    {
        listener.on_latency_exceeded(reader, status);
    }
    if statuses.intersects(StatusMask::SAMPLE_REJECTED) {
        notify(reader.sample_rejected_status(), |status| listener.on_sample_rejected(reader, status));
    }
    if statuses.intersects(StatusMask::DATA_ON_READERS) {
        listener.on_data_on_readers(&reader.subscriber());
    }
    if statuses.intersects(StatusMask::DATA_AVAILABLE) {
        listener.on_data_available(reader);
    }
}

/// Calls the listener's method for each status in the set.
pub(crate) fn notify_publisher(listener: &mut dyn PublisherListener, writer: &AnyDataWriter, statuses: StatusMask) {
    if statuses.intersects(StatusMask::OFFERED_INCOMPATIBLE_QOS) {
        notify(writer.offered_incompatible_qos_status(), |status| {
            listener.on_offered_incompatible_qos(writer, status);
        });
    }
    if statuses.intersects(StatusMask::OFFERED_DEADLINE_MISSED) {
        notify(writer.offered_deadline_missed_status(), |status| {
            listener.on_offered_deadline_missed(writer, status);
        });
    }
    if statuses.intersects(StatusMask::LIVELINESS_LOST) {
        notify(writer.liveliness_lost_status(), |status| listener.on_liveliness_lost(writer, status));
    }
    if statuses.intersects(StatusMask::PUBLICATION_MATCHED) {
        notify(writer.publication_matched_status(), |status| listener.on_publication_matched(writer, status));
    }
}

/// Calls the listener's method for the only status of topics.
pub(crate) fn notify_topic(listener: &mut dyn TopicListener, topic: &Arc<TopicInner>, statuses: StatusMask) {
    if statuses.intersects(StatusMask::INCONSISTENT_TOPIC) {
        let topic = AnyTopic::from_inner(Arc::clone(topic));
        notify(topic.inconsistent_topic_status(), |status| listener.on_inconsistent_topic(&topic, status));
    }
}

/// Passes a status to the listener, unless the entity was closed meanwhile.
fn notify<S>(status: Result<S>, listener: impl FnOnce(S)) {
    if let Ok(status) = status {
        listener(status);
    }
}
