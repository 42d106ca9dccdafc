//! Tests of the payload pool: lengths, neighbors and content of blocks.

use super::*;

#[test]
fn classes_hold_their_length_and_waste_at_most_a_quarter() {
    let mut last = (0, 0);
    for len in (1..100_000).chain([1 << 20, (1 << 20) + 1, 4 << 20, (64 << 20) - 1]) {
        let (class, size) = class_of(len);
        assert!(size >= len && class < CLASSES, "{len} {class} {size}");
        assert_eq!(size, size_of(class));
        assert!(len <= 256 || size * 4 <= (len + GRAIN) * 5, "{len} in {size}");
        assert!(class >= last.0 && size >= last.1, "{len}: {class} {size} after {last:?}");
        assert_eq!(class == last.0 && last.1 != 0, size == last.1, "one class, one size");
        last = (class, size);
    }
}

#[test]
fn pieces_do_not_overlap_and_are_used_again() {
    let mut pool = PayloadPool::new((1 << 20).into());
    let mut pieces = Vec::new();
    while let Some(piece) = pool.allocate(1000) {
        let mark = pieces.len() as u8;
        pool.bytes_mut(piece).fill(mark);
        pieces.push(piece);
    }
    assert_eq!(pieces.len(), (1 << 20) / 1024);
    for (i, piece) in pieces.iter().enumerate() {
        assert!(pool.bytes(*piece).iter().all(|byte| *byte == i as u8));
    }
    let last = pieces.pop().expect("the pool held pieces");
    pool.release(last);
    assert_eq!(pool.allocate(990).map(|piece| piece.offset), Some(last.offset));
    assert_eq!(pool.allocate(10), None);
    pool.release(last);
    for piece in pieces {
        pool.release(piece);
    }
    assert_eq!(pool.used_bytes(), 0);
    let block = pool.allocate(1 << 20).expect("an empty pool is one block");
    assert_eq!(block.len(), 1 << 20);
    assert_eq!(pool.allocate((1 << 20) + 1), None);
}

#[test]
fn truncated_remainder_is_freed_with_its_piece() {
    let mut pool = PayloadPool::new((1 << 20).into());
    let first = pool.allocate(100).expect("the pool is empty");
    for _ in 0..100 {
        let piece = pool.allocate(300_000).expect("the one before was released");
        let piece = pool.truncate(piece, 10);
        assert_eq!(pool.bytes(piece).len(), 10);
        pool.release(piece);
    }
    let empty = pool.allocate(0).expect("nothing always fits");
    assert_eq!(pool.truncate(empty, 0), PayloadRef::EMPTY);
    let piece = pool.allocate(100).expect("there is room");
    assert_eq!(pool.truncate(piece, 0), PayloadRef::EMPTY);
    pool.release(first);
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn adjacent_free_pieces_are_merged_for_a_longer_payload() {
    let mut pool = PayloadPool::new((1 << 16).into());
    let pieces: Vec<_> = (0..64).map(|_| pool.allocate(1_000).expect("there is room")).collect();
    assert_eq!(pool.allocate(1), None);
    for group in pieces.chunks(8) {
        // The groups have free neighbors on no side, on one, and on both.
        for index in [1, 5, 3, 4, 2] {
            assert!(!pool.is_enough(group[index], 6_000));
            pool.release(group[index]);
        }
        assert!(pool.is_enough(group[0], 6_000) && pool.is_enough(group[6], 6_000) && !pool.is_enough(group[0], 6_200));
    }
    let longer: Vec<_> = (0..8).map(|_| pool.allocate(5_000).expect("five neighbors are one piece")).collect();
    assert_eq!(pool.allocate(1), None, "3 of 8 are in use, and 5 again");
    longer.into_iter().for_each(|piece| pool.release(piece));
    for group in pieces.chunks(8) {
        [0, 6, 7].into_iter().for_each(|index| pool.release(group[index]));
    }
    assert_eq!((pool.used_bytes(), pool.used_end, pool.has_free), (0, 0, 0));
}

#[test]
fn pool_for_a_number_of_payloads_holds_that_number_of_any_lengths() {
    let mut pool = PayloadPool::new(PoolSize::of_payloads(10, 1_000, 1 << 20));
    let mut pieces: Vec<_> = (0..10).map(|_| pool.allocate(500).expect("there is room for ten")).collect();
    for index in (0..100).map(|i| i * 7 % 10) {
        pool.release(pieces[index]);
        pieces[index] = pool.allocate(1_000 - 90 * (index % 7)).expect("there is room for ten");
    }
    assert_eq!(pool.allocate(1), None);
    let limited = PayloadPool::new(PoolSize::of_payloads(10, 1_000, 5_000));
    assert_eq!((limited.capacity(), limited.class_min), (5_056, 0));
}

/// Every block keeps its octets during allocations and releases, and free memory is found.
#[test]
fn pieces_keep_their_octets_through_random_allocations_and_releases() {
    for seed in 1..=20_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut pool = PayloadPool::new((1 << 16).into());
        let mut live: Vec<(PayloadRef, u8)> = Vec::new();
        for step in 0..3_000_u32 {
            if below(2) == 0 || live.is_empty() {
                let exponent = below(15);
                let len = 1 + below(1 << exponent) as usize;
                let gap = longest_gap(&pool, &live);
                let (_, size) = pool.class_of(len);
                let found = pool.allocate(len);
                assert_eq!(found.is_some(), gap >= size, "seed {seed}, step {step}: {len} octets, gap {gap}");
                if let Some(piece) = found {
                    pool.bytes_mut(piece).fill(step as u8);
                    live.push((piece, step as u8));
                }
            } else {
                let (piece, mark) = live.swap_remove(below(live.len() as u64) as usize);
                assert!(pool.bytes(piece).iter().all(|byte| *byte == mark), "seed {seed}, step {step}");
                pool.release(piece);
            }
        }
        for (piece, mark) in live {
            assert!(pool.bytes(piece).iter().all(|byte| *byte == mark), "seed {seed}");
            pool.release(piece);
        }
        assert_eq!((pool.used_bytes(), pool.used_end, pool.has_free), (0, 0, 0));
    }
}

/// Returns the longest range that no block takes.
fn longest_gap(pool: &PayloadPool, live: &[(PayloadRef, u8)]) -> usize {
    let mut taken: Vec<(usize, usize)> =
        live.iter().map(|(piece, _)| (piece.offset as usize * GRAIN, pool.bytes_of(*piece))).collect();
    taken.sort_unstable();
    let (mut end, mut longest) = (0, 0);
    for (start, len) in taken {
        longest = longest.max(start - end);
        end = start + len;
    }
    longest.max(pool.capacity() - end)
}

#[test]
fn emptied_pool_is_one_block_again() {
    let mut pool = PayloadPool::new((1 << 20).into());
    let pieces: Vec<_> = (0..400).map(|_| pool.allocate(1_000).expect("there is room")).collect();
    pieces.into_iter().for_each(|piece| pool.release(piece));
    let large = pool.allocate(900_000).expect("an empty pool is one block");
    assert_eq!(pool.allocate(400_000), None);
    pool.release(large);
    assert!(pool.allocate(400_000).is_some());
}

/// Returns the resident memory of this process in octets.
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    extern crate std;
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    resident.expect("the second number") * 4096
}

/// An allocator that has freed such a block may serve the next one from memory that has to be
/// zeroed.
#[cfg(target_os = "linux")]
#[test]
fn unused_pool_commits_no_pages_after_earlier_pools_were_freed() {
    const CAPACITY: usize = 24 << 20;
    for _ in 0..3 {
        let mut pool = PayloadPool::new(CAPACITY.into());
        let all = pool.allocate(CAPACITY).expect("it is empty");
        pool.bytes_mut(all).fill(7);
        drop(pool);
        drop(PayloadPool::new(CAPACITY.into()));
    }
    let before = resident_bytes();
    let pools: Vec<PayloadPool> = (0..8).map(|_| PayloadPool::new(CAPACITY.into())).collect();
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < CAPACITY, "8 unused pools of {CAPACITY} octets take {grown}");
    drop(pools);
}
