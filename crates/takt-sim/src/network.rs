//! The network: hosts on switches that stand in a row, full-duplex links, a queue at each port.
//!
//! A frame is stored and forwarded at each hop. Its way is decided hop by hop; multicast is flooded along the row,
//! which has no loops. Ports throw the dice of the faults, each its own, so that leaving out one fault leaves the others
//! as they were.

use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use takt_wire::Locator;

use crate::clock::{Nanos, SECOND};
use crate::damage::{self, Memory};
use crate::rng::Rng;
use crate::scenario::{Direction, Discipline, FaultKind, Scenario, Trouble};

/// Octets of Ethernet, IP and UDP around a datagram, the gap between frames included.
const OVERHEAD_BYTES: usize = 66;

/// Octets of IPv6 and UDP in the IP packet.
const HEADERS_BYTES: usize = 48;

/// A datagram on its way: small, since it is moved and copied at every hop.
#[derive(Clone, Debug)]
pub struct Frame {
    head: Rc<Head>,
    /// Damaged on the way, which the checksum finds.
    pub corrupt: bool,
    /// Damaged on the way, which no checksum finds. It happens once at most: cut and then joined with another, a submessage would
    /// reach into that unnoticed.
    pub falsified: bool,
}

/// What stays the same on the way, unless a fault falsifies it.
#[derive(Clone, Debug)]
pub struct Head {
    /// The sender's address.
    pub source: Locator,
    /// The host that it left.
    pub from: usize,
    /// Where it goes.
    pub to: Locator,
    /// The host that it goes to; `None` for a group.
    pub host: Option<usize>,
    /// Its class, 0 to 7; 7 is the most urgent.
    pub priority: u8,
    /// The datagram.
    pub bytes: Rc<[u8]>,
    /// Sent by the hostile host, wherever it says that it comes from.
    pub hostile: bool,
}

impl Deref for Frame {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl Frame {
    /// One that has not left yet.
    #[must_use]
    pub fn new(head: Head) -> Self {
        Self { head: Rc::new(head), corrupt: false, falsified: false }
    }

    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }

    /// The same with another datagram in it.
    fn falsified(&self, bytes: Vec<u8>) -> Self {
        Self { head: Rc::new(Head { bytes: bytes.into(), ..(*self.head).clone() }), falsified: true, ..*self }
    }
}

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// Host by index.
    Host(usize),
    /// Switch by index.
    Switch(usize),
}

/// What the network does next, for the world to schedule.
#[derive(Debug)]
pub enum Step {
    /// The last bit of a frame arrives at the far end of a port's link.
    Arrive {
        /// The port that it left.
        port: usize,
        /// The frame.
        frame: Frame,
    },
    /// A port has sent a frame while others waited, and takes the next one.
    Idle {
        /// The port.
        port: usize,
    },
}

/// Counters of all ports together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Frames that entered at a host.
    pub sent: u64,
    /// Frames that arrived at a host, damaged ones included.
    pub arrived: u64,
    /// Frames that a queue had no room for.
    pub queue_drops: u64,
    /// Frames that a fault lost.
    pub fault_drops: u64,
    /// Frames that were too long for a switch.
    pub oversized: u64,
    /// Frames that a fault doubled.
    pub duplicates: u64,
}

/// One direction of a link.
#[derive(Debug)]
struct Port {
    from: Node,
    to: Node,
    queues: [VecDeque<Frame>; 8],
    /// A bit for each queue that is not empty.
    waiting: u8,
    queued_bytes: usize,
    /// When the frame has left that is being sent.
    free_at: Nanos,
    /// A step is planned for that moment.
    waking: bool,
    /// Time spent on frames since somebody asked.
    sending: Nanos,
    dice: Rng,
    /// Indices of the faults that are on here now.
    troubles: Vec<(usize, Trouble)>,
    in_burst: bool,
    /// While a fault may join datagrams.
    memory: Memory,
}

/// The whole network.
#[derive(Debug)]
pub struct Network {
    ports: Vec<Port>,
    /// Per host: its port up, the port down to it.
    of_host: Vec<(usize, usize)>,
    /// Per switch: its port to the previous and to the next one.
    neighbours: Vec<(Option<usize>, Option<usize>)>,
    switch_of: Vec<usize>,
    bits_per_second: u64,
    propagation: Nanos,
    queue_bytes: usize,
    path_mtu: usize,
    discipline: Discipline,
    /// What happened so far.
    pub counters: NetworkCounters,
}

impl Network {
    /// The network of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let plan = &scenario.network;
        let mut network = Self {
            ports: Vec::new(),
            of_host: Vec::new(),
            neighbours: vec![(None, None); plan.switches],
            switch_of: scenario.hosts.iter().map(|host| host.switch).collect(),
            bits_per_second: plan.bits_per_second,
            propagation: plan.propagation,
            queue_bytes: plan.queue_bytes,
            path_mtu: plan.path_mtu,
            discipline: plan.discipline,
            counters: NetworkCounters::default(),
        };
        for (host, plan) in scenario.hosts.iter().enumerate() {
            let up = network.add_port(scenario.seed, Node::Host(host), Node::Switch(plan.switch));
            let down = network.add_port(scenario.seed, Node::Switch(plan.switch), Node::Host(host));
            network.of_host.push((up, down));
        }
        for switch in 1..plan.switches {
            let forth = network.add_port(scenario.seed, Node::Switch(switch - 1), Node::Switch(switch));
            let back = network.add_port(scenario.seed, Node::Switch(switch), Node::Switch(switch - 1));
            network.neighbours[switch - 1].1 = Some(forth);
            network.neighbours[switch].0 = Some(back);
        }
        network
    }

    fn add_port(&mut self, seed: u64, from: Node, to: Node) -> usize {
        let index = self.ports.len();
        self.ports.push(Port {
            from,
            to,
            queues: Default::default(),
            waiting: 0,
            queued_bytes: 0,
            free_at: 0,
            waking: false,
            sending: 0,
            dice: Rng::new(seed ^ (index as u64 + 1) << 40),
            troubles: Vec::new(),
            in_burst: false,
            memory: Memory::default(),
        });
        index
    }

    /// How long the busiest port has been sending since the last call.
    pub fn busiest(&mut self) -> Nanos {
        self.ports.iter_mut().map(|port| std::mem::take(&mut port.sending)).max().unwrap_or(0)
    }

    /// Names of a port's two ends.
    #[must_use]
    pub fn ends(&self, port: usize) -> (Node, Node) {
        (self.ports[port].from, self.ports[port].to)
    }

    /// A fault of a link begins or ends.
    pub fn set_fault(&mut self, now: Nanos, fault: usize, kind: &FaultKind, on: bool, steps: &mut Vec<(Nanos, Step)>) {
        let FaultKind::Link { host, direction, trouble } = kind else { return };
        let (up, down) = self.of_host[*host];
        let port = if *direction == Direction::Up { up } else { down };
        let troubles = &mut self.ports[port].troubles;
        troubles.retain(|(index, _)| *index != fault);
        if on {
            troubles.push((fault, *trouble));
        } else {
            self.ports[port].in_burst = false;
            self.start(now, port, steps);
        }
    }

    /// A host sends. Steps come with the time until they are due.
    pub fn send(&mut self, now: Nanos, host: usize, frame: Frame, steps: &mut Vec<(Nanos, Step)>) {
        self.counters.sent += 1;
        self.enqueue(now, self.of_host[host].0, frame, steps);
    }

    /// A frame arrived at the far end of a port's link. Returns it if that is a host.
    pub fn arrive(
        &mut self,
        now: Nanos,
        port: usize,
        frame: Frame,
        steps: &mut Vec<(Nanos, Step)>,
    ) -> Option<(usize, Frame)> {
        let switch = match self.ports[port].to {
            Node::Host(host) => {
                self.counters.arrived += 1;
                return Some((host, frame));
            }
            Node::Switch(switch) => switch,
        };
        if frame.bytes.len() + HEADERS_BYTES > self.path_mtu {
            self.counters.oversized += 1;
            return None;
        }
        if let Some(host) = frame.host {
            let next = self.towards(switch, host);
            self.enqueue(now, next, frame, steps);
            return None;
        }
        let came_from = self.ports[port].from;
        let (previous, next) = self.neighbours[switch];
        for out in [previous, next].into_iter().flatten() {
            if self.ports[out].to != came_from {
                self.enqueue(now, out, frame.clone(), steps);
            }
        }
        for host in 0..self.of_host.len() {
            if self.switch_of[host] == switch && Node::Host(host) != came_from {
                self.enqueue(now, self.of_host[host].1, frame.clone(), steps);
            }
        }
        None
    }

    /// The port of `switch` that leads to `host`.
    fn towards(&self, switch: usize, host: usize) -> usize {
        let (previous, next) = self.neighbours[switch];
        let port = match self.switch_of[host].cmp(&switch) {
            std::cmp::Ordering::Less => previous,
            std::cmp::Ordering::Greater => next,
            std::cmp::Ordering::Equal => Some(self.of_host[host].1),
        };
        port.expect("switches stand in a row without gaps")
    }

    /// A port has sent a frame.
    pub fn idle(&mut self, now: Nanos, port: usize, steps: &mut Vec<(Nanos, Step)>) {
        self.ports[port].waking = false;
        self.start(now, port, steps);
    }

    fn enqueue(&mut self, now: Nanos, at: usize, mut frame: Frame, steps: &mut Vec<(Nanos, Step)>) {
        let port = &mut self.ports[at];
        let mut copies = 1;
        if !frame.falsified && port.troubles.iter().any(|(_, trouble)| matches!(trouble, Trouble::Disfigurement(_))) {
            port.memory.remember(&frame.bytes);
        }
        for index in 0..port.troubles.len() {
            match port.suffers(index) {
                Suffering::None => {}
                Suffering::Lost => {
                    self.counters.fault_drops += 1;
                    return;
                }
                Suffering::Twice => {
                    self.counters.duplicates += 1;
                    copies += 1;
                }
                Suffering::Damaged => frame.corrupt = true,
                Suffering::Disfigured | Suffering::Flipped if frame.falsified => {}
                Suffering::Disfigured => {
                    frame = frame.falsified(damage::disfigure(&frame.bytes, &port.memory, &mut port.dice));
                }
                Suffering::Flipped => frame = frame.falsified(damage::flip(&frame.bytes, &mut port.dice)),
            }
        }
        for _ in 0..copies {
            if port.queued_bytes + frame.size() > self.queue_bytes {
                self.counters.queue_drops += 1;
                continue;
            }
            let class = if self.discipline == Discipline::Fifo { 0 } else { usize::from(frame.priority & 7) };
            port.queued_bytes += frame.size();
            port.queues[class].push_back(frame.clone());
            port.waiting |= 1 << class;
        }
        self.start(now, at, steps);
    }

    /// Sends the next frame if the port is idle.
    fn start(&mut self, now: Nanos, at: usize, steps: &mut Vec<(Nanos, Step)>) {
        let port = &mut self.ports[at];
        if port.waiting == 0 || port.troubles.iter().any(|(_, trouble)| matches!(trouble, Trouble::Clog)) {
            return;
        }
        if port.free_at <= now {
            let Some(frame) = port.next() else { return };
            let sending = (frame.size() as u64 * 8 * SECOND).div_ceil(self.bits_per_second);
            port.free_at = now + sending;
            port.sending += sending;
            let delay = port.delay();
            steps.push((sending + self.propagation + delay, Step::Arrive { port: at, frame }));
        }
        if port.waiting != 0 && !port.waking {
            port.waking = true;
            steps.push((port.free_at - now, Step::Idle { port: at }));
        }
    }
}

/// What a fault does to one frame.
enum Suffering {
    None,
    Lost,
    Twice,
    Damaged,
    Disfigured,
    Flipped,
}

impl Port {
    /// The next frame to send, the most urgent first.
    fn next(&mut self) -> Option<Frame> {
        let class = self.waiting.checked_ilog2()? as usize;
        let queue = &mut self.queues[class];
        let frame = queue.pop_front();
        if queue.is_empty() {
            self.waiting &= !(1 << class);
        }
        self.queued_bytes -= frame.as_ref().map_or(0, Frame::size);
        frame
    }

    fn suffers(&mut self, index: usize) -> Suffering {
        let hit = |hit: bool, suffering: Suffering| if hit { suffering } else { Suffering::None };
        match self.troubles[index].1 {
            Trouble::Loss(share) => hit(self.dice.chance(share), Suffering::Lost),
            Trouble::Burst(begins, ends) => {
                let turns = self.dice.chance(if self.in_burst { ends } else { begins });
                self.in_burst ^= turns;
                hit(self.in_burst, Suffering::Lost)
            }
            Trouble::Duplication(share) => hit(self.dice.chance(share), Suffering::Twice),
            Trouble::Corruption(share) => hit(self.dice.chance(share), Suffering::Damaged),
            Trouble::Disfigurement(share) => hit(self.dice.chance(share), Suffering::Disfigured),
            Trouble::Flips(share) => hit(self.dice.chance(share), Suffering::Flipped),
            Trouble::Reordering(..) | Trouble::Delay(_) | Trouble::Clog => Suffering::None,
        }
    }

    /// How much later than it should a frame arrives.
    fn delay(&mut self) -> Nanos {
        let Self { troubles, dice, .. } = self;
        let delay = |(_, trouble): &(usize, Trouble)| match *trouble {
            Trouble::Delay(delay) => delay,
            Trouble::Reordering(share, most) if dice.chance(share) => dice.below(most),
            _ => 0,
        };
        troubles.iter().map(delay).sum()
    }
}
