//! An allocator that counts, per thread, so that tests of one program can run side by side.
//!
//! A test program installs it, and asks [`allocations`] and [`peak_octets`]:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: takt_testkit::memory::Counting = takt_testkit::memory::Counting;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted.
pub struct Counting;

/// A thread that ends has no counters any more, and no test that would ask for them.
fn allocated(octets: usize) {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + octets.cast_signed());
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn freed(octets: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get() - octets.cast_signed()));
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// Counts both blocks at a time, as if it had moved.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        allocated(size);
        freed(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// How often this thread allocates in `run`; 0 unless the program has installed [`Counting`].
pub fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// How much more memory than before this thread holds at most in `run`, in octets.
pub fn peak_octets(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}
