//! Byte buffer of a stream: fixed memory, filled at one end and emptied at the other.

/// Contiguous queue of bytes. Its memory is address space until it is used.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(super) fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity].into(), start: 0, end: 0 }
    }

    /// Returns the contents.
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the free space in bytes.
    pub(super) fn free(&self) -> usize {
        self.bytes.len() - (self.end - self.start)
    }

    /// Appends all bytes, or none if they do not fit.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.free() < bytes.len() {
            return false;
        }
        if self.bytes.len() - self.end < bytes.len() {
            self.compact();
        }
        self.bytes[self.end..][..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Returns the free space for writing; [`filled`](Self::filled) completes the write.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.compact();
        &mut self.bytes[self.end..]
    }

    /// Appends the first `len` bytes of the free space.
    pub(super) fn filled(&mut self, len: usize) {
        self.end = (self.end + len).min(self.bytes.len());
    }

    /// Removes `len` bytes, and returns their range, which is valid until the next change.
    pub(super) fn consume(&mut self, len: usize) -> std::ops::Range<usize> {
        let taken = self.start..(self.start + len).min(self.end);
        self.start = taken.end;
        taken
    }

    /// Returns the bytes of a range from [`consume`](Self::consume).
    pub(super) fn taken(&mut self, range: std::ops::Range<usize>) -> &mut [u8] {
        &mut self.bytes[range]
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut buffer = Buffer::new(8);
        assert!(buffer.push(b"abcde") && !buffer.push(b"fghi"), "a push is complete or fails");
        let taken = buffer.consume(3);
        assert_eq!(buffer.taken(taken), b"abc");
        assert_eq!(buffer.free(), 6);
        assert!(buffer.push(b"fghijk"));
        assert_eq!((buffer.data(), buffer.free()), (&b"defghijk"[..], 0));
        assert!(buffer.space().is_empty());
        buffer.consume(8);
        assert!(buffer.is_empty());
        assert_eq!(buffer.space().len(), 8);
        buffer.filled(2);
        assert_eq!(buffer.data().len(), 2);
    }
}
