//! Trees of queueing disciplines that plans have.

use super::schedule::{Gate, LaunchTime, Open};
use crate::tc::classes::{Classes, PRIORITIES};

/// Frames that wait in a queue at most.
const FRAMES: u32 = 1000;

/// What a link takes for each frame besides what the kernel counts, in octets: preamble, check sequence, gap.
const OVERHEAD: u32 = 24;

/// The greatest frame, and what may leave at once, in octets.
const QUANTUM: u32 = 1514;
const BURST: u64 = 1600;

/// A rate that every class exceeds, so that all borrow, and HTB serves who borrows strictly by priority; in octets per second.
const OWN_RATE: u64 = 1000;

/// Which queue of an interface is for marked frames, and what that queue is like.
pub(super) struct Reserved<'a> {
    /// Queues of the interface.
    pub(super) queues: usize,
    /// The one for marked frames.
    pub(super) queue: usize,
    /// The network card is to do what it can of it.
    pub(super) has_offload: bool,
    /// Frames have a time to leave.
    pub(super) launch_time: Option<LaunchTime>,
    /// The time table, from which time on (TAI, in nanoseconds); empty: any frame at any time.
    pub(super) gates: &'a [Gate],
    pub(super) base_time_ns: i64,
}

impl Reserved<'_> {
    /// The class of marked frames. Queues of classes stand in the order of classes.
    fn class(&self) -> u8 {
        u8::from(self.queue > 0)
    }

    /// A discipline for each queue. Frames that have times wait for those, and all others are first in, first out.
    fn leaves(&self) -> String {
        let switch = |is_on: bool| if is_on { "on" } else { "off" };
        let settings = |queue: usize| match self.launch_time {
            Some(LaunchTime { delta_ns, is_by_time_table }) if queue == self.queue || is_by_time_table => format!(
                "etf {:x}: parent 1:{:x} clock tai delta {delta_ns} offload {} deadline off skip_sock_check {}",
                0x10 + queue,
                queue + 1,
                switch(self.has_offload),
                switch(is_by_time_table)
            ),
            _ => format!("pfifo {:x}: parent 1:{:x} limit {FRAMES}", 0x10 + queue, queue + 1),
        };
        (0..self.queues).map(|queue| format!("; qdisc {}", settings(queue))).collect()
    }

    /// Queues that a program, or processors, choose.
    pub(super) fn queue_tree(&self) -> String {
        format!("qdisc mq 1: root{}", self.leaves())
    }

    /// Queues that priorities choose: some have the first or last queue, the others the rest.
    pub(super) fn class_tree(&self, priorities: &[u8]) -> String {
        let queues = |count: usize| u16::try_from(count).expect("an interface has fewer");
        let rest = queues(self.queues - 1);
        let class = self.class();
        let ranges = if class == 0 { [(1, 0), (rest, 1)] } else { [(rest, 0), (1, rest)] };
        let mut map = [1 - class; PRIORITIES];
        priorities.iter().for_each(|priority| map[usize::from(*priority)] = class);
        let classes = Classes { map, queues: ranges.to_vec(), hardware: 0 }.words();
        let root = if self.gates.is_empty() {
            // Only then does the card keep to these queues, and not to some of its own.
            let hardware = if self.has_offload { "1 mode channel" } else { "0" };
            format!("mqprio 1: root {classes} hw {hardware}")
        } else {
            format!("taprio 1: root {classes} {}", self.time_table())
        };
        format!("qdisc {root}{}", self.leaves())
    }

    /// Settings of taprio after the classes.
    fn time_table(&self) -> String {
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
            // A frame is given its time so long before, that it is not late for the discipline that holds it.
            Some(LaunchTime { delta_ns, is_by_time_table: true }) => {
                format!("clock tai flags 1 txtime_delay {}", 2 * delta_ns)
            }
            _ if self.has_offload => "flags 2".to_owned(),
            _ => "clock tai flags 0".to_owned(),
        };
        format!("{how} base_time {} cycle {cycle} entries {}", self.base_time_ns, entries.join(","))
    }
}

/// Marked frames in class 1:10, all else in 1:20. The rate is in bits per second.
pub(super) fn priority_tree(rate_bits: u64) -> String {
    let rate = rate_bits / 8;
    // What an eighth of a millisecond takes, so that a fast link is not kept waiting for the timer.
    let burst = BURST.max(rate / 8000);
    // The time that a burst takes at a rate, in ticks of 64 ns.
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
    fn trees_are_such_as_the_kernel_has() {
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
        reserved.launch_time = Some(LaunchTime { delta_ns: 200_000, is_by_time_table: true });
        reserved.has_offload = false;
        let etf = "clock tai delta 200000 offload off deadline off skip_sock_check on";
        let leaves = format!("; qdisc etf 10: parent 1:1 {etf}; qdisc etf 11: parent 1:2 {etf}");
        let how = "clock tai flags 1 txtime_delay 400000";
        assert_eq!(reserved.class_tree(&[5, 7]), format!("qdisc taprio 1: root {map} {how} {entries}{leaves}"));
        // The first queue: its class is the first too.
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
