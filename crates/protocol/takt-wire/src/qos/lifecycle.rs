//! QoS policies that are never announced: ENTITY_FACTORY, WRITER_DATA_LIFECYCLE,
//! READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.20 to §2.2.3.22).

use crate::time::Duration;

/// ENTITY_FACTORY: whether entities are enabled at creation. The default is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityFactory {
    /// True if entities are enabled at creation.
    pub autoenable_created_entities: bool,
}

impl Default for EntityFactory {
    fn default() -> Self {
        Self { autoenable_created_entities: true }
    }
}

/// WRITER_DATA_LIFECYCLE: whether unregistering an instance also disposes it. The default is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterDataLifecycle {
    /// True if unregistered instances are disposed.
    pub autodispose_unregistered_instances: bool,
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        Self { autodispose_unregistered_instances: true }
    }
}

/// READER_DATA_LIFECYCLE: how long a reader keeps the samples of instances that are not alive. The
/// default is forever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderDataLifecycle {
    /// Delay after the last writer of the instance is gone.
    pub autopurge_nowriter_samples_delay: Duration,
    /// Delay after the instance was disposed.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self {
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}
