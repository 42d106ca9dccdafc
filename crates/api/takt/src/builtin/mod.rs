//! Builtin topics (DDS 1.4 §2.2.5): the participants, topics and endpoints of the domain, read like
//! any other topic.
//!
//! | type | topic | instances |
//! |---|---|---|
//! | [`ParticipantBuiltinTopicData`] | `DCPSParticipant` | remote participants |
//! | [`TopicBuiltinTopicData`] | `DCPSTopic` | pairs of topic name and type used by remote endpoints |
//! | [`PublicationBuiltinTopicData`] | `DCPSPublication` | remote writers |
//! | [`SubscriptionBuiltinTopicData`] | `DCPSSubscription` | remote readers |
//!
//! [`DomainParticipant::builtin_subscriber`](crate::DomainParticipant::builtin_subscriber) gives
//! access to the readers. They are ordinary [`DataReader`](crate::DataReader)s, with listeners,
//! conditions, masks and streams. Their QoS is RELIABLE, TRANSIENT_LOCAL and KEEP_LAST 1, so the
//! first `read` returns everything discovered so far.
//!
//! - The handle of an instance is the GUID of the entity ([`InstanceHandle`](crate::InstanceHandle)
//!   is `From<Guid>`). The handle of a topic is derived from its name and type.
//! - An instance becomes `NOT_ALIVE_DISPOSED` when its entity is deleted or its participant
//!   announces that it leaves. It becomes `NOT_ALIVE_NO_WRITERS` when the lease of the participant
//!   expires. In both cases [`Sample::key`](crate::Sample::key) contains the key of the entity.
//! - Entities of the local participant are not shown. Entities of other participants in the same
//!   process are.

mod data;
mod subscriber;

pub use data::{
    BuiltinTopicKey, ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData,
};
pub(crate) use subscriber::BuiltinReaders;
pub use subscriber::{BuiltinSubscriber, BuiltinTopicData};
