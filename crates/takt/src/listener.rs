//! Listeners: the application's code that status changes call (DDS 1.4 §2.2.4.2).
//!
//! Under `Runtime::Shared` listeners run on the receiving thread, under `Runtime::Inline` in whatever call drives the
//! participant. Either way one at a time, and without any lock held: a listener may call anything on any entity, save
//! that under `Runtime::Shared` it cannot wait for its own participant's conditions, samples or tasks. While
//! it runs nothing is received, so it should be brief.
//!
//! A listener that is set after something has changed is told of it at once.

use std::sync::Weak;

use takt_wire::Guid;

use crate::reader::{DataReader, ReaderInner};
use crate::runtime::state::Callback;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::writer::{DataWriter, WriterInner};
use crate::{Readable, Result, TypeSupport};

/// What a reader tells. Every method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DataReaderListener<T: Readable>: Send + 'static {
    /// Samples have arrived. Take until there are none: the next call comes with the next arrival.
    fn on_data_available(&mut self, reader: &DataReader<T>) {}

    /// A writer was matched, or a matched one has gone.
    fn on_subscription_matched(&mut self, reader: &DataReader<T>, status: MatchedStatus) {}

    /// A writer offers less than this reader asks for.
    fn on_requested_incompatible_qos(&mut self, reader: &DataReader<T>, status: IncompatibleQosStatus) {}

    /// Instances got no sample within DEADLINE.
    fn on_requested_deadline_missed(&mut self, reader: &DataReader<T>, status: DeadlineMissedStatus) {}

    /// A matched writer has come to life, or was not heard of for as long as its lease.
    fn on_liveliness_changed(&mut self, reader: &DataReader<T>, status: LivelinessChangedStatus) {}

    /// Samples were lost.
    fn on_sample_lost(&mut self, reader: &DataReader<T>, status: SampleLostStatus) {}

    /// A sample found no room.
    fn on_sample_rejected(&mut self, reader: &DataReader<T>, status: SampleRejectedStatus) {}

    /// A writer of the topic has another type.
    fn on_inconsistent_topic(&mut self, reader: &DataReader<T>, status: InconsistentTopicStatus) {}
}

/// What a writer tells. Every method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DataWriterListener<T: TypeSupport>: Send + 'static {
    /// A reader was matched, or a matched one has gone.
    fn on_publication_matched(&mut self, writer: &DataWriter<T>, status: MatchedStatus) {}

    /// A reader asks for more than this writer offers.
    fn on_offered_incompatible_qos(&mut self, writer: &DataWriter<T>, status: IncompatibleQosStatus) {}

    /// Instances were not written within DEADLINE.
    fn on_offered_deadline_missed(&mut self, writer: &DataWriter<T>, status: DeadlineMissedStatus) {}

    /// The writer, whose LIVELINESS is manual, was not asserted within its lease.
    fn on_liveliness_lost(&mut self, writer: &DataWriter<T>, status: LivelinessLostStatus) {}

    /// A reader of the topic has another type.
    fn on_inconsistent_topic(&mut self, writer: &DataWriter<T>, status: InconsistentTopicStatus) {}
}

/// What a participant tells. Every method does nothing unless implemented.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DomainParticipantListener: Send + 'static {
    /// Another participant has appeared.
    fn on_participant_discovered(&mut self, participant: Guid) {}

    /// Another participant has left, or was not heard of for as long as its lease.
    fn on_participant_lost(&mut self, participant: Guid) {}
}

/// A reader's listener with its reader, for the runtime to call.
pub(crate) struct ReaderCallback<T: Readable> {
    pub(crate) reader: Weak<ReaderInner<T>>,
    pub(crate) listener: Box<dyn DataReaderListener<T>>,
}

impl<T: Readable> Callback for ReaderCallback<T> {
    fn call(&mut self, statuses: StatusMask) {
        let Some(reader) = self.reader.upgrade().map(DataReader::from_inner) else { return };
        let listener = &mut self.listener;
        if statuses.intersects(StatusMask::INCONSISTENT_TOPIC) {
            tell(reader.inconsistent_topic_status(), |status| listener.on_inconsistent_topic(&reader, status));
        }
        if statuses.intersects(StatusMask::REQUESTED_INCOMPATIBLE_QOS) {
            tell(reader.requested_incompatible_qos_status(), |status| {
                listener.on_requested_incompatible_qos(&reader, status);
            });
        }
        if statuses.intersects(StatusMask::SUBSCRIPTION_MATCHED) {
            tell(reader.subscription_matched_status(), |status| listener.on_subscription_matched(&reader, status));
        }
        if statuses.intersects(StatusMask::LIVELINESS_CHANGED) {
            tell(reader.liveliness_changed_status(), |status| listener.on_liveliness_changed(&reader, status));
        }
        if statuses.intersects(StatusMask::REQUESTED_DEADLINE_MISSED) {
            tell(reader.requested_deadline_missed_status(), |status| {
                listener.on_requested_deadline_missed(&reader, status);
            });
        }
        if statuses.intersects(StatusMask::SAMPLE_LOST) {
            tell(reader.sample_lost_status(), |status| listener.on_sample_lost(&reader, status));
        }
        if statuses.intersects(StatusMask::SAMPLE_REJECTED) {
            tell(reader.sample_rejected_status(), |status| listener.on_sample_rejected(&reader, status));
        }
        if statuses.intersects(StatusMask::DATA_AVAILABLE) {
            listener.on_data_available(&reader);
        }
    }
}

/// A writer's listener with its writer, for the runtime to call.
pub(crate) struct WriterCallback<T: TypeSupport> {
    pub(crate) writer: Weak<WriterInner<T>>,
    pub(crate) listener: Box<dyn DataWriterListener<T>>,
}

impl<T: TypeSupport> Callback for WriterCallback<T> {
    fn call(&mut self, statuses: StatusMask) {
        let Some(writer) = self.writer.upgrade().map(DataWriter::from_inner) else { return };
        let listener = &mut self.listener;
        if statuses.intersects(StatusMask::INCONSISTENT_TOPIC) {
            tell(writer.inconsistent_topic_status(), |status| listener.on_inconsistent_topic(&writer, status));
        }
        if statuses.intersects(StatusMask::OFFERED_INCOMPATIBLE_QOS) {
            tell(writer.offered_incompatible_qos_status(), |status| {
                listener.on_offered_incompatible_qos(&writer, status);
            });
        }
        if statuses.intersects(StatusMask::OFFERED_DEADLINE_MISSED) {
            tell(writer.offered_deadline_missed_status(), |status| {
                listener.on_offered_deadline_missed(&writer, status);
            });
        }
        if statuses.intersects(StatusMask::LIVELINESS_LOST) {
            tell(writer.liveliness_lost_status(), |status| listener.on_liveliness_lost(&writer, status));
        }
        if statuses.intersects(StatusMask::PUBLICATION_MATCHED) {
            tell(writer.publication_matched_status(), |status| listener.on_publication_matched(&writer, status));
        }
    }
}

/// Passes a status on. There is none if the entity was closed meanwhile: then there is nobody to tell.
fn tell<S>(status: Result<S>, listener: impl FnOnce(S)) {
    if let Ok(status) = status {
        listener(status);
    }
}
