//! Policies that never leave the process: ENTITY_FACTORY, WRITER_DATA_LIFECYCLE,
//! READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.20 to §2.2.3.22).

use crate::time::Duration;

/// ENTITY_FACTORY: are entities enabled as soon as they are created? By default they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityFactory {
    /// Enable at creation.
    pub autoenable_created_entities: bool,
}

impl Default for EntityFactory {
    fn default() -> Self {
        Self { autoenable_created_entities: true }
    }
}

/// WRITER_DATA_LIFECYCLE: does unregistering an instance also dispose it? By default it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterDataLifecycle {
    /// Dispose what is unregistered.
    pub autodispose_unregistered_instances: bool,
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        Self { autodispose_unregistered_instances: true }
    }
}

/// READER_DATA_LIFECYCLE: how long a reader keeps what it knows of instances that are not alive.
/// By default for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderDataLifecycle {
    /// After the last writer is gone.
    pub autopurge_nowriter_samples_delay: Duration,
    /// After the instance was disposed.
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
