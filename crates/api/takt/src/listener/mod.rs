//! Listeners: callbacks of the application for status changes (DDS 1.4 §2.2.4.2).
//!
//! A status change is delivered once, to the first of these listeners whose mask contains the
//! status: the listener of the entity, of its publisher or subscriber, of the participant.
//! (`INCONSISTENT_TOPIC`: of the topic, of the participant.) If no mask contains it, the status
//! remains readable and visible to conditions.
//!
//! If the mask of the subscriber's or the participant's listener contains `DATA_ON_READERS`,
//! arriving samples call `on_data_on_readers` there in place of every `on_data_available`.
//!
//! Under `Runtime::Shared`, the receiving thread calls listeners. Under `Runtime::Inline`, the call
//! that drives the participant does. Listeners of a participant are called one at a time and with
//! no lock held. A listener may call any method of any entity, with one exception: under
//! `Runtime::Shared` it cannot wait for conditions, samples or tasks of its own participant.
//! Nothing is received while a listener runs, so it must be short.
//!
//! A listener that panics ends the thread that called it, and its participant is closed. Under
//! `Runtime::Inline` the panic propagates to the caller that drives the participant, and the
//! listener is not called again.
//!
//! A newly set listener is called at once for statuses that have already changed.

mod endpoint;
mod tree;

pub use endpoint::{DataReaderListener, DataWriterListener};
pub(crate) use endpoint::{TypedReader, TypedWriter};
pub use tree::{DomainParticipantListener, PublisherListener, SubscriberListener, TopicListener};
pub(crate) use tree::{notify_publisher, notify_subscriber, notify_topic};

use crate::status::StatusMask;

/// Default mask of listeners of subscribers and participants. `DATA_ON_READERS` is excluded, since
/// it would withhold arrivals from all other listeners.
pub(crate) const ALL_BUT_ON_READERS: StatusMask = StatusMask::ALL.without(StatusMask::DATA_ON_READERS);
