//! Executors: participants and application jobs on one thread, by priority.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::support::*;
use takt::qos::*;
use takt::real_time::{Priority, ThreadSettings};
use takt::*;

type Order = Arc<Mutex<Vec<String>>>;

fn executor(name: &str) -> Executor {
    Executor::builder(name).start().expect("a thread")
}

fn note(order: &Order, name: &'static str) -> impl FnMut() + Send + 'static {
    let order = Arc::clone(order);
    move || order.lock().expect("no panic").push(name.to_owned())
}

/// Returns a matched reliable writer and reader.
fn join(from: &DomainParticipant, to: &DomainParticipant, topic: &str) -> (DataWriter<Shape>, DataReader<Shape>) {
    connect(from, to, topic, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Starts a job that occupies the executor until the sender sends or is dropped.
fn occupy(executor: &Executor) -> (Job, mpsc::Sender<()>) {
    let (release, wait) = mpsc::channel::<()>();
    let (sender, begun) = mpsc::channel();
    let job = executor.on_event(Priority::MAX, "busy", move || {
        sender.send(()).expect("somebody waits");
        wait.recv().unwrap_or_default();
    });
    let job = job.expect("room");
    job.trigger();
    begun.recv_timeout(TIMEOUT).expect("it runs");
    (job, release)
}

#[test]
fn jobs_run_by_priority_and_fifo_among_equals() {
    let executor = executor("jobs");
    let (busy, release) = occupy(&executor);
    let order = Order::default();
    let names = [("a", 0), ("b", -5), ("c", 20), ("d", 0), ("e", 63), ("f", 20)];
    let jobs: Vec<_> = names
        .into_iter()
        .map(|(name, priority)| executor.on_event(Priority::new(priority), name, note(&order, name)).expect("room"))
        .collect();
    jobs.iter().for_each(Job::trigger);
    jobs[0].trigger();
    drop(release);
    wait_until(&[], "all jobs", || order.lock().expect("no panic").len() >= 6);
    assert_eq!(*order.lock().expect("no panic"), ["e", "c", "f", "a", "d", "b"], "and one that waits runs once");
    assert_eq!(jobs[0].statistics().durations.count(), 1);
    assert_eq!((busy.statistics().name, busy.statistics().priority), ("busy".to_owned(), Priority::MAX));
}

#[test]
fn periodic_job_runs_until_it_is_dropped() {
    let executor = executor("periodic");
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let job = executor.every(Duration::from_millis(2), Priority::new(5), "loop", move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let job = job.expect("room");
    wait_until(&[], "ten runs", || runs.load(Ordering::SeqCst) >= 10);
    let statistics = job.statistics();
    assert!(statistics.durations.count() >= 9 && statistics.responses.count() == statistics.durations.count());
    drop(job);
    // The run during which the job was dropped ends before another job runs.
    let (_busy, _release) = occupy(&executor);
    let after = runs.load(Ordering::SeqCst);
    let (_again, _release) = {
        drop(_release);
        occupy(&executor)
    };
    assert_eq!(runs.load(Ordering::SeqCst), after);
    assert_eq!(Arc::strong_count(&runs), 1, "and what it held is gone");
    let refused = executor.every(Duration::ZERO, Priority::NORMAL, "never", || {});
    assert!(matches!(refused, Err(Error::BadParameter { .. })));
}

#[test]
fn skipped_releases_are_counted() {
    let executor = executor("late");
    let job = executor.every(Duration::from_millis(1), Priority::NORMAL, "loop", || {}).expect("room");
    let (_busy, release) = occupy(&executor);
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(20) {}
    drop(release);
    wait_until(&[], "the late run", || job.statistics().skipped >= 15);
    wait_until(&[], "its end", || job.statistics().responses.max_ns() >= 15_000_000);
}

#[test]
fn overrunning_job_is_suspended_until_it_is_resumed() {
    let executor = executor("budget");
    let job = executor.on_event(Priority::NORMAL, "slow", || {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(2) {}
    });
    let job = job.expect("room");
    job.set_budget(Duration::from_millis(1), true).expect("a budget");
    job.trigger();
    wait_until(&[], "the overrun", || job.statistics().overruns == 1);
    assert!(job.statistics().is_suspended);
    job.trigger();
    let (_busy, release) = occupy(&executor);
    drop(release);
    assert_eq!(job.statistics().durations.count(), 1, "the other jobs ran, this one did not");
    job.set_budget(takt::Duration::INFINITE, false).expect("a budget");
    job.resume();
    wait_until(&[], "the next run", || job.statistics().durations.count() == 2);
    assert_eq!(job.statistics().overruns, 1);
}

/// Adds a job that reports the start of each run and runs until the sender sends.
fn begins_and_waits(executor: &Executor, priority: Priority) -> (Job, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (release, wait) = mpsc::channel::<()>();
    let (sender, begun) = mpsc::channel();
    let job = executor.on_event(priority, "waits", move || {
        sender.send(()).unwrap_or_default();
        wait.recv().unwrap_or_default();
    });
    (job.expect("room"), begun, release)
}

#[test]
fn triggered_and_suspended_job_runs_once_after_resume() {
    let executor = executor("resumed");
    let (job, begun, release) = begins_and_waits(&executor, Priority::NORMAL);
    let (busy, busy_begun, release_busy) = begins_and_waits(&executor, Priority::MAX);
    job.set_budget(Duration::ZERO, true).expect("a budget");
    job.trigger();
    begun.recv_timeout(TIMEOUT).expect("it runs");
    // A trigger during a run takes effect when the job is resumed.
    job.trigger();
    busy.trigger();
    release.send(()).expect("it waits");
    busy_begun.recv_timeout(TIMEOUT).expect("it runs");
    assert!(job.statistics().is_suspended);
    job.resume();
    release_busy.send(()).expect("it waits");
    begun.recv_timeout(TIMEOUT).expect("it is resumed");
    // The same, but the job is not resumed.
    job.trigger();
    let (sender, receiver) = mpsc::channel();
    let less_urgent =
        executor.on_event(Priority::new(-5), "less urgent", move || sender.send(()).expect("somebody waits"));
    let less_urgent = less_urgent.expect("room");
    less_urgent.trigger();
    release.send(()).expect("it waits");
    receiver.recv_timeout(TIMEOUT).expect("it runs");
    assert!(begun.try_recv().is_err(), "a job that is suspended does not run");
    job.set_budget(takt::Duration::INFINITE, false).expect("a budget");
    job.resume();
    begun.recv_timeout(TIMEOUT).expect("it is resumed");
    release.send(()).expect("it waits");
    wait_until(&[], "the end of the run", || job.statistics().durations.count() == 3);
    job.trigger();
    begun.recv_timeout(TIMEOUT).expect("it can be triggered as ever");
    drop(release);
    wait_until(&[], "the last run", || job.statistics().durations.count() == 4);
    assert!(job.statistics().overruns == 2 && begun.try_recv().is_err(), "each release is one run");
}

#[test]
fn future_continues_when_it_is_woken() {
    let domain = domain();
    let executor = executor("async");
    let build = || on_loopback(domain, Runtime::Shared).executor(&executor).build().expect("participant");
    let (from, to) = (build(), build());
    let (writer, reader) = join(&from, &to, "Topic");
    let (sender, receiver) = mpsc::channel();
    let task = executor.spawn(Priority::new(7), "task", async move {
        for _ in 0..3 {
            let sample = reader.recv().await.expect("open");
            sender.send(sample.data.expect("valid").x).expect("somebody waits");
        }
    });
    let task = task.expect("room");
    for x in 0..3 {
        writer.write(&Shape::new("RED", x)).expect("room");
        assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(x));
    }
    assert!(receiver.recv_timeout(TIMEOUT).is_err(), "the future is dropped once it is ready");
    assert!(task.statistics().durations.count() >= 3);
}

fn name_of_this_thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn participants_share_an_executor_and_a_listener_uses_another() {
    let domain = domain();
    let (main, other) = (executor("main"), executor("aside"));
    let build = || on_loopback(domain, Runtime::Shared).executor(&main).build().expect("participant");
    let (from, to) = (build(), build());
    let (sender, receiver) = mpsc::channel();
    let [(fast_writer, fast), (slow_writer, slow)] = ["Fast", "Slow"].map(|name| join(&from, &to, name));
    let (release, wait) = mpsc::channel::<()>();
    let slow_sender = sender.clone();
    listen(&slow, move |reader| {
        reader.take(usize::MAX).expect("open");
        slow_sender.send(("slow begins", name_of_this_thread())).expect("somebody waits");
        wait.recv().unwrap_or_default();
    });
    slow.run_listener_on(Some(&other)).expect("room");
    listen(&fast, move |reader| {
        reader.take(usize::MAX).expect("open");
        sender.send(("fast", name_of_this_thread())).expect("somebody waits");
    });

    slow_writer.write(&Shape::new("RED", 1)).expect("room");
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(("slow begins", "aside".to_owned())));
    fast_writer.write(&Shape::new("RED", 1)).expect("room");
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(("fast", "main".to_owned())), "though the other one still runs");
    // Samples that arrive during the call there are reported by the participant's executor after
    // the call.
    slow.run_listener_on(None).expect("always");
    slow_writer.write(&Shape::new("RED", 2)).expect("room");
    wait_until(&[], "the sample", || slow.status_changes().intersects(StatusMask::DATA_AVAILABLE));
    fast_writer.write(&Shape::new("RED", 2)).expect("room");
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(("fast", "main".to_owned())));
    drop(release);
    assert_eq!(receiver.recv_timeout(TIMEOUT), Ok(("slow begins", "main".to_owned())));
}

#[test]
fn urgent_job_runs_between_less_urgent_listeners() {
    let domain = domain();
    let executor = executor("both");
    let from = on_loopback(domain, Runtime::Inline).build().expect("participant");
    let to = on_loopback(domain, Runtime::Shared).executor(&executor).build().expect("participant");
    let writer = create_writer::<Shape>(&from, "Topic", reliable_writer(History::KeepAll));
    let order = Order::default();
    let job = executor.on_event(Priority::new(30), "job", note(&order, "job")).expect("room");
    let job = Arc::new(job);
    let mut readers = Vec::new();
    for _ in 0..4 {
        let reader = create_reader(&to, "Topic", reliable_reader(History::KeepAll));
        let (job, mut noted) = (Arc::clone(&job), note(&order, "listener"));
        listen(&reader, move |reader| {
            reader.take(usize::MAX).expect("open");
            noted();
            job.trigger();
        });
        readers.push(reader);
    }
    wait_until(&[&from], "match", || writer.matched_subscriptions().expect("open").len() == 4);
    writer.write(&Shape::new("RED", 1)).expect("room");
    wait_until(&[&from], "all", || order.lock().expect("no panic").len() >= 8);
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, ["listener", "job"].repeat(4), "each job before the next listener");
}

#[test]
fn closed_participant_is_not_called_and_others_continue() {
    let domain = domain();
    let executor = executor("shared");
    let build = || on_loopback(domain, Runtime::Shared).executor(&executor).build().expect("participant");
    for _ in 0..3 {
        let (from, to, closes) = (build(), build(), build());
        closes.close().expect("once");
        let (writer, reader) = join(&from, &to, "Topic");
        writer.write(&Shape::new("RED", 1)).expect("room");
        wait_until(&[], "sample", || !reader.take(1).expect("open").is_empty());
    }
}

#[test]
fn executor_thread_has_its_name_and_settings_or_start_fails() {
    let executor = Executor::builder("a name that is longer than the kernel's").start().expect("a thread");
    let (sender, receiver) = mpsc::channel();
    let job =
        executor.on_event(Priority::NORMAL, "name", move || sender.send(name_of_this_thread()).expect("waited for"));
    let job = job.expect("room");
    job.trigger();
    assert_eq!(receiver.recv_timeout(TIMEOUT).map(|name| name.len()), Ok(15));
    let settings = ThreadSettings { cpus: vec![1000], ..ThreadSettings::default() };
    let refused = Executor::builder("nowhere").thread_settings(settings).start();
    assert!(matches!(refused, Err(Error::RealTime(_))), "{refused:?}");
    let both = on_loopback(domain(), Runtime::Inline).executor(&executor).build();
    assert!(matches!(both, Err(Error::BadParameter { .. })), "{both:?}");
}
