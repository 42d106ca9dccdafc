//! Discrete-event simulation of frames in strict-priority queues, against which tests compare the
//! bounds.
//!
//! It shares no arithmetic with the analysis except frame times. No frame is dropped: queues are
//! unlimited, and tests compare the maximum backlog with the depth.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Flow, Port};
use crate::link::frame_time_ns;

/// Random source: draws a number between two, both included.
pub trait Draw: FnMut(u64, u64) -> u64 {}

impl<F: FnMut(u64, u64) -> u64> Draw for F {}

/// Arrival pattern of the flows' events.
#[derive(Debug, Clone, Copy)]
pub enum ArrivalPattern {
    /// As dense as permitted, aligned so that the first events meet at a hop of a flow.
    Aligned {
        /// Index of the flow.
        flow: usize,
        /// Index of its hop.
        hop: usize,
    },
    /// Random, within the arrival bounds.
    Random,
}

/// Observed maxima.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Maximum time of an event to its last receiver, by flow.
    pub longest_ns: Vec<u64>,
    /// By port and class: maximum time of a frame in the queue and on the link, and maximum backlog
    /// in octets and frames.
    pub queues: Vec<Vec<(u64, u64, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    flow: usize,
    hop: usize,
    /// Number of the event in its flow.
    event: usize,
    len: u64,
    released_ns: u64,
    came_ns: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The port's link becomes free. The class and the frame that it sent are absent for a frame
    /// without contract.
    Sent(usize, Option<(usize, Frame)>),
    Arrives(Frame),
}

struct Simulation<'a> {
    ports: &'a [Port],
    flows: &'a [Flow],
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    queues: Vec<Vec<VecDeque<Frame>>>,
    held: Vec<Vec<(u64, u64)>>,
    busy: Vec<bool>,
    /// By flow and hop, the time at which the last frame was forwarded: frames of a flow keep their
    /// order.
    forwarded_ns: Vec<Vec<u64>>,
    /// True if a frame without contract starts just before a frame arrives at an idle link.
    flooded: bool,
    /// Flow whose events arrive at given times.
    given: Option<(usize, &'a [u64])>,
    /// Times at which the last frame of each of these events was received.
    received_ns: Vec<u64>,
    observed: Observed,
}

/// Simulates flows up to a time. If `flooded` is true, each frame that arrives at an idle link
/// finds that a frame without contract has just started.
///
/// # Panics
/// Panics if a port or a flow is invalid ([`Flow::check`]).
pub fn run(
    ports: &[Port],
    flows: &[Flow],
    pattern: ArrivalPattern,
    flooded: bool,
    until_ns: u64,
    draw: &mut impl Draw,
) -> Observed {
    simulate((ports, flows), (pattern, flooded), until_ns, None, draw).0
}

/// Simulates as [`run`] does, with given event times of one flow, which may exceed its arrival
/// bound. Also returns the reception time of each event.
///
/// # Panics
/// Panics as [`run`] does.
pub fn run_given(
    network: (&[Port], &[Flow]),
    pattern: (ArrivalPattern, bool),
    until_ns: u64,
    given: (usize, &[u64]),
    draw: &mut impl Draw,
) -> (Observed, Vec<u64>) {
    simulate(network, pattern, until_ns, Some(given), draw)
}

fn simulate(
    (ports, flows): (&[Port], &[Flow]),
    (manner, flooded): (ArrivalPattern, bool),
    until_ns: u64,
    given: Option<(usize, &[u64])>,
    draw: &mut impl Draw,
) -> (Observed, Vec<u64>) {
    let per_class = |port: &Port| port.classes.iter().map(|_| VecDeque::new()).collect::<Vec<_>>();
    let mut simulation = Simulation {
        ports,
        flows,
        events: BinaryHeap::new(),
        count: 0,
        queues: ports.iter().map(per_class).collect(),
        held: ports.iter().map(|port| alloc::vec![(0, 0); port.classes.len()]).collect(),
        busy: alloc::vec![false; ports.len()],
        forwarded_ns: flows.iter().map(|flow| alloc::vec![0; flow.hops.len()]).collect(),
        flooded,
        given,
        received_ns: alloc::vec![0; given.map_or(0, |(_, times)| times.len())],
        observed: Observed {
            longest_ns: alloc::vec![0; flows.len()],
            queues: ports.iter().map(|port| alloc::vec![(0, 0, 0); port.classes.len()]).collect(),
        },
    };
    for number in 0..flows.len() {
        simulation.release(number, manner, until_ns, draw);
    }
    while let Some(Reverse((now_ns, _, event))) = simulation.events.pop() {
        match event {
            Event::Arrives(frame) => simulation.arrive(now_ns, frame),
            Event::Sent(port, sent) => {
                if let Some((class, frame)) = sent {
                    simulation.sent(now_ns, port, class, frame, draw);
                }
                simulation.busy[port] = false;
                simulation.send_next(now_ns, port);
            }
        }
    }
    (simulation.observed, simulation.received_ns)
}

impl Simulation<'_> {
    fn at(&mut self, time_ns: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time_ns, self.count, event)));
    }

    /// Returns the minimum time of a flow's first frame to a port; 0 if its route does not include
    /// the port.
    fn lead(&self, flow: &Flow, port: usize) -> u64 {
        let mut next = flow.hops.iter().position(|hop| hop.port == port).and_then(|n| flow.before(n));
        let mut lead_ns = 0;
        while let Some(n) = next {
            let at = &self.ports[flow.hops[n].port];
            lead_ns += frame_time_ns(flow.frames[0].len, at.rate_bps).expect("a rate") + at.delay_ns_min;
            next = flow.before(n);
        }
        lead_ns
    }

    fn release(&mut self, number: usize, pattern: ArrivalPattern, until_ns: u64, draw: &mut impl Draw) {
        let flow = &self.flows[number];
        let mut times = Vec::new();
        match pattern {
            _ if self.given.is_some_and(|(given, _)| given == number) => {
                times.extend(self.given.iter().flat_map(|(_, times)| *times));
            }
            ArrivalPattern::Aligned { flow: victim, hop } => {
                let port = self.flows[victim].hops[hop].port;
                // All events meet at that port 5 ms after the start.
                let first = 5_000_000_u64.saturating_sub(self.lead(flow, port));
                times.extend((0..).map(|n| first + flow.arrivals.span(n)).take_while(|time| *time < until_ns));
            }
            ArrivalPattern::Random => {
                let mut from = draw(0, 5_000_000);
                while from < until_ns {
                    let run = draw(1, 6);
                    times.extend((0..run).map(|n| from + flow.arrivals.span(n)));
                    // Another dense burst may begin when the jitter is used up.
                    let rest = flow.arrivals.jitter_ns + flow.arrivals.period_ns * run;
                    from += rest + draw(0, flow.arrivals.period_ns);
                }
            }
        }
        for (event, released_ns) in times.into_iter().enumerate() {
            for frames in &flow.frames {
                for _ in 0..frames.count {
                    let frame =
                        Frame { flow: number, hop: 0, event, len: frames.len, released_ns, came_ns: released_ns };
                    self.at(released_ns, Event::Arrives(frame));
                }
            }
        }
    }

    fn arrive(&mut self, now_ns: u64, frame: Frame) {
        let hop = self.flows[frame.flow].hops[frame.hop];
        let (backlog, observed) = (&mut self.held[hop.port][hop.class], &mut self.observed.queues[hop.port][hop.class]);
        *backlog = (backlog.0 + frame.len, backlog.1 + 1);
        (observed.1, observed.2) = (observed.1.max(backlog.0), observed.2.max(backlog.1));
        self.queues[hop.port][hop.class].push_back(Frame { came_ns: now_ns, ..frame });
        let link = &self.ports[hop.port];
        if !self.busy[hop.port] && self.flooded {
            self.busy[hop.port] = true;
            let time_ns = frame_time_ns(link.foreign_frame_len, link.rate_bps).expect("a rate");
            self.at(now_ns + time_ns, Event::Sent(hop.port, None));
        } else if !self.busy[hop.port] {
            self.send_next(now_ns, hop.port);
        }
    }

    fn send_next(&mut self, now_ns: u64, port: usize) {
        let link = &self.ports[port];
        let waiting = self.queues[port].iter_mut().enumerate();
        let next = waiting.filter_map(|(class, queue)| Some((class, queue.pop_front()?))).next();
        let Some((_, frame)) = next else { return };
        self.busy[port] = true;
        let time_ns = frame_time_ns(frame.len, link.rate_bps).expect("a rate");
        self.at(now_ns + time_ns, Event::Sent(port, next));
    }

    fn sent(&mut self, now_ns: u64, port: usize, class: usize, frame: Frame, draw: &mut impl Draw) {
        let (backlog, observed) = (&mut self.held[port][class], &mut self.observed.queues[port][class]);
        *backlog = (backlog.0 - frame.len, backlog.1 - 1);
        observed.0 = observed.0.max(now_ns - frame.came_ns);
        let link = &self.ports[port];
        let delay_ns = match draw(0, 3) {
            0 => link.delay_ns,
            1 => link.delay_ns_min,
            _ => draw(link.delay_ns_min, link.delay_ns),
        };
        let last_ns = &mut self.forwarded_ns[frame.flow][frame.hop];
        let forwarded_ns = (now_ns + delay_ns).max(*last_ns);
        *last_ns = forwarded_ns;
        let flow = &self.flows[frame.flow];
        let followers = (frame.hop + 1..flow.hops.len()).filter(|next| flow.before(*next) == Some(frame.hop));
        let followers: Vec<usize> = followers.collect();
        if followers.is_empty() {
            let longest = &mut self.observed.longest_ns[frame.flow];
            *longest = (forwarded_ns - frame.released_ns).max(*longest);
            if self.given.is_some_and(|(given, _)| given == frame.flow) {
                let received = &mut self.received_ns[frame.event];
                *received = forwarded_ns.max(*received);
            }
        }
        for hop in followers {
            self.at(forwarded_ns, Event::Arrives(Frame { hop, ..frame }));
        }
    }
}
