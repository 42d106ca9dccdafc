//! Queues and classes of an interface that are for real-time traffic alone.
//!
//! What leaves: with a line rate, HTB serves marked frames first whenever the link is full. With a queue, marked frames have that, and all
//! else the others, by a program at clsact; without marks, what certain processors send, by XPS. What arrives: rules of the driver put
//! marked frames to the queue, and its table of hashes leaves the queue out.

use super::{Planner, Wish};
use crate::ethtool::{Parameter, driver, numbers, rules, spread};
use crate::facts::{InterfaceFacts, mask};
use crate::knob::Knob;
use crate::tc;

/// Frames that wait in a queue at most.
const FRAMES: u32 = 1000;

/// What a link takes for each frame besides what the kernel counts, in octets: preamble, check sequence, gap.
const OVERHEAD: u32 = 24;

/// The greatest frame, and what may leave at once, in octets.
const QUANTUM: u32 = 1514;
const BURST: u64 = 1600;

/// A rate that every class exceeds, so that all borrow, and HTB serves who borrows strictly by priority; in octets per second.
const OWN_RATE: u64 = 1000;

impl Planner<'_> {
    pub(super) fn traffic(&mut self, facts: &InterfaceFacts, wish: &Wish, others: &[usize]) {
        if wish.has_marks() {
            self.name_absent_disciplines();
        }
        if let Some(rate) = wish.line_rate_bits {
            self.tree(&facts.name, &priority_tree(rate), "marked frames go first where the link is full");
            self.steer(&facts.name, &format!("class 1:10{}", marks(wish)));
        }
        let Some(queue) = wish.queue else { return };
        let wanted = queue as usize;
        if wanted >= facts.tx_queues.min(facts.rx_queues) || facts.tx_queues < 2 {
            return self.more_queues(facts, queue);
        }
        if wish.line_rate_bits.is_none() {
            self.egress(facts, wish, wanted, others);
        }
        self.ingress(facts, wish, queue);
    }

    fn tree(&mut self, interface: &str, tree: &str, why: &str) {
        let instead = "the tree is left as it is: set it by hand, and plan again";
        self.set(Knob::Qdisc(interface.to_owned()), tree, why, instead);
    }

    /// Puts the program at clsact.
    fn steer(&mut self, interface: &str, steering: &str) {
        let clsact = Knob::Clsact(interface.to_owned());
        if self.machine.read(&clsact).is_ok_and(|beside| beside == "ingress") {
            let instead = "take it away and plan again: clsact does what it does, and cannot be beside it";
            return self.lack(&clsact.to_string(), "the discipline ingress is in its place", instead);
        }
        self.set(clsact, "clsact", "filters can hang there", "nothing: this kernel has it not");
        let knob = Knob::Steering(interface.to_owned());
        let instead = "SO_PRIORITY and a discipline that heeds it, as pfifo_fast does";
        self.set(knob, steering, "marked frames leave on their own", instead);
    }

    fn egress(&mut self, facts: &InterfaceFacts, wish: &Wish, queue: usize, others: &[usize]) {
        self.tree(&facts.name, &queue_tree(facts.tx_queues), "each queue is first in, first out");
        let own = mask(&wish.cpus);
        for index in 0..facts.tx_queues {
            let knob = Knob::file(format!("/sys/class/net/{}/queues/tx-{index}/xps_cpus", facts.name));
            let (to, why) = match (wish.has_marks(), index == queue) {
                (true, _) => ("0".to_owned(), "marks decide on the queue"),
                (false, true) => (own.clone(), "what these processors send has a queue of its own"),
                (false, false) => (mask(others), "what the others send goes by the other queues"),
            };
            self.set(knob, &to, why, "nothing: this kernel has no XPS");
        }
        if wish.has_marks() {
            self.steer(&facts.name, &format!("queue {queue} of {}{}", facts.tx_queues, marks(wish)));
        }
    }

    fn ingress(&mut self, facts: &InterfaceFacts, wish: &Wish, queue: u32) {
        let name = &facts.name;
        let instead = "AF_XDP, which takes what is RTPS from the queues it has (docs/xdp.md); see that what is sent to this machine is not more than it takes";
        let (size, taken) = match rules::table(&driver, name) {
            Ok(table) => table,
            Err(error) => {
                let what = format!("rules of {name} that put what arrives to queue {queue}");
                return self.lack(&what, &super::absence(&error), instead);
            }
        };
        let there: Vec<_> = taken.iter().filter_map(|place| rules::read(&driver, name, *place).ok()).collect(); // tidy-allow(dropped-cause): one that is gone is not there
        let of_dscp = wish.dscp.iter().flat_map(|dscp| ["udp4", "udp6"].map(|flow| format!("{flow} dscp {dscp}")));
        let of_pcp = wish.pcp.iter().map(|pcp| format!("vlan pcp {pcp}"));
        let wanted = of_dscp.chain(of_pcp).map(|rule| format!("{rule} queue {queue}"));
        let mut free = (0..size).filter(|place| !taken.contains(place));
        let ntuple = Parameter::named("ntuple").expect("it stands in the table");
        self.set(Knob::Ethtool(name.clone(), ntuple), "1", "rules are heeded", instead);
        for rule in wanted.filter(|rule| !there.contains(rule)) {
            match free.next() {
                Some(place) => self.set(Knob::Rule(name.clone(), place), &rule, "it has the queue", instead),
                None => self.lack(&format!("rule/{name}: {rule}"), "the driver's table is full", instead),
            }
        }
        match spread::table(&driver, name) {
            Ok((table, queues)) if queues > 1 => {
                let to = spread::without(table.len(), queue, queues);
                self.set(Knob::Spread(name.clone()), &to, "all else has the other queues", instead);
            }
            Ok(_) => {}
            Err(error) => self.lack(
                &format!("spread/{name}"),
                &super::absence(&error),
                "what no rule is for may come by the queue",
            ),
        }
    }

    /// The queue is not there: more are asked for, if there can be.
    fn more_queues(&mut self, facts: &InterfaceFacts, queue: u32) {
        let name = &facts.name;
        let what = format!("queue {queue} of {name}");
        let wanted = (queue + 1).max(2);
        for kinds in [&["combined-channels"][..], &["rx-channels", "tx-channels"]] {
            let parameters = kinds.iter().map(|kind| Parameter::named(kind).expect("it stands in the table"));
            let parameters: Vec<_> = parameters.collect();
            let has_room =
                |parameter: &Parameter| numbers::read_max(&driver, name, *parameter).is_ok_and(|max| max >= wanted);
            if !parameters.iter().all(has_room) {
                continue;
            }
            for parameter in parameters {
                let knob = Knob::Ethtool(name.clone(), parameter);
                let is_short =
                    self.machine.read(&knob).is_ok_and(|now| now.parse::<u32>().is_ok_and(|now| now < wanted));
                if is_short {
                    self.set(knob, &wanted.to_string(), "there is a queue for real-time traffic", "nothing");
                }
            }
            return self.lack(
                &what,
                "it is made by this plan",
                "apply this plan, then plan again: only then can be said what the queue takes",
            );
        }
        let instead = "a line rate: marked frames go first (--dscp 46 --line-rate RATE); AF_XDP (docs/xdp.md)";
        self.lack(&what, &format!("it sends by {} and receives by {}", facts.tx_queues, facts.rx_queues), instead);
    }

    /// Disciplines that would do more than what is planned.
    fn name_absent_disciplines(&mut self) {
        let instead = [
            (
                "mqprio",
                "mq with a program at clsact: the same queues, without priorities between them in the network card",
            ),
            ("taprio", "HTB by a line rate, or gates in the switches: what leaves is not held to a time table here"),
            ("etf", "a timer of the sender: frames with a time to leave (SO_TXTIME) are not held until then"),
        ];
        for (kind, instead) in instead {
            match tc::has_kind(kind) {
                Ok(true) => {}
                Ok(false) => self.lack(&format!("the discipline {kind}"), "this kernel has it not", instead),
                Err(why) => {
                    self.lack(&format!("the discipline {kind}"), &format!("it cannot be asked for: {why}"), instead)
                }
            }
        }
    }
}

/// Marks as a steering has them.
fn marks(wish: &Wish) -> String {
    let mut text = String::new();
    for (name, marks) in [("dscp", &wish.dscp), ("pcp", &wish.pcp)] {
        if !marks.is_empty() {
            let marks: Vec<_> = marks.iter().map(ToString::to_string).collect();
            text += &format!(" {name} {}", marks.join(","));
        }
    }
    text
}

/// Queues that are first in, first out.
fn queue_tree(queues: usize) -> String {
    let leaf = |queue: usize| format!("; qdisc pfifo {:x}: parent 1:{:x} limit {FRAMES}", 0x10 + queue, queue + 1);
    format!("qdisc mq 1: root{}", (0..queues).map(leaf).collect::<String>())
}

/// Marked frames in class 1:10, all else in 1:20. The rate is in bits per second.
fn priority_tree(rate_bits: u64) -> String {
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
        assert_eq!(
            queue_tree(2),
            "qdisc mq 1: root; qdisc pfifo 10: parent 1:1 limit 1000; qdisc pfifo 11: parent 1:2 limit 1000"
        );
        let tree = priority_tree(100_000_000);
        assert!(
            tree.contains("class htb 1:10 parent 1:1 rate 1000 ceil 12500000 burst_ticks 25000000 cburst_ticks 2000"),
            "{tree}"
        );
    }
}
