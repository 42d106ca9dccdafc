//! Frames through queues of strict priority, one event of the simulation after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use takt_calculus::link::frame_time_ns;
use takt_calculus::network::{Flow, Port};

use crate::random::Random;

/// When events of flows come.
#[derive(Debug, Clone, Copy)]
pub enum Manner {
    /// As densely as they may, so that the first ones meet at this hop of this flow.
    Meet { flow: usize, hop: usize },
    /// At random, never more densely than they may.
    Random,
}

/// What was seen.
pub struct Seen {
    /// For each flow the longest time of an event.
    pub longest_ns: Vec<u64>,
    /// For each port and class the longest time of a frame in the queue and on the link, and what was held at most: octets, frames.
    pub queues: Vec<Vec<(u64, u64, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    flow: usize,
    hop: usize,
    len: u64,
    released_ns: u64,
    came_ns: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The port's link is free again; with the class and the frame that it sent, unless that was without contract.
    Sent(usize, Option<(usize, Frame)>),
    Arrives(Frame),
}

struct Simulation<'a> {
    ports: &'a [Port],
    flows: &'a [Flow],
    happenings: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    count: u64,
    queues: Vec<Vec<VecDeque<Frame>>>,
    held: Vec<Vec<(u64, u64)>>,
    busy: Vec<bool>,
    /// A frame without contract was begun just before a frame comes to an idle link.
    flooded: bool,
    seen: Seen,
}

/// Runs flows for some time. If `flooded`, each frame that comes to an idle link finds that one without contract was begun just before.
pub fn run(ports: &[Port], flows: &[Flow], manner: Manner, flooded: bool, until_ns: u64, random: &mut Random) -> Seen {
    let per_class = |port: &Port| port.classes.iter().map(|_| VecDeque::new()).collect::<Vec<_>>();
    let mut simulation = Simulation {
        ports,
        flows,
        happenings: BinaryHeap::new(),
        count: 0,
        queues: ports.iter().map(per_class).collect(),
        held: ports.iter().map(|port| vec![(0, 0); port.classes.len()]).collect(),
        busy: vec![false; ports.len()],
        flooded,
        seen: Seen {
            longest_ns: vec![0; flows.len()],
            queues: ports.iter().map(|port| vec![(0, 0, 0); port.classes.len()]).collect(),
        },
    };
    for number in 0..flows.len() {
        simulation.release(number, manner, until_ns, random);
    }
    while let Some(Reverse((now_ns, _, happening))) = simulation.happenings.pop() {
        match happening {
            Happening::Arrives(frame) => simulation.arrive(now_ns, frame),
            Happening::Sent(port, sent) => {
                if let Some((class, frame)) = sent {
                    simulation.sent(now_ns, port, class, frame, random);
                }
                simulation.busy[port] = false;
                simulation.send_next(now_ns, port);
            }
        }
    }
    simulation.seen
}

impl Simulation<'_> {
    fn at(&mut self, time_ns: u64, happening: Happening) {
        self.count += 1;
        self.happenings.push(Reverse((time_ns, self.count, happening)));
    }

    /// How long a flow's first frame takes to a port at least; 0 if it does not pass it.
    fn lead(&self, flow: &Flow, port: usize) -> u64 {
        let before = flow.hops.iter().take_while(|hop| hop.port != port);
        let time = |hop: &takt_calculus::network::Hop| {
            let at = &self.ports[hop.port];
            frame_time_ns(flow.frames[0].len, at.rate_bps).expect("a rate") + at.delay_ns_min
        };
        before.map(time).sum()
    }

    fn release(&mut self, number: usize, manner: Manner, until_ns: u64, random: &mut Random) {
        let flow = &self.flows[number];
        let mut times = Vec::new();
        match manner {
            Manner::Meet { flow: victim, hop } => {
                let port = self.flows[victim].hops[hop].port;
                // All are at that port 5 ms after the begin.
                let first = 5_000_000_u64.saturating_sub(self.lead(flow, port));
                times.extend((0..).map(|n| first + flow.arrivals.span(n)).take_while(|time| *time < until_ns));
            }
            Manner::Random => {
                let mut from = random.between(0, 5_000_000);
                while from < until_ns {
                    let run = random.between(1, 6);
                    times.extend((0..run).map(|n| from + flow.arrivals.span(n)));
                    // A new run as dense as the first may begin when the jitter is used up.
                    let rest = flow.arrivals.jitter_ns + flow.arrivals.period_ns * run;
                    from += rest + random.between(0, flow.arrivals.period_ns);
                }
            }
        }
        for released_ns in times {
            for frames in &flow.frames {
                for _ in 0..frames.count {
                    let frame = Frame { flow: number, hop: 0, len: frames.len, released_ns, came_ns: released_ns };
                    self.at(released_ns, Happening::Arrives(frame));
                }
            }
        }
    }

    fn arrive(&mut self, now_ns: u64, frame: Frame) {
        let flow = &self.flows[frame.flow];
        let Some(hop) = flow.hops.get(frame.hop) else {
            let longest = &mut self.seen.longest_ns[frame.flow];
            *longest = (now_ns - frame.released_ns).max(*longest);
            return;
        };
        let (held, seen) = (&mut self.held[hop.port][hop.class], &mut self.seen.queues[hop.port][hop.class]);
        *held = (held.0 + frame.len, held.1 + 1);
        (seen.1, seen.2) = (seen.1.max(held.0), seen.2.max(held.1));
        self.queues[hop.port][hop.class].push_back(Frame { came_ns: now_ns, ..frame });
        let link = &self.ports[hop.port];
        if !self.busy[hop.port] && self.flooded {
            self.busy[hop.port] = true;
            let time_ns = frame_time_ns(link.foreign_frame_len, link.rate_bps).expect("a rate");
            self.at(now_ns + time_ns, Happening::Sent(hop.port, None));
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
        self.at(now_ns + time_ns, Happening::Sent(port, next));
    }

    fn sent(&mut self, now_ns: u64, port: usize, class: usize, frame: Frame, random: &mut Random) {
        let (held, seen) = (&mut self.held[port][class], &mut self.seen.queues[port][class]);
        *held = (held.0 - frame.len, held.1 - 1);
        seen.0 = seen.0.max(now_ns - frame.came_ns);
        let link = &self.ports[port];
        let delay_ns = match random.between(0, 3) {
            0 => link.delay_ns,
            1 => link.delay_ns_min,
            _ => random.between(link.delay_ns_min, link.delay_ns),
        };
        self.at(now_ns + delay_ns, Happening::Arrives(Frame { hop: frame.hop + 1, ..frame }));
    }
}
