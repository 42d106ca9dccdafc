//! Zero-copy samples of writers in the same process; see
//! [`DataWriter::write_shared`](crate::DataWriter::write_shared).

use std::sync::Arc;

use takt_core::{ReadCursor, SampleInfo, SampleRef, Selector};

use super::DataReader;
use crate::{Readable, Result};

/// Sample whose data may be shared with other readers and with the writer.
#[derive(Clone, Debug)]
pub struct SharedSample<T> {
    /// Data of the sample; `None` if `info.valid_data` is false.
    pub data: Option<Arc<T>>,
    /// SampleInfo.
    pub info: SampleInfo,
}

impl<T: Readable + Sync> DataReader<T> {
    /// Takes the oldest sample. Returns `None` if there is no sample. A sample written by
    /// [`write_shared`](crate::DataWriter::write_shared) is the writer's own object: nothing is
    /// copied or allocated, and it exists as long as any owner holds it. Any other sample is
    /// decoded into memory of its own. A payload that is not a valid `T` is dropped and counted
    /// ([`deserialize_failures`](crate::AnyDataReader::deserialize_failures)).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](crate::AnyDataReader::close).
    pub fn take_shared(&self) -> Result<Option<SharedSample<T>>> {
        let Some(mut call) = self.core.begin_selected(Selector::TAKE)? else { return Ok(None) };
        let (now, core) = (call.now, call.core()?);
        let (mut cursor, mut taken) = (ReadCursor::of_loans(), None);
        while let Some(found) = core.read_next(now, self.core.handle, Selector::TAKE, &mut cursor)? {
            let data = if found.info.valid_data { self.shared(&found) } else { None };
            if data.is_some() || !found.info.valid_data {
                taken = Some(SharedSample { data, info: found.info });
                break;
            }
        }
        self.core.end_selected(call, Selector::TAKE, taken.is_some())?;
        Ok(taken)
    }

    /// Returns the shared object, or the decoded payload. Counts a payload that is not a valid `T`
    /// and returns `None`.
    fn shared(&self, found: &SampleRef<'_>) -> Option<Arc<T>> {
        let object = found.loan.and_then(|loan| loan.object());
        if let Some(Ok(sample)) = object.map(|object| Arc::clone(object).downcast()) {
            return Some(sample);
        }
        let mut copy = Vec::new();
        let payload = match found.loan {
            Some(loan) => {
                copy.resize(loan.len(), 0);
                loan.copy_to(0, &mut copy);
                // An overwritten payload is treated as empty, which is not a valid sample.
                if loan.is_intact() { &copy[..] } else { &[] }
            }
            None => found.payload,
        };
        let mut sample = T::default();
        self.decode(&found.info, payload, &mut sample).then(|| Arc::new(sample))
    }
}
