//! Reads and takes: passes over the samples in order of arrival (DDS 1.4 §2.2.2.5.1).

use super::{NONE, ReaderCache, Stored};
use crate::cache::pool::PayloadRef;
use crate::cache::sample::{ChangeKind, ReadCursor, SampleInfo, SampleRef, SampleState, Selector, ViewState};

impl ReaderCache {
    /// The next sample that the selector wants, after the cursor. The payload is borrowed until the next call.
    /// Visits the samples in order of arrival; samples passed over cost a step each.
    pub(crate) fn next(&mut self, selector: Selector, cursor: &mut ReadCursor) -> Option<SampleRef<'_>> {
        self.release_taken();
        if cursor.pass == 0 {
            self.passes += 1;
            cursor.pass = self.passes;
        }
        let (at, info) = self.find(&selector, self.first_after(*cursor), cursor.pass)?;
        let entry = &mut self.entries[at as usize];
        *cursor = ReadCursor { after: entry.arrival, entry: at, ..*cursor };
        entry.read = true;
        let (payload, instance) = (entry.incoming.payload, entry.instance);
        let state = &mut self.instances[instance as usize];
        if core::mem::replace(&mut state.view, ViewState::NotNew) == ViewState::New {
            state.new_in_pass = cursor.pass;
        }
        if selector.take {
            self.unlink(at);
            self.taken = at;
        }
        let bytes = match payload {
            PayloadRef::EMPTY => &self.instances[instance as usize].key,
            _ => self.pool.bytes(payload),
        };
        Some(SampleRef { info, payload: bytes })
    }

    /// Whether there is a sample that the selector wants; changes nothing.
    pub(crate) fn has(&self, selector: &Selector) -> bool {
        self.find(selector, self.oldest, 0).is_some()
    }

    /// The first sample from `at` on that the selector wants, as a pass sees it; zero is none that has begun.
    fn find(&self, selector: &Selector, mut at: u32, pass: u64) -> Option<(u32, SampleInfo)> {
        while at != NONE {
            let info = self.info(at, pass);
            if selector.wants(&info) {
                return Some((at, info));
            }
            at = self.entries[at as usize].next;
        }
        None
    }

    /// Frees the sample that the last `next` took.
    pub(crate) fn release_taken(&mut self) {
        let taken = core::mem::replace(&mut self.taken, NONE);
        if taken != NONE {
            self.discard(Stored(taken));
            self.forget_if_gone(self.entries[taken as usize].instance);
        }
    }

    fn first_after(&self, cursor: ReadCursor) -> u32 {
        match self.entries.get(cursor.entry as usize) {
            Some(entry) if cursor.after != 0 && entry.arrival == cursor.after => return entry.next,
            _ => {}
        }
        let mut at = self.oldest;
        while at != NONE && self.entries[at as usize].arrival <= cursor.after {
            at = self.entries[at as usize].next;
        }
        at
    }

    fn info(&self, index: u32, pass: u64) -> SampleInfo {
        let entry = &self.entries[index as usize];
        let instance = &self.instances[entry.instance as usize];
        SampleInfo {
            sample_state: if entry.read { SampleState::Read } else { SampleState::NotRead },
            view_state: if pass != 0 && instance.new_in_pass == pass { ViewState::New } else { instance.view },
            instance_state: instance.state,
            instance_handle: instance.handle,
            publication: entry.incoming.writer,
            sequence_number: entry.incoming.sn,
            source_timestamp: entry.incoming.source_timestamp,
            reception_timestamp: entry.reception_timestamp,
            disposed_generation_count: entry.disposed_generation,
            no_writers_generation_count: entry.no_writers_generation,
            valid_data: entry.incoming.kind == ChangeKind::Alive,
        }
    }
}
