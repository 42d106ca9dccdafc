//! Specifications of endpoints under test: a topic by name, the type `Test`, and contracts in
//! USER_DATA.

use takt_core::{ReaderSpec, WriterFlows, WriterSpec};
use takt_wire::qos::{DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicData, UserData};

/// Returns a writer with these policies and this USER_DATA.
pub fn writer_spec(topic: &str, user_data: &str, qos: DataWriterQos) -> WriterSpec {
    WriterSpec {
        topic_name: topic.into(),
        type_name: "Test".into(),
        keyed: false,
        qos: DataWriterQos { user_data: UserData(user_data.as_bytes().to_vec()), ..qos },
        publisher: PublisherQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: None,
        flows: WriterFlows::default(),
        unicast: Vec::new(),
        filters: None,
    }
}

/// Returns a reader with these policies and this USER_DATA.
pub fn reader_spec(topic: &str, user_data: &str, qos: DataReaderQos) -> ReaderSpec {
    ReaderSpec {
        topic_name: topic.into(),
        type_name: "Test".into(),
        key: None,
        qos: DataReaderQos { user_data: UserData(user_data.as_bytes().to_vec()), ..qos },
        subscriber: SubscriberQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: None,
        unicast: Vec::new(),
        content_filter: None,
    }
}
