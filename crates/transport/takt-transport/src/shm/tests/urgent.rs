//! Tests of urgent datagrams: they overtake others of a connection, and have their own ring.

use std::any::Any;
use std::sync::Arc;

use takt_wire::SharedPayloadMemory;

use super::*;

fn urgent(transport: &mut ShmTransport, transport_priority: i32) -> (FlowId, Locator) {
    let opened = transport.open_flow(&FlowSpec { own_port: true, transport_priority });
    let (flow, locators) = opened.expect("a port is free");
    (flow, locators[0])
}

fn receive_urgent(transport: &mut ShmTransport, above: i32) -> Option<Vec<u8>> {
    transport.recv(Receive::Urgent { above }).expect("receive succeeds").map(|frame| frame.to_vec())
}

/// A connection whose non-urgent ring is full has room for urgent datagrams.
#[test]
fn flood_leaves_room_for_urgent_datagrams() {
    let config = ShmConfig { ring_bytes: 256 << 10, ..ShmConfig::default() };
    let (mut a, mut b) = (ShmTransport::open(&config).expect("Linux 5.14"), open());
    let (brake, to_brake) = urgent(&mut b, 46);
    send(&mut a, &[0], at(&b));
    assert_eq!(receive(&mut b), Some(vec![0]));
    while a.status().stats.send_errors.would_block == 0 {
        send(&mut a, &[1; 10_000], at(&b));
    }
    for n in 2..5 {
        send(&mut a, &[n], to_brake);
    }
    assert_eq!(a.status().stats.send_errors.would_block, 1, "the last datagram of the flood");
    assert_eq!([receive_urgent(&mut b, 0), receive_urgent(&mut b, 0)], [Some(vec![2]), Some(vec![3])]);
    let next = b.recv(Receive::Any(Scan::All)).expect("receive succeeds").map(|frame| (frame[0], frame.meta.flow));
    assert_eq!(next, Some((4, brake)), "a call for any datagram returns it first");
    assert_eq!((receive_urgent(&mut b, 0), receive(&mut b)), (None, Some(vec![1; 10_000])));
}

/// The most urgent datagram of several writers is received first.
#[test]
fn most_urgent_of_all_rings_comes_first() {
    let (mut writers, mut b) = ([open(), open(), open()], open());
    let flows = [urgent(&mut b, 1), urgent(&mut b, 30), urgent(&mut b, 46)];
    for (n, writer) in (0..).zip(&mut writers) {
        send(writer, &[9], at(&b));
        for (to, (_, locator)) in (0..).zip(&flows) {
            send(writer, &[10 * to + n], *locator);
        }
    }
    assert_eq!(receive_urgent(&mut b, 0), None, "no receive call was made before");
    let order: Vec<u8> = std::iter::from_fn(|| receive(&mut b)).map(|bytes| bytes[0] / 10).collect();
    assert_eq!(order, [2, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    for (flow, _) in flows {
        b.close_flow(flow).expect("the flow is open");
    }
    send(&mut writers[0], &[1], flows[2].1);
    assert_eq!((receive_urgent(&mut b, 0), receive(&mut b)), (None, None), "closed");
    drop(writers);
    assert_eq!(receive(&mut b), None);
    assert!(b.incoming.is_empty(), "datagrams for a closed port do not keep a ring alive");
}

/// After eight urgent datagrams, `recv` returns one that is not urgent, however many urgent ones
/// wait. `recv_not_urgent` returns one at once, and never an urgent one.
#[test]
fn flood_of_urgent_datagrams_does_not_starve_the_others() {
    let (mut a, mut b) = (open(), open());
    let (brake, to_brake) = urgent(&mut b, 46);
    send(&mut a, &[1], at(&b));
    send(&mut a, &[2], at(&b));
    (0..30).for_each(|_| send(&mut a, &[0], to_brake));
    let mut flows = Vec::new();
    while let Some(frame) = b.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
        flows.push(frame.meta.flow);
    }
    let positions: Vec<_> = (0..flows.len()).filter(|at| flows[*at] != brake).collect();
    assert_eq!((positions, flows.len()), (vec![8, 17], 32));

    (0..3).for_each(|_| send(&mut a, &[0], to_brake));
    send(&mut a, &[3], at(&b));
    let mut not_urgent = || b.recv(Receive::NotUrgent(Scan::All)).expect("receive succeeds").map(|frame| frame[0]);
    assert_eq!([not_urgent(), not_urgent()], [Some(3), None]);
    assert_eq!(std::iter::from_fn(|| receive_urgent(&mut b, 0)).count(), 3, "the datagrams are still queued");
}

/// A burst of one urgent flow does not hide a more urgent datagram within the records that the
/// reader examines.
#[test]
fn most_urgent_overtakes_a_burst_of_less_urgent_ones() {
    let (mut a, mut b) = (open(), open());
    let ((_, to_camera), (_, to_brake)) = (urgent(&mut b, 10), urgent(&mut b, 46));
    send(&mut a, &[1], at(&b));
    assert_eq!(receive(&mut b), Some(vec![1]));
    (1..ring::EXAMINED_MAX).for_each(|_| send(&mut a, &[10], to_camera));
    send(&mut a, &[46], to_brake);
    assert_eq!(receive_urgent(&mut b, 45), Some(vec![46]));
    assert_eq!(receive_urgent(&mut b, 10), None);
    assert_eq!(std::iter::from_fn(|| receive_urgent(&mut b, 0)).count(), ring::EXAMINED_MAX - 1);
}

/// An urgent datagram wakes a sleeping reader, like any other.
#[test]
fn urgent_datagram_wakes_a_sleeping_reader() {
    let (mut a, mut b) = (open(), open());
    let (_, to) = urgent(&mut b, 46);
    for n in 0..100 {
        send(&mut a, &[n], if n == 0 { at(&b) } else { to });
        assert!(crate::readiness::wait(&b.descriptors, None).expect("wait succeeds"));
        assert_eq!((receive(&mut b), receive(&mut b)), (Some(vec![n]), None));
    }
}

/// Loaned payloads and objects stay with their datagrams when an urgent one overtakes.
#[test]
fn loan_stays_with_its_datagram() {
    let (mut a, mut b) = (open(), open());
    let (_, to_brake) = urgent(&mut b, 46);
    let (_, to_steering) = urgent(&mut b, 30);
    let mut send_number = |n: u8, to: Locator| {
        let object = LoanedNumber(Arc::new(n));
        let payload = SharedPayload::new(Arc::new(object), Piece { slot: 0, generation: 1, grain: 0, len: 8 });
        assert!(a.control(Control::Connect(&to)).is_ok() && a.reach(&to) == Reach::InProcess);
        a.loan().expect("a frame is loaned")[0] = n;
        a.commit(Commit::new(1, FlowId::DEFAULT, &[to]).with(Payload::Loaned(&payload))).expect("an object");
        a.flush().expect("flush succeeds");
    };
    let to_default = at(&b);
    for (n, to) in (0..).zip([to_default, to_steering, to_steering, to_brake, to_default, to_brake]) {
        send_number(n, to);
    }
    let mut order = Vec::new();
    while let Some(frame) = b.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
        let object = frame.loan().and_then(|payload| payload.object()?.downcast_ref::<u8>()).copied();
        assert_eq!(object, Some(frame[0]));
        order.push(frame[0]);
    }
    assert_eq!(order, [3, 5, 1, 2, 0, 4]);
}

#[derive(Debug)]
struct LoanedNumber(Arc<dyn Any + Send + Sync>);

impl SharedPayloadMemory for LoanedNumber {
    fn bytes(&self, _: &Piece) -> Option<&[u8]> {
        None
    }

    fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        Some(&self.0)
    }

    fn copy_to(&self, _: &Piece, _: usize, _: &mut [u8]) {}

    fn is_intact(&self, _: &Piece) -> bool {
        true
    }

    fn retain(&self, _: &Piece) {}

    fn release(&self, _: &Piece) {}
}
