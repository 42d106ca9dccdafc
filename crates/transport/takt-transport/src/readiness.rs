//! Waiting for descriptors, and waking such a wait from another thread.
//!
//! A transport never waits. An idle thread waits here for the transports'
//! [`descriptors`](crate::Status::descriptors) and, if other threads must be able to end the
//! wait, for the descriptor of a [`Waker`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::udp::syscall;

/// Maximum number of descriptors of one [`wait`]. More need a [`WaitSet`].
pub const DESCRIPTORS_MAX: usize = syscall::BATCH;

/// Waits until one of `descriptors` is readable, the timeout expires, or a signal arrives. Reports
/// whether one is readable. At most [`DESCRIPTORS_MAX`] descriptors. Does not allocate.
pub fn wait(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<bool> {
    wait_each(descriptors, timeout).map(|ready| ready != 0)
}

/// Waits like [`wait`] and returns the readable descriptors as a bit set; the first descriptor has
/// the lowest bit.
pub fn wait_each(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<u64> {
    if descriptors.len() > DESCRIPTORS_MAX {
        let why = "at most 64 descriptors can be polled";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    match syscall::poll_readable(descriptors, timeout) {
        Ok(ready) => Ok(ready),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

/// Repeated wait for the same descriptors by epoll. The kernel keeps the list, so a wait costs less
/// than [`wait`].
///
/// Several threads can wait for one descriptor, each with its own list. An event at a descriptor of
/// [`exclusive`](Self::exclusive) wakes only one of them: among the waiting threads, the one with
/// the oldest list. If none waits, every list reports the event at its next wait.
///
/// A closed descriptor leaves the list, even if a new descriptor gets its number: make a new list
/// then.
///
/// A timer of the list ends a wait with a timeout, unless the thread that makes the list has a
/// real-time policy. The timer stays armed when a descriptor ends the wait, so that consecutive
/// waits until about the same time rarely program the hardware. In a virtual machine that takes
/// some 5 us for each wait. A real-time kernel expires such timers in a thread of low priority.
#[derive(Debug)]
pub struct WaitSet {
    epoll: OwnedFd,
    exclusive: u64,
    timer: Option<Timer>,
}

/// Timer of a [`WaitSet`].
#[derive(Debug)]
struct Timer {
    descriptor: OwnedFd,
    /// Time of the last armed expiry, in nanoseconds of the monotonic clock.
    due_ns: AtomicU64,
}

impl Timer {
    /// Creates a timer that `epoll` watches.
    fn watched_by(epoll: BorrowedFd<'_>) -> io::Result<Self> {
        let descriptor = syscall::timer()?;
        syscall::epoll_add_timer(epoll, descriptor.as_fd())?;
        Ok(Self { descriptor, due_ns: AtomicU64::new(0) })
    }

    /// Makes the timer expire at the deadline or before. Changes nothing if it does already.
    fn expire_by(&self, now_ns: u64, deadline_ns: u64) -> io::Result<()> {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if now_ns < due_ns && due_ns <= deadline_ns {
            return Ok(());
        }
        syscall::set_timer(self.descriptor.as_fd(), Duration::from_nanos(deadline_ns.saturating_sub(now_ns).max(1)))?;
        self.due_ns.store(deadline_ns, Ordering::Relaxed);
        Ok(())
    }
}

impl WaitSet {
    /// Makes a list of distinct descriptors. Those from the 64th on share the last bit. An error
    /// where the kernel lacks support (before Linux 5.11, or in a sandbox).
    pub fn new(descriptors: &[RawFd]) -> io::Result<Self> {
        let epoll = syscall::epoll()?;
        let mut exclusive = 0;
        for (descriptor, token) in descriptors.iter().zip(0_u64..) {
            let token = token.min(63);
            match syscall::epoll_add_exclusive(epoll.as_fd(), *descriptor, token) {
                Ok(()) => exclusive |= 1 << token,
                // An epoll instance cannot be exclusive: its events wake every waiting thread.
                Err(_) => syscall::epoll_add_raw(epoll.as_fd(), *descriptor, token)?,
            }
        }
        // Checks that the kernel supports the call.
        syscall::epoll_wait_bits(epoll.as_fd(), Some(Duration::ZERO))?;
        let timer = if syscall::is_real_time() { None } else { Some(Timer::watched_by(epoll.as_fd())?) };
        Ok(Self { epoll, exclusive, timer })
    }

    /// Waits like [`wait_each`] for the descriptors of the list.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<u64> {
        let Some(timer) = self.timer.as_ref().filter(|_| timeout != Some(Duration::ZERO)) else {
            return Ok(self.wait_once(timeout)?.0);
        };
        let mut now_ns = syscall::monotonic_ns();
        let timeout_ns = timeout.map_or(u64::MAX, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        loop {
            if deadline_ns < u64::MAX {
                timer.expire_by(now_ns, deadline_ns)?;
            }
            let (ready, has_expired) = self.wait_once(None)?;
            if ready != 0 || !has_expired {
                return Ok(ready);
            }
            now_ns = syscall::monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(0);
            }
        }
    }

    /// Waits once. Returns the readable descriptors, and whether the timer has expired.
    fn wait_once(&self, timeout: Option<Duration>) -> io::Result<(u64, bool)> {
        match syscall::epoll_wait_bits(self.epoll.as_fd(), timeout) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok((0, false)),
            result => result,
        }
    }

    /// Returns the descriptors whose events wake only one thread, as a bit set: sockets, but not
    /// epoll instances.
    pub fn exclusive(&self) -> u64 {
        self.exclusive
    }
}

/// Eventfd whose descriptor ends a [`wait`] of another thread.
#[derive(Debug)]
pub struct Waker(File);

impl Waker {
    /// Makes a waker that is not set.
    pub fn new() -> io::Result<Self> {
        Ok(Self(File::from(syscall::eventfd()?)))
    }

    /// Makes the descriptor readable until [`reset`](Self::reset). Does not block.
    pub fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&1u64.to_ne_bytes()) {
            // The counter is at its maximum, so the descriptor is readable already.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result.map(|_| ()),
        }
    }

    /// Makes the descriptor unreadable again; reports whether it was readable.
    pub fn reset(&self) -> io::Result<bool> {
        match (&self.0).read(&mut [0; 8]) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            result => result.map(|_| true),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use takt_testkit::waiting::{receive, until};

    use super::*;

    #[test]
    fn wait_reports_readable_descriptors() {
        let [first, second, third] = std::array::from_fn(|_| Waker::new().expect("an eventfd"));
        let fds = [first.as_raw_fd(), second.as_raw_fd(), third.as_raw_fd()];
        first.wake().expect("woken");
        third.wake().expect("woken");
        assert_eq!(wait_each(&fds, None).expect("poll succeeds"), 0b101);
        assert!(first.reset().expect("reset") && third.reset().expect("reset"));
        assert_eq!(wait_each(&fds, Some(Duration::ZERO)).expect("poll succeeds"), 0);
    }

    #[test]
    fn wait_set_reports_readable_descriptors_repeatedly() {
        let [first, second, third] = std::array::from_fn(|_| Waker::new().expect("an eventfd"));
        let fds = [first.as_raw_fd(), second.as_raw_fd(), third.as_raw_fd()];
        let Ok(wait_set) = WaitSet::new(&fds) else {
            assert!(syscall::epoll_wait_bits(syscall::epoll().expect("an instance").as_fd(), None).is_err());
            return;
        };
        for _ in 0..3 {
            assert_eq!(wait_set.wait(Some(Duration::ZERO)).expect("wait succeeds"), 0);
            assert_eq!(wait_set.wait(Some(Duration::from_micros(1_500))).expect("wait succeeds"), 0);
            second.wake().expect("woken");
            third.wake().expect("woken");
            assert_eq!(wait_set.wait(None).expect("wait succeeds"), 0b110);
            assert_eq!(wait_set.wait(None).expect("wait succeeds"), 0b110, "until they are reset");
            assert!(second.reset().expect("reset") && third.reset().expect("reset"));
        }
        drop(second);
        first.wake().expect("woken");
        assert_eq!(wait_set.wait(None).expect("wait succeeds"), 0b001);
        assert!(WaitSet::new(&[first.as_raw_fd(); 2]).is_err() && WaitSet::new(&[-1]).is_err());
        let many: Vec<_> = (0..70).map(|_| Waker::new().expect("an eventfd")).collect();
        let wait_set = WaitSet::new(&many.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>()).expect("an instance");
        many[66].wake().expect("woken");
        many[1].wake().expect("woken");
        assert_eq!(wait_set.wait(None).expect("wait succeeds"), 1 << 63 | 1 << 1);
    }

    /// Waits in a separate thread; returns when the kernel has queued that thread at the list.
    fn sleep_on<'scope>(
        scope: &'scope std::thread::Scope<'scope, '_>,
        wait_set: &'scope WaitSet,
    ) -> std::thread::ScopedJoinHandle<'scope, u64> {
        let (thread_sender, thread_receiver) = std::sync::mpsc::channel();
        let sleeper = scope.spawn(move || {
            thread_sender
                .send(std::fs::read_link("/proc/thread-self").expect("Linux supports it"))
                .expect("the test waits");
            wait_set.wait(Some(Duration::from_secs(30))).expect("wait succeeds")
        });
        let status = std::path::Path::new("/proc").join(receive("a thread", &thread_receiver)).join("stat");
        let is_asleep = || {
            let state = std::fs::read_to_string(&status).expect("the thread is alive");
            state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
        };
        until("the thread sleeps", is_asleep);
        sleeper
    }

    #[test]
    fn event_wakes_only_the_oldest_waiting_list() {
        let event = Waker::new().expect("an eventfd");
        let [Ok(older), Ok(younger)] = std::array::from_fn(|_| WaitSet::new(&[event.as_raw_fd()])) else { return };
        assert_eq!(older.exclusive(), 1);
        std::thread::scope(|scope| {
            let (second, first) = (sleep_on(scope, &younger), sleep_on(scope, &older));
            event.wake().expect("woken");
            assert_eq!(first.join().expect("no panic"), 1);
            assert!(event.reset().expect("reset"));
            assert!(!second.is_finished());
            event.wake().expect("woken");
            assert_eq!(second.join().expect("no panic"), 1, "the older list is not waited for");
        });
    }

    #[test]
    fn event_of_a_nested_epoll_instance_wakes_all_waiting_lists() {
        let event = Waker::new().expect("an eventfd");
        let Ok(inner) = WaitSet::new(&[event.as_raw_fd()]) else { return };
        let inner = [inner.epoll.as_raw_fd()];
        let [Ok(older), Ok(younger)] = std::array::from_fn(|_| WaitSet::new(&inner)) else { return };
        assert_eq!(older.exclusive(), 0);
        std::thread::scope(|scope| {
            let sleepers = [sleep_on(scope, &older), sleep_on(scope, &younger)];
            event.wake().expect("woken");
            sleepers.into_iter().for_each(|sleeper| assert_eq!(sleeper.join().expect("no panic"), 1));
        });
    }

    /// A timer that stays armed ends no later wait before its time, and delays none.
    #[test]
    fn each_wait_of_a_list_ends_at_its_own_timeout() {
        let event = Waker::new().expect("an eventfd");
        let Ok(wait_set) = WaitSet::new(&[event.as_raw_fd()]) else { return };
        let wait = |timeout: Option<u64>| {
            let began = std::time::Instant::now();
            let ready = wait_set.wait(timeout.map(Duration::from_millis)).expect("wait succeeds");
            (ready, began.elapsed())
        };
        event.wake().expect("woken");
        assert_eq!(wait(Some(10)).0, 1, "the timer stays armed");
        assert!(event.reset().expect("reset"));
        let (ready, elapsed) = wait(Some(40));
        assert!(ready == 0 && elapsed >= Duration::from_millis(40), "{elapsed:?}");
        event.wake().expect("woken");
        assert_eq!(wait(Some(600_000)).0, 1);
        assert!(event.reset().expect("reset"));
        assert_eq!(wait(Some(5)).0, 0, "an earlier time replaces a later one");
        event.wake().expect("woken");
        assert_eq!(wait(Some(5)).0, 1);
        assert!(event.reset().expect("reset"));
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| wait(None).0);
            until("the timer has expired", || syscall::monotonic_ns() > timer_due(&wait_set));
            event.wake().expect("woken");
            assert_eq!(sleeper.join().expect("no panic"), 1, "a wait without a timeout goes on");
        });
    }

    fn timer_due(wait_set: &WaitSet) -> u64 {
        wait_set.timer.as_ref().map_or(0, |timer| timer.due_ns.load(Ordering::Relaxed))
    }

    #[test]
    fn wait_ends_at_its_timeout() {
        let waker = Waker::new().expect("an eventfd");
        let fds = [waker.as_raw_fd()];
        assert!(!wait(&fds, Some(Duration::ZERO)).expect("poll succeeds"));
        assert!(!wait(&fds, Some(Duration::from_millis(2))).expect("poll succeeds"));
        assert!(!wait(&[], Some(Duration::ZERO)).expect("poll succeeds"));
    }

    #[test]
    fn wait_ends_when_woken() {
        let waker = Waker::new().expect("an eventfd");
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake().expect("an eventfd can be written"));
            assert!(wait(&[waker.as_raw_fd()], None).expect("poll succeeds"));
        });
        assert!(waker.reset().expect("an eventfd can be read"));
        assert!(!waker.reset().expect("an eventfd can be read"));
        assert!(!wait(&[waker.as_raw_fd()], Some(Duration::ZERO)).expect("poll succeeds"));
    }

    #[test]
    fn too_many_descriptors_are_refused() {
        assert!(wait(&[0; 65], Some(Duration::ZERO)).is_err());
    }
}
