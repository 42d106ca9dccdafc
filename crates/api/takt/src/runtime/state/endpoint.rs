//! Runtime state of writers and readers: listener, tasks and pending statuses.

use std::sync::Arc;
use std::task::Waker;

use takt_core::{ReaderHandle, WriterHandle};
use takt_schedule::PriorityQueue;
use takt_wire::Guid;

use crate::Job;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::{EndpointRef, Level, Parents, Slot, TreePosition, select_listener};
use crate::runtime::tasks::Tasks;
use crate::status::{Signal, StatusMask};
use crate::timing::SchedulingProperties;

/// Endpoint whose listener is to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Writer(WriterHandle),
    Reader(ReaderHandle),
}

impl Target {
    /// Returns a number for traces, never 0.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Writer(writer) => 2 * writer.index() as u32 + 1,
            Self::Reader(reader) => 2 * reader.index() as u32 + 2,
        }
    }
}

/// Identity of a writer or reader.
pub(crate) struct Identity {
    pub(crate) target: Target,
    pub(crate) guid: Guid,
    pub(crate) topic: String,
}

/// Job of another executor that calls a listener. It must not be dropped while holding the lock.
pub(crate) struct ListenerJob {
    waker: Waker,
    /// Calls the listener when it is woken.
    _job: Job,
}

impl From<Job> for ListenerJob {
    fn from(job: Job) -> Self {
        Self { waker: job.waker(), _job: job }
    }
}

/// Runtime state of a writer or reader.
pub(crate) struct Endpoint {
    pub(super) target: Target,
    /// Priority and budget of the listener.
    pub(super) timing: SchedulingProperties,
    /// The listener exceeded its budget and is suspended.
    pub(super) suspended: bool,
    pub(super) guid: Guid,
    pub(super) topic: String,
    /// Job that calls the endpoint's own listener, if that is on another executor than the
    /// participant's.
    pub(super) listener_job: Option<ListenerJob>,
    pub(super) signal: Arc<Signal>,
    /// Notified when a blocked write may continue.
    pub(super) progress: Arc<EventCount>,
    /// Tasks that wait for samples or for space to write.
    pub(super) tasks: Tasks,
    pub(super) tree_position: TreePosition,
    /// The entity, once it is complete.
    pub(super) endpoint: Option<EndpointRef>,
    pub(super) slot: Slot,
    /// Pending statuses of each level.
    pub(super) pending: [StatusMask; Level::ALL.len()],
    pub(super) queued: bool,
}

impl Endpoint {
    /// Creates an endpoint whose entity is not complete, so that no listener can be called for it.
    pub(crate) fn new(
        Identity { target, guid, topic }: Identity,
        signal: Arc<Signal>,
        progress: Arc<EventCount>,
        place: TreePosition,
        timing: SchedulingProperties,
    ) -> Self {
        Self {
            target,
            timing,
            suspended: false,
            guid,
            topic,
            listener_job: None,
            signal,
            progress,
            tasks: Tasks::default(),
            tree_position: place,
            endpoint: None,
            slot: Slot::default(),
            pending: [StatusMask::NONE; Level::ALL.len()],
            queued: false,
        }
    }

    /// Marks a status as pending at the level whose listener handles it, and queues the call.
    pub(super) fn notify(
        &mut self,
        status: StatusMask,
        parents: &Parents,
        participant: &Slot,
        pending_wakeups: &mut PendingWakeups,
    ) {
        if let Some((level, status)) = select_listener(&self.slot, self.tree_position, parents, participant, status) {
            self.pending[level as usize] |= status;
            self.queue(level, pending_wakeups);
        }
    }

    /// Queues a call for the pending statuses of a level.
    pub(super) fn queue(&mut self, level: Level, pending_wakeups: &mut PendingWakeups) {
        match &self.listener_job {
            _ if self.suspended => {}
            Some(executor) if level == Level::Endpoint => pending_wakeups.woken.push(executor.waker.clone()),
            _ if self.queued => {}
            _ => {
                self.queued = true;
                pending_wakeups.calls.push(self.timing.priority, self.target);
            }
        }
    }

    /// Reports whether the participant's executor calls the listener of this level.
    pub(super) fn is_called_here(&self, level: Level) -> bool {
        level != Level::Endpoint || self.listener_job.is_none()
    }
}

/// Calls and wakeups that are due when the lock is released.
#[derive(Default)]
pub(super) struct PendingWakeups {
    /// Endpoints whose listeners must be called.
    pub(super) calls: PriorityQueue<Target>,
    /// Wakers of tasks and executors to be woken.
    pub(super) woken: Vec<Waker>,
}

/// Endpoints by the index of their handle.
#[derive(Default)]
pub(super) struct Endpoints(pub(super) Vec<Option<Endpoint>>);

impl Endpoints {
    pub(super) fn insert(&mut self, index: usize, endpoint: Endpoint) {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(endpoint);
    }

    pub(super) fn get_mut(&mut self, index: usize, target: Target) -> Option<&mut Endpoint> {
        self.0.get_mut(index)?.as_mut().filter(|endpoint| endpoint.target == target)
    }
}
