//! Simulated network: hosts on switches in a row, full-duplex links, a queue at each port.
//!
//! Switches store and forward frames. The route is determined hop by hop. Multicast is flooded
//! along the row, which has no loops. Each fault at a port has its own random numbers, so that
//! omitting one fault leaves the others unchanged.

use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use takt_wire::Locator;

use crate::clock::{Nanos, SECOND};
use crate::damage::{self, RecentDatagrams};
use crate::rng::Rng;
use crate::scenario::{Direction, Discipline, FaultKind, Impairment, Scenario};

/// Ethernet, IP and UDP overhead of a datagram in octets, including the interframe gap.
const OVERHEAD_BYTES: usize = 66;

/// IPv6 and UDP headers in octets.
const HEADERS_BYTES: usize = 48;

/// A datagram in transit. Small, since it is moved and copied at every hop.
#[derive(Clone, Debug)]
pub struct Frame {
    head: Rc<Head>,
    /// Whether a fault has damaged the frame in a way that the checksum detects.
    pub corrupt: bool,
    /// Whether a fault has damaged the frame in a way that no checksum detects. This happens at
    /// most once: in a truncated datagram that is then joined with another one, a submessage would
    /// reach into the other one undetected.
    pub falsified: bool,
}

/// Part of a frame that stays unchanged in transit, unless a fault falsifies it.
#[derive(Clone, Debug)]
pub struct Head {
    /// Source address.
    pub source: Locator,
    /// Index of the sending host.
    pub from: usize,
    /// Destination address.
    pub to: Locator,
    /// Index of the destination host; `None` for a multicast group.
    pub host: Option<usize>,
    /// Traffic class, 0 to 7; 7 is the most urgent.
    pub priority: u8,
    /// Payload.
    pub bytes: Rc<[u8]>,
    /// Whether the hostile host sent the datagram, whatever its source address.
    pub hostile: bool,
}

impl Deref for Frame {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.head
    }
}

impl Frame {
    /// Creates a frame that has not been sent.
    #[must_use]
    pub fn new(head: Head) -> Self {
        Self { head: Rc::new(head), corrupt: false, falsified: false }
    }

    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }

    /// Returns this frame with another datagram in it.
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

/// Next step of the network, which the world schedules.
#[derive(Debug)]
pub enum Step {
    /// The last bit of a frame arrives at the far end of a link.
    Arrive {
        /// Port that sent the frame.
        port: usize,
        /// The frame.
        frame: Frame,
    },
    /// A port has sent a frame while others were queued, and sends the next one.
    Idle {
        /// The port.
        port: usize,
    },
}

/// Counters, summed over all ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Frames that hosts sent.
    pub sent: u64,
    /// Frames that arrived at a host, including damaged ones.
    pub arrived: u64,
    /// Frames dropped at a full queue.
    pub queue_drops: u64,
    /// Frames dropped by a fault.
    pub fault_drops: u64,
    /// Frames dropped because they exceed the MTU of a switch.
    pub oversized: u64,
    /// Frames duplicated by a fault.
    pub duplicates: u64,
}

/// One direction of a link.
#[derive(Debug)]
struct Port {
    from: Node,
    to: Node,
    queues: [VecDeque<Frame>; 8],
    /// Bit mask of the non-empty queues.
    waiting: u8,
    queued_bytes: usize,
    /// Time at which the current transmission ends.
    free_at: Nanos,
    /// Whether a step is scheduled for that time.
    is_step_scheduled: bool,
    /// Transmission time since the last query.
    sending: Nanos,
    rng: Rng,
    /// Faults that are active at this port, by index.
    impairments: Vec<(usize, Impairment)>,
    in_burst: bool,
    /// Earlier datagrams, while a fault may join datagrams.
    recent: RecentDatagrams,
}

/// The simulated network.
#[derive(Debug)]
pub struct Network {
    ports: Vec<Port>,
    /// Per host: the port towards the network, and the port towards the host.
    of_host: Vec<(usize, usize)>,
    /// Per switch: its ports to the previous and to the next switch.
    neighbors: Vec<(Option<usize>, Option<usize>)>,
    switch_of: Vec<usize>,
    bits_per_second: u64,
    propagation: Nanos,
    queue_bytes: usize,
    path_mtu: usize,
    discipline: Discipline,
    /// Counters so far.
    pub counters: NetworkCounters,
}

impl Network {
    /// Creates the network of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let plan = &scenario.network;
        let mut network = Self {
            ports: Vec::new(),
            of_host: Vec::new(),
            neighbors: vec![(None, None); plan.switches],
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
            network.neighbors[switch - 1].1 = Some(forth);
            network.neighbors[switch].0 = Some(back);
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
            is_step_scheduled: false,
            sending: 0,
            rng: Rng::new(seed ^ (index as u64 + 1) << 40),
            impairments: Vec::new(),
            in_burst: false,
            recent: RecentDatagrams::default(),
        });
        index
    }

    /// Returns the transmission time of the busiest port since the last call.
    pub fn busiest(&mut self) -> Nanos {
        self.ports.iter_mut().map(|port| std::mem::take(&mut port.sending)).max().unwrap_or(0)
    }

    /// Returns the two ends of a port's link.
    #[must_use]
    pub fn ends(&self, port: usize) -> (Node, Node) {
        (self.ports[port].from, self.ports[port].to)
    }

    /// Starts or ends a link fault.
    pub fn set_fault(&mut self, now: Nanos, fault: usize, kind: &FaultKind, on: bool, steps: &mut Vec<(Nanos, Step)>) {
        let FaultKind::Link { host, direction, impairment } = kind else { return };
        let (up, down) = self.of_host[*host];
        let port = if *direction == Direction::Up { up } else { down };
        let impairments = &mut self.ports[port].impairments;
        impairments.retain(|(index, _)| *index != fault);
        if on {
            impairments.push((fault, *impairment));
        } else {
            self.ports[port].in_burst = false;
            self.start(now, port, steps);
        }
    }

    /// Sends a frame of a host. Adds steps with the time at which they are due.
    pub fn send(&mut self, now: Nanos, host: usize, frame: Frame, steps: &mut Vec<(Nanos, Step)>) {
        self.counters.sent += 1;
        self.enqueue(now, self.of_host[host].0, frame, steps);
    }

    /// Handles a frame at the far end of a port's link. Returns the frame if that end is a host.
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
        let (previous, next) = self.neighbors[switch];
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

    /// Returns the port of `switch` that leads to `host`.
    fn towards(&self, switch: usize, host: usize) -> usize {
        let (previous, next) = self.neighbors[switch];
        let port = match self.switch_of[host].cmp(&switch) {
            std::cmp::Ordering::Less => previous,
            std::cmp::Ordering::Greater => next,
            std::cmp::Ordering::Equal => Some(self.of_host[host].1),
        };
        port.expect("switches stand in a row without gaps")
    }

    /// Handles the end of a transmission at a port.
    pub fn idle(&mut self, now: Nanos, port: usize, steps: &mut Vec<(Nanos, Step)>) {
        self.ports[port].is_step_scheduled = false;
        self.start(now, port, steps);
    }

    fn enqueue(&mut self, now: Nanos, at: usize, mut frame: Frame, steps: &mut Vec<(Nanos, Step)>) {
        let port = &mut self.ports[at];
        let mut copies = 1;
        if !frame.falsified
            && port.impairments.iter().any(|(_, impairment)| matches!(impairment, Impairment::StructuralDamage(_)))
        {
            port.recent.push(&frame.bytes);
        }
        for index in 0..port.impairments.len() {
            match port.apply_fault(index) {
                FaultEffect::None => {}
                FaultEffect::Lost => {
                    self.counters.fault_drops += 1;
                    return;
                }
                FaultEffect::Duplicated => {
                    self.counters.duplicates += 1;
                    copies += 1;
                }
                FaultEffect::Damaged => frame.corrupt = true,
                FaultEffect::StructureDamaged | FaultEffect::Flipped if frame.falsified => {}
                FaultEffect::StructureDamaged => {
                    frame = frame.falsified(damage::damage_structure(&frame.bytes, &port.recent, &mut port.rng));
                }
                FaultEffect::Flipped => frame = frame.falsified(damage::flip(&frame.bytes, &mut port.rng)),
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
        if port.waiting == 0
            || port.impairments.iter().any(|(_, impairment)| matches!(impairment, Impairment::Blockage))
        {
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
        if port.waiting != 0 && !port.is_step_scheduled {
            port.is_step_scheduled = true;
            steps.push((port.free_at - now, Step::Idle { port: at }));
        }
    }
}

/// Effect of a fault on one frame.
enum FaultEffect {
    None,
    Lost,
    Duplicated,
    Damaged,
    StructureDamaged,
    Flipped,
}

impl Port {
    /// Removes the next frame to send, the most urgent first.
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

    fn apply_fault(&mut self, index: usize) -> FaultEffect {
        let hit = |hit: bool, effect: FaultEffect| if hit { effect } else { FaultEffect::None };
        match self.impairments[index].1 {
            Impairment::Loss(share) => hit(self.rng.chance(share), FaultEffect::Lost),
            Impairment::Burst(begins, ends) => {
                let changes = self.rng.chance(if self.in_burst { ends } else { begins });
                self.in_burst ^= changes;
                hit(self.in_burst, FaultEffect::Lost)
            }
            Impairment::Duplication(share) => hit(self.rng.chance(share), FaultEffect::Duplicated),
            Impairment::Corruption(share) => hit(self.rng.chance(share), FaultEffect::Damaged),
            Impairment::StructuralDamage(share) => hit(self.rng.chance(share), FaultEffect::StructureDamaged),
            Impairment::Flips(share) => hit(self.rng.chance(share), FaultEffect::Flipped),
            Impairment::Reordering(..) | Impairment::Delay(_) | Impairment::Blockage => FaultEffect::None,
        }
    }

    /// Returns the additional delay of a frame.
    fn delay(&mut self) -> Nanos {
        let Self { impairments, rng, .. } = self;
        let delay = |(_, impairment): &(usize, Impairment)| match *impairment {
            Impairment::Delay(delay) => delay,
            Impairment::Reordering(share, most) if rng.chance(share) => rng.below(most),
            _ => 0,
        };
        impairments.iter().map(delay).sum()
    }
}
