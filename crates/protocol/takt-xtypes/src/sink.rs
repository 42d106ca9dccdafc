//! Destinations of encoded bytes: a slice, a counter, or a digest. The encoder keeps the position;
//! a sink only stores.

use md5::{Digest, Md5};

use crate::EncodeError;

mod sealed {
    /// Supertrait that restricts sinks to this crate.
    pub trait Sealed {}
}

/// Destination of encoded bytes. Sealed: the slice, counter and digest of this crate are the only
/// ones.
pub trait Sink: sealed::Sealed {
    /// True if only the length matters; `write` may be skipped.
    #[doc(hidden)]
    const COUNTS_ONLY: bool = false;
    /// True if bytes that were written can be changed.
    #[doc(hidden)]
    const PATCHES: bool = true;

    /// Stores bytes at the position.
    #[doc(hidden)]
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), EncodeError>;

    /// Stores `len < 8` zeros at the position.
    #[doc(hidden)]
    fn pad(&mut self, at: usize, len: usize) -> Result<(), EncodeError>;

    /// Stores all elements, each in `N` bytes.
    #[doc(hidden)]
    fn write_all<T: Copy, const N: usize>(
        &mut self,
        at: usize,
        values: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> Result<(), EncodeError>;

    /// Overwrites four bytes stored earlier. Called only if `PATCHES` is true.
    #[doc(hidden)]
    fn patch(&mut self, at: usize, bytes: [u8; 4]);
}

/// Sink that writes into the caller's buffer, starting at the body.
pub(crate) struct SliceSink<'a>(pub &'a mut [u8]);

impl SliceSink<'_> {
    #[inline]
    fn room(&mut self, at: usize, len: usize) -> Result<&mut [u8], EncodeError> {
        let capacity = self.0.len();
        let needed = at.saturating_add(len);
        self.0.get_mut(at..needed).ok_or(EncodeError::BufferTooSmall { needed, capacity })
    }
}

impl sealed::Sealed for SliceSink<'_> {}

impl Sink for SliceSink<'_> {
    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), EncodeError> {
        self.room(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn pad(&mut self, at: usize, len: usize) -> Result<(), EncodeError> {
        self.room(at, len)?.fill(0);
        Ok(())
    }

    #[inline]
    fn write_all<T: Copy, const N: usize>(
        &mut self,
        at: usize,
        values: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> Result<(), EncodeError> {
        let room = self.room(at, values.len().saturating_mul(N))?;
        for (to, &value) in room.as_chunks_mut::<N>().0.iter_mut().zip(values) {
            *to = bytes(value);
        }
        Ok(())
    }

    #[inline]
    fn patch(&mut self, at: usize, bytes: [u8; 4]) {
        if let Some(to) = self.0.get_mut(at..at + 4) {
            to.copy_from_slice(&bytes);
        }
    }
}

/// Sink that stores nothing: the encoder's position is the result.
pub(crate) struct CountSink;

impl sealed::Sealed for CountSink {}

impl Sink for CountSink {
    const COUNTS_ONLY: bool = true;

    #[inline]
    fn write(&mut self, _: usize, _: &[u8]) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn pad(&mut self, _: usize, _: usize) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn write_all<T: Copy, const N: usize>(
        &mut self,
        _: usize,
        _: &[T],
        _: impl Fn(T) -> [u8; N],
    ) -> Result<(), EncodeError> {
        Ok(())
    }

    #[inline]
    fn patch(&mut self, _: usize, _: [u8; 4]) {}
}

/// Sink that feeds an MD5 digest, so a key of any length is hashed without a buffer.
pub(crate) struct Md5Sink(pub Md5);

impl sealed::Sealed for Md5Sink {}

impl Sink for Md5Sink {
    const PATCHES: bool = false;

    fn write(&mut self, _: usize, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.update(bytes);
        Ok(())
    }

    fn pad(&mut self, _: usize, len: usize) -> Result<(), EncodeError> {
        self.0.update(&[0; 8][..len]);
        Ok(())
    }

    fn write_all<T: Copy, const N: usize>(
        &mut self,
        _: usize,
        values: &[T],
        bytes: impl Fn(T) -> [u8; N],
    ) -> Result<(), EncodeError> {
        for &value in values {
            self.0.update(bytes(value));
        }
        Ok(())
    }

    fn patch(&mut self, _: usize, _: [u8; 4]) {}
}
