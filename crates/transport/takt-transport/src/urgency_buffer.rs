//! Queue of received datagrams ordered by urgency, for transports whose interface returns datagrams
//! in arrival order.
//!
//! [`UrgencyQueue`] orders datagrams by urgency. [`UrgencyBuffer`] adds memory for transports whose
//! frames cannot be kept: each waiting datagram is copied into one of [`UrgencyBuffer::SLOTS`]
//! slots. A datagram of the highest possible urgency is returned without a copy, unless another of
//! the same urgency waits.
//!
//! The *urgency* of a datagram is 0 if it is not urgent, and at most 63 ([`urgency`]).

use takt_schedule::{Priority, PriorityQueue};

use crate::{FlowId, FlowSpec, RxMeta};

/// Threshold below every urgency.
pub const BELOW_ALL: i32 = -1;

/// Datagram that a call requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Most urgent datagram, if its urgency exceeds this value; see [`UrgencyQueue::pop_above`].
    Above(i32),
    /// First datagram that is not urgent.
    NotUrgent,
}

/// Returns the urgency of datagrams of a flow: TRANSPORT_PRIORITY, clamped to 0 to 63, if the flow
/// has its own port, else 0.
#[must_use]
pub fn urgency(spec: &FlowSpec) -> i32 {
    if spec.own_port { spec.transport_priority.clamp(0, 63) } else { 0 }
}

/// Number of urgent datagrams that [`Transport::recv`](crate::Transport::recv) returns in a row.
/// The next one is not urgent, so that a flood of urgent datagrams does not starve the others and
/// occupy their slots forever.
pub(crate) const URGENT_IN_ROW_MAX: u32 = 8;

/// Waiting datagrams: most urgent first, FIFO within an urgency.
#[derive(Debug)]
pub struct UrgencyQueue<T> {
    queue: PriorityQueue<T>,
    /// Urgent datagrams returned since the last one that was not urgent.
    urgent_in_row: u32,
}

impl<T> Default for UrgencyQueue<T> {
    fn default() -> Self {
        Self { queue: PriorityQueue::new(), urgent_in_row: 0 }
    }
}

impl<T> UrgencyQueue<T> {
    /// Reserves space for `count` datagrams of urgency 0 and `count` of this urgency. Allocates.
    pub fn reserve(&mut self, urgency: i32, count: usize) {
        for urgency in [0, urgency] {
            self.queue.reserve(Priority::new(urgency), count);
        }
    }

    /// Appends a datagram to those of its urgency.
    pub fn push(&mut self, urgency: i32, item: T) {
        self.queue.push(Priority::new(urgency), item);
    }

    /// Returns the first of the most urgent datagrams, if its urgency exceeds `above`. With
    /// [`BELOW_ALL`], returns one that is not urgent if many urgent ones preceded it.
    pub fn pop_above(&mut self, above: i32) -> Option<T> {
        let (priority, item) = match above < 0 && self.is_turn_of_not_urgent() {
            true => self.queue.remove(Priority::NORMAL, |_| true).map(|item| (Priority::NORMAL, item)),
            false => None,
        }
        .or_else(|| {
            self.first_urgency().filter(|urgency| *urgency > above)?;
            self.queue.pop()
        })?;
        self.count(priority.get());
        Some(item)
    }

    /// Returns the first datagram that is not urgent.
    pub fn pop_not_urgent(&mut self) -> Option<T> {
        self.urgent_in_row = 0;
        self.queue.remove(Priority::NORMAL, |_| true)
    }

    /// Reports whether a datagram waits that is not urgent.
    #[must_use]
    pub fn has_not_urgent(&self) -> bool {
        self.queue.has(Priority::NORMAL)
    }

    fn is_turn_of_not_urgent(&self) -> bool {
        self.urgent_in_row >= URGENT_IN_ROW_MAX
    }

    /// Counts a returned datagram of this urgency.
    fn count(&mut self, urgency: i32) {
        self.urgent_in_row = if urgency > 0 { self.urgent_in_row.saturating_add(1) } else { 0 };
    }

    /// Returns the highest urgency among the waiting datagrams, or `None` if none waits.
    #[must_use]
    pub fn first_urgency(&self) -> Option<i32> {
        self.queue.first_priority().map(Priority::get)
    }

    /// Removes and returns all items for which `is_gone` is true; the others keep their order.
    /// Allocates.
    pub fn remove(&mut self, is_gone: impl Fn(&T) -> bool) -> Vec<T> {
        let all: Vec<_> = std::iter::from_fn(|| self.queue.pop()).collect();
        let (removed, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, item)| is_gone(item));
        kept.into_iter().for_each(|(priority, item)| self.queue.push(priority, item));
        removed.into_iter().map(|(_, item)| item).collect()
    }
}

/// Location of a datagram that waits or was returned last.
#[derive(Debug)]
pub struct Slot {
    at: usize,
    len: usize,
}

/// Copies of waiting datagrams. See the [module](self).
#[derive(Debug, Default)]
pub struct UrgencyBuffer {
    waiting: UrgencyQueue<(Slot, RxMeta)>,
    /// Highest urgency that can arrive.
    max_urgency: i32,
    bytes: Vec<u8>,
    stride: usize,
    free: Vec<usize>,
    /// Slot of the datagram that was returned last.
    current: Option<usize>,
}

impl UrgencyBuffer {
    /// Maximum number of waiting datagrams, and of datagrams that one call receives.
    pub const SLOTS: usize = 256;

    /// Enables waiting for datagrams of at most `len_max` octets, when the highest urgency is
    /// `max_urgency`. Allocates on the first call with `max_urgency` above 0.
    pub fn await_urgency(&mut self, max_urgency: i32, len_max: usize) {
        self.max_urgency = max_urgency;
        if max_urgency > 0 {
            self.waiting.reserve(max_urgency, Self::SLOTS);
            if self.bytes.is_empty() {
                self.stride = len_max;
                self.bytes = vec![0; Self::SLOTS * len_max];
                self.free = (0..Self::SLOTS).collect();
            }
        }
    }

    /// Reports whether an urgent datagram can arrive.
    #[must_use]
    pub fn awaits(&self) -> bool {
        self.max_urgency > 0
    }

    /// Reports whether one more datagram can be received.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || (self.max_urgency == 0 && self.waiting.first_urgency().is_none())
    }

    /// Reports whether a datagram that has just arrived precedes all that wait and all that can
    /// arrive. If so, the caller returns it at once.
    #[must_use]
    pub fn is_next(&mut self, urgency: i32) -> bool {
        let is_first = match self.waiting.first_urgency() {
            Some(first) => first < urgency && !self.waiting.is_turn_of_not_urgent(),
            None => true,
        };
        let is_next = is_first && urgency >= self.max_urgency;
        if is_next {
            self.waiting.count(urgency);
        }
        is_next
    }

    /// Reports whether a datagram of this urgency that has just arrived satisfies `wanted`. If so,
    /// the caller returns it at once.
    #[must_use]
    pub fn is_wanted(&mut self, urgency: i32, wanted: Wanted) -> bool {
        match wanted {
            Wanted::Above(above) => urgency > above && self.is_next(urgency),
            Wanted::NotUrgent => urgency <= 0 && !self.waiting.has_not_urgent(),
        }
    }

    /// Frees the slot of the datagram that was returned last. Must be called before the next
    /// receive.
    pub fn release(&mut self) {
        self.free.extend(self.current.take());
    }

    /// Copies a datagram to a free slot. Returns false if there is no [room](Self::has_room), or
    /// if the datagram exceeds the announced maximum length.
    #[must_use]
    pub fn push(&mut self, urgency: i32, meta: RxMeta, datagram: &[u8]) -> bool {
        let len = datagram.len();
        let Some(at) = self.free.pop_if(|_| len <= self.stride) else { return false };
        self.bytes[at * self.stride..][..len].copy_from_slice(datagram);
        self.waiting.push(urgency, (Slot { at, len }, meta));
        true
    }

    /// Returns the most urgent waiting datagram, if its urgency exceeds `above`. Its slot is valid
    /// until the next [`release`](Self::release).
    pub fn pop_above(&mut self, above: i32) -> Option<(Slot, RxMeta)> {
        let (slot, meta) = self.waiting.pop_above(above)?;
        self.current = Some(slot.at);
        Some((slot, meta))
    }

    /// Returns the waiting datagram that satisfies `wanted`. Its slot is valid until the next
    /// [`release`](Self::release).
    pub fn pop(&mut self, wanted: Wanted) -> Option<(Slot, RxMeta)> {
        match wanted {
            Wanted::Above(above) => self.pop_above(above),
            Wanted::NotUrgent => {
                let (slot, meta) = self.waiting.pop_not_urgent()?;
                self.current = Some(slot.at);
                Some((slot, meta))
            }
        }
    }

    /// Returns the octets of a datagram.
    #[must_use]
    pub fn bytes(&self, slot: &Slot) -> &[u8] {
        &self.bytes[slot.at * self.stride..][..slot.len]
    }

    /// Drops the datagrams of a closed flow. Allocates.
    pub fn remove_flow(&mut self, flow: FlowId) {
        let removed = self.waiting.remove(|(_, meta)| meta.flow == flow);
        self.free.extend(removed.into_iter().map(|(slot, _)| slot.at));
    }
}

#[cfg(test)]
mod tests {
    use takt_wire::Locator;

    use super::*;

    fn meta(flow: u16) -> RxMeta {
        RxMeta { source: Locator::INVALID, local: Locator::INVALID, flow: FlowId(flow), multicast: false }
    }

    /// Drains `buffer` and returns the first octet and the flow of each datagram.
    fn all(buffer: &mut UrgencyBuffer, above: i32) -> Vec<(u8, u16)> {
        let mut all = Vec::new();
        while let Some((slot, meta)) = buffer.pop_above(above) {
            all.push((buffer.bytes(&slot)[0], meta.flow.0));
            buffer.release();
        }
        all
    }

    #[test]
    fn most_urgent_comes_first_and_closed_flow_yields_nothing() {
        let mut buffer = UrgencyBuffer::default();
        assert!(buffer.has_room() && buffer.is_next(0) && !buffer.awaits());
        buffer.await_urgency(46, 8);
        assert!(buffer.is_next(46) && !buffer.is_next(45));
        for (n, urgency) in (0..).zip([0, 30, 46, 0, 30, 46]) {
            assert!(buffer.push(urgency, meta(urgency as u16), &[n; 8]));
        }
        assert!(!buffer.push(0, meta(0), &[9; 9]), "longer than the announced length");
        assert!(!buffer.is_next(46), "earlier datagrams have the same urgency");
        assert_eq!(all(&mut buffer, 30), [(2, 46), (5, 46)]);
        buffer.remove_flow(FlowId(30));
        buffer.await_urgency(0, 8);
        assert!(!buffer.is_next(0), "the waiting datagrams arrived first");
        assert_eq!(all(&mut buffer, BELOW_ALL), [(0, 0), (3, 0)]);
        assert!(buffer.is_next(0) && buffer.free.len() == UrgencyBuffer::SLOTS);
    }

    #[test]
    fn datagram_without_urgency_follows_eight_urgent_ones() {
        let mut queue = UrgencyQueue::default();
        let fill = |queue: &mut UrgencyQueue<u32>| {
            (0..2).for_each(|number| queue.push(0, number));
            (10..30).for_each(|number| queue.push(40, number));
        };
        fill(&mut queue);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_above(BELOW_ALL)).collect();
        assert_eq!(order, (10..18).chain([0]).chain(18..26).chain([1]).chain(26..30).collect::<Vec<_>>());
        fill(&mut queue);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_above(0)).collect();
        assert_eq!(order, (10..30).collect::<Vec<_>>(), "a call for urgent datagrams returns only these");
    }

    #[test]
    fn pop_not_urgent_returns_no_urgent_datagrams() {
        let mut queue = UrgencyQueue::default();
        for (urgency, number) in [(40, 1), (0, 2), (46, 3), (0, 4)] {
            queue.push(urgency, number);
        }
        assert!(queue.has_not_urgent());
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_not_urgent()).collect();
        assert_eq!(order, [2, 4]);
        assert!(!queue.has_not_urgent() && queue.first_urgency() == Some(46));
    }

    #[test]
    fn flood_returned_without_waiting_still_yields_to_others() {
        let mut buffer = UrgencyBuffer::default();
        buffer.await_urgency(40, 8);
        assert!(buffer.push(0, meta(0), &[0; 8]));
        assert!((0..8).all(|_| buffer.is_next(40)), "straight");
        assert!(!buffer.is_next(40), "not the ninth");
        assert!(buffer.push(40, meta(40), &[9; 8]));
        assert_eq!(all(&mut buffer, BELOW_ALL), [(0, 0), (9, 40)]);
    }

    #[test]
    fn slots_run_out_and_become_free_again() {
        let mut buffer = UrgencyBuffer::default();
        buffer.await_urgency(1, 4);
        let mut count = 0;
        while buffer.has_room() {
            assert!(buffer.push(0, meta(0), &[count as u8; 4]));
            count += 1;
        }
        assert_eq!(count, UrgencyBuffer::SLOTS);
        assert!(!buffer.push(1, meta(1), &[9; 4]));
        let (first, _) = buffer.pop_above(BELOW_ALL).expect("the queue is full");
        assert_eq!((buffer.bytes(&first), buffer.has_room()), (&[0; 4][..], false), "the datagram is still loaned");
        buffer.release();
        assert!(buffer.push(1, meta(1), &[9; 4]));
        assert_eq!(all(&mut buffer, BELOW_ALL).len(), UrgencyBuffer::SLOTS);
    }
}
