//! Objects on their way from one participant to another of the same process, where no bytes need be made of them.
//!
//! Each lane within a process has a [`HandOver`] beside each of its rings: a record in the ring says which object belongs to its
//! datagram. Both ends find it by the names of the two when the lane is made ([`offer`], [`accept`]), having asked the
//! kernel that the other end of their connection is this process. It goes with the lane, and with it what is still in it.
//!
//! A lock guards the queue for as long as one object goes in or out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_wire::{Lent, Piece};

/// The slot of a piece that is an object: none of a segment.
pub(super) const OBJECT: u32 = u32::MAX;

/// Objects for which there is room from the start.
const ROOM_AT_FIRST: usize = 64;

/// From whom to whom a lane leads.
type Names = (u64, u64);

/// Of lanes whose reader has not come for it yet.
static OFFERED: Mutex<BTreeMap<Names, HandOvers>> = Mutex::new(BTreeMap::new());

/// Of a lane, by the [bands](super::ports::Band) of its rings.
pub(super) type HandOvers = Arc<[HandOver; 2]>;

/// The objects of a ring, in the order in which their datagrams were written.
#[derive(Debug)]
pub(super) struct HandOver(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    /// The first one is there.
    objects: VecDeque<Option<Lent>>,
    /// How many there were before them.
    gone: u64,
}

/// Nobody panics while holding one of these locks, and what they guard is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HandOver {
    fn new() -> Self {
        Self(Mutex::new(Queue { objects: VecDeque::with_capacity(ROOM_AT_FIRST), gone: 0 }))
    }

    /// Adds an object. Its piece says which one it is. Allocates when more are under way than ever before.
    pub(super) fn put(&self, object: &Lent) -> Piece {
        let mut queue = lock(&self.0);
        let number = queue.gone + queue.objects.len() as u64;
        queue.objects.push_back(Some(object.clone()));
        Piece { slot: OBJECT, generation: (number >> 32) as u32, grain: number as u32, len: object.piece().len }
    }

    /// Takes back the object that was put last, whose datagram is not under way.
    pub(super) fn take_back(&self) {
        // Dropped behind the lock.
        let object = lock(&self.0).objects.pop_back();
        drop(object);
    }

    /// The object of a piece, once. Those before it may be asked for later.
    pub(super) fn take(&self, piece: &Piece) -> Option<Lent> {
        let number = u64::from(piece.generation) << 32 | u64::from(piece.grain);
        let mut queue = lock(&self.0);
        let at = number.checked_sub(queue.gone).filter(|_| piece.slot == OBJECT)?;
        let object = queue.objects.get_mut(usize::try_from(at).ok()?)?.take();
        while queue.objects.pop_front_if(|first| first.is_none()).is_some() {
            queue.gone += 1;
        }
        object
    }
}

/// The writer of a lane to this process has them for its reader.
pub(super) fn offer(from: u64, to: u64) -> HandOvers {
    let handovers = Arc::new([HandOver::new(), HandOver::new()]);
    lock(&OFFERED).insert((from, to), Arc::clone(&handovers));
    handovers
}

/// The reader of a lane from this process comes for them.
pub(super) fn accept(from: u64, to: u64) -> Option<HandOvers> {
    lock(&OFFERED).remove(&(from, to))
}

/// The writer of a lane is gone; its reader may never have come.
pub(super) fn withdraw(from: u64, to: u64) {
    drop(accept(from, to));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::Any;
    use takt_wire::LentMemory;

    #[derive(Debug)]
    struct Object(Arc<dyn Any + Send + Sync>);

    impl LentMemory for Object {
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

    fn lent(value: u64) -> Lent {
        Lent::new(Arc::new(Object(Arc::new(value))), Piece { slot: 0, generation: 1, grain: 0, len: 8 })
    }

    fn value(lent: &Lent) -> u64 {
        *lent.object().and_then(|object| object.downcast_ref::<u64>()).expect("a number was put")
    }

    #[test]
    fn each_datagram_gets_its_object() {
        let handover = HandOver::new();
        let pieces: Vec<Piece> = (0..5).map(|number| handover.put(&lent(number))).collect();
        assert_eq!(handover.take(&pieces[0]).as_ref().map(value), Some(0));
        // What is urgent comes first.
        for number in [3, 1, 2] {
            assert_eq!(handover.take(&pieces[number]).as_ref().map(value), Some(number as u64));
        }
        assert!(handover.take(&pieces[1]).is_none() && handover.take(&pieces[3]).is_none(), "these are gone");
        handover.take_back();
        assert!(handover.take(&pieces[4]).is_none());
        assert_eq!(handover.put(&lent(9)), pieces[4], "a datagram that could not go out leaves no trace");
        assert!(handover.take(&Piece { slot: 3, ..pieces[4] }).is_none(), "no object");
        assert_eq!(handover.take(&pieces[4]).as_ref().map(value), Some(9));
    }

    #[test]
    fn what_is_under_way_goes_with_the_lane() {
        let object = Arc::new(7_u64);
        let shared = Lent::new(Arc::new(Object(object.clone())), Piece { slot: 0, generation: 1, grain: 0, len: 8 });
        let (from, to) = (u64::MAX, u64::MAX - 1);
        let here = offer(from, to);
        here[1].put(&shared);
        drop(shared);
        let there = accept(from, to).expect("it was offered");
        assert!(accept(from, to).is_none());
        assert_eq!(Arc::strong_count(&object), 2);
        drop((here, there));
        assert_eq!(Arc::strong_count(&object), 1);
        drop(offer(from, to));
        withdraw(from, to);
        assert!(accept(from, to).is_none());
    }
}
