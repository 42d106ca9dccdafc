//! Tests of loaned payloads: arrival, lifetime of holds, and invalid pieces.

use super::*;

/// Makes the payload of this number and length.
fn content(n: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| n ^ (at / 3) as u8).collect()
}

fn write_loan(transport: &mut ShmTransport, n: u8, len: usize) -> Option<SharedPayload> {
    let mut loan = transport.loan_payload(len)?;
    loan.bytes_mut().copy_from_slice(&content(n, len));
    Some(loan.finish(len))
}

fn send_loan(transport: &mut ShmTransport, payload: &SharedPayload, to: &[Locator]) {
    transport.loan().expect("a frame is loaned")[..5].copy_from_slice(b"hello");
    transport
        .commit(Commit::new(5, FlowId::DEFAULT, to).with(Payload::Loaned(payload)))
        .expect("the loan is from this transport");
    transport.flush().expect("flush succeeds");
}

/// Receives a datagram with a known text, and returns the loan that came with it.
fn receive_loan(transport: &mut ShmTransport) -> SharedPayload {
    let frame = transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").expect("the datagram was sent");
    assert_eq!(frame.bytes(), b"hello");
    frame.loan().cloned().expect("the payload is loaned")
}

fn copy_of(payload: &SharedPayload) -> Vec<u8> {
    let mut bytes = vec![0; payload.len()];
    payload.copy_to(0, &mut bytes);
    bytes
}

/// Opens a transport whose segment has room for one slot of 60 KiB.
fn open_small() -> ShmTransport {
    ShmTransport::open(&ShmConfig { segment_bytes: 64 << 10, ..ShmConfig::default() }).expect("Linux 5.14")
}

const LEN: usize = 60_000;

#[test]
fn payload_arrives_where_it_was_written() {
    let (mut a, mut b) = (open(), open());
    for (n, len) in (0..).zip([4, 5, 4096, 1_000_003]) {
        let payload = write_loan(&mut a, n, len).expect("the segment has free space");
        send_loan(&mut a, &payload, &[at(&b)]);
        let received = receive_loan(&mut b);
        assert_eq!((copy_of(&received), received.is_intact()), (content(n, len), true));
        assert!(received.bytes().is_none(), "not to be trusted");
        for (from, count) in [(1, 2), (3, 1), (len - 3, 9), (len, 1), (len / 2 + 1, 1003)] {
            let (mut some, mut expected) = (vec![7; count], vec![7; count]);
            received.copy_to(from, &mut some);
            let end = content(n, len);
            for (to, byte) in expected.iter_mut().zip(&end[from..]) {
                *to = *byte;
            }
            assert_eq!(some, expected, "{count} from {from} of {len}");
        }
    }
    assert_eq!((b.status().stats.receive_errors, a.status().stats.send_errors.total()), (0, 0));
}

/// All readers share one slot, which is not written again while any reader or the writer has it.
#[test]
fn slot_is_kept_until_its_last_user_releases_it() {
    let (mut a, mut readers) = (open_small(), [open(), open(), open()]);
    let payload = write_loan(&mut a, 1, LEN).expect("the segment has free space");
    let to = readers.each_ref().map(at);
    send_loan(&mut a, &payload, &to);
    assert!(write_loan(&mut a, 2, LEN).is_none(), "the writer holds the slot");
    drop(payload);
    let loans = readers.each_mut().map(receive_loan);
    let more = loans.clone();
    for reader in &mut readers {
        assert_eq!(receive(reader), None);
    }
    for one in loans.into_iter().chain(more) {
        assert!(write_loan(&mut a, 2, LEN).is_none(), "a reader holds the slot");
        assert_eq!((copy_of(&one), one.is_intact()), (content(1, LEN), true));
    }
    assert!(write_loan(&mut a, 2, LEN).is_some());
}

/// A loan in transit, or to a closed port, holds its slot only until it is received or dropped.
#[test]
fn undelivered_loan_is_released() {
    let (mut a, mut b) = (open_small(), open());
    let closed = Locator { port: 4_000, ..at(&b) };
    for to in [closed, at(&b)] {
        let payload = write_loan(&mut a, 1, LEN).expect("free");
        send_loan(&mut a, &payload, &[to]);
        drop(payload);
        assert!(write_loan(&mut a, 1, LEN).is_none(), "the payload is in transit");
        while b.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    }
    let unreachable = a.host.locator(1, USER);
    let payload = write_loan(&mut a, 1, LEN).expect("free");
    send_loan(&mut a, &payload, &[unreachable]);
    drop(payload);
    assert!(write_loan(&mut a, 1, LEN).is_some(), "no reader is left");
}

/// A full ring holds no loan that it did not accept.
#[test]
fn loan_without_room_in_the_ring_is_not_held() {
    let config = ShmConfig { ring_bytes: 256 << 10, segment_bytes: 64 << 10, ..ShmConfig::default() };
    let (mut a, b) = (ShmTransport::open(&config).expect("Linux 5.14"), open());
    let before = write_loan(&mut a, 1, LEN).expect("free");
    while a.status().stats.send_errors.would_block == 0 {
        send(&mut a, &[0; 60_000], at(&b));
    }
    while a.status().stats.send_errors.would_block < 100 {
        send(&mut a, &[], at(&b));
    }
    send_loan(&mut a, &before, &[at(&b)]);
    assert_eq!(a.status().stats.send_errors.would_block, 101);
    drop(before);
    assert!(write_loan(&mut a, 2, LEN).is_some());
}

#[test]
fn closed_reader_holds_no_slots() {
    let (mut a, b) = (open_small(), open());
    let payload = write_loan(&mut a, 1, LEN).expect("free");
    send_loan(&mut a, &payload, &[at(&b)]);
    drop(payload);
    assert!(write_loan(&mut a, 2, LEN).is_none());
    drop(b);
    assert_eq!(receive(&mut a), None);
    assert!(write_loan(&mut a, 2, LEN).is_some());
}

/// The transport of a reader is closed while the application still has a loan.
#[test]
fn loan_that_outlives_its_transport_is_held() {
    let (mut a, mut b) = (open_small(), open());
    let payload = write_loan(&mut a, 1, LEN).expect("free");
    send_loan(&mut a, &payload, &[at(&b)]);
    drop(payload);
    let received = receive_loan(&mut b);
    drop(b);
    assert_eq!((receive(&mut a), poll_lost(&mut a).is_some()), (None, true));
    assert!(write_loan(&mut a, 2, LEN).is_none());
    assert_eq!((copy_of(&received), received.is_intact()), (content(1, LEN), true));
    drop(received);
    assert_eq!((receive(&mut a), poll_lost(&mut a)), (None, None));
    assert!(write_loan(&mut a, 2, LEN).is_some());
}

#[test]
fn loan_outlives_its_owner() {
    let (mut a, mut b) = (open(), open());
    let payload = write_loan(&mut a, 1, LEN).expect("free");
    send_loan(&mut a, &payload, &[at(&b)]);
    let received = receive_loan(&mut b);
    drop((payload, a));
    assert_eq!(receive(&mut b), None);
    assert!(b.incoming.is_empty());
    assert_eq!((copy_of(&received), received.is_intact()), (content(1, LEN), true));
}

/// The generation reveals a lender that overwrites its own loan.
#[test]
fn overwritten_loan_is_not_intact() {
    let (mut a, mut b) = (open_small(), open());
    let payload = write_loan(&mut a, 1, LEN).expect("free");
    send_loan(&mut a, &payload, &[at(&b)]);
    drop(payload);
    let received = receive_loan(&mut b);
    let overwritten = a.outgoing.segment.as_mut().expect("a segment").loan(LEN, |_| false).expect("a free slot");
    assert!(!received.is_intact());
    drop((overwritten, received));
}

#[test]
fn loan_of_another_transport_is_refused() {
    let (mut a, mut b) = (open(), open());
    let other_payload = write_loan(&mut b, 1, LEN).expect("free");
    a.loan().expect("a frame is loaned");
    assert!(a.commit(Commit::new(5, FlowId::DEFAULT, &[at(&b)]).with(Payload::Loaned(&other_payload))).is_err());
    let own = write_loan(&mut a, 1, LEN).expect("free");
    assert!(
        a.commit(Commit::new(RECORD_LEN_MAX - 15, FlowId::DEFAULT, &[at(&b)]).with(Payload::Loaned(&own))).is_err()
    );
    assert_eq!(receive(&mut b), None);
}

/// Invalid pieces are dropped with their datagrams and counted; the connection stays open.
#[test]
fn invalid_loan_locations_are_dropped() {
    let (mut valid_peer, mut b) = (open(), open());
    let mut raw_peer = RawPeer::connect_to(&b);
    let valid = raw_peer.segment.loan(5000, |_| false).expect("free").finish(5000).piece();
    raw_peer.send(&raw_peer.hello(&b).to_bytes(), true);
    let set_holds = |slot: u32, count: u64| raw_peer.memory.holds()[slot as usize].store(count, Ordering::Relaxed);
    let end = (raw_peer.segment.words() * 8 / Piece::GRAIN) as u32;
    let pieces = [
        Piece { slot: 1024, ..valid },
        Piece { slot: u32::MAX, ..valid },
        Piece { slot: valid.slot + 1, ..valid },
        Piece { generation: valid.generation + 1, ..valid },
        Piece { generation: 0, ..valid },
        Piece { generation: 0, slot: valid.slot + 1, ..valid },
        Piece { grain: 0, ..valid },
        Piece { grain: valid.grain - 1, ..valid },
        Piece { grain: end, ..valid },
        Piece { grain: end - 1, len: 65, ..valid },
        Piece { grain: u32::MAX, len: u32::MAX, ..valid },
        Piece { len: u32::MAX, ..valid },
        Piece { len: 3, ..valid },
        Piece { len: 0, ..valid },
    ];
    let mut tail = ring::Tail::default();
    let ports = ring::Ports { to: USER | HAS_LOAN, from: 3 };
    let mut push = |bytes: &[u8]| tail.push(raw_peer.ring(), ports, bytes).expect("the ring has free space");
    raw_peer.memory.holds().iter().for_each(|hold| hold.store(1, Ordering::Relaxed));
    let mut refused = 0;
    for piece in pieces {
        push(&[b"hello", &piece.to_bytes()[..]].concat());
        refused += 1;
        assert_eq!((receive(&mut b), b.status().stats.receive_errors), (None, refused), "{piece:?}");
    }
    // A record too short for a piece, and a piece without a hold.
    push(&[9; Piece::LEN - 1]);
    assert_eq!((receive(&mut b), b.status().stats.receive_errors), (None, refused + 1));
    set_holds(valid.slot, 0);
    push(&[b"hello", &valid.to_bytes()[..]].concat());
    assert_eq!((receive(&mut b), b.status().stats.receive_errors), (None, refused + 2));
    // The same piece with a hold is accepted, so its description was not the reason of the refusal.
    set_holds(valid.slot, 1);
    push(&[b"hello", &valid.to_bytes()[..]].concat());
    let received = receive_loan(&mut b);
    assert_eq!((received.len(), received.is_intact()), (5000, true));
    // Overlapping pieces harm only the lender.
    let inner = Piece { grain: valid.grain + 1, len: 100, ..valid };
    set_holds(valid.slot, 2);
    push(&[b"hello", &inner.to_bytes()[..]].concat());
    let overlapping = receive_loan(&mut b);
    drop((received, overlapping));
    assert_eq!(receive(&mut b), None);
    send(&mut valid_peer, &[2], at(&b));
    assert_eq!(receive(&mut b), Some(vec![2]));
}

/// A reader that never releases, or writes invalid hold counters, costs its lender only the slots
/// that it was loaned.
#[test]
fn reader_that_never_releases_keeps_only_its_loans() {
    let config = ShmConfig { segment_bytes: 64 << 20, ..ShmConfig::default() };
    let (mut a, mut greedy, mut b) = (ShmTransport::open(&config).expect("Linux 5.14"), open(), open());
    let mut loans = Vec::new();
    while let Some(payload) = write_loan(&mut a, 1, 8 << 20) {
        send_loan(&mut a, &payload, &[at(&greedy)]);
        drop(payload);
        loans.push(receive_loan(&mut greedy));
    }
    assert_eq!(loans.len(), 8, "64 MiB in slots of 8");
    send(&mut a, b"copied", at(&b));
    assert_eq!(receive(&mut b), Some(b"copied".to_vec()));
    drop((loans, greedy));
    assert_eq!(receive(&mut a), None);
    assert!(write_loan(&mut a, 1, 8 << 20).is_some());
}
