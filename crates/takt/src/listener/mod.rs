//! Listeners: the application's code that status changes call (DDS 1.4 §2.2.4.2).
//!
//! A status is told once, to the listener nearest to where it happened that has an ear for it, which its mask says: the
//! entity's own, its publisher's or subscriber's, the participant's (`INCONSISTENT_TOPIC`: the topic's, the
//! participant's). Where nobody has, it stays to be asked for and for conditions.
//!
//! Samples may be told as news of the subscriber: if the listener of the subscriber or the participant has an ear for
//! `DATA_ON_READERS`, that is called instead of any `on_data_available`.
//!
//! Under `Runtime::Shared` listeners run on the receiving thread, under `Runtime::Inline` in whatever call drives the
//! participant. Either way one at a time, and without any lock held: a listener may call anything on any entity, save
//! that under `Runtime::Shared` it cannot wait for its own participant's conditions, samples or tasks. While
//! it runs nothing is received, so it should be brief. One that panics ends the thread that called it, and its participant is closed;
//! under `Runtime::Inline` the panic goes to who drives, and that listener is not called any more.
//!
//! A listener that is set after something has changed is told of it at once.

mod endpoint;
mod tree;

pub use endpoint::{DataReaderListener, DataWriterListener};
pub(crate) use endpoint::{TypedReader, TypedWriter};
pub use tree::{DomainParticipantListener, PublisherListener, SubscriberListener, TopicListener};
pub(crate) use tree::{tell_publisher, tell_subscriber, tell_topic};

use crate::status::StatusMask;

/// What listeners of subscribers and participants have an ear for unless told otherwise: with `DATA_ON_READERS` they
/// would keep samples from all others.
pub(crate) const ALL_BUT_ON_READERS: StatusMask = StatusMask::ALL.without(StatusMask::DATA_ON_READERS);
