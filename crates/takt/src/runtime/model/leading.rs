//! A thread that leads beside the receiving thread: each datagram is received while both may sleep, and closing ends both.
//!
//! The steps and their order are those of `Leading::sleep`, `Leading::settle` and `Engine::run`, on the lock, the waker and the leadership
//! that ship. The kernel is a queue of datagrams and, for each of the two, an epoll instance that is watched exclusively: what
//! arrives goes on the list of the oldest instance, and if no thread waits for that one, of the next one too.

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
    /// The socket is on its list, to be looked at.
    is_listed: bool,
    /// A thread sleeps that watches the socket.
    is_slept_on: bool,
    event: bool,
    /// How often a sleep was ended.
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
    /// The older one, which is the leader's, first.
    instances: [Instance; 2],
    /// Who makes an event makes that of the next instance.
    events: usize,
}

lazy_static! {
    static ref KERNEL: (Mutex<Kernel>, Condvar) = (Mutex::new(Kernel::default()), Condvar::new());
}

fn kernel() -> shuttle::sync::MutexGuard<'static, Kernel> {
    KERNEL.0.lock().expect("no thread panics inside")
}

/// Some datagrams arrive in one piece.
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

/// An operating system with one socket.
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

/// The event of an instance, and the instance.
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
    has_left_behind: bool,
}

/// What a thread that leads does before it returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Settling,
    OwingALook,
}

struct Participant {
    state: PiMutex<State, Net>,
    leadership: Leadership<Net>,
    leader: Waker<Net>,
    receiver: Waker<Net>,
    /// The condition of the thread that waits.
    is_true: AtomicBool,
}

impl Participant {
    fn new() -> Self {
        Self {
            state: PiMutex::on(State::default()),
            leadership: Leadership::on(),
            // In the order of the instances.
            leader: Waker::on().expect("a model"),
            receiver: Waker::on().expect("a model"),
            is_true: AtomicBool::new(false),
        }
    }

    /// Takes one datagram, as a pass does that ends with news. Says whether there was one.
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

    /// The receiving thread: `Engine::run`.
    fn run(&self) {
        let mut looks = true;
        loop {
            let mut state = self.state.lock().expect("not inside");
            if state.is_closed {
                return;
            }
            looks |= std::mem::take(&mut state.has_left_behind);
            let happened = looks && self.receive(&mut state);
            drop(state);
            self.receiver.reset();
            if happened {
                continue;
            }
            // `State::prepare_sleep`
            let state = self.state.lock().expect("not inside");
            let sleeps = !state.is_closed && !state.has_left_behind;
            drop(state);
            looks = false;
            if sleeps {
                let mut set = PollSet::default();
                set.add(SOCKET);
                self.receiver.sleep(&mut set, Instant(0), None).expect("a model");
                looks = set.ready_after_sleep().is_any_of(1);
            }
        }
    }

    /// A wait in a wait set: `WaitSet::wait_until_any`. Says whether the condition is true, and not the participant closed.
    fn wait(&self, ends: Ends) -> bool {
        let mut owes_look = false;
        let result = loop {
            self.leader.reset();
            if self.is_true.swap(false, Ordering::SeqCst) {
                break true;
            }
            if self.state.lock().expect("not inside").is_closed {
                break false;
            }
            self.settle(&mut owes_look, ends);
            let mut set = PollSet::default();
            let leads = self.leadership.take();
            if leads {
                set.add(SOCKET);
            }
            self.leader.sleep(&mut set, Instant(0), None).expect("a model");
            if leads && set.ready_after_sleep().is_any_of(1) {
                owes_look = true;
                let mut state = self.state.lock().expect("not inside");
                if !state.is_closed {
                    self.receive(&mut state);
                }
            }
            if leads {
                self.leadership.give_back();
            }
        };
        self.settle(&mut owes_look, ends);
        result
    }

    /// `Leading::settle`, `Engine::leave_behind`.
    fn settle(&self, owes_look: &mut bool, ends: Ends) {
        if std::mem::take(owes_look) && ends == Ends::Settling && kernel().queued > 0 {
            self.state.lock().expect("not inside").has_left_behind = true;
            self.receiver.wake();
        }
    }

    /// `Engine::close`.
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

/// One wait, in which or after which pieces of some datagrams arrive; then the thread waits elsewhere until all have been received.
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
    /// Waits for its own event alone, as a thread does that does not lead.
    fn sleep_elsewhere(&self) {
        self.leader.reset();
        if self.is_true.swap(false, Ordering::SeqCst) {
            return;
        }
        self.leader.sleep(&mut PollSet::default(), Instant(0), None).expect("a model");
    }
}

#[test]
fn each_datagram_is_received_whoever_sleeps() {
    in_any_order(|| exchange(3, 1, Ends::Settling));
    in_any_order(|| exchange(2, 2, Ends::Settling));
}

#[test]
fn small_exchanges_are_complete_in_every_order() {
    shuttle::check_dfs(|| exchange(1, 2, Ends::Settling), Some(super::ALL));
}

#[test]
fn closing_ends_the_leader_and_the_receiving_thread() {
    in_any_order(|| {
        let participant = Arc::new(Participant::new());
        let receiver = spawn(&participant, Participant::run);
        let waiter = spawn(&participant, |participant| participant.wait(Ends::Settling));
        let network = thread::spawn(|| arrive(2));
        participant.close();
        network.join().expect("no panic");
        receiver.join().expect("no panic");
        waiter.join().expect("no panic");
        assert!(participant.leadership.take(), "the place is free again");
    });
}

/// The model is worth what it finds: a leader that returns without the look that it owes leaves a datagram to nobody.
#[test]
fn the_model_finds_a_leader_that_owes_a_look() {
    let found = std::panic::catch_unwind(|| shuttle::check_random(|| exchange(1, 2, Ends::OwingALook), 10 * RANDOM));
    assert!(found.is_err(), "a datagram is left to nobody in one of the orders");
}
