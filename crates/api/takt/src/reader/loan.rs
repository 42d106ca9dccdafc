//! Loaned samples: payloads that are read without a copy, in the shared memory of the writer's
//! participant or in the received frame of a transport that lends its frames, such as AF_XDP.
//!
//! A reader that [borrows](DataReader::borrow_samples) does not copy loaned payloads. The lender
//! reuses the memory when the last reader has released it. Samples in the reader's history, and
//! samples that the application has taken, therefore occupy memory of the lender. A lender that has
//! no memory left copies instead of waiting. A transport lends a limited number of frames; further
//! frames are copied on arrival. A frame is not written while it is on loan.
//!
//! # Trust
//! Only the lender's process can write to the memory, and Takt does not write to it during a loan.
//! A broken or hostile lender, which must be another process of the same user, may write
//! nevertheless. Therefore no reference to the bytes is handed out. [`LoanedSample::read_at`]
//! copies all or some of them by loads that are sound even during concurrent writes.
//! [`LoanedSample::is_intact`] reports whether the lender claims that the bytes are unchanged.
//! Decoding works on a copy.

use std::fmt;
use std::marker::PhantomData;

use takt_core::{ReadCursor, SampleInfo, Selector};
use takt_wire::SharedPayload;
use takt_xtypes::ENCAPSULATION_LEN;

use super::DataReader;
use crate::{Readable, Result};

/// Payload of a sample, loaned or copied: its serialized body without the encapsulation header.
pub struct LoanedSample<T> {
    /// SampleInfo. If `valid_data` is false, the sample has no data; the payload is then the
    /// serialized key, if it is known.
    pub info: SampleInfo,
    payload: Payload,
    type_: PhantomData<fn() -> T>,
}

enum Payload {
    Loaned(SharedPayload),
    Copied(Vec<u8>),
}

impl<T: Readable> DataReader<T> {
    /// Sets whether payloads that are loaned to this reader stay in the writer's memory, or in
    /// their frames, until they are taken. By default they are copied on arrival. Has an effect
    /// only on readers without keys and without a content filter. Query conditions of a reader that
    /// borrows see no data. Applies to samples that arrive from now on.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](crate::AnyDataReader::close).
    pub fn borrow_samples(&self, borrows: bool) -> Result<()> {
        self.core.engine.inspect(|driver| Ok(driver.core.set_keeps_loans(self.core.handle, borrows)?))
    }

    /// Takes the oldest sample without decoding it. A loaned payload is neither copied nor
    /// allocated and remains on loan as long as the [`LoanedSample`] exists. Any other payload is
    /// copied. `None` if there is no sample.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](crate::AnyDataReader::close).
    pub fn take_loaned(&self) -> Result<Option<LoanedSample<T>>> {
        let Some(mut call) = self.core.begin_selected(Selector::TAKE)? else { return Ok(None) };
        let (now, core) = (call.now, call.core()?);
        let found = core.read_next(now, self.core.handle, Selector::TAKE, &mut ReadCursor::of_loans())?;
        let sample = found.map(|found| LoanedSample {
            info: found.info,
            payload: match found.loan {
                Some(loan) if found.payload.is_empty() => Payload::Loaned(loan.clone()),
                _ => Payload::Copied(found.payload.to_vec()),
            },
            type_: PhantomData,
        });
        self.core.end_selected(call, Selector::TAKE, sample.is_some())?;
        Ok(sample)
    }
}

impl<T: Readable> LoanedSample<T> {
    /// Returns the length of the body in octets, including up to three octets of padding.
    #[must_use]
    pub fn len(&self) -> usize {
        let len = match &self.payload {
            Payload::Loaned(loan) => loan.len(),
            Payload::Copied(bytes) => bytes.len(),
        };
        len.saturating_sub(ENCAPSULATION_LEN)
    }

    /// Reports whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether the payload is in the writer's memory or in the received frame.
    #[must_use]
    pub fn is_loaned(&self) -> bool {
        matches!(self.payload, Payload::Loaned(_))
    }

    /// Copies the body from octet `offset` on into `to`. Returns the number of octets copied.
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(offset).min(to.len());
        if count > 0 {
            self.copy_payload(ENCAPSULATION_LEN + offset, &mut to[..count]);
        }
        count
    }

    /// Reports whether the data read before this call is what the writer wrote, provided that the
    /// lender is correct.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        match &self.payload {
            Payload::Loaned(loan) => loan.is_intact(),
            Payload::Copied(_) => true,
        }
    }

    /// Decodes a copy of the sample into `value`, whose memory is reused. Returns false if the
    /// payload is not a valid `T` or was overwritten. Allocates if the sample is loaned.
    #[must_use]
    pub fn decode(&self, value: &mut T) -> bool {
        match &self.payload {
            Payload::Copied(bytes) => value.decode(&self.info, bytes),
            Payload::Loaned(loan) => {
                let mut bytes = vec![0; loan.len()];
                self.copy_payload(0, &mut bytes);
                self.is_intact() && value.decode(&self.info, &bytes)
            }
        }
    }

    fn copy_payload(&self, from: usize, to: &mut [u8]) {
        match &self.payload {
            Payload::Loaned(loan) => loan.copy_to(from, to),
            Payload::Copied(bytes) => to.copy_from_slice(&bytes[from..][..to.len()]),
        }
    }
}

impl<T: Readable> fmt::Debug for LoanedSample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoanedSample").field("info", &self.info).field("len", &self.len()).finish_non_exhaustive()
    }
}
