//! Creation of a topic's writers and readers in one call, each with a separate publisher or
//! subscriber with default QoS.

use super::DomainParticipant;
use crate::qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use crate::{DataReader, DataWriter, Readable, Result, TypeSupport};

impl DomainParticipant {
    /// Creates a RELIABLE, VOLATILE writer of a topic that keeps the last sample of each instance.
    ///
    /// # Errors
    /// As [`create_topic`](Self::create_topic) and
    /// [`Publisher::create_datawriter`](crate::Publisher::create_datawriter).
    ///
    /// # Examples
    /// ```no_run
    /// use takt::prelude::*;
    ///
    /// #[derive(DdsType, Clone, Debug, Default)]
    /// struct Reading {
    ///     celsius: f64,
    /// }
    ///
    /// let participant = DomainParticipant::new(0)?;
    /// let writer = participant.writer::<Reading>("Temperature")?;
    /// writer.write(&Reading { celsius: 21.5 })?;
    /// # Ok::<(), takt::Error>(())
    /// ```
    pub fn writer<T: TypeSupport>(&self, topic_name: &str) -> Result<DataWriter<T>> {
        self.writer_with(topic_name, DataWriterQos::reliable())
    }

    /// Creates a writer of a topic with this QoS, the timing contract included.
    ///
    /// # Errors
    /// As [`writer`](Self::writer).
    ///
    /// # Examples
    /// ```no_run
    /// # use takt::prelude::*;
    /// # fn f<Reading: takt::DdsType>(participant: &DomainParticipant) -> takt::Result<()> {
    /// let qos = DataWriterQos::reliable().keep_last(8).min_separation(ms(5)).max_size(1400).priority(46);
    /// let writer = participant.writer_with::<Reading>("Temperature", qos)?;
    /// # Ok(()) }
    /// ```
    pub fn writer_with<T: TypeSupport>(&self, topic_name: &str, qos: DataWriterQos) -> Result<DataWriter<T>> {
        let topic = self.create_topic::<T>(topic_name, TopicQos::default())?;
        self.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)
    }

    /// Creates a RELIABLE, VOLATILE reader of a topic that keeps the last sample of each instance.
    ///
    /// # Errors
    /// As [`create_topic`](Self::create_topic) and
    /// [`Subscriber::create_datareader`](crate::Subscriber::create_datareader).
    pub fn reader<T: Readable + TypeSupport>(&self, topic_name: &str) -> Result<DataReader<T>> {
        self.reader_with(topic_name, DataReaderQos::reliable())
    }

    /// Creates a reader of a topic with this QoS, the timing contract included.
    ///
    /// # Errors
    /// As [`reader`](Self::reader).
    ///
    /// # Examples
    /// ```no_run
    /// # use takt::prelude::*;
    /// # fn f<Reading: takt::DdsType>(participant: &DomainParticipant) -> takt::Result<()> {
    /// let qos = DataReaderQos::reliable().latency(ms(2));
    /// let reader = participant.reader_with::<Reading>("Temperature", qos)?;
    /// # Ok(()) }
    /// ```
    pub fn reader_with<T: Readable + TypeSupport>(
        &self,
        topic_name: &str,
        qos: DataReaderQos,
    ) -> Result<DataReader<T>> {
        let topic = self.create_topic::<T>(topic_name, TopicQos::default())?;
        self.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)
    }
}
