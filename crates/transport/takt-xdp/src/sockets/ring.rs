//! Rings of an AF_XDP socket: one producer, one consumer, one of them the kernel.
//!
//! Two counters that only grow, modulo 2^32, state how many entries were produced and consumed;
//! entry `n` has the index `n` modulo the size, a power of two. The producer writes entries and
//! then its counter (release). The consumer reads the counter (acquire), then entries, and frees
//! them by its own counter (release).
//!
//! The counter of the other side is validated: an impossible value (more entries than the ring has)
//! counts as unchanged.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sockets::mapping::Mapping;

/// Plain data that a ring consists of.
///
/// # Safety
/// Any bytes must be a value of the type, and its alignment must be at most 8.
pub(crate) unsafe trait Entry: Copy {}
// SAFETY: an integer, the entry of the fill and completion rings: an address in the umem.
unsafe impl Entry for u64 {}
// SAFETY: integers, the entry of the receive and transmit rings.
unsafe impl Entry for libc::xdp_desc {}

/// Offsets in the memory of a ring, in octets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
    /// Number of entries; a power of two.
    pub(crate) size: u32,
}

impl Layout {
    /// Converts the kernel's offsets for a ring of `size` entries. `None` if an offset does not fit
    /// this machine.
    pub(crate) fn from_offsets(offsets: &libc::xdp_ring_offset, size: u32) -> Option<Self> {
        Some(Self {
            producer: usize::try_from(offsets.producer).ok()?,
            consumer: usize::try_from(offsets.consumer).ok()?,
            flags: usize::try_from(offsets.flags).ok()?,
            entries: usize::try_from(offsets.desc).ok()?,
            size,
        })
    }

    /// Returns the length of the memory in octets; `None` if it does not fit this machine.
    pub(crate) fn memory_len<T: Entry>(&self) -> Option<usize> {
        let entries = (self.size as usize).checked_mul(size_of::<T>())?;
        let ends = [self.producer.checked_add(4)?, self.consumer.checked_add(4)?, self.flags.checked_add(4)?];
        ends.into_iter().fold(self.entries.checked_add(entries), |most, end| Some(most?.max(end)))
    }
}

/// Memory of a ring, which both sides share.
#[derive(Debug)]
struct Shared<T> {
    memory: Arc<Mapping>,
    layout: Layout,
    entries: PhantomData<T>,
}

impl<T: Entry> Shared<T> {
    /// Wraps the memory. Panics unless the layout fits it and is aligned, which the kernel
    /// guarantees.
    fn new(memory: Arc<Mapping>, layout: Layout) -> Self {
        assert!(layout.size.is_power_of_two(), "the size of a ring is a power of two");
        assert!(layout.memory_len::<T>().is_some_and(|len| len <= memory.len()), "a ring ends with its memory");
        let words = [layout.producer, layout.consumer, layout.flags];
        assert!(
            words.iter().all(|at| at.is_multiple_of(4)) && layout.entries.is_multiple_of(8),
            "the parts of a ring are aligned"
        );
        Self { memory, layout, entries: PhantomData }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `new` checked that four octets from `at` lie within the memory and are aligned;
        // the memory is mapped as long as `self` lives, and both sides access these words by atomic
        // operations alone.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(at).cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.layout.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.layout.consumer)
    }

    fn entry(&self, count: u32) -> *mut T {
        let at = (count & (self.layout.size - 1)) as usize;
        // SAFETY: `at` is below the size, and `new` checked that this number of entries lies within
        // the memory.
        unsafe { self.memory.as_ptr().add(self.layout.entries).cast::<T>().add(at) }
    }

    /// Reports whether the other side requests a wake-up by a system call.
    fn needs_wakeup(&self) -> bool {
        self.word(self.layout.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// Producing side of a ring: of the fill and the transmit ring.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    shared: Shared<T>,
    /// Number of written entries, published or not.
    written: u32,
    /// Number of consumed entries when that was last read.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    /// Makes the producing side of an empty ring.
    pub(crate) fn new(memory: Arc<Mapping>, layout: Layout) -> Self {
        let shared = Shared::new(memory, layout);
        let written = shared.producer().load(Ordering::Relaxed);
        let consumed = shared.consumer().load(Ordering::Acquire);
        Self { shared, written, consumed }
    }

    /// Writes an entry, which becomes visible at [`publish`](Self::publish). Returns false if the
    /// ring is full.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if !self.has_room() {
            let consumed = self.shared.consumer().load(Ordering::Acquire);
            // Validates the counter: it lies between its last value and the number of written
            // entries.
            if consumed.wrapping_sub(self.consumed) <= self.written.wrapping_sub(self.consumed) {
                self.consumed = consumed;
            }
            if !self.has_room() {
                return false;
            }
        }
        // SAFETY: the slot is valid, and the other side does not read it: it has consumed the
        // previous entry, and this one is not published.
        unsafe { self.shared.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        true
    }

    fn has_room(&self) -> bool {
        self.written.wrapping_sub(self.consumed) < self.shared.layout.size
    }

    /// Makes all written entries visible to the other side.
    pub(crate) fn publish(&mut self) {
        self.shared.producer().store(self.written, Ordering::Release);
    }

    /// Reports whether the other side has consumed all written entries.
    pub(crate) fn is_drained(&self) -> bool {
        self.shared.consumer().load(Ordering::Acquire) == self.written
    }

    /// Reports whether a wake-up is requested; see [`Shared::needs_wakeup`].
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }
}

/// Consuming side of a ring: of the receive and the completion ring.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    shared: Shared<T>,
    /// Number of entries read.
    read: u32,
    /// Number of produced entries when that was last read.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    /// Makes the consuming side of a ring from which nothing was read.
    pub(crate) fn new(memory: Arc<Mapping>, layout: Layout) -> Self {
        let shared = Shared::new(memory, layout);
        let read = shared.consumer().load(Ordering::Relaxed);
        Self { shared, read, produced: read }
    }

    /// Takes the next entry; its slot is free for the other side after [`release`](Self::release).
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.read == self.produced {
            let produced = self.shared.producer().load(Ordering::Acquire);
            if produced.wrapping_sub(self.read) > self.shared.layout.size {
                return None;
            }
            self.produced = produced;
            if self.read == produced {
                return None;
            }
        }
        // SAFETY: the slot is valid; the other side wrote it before it published its counter, and
        // writes there again only after the release.
        let entry = unsafe { self.shared.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Frees the slots of all entries taken.
    pub(crate) fn release(&mut self) {
        self.shared.consumer().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192, size: 8 };

    fn memory() -> Arc<Mapping> {
        Arc::new(Mapping::anonymous(4096).expect("a page of memory"))
    }

    /// Makes both sides of a ring whose counters begin at `start`.
    fn ring(start: u32) -> (Producer<u64>, Consumer<u64>) {
        let memory = memory();
        let shared = Shared::<u64>::new(Arc::clone(&memory), LAYOUT);
        shared.producer().store(start, Ordering::Relaxed);
        shared.consumer().store(start, Ordering::Relaxed);
        (Producer::new(Arc::clone(&memory), LAYOUT), Consumer::new(memory, LAYOUT))
    }

    #[test]
    fn entries_are_received_in_order() {
        for start in [0, 5, u32::MAX - 20] {
            let (mut producer, mut consumer) = ring(start);
            let mut expected = 0;
            for n in 0..100 {
                assert!(producer.push(n));
                if n % 3 == 2 {
                    assert_eq!(consumer.pop(), None, "not published");
                    producer.publish();
                    for _ in 0..3 {
                        assert_eq!(consumer.pop(), Some(expected));
                        expected += 1;
                    }
                    assert_eq!(consumer.pop(), None);
                    assert!(!producer.is_drained(), "not released");
                    consumer.release();
                    assert!(producer.is_drained());
                }
            }
        }
    }

    #[test]
    fn full_ring_refuses_entries_until_a_release() {
        for start in [0, u32::MAX - 3] {
            let (mut producer, mut consumer) = ring(start);
            assert!((0..8).all(|n| producer.push(n)));
            assert!(!producer.push(8));
            producer.publish();
            assert_eq!(consumer.pop(), Some(0));
            assert!(!producer.push(8), "taken, not released");
            consumer.release();
            assert!(producer.push(8) && !producer.push(9));
        }
    }

    #[test]
    fn impossible_counters_are_ignored() {
        let (mut producer, mut consumer) = ring(0);
        producer.shared.producer().store(9, Ordering::Relaxed);
        assert_eq!(consumer.pop(), None, "nine of eight");
        consumer.shared.producer().store(u32::MAX, Ordering::Relaxed);
        assert_eq!(consumer.pop(), None, "less than nothing");
        assert!((0..8).all(|n| producer.push(n)));
        for consumed in [9, u32::MAX, 1 << 31] {
            producer.shared.consumer().store(consumed, Ordering::Relaxed);
            assert!(!producer.push(8), "{consumed} consumed of eight");
        }
    }

    #[test]
    fn wakeup_flag_of_the_other_side_is_read() {
        let (producer, _) = ring(0);
        assert!(!producer.needs_wakeup());
        producer.shared.word(LAYOUT.flags).store(1, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }

    #[test]
    #[should_panic(expected = "a ring ends with its memory")]
    fn ring_beyond_its_memory_is_refused() {
        let layout = Layout { size: 512, ..LAYOUT };
        Consumer::<u64>::new(memory(), layout);
    }

    #[test]
    fn two_threads_lose_and_duplicate_nothing() {
        const COUNT: u64 = if cfg!(miri) { 200 } else { 50_000 };
        let (mut producer, mut consumer) = ring(u32::MAX - 100);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..COUNT {
                    while !producer.push(n) {
                        producer.publish();
                        std::thread::yield_now();
                    }
                    if n % 5 == 0 {
                        producer.publish();
                    }
                }
                producer.publish();
            });
            let mut expected = 0;
            while expected < COUNT {
                match consumer.pop() {
                    Some(n) => {
                        assert_eq!(n, expected);
                        expected += 1;
                        consumer.release();
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}
