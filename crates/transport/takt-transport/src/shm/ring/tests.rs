//! Tests of the ring: FIFO order, death of either side, invalid data of either side.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use takt_testkit::Random;

use super::*;

const PORTS: Ports = Ports { to: 7, from: 0xffff_fff0 };

fn new_ring(records: usize) -> Vec<AtomicU64> {
    (0..RECORDS + records).map(|_| AtomicU64::new(0)).collect()
}

fn bytes(n: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (n as usize * 31 + i * 7) as u8).collect()
}

fn pop<W: Word>(head: &mut Head, ring: &[W]) -> Option<Vec<u8>> {
    let mut buffer = vec![0xee; RECORD_LEN_MAX];
    let (ports, len) = head.pop(ring, &mut buffer).expect("the ring is valid")?;
    assert_eq!(ports, PORTS);
    buffer.truncate(len);
    Some(buffer)
}

#[test]
fn ring_sizes_are_powers_of_two_behind_the_first_words() {
    assert!(is_ring(RECORDS + 16) && is_ring(RECORDS + 1024));
    for words in [0, RECORDS - 1, RECORDS, RECORDS + 1, RECORDS + 8, RECORDS + 24, RECORDS + 1025] {
        assert!(!is_ring(words), "{words}");
    }
}

/// Random lengths and random timing, compared with a queue, for many laps of rings of several
/// sizes.
#[test]
fn records_come_out_as_they_went_in() {
    for (size, longest) in [(16, 40), (64, 200), (1024, 3000), (32_768, 65_536)] {
        let (ring, mut tail, mut head) = (new_ring(size), Tail::default(), Head::default());
        let (mut random, mut queue) = (Random(size as u64), VecDeque::new());
        let (mut refused, mut n) = (0, 0);
        for _ in 0..4_000 {
            let burst = random.below(6);
            for _ in 0..burst {
                n += 1;
                let record = bytes(n, random.below(longest + 1));
                match tail.push(&ring, PORTS, &record) {
                    Ok(()) => queue.push_back(record),
                    Err(refusal) => {
                        assert_eq!(refusal, Refusal::Full);
                        refused += 1;
                    }
                }
            }
            for _ in 0..random.below(6) {
                assert_eq!(pop(&mut head, &ring), queue.pop_front());
            }
        }
        assert!(refused > 0 && head.position > 2 * size as u64, "{size}: {refused} refused");
        while let Some(record) = pop(&mut head, &ring) {
            assert_eq!(Some(record), queue.pop_front());
        }
        assert!(queue.is_empty() && head.is_drained(&ring));
    }
}

/// Takes a record as a reader of urgent records does: the first one of the highest rank among the
/// next [`EXAMINED_MAX`]. The rank is the source port.
fn take_chosen<W: Word>(head: &mut Head, ring: &[W]) -> Option<Vec<u8>> {
    let mut buffer = vec![0xee; RECORD_LEN_MAX];
    let rank = head.choose(ring, |ports| ports.from as i32).expect("the ring is valid")?;
    let (ports, len) = head.take(ring, &mut buffer).expect("the ring is valid").expect("the record was selected");
    assert_eq!((ports.to, ports.from as i32), (7, rank));
    buffer.truncate(len);
    Some(buffer)
}

/// Takes the expected record from a queue.
fn take_expected(queue: &mut VecDeque<Option<(u32, Vec<u8>)>>) -> Option<Vec<u8>> {
    let candidates = queue.iter().take(EXAMINED_MAX).enumerate();
    let ranks = candidates.filter_map(|(at, record)| Some((record.as_ref()?.0, at)));
    let (_, at) = ranks.max_by_key(|(rank, at)| (*rank, std::cmp::Reverse(*at)))?;
    let record = queue[at].take().map(|(_, record)| record);
    while queue.pop_front_if(|first| first.is_none()).is_some() {}
    record
}

/// Random ranks and lengths, with many records in the ring, compared with a queue.
#[test]
fn first_record_of_the_highest_rank_is_taken() {
    for (size, longest) in [(64, 100), (1024, 200), (32_768, 3000)] {
        let (ring, mut tail, mut head) = (new_ring(size), Tail::default(), Head::default());
        let (mut random, mut queue) = (Random(size as u64), VecDeque::new());
        let mut n = 0;
        for _ in 0..2_000 {
            for _ in 0..random.below(12) {
                n += 1;
                let (rank, record) = (random.below(4) as u32, bytes(n, random.below(longest)));
                if tail.push(&ring, Ports { to: 7, from: rank }, &record).is_ok() {
                    queue.push_back(Some((rank, record)));
                }
            }
            for _ in 0..random.below(12) {
                assert_eq!(take_chosen(&mut head, &ring), take_expected(&mut queue));
            }
            assert_eq!(head.is_drained(&ring), queue.is_empty() && head.is_drained(&ring));
        }
        assert!(head.position > 2 * size as u64, "{size}");
        while let Some(record) = take_chosen(&mut head, &ring) {
            assert_eq!(Some(record), take_expected(&mut queue));
        }
        assert!(queue.is_empty() && head.is_drained(&ring));
    }
}

#[test]
fn full_ring_accepts_records_after_space_is_freed() {
    let (ring, mut tail, mut head) = (new_ring(64), Tail::default(), Head::default());
    let mut count = 0;
    while tail.push(&ring, PORTS, &[1; 48]).is_ok() {
        count += 1;
    }
    assert_eq!(count, 7, "one of eight cache lines is reserved for the next header");
    for _ in 0..100 {
        assert_eq!(tail.push(&ring, PORTS, &[2; 48]), Err(Refusal::Full));
        pop(&mut head, &ring).expect("the ring is full");
        assert_eq!(tail.push(&ring, PORTS, &[2; 48]), Ok(()));
    }
}

/// A ring whose reader keeps up uses only its first 32 KiB and one record.
#[test]
fn drained_ring_restarts_at_its_beginning() {
    let (ring, mut tail, mut head) = (new_ring(1 << 14), Tail::default(), Head::default());
    for n in 0..2_000 {
        tail.push(&ring, PORTS, &bytes(n, 1000)).expect("the ring has free space");
        assert_eq!(pop(&mut head, &ring), Some(bytes(n, 1000)));
    }
    let touched = records(&ring).iter().rposition(|word| word.load(Ordering::Relaxed) != 0);
    assert!(touched.expect("records were written") < RESTART_WORDS as usize + 256, "{touched:?}");
}

/// A ring that started over keeps its capacity, whether or not the reader has passed the gap.
#[test]
fn restarted_ring_has_the_same_capacity() {
    let size = 1 << 14;
    for (behind, len) in [(0, 1000), (1, 1000), (0, 9000), (1, 9000), (0, 40), (1, 40)] {
        let (ring, mut tail, mut head) = (new_ring(size), Tail::default(), Head::default());
        let words = record_words(len);
        let mut n = 0;
        while tail.gap.is_none() {
            tail.push(&ring, PORTS, &bytes(n, len)).expect("the ring has free space");
            n += 1;
            if tail.gap.is_none() {
                assert_eq!(pop(&mut head, &ring), Some(bytes(n - 1, len)));
            }
        }
        let first = n - 1 + behind;
        if behind == 1 {
            assert_eq!(pop(&mut head, &ring), Some(bytes(n - 1, len)));
        }
        while tail.push(&ring, PORTS, &bytes(n, len)).is_ok() {
            n += 1;
        }
        let used = (n - first) * words;
        assert!(used + 3 * words + 2 * LINE > size as u64, "{used} of {size} words with records of {words}");
        for n in first..n {
            assert_eq!(pop(&mut head, &ring), Some(bytes(n, len)));
        }
        assert_eq!(pop(&mut head, &ring), None);
        assert!(tail.push(&ring, PORTS, &bytes(n, len)).is_ok());
        assert_eq!(pop(&mut head, &ring), Some(bytes(n, len)));
    }
}

/// Words that accept no more stores after a number of them, like those of a killed process.
struct Mortal<'a> {
    word: AtomicU64,
    life: &'a Cell<u32>,
}

impl Word for Mortal<'_> {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        if let Some(left) = self.life.get().checked_sub(1) {
            self.life.set(left);
            self.word.store(value, order);
        }
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        let before = self.word.load(order);
        self.store(value, order);
        before
    }

    fn fence() {}
}

/// A writer that is killed at any store leaves only whole records, in order.
#[test]
fn a_writer_killed_at_any_store_leaves_whole_records() {
    let lengths = [0, 1, 47, 48, 49, 100, 3, 170, 9, 120, 64];
    let mut seen = Vec::new();
    for life in 0..400 {
        let left = Cell::new(life);
        let ring: Vec<Mortal<'_>> =
            (0..RECORDS + 64).map(|_| Mortal { word: AtomicU64::new(0), life: &left }).collect();
        let (mut tail, mut head) = (Tail::default(), Head::default());
        let mut arrived = 0;
        for (n, len) in (0..).zip(lengths) {
            let pushed = tail.push(&ring, PORTS, &bytes(n, len));
            assert_eq!(pushed, Ok(()), "the reader keeps up");
            // The reader is still alive.
            let writer = left.replace(u32::MAX);
            if let Some(record) = pop(&mut head, &ring) {
                assert_eq!(record, bytes(n, len), "killed at store {life}");
                arrived += 1;
            }
            left.set(writer);
            if writer == 0 {
                assert_eq!(pop(&mut head, &ring), None);
                break;
            }
        }
        seen.push(arrived);
    }
    assert!(seen.is_sorted() && seen[0] == 0 && seen[399] == lengths.len(), "{seen:?}");
    assert!((1..lengths.len()).all(|n| seen.contains(&n)), "killed after each of them: {seen:?}");
}

/// A reader that is killed at any store makes the writer report a full ring, and nothing worse.
#[test]
fn a_reader_killed_at_any_store_leaves_a_full_ring() {
    for life in 0..12 {
        let left = Cell::new(u32::MAX);
        let ring: Vec<Mortal<'_>> =
            (0..RECORDS + 64).map(|_| Mortal { word: AtomicU64::new(0), life: &left }).collect();
        let (mut tail, mut head) = (Tail::default(), Head::default());
        let mut reader = life;
        let full = (0..100).find_map(|n| {
            let refusal = tail.push(&ring, PORTS, &bytes(n, 48)).err();
            left.set(reader);
            if life % 2 == 0 {
                pop(&mut head, &ring);
            } else {
                head.choose(&ring, |_| 0).expect("the ring is valid");
                head.take(&ring, &mut [0; 48]).expect("the ring is valid");
            }
            reader = left.replace(u32::MAX);
            refusal
        });
        assert_eq!(full, Some(Refusal::Full));
    }
}

/// Arbitrary words of a malicious writer never make the reader copy more bytes than the buffer has
/// room for.
#[test]
fn a_reader_survives_any_words() {
    let mut buffer = vec![0; RECORD_LEN_MAX];
    let mut outcomes = [0; 3];
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let (ring, position) = (new_ring(64), 64 * random.below(3) as u64);
        let [mut head, mut choosing] = [Head { position, ..Head::default() }, Head { position, ..Head::choosing() }];
        for _ in 0..40 {
            // Headers that are almost valid, and random words.
            let position = head.position;
            let low = [1, 2, 49, 480, 496, 497, 65_537, 65_538, GAP, GAP - 1][random.below(10)];
            let word = if random.below(9) == 0 { random.next() } else { header(position, low) };
            let at = RECORDS + index_of(records(&ring), position);
            ring[at].store(word, Ordering::Relaxed);
            ring[random.below(RECORDS + 64)].store(random.next() >> random.below(64), Ordering::Relaxed);
            match head.pop(&ring, &mut buffer) {
                Ok(None) => outcomes[0] += 1,
                Ok(Some((_, len))) => {
                    assert!(len <= 64 * 8);
                    outcomes[1] += 1;
                }
                Err(Broken) => outcomes[2] += 1,
            }
            if let Ok(Some(_)) = choosing.choose(&ring, |ports| ports.from as i32) {
                // The writer continues meanwhile.
                ring[random.below(RECORDS + 64)].store(random.next() >> random.below(64), Ordering::Relaxed);
                match choosing.take(&ring, &mut buffer) {
                    Ok(taken) => assert!(taken.is_some_and(|(_, len)| len <= 64 * 8)),
                    Err(Broken) => choosing = Head { position: head.position, ..Head::choosing() },
                }
            }
            assert!(
                choosing.examined.len() <= EXAMINED_MAX && choosing.waiting.len() <= choosing.examined.len(),
                "bounded"
            );
            assert!(head.position <= position + 2 * 64, "bounded");
        }
    }
    assert!(outcomes.iter().all(|count| *count > 10), "{outcomes:?}");
}

#[test]
fn small_buffer_is_never_overrun() {
    let (ring, mut tail, mut head) = (new_ring(64), Tail::default(), Head::default());
    tail.push(&ring, PORTS, &[1; 100]).expect("the buffer has space");
    assert_eq!(head.pop(&ring, &mut [0; 99]), Err(Broken));
}

/// Arbitrary head positions of a malicious reader.
#[test]
fn a_writer_survives_any_head() {
    let mut broken = 0;
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let (ring, mut tail) = (new_ring(64), Tail::default());
        for n in 0..40 {
            if tail.push(&ring, PORTS, &bytes(n, random.below(200))) == Err(Refusal::Broken) {
                broken += 1;
                break;
            }
            let head = match random.below(4) {
                0 => random.next(),
                1 => tail.position + 8 * random.below(3) as u64,
                _ => tail.position.saturating_sub(8 * random.below(12) as u64),
            };
            ring[HEAD].store(head, Ordering::Relaxed);
        }
    }
    assert!(broken > 10, "{broken}");
}

#[test]
fn wake_up_is_sent_once_per_sleep() {
    let ring = new_ring(16);
    assert!(!needs_wakeup(&ring));
    fall_asleep(&ring);
    assert!(needs_wakeup(&ring));
    assert!(!needs_wakeup(&ring));
    fall_asleep(&ring);
    wake_up(&ring);
    assert!(!needs_wakeup(&ring));
}

/// Two threads, for Miri and ThreadSanitizer.
#[test]
fn two_threads_agree() {
    let count = if cfg!(miri) { 60 } else { 100_000 };
    let ring = new_ring(64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut tail = Tail::default();
            for n in 0..count {
                let record = bytes(n, (n % 90) as usize);
                while let Err(refusal) = tail.push(&ring, PORTS, &record) {
                    assert_eq!(refusal, Refusal::Full);
                    std::thread::yield_now();
                }
            }
        });
        let mut head = Head::default();
        let buffer = RefCell::new(vec![0; 128]);
        for n in 0..count {
            let len = loop {
                let popped = head.pop(&ring, &mut buffer.borrow_mut()).expect("the ring is valid");
                match popped {
                    Some((_, len)) => break len,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(buffer.borrow()[..len], bytes(n, (n % 90) as usize));
        }
        assert!(head.is_drained(&ring));
    });
}
