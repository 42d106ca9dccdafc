//! `takt daemon` as a process: killed and restarted, in network namespaces, and with malformed
//! requests.

use crate::process::Takt;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, DomainParticipantBuilder, Runtime};
use takt_testkit::domain::domain;
use takt_testkit::network::{Host, Network};
use takt_testkit::waiting::until;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Number")]
struct Number {
    number: u32,
}

/// Returns a daemon name that no other test of this machine uses.
fn name_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

fn daemon(name: &str, more: &str) -> Takt {
    let daemon = Takt::start(&format!("daemon run --name {name} --json {more}"));
    daemon.event("ready");
    daemon
}

fn application(domain: u32, daemon: &str) -> DomainParticipantBuilder {
    DomainParticipant::builder(domain).runtime(Runtime::Shared).daemon(daemon)
}

fn reliability() -> Reliability {
    Reliability { max_blocking_time: takt::Duration::from_secs(30), ..Reliability::RELIABLE }
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Number> {
    let topic = participant.create_topic::<Number>(topic, TopicQos::default()).expect("topic");
    let qos = DataWriterQos { reliability: reliability(), history: History::KeepAll, ..Default::default() };
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, qos).expect("endpoint")
}

fn reader(participant: &DomainParticipant, topic: &str) -> DataReader<Number> {
    let topic = participant.create_topic::<Number>(topic, TopicQos::default()).expect("topic");
    let qos = DataReaderQos { reliability: reliability(), history: History::KeepAll, ..Default::default() };
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    subscriber.create_datareader(&topic, qos).expect("endpoint")
}

fn until_matched(writer: &DataWriter<Number>, readers: usize) {
    until("a match", || writer.matched_subscriptions().expect("open").len() == readers);
}

/// Asserts that the numbers arrive, each once and in order.
fn assert_arrive(reader: &DataReader<Number>, numbers: std::ops::Range<u32>) {
    let mut found = Vec::new();
    until("all samples", || {
        found.extend(reader.take(100).expect("open").iter().filter_map(|sample| sample.data.as_ref()?.number.into()));
        found.len() >= numbers.len()
    });
    assert!(found.iter().copied().eq(numbers), "{found:?}");
}

#[test]
fn daemon_that_is_killed_and_started_again_costs_no_reliable_sample() {
    let (name, domain) = (name_of("killed"), domain());
    let first = daemon(&name, "--interface lo");
    let (from, to) = (application(domain, &name).build(), application(domain, &name).build());
    let (from, to) = (from.expect("it is served"), to.expect("it is served"));
    let (writer, reader) = (writer(&from, "Stream"), reader(&to, "Stream"));
    until_matched(&writer, 1);
    // The thread writes until `ends` is set, so that it also writes while no daemon runs.
    let (ends, written) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let streaming = scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let number = written.fetch_add(1, Ordering::Relaxed);
                writer.write(&Number { number }).expect("the second daemon starts within max_blocking_time");
            }
        });
        let mut found = 0;
        let mut take = || {
            for sample in reader.take(100).expect("open").iter().filter_map(|sample| sample.data.as_ref()) {
                assert_eq!(sample.number, found);
                found += 1;
            }
            found
        };
        until("the stream has begun", || take() >= 1000);
        // Dropping a process kills it (SIGKILL).
        drop(first);
        until("the end of the first daemon", || takt_transport::daemon::status(Some(&name)).is_err());
        let _second = daemon(&name, "--interface lo");
        let so_far = written.load(Ordering::Relaxed);
        until("the stream goes on", || take() >= so_far + 5000);
        ends.store(true, Ordering::Relaxed);
        until("the last sample and the end of the writer", || {
            take() == written.load(Ordering::Relaxed) && streaming.is_finished()
        });
    });
}

#[test]
fn killed_application_is_removed_and_others_continue() {
    let (name, domain) = (name_of("apps"), domain());
    let daemon = daemon(&name, "--interface lo");
    let (from, to) = (application(domain, &name).build(), application(domain, &name).build());
    let (from, to) = (from.expect("it is served"), to.expect("it is served"));
    let (writer, reader) = (writer(&from, "Goes"), reader(&to, "Goes"));
    until_matched(&writer, 1);
    let victim = Takt::start_in(
        &format!("sub Goes --domain {domain} --reliable"),
        &[("TAKT_DAEMON", name.clone()), ("TAKT_LEASE_DURATION", "3600 s".into())],
    );
    until_matched(&writer, 2);
    drop(victim);
    // The daemon announces its end: the lease is still valid.
    until_matched(&writer, 1);
    writer.write(&Number { number: 0 }).expect("open");
    assert_arrive(&reader, 0..1);
    drop((writer, reader, from, to));
    daemon.expect_line(&["joined", "joined", "joined", "left", "left", "left"]);
}

#[test]
fn hosts_with_daemons_and_without_exchange_over_a_network() {
    let Some(net) = Network::new() else { return };
    let [one, two, three]: [Host; 3] = std::array::from_fn(|_| net.host(false));
    let start = |host: &Host| host.run(|| daemon("net", ""));
    let _daemons = [start(&one), start(&two)];
    let build = |host: &Host, by_daemon: bool| {
        host.run(|| {
            let builder = match by_daemon {
                true => application(0, "net"),
                false => DomainParticipant::builder(0).runtime(Runtime::Shared),
            };
            builder.build().expect("participant")
        })
    };
    let from: Vec<DomainParticipant> = (0..3).map(|_| build(&one, true)).collect();
    let to: Vec<DomainParticipant> = (0..3).map(|_| build(&two, true)).collect();
    let ordinary = build(&three, false);
    // The participant without a daemon may send through a socket that the calling thread opens.
    // Applications of daemons have no sockets.
    let _inside = three.enter();
    for (n, from) in from.iter().enumerate() {
        let topic = format!("Topic{n}");
        let writer = writer(from, &topic);
        let readers: Vec<DataReader<Number>> =
            to.iter().chain([&ordinary]).map(|participant| reader(participant, &topic)).collect();
        until_matched(&writer, 4);
        for number in 0..100 {
            writer.write(&Number { number }).expect("open");
        }
        readers.iter().for_each(|reader| assert_arrive(reader, 0..100));
    }
    let back = writer(&ordinary, "Back");
    let readers: Vec<DataReader<Number>> = to.iter().map(|participant| reader(participant, "Back")).collect();
    until_matched(&back, 3);
    back.write(&Number { number: 0 }).expect("open");
    readers.iter().for_each(|reader| assert_arrive(reader, 0..1));
}

#[test]
fn malformed_requests_are_refused_and_the_daemon_continues() {
    let (name, domain) = (name_of("malformed"), domain());
    let daemon = daemon(&name, &format!("--interface lo --domain {domain} --applications 1"));
    let status = std::fs::read_to_string("/proc/self/status").expect("it exists");
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("a user");
    let user = user.split_whitespace().nth(1).expect("the effective one");
    let address = SocketAddr::from_abstract_name(format!("takt-daemon/{user}/{name}")).expect("a name");
    let send = |request: &[u8]| {
        let mut stream = UnixStream::connect_addr(&address).expect("it listens");
        stream.write_all(request).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        reply
    };
    assert!(send(b"GET / HTTP/1.1\r\n\n\n").starts_with("refused the request is not takt-daemon 1"));
    assert!(send(b"takt-daemon 1 join\ndomain 1\n\n").starts_with("refused the request has no shm"));
    let shm = "016b615402000000".to_owned() + &"0".repeat(32);
    let elsewhere = send(format!("takt-daemon 1 join\ndomain {domain}\nshm {shm}\n\n").as_bytes());
    assert!(elsewhere.contains("shared memory cannot be attached"), "{elsewhere}");
    // A request without an end is closed before all of it is read.
    let mut endless = UnixStream::connect_addr(&address).expect("it listens");
    let sent = (0..100).try_for_each(|_| endless.write_all(&[b'x'; 4096]));
    assert!(sent.is_err() || endless.read_to_end(&mut Vec::new()).is_err());
    // Connections that send nothing do not block others.
    let silent: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect_addr(&address).expect("it listens")).collect();
    let first = application(domain, &name).build().expect("it is served");
    let error = application(domain, &name).build().expect_err("one is enough").to_string();
    assert!(error.contains("already serves 1 applications"), "{error}");
    let error = application(domain ^ 1, &name).build().expect_err("not this domain").to_string();
    assert!(error.contains("is not served; the daemon serves"), "{error}");
    assert!(send(b"takt-daemon 1 status\n\n").contains("applications 1"));
    drop((first, silent, daemon));
}

#[test]
fn second_daemon_of_a_name_is_refused_and_status_shows_the_first() {
    let name = name_of("twice");
    let first = daemon(&name, "--interface lo");
    let second = Takt::start(&format!("daemon run --name {name}"));
    let (text, errors, code) = second.ending();
    assert_eq!((text.as_str(), code), ("", Some(1)));
    assert!(errors.contains("already runs"), "{errors}");
    let (text, _, code) = Takt::start(&format!("daemon status --name {name} --json")).ending();
    assert!(text.starts_with('{') && text.contains("\"applications\":0") && code == Some(0), "{text}");
    drop(first);
    until("the end of the first daemon", || takt_transport::daemon::status(Some(&name)).is_err());
    let (_, errors, code) = Takt::start(&format!("daemon status --name {name}")).ending();
    assert!(code == Some(1) && errors.contains(&name), "{errors}");
}
