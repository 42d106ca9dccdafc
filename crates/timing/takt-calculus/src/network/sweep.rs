//! Cumulative work of some classes at a port in a growing window, with each event counted once.
//!
//! A search for a fixed point, and a pass over the corners of a busy period, examine windows in
//! ascending order. The work therefore grows with the events in the last window, and not with the
//! flows times the windows.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Port;
use super::load::{InputLink, Load, Loads};

/// Arrivals by one input link, or from sources.
#[derive(Debug, Clone, Copy)]
struct Input {
    line: Option<InputLink>,
    work_ns: u64,
    /// Longest frame of the input's loads, in nanoseconds.
    longest_ns: u64,
}

impl Input {
    fn within(&self, line_ns: u64) -> u64 {
        self.line.map_or(self.work_ns, |line| line.within(line_ns, self.longest_ns).min(self.work_ns))
    }
}

/// Next event of a load that is not counted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    at_ns: u64,
    /// Index of the load.
    load: usize,
    /// Index of the input.
    input: usize,
    /// Number of counted events of the load.
    counted: u64,
}

/// Events of the selected loads in a closed interval from 0 to the window.
#[derive(Debug, Clone)]
pub(super) struct Sweep<'a> {
    loads: &'a [Load],
    inputs: Vec<Input>,
    next: BinaryHeap<Reverse<Next>>,
    frames: u64,
}

impl<'a> Sweep<'a> {
    /// Returns the work of the classes that `which` selects, in a window of 0. `None` beyond `u64`.
    pub(super) fn new((ports, at): (&[Port], usize), loads: &'a Loads, which: impl Fn(usize) -> bool) -> Option<Self> {
        let loads = loads.as_slice();
        let mut inputs: Vec<Input> = Vec::new();
        let mut next = Vec::with_capacity(loads.len());
        let (mut frames, mut last) = (0_u64, None);
        for (n, load) in loads.iter().enumerate().filter(|(_, load)| which(load.class)) {
            if last.replace(load.input) != Some(load.input) {
                let line = load.input.map(|input| InputLink::new(&ports[input], &ports[at]));
                inputs.push(Input { line, work_ns: 0, longest_ns: 0 });
            }
            let input = inputs.last_mut()?;
            let counted = load.at_once;
            input.work_ns = input.work_ns.checked_add(counted.checked_mul(load.event_ns)?)?;
            input.longest_ns = input.longest_ns.max(load.longest_ns);
            frames = frames.saturating_add(counted.saturating_mul(load.frames));
            next.push(Reverse(Next { at_ns: load.next_ns, load: n, input: inputs.len() - 1, counted }));
        }
        Some(Self { loads, inputs, next: next.into(), frames })
    }

    /// Returns the time of the next event that is not counted yet.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.next.peek().map(|Reverse(next)| next.at_ns)
    }

    /// Counts all events within a window. It does nothing if a longer window was counted. `None`
    /// beyond `u64`.
    pub(super) fn grow(&mut self, window_ns: u64) -> Option<()> {
        while let Some(mut top) = self.next.peek_mut().filter(|next| next.0.at_ns <= window_ns) {
            let Next { load, input, counted, .. } = top.0;
            let load = &self.loads[load];
            let all = load.arrivals.count(window_ns);
            // A load whose number of events overflows yields no further events.
            let more = all.checked_sub(counted).filter(|more| *more > 0)?;
            let input = &mut self.inputs[input];
            input.work_ns = input.work_ns.checked_add(more.checked_mul(load.event_ns)?)?;
            self.frames = self.frames.saturating_add(more.saturating_mul(load.frames));
            top.0.counted = all;
            top.0.at_ns = load.arrivals.span(all);
        }
        Some(())
    }

    /// Returns the number of frames of the counted events.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the work of the counted events, limited by the rates of the input links within
    /// `line_ns`. `None` beyond `u64`.
    pub(super) fn work(&self, line_ns: u64) -> Option<u64> {
        self.inputs.iter().try_fold(0_u64, |sum, input| sum.checked_add(input.within(line_ns)))
    }

    /// Returns a bound on the work at the start of an interval, linear over the interval. An input
    /// whose link limits its events up to the end grows with the link's rate; all others have all
    /// events from the start.
    pub(super) fn work_from(&self, (from_ns, to_ns): (u64, u64)) -> Option<u64> {
        self.inputs.iter().try_fold(0_u64, |sum, input| {
            let line = input.line.filter(|line| line.within(to_ns, input.longest_ns) <= input.work_ns);
            sum.checked_add(line.map_or(input.work_ns, |line| line.within(from_ns, input.longest_ns)))
        })
    }

    /// Returns the times at which the limits of the input links meet the counted events: the last
    /// whole time at which a limit is not above them, and the next one.
    pub(super) fn meetings(&self) -> impl Iterator<Item = u64> {
        let meets = |input: &Input| Some(input.line?.reaches(input.work_ns, input.longest_ns));
        self.inputs.iter().filter_map(meets).flat_map(|meets| [meets.saturating_sub(1), meets])
    }

    /// Returns the times within `busy_ns` at which the growth of the work changes: events, and
    /// points at which the limit of an input meets its events. In ascending order from 0; `None` if
    /// there are more than `most`.
    pub(super) fn corners(mut self, busy_ns: u64, most: usize) -> Option<Vec<u64>> {
        let (mut corners, mut events) = (Vec::new(), 0);
        let mut from_ns = 0;
        loop {
            let until_ns = self.next_ns().filter(|at_ns| *at_ns < busy_ns);
            corners.push(from_ns);
            events += 1;
            let end_ns = until_ns.unwrap_or(busy_ns);
            corners.extend(self.meetings().filter(|at| *at > from_ns && *at < end_ns));
            if events > most {
                return None;
            }
            let Some(next_ns) = until_ns else { break };
            self.grow(next_ns)?;
            from_ns = next_ns;
        }
        corners.sort_unstable();
        corners.dedup();
        (corners.len() <= most).then_some(corners)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::Arrivals;
    use crate::network::{Depth, Flow, Frames, Hop};

    fn port(rate_bps: u64) -> Port {
        let classes = alloc::vec![Depth::UNLIMITED];
        Port { name: String::new(), rate_bps, foreign_frame_len: 60, classes, delay_ns: 40, delay_ns_min: 10 }
    }

    fn loads(ports: &[Port]) -> Loads {
        let mut loads = Loads::default();
        for number in 0..12 {
            let input = number % 3;
            let jitter_ns = if number % 2 == 0 { 70_000 * number as u64 } else { 0 };
            let distance_ns = if number % 4 == 0 { 3_000 } else { 0 };
            let arrivals = Arrivals { period_ns: 50_000 + 7_000 * number as u64, jitter_ns, distance_ns };
            let flow = Flow {
                name: String::new(),
                arrivals,
                frames: alloc::vec![Frames { len: 100 + 50 * number as u64, count: 2 }],
                hops: alloc::vec![Hop { port: input, class: 0 }, Hop { port: 3, class: 0 }],
                branches: Vec::new(),
                limit_ns: u64::MAX,
            };
            loads.set(Load::new(ports, number, &flow, usize::from(input > 0), arrivals).expect("no overflow"));
        }
        loads
    }

    #[test]
    fn sweep_counts_the_work_of_each_load_within_the_window() {
        let ports = [port(100_000_000), port(1_000_000_000), port(10_000_000), port(100_000_000)];
        let loads = loads(&ports);
        let mut sweep = Sweep::new((&ports, 3), &loads, |_| true).expect("the load does not overflow");
        for window_ns in [0, 1, 2_999, 3_000, 50_000, 50_001, 400_000, 400_000, 5_000_000] {
            sweep.grow(window_ns).expect("the load does not overflow");
            let mut all_ns = 0;
            for input in [None, Some(1), Some(2)] {
                let here = || loads.iter().filter(|load| load.input == input);
                let work_ns: u64 = here().map(|load| load.arrivals.count(window_ns) * load.event_ns).sum();
                let longest_ns = here().map(|load| load.longest_ns).max().expect("some load exists");
                let line = input.map(|input| InputLink::new(&ports[input], &ports[3]).within(window_ns, longest_ns));
                all_ns += line.map_or(work_ns, |line| line.min(work_ns));
            }
            assert_eq!(sweep.work(window_ns), Some(all_ns), "{window_ns}");
            let frames: u64 = loads.iter().map(|load| load.arrivals.count(window_ns) * load.frames).sum();
            assert_eq!(sweep.frames(), frames, "{window_ns}");
        }
    }

    #[test]
    fn sweep_refuses_work_that_overflows() {
        let ports = [port(1), port(1)];
        let mut loads = Loads::default();
        let arrivals = Arrivals { period_ns: 1, jitter_ns: 1 << 40, distance_ns: 0 };
        let flow = Flow {
            name: String::new(),
            arrivals,
            frames: alloc::vec![Frames { len: 1_000, count: 1 }],
            hops: alloc::vec![Hop { port: 0, class: 0 }],
            branches: Vec::new(),
            limit_ns: u64::MAX,
        };
        loads.set(Load::new(&ports, 0, &flow, 0, arrivals).expect("the load does not overflow"));
        assert!(Sweep::new((&ports, 0), &loads, |_| true).is_none());
    }
}
