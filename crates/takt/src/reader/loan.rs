//! Samples that stay where they were written: in the shared memory of the writer's participant; or where they arrived: in the frame that
//! a transport received which lets frames be held, such as AF_XDP.
//!
//! A reader that [borrows](DataReader::borrow_samples) keeps no copy of what is lent to it. The lender uses the memory again when
//! the last reader has let go of it, so it waits in the reader's history, and in what the application has taken, at the lender's
//! expense. If that has no more to lend, it copies: nobody waits. Of frames a transport lets only some be held, and what comes beyond is
//! copied as it arrives. Frames are written by nobody while they are held.
//!
//! # What can be trusted
//! The kernel lets nobody but the lender's process write there, and a lender that is Takt does not while it lends. One that is
//! broken or hostile, which could only be another process of the same user, may. So there is no reference to the bytes: they are
//! copied out, all or some of them ([`LoanedSample::read_at`]), by loads that are sound whatever the other side does; and
//! [`LoanedSample::is_intact`] tells whether the lender claims to have left them alone. What is decoded is decoded from a copy.

use std::fmt;
use std::marker::PhantomData;

use takt_core::{ReadCursor, SampleInfo, Selector};
use takt_wire::Lent;
use takt_xtypes::ENCAPSULATION_LEN;

use super::DataReader;
use crate::{Readable, Result};

/// The payload of a sample, as it was lent or as a copy: its serialised body, without the encapsulation header.
pub struct LoanedSample<T> {
    /// What is known of it. If `valid_data` is false there are no data; then the payload is that of the key, if it is known.
    pub info: SampleInfo,
    payload: Payload,
    type_: PhantomData<fn() -> T>,
}

enum Payload {
    Lent(Lent),
    Copied(Vec<u8>),
}

impl<T: Readable> DataReader<T> {
    /// Whether samples that are lent to this reader stay in the writer's memory, or in their frames, until they are taken; from the start they are
    /// copied as they arrive. For readers without keys and without a content filter, others go on copying. Query conditions of
    /// a reader that borrows see no data. Concerns what arrives from now on.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after [`close`](crate::AnyDataReader::close).
    pub fn borrow_samples(&self, borrows: bool) -> Result<()> {
        self.core.engine.look(|driver| Ok(driver.core.set_borrowing(self.core.handle, borrows)?))
    }

    /// Takes the oldest sample without reading it. One that is lent is lent on: nothing is copied or allocated, and it stays for as
    /// long as the [`LoanedSample`] does. Any other is copied into memory of its own. `None` if there is no sample.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after [`close`](crate::AnyDataReader::close).
    pub fn take_loaned(&self) -> Result<Option<LoanedSample<T>>> {
        self.pass(|driver, now| {
            let found = driver.core.borrow_next(now, self.core.handle, Selector::TAKE, &mut ReadCursor::default())?;
            Ok(found.map(|found| LoanedSample {
                info: found.info,
                payload: match found.lent {
                    Some(lent) if found.payload.is_empty() => Payload::Lent(lent.clone()),
                    _ => Payload::Copied(found.payload.to_vec()),
                },
                type_: PhantomData,
            }))
        })
    }
}

impl<T: Readable> LoanedSample<T> {
    /// The length of the body in octets, up to three of padding included.
    #[must_use]
    pub fn len(&self) -> usize {
        let len = match &self.payload {
            Payload::Lent(lent) => lent.len(),
            Payload::Copied(bytes) => bytes.len(),
        };
        len.saturating_sub(ENCAPSULATION_LEN)
    }

    /// Whether there is no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it lies in the writer's memory, or in the frame that it came in.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        matches!(self.payload, Payload::Lent(_))
    }

    /// Copies what begins `offset` octets into the body. Returns how much there was.
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> usize {
        let count = self.len().saturating_sub(offset).min(to.len());
        if count > 0 {
            self.copy_payload(ENCAPSULATION_LEN + offset, &mut to[..count]);
        }
        count
    }

    /// Whether what was read before this call was what the writer wrote, if that keeps to the rules.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        match &self.payload {
            Payload::Lent(lent) => lent.is_intact(),
            Payload::Copied(_) => true,
        }
    }

    /// Decodes the sample into `value`, whose memory is reused, from a copy. False if it is no `T`, or was overwritten. Allocates.
    #[must_use]
    pub fn decode(&self, value: &mut T) -> bool {
        match &self.payload {
            Payload::Copied(bytes) => value.decode(&self.info, bytes),
            Payload::Lent(lent) => {
                let mut bytes = vec![0; lent.len()];
                self.copy_payload(0, &mut bytes);
                self.is_intact() && value.decode(&self.info, &bytes)
            }
        }
    }

    fn copy_payload(&self, from: usize, to: &mut [u8]) {
        match &self.payload {
            Payload::Lent(lent) => lent.copy_to(from, to),
            Payload::Copied(bytes) => to.copy_from_slice(&bytes[from..][..to.len()]),
        }
    }
}

impl<T: Readable> fmt::Debug for LoanedSample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoanedSample").field("info", &self.info).field("len", &self.len()).finish_non_exhaustive()
    }
}
