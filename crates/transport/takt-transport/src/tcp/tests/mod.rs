//! Tests of TCP connections: opening, loss, merging, malicious peers.

#[cfg(feature = "tls")]
mod encrypted;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::*;
use crate::{ConnectionCounts, readiness};

/// Time limit for expected events.
const TIMEOUT: Duration = Duration::from_secs(20);

fn without_listener() -> TcpConfig {
    TcpConfig { interfaces: crate::udp::InterfaceSelection::Named(vec!["lo".into()]), ..TcpConfig::default() }
}

fn listener() -> TcpConfig {
    TcpConfig { listen: vec![(Ipv4Addr::LOCALHOST, 0).into()], ..without_listener() }
}

fn open(config: &TcpConfig) -> TcpTransport {
    TcpTransport::open(config).expect("loopback can be used")
}

fn listener_locator(transport: &TcpTransport) -> Locator {
    transport.status().locators.default_unicast[0]
}

fn address(locator: Locator) -> SocketAddr {
    let port = u16::try_from(locator.port).expect("a port");
    SocketAddr::new(locator.ip().expect("an address"), port)
}

/// Makes a message of this participant.
fn message(participant: u8, text: &[u8]) -> Vec<u8> {
    let mut message = b"RTPS\x02\x05".to_vec();
    message.extend_from_slice(&takt_wire::VendorId::TAKT.0);
    message.extend_from_slice(&[participant; 12]);
    message.extend_from_slice(text);
    message
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; LENGTH];
    frame.extend_from_slice(message);
    framing::wrap(&mut frame);
    frame
}

fn send(transport: &mut TcpTransport, participant: u8, text: &[u8], to: Locator) {
    let message = message(participant, text);
    transport.loan().expect("a frame is loaned")[..message.len()].copy_from_slice(&message);
    transport.commit(Commit::new(message.len(), FlowId::DEFAULT, &[to])).expect("the frame is accepted");
    transport.flush().expect("flush succeeds");
}

/// Receives a message, and returns it without its header, with its source.
fn receive_with_source(transport: &mut TcpTransport) -> Option<(Vec<u8>, Locator)> {
    let frame = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds")?;
    Some((frame[framing::HEADER..].to_vec(), frame.meta.source))
}

/// Drives all transports until the condition holds.
fn drive_until<T>(
    transports: &mut [&mut TcpTransport],
    mut find: impl FnMut(&mut [&mut TcpTransport]) -> Option<T>,
) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = find(transports) {
            return found;
        }
        assert!(since.elapsed() < TIMEOUT, "the wait timed out");
        let all: Vec<RawFd> = transports.iter().flat_map(|transport| transport.status().descriptors.to_vec()).collect();
        readiness::wait(&all, Some(Duration::from_millis(20))).expect("wait succeeds");
    }
}

/// Drives all transports until the last one receives a message; the others must receive none.
fn receive(transports: &mut [&mut TcpTransport]) -> (Vec<u8>, Locator) {
    drive_until(transports, |transports| {
        let (last, others) = transports.split_last_mut().expect("somebody");
        others.iter_mut().for_each(|other| assert_eq!(receive_with_source(other), None));
        receive_with_source(last)
    })
}

/// Drives one transport until its counters satisfy the condition.
fn until_counted(transport: &mut TcpTransport, condition: impl Fn(&ConnectionCounts) -> bool) {
    drive_until(&mut [transport], |all| {
        assert_eq!(receive_with_source(all[0]), None);
        condition(&all[0].status().stats.connections).then_some(())
    });
}

#[test]
fn participant_without_listener_is_answered_by_its_connection() {
    let (mut a, mut b) = (open(&without_listener()), open(&listener()));
    assert_eq!(a.status().locators, &Locators::default());
    let at_b = listener_locator(&b);
    send(&mut a, 1, b"question", at_b);
    let (text, at_a) = receive(&mut [&mut a, &mut b]);
    assert_eq!(text, b"question");
    assert!(at_a.port > 65_535 && b.reach(&at_a).is_served(), "{at_a}");
    send(&mut b, 2, b"answer", at_a);
    assert_eq!(receive(&mut [&mut b, &mut a]), (b"answer".to_vec(), at_b));
    assert_eq!((a.status().stats.connections.opened, b.status().stats.connections.opened), (1, 1));
}

#[test]
fn lost_connection_is_reopened_and_keeps_its_locator() {
    let (mut a, mut b) = (open(&without_listener()), open(&listener()));
    let at_b = listener_locator(&b);
    send(&mut a, 1, b"first", at_b);
    let (_, at_a) = receive(&mut [&mut a, &mut b]);
    send(&mut b, 2, b"answer", at_a);
    receive(&mut [&mut b, &mut a]);
    for round in 0..3 {
        let token = b.connections.iter().next().expect("a connection is open").token;
        b.close(token, Instant::now());
        send(&mut b, 2, b"lost", at_a);
        assert_eq!(b.status().stats.send_errors.host_unreachable, round + 1, "no connection exists");
        // No message is sent: A reconnects without being asked, and B recognizes it by its first
        // message.
        until_counted(&mut a, |counts| counts.opened == round + 2 && counts.lost == round + 1);
        send(&mut a, 1, b"again", at_b);
        assert_eq!(receive(&mut [&mut a, &mut b]), (b"again".to_vec(), at_a));
        send(&mut b, 2, b"and back", at_a);
        assert_eq!(receive(&mut [&mut b, &mut a]).0, b"and back");
    }
}

#[test]
fn attempts_become_rarer_at_a_closed_port() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let to = Locator { kind: Locator::KIND_TCP_V4, ..closed.local_addr().expect("the socket is bound").into() };
    drop(closed);
    let mut a = open(&without_listener());
    for _ in 0..1000 {
        send(&mut a, 1, b"anybody?", to);
    }
    let stats = a.status().stats;
    assert_eq!(stats.send_errors.host_unreachable + stats.datagrams_out, 1000);
    assert!((1..20).contains(&stats.connections.failed), "{:?}", stats.connections);
}

#[test]
fn two_connections_are_merged() {
    for lower_first in [true, false] {
        let (mut a, mut b) = (open(&listener()), open(&listener()));
        let (at_a, at_b) = (listener_locator(&a), listener_locator(&b));
        let (a_is, b_is) = if lower_first { (1, 2) } else { (2, 1) };
        send(&mut a, a_is, b"from a", at_b);
        send(&mut b, b_is, b"from b", at_a);
        let (accepted_b, accepted_a) = drive_until(&mut [&mut a, &mut b], {
            let mut accepted = (None, None);
            move |all| {
                accepted.0 = accepted.0.or_else(|| receive_with_source(all[0]).map(|(_, source)| source));
                accepted.1 = accepted.1.or_else(|| receive_with_source(all[1]).map(|(_, source)| source));
                accepted.0.zip(accepted.1)
            }
        });
        // No further message is sent, and yet both detect it.
        drive_until(&mut [&mut a, &mut b], |all| {
            all.iter_mut().for_each(|one| assert_eq!(receive_with_source(one), None));
            all.iter().all(|one| one.connections.len() == 1).then_some(())
        });
        let merged = (a.status().stats.connections.merged, b.status().stats.connections.merged);
        assert_eq!(merged, if lower_first { (0, 1) } else { (1, 0) }, "the higher address closes");
        // Both links still work.
        for to in [at_b, accepted_b] {
            send(&mut a, a_is, b"still", to);
            assert_eq!(receive(&mut [&mut a, &mut b]).0, b"still");
        }
        for to in [at_a, accepted_a] {
            send(&mut b, b_is, b"still", to);
            assert_eq!(receive(&mut [&mut b, &mut a]).0, b"still");
        }
        assert_eq!((a.connections.len(), b.connections.len()), (1, 1));
    }
}

#[test]
fn invalid_stream_closes_its_connection() {
    let mut b = open(&listener());
    let valid = framed(&message(7, b"good"));
    let mut garbage_behind = valid.clone();
    garbage_behind.extend_from_slice(b"GET / HTTP/1.1\r\n");
    let mut too_long = valid.clone();
    too_long[24..28].copy_from_slice(&70_000_u32.to_le_bytes());
    for (count, (bytes, whole)) in
        (1..).zip([(&b"G"[..], 0), (&garbage_behind, 1), (&too_long, 0), (b"RTPS\x02\x05............\x15", 0)])
    {
        let bytes =
            if bytes.len() < 28 && bytes.starts_with(b"RTPS") { [bytes, &[0; 28]].concat() } else { bytes.to_vec() };
        let mut malicious = TcpStream::connect(address(listener_locator(&b))).expect("the peer listens");
        malicious.write_all(&bytes).expect("the write succeeds");
        let mut texts = 0;
        drive_until(&mut [&mut b], |all| {
            texts += u64::from(receive_with_source(all[0]).is_some());
            (all[0].status().stats.connections.malformed == count).then_some(())
        });
        assert_eq!(texts, whole, "earlier messages are complete");
        assert_eq!(b.connections.len(), 0);
        malicious.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        assert!(!matches!(malicious.read(&mut [0; 8]), Ok(1..)), "closed");
    }
}

#[test]
fn connection_without_a_message_expires() {
    let mut b = open(&TcpConfig { open_timeout: Duration::from_millis(50), ..listener() });
    let mut silent = TcpStream::connect(address(listener_locator(&b))).expect("the peer listens");
    // An incomplete message is not enough.
    silent.write_all(&framed(&message(7, b"late"))[..27]).expect("the write succeeds");
    until_counted(&mut b, |counts| counts.expired == 1);
    assert_eq!((b.connections.len(), b.status().stats.datagrams_in), (0, 0));
}

#[test]
fn connection_with_a_message_may_be_silent() {
    let mut b = open(&TcpConfig { open_timeout: Duration::from_millis(20), ..listener() });
    let mut idle = TcpStream::connect(address(listener_locator(&b))).expect("the peer listens");
    idle.write_all(&framed(&message(7, b"hello"))).expect("the write succeeds");
    receive(&mut [&mut b]);
    let mut silent = TcpStream::connect(address(listener_locator(&b))).expect("the peer listens");
    silent.write_all(b"RTPS").expect("the write succeeds");
    until_counted(&mut b, |counts| counts.expired == 1);
    assert_eq!(b.connections.len(), 1);
}

#[test]
fn connections_are_bounded() {
    let config = TcpConfig { connections_max: 4, unidentified_max: 2, connections_per_address_max: 3, ..listener() };
    let mut b = open(&config);
    let connect = || TcpStream::connect(address(listener_locator(&b))).expect("the connection is accepted");
    let silent: Vec<TcpStream> = (0..2).map(|_| connect()).collect();
    let identified = connect();
    until_counted(&mut b, |counts| counts.opened == 3);
    assert_eq!(
        (b.status().stats.connections.expired, b.connections.len()),
        (1, 2),
        "the oldest silent connection was closed"
    );
    let mut identify = |mut stream: TcpStream, participant| {
        stream.write_all(&framed(&message(participant, b"me"))).expect("the write succeeds");
        receive(&mut [&mut b]);
        stream
    };
    let identified = identify(identified, 1);
    let mut more: Vec<TcpStream> = Vec::new();
    for participant in 2..4 {
        let one = TcpStream::connect(identified.peer_addr().expect("the stream is open")).expect("accepted");
        if participant == 2 {
            more.push(identify(one, participant));
        } else {
            more.push(one);
        }
    }
    until_counted(&mut b, |counts| counts.refused == 1);
    assert_eq!(b.connections.with_address(Ipv4Addr::LOCALHOST.into()), 3);
    drop((silent, more));
}

#[test]
fn queue_is_bounded_and_lost_messages_are_counted() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let to = Locator { kind: Locator::KIND_TCP_V4, ..listener.local_addr().expect("the socket is bound").into() };
    let mut a = open(&TcpConfig { send_queue_bytes: 0, ..without_listener() });
    let mut sent = 0_u64;
    while a.status().stats.send_errors.would_block < 10 {
        send(&mut a, 1, &[7; 60_000], to);
        sent += 1;
        assert!(sent < 10_000, "the kernel buffers are finite");
    }
    assert_eq!(a.status().stats.datagrams_out, sent - 10);
    // Queued messages arrive whole, as soon as there is a receiver.
    let (mut reader, _) = listener.accept().expect("the connection is accepted");
    let expected = a.status().stats.datagrams_out as usize * (LENGTH + framing::HEADER + 60_000);
    let drained = std::thread::spawn(move || {
        let mut bytes = vec![0; expected];
        reader.read_exact(&mut bytes).expect("all accepted octets arrive");
        let mut at = 0;
        while let Ok(Some(len)) = framing::next(&bytes[at..]) {
            at += len;
        }
        at
    });
    drive_until(&mut [&mut a], |all| {
        assert_eq!(receive_with_source(all[0]), None);
        drained.is_finished().then_some(())
    });
    assert_eq!(drained.join().expect("the reader received everything"), expected);
}

#[test]
fn only_rtps_messages_are_carried() {
    let (mut a, b) = (open(&without_listener()), open(&listener()));
    a.loan().expect("a frame is loaned")[..24].fill(b'x');
    let error = a.commit(Commit::new(24, FlowId::DEFAULT, &[listener_locator(&b)])).expect_err("no header").to_string();
    assert!(error.contains("RTPS header"), "{error}");
    // The frame is still loaned.
    send(&mut a, 1, b"", listener_locator(&b));
}

/// Opens a connection that carries nothing.
fn silent(to: Locator) -> TcpStream {
    TcpStream::connect(address(to)).expect("the connection is accepted")
}

#[test]
fn flood_of_silent_connections_leaves_room_for_a_participant() {
    let mut b = open(&listener());
    let mut flood = Vec::new();
    // Fewer at once than the backlog of a listener.
    for round in 1..=10 {
        flood.extend((0..20).map(|_| silent(listener_locator(&b))));
        until_counted(&mut b, |counts| counts.opened + counts.refused == 20 * round);
    }
    let counts = b.status().stats.connections;
    assert_eq!(
        (b.connections.len(), counts.expired, counts.refused),
        (16, 184, 0),
        "above unproven_max, the oldest connection was closed"
    );
    let mut a = open(&without_listener());
    send(&mut a, 1, b"let me in", listener_locator(&b));
    assert_eq!(receive(&mut [&mut a, &mut b]).0, b"let me in");
    drop(flood);
}

#[test]
fn zeros_and_giant_lengths_are_counted_and_cost_no_memory() {
    let mut b = open(&listener());
    let giant = |len: u32| {
        let mut frame = framed(&message(7, b""));
        frame[24..28].copy_from_slice(&len.to_le_bytes());
        frame
    };
    for (count, bytes) in (1..).zip([vec![0; 100_000], giant(u32::MAX), giant(65_537), giant(0), giant(27)]) {
        let mut malicious = silent(listener_locator(&b));
        // The connection may be closed before all is written.
        let _ = malicious.write_all(&bytes);
        until_counted(&mut b, |counts| counts.malformed == count);
    }
    assert_eq!((b.connections.len(), b.status().stats.datagrams_in), (0, 0));
}

#[test]
fn slow_sender_delays_no_other() {
    let mut b = open(&listener());
    let frame = framed(&message(7, &[1; 60_000]));
    let mut slow = silent(listener_locator(&b));
    slow.write_all(&framed(&message(7, b"proven"))).expect("the write succeeds");
    assert_eq!(receive(&mut [&mut b]).0, b"proven");
    slow.write_all(&frame[..frame.len() - 1]).expect("the write succeeds");
    let mut a = open(&without_listener());
    for _ in 0..100 {
        send(&mut a, 1, b"meanwhile", listener_locator(&b));
        assert_eq!(receive(&mut [&mut a, &mut b]).0, b"meanwhile");
    }
    slow.write_all(&frame[frame.len() - 1..]).expect("the write succeeds");
    assert_eq!(receive(&mut [&mut b]).0.len(), 60_000);
}

#[test]
fn half_closed_connection_delivers_its_messages_and_ends() {
    let mut b = open(&listener());
    let mut half = silent(listener_locator(&b));
    half.write_all(&framed(&message(7, b"last words"))).expect("the write succeeds");
    half.shutdown(std::net::Shutdown::Write).expect("the stream is open");
    assert_eq!(receive(&mut [&mut b]).0, b"last words");
    until_counted(&mut b, |counts| counts.lost == 1);
    assert_eq!(b.connections.len(), 0);
}
