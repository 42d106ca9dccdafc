//! Single-producer, single-consumer ring of records, in words that two processes map. A connection
//! has two rings; the second is for urgent datagrams ([`Band`](super::ports::Band)).
//!
//! | words | written by | |
//! |---|---|---|
//! | 0 ..= 15 | none | |
//! | 16 | reader | head: the position up to which it has copied |
//! | 32 | both | asleep: 1 while the reader waits for a wake-up; the first ring has that of both |
//! | 64 .. | writer | records; a power of two of words |
//!
//! A *position* counts words since the beginning and never decreases; its index in the ring is the
//! position modulo the ring's size. A record takes whole lines of 8 words:
//!
//! | word | |
//! |---|---|
//! | 0 | header: low half of (position / 8), then 1 + length in bytes, or [`GAP`]; 0 while there is no record |
//! | 1 | ports: destination, source; in a gap, the number of words to the next record |
//! | 2 .. | the bytes, the last word padded with zeros |
//!
//! The writer writes the whole record and a 0 at the index of the next header, and only then the
//! header. A record is therefore complete or absent whenever its writer is killed, and data of the
//! previous lap is never taken for a header. The reader copies a record before it frees its words,
//! so a reader that is killed merely leaves the ring full.
//!
//! A reader can take one of the next [`EXAMINED_MAX`] records before earlier ones. It examines each
//! record once and keeps the order in private memory; words are freed in order.
//!
//! A record that does not fit before the end of the ring goes to its beginning, and a gap marks
//! this. A writer that finds the ring drained does so after [`RESTART_WORDS`] words already. A ring
//! that never fills thus occupies a few pages, which stay in the cache. Until the reader has passed
//! that gap, its line is a [`PendingGap`] in the writable range, with another gap around it; so the
//! capacity does not shrink.
//!
//! The other side is not trusted: every header and every head is checked, and an invalid one is
//! [`Broken`]. Words are atomic even where they carry bytes. A side that writes at the wrong time
//! therefore only produces wrong bytes, which the message parser expects anyway. There is no
//! `unsafe` here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Maximum length of a record in bytes.
pub(super) const RECORD_LEN_MAX: usize = 65_536;

/// Number of words before the records.
pub(super) const RECORDS: usize = 64;

const HEAD: usize = 16;
const ASLEEP: usize = 32;

/// Number of words in a cache line.
const LINE: u64 = 8;

/// Number of words before the bytes of a record.
const PREFIX: usize = 2;

/// Replaces the length: the next record is elsewhere.
const GAP: u32 = u32::MAX;

/// Maximum number of records that a reader chooses from.
pub(super) const EXAMINED_MAX: usize = 1024;

/// Number of words after which a writer checks whether the ring is drained: 32 KiB.
const RESTART_WORDS: u64 = 4096;

/// Word of a ring: [`AtomicU64`] in production, other types in tests.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Sequentially consistent fence between threads that both call it.
    fn fence();
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Destination and source port of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) to: u32,
    pub(super) from: u32,
}

/// The other side wrote invalid data. The connection is not usable any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Reason why a record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The reader is too far behind.
    Full,
    Broken,
}

/// Returns the words of a record with `len` bytes, in whole lines.
fn record_words(len: usize) -> u64 {
    ((PREFIX + len.div_ceil(8)) as u64).next_multiple_of(LINE)
}

fn header(position: u64, low: u32) -> u64 {
    (position / LINE) << 32 | u64::from(low)
}

/// Returns the words of the records, a power of two.
fn records<W>(ring: &[W]) -> &[W] {
    &ring[RECORDS..]
}

/// Returns the index of a position.
fn index_of<W>(records: &[W], position: u64) -> usize {
    (position & (records.len() as u64 - 1)) as usize
}

/// Reports whether a ring can have this size: a power of two after the first [`RECORDS`], with room
/// for two lines.
pub(super) fn is_ring(words: usize) -> bool {
    words.checked_sub(RECORDS).is_some_and(|records| records.is_power_of_two() && records >= 2 * LINE as usize)
}

/// Gap that the reader may not have passed, in a ring that was drained when the gap was written.
#[derive(Clone, Copy, Debug)]
struct PendingGap {
    /// Position of the gap.
    at: u64,
    /// Position of the next record, at the beginning of the ring.
    next: u64,
}

/// Writer's side of a ring.
#[derive(Debug, Default)]
pub(super) struct Tail {
    position: u64,
    /// Last known position of the reader.
    head: u64,
    gap: Option<PendingGap>,
}

impl Tail {
    /// Writes one record of at most [`RECORD_LEN_MAX`] bytes. The caller sends the wake-up:
    /// [`needs_wakeup`].
    pub(super) fn push<W: Word>(&mut self, ring: &[W], ports: Ports, bytes: &[u8]) -> Result<(), Refusal> {
        let words = record_words(bytes.len());
        let start = self.start(ring, words)?;
        if start != self.position {
            let records = records(ring);
            records[index_of(records, start)].store(0, Ordering::Relaxed);
            let at = index_of(records, self.position);
            records[at + 1].store(start - self.position, Ordering::Relaxed);
            records[at].store(header(self.position, GAP), Ordering::Release);
            self.position = start;
        }
        self.write(records(ring), words, ports, bytes);
        self.position += words;
        Ok(())
    }

    /// Returns the position for a record of this size: the current one, after the gap, or at the
    /// beginning of the ring.
    fn start<W: Word>(&mut self, ring: &[W], words: u64) -> Result<u64, Refusal> {
        let size = records(ring).len() as u64;
        let offset = self.position & (size - 1);
        if offset / RESTART_WORDS != (offset + words) / RESTART_WORDS {
            self.read_head(ring)?;
            let may_start_over = self.gap.is_none() && self.head == self.position && words + LINE <= offset;
            if may_start_over {
                let next = self.position - offset + size;
                self.gap = Some(PendingGap { at: self.position, next });
                return Ok(next);
            }
        }
        let mut start = self.skip_gap(words, size);
        if !self.has_room(start + words, size) || start != self.position {
            self.read_head(ring)?;
            start = self.skip_gap(words, size);
            if !self.has_room(start + words, size) {
                return Err(Refusal::Full);
            }
        }
        Ok(start)
    }

    /// Returns the next position where neither the gap nor the end of the ring interrupts a record
    /// of this size.
    fn skip_gap(&self, words: u64, size: u64) -> u64 {
        let mut start = self.position;
        if let Some(PendingGap { at, .. }) = self.gap
            && start <= at + size
            && start + words + LINE > at + size
        {
            start = at + size + LINE;
        }
        let offset = start & (size - 1);
        if offset + words <= size { start } else { start - offset + size }
    }

    /// Reports whether a record can end here, with a line after it for the next header.
    fn has_room(&self, end: u64, size: u64) -> bool {
        let oldest = self.gap.map_or(self.head, |gap| gap.next);
        end + LINE - oldest <= size
    }

    /// Reads the current position of the reader.
    fn read_head<W: Word>(&mut self, ring: &[W]) -> Result<(), Refusal> {
        let head = ring[HEAD].load(Ordering::Acquire);
        if head < self.head || head > self.position || !head.is_multiple_of(LINE) {
            return Err(Refusal::Broken);
        }
        if let Some(gap) = self.gap.filter(|gap| head > gap.at) {
            if head < gap.next {
                return Err(Refusal::Broken);
            }
            self.gap = None;
        }
        self.head = head;
        Ok(())
    }

    /// Writes a record at the current position: its header last, the rest of its first line just
    /// before.
    fn write<W: Word>(&self, records: &[W], words: u64, ports: Ports, bytes: &[u8]) {
        let at = index_of(records, self.position);
        let (first, rest) = records[at..at + words as usize].split_at(LINE as usize);
        let (begin, end) = bytes.split_at(bytes.len().min((LINE as usize - PREFIX) * 8));
        copy_in(rest, end);
        records[index_of(records, self.position + words)].store(0, Ordering::Relaxed);
        copy_in(&first[PREFIX..], begin);
        first[1].store(u64::from(ports.to) << 32 | u64::from(ports.from), Ordering::Relaxed);
        let low = bytes.len() as u32 + 1;
        first[0].store(header(self.position, low), Ordering::Release);
    }
}

fn copy_in<W: Word>(words: &[W], bytes: &[u8]) {
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let whole = bytes.len() / 8;
    for (word, chunk) in words.iter().zip(chunks) {
        word.store(u64::from_ne_bytes(chunk.try_into().expect("a chunk of 8")), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words[whole].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

fn copy_out<W: Word>(words: &[W], bytes: &mut [u8]) {
    let whole = bytes.len() / 8;
    let mut chunks = bytes.chunks_exact_mut(8);
    for (word, chunk) in words.iter().zip(&mut chunks) {
        chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let last = words[whole].load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Record that is present in the ring.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Position of the record, and that of the next one.
    start: u64,
    end: u64,
    len: usize,
}

impl Record {
    /// Finds the record at a position, or after the gap there. Returns its position, and the
    /// record if it is present.
    #[inline]
    fn find<W: Word>(records: &[W], position: u64) -> Result<(u64, Option<Self>), Broken> {
        let (mut start, mut low) = (position, header_at(records, position)?);
        if low == Some(GAP) {
            let words = records[index_of(records, position) + 1].load(Ordering::Relaxed);
            if words == 0 || words > records.len() as u64 || !words.is_multiple_of(LINE) {
                return Err(Broken);
            }
            start += words;
            low = header_at(records, start)?;
        }
        // A writer that was killed here leaves a gap without a record.
        let Some(low) = low else { return Ok((start, None)) };
        let len = low as usize - 1;
        let end = start + record_words(len);
        if low == GAP || len > RECORD_LEN_MAX || index_of(records, start) as u64 + (end - start) > records.len() as u64
        {
            return Err(Broken);
        }
        Ok((start, Some(Self { start, end, len })))
    }

    fn ports<W: Word>(&self, records: &[W]) -> Ports {
        let ports = records[index_of(records, self.start) + 1].load(Ordering::Relaxed);
        Ports { to: (ports >> 32) as u32, from: ports as u32 }
    }

    /// Copies the bytes. Returns the ports and the length.
    #[inline]
    fn copy<W: Word>(&self, records: &[W], bytes: &mut [u8]) -> Result<(Ports, usize), Broken> {
        let bytes = bytes.get_mut(..self.len).ok_or(Broken)?;
        let at = index_of(records, self.start);
        copy_out(&records[at + PREFIX..at + (self.end - self.start) as usize], bytes);
        Ok((self.ports(records), self.len))
    }
}

/// Returns the low half of the header at a position, if it is present.
#[inline]
fn header_at<W: Word>(records: &[W], position: u64) -> Result<Option<u32>, Broken> {
    let word = records[index_of(records, position)].load(Ordering::Acquire);
    match word as u32 {
        0 if word == 0 => Ok(None),
        0 => Err(Broken),
        low if word == header(position, low) => Ok(Some(low)),
        _ => Err(Broken),
    }
}

/// Record that was examined and not taken. The order is by rank, then FIFO: the first record of the
/// highest rank is the greatest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    rank: i32,
    number: Reverse<u64>,
    position: u64,
}

/// Record that was examined, from the head on.
#[derive(Debug)]
struct Examined {
    end: u64,
    is_taken: bool,
}

/// Reader's side of a ring. The default one only supports [`pop`](Self::pop).
#[derive(Debug, Default)]
pub(super) struct Head {
    position: u64,
    waiting: BinaryHeap<Waiting>,
    /// Records that were examined and whose words are not free; the first of them was not taken.
    examined: VecDeque<Examined>,
    /// Number of the first of these records.
    first: u64,
}

impl Head {
    /// Makes a reader that can [`choose`](Self::choose). Allocates, unlike all other calls.
    pub(super) fn choosing() -> Self {
        let (waiting, examined) = (BinaryHeap::with_capacity(EXAMINED_MAX), VecDeque::with_capacity(EXAMINED_MAX));
        Self { waiting, examined, ..Self::default() }
    }

    /// Copies the next record into `bytes`, which has room for [`RECORD_LEN_MAX`], and frees its
    /// words. Returns its ports and length.
    #[inline]
    pub(super) fn pop<W: Word>(&mut self, ring: &[W], bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        let Some(record) = self.first(ring)? else { return Ok(None) };
        let popped = record.copy(records(ring), bytes)?;
        self.advance(ring, record.end);
        Ok(Some(popped))
    }

    /// Returns the highest rank among the next [`EXAMINED_MAX`] records. Calls `rank` once for each
    /// record.
    pub(super) fn choose<W: Word>(
        &mut self,
        ring: &[W],
        mut rank: impl FnMut(Ports) -> i32,
    ) -> Result<Option<i32>, Broken> {
        while self.examined.len() < EXAMINED_MAX {
            let next = match self.examined.back() {
                Some(last) => Record::find(records(ring), last.end)?.1,
                None => self.first(ring)?,
            };
            let Some(record) = next else { break };
            let number = Reverse(self.first + self.examined.len() as u64);
            self.waiting.push(Waiting { rank: rank(record.ports(records(ring))), number, position: record.start });
            self.examined.push_back(Examined { end: record.end, is_taken: false });
        }
        Ok(self.waiting.peek().map(|waiting| waiting.rank))
    }

    /// Takes like [`pop`](Self::pop) the first record of the rank that [`choose`](Self::choose)
    /// returned last.
    pub(super) fn take<W: Word>(&mut self, ring: &[W], bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        let Some(Waiting { number: Reverse(number), position, .. }) = self.waiting.pop() else { return Ok(None) };
        let (_, record) = Record::find(records(ring), position)?;
        let taken = record.ok_or(Broken)?.copy(records(ring), bytes)?;
        if let Some(examined) = self.examined.get_mut((number - self.first) as usize) {
            examined.is_taken = true;
        }
        let mut end = None;
        while let Some(first) = self.examined.pop_front_if(|first| first.is_taken) {
            end = Some(first.end);
            self.first += 1;
        }
        if let Some(end) = end {
            self.advance(ring, end);
        }
        Ok(Some(taken))
    }

    /// Returns the record at the head. Frees a gap before it.
    #[inline]
    fn first<W: Word>(&mut self, ring: &[W]) -> Result<Option<Record>, Broken> {
        let (start, record) = Record::find(records(ring), self.position)?;
        if start != self.position {
            self.advance(ring, start);
        }
        Ok(record)
    }

    fn advance<W: Word>(&mut self, ring: &[W], position: u64) {
        self.position = position;
        ring[HEAD].store(position, Ordering::Release);
    }

    /// Reports whether there is no record now. Invalid data counts as a record.
    pub(super) fn is_drained<W: Word>(&self, ring: &[W]) -> bool {
        let records = records(ring);
        records[index_of(records, self.position)].load(Ordering::Acquire) == 0
    }
}

/// Marks the reader as sleeping. The caller then calls [`Word::fence`] and checks the ring once
/// more.
pub(super) fn fall_asleep<W: Word>(ring: &[W]) {
    ring[ASLEEP].store(1, Ordering::Relaxed);
}

/// Clears the mark of a sleeping reader.
pub(super) fn wake_up<W: Word>(ring: &[W]) {
    ring[ASLEEP].store(0, Ordering::Relaxed);
}

/// Reports whether the caller must wake the reader, and clears the mark. The writer calls
/// [`Word::fence`] first, after its records.
pub(super) fn needs_wakeup<W: Word>(ring: &[W]) -> bool {
    ring[ASLEEP].load(Ordering::Relaxed) != 0 && ring[ASLEEP].swap(0, Ordering::Relaxed) != 0
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
