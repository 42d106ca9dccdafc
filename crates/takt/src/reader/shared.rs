//! Samples of writers in the same process, as these have them: see [`DataWriter::write_shared`](crate::DataWriter::write_shared).

use std::sync::Arc;

use takt_core::{ReadCursor, SampleInfo, SampleRef, Selector};

use super::DataReader;
use crate::{Readable, Result};

/// A sample that others may have, too.
#[derive(Clone, Debug)]
pub struct SharedSample<T> {
    /// The data; `None` if there is only news of the instance (`info.valid_data` is false).
    pub data: Option<Arc<T>>,
    /// About the sample.
    pub info: SampleInfo,
}

impl<T: Readable + Sync> DataReader<T> {
    /// Takes the oldest sample. One that was [shared](crate::DataWriter::write_shared) is the very one that the writer had: nothing
    /// is copied or allocated, and it stays for as long as anybody has it. Any other is decoded into memory of its own. `None`
    /// if there is no sample. A payload that is no `T` is dropped and counted
    /// ([`deserialize_failures`](crate::AnyDataReader::deserialize_failures)).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after [`close`](crate::AnyDataReader::close).
    pub fn take_shared(&self) -> Result<Option<SharedSample<T>>> {
        self.pass(|driver, now| {
            let mut cursor = ReadCursor::default();
            while let Some(found) = driver.core.borrow_next(now, self.core.handle, Selector::TAKE, &mut cursor)? {
                let info = found.info;
                if !info.valid_data {
                    return Ok(Some(SharedSample { data: None, info }));
                }
                if let Some(data) = self.shared(&found) {
                    return Ok(Some(SharedSample { data: Some(data), info }));
                }
            }
            Ok(None)
        })
    }

    /// The sample itself, or one that was decoded. `None`, and counted, if it is no `T`.
    fn shared(&self, found: &SampleRef<'_>) -> Option<Arc<T>> {
        let object = found.lent.and_then(|lent| lent.object());
        if let Some(Ok(sample)) = object.map(|object| Arc::clone(object).downcast()) {
            return Some(sample);
        }
        let mut copy = Vec::new();
        let payload = match found.lent {
            Some(lent) => {
                copy.resize(lent.len(), 0);
                lent.copy_to(0, &mut copy);
                // What its lender has overwritten is none.
                if lent.is_intact() { &copy[..] } else { &[] }
            }
            None => found.payload,
        };
        let mut sample = T::default();
        self.decode(&found.info, payload, &mut sample).then(|| Arc::new(sample))
    }
}
