//! A ring of a lane: records from one writer to one reader, in words that both processes map. A lane has two, of which the
//! second is for what is urgent ([`Band`](super::ports::Band)).
//!
//! | words | written by | |
//! |---|---|---|
//! | 0 ..= 15 | nobody | |
//! | 16 | reader | head: the position up to which it has copied |
//! | 32 | both | asleep: 1 while the reader waits for a bell; of both rings in the first |
//! | 64 .. | writer | records; a power of two of words |
//!
//! A *position* counts words since the beginning and never goes back; its place in the ring is what is left of it modulo the
//! ring's size. A record takes whole lines of 8 words:
//!
//! | word | |
//! |---|---|
//! | 0 | header: low half of (position / 8), then 1 + length in bytes, or [`GAP`]; 0 while nothing is there |
//! | 1 | ports: destination, source; of a gap, how many words there are to the next record |
//! | 2 .. | the bytes, the last word filled up with zeros |
//!
//! The writer writes all of a record and a 0 where the next header will be, and only then the header. So a record is there
//! whole or not at all, whenever its writer is killed, and what lay there a lap ago is never taken for a header. The reader
//! copies a record before it gives its place back, so a reader that is killed merely leaves the ring full.
//!
//! A reader may take a record before those that were written earlier, out of the next [`LOOKS`]. It looks at each record once and keeps
//! the order in memory of its own; places are given back in their turn.
//!
//! A record that does not fit before the end of the ring goes to its beginning, and a gap says so. A writer that finds the
//! ring drained does that after [`RESTART`] words already, so that a lane that is never behind occupies a few pages, and
//! those stay in the cache. Until the reader has seen that gap, its line is a [`Hole`] in what may be written, with another
//! gap around it; so the ring holds as much as ever.
//!
//! Nothing here trusts the other side: every header and every head is checked, and what does not fit is [`Broken`]. Words
//! are atomic even where they carry bytes, so a side that writes at the wrong time makes wrong bytes, which the parser
//! of the messages expects anyway, and nothing worse. There is no `unsafe` here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Most bytes of one record.
pub(super) const RECORD_LEN_MAX: usize = 65_536;

/// Words of a lane before its records.
pub(super) const RECORDS: usize = 64;

const HEAD: usize = 16;
const ASLEEP: usize = 32;

/// Words of a cache line.
const LINE: u64 = 8;

/// Words before the bytes of a record.
const PREFIX: usize = 2;

/// In place of the length: the next record is elsewhere.
const GAP: u32 = u32::MAX;

/// Records that a reader chooses from.
pub(super) const LOOKS: usize = 1024;

/// Words after which a writer looks whether the ring is drained: 32 KiB.
const RESTART: u64 = 4096;

/// One word of a lane; the ones that ship are [`AtomicU64`], tests have others.
pub(super) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Orders all that this thread did before with all that it does after, among those who do the same.
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

/// The two ports of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) to: u32,
    pub(super) from: u32,
}

/// The other side has written what no sound one writes. The lane is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Why a record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The reader is too far behind.
    Full,
    Broken,
}

/// Words of a record of so many bytes: whole lines.
fn record_words(len: usize) -> u64 {
    ((PREFIX + len.div_ceil(8)) as u64).next_multiple_of(LINE)
}

fn header(position: u64, low: u32) -> u64 {
    (position / LINE) << 32 | u64::from(low)
}

/// The words of records, of which there is a power of two.
fn records<W>(lane: &[W]) -> &[W] {
    &lane[RECORDS..]
}

/// The place of a position.
fn place<W>(records: &[W], position: u64) -> usize {
    (position & (records.len() as u64 - 1)) as usize
}

/// Whether so many words are a ring: a power of two after the first [`RECORDS`], with room for two lines.
pub(super) fn is_ring(words: usize) -> bool {
    words.checked_sub(RECORDS).is_some_and(|records| records.is_power_of_two() && records >= 2 * LINE as usize)
}

/// A gap that the reader may not have seen, in a ring that was drained when it was written.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// Where it is.
    at: u64,
    /// Where the next record is: the beginning of the ring.
    next: u64,
}

/// The writer's side of a ring.
#[derive(Debug, Default)]
pub(super) struct Tail {
    position: u64,
    /// What was last seen of the reader's.
    head: u64,
    hole: Option<Hole>,
}

impl Tail {
    /// Writes one record of at most [`RECORD_LEN_MAX`] bytes. The bell is up to the caller: [`needs_bell`].
    pub(super) fn push<W: Word>(&mut self, lane: &[W], ports: Ports, bytes: &[u8]) -> Result<(), Refusal> {
        let words = record_words(bytes.len());
        let start = self.start(lane, words)?;
        if start != self.position {
            let records = records(lane);
            records[place(records, start)].store(0, Ordering::Relaxed);
            let at = place(records, self.position);
            records[at + 1].store(start - self.position, Ordering::Relaxed);
            records[at].store(header(self.position, GAP), Ordering::Release);
            self.position = start;
        }
        self.write(records(lane), words, ports, bytes);
        self.position += words;
        Ok(())
    }

    /// Where a record of so many words may be written: here, behind the hole, or at the beginning of the ring.
    fn start<W: Word>(&mut self, lane: &[W], words: u64) -> Result<u64, Refusal> {
        let size = records(lane).len() as u64;
        let offset = self.position & (size - 1);
        if offset / RESTART != (offset + words) / RESTART {
            self.look(lane)?;
            let may_start_over = self.hole.is_none() && self.head == self.position && words + LINE <= offset;
            if may_start_over {
                let next = self.position - offset + size;
                self.hole = Some(Hole { at: self.position, next });
                return Ok(next);
            }
        }
        let mut start = self.beside_hole(words, size);
        if !self.has_room(start + words, size) || start != self.position {
            self.look(lane)?;
            start = self.beside_hole(words, size);
            if !self.has_room(start + words, size) {
                return Err(Refusal::Full);
            }
        }
        Ok(start)
    }

    /// The next place of so many words that neither the hole nor the end of the ring interrupts.
    fn beside_hole(&self, words: u64, size: u64) -> u64 {
        let mut start = self.position;
        if let Some(Hole { at, .. }) = self.hole
            && start <= at + size
            && start + words + LINE > at + size
        {
            start = at + size + LINE;
        }
        let offset = start & (size - 1);
        if offset + words <= size { start } else { start - offset + size }
    }

    /// Whether a record may end here, with a line after it for the next header.
    fn has_room(&self, end: u64, size: u64) -> bool {
        let oldest = self.hole.map_or(self.head, |hole| hole.next);
        end + LINE - oldest <= size
    }

    /// Reads the reader's position anew.
    fn look<W: Word>(&mut self, lane: &[W]) -> Result<(), Refusal> {
        let head = lane[HEAD].load(Ordering::Acquire);
        if head < self.head || head > self.position || !head.is_multiple_of(LINE) {
            return Err(Refusal::Broken);
        }
        if let Some(hole) = self.hole.filter(|hole| head > hole.at) {
            if head < hole.next {
                return Err(Refusal::Broken);
            }
            self.hole = None;
        }
        self.head = head;
        Ok(())
    }

    /// Writes a record where there is room for it: its header last, its first line just before.
    fn write<W: Word>(&self, records: &[W], words: u64, ports: Ports, bytes: &[u8]) {
        let at = place(records, self.position);
        let (first, rest) = records[at..at + words as usize].split_at(LINE as usize);
        let (begin, end) = bytes.split_at(bytes.len().min((LINE as usize - PREFIX) * 8));
        copy_in(rest, end);
        records[place(records, self.position + words)].store(0, Ordering::Relaxed);
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

/// A record that is there.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Its position, and that of what comes next.
    start: u64,
    end: u64,
    len: usize,
}

impl Record {
    /// What is at a position or, behind a gap, where that leads to: the position, and the record, if it is there already.
    #[inline]
    fn find<W: Word>(records: &[W], position: u64) -> Result<(u64, Option<Self>), Broken> {
        let (mut start, mut low) = (position, look(records, position)?);
        if low == Some(GAP) {
            let words = records[place(records, position) + 1].load(Ordering::Relaxed);
            if words == 0 || words > records.len() as u64 || !words.is_multiple_of(LINE) {
                return Err(Broken);
            }
            start += words;
            low = look(records, start)?;
        }
        // A writer that was killed just there leaves a gap without a record.
        let Some(low) = low else { return Ok((start, None)) };
        let len = low as usize - 1;
        let end = start + record_words(len);
        if low == GAP || len > RECORD_LEN_MAX || place(records, start) as u64 + (end - start) > records.len() as u64 {
            return Err(Broken);
        }
        Ok((start, Some(Self { start, end, len })))
    }

    fn ports<W: Word>(&self, records: &[W]) -> Ports {
        let ports = records[place(records, self.start) + 1].load(Ordering::Relaxed);
        Ports { to: (ports >> 32) as u32, from: ports as u32 }
    }

    /// Copies what it carries. Says its ports and length.
    #[inline]
    fn copy<W: Word>(&self, records: &[W], bytes: &mut [u8]) -> Result<(Ports, usize), Broken> {
        let bytes = bytes.get_mut(..self.len).ok_or(Broken)?;
        let at = place(records, self.start);
        copy_out(&records[at + PREFIX..at + (self.end - self.start) as usize], bytes);
        Ok((self.ports(records), self.len))
    }
}

/// The low half of the header at a position, if it is there.
#[inline]
fn look<W: Word>(records: &[W], position: u64) -> Result<Option<u32>, Broken> {
    let word = records[place(records, position)].load(Ordering::Acquire);
    match word as u32 {
        0 if word == 0 => Ok(None),
        0 => Err(Broken),
        low if word == header(position, low) => Ok(Some(low)),
        _ => Err(Broken),
    }
}

/// A record that was looked at and not taken. The one of the highest rank is the greatest, of one rank the first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    rank: i32,
    number: Reverse<u64>,
    position: u64,
}

/// A record that was looked at, from the head on.
#[derive(Debug)]
struct Seen {
    end: u64,
    is_taken: bool,
}

/// The reader's side of a ring: that of a ring that is only [popped](Self::pop) from is the default one.
#[derive(Debug, Default)]
pub(super) struct Head {
    position: u64,
    waiting: BinaryHeap<Waiting>,
    /// All that were looked at and whose places were not given back: the first of them was not taken.
    seen: VecDeque<Seen>,
    /// The number of the first of them.
    first: u64,
}

impl Head {
    /// One that [chooses](Self::choose). Only this allocates.
    pub(super) fn choosing() -> Self {
        let (waiting, seen) = (BinaryHeap::with_capacity(LOOKS), VecDeque::with_capacity(LOOKS));
        Self { waiting, seen, ..Self::default() }
    }

    /// Copies the next record into `bytes`, which has room for [`RECORD_LEN_MAX`], and gives its place back. Says its ports
    /// and length.
    #[inline]
    pub(super) fn pop<W: Word>(&mut self, lane: &[W], bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        let Some(record) = self.first(lane)? else { return Ok(None) };
        let popped = record.copy(records(lane), bytes)?;
        self.advance(lane, record.end);
        Ok(Some(popped))
    }

    /// The highest rank among the next [`LOOKS`] records. `rank` is asked once for each record.
    pub(super) fn choose<W: Word>(
        &mut self,
        lane: &[W],
        mut rank: impl FnMut(Ports) -> i32,
    ) -> Result<Option<i32>, Broken> {
        while self.seen.len() < LOOKS {
            let next = match self.seen.back() {
                Some(last) => Record::find(records(lane), last.end)?.1,
                None => self.first(lane)?,
            };
            let Some(record) = next else { break };
            let number = Reverse(self.first + self.seen.len() as u64);
            self.waiting.push(Waiting { rank: rank(record.ports(records(lane))), number, position: record.start });
            self.seen.push_back(Seen { end: record.end, is_taken: false });
        }
        Ok(self.waiting.peek().map(|waiting| waiting.rank))
    }

    /// As [`pop`](Self::pop), of the first record of the rank that [`choose`](Self::choose) said last.
    pub(super) fn take<W: Word>(&mut self, lane: &[W], bytes: &mut [u8]) -> Result<Option<(Ports, usize)>, Broken> {
        let Some(Waiting { number: Reverse(number), position, .. }) = self.waiting.pop() else { return Ok(None) };
        let (_, record) = Record::find(records(lane), position)?;
        let taken = record.ok_or(Broken)?.copy(records(lane), bytes)?;
        if let Some(seen) = self.seen.get_mut((number - self.first) as usize) {
            seen.is_taken = true;
        }
        let mut end = None;
        while let Some(first) = self.seen.pop_front_if(|first| first.is_taken) {
            end = Some(first.end);
            self.first += 1;
        }
        if let Some(end) = end {
            self.advance(lane, end);
        }
        Ok(Some(taken))
    }

    /// The record at the head. A gap before it is given back.
    #[inline]
    fn first<W: Word>(&mut self, lane: &[W]) -> Result<Option<Record>, Broken> {
        let (start, record) = Record::find(records(lane), self.position)?;
        if start != self.position {
            self.advance(lane, start);
        }
        Ok(record)
    }

    fn advance<W: Word>(&mut self, lane: &[W], position: u64) {
        self.position = position;
        lane[HEAD].store(position, Ordering::Release);
    }

    /// Whether nothing is there at this moment. Anything that is no record counts as something.
    pub(super) fn is_drained<W: Word>(&self, lane: &[W]) -> bool {
        let records = records(lane);
        records[place(records, self.position)].load(Ordering::Acquire) == 0
    }
}

/// The reader is about to wait. It then calls [`Word::fence`] and looks once more.
pub(super) fn fall_asleep<W: Word>(lane: &[W]) {
    lane[ASLEEP].store(1, Ordering::Relaxed);
}

/// The reader waits no more.
pub(super) fn wake_up<W: Word>(lane: &[W]) {
    lane[ASLEEP].store(0, Ordering::Relaxed);
}

/// Whether the reader waits for a bell that nobody else rings. The writer calls [`Word::fence`] first, after its records.
pub(super) fn needs_bell<W: Word>(lane: &[W]) -> bool {
    lane[ASLEEP].load(Ordering::Relaxed) != 0 && lane[ASLEEP].swap(0, Ordering::Relaxed) != 0
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
