//! Participants that communicate by TCP: without UDP, with only one listening side, and with
//! connections that break.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::*;
use takt::qos::*;
use takt::transport::TransportStats;
use takt::*;

/// Returns a domain of the test and one of its ports, on which no other socket listens. A port
/// chosen by the kernel and released could be taken by another socket before the test listens on
/// it.
fn domain_and_port() -> (u32, SocketAddr) {
    let domain = domain();
    let port = 7400 + 250 * u16::try_from(domain).expect("at most 232");
    (domain, (Ipv4Addr::LOCALHOST, port).into())
}

fn by_tcp_alone(domain: u32, runtime: Runtime) -> DomainParticipantBuilder {
    DomainParticipant::builder(domain).interfaces(["lo"]).udp(false).runtime(runtime)
}

fn listening(domain: u32, runtime: Runtime, at: SocketAddr) -> DomainParticipantBuilder {
    by_tcp_alone(domain, runtime).configure_tcp(move |tcp| tcp.listen.push(at))
}

fn connecting(domain: u32, runtime: Runtime, to: SocketAddr) -> DomainParticipantBuilder {
    by_tcp_alone(domain, runtime).peers([format!("tcp/{to}")])
}

fn build(builder: DomainParticipantBuilder) -> DomainParticipant {
    builder.build().expect("a participant")
}

fn stats(participant: &DomainParticipant) -> TransportStats {
    let all = participant.diagnostics().transport_stats().expect("open");
    assert_eq!(all.len(), 1, "TCP alone");
    assert_eq!(all[0].name, "tcp");
    all[0].stats
}

fn pair(publisher: DomainParticipant, subscriber: DomainParticipant) -> Pair<Blob> {
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Only one side listens, as behind network address translation. The other side is reached by the
/// connection that it has opened.
#[test]
fn one_listening_side_is_sufficient() {
    for runtime in RUNTIMES {
        for writer_listens in [true, false] {
            let (domain, at) = domain_and_port();
            let (listener, connector) = (build(listening(domain, runtime, at)), build(connecting(domain, runtime, at)));
            let pair = if writer_listens { pair(listener, connector) } else { pair(connector, listener) };
            pair.exchange(100, 100);
            pair.exchange(3, 1 << 20);
            for participant in [&pair.publisher, &pair.subscriber] {
                assert_eq!(stats(participant).connections.opened, 1, "{runtime:?}");
                let counters = participant.diagnostics().driver_counters().expect("open");
                assert_eq!((counters.send_failures, counters.receive_failures), (0, 0));
            }
        }
    }
}

/// Proxy that forwards connections to a target and can break all of them.
struct Proxy {
    at: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let (at, open) = (listener.local_addr().expect("it is bound"), Arc::new(Mutex::new(Vec::new())));
        let all = Arc::clone(&open);
        // The thread ends with the process.
        std::thread::spawn(move || {
            for inside in listener.incoming().flatten() {
                let Ok(outside) = TcpStream::connect(target) else { continue };
                let clone = |socket: &TcpStream| socket.try_clone().expect("a descriptor is free");
                all.lock().expect("not poisoned").extend([clone(&inside), clone(&outside)]);
                for (from, to) in [(clone(&inside), clone(&outside)), (outside, inside)] {
                    std::thread::spawn(move || pass(from, to));
                }
            }
        });
        Self { at, open }
    }

    /// Breaks every connection. Returns their number.
    fn cut(&self) -> usize {
        let mut open = self.open.lock().expect("not poisoned");
        let cut = open.drain(..).filter(|socket| socket.shutdown(Shutdown::Both).is_ok()).count();
        cut / 2
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The connection breaks in the middle of the stream and of messages. It is reestablished, and lost
/// samples are repaired.
#[test]
fn broken_connection_loses_no_sample() {
    const SAMPLES: u32 = 3000;
    for runtime in RUNTIMES {
        for writer_listens in [true, false] {
            let (domain, at) = domain_and_port();
            let proxy = Proxy::to(at);
            let listener = build(listening(domain, runtime, at));
            let connector = build(connecting(domain, runtime, proxy.at));
            let pair = if writer_listens { pair(listener, connector) } else { pair(connector, listener) };
            let (mut written, mut taken, mut cuts) = (0, 0, 0);
            while taken < SAMPLES {
                // At most as many samples in transit as the writer stores without blocking.
                let end = (written + 25).min(SAMPLES).min(taken + 1000);
                for number in written..end {
                    pair.writer.write(&Blob::new(number, 1000)).expect("room");
                }
                written = end;
                if written / 500 > cuts {
                    assert!(proxy.cut() > 0 || taken < written, "there was a connection");
                    cuts += 1;
                }
                pair.drive();
                for sample in pair.reader.take(100).expect("open") {
                    assert_eq!(sample.data, Some(Blob::new(taken, 1000)), "{runtime:?}: in order, none lost");
                    taken += 1;
                }
            }
            assert_eq!(cuts, SAMPLES / 500);
            let lost = stats(&pair.publisher).connections.lost;
            assert!(lost > 0, "{runtime:?}: connections were lost");
            let matched = pair.writer.publication_matched_status().expect("open");
            assert_eq!(matched.total_count, 1, "no participant was lost and rediscovered");
        }
    }
}

/// Both sides listen, and each connects to the other. One of the connections is closed without
/// loss.
#[test]
fn duplicate_connection_is_closed_without_loss() {
    for runtime in RUNTIMES {
        let ((domain, one), (_, other)) = (domain_and_port(), domain_and_port());
        let both = |at, to: SocketAddr| build(listening(domain, runtime, at).peers([format!("tcp/{to}")]));
        let pair = pair(both(one, other), both(other, one));
        pair.exchange(100, 1000);
        let merged = |participant| stats(participant).connections.merged;
        pair.wait_until("one connection is let go", || merged(&pair.publisher) + merged(&pair.subscriber) == 1);
        pair.exchange(100, 1000);
        assert_eq!(pair.writer.publication_matched_status().expect("open").total_count, 1);
    }
}

#[test]
fn participant_with_udp_and_tcp_reaches_peers_with_either() {
    let (domain, at) = domain_and_port();
    let both = on_loopback(domain, Runtime::Shared).configure_tcp(move |tcp| tcp.listen.push(at));
    let both = build(both);
    let by_udp = build(on_loopback(domain, Runtime::Shared));
    let by_tcp = build(connecting(domain, Runtime::Shared, at));
    let writer: DataWriter<Blob> = create_writer(&both, "Blob", reliable_writer(History::KeepAll));
    let readers: Vec<DataReader<Blob>> = [&by_udp, &by_tcp]
        .map(|participant| create_reader(participant, "Blob", reliable_reader(History::KeepAll)))
        .into();
    let all = [&both, &by_udp, &by_tcp];
    let matched = || writer.publication_matched_status().expect("open").current_count;
    wait_until(&all, "both match", || matched() == 2);
    for number in 0..50 {
        writer.write(&Blob::new(number, 500)).expect("room");
    }
    for reader in &readers {
        let mut taken = Vec::new();
        wait_until(&all, "all samples", || {
            taken.extend(reader.take(50).expect("open").into_iter().filter_map(|sample| sample.data));
            taken.len() == 50
        });
        assert!(taken.into_iter().zip(0..).all(|(blob, number)| blob == Blob::new(number, 500)));
    }
}

#[test]
fn tcp_participant_delivers_to_its_own_reader() {
    for runtime in RUNTIMES {
        let (domain, at) = domain_and_port();
        let participant = build(listening(domain, runtime, at));
        let writer: DataWriter<Blob> = create_writer(&participant, "Blob", reliable_writer(History::KeepAll));
        let reader: DataReader<Blob> = create_reader(&participant, "Blob", reliable_reader(History::KeepAll));
        for number in 0..100 {
            writer.write(&Blob::new(number, 1000)).expect("room");
        }
        let mut taken = 0;
        wait_until(&[&participant], "all samples", || {
            for sample in reader.take(100).expect("open") {
                assert_eq!(sample.data, Some(Blob::new(taken, 1000)));
                taken += 1;
            }
            taken == 100
        });
    }
}

#[test]
fn invalid_tcp_configuration_is_an_error_with_its_reason() {
    let domain = domain();
    let error = DomainParticipant::builder(domain).udp(false).build().map(drop).expect_err("no transport").to_string();
    assert!(error.contains("no UDP and no TCP"), "{error}");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let at = taken.local_addr().expect("it is bound");
    let error = listening(domain, Runtime::Shared, at).build().map(drop).expect_err("taken").to_string();
    assert!(error.contains(&format!("listen at tcp/{at}")), "{error}");
    let udp_alone = build(on_loopback(domain, Runtime::Shared));
    let error = udp_alone.add_peer("tcp/127.0.0.1:7400").expect_err("no TCP").to_string();
    assert!(error.contains("built without TCP"), "{error}");
}
