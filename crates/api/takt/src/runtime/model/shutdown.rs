//! Model of closing a participant in any state: no thread remains blocked, and the receiving thread
//! ends.
//!
//! The state is reduced to what shutdown uses. The steps and their order are those of
//! `Engine::run`, `Engine::block_on` and `Engine::close`, on the production lock, event count,
//! waker and tasks.

use std::task::{Wake, Waker as TaskWaker};

use shuttle::sync::Arc;
use shuttle::thread;
use takt_core::Instant;

use super::{Model, ModelEvent, in_any_order};
use crate::runtime::event_count::EventCount;
use crate::runtime::os::Event;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::{PollSet, Waker};
use crate::runtime::tasks::Tasks;

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Space that a write takes and an acknowledgment returns.
    room: u32,
    tasks: Tasks,
}

struct Participant {
    state: PiMutex<State, Model>,
    waker: Waker<Model>,
    progress: EventCount<Model>,
}

struct AlreadyDeleted;

impl Participant {
    fn new() -> Self {
        let waker = Waker::with_os().expect("a model");
        Self { state: PiMutex::with_os(State::default()), waker, progress: EventCount::with_os() }
    }

    /// Receiving thread: `Engine::run`.
    fn run(&self) {
        loop {
            if self.state.lock().expect("not inside").is_closed {
                return;
            }
            self.waker.reset();
            // The sleep sees the causes of all earlier wakeups: `State::prepare_sleep`.
            if self.state.lock().expect("not inside").is_closed {
                return;
            }
            self.waker.sleep(&mut PollSet::default(), Instant(0), None).expect("a model");
        }
    }

    /// Write that waits for space: `Engine::block_on`.
    fn write(&self) -> Result<(), AlreadyDeleted> {
        let mut ticket = self.progress.ticket();
        loop {
            let mut state = self.state.lock().expect("not inside");
            if state.is_closed {
                return Err(AlreadyDeleted);
            }
            if state.room > 0 {
                state.room -= 1;
                return Ok(());
            }
            drop(state);
            self.waker.wake();
            self.progress.wait(ticket, Instant(0), None);
            ticket = self.progress.ticket();
        }
    }

    /// Asynchronous write that waits for space.
    fn write_async(&self) -> Result<(), AlreadyDeleted> {
        let executor = std::sync::Arc::new(Executor(ModelEvent::new().expect("a model")));
        let waker = TaskWaker::from(std::sync::Arc::clone(&executor));
        let mut key = None;
        loop {
            let mut state = self.state.lock().expect("not inside");
            if state.is_closed {
                return Err(AlreadyDeleted);
            }
            if state.room > 0 {
                state.room -= 1;
                return Ok(());
            }
            let former = state.tasks.insert(&mut key, &waker);
            drop(state);
            drop(former);
            executor.0.wait(&mut PollSet::default(), None).expect("a model");
            executor.0.reset().expect("a model");
        }
    }

    /// Handles an acknowledgment.
    fn acknowledge(&self) {
        let mut woken = Vec::new();
        let mut state = self.state.lock().expect("not inside");
        if state.is_closed {
            return;
        }
        state.room += 1;
        self.progress.notify();
        state.tasks.drain_into(&mut woken);
        drop(state);
        woken.into_iter().for_each(TaskWaker::wake);
    }

    /// As `Engine::close`.
    fn close(&self) -> Result<(), AlreadyDeleted> {
        let mut woken = Vec::new();
        let mut state = self.state.lock().expect("not inside");
        if std::mem::replace(&mut state.is_closed, true) {
            return Err(AlreadyDeleted);
        }
        self.progress.notify();
        state.tasks.drain_into(&mut woken);
        drop(state);
        self.waker.wake();
        woken.into_iter().for_each(TaskWaker::wake);
        Ok(())
    }
}

struct Executor(ModelEvent);

impl Wake for Executor {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.set().expect("a model");
    }
}

fn spawn<R: Send + 'static>(
    participant: &Arc<Participant>,
    run: impl FnOnce(&Participant) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let participant = Arc::clone(participant);
    thread::spawn(move || run(&participant))
}

#[test]
fn close_ends_the_receiving_thread_and_all_waiters() {
    in_any_order(|| {
        let participant = Arc::new(Participant::new());
        let receiver = spawn(&participant, Participant::run);
        let writer = spawn(&participant, Participant::write);
        let task = spawn(&participant, Participant::write_async);
        assert!(participant.close().is_ok());
        receiver.join().expect("no panic");
        assert!(writer.join().expect("no panic").is_err());
        assert!(task.join().expect("no panic").is_err());
    });
}

#[test]
fn one_of_two_concurrent_closes_succeeds_and_all_threads_end() {
    in_any_order(|| {
        let participant = Arc::new(Participant::new());
        let receiver = spawn(&participant, Participant::run);
        let other = spawn(&participant, Participant::close);
        let writer = spawn(&participant, Participant::write);
        let acknowledged = spawn(&participant, Participant::acknowledge);
        let here = participant.close().is_ok();
        let there = other.join().expect("no panic").is_ok();
        assert!(here != there, "one closes, the other is notified");
        receiver.join().expect("no panic");
        acknowledged.join().expect("no panic");
        // The writer either found space or was notified of the end; it ended in both cases.
        writer.join().expect("no panic").ok();
        assert!(participant.state.lock().expect("free").is_closed);
    });
}
