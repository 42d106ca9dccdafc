//! Opaque data and names in discovery: USER_DATA, TOPIC_DATA, GROUP_DATA, PARTITION
//! (DDS 1.4 §2.2.3.1 to §2.2.3.3, §2.2.3.13), entity name, properties, and data tags.

use alloc::string::String;
use alloc::vec::Vec;

use super::WirePolicy;
use crate::cursor::Cursor;
use crate::discovery::limits;
use crate::error::Malformed;
use crate::parameter::{
    PID_DATA_TAGS, PID_ENTITY_NAME, PID_GROUP_DATA, PID_PARTITION, PID_PROPERTY_LIST, PID_TOPIC_DATA, PID_USER_DATA,
    ParameterListBuilder, ParameterWriter,
};

macro_rules! octets {
    ($($(#[$meta:meta])* $name:ident, $pid:ident;)*) => {$(
        $(#[$meta])*
        ///
        /// Its wire format holds at most [`limits::OPAQUE_LEN_MAX`] octets.
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $name(pub Vec<u8>);

        impl WirePolicy for $name {
            const PID: u16 = $pid;

            fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
                let len = value.count(1)?;
                value.bytes(len).map(|octets| Self(octets.to_vec()))
            }

            fn emit(&self, value: &mut ParameterWriter<'_>) {
                value.octets(&self.0);
            }
        }
    )*};
}

octets! {
    /// USER_DATA: data that an application attaches to a participant, writer or reader.
    UserData, PID_USER_DATA;
    /// TOPIC_DATA: data that an application attaches to a topic.
    TopicData, PID_TOPIC_DATA;
    /// GROUP_DATA: data that an application attaches to a publisher or subscriber.
    GroupData, PID_GROUP_DATA;
}

/// PARTITION: the partitions of a publisher or subscriber. An empty list means the partition with
/// the empty name. A name with `*`, `?` or `[` is a pattern.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Partition {
    /// Names and patterns.
    pub names: Vec<String>,
}

impl WirePolicy for Partition {
    const PID: u16 = PID_PARTITION;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = value.malformed("too many partitions");
        // The shortest name has a length of one and its NUL.
        let count = value.count(5)?;
        if count > limits::PARTITIONS_MAX {
            return Err(at);
        }
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(limits::parse_name(value)?);
        }
        Ok(Self { names })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.count(self.names.len());
        for name in &self.names {
            value.string(name);
        }
    }
}

/// Entity name for display; empty means none. Of a peer's name, only the first
/// [`limits::NAME_LEN_MAX`] octets are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntityName(pub String);

impl WirePolicy for EntityName {
    const PID: u16 = PID_ENTITY_NAME;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let name = value.string()?;
        Ok(Self(String::from(&name[..name.floor_char_boundary(limits::NAME_LEN_MAX)])))
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.string(&self.0);
    }
}

/// Properties of an entity.
///
/// Of a peer's properties, only the first [`limits::PROPERTIES_MAX`] are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Property {
    /// The properties. Of several with one name, the first counts.
    pub entries: Vec<PropertyEntry>,
}

/// Property of an entity: a name and a value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PropertyEntry {
    /// Name of the property.
    pub name: String,
    /// Value of the property.
    pub value: String,
    /// Whether discovery announces the property to other participants.
    pub propagate: bool,
}

impl PropertyEntry {
    /// Property that stays in the process.
    pub fn local(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), propagate: false }
    }

    /// Property that discovery announces to other participants.
    pub fn propagated(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), propagate: true }
    }
}

impl Property {
    /// Returns the value of the first property with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value.as_str())
    }

    /// Returns the properties that are announced to other participants.
    pub fn propagated(&self) -> impl Iterator<Item = &PropertyEntry> {
        self.entries.iter().filter(|entry| entry.propagate)
    }
}

impl FromIterator<PropertyEntry> for Property {
    fn from_iter<I: IntoIterator<Item = PropertyEntry>>(entries: I) -> Self {
        Self { entries: entries.into_iter().collect() }
    }
}

impl WirePolicy for Property {
    const PID: u16 = PID_PROPERTY_LIST;

    /// Parses the pairs. The binary properties of DDS Security, which may follow, are ignored.
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        // The shortest property has two empty strings, the first of them padded.
        let count = value.count(13)?.min(limits::PROPERTIES_MAX);
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let name = value.string()?;
            entries.push(PropertyEntry::propagated(name, value.string()?));
        }
        Ok(Self { entries })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.count(self.propagated().count());
        for entry in self.propagated() {
            value.string(&entry.name);
            value.string(&entry.value);
        }
    }

    /// Adds the parameter if a pair is announced. An absent parameter means that there is none.
    fn put_unless(&self, _absent: &Self, list: &mut ParameterListBuilder) {
        if self.propagated().next().is_some() {
            self.put(list);
        }
    }
}

/// DATA_TAG: tags that classify the samples of an endpoint, for access control. Of a peer's tags,
/// only the first [`limits::PROPERTIES_MAX`] are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DataTag {
    /// The tags.
    pub tags: Vec<Tag>,
}

/// Tag of an endpoint's samples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tag {
    /// Name of the tag.
    pub name: String,
    /// Value of the tag.
    pub value: String,
}

impl Tag {
    /// Tag with this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl WirePolicy for DataTag {
    const PID: u16 = PID_DATA_TAGS;

    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        // The shortest tag has two empty strings, the first of them padded.
        let count = value.count(13)?.min(limits::PROPERTIES_MAX);
        let mut tags = Vec::with_capacity(count);
        for _ in 0..count {
            let name = value.string()?;
            tags.push(Tag::new(name, value.string()?));
        }
        Ok(Self { tags })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.count(self.tags.len());
        for tag in &self.tags {
            value.string(&tag.name);
            value.string(&tag.value);
        }
    }
}
