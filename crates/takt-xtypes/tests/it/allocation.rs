//! Encoding never allocates; decoding does not, once the value has the capacity.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use takt_xtypes::{Endianness, deserialize, key_hash, serialize, serialized_len};

use crate::support::{REPRESENTATIONS, payload};
use crate::zoo::*;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    // During thread tear-down the cells may be gone; nothing is counted then.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + usize::from(bytes > 0)));
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the pointer came from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread allocates in `run`.
pub fn allocations(run: impl FnOnce()) -> usize {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}

/// How much more memory than before this thread holds at most in `run`, in bytes.
pub fn peak_bytes(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    (PEAK.get() - before).max(0) as usize
}

fn collections() -> Collections {
    Collections {
        shorts: vec![1; 100],
        longs: vec![2; 100],
        flags: vec![true; 9],
        names: vec!["name".into(), "another".into()],
        words: ["a".into(), "b".into()],
        points: vec![Point::default(); 3],
        grown: vec![Grown { name: "grown".into(), count: 1 }; 4],
        nested: vec![vec![1, 2], vec![3]],
        ..Default::default()
    }
}

fn mutable() -> Mutable {
    Mutable {
        text: "text".into(),
        octets: vec![1; 1000],
        names: vec!["n".into(); 5],
        grown: Grown { name: "grown".into(), count: 1 },
        present: Some(1),
        ..Default::default()
    }
}

fn check<T: takt_xtypes::TypeSupport + PartialEq + std::fmt::Debug>(value: &T) {
    for representation in REPRESENTATIONS {
        let bytes = payload(value, representation, Endianness::Little);
        let mut out = vec![0; bytes.len()];
        let mut read = T::default();
        deserialize(&mut read, &bytes).expect("a well-formed payload");
        let count = allocations(|| {
            for _ in 0..10 {
                let len = serialized_len(value, representation);
                assert_eq!(serialize(value, representation, &mut out), Ok(len));
                assert!(deserialize(&mut read, &out).is_ok());
                assert!(key_hash(value).is_ok());
            }
        });
        assert_eq!(count, 0, "{} {representation:?}", T::TYPE_NAME);
        assert_eq!(read, *value);
    }
}

#[test]
fn a_steady_state_does_not_allocate() {
    check(&collections());
    check(&mutable());
    check(&ShapeType { color: "RED".into(), additional_payload_size: vec![1; 10], ..Default::default() });
    check(&Keyed { text: "key".into(), ..Default::default() });
    check(&Unions { b: FinalUnion::Label("label".into()), ..Default::default() });
    check(&MutableKeyed { name: "a name longer than sixteen bytes".into(), ..Default::default() });
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert!(peak_bytes(|| drop(std::hint::black_box(vec![0_u8; 1000]))) >= 1000);
}
