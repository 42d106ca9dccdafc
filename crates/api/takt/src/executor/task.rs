//! Futures that run as jobs of an executor.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Wake, Waker};

use super::Shared;
use super::job_queue::{JobId, Work};
use crate::runtime::clock;

/// Waker that triggers a job.
struct Trigger {
    shared: Weak<Shared>,
    id: JobId,
}

impl Wake for Trigger {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.shared.upgrade()
            && shared.job_queue.trigger(self.id, clock::now())
        {
            shared.waker.wake();
        }
    }
}

/// Returns a waker that triggers the job.
pub(super) fn waker(shared: Weak<Shared>, id: JobId) -> Waker {
    Waker::from(Arc::new(Trigger { shared, id }))
}

/// Future to be run as the work of a job.
pub(super) struct TaskWork<F> {
    future: F,
    waker: WakerSlot,
}

/// Slot for the waker of the work, filled once the job exists.
#[derive(Clone)]
pub(super) struct WakerSlot(Arc<OnceLock<Waker>>);

impl WakerSlot {
    pub(super) fn set(&self, waker: Waker) {
        let first = self.0.set(waker);
        debug_assert!(first.is_ok(), "a job has one waker");
    }
}

impl<F: Future<Output = ()> + Send + 'static> TaskWork<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future, waker: WakerSlot(Arc::new(OnceLock::new())) }
    }

    pub(super) fn waker_slot(&self) -> WakerSlot {
        self.waker.clone()
    }

    /// Returns work that polls the future once per run. When the future is ready it is dropped, and
    /// further runs do nothing.
    pub(super) fn into_work(self) -> Work {
        let Self { future, waker } = self;
        let mut future: Option<Pin<Box<F>>> = Some(Box::pin(future));
        Box::new(move || {
            let (Some(running), Some(waker)) = (&mut future, waker.0.get()) else { return };
            if running.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
                future = None;
            }
        })
    }
}
