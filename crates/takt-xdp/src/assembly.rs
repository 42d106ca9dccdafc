//! Frames that the kernel hands over in several parts, put together: each part lies in a chunk of its own, behind octets that are the
//! kernel's.
//!
//! Bounds: one copy of such a frame, to memory for the longest one that is made beforehand. What is longer is refused as a whole.

/// Puts the parts of one frame after the other together.
#[derive(Debug)]
pub(crate) struct Assembly {
    octets: Box<[u8]>,
    /// Those of the parts that came so far, kept or not.
    len: usize,
    /// The last part that came was not a frame's last one.
    is_open: bool,
}

impl Assembly {
    /// For frames of so many octets at most.
    pub(crate) fn new(longest: usize) -> Self {
        Self { octets: vec![0; longest].into(), len: 0, is_open: false }
    }

    /// Is a frame not complete yet?
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Adds a part, behind which `more` come or none; the length of the frame when it is complete. `None` for a `part` that cannot be
    /// read: it spoils the frame.
    pub(crate) fn add(&mut self, part: Option<&[u8]>, more: bool) -> Result<Option<usize>, Spoilt> {
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
            false => Err(Spoilt),
        }
    }

    /// The first octets of the last frame that was complete. Panics beyond the longest one.
    pub(crate) fn octets(&self, len: usize) -> &[u8] {
        &self.octets[..len]
    }
}

/// A part of the frame could not be read, or all were too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spoilt;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_frame_after_the_other() {
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
    fn what_is_spoilt_is_refused_as_a_whole() {
        let mut assembly = Assembly::new(10);
        for second in [Some(&[0; 7][..]), None] {
            assert_eq!(assembly.add(Some(&[1, 2, 3, 4]), true), Ok(None));
            assert_eq!(assembly.add(second, true), Ok(None));
            assert_eq!(assembly.add(Some(&[1]), true), Ok(None));
            assert_eq!(assembly.add(Some(&[1]), false), Err(Spoilt));
            assert_eq!(assembly.add(None, false), Err(Spoilt));
            assert_eq!(assembly.add(Some(&[7]), false), Ok(Some(1)), "the next one is not");
            assert_eq!(assembly.octets(1), [7]);
        }
    }
}
