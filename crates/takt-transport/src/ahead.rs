//! Received datagrams that were taken ahead of their turn, to find what is urgent among them: for transports whose interface hands out
//! what arrives in its order.
//!
//! [`Waiting`] keeps them by urgency. [`Ahead`] has memory beside, for those whose frames cannot be kept: what waits is copied into one of
//! [`Ahead::PLACES`]. What is as urgent as anything can be, and follows nothing that is as urgent, is handed out where it came.
//!
//! *Urgency* is 0 for what is not urgent, and at most 63 ([`urgency`]).

use takt_exec::{Priority, PriorityQueue};

use crate::{FlowId, FlowSpec, RxMeta};

/// What everything is more urgent than.
pub const ANY: i32 = -1;

/// Which datagram a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The most urgent, if it is more so than this urgency; see [`Waiting::pop_above`].
    Above(i32),
    /// The first that is not urgent.
    Common,
}

/// How urgent what arrives for a flow is: for one with a port of its own, its TRANSPORT_PRIORITY within 0 to 63.
#[must_use]
pub fn urgency(spec: &FlowSpec) -> i32 {
    if spec.own_port { spec.transport_priority.clamp(0, 63) } else { 0 }
}

/// Urgent datagrams that [`Transport::recv`](crate::Transport::recv) hands out one after the other; behind them comes one of the
/// others, so that a flood of urgent datagrams does not keep them, and their places, for ever.
pub(crate) const URGENT_IN_ROW_MAX: u32 = 8;

/// What waits to be handed out: the most urgent first, and what is as urgent in its order.
#[derive(Debug)]
pub struct Waiting<T> {
    queue: PriorityQueue<T>,
    /// How many urgent ones were handed out since the last one of the others.
    urgent_in_row: u32,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { queue: PriorityQueue::new(), urgent_in_row: 0 }
    }
}

impl<T> Waiting<T> {
    /// Makes room for so many that are not urgent and so many of this urgency. Allocates.
    pub fn reserve(&mut self, urgency: i32, count: usize) {
        for urgency in [0, urgency] {
            self.queue.reserve(Priority::new(urgency), count);
        }
    }

    /// Adds one behind all that is as urgent.
    pub fn push(&mut self, urgency: i32, item: T) {
        self.queue.push(Priority::new(urgency), item);
    }

    /// The first of the most urgent, if it is more so than `above`; of [`ANY`] one that is not urgent, if it is their turn.
    pub fn pop_above(&mut self, above: i32) -> Option<T> {
        let (priority, item) = match above < 0 && self.is_others_turn() {
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

    /// The first that is not urgent.
    pub fn pop_common(&mut self) -> Option<T> {
        self.urgent_in_row = 0;
        self.queue.remove(Priority::NORMAL, |_| true)
    }

    /// Whether one waits that is not urgent.
    #[must_use]
    pub fn has_common(&self) -> bool {
        self.queue.has(Priority::NORMAL)
    }

    fn is_others_turn(&self) -> bool {
        self.urgent_in_row >= URGENT_IN_ROW_MAX
    }

    /// One of this urgency is handed out.
    fn count(&mut self, urgency: i32) {
        self.urgent_in_row = if urgency > 0 { self.urgent_in_row.saturating_add(1) } else { 0 };
    }

    /// How urgent the most urgent is; `None`: nothing waits.
    #[must_use]
    pub fn first_urgency(&self) -> Option<i32> {
        self.queue.first_priority().map(Priority::get)
    }

    /// Takes out all of a kind; the others keep their order. Allocates.
    pub fn remove(&mut self, is_gone: impl Fn(&T) -> bool) -> Vec<T> {
        let all: Vec<_> = std::iter::from_fn(|| self.queue.pop()).collect();
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, item)| is_gone(item));
        kept.into_iter().for_each(|(priority, item)| self.queue.push(priority, item));
        gone.into_iter().map(|(_, item)| item).collect()
    }
}

/// Where a datagram lies that waits or was handed out last.
#[derive(Debug)]
pub struct Place {
    at: usize,
    len: usize,
}

/// Datagrams that were copied to wait. See the [module](self).
#[derive(Debug, Default)]
pub struct Ahead {
    waiting: Waiting<(Place, RxMeta)>,
    /// How urgent what arrives can be.
    most: i32,
    bytes: Vec<u8>,
    stride: usize,
    free: Vec<usize>,
    /// Of what was handed out last.
    lent: Option<usize>,
}

impl Ahead {
    /// Datagrams that can wait at once, and that one call takes.
    pub const PLACES: usize = 256;

    /// Datagrams of at most `len_max` octets wait from now on where others are more urgent, which can be of this urgency. Allocates
    /// for the first that is above 0.
    pub fn await_urgency(&mut self, most: i32, len_max: usize) {
        self.most = most;
        if most > 0 {
            self.waiting.reserve(most, Self::PLACES);
            if self.bytes.is_empty() {
                self.stride = len_max;
                self.bytes = vec![0; Self::PLACES * len_max];
                self.free = (0..Self::PLACES).collect();
            }
        }
    }

    /// Whether something urgent may arrive.
    #[must_use]
    pub fn awaits(&self) -> bool {
        self.most > 0
    }

    /// Whether one more can be taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || (self.most == 0 && self.waiting.first_urgency().is_none())
    }

    /// Whether a datagram that has just arrived comes before all that wait and all that may arrive: then it is handed out now.
    #[must_use]
    pub fn is_next(&mut self, urgency: i32) -> bool {
        let is_first = match self.waiting.first_urgency() {
            Some(first) => first < urgency && !self.waiting.is_others_turn(),
            None => true,
        };
        let is_next = is_first && urgency >= self.most;
        if is_next {
            self.waiting.count(urgency);
        }
        is_next
    }

    /// Whether a datagram of this urgency that has just arrived is what is wanted: then it is handed out now.
    #[must_use]
    pub fn is_wanted(&mut self, urgency: i32, wanted: Wanted) -> bool {
        match wanted {
            Wanted::Above(above) => urgency > above && self.is_next(urgency),
            Wanted::Common => urgency <= 0 && !self.waiting.has_common(),
        }
    }

    /// What was handed out is not used any more. To be called before the next one is looked for.
    pub fn give_back(&mut self) {
        self.free.extend(self.lent.take());
    }

    /// Copies a datagram to where it waits. False: there is no [room](Self::has_room), or it is longer than was said.
    #[must_use]
    pub fn push(&mut self, urgency: i32, meta: RxMeta, datagram: &[u8]) -> bool {
        let len = datagram.len();
        let Some(at) = self.free.pop_if(|_| len <= self.stride) else { return false };
        self.bytes[at * self.stride..][..len].copy_from_slice(datagram);
        self.waiting.push(urgency, (Place { at, len }, meta));
        true
    }

    /// Hands out the most urgent that waits, if it is more so than `above`, until the next [`give_back`](Self::give_back).
    pub fn pop_above(&mut self, above: i32) -> Option<(Place, RxMeta)> {
        let (place, meta) = self.waiting.pop_above(above)?;
        self.lent = Some(place.at);
        Some((place, meta))
    }

    /// Hands out what is wanted of what waits, until the next [`give_back`](Self::give_back).
    pub fn pop(&mut self, wanted: Wanted) -> Option<(Place, RxMeta)> {
        match wanted {
            Wanted::Above(above) => self.pop_above(above),
            Wanted::Common => {
                let (place, meta) = self.waiting.pop_common()?;
                self.lent = Some(place.at);
                Some((place, meta))
            }
        }
    }

    /// What was handed out.
    #[must_use]
    pub fn bytes(&self, place: &Place) -> &[u8] {
        &self.bytes[place.at * self.stride..][..place.len]
    }

    /// Drops what waits for a flow that is closed. Allocates.
    pub fn forget(&mut self, flow: FlowId) {
        let gone = self.waiting.remove(|(_, meta)| meta.flow == flow);
        self.free.extend(gone.into_iter().map(|(place, _)| place.at));
    }
}

#[cfg(test)]
mod tests {
    use takt_wire::Locator;

    use super::*;

    fn meta(flow: u16) -> RxMeta {
        RxMeta { source: Locator::INVALID, local: Locator::INVALID, flow: FlowId(flow), multicast: false }
    }

    /// The first octet and flow of all that is handed out.
    fn all(ahead: &mut Ahead, above: i32) -> Vec<(u8, u16)> {
        let mut all = Vec::new();
        while let Some((place, meta)) = ahead.pop_above(above) {
            all.push((ahead.bytes(&place)[0], meta.flow.0));
            ahead.give_back();
        }
        all
    }

    #[test]
    fn what_is_urgent_comes_first_and_what_is_closed_never() {
        let mut ahead = Ahead::default();
        assert!(ahead.has_room() && ahead.is_next(0) && !ahead.awaits());
        ahead.await_urgency(46, 8);
        assert!(ahead.is_next(46) && !ahead.is_next(45));
        for (n, urgency) in (0..).zip([0, 30, 46, 0, 30, 46]) {
            assert!(ahead.push(urgency, meta(urgency as u16), &[n; 8]));
        }
        assert!(!ahead.push(0, meta(0), &[9; 9]), "longer than was said");
        assert!(!ahead.is_next(46), "others are as urgent and came before");
        assert_eq!(all(&mut ahead, 30), [(2, 46), (5, 46)]);
        ahead.forget(FlowId(30));
        ahead.await_urgency(0, 8);
        assert!(!ahead.is_next(0), "what waits came before");
        assert_eq!(all(&mut ahead, ANY), [(0, 0), (3, 0)]);
        assert!(ahead.is_next(0) && ahead.free.len() == Ahead::PLACES);
    }

    #[test]
    fn one_that_is_not_urgent_passes_behind_eight_that_are() {
        let mut waiting = Waiting::default();
        let fill = |waiting: &mut Waiting<u32>| {
            (0..2).for_each(|number| waiting.push(0, number));
            (10..30).for_each(|number| waiting.push(40, number));
        };
        fill(&mut waiting);
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop_above(ANY)).collect();
        assert_eq!(order, (10..18).chain([0]).chain(18..26).chain([1]).chain(26..30).collect::<Vec<_>>());
        fill(&mut waiting);
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop_above(0)).collect();
        assert_eq!(order, (10..30).collect::<Vec<_>>(), "who asks for urgent ones alone has no other");
    }

    #[test]
    fn a_call_for_common_ones_has_no_urgent_ones() {
        let mut waiting = Waiting::default();
        for (urgency, number) in [(40, 1), (0, 2), (46, 3), (0, 4)] {
            waiting.push(urgency, number);
        }
        assert!(waiting.has_common());
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop_common()).collect();
        assert_eq!(order, [2, 4]);
        assert!(!waiting.has_common() && waiting.first_urgency() == Some(46));
    }

    #[test]
    fn a_flood_that_is_handed_out_as_it_comes_lets_others_pass_too() {
        let mut ahead = Ahead::default();
        ahead.await_urgency(40, 8);
        assert!(ahead.push(0, meta(0), &[0; 8]));
        assert!((0..8).all(|_| ahead.is_next(40)), "straight");
        assert!(!ahead.is_next(40), "not the ninth");
        assert!(ahead.push(40, meta(40), &[9; 8]));
        assert_eq!(all(&mut ahead, ANY), [(0, 0), (9, 40)]);
    }

    #[test]
    fn places_end_and_are_free_again() {
        let mut ahead = Ahead::default();
        ahead.await_urgency(1, 4);
        let mut count = 0;
        while ahead.has_room() {
            assert!(ahead.push(0, meta(0), &[count as u8; 4]));
            count += 1;
        }
        assert_eq!(count, Ahead::PLACES);
        assert!(!ahead.push(1, meta(1), &[9; 4]));
        let (first, _) = ahead.pop_above(ANY).expect("it is full");
        assert_eq!((ahead.bytes(&first), ahead.has_room()), (&[0; 4][..], false), "it is still lent");
        ahead.give_back();
        assert!(ahead.push(1, meta(1), &[9; 4]));
        assert_eq!(all(&mut ahead, ANY).len(), Ahead::PLACES);
    }
}
