//! Readers of types that are known only at run time.

use std::fmt;
use std::ops::Deref;

use takt_core::ranks::{self, HasSampleInfo};
use takt_core::{ReadCursor, ReaderFilter, ReaderSpec, SampleInfo, Selector};
use takt_xtypes::DecodeError;
use takt_xtypes::dynamic::DynamicData;

use super::DynamicTypeSupport;
use super::key::key_extractor;
use crate::content_filter;
use crate::qos::{DataReaderQos, TopicData, TopicQos};
use crate::{AnyDataReader, Error, Flow, Result, Subscriber};

/// Reader of a type that is known only at run time. Dereferences to [`AnyDataReader`], which has
/// the methods that do not depend on the type. Clones refer to the same reader, which is deleted
/// with the last of them.
#[derive(Clone)]
pub struct DynamicDataReader {
    any: AnyDataReader,
    type_: DynamicTypeSupport,
}

/// Sample of a type that is known only at run time.
#[derive(Clone, Debug)]
pub struct DynamicSample {
    /// SampleInfo.
    pub info: SampleInfo,
    /// Serialized payload with its encapsulation header. If `info.valid_data` is false, it is the
    /// serialized key, or empty if the key is unknown.
    pub payload: Vec<u8>,
    /// Decoded payload; of a serialized key, the key members only. `None` if the payload is empty
    /// or the type is opaque.
    pub value: Option<std::result::Result<DynamicData, DecodeError>>,
}

impl HasSampleInfo for DynamicSample {
    fn info(&self) -> &SampleInfo {
        &self.info
    }

    fn info_mut(&mut self) -> &mut SampleInfo {
        &mut self.info
    }
}

impl Subscriber {
    /// Creates a reader of a type that is known only at run time.
    ///
    /// # Errors
    /// As [`create_datareader`](Self::create_datareader).
    pub fn create_dynamic_datareader(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: DataReaderQos,
    ) -> Result<DynamicDataReader> {
        self.create_dynamic(topic_name, type_, qos, None)
    }

    /// Creates a content-filtered reader of a type that is known only at run time (see
    /// [`ContentFilteredTopic`](crate::ContentFilteredTopic)).
    ///
    /// # Errors
    /// As [`create_datareader`](Self::create_datareader), and [`Error::BadParameter`] if the type
    /// is opaque, or the expression does not match the type or the parameters.
    pub fn create_filtered_dynamic_datareader(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: DataReaderQos,
        expression: &str,
        parameters: &[&str],
    ) -> Result<DynamicDataReader> {
        let name = format!("{topic_name} filtered");
        let filter = content_filter::bind(content_filter::type_of(type_)?, &name, topic_name, expression, parameters)?;
        let parameters = content_filter::owned(parameters);
        let filter = content_filter::reader_filter(filter, &name, topic_name, expression, &parameters);
        self.create_dynamic(topic_name, type_, qos, Some(filter))
    }

    fn create_dynamic(
        &self,
        topic_name: &str,
        type_: &DynamicTypeSupport,
        qos: DataReaderQos,
        content_filter: Option<ReaderFilter>,
    ) -> Result<DynamicDataReader> {
        let topic = self.inner.participant.make_topic(topic_name, type_.type_name(), TopicQos::default(), false)?;
        let any =
            AnyDataReader::create::<DynamicData>(self, topic, qos.clone(), Flow::default(), |driver, unicast| {
                ReaderSpec {
                    topic_name: topic_name.to_owned(),
                    type_name: type_.type_name().to_owned(),
                    qos,
                    subscriber: self.qos(),
                    group: Some(self.inner.group),
                    topic_data: TopicData::default(),
                    key: key_extractor(type_),
                    type_information: type_.announce(&mut driver.core),
                    max_serialized_len: None,
                    unicast,
                    content_filter,
                }
            })?;
        Ok(DynamicDataReader { any, type_: type_.clone() })
    }
}

impl DynamicDataReader {
    /// Takes up to `max` samples, in the order of [`DataReader::take`](crate::DataReader::take).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn take(&self, max: usize) -> Result<Vec<DynamicSample>> {
        self.select(Selector::TAKE, max)
    }

    /// Reads up to `max` samples without removing them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn read(&self, max: usize) -> Result<Vec<DynamicSample>> {
        self.select(Selector::READ, max)
    }

    /// Reads or takes up to `max` of the samples that match the selector.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed, [`Error::PreconditionNotMet`]
    /// with PRESENTATION scope GROUP outside [`begin_access`](Subscriber::begin_access).
    pub fn select(&self, selector: Selector, max: usize) -> Result<Vec<DynamicSample>> {
        let (mut call, reader) = (self.core.begin_read()?, self.core.handle);
        let (now, core) = (call.now, call.core()?);
        let max = max.min(core.samples_per_read_max(reader)?);
        let (mut cursor, mut samples) = (ReadCursor::default(), Vec::new());
        while samples.len() < max {
            let Some(found) = core.read_next(now, reader, selector, &mut cursor)? else { break };
            let (value, previous) = (self.decode(&found.info, found.payload), found.previous);
            samples.push(DynamicSample { info: found.info, payload: found.payload.to_vec(), value });
            let last = samples.len() - 1;
            ranks::link(&mut samples, last, previous);
        }
        call.finish()?;
        ranks::compute_ranks(&mut samples);
        Ok(samples)
    }

    /// Replaces the parameters of the reader's filter, for samples that arrive from now on. Writers
    /// that filter use the former values until the announcement reaches them.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the reader has no filter, [`Error::BadParameter`] if the
    /// values do not match the expression. The parameters are then unchanged.
    pub fn set_expression_parameters(&self, parameters: &[&str]) -> Result<()> {
        let data = self.core.engine.inspect(|driver| Ok(driver.core.subscription_data(self.guid())))?;
        let none = || Error::PreconditionNotMet { what: "the reader has no content filter".to_owned() };
        let property = data.and_then(|data| data.content_filter).ok_or_else(none)?;
        let (name, expression) = (&property.content_filtered_topic_name, &property.filter_expression);
        let type_ = content_filter::type_of(&self.type_)?;
        let filter = content_filter::bind(type_, name, self.topic_name(), expression, parameters)?;
        let parameters = content_filter::owned(parameters);
        let filter = content_filter::reader_filter(filter, name, self.topic_name(), expression, &parameters);
        self.core.engine.call(|driver, now| Ok(driver.core.set_content_filter(now, self.core.handle, Some(filter))?))
    }

    fn decode(&self, info: &SampleInfo, payload: &[u8]) -> Option<std::result::Result<DynamicData, DecodeError>> {
        let type_ = self.type_.dynamic_type().filter(|_| !payload.is_empty())?;
        Some(if info.valid_data { type_.decode(payload) } else { type_.decode_key(payload) })
    }

    /// Returns the type of the samples.
    #[must_use]
    pub fn type_support(&self) -> &DynamicTypeSupport {
        &self.type_
    }
}

impl Deref for DynamicDataReader {
    type Target = AnyDataReader;

    fn deref(&self) -> &AnyDataReader {
        &self.any
    }
}

impl fmt::Debug for DynamicDataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicDataReader")
            .field("guid", &self.guid())
            .field("topic_name", &self.topic_name())
            .field("type", &self.type_)
            .finish_non_exhaustive()
    }
}
