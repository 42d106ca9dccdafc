//! Reassembly of frames that the kernel delivers in several parts, each in its own chunk.
//!
//! Bounds: one copy of such a frame, to memory for the longest one that is allocated in advance. A
//! longer frame is refused as a whole.

/// Reassembles one frame after another.
#[derive(Debug)]
pub(crate) struct Assembly {
    octets: Box<[u8]>,
    /// Octets of the parts received so far, stored or not.
    len: usize,
    /// The last received part was not the last one of its frame.
    is_open: bool,
}

impl Assembly {
    /// Makes a buffer for frames of at most `longest` octets.
    pub(crate) fn new(longest: usize) -> Self {
        Self { octets: vec![0; longest].into(), len: 0, is_open: false }
    }

    /// Reports whether a frame is incomplete.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Adds a part, which `more` parts of the frame follow. Returns the length of the frame when it
    /// is complete. A `part` of `None` is unreadable and spoils the frame.
    pub(crate) fn add(&mut self, part: Option<&[u8]>, more: bool) -> Result<Option<usize>, Damaged> {
        if !self.is_open {
            self.len = 0;
        }
        self.is_open = more;
        let end = part.and_then(|part| self.len.checked_add(part.len())).unwrap_or(usize::MAX);
        if let (Some(part), Some(room)) = (part, self.octets.get_mut(self.len.min(end)..end)) {
            room.copy_from_slice(part);
        }
        self.len = end;
        match more {
            true => Ok(None),
            false if end <= self.octets.len() => Ok(Some(end)),
            false => Err(Damaged),
        }
    }

    /// Returns the first octets of the last complete frame. Panics beyond the longest frame.
    pub(crate) fn octets(&self, len: usize) -> &[u8] {
        &self.octets[..len]
    }
}

/// A part of the frame was unreadable, or the frame was too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_to_one_frame_after_another() {
        let mut assembly = Assembly::new(10);
        for _ in 0..2 {
            assert_eq!(assembly.add(Some(&[1, 2, 3, 4]), true), Ok(None));
            assert!(assembly.is_open());
            assert_eq!(assembly.add(Some(&[5, 6, 7, 8]), true), Ok(None));
            assert_eq!(assembly.add(Some(&[9, 10]), false), Ok(Some(10)));
            assert!(!assembly.is_open());
            assert_eq!(assembly.octets(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        }
    }

    #[test]
    fn damaged_frame_is_refused_as_a_whole() {
        let mut assembly = Assembly::new(10);
        for second in [Some(&[0; 7][..]), None] {
            assert_eq!(assembly.add(Some(&[1, 2, 3, 4]), true), Ok(None));
            assert_eq!(assembly.add(second, true), Ok(None));
            assert_eq!(assembly.add(Some(&[1]), true), Ok(None));
            assert_eq!(assembly.add(Some(&[1]), false), Err(Damaged));
            assert_eq!(assembly.add(None, false), Err(Damaged));
            assert_eq!(assembly.add(Some(&[7]), false), Ok(Some(1)), "the next one is not");
            assert_eq!(assembly.octets(1), [7]);
        }
    }
}
