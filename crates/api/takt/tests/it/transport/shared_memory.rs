//! Shared memory: participants on one host exchange data through it if both support it and it
//! works; otherwise by UDP.

use crate::support::*;
use takt::qos::*;
use takt::transport::Transport;
use takt::transport::shm::{ShmConfig, ShmTransport};
use takt::transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt::*;

/// Returns the number of datagrams of a transport that were sent, received, and lost because a ring
/// was full.
fn carried(participant: &DomainParticipant, transport: &str) -> Option<(u64, u64, u64)> {
    let all = participant.diagnostics().transport_stats().expect("open");
    let stats = all.into_iter().find(|traffic| traffic.name == transport)?.stats;
    Some((stats.datagrams_out, stats.datagrams_in, stats.send_errors.would_block))
}

fn pair_of(publisher: DomainParticipantBuilder, subscriber: DomainParticipantBuilder) -> Pair<Blob> {
    let (publisher, subscriber) = (publisher.build().expect("participant"), subscriber.build().expect("participant"));
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

#[test]
fn participants_on_one_host_use_shared_memory() {
    for runtime in RUNTIMES {
        let domain = domain();
        let shared = || on_loopback(domain, runtime).shared_memory(true);
        let pair = pair_of(shared(), shared());
        let by_udp = carried(&pair.publisher, "udp").expect("it is open").0;
        pair.exchange(300, 100);
        pair.exchange(3, 1 << 20);
        let (sent, received, lost) = carried(&pair.publisher, "shm").expect("it is open");
        assert!(sent >= 300 && received > 0 && lost == 0, "{runtime:?}: {sent} {received} {lost}");
        pair.wait_until("all of it", || carried(&pair.subscriber, "shm").expect("it is open").1 >= sent);
        let more = carried(&pair.publisher, "udp").expect("it is open").0 - by_udp;
        assert!(more < 100, "{runtime:?}: {more} datagrams by UDP, which are discovery's");
        let counters = pair.publisher.diagnostics().driver_counters().expect("open");
        assert_eq!((counters.unserved_destinations, counters.send_failures), (0, 0));
    }
}

#[test]
fn participant_without_shared_memory_is_reached_by_udp() {
    for (writes, reads) in [(true, false), (false, true)] {
        let domain = domain();
        let participant = |shared| on_loopback(domain, Runtime::Shared).shared_memory(shared);
        let pair = pair_of(participant(writes), participant(reads));
        pair.exchange(50, 1000);
        for participant in [&pair.publisher, &pair.subscriber] {
            assert!(carried(participant, "shm").is_none_or(|carried| carried == (0, 0, 0)));
        }
    }
}

/// A peer announces shared memory but accepts no rings. The writer is refused and continues by UDP,
/// and lost samples are repaired.
#[test]
fn peer_that_refuses_rings_is_reached_by_udp() {
    let domain = domain();
    let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
    let udp = UdpTransport::open(&UdpConfig { interfaces, ..UdpConfig::new(domain) }).expect("loopback");
    let shm = ShmTransport::open(&ShmConfig { connections_max: 0, ..ShmConfig::default() }).expect("Linux 5.14");
    assert_eq!(shm.capabilities().name, "shm");
    let refuses = DomainParticipant::builder(domain).peers(["127.0.0.1"]);
    let refuses = refuses.transport(Box::new(udp)).transport(Box::new(shm));
    let pair = pair_of(on_loopback(domain, Runtime::Shared).shared_memory(true), refuses);
    pair.exchange(50, 1000);
    assert_eq!(carried(&pair.subscriber, "shm").map(|carried| carried.1), Some(0));
    assert_eq!(pair.publisher.diagnostics().counters().expect("open").local_peers_ended, 0, "it exists");
}

/// Shared memory is enabled by default, except where it would bypass configured transports.
#[test]
fn shared_memory_is_on_by_default_except_with_custom_transports() {
    let names = |builder: DomainParticipantBuilder| {
        let stats = builder.build().expect("participant").diagnostics().transport_stats().expect("open");
        stats.iter().map(|traffic| traffic.name).collect::<Vec<_>>()
    };
    let plain = || on_loopback(domain(), Runtime::Inline);
    let udp = || {
        let interfaces = InterfaceSelection::Named(vec!["lo".into()]);
        Box::new(UdpTransport::open(&UdpConfig { interfaces, ..UdpConfig::new(domain()) }).expect("loopback"))
    };
    assert_eq!(names(plain()), ["udp", "shm"]);
    assert_eq!(names(plain().shared_memory(false)), ["udp"]);
    assert_eq!(names(plain().wrap_transport(|transport| transport)), ["udp"]);
    assert_eq!(names(plain().wrap_transport(|transport| transport).shared_memory(true)), ["udp", "shm"]);
    assert_eq!(names(plain().transport(udp())), ["udp"]);
    assert_eq!(names(plain().transport(udp()).shared_memory(true)), ["udp", "shm"]);
    let listen =
        |tcp: &mut takt::transport::tcp::TcpConfig| tcp.listen = vec!["127.0.0.1:0".parse().expect("an address")];
    assert_eq!(names(plain().configure_tcp(listen)), ["udp", "tcp", "shm"]);
    assert_eq!(names(plain().configure_tcp(listen).udp(false)), ["tcp"]);
    let participant = plain().build().expect("participant");
    assert!(participant.diagnostics().warnings().iter().all(|warning| !warning.what.contains("shared memory")));
}

#[test]
fn invalid_sizes_are_rejected() {
    let builder = on_loopback(domain(), Runtime::Inline).configure_shared_memory(|shm| shm.segment_slots = 1 << 20);
    let error = builder.build().map(drop).expect_err("more than there can be").to_string();
    assert!(error.contains("segment_slots of shared memory is 1048576, expected 1 to 65536"), "{error}");
}

/// A ring is allocated only for participants that exchange data. A participant that cannot get a
/// ring is counted and reached by UDP.
#[test]
fn rings_are_allocated_only_for_participants_that_exchange_data() {
    let domain = domain();
    let participant = |rings_max| {
        let builder =
            on_loopback(domain, Runtime::Shared).configure_shared_memory(move |shm| shm.connections_max = rings_max);
        builder.build().expect("participant")
    };
    let (bystander, publisher, subscriber) = (participant(512), participant(0), participant(512));
    wait_until(&[], "discovery", || bystander.discovered_participants().expect("open").len() == 2);
    let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let pair: Pair<Blob> = Pair::between(publisher, subscriber, qos.0, qos.1);
    pair.exchange(20, 1000);
    let unreached =
        [&bystander, &pair.publisher].map(|it| it.diagnostics().driver_counters().expect("open").unreached_local_peers);
    assert_eq!(unreached, [0, 1]);
    assert_eq!(carried(&bystander, "shm"), Some((0, 0, 0)));
}

/// One writer with readers that do and do not support shared memory.
#[test]
fn one_sample_uses_shared_memory_and_udp() {
    let domain = domain();
    let participant = |shared| {
        let participant = on_loopback(domain, Runtime::Shared).shared_memory(shared).build();
        participant.expect("participant")
    };
    let (publisher, subscribers) = (participant(true), [participant(true), participant(false), participant(true)]);
    let readers = subscribers
        .each_ref()
        .map(|subscriber| create_reader::<Blob>(subscriber, "Topic", reliable_reader(History::KeepAll)));
    let writer = create_writer::<Blob>(&publisher, "Topic", reliable_writer(History::KeepAll));
    wait_until(&[&publisher], "matches", || writer.matched_subscriptions().expect("open").len() == 3);
    for number in 0..200 {
        writer.write(&Blob::new(number, 500)).expect("room");
    }
    for reader in &readers {
        let mut taken = Vec::new();
        wait_until(&[&publisher], "samples", || {
            taken.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            taken.len() == 200
        });
        assert!((0..200).zip(&taken).all(|(number, blob)| *blob == Blob::new(number, 500)));
    }
}

/// Endpoints with ports of their own use them in shared memory as well.
#[test]
fn endpoints_with_own_ports_use_shared_memory() {
    let domain = domain();
    let shared = || on_loopback(domain, Runtime::Shared).shared_memory(true).build().expect("participant");
    let (publisher, subscriber) = (shared(), shared());
    let topic = subscriber.create_topic::<Blob>("Topic", TopicQos::default()).expect("topic");
    let readers = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = reliable_reader(History::KeepAll);
    let reader = readers.create_datareader_with_flow(&topic, qos, Flow::OWN_PORT).expect("reader");
    let writer = create_writer::<Blob>(&publisher, "Topic", reliable_writer(History::KeepAll));
    let pair = Pair { publisher, subscriber, writer, reader };
    pair.wait_until("match", || !pair.writer.matched_subscriptions().expect("open").is_empty());
    pair.exchange(20, 100);
    assert!(carried(&pair.publisher, "shm").is_some_and(|(sent, ..)| sent >= 20));
}

/// The reader's participant leaves. The writer continues with another one, and a late joiner
/// receives the history.
#[test]
fn peers_on_one_host_leave_and_join() {
    let domain = domain();
    let shared = || on_loopback(domain, Runtime::Shared).shared_memory(true).build().expect("participant");
    let publisher = shared();
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
    let writer = create_writer::<Blob>(&publisher, "Topic", qos);
    for round in 1..6 {
        writer.write(&Blob::new(round, 2000)).expect("room");
        let subscriber = shared();
        let qos = DataReaderQos { durability: Durability::TransientLocal, ..reliable_reader(History::KeepAll) };
        let reader = create_reader::<Blob>(&subscriber, "Topic", qos);
        let mut taken = Vec::new();
        wait_until(&[&publisher], "history", || {
            taken.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            taken.len() == round as usize
        });
        assert!((1..).zip(&taken).all(|(number, blob)| *blob == Blob::new(number, 2000)));
        assert!(carried(&subscriber, "shm").is_some_and(|(_, received, _)| received > 0));
    }
    assert_eq!(
        publisher.diagnostics().counters().expect("open").local_peers_ended,
        0,
        "they announced their departure"
    );
}

/// A sample without loanable memory is copied through the ring, which has space for all fragments
/// of the largest sample.
#[test]
fn large_copied_sample_arrives_complete() {
    let domain = domain();
    let participant =
        || on_loopback(domain, Runtime::Shared).configure_shared_memory(|shm| shm.segment_bytes = 64 << 10);
    let pair = pair_of(participant(), participant());
    pair.exchange(1, 100);
    pair.exchange(3, 15 << 20);
    let (sent, _, lost) = carried(&pair.publisher, "shm").expect("it is open");
    assert!(sent > 3 * 240 && lost == 0, "{sent} {lost}");
    assert_eq!(pair.publisher.diagnostics().driver_counters().expect("open").payloads_copied_without_loan, 3);
}
