//! Listeners of readers and writers of a known type.

use super::{PublisherListener, SubscriberListener};
use crate::reader::{AnyDataReader, DataReader};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LatencyExceededStatus, LivelinessChangedStatus, LivelinessLostStatus,
    MatchedStatus, SampleLostStatus, SampleRejectedStatus,
};
use crate::writer::{AnyDataWriter, DataWriter};
use crate::{Readable, TypeSupport};

/// Listener of a reader. The default implementation of every method does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DataReaderListener<T: Readable>: Send + 'static {
    /// Called when samples have arrived. Take until none are left: the next call follows the next
    /// arrival.
    fn on_data_available(&mut self, reader: &DataReader<T>) {}

    /// Called when a writer is matched or unmatched.
    fn on_subscription_matched(&mut self, reader: &DataReader<T>, status: MatchedStatus) {}

    /// Called when a writer's offered QoS is incompatible with the QoS that this reader requests.
    fn on_requested_incompatible_qos(&mut self, reader: &DataReader<T>, status: IncompatibleQosStatus) {}

    /// Called when instances received no sample within DEADLINE.
    fn on_requested_deadline_missed(&mut self, reader: &DataReader<T>, status: DeadlineMissedStatus) {}

    /// Called when a matched writer becomes alive, or not alive because its lease expired.
    fn on_liveliness_changed(&mut self, reader: &DataReader<T>, status: LivelinessChangedStatus) {}

    /// Called when samples were lost.
    fn on_sample_lost(&mut self, reader: &DataReader<T>, status: SampleLostStatus) {}

    /// Called when samples exceeded the reader's E2E_LATENCY (`rt.e2e_ns`) or the bound in the
    /// system file.
    fn on_latency_exceeded(&mut self, reader: &DataReader<T>, status: LatencyExceededStatus) {}

    /// Called when a sample was rejected because a resource limit was reached.
    fn on_sample_rejected(&mut self, reader: &DataReader<T>, status: SampleRejectedStatus) {}
}

/// Listener of a writer. The default implementation of every method does nothing.
#[allow(unused_variables, reason = "names of parameters that implementations will use")]
pub trait DataWriterListener<T: TypeSupport>: Send + 'static {
    /// Called when a reader is matched or unmatched.
    fn on_publication_matched(&mut self, writer: &DataWriter<T>, status: MatchedStatus) {}

    /// Called when a reader's requested QoS is incompatible with the QoS that this writer offers.
    fn on_offered_incompatible_qos(&mut self, writer: &DataWriter<T>, status: IncompatibleQosStatus) {}

    /// Called when instances were not written within DEADLINE.
    fn on_offered_deadline_missed(&mut self, writer: &DataWriter<T>, status: DeadlineMissedStatus) {}

    /// Called when the writer was not asserted within its lease. Applies to manual LIVELINESS only.
    fn on_liveliness_lost(&mut self, writer: &DataWriter<T>, status: LivelinessLostStatus) {}
}

/// Adapts the listener of a typed reader to the untyped interface.
pub(crate) struct TypedReader<T: Readable> {
    listener: Box<dyn DataReaderListener<T>>,
}

impl<T: Readable> TypedReader<T> {
    pub(crate) fn new(listener: Box<dyn DataReaderListener<T>>) -> Self {
        Self { listener }
    }
}

impl<T: Readable> SubscriberListener for TypedReader<T> {
    fn on_data_available(&mut self, reader: &AnyDataReader) {
        self.listener.on_data_available(&DataReader::of_this_type(reader));
    }

    fn on_subscription_matched(&mut self, reader: &AnyDataReader, status: MatchedStatus) {
        self.listener.on_subscription_matched(&DataReader::of_this_type(reader), status);
    }

    fn on_requested_incompatible_qos(&mut self, reader: &AnyDataReader, status: IncompatibleQosStatus) {
        self.listener.on_requested_incompatible_qos(&DataReader::of_this_type(reader), status);
    }

    fn on_requested_deadline_missed(&mut self, reader: &AnyDataReader, status: DeadlineMissedStatus) {
        self.listener.on_requested_deadline_missed(&DataReader::of_this_type(reader), status);
    }

    fn on_liveliness_changed(&mut self, reader: &AnyDataReader, status: LivelinessChangedStatus) {
        self.listener.on_liveliness_changed(&DataReader::of_this_type(reader), status);
    }

    fn on_latency_exceeded(&mut self, reader: &AnyDataReader, status: LatencyExceededStatus) {
        self.listener.on_latency_exceeded(&DataReader::of_this_type(reader), status);
    }

    fn on_sample_lost(&mut self, reader: &AnyDataReader, status: SampleLostStatus) {
        self.listener.on_sample_lost(&DataReader::of_this_type(reader), status);
    }

    fn on_sample_rejected(&mut self, reader: &AnyDataReader, status: SampleRejectedStatus) {
        self.listener.on_sample_rejected(&DataReader::of_this_type(reader), status);
    }
}

/// Adapts the listener of a typed writer to the untyped interface.
pub(crate) struct TypedWriter<T: TypeSupport> {
    listener: Box<dyn DataWriterListener<T>>,
}

impl<T: TypeSupport> TypedWriter<T> {
    pub(crate) fn new(listener: Box<dyn DataWriterListener<T>>) -> Self {
        Self { listener }
    }
}

impl<T: TypeSupport> PublisherListener for TypedWriter<T> {
    fn on_publication_matched(&mut self, writer: &AnyDataWriter, status: MatchedStatus) {
        self.listener.on_publication_matched(&DataWriter::of_this_type(writer), status);
    }

    fn on_offered_incompatible_qos(&mut self, writer: &AnyDataWriter, status: IncompatibleQosStatus) {
        self.listener.on_offered_incompatible_qos(&DataWriter::of_this_type(writer), status);
    }

    fn on_offered_deadline_missed(&mut self, writer: &AnyDataWriter, status: DeadlineMissedStatus) {
        self.listener.on_offered_deadline_missed(&DataWriter::of_this_type(writer), status);
    }

    fn on_liveliness_lost(&mut self, writer: &AnyDataWriter, status: LivelinessLostStatus) {
        self.listener.on_liveliness_lost(&DataWriter::of_this_type(writer), status);
    }
}
