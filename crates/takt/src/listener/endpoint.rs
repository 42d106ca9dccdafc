//! Listeners of readers and writers, which know their type.

use super::{PublisherListener, SubscriberListener};
use crate::reader::{AnyDataReader, DataReader};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LatencyExceededStatus, LivelinessChangedStatus, LivelinessLostStatus,
    MatchedStatus, SampleLostStatus, SampleRejectedStatus,
};
use crate::writer::{AnyDataWriter, DataWriter};
use crate::{Readable, TypeSupport};

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

    /// Samples were older than the reader's E2E_LATENCY (`rt.e2e_ns`), or than the bound of the system file.
    fn on_latency_exceeded(&mut self, reader: &DataReader<T>, status: LatencyExceededStatus) {}

    /// A sample found no room.
    fn on_sample_rejected(&mut self, reader: &DataReader<T>, status: SampleRejectedStatus) {}
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
}

/// A reader's listener as one that knows no type.
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

/// A writer's listener as one that knows no type.
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
