//! Payloads in shared memory: serialised there, or written there by the application, and lent to the readers of this host.
//!
//! Where any matched reader can borrow, a payload of [`LENT_LEN_MIN`] octets or more is serialised into the participant's segment
//! in place of the history's memory. The history has it by reference; readers that cannot borrow are sent its bytes from there.
//! When no memory is free there, all is as it is without: one copy more, and counted.
//!
//! With [`DataWriter::loan`] the application writes the payload itself, and nobody serialises or copies anything, whatever its
//! length.

use std::fmt;
use std::ops::{Deref, DerefMut};

use takt_core::{ChangeKind, Instant, NewChange, WriteError, WriterHandle};
use takt_transport::shm::Loan;
use takt_wire::Lent;
use takt_xtypes::{ENCAPSULATION_LEN, EncodeError, encapsulation};

use super::DataWriter;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// Shorter payloads are copied: that costs less than to keep account of them.
pub(super) const LENT_LEN_MIN: usize = 4096;

/// Serialises a payload into memory that can be lent, if that is not done, anybody can borrow and there is such memory.
pub(super) fn lend(
    lent: &mut Option<Lent>,
    driver: &mut Driver,
    writer: WriterHandle,
    payload_len: usize,
    serialize: impl Fn(&mut [u8]) -> std::result::Result<usize, EncodeError>,
) -> Result<()> {
    if lent.is_none()
        && driver.core.has_borrowers(writer)?
        && let Some(mut loan) = driver.lend(payload_len)
    {
        let len = serialize(loan.bytes_mut())?;
        *lent = Some(loan.finish(len));
    }
    Ok(())
}

/// Writes a sample whose payload is lent; `None` if the history has no room now.
pub(super) fn write(
    driver: &mut Driver,
    now: Instant,
    writer: WriterHandle,
    change: &NewChange<'_>,
    lent: &Lent,
) -> Result<Option<()>> {
    match driver.core.write_lent(now, writer, change, lent) {
        Ok(_) => Ok(Some(())),
        Err(WriteError::WouldBlock) => Ok(None),
        Err(WriteError::Refused(error)) => Err(error.into()),
        Err(WriteError::Serialize) => unreachable!("it was serialised before"),
    }
}

/// Memory for the payload of one sample, as [`DataWriter::loan`] gives it: its serialised body, without the encapsulation
/// header. Dropped without being written, it is free again.
pub struct LoanedPayload {
    memory: Memory,
    len: usize,
}

enum Memory {
    /// To be lent.
    Shared(Loan),
    /// To be copied.
    Own(Vec<u8>),
}

impl LoanedPayload {
    /// Whether readers of this host are lent the payload; otherwise it is copied as any other.
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
    /// Memory for a sample whose serialised form the application writes itself, to be handed to
    /// [`write_loaned`](Self::write_loaned): `len` octets behind the encapsulation header, in the encoding that the writer offers
    /// first, little-endian. Of a structure that is one array of octets these are the octets; of a sequence of octets, its count
    /// in four octets before them. The content is whatever this participant wrote there last, or zeros.
    ///
    /// It lies in memory that is shared with readers of this host if there are any and some is free; otherwise in memory of its
    /// own, which the call allocates, and is copied when it is written.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] if the type has a key; [`Error::OutOfResources`] if `len` is more than a payload can have;
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataWriter::close).
    pub fn loan(&self, len: usize) -> Result<LoanedPayload> {
        if T::HAS_KEY {
            return Err(Error::IllegalOperation {
                what: "the key of a sample that the application serialises is unknown",
            });
        }
        let payload_len = len.checked_next_multiple_of(4).and_then(|body| body.checked_add(ENCAPSULATION_LEN));
        let payload_len = payload_len.filter(|len| u32::try_from(*len).is_ok());
        let payload_len = payload_len.ok_or(Error::OutOfResources { limit: "payload octets", value: len as u64 })?;
        let loan = self.core.engine.look(|driver| {
            let borrowed = driver.core.has_borrowers(self.core.handle)?;
            Ok(if borrowed { driver.lend(payload_len) } else { None })
        })?;
        let memory = loan.map_or_else(|| Memory::Own(vec![0; payload_len]), Memory::Shared);
        let mut loaned = LoanedPayload { memory, len };
        let payload = loaned.payload_mut();
        payload[..ENCAPSULATION_LEN].copy_from_slice(&encapsulation::<T>(self.representation, len));
        payload[ENCAPSULATION_LEN + len..].fill(0);
        Ok(loaned)
    }

    /// Publishes a sample that the application has written into memory of [`loan`](Self::loan). What is there is not looked at: it is
    /// up to the caller that it is a `T`; readers for which it is none count it and drop it. Blocks as
    /// [`write`](DataWriter::write) does.
    ///
    /// # Errors
    /// As [`write`](DataWriter::write); then the sample is gone.
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
        let deadline = || clock::deadline(clock::now(), core.patience);
        match loaned.memory {
            Memory::Shared(loan) => {
                let lent = loan.finish(payload_len);
                let attempt = |driver: &mut Driver, now| write(driver, now, core.handle, &change, &lent);
                core.engine.block_on(&core.progress, deadline, attempt)
            }
            Memory::Own(bytes) => core.engine.block_on(&core.progress, deadline, |driver, now| {
                let fill = |out: &mut [u8]| {
                    out.copy_from_slice(&bytes);
                    Some(bytes.len())
                };
                match driver.core.write(now, core.handle, &change, fill) {
                    Ok(_) => Ok(Some(())),
                    Err(WriteError::WouldBlock) => Ok(None),
                    Err(WriteError::Refused(error)) => Err(core.refusal(error, payload_len)),
                    Err(WriteError::Serialize) => unreachable!("copying does not fail"),
                }
            }),
        }
    }
}
