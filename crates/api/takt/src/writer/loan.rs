//! Loaned payloads: serialized into shared memory, or written there by the application, and
//! loaned to the readers on this host.
//!
//! If any matched reader can borrow, a payload of [`LOAN_LEN_MIN`] octets or more is serialized
//! into the participant's shared memory segment instead of the history's memory. The history refers
//! to it. Readers that cannot borrow are sent a copy of the bytes. If the segment has no free
//! memory, the payload is copied as usual, and the copy is counted.
//!
//! With [`DataWriter::loan`] the application writes the payload itself. Such a payload of any
//! length is neither serialized nor copied.

use std::fmt;
use std::ops::{Deref, DerefMut};

use takt_core::{ChangeKind, Instant, NewChange, WriteError, WriterHandle};
use takt_transport::shm::Loan;
use takt_wire::SharedPayload;
use takt_xtypes::{ENCAPSULATION_LEN, EncodeError, encapsulation};

use super::DataWriter;
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// Minimum length of a loaned payload in octets. Copying a shorter payload costs less than managing
/// a loan.
pub(super) const LOAN_LEN_MIN: usize = 4096;

/// Serializes a payload into loanable memory. Returns `None` if no reader can borrow, or no memory
/// is free.
pub(super) fn serialize_to_loan(
    driver: &mut Driver,
    writer: WriterHandle,
    payload_len: usize,
    serialize: impl FnOnce(&mut [u8]) -> std::result::Result<usize, EncodeError>,
) -> Result<Option<SharedPayload>> {
    if !driver.core.has_loan_readers(writer)? {
        return Ok(None);
    }
    let Some(mut loan) = driver.loan(payload_len) else { return Ok(None) };
    let len = serialize(loan.bytes_mut())?;
    Ok(Some(loan.finish(len)))
}

/// Writes a sample whose payload is loaned. Returns false if the history is full.
pub(super) fn write(
    driver: &mut Driver,
    now: Instant,
    writer: WriterHandle,
    change: &NewChange<'_>,
    loaned: &SharedPayload,
) -> Result<bool> {
    match driver.core.write_loan(now, writer, change, loaned) {
        Ok(_) => Ok(true),
        Err(WriteError::WouldBlock) => Ok(false),
        Err(WriteError::Refused(error)) => Err(error.into()),
        Err(WriteError::Serialize) => unreachable!("the sample is serialized already"),
    }
}

/// Memory for the payload of one sample, returned by [`DataWriter::loan`]: the serialized body
/// without the encapsulation header. Dropping it without writing frees the memory.
pub struct LoanedPayload {
    memory: Memory,
    len: usize,
}

enum Memory {
    /// Shared memory to be loaned to readers.
    Shared(Loan),
    /// Private memory to be copied.
    Own(Vec<u8>),
}

impl LoanedPayload {
    /// Reports whether the payload is loaned to readers on this host. Otherwise it is copied like
    /// any other.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, Memory::Shared(_))
    }

    fn payload_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Shared(loan) => loan.bytes_mut(),
            Memory::Own(bytes) => bytes,
        }
    }
}

impl Deref for LoanedPayload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let payload = match &self.memory {
            Memory::Shared(loan) => loan.bytes(),
            Memory::Own(bytes) => bytes,
        };
        &payload[ENCAPSULATION_LEN..][..self.len]
    }
}

impl DerefMut for LoanedPayload {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        &mut self.payload_mut()[ENCAPSULATION_LEN..][..len]
    }
}

impl fmt::Debug for LoanedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoanedPayload").field("len", &self.len).field("is_shared", &self.is_shared()).finish()
    }
}

impl<T: TypeSupport> DataWriter<T> {
    /// Returns memory for a sample whose serialized form the application writes itself.
    /// [`write_loaned`](Self::write_loaned) publishes it. The memory has `len` octets, which follow
    /// the encapsulation header. The encoding is the first one that the writer offers,
    /// little-endian. A structure that is one array of octets is encoded as these octets. A
    /// sequence of octets is preceded by its length in four octets. The memory contains zeros or
    /// data that this participant wrote earlier.
    ///
    /// If readers on this host can borrow and shared memory is free, the memory is shared.
    /// Otherwise the call allocates private memory, which is copied when the sample is written.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] if the type has a key; [`Error::OutOfResources`] if `len`
    /// exceeds the maximum length of a payload; [`Error::AlreadyDeleted`] after
    /// [`close`](crate::AnyDataWriter::close).
    pub fn loan(&self, len: usize) -> Result<LoanedPayload> {
        if T::HAS_KEY {
            return Err(Error::IllegalOperation {
                what: "the key of a sample serialized by the application is unknown",
            });
        }
        let payload_len = len.checked_next_multiple_of(4).and_then(|body| body.checked_add(ENCAPSULATION_LEN));
        let payload_len = payload_len.filter(|len| u32::try_from(*len).is_ok());
        let payload_len = payload_len.ok_or(Error::OutOfResources { limit: "payload octets", value: len as u64 })?;
        let loan = self.core.engine.inspect(|driver| {
            let borrowed = driver.core.has_loan_readers(self.core.handle)?;
            Ok(if borrowed { driver.loan(payload_len) } else { None })
        })?;
        let memory = loan.map_or_else(|| Memory::Own(vec![0; payload_len]), Memory::Shared);
        let mut loaned = LoanedPayload { memory, len };
        let payload = loaned.payload_mut();
        payload[..ENCAPSULATION_LEN].copy_from_slice(&encapsulation::<T>(self.representation, len));
        payload[ENCAPSULATION_LEN + len..].fill(0);
        Ok(loaned)
    }

    /// Publishes a sample that the application has written into memory of [`loan`](Self::loan). The
    /// content is not checked: the caller is responsible for a valid `T`. Readers count and drop an
    /// invalid one. Blocks like [`write`](DataWriter::write).
    ///
    /// # Errors
    /// As [`write`](DataWriter::write). The sample is lost in case of an error.
    pub fn write_loaned(&self, loaned: LoanedPayload) -> Result<()> {
        let core = &*self.core;
        let payload_len = loaned.len.next_multiple_of(4) + ENCAPSULATION_LEN;
        core.check_len(payload_len)?;
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len,
        };
        match loaned.memory {
            Memory::Shared(loan) => {
                let payload = loan.finish(payload_len);
                let attempt =
                    |driver: &mut Driver, now| Ok(write(driver, now, core.handle, &change, &payload)?.then_some(()));
                core.write_with(attempt)
            }
            Memory::Own(bytes) => core.write_with(|driver, now| {
                let fill = |out: &mut [u8]| {
                    out.copy_from_slice(&bytes);
                    Some(bytes.len())
                };
                match driver.core.write(now, core.handle, &change, fill) {
                    Ok(_) => Ok(Some(())),
                    Err(WriteError::WouldBlock) => Ok(None),
                    Err(WriteError::Refused(error)) => Err(core.length_error(error, payload_len)),
                    Err(WriteError::Serialize) => unreachable!("copying does not fail"),
                }
            }),
        }
    }
}
