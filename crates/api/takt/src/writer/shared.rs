//! In-process samples, which readers of the same process receive by reference: neither serialized
//! nor copied.
//!
//! A datagram that contains the reference travels on the usual path of participants with shared
//! memory, so all policies apply unchanged. If a consumer needs the serialized bytes, they are
//! produced once. Such consumers are a late joiner in another process, a content filter, the key of
//! a new instance, and a reader that decodes.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use takt_core::{ChangeKind, NewChange};
use takt_wire::{PAYLOAD_PREFIX_LEN, Piece, SharedPayload, SharedPayloadMemory};
use takt_xtypes::Representation;

use super::{DataWriter, Publication, SampleChange, loan};
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// Sample that is loaned by reference.
struct Object<T> {
    sample: Arc<dyn Any + Send + Sync>,
    representation: Representation,
    /// First octets of the serialized payload.
    prefix: [u8; PAYLOAD_PREFIX_LEN],
    payload: OnceLock<Vec<u8>>,
    type_: PhantomData<fn(T)>,
}

impl<T: TypeSupport + Send + Sync + 'static> Object<T> {
    /// Creates the object. Also returns the length of the serialized payload.
    fn share(sample: Arc<T>, representation: Representation) -> Result<(usize, SharedPayload)> {
        let (len, prefix) = takt_xtypes::measure(&*sample, representation)?;
        let object = Self { sample, representation, prefix, payload: OnceLock::new(), type_: PhantomData };
        let too_long = |_| Error::OutOfResources { limit: "payload octets", value: len as u64 };
        let piece = Piece { slot: 0, generation: 1, grain: 0, len: u32::try_from(len).map_err(too_long)? };
        Ok((len, SharedPayload::new(Arc::new(object), piece)))
    }

    fn payload(&self, piece: &Piece) -> &[u8] {
        self.payload.get_or_init(|| {
            let mut payload = vec![0; piece.len as usize];
            let sample = self.sample.downcast_ref::<T>().expect("created from a T");
            if takt_xtypes::serialize(sample, self.representation, &mut payload).is_err() {
                // The value changed while it was shared; zeros make the payload invalid.
                payload.fill(0);
            }
            payload
        })
    }
}

impl<T: TypeSupport + Send + Sync + 'static> SharedPayloadMemory for Object<T> {
    fn bytes(&self, piece: &Piece) -> Option<&[u8]> {
        Some(self.payload(piece))
    }

    fn prefix(&self, _: &Piece) -> Option<[u8; PAYLOAD_PREFIX_LEN]> {
        Some(self.prefix)
    }

    fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        Some(&self.sample)
    }

    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]) {
        let bytes = self.payload(piece).get(from..).unwrap_or_default();
        let len = bytes.len().min(to.len());
        to[..len].copy_from_slice(&bytes[..len]);
    }

    fn is_intact(&self, _: &Piece) -> bool {
        true
    }

    // Each borrower holds a reference count of the object itself.
    fn retain(&self, _: &Piece) {}

    fn release(&self, _: &Piece) {}
}

impl<T> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("is_serialized", &self.payload.get().is_some()).finish_non_exhaustive()
    }
}

impl<T: TypeSupport + Send + Sync + 'static> DataWriter<T> {
    /// Publishes a sample by reference if all matched readers belong to this participant, or are in
    /// this process and share memory with it. [`take_shared`](crate::DataReader::take_shared) then
    /// returns this very `sample`. The sample exists as long as the history of the writer or of a
    /// reader refers to it. In any other case it is written as by [`write`](DataWriter::write).
    ///
    /// The serialized length is measured and counts against the limits, but the content is not
    /// serialized. Allocates some hundred octets, regardless of the length.
    ///
    /// # Errors
    /// As [`write`](DataWriter::write).
    pub fn write_shared(&self, sample: Arc<T>) -> Result<()> {
        let core = &*self.core;
        let publication = Publication::default();
        let mut otherwise = SampleChange::new(self, &*sample, &publication)?;
        let key_hash = takt_xtypes::key_hash(&*sample)?;
        let mut loaned = None;
        let attempt = |driver: &mut Driver, now| {
            if !driver.stays_in_process(core.handle)? {
                return Ok(otherwise.write(driver, now)?.then_some(()));
            }
            if loaned.is_none() {
                loaned = Some(Object::share(Arc::clone(&sample), self.representation)?);
            }
            let Some((payload_len, object)) = &loaned else { unreachable!("created just before") };
            let change = NewChange {
                kind: ChangeKind::Alive,
                key_hash,
                source_timestamp: None,
                destinations: &[],
                payload_len: *payload_len,
            };
            Ok(loan::write(driver, now, core.handle, &change, object)?.then_some(()))
        };
        core.write_with(attempt)
    }
}
