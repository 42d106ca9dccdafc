//! The builtin topics (DDS 1.4 §2.2.5): who and what is in the domain, to be read like any other topic.
//!
//! | type | topic | instances |
//! |---|---|---|
//! | [`ParticipantBuiltinTopicData`] | `DCPSParticipant` | other participants |
//! | [`TopicBuiltinTopicData`] | `DCPSTopic` | names with their types that endpoints of others use |
//! | [`PublicationBuiltinTopicData`] | `DCPSPublication` | writers of others |
//! | [`SubscriptionBuiltinTopicData`] | `DCPSSubscription` | readers of others |
//!
//! Readers come from [`DomainParticipant::builtin_subscriber`](crate::DomainParticipant::builtin_subscriber). They are
//! ordinary [`DataReader`](crate::DataReader)s, with listeners, conditions, masks and streams; RELIABLE, TRANSIENT_LOCAL,
//! KEEP_LAST 1, so that the first `read` shows what is known already.
//!
//! - The handle of an instance is the entity's GUID ([`InstanceHandle`](crate::InstanceHandle) is `From<Guid>`); a topic's is made of its name
//!   and type.
//! - An entity that was deleted, or whose participant said farewell, is `NOT_ALIVE_DISPOSED`; one whose participant was
//!   not heard of for as long as its lease is `NOT_ALIVE_NO_WRITERS`. Then [`Sample::key`](crate::Sample::key) has its
//!   key.
//! - Entities of the own participant are not shown, since the application knows them; those of other participants in the
//!   same process are.
//!
//! Deliberately absent: `ignore_participant` and its kin.

mod data;
mod subscriber;

pub use data::{
    BuiltinTopicKey, ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData,
};
pub(crate) use subscriber::BuiltinReaders;
pub use subscriber::{BuiltinSubscriber, BuiltinTopicData};
