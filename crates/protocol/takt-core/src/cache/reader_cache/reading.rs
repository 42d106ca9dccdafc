//! Reads and takes: passes over the samples in order of arrival, or from instance to instance
//! (DDS 1.4 §2.2.2.5.1, §2.2.2.5.3).

use super::lists::Entry;
use super::{Incoming, NONE, ReaderCache, Stored};
use crate::cache::pool::PayloadRef;
use crate::cache::sample::{
    ChangeKind, Instances, OrderedSample, ReadCursor, SampleInfo, SampleQuery, SampleRef, Selector, ViewState,
};
use alloc::vec::Vec;
use core::ops::Bound;

/// List of samples that a search follows.
#[derive(Clone, Copy)]
enum List {
    /// All samples.
    Arrivals,
    /// Samples of one instance.
    Instance,
}

impl ReaderCache {
    /// Reads or takes the next sample after the cursor that the selector and the query match, but
    /// not in the query's order. The payload is borrowed until the next call. Visits the samples in
    /// the order of the pass; each skipped sample costs a step.
    pub(crate) fn next(
        &mut self,
        selector: Selector,
        query: Option<&dyn SampleQuery>,
        cursor: &mut ReadCursor,
    ) -> Option<SampleRef<'_>> {
        self.release_taken();
        self.begin_pass(cursor);
        let in_arrival_order = selector.instance == Instances::Any && !self.by_instance;
        let at = if in_arrival_order {
            self.find(&selector, query, self.first_after(*cursor), cursor.pass, List::Arrivals)?
        } else {
            self.find_by_instance(&selector, query, cursor)?
        };
        Some(self.return_sample(at, selector, cursor))
    }

    /// Returns the samples that match the selector and a query, in the query's order. Equal ones
    /// stay in order of arrival.
    pub(crate) fn sorted(&self, mut selector: Selector, query: &dyn SampleQuery) -> Vec<OrderedSample> {
        if let Instances::After(_) = selector.instance {
            let mut cursor = ReadCursor::default();
            match self.find_by_instance(&selector, Some(query), &mut cursor).and(cursor.instance) {
                Some(instance) => selector.instance = Instances::Only(instance),
                None => return Vec::new(),
            }
        }
        let (mut found, mut at) = (Vec::new(), self.oldest);
        while let Some(entry) = self.find(&selector, Some(query), at, 0, List::Arrivals) {
            found.push(OrderedSample { entry, arrival: self.entries[entry as usize].arrival });
            at = self.entries[entry as usize].next;
        }
        let payload = |sample: &OrderedSample| self.pool.bytes(self.entries[sample.entry as usize].incoming.payload);
        found.sort_by(|a, b| query.compare(payload(a), payload(b)));
        found
    }

    /// Reads or takes a sample of that list, if it still exists.
    pub(crate) fn next_of(
        &mut self,
        sample: OrderedSample,
        selector: Selector,
        cursor: &mut ReadCursor,
    ) -> Option<SampleRef<'_>> {
        self.release_taken();
        self.begin_pass(cursor);
        let still_exists = |entry: &super::lists::Entry| sample.arrival != 0 && entry.arrival == sample.arrival;
        self.entries.get(sample.entry as usize).filter(|entry| still_exists(entry))?;
        Some(self.return_sample(sample.entry, selector, cursor))
    }

    fn begin_pass(&mut self, cursor: &mut ReadCursor) {
        if cursor.pass == 0 {
            self.passes += 1;
            cursor.pass = self.passes;
        }
    }

    /// Returns a sample, and marks it as read or taken.
    fn return_sample(&mut self, at: u32, selector: Selector, cursor: &mut ReadCursor) -> SampleRef<'_> {
        let mut info = self.info(at, cursor.pass);
        let Entry { incoming: Incoming { payload, kind, .. }, instance, .. } = self.entries[at as usize];
        let newest = &self.entries[self.instances[instance as usize].newest as usize];
        let generation = newest.disposed_generation.wrapping_add(newest.no_writers_generation);
        info.absolute_generation_rank = generation.saturating_sub(info.generation());
        let entry = &mut self.entries[at as usize];
        entry.read = true;
        (cursor.after, cursor.entry) = (entry.arrival, at);
        let state = &mut self.instances[instance as usize];
        if core::mem::replace(&mut state.view, ViewState::NotNew) == ViewState::New {
            state.new_in_pass = cursor.pass;
        }
        let (pass, returned) = core::mem::replace(&mut state.returned_in, (cursor.pass, cursor.returned));
        let previous = (pass == cursor.pass && returned < cursor.returned).then_some(returned);
        cursor.returned += 1;
        if selector.take {
            self.unlink(at);
            self.taken = at;
        }
        let bytes: &[u8] = match payload {
            PayloadRef::EMPTY => &self.instances[instance as usize].key,
            _ if !cursor.keeps_loans => self.pool.readable(payload),
            _ => {
                let loan = self.pool.loan(payload);
                let payload = if loan.is_some() { &[] } else { self.pool.bytes(payload) };
                return SampleRef { info, kind, payload, loan, previous };
            }
        };
        SampleRef { info, kind, payload: bytes, loan: None, previous }
    }

    /// Reports whether there is a sample that the selector matches; changes nothing.
    pub(crate) fn has(&self, selector: &Selector) -> bool {
        self.has_where(selector, None)
    }

    /// Reports whether there is a sample that both the selector and a query match.
    pub(crate) fn has_where(&self, selector: &Selector, query: Option<&dyn SampleQuery>) -> bool {
        self.find(selector, query, self.oldest, 0, List::Arrivals).is_some()
    }

    /// Calls a function with the position in order of arrival of each sample that the selector
    /// matches.
    pub(crate) fn for_each(&self, selector: &Selector, mut call: impl FnMut(u64)) {
        let mut at = self.oldest;
        while let Some(found) = self.find(selector, None, at, 0, List::Arrivals) {
            call(self.entries[found as usize].arrival);
            at = self.entries[found as usize].next;
        }
    }

    /// Returns the first sample from `at` on that the selector matches in a pass; zero is a pass
    /// that has not begun.
    #[inline(always)]
    fn find(
        &self,
        selector: &Selector,
        query: Option<&dyn SampleQuery>,
        mut at: u32,
        pass: u64,
        list: List,
    ) -> Option<u32> {
        while at != NONE {
            let entry = &self.entries[at as usize];
            let instance = &self.instances[entry.instance as usize];
            let matches = |query: &dyn SampleQuery| {
                let is_data = entry.incoming.kind == ChangeKind::Alive;
                query.matches(is_data.then(|| self.pool.bytes(entry.incoming.payload)))
            };
            let states = (entry.sample_state(), instance.view_in(pass), instance.state);
            if selector.wants(states, instance.handle) && query.is_none_or(matches) {
                return Some(at);
            }
            at = match list {
                List::Arrivals => entry.next,
                List::Instance => entry.next_in_instance,
            };
        }
        None
    }

    /// Returns the next sample of the present instance of the pass, or the first one of the next
    /// instance with samples, in order of handles. A pass for one instance, or for the next one,
    /// stays with it.
    fn find_by_instance(
        &self,
        selector: &Selector,
        query: Option<&dyn SampleQuery>,
        cursor: &mut ReadCursor,
    ) -> Option<u32> {
        let of_instance = |instance: u32, after: u64| {
            let first = self.first_of_instance(instance, cursor.entry, after);
            self.find(selector, query, first, cursor.pass, List::Instance)
        };
        if let Some(current) = cursor.instance {
            let index = self.by_handle.get(&current);
            let found = index.and_then(|&index| of_instance(index, cursor.after));
            if found.is_some() || selector.instance != Instances::Any {
                return found;
            }
        }
        let start = match (cursor.instance, selector.instance) {
            (Some(current), _) => Bound::Excluded(current),
            (None, Instances::Only(only)) => Bound::Included(only),
            (None, Instances::After(Some(previous))) => Bound::Excluded(previous),
            (None, Instances::Any | Instances::After(None)) => Bound::Unbounded,
        };
        let end = match selector.instance {
            Instances::Only(only) => Bound::Included(only),
            Instances::Any | Instances::After(_) => Bound::Unbounded,
        };
        let mut instances = self.by_handle.range((start, end));
        let (handle, found) = instances.find_map(|(handle, index)| Some((*handle, of_instance(*index, 0)?)))?;
        (cursor.instance, cursor.after) = (Some(handle), 0);
        Some(found)
    }

    /// Returns the first sample of an instance that arrived after a given sample, which is `entry`
    /// if that still exists.
    fn first_of_instance(&self, instance: u32, entry: u32, after: u64) -> u32 {
        match self.entries.get(entry as usize) {
            Some(entry) if after != 0 && entry.arrival == after => return entry.next_in_instance,
            _ => {}
        }
        let mut at = self.instances[instance as usize].oldest;
        while at != NONE && self.entries[at as usize].arrival <= after {
            at = self.entries[at as usize].next_in_instance;
        }
        at
    }

    /// Frees the sample that the last `next` took.
    #[inline]
    pub(crate) fn release_taken(&mut self) {
        if self.taken != NONE {
            let taken = core::mem::replace(&mut self.taken, NONE);
            self.discard(Stored(taken));
            self.remove_if_unused(self.entries[taken as usize].instance);
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
            sample_state: entry.sample_state(),
            view_state: instance.view_in(pass),
            instance_state: instance.state,
            instance_handle: instance.handle,
            publication: entry.incoming.writer,
            sequence_number: entry.incoming.sn,
            origin: entry.incoming.origin,
            source_timestamp: entry.incoming.source_timestamp,
            reception_timestamp: entry.reception_timestamp,
            disposed_generation_count: entry.disposed_generation,
            no_writers_generation_count: entry.no_writers_generation,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            valid_data: entry.incoming.kind == ChangeKind::Alive,
        }
    }
}
