//! Real-time settings: the driving thread has the requested settings, or building the participant
//! fails.

use std::time::Duration;

use crate::support::*;
use takt::real_time::{Scheduling, ThreadSettings};
use takt::{DomainParticipant, Error, Runtime};
use takt_testkit::{not_run, require};

/// Timer slack in nanoseconds that no other test uses.
const SLACK_NS: u64 = 12_345;

fn slack() -> ThreadSettings {
    ThreadSettings { timer_slack: Some(Duration::from_nanos(SLACK_NS)), ..ThreadSettings::default() }
}

/// Returns the names of the threads of this process that have this timer slack.
fn threads_with_slack() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc is mounted");
    let ids = tasks.filter_map(|task| task.expect("a directory").file_name().into_string().ok());
    // A thread may end meanwhile.
    let file =
        |id: &str, name| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default().trim().to_owned();
    let has = ids.filter(|id| file(id, "timerslack_ns") == SLACK_NS.to_string());
    has.map(|id| file(&id, "comm")).collect()
}

/// A single test, since it inspects all threads of the process.
#[test]
fn driving_thread_has_its_settings() {
    // Reading the timer slack of another thread requires CAP_SYS_NICE.
    if let Err(reason) = require::root() {
        return not_run(reason);
    }
    let domain = domain();
    let builder = move || DomainParticipant::builder(domain).interfaces(["lo"]);
    let shared = builder().thread_settings(slack()).build().expect("anybody may");
    assert_eq!(threads_with_slack(), ["takt-rx"]);
    drop(shared);
    assert_eq!(threads_with_slack(), [""; 0], "it has ended");

    let nowhere = ThreadSettings { cpus: vec![1023], ..slack() };
    let refused = builder().thread_settings(nowhere).build().map(drop).expect_err("there is no such processor");
    assert!(matches!(&refused, Error::RealTime(refusal) if refusal.setting.contains("1023")), "{refused}");
    assert!(refused.to_string().starts_with("real time: "), "{refused}");

    let beyond = ThreadSettings { scheduling: Some(Scheduling::Fifo(100)), ..slack() };
    for runtime in [Runtime::Shared, Runtime::Inline] {
        let settings = beyond.clone();
        let build = move || builder().runtime(runtime).thread_settings(settings).build().map(drop);
        let refused = std::thread::spawn(build).join().expect("it does not panic");
        assert!(matches!(refused, Err(Error::RealTime(_))), "{refused:?}");
    }

    let own = std::thread::Builder::new().name("control".into()).spawn(move || {
        let _inline = builder().runtime(Runtime::Inline).thread_settings(slack()).build().expect("anybody may");
        threads_with_slack()
    });
    assert_eq!(own.expect("a thread").join().expect("it does not panic"), ["control"]);
}
