//! The work of flows at one port, in nanoseconds of its link.
//!
//! What comes by one input link comes no faster than that link: in an interval of `t` at most `(t + spread) * rate_in / rate_out`, and one
//! frame that was on its way when the interval began. `spread` is how much the delay behind the input link varies.

use alloc::vec::Vec;

use super::{Flow, Port};
use crate::Arrivals;
use crate::link::frame_time_ns;

/// One flow at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    /// Number of the flow.
    pub(super) flow: usize,
    /// Which of its hops this is.
    pub(super) hop: usize,
    pub(super) class: usize,
    pub(super) arrivals: Arrivals,
    /// Link time of all frames of one event.
    pub(super) event_ns: u64,
    pub(super) frames: u64,
    pub(super) longest_ns: u64,
    pub(super) shortest_ns: u64,
    pub(super) longest_len: u64,
    /// The port whose link it comes by; `None` for the source.
    pub(super) input: Option<usize>,
}

impl Load {
    /// The load of a flow at its `hop`, where its events come as `arrivals` says. `None` if it is beyond counting.
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
        let input = hop.checked_sub(1).map(|before| flow.hops[before].port);
        Some(Self {
            flow: number,
            hop,
            class: at.class,
            arrivals,
            event_ns,
            frames,
            longest_ns,
            shortest_ns,
            longest_len,
            input,
        })
    }

    /// How events come to the next hop from a queue with this budget. `None` beyond `u64`.
    pub(super) fn leave(&self, port: &Port, budget_ns: u64) -> Option<Arrivals> {
        // The first frame may leave at once, and the last as late as the budget allows.
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
    /// By input link, then by flow.
    sorted: Vec<Load>,
}

/// How much comes by an input link at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputLink {
    rate_in: u64,
    rate_out: u64,
    spread_ns: u64,
}

impl InputLink {
    /// Work in an interval of `window_ns`, rounded up, with a frame of `frame_ns` that was on its way when it began.
    fn within(&self, window_ns: u64, frame_ns: u64) -> u64 {
        let octets = (u128::from(window_ns) + u128::from(self.spread_ns)) * u128::from(self.rate_in);
        let work = octets.div_ceil(self.rate_out.into()).saturating_add(frame_ns.into());
        u64::try_from(work).unwrap_or(u64::MAX)
    }

    /// The shortest interval in which it allows that work.
    fn reaches(&self, work: Work) -> u64 {
        let beyond = u128::from(work.all_ns.saturating_sub(work.longest_ns)) * u128::from(self.rate_out);
        let window = beyond.div_ceil(self.rate_in.into()).saturating_sub(self.spread_ns.into());
        u64::try_from(window).unwrap_or(u64::MAX)
    }
}

/// Work that comes by one input link, or from sources.
struct Input<'a> {
    loads: &'a [Load],
    line: Option<InputLink>,
}

impl Loads {
    pub(super) fn insert(&mut self, load: Load) {
        let key = |load: &Load| (load.input, load.flow);
        let at = self.sorted.partition_point(|other| key(other) < key(&load));
        self.sorted.insert(at, load);
    }

    pub(super) fn remove(&mut self, flow: usize) -> Option<Load> {
        let at = self.sorted.iter().position(|load| load.flow == flow)?;
        Some(self.sorted.remove(at))
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, Load> {
        self.sorted.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Load> {
        self.sorted.iter_mut()
    }

    fn inputs<'a>(&'a self, ports: &'a [Port], at: usize) -> impl Iterator<Item = Input<'a>> {
        self.sorted.chunk_by(|a, b| a.input == b.input).map(move |loads| {
            let line = |input: usize| {
                let from = &ports[input];
                let spread_ns = from.delay_ns - from.delay_ns_min;
                InputLink { rate_in: from.rate_bps, rate_out: ports[at].rate_bps, spread_ns }
            };
            Input { loads, line: loads[0].input.map(line) }
        })
    }

    /// Work of the classes that `which` names: all events in an interval of `steps_ns`, ends included, as far as the input links bring
    /// it in `line_ns`. `None` beyond `u64`.
    pub(super) fn demand(
        &self,
        (ports, at): (&[Port], usize),
        which: impl Fn(usize) -> bool,
        steps_ns: u64,
        line_ns: u64,
    ) -> Option<u64> {
        self.inputs(ports, at).try_fold(0_u64, |sum, input| {
            let work = steps(input.loads, &which, steps_ns)?;
            sum.checked_add(
                input.line.map_or(work.all_ns, |line| line.within(line_ns, work.longest_ns).min(work.all_ns)),
            )
        })
    }

    /// The times within `busy_ns` at which the demand of a class begins to grow otherwise: its events, and where the line of an input
    /// meets what its events ask for. Ascending, from 0 on. `None` if there are more than `most`.
    pub(super) fn corners(&self, ports: (&[Port], usize), class: usize, busy_ns: u64, most: usize) -> Option<Vec<u64>> {
        let mut corners = alloc::vec![0];
        for load in self.sorted.iter().filter(|load| load.class == class) {
            let spans = (load.arrivals.at_once()..).map(|n| load.arrivals.span(n));
            corners.extend(spans.take_while(|span| *span < busy_ns).take(most + 1));
            if corners.len() > most {
                corners.sort_unstable();
                corners.dedup();
                if corners.len() > most {
                    return None;
                }
            }
        }
        corners.sort_unstable();
        corners.dedup();
        let events = corners.len();
        for input in self.inputs(ports.0, ports.1) {
            let Some(line) = input.line else { continue };
            for n in 0..events {
                let until = corners.get(n + 1).filter(|_| n + 1 < events).copied().unwrap_or(busy_ns);
                let from = corners[n];
                let work = steps(input.loads, &|other| other == class, from)?;
                // The line is a whole number at few times: the last one at which it is not above the work, and the next.
                let meets = line.reaches(work);
                let meeting = [meets.saturating_sub(1), meets];
                corners.extend(meeting.into_iter().filter(|at| *at > from && *at < until));
            }
        }
        corners.sort_unstable();
        corners.dedup();
        (corners.len() <= most).then_some(corners)
    }

    /// A bound of a class's demand at the begin of an interval, linear over the interval: an input whose line is below its events until
    /// the end grows by its line, all others have all events from the begin on.
    pub(super) fn demand_from(
        &self,
        (ports, at): (&[Port], usize),
        class: usize,
        steps_ns: u64,
        (from_ns, to_ns): (u64, u64),
    ) -> Option<u64> {
        self.inputs(ports, at).try_fold(0_u64, |sum, input| {
            let work = steps(input.loads, &|other| other == class, steps_ns)?;
            let line = input.line.filter(|line| line.within(to_ns, work.longest_ns) <= work.all_ns);
            sum.checked_add(line.map_or(work.all_ns, |line| line.within(from_ns, work.longest_ns)))
        })
    }
}

/// Events of some loads.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    all_ns: u64,
    /// The longest frame of these loads.
    longest_ns: u64,
}

/// All events of some loads in an interval, ends included.
fn steps(loads: &[Load], which: &impl Fn(usize) -> bool, window_ns: u64) -> Option<Work> {
    loads.iter().filter(|load| which(load.class)).try_fold(Work::default(), |sum, load| {
        let events_ns = load.arrivals.count(window_ns).checked_mul(load.event_ns)?;
        let all_ns = sum.all_ns.checked_add(events_ns)?;
        Some(Work { all_ns, longest_ns: sum.longest_ns.max(load.longest_ns) })
    })
}
