//! Interfaces that appear and disappear, addresses that change, and a link that is down for longer
//! than a lease: communication recovers automatically. Each test has two hosts of its own (network
//! namespaces), which requires root.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::*;
use takt::qos::*;
use takt::status::MatchedStatus;
use takt::*;
use takt_testkit::network::{enter_new_namespace, ip};
use takt_testkit::waiting::receive;
use takt_testkit::{not_run, require};

const LEASE: Duration = Duration::from_secs(2);

/// Task for the thread of a host.
type Task = Box<dyn FnOnce() + Send>;

/// Thread in a network namespace of its own, in which a participant runs.
struct Host {
    /// Kernel id of the thread, which identifies its namespace for `ip`.
    thread_id: i32,
    tasks: Sender<Task>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Runs `body` in a new namespace. `body` executes the tasks it receives between its passes.
    fn new(body: impl FnOnce(Receiver<Task>) + Send + 'static) -> Self {
        let (tasks, queue) = mpsc::channel::<Task>();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            enter_new_namespace();
            // SAFETY: takes no arguments and cannot fail.
            sender.send(unsafe { libc::gettid() }).expect("somebody waits");
            body(queue);
        });
        let thread_id = receive("the other host has a thread", &receiver);
        Self { thread_id, tasks, thread: Some(thread) }
    }

    /// Runs a task on the host's thread and waits for its result.
    fn run<R: Send + 'static>(&self, task: impl FnOnce() -> R + Send + 'static) -> R {
        let (sender, receiver) = mpsc::channel();
        let task = move || sender.send(task()).expect("somebody waits");
        self.tasks.send(Box::new(task)).expect("the host is up");
        receiver.recv_timeout(TIMEOUT).expect("the host is up")
    }

    fn ip(&self, arguments: &'static str) {
        self.run(move || ip(arguments));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.tasks = mpsc::channel().0;
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Runs the first tasks, which set up the network, then calls `pass` between tasks until the sender
/// is dropped.
fn run_tasks(queue: &Receiver<Task>, mut pass: impl FnMut()) {
    loop {
        match queue.try_recv() {
            Ok(task) => task(),
            Err(mpsc::TryRecvError::Empty) => pass(),
            Err(mpsc::TryRecvError::Disconnected) => return,
        }
    }
}

fn builder(domain: u32) -> DomainParticipantBuilder {
    // The period of announcements is a quarter of the lease.
    DomainParticipant::builder(domain).runtime(Runtime::Inline).lease_duration(LEASE)
}

/// Two hosts on a link, with a writer on the left one and a reader on the right one.
struct Scene {
    left: Host,
    right: Host,
    numbers: Receiver<u32>,
    write: Sender<u32>,
    /// Number of matched readers of the writer and of matched writers of the reader, at each
    /// change.
    matches: [Receiver<u32>; 2],
    expected: u32,
}

const DRIVE_TIME: takt::Duration = takt::Duration::from_millis(5);

fn report(status: &MatchedStatus, changes: &Sender<u32>) {
    if status.current_count_change != 0 {
        changes.send(status.current_count).unwrap_or_default();
    }
}

/// Returns `None` without permission to create namespaces; the test is then reported as not run.
fn scene(durability: Durability, interfaces: &'static [&'static str]) -> Option<Scene> {
    require::network_namespaces().map_err(not_run).ok()?;
    let (write, to_write) = mpsc::channel();
    let (number_sender, numbers) = mpsc::channel();
    let (notify_readers, readers) = mpsc::channel();
    let (notify_writers, writers) = mpsc::channel();
    let left = Host::new(move |queue| {
        // The first tasks set up the network.
        (0..3).for_each(|_| receive("the network is made", &queue)());
        let participant = builder(0).interfaces(interfaces.iter().copied()).build().expect("participant");
        let qos = DataWriterQos { durability, ..reliable_writer(History::KeepAll) };
        let writer = create_writer::<Blob>(&participant, "Topic", qos);
        run_tasks(&queue, || {
            participant.spin_once(DRIVE_TIME).expect("open");
            to_write.try_iter().for_each(|number| writer.write(&Blob::new(number, 100)).expect("room"));
            report(&writer.publication_matched_status().expect("open"), &notify_readers);
        });
    });
    let right = Host::new(move |queue| {
        (0..3).for_each(|_| receive("the network is made", &queue)());
        let participant = builder(0).interfaces(interfaces.iter().copied()).build().expect("participant");
        let qos = DataReaderQos { durability, ..reliable_reader(History::KeepAll) };
        let reader = create_reader::<Blob>(&participant, "Topic", qos);
        run_tasks(&queue, || {
            participant.spin_once(DRIVE_TIME).expect("open");
            let samples = reader.take(usize::MAX).expect("open");
            let blobs = samples.into_iter().filter_map(|sample| sample.data);
            blobs.for_each(|blob| number_sender.send(blob.number).unwrap_or_default());
            report(&reader.subscription_matched_status().expect("open"), &notify_writers);
        });
    });
    let scene = Scene { left, right, numbers, write, matches: [readers, writers], expected: 0 };
    scene.link();
    scene.up("10.78.0.1/24", "10.78.0.2/24");
    Some(scene)
}

impl Scene {
    fn link(&self) {
        let right = self.right.thread_id;
        self.left.run(move || {
            ip("link set lo up");
            ip(&format!("link add takt0 type veth peer name takt0 netns {right}"));
        });
        self.right.ip("link set lo up");
    }

    fn up(&self, left: &'static str, right: &'static str) {
        for (host, address) in [(&self.left, left), (&self.right, right)] {
            host.run(move || ip(&format!("addr add {address} dev takt0")));
            host.ip("link set takt0 up");
        }
    }

    /// Waits for both sides. A VOLATILE reader that the writer has not matched yet misses what is
    /// written.
    fn await_matches(&self, count: u32) {
        let deadline = Instant::now() + TIMEOUT;
        for matches in &self.matches {
            while matches.recv_timeout(deadline - Instant::now()).expect("a change of matches") != count {}
        }
    }

    fn assert_no_change_of_matches(&self) {
        assert!(self.matches.iter().all(|matches| matches.try_recv().is_err()), "the matches of the beginning");
    }

    fn write(&mut self, count: u32) {
        for _ in 0..count {
            self.write.send(self.expected).expect("the left host is up");
            self.expected += 1;
        }
    }

    /// Verifies that exactly the numbers from `first` on arrive, in order.
    fn assert_delivered(&self, first: u32) {
        for number in first..self.expected {
            assert_eq!(self.numbers.recv_timeout(TIMEOUT), Ok(number));
        }
    }
}

/// The match survives, so that a VOLATILE reader loses nothing.
#[test]
fn match_survives_address_changes() {
    for interfaces in [&[][..], &["takt0"]] {
        let Some(mut scene) = scene(Durability::Volatile, interfaces) else { return };
        scene.await_matches(1);
        scene.write(10);
        scene.assert_delivered(0);
        scene.right.ip("addr del 10.78.0.2/24 dev takt0");
        scene.write(10);
        scene.right.ip("addr add 10.78.0.3/24 dev takt0");
        scene.write(10);
        scene.assert_delivered(10);
        scene.left.ip("addr del 10.78.0.1/24 dev takt0");
        scene.left.ip("addr add 10.78.0.4/24 dev takt0");
        scene.write(10);
        scene.assert_delivered(30);
        scene.assert_no_change_of_matches();
    }
}

#[test]
fn communication_recovers_after_an_interface_is_deleted_and_recreated() {
    let Some(mut scene) = scene(Durability::Volatile, &["takt0"]) else { return };
    scene.await_matches(1);
    scene.write(10);
    scene.assert_delivered(0);
    scene.left.ip("link del takt0");
    scene.write(10);
    scene.link();
    scene.up("10.78.0.1/24", "10.78.0.9/24");
    scene.write(10);
    scene.assert_delivered(10);
    scene.assert_no_change_of_matches();
}

#[test]
fn communication_recovers_after_a_link_failure_longer_than_the_lease() {
    let Some(mut scene) = scene(Durability::TransientLocal, &[]) else { return };
    scene.await_matches(1);
    scene.write(10);
    scene.assert_delivered(0);
    scene.left.ip("link set takt0 down");
    scene.write(10);
    scene.await_matches(0);
    scene.left.ip("link set takt0 up");
    scene.await_matches(1);
    scene.write(10);
    // A new match starts with the history.
    scene.assert_delivered(0);
}
