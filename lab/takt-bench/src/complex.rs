//! Nested payload type of the platform comparison: a sequence of sequences of string and number
//! (docs/reference/bench-agents.md).
//!
//! Only the number of the first item changes between samples, so that a workload measures the
//! middleware and not the construction of its samples.

use takt::DdsType;

/// Octets of an item: a number, the length of its name, 23 characters and the NUL.
const ITEM_LEN: usize = 32;
const NAME_LEN: usize = 23;
/// Octets in addition to the name in a smaller item.
const SMALL_ITEM_LEN: usize = 9;
const ITEMS_PER_GROUP: usize = 8;

/// Element of a group: a name and a number.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Item", extensibility = "final")]
pub struct Item {
    /// Text.
    pub name: String,
    /// Sequence number in the first item.
    pub number: i32,
}

/// Sequence of items.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Group", extensibility = "final")]
pub struct Group {
    /// At most eight items.
    pub items: Vec<Item>,
}

/// Sample of the nested type.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Complex", extensibility = "final")]
pub struct Complex {
    /// At least one group.
    pub groups: Vec<Group>,
}

impl Complex {
    /// Returns a sample as large as a payload of `size` octets.
    #[must_use]
    pub fn filled(size: usize) -> Self {
        let (count, name_len) = match size {
            0..ITEM_LEN => (1, size.saturating_sub(SMALL_ITEM_LEN)),
            _ => (size / ITEM_LEN, NAME_LEN),
        };
        let item = Item { name: "n".repeat(name_len), number: 0 };
        let items = vec![item; count];
        Self { groups: items.chunks(ITEMS_PER_GROUP).map(|items| Group { items: items.to_vec() }).collect() }
    }

    /// Returns the payload size that a sample for `size` octets has: items are whole, and the
    /// smallest one has an empty name.
    #[must_use]
    pub fn size_for(size: usize) -> usize {
        if size < ITEM_LEN { size.max(SMALL_ITEM_LEN) } else { size / ITEM_LEN * ITEM_LEN }
    }

    /// Sets the sequence number.
    pub fn set_sequence(&mut self, sequence: u64) {
        if let Some(item) = self.groups.first_mut().and_then(|group| group.items.first_mut()) {
            item.number = sequence as i32;
        }
    }

    /// Returns the sequence number; 0 without an item.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        let first = self.groups.first().and_then(|group| group.items.first());
        first.map_or(0, |item| u64::from(item.number.cast_unsigned()))
    }

    /// Returns the payload size of a sample that [`filled`](Self::filled) created.
    #[must_use]
    pub fn size(&self) -> usize {
        match self.groups.as_slice() {
            [] => 0,
            [Group { items }] if items.len() == 1 && items[0].name.len() < NAME_LEN => {
                items[0].name.len() + SMALL_ITEM_LEN
            }
            groups => groups.iter().map(|group| group.items.len() * ITEM_LEN).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_contract() {
        let items = |size| {
            let complex = Complex::filled(size);
            let lens: Vec<usize> = complex.groups.iter().map(|group| group.items.len()).collect();
            (lens, complex.groups[0].items[0].name.len())
        };
        assert_eq!(items(4), (vec![1], 0));
        assert_eq!(items(16), (vec![1], 7));
        assert_eq!(items(32), (vec![1], 23));
        assert_eq!(items(512), (vec![8, 8], 23));
        assert_eq!(items(320), (vec![8, 2], 23));
    }

    #[test]
    fn sequence_number_and_size_can_be_read() {
        for (size, whole) in [(4, 9), (9, 9), (16, 16), (32, 32), (48, 32), (320, 320), (4096, 4096)] {
            let mut complex = Complex::filled(size);
            complex.set_sequence(77);
            assert_eq!((complex.sequence(), complex.size(), Complex::size_for(size)), (77, whole, whole));
        }
        assert_eq!((Complex::default().sequence(), Complex::default().size()), (0, 0));
    }
}
