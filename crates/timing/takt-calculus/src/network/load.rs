//! Load of flows at one port, in nanoseconds of its link.
//!
//! Arrivals by an input link are limited by its rate: in an interval of `t` at most
//! `(t + spread) * rate_in / rate_out`, and one frame that was in transmission when the interval
//! began. `spread` is the variation of the delay after the input link.

use alloc::vec::Vec;

use super::{Flow, Port};
use crate::Arrivals;
use crate::link::frame_time_ns;

/// One flow at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    /// Number of the flow.
    pub(super) flow: usize,
    /// Index of the hop in the flow.
    pub(super) hop: usize,
    pub(super) class: usize,
    pub(super) arrivals: Arrivals,
    /// Link time of all frames of one event, in nanoseconds.
    pub(super) event_ns: u64,
    pub(super) frames: u64,
    pub(super) longest_ns: u64,
    pub(super) shortest_ns: u64,
    pub(super) longest_len: u64,
    /// Utilization of the port in parts of a million, rounded up.
    pub(super) share_ppm: u64,
    /// Port whose link the flow arrives by; `None` for the source.
    pub(super) input: Option<usize>,
    /// Number of simultaneous events, and the earliest time of the next event after them.
    pub(super) at_once: u64,
    pub(super) next_ns: u64,
}

impl Load {
    /// Returns the load of a flow at its hop `hop`, with these arrivals. `None` on overflow.
    pub(super) fn new(ports: &[Port], number: usize, flow: &Flow, hop: usize, arrivals: Arrivals) -> Option<Self> {
        let at = flow.hops[hop];
        let rate_bps = ports[at.port].rate_bps;
        let (mut event_ns, mut frames) = (0_u64, 0_u64);
        let (mut longest_ns, mut shortest_ns, mut longest_len) = (0, u64::MAX, 0);
        for group in &flow.frames {
            let time_ns = frame_time_ns(group.len, rate_bps)?;
            event_ns = event_ns.checked_add(time_ns.checked_mul(group.count)?)?;
            frames = frames.checked_add(group.count)?;
            longest_ns = time_ns.max(longest_ns);
            shortest_ns = time_ns.min(shortest_ns);
            longest_len = group.len.max(longest_len);
        }
        let share = (u128::from(event_ns) * 1_000_000).div_ceil(arrivals.period_ns.into());
        let input = flow.before(hop).map(|before| flow.hops[before].port);
        Some(
            Self {
                flow: number,
                hop,
                class: at.class,
                arrivals,
                event_ns,
                frames,
                longest_ns,
                shortest_ns,
                longest_len,
                share_ppm: u64::try_from(share).unwrap_or(u64::MAX),
                input,
                at_once: 0,
                next_ns: 0,
            }
            .with_arrivals(arrivals),
        )
    }

    /// Returns the same load with other arrivals of the same period.
    pub(super) fn with_arrivals(self, arrivals: Arrivals) -> Self {
        let at_once = arrivals.at_once();
        Self { arrivals, at_once, next_ns: arrivals.span(at_once), ..self }
    }

    /// Reports whether both loads have the same work in each window up to `window_ns`: the
    /// simultaneous events at its start, and no later ones. Proofs with such windows for one load
    /// then hold for the other.
    pub(super) fn has_equal_work(&self, other: &Self, window_ns: u64) -> bool {
        let only = |load: &Self| load.next_ns > window_ns;
        self.at_once == other.at_once && only(self) && only(other) && self.with_arrivals(other.arrivals) == *other
    }

    /// Returns the arrivals at the next hop after a queue with this budget. `None` beyond `u64`.
    pub(super) fn departures(&self, port: &Port, budget_ns: u64) -> Option<Arrivals> {
        // The first frame may leave immediately, and the last one as late as the budget permits.
        let spread_ns = budget_ns.saturating_sub(self.shortest_ns).checked_add(port.delay_ns - port.delay_ns_min)?;
        Some(Arrivals {
            period_ns: self.arrivals.period_ns,
            jitter_ns: self.arrivals.jitter_ns.checked_add(spread_ns)?,
            distance_ns: self.arrivals.distance_ns.saturating_sub(spread_ns),
        })
    }
}

/// All flows at one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loads {
    /// Loads by input link, then by flow.
    sorted: Vec<Load>,
    /// Sort keys of the loads.
    keys: Vec<Key>,
}

/// Input link and flow of a load.
type Key = (Option<usize>, usize);

/// Bound on the arrivals by an input link.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputLink {
    rate_in: u64,
    rate_out: u64,
    spread_ns: u64,
}

impl InputLink {
    pub(super) fn new(from: &Port, to: &Port) -> Self {
        Self { rate_in: from.rate_bps, rate_out: to.rate_bps, spread_ns: from.delay_ns - from.delay_ns_min }
    }

    /// Returns the maximum work in an interval of `window_ns`, rounded up, including a frame of
    /// `frame_ns` that was in transmission when it began.
    pub(super) fn within(&self, window_ns: u64, frame_ns: u64) -> u64 {
        let octets = (u128::from(window_ns) + u128::from(self.spread_ns)) * u128::from(self.rate_in);
        let work = octets.div_ceil(self.rate_out.into()).saturating_add(frame_ns.into());
        u64::try_from(work).unwrap_or(u64::MAX)
    }

    /// Returns the shortest interval in which the link carries that work, a frame of `frame_ns`
    /// included.
    pub(super) fn reaches(&self, work_ns: u64, frame_ns: u64) -> u64 {
        let beyond = u128::from(work_ns.saturating_sub(frame_ns)) * u128::from(self.rate_out);
        let window = beyond.div_ceil(self.rate_in.into()).saturating_sub(self.spread_ns.into());
        u64::try_from(window).unwrap_or(u64::MAX)
    }
}

impl Loads {
    /// Returns the position of a flow with this input, or the position where it would be inserted.
    pub(super) fn place(&self, input: Option<usize>, flow: usize) -> Result<usize, usize> {
        self.keys.binary_search(&(input, flow))
    }

    /// Returns the load of a flow with this input.
    pub(super) fn get(&self, input: Option<usize>, flow: usize) -> Option<&Load> {
        Some(&self.sorted[self.place(input, flow).ok()?]) // tidy-allow(dropped-cause): the flow does not arrive by it.
    }

    /// Inserts a load at its [`place`](Self::place), or replaces the flow's load there.
    pub(super) fn set_at(&mut self, place: Result<usize, usize>, load: Load) {
        match place {
            Ok(at) => self.sorted[at] = load,
            Err(at) => {
                self.sorted.insert(at, load);
                self.keys.insert(at, (load.input, load.flow));
            }
        }
    }

    /// Inserts a load at its position, or replaces the flow's load there.
    #[cfg(test)]
    pub(super) fn set(&mut self, load: Load) {
        self.set_at(self.place(load.input, load.flow), load);
    }

    pub(super) fn remove(&mut self, flow: usize) -> Option<Load> {
        let at = self.keys.iter().position(|(_, own)| *own == flow)?;
        self.keys.remove(at);
        Some(self.sorted.remove(at))
    }

    pub(super) fn as_slice(&self) -> &[Load] {
        &self.sorted
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, Load> {
        self.sorted.iter()
    }
}
