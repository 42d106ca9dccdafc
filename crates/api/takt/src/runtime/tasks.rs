//! Asynchronous tasks that wait for an endpoint.
//!
//! A task is registered under the participant's lock, in the same access in which its poll found
//! nothing, so no event is missed in between. Wakers are foreign code: they are woken and dropped
//! without holding the lock.

use std::task::Waker;

/// Identifies one pending future or stream of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey(u64);

/// Pending tasks. Each future or stream is registered at most once.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    keys: u64,
    waiting: Vec<(TaskKey, Waker)>,
}

impl Tasks {
    /// Registers a task and assigns its key on the first wait. The caller drops the returned former
    /// waker without holding the lock.
    #[must_use]
    pub(crate) fn insert(&mut self, task: &mut Option<TaskKey>, waker: &Waker) -> Option<Waker> {
        let keys = &mut self.keys;
        let key = *task.get_or_insert_with(|| {
            *keys += 1;
            TaskKey(*keys)
        });
        match self.waiting.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) if known.will_wake(waker) => None,
            Some((_, known)) => Some(std::mem::replace(known, waker.clone())),
            None => {
                self.waiting.push((key, waker.clone()));
                None
            }
        }
    }

    /// Unregisters a task. The caller drops the returned waker without holding the lock.
    #[must_use]
    pub(crate) fn remove(&mut self, key: TaskKey) -> Option<Waker> {
        let index = self.waiting.iter().position(|(known, _)| *known == key)?;
        Some(self.waiting.swap_remove(index).1)
    }

    /// Moves all wakers to the list of those to be woken. The first task to poll takes the
    /// available samples; the others wait again.
    pub(crate) fn drain_into(&mut self, woken: &mut Vec<Waker>) {
        if self.waiting.is_empty() {
            return;
        }
        woken.extend(self.waiting.drain(..).map(|(_, waker)| waker));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn task_is_registered_once_with_its_latest_waker() {
        let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (mut tasks, mut key) = (Tasks::default(), None);
        assert!(tasks.insert(&mut key, &Waker::from(Arc::clone(&first))).is_none());
        let former = tasks.insert(&mut key, &Waker::from(Arc::clone(&second)));
        assert!(former.is_some(), "for the caller to drop");
        let mut woken = Vec::new();
        tasks.drain_into(&mut woken);
        woken.into_iter().for_each(Waker::wake);
        assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
    }

    #[test]
    fn removed_task_is_not_woken() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let (mut tasks, mut leaves, mut stays) = (Tasks::default(), None, None);
        assert!(tasks.insert(&mut leaves, &waker).is_none());
        assert!(tasks.insert(&mut stays, &waker).is_none());
        assert_ne!(leaves, stays);
        let key = leaves.expect("it waits");
        assert!(tasks.remove(key).is_some());
        assert!(tasks.remove(key).is_none());
        let mut woken = Vec::new();
        tasks.drain_into(&mut woken);
        assert_eq!(woken.len(), 1);
    }
}
