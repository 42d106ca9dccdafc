//! Model of a leader and the receiving thread: each datagram is received although both may sleep,
//! and closing ends both.
//!
//! The steps and their order are those of `LeaderState::sleep`, `LeaderState::hand_over` and
//! `Engine::run`, on the production lock, waker and leadership. The kernel is a queue of datagrams
//! and one exclusively watched epoll instance for each thread. An arrival is listed at the oldest
//! instance, and if no thread waits for that one, at the next one too.

use shuttle::lazy_static;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
use takt_core::Instant;

use super::{Model, ModelFlag, ModelWord, RANDOM, in_any_order};
use crate::runtime::leading::Leadership;
use crate::runtime::os::{Event, Os};
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::{PollSet, Waker};

/// Stands for the descriptors of a participant in a list.
const SOCKET: RawFd = 7;

#[derive(Default)]
struct Instance {
    /// The socket is in the ready list of the instance.
    is_listed: bool,
    /// A thread sleeps on the instance, which watches the socket.
    is_slept_on: bool,
    event: bool,
    /// Number of sleeps ended.
    wakes: u64,
}

impl Instance {
    fn wake(&mut self) {
        self.is_slept_on = false;
        self.wakes += 1;
    }
}

#[derive(Default)]
struct Kernel {
    queued: u32,
    /// Instances, the older one first; it belongs to the leader.
    instances: [Instance; 2],
    /// Index of the instance that receives the next event created.
    events: usize,
}

lazy_static! {
    static ref KERNEL: (Mutex<Kernel>, Condvar) = (Mutex::new(Kernel::default()), Condvar::new());
}

fn kernel() -> shuttle::sync::MutexGuard<'static, Kernel> {
    KERNEL.0.lock().expect("no thread panics inside")
}

/// Delivers several datagrams at once.
fn arrive(datagrams: u32) {
    let mut kernel = kernel();
    kernel.queued += datagrams;
    for instance in &mut kernel.instances {
        instance.is_listed = true;
        if instance.is_slept_on {
            instance.wake();
            break;
        }
    }
    KERNEL.1.notify_all();
}

/// Operating system with one socket.
#[derive(Debug)]
struct Net;

impl Os for Net {
    type Word = ModelWord;
    type Flag = ModelFlag;
    type Event = NetEvent;

    fn thread_id() -> u32 {
        Model::thread_id()
    }
}

/// Event of the instance with this index.
struct NetEvent(usize);

impl Event for NetEvent {
    fn new() -> io::Result<Self> {
        let mut kernel = kernel();
        kernel.events += 1;
        Ok(Self(kernel.events - 1))
    }

    fn set(&self) -> io::Result<()> {
        let mut kernel = kernel();
        kernel.instances[self.0].event = true;
        kernel.instances[self.0].wake();
        KERNEL.1.notify_all();
        Ok(())
    }

    fn reset(&self) -> io::Result<()> {
        kernel().instances[self.0].event = false;
        Ok(())
    }

    fn wait(&self, set: &mut PollSet, timeout: Option<Duration>) -> io::Result<(bool, u64)> {
        assert_eq!(timeout, None, "nothing here is to depend on time");
        let watches_socket = set.len() > 0;
        let mut kernel = kernel();
        loop {
            let queued = kernel.queued;
            let instance = &mut kernel.instances[self.0];
            instance.is_listed &= queued > 0;
            let is_readable = watches_socket && instance.is_listed;
            if is_readable || instance.event {
                return Ok((instance.event, u64::from(is_readable)));
            }
            instance.is_slept_on = watches_socket;
            let before = instance.wakes;
            while kernel.instances[self.0].wakes == before {
                kernel = KERNEL.1.wait(kernel).expect("no thread panics inside");
            }
        }
    }
}

#[derive(Default)]
struct State {
    received: u32,
    is_closed: bool,
    poll_requested: bool,
}

/// Behavior of a leader before it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    HandingOver,
    OwingPoll,
}

struct Participant {
    state: PiMutex<State, Net>,
    leadership: Leadership<Net>,
    leader: Waker<Net>,
    receiver: Waker<Net>,
    /// Condition of the waiting thread.
    is_true: AtomicBool,
}

impl Participant {
    fn new() -> Self {
        Self {
            state: PiMutex::with_os(State::default()),
            leadership: Leadership::with_os(),
            // Created in the order of the instances.
            leader: Waker::with_os().expect("a model"),
            receiver: Waker::with_os().expect("a model"),
            is_true: AtomicBool::new(false),
        }
    }

    /// Takes one datagram, like a pass that makes progress. Returns true if there was one.
    fn receive(&self, state: &mut State) -> bool {
        let mut kernel = kernel();
        if kernel.queued == 0 {
            return false;
        }
        kernel.queued -= 1;
        drop(kernel);
        state.received += 1;
        self.is_true.store(true, Ordering::SeqCst);
        self.leader.wake();
        true
    }

    /// Receiving thread: `Engine::run`.
    fn run(&self) {
        let mut polls = true;
        loop {
            let mut state = self.state.lock().expect("not inside");
            if state.is_closed {
                return;
            }
            polls |= std::mem::take(&mut state.poll_requested);
            let happened = polls && self.receive(&mut state);
            drop(state);
            self.receiver.reset();
            if happened {
                continue;
            }
            // As `State::prepare_sleep`.
            let state = self.state.lock().expect("not inside");
            let sleeps = !state.is_closed && !state.poll_requested;
            drop(state);
            polls = false;
            if sleeps {
                let mut set = PollSet::default();
                set.add(SOCKET);
                self.receiver.sleep(&mut set, Instant(0), None).expect("a model");
                polls = set.ready_after_sleep().is_any_of(1);
            }
        }
    }

    /// Wait in a wait set: `WaitSet::wait_until_any`. Returns true if the condition became true,
    /// false if the participant was closed.
    fn wait(&self, ends: Ends) -> bool {
        let mut owes_poll = false;
        let result = loop {
            self.leader.reset();
            if self.is_true.swap(false, Ordering::SeqCst) {
                break true;
            }
            if self.state.lock().expect("not inside").is_closed {
                break false;
            }
            self.hand_over(&mut owes_poll, ends);
            let mut set = PollSet::default();
            let leads = self.leadership.take();
            if leads {
                set.add(SOCKET);
            }
            self.leader.sleep(&mut set, Instant(0), None).expect("a model");
            if leads && set.ready_after_sleep().is_any_of(1) {
                owes_poll = true;
                let mut state = self.state.lock().expect("not inside");
                if !state.is_closed {
                    self.receive(&mut state);
                }
            }
            if leads {
                self.leadership.release();
            }
        };
        self.hand_over(&mut owes_poll, ends);
        result
    }

    /// As `LeaderState::hand_over` and `Engine::request_poll`.
    fn hand_over(&self, owes_poll: &mut bool, ends: Ends) {
        if std::mem::take(owes_poll) && ends == Ends::HandingOver && kernel().queued > 0 {
            self.state.lock().expect("not inside").poll_requested = true;
            self.receiver.wake();
        }
    }

    /// As `Engine::close`.
    fn close(&self) {
        self.state.lock().expect("not inside").is_closed = true;
        self.leader.wake();
        self.receiver.wake();
    }
}

fn spawn<R: Send + 'static>(
    participant: &Arc<Participant>,
    run: impl FnOnce(&Participant) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let participant = Arc::clone(participant);
    thread::spawn(move || run(&participant))
}

/// Runs one wait, during or after which `pieces` groups of datagrams arrive. Then the thread waits
/// elsewhere until all datagrams have been received.
fn exchange(pieces: u32, each: u32, ends: Ends) {
    let datagrams = pieces * each;
    let participant = Arc::new(Participant::new());
    let receiver = spawn(&participant, Participant::run);
    let network = thread::spawn(move || (0..pieces).for_each(|_| arrive(each)));
    assert!(participant.wait(ends), "the condition is true");
    while participant.state.lock().expect("not inside").received < datagrams {
        participant.sleep_elsewhere();
    }
    network.join().expect("no panic");
    participant.close();
    receiver.join().expect("no panic");
}

impl Participant {
    /// Waits for its own event only, like a thread that does not lead.
    fn sleep_elsewhere(&self) {
        self.leader.reset();
        if self.is_true.swap(false, Ordering::SeqCst) {
            return;
        }
        self.leader.sleep(&mut PollSet::default(), Instant(0), None).expect("a model");
    }
}

#[test]
fn every_datagram_is_received_while_leader_or_receiver_sleeps() {
    in_any_order(|| exchange(3, 1, Ends::HandingOver));
    in_any_order(|| exchange(2, 2, Ends::HandingOver));
}

#[test]
fn small_exchanges_complete_in_every_interleaving() {
    shuttle::check_dfs(|| exchange(1, 2, Ends::HandingOver), Some(super::ALL));
}

#[test]
fn close_ends_leader_and_receiving_thread() {
    in_any_order(|| {
        let participant = Arc::new(Participant::new());
        let receiver = spawn(&participant, Participant::run);
        let waiter = spawn(&participant, |participant| participant.wait(Ends::HandingOver));
        let network = thread::spawn(|| arrive(2));
        participant.close();
        network.join().expect("no panic");
        receiver.join().expect("no panic");
        waiter.join().expect("no panic");
        assert!(participant.leadership.take(), "the place is free again");
    });
}

/// Verifies the model: it must detect that a leader which returns without the poll that it owes
/// leaves a datagram unreceived.
#[test]
fn model_detects_a_leader_that_skips_the_owed_poll() {
    let found = std::panic::catch_unwind(|| shuttle::check_random(|| exchange(1, 2, Ends::OwingPoll), 10 * RANDOM));
    assert!(found.is_err(), "in one of the orders no thread takes the datagram");
}
