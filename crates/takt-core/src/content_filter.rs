//! Content filters: what the core must know of them, which is not the language that they are written in
//! (DDS 1.4 §2.2.2.3.3, RTPS 2.5 §8.7.3).
//!
//! A filtered-out sample is one that the reader never got: it takes no place in the history, starts no period of DEADLINE,
//! makes no instance and does not touch the state of one. Only data are filtered: what happens to an instance (dispose,
//! unregister) always arrives, and matters if the reader knows the instance.

use crate::error::Error;
use crate::participant::Participant;
use crate::slots::ReaderHandle;
use crate::time::Instant;
use alloc::boxed::Box;
use core::fmt;
use takt_wire::discovery::{ContentFilterProperty, SubscriptionData};

/// Says which samples pass; the type's own code, so that the core need not know types.
pub trait ContentFilter: Send {
    /// Whether a sample passes, whose payload begins with its encapsulation header. One that cannot be read passes, for
    /// it is counted where it is decoded. Should not allocate.
    fn passes(&mut self, payload: &[u8]) -> bool;

    /// The same within a budget of steps, of which it takes away what it needs; `None` if that is more than is left. A step is what
    /// a comparison of two characters takes, some nanoseconds. Without an implementation of its own each octet of the payload
    /// costs one.
    fn passes_within(&mut self, payload: &[u8], steps: &mut u64) -> Option<bool> {
        *steps = steps.checked_sub(payload.len() as u64)?;
        Some(self.passes(payload))
    }
}

/// Makes filters of what the readers of a writer's topic ask for.
pub trait FilterFactory: fmt::Debug + Send + Sync {
    /// The filter; `None` if the class is unknown, or the expression does not fit the type or is too costly: then the
    /// reader gets everything. Called when a reader is discovered or changes its filter.
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>>;
}

/// The filter of a reader: to be applied, and to be announced.
pub struct ReaderFilter {
    /// As others are told.
    pub property: ContentFilterProperty,
    /// The same, ready to run.
    pub filter: Box<dyn ContentFilter>,
}

impl fmt::Debug for ReaderFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderFilter").field("property", &self.property).finish_non_exhaustive()
    }
}

impl Participant {
    /// Gives a reader another filter, or none, and tells others. Samples that it holds stay; a match goes on.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_content_filter(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        filter: Option<ReaderFilter>,
    ) -> Result<(), Error> {
        let reader = self.reader(handle)?;
        let mut data = reader.data.clone();
        let (property, filter) = filter.map(|filter| (filter.property, filter.filter)).unzip();
        reader.filter = filter;
        data.content_filter = property;
        self.change_reader(now, handle, data.clone())?;
        self.refilter(&data);
        Ok(())
    }

    /// A matched reader has another filter: all our writers are told.
    pub(crate) fn refilter(&mut self, subscription: &SubscriptionData) {
        for (_, writer) in self.writers.iter_mut() {
            self.ctx.work.steps(1);
            writer.set_filter(subscription.guid, subscription.content_filter.as_ref());
        }
    }
}
