//! Tests of thread settings. Each test changes a thread of its own.

use std::io::ErrorKind;
use std::time::Duration;

use takt_exec::{Refusal, Scheduling, ThreadSettings};
use takt_testkit::{not_run, require};

/// Applies settings to a new thread. Returns the content of a file in /proc of that thread
/// afterwards.
fn applied(settings: ThreadSettings, file: &'static str) -> Result<String, Refusal> {
    let thread = std::thread::spawn(move || {
        settings.apply()?;
        let own = std::fs::read_link("/proc/thread-self").expect("/proc is mounted");
        let id = own.file_name().expect("PID/task/TID").to_str().expect("a number").to_owned();
        Ok(std::fs::read_to_string(format!("/proc/{id}/{file}")).expect("the thread lives"))
    });
    thread.join().expect("it does not panic")
}

fn scheduled(scheduling: Scheduling) -> Result<String, Refusal> {
    applied(ThreadSettings { scheduling: Some(scheduling), ..ThreadSettings::default() }, "stat")
}

/// Returns priority and policy from the text of `stat`; proc_pid_stat(5), fields 40 and 41.
fn priority_and_policy(stat: &str) -> (u32, u32) {
    let fields: Vec<_> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    (fields[40 - 3].parse().expect("a number"), fields[41 - 3].parse().expect("a number"))
}

#[test]
fn policy_and_priority_are_applied() {
    if let Err(why) = require::root() {
        return not_run(why);
    }
    let stat = scheduled(Scheduling::Fifo(7)).expect("root may");
    assert_eq!(priority_and_policy(&stat), (7, libc::SCHED_FIFO as u32));
    let stat = scheduled(Scheduling::RoundRobin(99)).expect("root may");
    assert_eq!(priority_and_policy(&stat), (99, libc::SCHED_RR as u32));
}

/// Tries SCHED_DEADLINE on a new thread without Takt's code: 1 ms every 100 ms, sched_setattr(2).
fn has_deadline_scheduling() -> Result<(), String> {
    let attempt = std::thread::spawn(|| {
        let ms = 1_000_000;
        let policy = u64::from(libc::SCHED_DEADLINE as u32) << 32;
        // struct sched_attr: size and policy, flags, nice and priority, runtime, deadline, period.
        let attributes: [u64; 6] = [48 | policy, 0, 0, ms, 10 * ms, 100 * ms];
        // SAFETY: the structure has 48 octets, as its first field says.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes.as_ptr(), 0) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    });
    // EPERM for root: the cpuset of the thread is not a separate root domain.
    attempt.join().expect("it does not panic").map_err(|why| format!("the kernel refuses SCHED_DEADLINE here: {why}"))
}

#[test]
fn deadline_scheduling_is_applied() {
    if let Err(why) = require::root().and_then(|()| has_deadline_scheduling()) {
        return not_run(why);
    }
    let ms = Duration::from_millis;
    let deadline = Scheduling::Deadline { runtime: ms(1), deadline: ms(10), period: ms(100) };
    let stat = scheduled(deadline).expect("the kernel grants it");
    assert_eq!(priority_and_policy(&stat).1, libc::SCHED_DEADLINE as u32);
}

#[test]
fn refused_deadline_scheduling_names_the_root_domain() {
    if let Err(why) = require::root() {
        return not_run(why);
    }
    if has_deadline_scheduling().is_ok() {
        return not_run("the kernel grants SCHED_DEADLINE here");
    }
    let ms = Duration::from_millis;
    let deadline = Scheduling::Deadline { runtime: ms(1), deadline: ms(10), period: ms(100) };
    let refusal = scheduled(deadline).expect_err("the kernel refuses it");
    assert!(refusal.remedy.contains("root domain"), "{refusal}");
}

#[test]
fn invalid_priorities_are_refused() {
    for scheduling in [Scheduling::Fifo(0), Scheduling::Fifo(100), Scheduling::RoundRobin(255)] {
        let refusal = scheduled(scheduling).expect_err("there is none");
        assert_eq!(refusal.cause.kind(), ErrorKind::InvalidInput, "{refusal}");
        assert!(refusal.to_string().contains("1 to 99"), "{refusal}");
    }
    let (runtime, period) = (Duration::from_millis(2), Duration::from_millis(1));
    let refusal = scheduled(Scheduling::Deadline { runtime, deadline: period, period }).expect_err("it is too much");
    assert!(refusal.to_string().contains("runtime <= deadline"), "{refusal}");
}

#[test]
fn thread_runs_on_the_given_processors() {
    let bound = |cpus: Vec<usize>| applied(ThreadSettings { cpus, ..ThreadSettings::default() }, "status");
    let status = bound(vec![0, 0]).expect("there is one");
    assert!(status.contains("\nCpus_allowed_list:\t0\n"), "{status}");
    let refusal = bound(vec![1024]).expect_err("beyond all that can be named");
    assert!(refusal.to_string().contains("the highest number is below 1024"), "{refusal}");
    // A nonexistent processor, alone and with an existing one.
    for cpus in [vec![1023], vec![0, 1023]] {
        let refusal = bound(cpus).expect_err("no such processor");
        assert!(refusal.to_string().contains("online"), "{refusal}");
    }
}

#[test]
fn timer_slack_is_applied() {
    let slack = |slack| ThreadSettings { timer_slack: Some(slack), ..ThreadSettings::default() };
    let text = applied(slack(Duration::from_nanos(1)), "timerslack_ns");
    assert_eq!(text.expect("anybody may").trim(), "1");
    let refusal = slack(Duration::ZERO).apply().expect_err("it would be the default");
    assert!(refusal.to_string().contains("1 ns"), "{refusal}");
}

#[test]
fn default_settings_change_nothing() {
    let before = std::fs::read_to_string("/proc/thread-self/stat").map(|stat| priority_and_policy(&stat));
    ThreadSettings::default().apply().expect("nothing is asked for");
    let after = std::fs::read_to_string("/proc/thread-self/stat").map(|stat| priority_and_policy(&stat));
    assert_eq!(before.expect("/proc is mounted"), after.expect("/proc is mounted"));
}
