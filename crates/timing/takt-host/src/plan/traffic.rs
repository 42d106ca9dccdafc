//! Queues and classes of an interface for real-time traffic only.
//!
//! Outgoing traffic:
//! - With a line rate, HTB serves marked frames first whenever the link is saturated.
//! - With a queue and marks, mqprio or taprio gives marked frames the queue and other frames the
//!   other queues, by priority. A program at clsact assigns the priority.
//! - Where that is not possible, a program at clsact assigns the queue itself.
//! - Without marks, XPS gives the queue to the traffic that certain processors send.
//!
//! Incoming traffic: rules of the driver assign marked frames to the queue, and its hash table
//! excludes the queue.

use super::trees::{Reserved, priority_tree};
use super::{Planner, Request};
use crate::ethtool::{Parameter, driver, indirection, numbers, rules};
use crate::facts::{InterfaceFacts, mask};
use crate::setting::Setting;
use crate::tc;

impl Planner<'_> {
    pub(super) fn traffic(&mut self, facts: &InterfaceFacts, request: &Request, others: &[usize]) {
        if let Some(rate) = request.line_rate_bits {
            self.tree(&facts.name, &priority_tree(rate), "marked frames have priority when the link is congested");
            self.steer(&facts.name, &format!("class 1:10{}", format_marks(request)));
        }
        let Some(queue) = request.queue else { return };
        let wanted = queue as usize;
        if wanted >= facts.tx_queues.min(facts.rx_queues) || facts.tx_queues < 2 {
            return self.add_queues(facts, queue);
        }
        if request.line_rate_bits.is_none() {
            self.egress(facts, request, wanted, others);
        }
        self.ingress(facts, request, queue);
    }

    fn tree(&mut self, interface: &str, tree: &str, why: &str) {
        let alternative = "the tree stays unchanged: set it manually, and plan again";
        self.set(Setting::Qdisc(interface.to_owned()), tree, why, alternative);
    }

    /// Plans the steering program at clsact.
    fn steer(&mut self, interface: &str, steering: &str) {
        let clsact = Setting::Clsact(interface.to_owned());
        if self.machine.read(&clsact).is_ok_and(|present| present == "ingress") {
            let alternative = "remove it and plan again: clsact replaces it, and both exclude each other";
            return self.add_missing_feature(
                &clsact.to_string(),
                "the discipline ingress occupies its place",
                alternative,
            );
        }
        self.set(clsact, "clsact", "filters can be attached", "nothing: not supported by this kernel");
        let setting = Setting::Steering(interface.to_owned());
        let alternative = "SO_PRIORITY and a discipline that uses it, such as pfifo_fast";
        self.set(setting, steering, "marked frames leave through their own queue or class", alternative);
    }

    fn egress(&mut self, facts: &InterfaceFacts, request: &Request, queue: usize, others: &[usize]) {
        let own = mask(&request.cpus);
        // These precede the tree and are restored after it, since a change of classes resets them.
        for index in 0..facts.tx_queues {
            let setting = Setting::file(format!("/sys/class/net/{}/queues/tx-{index}/xps_cpus", facts.name));
            let (to, why) = match (request.has_marks(), index == queue) {
                (true, _) => ("0".to_owned(), "marks select the queue"),
                (false, true) => (own.clone(), "frames that these processors send have their own queue"),
                (false, false) => (mask(others), "frames of other processors use the other queues"),
            };
            self.set(setting, &to, why, "nothing: XPS is not supported by this kernel");
        }
        let mut reserved = Reserved {
            queues: facts.tx_queues,
            queue,
            has_offload: request.has_offload,
            launch_time: request.launch_time,
            gates: &request.gates,
            base_time_ns: request.base_time_ns,
        };
        if !request.has_marks() {
            return self.tree(&facts.name, &reserved.queue_tree(), "each queue is a FIFO");
        }
        self.drop_missing_disciplines(&mut reserved);
        match self.priorities(&reserved, request) {
            Some(priorities) => {
                let tree = reserved.class_tree(&priorities);
                self.tree(&facts.name, &tree, "priorities select the queue, and each queue is a FIFO");
                // All marked frames are steered, independent of the priority of their sockets.
                let priority = priorities.last().expect("marks exist");
                self.steer(&facts.name, &format!("priority {priority}{}", format_marks(request)));
            }
            None => {
                // Nothing assigns launch times to frames without one.
                reserved.launch_time = reserved.launch_time.filter(|launch| !launch.is_assigned_by_schedule);
                self.tree(&facts.name, &reserved.queue_tree(), "each queue is a FIFO");
                self.steer(&facts.name, &format!("queue {queue} of {}{}", facts.tx_queues, format_marks(request)));
            }
        }
    }

    /// Reports missing disciplines for gate schedules and launch times, and removes them from the
    /// plan.
    fn drop_missing_disciplines(&mut self, reserved: &mut Reserved<'_>) {
        let table = "HTB with a line rate (--line-rate RATE), or gates in the switches: no gate schedule applies here";
        if !self.has_kind("taprio", table) {
            reserved.gates = &[];
        }
        let times = "a timer of the sender: frames with a launch time (SO_TXTIME) are sent at once";
        let is_whole = self.has_kind("etf", times);
        // Without a gate schedule, frames without a launch time receive none and would all be
        // dropped.
        let is_of_table = reserved.launch_time.is_some_and(|launch| launch.is_assigned_by_schedule);
        if !is_whole || (is_of_table && reserved.gates.is_empty()) {
            reserved.launch_time = None;
        }
    }

    /// Reports whether the kernel has a kind of discipline. Adds a missing feature if not.
    fn has_kind(&mut self, kind: &str, alternative: &str) -> bool {
        let support = tc::has_kind(kind);
        let why = match &support {
            Ok(true) => return true,
            Ok(false) => {
                let option = kind.to_uppercase();
                format!(
                    "not supported by this kernel (CONFIG_NET_SCH_{option}, module sch_{kind}, maybe in a separate package)"
                )
            }
            Err(why) => format!("the query failed: {why}"),
        };
        self.add_missing_feature(&format!("the discipline {kind}"), &why, alternative);
        false
    }

    /// Returns the priorities of marked frames in ascending order if they can have the queue.
    /// Otherwise adds a missing feature.
    ///
    /// A socket of Takt uses the upper three bits of the DSCP as its priority. The PCP of a tag is
    /// the priority, unless it is mapped otherwise.
    fn priorities(&mut self, reserved: &Reserved<'_>, request: &Request) -> Option<Vec<u8>> {
        let kind = if reserved.gates.is_empty() { "mqprio" } else { "taprio" };
        let what = format!("{kind} for queue {}", reserved.queue);
        let last = reserved.queues - 1;
        let program = "mq with a program at clsact gives marked frames the queue here";
        let mut priorities: Vec<u8> =
            request.dscp.iter().map(|dscp| dscp >> 3).chain(request.pcp.iter().copied()).collect();
        priorities.sort_unstable();
        priorities.dedup();
        if kind == "mqprio"
            && !self.has_kind(kind, &format!("{program}, without priorities between queues in the card"))
        {
            return None;
        }
        let is_first_in_card = reserved.has_offload && reserved.queue == 0;
        if is_first_in_card || !(reserved.queue == 0 || reserved.queue == last) {
            let why = if is_first_in_card {
                "a card serves the highest class first"
            } else {
                "the queues of each class are in a row"
            };
            self.add_missing_feature(&what, why, &format!("--queue {last}; {program}"));
            return None;
        }
        if priorities.first() == Some(&0) {
            let why = "with a DSCP below 8 or a PCP of 0, the priority is that of unmarked frames";
            self.add_missing_feature(&what, why, &format!("other marks; {program}"));
            return None;
        }
        Some(priorities)
    }

    fn ingress(&mut self, facts: &InterfaceFacts, request: &Request, queue: u32) {
        let name = &facts.name;
        let alternative =
            "AF_XDP, which receives RTPS from its queues (docs/guide/xdp.md); limit other traffic to this machine";
        let (size, occupied) = match rules::table(&driver, name) {
            Ok(table) => table,
            Err(error) => {
                let what = format!("rules of {name} that steer received frames to queue {queue}");
                return self.add_missing_feature(&what, &super::absence(&error), alternative);
            }
        };
        let rules_present: Vec<_> =
            occupied.iter().filter_map(|location| rules::read(&driver, name, *location).ok()).collect(); // tidy-allow(dropped-cause): one that is gone is not there
        let of_dscp = request.dscp.iter().flat_map(|dscp| ["udp4", "udp6"].map(|flow| format!("{flow} dscp {dscp}")));
        let of_pcp = request.pcp.iter().map(|pcp| format!("vlan pcp {pcp}"));
        let wanted = of_dscp.chain(of_pcp).map(|rule| format!("{rule} queue {queue}"));
        let mut free = (0..size).filter(|location| !occupied.contains(location));
        let ntuple = Parameter::named("ntuple").expect("a known parameter");
        self.set(Setting::Ethtool(name.clone(), ntuple), "1", "receive rules are active", alternative);
        for rule in wanted.filter(|rule| !rules_present.contains(rule)) {
            match free.next() {
                Some(location) => self.set(
                    Setting::Rule(name.clone(), location),
                    &rule,
                    "marked frames arrive in the queue",
                    alternative,
                ),
                None => {
                    self.add_missing_feature(&format!("rule/{name}: {rule}"), "the driver's table is full", alternative)
                }
            }
        }
        match indirection::table(&driver, name) {
            Ok((table, queues)) if queues > 1 => {
                let to = indirection::without(table.len(), queue, queues);
                self.set(
                    Setting::Indirection(name.clone()),
                    &to,
                    "unmarked frames arrive in the other queues",
                    alternative,
                );
            }
            Ok(_) => {}
            Err(error) => self.add_missing_feature(
                &format!("spread/{name}"),
                &super::absence(&error),
                "frames without a rule may also arrive in the queue",
            ),
        }
    }

    /// Plans more queues for a missing queue, if the driver supports them.
    fn add_queues(&mut self, facts: &InterfaceFacts, queue: u32) {
        let name = &facts.name;
        let what = format!("queue {queue} of {name}");
        let wanted = (queue + 1).max(2);
        for kinds in [&["combined-channels"][..], &["rx-channels", "tx-channels"]] {
            let parameters = kinds.iter().map(|kind| Parameter::named(kind).expect("a known parameter"));
            let parameters: Vec<_> = parameters.collect();
            let is_within_maximum =
                |parameter: &Parameter| numbers::read_max(&driver, name, *parameter).is_ok_and(|max| max >= wanted);
            if !parameters.iter().all(is_within_maximum) {
                continue;
            }
            for parameter in parameters {
                let setting = Setting::Ethtool(name.clone(), parameter);
                let is_short =
                    self.machine.read(&setting).is_ok_and(|now| now.parse::<u32>().is_ok_and(|now| now < wanted));
                if is_short {
                    self.set(setting, &wanted.to_string(), "a queue for real-time traffic exists", "nothing");
                }
            }
            return self.add_missing_feature(
                &what,
                "this plan creates it",
                "apply this plan, then plan again for the settings of the queue",
            );
        }
        let alternative =
            "priority of marked frames with a line rate (--dscp 46 --line-rate RATE); AF_XDP (docs/guide/xdp.md)";
        self.add_missing_feature(
            &what,
            &format!("the interface has {} transmit queues and {} receive queues", facts.tx_queues, facts.rx_queues),
            alternative,
        );
    }
}

/// Formats marks as in the text of a steering.
fn format_marks(request: &Request) -> String {
    let mut text = String::new();
    for (name, marks) in [("dscp", &request.dscp), ("pcp", &request.pcp)] {
        if !marks.is_empty() {
            let marks: Vec<_> = marks.iter().map(ToString::to_string).collect();
            text += &format!(" {name} {}", marks.join(","));
        }
    }
    text
}
