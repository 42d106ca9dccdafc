//! Participants that use a daemon, which runs on a thread of the test, on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::*;
use takt::qos::*;
use takt::transport::udp::{InterfaceSelection, UdpConfig};
use takt::*;
use takt_transport::daemon::{Bundling, Daemon, DaemonConfig, DaemonEvent, status};

/// Daemon on a thread; dropping it ends the daemon.
struct Running {
    name: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<DaemonEvent>>>,
}

impl Running {
    fn new(name: &str) -> Self {
        Self::of(name, Bundling::default())
    }

    fn of(name: &str, bundling: Bundling) -> Self {
        let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
        // Tests of several processes may run concurrently, so the name contains the process id.
        let name = format!("{name}-{}", std::process::id());
        let config = DaemonConfig {
            name: Some(name.clone()),
            udp: UdpConfig { interfaces, ..UdpConfig::new(0) },
            bundling,
            ..DaemonConfig::default()
        };
        let mut daemon = Daemon::open(config).expect("the name is free");
        let ends = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut events = Vec::new();
            while !has_ended.load(Ordering::Relaxed) {
                daemon.run_once(std::time::Duration::from_millis(10)).expect("it can wait");
                events.extend(std::iter::from_fn(|| daemon.poll_event()));
            }
            events
        });
        Self { name, ends, thread: Some(thread) }
    }

    fn application(&self, domain: u32, runtime: Runtime) -> DomainParticipantBuilder {
        DomainParticipant::builder(domain).runtime(runtime).daemon(self.name.as_str())
    }

    /// Returns a number from the domain's line of the status.
    fn count(&self, key: &str) -> u64 {
        let text = status(Some(&self.name)).expect("it runs");
        let line = text.lines().find(|line| line.starts_with("domain ")).expect("it has a domain");
        let mut words = line.split(' ').skip_while(|word| *word != key);
        words.nth(1).and_then(|value| value.parse().ok()).expect("a number")
    }

    fn end(mut self) -> Vec<DaemonEvent> {
        self.ends.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("it does not panic")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn pair_of(publisher: DomainParticipantBuilder, subscriber: DomainParticipantBuilder) -> Pair<Blob> {
    let (publisher, subscriber) = (publisher.build().expect("participant"), subscriber.build().expect("participant"));
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

#[test]
fn two_applications_of_one_daemon_exchange_reliably() {
    for runtime in RUNTIMES {
        let (daemon, domain) = (Running::new("two"), domain());
        let pair = pair_of(daemon.application(domain, runtime), daemon.application(domain, runtime));
        let transports = pair.publisher.diagnostics().transport_stats().expect("open");
        assert_eq!(transports.iter().map(|traffic| traffic.name).collect::<Vec<_>>(), ["daemon"]);
        pair.exchange(300, 100);
        pair.exchange(3, 1 << 20);
        // Data between these two applications never leave the host.
        let out = daemon.count("datagrams_out");
        assert!(out < 100, "{out}");
        drop(pair);
        let events = daemon.end();
        let count = |is: fn(&DaemonEvent) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|event| matches!(event, DaemonEvent::Joined(_))), 2);
    }
}

#[test]
fn application_and_ordinary_participant_exchange_both_ways() {
    let (daemon, domain) = (Running::new("mixed"), domain());
    let ordinary = || on_loopback(domain, Runtime::Shared).shared_memory(false);
    let application = || daemon.application(domain, Runtime::Shared).peers(["127.0.0.1"]);
    let pair = pair_of(application(), ordinary());
    pair.exchange(200, 1000);
    pair.exchange(3, 1 << 20);
    let pair = pair_of(ordinary(), application());
    pair.exchange(200, 1000);
    pair.exchange(3, 1 << 20);
}

#[test]
fn applications_of_two_daemons_exchange_and_share_datagrams() {
    let (one, two, domain) = (Running::new("one"), Running::new("other"), domain());
    let application = |daemon: &Running| daemon.application(domain, Runtime::Shared).peers(["127.0.0.1#0-1"]);
    let pairs: Vec<Pair<Blob>> = (0..4)
        .map(|n| {
            let (publisher, subscriber) = (application(&one).build().expect("it is served"), application(&two).build());
            let topic = format!("Topic{n}");
            let subscriber = subscriber.expect("it is served");
            let (writer, reader) = connect(
                &publisher,
                &subscriber,
                &topic,
                reliable_writer(History::KeepAll),
                reliable_reader(History::KeepAll),
            );
            Pair { publisher, subscriber, writer, reader }
        })
        .collect();
    for number in 0..200 {
        for pair in &pairs {
            pair.writer.write(&Blob::new(number, 64)).expect("open");
        }
    }
    for pair in &pairs {
        let samples = pair.take(200);
        let numbers = samples.iter().map(|sample| sample.data.as_ref().expect("data").number);
        assert!(numbers.eq(0..200));
    }
    let (datagrams, messages, bundles) =
        (one.count("datagrams_out"), one.count("messages_out"), one.count("bundles_out"));
    assert!(bundles > 0 && messages > datagrams, "{messages} messages, {datagrams} datagrams, {bundles} bundles");
    assert!(two.count("bundles_in") > 0);
}

#[test]
fn stream_continues_after_a_restart_of_the_daemon() {
    let (daemon, domain) = (Running::new("again"), domain());
    let name = daemon.name.clone();
    let pair = pair_of(daemon.application(domain, Runtime::Shared), daemon.application(domain, Runtime::Shared));
    for number in 0..100 {
        pair.writer.write(&Blob::new(number, 100)).expect("open");
    }
    drop(daemon.end());
    assert!(status(Some(&name)).is_err(), "it has gone");
    for number in 100..200 {
        pair.writer.write(&Blob::new(number, 100)).expect("open");
    }
    let again = Running::new("again");
    assert_eq!(again.name, name);
    for number in 200..300 {
        pair.writer.write(&Blob::new(number, 100)).expect("open");
    }
    let samples = pair.take(300);
    assert!(samples.iter().map(|sample| sample.data.as_ref().expect("data").number).eq(0..300));
}

#[test]
fn missing_daemon_fails_or_selects_the_next_transport() {
    let domain = domain();
    let error = DomainParticipant::builder(domain).daemon("nowhere").build().expect_err("no daemon runs").to_string();
    assert!(error.contains("no daemon of this user") && error.contains("takt daemon run --name nowhere"), "{error}");
    let builder = on_loopback(domain, Runtime::Inline).user_data_transports(["daemon:nowhere", "udp"]);
    let participant = builder.build().expect("UDP opens");
    assert_eq!(participant.diagnostics().transport_stats().expect("open")[0].name, "udp");
    let named =
        participant.diagnostics().warnings().iter().any(|warning| warning.to_string().contains("daemon:nowhere"));
    assert!(named, "the error states the cause");
    let wrong = DomainParticipant::builder(domain).daemon("a b").build().expect_err("no name").to_string();
    assert!(wrong.contains("a b"), "{wrong}");
}

#[test]
fn departing_application_is_unmatched_and_others_continue() {
    let (daemon, domain) = (Running::new("leaves"), domain());
    let pair = pair_of(daemon.application(domain, Runtime::Shared), daemon.application(domain, Runtime::Shared));
    let third = daemon.application(domain, Runtime::Shared).build().expect("it is served");
    let other = create_reader::<Blob>(&third, "Topic", reliable_reader(History::KeepAll));
    wait_until(&[], "a second reader", || pair.writer.matched_subscriptions().expect("open").len() == 2);
    drop((other, third));
    wait_until(&[], "one reader", || pair.writer.matched_subscriptions().expect("open").len() == 1);
    pair.exchange(100, 100);
}
