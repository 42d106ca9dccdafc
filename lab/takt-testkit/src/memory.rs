//! Counting allocator for tests. It counts per thread, so that tests of one program can run in
//! parallel.
//!
//! A test program installs it, and calls [`allocations`] and [`peak_octets`]:
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

/// System allocator with counters.
pub struct Counting;

/// A thread that is ending has no counters any more, and no test that reads them.
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

// SAFETY: every call is passed on to the system allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// Counts both blocks at once, as if the block had moved.
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

/// Returns the number of allocations of this thread in `run`; 0 unless the program has installed
/// [`Counting`].
pub fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// Returns the peak memory in octets that this thread allocates in `run`, relative to its start.
pub fn peak_octets(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}
