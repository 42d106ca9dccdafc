//! Fault cases of executors: dropped handles; jobs and listeners that panic, block, overrun, flood
//! or close what runs them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use crate::support::*;
use takt::qos::*;
use takt::real_time::{JobKind, Priority};
use takt::*;
use takt_testkit::waiting::{LIMIT, OnDrop, until};

fn executor(name: &str) -> Executor {
    Executor::builder(name).start().expect("a thread")
}

/// Longer than any test takes on a loaded machine.
const HOURS: Duration = Duration::from_secs(36_000);

/// Participant whose lease does not expire while its thread gets no processor time.
fn on_busy_machine(domain: u32, runtime: Runtime) -> DomainParticipantBuilder {
    on_loopback(domain, runtime).lease_duration(HOURS)
}

/// Participant without any activity for hours after discovery, so that a missed wakeup is not
/// hidden by a later one.
fn quiet(domain: u32) -> DomainParticipantBuilder {
    on_busy_machine(domain, Runtime::Shared).announcement_period(HOURS / 4)
}

fn join(from: &DomainParticipant, to: &DomainParticipant, topic: &str) -> (DataWriter<Shape>, DataReader<Shape>) {
    connect(from, to, topic, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

fn write(writer: &DataWriter<Shape>, x: i32) {
    writer.write(&Shape::new("RED", x)).expect("room");
}

/// Sets a listener that reports each call and then waits for the sender.
fn block_in_listener(reader: &DataReader<Shape>) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((sender, receiver), (release, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    listen(reader, move |reader| {
        reader.take(usize::MAX).expect("open");
        sender.send(()).unwrap_or_default();
        wait.recv().unwrap_or_default();
    });
    (receiver, release)
}

/// Suppresses backtraces of intended panics.
fn without_backtrace() {
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
}

#[test]
fn jobs_and_listeners_keep_their_executor_running() {
    let domain = domain();
    let [from, to] = [(); 2].map(|()| quiet(domain).build().expect("participant"));
    let (writer, reader) = join(&from, &to, "Topic");
    let (sender, receiver) = mpsc::channel();
    listen(&reader, move |reader| {
        for sample in reader.take(usize::MAX).expect("open") {
            sender.send(sample.data.expect("valid").x).expect("somebody waits");
        }
    });
    let (sender, ticks) = mpsc::channel();
    let job = {
        let other = executor("aside");
        reader.run_listener_on(Some(&other)).expect("room");
        other.every(Duration::from_millis(1), Priority::NORMAL, "loop", move || sender.send(()).unwrap_or_default())
    };
    for x in 0..3 {
        write(&writer, x);
        assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(x), "although no other handle exists");
        assert_eq!(ticks.recv_timeout(TIMEOUT), Ok(()));
    }
    drop(job);
    write(&writer, 3);
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(3));
    reader.close().expect("open");
    assert!(receiver.recv_timeout(TIMEOUT).is_err(), "the listener is dropped");
}

#[test]
fn executor_may_be_dropped_by_its_own_job() {
    let one = executor("one");
    let (sender, receiver) = mpsc::channel();
    let handle = Mutex::new(Some(one.clone()));
    let job = one.on_event(Priority::NORMAL, "drops", move || {
        drop(handle.lock().expect("no panic").take());
        sender.send(()).expect("somebody waits");
    });
    let job = job.expect("room");
    drop(one);
    job.trigger();
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(()));
    drop(job);
    assert!(receiver.recv_timeout(TIMEOUT).is_err(), "what the job held is gone");
}

#[test]
fn arrival_during_a_call_on_another_executor_is_reported_at_once_by_the_next_one() {
    let domain = domain();
    let [from, to] = [(); 2].map(|()| quiet(domain).build().expect("participant"));
    let (writer, reader) = join(&from, &to, "Topic");
    let (receiver, release) = block_in_listener(&reader);
    let [first, second] = ["first", "second"].map(executor);
    let limit: takt::Duration = LIMIT.into();
    let mut is_on_executor = false;
    for next in [Some(&first), Some(&second), None, Some(&first), None] {
        write(&writer, 1);
        receiver.recv_timeout(TIMEOUT).expect("the call");
        reader.run_listener_on(next).expect("room");
        write(&writer, 2);
        if is_on_executor {
            // The participant has received the sample and sleeps.
            writer.wait_for_acknowledgments(limit).expect("in time");
        }
        is_on_executor = next.is_some();
        release.send(()).expect("it waits");
        receiver.recv_timeout(TIMEOUT).expect("what arrived meanwhile");
        release.send(()).expect("it waits");
        writer.wait_for_acknowledgments(limit).expect("in time");
    }
}

struct Overruns(mpsc::Sender<u64>);

impl PublisherListener for Overruns {}
impl SubscriberListener for Overruns {}
impl TopicListener for Overruns {}
impl DomainParticipantListener for Overruns {
    fn on_budget_overrun(&mut self, status: BudgetOverrunStatus) {
        self.0.send(status.total_count).unwrap_or_default();
    }
}

#[test]
fn overrun_on_another_executor_is_reported_at_once() {
    let domain = domain();
    let [from, to] = [(); 2].map(|()| quiet(domain).build().expect("participant"));
    let properties = [(BUDGET_PROPERTY, "1000")];
    let (writer, reader) =
        connect::<Shape>(&from, &to, "Topic", reliable_writer(History::KeepAll), reader_with(&properties));
    let (sender, overruns) = mpsc::channel();
    to.set_listener(Box::new(Overruns(sender))).expect("open");
    let (receiver, release) = block_in_listener(&reader);
    reader.run_listener_on(Some(&executor("aside"))).expect("room");
    for count in 1..4 {
        write(&writer, 1);
        receiver.recv_timeout(TIMEOUT).expect("the call");
        // The participant sleeps.
        writer.wait_for_acknowledgments(LIMIT).expect("in time");
        release.send(()).expect("it waits");
        assert_eq!(overruns.recv_timeout(TIMEOUT), Ok(count));
    }
}

#[test]
fn overrun_of_the_overrun_listener_is_counted_and_reported_once() {
    let pair =
        Pair::<Shape>::new(Runtime::Shared, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let (sender, overruns) = mpsc::channel();
    pair.subscriber.set_listener(Box::new(Overruns(sender))).expect("open");
    pair.subscriber.set_job_budget(JobKind::Callback, Priority::NORMAL, Duration::ZERO).expect("open");
    let (sender, receiver) = mpsc::channel();
    listen(&pair.reader, move |reader| {
        reader.take(usize::MAX).expect("open");
        sender.send(()).expect("somebody waits");
    });
    let mut before = 0;
    for x in 0..3 {
        write(&pair.writer, x);
        receiver.recv_timeout(TIMEOUT).expect("others are called too");
        let count = overruns.recv_timeout(TIMEOUT).expect("it is notified");
        assert!(count > before && count <= before + 3, "own one counted, reported once: {count} after {before}");
        before = count;
    }
}

#[test]
fn suspended_listener_is_not_called_for_arrivals_during_its_last_call() {
    let domain = domain();
    let build = || on_busy_machine(domain, Runtime::Inline).build().expect("participant");
    let (from, to) = (build(), build());
    let properties = [(BUDGET_PROPERTY, "1"), (OVERRUN_PROPERTY, "suspend")];
    let (writer, reader) =
        connect::<Shape>(&from, &to, "Topic", reliable_writer(History::KeepAll), reader_with(&properties));
    struct WritesOnDrop(DataWriter<Shape>, DomainParticipant, DomainParticipant);
    // SAFETY: only the thread that created them uses them, which is also the one that calls
    // listeners here.
    unsafe impl Send for WritesOnDrop {}
    let entities = WritesOnDrop(writer.clone(), from.clone(), to.clone());
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let listener = Calling(move |reader: &DataReader<Shape>| {
        let WritesOnDrop(writer, from, to) = &entities;
        reader.take(usize::MAX).expect("open");
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            write(writer, 2);
            wait_until(&[from, to], "more", || reader.status_changes().intersects(StatusMask::DATA_AVAILABLE));
        }
    });
    reader.set_listener_with_mask(Box::new(listener), StatusMask::DATA_AVAILABLE).expect("open");
    write(&writer, 1);
    wait_until(&[&from, &to], "the call", || to.diagnostics().budget_overruns().expect("open").total_count == 1);
    write(&writer, 3);
    wait_until(&[&from, &to], "acknowledgment", || matches!(writer.wait_for_acknowledgments(Duration::ZERO), Ok(())));
    assert_eq!(calls.load(Ordering::SeqCst), 1, "it is suspended");
    reader.resume_listener().expect("open");
    wait_until(&[&from, &to], "the next call", || calls.load(Ordering::SeqCst) == 2);
}

#[test]
fn changed_qos_applies_its_new_budget() {
    let pair =
        Pair::<Shape>::new(Runtime::Shared, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    listen(&pair.reader, |reader| drop(reader.take(usize::MAX).expect("open")));
    write(&pair.writer, 1);
    let refused = pair.reader.set_qos(reader_with(&[(BUDGET_PROPERTY, "soon")]));
    assert!(matches!(refused, Err(Error::BadParameter { .. })), "{refused:?}");
    pair.reader.set_qos(reader_with(&[(BUDGET_PROPERTY, "1"), (PRIORITY_PROPERTY, "-7")])).expect("changeable");
    write(&pair.writer, 2);
    let matches =
        |overrun: &BudgetOverrun| (overrun.priority, overrun.budget) == (Priority::new(-7), Duration::from_nanos(1));
    pair.wait_until("an overrun", || {
        pair.subscriber.diagnostics().budget_overruns().expect("open").last.iter().any(matches)
    });
}

/// Starts a job that is always ready.
fn never_idle(executor: &Executor, priority: i32) -> Job {
    let future = std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    executor.spawn(Priority::new(priority), "never idle", future).expect("room")
}

#[test]
fn always_ready_jobs_do_not_starve_a_participant() {
    for priorities in [[0, -5], [50, 63]] {
        share_executor_with_busy_jobs(priorities);
    }
}

fn share_executor_with_busy_jobs(priorities: [i32; 2]) {
    let domain = domain();
    let executor = executor("busy");
    let _jobs = priorities.map(|priority| never_idle(&executor, priority));
    let from = on_busy_machine(domain, Runtime::Shared).build().expect("participant");
    let to = on_busy_machine(domain, Runtime::Shared).executor(&executor).build().expect("participant");
    let deadline = Deadline { period: takt::Duration::from_millis(50) };
    let (writer, reader) = connect::<Shape>(
        &from,
        &to,
        "Topic",
        DataWriterQos { deadline, ..reliable_writer(History::KeepAll) },
        DataReaderQos { deadline, ..reliable_reader(History::KeepAll) },
    );
    write(&writer, 1);
    wait_until(&[], "a sample", || !reader.take(1).expect("open").is_empty());
    wait_until(&[], "a timer", || reader.requested_deadline_missed_status().expect("open").total_count > 0);
}

#[test]
fn urgent_overload_does_not_starve_a_participant() {
    let domain = domain();
    let build = || on_busy_machine(domain, Runtime::Shared).shared_memory(false).build().expect("participant");
    let (from, to) = (build(), build());
    let qos = || DataWriterQos { history: History::KeepLast(1), ..DataWriterQos::default() };
    let best_effort = |properties: &[(&str, &str)]| DataReaderQos {
        reliability: Reliability { kind: ReliabilityKind::BestEffort, ..Reliability::RELIABLE },
        history: History::KeepLast(1),
        ..reader_with(properties)
    };
    let floods = [("Brake", "46"), ("Steer", "50")].map(|(topic, priority)| {
        let (writer, reader) =
            connect::<Shape>(&from, &to, topic, qos(), best_effort(&[(PRIORITY_PROPERTY, priority)]));
        listen(&reader, |reader| {
            reader.take(usize::MAX).expect("open");
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_micros(500) {}
        });
        (writer, reader)
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                floods.iter().for_each(|(writer, _)| write(writer, 1));
            }
        });
        let _ending = OnDrop(|| is_over.store(true, Ordering::SeqCst));
        let late = build();
        let (writer, reader) = join(&late, &to, "Late");
        write(&writer, 1);
        wait_until(&[], "a sample", || !reader.take(1).expect("open").is_empty());
    });
}

#[test]
fn urgent_listener_on_another_executor_is_woken_between_two_listeners() {
    let domain = domain();
    let main = executor("main");
    let build = || on_busy_machine(domain, Runtime::Shared).shared_memory(false);
    let from = build().build().expect("participant");
    let to = build().executor(&main).build().expect("participant");
    let slow = ["Slow", "Slower"].map(|topic| join(&from, &to, topic));
    let (urgent_writer, urgent) = connect::<Shape>(
        &from,
        &to,
        "Urgent",
        reliable_writer(History::KeepAll),
        reader_with(&[(PRIORITY_PROPERTY, "40")]),
    );
    let (urgent_sender, urgent_receiver) = mpsc::channel();
    listen(&urgent, move |reader| {
        reader.take(usize::MAX).expect("open");
        urgent_sender.send(()).unwrap_or_default();
    });
    urgent.run_listener_on(Some(&executor("aside"))).expect("room");
    // The slow listener that is called second observes that the urgent one was woken before.
    let ((sender, receiver), (end_sender, end)) = (mpsc::channel(), mpsc::channel());
    let (release, wait) = mpsc::channel::<()>();
    let shared = Arc::new(Mutex::new((0, wait, urgent_receiver)));
    for (_, reader) in &slow {
        let (shared, sender, end_sender) = (Arc::clone(&shared), sender.clone(), end_sender.clone());
        listen(reader, move |reader| {
            reader.take(usize::MAX).expect("open");
            let (calls, wait, urgent_receiver) = &mut *shared.lock().expect("no panic");
            *calls += 1;
            if *calls == 1 {
                sender.send(()).unwrap_or_default();
                wait.recv().unwrap_or_default();
            } else {
                end_sender.send(urgent_receiver.recv_timeout(TIMEOUT)).unwrap_or_default();
            }
        });
    }
    let (release_busy, busy_wait) = mpsc::channel::<()>();
    let busy = main.on_event(Priority::MAX, "busy", move || busy_wait.recv().unwrap_or_default()).expect("room");
    busy.trigger();
    slow.iter().for_each(|(writer, _)| write(writer, 1));
    drop(release_busy);
    receiver.recv_timeout(TIMEOUT).expect("the first one is called");
    write(&urgent_writer, 1);
    release.send(()).expect("it waits");
    assert_eq!(end.recv_timeout(TIMEOUT), Ok(Ok(())));
}

#[test]
fn job_waits_for_all_more_urgent_work() {
    let domain = domain();
    let executor = executor("order");
    let from = on_busy_machine(domain, Runtime::Inline).build().expect("participant");
    let to = on_busy_machine(domain, Runtime::Shared).executor(&executor).build().expect("participant");
    let (writer, reader) = join(&from, &to, "Topic");
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    listen(&reader, move |reader| {
        counted.fetch_add(reader.take(usize::MAX).expect("open").len() as u64, Ordering::SeqCst);
    });
    let ((busy_sender, busy_runs), (release, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let busy = executor.on_event(Priority::MAX, "busy", move || {
        busy_sender.send(()).unwrap_or_default();
        wait.recv().unwrap_or_default();
    });
    let busy = busy.expect("room");
    let (sender, receiver) = mpsc::channel();
    let job = executor.on_event(Priority::new(-10), "log", move || {
        sender.send(taken.load(Ordering::SeqCst)).unwrap_or_default();
    });
    let job = job.expect("room");
    busy.trigger();
    busy_runs.recv_timeout(TIMEOUT).expect("it runs");
    job.trigger();
    (0..20).for_each(|x| write(&writer, x));
    drop(release);
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(20), "samples are more urgent than the log");
}

#[test]
fn panicking_job_ends_its_executor_and_closes_its_participants() {
    without_backtrace();
    let domain = domain();
    let executor = executor("panics");
    let build = || on_busy_machine(domain, Runtime::Shared).executor(&executor).build();
    let [one, other] = [(); 2].map(|()| build().expect("participant"));
    let (_writer, reader) = join(&one, &other, "Topic");
    let job = executor.on_event(Priority::NORMAL, "panics", || panic!("on purpose")).expect("room");
    assert!(!executor.has_ended());
    job.trigger();
    wait_until(&[], "the end", || executor.has_ended());
    wait_until(&[], "the participants' end", || {
        [&one, &other]
            .iter()
            .all(|participant| matches!(participant.diagnostics().counters(), Err(Error::AlreadyDeleted)))
    });
    assert!(matches!(reader.take(1), Err(Error::AlreadyDeleted)));
    assert!(matches!(build(), Err(Error::PreconditionNotMet { .. })), "no thread would drive it");
    let refused = executor.on_event(Priority::NORMAL, "never", || {});
    assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "no thread would run it");
}

#[test]
fn panicking_listener_on_another_executor_closes_its_participant() {
    without_backtrace();
    let domain = domain();
    let [from, to] = [(); 2].map(|()| on_busy_machine(domain, Runtime::Shared).build().expect("participant"));
    let (writer, reader) = join(&from, &to, "Topic");
    listen(&reader, |_| panic!("on purpose"));
    let other = executor("aside");
    reader.run_listener_on(Some(&other)).expect("room");
    write(&writer, 1);
    wait_until(&[], "the end", || {
        other.has_ended() && matches!(to.diagnostics().counters(), Err(Error::AlreadyDeleted))
    });
    wait_until(&[], "farewell", || from.discovered_participants().expect("open").is_empty());
}

#[test]
fn listeners_may_close_each_others_participants() {
    for is_shared in [false, true] {
        let domain = domain();
        let writes = on_busy_machine(domain, Runtime::Shared).build().expect("participant");
        let (called, (sender, receiver)) = (Arc::new(AtomicU64::new(0)), mpsc::channel());
        let executors = ["one", "other"].map(executor);
        let participants = executors.each_ref().map(|executor| {
            let builder = on_busy_machine(domain, Runtime::Shared);
            let builder = if is_shared { builder.executor(executor) } else { builder };
            builder.build().expect("participant")
        });
        let handles = Arc::new(Mutex::new(executors.map(Some)));
        let writer = create_writer::<Shape>(&writes, "Topic", reliable_writer(History::KeepAll));
        let readers =
            participants.each_ref().map(|to| create_reader::<Shape>(to, "Topic", reliable_reader(History::KeepAll)));
        for (index, reader) in readers.iter().enumerate() {
            let (called, sender, other) = (Arc::clone(&called), sender.clone(), participants[1 - index].clone());
            let handles = Arc::clone(&handles);
            listen(reader, move |_| {
                called.fetch_add(1, Ordering::SeqCst);
                until("both are called", || called.load(Ordering::SeqCst) == 2);
                other.close().expect("once");
                let handle = handles.lock().expect("no panic")[1 - index].take();
                drop(handle);
                sender.send(()).unwrap_or_default();
            });
        }
        wait_until(&[], "match", || writer.matched_subscriptions().expect("open").len() == 2);
        write(&writer, 1);
        for _ in 0..2 {
            receiver.recv_timeout(TIMEOUT).expect("neither waits for the other");
        }
    }
}

#[test]
fn job_does_not_wait_for_its_own_executor() {
    let domain = domain();
    let executor = executor("builds");
    let (sender, receiver) = mpsc::channel();
    let handle = executor.clone();
    let job = executor.on_event(Priority::NORMAL, "builds", move || {
        let participant = on_busy_machine(domain, Runtime::Shared).executor(&handle).build().expect("participant");
        let reader = create_reader::<Shape>(&participant, "Topic", reliable_reader(History::KeepAll));
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(reader.read_condition(Selector::READ)).expect("attached");
        sender.send(waitset.wait_any(takt::Duration::INFINITE)).unwrap_or_default();
    });
    let job = job.expect("room");
    job.trigger();
    let refused = receiver.recv_timeout(TIMEOUT).expect("it does not hang");
    assert!(matches!(refused, Err(Error::IllegalOperation { .. })), "{refused:?}");
}

#[test]
fn close_waits_for_an_executor_at_its_job_limit() {
    let domain = domain();
    let executor = executor("full");
    let [from, to] =
        [(); 2].map(|()| on_busy_machine(domain, Runtime::Shared).executor(&executor).build().expect("participant"));
    let remote = on_busy_machine(domain, Runtime::Shared).build().expect("participant");
    drop(from);
    let (writer, reader) = join(&remote, &to, "Topic");
    let (receiver, release) = block_in_listener(&reader);
    let jobs: Vec<_> =
        (0..takt::JOBS_MAX).map(|_| executor.on_event(Priority::NORMAL, "idle", || {}).expect("room")).collect();
    let refused = executor.on_event(Priority::NORMAL, "one too many", || {});
    assert!(matches!(refused, Err(Error::OutOfResources { .. })), "{refused:?}");
    write(&writer, 1);
    receiver.recv_timeout(TIMEOUT).expect("the call");
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The listener ends its call when the sender is dropped.
        let release = release;
        let closes = scope.spawn(|| {
            to.close().expect("once");
            assert!(has_ended.load(Ordering::SeqCst), "the call has ended");
        });
        // The handle is closed while the listener is running.
        wait_until(&[], "close", || matches!(to.diagnostics().counters(), Err(Error::AlreadyDeleted)));
        has_ended.store(true, Ordering::SeqCst);
        release.send(()).expect("it waits");
        closes.join().expect("no panic");
    });
    drop(jobs);
}

#[test]
fn executor_name_with_a_zero_octet_is_rejected() {
    let refused = Executor::builder("con\0trol").start();
    assert!(matches!(refused, Err(Error::BadParameter { .. })), "{refused:?}");
}
