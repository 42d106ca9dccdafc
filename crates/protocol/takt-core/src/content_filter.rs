//! Interface of content filters; the filter language is outside this crate
//! (DDS 1.4 §2.2.2.3.3, RTPS 2.5 §8.7.3).
//!
//! A reader does not receive a sample that its filter rejects. The sample takes no room in the
//! history, starts no period of DEADLINE, creates no instance and leaves the state of an existing
//! one. Only data are filtered: a dispose or unregister always arrives, and takes effect if the
//! reader knows the instance.

use alloc::boxed::Box;
use core::fmt;
use takt_wire::discovery::ContentFilterProperty;

/// Decides which samples pass. The implementation knows the type, so the core need not.
pub trait ContentFilter: Send {
    /// Reports whether a sample passes. `payload` begins with its encapsulation header. A payload
    /// that cannot be decoded passes, because it is counted where it is decoded. Implementations
    /// should not allocate.
    fn passes(&mut self, payload: &[u8]) -> bool;

    /// Evaluates the filter within a budget of steps and subtracts the steps it used. Returns
    /// `None` if the budget does not suffice. A step costs as much as a comparison of two
    /// characters, some nanoseconds. The default implementation counts one step for each octet of
    /// the payload.
    fn passes_within(&mut self, payload: &[u8], steps: &mut u64) -> Option<bool> {
        *steps = steps.checked_sub(payload.len() as u64)?;
        Some(self.passes(payload))
    }
}

/// Compiles the content filters that remote readers request from local writers.
pub trait FilterFactory: fmt::Debug + Send + Sync {
    /// Returns the filter; `None` if the class is unknown, or the expression does not match the
    /// type or is too costly. Without a filter the reader gets every sample. Called when a reader
    /// is discovered or changes its filter.
    fn compile(&self, property: &ContentFilterProperty) -> Option<Box<dyn ContentFilter>>;
}

/// Filter of a local reader: the announced expression and its compiled form.
pub struct ReaderFilter {
    /// Filter as announced to remote writers.
    pub property: ContentFilterProperty,
    /// Compiled form of `property`.
    pub filter: Box<dyn ContentFilter>,
}

impl fmt::Debug for ReaderFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderFilter").field("property", &self.property).finish_non_exhaustive()
    }
}
