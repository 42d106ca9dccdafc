//! Stable indices with generations: handles of local endpoints and keys of internal tables.

use alloc::vec::Vec;

/// Handle of a local writer. Stays invalid once the writer is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterHandle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl WriterHandle {
    /// Returns a small number that is unique among the existing writers. It can index tables
    /// outside the participant.
    #[must_use]
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// Handle of a local reader. Stays invalid once the reader is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderHandle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ReaderHandle {
    /// Returns a small number that is unique among the existing readers. It can index tables
    /// outside the participant.
    #[must_use]
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// Handle of a publisher. Stays invalid once the publisher is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublisherHandle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Handle of a subscriber. Stays invalid once the subscriber is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberHandle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// Table whose entries keep their index until they are removed; free indices are reused.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Returns the index that the next `insert` will use.
    pub(crate) fn vacant(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize].value = Some(value);
            return index;
        }
        self.entries.push(Entry { generation: 0, value: Some(value) });
        (self.entries.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize)?;
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.value.as_mut()
    }

    pub(crate) fn generation(&self, index: u32) -> u32 {
        self.entries.get(index as usize).map_or(0, |entry| entry.generation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index as u32, entry.value.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(index, entry)| Some((index as u32, entry.value.as_mut()?)))
    }

    /// Returns the first free or future index above `from`, to walk the table while it changes.
    pub(crate) fn next_index(&self, from: u32) -> Option<u32> {
        (from..self.entries.len() as u32).find(|&index| self.get(index).is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_reused_with_another_generation() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        let generation = slots.generation(first);
        assert_eq!(slots.remove(first), Some('a'));
        assert_eq!(slots.remove(first), None);
        let second = slots.insert('b');
        assert_eq!(second, first);
        assert_ne!(slots.generation(second), generation);
        assert_eq!(slots.len(), 1);
    }
}
