//! Samples that readers of the same process get as they are: nobody serialises them, nobody copies them.
//!
//! What travels is a reference, by the way that all datagrams go between participants with shared memory, so all policies are
//! what they are otherwise. Whoever needs the bytes after all (a reader elsewhere that joins later and is owed history, a content
//! filter, a new instance's key, a reader that decodes) has them made, once for all.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use takt_core::{ChangeKind, NewChange};
use takt_wire::{LENT_PREFIX_LEN, Lent, LentMemory, Piece};
use takt_xtypes::Representation;

use super::{DataWriter, Publication, loan};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// A sample that is lent as it is.
struct Object<T> {
    sample: Arc<dyn Any + Send + Sync>,
    representation: Representation,
    /// The first octets of its payload.
    prefix: [u8; LENT_PREFIX_LEN],
    payload: OnceLock<Vec<u8>>,
    type_: PhantomData<fn(T)>,
}

impl<T: TypeSupport + Send + Sync + 'static> Object<T> {
    /// Says also how long the payload is.
    fn lend(sample: Arc<T>, representation: Representation) -> Result<(usize, Lent)> {
        let (len, prefix) = takt_xtypes::measure(&*sample, representation)?;
        let object = Self { sample, representation, prefix, payload: OnceLock::new(), type_: PhantomData };
        let too_long = |_| Error::OutOfResources { limit: "payload octets", value: len as u64 };
        let piece = Piece { slot: 0, generation: 1, grain: 0, len: u32::try_from(len).map_err(too_long)? };
        Ok((len, Lent::new(Arc::new(object), piece)))
    }

    fn payload(&self, piece: &Piece) -> &[u8] {
        self.payload.get_or_init(|| {
            let mut payload = vec![0; piece.len as usize];
            let sample = self.sample.downcast_ref::<T>().expect("it was made of a T");
            if takt_xtypes::serialize(sample, self.representation, &mut payload).is_err() {
                // A type that changes while it is shared: to be recognised as none.
                payload.fill(0);
            }
            payload
        })
    }
}

impl<T: TypeSupport + Send + Sync + 'static> LentMemory for Object<T> {
    fn bytes(&self, piece: &Piece) -> Option<&[u8]> {
        Some(self.payload(piece))
    }

    fn prefix(&self, _: &Piece) -> Option<[u8; LENT_PREFIX_LEN]> {
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

    // Whoever has it holds the object itself.
    fn retain(&self, _: &Piece) {}

    fn release(&self, _: &Piece) {}
}

impl<T> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("is_serialised", &self.payload.get().is_some()).finish_non_exhaustive()
    }
}

impl<T: TypeSupport + Send + Sync + 'static> DataWriter<T> {
    /// Publishes a sample that stays where it is, if all readers that are matched now are in this process and share memory with the
    /// writer's participant, or belong to it: [`take_shared`](crate::DataReader::take_shared) there gives this very `sample`. It
    /// is kept for as long as the history of the writer or of a reader has it. Otherwise it is written as by
    /// [`write`](DataWriter::write).
    ///
    /// Its length is measured, not its content looked at; it counts as if it were serialised. Allocates some hundred octets,
    /// whatever its length.
    ///
    /// # Errors
    /// As [`write`](DataWriter::write).
    pub fn write_shared(&self, sample: Arc<T>) -> Result<()> {
        let core = &*self.core;
        let publication = Publication::default();
        let mut otherwise = self.attempt(&*sample, &publication)?;
        let key_hash = takt_xtypes::key_hash(&*sample)?;
        let mut lent = None;
        let attempt = |driver: &mut Driver, now| {
            if !driver.stays_in_process(core.handle)? {
                return otherwise(driver, now);
            }
            if lent.is_none() {
                lent = Some(Object::lend(Arc::clone(&sample), self.representation)?);
            }
            let Some((payload_len, object)) = &lent else { unreachable!("it was made just now") };
            let change = NewChange {
                kind: ChangeKind::Alive,
                key_hash,
                source_timestamp: None,
                destinations: &[],
                payload_len: *payload_len,
            };
            loan::write(driver, now, core.handle, &change, object)
        };
        core.engine.block_on(&core.progress, || clock::deadline(clock::now(), core.patience), attempt)
    }
}
