//! Trees of queueing disciplines that plans use.

use super::schedule::{Gate, LaunchTime, Open};
use crate::tc::classes::{Classes, PRIORITIES};

/// Maximum number of frames in a queue.
const FRAMES: u32 = 1000;

/// Overhead of the link for each frame beyond the octets that the kernel counts: preamble, frame
/// check sequence, gap.
const OVERHEAD: u32 = 24;

/// Largest frame, and the quantum of a class, in octets.
const QUANTUM: u32 = 1514;
const BURST: u64 = 1600;

/// Guaranteed rate of each class, in octets per second. Every class exceeds it and borrows, and HTB
/// serves borrowing classes in strict priority.
const OWN_RATE: u64 = 1000;

/// Queue of an interface that is reserved for marked frames, with its properties.
pub(super) struct Reserved<'a> {
    /// Number of queues of the interface.
    pub(super) queues: usize,
    /// Index of the queue for marked frames.
    pub(super) queue: usize,
    /// Whether the network card implements as much as it can.
    pub(super) has_offload: bool,
    /// Launch times of frames.
    pub(super) launch_time: Option<LaunchTime>,
    /// Gate schedule. Empty if any frame may leave at any time.
    pub(super) gates: &'a [Gate],
    pub(super) base_time_ns: i64,
}

impl Reserved<'_> {
    /// Returns the class of marked frames. Queues are in the order of their classes.
    fn class(&self) -> u8 {
        u8::from(self.queue > 0)
    }

    /// Returns a discipline for each queue. Frames with launch times wait for them, all others are
    /// FIFO.
    fn leaves(&self) -> String {
        let switch = |is_on: bool| if is_on { "on" } else { "off" };
        let settings = |queue: usize| match self.launch_time {
            Some(LaunchTime { delta_ns, is_assigned_by_schedule })
                if queue == self.queue || is_assigned_by_schedule =>
            {
                format!(
                    "etf {:x}: parent 1:{:x} clock tai delta {delta_ns} offload {} deadline off skip_sock_check {}",
                    0x10 + queue,
                    queue + 1,
                    switch(self.has_offload),
                    switch(is_assigned_by_schedule)
                )
            }
            _ => format!("pfifo {:x}: parent 1:{:x} limit {FRAMES}", 0x10 + queue, queue + 1),
        };
        (0..self.queues).map(|queue| format!("; qdisc {}", settings(queue))).collect()
    }

    /// Returns the tree whose queues are selected by a program or by processors.
    pub(super) fn queue_tree(&self) -> String {
        format!("qdisc mq 1: root{}", self.leaves())
    }

    /// Returns the tree whose queues are selected by priorities. Marked frames have the first or
    /// last queue, all others the rest.
    pub(super) fn class_tree(&self, priorities: &[u8]) -> String {
        let queues = |count: usize| u16::try_from(count).expect("the number of queues of an interface is small");
        let rest = queues(self.queues - 1);
        let class = self.class();
        let ranges = if class == 0 { [(1, 0), (rest, 1)] } else { [(rest, 0), (1, rest)] };
        let mut map = [1 - class; PRIORITIES];
        priorities.iter().for_each(|priority| map[usize::from(*priority)] = class);
        let classes = Classes { map, queues: ranges.to_vec(), hardware: 0 }.to_text();
        let root = if self.gates.is_empty() {
            // Only in this mode does the card use these queues instead of its own assignment.
            let hardware = if self.has_offload { "1 mode channel" } else { "0" };
            format!("mqprio 1: root {classes} hw {hardware}")
        } else {
            format!("taprio 1: root {classes} {}", self.gate_schedule())
        };
        format!("qdisc {root}{}", self.leaves())
    }

    /// Returns the settings of taprio that follow the classes.
    fn gate_schedule(&self) -> String {
        let marked = 1 << self.class();
        let entry = |gate: &Gate| {
            let open = match gate.open {
                Open::Marked => marked,
                Open::Others => 3 - marked,
                Open::All => 3,
                Open::None => 0,
            };
            format!("S:{open:x}:{}", gate.interval_ns)
        };
        let entries: Vec<_> = self.gates.iter().map(entry).collect();
        let cycle: u64 = self.gates.iter().map(|gate| u64::from(gate.interval_ns)).sum();
        let how = match self.launch_time {
            // A launch time is assigned early enough for the discipline that holds the frame.
            Some(LaunchTime { delta_ns, is_assigned_by_schedule: true }) => {
                format!("clock tai flags 1 txtime_delay {}", 2 * delta_ns)
            }
            _ if self.has_offload => "flags 2".to_owned(),
            _ => "clock tai flags 0".to_owned(),
        };
        format!("{how} base_time {} cycle {cycle} entries {}", self.base_time_ns, entries.join(","))
    }
}

/// Returns a tree with marked frames in class 1:10 and other frames in 1:20. The rate is in bits
/// per second.
pub(super) fn priority_tree(rate_bits: u64) -> String {
    let rate = rate_bits / 8;
    // The burst covers an eighth of a millisecond, so that a fast link does not wait for the timer.
    let burst = BURST.max(rate / 8000);
    // Transmission time of a burst at a rate, in ticks of 64 ns.
    let ticks = |rate: u64| burst * 1_000_000_000 / rate / 64;
    let class = |id: &str, parent: &str, own: u64, priority: u32| {
        format!(
            "; class htb 1:{id} {parent} rate {own} ceil {rate} burst_ticks {} cburst_ticks {} quantum {QUANTUM} prio {priority} overhead {OVERHEAD}",
            ticks(own),
            ticks(rate)
        )
    };
    [
        "qdisc htb 1: root default 20 r2q 10 direct_qlen 1000".to_owned(),
        class("1", "root", rate, 0),
        class("10", "parent 1:1", OWN_RATE, 0),
        class("20", "parent 1:1", OWN_RATE, 1),
        format!("; qdisc pfifo 10: parent 1:10 limit {FRAMES}; qdisc pfifo 20: parent 1:20 limit {FRAMES}"),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_the_form_of_the_kernel() {
        let mut reserved =
            Reserved { queues: 2, queue: 1, has_offload: false, launch_time: None, gates: &[], base_time_ns: 0 };
        assert_eq!(
            reserved.queue_tree(),
            "qdisc mq 1: root; qdisc pfifo 10: parent 1:1 limit 1000; qdisc pfifo 11: parent 1:2 limit 1000"
        );
        let leaves = "; qdisc pfifo 10: parent 1:1 limit 1000; qdisc pfifo 11: parent 1:2 limit 1000";
        let map = "map 0,0,0,0,0,1,0,1,0,0,0,0,0,0,0,0 queues 1@0,1@1";
        assert_eq!(reserved.class_tree(&[5, 7]), format!("qdisc mqprio 1: root {map} hw 0{leaves}"));
        reserved.has_offload = true;
        assert_eq!(reserved.class_tree(&[5, 7]), format!("qdisc mqprio 1: root {map} hw 1 mode channel{leaves}"));
        let gates = ["marked:300us", "none:50us", "others:650us", "all:1ms"].map(|gate| gate.parse().expect("a gate"));
        reserved.gates = &gates;
        let entries = "base_time 0 cycle 2000000 entries S:2:300000,S:0:50000,S:1:650000,S:3:1000000";
        assert_eq!(reserved.class_tree(&[5, 7]), format!("qdisc taprio 1: root {map} flags 2 {entries}{leaves}"));
        reserved.launch_time = Some(LaunchTime { delta_ns: 200_000, is_assigned_by_schedule: true });
        reserved.has_offload = false;
        let etf = "clock tai delta 200000 offload off deadline off skip_sock_check on";
        let leaves = format!("; qdisc etf 10: parent 1:1 {etf}; qdisc etf 11: parent 1:2 {etf}");
        let how = "clock tai flags 1 txtime_delay 400000";
        assert_eq!(reserved.class_tree(&[5, 7]), format!("qdisc taprio 1: root {map} {how} {entries}{leaves}"));
        // The first queue belongs to the first class.
        let first = Reserved { queues: 4, queue: 0, gates: &gates[..1], launch_time: None, ..reserved };
        let tree = first.class_tree(&[5]);
        let begins = "qdisc taprio 1: root map 1,1,1,1,1,0,1,1,1,1,1,1,1,1,1,1 queues 1@0,3@1 clock tai flags 0";
        assert!(tree.starts_with(begins) && tree.contains("entries S:1:300000;"), "{tree}");
        let tree = priority_tree(100_000_000);
        assert!(
            tree.contains("class htb 1:10 parent 1:1 rate 1000 ceil 12500000 burst_ticks 25000000 cburst_ticks 2000"),
            "{tree}"
        );
    }
}
