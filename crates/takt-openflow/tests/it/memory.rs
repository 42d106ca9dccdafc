//! Counts the memory that a call of this thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn change(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size().cast_signed());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        change(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most octets that `call` held at a time.
pub fn peak_of(call: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    call();
    usize::try_from(PEAK.get() - before).expect("it does not free what it did not allocate")
}
