//! Transfer of objects between participants of the same process, without serialization.
//!
//! Each ring within a process has a [`HandOver`]: a record in the ring states which object belongs
//! to its datagram. Writer and reader find it by their two names when the connection is made
//! ([`offer`], [`accept`]), after the kernel has confirmed that the peer is this process. Objects
//! that were not taken are dropped with the connection.
//!
//! A lock protects the queue while one object is added or removed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_wire::{Piece, SharedPayload};

/// Slot number that marks a piece as an object; no segment has this slot.
pub(super) const OBJECT: u32 = u32::MAX;

/// Initial capacity of a queue, in objects.
const INITIAL_CAPACITY: usize = 64;

/// Names of the writer and the reader.
type Names = (u64, u64);

/// Queues that the reader has not accepted yet.
static OFFERED: Mutex<BTreeMap<Names, HandOvers>> = Mutex::new(BTreeMap::new());

/// Queues of a connection, by the [bands](super::ports::Band) of its rings.
pub(super) type HandOvers = Arc<[HandOver; 2]>;

/// Objects of a ring, in the order in which their datagrams were written.
#[derive(Debug)]
pub(super) struct HandOver(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    /// Objects; the first is always present.
    objects: VecDeque<Option<SharedPayload>>,
    /// Number of objects that preceded the first.
    removed: u64,
}

/// Locks a mutex. No code panics while it holds one of these locks, and the protected state is
/// always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HandOver {
    fn new() -> Self {
        Self(Mutex::new(Queue { objects: VecDeque::with_capacity(INITIAL_CAPACITY), removed: 0 }))
    }

    /// Adds an object and returns the piece that identifies it. Allocates when more objects are
    /// queued than ever before.
    pub(super) fn put(&self, object: &SharedPayload) -> Piece {
        let mut queue = lock(&self.0);
        let number = queue.removed + queue.objects.len() as u64;
        queue.objects.push_back(Some(object.clone()));
        Piece { slot: OBJECT, generation: (number >> 32) as u32, grain: number as u32, len: object.piece().len }
    }

    /// Removes the object that was added last, whose datagram was not sent.
    pub(super) fn remove_last(&self) {
        // Dropped outside the lock.
        let object = lock(&self.0).objects.pop_back();
        drop(object);
    }

    /// Takes the object of a piece, once. Earlier objects can be taken later.
    pub(super) fn take(&self, piece: &Piece) -> Option<SharedPayload> {
        let number = u64::from(piece.generation) << 32 | u64::from(piece.grain);
        let mut queue = lock(&self.0);
        let at = number.checked_sub(queue.removed).filter(|_| piece.slot == OBJECT)?;
        let object = queue.objects.get_mut(usize::try_from(at).ok()?)?.take();
        while queue.objects.pop_front_if(|first| first.is_none()).is_some() {
            queue.removed += 1;
        }
        object
    }
}

/// Offers queues to the reader, for a connection from a writer of this process.
pub(super) fn offer(from: u64, to: u64) -> HandOvers {
    let handovers = Arc::new([HandOver::new(), HandOver::new()]);
    lock(&OFFERED).insert((from, to), Arc::clone(&handovers));
    handovers
}

/// Takes the queues that the writer in this process offered.
pub(super) fn accept(from: u64, to: u64) -> Option<HandOvers> {
    lock(&OFFERED).remove(&(from, to))
}

/// Withdraws an offer, because the writer is gone before the reader accepted it.
pub(super) fn withdraw(from: u64, to: u64) {
    drop(accept(from, to));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::Any;
    use takt_wire::SharedPayloadMemory;

    #[derive(Debug)]
    struct Object(Arc<dyn Any + Send + Sync>);

    impl SharedPayloadMemory for Object {
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

    fn payload(value: u64) -> SharedPayload {
        SharedPayload::new(Arc::new(Object(Arc::new(value))), Piece { slot: 0, generation: 1, grain: 0, len: 8 })
    }

    fn value(payload: &SharedPayload) -> u64 {
        *payload.object().and_then(|object| object.downcast_ref::<u64>()).expect("the number was stored")
    }

    #[test]
    fn each_datagram_gets_its_object() {
        let handover = HandOver::new();
        let pieces: Vec<Piece> = (0..5).map(|number| handover.put(&payload(number))).collect();
        assert_eq!(handover.take(&pieces[0]).as_ref().map(value), Some(0));
        // Urgent datagrams are taken first.
        for number in [3, 1, 2] {
            assert_eq!(handover.take(&pieces[number]).as_ref().map(value), Some(number as u64));
        }
        assert!(handover.take(&pieces[1]).is_none() && handover.take(&pieces[3]).is_none(), "the pieces are gone");
        handover.remove_last();
        assert!(handover.take(&pieces[4]).is_none());
        assert_eq!(handover.put(&payload(9)), pieces[4], "a datagram that could not be sent leaves no object");
        assert!(handover.take(&Piece { slot: 3, ..pieces[4] }).is_none(), "no object");
        assert_eq!(handover.take(&pieces[4]).as_ref().map(value), Some(9));
    }

    #[test]
    fn queued_objects_are_dropped_with_the_connection() {
        let object = Arc::new(7_u64);
        let shared =
            SharedPayload::new(Arc::new(Object(object.clone())), Piece { slot: 0, generation: 1, grain: 0, len: 8 });
        let (from, to) = (u64::MAX, u64::MAX - 1);
        let here = offer(from, to);
        here[1].put(&shared);
        drop(shared);
        let there = accept(from, to).expect("the object was offered");
        assert!(accept(from, to).is_none());
        assert_eq!(Arc::strong_count(&object), 2);
        drop((here, there));
        assert_eq!(Arc::strong_count(&object), 1);
        drop(offer(from, to));
        withdraw(from, to);
        assert!(accept(from, to).is_none());
    }
}
